#!/bin/sh
# Which lines and branches of each parser the inputs in $FUZZ_OUT/corpus reach: runs the targets, built for that, over them.
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export FUZZ_SCRATCH="$scratch"

# The files of src/ that a target is for.
files() {
	case $1 in
	json) echo base/json ;;
	esac
}

printf '%-20s %7s %9s  %s\n' target lines branches files
for program; do
	name=$(basename "$program")
	LLVM_PROFILE_FILE="$scratch/raw" "$program" -runs=0 -max_len=1048576 "$FUZZ_OUT/corpus/$name" >"$scratch/log" 2>&1 || {
		echo "$name: failed"; tail -n 5 "$scratch/log"; continue; }
	llvm-profdata merge -o "$scratch/profile" "$scratch/raw" || exit 1
	sources=$(sed -n 's/^ *\* *Covers: //p; s/^\/\* Covers: //p' "tests/fuzz/$name.c")
	done
