/* dw = dy' x in two passes over the pool:
 *   1. dy and x are packed into blocks (gemm.h), 32 tokens per task: dy's columns become rows, and the token becomes the inner
 *   dimension of both. Each panel of 32 columns is packed once, however many tasks need it later.
 *   2. each task multiplies one rectangle of dw, in runs of tokens whose panels fit into the caches, into sums that stay in
 *   L2; then the sums are stored or added to dw.
 * Tokens are taken in chunks, which bounds the workspace. A sum is always taken in the same order: run after run. The size of
 * the rectangles may therefore depend on the number of threads.
 *
 * Letting tasks pack their own operands would save the way through L3 (by 5 %, where dy is narrow), but reading 32 columns of
 * a wide dy, one cache line per row, cost more than that (25 % at 3072).
 */
#include "backend/cpu/wgrad.h"

#include <string.h>
#include "backend/cpu/gemm.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/pool.h"

enum {
	PANEL = GEMM_BLOCK,
	/* Blocks along the tokens in a run: dy's panel (32 KiB) stays in L1 while it is multiplied by x's panels, which come
	 * from L2. */
	RUN_BF16 = 16,
	RUN_F32 = 4,
	/* The largest rectangle, in panels of outputs and of inputs. Its sums (576 KiB) and two runs of x's panels (2 x 384
	 * KiB) fit into L2; the larger the rectangle, the more products each panel serves that is loaded from farther away. */
	TASK_PANELS = 12,
};

/* Tokens between two rounds of packing: as many as make 32 MiB of blocks, but at least CHUNK_LEAST. */
#define CHUNK_BYTES ((int64_t)32 << 20)
enum { CHUNK_LEAST = 512 };

static int64_t parts(int64_t whole, int64_t part)
{
	return (whole + part - 1) / part;
}

/* The layout of one chunk's blocks. Panels are one block longer than the chunk: with a power of two as distance, all panels
 * would map to the same few cache sets. */
struct layout {
	int64_t chunk; /* tokens */
	int64_t output_panels, input_panels;
	int64_t panel_bytes;
	char *left, *right;  /* dy' and x */
	float *partial_sums; /* (chunk / PANEL, O): column sums over 32 rows each */
	float *sums;         /* each thread's rectangle: TASK_PANELS^2 plain blocks */
};

enum { BLOCK_FLOATS = PANEL * PANEL, TASK_FLOATS = TASK_PANELS * TASK_PANELS * BLOCK_FLOATS };

static size_t lay_out(struct layout *l, struct arena arena, int64_t rows, int64_t outputs, int64_t inputs, size_t element,
		      int threads)
{
	l->output_panels = parts(outputs, PANEL);
	l->input_panels = parts(inputs, PANEL);
	int64_t row_bytes = (l->output_panels + l->input_panels) * PANEL * (int64_t)element;
	l->chunk = CHUNK_BYTES / row_bytes / CHUNK_LEAST * CHUNK_LEAST;
	if (l->chunk < CHUNK_LEAST)
		l->chunk = CHUNK_LEAST;
	l->chunk = smaller(l->chunk, parts(rows, PANEL) * PANEL);
	l->panel_bytes = (l->chunk + PANEL) * PANEL * (int64_t)element;
	l->left = arena_take(&arena, (size_t)(l->output_panels * l->panel_bytes));
	l->right = arena_take(&arena, (size_t)(l->input_panels * l->panel_bytes));
	l->partial_sums = arena_take(&arena, (size_t)(l->chunk / PANEL * outputs) * sizeof(float));
	l->sums = arena_take(&arena, (size_t)threads * TASK_FLOATS * sizeof(float));
	return arena.used;
}

size_t cpu_wgrad_workspace_bytes(int64_t rows, int64_t outputs, int64_t inputs, int threads)
{
	struct layout l;
	size_t f32 = lay_out(&l, (struct arena){0}, rows, outputs, inputs, sizeof(float), threads);
	size_t bf16 = lay_out(&l, (struct arena){0}, rows, outputs, inputs, sizeof(uint16_t), threads);
	return f32 > bf16 ? f32 : bf16;
}

struct job {
	const struct cpu_wgrad *a;
	const struct gemm_kernels *kernels;
	struct layout layout;
	int64_t first, rows;               /* this chunk's tokens */
	int64_t task_outputs, task_inputs; /* panels per rectangle of the second pass */
	bool overwrite;                    /* this chunk is the first of an overwritten gradient */
};

static const void *row_of(struct tensor t, int64_t row)
{
	return (const char *)t.data + (size_t)(row * t.columns) * dtype_bytes(t.dtype);
}

/* Packs columns of 32 tokens of dy; `column` is a multiple of 32. */
static void pack_dy(const struct job *job, int64_t step, int64_t column, int64_t columns)
{
	const struct layout *l = &job->layout;
	const struct gemm_kernels *kernels = job->kernels;
	struct tensor dy = job->a->dy;
	int64_t rows = smaller(PANEL, job->rows - step * PANEL);
	const char *source = (const char *)row_of(dy, job->first + step * PANEL) + column * (int64_t)dtype_bytes(dy.dtype);
	gemm_pack(kernels, kernels->left_from_columns, source, dy.columns, rows, columns,
		  l->left + step * gemm_block_bytes(kernels) + column / PANEL * l->panel_bytes, 0, l->panel_bytes);
	if (job->a->column_sums) {
		float *sums = l->partial_sums + step * dy.columns + column;
		memset(sums, 0, (size_t)columns * sizeof(float));
		kernels->add_columns(source, dy.columns, rows, columns, sums);
	}
}

/* Pass 1: 32 tokens of dy and x. */
static void pack_task(void *context, int64_t step, int worker)
{
	(void)worker;
	const struct job *job = context;
	const struct layout *l = &job->layout;
	const struct gemm_kernels *kernels = job->kernels;
	struct tensor x = job->a->x;
	if (!job->a->has_dy)
		pack_dy(job, step, 0, job->a->dy.columns);
	if (job->a->has_x)
		return;
	gemm_pack(kernels, kernels->right_from_rows, row_of(x, job->first + step * PANEL), x.columns,
		  smaller(PANEL, job->rows - step * PANEL), x.columns, l->right + step * gemm_block_bytes(kernels), 0,
		  l->panel_bytes);
}

/* Pass 2: one rectangle of dw. */
struct rectangle {
	int64_t output, outputs, input, inputs; /* panels */
	float *sums;                            /* (outputs, inputs) blocks */
};

/* Multiplies one run of tokens, one block row of the rectangle at a time, so that dy's panel stays in L1. Meanwhile the next
 * row's panel is prefetched into L2, and one of x's panels for the next run. */
static void multiply_run(const struct job *job, const struct rectangle *rect, int64_t step, int64_t run, int64_t next)
{
	const struct layout *l = &job->layout;
	int64_t block = gemm_block_bytes(job->kernels);
	const char *left = l->left + rect->output * l->panel_bytes, *right = l->right + rect->input * l->panel_bytes;
	for (int64_t o = 0; o < rect->outputs; o++) {
		bool is_last = o + 1 == rect->outputs;
		struct block_product product = {
			.m = 1,
			.n = rect->inputs,
			.k = run,
			.left = left + o * l->panel_bytes + step * block,
			.left_k = block,
			.right = right + step * block,
			.right_n = l->panel_bytes,
			.right_k = block,
			.out = rect->sums + o * rect->inputs * BLOCK_FLOATS,
			.out_n = BLOCK_FLOATS,
			.out_row = PANEL,
			.accumulate = step > 0,
		};
		product.fetch[0] = (struct gemm_fetch){.from = is_last ? left + (step + run) * block
								       : left + (o + 1) * l->panel_bytes + step * block,
						       .rows = 1,
						       .row_bytes = (is_last ? next : run) * block};
		if (o < rect->inputs)
			product.fetch[1] = (struct gemm_fetch){
				.from = right + o * l->panel_bytes + (step + run) * block, .rows = 1, .row_bytes = next * block};
		job->kernels->multiply(&product);
	}
}

static void store_sums(const struct job *job, const struct rectangle *rect)
{
	int64_t outputs = job->a->dy.columns, inputs = job->a->x.columns;
	for (int64_t o = 0; o < rect->outputs; o++)
		for (int64_t i = 0; i < rect->inputs; i++) {
			int64_t row = (rect->output + o) * PANEL, column = (rect->input + i) * PANEL;
			job->kernels->store_block(rect->sums + (o * rect->inputs + i) * BLOCK_FLOATS,
						  job->a->dw + row * inputs + column, inputs, smaller(PANEL, outputs - row),
						  smaller(PANEL, inputs - column), !job->overwrite);
		}
}

static void multiply_task(void *context, int64_t index, int worker)
{
	const struct job *job = context;
	const struct layout *l = &job->layout;
	int64_t columns = parts(l->input_panels, job->task_inputs), steps = parts(job->rows, PANEL);
	int64_t longest = job->kernels->type == DTYPE_BF16 ? RUN_BF16 : RUN_F32;
	struct rectangle rect = {.output = index / columns * job->task_outputs,
				 .input = index % columns * job->task_inputs,
				 .sums = l->sums + worker * TASK_FLOATS};
	rect.outputs = smaller(job->task_outputs, l->output_panels - rect.output);
	rect.inputs = smaller(job->task_inputs, l->input_panels - rect.input);

	job->kernels->begin();
	for (int64_t step = 0, run, next; step < steps; step += run) {
		run = smaller(longest, steps - step);
		next = smaller(longest, steps - step - run);
		multiply_run(job, &rect, step, run, next);
	}
	store_sums(job, &rect);
	job->kernels->end();
}

/* Divides dw into equal rectangles: large ones reuse their panels more often; at least two per thread, if possible, to balance
 * the load. */
static int64_t choose_rectangles(struct job *job, int threads)
{
	int64_t rows = parts(job->layout.output_panels, TASK_PANELS), columns = parts(job->layout.input_panels, TASK_PANELS);
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
	return parts(job->layout.output_panels, job->task_outputs) * parts(job->layout.input_panels, job->task_inputs);
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

static struct job job_start(struct replica *r, const struct cpu_wgrad *a)
{
	struct job job = {.a = a, .kernels = cpu_gemm_kernels(a->dy.dtype)};
	struct arena arena = {.base = (unsigned char *)r->workspace + a->offset, .capacity = r->workspace_bytes - a->offset};
	lay_out(&job.layout, arena, a->dy.rows, a->dy.columns, a->x.columns, dtype_bytes(job.kernels->type),
		pool_threads(r->backend->pool));
	return job;
}

bool cpu_wgrad_takes_dy(const struct cpu_wgrad *a)
{
	struct layout l;
	lay_out(&l, (struct arena){0}, a->dy.rows, a->dy.columns, a->x.columns, dtype_bytes(cpu_gemm_kernels(a->dy.dtype)->type),
		0);
	return a->dy.rows <= l.chunk;
}

void cpu_wgrad_take_dy(struct replica *r, const struct cpu_wgrad *a, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
	struct job job = job_start(r, a);
	job.rows = a->dy.rows;
	for (int64_t step = row / PANEL; step < parts(row + rows, PANEL); step++)
		pack_dy(&job, step, column, columns);
}

void cpu_wgrad(struct replica *r, const struct cpu_wgrad *a)
{
	struct pool *pool = r->backend->pool;
	BUG_IF(a->x.dtype != a->dy.dtype || a->x.rows != a->dy.rows);
	if (a->dy.rows == 0 && a->overwrite) {
		memset(a->dw, 0, (size_t)(a->dy.columns * a->x.columns) * sizeof(float));
		if (a->column_sums)
			memset(a->column_sums, 0, (size_t)a->dy.columns * sizeof(float));
	}
	if (a->dy.rows == 0)
		return;
	struct job job = job_start(r, a);
	int64_t tasks = choose_rectangles(&job, pool_threads(pool));
	for (; job.first < a->dy.rows; job.first += job.layout.chunk) {
		job.rows = smaller(a->dy.rows - job.first, job.layout.chunk);
		job.overwrite = a->overwrite && job.first == 0;
		pool_run(pool, parts(job.rows, PANEL), pack_task, &job);
		pool_run(pool, tasks, multiply_task, &job);
		if (a->column_sums)
			finish_column_sums(&job);
	}
}
