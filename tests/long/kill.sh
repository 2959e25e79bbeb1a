#!/bin/sh
# One run killed by kill -9 at random instants and started again each time, saves and evaluations included: weights,
# moments, the best checkpoint and metrics.jsonl (times left out) must be those of a run that nobody touched, bit for bit.
#   KILLS=200 SEED=1 sh tests/long/kill.sh        from the repository's root; BERTC names the program
set -u
bertc=${BERTC:-build/bertc}
kills=${KILLS:-200}
seed=${SEED:-1}
steps=${STEPS:-12000}
threads=${THREADS:-2}
every=25
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

awk -v seed=3 'BEGIN {
	srand(seed)
	split("cat dog man sister king bird teacher child river house", noun, " ")
	split("sees likes finds wants paints follows hears", verb, " ")
	split("old red small happy quiet green", kind, " ")
	for (document = 0; document < 400; document++) {
		for (sentence = 0; sentence < 8; sentence++)
			printf "the %s %s %s the %s %s.\n", kind[1 + int(rand() * 6)], noun[1 + int(rand() * 10)],
				verb[1 + int(rand() * 7)], kind[1 + int(rand() * 6)], noun[1 + int(rand() * 10)]
		print ""
	}
}' >"$work/text"
cat >"$work/config.json" <<'JSON'
{"model_type": "bert", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256,
 "max_position_embeddings": 128}
JSON

# run FOLDER: in the place of this shell, so that a signal reaches the program itself
run() {
	exec "$bertc" pretrain --quiet --corpus "$work/text" --model "$work/config.json" --out "$work/$1" --vocab_size 300 \
		--train_batch_size 4 --max_seq_length 32 --num_train_steps "$steps" --learning_rate 1e-3 --log_steps 1 \
		--save_checkpoints_steps $every --eval_steps 250 --eval_instances 32 --threads "$threads" 2>>"$work/$1.log"
}

began=$(date +%s)
(run straight) || { cat "$work/straight.log"; exit 1; }
straight=$(($(date +%s) - began))
echo "straight: $steps steps in $straight s"

# Random numbers between 0 and 1, one a line, drawn once.
awk -v seed="$seed" -v n="$kills" 'BEGIN { srand(seed); for (i = 0; i < n; i++) print rand() }' >"$work/random"
killed=0 saving=0 starting=0 most=0 finished=0
while read -r random <&3; do
	(run killed) &
	pid=$!
	sleep "$(awk -v r="$random" -v t="$straight" -v n="$kills" 'BEGIN { print 0.02 + (0.6 + 1.2 * t / n) * r }')"
	if ! kill -9 $pid 2>/dev/null; then
		wait $pid
		status=$?
		[ $status -eq 0 ] || { echo "ended with status $status"; tail -5 "$work/killed.log"; exit 1; }
		finished=1
		break
	fi
	wait $pid 2>/dev/null
	killed=$((killed + 1))
	[ -n "$(ls -d "$work"/killed/.tmp-* "$work"/killed/.trash-* 2>/dev/null)" ] && saving=$((saving + 1))
	newest=$(ls "$work/killed" 2>/dev/null | sed -n 's/^checkpoint-\([0-9]*\)$/\1/p' | sort -n | tail -1)
	logged=$(tail -n 2 "$work/killed/metrics.jsonl" 2>/dev/null | sed -n 's/.*"step": *\([0-9]*\),.*/\1/p' | sort -n | tail -1)
	[ -z "$newest" ] && starting=$((starting + 1))
	lost=$((${logged:-0} - ${newest:-0}))
	[ $lost -gt $most ] && most=$lost
done 3<"$work/random"
(run killed) || { echo "the last start ended with status $?"; tail -5 "$work/killed.log"; exit 1; }

echo "killed $killed times: $saving inside a save, $starting before the first checkpoint; at most $most steps lost, saving every $every"
[ $finished -eq 0 ] || echo "the run was over before $kills kills: raise STEPS"

failed=0
same() {
	cmp "$work/straight/$1" "$work/killed/$1" || failed=1
}
same checkpoint-$steps/model.safetensors
same checkpoint-$steps/optimizer.safetensors
same final/model.safetensors
same best.json
same best/model.safetensors
for run in straight killed; do
	# What depends on the clock is left out: times and rates, and remarks on how the machine is doing.
	grep -v '"event"' "$work/$run/metrics.jsonl" |
		sed -E 's/"(seconds|eval_seconds|tokens_per_second|share_of_gemm)": ?[0-9.e+-]+,? ?//g' >"$work/$run.metrics"
done
cmp "$work/straight.metrics" "$work/killed.metrics" || {
	failed=1
	diff "$work/straight.metrics" "$work/killed.metrics" | head -n 6
}
lines=$(wc -l <"$work/killed.metrics")
expected=$((steps + steps / 250))
[ "$lines" -ge "$expected" ] || { echo "metrics.jsonl has $lines lines, not $expected"; failed=1; }
grep -q '"seconds"' "$work/killed.metrics" && { echo "a time was compared"; failed=1; }
[ $failed -eq 0 ] && echo "the same bit for bit: weights, moments, best checkpoint, $lines lines of metrics" && exit 0
echo "the runs differ"
exit 1
