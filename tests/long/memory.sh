#!/bin/sh
# Every command under many limits of its address space: it ends well or says that memory is lacking (exit status 5), and never of a
# signal. Below some 120 MB the loader itself fails, which is passed over.
#   STEP=6000 sh tests/long/memory.sh        kB from limit to limit; BERTC names the program
set -u
bertc=${BERTC:-build/bertc}
step=${STEP:-6000}
case $bertc in *sanitized* | *-address*) echo "sanitizers reserve more than any limit"; exit 77 ;; esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

awk -v text="$work/text" -v table="$work/train.tsv" 'BEGIN {
	srand(3)
	split("cat dog man sister king bird teacher child river house", noun, " ")
	split("sees likes finds wants paints follows hears", verb, " ")
	print "sentence\tlabel" >table
	for (document = 0; document < 2000; document++) {
		for (sentence = 0; sentence < 6; sentence++) {
			v = verb[1 + int(rand() * 7)]
			line = "the " noun[1 + int(rand() * 10)] " " v " the " noun[1 + int(rand() * 10)] "."
			print line >text
			if (document < 10)
				print line "\t" v >table
		}
		print "" >text
	}
}'
cut -f 1 "$work/train.tsv" >"$work/lines"
small="--quiet --train_batch_size 8 --max_seq_length 32 --threads 2 --num_train_steps 2"
$bertc pretrain $small --corpus "$work/text" --model tiny --vocab_size 120 --out "$work/base" &&
	$bertc finetune $small --task classification --model "$work/base" --train "$work/train.tsv" --out "$work/tuned" || exit 1
vocab=$work/base/final/vocab.txt

failed=0 runs=0 lacking=0
# check NAME COMMAND...
check() {
	name=$1
	shift
	limit=120000
	while [ $limit -le 480000 ]; do
		rm -rf "$work/out" && mkdir "$work/out"
		(ulimit -v $limit && exec $bertc "$@") >"$work/said" 2>&1 </dev/null
		status=$?
		runs=$((runs + 1))
		case $status in
		0 | 127) ;;
		5) lacking=$((lacking + 1)) ;;
		*) echo "$name under $limit kB: exit status $status: $(tail -2 "$work/said")"; failed=1 ;;
		esac
		limit=$((limit + step))
	done
	echo "$name: $runs runs so far, $lacking of them without enough memory"
}

out=$work/out
check vocab vocab --quiet --threads 2 --corpus "$work/text" --vocab_size 120 --out "$out/vocab.txt"
check tokenize tokenize --threads 2 --vocab_file "$vocab" "$work/text"
check extract extract --quiet --threads 2 "$work/text" --out "$out/text"
check prepare prepare --quiet --threads 2 --corpus "$work/text" --vocab_file "$vocab" --out "$out/x"
check instances instances --quiet --threads 2 --corpus "$work/text" --vocab_file "$vocab" --max_seq_length 32 --out "$out/x.tfrecord"
check pretrain pretrain $small --corpus "$work/text" --model tiny --vocab_file "$vocab" --out "$out/run"
check ranks pretrain $small --ranks 2 --corpus "$work/text" --model tiny --vocab_file "$vocab" --out "$out/run"
check finetune finetune $small --task classification --model "$work/base" --train "$work/train.tsv" --out "$out/run"
check evaluate evaluate --quiet --threads 2 --model "$work/base" --corpus "$work/text" --max_seq_length 32
check predict predict --quiet --threads 2 --model "$work/tuned" "$work/lines" --out "$out/answers"
check fill fill --threads 2 --model "$work/base" 'the cat [MASK] it'
exit $failed
