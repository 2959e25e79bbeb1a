#!/bin/sh
# What only a GPU can show (make test-gpu): every operation against float64 at small sizes and those of BERT-large, training
# curves compared with the CPU's, the same bits twice, answers and fine-tuning compared with the CPU's, compute-sanitizer. Ends
# with "N passed, N failed, N left out" and takes ten minutes at most: a test that takes too long is ended and counts as failed;
# tests for which no time remains are left out, which is not a failure, and listed with the command that runs them. With OUT in
# the environment, results are added to $OUT/tests.log as they come.
#   BUILD       folder of the programs (default build): bertc, tests/gpu/test_operations, demo/world
#   STEPS       of the training curves (default 100)
#   ONLY        a selection, in this order: steps operations curves repeat answers finetuning ranks sharing sanitizer (default
#               all). ranks needs several GPUs for most of it, sharing NCCL 2.30 (dev/gpu_bundle.sh)
#   SECONDS_IN_ALL   (default 570)
#   BERTC, OPERATIONS, WORLD, PRECISIONS, MODEL, BATCH, LINES, TIMED_MODEL   programs other than BUILD's, fewer precisions than
#               all, a model other than mini, a batch other than 32, fewer texts to answer than 200, ranks timed on a model
#               other than base. To try the script itself without a GPU:
#                 BERTC=build/emulated/bertc OPERATIONS=build/tests/cuda/test_operations BERTC_TEST_CASES=norm_bwd \
#                     EMULATED_RACES=0 BERTC_FEW_ROWS=0 STEPS=2 PRECISIONS=bf16 MODEL=tiny BATCH=4 LINES=8 sh tests/gpu/run.sh
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build} STEPS=${STEPS:-100} ONLY=${ONLY:-steps operations curves repeat answers finetuning ranks sharing sanitizer}
BERTC=${BERTC:-$BUILD/bertc} OPERATIONS=${OPERATIONS:-$BUILD/tests/gpu/test_operations} WORLD=${WORLD:-$BUILD/demo/world}
PRECISIONS=${PRECISIONS:-bf16 fp8 fp32 tf32 fp16} MODEL=${MODEL:-mini} BATCH=${BATCH:-32} LINES=${LINES:-200}
TIMED_MODEL=${TIMED_MODEL:-base}
until=$(($(date +%s) + ${SECONDS_IN_ALL:-570}))
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 left=0 rest=

# limited SECONDS COMMAND...: runs COMMAND for at most SECONDS, and no longer than the time that remains; 77 if that is too
# little
limited() {
	seconds=$((until - $(date +%s))) wanted=$1
	[ $seconds -le "$wanted" ] || seconds=$wanted
	shift
	[ $seconds -gt 0 ] || return 77
	timeout -k 5 $seconds "$@"
	status=$?
	[ $status -eq 124 ] || [ $status -eq 137 ] || return $status
	[ $seconds -eq "$wanted" ] || return 77
	echo "ended after $seconds s"
	return $status
}

say() {
	echo "$@"
	if [ -n "${OUT:-}" ]; then echo "$@" >>"$OUT/tests.log"; fi
}

# result NAME COMMAND...: runs COMMAND and counts its result
result() {
	name=$1
	shift
	started=$(date +%s)
	"$@" >"$work/log" 2>&1
	case $? in
	0) passed=$((passed + 1)) word=ok ;;
	77) left=$((left + 1)) word=left ;;
	*) failed=$((failed + 1)) word=FAIL ;;
	esac
	say "$(printf '%-4s %-40s %4d s' $word "$name" $(($(date +%s) - started)))"
	case $word in
	FAIL) say "$(sed 's/^/     | /' "$work/log" | tail -n 40)" ;;
	ok) if grep -q '^=' "$work/log"; then say "$(grep '^=' "$work/log")"; fi ;;
	left) case " $rest " in *" $part "*) ;; *) rest="$rest $part" ;; esac ;;
	esac
	[ $word != FAIL ]
}

wanted() {
	part=$1
	case " $ONLY " in *" $1 "*) return 0 ;; esac
	return 1
}

# finished NAME PROCESS: waits for the process, whose output is in $work/NAME.log
finished() {
	wait "$2"
	status=$?
	cat "$work/$1.log"
	if [ -n "${OUT:-}" ]; then cp "$work/$1.log" "$OUT/operations-$1.log"; fi
	return $status
}

# train NAME DEVICE PRECISION [OPTION...]: a small run on the demo's world, with every step logged
train() {
	run=$work/$1 device=$2 precision=$3
	shift 3
	limited 60 "$BERTC" pretrain -q --corpus "$work/world/text" --out "$run" --device "$device" --precision "$precision" \
		--model "$MODEL" --vocab_size 1000 --max_seq_length 64 --train_batch_size "$BATCH" --num_train_steps "$STEPS" \
		--learning_rate 1e-3 --num_warmup_steps $((STEPS / 10)) --log_steps 1 --eval_steps 0 --save_checkpoints_steps 0 "$@"
}

losses() {
	sed -n 's/.*"step": *\([0-9]*\),.*"loss": *\([0-9.e+-]*\),.*/\1 \2/p' "$work/$1/metrics.jsonl"
}

# beside NAME OTHER LIMIT: the loss of every step of NAME must be within LIMIT of that of OTHER
beside() {
	losses "$2" >"$work/a"
	losses "$1" >"$work/b"
	[ "$(wc -l <"$work/b")" -eq "$STEPS" ] || { echo "only $(wc -l <"$work/b") of $STEPS steps"; return 1; }
	paste "$work/a" "$work/b" | awk -v limit="$3" -v other="$2" '
		{d = $4 / $2 - 1; d = d < 0 ? -d : d; if (d > most || d != d) {most = d; at = $1}; sum += d; last = $4; its = $2}
		END {printf "= loss beside %s: at most %.2g of it off (step %d), %.2g on average; last %.4f and %.4f\n",
			other, most, at, sum / NR, last, its; exit !(most <= limit)}'
}

# curve NAME PRECISION LIMIT: trains on the GPU, compared with the CPU's fp32
curve() {
	train "$1" cuda "$2" && beside "$1" cpu "$3"
}

# ranked NAME LIMIT OPTION...: the same in fp32, with several ranks or replicas
ranked() {
	name_of_run=$1 most_off=$2
	shift 2
	train "$name_of_run" cuda fp32 "$@" && beside "$name_of_run" cpu "$most_off"
}

# Ranks that share the first GPU, which NCCL can do from 2.30 on, experimentally. Each waits for the others on the device, where
# they take turns, so their steps take much longer than those of as many GPUs.
sharing() {
	(
		export CUDA_VISIBLE_DEVICES=0 NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=4
		[ "$STEPS" -le 20 ] || STEPS=20
		"$@"
	)
}

# shared NAME OTHER LIMIT OPTION...: short training, compared with that of OTHER
shared() {
	name_of_run=$1 other_run=$2 most_off=$3
	shift 3
	train "$name_of_run" cuda fp32 "$@" && beside "$name_of_run" "$other_run" "$most_off"
}

shared_again() {
	train shared-again cuda fp32 --ranks 2 && cmp "$work/shared-again/final/model.safetensors" "$work/shared-2/final/model.safetensors"
}

# In two parts, in 16 bits, in which a rank has only copies of what others update until there is a checkpoint.
shared_parts() {
	train shared-parts cuda bf16 --ranks 2 --steps_this_run $((STEPS / 2))
	[ $? -eq 75 ] && train shared-parts cuda bf16 --ranks 2 && train shared-bf16 cuda bf16 --ranks 2 &&
		cmp "$work/shared-parts/final/model.safetensors" "$work/shared-bf16/final/model.safetensors"
}

# A rank dies in the middle of a reduction: the other's device waits for it until NCCL's operations are aborted. The same
# command then gives what a run without faults does.
killed() {
	started_at=$(date +%s)
	BERTC_RANK_FAULT=1:reduction:$((STEPS / 2)):SIGKILL train killed cuda fp32 --ranks 2 2>"$work/errors"
	status=$? took=$(($(date +%s) - started_at))
	cat "$work/errors"
	[ $status -eq 6 ] && grep -q 'rank 1 on .* was killed by SIGKILL' "$work/errors" || { echo "exit status $status"; return 1; }
	echo "= exit status 6 after $took s, start included"
	train killed cuda fp32 --ranks 2 && cmp "$work/killed/final/model.safetensors" "$work/shared-2/final/model.safetensors"
}

# A rank that hangs is named once the watchdog's time is over.
hung() {
	BERTC_RANK_FAULT=0:reduction:$((STEPS / 2)):hang train hung cuda fp32 --ranks 2 --watchdog_seconds 2 2>"$work/errors"
	status=$?
	cat "$work/errors"
	[ $status -eq 6 ] && grep -q "rank 0 on .* hangs in 'forward and backward' of step $((STEPS / 2))" "$work/errors" ||
		{ echo "exit status $status"; return 1; }
}

# timed NAME OPTION...: milliseconds of a step of a larger model, the last half of the steps on average
timed() {
	MODEL=$TIMED_MODEL train "$@" && awk -F'"seconds":' '/"loss":/ {t[n++] = $2 + 0} END {
		h = int(n / 2); printf "= %.1f ms a step\n", 1000 * (t[n - 1] - t[h - 1]) / (n - h)}' "$work/$1/metrics.jsonl"
}

same() {
	train twice cuda "$1" || return
	cmp "$work/twice/final/model.safetensors" "$work/$1/final/model.safetensors" || return 1
	rm -rf "$work/twice"
}

# without_graphs PRECISION: the same bits with every kernel launched individually
without_graphs() {
	BERTC_GRAPHS=0 same "$1"
}

# with_mma PRECISION: the same bits with those kernels of attention that Hopper uses only if told to
with_mma() {
	BERTC_ATTENTION=mma same "$1"
}

# answered PRECISION LIMIT COMMAND...: the numbers that the command prints, compared with those of the CPU's fp32
answered() {
	precision=$1 most_off=$2
	shift 2
	for device in cpu cuda; do
		[ $device = cuda ] || precision_here=fp32
		[ $device = cpu ] || precision_here=$precision
		limited 60 "$BERTC" "$@" -q --device $device --precision "$precision_here" >"$work/answers" || return
		tr -c '0-9.e+-' '\n' <"$work/answers" | grep -E '^-?[0-9]' >"$work/numbers-$device"
	done
	[ "$(wc -l <"$work/numbers-cuda")" -eq "$(wc -l <"$work/numbers-cpu")" ] || { echo "other answers"; return 1; }
	paste "$work/numbers-cpu" "$work/numbers-cuda" | awk -v limit="$most_off" '
		{d = $2 - $1; sum += d * d; all += $1 * $1}
		END {off = sqrt(sum / all); printf "= %d numbers, %.2g off\n", NR, off; exit !(NR > 0 && off <= limit)}'
}

# A few texts at a time, by the kernels for layers of few rows, whether they are faster or not.
few_rows() {
	(
		export BERTC_FEW_ROWS=1
		answered bf16 2e-2 embed --model "$work/cpu/final" --micro_batch_tokens 64 "$work/lines"
	)
}

# tune NAME DEVICE PRECISION: a classifier that tells whether lines of the world have an odd number of bytes, from the model
# trained on the CPU
tune() {
	limited 60 "$BERTC" finetune -q --task classification --model "$work/cpu/final" --train "$work/lines.tsv" --dev "$work/lines.tsv" \
		--out "$work/$1" --device "$2" --precision "$3" --max_seq_length 64 --train_batch_size 16 --num_train_steps "$STEPS" \
		--log_steps 1 --eval_steps 0 --save_checkpoints_steps 0
}

tuned() {
	tune "tuned-$1" cuda "$1" && beside "tuned-$1" tuned-cpu "$2"
}

# The CPU's small model and lines of text, with which answers and fine-tuning start.
small_model() {
	[ -d "$work/world" ] || "$WORLD" write "$work/world" >/dev/null
	[ -e "$work/cpu/metrics.jsonl" ] || result "$STEPS steps on the CPU" train cpu cpu fp32
	find "$work/world/text" -type f -exec cat {} + | awk -v most="$LINES" 'NF && ++n <= most' >"$work/lines"
	awk 'BEGIN {print "text\tlabel"} {print $0 "\t" (length($0) % 2 ? "odd" : "even")}' "$work/lines" >"$work/lines.tsv"
}

# sanitizer TOOL TYPE CASES: the operations whose lines begin with CASES, in one type (all: every type). Uses cuBLASLt's first
# suggestion: measuring others takes minutes here, and its failed attempts are not our errors. Nor are the hazards that racecheck
# reports within the library's kernels (nvjet...), whose synchronization it does not know; leaving them out of its instrumentation
# makes it fail.
sanitizer() {
	type=$2
	[ "$2" != all ] || type='*'
	limited 90 env BERTC_TEST_TYPE="$type" BERTC_TEST_CASES="$3" BERTC_PRODUCT_CANDIDATES=1 compute-sanitizer --tool "$1" \
		--target-processes all --report-api-errors no --error-exitcode 9 --print-limit 100 "$OPERATIONS" >"$work/report"
	status=$?
	cat "$work/report"
	[ "$1" = racecheck ] && [ $status -eq 9 ] && grep -q 'Race reported' "$work/report" || return $status
	if grep 'Race reported' "$work/report" | grep -qv nvjet; then return 9; fi
}

# steps PRECISION GRAPHS: whole steps of a small model; if they fail, everything else would fail, too
steps() {
	limited 60 env BERTC_GRAPHS="$2" "$BERTC" bench -q --json --device cuda --precision "$1" --model tiny --max_seq_length 64 \
		--train_batch_size 4 --steps 2
}

if command -v nvidia-smi >/dev/null; then nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; fi
if wanted steps; then
	for graphs in 0 1; do
		for type in $PRECISIONS; do
			case $type in bf16 | fp8) ;; *) continue ;; esac
			result "steps in $type, BERTC_GRAPHS=$graphs" steps $type $graphs ||
				{ say "$passed passed, $failed failed: the rest is not tried"; exit 1; }
		done
	done
fi
if wanted operations; then
	# The reference takes most of the time, on one processor for each type.
	for type in f32 tf32 bf16 f16 fp8; do
		limited 240 env BERTC_TEST_MARGINS=1 BERTC_TEST_TYPE=$type "$OPERATIONS" >"$work/$type.log" 2>&1 &
		eval "operations_$type=$!"
	done
	few=$BUILD/tests/gpu/test_few_rows
	[ ! -x "$few" ] || result "layers of few rows against float64" limited 90 env BERTC_TEST_MARGINS=1 "$few"
	for type in f32 tf32 bf16 f16 fp8; do
		eval "result 'every operation in $type against float64' finished $type \$operations_$type"
	done
fi
if wanted repeat || wanted curves; then
	"$WORLD" write "$work/world" >/dev/null
	result "$STEPS steps on the CPU" train cpu cpu fp32
	for type in $PRECISIONS; do
		case $type in fp32) limit=1e-4 ;; tf32) limit=2e-2 ;; fp16) limit=3e-2 ;; fp8) limit=1e-1 ;; *) limit=5e-2 ;; esac
		result "the same in $type" curve $type $type $limit
	done
	if wanted repeat; then
		for type in $PRECISIONS; do
			result "same bits twice in $type" same $type
		done
		result "same bits without graphs in bf16" without_graphs bf16
		case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) in
		9.0*) result "same bits with mma in bf16" with_mma bf16 ;;
		esac
	fi
	if [ -n "${OUT:-}" ]; then (cd "$work" && tar czf "$OUT/curves.tar.gz" ./*/metrics.jsonl); fi
fi
if wanted answers; then
	small_model
	for type in $PRECISIONS; do
		case $type in fp32) limit=1e-4 ;; tf32 | fp16) limit=1e-2 ;; fp8) limit=5e-2 ;; *) limit=2e-2 ;; esac
		result "embed in $type" answered $type $limit embed --model "$work/cpu/final" "$work/lines"
	done
	result "embed in bf16, by layers of few rows" few_rows
	for type in $PRECISIONS; do
		case $type in bf16 | fp8) ;; *) continue ;; esac
		head -n 4 "$work/lines" >"$work/few"
		result "score in $type" answered $type 1e-2 score --model "$work/cpu/final" "$work/few"
		result "evaluate in $type" answered $type 1e-2 evaluate --json --model "$work/cpu/final" --corpus "$work/lines" --max_seq_length 64
	done
fi
if wanted finetuning; then
	small_model
	result "$STEPS steps of fine-tuning on the CPU" tune tuned-cpu cpu fp32
	for type in $PRECISIONS; do
		case $type in fp32) limit=1e-3 ;; bf16) limit=1e-1 ;; *) continue ;; esac
		result "the same in $type" tuned $type $limit
	done
	for type in $PRECISIONS; do
		case $type in bf16 | fp8) ;; *) continue ;; esac
		result "predict in $type" answered $type 2e-2 predict --model "$work/tuned-cpu/final" "$work/lines"
	done
fi
if wanted ranks; then
	if [ -x "$BUILD/tests/gpu/test_nccl" ]; then
		result "NCCL with one rank" limited 60 "$BUILD/tests/gpu/test_nccl"
	else
		echo "     tests/gpu/test_nccl is not here: left out"
	fi
	[ -d "$work/world" ] || "$WORLD" write "$work/world" >/dev/null
	[ -e "$work/cpu/metrics.jsonl" ] || result "$STEPS steps on the CPU" train cpu cpu fp32
	result "two replicas on one GPU" ranked replicas 1e-4 --replicas_per_gpu 2 --ranks 1
	if command -v nvidia-smi >/dev/null && [ "$(nvidia-smi --list-gpus | wc -l)" -gt 1 ]; then
		result "two GPUs" ranked two 1e-4 --n_gpus 2
		result "two GPUs, gradients in bf16" ranked narrow 1e-2 --n_gpus 2 --allreduce_post_accumulation_bf16
	else
		echo "     not two GPUs: two ranks are left out"
	fi
fi
if wanted sharing; then
	[ -d "$work/world" ] || "$WORLD" write "$work/world" >/dev/null
	nccl=$("$BERTC" version | sed -n 's/^ *NCCL \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
	if [ -n "$nccl" ] && [ $((${nccl% *} * 100 + ${nccl#* })) -ge 230 ]; then
		result "a few steps of one rank" sharing train alone cuda fp32 --ranks 1
		result "the same, two ranks on one GPU" sharing shared shared-2 alone 1e-4 --ranks 2
		result "the same bits again" sharing shared_again
		result "the same bits in two parts, bf16" sharing shared_parts
		result "four ranks on one GPU" sharing shared shared-4 alone 1e-4 --ranks 4
		result "one of two ranks is killed" sharing killed
		result "one of two ranks hangs" sharing hung
		for ranks in 1 2; do
			result "$TIMED_MODEL in bf16, ranks on one GPU: $ranks" sharing timed timed-$ranks cuda bf16 --ranks $ranks
		done
	else
		echo "     NCCL 2.30 or later is not here: ranks that share a GPU are left out"
	fi
fi
if wanted sanitizer; then
	if command -v compute-sanitizer >/dev/null; then
		for cases in attention norm_bwd vocab; do
			result "compute-sanitizer memcheck, $cases" sanitizer memcheck all $cases
			for type in f32 bf16; do
				result "compute-sanitizer racecheck, $cases, $type" sanitizer racecheck $type $cases
			done
		done
		for cases in embed linear gather xent adamw lamb; do
			result "compute-sanitizer memcheck, $cases" sanitizer memcheck all $cases
		done
	else
		echo "     compute-sanitizer is not here: left out"
	fi
fi
say "$passed passed, $failed failed, $left left out"
[ -z "$rest" ] || say "for want of time; the rest: ONLY='${rest# }' sh tests/gpu/run.sh"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
