/* The forward operations of inference on the CPU: how rows and panels are divided among threads, and what follows a product.
 * */
#include "backend/cpu/inference.h"

#include <math.h>
#include <string.h>
#include "backend/cpu/attention.h"
#include "base/numbers.h"

enum {
	/* Rows per task where rows are divided among tasks, before they are rounded up to whole tiles: their sums and results
	 * stay in the second-level cache. */
	TASK_ROWS = 120,
	LEAST_TASK_ROWS = 40, /* with fewer, a panel is read too often for the work done with it */
	TASKS = 4,            /* per thread, so that threads finish at about the same time */
	PASS_ROWS = 64,       /* maximum rows per task of a pass over rows */
};

static const struct cpu_kernels *kernels_of(const struct replica *r)
{
	return cpu_state(r)->kernels;
}

static const struct inference_scratch *scratch_of(const struct replica *r)
{
	return &cpu_scratch(r)->inference;
}

/* A vector, or a table in the type of activations. */
static const void *vector_of(const struct weight *weight)
{
	return weight ? packed(weight)->rows : NULL;
}

/* ---- int8 rows ---- */

/* Quantizes rows [first, first + rows) of x to int8 rows at `out`, which is where row 0 belongs. */
static void quantize_rows(const struct tensor *x, void *out, int64_t first, int64_t rows)
{
	const struct inference_kernels *kernels = inference_kernels();
	int64_t row_bytes = int8_row_bytes(kernels, x->columns);
	kernels->quantize(tensor_at(x, first, 0), x->dtype, rows, x->columns, (char *)out + first * row_bytes, row_bytes);
}

struct quantize_call {
	const struct tensor *x;
	void *out;
	int64_t rows; /* per task */
};

static void quantize_task(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct quantize_call *call = context;
	int64_t first = index * call->rows;
	quantize_rows(call->x, call->out, first, smaller(call->rows, call->x->rows - first));
}

/* Rows per task of a pass over all rows. */
static int64_t pass_rows(const struct replica *r, int64_t rows)
{
	int64_t tasks = TASKS * (int64_t)pool_threads(r->backend->pool);
	return larger(1, smaller(PASS_ROWS, (rows + tasks - 1) / tasks));
}

static void quantize_all(const struct replica *r, const struct tensor *x, void *out)
{
	struct quantize_call call = {x, out, pass_rows(r, x->rows)};
	pool_run(r->backend->pool, (x->rows + call.rows - 1) / call.rows, quantize_task, &call);
}

static size_t inference_twin_bytes(struct backend *be, int64_t rows, int64_t columns, bool gradient)
{
	(void)be;
	BUG_IF(gradient);
	return (size_t)(rows * int8_row_bytes(inference_kernels(), columns));
}

struct product_rows inference_rows(struct replica *r, const struct packed_weight *weight, const struct tensor *x)
{
	struct product_rows rows = {.x = x->data, .row_bytes = x->columns * (int64_t)dtype_bytes(x->dtype), .rows = x->rows};
	if (weight->dtype != DTYPE_S8)
		return rows;
	rows.row_bytes = int8_row_bytes(inference_kernels(), x->columns);
	rows.x = x->twin;
	if (!x->twin) {
		BUG_IF(x->rows * rows.row_bytes > scratch_of(r)->operand_bytes);
		quantize_all(r, x, scratch_of(r)->operand);
		rows.x = scratch_of(r)->operand;
	}
	return rows;
}

/* ---- products ---- */

static void multiply_panel(const struct packed_weight *w, const struct product_rows *x, int64_t first_row, int64_t rows,
			   int64_t panel, float *y, int64_t y_row, struct product_end end)
{
	const struct inference_kernels *kernels = inference_kernels();
	struct inference_product product = {
		.rows = rows,
		.inputs = w->inputs,
		.x = (const char *)x->x + first_row * x->row_bytes,
		.x_row = x->row_bytes,
		.panel = w->panels + panel * w->panel_bytes,
		.next = (panel + 1) * kernels->panel < w->outputs ? w->panels + (panel + 1) * w->panel_bytes : NULL,
		.y = y,
		.y_row = y_row,
		.end = end,
	};
	if (w->dtype == DTYPE_S8) {
		product.x = (const char *)product.x + INT8_ROW_HEADER;
		product.scales = w->scales + panel * kernels->panel;
		product.sums = w->sums + panel * kernels->panel;
		kernels->multiply_s8(&product);
	} else if (w->dtype == DTYPE_BF16) {
		kernels->multiply_bf16(&product);
	} else {
		kernels->multiply_f32(&product);
	}
}

void inference_multiply(const struct packed_weight *w, const struct product_rows *x, int64_t first_row, int64_t rows,
			int64_t panel, float *y, int64_t y_row)
{
	multiply_panel(w, x, first_row, rows, panel, y, y_row, (struct product_end){NULL, NULL});
}

/* How a product is divided. */
struct cut {
	int64_t rows, panels;           /* per task */
	int64_t row_tasks, panel_tasks; /* numbers of tasks along each dimension */
};

/* Whether there are enough rows to keep all threads busy with whole rows. */
static bool has_many_rows(const struct replica *r, int64_t rows)
{
	return rows >= 2 * LEAST_TASK_ROWS * (int64_t)pool_threads(r->backend->pool);
}

static int64_t whole_tiles(int64_t rows)
{
	return round_up(rows, inference_kernels()->tile_rows);
}

/* A task takes all panels of some rows. */
static struct cut cut_rows(const struct replica *r, int64_t rows, int64_t panels)
{
	int64_t tasks = TASKS * (int64_t)pool_threads(r->backend->pool);
	int64_t step = smaller(whole_tiles(TASK_ROWS), whole_tiles(larger((rows + tasks - 1) / tasks, LEAST_TASK_ROWS)));
	return (struct cut){.rows = step, .panels = panels, .row_tasks = (rows + step - 1) / step, .panel_tasks = 1};
}

/* A task takes some panels; of all rows, if there are few. */
static struct cut cut_panels(const struct replica *r, int64_t rows, int64_t panels)
{
	int64_t tasks = TASKS * (int64_t)pool_threads(r->backend->pool);
	struct cut cut = {.row_tasks = (rows + whole_tiles(TASK_ROWS) - 1) / whole_tiles(TASK_ROWS)};
	cut.rows = whole_tiles((rows + cut.row_tasks - 1) / cut.row_tasks);
	cut.panel_tasks = smaller(panels, (tasks + cut.row_tasks - 1) / cut.row_tasks);
	cut.panels = (panels + cut.panel_tasks - 1) / cut.panel_tasks;
	cut.panel_tasks = (panels + cut.panels - 1) / cut.panels;
	return cut;
}

static int64_t panels_of(const struct packed_weight *w)
{
	return (w->outputs + inference_kernels()->panel - 1) / inference_kernels()->panel;
}

/* A linear layer: what follows the product is applied to one panel of some rows at a time. */
struct linear_call {
	struct replica *r;
	const struct packed_weight *w;
	struct product_rows x;
	struct tensor y;
	struct cut cut;
	const float *bias;
	enum activation activation;
	bool past, whole_rows;
	void (*finish)(const struct linear_rows *rows);
};

/* One panel of a task's rows. */
struct linear_part {
	const struct linear_call *call;
	int64_t row, panel; /* of the first sums */
	float *sums;
};

static void finish_linear(const void *context, int64_t row, int64_t rows)
{
	const struct linear_part *part = context;
	const struct linear_call *call = part->call;
	int64_t width = inference_kernels()->panel, column = part->panel * width;
	call->finish(&(struct linear_rows){
		.rows = rows,
		.columns = smaller(width, call->y.columns - column),
		.stride = call->y.columns,
		.dtype = call->y.dtype,
		.activation = call->activation,
		.past = call->past,
		.x = part->sums + row * width,
		.x_row = width,
		.bias = call->bias ? call->bias + column : NULL,
		.y = tensor_at(&call->y, part->row + row, column),
	});
}

static void linear_task(void *context, int64_t index, int worker)
{
	const struct linear_call *call = context;
	int64_t panel = index / call->cut.row_tasks * call->cut.panels, width = inference_kernels()->panel;
	int64_t row = index % call->cut.row_tasks * call->cut.rows, rows = smaller(call->cut.rows, call->x.rows - row);
	int64_t end = smaller(panel + call->cut.panels, panels_of(call->w));
	float *sums = cpu_scratch(call->r)->tiles + worker * cpu_scratch(call->r)->tile_floats;
	for (; panel < end; panel++) {
		const struct linear_part part = {call, row, panel, sums};
		multiply_panel(call->w, &call->x, row, rows, panel, sums, width, (struct product_end){finish_linear, &part});
	}
	if (call->whole_rows)
		quantize_rows(&call->y, call->y.twin, row, rows);
}

static void linear_run(struct replica *r, struct linear_call *call, const struct weight *w, const struct weight *b,
		       const struct tensor *x)
{
	call->r = r;
	call->w = packed(w);
	call->bias = vector_of(b);
	call->x = inference_rows(r, call->w, x);
	if (x->rows == 0)
		return;
	/* int8 rows need whole rows; if a task has all panels, these are still in the cache. */
	call->whole_rows = call->y.twin && has_many_rows(r, x->rows);
	call->cut = call->whole_rows ? cut_rows(r, x->rows, panels_of(call->w)) : cut_panels(r, x->rows, panels_of(call->w));
	call->past = !call->y.twin && tensor_is_large(&call->y);
	pool_run(r->backend->pool, call->cut.row_tasks * call->cut.panel_tasks, linear_task, call);
	if (call->y.twin && !call->whole_rows)
		quantize_all(r, &call->y, call->y.twin);
}

static void inference_linear_fwd(struct replica *r, const struct linear_fwd *a)
{
	struct linear_call call = {.y = a->y, .activation = a->activation, .finish = kernels_of(r)->linear_fwd};
	linear_run(r, &call, a->w, a->b, &a->x);
}

static void inference_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a)
{
	struct linear_call call = {.y = a->y, .activation = a->activation, .finish = kernels_of(r)->gelu_fwd};
	BUG_IF(a->pre.data != NULL);
	linear_run(r, &call, a->w, a->b, &a->x);
}

static void inference_gated_fwd(struct replica *r, const struct gated_fwd *a)
{
	cpu_gated_fwd(r, a);
	if (a->y.twin)
		quantize_all(r, &a->y, a->y.twin);
}

/* ---- norms ---- */

struct norm_call {
	struct replica *r;
	const struct linear_norm_fwd *a;
	const struct packed_weight *w;
	struct product_rows x;
	struct cut cut;
	int64_t columns; /* floats per row of sums: whole panels */
};

/* Norms of rows [row, row + rows), whose sums begin at `sums` (NULL without a product). */
static void norm_rows(const struct norm_call *call, const float *sums, int64_t row, int64_t rows, int worker)
{
	const struct linear_norm_fwd *a = call->a;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	struct norm_rows norm = {
		.rows = rows,
		.columns = a->y.columns,
		.dtype = a->y.dtype,
		.residual = tensor_at(&a->residual, row, 0),
		.gamma = vector_of(a->gamma),
		.beta = vector_of(a->beta),
		.epsilon = (float)a->epsilon,
		.row = scratch->rows + worker * scratch->row_floats,
		.sum = tensor_at(&a->sum, row, 0),
		.mean = a->sum.data ? (float *)a->mean.data + row : NULL,
		.rstd = a->sum.data ? (float *)a->rstd.data + row : NULL,
		.y = tensor_at(&a->y, row, 0),
	};
	if (sums) {
		norm.product = (struct tiles){.data = sums, .width = a->y.columns, .row = call->columns};
		norm.bias = vector_of(a->b);
	} else {
		norm.x = tensor_at(&a->x, row, 0);
	}
	kernels_of(call->r)->norm_fwd(&norm);
	if (a->y.twin)
		quantize_rows(&a->y, a->y.twin, row, rows);
}

/* Product and then norms of some rows. */
static void rows_task(void *context, int64_t index, int worker)
{
	const struct norm_call *call = context;
	int64_t row = index * call->cut.rows, rows = smaller(call->cut.rows, call->x.rows - row);
	float *sums = cpu_scratch(call->r)->tiles + worker * cpu_scratch(call->r)->tile_floats;
	for (int64_t panel = 0; panel < panels_of(call->w); panel++)
		inference_multiply(call->w, &call->x, row, rows, panel, sums + panel * inference_kernels()->panel, call->columns);
	norm_rows(call, sums, row, rows, worker);
}

/* Products of some panels; the norms are a second pass. */
static void panels_task(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct norm_call *call = context;
	int64_t panel = index / call->cut.row_tasks * call->cut.panels,
		end = smaller(panel + call->cut.panels, panels_of(call->w));
	int64_t row = index % call->cut.row_tasks * call->cut.rows, rows = smaller(call->cut.rows, call->x.rows - row);
	float *sums = scratch_of(call->r)->sums + row * call->columns;
	for (; panel < end; panel++)
		inference_multiply(call->w, &call->x, row, rows, panel, sums + panel * inference_kernels()->panel, call->columns);
}

static void norms_task(void *context, int64_t index, int worker)
{
	const struct norm_call *call = context;
	int64_t step = pass_rows(call->r, call->a->y.rows), row = index * step;
	norm_rows(call, call->a->w ? scratch_of(call->r)->sums + row * call->columns : NULL, row,
		  smaller(step, call->a->y.rows - row), worker);
}

static void inference_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a)
{
	struct norm_call call = {.r = r, .a = a, .columns = round_up(a->y.columns, inference_kernels()->panel)};
	struct pool *pool = r->backend->pool;
	int64_t rows = a->y.rows, step = pass_rows(r, rows);
	BUG_IF(a->dropout.p > 0);
	if (rows == 0)
		return;
	if (a->w) {
		call.w = packed(a->w);
		call.x = inference_rows(r, call.w, &a->x);
		if (has_many_rows(r, rows)) {
			call.cut = cut_rows(r, rows, panels_of(call.w));
			BUG_IF(call.cut.rows * call.columns > cpu_scratch(r)->tile_floats);
			pool_run(pool, call.cut.row_tasks, rows_task, &call);
			return;
		}
		call.cut = cut_panels(r, rows, panels_of(call.w));
		BUG_IF(rows * call.columns > scratch_of(r)->sum_floats);
		pool_run(pool, call.cut.row_tasks * call.cut.panel_tasks, panels_task, &call);
	}
	pool_run(pool, (rows + step - 1) / step, norms_task, &call);
}

/* ---- embeddings and attention ---- */

struct embed_call {
	struct replica *r;
	const struct embed_fwd *a;
	int64_t rows; /* per task */
};

static void embed_task(void *context, int64_t index, int worker)
{
	const struct embed_call *call = context;
	const struct embed_fwd *a = call->a;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t row = index * call->rows, rows = smaller(call->rows, a->y.rows - row);
	kernels_of(call->r)->embed_fwd(&(struct embed_rows){
		.rows = rows,
		.columns = a->y.columns,
		.dtype = a->y.dtype,
		.tables = call->r->backend->dtype,
		.ids = a->batch->ids + row,
		.positions = a->batch->positions + row,
		.types = a->batch->types + row,
		.word = packed(a->word)->rows,
		.position = a->position
				    ? (const char *)packed(a->position)->rows + (size_t)(a->position->first_row * a->y.columns) *
											dtype_bytes(call->r->backend->dtype)
				    : NULL,
		.type = vector_of(a->type),
		.gamma = vector_of(a->gamma),
		.beta = vector_of(a->beta),
		.epsilon = (float)a->epsilon,
		.row = scratch->rows + worker * scratch->row_floats,
		.sum = tensor_at(&a->sum, row, 0),
		.mean = a->sum.data ? (float *)a->mean.data + row : NULL,
		.rstd = a->sum.data ? (float *)a->rstd.data + row : NULL,
		.y = tensor_at(&a->y, row, 0),
	});
	if (a->y.twin)
		quantize_rows(&a->y, a->y.twin, row, rows);
}

static void inference_embed_fwd(struct replica *r, const struct embed_fwd *a)
{
	struct embed_call call = {r, a, pass_rows(r, a->y.rows)};
	BUG_IF(a->dropout.p > 0);
	pool_run(r->backend->pool, (a->y.rows + call.rows - 1) / call.rows, embed_task, &call);
}

struct attention_call {
	struct replica *r;
	const struct attention_fwd *a;
	int64_t heads, groups; /* heads per task; groups per sequence */
};

/* The kernel knows no window: it takes what fits into one. */
static bool is_short(const struct attention_fwd *a, int64_t length)
{
	return length <= ATTENTION_LENGTH && (a->window == 0 || length <= a->window + 1);
}

static void attention_task(void *context, int64_t index, int worker)
{
	const struct attention_call *call = context;
	const struct attention_fwd *a = call->a;
	int64_t sequence = index / call->groups, head = index % call->groups * call->heads,
		end = smaller(head + call->heads, a->heads);
	int64_t first = a->batch->starts[sequence], length = a->batch->starts[sequence + 1] - first;
	int64_t hidden = a->y.columns, size = hidden / a->heads;
	if (!is_short(a, length))
		return;
	for (; head < end; head++) {
		const uint16_t *qkv = tensor_at(&a->qkv, first, head * size);
		inference_kernels()->attend(&(struct inference_attention){
			.length = length,
			.size = size,
			.query = qkv,
			.key = qkv + hidden,
			.value = qkv + 2 * hidden,
			.row = a->qkv.columns,
			.scale = (float)(1 / sqrt((double)size)),
			.has_next = head + 1 < end,
			.scratch = scratch_of(call->r)->attention + worker * ATTENTION_BYTES,
			.y = tensor_at(&a->y, first, head * size),
			.y_row = a->y.columns,
		});
	}
	if (a->y.twin && call->groups == 1)
		quantize_rows(&a->y, a->y.twin, first, length);
}

/* bf16 heads of the usual sizes have a kernel for sequences of up to ATTENTION_LENGTH tokens. Which kernel a sequence gets
 * depends on that sequence alone. */
static bool has_kernel(const struct attention_fwd *a)
{
	int64_t size = a->y.columns / a->heads;
	return inference_kernels()->attend && a->y.dtype == DTYPE_BF16 && (size == 32 || size == 64) && a->lse.data == NULL;
}

static void inference_attention_fwd(struct replica *r, const struct attention_fwd *a)
{
	struct attention_call call = {.r = r, .a = a, .heads = a->heads, .groups = 1};
	bool all_short = is_short(a, a->batch->longest);
	BUG_IF(a->dropout.p > 0);
	if (!has_kernel(a) || !all_short)
		cpu_attention_fwd(r, a);
	if (has_kernel(a)) {
		while (call.heads > 1 &&
		       a->batch->sequence_count * call.groups < TASKS * (int64_t)pool_threads(r->backend->pool)) {
			call.heads = (call.heads + 1) / 2;
			call.groups = (a->heads + call.heads - 1) / call.heads;
		}
		pool_run(r->backend->pool, a->batch->sequence_count * call.groups, attention_task, &call);
	}
	if (a->y.twin && !(has_kernel(a) && all_short && call.groups == 1))
		quantize_all(r, &a->y, a->y.twin);
}

/* ---- the back end ---- */

void inference_lay_out(struct backend *be, const struct shape_limits *l, struct inference_scratch *s, struct arena *arena)
{
	const struct inference_kernels *kernels = inference_kernels();
	int64_t threads = pool_threads(be->pool), columns = round_up(widest_norm(l), kernels->panel);
	int64_t rows = larger(l->batch.tokens, larger(l->batch.sequences, most_labels(&l->batch)));
	int64_t widest = larger(3 * (int64_t)widest_norm(l), l->intermediate);
	*s = (struct inference_scratch){
		.sum_floats = smaller(rows, 2 * LEAST_TASK_ROWS * threads) * columns,
		.operand_bytes = be->int8 ? rows * int8_row_bytes(kernels, widest) : 0,
	};
	s->sums = arena_take(arena, (size_t)s->sum_floats * sizeof(float));
	s->operand = arena_take(arena, (size_t)s->operand_bytes);
	s->attention = arena_take(arena, (size_t)(threads * ATTENTION_BYTES));
	s->vocabulary.rows = smaller(larger(most_labels(&l->batch), 1), VOCABULARY_CHUNK);
	s->vocabulary.columns = round_up(l->vocab, kernels->panel);
	s->vocabulary.logits = arena_take(arena, (size_t)(s->vocabulary.rows * s->vocabulary.columns) * sizeof(float));
}

void inference_use(struct operations *operations, struct backend_functions *functions)
{
	operations->embed_fwd = inference_embed_fwd;
	operations->linear_fwd = inference_linear_fwd;
	operations->linear_gelu_fwd = inference_linear_gelu_fwd;
	operations->gated_fwd = inference_gated_fwd;
	operations->linear_norm_fwd = inference_linear_norm_fwd;
	operations->attention_fwd = inference_attention_fwd;
	operations->vocab_xent = inference_vocab_xent;
	operations->vocab_topk = inference_vocab_topk;
	operations->vocab_max_fwd = inference_vocab_max_fwd;
	functions->weight_copy_bytes = inference_weight_bytes;
	functions->weights_refresh = inference_weights_refresh;
	functions->weight_pack = inference_weight_pack;
	functions->twin_bytes = inference_twin_bytes;
	functions->gemm_rate = inference_gemm_rate;
}
