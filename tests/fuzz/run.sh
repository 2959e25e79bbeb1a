#!/bin/sh
# Runs fuzz targets one after the other: FUZZ_SECONDS each, or FUZZ_RUNS executions each. What a target has learned
# stays in $BUILD/fuzz/corpus/NAME for the next time; an input that breaks it is put into $BUILD/fuzz/found, and
# `PROGRAM FILE` breaks it again.
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "$BUILD/fuzz/found" "$BUILD/fuzz/log" || exit 1
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:handle_abort=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

broken=0
for program; do
	name=$(basename "$program")
	corpus=$BUILD/fuzz/corpus/$name log=$BUILD/fuzz/log/$name
	mkdir -p "$corpus"
	set -- -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 -artifact_prefix="$BUILD/fuzz/found/$name-"
	[ -f "tests/fuzz/$name.dict" ] && set -- "$@" -dict="tests/fuzz/$name.dict"
	if [ -n "$FUZZ_RUNS" ]; then set -- "$@" -runs="$FUZZ_RUNS"; else set -- "$@" -max_total_time="${FUZZ_SECONDS:-60}"; fi
	begin=$(date +%s)
	"$program" "$@" "$corpus" >"$log" 2>&1
	status=$?
	seconds=$(($(date +%s) - begin))
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
	cover=$(sed -n 's/^#.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	printf '%-4s %-20s %10s executions %6d s %6s edges\n' "$([ $status -eq 0 ] && echo ok || echo FAIL)" "$name" \
		"${runs:-?}" "$seconds" "${cover:-?}"
	if [ $status -ne 0 ]; then
		broken=$((broken + 1))
		grep -E 'internal error|ERROR|SUMMARY|runtime error|Test unit written' "$log" | head -n 8 | sed 's/^/     | /'
	fi
done
[ $broken -eq 0 ]
