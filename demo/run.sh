#!/bin/sh
# The main job, from text to a model that answers: on a small invented world, or on your own text (CORPUS=path).
#   BUILD    where the programs are (default build)
#   OUT      run folder (default runs/demo)
set -e
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
OUT=${OUT:-runs/demo}
say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }
[ -t 2 ] || say() { printf '\n%s\n' "$*" >&2; }

if [ -n "$CORPUS" ]; then
	OUT=${OUT%/}-own
	say "Training on $CORPUS; the run folder is $OUT (stop with Ctrl-C, run again to resume)"
	"$BUILD/bertc" pretrain --corpus "$CORPUS" --recipe fast --out "$OUT"
	say "The model is a Hugging Face folder: $OUT/final. Ask it something:"
	echo "  $BUILD/bertc fill --model $OUT/final \"Write a sentence with a [MASK] in it.\"" >&2
	exit 0
fi

rm -rf "$OUT/world" "$OUT/run" # the demo's own; OUT may be anybody's folder
mkdir -p "$OUT/world"
say "1. A world: an island of 40 people and 8 towns, told in 6,000 short documents"
"$BUILD/demo/world" write "$OUT/world"
head -n 8 "$OUT/world/text/island-1.txt"

say "2. Text to a trained BERT: vocabulary, tokens, masked words and next sentences"
"$BUILD/bertc" pretrain --corpus "$OUT/world/text" --out "$OUT/run" --recipe original \
	--model tiny --vocab_size 1000 --max_seq_length 64 --train_batch_size 32 --num_train_steps 6000 \
	--learning_rate 2e-3 --hidden_dropout_prob 0 --attention_probs_dropout_prob 0 --eval_steps 1000

say "3. How good is it? Held-out documents, always the same masks"
"$BUILD/bertc" evaluate --model "$OUT/run" --data "$OUT/run/data/train.held_out" --max_seq_length 64

say "4. A hundred facts whose sentences are nowhere in the corpus"
"$BUILD/bertc" fill --model "$OUT/run" --json - <"$OUT/world/questions.txt" >"$OUT/world/answers.json"
"$BUILD/demo/world" score <"$OUT/world/answers.json"

say "Done. The model is $OUT/run/final, a folder that transformers loads as it is. Try:"
echo "  $BUILD/bertc fill --model $OUT/run \"Mira lives in [MASK].\"" >&2
echo "  make demo CORPUS=path/to/your/text" >&2
