#!/bin/sh
# Runs killed by kill -9 at random moments, from the first write to the end and also during saves and evaluations, and
# started again each time: weights, moments, the best checkpoint, metrics.jsonl (without times) and, for fine-tuning, the
# results must be those of an undisturbed run, bit for bit. With several ranks, any process may be killed: one of them, or
# their launcher; with two started by mpirun (mpi2), one of them: without mpirun they would continue.
#   KILLS=200 SEED=1 RUNS="pretrain:1 finetune:2" sh tests/long/kill.sh        from the repository's root; BERTC names the program
# EVERY: steps between saves; LONGEST: maximum lifetime of a start in seconds (at least half as long again as the first
# checkpoint took).
set -u
. "$(dirname "$0")/world.inc"
begin
kills=${KILLS:-200}
seed=${SEED:-1}
threads=${THREADS:-1}
runs=${RUNS:-pretrain:1 pretrain:2 pretrain:4 finetune:1 finetune:2 finetune:4 pretrain:mpi2 finetune:mpi2}
every=${EVERY:-25}
small_text 400
small_config 64 2 128
"$bertc" pretrain --quiet --corpus "$work/text" --model "$work/config.json" --out "$work/base" --vocab_size 300 --train_batch_size 4 \
	--max_seq_length 32 --num_train_steps 20 --precision fp32 2>"$work/base.log" || { cat "$work/base.log"; exit 1; }

# run FOLDER: replaces this shell, so that a signal reaches the program itself
run() {
	case $command in
	pretrain) set -- "$1" --corpus "$work/text" --model "$work/config.json" --vocab_size 300 --eval_instances 32 ;;
	finetune) set -- "$1" --task classification --model "$work/base" --train "$work/train.tsv" --dev "$work/dev.tsv" ;;
	esac
	folder=$1
	shift
	starter= count="--ranks $ranks"
	[ "$ranks" != mpi2 ] || { starter="mpirun --allow-run-as-root --oversubscribe -n 2" count=; }
	exec $starter "$bertc" "$command" --quiet --out "$work/$folder" "$@" --train_batch_size 4 --max_seq_length 32 --num_train_steps "$steps" \
		--learning_rate 1e-3 --log_steps 1 --save_checkpoints_steps $every --eval_steps 250 --threads "$threads" $count \
		--precision fp32 2>>"$work/$folder.log"
}

# kill_one PID RANDOM: kills the process or one of its children; with mpirun always a child. Fails if the process has ended.
kill_one() {
	kill -0 "$1" 2>/dev/null || return 1
	set -- "$1" "$2" $(ps -o pid= --ppid "$1" 2>/dev/null)
	parent=$1
	random=$2
	shift 2
	[ "$ranks" = mpi2 ] || set -- "$parent" "$@"
	[ $# -gt 0 ] || return 0
	shift "$(awk -v r="$random" -v n=$# 'BEGIN { print int(r * 7919 % n) }')"
	kill -9 "$1" 2>/dev/null
}

same() {
	cmp "$work/straight/$1" "$work/killed/$1" || failed=1
}

# one COMMAND RANKS STEPS
one() {
	command=$1 ranks=$2 steps=$3
	rm -rf "$work/straight" "$work/killed" "$work"/*.log
	began=$(date +%s)
	(run straight) &
	pid=$!
	while [ -z "$(ls -d "$work"/straight/checkpoint-* 2>/dev/null)" ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
	start=$(($(date +%s) - began + 1))
	wait $pid || { cat "$work/straight.log"; return 1; }
	straight=$(($(date +%s) - began))
	echo "$command, ranks $ranks: $steps steps in $straight s, at most $start s to the first checkpoint"

	# Random numbers between 0 and 1, one per line, drawn once.
	awk -v seed="$seed" -v n="$kills" 'BEGIN { srand(seed); for (i = 0; i < n; i++) print rand() }' >"$work/random"
	killed=0 saving=0 starting=0 most=0 finished=0
	while read -r random <&3; do
		(run killed) &
		pid=$!
		sleep "$(awk -v r="$random" -v t="$straight" -v n="$kills" -v most="${LONGEST:-0}" \
			-v start="$start" 'BEGIN { print 0.02 + (most > 0 ? most : 1.5 * start + 1.2 * t / n) * r }')"
		if ! kill_one $pid "$random"; then
			wait $pid
			status=$?
			[ $status -eq 0 ] || { echo "ended with status $status"; tail -5 "$work/killed.log"; return 1; }
			finished=1
			break
		fi
		wait $pid 2>/dev/null
		status=$?
		# With several ranks, those that are left end by themselves, with 6. One that had finished ends normally.
		# mpirun ends with the exit code of one of them, or with its own 1 if they had not met yet.
		case $ranks:$status in *:137 | *:6 | *:0 | mpi2:1) ;; *) echo "ended with status $status"; tail -5 "$work/killed.log"; return 1 ;; esac
		killed=$((killed + 1))
		[ -n "$(ls -d "$work"/killed/.tmp-* "$work"/killed/.trash-* 2>/dev/null)" ] && saving=$((saving + 1))
		newest=$(ls "$work/killed" 2>/dev/null | sed -n 's/^checkpoint-\([0-9]*\)$/\1/p' | sort -n | tail -1)
		logged=$(tail -n 2 "$work/killed/metrics.jsonl" 2>/dev/null | sed -n 's/.*"step": *\([0-9]*\),.*/\1/p' | sort -n | tail -1)
		[ -z "$newest" ] && starting=$((starting + 1))
		lost=$((${logged:-0} - ${newest:-0}))
		[ $lost -gt $most ] && most=$lost
	done 3<"$work/random"
	(run killed) || { echo "the last start ended with status $?"; tail -5 "$work/killed.log"; return 1; }

	echo "  killed $killed times: $saving inside a save, $starting before the first checkpoint; at most $most steps lost, saving every $every"
	[ $finished -eq 0 ] || echo "  the run was over before $kills kills: raise STEPS"

	failed=0
	same checkpoint-$steps/model.safetensors
	for shard in "$work"/straight/checkpoint-$steps/optimizer*; do
		same "checkpoint-$steps/$(basename "$shard")"
	done
	same final/model.safetensors
	same best.json
	same best/model.safetensors
	[ "$command" = pretrain ] || same eval_results.json
	for name in straight killed; do
		# Leaves out what depends on the clock: times and rates, and remarks on the machine's performance.
		grep -Ev '"event"|"step_data_seconds"' "$work/$name/metrics.jsonl" |
			sed -E 's/"(seconds|eval_seconds|tokens_per_second|share_of_gemm)": ?[0-9.e+-]+,? ?//g' >"$work/$name.metrics"
	done
	cmp "$work/straight.metrics" "$work/killed.metrics" || {
		failed=1
		diff "$work/straight.metrics" "$work/killed.metrics" | head -n 6
	}
	lines=$(wc -l <"$work/killed.metrics")
	expected=$((steps + steps / 250))
	[ "$lines" -ge "$expected" ] || { echo "metrics.jsonl has $lines lines, not $expected"; failed=1; }
	grep -q '"seconds"' "$work/killed.metrics" && { echo "a time was compared"; failed=1; }
	[ -z "$(ls -d "$work"/killed/.tmp-* 2>/dev/null)" ] || { echo "a temporary folder is left"; failed=1; }
	ls /dev/shm/bertc-"$(id -u)"-* 2>/dev/null && { echo "a name of shared memory is left"; failed=1; }
	[ $failed -eq 0 ] && echo "  the same bit for bit: weights, moments, best checkpoint, $lines lines of metrics" && return 0
	echo "  the runs differ"
	return 1
}

result=0
for each in $runs; do
	case $each in *:mpi2) command -v mpirun >/dev/null || { echo "SKIPPED $each: there is no mpirun"; continue; } ;; esac
	ranks=${each#*:}
	one "${each%:*}" "$ranks" "${STEPS:-$((12000 / ${ranks#mpi}))}" || result=1
done
exit $result
