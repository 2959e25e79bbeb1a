/* Measures the rates of the GPU's matrix products and of its memory, on random numbers: zeros would flatter a power-limited
 * chip. */
#include "backend/cuda/gemm.h"

#include <stdlib.h>

/* a, b and y; for FP8 also what a and b are rounded from. */
enum { MATRICES = 4 };

/* The buffers of a product, for the duration of a measurement. */
struct trial {
	struct backend *be;
	struct replica replica;
	void *memory[MATRICES];
};

static void trial_end(struct trial *t)
{
	for (int i = 0; i < MATRICES; i++)
		cuda_release(t->be, t->memory[i]);
	if (t->replica.backend)
		t->be->functions->replica_release(&t->replica);
}

static enum status trial_begin(struct trial *t, struct backend *be, const int64_t elements[MATRICES],
			       const enum dtype types[MATRICES])
{
	static const struct shape_limits least = {.batch = {.tokens = 1, .sequences = 1, .examples = 1},
						  .longest = 1,
						  .hidden = 8,
						  .heads = 1,
						  .intermediate = 1,
						  .vocab = 2};
	*t = (struct trial){.be = be};
	enum status status = be->functions->replica_create(be, &t->replica, &least);
	for (int i = 0; status == OK && i < MATRICES && elements[i] > 0; i++) {
		status = cuda_allocate(be, &t->memory[i], (size_t)elements[i] * dtype_bytes(types[i]), "a measurement");
		if (status == OK)
			cuda_run(&t->replica,
				 kernel_random(cuda_stream(&t->replica), types[i], elements[i], (uint64_t)i, 1, t->memory[i]),
				 "a measurement");
	}
	if (status != OK)
		trial_end(t);
	return status;
}

/* Median time of `queue` over ROUNDS rounds of RUNS calls, in seconds by the GPU's own clock; 0 if something failed. */
enum { ROUNDS = 9, RUNS = 8 };
static double median_seconds(const struct trial *t, void (*queue)(const struct trial *t, const void *what), const void *what)
{
	struct cuda_state *state = t->be->state;
	float times[ROUNDS] = {0};
	cudaEvent_t begin = NULL, end = NULL;
	bool good = cudaEventCreateWithFlags(&begin, cudaEventDefault) == cudaSuccess &&
		    cudaEventCreateWithFlags(&end, cudaEventDefault) == cudaSuccess;
	if (good)
		queue(t, what);
	for (int round = 0; good && round < ROUNDS; round++) {
		good = cudaEventRecord(begin, state->stream) == cudaSuccess;
		for (int run = 0; run < RUNS; run++)
			queue(t, what);
		good = good && cudaEventRecord(end, state->stream) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess &&
		       cudaEventElapsedTime(&times[round], begin, end) == cudaSuccess;
		for (int i = round; i > 0 && times[i] < times[i - 1]; i--) {
			float other = times[i];
			times[i] = times[i - 1];
			times[i - 1] = other;
		}
	}
	struct replica replica = t->replica;
	good = good && t->be->functions->synchronize(&replica) == OK;
	if (begin)
		cudaEventDestroy(begin);
	if (end)
		cudaEventDestroy(end);
	return good ? times[ROUNDS / 2] * 1e-3 / RUNS : 0;
}

static void queue_product(const struct trial *t, const void *what)
{
	cuda_product(&t->replica, what);
}

/* Makes operands for a product of which only the shape, the layout, and the type of the result are given. */
static enum status product_begin(struct trial *t, struct backend *be, struct product *p, bool fp8)
{
	const int64_t a = p->rows * p->depth, b = p->columns * p->depth;
	const int64_t elements[MATRICES] = {a, b, p->rows * p->columns, fp8 ? (a > b ? a : b) : 0};
	const enum dtype types[MATRICES] = {be->dtype, be->dtype, p->output, be->dtype};
	const struct kernel_fp8_matrix rows[2] = {{.rows = p->rows, .format = p->a_is_gradient ? DTYPE_E5M2 : DTYPE_E4M3},
						  {.rows = p->columns, .format = DTYPE_E4M3}};
	TRY(trial_begin(t, be, elements, types));
	p->operation = "a measurement";
	p->inputs = be->dtype;
	p->a = t->memory[0];
	p->a_stride = p->a_transposed ? p->rows : p->depth;
	p->b = t->memory[1];
	p->b_stride = p->b_transposed ? p->depth : p->columns;
	p->y = t->memory[2];
	p->y_stride = p->columns;
	if (!fp8)
		return OK;
	struct fp8_head *const heads[2] = {cuda_scratch(&t->replica)->fp8.x, cuda_scratch(&t->replica)->fp8.dy};
	struct kernel_fp8 rounding = {.dtype = be->dtype, .count = 2, .matrix = {rows[0], rows[1]}};
	for (int i = 0; i < 2; i++) {
		rounding.matrix[i].from = t->memory[3];
		rounding.matrix[i].columns = p->depth;
		rounding.matrix[i].largest = heads[i]->largest;
		rounding.matrix[i].scale = &heads[i]->scale;
		rounding.matrix[i].rows_out = t->memory[i];
	}
	cuda_run(&t->replica, kernel_fp8(cuda_stream(&t->replica), &rounding), p->operation);
	p->inputs = DTYPE_E4M3;
	p->a_inverse = &heads[0]->scale.inverse;
	p->b_inverse = &heads[1]->scale.inverse;
	return OK;
}

/* Measures a product of BERT-large's shape, in whole waves of the GPU's multiprocessors; much smaller on a device with only a
 * few. */
double cuda_gemm_rate(struct backend *be)
{
	struct cuda_state *state = be->state;
	const int64_t rows = 64 * (int64_t)state->processors, width = state->processors < 16 ? 32 : 4096;
	struct product p = {.output = be->dtype, .rows = rows, .columns = width, .depth = width, .b_transposed = true};
	struct trial t;
	if (product_begin(&t, be, &p, be->fp8) != OK)
		return 0;
	double seconds = median_seconds(&t, queue_product, &p);
	trial_end(&t);
	return seconds > 0 ? 2.0 * (double)(rows * width * width) / seconds : 0;
}

/* Seconds per product by `clock`, which runs while `runs` products are queued and done. */
static enum status timed_products(const struct trial *t, const struct product *p, int64_t runs, double (*clock)(void),
				  double *out)
{
	struct replica replica = t->replica;
	double begin = clock();
	for (int64_t i = 0; i < runs; i++)
		cuda_product(&t->replica, p);
	TRY(t->be->functions->synchronize(&replica));
	*out = (clock() - begin) / (double)runs;
	return OK;
}

/* With BERTC_LIBRARY_MS, the product is repeated for so many milliseconds, of which the second half counts: the rate that a hot
 * chip sustains. */
enum status cuda_whole_product(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs, int64_t inputs,
			       double (*clock)(void), double *out_seconds)
{
	outputs -= outputs % WORD_MULTIPLE; /* as vocabulary.c multiplies words */
	const char *milliseconds = getenv("BERTC_LIBRARY_MS");
	double half = milliseconds ? 0.5e-3 * strtod(milliseconds, NULL) : 0;
	bool wgrad = product == WHOLE_WGRAD, forward = product == WHOLE_FORWARD;
	bool fp8 = be->fp8 && rows % FP8_MULTIPLE == 0 && outputs % FP8_MULTIPLE == 0 && inputs % FP8_MULTIPLE == 0;
	struct product p = {.a_is_gradient = fp8 && !forward,
			    .output = wgrad ? DTYPE_F32 : be->dtype,
			    .rows = wgrad ? outputs : rows,
			    .columns = forward ? outputs : inputs,
			    .depth = forward ? inputs
				     : wgrad ? rows
					     : outputs,
			    .a_transposed = wgrad && !fp8,
			    .b_transposed = forward || fp8};
	struct trial t;
	TRY(product_begin(&t, be, &p, fp8));
	enum status status = timed_products(&t, &p, 1, clock, out_seconds); /* makes the plan */
	if (status == OK)
		status = timed_products(&t, &p, RUNS, clock, out_seconds);
	int64_t runs = *out_seconds > 0 ? (int64_t)(half / *out_seconds) : 0;
	for (int i = 0; i < 2 && status == OK && runs > RUNS; i++)
		status = timed_products(&t, &p, runs, clock, out_seconds);
	trial_end(&t);
	return status;
}

static void queue_copy(const struct trial *t, const void *bytes)
{
	cuda_run(&t->replica,
		 cudaMemcpyAsync(t->memory[1], t->memory[0], *(const size_t *)bytes, cudaMemcpyDeviceToDevice,
				 cuda_stream(&t->replica)),
		 "a measurement");
}

/* Copies ranges far larger than the caches; smaller on a device with few multiprocessors. */
double cuda_copy_rate(struct backend *be)
{
	struct cuda_state *state = be->state;
	const size_t bytes = state->processors < 16 ? (size_t)1 << 20 : (size_t)1 << 29;
	const int64_t elements[MATRICES] = {(int64_t)(bytes / sizeof(float)), (int64_t)(bytes / sizeof(float))};
	const enum dtype types[MATRICES] = {DTYPE_F32, DTYPE_F32};
	struct trial t;
	if (trial_begin(&t, be, elements, types) != OK)
		return 0;
	double seconds = median_seconds(&t, queue_copy, &bytes);
	trial_end(&t);
	return seconds > 0 ? 2.0 * (double)bytes / seconds : 0;
}
