/* dw = dy' x in two passes over the pool:
 *   1. dy and x are laid into blocks (gemm.h), 32 tokens a task: dy's columns become rows, both get the token
 * as their inner dimension. Each panel of 32 columns is laid out once, whoever needs it later.
 *   2. each task multiplies one rectangle of dw, in runs of tokens whose panels fit the caches.
 * Tokens are taken in chunks, which bounds the workspace. A sum always takes the same order: runs, one after
 * the other. So the rectangles' size may depend on the number of threads.
 *
 * Tasks that lay out their own operands would save the way through L3 (and did, by 5 %, where dy is narrow),
 * but reading 32 columns of a wide dy, a cache line of each row, cost more than that (25 % at 3072).
 */
#include "backend/cpu/wgrad.h"

#include <string.h>
#include "backend/cpu/gemm.h"
#include "base/memory.h"
#include "base/pool.h"

enum {
	PANEL = GEMM_BLOCK,
	/* Blocks along the tokens in a run: dy's panel (32 KiB) stays in L1 while it meets x's, which come
	   from L2. */
	RUN_BF16 = 16,
	RUN_F32 = 4,
	/* The largest rectangle, in panels. Its sums (2.3 MiB) pass through L2 at every run, but its panels come from
	   farther away and serve the more products the larger it is. */
	TASK_OUTPUTS = 24,
	TASK_INPUTS = 24,
};

/* Tokens between two rounds of packing: as many as give 32 MiB of blocks, but a few runs at least. */
#define CHUNK_BYTES ((int64_t)32 << 20)
enum { CHUNK_LEAST = 512 };

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t parts(int64_t whole, int64_t part)
{
	return (whole + part - 1) / part;
}

/* Where one chunk's blocks lie. Panels are one block longer than the chunk: a power of two between them would
 * put all panels into the same few sets of the caches. */
struct layout {
	int64_t chunk; /* tokens */
	int64_t output_panels, input_panels;
	int64_t panel_bytes;
	char *left, *right;  /* dy' and x */
	float *partial_sums; /* (chunk / PANEL, O): column sums of 32 rows each */
};

static size_t lay_out(struct layout *l, struct arena arena, int64_t rows, int64_t outputs, int64_t inputs,
                      size_t element)
{
	l->output_panels = parts(outputs, PANEL);
	l->input_panels = parts(inputs, PANEL);
	int64_t row_bytes = (l->output_panels + l->input_panels) * PANEL * (int64_t)element;
	l->chunk = CHUNK_BYTES / row_bytes / CHUNK_LEAST * CHUNK_LEAST;
	if (l->chunk < CHUNK_LEAST)
		l->chunk = CHUNK_LEAST;
	l->chunk = least(l->chunk, parts(rows, PANEL) * PANEL);
	l->panel_bytes = (l->chunk + PANEL) * PANEL * (int64_t)element;
	l->left = arena_take(&arena, (size_t)(l->output_panels * l->panel_bytes));
	l->right = arena_take(&arena, (size_t)(l->input_panels * l->panel_bytes));
	l->partial_sums = arena_take(&arena, (size_t)(l->chunk / PANEL * outputs) * sizeof(float));
	return arena.used;
}

size_t cpu_wgrad_workspace_bytes(int64_t rows, int64_t outputs, int64_t inputs)
{
	struct layout l;
	size_t f32 = lay_out(&l, (struct arena){0}, rows, outputs, inputs, sizeof(float));
	size_t bf16 = lay_out(&l, (struct arena){0}, rows, outputs, inputs, sizeof(uint16_t));
	return f32 > bf16 ? f32 : bf16;
}

struct job {
	const struct cpu_wgrad *a;
	const struct gemm_kernels *kernels;
	struct layout layout;
	int64_t first, rows;               /* this chunk's tokens */
	int64_t task_outputs, task_inputs; /* panels in a rectangle of the second pass */
	bool overwrite;                    /* this chunk is the first of an overwritten gradient */
};

static const void *row_of(struct tensor t, int64_t row)
{
	return (const char *)t.data + (size_t)(row * t.columns) * dtype_bytes(t.dtype);
}

/* Pass 1: 32 tokens of dy and x. */
static void pack_task(void *context, int64_t step, int worker)
{
	(void)worker;
	const struct job *job = context;
	const struct layout *l = &job->layout;
	const struct gemm_kernels *kernels = job->kernels;
	struct tensor dy = job->a->dy, x = job->a->x;
	int64_t row = job->first + step * PANEL, rows = least(PANEL, job->rows - step * PANEL);
	int64_t block = gemm_block_bytes(kernels);
	gemm_pack(kernels, kernels->left_from_columns, row_of(dy, row), dy.columns, rows, dy.columns,
	          l->left + step * block, 0, l->panel_bytes);
	gemm_pack(kernels, kernels->right_from_rows, row_of(x, row), x.columns, rows, x.columns,
	          l->right + step * block, 0, l->panel_bytes);
	if (job->a->column_sums) {
		float *sums = l->partial_sums + step * dy.columns;
		memset(sums, 0, (size_t)dy.columns * sizeof(float));
		kernels->add_columns(row_of(dy, row), dy.columns, rows, dy.columns, sums);
	}
}

/* A rectangle of whole blocks of dw, from panels (output, input) on. */
static void multiply_rectangle(const struct job *job, int64_t output, int64_t outputs, int64_t input,
                               int64_t inputs, float *out, int64_t out_row, bool overwrite)
{
	const struct layout *l = &job->layout;
	int64_t block = gemm_block_bytes(job->kernels), steps = parts(job->rows, PANEL);
	int64_t run = job->kernels->type == DTYPE_BF16 ? RUN_BF16 : RUN_F32;
	for (int64_t step = 0; step < steps; step += run)
		job->kernels->multiply(&(struct block_product){
		        .m = outputs,
		        .n = inputs,
		        .k = least(run, steps - step),
		        .left = l->left + output * l->panel_bytes + step * block,
		        .left_m = l->panel_bytes,
		        .left_k = block,
		        .right = l->right + input * l->panel_bytes + step * block,
		        .right_n = l->panel_bytes,
		        .right_k = block,
		        .out = out,
		        .out_m = PANEL * out_row,
		        .out_n = PANEL,
		        .out_row = out_row,
		        .accumulate = step > 0 || !overwrite,
		});
}

/* A block that sticks out of dw: multiplied aside. */
static void multiply_edge(const struct job *job, int64_t output, int64_t input)
{
	int64_t outputs = job->a->dy.columns, inputs = job->a->x.columns;
	_Alignas(64) float out[PANEL * PANEL];
	multiply_rectangle(job, output, 1, input, 1, out, PANEL, true);
	for (int64_t o = output * PANEL; o < least(outputs, (output + 1) * PANEL); o++)
		for (int64_t i = input * PANEL; i < least(inputs, (input + 1) * PANEL); i++) {
			float *dw = job->a->dw + o * inputs + i, sum = out[o % PANEL * PANEL + i % PANEL];
			*dw = job->overwrite ? sum : *dw + sum;
		}
}

/* Pass 2: one rectangle of dw. */
static void multiply_task(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct job *job = context;
	const struct layout *l = &job->layout;
	int64_t outputs = job->a->dy.columns, inputs = job->a->x.columns;
	int64_t columns = parts(l->input_panels, job->task_inputs);
	int64_t output = index / columns * job->task_outputs, input = index % columns * job->task_inputs;
	int64_t output_end = least(output + job->task_outputs, l->output_panels);
	int64_t input_end = least(input + job->task_inputs, l->input_panels);
	/* Blocks from here on stick out. */
	int64_t output_whole = least(outputs / PANEL, output_end),
	        input_whole = least(inputs / PANEL, input_end);

	job->kernels->begin();
	if (output < output_whole && input < input_whole)
		multiply_rectangle(job, output, output_whole - output, input, input_whole - input,
		                   job->a->dw + output * PANEL * inputs + input * PANEL, inputs,
		                   job->overwrite);
	for (int64_t o = output; o < output_end; o++)
		for (int64_t i = o < output_whole ? input_whole : input; i < input_end; i++)
			multiply_edge(job, o, i);
	job->kernels->end();
}

/* Cuts dw into equal rectangles: large ones reuse their panels more often, two a thread even out uneven
 * progress. */
static int64_t choose_rectangles(struct job *job, int threads)
{
	int64_t rows = parts(job->layout.output_panels, TASK_OUTPUTS),
	        columns = parts(job->layout.input_panels, TASK_INPUTS);
	do {
		job->task_outputs = parts(job->layout.output_panels, rows);
		job->task_inputs = parts(job->layout.input_panels, columns);
		if (rows * columns >= 2 * threads)
			break;
		if (job->task_outputs >= job->task_inputs)
			rows++;
		else
			columns++;
	} while (job->task_outputs > 1 || job->task_inputs > 1);
	return parts(job->layout.output_panels, job->task_outputs) *
	       parts(job->layout.input_panels, job->task_inputs);
}

static void finish_column_sums(const struct job *job)
{
	int64_t outputs = job->a->dy.columns;
	float *sums = job->a->column_sums;
	if (job->overwrite)
		memset(sums, 0, (size_t)outputs * sizeof(float));
	for (int64_t step = 0; step < parts(job->rows, PANEL); step++)
		for (int64_t o = 0; o < outputs; o++)
			sums[o] += job->layout.partial_sums[step * outputs + o];
}

void cpu_wgrad(struct replica *r, const struct cpu_wgrad *a)
{
	struct pool *pool = r->backend->pool;
	struct job job = {.a = a, .kernels = cpu_gemm_kernels(a->dy.dtype)};
	BUG_IF(a->x.dtype != a->dy.dtype || a->x.rows != a->dy.rows);
	if (a->dy.rows == 0 && a->overwrite) {
		memset(a->dw, 0, (size_t)(a->dy.columns * a->x.columns) * sizeof(float));
		if (a->column_sums)
			memset(a->column_sums, 0, (size_t)a->dy.columns * sizeof(float));
	}
	if (a->dy.rows == 0)
		return;
	lay_out(&job.layout, (struct arena){.base = r->workspace, .capacity = r->workspace_bytes}, a->dy.rows,
	        a->dy.columns, a->x.columns, dtype_bytes(job.kernels->type));

	int64_t tasks = choose_rectangles(&job, pool_threads(pool));
	for (; job.first < a->dy.rows; job.first += job.layout.chunk) {
		job.rows = least(a->dy.rows - job.first, job.layout.chunk);
		job.overwrite = a->overwrite && job.first == 0;
		pool_run(pool, parts(job.rows, PANEL), pack_task, &job);
		pool_run(pool, tasks, multiply_task, &job);
		if (a->column_sums)
			finish_column_sums(&job);
	}
}
