#!/bin/sh
# Runs test programs, each with a time limit, and adds up what cmocka reports for each.
#   BUILD=folder TEST_JOBS=N sh tests/run.sh PROGRAM...
# Two run at a time if there are two cores (TEST_JOBS: N); their output is printed in order. A program must therefore not
# count on being alone: it uses folders and ports of its own, and asserts no times that a busy machine exceeds. A program
# that crashes, hangs or runs no test counts as a failed test. The last line is "N passed, N failed, N skipped". STRICT=1: a
# skipped test counts as failed, for machines that have everything (instruction sets, HDF5, MPI).
limit=${TEST_SECONDS:-900}
jobs=${TEST_JOBS:-$(($(nproc) < 2 ? 1 : 2))} # before OMP_NUM_THREADS is set, which nproc obeys
BUILD=${BUILD:-build}
export BUILD BERTC="$BUILD/bertc"
# The tests' own threads are the only ones; sanitizers stop at the first finding.
export OMP_NUM_THREADS=1
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:allocator_may_return_null=1}"

run=
case $BUILD in
*-address | *-undefined | *-thread | *-arm64) limit=$((limit * 4)) ;; # instrumented or emulated code is several times slower
esac
case $BUILD in
*-thread) run="setarch -R" ;; # the thread sanitizer needs addresses where it expects them
esac

folder=$(mktemp -d) || exit 1
runners=
trap '[ -z "$runners" ] || kill $runners 2>/dev/null; wait; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# Runs each program that no other runner has taken: folder/NUMBER/log receives its output, folder/NUMBER/result its exit
# code and duration in seconds.
runner() {
	child=
	trap '[ -z "$child" ] || kill "$child" 2>/dev/null; exit' TERM
	number=0
	for program; do
		number=$((number + 1))
		mkdir "$folder/$number" 2>/dev/null || continue
		# A GPU of this machine would be the default device, but tests are about the CPU or bring a device of their
		# own.
		case $program in */tests/cuda/*) unset CUDA_VISIBLE_DEVICES ;; *) export CUDA_VISIBLE_DEVICES= ;; esac
		begin=$(date +%s%N)
		$run timeout -k 10 "$limit" "$program" >"$folder/$number/log" 2>&1 </dev/null &
		child=$!
		wait "$child"
		echo "$? $(awk "BEGIN {print ($(date +%s%N) - $begin) / 1e9}")" >"$folder/$number/unfinished"
		mv "$folder/$number/unfinished" "$folder/$number/result"
	done
}

while [ "$jobs" -gt 0 ]; do
	(trap - EXIT && runner "$@") &
	runners="$runners $!"
	jobs=$((jobs - 1))
done

# The sum of N over lines "[  WORD  ] N test(s)"
count() {
	sed -n "s/^\[ *$1 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$log" | awk '{n += $1} END {print n + 0}'
}

passed=0 failed=0 skipped=0 number=0
for program; do
	number=$((number + 1))
	log=$folder/$number/log
	while [ ! -e "$folder/$number/result" ]; do
		sleep 0.05
	done
	read -r status seconds <"$folder/$number/result"
	p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
	reason=
	if [ $status -eq 124 ] || [ $status -eq 137 ]; then
		reason="not done after $limit s"
	elif [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
		reason="ended with status $status"
	elif [ $((p + f + s)) -eq 0 ]; then
		reason="ran no test"
	fi
	if [ -n "$STRICT" ] && [ "$s" -ne 0 ]; then
		reason="${reason:+$reason, }$s skipped"
		f=$((f + s)) s=0
	elif [ -n "$reason" ]; then
		f=$((f + 1))
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf '%-4s %-44s %4d tests %6.1f s%s\n' "$([ "$f" -eq 0 ] && echo ok || echo FAIL)" "${program#"$BUILD"/tests/}" \
		$((p + f + s)) "$seconds" "${reason:+  ($reason)}"
	if [ "$f" -ne 0 ] || [ "$s" -ne 0 ]; then
		sed 's/^/     | /' "$log" | tail -n 60
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
