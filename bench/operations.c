/* One training step of a BERT on the CPU, operation by operation, beside oneDNN's own whole-matrix calls for the
 * step's matrix products (forward, dgrad, wgrad; packed operands; all cores). Both run by turns in one process, since
 * the speed of a shared machine changes by the minute; figures are medians.
 *
 *   build/bench/operations [--model base] [--seq 128] [--batch 32] [--precision bf16] [--steps 5] [--threads 0]
 *                          [--clock wall|cpu]
 *
 * --clock cpu counts the processor time of all threads and divides it by their number: what the wall clock would show
 * if no other program wanted the processors.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <oneapi/dnnl/dnnl.h>
#include "backend/backend.h"
#include "backend/cpu/wgrad.h"
#include "base/log.h"
#include "base/rng.h"
#include "model/model.h"

#if DNNL_VERSION_MAJOR >= 3
#error "the comparison calls are written for oneDNN 2.x"
#endif

static void or_exit(enum status status)
{
	if (status == OK)
		return;
	fprintf(stderr, "bench: %s\n", error_last()->message);
	exit((int)status);
}

static int cpu_clock_threads; /* 0: wall clock */

static double now(void)
{
	if (!cpu_clock_threads)
		return clock_seconds();
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / cpu_clock_threads;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare_doubles);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* --- times of operations --------------------------------------------------------------------------------------- */

#define KEY_LIMIT 48
#define STEP_LIMIT 64

struct timing {
	char name[64];
	double flops;                /* of one call */
	int calls;                   /* in a step */
	double seconds[STEP_LIMIT];  /* of a step */
};

static struct timing timings[KEY_LIMIT];
static int timing_count, step_number;
static const struct operations *inner;

static void record(const char *name, double flops, double started)
{
	double seconds = now() - started;
	int i = 0;
	while (i < timing_count && strcmp(timings[i].name, name) != 0)
		i++;
	if (i == timing_count) {
		BUG_IF(timing_count == KEY_LIMIT);
		snprintf(timings[timing_count++].name, sizeof(timings[i].name), "%s", name);
	}
	timings[i].flops = flops;
	timings[i].calls += step_number == 0;
	timings[i].seconds[step_number] += seconds;
}

static double product_flops(int64_t m, int64_t n, int64_t k)
{
	return 2.0 * (double)m * (double)n * (double)k;
}

static double attention_flops(const struct batch *batch, int64_t width)
{
	double sum = 0;
	for (int32_t s = 0; s < batch->sequence_count; s++) {
		double length = batch->starts[s + 1] - batch->starts[s];
		sum += 4 * length * length * (double)width;
	}
	return sum;
}

/* One wrapper for each operation; the name carries the shape of products. */
#define TIMED(operation, flops_of_a, ...)                                                                    \
	static void timed_##operation(struct replica *r, const struct operation *a)                          \
	{                                                                                                    \
		char name[64];                                                                               \
		snprintf(name, sizeof(name), __VA_ARGS__);                                                   \
		double started = now();                                                            \
		inner->operation(r, a);                                                                      \
		record(name, flops_of_a, started);                                                           \
	}

TIMED(embed_fwd, 0, "embed_fwd")
TIMED(embed_bwd, 0, "embed_bwd")
TIMED(linear_fwd, product_flops(a->x.rows, a->y.columns, a->x.columns), "linear_fwd M=%lld O=%lld I=%lld",
      (long long)a->x.rows, (long long)a->y.columns, (long long)a->x.columns)
TIMED(linear_gelu_fwd, product_flops(a->x.rows, a->y.columns, a->x.columns), "linear_gelu_fwd M=%lld O=%lld I=%lld",
      (long long)a->x.rows, (long long)a->y.columns, (long long)a->x.columns)
TIMED(linear_norm_fwd, a->w ? product_flops(a->x.rows, a->y.columns, a->x.columns) : 0,
      "linear_norm_fwd M=%lld H=%lld I=%lld w=%d", (long long)a->x.rows, (long long)a->y.columns,
      (long long)a->x.columns, a->w != NULL)
TIMED(norm_bwd, 0, "norm_bwd M=%lld", (long long)a->dy.rows)
TIMED(linear_bwd, (a->dx.data ? 2 : 1) * product_flops(a->x.rows, a->dy.columns, a->x.columns),
      "linear_bwd M=%lld O=%lld I=%lld", (long long)a->x.rows, (long long)a->dy.columns, (long long)a->x.columns)
TIMED(attention_fwd, attention_flops(a->batch, a->y.columns), "attention_fwd")
TIMED(attention_bwd, 2 * attention_flops(a->batch, a->y.columns), "attention_bwd")
TIMED(gather_fwd, 0, "gather_fwd")
TIMED(gather_bwd, 0, "gather_bwd")
TIMED(vocab_xent, 3 * product_flops(a->x.rows, a->table->master.rows, a->x.columns), "vocab_xent P=%lld",
      (long long)a->x.rows)
TIMED(xent, 0, "xent")
TIMED(sumsq_finite, 0, "sumsq_finite")
TIMED(adamw, 0, "adamw")

static const struct operations timed = {
	.embed_fwd = timed_embed_fwd,
	.embed_bwd = timed_embed_bwd,
	.linear_fwd = timed_linear_fwd,
	.linear_gelu_fwd = timed_linear_gelu_fwd,
	.linear_norm_fwd = timed_linear_norm_fwd,
	.norm_bwd = timed_norm_bwd,
	.linear_bwd = timed_linear_bwd,
	.attention_fwd = timed_attention_fwd,
	.attention_bwd = timed_attention_bwd,
	.gather_fwd = timed_gather_fwd,
	.gather_bwd = timed_gather_bwd,
	.vocab_xent = timed_vocab_xent,
	.xent = timed_xent,
	.sumsq_finite = timed_sumsq_finite,
	.adamw = timed_adamw,
};

/* --- oneDNN's whole-matrix calls ------------------------------------------------------------------------------- */

enum product_kind { FORWARD, DGRAD, WGRAD, KIND_COUNT };
static const char *const kind_names[KIND_COUNT] = {"forward", "dgrad", "wgrad"};

/* y (m,n) = a (m,k) b (k,n), `count` times a step. */
struct whole {
	int64_t m, n, k;
	int count;
	enum product_kind kind;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t arguments[4];
	double seconds[STEP_LIMIT];
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void check(dnnl_status_t status)
{
	BUG_IF(status != dnnl_success);
}

static void *random_memory(size_t bytes, dnnl_data_type_t type)
{
	void *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	BUG_IF(!out);
	for (size_t i = 0; i < bytes / (type == dnnl_bf16 ? 2 : 4); i++) {
		float x = (float)((int)(i * 2654435761u >> 8 & 0xffff) - 32768) / 32768;
		if (type == dnnl_bf16)
			((uint16_t *)out)[i] = float_to_bf16(x);
		else
			((float *)out)[i] = x;
	}
	return out;
}

static dnnl_exec_arg_t argument(int name, const dnnl_memory_desc_t *d, dnnl_data_type_t type)
{
	dnnl_exec_arg_t out = {.arg = name};
	check(dnnl_memory_create(&out.memory, d, engine, random_memory(dnnl_memory_desc_get_size(d) + 64, type)));
	return out;
}

/* Weight gradients have dy (k,m) transposed as their left operand and fp32 results; the others packed weights. */
static void whole_make(struct whole *w, dnnl_data_type_t type)
{
	dnnl_memory_desc_t a, b, y;
	dnnl_dims_t a_dims = {w->m, w->k}, b_dims = {w->k, w->n}, y_dims = {w->m, w->n};
	check(dnnl_memory_desc_init_by_tag(&a, 2, a_dims, type, w->kind == WGRAD ? dnnl_ba : dnnl_ab));
	check(dnnl_memory_desc_init_by_tag(&b, 2, b_dims, type, w->kind == WGRAD ? dnnl_ab : dnnl_format_tag_any));
	check(dnnl_memory_desc_init_by_tag(&y, 2, y_dims, w->kind == WGRAD ? dnnl_f32 : type, dnnl_ab));
	dnnl_matmul_desc_t matmul;
	check(dnnl_matmul_desc_init(&matmul, &a, &b, NULL, &y));
	dnnl_primitive_attr_t attributes;
	check(dnnl_primitive_attr_create(&attributes));
	check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
	dnnl_primitive_desc_t d;
	check(dnnl_primitive_desc_create(&d, &matmul, attributes, engine, NULL));
	check(dnnl_primitive_create(&w->primitive, d));
	w->arguments[0] = argument(DNNL_ARG_SRC, dnnl_primitive_desc_query_md(d, dnnl_query_src_md, 0), type);
	w->arguments[1] = argument(DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(d, dnnl_query_weights_md, 0), type);
	w->arguments[2] = argument(DNNL_ARG_DST, dnnl_primitive_desc_query_md(d, dnnl_query_dst_md, 0),
				   w->kind == WGRAD ? dnnl_f32 : type);
	w->arguments[3] =
		argument(DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0), dnnl_f32);
	dnnl_primitive_desc_destroy(d);
	dnnl_primitive_attr_destroy(attributes);
}

/* Seconds of all calls of a step: one is run until its time is known well enough, then multiplied. */
static double whole_run(struct whole *w)
{
	int repeats = 3;
	double best[3];
	for (int i = 0; i < repeats; i++) {
		double started = now();
		check(dnnl_primitive_execute(w->primitive, stream, 4, w->arguments));
		check(dnnl_stream_wait(stream));
		best[i] = now() - started;
	}
	return median(best, repeats) * w->count;
}

#define WHOLE_LIMIT 32
static struct whole wholes[WHOLE_LIMIT];
static int whole_count;

static void add_linear(int64_t rows, int64_t outputs, int64_t inputs, int count)
{
	BUG_IF(whole_count + 3 > WHOLE_LIMIT);
	wholes[whole_count++] = (struct whole){.m = rows, .n = outputs, .k = inputs, .count = count, .kind = FORWARD};
	wholes[whole_count++] = (struct whole){.m = rows, .n = inputs, .k = outputs, .count = count, .kind = DGRAD};
	wholes[whole_count++] = (struct whole){.m = outputs, .n = inputs, .k = rows, .count = count, .kind = WGRAD};
}

/* Our own weight gradients, which linear_bwd contains; the same shapes as whole[WGRAD]. */
static void time_wgrad(struct replica *r, const struct whole *w, const void *dy, const void *x, float *dw)
{
	enum dtype dtype = r->backend->dtype;
	char name[64];
	snprintf(name, sizeof(name), "(wgrad of M=%lld O=%lld I=%lld)", (long long)w->k, (long long)w->m, (long long)w->n);
	for (int i = 0; i < w->count; i++) {
		double started = now();
		cpu_wgrad(r, &(struct cpu_wgrad){
				     .dy = {.data = (void *)(uintptr_t)dy, .dtype = dtype, .rows = w->k, .columns = w->m},
				     .x = {.data = (void *)(uintptr_t)x, .dtype = dtype, .rows = w->k, .columns = w->n},
				     .dw = dw,
				     .overwrite = true});
		record(name, product_flops(w->k, w->m, w->n), started);
	}
}

/* --- the step -------------------------------------------------------------------------------------------------- */

static void fill_batch(struct batch *b, const struct model_config *config, int32_t sequences, int32_t length)
{
	b->token_count = sequences * length;
	b->sequence_count = sequences;
	b->longest = length;
	struct rng rng = rng_start(1, RNG_TEST, 0);
	int32_t per_sequence = (int32_t)lround(0.15 * length);
	for (int32_t s = 0; s < sequences; s++) {
		b->starts[s] = s * length;
		b->samples[s] = (uint32_t)s;
		b->next_labels[s] = s % 2;
		for (int32_t i = 0; i < length; i++) {
			int32_t t = s * length + i;
			b->ids[t] = (int32_t)rng_below(&rng, (uint32_t)config->vocab_size);
			b->types[t] = i > length / 2;
			b->positions[t] = i;
			b->token_samples[t] = (uint32_t)s;
			b->id_order[t] = t;
		}
		for (int32_t i = 0; i < per_sequence; i++) {
			int32_t p = b->prediction_count++;
			b->prediction_rows[p] = s * length + 1 + i * 6;
			b->prediction_labels[p] = (int32_t)rng_below(&rng, (uint32_t)config->vocab_size);
			b->prediction_weights[p] = 1;
		}
	}
	b->starts[sequences] = b->token_count;
	for (int32_t gap = b->token_count / 2; gap > 0; gap /= 2) /* shell sort by (id, index) */
		for (int32_t i = gap; i < b->token_count; i++)
			for (int32_t j = i; j >= gap; j -= gap) {
				int32_t x = b->id_order[j - gap], y = b->id_order[j];
				if (b->ids[x] < b->ids[y] || (b->ids[x] == b->ids[y] && x < y))
					break;
				b->id_order[j - gap] = y;
				b->id_order[j] = x;
			}
}

static const char *option(int argc, char **argv, const char *name, const char *fallback)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return fallback;
}

static double sum_medians(int steps, double *out_flops)
{
	double sum = 0;
	*out_flops = 0;
	for (int i = 0; i < whole_count; i++) {
		sum += median(wholes[i].seconds, steps);
		*out_flops += product_flops(wholes[i].m, wholes[i].n, wholes[i].k) * wholes[i].count;
	}
	return sum;
}

int main(int argc, char **argv)
{
	/* OpenMP's threads, which oneDNN's whole-matrix calls use, must not spin while ours work. */
	if (!getenv("OMP_WAIT_POLICY")) {
		setenv("OMP_WAIT_POLICY", "passive", 1);
		execv("/proc/self/exe", argv);
	}
	int32_t length = atoi(option(argc, argv, "--seq", "128")), sequences = atoi(option(argc, argv, "--batch", "32"));
	int steps = atoi(option(argc, argv, "--steps", "5")), threads = atoi(option(argc, argv, "--threads", "0"));
	enum dtype dtype = strcmp(option(argc, argv, "--precision", "bf16"), "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32;
	BUG_IF(steps < 1 || steps > STEP_LIMIT);

	struct pool *pool;
	struct backend *be;
	struct model_config config;
	struct model *model;
	struct activations *activations;
	struct replica replica;
	struct batch batch;
	or_exit(pool_create(&pool, threads));
	if (strcmp(option(argc, argv, "--clock", "wall"), "cpu") == 0)
		cpu_clock_threads = pool_threads(pool);
	or_exit(model_config_named(&config, option(argc, argv, "--model", "base")));
	config.vocab_size = atoi(option(argc, argv, "--vocab", "30522"));
	or_exit(backend_open(&be, &(struct backend_settings){.device = "cpu", .dtype = dtype, .pool = pool}));
	struct batch_capacity capacity = {.tokens = sequences * length,
					  .sequences = sequences,
					  .predictions = sequences * (int32_t)lround(0.15 * length)};
	or_exit(batch_create(&batch, capacity));
	fill_batch(&batch, &config, sequences, length);
	or_exit(model_create(&model, be, &config, HEADS_PRETRAINING));
	or_exit(model_allocate(model, true));
	struct shape_limits limits = {.batch = capacity,
				      .longest = length,
				      .hidden = config.hidden_size,
				      .heads = config.num_attention_heads,
				      .intermediate = config.intermediate_size,
				      .vocab = config.vocab_size,
				      .training = true};
	or_exit(be->functions->replica_create(be, &replica, &limits));
	or_exit(activations_create(&activations, model, capacity, true));
	or_exit(model_initialize(model, &replica, 1));
	inner = replica.operations;
	replica.operations = &timed;
	size_t slab = (size_t)model->slab_count * sizeof(float);
	struct tensor m = model->slab, v = model->slab;
	or_exit(be->functions->allocate(be, &m.data, slab, "moments"));
	or_exit(be->functions->allocate(be, &v.data, slab, "moments"));

	int64_t tokens = batch.token_count, hidden = config.hidden_size, wide = config.intermediate_size;
	int layers = config.num_hidden_layers;
	dnnl_data_type_t type = dtype == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
	omp_set_num_threads(pool_threads(pool));
	check(dnnl_engine_create(&engine, dnnl_cpu, 0));
	check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
	add_linear(tokens, 3 * hidden, hidden, layers);
	add_linear(tokens, hidden, hidden, layers);
	add_linear(tokens, wide, hidden, layers);
	add_linear(tokens, hidden, wide, layers);
	add_linear(batch.prediction_count, config.vocab_size, hidden, 1);
	for (int i = 0; i < whole_count; i++)
		whole_make(&wholes[i], type);

	void *left = random_memory((size_t)(tokens * wide) * dtype_bytes(dtype), type);
	void *right = random_memory((size_t)(tokens * wide) * dtype_bytes(dtype), type);
	float *product = random_memory((size_t)(wide * wide) * sizeof(float), dnnl_f32);

	double step_seconds[STEP_LIMIT], refresh_seconds[STEP_LIMIT];
	printf("%s; T=%lld P=%d\n", be->description, (long long)tokens, batch.prediction_count);
	for (int step = -1; step < steps; step++) { /* the first warms up */
		step_number = step < 0 ? 0 : step;
		if (step <= 0) {
			memset(timings, 0, sizeof(timings));
			timing_count = 0;
		}
		*replica.scalars = (struct scalars){.seed = 7,
						    .learning_rate = 1e-4,
						    .inverse_predictions = 1.0 / batch.prediction_count,
						    .inverse_instances = 1.0 / batch.sequence_count,
						    .loss_scale = 1,
						    .max_grad_norm = 1,
						    .bias_correction1 = 1,
						    .bias_correction2 = 1};
		*replica.accumulators = (struct accumulators){0};
		omp_set_num_threads(1);
		double started = now();
		model_forward(model, activations, &replica, &batch, true);
		model_pretraining_loss(model, activations, &replica, &batch, true, true);
		model_backward(model, activations, &replica, &batch, true, NULL, NULL);
		sumsq_finite(&replica, &(struct sumsq_finite){.range = model->gradients});
		adamw(&replica, &(struct adamw){.beta1 = 0.9,
						.beta2 = 0.999,
						.epsilon = 1e-6,
						.weight_decay = 0.01,
						.w = model->slab,
						.m = m,
						.v = v,
						.g = model->gradients});
		double refresh_started = now();
		model_refresh(model, &replica);
		refresh_seconds[step_number] = now() - refresh_started;
		step_seconds[step_number] = now() - started;
		fprintf(stderr, "step %d: %.3f s, loss %.4f\n", step, step_seconds[step_number],
			replica.accumulators->value[SUM_MLM_LOSS] / batch.prediction_count);
		for (int i = 0; i < whole_count; i++)
			if (wholes[i].kind == WGRAD && wholes[i].m < config.vocab_size)
				time_wgrad(&replica, &wholes[i], left, right, product);
		omp_set_num_threads(pool_threads(pool));
		for (int i = 0; i < whole_count; i++)
			wholes[i].seconds[step_number] = whole_run(&wholes[i]);
	}

	printf("%-40s %5s %9s %9s %8s\n", "operation", "calls", "ms/call", "ms/step", "GFLOP/s");
	for (int i = 0; i < timing_count; i++) {
		double seconds = median(timings[i].seconds, steps);
		printf("%-40s %5d %9.3f %9.1f %8.0f\n", timings[i].name, timings[i].calls, 1e3 * seconds / timings[i].calls,
		       1e3 * seconds, timings[i].flops * timings[i].calls / seconds * 1e-9);
	}
	printf("%-40s %5d %9s %9.1f\n", "weights_refresh", 1, "", 1e3 * median(refresh_seconds, steps));
	printf("\n%-40s %5s %9s %9s %8s\n", "oneDNN, whole matrices", "calls", "ms/call", "ms/step", "GFLOP/s");
	for (int i = 0; i < whole_count; i++) {
		double seconds = median(wholes[i].seconds, steps);
		char name[64];
		snprintf(name, sizeof(name), "%s M=%lld N=%lld K=%lld", kind_names[wholes[i].kind], (long long)wholes[i].m,
			 (long long)wholes[i].n, (long long)wholes[i].k);
		printf("%-40s %5d %9.3f %9.1f %8.0f\n", name, wholes[i].count, 1e3 * seconds / wholes[i].count, 1e3 * seconds,
		       product_flops(wholes[i].m, wholes[i].n, wholes[i].k) * wholes[i].count / seconds * 1e-9);
	}
	double flops, products = sum_medians(steps, &flops), step = median(step_seconds, steps);
	double model_flops = model_training_flops(&config, &batch);
	printf("\nstep %.3f s: %.2f sequences/s, %.3f TFLOP/s of the model's work\n", step, sequences / step,
	       model_flops / step * 1e-12);
	printf("products alone by oneDNN %.3f s (%.3f TFLOP/s): the step takes %.2f of that speed\n", products,
	       flops / products * 1e-12, products / step);
	return 0;
}
