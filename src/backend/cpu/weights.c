/* Packs weights into blocks for the forward product and dgrad, and refreshes them after an update. */
#include "backend/cpu/weights.h"
#include "backend/cpu/fp8.h"

/* A block of this size stays in a core's second-level cache while the slices stream past it. */
#define BLOCK_BYTES (640 << 10)
#define LEAST_COLUMNS 128

/* Tiles of equal width, a multiple of the 64 columns that oneDNN packs together. */
static int64_t block_width(int64_t n, int64_t k, enum dtype dtype)
{
	int64_t most = BLOCK_BYTES / (k * (int64_t)dtype_bytes(dtype)) / 64 * 64;
	most = most < LEAST_COLUMNS ? LEAST_COLUMNS : most > TILE_COLUMNS ? TILE_COLUMNS : most;
	int64_t blocks = (n + most - 1) / most;
	int64_t width = round_up((n + blocks - 1) / blocks, 64);
	return width < n ? width : n;
}

static void packing_describe(struct packing *p, struct cpu_state *state, enum dtype dtype)
{
	const struct gemm_kernels *kernels = cpu_gemm_kernels(dtype);
	p->n_blocks = (p->n + p->n_width - 1) / p->n_width;
	p->k_blocks = (p->k + p->k_width - 1) / p->k_width;
	if (kernels->multiply_panel) {
		p->own = kernels;
		p->block_bytes =
			(size_t)(round_up(p->n_width, GEMM_BLOCK) * round_up(p->k_width, GEMM_BLOCK)) * dtype_bytes(dtype);
		return;
	}
	for (int last_k = 0; last_k < 2; last_k++) {
		for (int last_n = 0; last_n < 2; last_n++) {
			struct product_shape shape = {
				.n = last_n ? p->n - (p->n_blocks - 1) * p->n_width : p->n_width,
				.k = last_k ? p->k - (p->k_blocks - 1) * p->k_width : p->k_width,
				.dtype = dtype,
				.k_stride = p->k_stride,
				.n_stride = p->n_stride,
				.accumulates = p->k_blocks > 1,
			};
			p->products[last_k][last_n] = onednn_product(state->dnnl, &shape);
			size_t bytes = product_packed_bytes(p->products[last_k][last_n]);
			bytes = (size_t)round_up((int64_t)bytes, ARENA_ALIGNMENT);
			p->block_bytes = bytes > p->block_bytes ? bytes : p->block_bytes;
		}
	}
}

static size_t packing_bytes(const struct packing *p)
{
	return (size_t)(p->n_blocks * p->k_blocks) * p->block_bytes;
}

/* Lays out the copies of a weight (O,I) after the struct; returns the total in bytes. */
static size_t copy_describe(struct weight_copy *copy, struct cpu_state *state, enum dtype dtype, const struct weight *weight)
{
	int64_t outputs = weight->master.rows, inputs = weight->master.columns;
	bool is_vocabulary = weight->use == WEIGHT_TIED || weight->use == WEIGHT_OUTPUT;
	int64_t outputs_block = outputs < VOCABULARY_BLOCK ? outputs : VOCABULARY_BLOCK;
	/* Our own products stream through the whole weight. */
	bool whole = !is_vocabulary && cpu_gemm_kernels(dtype)->multiply_panel;
	*copy = (struct weight_copy){
		.forward = {.n = outputs,
			    .k = inputs,
			    .n_width = is_vocabulary ? outputs_block
				       : whole       ? outputs
						     : block_width(outputs, inputs, dtype),
			    .k_width = inputs,
			    .k_stride = 1,
			    .n_stride = inputs},
		.dgrad = {.n = inputs,
			  .k = outputs,
			  .n_width = whole ? inputs : block_width(inputs, is_vocabulary ? outputs_block : outputs, dtype),
			  .k_width = is_vocabulary ? outputs_block : outputs,
			  .k_stride = inputs,
			  .n_stride = 1},
	};
	packing_describe(&copy->forward, state, dtype);
	packing_describe(&copy->dgrad, state, dtype);
	size_t head = (size_t)round_up(sizeof *copy, ARENA_ALIGNMENT);
	size_t forward = packing_bytes(&copy->forward), dgrad = packing_bytes(&copy->dgrad);
	if (weight->copy) {
		copy->forward.data = (unsigned char *)weight->copy + head;
		copy->dgrad.data = copy->forward.data + forward;
	}
	return head + forward + dgrad;
}

static bool is_multiplied(const struct weight *weight)
{
	return weight->use != WEIGHT_VECTOR && weight->use != WEIGHT_TABLE;
}

static size_t master_elements(const struct weight *weight)
{
	return (size_t)(weight->master.rows * weight->master.columns);
}

size_t cpu_weight_copy_bytes(struct backend *be, const struct weight *weight)
{
	struct weight_copy copy;
	size_t bytes = is_multiplied(weight) ? copy_describe(&copy, be->state, be->dtype, weight) : 0;
	/* In FP8 the rounded master follows; the copies are packed from it. */
	return bytes + (weight_in_fp8(be, weight) ? master_elements(weight) * sizeof(float) : 0);
}

static int64_t block_depth(const struct packing *p, int64_t i)
{
	return i + 1 < p->k_blocks ? p->k_width : p->k - i * p->k_width;
}

static const struct product *product_of(const struct packing *p, int64_t i, int64_t j)
{
	return p->products[i == p->k_blocks - 1][j == p->n_blocks - 1];
}

static unsigned char *block_of(const struct packing *p, int64_t i, int64_t j)
{
	return (unsigned char *)(uintptr_t)packing_block(p, i, j);
}

/* The layout of block (i, j): see onednn.h. */
static struct product_layout layout_of(const struct packing *p, int64_t i, int64_t j)
{
	if (p->own)
		return (struct product_layout){.panel = 16, .k_padded = round_up(block_depth(p, i), GEMM_BLOCK)};
	return product_layout(product_of(p, i, j));
}

/* Maximum number of panels per block along n; 0 if the layout of any block is unknown. */
static int64_t panels_of_block(const struct packing *p)
{
	int64_t most = 0;
	for (int64_t i = p->k_blocks > 1 ? p->k_blocks - 2 : 0; i < p->k_blocks; i++) {
		for (int64_t j = p->n_blocks > 1 ? p->n_blocks - 2 : 0; j < p->n_blocks; j++) {
			int64_t panel = layout_of(p, i, j).panel;
			if (panel == 0)
				return 0;
			int64_t panels = (p->n_width + panel - 1) / panel;
			most = panels > most ? panels : most;
		}
	}
	return most;
}

struct refresh_call {
	const struct cpu_kernels *kernels;
	enum dtype dtype;
	const struct weight *weight;
};

/* Packs rows [first, first + rows) of the master, which are columns n of the forward copy and rows k of the dgrad copy: both
 * are packed while the rows are in the cache. The forward copy's panels determine how the rows are divided. */
static void refresh_panel(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct refresh_call *call = context;
	const struct weight_copy *copy = call->weight->copy;
	const struct packing *f = &copy->forward, *d = &copy->dgrad;
	int64_t most = panels_of_block(f), block = index / most, place = index % most;
	struct product_layout layout = layout_of(f, 0, block);
	int64_t width = packing_width(f, block), offset = place * layout.panel, first = block * f->n_width + offset;
	if (offset >= width)
		return;
	int64_t rows = width - offset < layout.panel ? width - offset : layout.panel;
	int64_t bytes = (int64_t)dtype_bytes(call->dtype);
	struct pack_piece piece = {.k = f->k,
				   .n = rows,
				   .k_stride = f->k_stride,
				   .n_stride = f->n_stride,
				   .k_padded = layout.k_padded,
				   .panel = layout.panel,
				   .panel_stride = layout.k_padded * layout.panel,
				   .pairs = call->dtype == DTYPE_BF16,
				   .master = (const float *)call->weight->master.data + first * f->k,
				   .packed = block_of(f, 0, block) + offset * layout.k_padded * bytes};
	call->kernels->pack(&piece);

	int64_t i = first / d->k_width, k = first % d->k_width;
	bool is_last = k + rows == block_depth(d, i);
	for (int64_t j = 0; j < d->n_blocks; j++) {
		layout = layout_of(d, i, j);
		piece = (struct pack_piece){.k = rows,
					    .n = packing_width(d, j),
					    .k_stride = d->k_stride,
					    .n_stride = d->n_stride,
					    .k_padded = is_last ? layout.k_padded - k : rows,
					    .panel = layout.panel,
					    .panel_stride = layout.k_padded * layout.panel,
					    .pairs = piece.pairs,
					    .master = (const float *)call->weight->master.data + first * d->n + j * d->n_width,
					    .packed = block_of(d, i, j) + k * layout.panel * bytes};
		call->kernels->pack(&piece);
	}
}

/* Packs one block of either copy, in whatever layout oneDNN uses. */
static void refresh_block(void *context, int64_t index, int worker)
{
	const struct refresh_call *call = context;
	const struct weight_copy *copy = call->weight->copy;
	const struct packing *p = &copy->forward;
	if (index >= p->n_blocks) {
		index -= p->n_blocks;
		p = &copy->dgrad;
	}
	int64_t i = index / p->n_blocks, j = index % p->n_blocks;
	const float *master = call->weight->master.data;
	product_pack(product_of(p, i, j), master + i * p->k_width * p->k_stride + j * p->n_width * p->n_stride, block_of(p, i, j),
		     worker);
}

void cpu_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count)
{
	struct backend *be = replica->backend;
	for (int64_t w = 0; w < count; w++) {
		if (!is_multiplied(weights[w]))
			continue;
		struct weight_copy *copy = weights[w]->copy;
		size_t bytes = copy_describe(copy, be->state, be->dtype, weights[w]);
		struct weight rounded = *weights[w];
		if (weight_in_fp8(be, weights[w])) {
			rounded.master.data = (unsigned char *)weights[w]->copy + bytes;
			cpu_fp8_round_master(replica, &weights[w]->master, rounded.master.data);
		}
		struct refresh_call call = {cpu_state(replica)->kernels, be->dtype, &rounded};
		const struct packing *f = &copy->forward, *d = &copy->dgrad;
		if (panels_of_block(f) > 0 && panels_of_block(d) > 0)
			pool_run(be->pool, f->n_blocks * panels_of_block(f), refresh_panel, &call);
		else
			pool_run(be->pool, f->n_blocks + d->n_blocks * d->k_blocks, refresh_block, &call);
	}
}

void packing_multiply(const struct packing *p, int64_t i, int64_t j, bool accumulate, const void *x, int64_t rows, float *tile,
		      void *blocks, int worker)
{
	if (p->own) {
		gemm_rows(&(struct row_product){.kernels = p->own,
						.x = x,
						.x_row = block_depth(p, i),
						.rows = rows,
						.k = block_depth(p, i),
						.n = packing_width(p, j),
						.packed = packing_block(p, i, j),
						.blocks = blocks,
						.accumulate = accumulate,
						.y = tile,
						.y_row = packing_width(p, j),
						.y_group = GEMM_GROUP});
		return;
	}
	BUG_IF(rows > ROW_MULTIPLE);
	product_run(product_of(p, i, j), accumulate, x, block_of(p, i, j), tile, worker);
}
