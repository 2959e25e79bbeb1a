#!/bin/sh
# Measures everything that docs/results.md says about speed on the CPU, in one command; prints tables in Markdown.
#
#   bench/cpu.sh [--only CASES] [--precision bf16,fp32] [--rounds N] [--modes eager,compiled] [--heads masked,all]
#                [--corpus FILE]... [--python PATH] [--no_peer] [--no_split]
#
# CASES, separated by commas: base-128 base-512 small-128 4x256-128 (sequences of one length, the same padded work for both)
# and base-natural-128 base-natural-512 (real text; these need --corpus). For each case, first the time of the step by
# operation (bertc bench, compared with oneDNN's own products), then bertc and PyTorch + transformers in alternation
# (bench/peer.py). torch.compile takes minutes the first time; later runs find the result in PyTorch's cache.
set -eu
cd "$(dirname "$0")/.."

only=base-128,base-512,small-128,4x256-128 precision=bf16,fp32 rounds=5 modes=eager,compiled heads=masked,all
corpus= python=python3 peer=1 split=1
while [ $# -gt 0 ]; do
	case "$1" in
	--no_peer) peer= ;;
	--no_split) split= ;;
	--corpus)
		corpus="$corpus $2"
		shift ;;
	--only | --precision | --rounds | --modes | --heads | --python)
		eval "${1#--}=\$2"
		shift ;;
	*)
		echo "bench/cpu.sh: unknown option '$1'; the head of the file lists all" >&2
		exit 2 ;;
	esac
	shift
done
make --no-print-directory build/bertc build/bench/step build/dev/dump_batches >&2

# Batches of real text: the first steps of a run, as training reads them.
case "$only" in *natural*)
	if [ -z "$corpus" ]; then
		echo "bench/cpu.sh: cases with natural lengths need --corpus FILE" >&2
		exit 2
	fi
	mkdir -p build/bench/text
	# shellcheck disable=SC2086  # a list of files
	if [ "$(cat build/bench/text/corpus 2>/dev/null)" != "$corpus" ]; then
		build/bertc vocab -q --corpus $corpus --vocab_size 30522 --overwrite --out build/bench/text/vocab.txt
		build/bertc prepare -q --corpus $corpus --vocab_file build/bench/text/vocab.txt --out build/bench/text/text
		build/dev/dump_batches build/bench/text/text build/bench/text/vocab.txt 1 128 32 1 4 build/bench/text/natural-128.safetensors
		build/dev/dump_batches build/bench/text/text build/bench/text/vocab.txt 1 512 8 1 4 build/bench/text/natural-512.safetensors
		printf %s "$corpus" >build/bench/text/corpus
	fi ;;
esac

echo "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2), $(nproc) cores, $(date -u +%Y-%m-%d\ %H:%M) UTC; $(build/bertc version | sed -n 's/^matrix products: //p'); load $(cut -d' ' -f1 /proc/loadavg)"
for one in $(echo "$only" | tr , ' '); do
	length=${one##*-}
	case "$one" in
	base-128) batch=32 ;;
	base-512) batch=8 ;;
	*) batch=$((8192 / length)) ;;
	esac
	model=${one%%-*}
	[ "$model" = 4x256 ] && model=mini
	case "$one" in *natural*) ;; *)
		for type in $(echo "$precision" | tr , ' '); do
			[ "$split" ] || continue
			printf '\n```\n%s %s\n' "$one" "$type"
			OMP_WAIT_POLICY=passive build/bertc bench -q --model "$model" --max_seq_length "$length" --train_batch_size "$batch" \
				--precision "$type" --steps "$rounds" --mode training --library --clock cpu
			printf '```\n'
		done ;;
	esac
	[ -z "$peer" ] || "$python" bench/peer.py --only "$one" --precision "$precision" --rounds "$rounds" --modes "$modes" \
		--heads "$heads" --batches build/bench/text
done
