/* Products by cuBLASLt, which is column-major only: our y (rows, columns) is its D (columns, rows), our b is its A and our a
 * is its B. */
#include "backend/cuda/gemm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cuda/cublaslt.h"
#include "backend/cuda/gemm_cache.h"
#include "base/log.h"

/* The number of proposals requested from the library: more if the result has few tiles, because there are then many ways to
 * split the sums. Each proposal is run once, and the fastest are run more often to tell them apart. */
#define CANDIDATES 32
#define CANDIDATES_OF_FEW_TILES 64
#define FINALISTS 6
#define MEASURED_RUNS 5
/* A large product draws all the power that the GPU is allowed, which lowers the clock within some tens of milliseconds: what is
 * fastest at first need not be fastest in the course of a run. So the finalists of a large product take turns; the first turns
 * only load the GPU. */
#define LARGE_FLOPS 5e10
#define TURN_MILLISECONDS 20
#define MOST_TURN_MILLISECONDS 1000
#define TURNS 3
#define TILE_ROWS 128
#define TILE_COLUMNS 256
/* All pointers and row lengths must be multiples of ALIGNMENT, or the library is not used; it does not benefit from more than
 * BEST_ALIGNMENT. */
#define ALIGNMENT 16
#define BEST_ALIGNMENT 256

/* Identifies what an algorithm is chosen for. Row counts that depend on tokens vary between micro-batches, so they are rounded
 * up to one of eight sizes per octave; strides and widths are the model's. */
struct plan_key {
	int64_t rows, columns, depth, a_stride, b_stride, y_stride;
	int32_t inputs, output, a_is_gradient;
	int32_t a_transposed, b_transposed, bias, add;
	int32_t epilogue, pre;
	int32_t alignments[4]; /* of a, b, add, y */
};

struct plan {
	struct plan_key key;
	bool usable; /* the library supports it */
	cublasLtMatmulAlgo_t algorithm;
	struct plan *next; /* in the same bucket */
};

/* The description of one product for cuBLASLt: its A, B and D (C has the layout of D). */
struct description {
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t a, b, d;
};

#define BUCKETS 256

struct gemm {
	struct cuda_state *state;
	struct cublaslt library;
	cublasLtHandle_t handle;
	struct gemm_cache cache;
	struct buffer recorded; /* lines from the checkpoint that the run resumed from */
	struct buffer chosen;   /* lines of the plans so far */
	bool warned;            /* already warned that one of `recorded` cannot be used */
	bool refused;           /* already warned that the library has no algorithm for a product */
	int most_candidates;    /* BERTC_PRODUCT_CANDIDATES; 1: take the library's first proposal, unmeasured */
	int turn;       /* BERTC_PRODUCT_MS: milliseconds of a finalist's turn, for products of every size; -1: not given */
	int fast_dgrad; /* BERTC_FAST_DGRAD=0: no fast accumulation in FP8's gradients of x */
	char version[48], place[160];
	struct plan *buckets[BUCKETS];
	int64_t plans, measured;
	cudaEvent_t begin, end;
};

/* An integer from the environment. */
static enum status setting(int *out, const char *name, int fallback, int least, int most)
{
	const char *text = getenv(name);
	char *end;
	*out = text ? (int)strtol(text, &end, 10) : fallback;
	if (text && (end == text || *end || *out < least || *out > most))
		return error_set(ERR_USAGE, "%s is '%s': %d to %d are possible", name, text, least, most);
	return OK;
}

enum status gemm_open(struct gemm **out, struct cuda_state *state)
{
	struct gemm *gemm;
	TRY(memory_new(out, 1, sizeof **out, "products"));
	gemm = *out;
	gemm->state = state;
	TRY(cublaslt_load(&gemm->library));
	if (gemm->library.create(&gemm->handle) != CUBLAS_STATUS_SUCCESS)
		return error_set(ERR_RESOURCE, "cuBLASLt does not start on '%s'", state->name);
	cudaError_t error = cudaEventCreateWithFlags(&gemm->begin, cudaEventDefault);
	if (error == cudaSuccess)
		error = cudaEventCreateWithFlags(&gemm->end, cudaEventDefault);
	if (error != cudaSuccess)
		return cuda_error(error, "cudaEventCreate");
	TRY(setting(&gemm->most_candidates, "BERTC_PRODUCT_CANDIDATES", CANDIDATES_OF_FEW_TILES, 1, CANDIDATES_OF_FEW_TILES));
	TRY(setting(&gemm->turn, "BERTC_PRODUCT_MS", -1, 0, MOST_TURN_MILLISECONDS));
	TRY(setting(&gemm->fast_dgrad, "BERTC_FAST_DGRAD", 1, 0, 1));
	size_t version = gemm->library.version();
	snprintf(gemm->version, sizeof gemm->version, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100,
		 version % 100);
	snprintf(gemm->place, sizeof gemm->place, "%s, %s", state->name, gemm->version);
	gemm_cache_open(&gemm->cache, gemm->place);
	return OK;
}

void gemm_close(struct gemm *gemm)
{
	if (!gemm)
		return;
	for (int i = 0; i < BUCKETS; i++) {
		for (struct plan *plan = gemm->buckets[i], *next; plan; plan = next) {
			next = plan->next;
			free(plan);
		}
	}
	if (gemm->begin)
		cudaEventDestroy(gemm->begin);
	if (gemm->end)
		cudaEventDestroy(gemm->end);
	if (gemm->handle)
		gemm->library.destroy(gemm->handle);
	gemm_cache_close(&gemm->cache);
	buffer_release(&gemm->recorded);
	buffer_release(&gemm->chosen);
	free(gemm);
}

const char *gemm_version(const struct gemm *gemm)
{
	return gemm->version;
}

void gemm_counts(const struct gemm *gemm, int64_t *out_plans, int64_t *out_measured)
{
	*out_plans = gemm->plans;
	*out_measured = gemm->measured;
}

static cudaDataType_t data_type(enum dtype dtype)
{
	switch (dtype) {
	case DTYPE_F32: return CUDA_R_32F;
	case DTYPE_BF16: return CUDA_R_16BF;
	case DTYPE_E4M3: return CUDA_R_8F_E4M3;
	case DTYPE_E5M2: return CUDA_R_8F_E5M2;
	default: return CUDA_R_16F;
	}
}

/* The next of eight sizes per octave. */
static int64_t size_class(int64_t size)
{
	int64_t step = 1;
	while (size > 16 * step)
		step *= 2;
	return round_up(size, step);
}

/* The largest power of two that divides the address, up to what matters to the library. */
static int32_t alignment_of(const void *pointer)
{
	int32_t alignment = BEST_ALIGNMENT;
	while ((uintptr_t)pointer % (uintptr_t)alignment != 0)
		alignment /= 2;
	return alignment;
}

static struct plan_key key_of(const struct product *p)
{
	struct plan_key key;
	memset(&key, 0, sizeof key); /* compared and hashed as bytes */
	key.rows = p->a_transposed ? p->rows : size_class(p->rows);
	key.columns = p->columns;
	key.depth = p->a_transposed ? size_class(p->depth) : p->depth;
	key.a_stride = p->a_stride;
	key.b_stride = p->b_stride;
	key.y_stride = p->y_stride;
	key.inputs = (int32_t)p->inputs;
	key.output = (int32_t)p->output;
	key.a_is_gradient = p->a_is_gradient;
	key.a_transposed = p->a_transposed;
	key.b_transposed = p->b_transposed;
	key.bias = p->bias != NULL;
	key.add = p->add != NULL;
	key.epilogue = (int32_t)p->epilogue;
	key.pre = p->pre != NULL;
	key.alignments[0] = alignment_of(p->a);
	key.alignments[1] = alignment_of(p->b);
	key.alignments[2] = alignment_of(p->add);
	key.alignments[3] = alignment_of(p->y);
	return key;
}

static struct plan **bucket_of(struct gemm *gemm, const struct plan_key *key)
{
	const unsigned char *bytes = (const unsigned char *)key;
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	for (size_t i = 0; i < sizeof *key; i++)
		hash = (hash ^ bytes[i]) * 1099511628211u;
	return &gemm->buckets[hash % BUCKETS];
}

/* The key of a line in the cache. Whether the product is added to something does not affect the choice. */
static void key_text(const struct gemm *gemm, const struct plan_key *k, char *out, size_t size)
{
	const char *epilogue = k->epilogue == PRODUCT_DGELU  ? " dgelu"
			       : k->epilogue != PRODUCT_GELU ? ""
			       : k->pre                      ? " gelu pre"
							     : " gelu";
	const int32_t *aligned = k->alignments;
	int32_t least = BEST_ALIGNMENT;
	for (int i = 0; i < 4; i++)
		least = aligned[i] < least ? aligned[i] : least;
	char alignments[48] = "";
	if (least < BEST_ALIGNMENT)
		snprintf(alignments, sizeof alignments, " aligned %d %d %d %d", aligned[0], aligned[1], aligned[2], aligned[3]);
	snprintf(out, size,
		 "%" PRId64 " %" PRId64 " %" PRId64 " strides %" PRId64 " %" PRId64 " %" PRId64 " %s%s%s%s %s %c%c%s%s%s",
		 k->rows, k->columns, k->depth, k->a_stride, k->b_stride, k->y_stride, dtype_names[k->inputs],
		 gemm->state->tf32 ? "-tf32" : "", k->a_is_gradient ? "-e5m2" : "",
		 k->a_is_gradient && k->output != (int32_t)DTYPE_F32 && !gemm->fast_dgrad ? "-exact" : "", dtype_names[k->output],
		 k->a_transposed ? 't' : 'n', k->b_transposed ? 't' : 'n', k->bias ? " bias" : "", epilogue, alignments);
}

/* ---- Descriptions ---- */

#define SET(descriptor, attribute, value)                                                                                        \
	(library->operation_set((descriptor), (attribute), &(value), sizeof value) == CUBLAS_STATUS_SUCCESS)

static void undescribe(const struct cublaslt *library, struct description *d)
{
	if (d->operation)
		library->operation_destroy(d->operation);
	if (d->a)
		library->layout_destroy(d->a);
	if (d->b)
		library->layout_destroy(d->b);
	if (d->d)
		library->layout_destroy(d->d);
}

static bool layout(const struct cublaslt *library, cublasLtMatrixLayout_t *out, enum dtype dtype, int64_t rows, int64_t columns,
		   int64_t stride)
{
	return library->layout_create(out, data_type(dtype), (uint64_t)rows, (uint64_t)columns, stride) == CUBLAS_STATUS_SUCCESS;
}

static cublasLtEpilogue_t epilogue_of(const struct product *p)
{
	switch (p->epilogue) {
	case PRODUCT_DGELU: return CUBLASLT_EPILOGUE_DGELU;
	case PRODUCT_GELU:
		if (p->bias)
			return p->pre ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
		return p->pre ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU;
	case PRODUCT_PLAIN: break;
	}
	return p->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/* Describes the exact shapes; takes about a microsecond on the host. */
static bool describe(const struct gemm *gemm, const struct product *p, struct description *out)
{
	const struct cublaslt *library = &gemm->library;
	cublasComputeType_t compute =
		gemm->state->tf32 && p->inputs == DTYPE_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
	cublasOperation_t a_operation = p->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasOperation_t b_operation = p->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasLtEpilogue_t epilogue = epilogue_of(p);
	cudaDataType_t output = data_type(p->output);
	enum dtype a_type = p->a_is_gradient ? DTYPE_E5M2 : p->inputs;
	/* The tensor cores' fast accumulation has fewer bits than fp32: not for gradients of weights, whose sums are long. */
	int8_t fast = p->output != DTYPE_F32 && (!p->a_is_gradient || gemm->fast_dgrad);
	*out = (struct description){0};
	return library->operation_create(&out->operation, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
	       SET(out->operation, CUBLASLT_MATMUL_DESC_TRANSA, a_operation) &&
	       SET(out->operation, CUBLASLT_MATMUL_DESC_TRANSB, b_operation) &&
	       SET(out->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) &&
	       (!p->bias || (SET(out->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, output) &&
			     SET(out->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias))) &&
	       (!p->pre || (SET(out->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p->pre) &&
			    SET(out->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p->y_stride))) &&
	       (p->inputs != DTYPE_E4M3 || (SET(out->operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p->b_inverse) &&
					    SET(out->operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p->a_inverse) &&
					    SET(out->operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast))) &&
	       layout(library, &out->a, p->inputs, p->b_transposed ? p->depth : p->columns,
		      p->b_transposed ? p->columns : p->depth, p->b_stride) &&
	       layout(library, &out->b, a_type, p->a_transposed ? p->rows : p->depth, p->a_transposed ? p->depth : p->rows,
		      p->a_stride) &&
	       layout(library, &out->d, p->output, p->columns, p->rows, p->y_stride);
}

static cublasStatus_t run(const struct gemm *gemm, const struct cuda_scratch *scratch, const struct description *d,
			  const struct product *p, const cublasLtMatmulAlgo_t *algorithm, void *y)
{
	float alpha = 1, beta = p->add ? 1 : 0;
	return gemm->library.multiply(gemm->handle, d->operation, &alpha, p->b, d->a, p->a, d->b, &beta, p->add ? p->add : y,
				      d->d, y, d->d, algorithm, scratch->gemm, scratch->gemm_bytes, gemm->state->stream);
}

/* ---- Choosing ---- */

/* The library's proposals, best guess first. Partial sums are never rounded to 16 bits: they may be stored in the type of the
 * result only if that is fp32. */
static int proposals(const struct gemm *gemm, const struct cuda_scratch *scratch, const struct description *d,
		     const struct product *p, int wanted, cublasLtMatmulHeuristicResult_t *out)
{
	/* In the order of the library's A, B, C and D. */
	const uint32_t alignments[4] = {(uint32_t)alignment_of(p->b), (uint32_t)alignment_of(p->a),
					(uint32_t)alignment_of(p->add ? p->add : p->y), (uint32_t)alignment_of(p->y)};
	const struct cublaslt *library = &gemm->library;
	cublasLtMatmulPreference_t preference;
	uint64_t workspace = scratch->gemm_bytes;
	uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	if (p->output == DTYPE_F32)
		reductions |= CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
	int count = 0;
	if (library->preference_create(&preference) != CUBLAS_STATUS_SUCCESS)
		return 0;
	const struct {
		cublasLtMatmulPreferenceAttributes_t attribute;
		const void *value;
		size_t bytes;
	} settings[] = {
		{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
		{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignments[0], sizeof alignments[0]},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignments[1], sizeof alignments[1]},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignments[2], sizeof alignments[2]},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignments[3], sizeof alignments[3]},
	};
	bool set = true;
	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
		set &= library->preference_set(preference, settings[i].attribute, settings[i].value, settings[i].bytes) ==
		       CUBLAS_STATUS_SUCCESS;
	if (set && library->propose(gemm->handle, d->operation, d->a, d->b, d->d, d->d, preference, wanted, out, &count) !=
			   CUBLAS_STATUS_SUCCESS)
		count = 0;
	library->preference_destroy(preference);
	return count;
}

static int fastest(const float *times, int count)
{
	int best = 0;
	for (int i = 1; i < count; i++)
		best = times[i] < times[best] ? i : best;
	return best;
}

static int candidates_for(const struct gemm *gemm, const struct product *p)
{
	int64_t tiles = ((p->rows + TILE_ROWS - 1) / TILE_ROWS) * ((p->columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
	int wanted = tiles < gemm->state->processors ? CANDIDATES_OF_FEW_TILES : CANDIDATES;
	return wanted < gemm->most_candidates ? wanted : gemm->most_candidates;
}

/* Whether an algorithm from a line works for this product here. */
static bool takes_algorithm(const struct gemm *gemm, const struct cuda_scratch *scratch, const struct description *d,
			    const cublasLtMatmulAlgo_t *algorithm)
{
	cublasLtMatmulHeuristicResult_t result;
	return gemm->library.check(gemm->handle, d->operation, d->a, d->b, d->d, d->d, algorithm, &result) ==
		       CUBLAS_STATUS_SUCCESS &&
	       result.workspaceSize <= scratch->gemm_bytes;
}

/* All zeros: the epilogue is slower than a separate kernel after the product. */
static bool is_declined(const cublasLtMatmulAlgo_t *algorithm)
{
	static const cublasLtMatmulAlgo_t zeros;
	return memcmp(algorithm, &zeros, sizeof zeros) == 0;
}

/* Queues the work that an epilogue saves, or what remains to be done after it: column sums of dx. */
static cudaError_t queue_rest(const struct replica *r, const struct product *p, bool fused)
{
	if (p->epilogue == PRODUCT_GELU && !fused)
		return kernel_gelu(cuda_stream(r), p->output, ACTIVATION_GELU_TANH, p->rows * p->columns, p->pre ? p->pre : p->y,
				   p->y);
	if (p->epilogue == PRODUCT_GELU)
		return cudaSuccess;
	int64_t parts = row_parts(p->rows), most = ROW_PARTS * cuda_scratch(r)->part_floats / p->columns;
	return kernel_columns(cuda_stream(r), &(struct kernel_columns){.dtype = p->output,
								       .rows = p->rows,
								       .columns = p->columns,
								       .part_count = parts < most ? parts : most,
								       .dx = p->y,
								       .pre = fused ? NULL : p->pre,
								       .activation = ACTIVATION_GELU_TANH,
								       .parts = cuda_scratch(r)->parts});
}

struct product product_without_epilogue(const struct product *p)
{
	struct product plain = *p;
	plain.epilogue = PRODUCT_PLAIN;
	if (p->epilogue == PRODUCT_GELU && p->pre)
		plain.y = p->pre;
	plain.pre = NULL;
	return plain;
}

/* One way to compute a product, to be measured. */
struct trial {
	const struct replica *r;
	const struct description *d;
	const struct product *p;
	const cublasLtMatmulAlgo_t *algorithm; /* NULL: without the epilogue */
	void *y;
	bool whole; /* with the work that an epilogue saves, or leaves to be done */
};

static bool queue_trial(const struct trial *t)
{
	const struct gemm *gemm = cuda_state(t->r)->gemm;
	if (!t->algorithm) {
		struct product plain = product_without_epilogue(t->p);
		cuda_product(t->r, &plain);
	} else if (run(gemm, cuda_scratch(t->r), t->d, t->p, t->algorithm, t->y) != CUBLAS_STATUS_SUCCESS) {
		return false;
	}
	return !t->whole || queue_rest(t->r, t->p, t->algorithm != NULL) == cudaSuccess;
}

/* Milliseconds of a run, after one to warm up; infinity on failure. */
static float measure(const struct trial *t, int runs)
{
	struct gemm *gemm = cuda_state(t->r)->gemm;
	float milliseconds = INFINITY;
	if (!queue_trial(t) || cudaEventRecord(gemm->begin, gemm->state->stream) != cudaSuccess)
		return INFINITY;
	for (int i = 0; i < runs; i++)
		if (!queue_trial(t))
			return INFINITY;
	if (cudaEventRecord(gemm->end, gemm->state->stream) != cudaSuccess || cudaEventSynchronize(gemm->end) != cudaSuccess ||
	    cudaEventElapsedTime(&milliseconds, gemm->begin, gemm->end) != cudaSuccess)
		return INFINITY;
	return milliseconds / (float)runs;
}

/* Replaces the times of these trials by more exact ones. */
static void measure_finalists(const struct trial *trials, float *times, int count)
{
	const struct product *p = trials->p;
	int turn = cuda_state(trials->r)->gemm->turn;
	if (turn < 0)
		turn = 2.0 * (double)p->rows * (double)p->columns * (double)p->depth < LARGE_FLOPS ? 0 : TURN_MILLISECONDS;
	float first[FINALISTS];
	memcpy(first, times, (size_t)count * sizeof *times);
	memset(times, 0, (size_t)count * sizeof *times);
	for (int round = turn > 0 ? 0 : TURNS - 1; round < TURNS; round++) {
		for (int i = 0; i < count; i++) {
			float runs = turn > 0 ? (float)turn / fmaxf(first[i], 1e-3F) : MEASURED_RUNS;
			float time = measure(&trials[i], runs > MEASURED_RUNS ? (int)runs : MEASURED_RUNS);
			times[i] += round > 0 ? time : 0;
		}
	}
}

/* Returns the fastest proposal. If the product is added to y, y must be preserved, so measurements write elsewhere; if there
 * is no memory for that, or while a graph is being recorded, the library's first proposal is taken. */
static int choose(const struct replica *r, const struct description *d, const struct product *p,
		  const cublasLtMatmulHeuristicResult_t *candidates, int count)
{
	struct gemm *gemm = cuda_state(r)->gemm;
	enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	void *spare = NULL;
	if (count <= 1 || cudaStreamIsCapturing(gemm->state->stream, &capturing) != cudaSuccess ||
	    capturing != cudaStreamCaptureStatusNone)
		return 0;
	if (p->add) {
		size_t bytes = (size_t)(p->rows * p->y_stride) * dtype_bytes(p->output);
		if (cudaMalloc(&spare, bytes) != cudaSuccess) {
			cudaGetLastError();
			return 0;
		}
	}
	struct trial trials[CANDIDATES_OF_FEW_TILES], finalists[FINALISTS];
	float times[CANDIDATES_OF_FEW_TILES], finals[FINALISTS];
	for (int i = 0; i < count; i++) {
		bool possible = candidates[i].state == CUBLAS_STATUS_SUCCESS &&
				candidates[i].workspaceSize <= cuda_scratch(r)->gemm_bytes;
		trials[i] = (struct trial){.r = r, .d = d, .p = p, .algorithm = &candidates[i].algo, .y = spare ? spare : p->y};
		times[i] = possible ? measure(&trials[i], 1) : INFINITY;
	}
	int left = 0, places[FINALISTS] = {0};
	for (int next; left < FINALISTS && times[next = fastest(times, count)] < INFINITY; left++) {
		places[left] = next;
		finalists[left] = trials[next];
		finals[left] = times[next];
		times[next] = INFINITY;
	}
	if (left > 0)
		measure_finalists(finalists, finals, left);
	if (spare) {
		cuda_check(gemm->state, cudaStreamSynchronize(gemm->state->stream), "cudaStreamSynchronize");
		cuda_check(gemm->state, cudaFree(spare), "cudaFree");
	}
	gemm->measured++;
	return places[fastest(finals, left)];
}

/* Whether the product with its epilogue by the library is at least as fast as the product followed by our kernel. */
static bool epilogue_pays(const struct replica *r, const struct description *d, const struct product *p,
			  const cublasLtMatmulAlgo_t *algorithm)
{
	struct trial ways[2] = {{.r = r, .d = d, .p = p, .algorithm = algorithm, .y = p->y, .whole = true},
				{.r = r, .d = d, .p = p, .whole = true}};
	float times[2] = {measure(&ways[0], 1), measure(&ways[1], 1)};
	measure_finalists(ways, times, 2);
	return times[0] <= times[1] && times[0] < INFINITY;
}

/* Takes the choice from the checkpoint or else from the cache, or makes it. */
static bool choose_algorithm(const struct replica *r, struct plan *plan, const char *key, const struct description *d,
			     const struct product *p)
{
	struct gemm *gemm = cuda_state(r)->gemm;
	const struct cuda_scratch *scratch = cuda_scratch(r);
	cublasLtMatmulHeuristicResult_t candidates[CANDIDATES_OF_FEW_TILES];
	bool fuses = p->epilogue != PRODUCT_PLAIN;
	if (gemm_line_find(&gemm->recorded, key, plan->algorithm.data)) {
		if ((fuses && is_declined(&plan->algorithm)) || takes_algorithm(gemm, scratch, d, &plan->algorithm))
			return true;
		if (!gemm->warned)
			log_note("the checkpoint's algorithm for a product (%s) cannot be used here, so another is chosen: the "
				 "run continues up to rounding, not bit for bit",
				 key);
		gemm->warned = true;
	}
	if (gemm_line_find(&gemm->cache.text, key, plan->algorithm.data) &&
	    ((fuses && is_declined(&plan->algorithm)) || takes_algorithm(gemm, scratch, d, &plan->algorithm)))
		return true;
	int count = proposals(gemm, scratch, d, p, candidates_for(gemm, p), candidates);
	if (count == 0)
		return false;
	int64_t before = gemm->measured;
	plan->algorithm = candidates[choose(r, d, p, candidates, count)].algo;
	bool measured = gemm->measured > before;
	if (fuses && !(measured && epilogue_pays(r, d, p, &plan->algorithm)))
		memset(&plan->algorithm, 0, sizeof plan->algorithm);
	if (measured) {
		cublasLtMatmulAlgo_t own = plan->algorithm;
		gemm_cache_add(&gemm->cache, key, plan->algorithm.data);
		if (!(fuses && is_declined(&plan->algorithm)) && !takes_algorithm(gemm, scratch, d, &plan->algorithm))
			plan->algorithm = own;
	}
	return true;
}

/* Returns NULL if memory runs out. */
static struct plan *find_plan(const struct replica *r, const struct description *d, const struct product *p)
{
	struct gemm *gemm = cuda_state(r)->gemm;
	char text[KEY_BYTES];
	uint64_t known[8];
	struct plan_key key = key_of(p);
	struct plan **bucket = bucket_of(gemm, &key);
	for (struct plan *plan = *bucket; plan; plan = plan->next)
		if (memcmp(&plan->key, &key, sizeof key) == 0)
			return plan;
	struct plan *plan;
	if (memory_new(&plan, 1, sizeof *plan, "a product") != OK)
		return NULL;
	plan->key = key;
	key_text(gemm, &key, text, sizeof text);
	bool chosen = choose_algorithm(r, plan, text, d, p);
	plan->usable = chosen && !is_declined(&plan->algorithm);
	plan->next = *bucket;
	*bucket = plan;
	if (chosen && !gemm_line_find(&gemm->chosen, text, known))
		gemm_line_add(&gemm->chosen, text, plan->algorithm.data);
	gemm->plans++;
	return plan;
}

int gemm_choice(struct gemm *gemm, const char *key)
{
	uint64_t words[8];
	if (gemm_line_find(&gemm->chosen, key, words))
		return words[0] != 0;
	if (!gemm_line_find(&gemm->recorded, key, words) && !gemm_line_find(&gemm->cache.text, key, words))
		return -1;
	gemm_line_add(&gemm->chosen, key, words);
	return words[0] != 0;
}

bool gemm_choose(struct gemm *gemm, const char *key, bool choice)
{
	uint64_t words[8] = {choice};
	gemm_cache_add(&gemm->cache, key, words);
	gemm_line_add(&gemm->chosen, key, words);
	return words[0] != 0;
}

void cuda_choices(struct backend *be, struct buffer *out)
{
	const struct gemm *gemm = ((struct cuda_state *)be->state)->gemm;
	struct buffer lines = {0};
	gemm_lines_merge(&lines, buffer_string(&gemm->chosen));
	gemm_lines_merge(&lines, buffer_string(&gemm->recorded)); /* products that have not occurred in this run yet */
	buffer_format(out, "%s\n%s", gemm->place, buffer_string(&lines));
	buffer_release(&lines);
}

bool cuda_use_choices(struct backend *be, const char *lines)
{
	struct gemm *gemm = ((struct cuda_state *)be->state)->gemm;
	size_t length = strlen(gemm->place);
	if (strncmp(lines, gemm->place, length) != 0 || lines[length] != '\n')
		return false;
	gemm_lines_merge(&gemm->recorded, lines + length + 1);
	return true;
}

/* Returns false if the library cannot compute it. */
static bool library_product(const struct replica *r, const struct product *p)
{
	struct gemm *gemm = cuda_state(r)->gemm;
	const struct cuda_scratch *scratch = cuda_scratch(r);
	struct description d;
	bool done = false;
	struct plan *plan = describe(gemm, p, &d) ? find_plan(r, &d, p) : NULL;
	if (plan && plan->usable) {
		done = run(gemm, scratch, &d, p, &plan->algorithm, p->y) == CUBLAS_STATUS_SUCCESS;
		/* An algorithm chosen for a slightly larger shape may not work for this one. */
		cublasLtMatmulHeuristicResult_t guess;
		if (!done && proposals(gemm, scratch, &d, p, 1, &guess) == 1)
			done = run(gemm, scratch, &d, p, &guess.algo, p->y) == CUBLAS_STATUS_SUCCESS;
	}
	undescribe(&gemm->library, &d);
	if (!done && p->epilogue == PRODUCT_PLAIN && !gemm->refused) {
		char text[KEY_BYTES];
		struct plan_key key = key_of(p);
		key_text(gemm, &key, text, sizeof text);
		log_warning(
			"cuBLASLt has no algorithm for a product of %s (%s): a plain kernel computes it, which takes far longer",
			p->operation, text);
		gemm->refused = true;
	}
	return done;
}

static bool aligned(const void *pointer)
{
	return (uintptr_t)pointer % ALIGNMENT == 0;
}

static bool library_can(const struct product *p)
{
	size_t in = dtype_bytes(p->inputs), out = dtype_bytes(p->output);
	return (size_t)p->a_stride * in % ALIGNMENT == 0 && (size_t)p->b_stride * in % ALIGNMENT == 0 &&
	       (size_t)p->y_stride * out % ALIGNMENT == 0 && aligned(p->pre) && aligned(p->a) && aligned(p->b) && aligned(p->y) &&
	       aligned(p->add) && aligned(p->bias);
}

void cuda_product(const struct replica *r, const struct product *p)
{
	if (p->rows == 0 || p->columns == 0 || (p->depth > 0 && library_can(p) && library_product(r, p)))
		return;
	cuda_run(r,
		 kernel_product(cuda_stream(r), &(struct kernel_product){.inputs = p->inputs,
									 .a_is_gradient = p->a_is_gradient,
									 .a_inverse = p->a_inverse,
									 .b_inverse = p->b_inverse,
									 .output = p->output,
									 .rows = p->rows,
									 .columns = p->columns,
									 .depth = p->depth,
									 .a = p->a,
									 .b = p->b,
									 .a_row = p->a_transposed ? 1 : p->a_stride,
									 .a_step = p->a_transposed ? p->a_stride : 1,
									 .b_column = p->b_transposed ? p->b_stride : 1,
									 .b_step = p->b_transposed ? 1 : p->b_stride,
									 .bias = p->bias,
									 .add = p->add,
									 .y = p->y,
									 .y_stride = p->y_stride}),
		 p->operation);
}

bool cuda_product_fused(const struct replica *r, const struct product *p, enum activation activation)
{
	return activation == ACTIVATION_GELU_TANH && p->output != DTYPE_F32 && p->rows > 0 && library_can(p) &&
	       library_product(r, p);
}
