#!/bin/sh
# Every script of examples/, as it stands, with a tiny model made here in the place of published ones, whose answers are not judged.
# Needs Python with NumPy (PYTHON=interpreter).
#
#   BUILD=build sh tests/long/examples.sh
set -u
cd "$(dirname "$0")/../.."
BERTC=${BERTC:-${BUILD:-build}/bertc} PYTHON=${PYTHON:-python3}
export BERTC PYTHON
"$PYTHON" -c 'import numpy' 2>/dev/null || { echo "$PYTHON has no NumPy: left out"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
# Runs an example and looks for what it must print: try NAME WORDS COMMAND...
try() {
	name=$1 words=$2
	shift 2
	"$@" >"$work/$name.log" 2>&1 && grep -q "$words" "$work/$name.log" && echo "$name: fine" && return
	tail -n 5 "$work/$name.log"
	echo "FAIL: examples/$name.sh"
	failed=1
}

"$PYTHON" examples/reports.py "$work/data"
"$BERTC" pretrain --quiet --corpus "$work/data/text.txt" --model tiny --vocab_size 120 --max_seq_length 64 --num_train_steps 10 \
	--train_batch_size 16 --device cpu --out "$work/base" || exit 1
"$BERTC" export --model "$work/base" --to tensorflow --out "$work/google" || exit 1
mkdir -p "$work/glue/CoLA"
for set in train dev; do
	awk -F '\t' 'BEGIN {for (i = 0; i < 64; i++) print "x\t" i % 2 "\t\tthe ship " (i % 2 ? "left" : "port left the") " port"}' >"$work/glue/CoLA/$set.tsv"
done
export MODEL="$work/base"
try classifier '"label":"' env OUT="$work/feedback" EPOCHS=1 sh examples/classifier.sh
try domain 'entity_f1\|f1 ' env OUT="$work/harbor" STEPS=5 EPOCHS=1 ADDRESS=127.0.0.1:18963 sh examples/domain.sh
try search 'The same ten' env OUT="$work/search" EPOCHS=1 PAGES="docs/install.md docs/library.md" sh examples/search.sh
try google 'matthews' env BERT_BASE_DIR="$work/google" GLUE_DIR="$work/glue" LENGTH=32 OUT="$work/cola" sh examples/google.sh
try gpus 'finished' env TEXT="$work/data/text.txt" RANKS=2 OUT="$work/ranks" MORE="--model tiny --vocab_size 400 --num_train_steps 3 \
	--train_batch_size 4 --num_warmup_steps 1 --max_seq_length 32 --threads 1 --device cpu" sh examples/gpus.sh
exit $failed
