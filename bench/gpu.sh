#!/bin/sh
# Measures what docs/results.md says about speed on a GPU, in commands of at most ten minutes each (--subset first, second,
# third); prints Markdown and, if OUT is set, also writes it to that folder.
#
#   bench/gpu.sh [--no_build] [--python PATH] [options of bench/gpu.py, whose head says what is measured]
#
# BUILD is the folder of the programs (default build), BERTC the program to measure: build/emulated/bertc tries the script
# without a GPU:
#   BERTC=build/emulated/bertc EMULATED_RACES=0 bench/gpu.sh --no_build --cases tiny-16 --tokens 32 --rounds 1 \
#       --precision bf16 --peer tiny-16 --peer_device cpu --peer_compiled 0 --inference 16x1 --graphs 16x1
set -eu
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
export BUILD
python=python3 build=1
while [ $# -gt 0 ]; do
	case "$1" in
	--no_build) build= ;;
	--python) python=$2; shift ;;
	*) break ;;
	esac
	shift
done
[ -z "$build" ] || make --no-print-directory CUDA=1 "$BUILD/bertc" >&2
command -v "$python" >/dev/null || { echo "bench/gpu.sh: there is no '$python' here" >&2; exit 1; }
exec "$python" bench/gpu.py "$@"
