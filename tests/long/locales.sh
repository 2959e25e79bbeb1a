#!/bin/sh
# The same commands give the same bytes in locales with a decimal comma (de_DE) and with other lower-case letters (tr_TR).
#   sh tests/long/locales.sh        BERTC names the program; exit code 77 if the locales cannot be made
set -u
bertc=${BERTC:-build/bertc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/locales"
for locale in de_DE tr_TR; do
	localedef -i $locale -f UTF-8 "$work/locales/$locale.UTF-8" 2>/dev/null
	[ -d "$work/locales/$locale.UTF-8" ] || { echo "no localedef, or no definition of $locale"; exit 77; }
done
export LOCPATH="$work/locales"
[ "$(LC_ALL=de_DE.UTF-8 /usr/bin/printf %.1f 0,5 2>/dev/null)" = 0,5 ] || { echo "the locales have no effect"; exit 77; }

awk 'BEGIN {
	srand(3)
	for (document = 0; document < 60; document++) {
		for (sentence = 0; sentence < 6; sentence++)
			printf "THE IMPORTANT cat sees İstanbul and I like it %d.\n", rand() * 100
		print ""
	}
}' >"$work/text"
cat >"$work/config.json" <<'JSON'
{"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
 "max_position_embeddings": 32, "hidden_dropout_prob": 0.1}
JSON

# commands FOLDER
commands() {
	mkdir "$1" && cd "$1" || return 1
	"$bertc" vocab --quiet --corpus ../text --vocab_size 120 --out vocab.txt &&
		"$bertc" tokenize --vocab_file vocab.txt --format tokens ../text >tokens &&
		"$bertc" prepare --quiet --corpus ../text --vocab_file vocab.txt --out x &&
		"$bertc" pretrain --quiet --corpus ../text --model ../config.json --vocab_size 120 --out run --num_train_steps 6 \
			--train_batch_size 4 --max_seq_length 32 --learning_rate 1.5e-3 --threads 1 --precision fp32 \
			--save_checkpoints_steps 3 --stop_at_step 3
	[ $? -eq 75 ] || return 1
	"$bertc" pretrain --quiet --out run --threads 1 &&
		"$bertc" evaluate --quiet --threads 1 --max_seq_length 32 --model run/final --corpus ../text --json >scores &&
		"$bertc" fill --threads 1 --model run/final 'the cat [MASK] it' --json >filled || return 1
	cd - >/dev/null || return 1
}

case $bertc in /*) ;; *) bertc=$PWD/$bertc ;; esac
cd "$work" || exit 1
failed=0
for locale in C de_DE.UTF-8 tr_TR.UTF-8; do
	(export LC_ALL=$locale; commands $locale) >"$locale.log" 2>&1 || { echo "$locale:"; cat "$locale.log"; exit 1; }
	for file in vocab.txt tokens x.bin x.idx scores filled run/final/model.safetensors run/final/config.json; do
		cmp "C/$file" "$locale/$file" || failed=1
	done
done
[ $failed -eq 0 ] && echo "the same bytes under C, de_DE and tr_TR"
exit $failed
