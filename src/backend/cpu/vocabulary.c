/* The output layer over the vocabulary with softmax cross entropy, its most probable entries, and the largest of each
 * sequence.
 *
 * Predictions are processed in chunks of at most VOCABULARY_ROWS rows. For each chunk:
 *   1. logits, one tile (some slices of rows, one block of the vocabulary) per task, with each row's largest logit and sum of
 *   exp within the tile;
 *   2. row by row, the log-sum-exp over all blocks, the loss, and the factor of dlogits;
 *   3. dlogits, tile by tile;
 *   4. dx: for some slices and a tile of columns, the products of all blocks, summed in order;
 *   5. the table's gradient, one block of the vocabulary at a time. */
#include <math.h>
#include <string.h>
#include "backend/cpu/state.h"
#include "backend/cpu/weights.h"
#include "backend/cpu/wgrad.h"

struct vocabulary_call {
	struct replica *r;
	int head;
	const struct weight *table, *bias;
	struct tensor x; /* rows of the chunk */
	struct tensor dx;
	const int32_t *labels; /* from the chunk's first row on */
	const float *weights;
	bool bare;           /* logits without bias and statistics */
	bool keep_logits;    /* false: one tile per worker, for the statistics only */
	int64_t task_slices; /* per product */
};

/* Our own products work best on several slices at a time, if that leaves enough tasks: there are `tiles` of them per run of
 * slices. */
static void choose_slices(struct vocabulary_call *call, int64_t tiles)
{
	enum { MOST = 3, TASKS = 2 };
	int64_t slices = slice_count(call->x.rows), threads = pool_threads(call->r->backend->pool);
	const struct gemm_kernels *own = weight_copy(call->table)->forward.own;
	int64_t most = own ? gemm_rows_best(own, call->x.columns) / ROW_MULTIPLE : 1;
	call->task_slices = most < MOST ? most : MOST;
	while (call->task_slices > 1 && (slices + call->task_slices - 1) / call->task_slices * tiles < TASKS * threads)
		call->task_slices--;
}

static int64_t slice_runs(const struct vocabulary_call *call)
{
	return (slice_count(call->x.rows) + call->task_slices - 1) / call->task_slices;
}

/* Rows of a run of slices, rounded up to whole slices. */
static int64_t run_rows(const struct vocabulary_call *call, int64_t run)
{
	int64_t left = slice_count(call->x.rows) - run * call->task_slices;
	return (left < call->task_slices ? left : call->task_slices) * ROW_MULTIPLE;
}

static int64_t blocks_of(const struct vocabulary_call *call)
{
	return weight_copy(call->table)->forward.n_blocks;
}

static int64_t block_columns(const struct vocabulary_call *call, int64_t block)
{
	return packing_width(&weight_copy(call->table)->forward, block);
}

/* Offset in elements of row `row` of a block's logits or dlogits, whose rows are dense. */
static int64_t block_offset(const struct vocabulary_call *call, int64_t block, int64_t row)
{
	return block * VOCABULARY_BLOCK * cpu_scratch(call->r)->vocabulary.rows + row * block_columns(call, block);
}

/* Statistics of one slice's logits, with the bias added. */
static void finish_logits(const struct vocabulary_call *call, int64_t slice, int64_t block, float *tile)
{
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t row = slice * ROW_MULTIPLE, statistic = block * scratch->vocabulary.rows + row;
	cpu_state(call->r)->kernels->softmax_fwd(&(struct softmax_rows){
		.rows = slice_rows(call->x.rows, slice),
		.columns = block_columns(call, block),
		.logits = tile,
		.bias = (const float *)call->bias->master.data + block * VOCABULARY_BLOCK,
		.max = scratch->vocabulary.max + statistic,
		.sum = scratch->vocabulary.sum + statistic,
		.best = scratch->vocabulary.best + statistic,
	});
	for (int64_t i = 0; call->labels && i < slice_rows(call->x.rows, slice); i++) {
		int64_t label = call->labels[row + i] - block * VOCABULARY_BLOCK;
		if (label >= 0 && label < block_columns(call, block))
			scratch->vocabulary.label_logit[row + i] = tile[i * block_columns(call, block) + label];
	}
}

static void logits_task(void *context, int64_t index, int worker)
{
	const struct vocabulary_call *call = context;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t run = index % slice_runs(call), block = index / slice_runs(call), rows = run_rows(call, run);
	int64_t slice = run * call->task_slices, columns = block_columns(call, block);
	float *tile = call->keep_logits ? scratch->vocabulary.logits + block_offset(call, block, slice * ROW_MULTIPLE)
					: scratch->tiles + worker * scratch->tile_floats;
	packing_multiply(&weight_copy(call->table)->forward, 0, block, false, tensor_at(&call->x, slice * ROW_MULTIPLE, 0), rows,
			 tile, cpu_blocks(call->r, worker), worker);
	for (int64_t i = 0; i < rows / ROW_MULTIPLE && !call->bare; i++)
		finish_logits(call, slice + i, block, tile + i * ROW_MULTIPLE * columns);
}

static void compute_logits(struct vocabulary_call *call)
{
	choose_slices(call, blocks_of(call));
	pool_run(call->r->backend->pool, slice_runs(call) * blocks_of(call), logits_task, call);
}

/* Log-sum-exp over all blocks; *out_best: index of the largest logit, lowest index on ties. */
static double row_lse(const struct vocabulary_call *call, int64_t row, int32_t *out_best)
{
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t rows = scratch->vocabulary.rows, best_block = 0;
	const float *max = scratch->vocabulary.max + row, *sum = scratch->vocabulary.sum + row;
	for (int64_t block = 1; block < blocks_of(call); block++)
		if (max[block * rows] > max[best_block * rows])
			best_block = block;
	double largest = max[best_block * rows], total = 0;
	for (int64_t block = 0; block < blocks_of(call); block++)
		total += sum[block * rows] * exp(max[block * rows] - largest);
	*out_best = (int32_t)(best_block * VOCABULARY_BLOCK) + scratch->vocabulary.best[best_block * rows + row];
	return largest + log(total);
}

static void row_losses(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct vocabulary_call *call = context;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	const struct scalars *s = call->r->scalars;
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(call->x.rows, slice);
	for (int64_t i = first; i < end; i++) {
		float weight = call->weights[i];
		scratch->vocabulary.loss[i] = scratch->vocabulary.correct[i] = 0;
		scratch->vocabulary.lse[i] = scratch->vocabulary.factor[i] = 0;
		if (weight == 0)
			continue;
		BUG_IF(call->labels[i] < 0 || call->labels[i] >= call->table->master.rows);
		int32_t best;
		double lse = row_lse(call, i, &best);
		scratch->vocabulary.lse[i] = (float)lse;
		scratch->vocabulary.factor[i] = (float)(weight * s->inverse_weight[call->head] * s->loss_scale);
		scratch->vocabulary.loss[i] = weight * (lse - (double)scratch->vocabulary.label_logit[i]);
		scratch->vocabulary.correct[i] = best == call->labels[i] ? weight : 0;
	}
}

static void dlogits_tile(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct vocabulary_call *call = context;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t slices = slice_count(call->x.rows), slice = index % slices, block = index / slices;
	int64_t row = slice * ROW_MULTIPLE, offset = block_offset(call, block, row), rows = slice_rows(call->x.rows, slice);
	int32_t labels[ROW_MULTIPLE];
	for (int64_t i = 0; i < rows; i++)
		labels[i] = call->labels[row + i] - (int32_t)(block * VOCABULARY_BLOCK);
	cpu_state(call->r)->kernels->softmax_bwd(&(struct softmax_bwd_rows){
		.rows = rows,
		.columns = block_columns(call, block),
		.dtype = call->x.dtype,
		.logits = scratch->vocabulary.logits + offset,
		.lse = scratch->vocabulary.lse + row,
		.factor = scratch->vocabulary.factor + row,
		.labels = labels,
		.dlogits = (char *)scratch->vocabulary.dlogits + offset * (int64_t)dtype_bytes(call->x.dtype),
	});
}

static void dx_task(void *context, int64_t index, int worker)
{
	const struct vocabulary_call *call = context;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	const struct packing *p = &weight_copy(call->table)->dgrad;
	int64_t run = index % slice_runs(call), j = index / slice_runs(call);
	int64_t row = run * call->task_slices * ROW_MULTIPLE, rows = run_rows(call, run), left = call->x.rows - row;
	float *tile = scratch->tiles + worker * scratch->tile_floats;
	for (int64_t block = 0; block < p->k_blocks; block++) {
		int64_t offset = block_offset(call, block, row) * (int64_t)dtype_bytes(call->x.dtype);
		packing_multiply(p, block, j, block > 0, (const char *)scratch->vocabulary.dlogits + offset, rows, tile,
				 cpu_blocks(call->r, worker), worker);
	}
	cpu_state(call->r)->kernels->linear_fwd(&(struct linear_rows){
		.rows = left < rows ? left : rows,
		.columns = packing_width(p, j),
		.stride = call->dx.columns,
		.dtype = call->dx.dtype,
		.x = tile,
		.x_row = packing_width(p, j),
		.y = tensor_at(&call->dx, row, j * p->n_width),
	});
}

static void compute_dx(struct vocabulary_call *call)
{
	int64_t tiles = weight_copy(call->table)->dgrad.n_blocks;
	choose_slices(call, tiles);
	pool_run(call->r->backend->pool, slice_runs(call) * tiles, dx_task, call);
}

static void table_gradient(const struct vocabulary_call *call, bool overwrite)
{
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	for (int64_t block = 0; block < blocks_of(call); block++) {
		int64_t first = block * VOCABULARY_BLOCK;
		struct tensor dlogits = {.data = (char *)scratch->vocabulary.dlogits +
						 block_offset(call, block, 0) * (int64_t)dtype_bytes(call->x.dtype),
					 .dtype = call->x.dtype,
					 .rows = call->x.rows,
					 .columns = block_columns(call, block)};
		struct cpu_wgrad wgrad = {
			.dy = dlogits,
			.x = call->x,
			.dw = (float *)call->table->gradient.data + first * call->x.columns,
			.column_sums = (float *)call->bias->gradient.data + first,
			.overwrite = overwrite,
		};
		wgrad.has_x = block > 0 && dlogits.columns == VOCABULARY_BLOCK && cpu_wgrad_takes_dy(&wgrad);
		cpu_wgrad(call->r, &wgrad);
	}
}

static struct tensor rows_from(struct tensor t, int64_t first, int64_t rows)
{
	t.data = tensor_at(&t, first, 0);
	t.rows = rows;
	return t;
}

void cpu_vocab_xent(struct replica *r, const struct vocab_xent *a)
{
	const struct cpu_scratch *scratch = cpu_scratch(r);
	struct pool *pool = r->backend->pool;
	double loss = 0, correct = 0;
	if (a->training && a->overwrite && a->x.rows == 0) {
		cpu_zero(r, a->table->gradient.data, (size_t)(a->table->master.rows * a->x.columns) * sizeof(float));
		cpu_zero(r, a->bias->gradient.data, (size_t)a->table->master.rows * sizeof(float));
	}
	for (int64_t first = 0; first < a->x.rows; first += scratch->vocabulary.rows) {
		int64_t left = a->x.rows - first;
		int64_t rows = left < scratch->vocabulary.rows ? left : scratch->vocabulary.rows;
		struct vocabulary_call call = {
			.head = a->head,
			.r = r,
			.table = a->table,
			.bias = a->bias,
			.x = rows_from(a->x, first, rows),
			.dx = a->training ? rows_from(a->dx, first, rows) : a->dx,
			.labels = a->labels + first,
			.weights = a->weights + first,
			.keep_logits = a->training,
		};
		int64_t slices = slice_count(rows);
		compute_logits(&call);
		pool_run(pool, slices, row_losses, &call);
		for (int64_t i = 0; i < rows; i++) {
			loss += scratch->vocabulary.loss[i];
			if (a->losses)
				a->losses[first + i] = scratch->vocabulary.loss[i];
			correct += scratch->vocabulary.correct[i];
		}
		if (!a->training)
			continue;
		pool_run(pool, slices * blocks_of(&call), dlogits_tile, &call);
		compute_dx(&call);
		table_gradient(&call, a->overwrite && first == 0);
	}
	*a->loss += loss;
	*a->correct += correct;
}

struct topk_call {
	struct vocabulary_call logits;
	int32_t k;
	int32_t *ids;
	double *probabilities;
};

/* Inserts each logit into the k best so far; ids come in ascending order, so an equal logit goes after earlier ones. */
static void topk_slice(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct topk_call *call = context;
	const struct cpu_scratch *scratch = cpu_scratch(call->logits.r);
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(call->logits.x.rows, slice);
	for (int64_t i = first; i < end; i++) {
		int32_t best, *ids = call->ids + i * call->k, count = 0;
		double lse = row_lse(&call->logits, i, &best), *values = call->probabilities + i * call->k;
		for (int64_t block = 0; block < blocks_of(&call->logits); block++) {
			const float *logits = scratch->vocabulary.logits + block_offset(&call->logits, block, i);
			for (int64_t c = 0; c < block_columns(&call->logits, block); c++) {
				if (count == call->k && !((double)logits[c] > values[count - 1]))
					continue;
				int32_t at = count < call->k ? count++ : count - 1;
				for (; at > 0 && (double)logits[c] > values[at - 1]; at--) {
					values[at] = values[at - 1];
					ids[at] = ids[at - 1];
				}
				values[at] = (double)logits[c];
				ids[at] = (int32_t)(block * VOCABULARY_BLOCK + c);
			}
		}
		for (int32_t j = 0; j < count; j++)
			values[j] = exp(values[j] - lse);
	}
}

void cpu_vocab_topk(struct replica *r, const struct vocab_topk *a)
{
	const struct cpu_scratch *scratch = cpu_scratch(r);
	for (int64_t first = 0; first < a->x.rows; first += scratch->vocabulary.rows) {
		int64_t left = a->x.rows - first;
		int64_t rows = left < scratch->vocabulary.rows ? left : scratch->vocabulary.rows;
		struct topk_call call = {
			.logits = {.r = r,
				   .table = a->table,
				   .bias = a->bias,
				   .x = rows_from(a->x, first, rows),
				   .keep_logits = true},
			.k = a->k,
			.ids = a->ids + first * a->k,
			.probabilities = a->probabilities + first * a->k,
		};
		compute_logits(&call.logits);
		pool_run(r->backend->pool, slice_count(rows), topk_slice, &call);
	}
}

/* ---- The largest logit of a sequence ---- */

void cpu_vocabulary_max(const struct vocab_max_fwd *a, const struct vocabulary_part *part)
{
	int64_t vocab = a->y.columns, last = part->first_row + part->rows;
	for (int32_t s = 0; s < a->batch->sequence_count; s++) {
		int64_t begin = a->batch->starts[s], end = a->batch->starts[s + 1];
		float *most = (float *)a->y.data + s * vocab + part->first_column;
		int32_t *rows = a->rows ? a->rows + s * vocab + part->first_column : NULL;
		for (int64_t t = begin > part->first_row ? begin : part->first_row; t < end && t < last; t++) {
			const float *logits = part->logits + (t - part->first_row) * part->stride;
			for (int64_t c = 0; c < part->columns; c++) {
				float logit = logits[c] + part->bias[c];
				if (!(logit > most[c]) && logit == logit)
					continue;
				most[c] = logit;
				if (rows)
					rows[c] = (int32_t)t;
			}
		}
		/* The logarithm follows in the part that has the sequence's last row. */
		for (int64_t c = 0; end > part->first_row && end <= last && end > begin && c < part->columns; c++)
			most[c] = log1pf(most[c]);
	}
}

void cpu_vocabulary_max_start(struct replica *r, const struct vocab_max_fwd *a)
{
	cpu_zero(r, a->y.data, (size_t)(a->y.rows * a->y.columns) * sizeof(float));
	for (int64_t i = 0; a->rows && i < a->y.rows * a->y.columns; i++)
		a->rows[i] = -1;
}

struct max_call {
	struct vocabulary_call logits;
	const struct vocab_max_fwd *arguments;
	int64_t first;
};

static void max_block(void *context, int64_t block, int worker)
{
	(void)worker;
	const struct max_call *call = context;
	const struct vocabulary_call *logits = &call->logits;
	cpu_vocabulary_max(call->arguments,
			   &(struct vocabulary_part){
				   .first_row = call->first,
				   .rows = logits->x.rows,
				   .first_column = block * VOCABULARY_BLOCK,
				   .columns = block_columns(logits, block),
				   .logits = cpu_scratch(logits->r)->vocabulary.logits + block_offset(logits, block, 0),
				   .stride = block_columns(logits, block),
				   .bias = (const float *)logits->bias->master.data + block * VOCABULARY_BLOCK,
			   });
}

void cpu_vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a)
{
	int64_t chunk = cpu_scratch(r)->vocabulary.rows;
	cpu_vocabulary_max_start(r, a);
	for (int64_t first = 0; first < a->x.rows; first += chunk) {
		struct max_call call = {
			.logits = {.r = r,
				   .table = a->table,
				   .bias = a->bias,
				   .x = rows_from(a->x, first, a->x.rows - first < chunk ? a->x.rows - first : chunk),
				   .bare = true,
				   .keep_logits = true},
			.arguments = a,
			.first = first,
		};
		compute_logits(&call.logits);
		pool_run(r->backend->pool, blocks_of(&call.logits), max_block, &call);
	}
}

struct max_bwd_call {
	struct replica *r;
	const struct vocab_max_bwd *arguments;
};

/* The gradient of a word's logit in the row that has the sequence's largest one; -1: no row. */
static int32_t max_gradient(const struct max_bwd_call *call, int64_t sequence, int64_t word, float *out)
{
	const struct vocab_max_bwd *a = call->arguments;
	int64_t i = sequence * a->y.columns + word;
	*out = ((const float *)a->dy.data)[i] * expf(-((const float *)a->y.data)[i]) * (float)call->r->scalars->loss_scale;
	return a->rows[i];
}

/* Gradients of one word's row and bias. */
static void max_word(void *context, int64_t word, int worker)
{
	(void)worker;
	const struct max_bwd_call *call = context;
	const struct vocab_max_bwd *a = call->arguments;
	float factor, *row = (float *)a->table->gradient.data + word * a->x.columns;
	float *bias = (float *)a->bias->gradient.data + word;
	if (a->overwrite) {
		memset(row, 0, (size_t)a->x.columns * sizeof *row);
		*bias = 0;
	}
	for (int64_t s = 0; s < a->batch->sequence_count; s++) {
		int32_t t = max_gradient(call, s, word, &factor);
		if (t < 0)
			continue;
		cpu_state(call->r)->kernels->add_scaled_row(row, factor, tensor_at(&a->x, t, 0), a->x.columns, a->x.dtype);
		*bias += factor;
	}
}

/* The gradients of a sequence's rows. */
static void max_sequence(void *context, int64_t s, int worker)
{
	const struct max_bwd_call *call = context;
	const struct vocab_max_bwd *a = call->arguments;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t width = a->dx.columns, vocab = a->y.columns;
	float factor, *sum = scratch->rows + worker * scratch->row_floats;
	for (int32_t t = a->batch->starts[s]; t < a->batch->starts[s + 1]; t++) {
		memset(sum, 0, (size_t)width * sizeof *sum);
		for (int64_t v = 0; v < vocab; v++)
			if (a->rows[s * vocab + v] == t && max_gradient(call, s, v, &factor) >= 0)
				cpu_state(call->r)->kernels->add_scaled_row(
					sum, factor, (const float *)a->table->master.data + v * width, width, DTYPE_F32);
		void *to = tensor_at(&a->dx, t, 0);
		for (int64_t j = 0; j < width && a->dx.dtype == DTYPE_BF16; j++)
			((uint16_t *)to)[j] = float_to_bf16(sum[j]);
		if (a->dx.dtype == DTYPE_F32)
			memcpy(to, sum, (size_t)width * sizeof *sum);
	}
}

void cpu_vocab_max_bwd(struct replica *r, const struct vocab_max_bwd *a)
{
	struct max_bwd_call call = {r, a};
	pool_run(r->backend->pool, a->y.columns, max_word, &call);
	pool_run(r->backend->pool, a->batch->sequence_count, max_sequence, &call);
}
