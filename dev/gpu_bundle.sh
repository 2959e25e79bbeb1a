#!/bin/sh
# Programs and libraries for a machine with a GPU and little else: what make test-gpu and bench/gpu.sh need, packed into one
# folder that travels with the sources. NVIDIA's libraries, which are loaded when a device is opened, are not included
# (cuBLASLt alone is half a gigabyte).
#
#   dev/gpu_bundle.sh FOLDER      builds with CUDA=1 and fills FOLDER with programs.tar.xz and run.sh. EMULATED=1 packs those of
#                                 the emulated device (make build/emulated/bertc), to try this script without a GPU's toolkit.
#                                 ARCHITECTURES=90 compiles the kernels for these only. OLD=FOLDER adds bertc and bench/step of
#                                 another build, as old/bertc and old/bench/step: bench/gpu_visit.py compares the two.
#                                 NCCL=libnccl.so.2 packs that one, too, for tests that need a newer one than the other machine has
#   sh FOLDER/run.sh COMMAND...   on the other machine, in the repository's root: unpacks, finds NVIDIA's libraries, and runs
#                                 COMMAND with BUILD set: sh FOLDER/run.sh sh tests/gpu/run.sh
#
# The programs find the libraries through wrappers of their own; COMMAND, and any Python that it starts, keep using theirs.
set -eu
cd "$(dirname "$0")/.."
folder=${1:?"usage: dev/gpu_bundle.sh FOLDER"}
BUILD=${BUILD:-build}
bertc=bertc step=bench/step operations=tests/gpu/test_operations
if [ -n "${EMULATED:-}" ]; then
	bertc=emulated/bertc step=emulated/bench/step operations=tests/cuda/test_operations
	make --no-print-directory BUILD="$BUILD" "$BUILD/$bertc" "$BUILD/$operations" "$BUILD/$step" "$BUILD/demo/world"
else
	make --no-print-directory CUDA=1 BUILD="$BUILD" ${ARCHITECTURES:+CUDA_ARCHITECTURES="$ARCHITECTURES"} gpu-programs
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=$work/programs
mkdir -p "$programs/tests/gpu" "$programs/bench" "$programs/demo" "$programs/old/bench" "$work/lib" "$folder"
strip -o "$programs/bertc" "$BUILD/$bertc"
strip -o "$programs/tests/gpu/test_operations" "$BUILD/$operations"
for test in few_rows nccl; do
	[ -n "${EMULATED:-}" ] || strip -o "$programs/tests/gpu/test_$test" "$BUILD/tests/gpu/test_$test"
done
strip -o "$programs/bench/step" "$BUILD/$step"
strip -o "$programs/demo/world" "$BUILD/demo/world"
[ -z "${OLD:-}" ] || for program in bertc bench/step; do strip -o "$programs/old/$program" "$OLD/$program"; done
# Libraries that every system has in its own version are not packed.
find "$programs" -type f -exec ldd {} + | awk '$3 ~ /^\// {print $3}' | sort -u |
	grep -Ev '/(libc|libm|libpthread|libdl|librt|libresolv|libgcc_s|libstdc\+\+|ld-linux[^/]*)\.so' |
	xargs -I{} cp -L {} "$work/lib/"
[ -z "${NCCL:-}" ] || cp -L "$NCCL" "$work/lib/libnccl.so.2"
# A compression window that spans several programs, which have the kernels in common.
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
	# The toolkit's libraries, or what PyTorch came with; a program that misses one says so.
	path=$BUILD/lib
	for library in LIBRARIES; do
		at=$(ldconfig -p | awk -v l=$library '$1 == l {print $NF; exit}')
		[ -n "$at" ] || at=$(find /usr/local /opt /usr/lib -name $library 2>/dev/null | head -n 1)
		if [ -n "$at" ]; then path=$path:$(dirname "$at"); else echo "$library is not on this machine" >&2; fi
	done
	(cd "$BUILD/programs" && find . -type f) | while read -r program; do
		mkdir -p "$(dirname "$BUILD/$program")"
		cat >"$BUILD/$program" <<-WRAPPER
			#!/bin/sh
			LD_LIBRARY_PATH=$path\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} exec "$BUILD/programs/$program" "\$@"
		WRAPPER
		chmod +x "$BUILD/$program"
	done
fi
export BUILD
exec "$@"
RUN
libraries="libcublasLt.so.13 libnccl.so.2"
[ -z "${EMULATED:-}" ] || libraries=
sed -i "s/LIBRARIES/$libraries/" "$folder/run.sh"
ls -l "$folder" >&2
