/* Measures the rates of the GPU's matrix products and of its memory, on random numbers: zeros would flatter a power-limited
 * chip. */
#include "backend/cuda/gemm.h"

#include <math.h>

/* The buffers of a product, for the duration of a measurement. */
struct trial {
	struct backend *be;
	struct replica replica;
	void *memory[3];
};

static void trial_end(struct trial *t)
{
	for (int i = 0; i < 3; i++)
		cuda_release(t->be, t->memory[i]);
	if (t->replica.backend)
		t->be->functions->replica_release(&t->replica);
}

static enum status trial_begin(struct trial *t, struct backend *be, const int64_t elements[3], const enum dtype types[3])
{
	static const struct shape_limits least = {.batch = {.tokens = 1, .sequences = 1, .examples = 1},
						  .longest = 1,
						  .hidden = 8,
						  .heads = 1,
						  .intermediate = 1,
						  .vocab = 2};
	*t = (struct trial){.be = be};
	enum status status = be->functions->replica_create(be, &t->replica, &least);
	for (int i = 0; status == OK && i < 3; i++) {
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

enum status cuda_whole_product(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs, int64_t inputs,
			       double (*clock)(void), double *out_seconds)
{
	/* x, w, y; for wgrad, the weight's gradient is in fp32. */
	const int64_t elements[3] = {rows * inputs, outputs * inputs, rows * outputs};
	enum dtype weight = product == WHOLE_WGRAD ? DTYPE_F32 : be->dtype;
	const enum dtype types[3] = {be->dtype, weight, be->dtype};
	struct trial t;
	TRY(trial_begin(&t, be, elements, types));
	struct product p = {.operation = "a measurement", .inputs = be->dtype, .output = be->dtype};
	switch (product) {
	case WHOLE_FORWARD:
		p = (struct product){.operation = p.operation,
				     .inputs = p.inputs,
				     .output = p.output,
				     .rows = rows,
				     .columns = outputs,
				     .depth = inputs,
				     .a = t.memory[0],
				     .a_stride = inputs,
				     .b = t.memory[1],
				     .b_stride = inputs,
				     .b_transposed = true,
				     .y = t.memory[2],
				     .y_stride = outputs};
		break;
	case WHOLE_DGRAD:
		p = (struct product){.operation = p.operation,
				     .inputs = p.inputs,
				     .output = p.output,
				     .rows = rows,
				     .columns = inputs,
				     .depth = outputs,
				     .a = t.memory[2],
				     .a_stride = outputs,
				     .b = t.memory[1],
				     .b_stride = inputs,
				     .y = t.memory[0],
				     .y_stride = inputs};
		break;
	case WHOLE_WGRAD:
		p = (struct product){.operation = p.operation,
				     .inputs = p.inputs,
				     .output = DTYPE_F32,
				     .rows = outputs,
				     .columns = inputs,
				     .depth = rows,
				     .a = t.memory[2],
				     .a_stride = outputs,
				     .a_transposed = true,
				     .b = t.memory[0],
				     .b_stride = inputs,
				     .y = t.memory[1],
				     .y_stride = inputs};
		break;
	}
	cuda_product(&t.replica, &p); /* makes the plan */
	enum status status = be->functions->synchronize(&t.replica);
	double begin = clock();
	if (status == OK) {
		cuda_product(&t.replica, &p);
		status = be->functions->synchronize(&t.replica);
	}
	*out_seconds = clock() - begin;
	trial_end(&t);
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

/* With FP8, fills the first two matrices with E4M3, rounded from the numbers in the third. */
static void round_operands(const struct trial *t, struct product *p)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(&t->replica)->fp8;
	cuda_run(&t->replica,
		 kernel_fp8(cuda_stream(&t->replica), &(struct kernel_fp8){.dtype = t->be->dtype,
									   .count = 2,
									   .matrix = {{.from = t->memory[2],
										       .rows = p->rows,
										       .columns = p->depth,
										       .format = DTYPE_E4M3,
										       .largest = fp8->x->largest,
										       .scale = &fp8->x->scale,
										       .rows_out = t->memory[0]},
										      {.from = t->memory[2],
										       .rows = p->columns,
										       .columns = p->depth,
										       .format = DTYPE_E4M3,
										       .largest = fp8->dy->largest,
										       .scale = &fp8->dy->scale,
										       .rows_out = t->memory[1]}}}),
		 "a measurement");
	p->inputs = DTYPE_E4M3;
	p->a_inverse = &fp8->x->scale.inverse;
	p->b_inverse = &fp8->dy->scale.inverse;
}

/* Measures a product of BERT-large's shape, in whole waves of the GPU's multiprocessors; much smaller on a device with only a
 * few. */
double cuda_gemm_rate(struct backend *be)
{
	struct cuda_state *state = be->state;
	const int64_t rows = 64 * (int64_t)state->processors, width = state->processors < 16 ? 32 : 4096;
	const int64_t elements[3] = {rows * width, width * width, rows * width};
	const enum dtype types[3] = {be->dtype, be->dtype, be->dtype};
	struct trial t;
	if (trial_begin(&t, be, elements, types) != OK)
		return 0;
	struct product p = {.operation = "a measurement",
			    .inputs = be->dtype,
			    .output = be->dtype,
			    .rows = rows,
			    .columns = width,
			    .depth = width,
			    .a = t.memory[0],
			    .a_stride = width,
			    .b = t.memory[1],
			    .b_stride = width,
			    .b_transposed = true,
			    .y = t.memory[2],
			    .y_stride = width};
	if (be->fp8)
		round_operands(&t, &p);
	double seconds = median_seconds(&t, queue_product, &p);
	trial_end(&t);
	return seconds > 0 ? 2.0 * (double)(rows * width * width) / seconds : 0;
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
	const int64_t elements[3] = {(int64_t)(bytes / sizeof(float)), (int64_t)(bytes / sizeof(float)), 1};
	const enum dtype types[3] = {DTYPE_F32, DTYPE_F32, DTYPE_F32};
	struct trial t;
	if (trial_begin(&t, be, elements, types) != OK)
		return 0;
	double seconds = median_seconds(&t, queue_copy, &bytes);
	trial_end(&t);
	return seconds > 0 ? 2.0 * (double)bytes / seconds : 0;
}
