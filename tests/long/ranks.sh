#!/bin/sh
# One run on 1, 2, 4 and 8 ranks, through shared memory and through MPI, on replicas, with gradients in bf16, and resumed
# from 4 to 2 to 1 to 8 ranks; one rank with a batch of 400 compared with four of 100: the same curve up to rounding, the
# same bits where the split is the same. Prints the largest differences.
#   STEPS=150 sh tests/long/ranks.sh        from the repository's root; BERTC names the program
set -u
bertc=${BERTC:-build/bertc}
steps=${STEPS:-150}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

awk 'BEGIN {
	srand(4)
	split("cat dog man sister king bird teacher child river house", noun, " ")
	split("sees likes finds wants paints follows hears", verb, " ")
	split("old red small happy quiet green", kind, " ")
	for (document = 0; document < 500; document++) {
		for (sentence = 2 + int(rand() * 10); sentence > 0; sentence--) {
			for (more = int(rand() * 4); more > 0; more--)
				printf "the %s %s and ", kind[1 + int(rand() * 6)], noun[1 + int(rand() * 10)]
			printf "the %s %s the %s.\n", noun[1 + int(rand() * 10)], verb[1 + int(rand() * 7)], noun[1 + int(rand() * 10)]
		}
		print ""
	}
}' >"$work/text"
cat >"$work/config.json" <<'JSON'
{"model_type": "bert", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 256,
 "max_position_embeddings": 64}
JSON

batch="--train_batch_size 40"
starter=

# run FOLDER STATUS OPTIONS...
run() {
	folder=$1
	wanted=$2
	shift 2
	$starter "$bertc" pretrain --quiet --corpus "$work/text" --model "$work/config.json" --out "$work/$folder" --vocab_size 200 \
		$batch --max_seq_length 48 --micro_batch_tokens 256 --num_train_steps "$steps" --learning_rate 1e-3 \
		--precision fp32 --threads 1 --log_steps 1 --save_checkpoints_steps 0 --eval_steps 50 "$@" 2>>"$work/$folder.log"
	status=$?
	[ $status -eq "$wanted" ] || { echo "$folder ended with status $status, not $wanted"; tail -5 "$work/$folder.log"; exit 1; }
}

# The largest relative difference of all losses of two runs, which must be below a limit.
differ() {
	for name in "$1" "$2"; do
		grep -o '"step":[0-9]*,"phase":1,"\(eval_\)*loss":[0-9.e+-]*' "$work/$name/metrics.jsonl" >"$work/$name.losses"
	done
	awk -F: -v a="$1" -v b="$2" -v limit="$3" '
		NR == FNR { first[FNR] = $0; value[FNR] = $NF; lines++; next }
		{ here = $0; sub(/[^:]*$/, "", here); there = first[FNR]; sub(/[^:]*$/, "", there)
		  if (here != there) { print a " and " b " have other lines: " here " " there; bad = 1; exit }
		  d = ($NF - value[FNR]) / value[FNR]; if (d < 0) d = -d; if (d > most) most = d; seen++ }
		END { if (bad || seen != lines || seen < 10) { print a ", " b ": " seen " of " lines " lines"; exit 1 }
		      printf "%s, %s: %d losses, largest relative difference %.2g\n", a, b, seen, most; exit most > limit }' \
		"$work/$1.losses" "$work/$2.losses" || { echo "above $3"; exit 1; }
}

same() {
	cmp -s "$work/$1/final/model.safetensors" "$work/$2/final/model.safetensors" || { echo "$1 and $2 differ in bits"; exit 1; }
	echo "$1, $2: the same bits"
}

run one 0
for ranks in 2 4 8; do
	run ranks-$ranks 0 --ranks $ranks
	differ one ranks-$ranks 1e-4
	run again-$ranks 0 --ranks $ranks
	same ranks-$ranks again-$ranks
done
run replicas 0 --ranks 2 --replicas_per_gpu 2
differ one replicas 1e-4
run each 0 --ranks 4 --allreduce_post_accumulation false
differ one each 1e-4
run bf16 0 --ranks 2 --allreduce_post_accumulation_bf16
differ one bf16 3e-2
run moved 75 --ranks 4 --stop_at_step $((steps / 4))
run moved 75 --ranks 2 --stop_at_step $((steps / 2))
run moved 75 --stop_at_step $((3 * steps / 4))
run moved 0 --ranks 8
differ one moved 1e-4
run stopped 75 --ranks 4 --stop_at_step $((steps / 3))
run stopped 0 --ranks 4
same ranks-4 stopped
if command -v mpirun >/dev/null && "$bertc" version | grep -q "MPI:.*[0-9]$"; then
	for ranks in 1 2 4 8; do
		starter="mpirun --allow-run-as-root --oversubscribe --bind-to none -n $ranks env BERTC_TRANSPORT=mpi"
		run mpi-$ranks 0
		[ $ranks -eq 1 ] && same one mpi-1 || same ranks-$ranks mpi-$ranks
	done
	starter="mpirun --allow-run-as-root --oversubscribe --bind-to none -n 4 env BERTC_TRANSPORT=mpi"
	run mpi-again 0
	same mpi-4 mpi-again
	starter=
else
	echo "MPI not tried: there is no mpirun, or bertc finds no MPI"
fi
batch="--train_batch_size 400"
run whole 0 --num_train_steps 20
batch="--train_batch_size_per_gpu 100"
run parts 0 --num_train_steps 20 --ranks 4
differ whole parts 1e-5
batch="--train_batch_size 40"
run lamb-1 0 --optimizer lamb --learning_rate 2e-3
run lamb-4 0 --optimizer lamb --learning_rate 2e-3 --ranks 4
differ lamb-1 lamb-4 1e-4
