#!/bin/sh
# Every system call of writing fails in turn, for every command that writes: disk full, I/O error, a short write, a kill. Each time
# the command ends with one of its own exit codes and leaves no temporary file (but after a kill); and the same command without the
# fault, run after it, gives the same bytes as one that was never disturbed.
#   FAULTS=60 sh tests/long/io_faults.sh        the first so many calls of each kind; BERTC names the program
set -u
bertc=${BERTC:-build/bertc}
most=${FAULTS:-60}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export TMPDIR="$work/temporary"
mkdir "$TMPDIR"

awk -v text="$work/text" -v table="$work/train.tsv" 'BEGIN {
	srand(3)
	split("cat dog man sister king bird teacher child river house", noun, " ")
	split("sees likes finds wants paints follows hears", verb, " ")
	print "sentence\tlabel" >table
	for (document = 0; document < 60; document++) {
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
cat >"$work/config.json" <<'JSON'
{"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
 "max_position_embeddings": 32}
JSON
small="--quiet --train_batch_size 8 --max_seq_length 32 --threads 1 --precision fp32 --eval_steps 2 --save_checkpoints_steps 2"
$bertc vocab --quiet --corpus "$work/text" --vocab_size 120 --out "$work/vocab.txt" &&
	$bertc pretrain $small --corpus "$work/text" --model "$work/config.json" --vocab_file "$work/vocab.txt" --out "$work/base" \
		--num_train_steps 4 &&
	$bertc finetune $small --task classification --model "$work/base" --train "$work/train.tsv" --num_train_steps 4 \
		--out "$work/tuned" || exit 1
cut -f 1 "$work/train.tsv" >"$work/lines"
hdf5=$work/x.hdf5
$bertc instances --quiet --corpus "$work/text" --vocab_file "$work/vocab.txt" --max_seq_length 32 --out "$hdf5" 2>/dev/null || hdf5=

failed=0 faults=0 hit=0

# check NAME KEPT COMMAND...: `KEPT` (files below $work/out, separated by commas) is what must be the same; the command writes
# into $work/out
check() {
	name=$1 kept=$2
	shift 2
	rm -rf "$work/out" "$work/whole" && mkdir "$work/out"
	$bertc "$@" >"$work/said" 2>&1 || { echo "$name: $(cat "$work/said")"; failed=1; return; }
	mv "$work/out" "$work/whole"
	for operation in open write fsync close rename unlink mkdir; do
		for mode in ENOSPC EIO short kill; do
			[ $mode = short ] && [ $operation != write ] && continue
			quiet=0 number=0
			# The calls are over where the command ends as if there were no fault, several times running.
			while [ $quiet -lt 4 ] && [ $number -lt "$most" ]; do
				number=$((number + 1))
				rm -rf "$work/out" && mkdir "$work/out"
				BERTC_FAULT=$operation:$number:$mode $bertc "$@" >"$work/said" 2>&1 </dev/null
				status=$?
				faults=$((faults + 1))
				[ $status -eq 0 ] && quiet=$((quiet + 1)) || { quiet=0; hit=$((hit + 1)); }
				case $mode:$status in
				*:0 | *:[2345678] | *:75 | kill:137) ;;
				*) echo "$name, $operation:$number:$mode: exit status $status: $(tail -3 "$work/said")"; failed=1 ;;
				esac
				if [ $mode != kill ]; then
					left=$(find "$work/out" "$TMPDIR" -name '*.tmp-*' -o -name '.unpacking-*' -o -name 'bertc-*' | head -3)
					# What cannot be removed cannot be removed.
					[ -z "$left" ] || [ $operation = unlink ] || { echo "$name, $operation:$number:$mode: left: $left"; failed=1; }
				fi
				find "$TMPDIR" -mindepth 1 -delete
				if ! $bertc "$@" >"$work/said" 2>&1 </dev/null; then
					echo "$name after $operation:$number:$mode: $(tail -3 "$work/said")"
					failed=1
					continue
				fi
				for file in $(echo "$kept" | tr , ' '); do
					cmp "$work/whole/$file" "$work/out/$file" || { echo "$name after $operation:$number:$mode"; failed=1; }
				done
			done
		done
	done
	echo "$name: $faults faults so far, $hit of them ended the command"
}

out=$work/out
check vocab vocab.txt vocab --quiet --corpus "$work/text" --vocab_size 120 --out "$out/vocab.txt"
check extract text extract --quiet "$work/text" --out "$out/text"
check prepare x.bin,x.idx prepare --quiet --corpus "$work/text" --vocab_file "$work/vocab.txt" --out "$out/x"
check tfrecord x.tfrecord instances --quiet --corpus "$work/text" --vocab_file "$work/vocab.txt" --max_seq_length 32 --out "$out/x.tfrecord"
[ -z "$hdf5" ] || check convert x.instances instances --quiet --convert "$hdf5" --vocab_file "$work/vocab.txt" --out "$out/x.instances"
[ -z "$hdf5" ] || check verify "" verify "$hdf5"
check evaluate "" evaluate --quiet --model "$work/base" --corpus "$work/text" --max_seq_length 32
check predict answers predict --quiet --model "$work/tuned" "$work/lines" --out "$out/answers"
check pretrain run/final/model.safetensors,run/final/config.json,run/final/vocab.txt pretrain $small --corpus "$work/text" \
	--model "$work/config.json" --vocab_file "$work/vocab.txt" --num_train_steps 4 --out "$out/run"
check finetune run/final/model.safetensors,run/final/bertc_task.json,run/eval_results.json finetune $small --task classification \
	--model "$work/base" --train "$work/train.tsv" --dev "$work/train.tsv" --num_train_steps 4 --out "$out/run"
echo "$faults faults, $hit of them ended the command"
exit $failed
