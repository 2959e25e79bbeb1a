/* Linear layers of few rows, as in answers for one text: kernels of ours that take one launch where the usual way takes two, and
 * two where it takes two or three. Each shape is measured once, both ways, and the choice is remembered like those of products.
 * Training never uses them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cuda/weight_products.h"
#include "base/log.h"

/* Runs of a way in a graph, and how often that graph is timed: the least time counts. */
#define RUNS 10
#define TURNS 3
/* Texts are padded to multiples of this, and no other kernel is chosen between two of them. */
#define ROW_STEP 32
/* Root mean square distance of the two results, relative: 16 bits are rounded two or three times in both. */
#define LARGEST_DISTANCE 3e-2

/* A layer, and its usual way. */
struct layer {
	struct kernel_few_rows product;
	struct kernel_few_norm norm; /* rows 0: none */
	const char *operation, *kind;
	void (*usual)(struct replica *r, const void *arguments);
	const void *arguments;
	const struct tensor *y;
};

enum status cuda_few_rows_open(struct cuda_state *state)
{
	const char *wanted = getenv("BERTC_FEW_ROWS");
	state->few_rows = FEW_ROWS_MEASURED;
	if (!wanted)
		return OK;
	if (strcmp(wanted, "0") != 0 && strcmp(wanted, "1") != 0)
		return error_set(ERR_USAGE, "BERTC_FEW_ROWS is '%s': it can be 0 or 1", wanted);
	state->few_rows = wanted[0] == '1' ? FEW_ROWS_ALWAYS : FEW_ROWS_NEVER;
	return OK;
}

static void usual(struct replica *r, const struct layer *l)
{
	l->usual(r, l->arguments);
}

/* A kernel that starts early reads weights while the one ahead of it may be writing them. */
static void ours(struct replica *r, const struct layer *l)
{
	struct cuda_state *state = cuda_state(r);
	struct kernel_few_rows product = l->product;
	struct kernel_few_norm norm = l->norm;
	norm.early = cuda_starts_early(r);
	product.early = norm.early && !state->weights_written;
	state->weights_written = false;
	cuda_run(r, kernel_few_rows(state->stream, &product), l->operation);
	if (norm.rows > 0)
		cuda_run(r, kernel_few_norm(state->stream, &norm), l->operation);
}

/* The least milliseconds of RUNS runs, launched as a graph, as answers are, without the host's time; infinity on failure. */
static float measure(struct replica *r, const struct layer *l, void (*way)(struct replica *r, const struct layer *l))
{
	struct cuda_state *state = cuda_state(r);
	cudaError_t failed_before = state->failed;
	cudaEvent_t events[2] = {NULL, NULL};
	cudaGraph_t graph = NULL;
	cudaGraphExec_t runs = NULL;
	float least = INFINITY, time;
	bool good = cudaEventCreateWithFlags(&events[0], cudaEventDefault) == cudaSuccess &&
		    cudaEventCreateWithFlags(&events[1], cudaEventDefault) == cudaSuccess &&
		    cudaStreamBeginCapture(state->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
	if (good) {
		for (int i = 0; i < RUNS; i++)
			way(r, l);
		good = cudaStreamEndCapture(state->stream, &graph) == cudaSuccess && state->failed == failed_before &&
		       cudaGraphInstantiate(&runs, graph, 0) == cudaSuccess;
	}
	for (int i = 0; i < TURNS && good; i++) {
		good = cudaEventRecord(events[0], state->stream) == cudaSuccess &&
		       cudaGraphLaunch(runs, state->stream) == cudaSuccess &&
		       cudaEventRecord(events[1], state->stream) == cudaSuccess &&
		       cudaEventSynchronize(events[1]) == cudaSuccess &&
		       cudaEventElapsedTime(&time, events[0], events[1]) == cudaSuccess;
		least = good ? fminf(least, time) : INFINITY;
	}
	if (runs)
		cudaGraphExecDestroy(runs);
	if (graph)
		cudaGraphDestroy(graph);
	for (int i = 0; i < 2; i++)
		if (events[i])
			cudaEventDestroy(events[i]);
	if (!good) {
		cudaGetLastError();
		state->failed = failed_before;
	}
	return least;
}

/* Runs the layer one way and stores its result. */
static void result_of(struct replica *r, const struct layer *l, void (*way)(struct replica *r, const struct layer *l), void *out)
{
	way(r, l);
	cuda_to_host(r->backend, out, l->y->data, (size_t)(l->y->rows * l->y->columns) * dtype_bytes(l->y->dtype));
}

static double element(const struct tensor *t, const uint16_t *values, int64_t i)
{
	return t->dtype == DTYPE_BF16 ? bf16_to_float(values[i]) : f16_to_float(values[i]);
}

/* Whether both ways give the same result up to rounding. */
static bool agree(struct replica *r, const struct layer *l)
{
	int64_t count = l->y->rows * l->y->columns;
	uint16_t *results;
	double squares = 0, size = 0;
	if (memory_new(&results, 2 * count, sizeof *results, "a comparison") != OK)
		return false;
	result_of(r, l, usual, results);
	result_of(r, l, ours, results + count);
	for (int64_t i = 0; i < count; i++) {
		double x = element(l->y, results, i), off = element(l->y, results + count, i) - x;
		squares += off * off;
		size += x * x;
	}
	free(results);
	/* Values that are not finite are no reason to complain. */
	if (squares > LARGEST_DISTANCE * LARGEST_DISTANCE * size)
		log_warning("a kernel for few rows gives a wrong %s on this GPU (%.2g off): it is not used; please report this",
			    l->operation, sqrt(squares / size));
	return squares <= LARGEST_DISTANCE * LARGEST_DISTANCE * size;
}

static bool pays(struct replica *r, const struct layer *l)
{
	struct cuda_state *state = cuda_state(r);
	enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	char key[160];
	if (state->few_rows != FEW_ROWS_MEASURED)
		return state->few_rows == FEW_ROWS_ALWAYS;
	snprintf(key, sizeof key, "few rows %d %d %d %s %s%s%s", (int)round_up(l->product.rows, ROW_STEP), l->product.columns,
		 l->product.depth, dtype_names[l->product.dtype], l->kind, l->product.bias || l->norm.bias ? " bias" : "",
		 l->norm.residual ? " residual" : "");
	int choice = gemm_choice(state->gemm, key);
	if (choice >= 0)
		return choice > 0;
	if (cudaStreamIsCapturing(state->stream, &capturing) != cudaSuccess || capturing != cudaStreamCaptureStatusNone)
		return false;
	if (agree(r, l)) {
		float own = measure(r, l, ours), other = measure(r, l, usual);
		choice = own <= other && own < INFINITY;
		log_detail("%s: %.4f ms, the usual way %.4f ms", key, (double)own / RUNS, (double)other / RUNS);
	}
	return gemm_choose(state->gemm, key, choice > 0);
}

/* Fills in the product. Returns whether the kernels take it. */
static bool take(const struct replica *r, struct layer *l, const struct tensor *x, const struct weight *w, const struct weight *b,
		 enum activation activation)
{
	const struct cuda_state *state = cuda_state(r);
	int64_t columns = w->master.rows, depth = w->master.columns;
	if (state->few_rows == FEW_ROWS_NEVER || !((struct cuda_replica *)r->state)->answers || weight_in_fp8(r->backend, w) ||
	    !kernel_few_takes(x->dtype, x->rows, columns, depth, state->shared_limit))
		return false;
	l->product = (struct kernel_few_rows){.dtype = x->dtype,
					      .rows = (int)x->rows,
					      .columns = (int)columns,
					      .depth = (int)depth,
					      .part_count = 1,
					      .x = x->data,
					      .w = cuda_weight_operand(r, w),
					      .bias = cuda_vector(b),
					      .activation = activation,
					      .y = l->y->data};
	return true;
}

static void usual_linear(struct replica *r, const void *a)
{
	cuda_linear_fwd(r, a);
}

void cuda_few_linear_fwd(struct replica *r, const struct linear_fwd *a)
{
	struct layer l = {.operation = "linear_fwd", .usual = usual_linear, .arguments = a, .y = &a->y};
	l.kind = a->activation == ACTIVATION_TANH ? "tanh" : "plain";
	if (take(r, &l, &a->x, a->w, a->b, a->activation) && pays(r, &l))
		ours(r, &l);
	else
		cuda_linear_fwd(r, a);
}

static void usual_gelu(struct replica *r, const void *a)
{
	cuda_linear_gelu_fwd(r, a);
}

void cuda_few_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a)
{
	static const char *const kinds[] = {[ACTIVATION_GELU_ERF] = "gelu",
					    [ACTIVATION_GELU_TANH] = "gelu_new",
					    [ACTIVATION_RELU] = "relu",
					    [ACTIVATION_SILU] = "silu"};
	struct layer l = {
		.operation = "linear_gelu_fwd", .kind = kinds[a->activation], .usual = usual_gelu, .arguments = a, .y = &a->y};
	if (!a->pre.data && take(r, &l, &a->x, a->w, a->b, a->activation) && pays(r, &l))
		ours(r, &l);
	else
		cuda_linear_gelu_fwd(r, a);
}

static void usual_norm(struct replica *r, const void *a)
{
	cuda_linear_norm_fwd(r, a);
}

/* The parts of the sums are in the workspace of the library's products. */
static bool take_norm(const struct replica *r, struct layer *l, const struct linear_norm_fwd *a)
{
	if (!a->w || a->dropout.p > 0 || !take(r, l, &a->x, a->w, NULL, ACTIVATION_NONE))
		return false;
	struct kernel_few_rows *p = &l->product;
	p->part_count = kernel_few_parts(p->rows, p->columns, p->depth);
	p->parts = cuda_scratch(r)->gemm;
	l->norm = (struct kernel_few_norm){.dtype = p->dtype,
					   .rows = p->rows,
					   .columns = p->columns,
					   .part_count = p->part_count,
					   .parts = p->parts,
					   .bias = cuda_vector(a->b),
					   .gamma = a->gamma->master.data,
					   .beta = cuda_vector(a->beta),
					   .residual = a->residual.data,
					   .epsilon = (float)a->epsilon,
					   .sum = a->sum.data,
					   .y = a->y.data,
					   .mean = a->sum.data ? a->mean.data : NULL,
					   .rstd = a->sum.data ? a->rstd.data : NULL};
	return (size_t)p->part_count * (size_t)p->rows * (size_t)p->columns * sizeof(float) <= cuda_scratch(r)->gemm_bytes;
}

void cuda_few_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a)
{
	struct layer l = {.operation = "linear_norm_fwd", .kind = "norm", .usual = usual_norm, .arguments = a, .y = &a->y};
	if (take_norm(r, &l, a) && pays(r, &l))
		ours(r, &l);
	else
		cuda_linear_norm_fwd(r, a);
}
