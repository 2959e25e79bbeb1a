#!/bin/sh
# Every command with too little memory: under many limits of its address space it succeeds or reports that memory is lacking
# (exit code 5), and never ends by a signal. Below about 120 MB the loader itself fails, so such limits are skipped. Under
# the limits of a control group (if this user may make one) the system may kill it, or one of its ranks; nothing else may
# happen, and without a limit the command resumes and gives the same bytes.
#   STEP=6000 sh tests/long/memory.sh        step between limits in kB; BERTC names the program
set -u
. "$(dirname "$0")/world.inc"
begin
step=${STEP:-6000}
limits=$(seq 120000 "$step" 480000)
ldd "$bertc" | grep -q libasan && { echo "sanitizers reserve more than any limit of the address space"; limits=; }

small_text 1500
small_config 32 2 64
small_models 2

# Version 1 or 2 of control groups.
group=
for place in /sys/fs/cgroup/memory /sys/fs/cgroup; do
	mkdir "$place/bertc-$$" 2>/dev/null || continue
	for file in memory.limit_in_bytes memory.max; do
		[ -w "$place/bertc-$$/$file" ] && group=$place/bertc-$$ bound=$place/bertc-$$/$file
	done
	[ -n "$group" ] && break
	rmdir "$place/bertc-$$"
done
[ -n "$group" ] || echo "SKIPPED limits of a control group: this user cannot make one"
trap 'rm -rf "$work"; [ -z "$group" ] || rmdir "$group"' EXIT

runs=0 lacking=0 killed=0


# check NAME KEPT COMMAND...: KEPT (a file below $work/out; "": none) must have the same bytes in the end
check() {
	name=$1 kept=$2
	shift 2
	rm -rf "$work/out" && mkdir "$work/out"
	$bertc "$@" >"$work/said" 2>&1 </dev/null || { bad "$name: $(tail -2 "$work/said")"; return; }
	[ -z "$kept" ] || cp "$work/out/$kept" "$work/whole"
	for limit in $limits; do
		rm -rf "$work/out" && mkdir "$work/out"
		(ulimit -v "$limit" && exec $bertc "$@") >"$work/said" 2>&1 </dev/null
		status=$?
		runs=$((runs + 1))
		case $status in
		0 | 127) ;;
		5) lacking=$((lacking + 1)) ;;
		*) bad "$name under $limit kB: exit status $status: $(tail -2 "$work/said")" ;;
		esac
	done
	for limit in ${group:+4000 8000 12000 16000 20000 24000 32000 40000 48000 64000 80000 120000}; do
		rm -rf "$work/out" && mkdir "$work/out"
		echo $((limit * 1024)) >"$bound" || { bad "no limit of $limit kB"; return; }
		sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$bertc" "$@" >"$work/said" 2>&1 </dev/null
		status=$?
		runs=$((runs + 1))
		case $name:$status in
		*:0 | *:5) ;;
		*:137 | ranks:6) killed=$((killed + 1)) ;;
		*) bad "$name in a group of $limit kB: exit status $status: $(tail -2 "$work/said")" ;;
		esac
		[ $status -eq 0 ] || $bertc "$@" >"$work/said" 2>&1 </dev/null || bad "$name after a group of $limit kB: $(tail -2 "$work/said")"
		[ -z "$kept" ] || cmp "$work/out/$kept" "$work/whole" || bad "$name after a group of $limit kB"
	done
	echo "$name: $runs runs so far, $lacking of them without enough memory, $killed killed by the system"
}

out=$work/out
machine="--quiet --threads 2"
train="--quiet --train_batch_size 8 --max_seq_length 32 --threads 2 --num_train_steps 4 --save_checkpoints_steps 2"
check vocab vocab.txt vocab $machine --corpus "$work/text" --vocab_size 120 --out "$out/vocab.txt"
check tokenize "" tokenize --threads 2 --vocab_file "$work/vocab.txt" "$work/text"
check extract text extract $machine "$work/text" --out "$out/text"
check prepare x.bin prepare $machine --corpus "$work/text" --vocab_file "$work/vocab.txt" --out "$out/x"
check instances x.tfrecord instances $machine --corpus "$work/text" --vocab_file "$work/vocab.txt" --max_seq_length 32 --out "$out/x.tfrecord"
check pretrain run/final/model.safetensors pretrain $train --corpus "$work/text" --model "$work/config.json" --vocab_file "$work/vocab.txt" \
	--out "$out/run"
check ranks run/final/model.safetensors pretrain $train --ranks 2 --corpus "$work/text" --model "$work/config.json" \
	--vocab_file "$work/vocab.txt" --out "$out/run"
check finetune run/final/model.safetensors finetune $train --task classification --model "$work/base" --train "$work/train.tsv" --out "$out/run"
check evaluate "" evaluate $machine --model "$work/base" --corpus "$work/text" --max_seq_length 32 --eval_instances 256
check predict answers predict $machine --model "$work/tuned" "$work/lines" --out "$out/answers"
check embed vectors embed $machine --model "$work/base" "$work/lines" --out "$out/vectors"
check score scores score $machine --model "$work/base" "$work/lines" --out "$out/scores"
check int8 model/model_int8.safetensors export $machine --model "$work/tuned" --to int8 --out "$out/model"
check onnx model/onnx/model.onnx export $machine --model "$work/tuned" --to onnx --out "$out/model"
check fill "" fill --threads 2 --model "$work/base" 'the cat [MASK] it'
exit $failed
