#!/bin/sh
# Programs and libraries for a machine with a GPU and little else: what make test-gpu and bench/gpu.sh need, packed into one
# folder that travels with the sources. CUDA's own libraries stay there (cuBLASLt alone is half a gigabyte).
#
#   dev/gpu_bundle.sh FOLDER      builds with CUDA=1 and fills FOLDER with programs.tar.xz and run.sh
#   sh FOLDER/run.sh COMMAND...   on the other machine, in the repository's root: unpacks, finds CUDA's libraries, and runs
#                                 COMMAND with BUILD set: sh FOLDER/run.sh sh tests/gpu/run.sh
set -eu
cd "$(dirname "$0")/.."
folder=${1:?"usage: dev/gpu_bundle.sh FOLDER"}
BUILD=${BUILD:-build}
make --no-print-directory CUDA=1 BUILD="$BUILD" gpu-programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in bertc tests/gpu/test_operations bench/step demo/world; do
	mkdir -p "$work/$(dirname "$program")"
	strip -o "$work/$program" "$BUILD/$program"
done
mkdir -p "$work/lib" "$folder"
# What every system has in its own version stays behind; so does CUDA.
for program in "$work/bertc" "$work/tests/gpu/test_operations"; do
	ldd "$program" | awk '$3 ~ /^\// {print $3}'
done | sort -u | grep -Ev '/(libc|libm|libpthread|libdl|librt|libresolv|libgcc_s|libstdc\+\+|ld-linux[^/]*|libcuda|libcudart|libcublas[^/]*|libcudnn[^/]*|libnccl)\.so' |
	xargs -I{} cp -L {} "$work/lib/"
tar -C "$work" -c . | xz -6 -T0 >"$folder/programs.tar.xz"
cat >"$folder/run.sh" <<'RUN'
set -eu
here=$(cd "$(dirname "$0")" && pwd)
BUILD=${BUILD:-/tmp/bertc-gpu}
if [ ! -x "$BUILD/bertc" ]; then
	mkdir -p "$BUILD"
	python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$here/programs.tar.xz" "$BUILD"
fi
# cudart and cuBLASLt: the toolkit's, or those that PyTorch came with.
cuda=
for library in libcudart.so.13 libcublasLt.so.13; do
	at=$(ldconfig -p | awk -v l=$library '$1 == l {print $NF; exit}')
	[ -n "$at" ] || at=$(find /usr/local /opt /usr/lib -name $library 2>/dev/null | head -n 1)
	[ -n "$at" ] || { echo "$library is not on this machine" >&2; exit 1; }
	cuda="$cuda$(dirname "$at"):"
done
export BUILD LD_LIBRARY_PATH="$cuda$BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
RUN
ls -l "$folder" >&2
