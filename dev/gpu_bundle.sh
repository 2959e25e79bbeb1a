#!/bin/sh
# Programs and libraries for a machine with a GPU and little else: what make test-gpu and bench/gpu.sh need, packed into one
# folder that travels with the sources. CUDA's own libraries stay there (cuBLASLt alone is half a gigabyte).
#
#   dev/gpu_bundle.sh FOLDER      builds with CUDA=1 and fills FOLDER with programs.tar.xz and run.sh. With EMULATED=1 those of
#                                 the emulated device (make build/emulated/bertc), to try this script without a GPU's toolkit
#   sh FOLDER/run.sh COMMAND...   on the other machine, in the repository's root: unpacks, finds CUDA's libraries, and runs
#                                 COMMAND with BUILD set: sh FOLDER/run.sh sh tests/gpu/run.sh
set -eu
cd "$(dirname "$0")/.."
folder=${1:?"usage: dev/gpu_bundle.sh FOLDER"}
BUILD=${BUILD:-build}
bertc=bertc operations=tests/gpu/test_operations
if [ -n "${EMULATED:-}" ]; then
	bertc=emulated/bertc operations=tests/cuda/test_operations
	make --no-print-directory BUILD="$BUILD" "$BUILD/$bertc" "$BUILD/$operations" "$BUILD/bench/step" "$BUILD/demo/world"
else
	make --no-print-directory CUDA=1 BUILD="$BUILD" gpu-programs
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tests/gpu" "$work/bench" "$work/demo"
strip -o "$work/bertc" "$BUILD/$bertc"
strip -o "$work/tests/gpu/test_operations" "$BUILD/$operations"
[ -n "${EMULATED:-}" ] || strip -o "$work/tests/gpu/test_nccl" "$BUILD/tests/gpu/test_nccl"
strip -o "$work/bench/step" "$BUILD/bench/step"
strip -o "$work/demo/world" "$BUILD/demo/world"
mkdir -p "$work/lib" "$folder"
# What every system has in its own version stays behind; so does CUDA.
for program in "$work/bertc" "$work/tests/gpu/test_operations"; do
	ldd "$program" | awk '$3 ~ /^\// {print $3}'
done | sort -u | grep -Ev '/(libc|libm|libpthread|libdl|librt|libresolv|libgcc_s|libstdc\+\+|ld-linux[^/]*|libcuda|libcudart|libcublas[^/]*|libcudnn[^/]*|libnccl)\.so' |
	xargs -I{} cp -L {} "$work/lib/"
# A dictionary that reaches from one program to the next, which have the kernels in common.
tar -C "$work" -c . | xz -9 -T1 >"$folder/programs.tar.xz"
bytes=$(wc -c <"$folder/programs.tar.xz")
[ "$bytes" -lt $((60 << 20)) ] || { echo "dev/gpu_bundle.sh: $((bytes >> 20)) MiB are too much to travel" >&2; exit 1; }
cat >"$folder/run.sh" <<'RUN'
set -eu
here=$(cd "$(dirname "$0")" && pwd)
BUILD=${BUILD:-/tmp/bertc-gpu}
if [ ! -x "$BUILD/bertc" ]; then
	mkdir -p "$BUILD"
	python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$here/programs.tar.xz" "$BUILD"
fi
# What the program needs of CUDA, and cuDNN if it is there: the toolkit's, or what PyTorch came with.
cuda=
for library in LIBRARIES; do
	at=$(ldconfig -p | awk -v l=$library '$1 == l {print $NF; exit}')
	[ -n "$at" ] || at=$(find /usr/local /opt /usr/lib -name $library 2>/dev/null | head -n 1)
	case $at,$library in
	,libcudnn.so.9) echo "$library is not on this machine: no --attention cudnn" >&2 ;;
	,*) echo "$library is not on this machine" >&2; exit 1 ;;
	*) cuda="$cuda$(dirname "$at"):" ;;
	esac
done
export BUILD LD_LIBRARY_PATH="$cuda$BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
RUN
needed=$(ldd "$work/bertc" | awk '$1 ~ /^lib(cudart|cublas[^.]*|nccl)\.so/ {print $1}')
sed -i "s/LIBRARIES/$(echo $needed ${needed:+libcudnn.so.9})/" "$folder/run.sh"
ls -l "$folder" >&2
