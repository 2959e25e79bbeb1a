/* Our own kernels against oneDNN's whole-matrix calls, interleaved in one process: medians and their ratios.
 *
 *   make build/dev/bench_cpu_kernels && OMP_WAIT_POLICY=passive build/dev/bench_cpu_kernels [rounds] [threads]
 *
 * Look at the ratios: on a shared machine the figures themselves vary with other load. With one thread, processor time is
 * measured, which at least excludes the time during which other processes had the core. */
#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "backend/cpu/attention.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/wgrad.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/rng.h"

static void need(int failed, const char *what)
{
	if (failed) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

static clockid_t clock_used = CLOCK_MONOTONIC;

static double seconds(void)
{
	struct timespec t;
	clock_gettime(clock_used, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(double), ascending);
	return values[count / 2];
}

static void fill(struct tensor t, uint64_t seed)
{
	struct rng rng = rng_start(seed, RNG_TEST, 0);
	for (int64_t i = 0; i < t.rows * t.columns; i++) {
		float value = (float)(rng_double(&rng) - 0.5);
		if (t.dtype == DTYPE_F32)
			((float *)t.data)[i] = value;
		else
			((uint16_t *)t.data)[i] = float_to_bf16(value);
	}
}

static struct tensor matrix(struct arena *arena, enum dtype dtype, int64_t rows, int64_t columns)
{
	return (struct tensor){.data = arena_take(arena, (size_t)(rows * columns) * dtype_bytes(dtype)),
			       .dtype = dtype,
			       .rows = rows,
			       .columns = columns};
}

/* oneDNN's dw = dy' x as a matmul on plain rows. */
struct vendor {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_t primitive;
	dnnl_memory_t dy, x, dw;
};

static void vendor_wgrad(struct vendor *v, const struct cpu_wgrad *a, float *dw)
{
	dnnl_memory_desc_t dy, x, out;
	dnnl_dim_t rows = a->dy.rows, outputs = a->dy.columns, inputs = a->x.columns;
	dnnl_data_type_t type = a->dy.dtype == DTYPE_F32 ? dnnl_f32 : dnnl_bf16;
	need(dnnl_memory_desc_init_by_strides(&dy, 2, (dnnl_dims_t){outputs, rows}, type, (dnnl_dims_t){1, outputs}),
	     "descriptor");
	need(dnnl_memory_desc_init_by_strides(&x, 2, (dnnl_dims_t){rows, inputs}, type, (dnnl_dims_t){inputs, 1}), "descriptor");
	need(dnnl_memory_desc_init_by_strides(&out, 2, (dnnl_dims_t){outputs, inputs}, dnnl_f32, (dnnl_dims_t){inputs, 1}),
	     "descriptor");
	dnnl_matmul_desc_t matmul;
	dnnl_primitive_desc_t description;
	need(dnnl_engine_create(&v->engine, dnnl_cpu, 0), "engine");
	need(dnnl_stream_create(&v->stream, v->engine, dnnl_stream_default_flags), "stream");
	need(dnnl_matmul_desc_init(&matmul, &dy, &x, NULL, &out), "matmul");
	need(dnnl_primitive_desc_create(&description, &matmul, NULL, v->engine, NULL), "matmul");
	need(dnnl_primitive_create(&v->primitive, description), "matmul");
	need(dnnl_memory_create(&v->dy, &dy, v->engine, a->dy.data), "memory");
	need(dnnl_memory_create(&v->x, &x, v->engine, a->x.data), "memory");
	need(dnnl_memory_create(&v->dw, &out, v->engine, dw), "memory");
	dnnl_primitive_desc_destroy(description);
}

static void vendor_run(struct vendor *v)
{
	dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, v->dy}, {DNNL_ARG_WEIGHTS, v->x}, {DNNL_ARG_DST, v->dw}};
	need(dnnl_primitive_execute(v->primitive, v->stream, 3, arguments), "execution");
	need(dnnl_stream_wait(v->stream), "execution");
}

static void bench_wgrad(struct pool *pool, struct arena *workspace, enum dtype dtype, int64_t rows, int64_t outputs,
			int64_t inputs, int rounds)
{
	struct backend backend = {.name = "cpu", .pool = pool};
	struct replica replica = {.backend = &backend, .workspace = workspace->base, .workspace_bytes = workspace->capacity};
	struct arena arena;
	need(arena_create(&arena, (size_t)((rows + 512) * (outputs + inputs) + outputs * inputs * 4) * 4, "matrices"), "memory");
	struct cpu_wgrad a = {.dy = matrix(&arena, dtype, rows, outputs),
			      .x = matrix(&arena, dtype, rows, inputs),
			      .dw = arena_take(&arena, (size_t)(outputs * inputs) * sizeof(float)),
			      .column_sums = arena_take(&arena, (size_t)outputs * sizeof(float)),
			      .overwrite = true};
	float *vendor_dw = arena_take(&arena, (size_t)(outputs * inputs) * sizeof(float));
	fill(a.dy, 1);
	fill(a.x, 2);
	struct vendor vendor;
	vendor_wgrad(&vendor, &a, vendor_dw);
	double own[1000], other[1000];
	vendor_run(&vendor);
	cpu_wgrad(&replica, &a);
	for (int i = 0; i < rounds; i++) {
		double start = seconds();
		cpu_wgrad(&replica, &a);
		own[i] = seconds() - start;
		start = seconds();
		vendor_run(&vendor);
		other[i] = seconds() - start;
	}
	double work = 2e-12 * (double)rows * (double)outputs * (double)inputs;
	double own_time = median(own, rounds), other_time = median(other, rounds);
	printf("wgrad %s M=%ld O=%ld I=%ld: own %.3f TFLOP/s (%.2f ms), oneDNN %.3f, ratio %.2f, best %.3f "
	       "and %.3f\n",
	       dtype == DTYPE_F32 ? "fp32" : "bf16", (long)rows, (long)outputs, (long)inputs, work / own_time, own_time * 1e3,
	       work / other_time, other_time / own_time, work / own[0], work / other[0]);
	arena_release(&arena);
}

/* Forward and backward of one layer's attention; the FLOP count covers two products per head in forward and five in
 * backward. */
static void bench_attention(struct pool *pool, struct arena *workspace, enum dtype dtype, int64_t sequences, int64_t length,
			    int64_t heads, int64_t size, double p, int rounds)
{
	int64_t rows = sequences * length, hidden = heads * size;
	struct scalars scalars = {.seed = 3};
	struct backend backend = {.name = "cpu", .pool = pool};
	struct replica replica = {
		.backend = &backend, .scalars = &scalars, .workspace = workspace->base, .workspace_bytes = workspace->capacity};
	struct arena arena;
	need(arena_create(&arena, (size_t)(rows * hidden * 9 * 4 + rows * heads * 4 + (1 << 20)), "matrices"), "memory");
	struct batch batch = {.token_count = (int32_t)rows, .sequence_count = (int32_t)sequences, .longest = (int32_t)length};
	batch.starts = arena_take(&arena, (size_t)(sequences + 1) * sizeof(int32_t));
	batch.samples = arena_take(&arena, (size_t)sequences * sizeof(uint32_t));
	for (int64_t i = 0; i <= sequences; i++)
		batch.starts[i] = (int32_t)(i * length);
	struct weight bias = {.gradient = matrix(&arena, DTYPE_F32, 1, 3 * hidden)};
	struct attention_fwd fwd = {.batch = &batch,
				    .heads = (int32_t)heads,
				    .dropout = {.p = p, .site = 5},
				    .qkv = matrix(&arena, dtype, rows, 3 * hidden),
				    .y = matrix(&arena, dtype, rows, hidden),
				    .lse = matrix(&arena, DTYPE_F32, heads, rows)};
	struct attention_bwd bwd = {.batch = &batch,
				    .heads = (int32_t)heads,
				    .dropout = fwd.dropout,
				    .overwrite = true,
				    .bias = &bias,
				    .dy = matrix(&arena, dtype, rows, hidden),
				    .qkv = fwd.qkv,
				    .y = fwd.y,
				    .lse = fwd.lse,
				    .dqkv = matrix(&arena, dtype, rows, 3 * hidden)};
	fill(fwd.qkv, 1);
	fill(bwd.dy, 2);
	double forward[1000], backward[1000];
	cpu_attention_fwd(&replica, &fwd);
	cpu_attention_bwd(&replica, &bwd);
	for (int i = 0; i < rounds; i++) {
		double start = seconds();
		cpu_attention_fwd(&replica, &fwd);
		forward[i] = seconds() - start;
		start = seconds();
		cpu_attention_bwd(&replica, &bwd);
		backward[i] = seconds() - start;
	}
	double product = 2e-12 * (double)(rows * length * hidden);
	double forward_time = median(forward, rounds), backward_time = median(backward, rounds);
	printf("attention %s B=%ld S=%ld heads=%ld x %ld p=%g: forward %.2f ms (%.3f TFLOP/s, best %.2f ms), "
	       "backward %.2f ms (%.3f TFLOP/s, best %.2f ms)\n",
	       dtype == DTYPE_F32 ? "fp32" : "bf16", (long)sequences, (long)length, (long)heads, (long)size, p,
	       forward_time * 1e3, 2 * product / forward_time, forward[0] * 1e3, backward_time * 1e3, 5 * product / backward_time,
	       backward[0] * 1e3);
	arena_release(&arena);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10, threads = argc > 2 ? atoi(argv[2]) : 2;
	if (rounds < 1 || rounds > 1000)
		rounds = 10;
	omp_set_num_threads(threads);
	if (threads == 1)
		clock_used = CLOCK_THREAD_CPUTIME_ID;
	struct pool *pool;
	need(pool_create(&pool, threads), "pool");
	struct arena workspace;
	need(arena_create(&workspace, (size_t)64 << 20, "workspace"), "memory");
	printf("%s, %d threads, medians of %d\n", cpu_isa_names[cpu_isa()], threads, rounds);
	static const int64_t shapes[][3] = {
		{4096, 768, 768}, {4096, 2304, 768}, {4096, 3072, 768}, {4096, 768, 3072}, {1000, 768, 768}};
	for (int type = 1; type >= 0; type--)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
			bench_wgrad(pool, &workspace, type ? DTYPE_BF16 : DTYPE_F32, shapes[i][0], shapes[i][1], shapes[i][2],
				    rounds);
	for (int type = 1; type >= 0; type--) {
		enum dtype dtype = type ? DTYPE_BF16 : DTYPE_F32;
		bench_attention(pool, &workspace, dtype, 32, 128, 12, 64, 0.1, rounds);
		bench_attention(pool, &workspace, dtype, 32, 128, 12, 64, 0, rounds);
		bench_attention(pool, &workspace, dtype, 8, 512, 12, 64, 0.1, rounds);
		bench_attention(pool, &workspace, dtype, 100, 40, 12, 64, 0.1, rounds);
	}
	arena_release(&workspace);
	pool_free(pool);
	return 0;
}
