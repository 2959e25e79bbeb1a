#!/bin/sh
# Every reading and writing call fails in turn, for every command: I/O error, full disk, too many files, no memory for a
# map, a short read or write, an interrupted one, a kill (faults.c makes them, whichever library calls). Each time the
# command must end with one of its own exit codes; if that is 0, the results are those of an undisturbed command; it leaves
# no temporary file (except after a kill); and the same command without the fault, run afterwards, gives the same bytes.
#   FAULTS=60 FILTER=predict sh tests/long/io_faults.sh        number of calls of each kind; BERTC names the program
#   SPREAD=20 FILTER=pretrain sh tests/long/io_faults.sh       the same, spread evenly over all calls that the command makes
set -u
. "$(dirname "$0")/world.inc"
begin
most=${FAULTS:-60}
spread=${SPREAD:-0}
filter=${FILTER:-}
${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O1 -shared -fPIC -o "$work/faults.so" "$(dirname "$0")/faults.c" -ldl || exit 1
# A sanitizer's library must come first.
preload="$(ldd "$bertc" | awk '/libasan/ {print $3}') $work/faults.so"
hit=$work/hit kinds=${KINDS:-"open:EIO open:EMFILE read:EIO read:short read:EINTR write:ENOSPC write:EIO write:short write:kill fsync:EIO
	fsync:kill close:EIO rename:EIO rename:kill unlink:EIO unlink:kill mkdir:ENOSPC mmap:ENOMEM"}

# Only files in a folder of their own are subject to faults: what the script itself keeps lies beside it.
home=$work
work=$home/world
mkdir "$work"
small_text 60
small_tasks
small_config 16 1 32
small_models 4
export TMPDIR="$work/temporary"
mkdir "$TMPDIR"
$bertc export --quiet --model "$work/base" --to sentence_transformers --out "$work/vectors" &&
	$bertc export --quiet --model "$work/tuned" --to int8 --out "$work/int8" || exit 1
hdf5=$work/x.hdf5
part "HDF5" $bertc instances --quiet --corpus "$work/text" --vocab_file "$work/vocab.txt" --max_seq_length 32 --out "$hdf5" || hdf5=

faults=0 hits=0 ended=0

# run COMMAND...: sets $status, writes standard output to $home/output and standard error to $home/said
run() {
	$bertc "$@" >"$home/output" 2>"$home/said" </dev/null
	status=$?
}

# same KEPT WHEN: the files KEPT and standard output must be those of the undisturbed command
same() {
	cmp "$home/whole.output" "$home/output" || bad "$name $2: another output"
	for file in $(echo "$1" | tr , ' '); do
		cmp "$home/whole/$file" "$work/out/$file" || bad "$name $2"
	done
}

# fault KIND NUMBER KEPT COMMAND...: one fault; returns 1 if there is no such call any more
fault() {
	operation=${1%:*} mode=${1#*:} what=${1%:*}:$2:${1#*:} kept=$3
	shift 3
	rm -rf "$work/out" "$hit" && mkdir "$work/out"
	LD_PRELOAD="$preload" IO_FAULT=$what IO_FAULT_BELOW="$work/" IO_FAULT_HIT="$hit" $bertc "$@" >"$home/output" 2>"$home/said" </dev/null
	status=$?
	[ -e "$hit" ] || return 1
	hits=$((hits + 1))
	[ $status -eq 0 ] || ended=$((ended + 1))
	if [ $status -eq 0 ]; then
		same "$kept" "in spite of $what"
	elif ! own_status $status && [ "$mode:$status" != kill:137 ] && [ "$mode:$status" != kill:6 ]; then
		bad "$name, $what: exit status $status: $(tail -3 "$home/said")"
	elif [ ! -s "$home/said" ] && [ $mode != kill ]; then
		bad "$name, $what: exit status $status without a word"
	fi
	if [ $mode != kill ] && [ $operation != unlink ]; then # a file that cannot be removed stays
		left=$(find "$work/out" "$TMPDIR" -name '*.tmp-*' -o -name '.tmp-*' -o -name '.unpacking-*' -o -name 'bertc-*' | head -3)
		[ -z "$left" ] || bad "$name, $what: left: $left"
	fi
	find "$TMPDIR" -mindepth 1 -delete
	[ $status -ne 0 ] && [ -n "$(ls -A "$work/out")" ] || return 0 # nothing to resume
	run "$@"
	# If the failure or kill came after the file or folder had got its final name, the work is done.
	[ $status != 2 ] || ! grep -q "' exists" "$home/said" || { cp "$home/whole.output" "$home/output"; status=0; }
	[ $status -eq 0 ] || { bad "$name after $what: exit status $status: $(tail -3 "$home/said")"; return 0; }
	[ "$mode" = kill ] || [ -z "$kept" ] || same "$kept" "after $what"
}

# numbers KIND COMMAND...: prints the numbers of the calls that must fail, one per line
numbers() {
	kind=$1
	shift
	count=$most
	if [ "$spread" -gt 0 ]; then
		rm -rf "$work/out" "$hit" && mkdir "$work/out"
		LD_PRELOAD="$preload" IO_FAULT=${kind%:*}:0:${kind#*:} IO_FAULT_BELOW="$work/" IO_FAULT_HIT="$hit" $bertc "$@" \
			>/dev/null 2>&1 </dev/null
		count=$(sort -n "$hit" | tail -1)
	fi
	awk -v count="$count" -v some="$spread" 'BEGIN {
		some = some > 0 && some < count ? some : count
		for (i = 0; i < some; i++) print 1 + int(i * (count - 1) / (some > 1 ? some - 1 : 1))
	}'
}

# check NAME KEPT COMMAND...: KEPT (files below $work/out, separated by commas) and standard output must be the same; the
# command writes into $work/out
check() {
	name=$1 whole=$2
	shift 2
	case $name in *$filter*) ;; *) return ;; esac
	rm -rf "$work/out" "$home/whole" && mkdir "$work/out"
	run "$@"
	[ $status -eq 0 ] || { bad "$name: $(cat "$home/said")"; return; }
	mv "$work/out" "$home/whole"
	mv "$home/output" "$home/whole.output"
	for kind in $kinds; do
		for number in $(numbers $kind "$@"); do
			fault $kind $number "$whole" "$@" || break
			faults=$((faults + 1))
		done
	done
	echo "$name: $faults faults so far, $ended of them ended the command"
}

out=$work/out
machine="--quiet --threads 1"
check vocab vocab.txt vocab $machine --corpus "$work/text" --vocab_size 120 --out "$out/vocab.txt"
check tokenize "" tokenize --threads 1 --vocab_file "$work/vocab.txt" "$work/lines"
check extract text extract $machine "$work/text" --out "$out/text"
check prepare x.bin,x.idx prepare $machine --corpus "$work/text" --vocab_file "$work/vocab.txt" --out "$out/x"
check tfrecord x.tfrecord instances $machine --corpus "$work/text" --vocab_file "$work/vocab.txt" --max_seq_length 32 --out "$out/x.tfrecord"
[ -z "$hdf5" ] || check convert x.instances instances $machine --convert "$hdf5" --vocab_file "$work/vocab.txt" --out "$out/x.instances"
[ -z "$hdf5" ] || check verify "" verify "$hdf5"
check verify-run "" verify "$work/base"
check inspect "" inspect "$work/tuned"
check compare "" compare "$work/base" "$work/base"
check fill "" fill --threads 1 --model "$work/base" 'the old [MASK] sees the dog.'
check evaluate "" evaluate $machine --model "$work/base" --corpus "$work/text" --max_seq_length 32 --eval_instances 64
check evaluate-test "" evaluate $machine --model "$work/tuned" --test "$work/dev.tsv" --json
check evaluate-answers "" evaluate $machine --predictions "$work/answers.json" --test "$work/questions.json"
check predict answers predict $machine --model "$work/tuned" "$work/lines" --out "$out/answers"
check predict-int8 answers predict $machine --model "$work/int8" "$work/lines" --out "$out/answers"
check predict-output "" predict $machine --model "$work/tuned" "$work/lines"
check embed vectors.npy embed $machine --model "$work/vectors" "$work/lines" --format npy --out "$out/vectors.npy"
check score scores score $machine --model "$work/base" "$work/lines" --out "$out/scores"
check export-onnx model/onnx/model.onnx,model/config.json export $machine --model "$work/tuned" --to onnx --out "$out/model"
check export-int8 model/model_int8.safetensors,model/config.json,model/bertc_task.json export $machine --model "$work/tuned" --to int8 --out "$out/model"
check export-vectors model/model.safetensors,model/modules.json,model/1_Pooling/config.json export $machine --model "$work/vectors" \
	--to sentence_transformers --out "$out/model"
check export-tensorflow model/bert_config.json export $machine --model "$work/base" --to tensorflow --out "$out/model"
check export-triton model/config.pbtxt export $machine --model "$work/tuned" --to triton --out "$out/model"
for each in tagging:tags.conll squad:questions.json multiple_choice:swag.csv embedding:pairs.jsonl multilabel:labels.jsonl; do
	check plan-${each%:*} "" finetune $small --plan --task ${each%:*} --model "$work/base" --train "$work/${each#*:}" --out "$out/run"
done
often="--save_checkpoints_steps 2 --eval_steps 2 --num_train_steps 4"
check pretrain run/final/model.safetensors,run/final/config.json,run/final/vocab.txt pretrain $small $often --corpus "$work/text" \
	--model "$work/config.json" --vocab_file "$work/vocab.txt" --out "$out/run"
check pretrain-instances run/final/model.safetensors pretrain $small $often --input_file "$work/x.hdf5" --model "$work/config.json" \
	--vocab_file "$work/vocab.txt" --out "$out/run"
check finetune run/final/model.safetensors,run/final/bertc_task.json,run/eval_results.json finetune $small $often \
	--task classification --model "$work/base" --train "$work/train.tsv" --dev "$work/dev.tsv" --test "$work/dev.tsv" --out "$out/run"
check sweep run/final/model.safetensors,run/final/bertc_task.json finetune $small $often --task classification --model "$work/base" \
	--train "$work/train.tsv" --dev "$work/dev.tsv" --sweep "learning_rate=1e-4,1e-3" --out "$out/run"
echo "$hits faults, $ended of them ended the command"
exit $failed
