#!/bin/sh
# Going on from a model of general text, on text of a field: is it better there than before, and better than as many
# steps from nothing? One vocabulary (the general text's), three runs, both held-out sets scored in each.
#
#   bench/continued.sh WORK 'general text...' 'field text...'
#
# WORK keeps everything and is gone on with when the script is run again. STEPS and MORE are the lengths of the general run
# and of the two others, OPTIONS goes to all three, RUN goes in front of each command (RUN='timeout -s INT 400' cuts the
# work into pieces: run the script again until it prints the table).
set -eu
work=$1 general=$2 field=$3
bertc=${BERTC:-build/bertc}
steps=${STEPS:-4000} more=${MORE:-1500} run=${RUN:-}
options=${OPTIONS:---model mini --train_batch_size 64 --max_seq_length 64 --threads 1}
mkdir -p "$work"

# shellcheck disable=SC2086 # lists of words on purpose
{
	test -f "$work/vocab.txt" || $run $bertc vocab --corpus $general --vocab_size 8000 --out "$work/vocab.txt"
	for name in general field; do
		eval "text=\$$name"
		test -f "$work/$name.json" ||
			$run $bertc prepare --corpus $text --vocab_file "$work/vocab.txt" --held_out_fraction 0.02 --out "$work/$name"
	done
	sets="general=$work/general.held_out field=$work/field.held_out"

	train() { # name, data, steps, further options
		name=$1 data=$2 count=$3
		shift 3
		test -d "$work/$name/final" || $run $bertc pretrain --data "$work/$data" --eval_data $sets --vocab_file "$work/vocab.txt" \
			--out "$work/$name" --num_train_steps $count --eval_steps $((count / 10)) --eval_instances 1000 \
			--best_by field $options "$@"
	}
	train before general $steps --learning_rate 1e-3
	train continued field $more --init_checkpoint "$work/before/final"
	train scratch field $more --learning_rate 1e-3
}

for name in before continued scratch; do
	echo "== $name: step, held-out masked-word loss of the general text and of the field"
	sed -n 's/^{"step":\([0-9]*\),"eval_[^}]*/&/p' "$work/$name/metrics.jsonl" | grep -o '"step":[0-9]*\|"[a-z_]*mlm_loss":[0-9.]*' |
		paste -sd' ' | sed 's/"step"/\n"step"/g' | grep eval | tr -d '"' || true
done
