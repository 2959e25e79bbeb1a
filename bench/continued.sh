#!/bin/sh
# Continues training a model of general text on text of a special field: is the result better there than before, and better
# than as many steps from scratch? One vocabulary (that of the general text), three runs, each scored on both held-out sets.
#
#   bench/continued.sh WORK 'general text...' 'field text...'
#
# WORK keeps everything, and the script resumes there when it is run again. STEPS and MORE are the lengths of the general
# run and of the two others, OPTIONS is passed to all three (with --max_time the work is done in parts: run the script again
# until it prints the table), RUN is put in front of each command.
set -eu
work=$1 general=$2 field=$3
bertc=${BERTC:-build/bertc}
steps=${STEPS:-3000} more=${MORE:-1500} run=${RUN:-}
options=${OPTIONS:---model tiny --train_batch_size 32 --max_seq_length 64}
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

echo "held-out masked-word loss"
printf '%-10s %6s %9s %9s\n' run step general field
for name in before continued scratch; do
	sed -n 's/^{"step":\([0-9]*\),.*"eval_\([a-z]*\)_mlm_loss":\([0-9.]*\).*/\1 \2 \3/p' "$work/$name/metrics.jsonl" |
		awk -v run=$name '{ loss[$2] = $3 } $2 == "field" { printf "%-10s %6d %9.4f %9.4f\n", run, $1, loss["general"], loss["field"] }'
done
