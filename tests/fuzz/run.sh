#!/bin/sh
# Runs fuzz targets one after another: FUZZ_SECONDS each, or FUZZ_RUNS executions each. The inputs that a target has found
# interesting stay in $FUZZ_OUT/corpus/NAME for the next time; an input that crashes it is put into $FUZZ_OUT/found, and
# `PROGRAM FILE` reproduces the crash.
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "$FUZZ_OUT/found" "$FUZZ_OUT/log" || exit 1
# For speed, the quarantine of freed blocks is smaller than the default of 256 MB and keeps no stack traces; large blocks,
# such as the gigabytes of window that a compressed stream may request, are refused.
export ASAN_OPTIONS=detect_leaks=1:handle_abort=1:quarantine_size_mb=1:malloc_context_size=0:\
allocator_may_return_null=1:max_allocation_size_mb=64
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
FUZZ_SCRATCH=$(mktemp -d /dev/shm/bertc-fuzz-XXXXXX) || exit 1
export FUZZ_SCRATCH
trap 'rm -rf "$FUZZ_SCRATCH"' EXIT

# The longest input: a little more than the shortest one that contains everything in the format.
longest() {
	case $1 in
	safetensors | tf_bundle | tfrecord) echo 768 ;;
	torch_file | static_instances | unpack) echo 1024 ;;
	json | sentences | tokenizer | tokenizer_plain | vocab | checksum) echo 200 ;;
	*) echo 400 ;;
	esac
}

# Words that inputs are composed of.
dictionary() {
	case $1 in
	json | json_records | tag_json | tokenizer_json | metrics | checkpoint | shard_json | safetensors | options_config | squad_file | serve_request | calibration | hub) echo json ;;
	wiki_markup | wiki_xml | wikiextractor) echo wiki ;;
	corpus) echo text ;;
	warc | fetch) echo http ;;
	tokenizer | tokenizer_plain | sentences | pairs) echo unicode ;;
	esac
}

broken=0
for program; do
	name=$(basename "$program")
	corpus=$FUZZ_OUT/corpus/$name log=$FUZZ_OUT/log/$name
	mkdir -p "$corpus"
	set -- -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 -reload=0 -close_fd_mask=2 \
		-max_len="$(longest "$name")" -artifact_prefix="$FUZZ_OUT/found/$name-" $FUZZ_FLAGS
	words=$(dictionary "$name")
	[ -n "$words" ] && set -- "$@" -dict="tests/fuzz/$words.dict"
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
