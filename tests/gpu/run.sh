#!/bin/sh
# What only a GPU can show (make test-gpu): every operation against float64 at small and at BERT-large's sizes, training
# curves beside the CPU's, the same bits twice, compute-sanitizer. Ends with "N passed, N failed"; well under ten minutes.
#   BUILD    where the programs are (default build): bertc, tests/gpu/test_operations, demo/world
#   STEPS    of the training curves (default 100)
#   ONLY     some of: operations curves repeat sanitizer (default all)
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build} STEPS=${STEPS:-100} ONLY=${ONLY:-operations curves repeat sanitizer}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# result NAME COMMAND...: runs it and counts
result() {
	name=$1
	shift
	started=$(date +%s)
	if "$@" >"$work/log" 2>&1; then
		passed=$((passed + 1)) word=ok
	else
		failed=$((failed + 1)) word=FAIL
	fi
	printf '%-4s %-40s %4d s\n' $word "$name" $(($(date +%s) - started))
	if [ $word = FAIL ]; then sed 's/^/     | /' "$work/log" | tail -n 40; else grep '^=' "$work/log" || true; fi
}

wanted() {
	case " $ONLY " in *" $1 "*) return 0 ;; esac
	return 1
}

# train NAME DEVICE PRECISION [OPTION...]: a small run on the demo's world, every step logged
train() {
	run=$work/$1 device=$2 precision=$3
	shift 3
	"$BUILD/bertc" pretrain -q --corpus "$work/world/text" --out "$run" --device "$device" --precision "$precision" \
		--model mini --vocab_size 1000 --max_seq_length 64 --train_batch_size 32 --num_train_steps "$STEPS" \
		--learning_rate 1e-3 --num_warmup_steps 10 --log_steps 1 --eval_steps 0 --save_checkpoints_steps 0 "$@"
}

losses() {
	sed -n 's/.*"step": *\([0-9]*\),.*"loss": *\([0-9.e+-]*\),.*/\1 \2/p' "$work/$1/metrics.jsonl"
}

# curve NAME PRECISION LIMIT: trains on the GPU; no step's loss may be further from the CPU's fp32 than LIMIT
curve() {
	train "$1" cuda "$2" || return 1
	losses cpu >"$work/a"
	losses "$1" >"$work/b"
	[ "$(wc -l <"$work/b")" -eq "$STEPS" ] || { echo "only $(wc -l <"$work/b") of $STEPS steps"; return 1; }
	paste "$work/a" "$work/b" | awk -v limit="$3" '
		{d = $4 / $2 - 1; d = d < 0 ? -d : d; if (d > most || d != d) {most = d; at = $1}; sum += d; last = $4; cpu = $2}
		END {printf "= loss beside the fp32 CPU: at most %.2g of it off (step %d), %.2g on average; last %.4f and %.4f\n",
			most, at, sum / NR, last, cpu; exit !(most <= limit)}'
}

same() {
	train twice cuda "$1" || return 1
	cmp "$work/twice/final/model.safetensors" "$work/$1/final/model.safetensors" || return 1
	rm -rf "$work/twice"
}

# sanitizer TOOL CASES: the operations whose lines begin with CASES
sanitizer() {
	BERTC_TEST_CASES=$2 compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 5 "$BUILD/tests/gpu/test_operations"
}

if command -v nvidia-smi >/dev/null; then nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; fi
if wanted operations; then
	result "every operation against float64" env BERTC_TEST_MARGINS=1 "$BUILD/tests/gpu/test_operations"
	if [ -n "${OUT:-}" ]; then cp "$work/log" "$OUT/operations.log"; fi
fi
if wanted curves || wanted repeat; then
	"$BUILD/demo/world" write "$work/world" >/dev/null
	result "$STEPS steps on the CPU" train cpu cpu fp32
	result "the same in fp32" curve fp32 fp32 1e-4
	result "the same in tf32" curve tf32 tf32 2e-2
	result "the same in bf16" curve bf16 bf16 5e-2
	result "the same in fp16" curve fp16 fp16 3e-2
	result "the same in fp8" curve fp8 fp8 1e-1
	if wanted repeat; then
		for type in fp32 tf32 bf16 fp16 fp8; do
			result "same bits twice in $type" same $type
		done
	fi
	if [ -n "${OUT:-}" ]; then (cd "$work" && tar czf "$OUT/curves.tar.gz" ./*/metrics.jsonl); fi
fi
if wanted sanitizer; then
	if command -v compute-sanitizer >/dev/null; then
		for cases in embed linear norm_bwd attention gather vocab xent adamw lamb; do
			result "compute-sanitizer memcheck, $cases" sanitizer memcheck $cases
		done
		for cases in norm_bwd attention vocab; do
			result "compute-sanitizer racecheck, $cases" sanitizer racecheck $cases
		done
	else
		echo "     compute-sanitizer is not here: left out"
	fi
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
