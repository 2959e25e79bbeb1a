#!/bin/sh
# All that docs/results.md says of speed on a GPU, in one command; tables on standard output.
#
#   bench/gpu.sh [--only CASES] [--precision LIST] [--rounds N] [--peer CASES] [--inference CASES] [--python PATH] [--no_build]
#
# CASES, separated by commas: MODEL-LENGTH (base-128 base-512 large-128 large-512) and MODEL-mixed (sequences of an eighth of
# 512 tokens to 512, mean 288, a little above MLPerf's). For each and each precision the split of a step by operation
# (bertc bench); then, for the cases of --peer (default large-128,large-512; each costs PyTorch a minute of compiling),
# bertc and PyTorch by turns (bench/gpu_peer.py). BUILD says where the programs are.
set -eu
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}

only=base-128,base-512,large-128,large-512,large-mixed precision=bf16 rounds=9 peer=large-128,large-512
python=python3 build=1 inference=''
while [ $# -gt 0 ]; do
	case "$1" in
	--no_build) build= ;;
	--only | --precision | --rounds | --peer | --inference | --python)
		eval "${1#--}=\$2"
		shift ;;
	*)
		echo "bench/gpu.sh: unknown option '$1'; the head of the file lists all" >&2
		exit 2 ;;
	esac
	shift
done
[ -z "$build" ] || make --no-print-directory CUDA=1 "$BUILD/bertc" >&2

nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.limit --format=csv,noheader || true
for one in $(echo "$only" | tr , ' '); do
	model=${one%%-*} length=${one##*-} mixed=
	[ "$length" = mixed ] && length=512 mixed=--mixed_lengths
	# Whole waves of 132 processors with tiles of 128 x 256; mixed ones hold a little over half of their tokens.
	[ "$model" = large ] && tokens=33792 || tokens=45056
	[ -z "$mixed" ] || tokens=$((tokens * 2))
	for type in $(echo "$precision" | tr , ' '); do
		printf '\n```\n%s %s\n' "$one" "$type"
		"$BUILD/bertc" bench -q --device cuda --model "$model" --max_seq_length "$length" --train_batch_size $((tokens / length)) \
			$mixed --precision "$type" --steps "$rounds" --mode training
		printf '```\n'
	done
done
if [ -n "$peer" ] || [ -n "$inference" ]; then
	"$python" bench/gpu_peer.py --only "$peer" --inference "$inference" --precision "${precision%%,*}" --rounds "$rounds" --build "$BUILD"
fi
