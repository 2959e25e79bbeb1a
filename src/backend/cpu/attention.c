/* Attention in blocks that stay in the caches, without ever storing a whole score matrix (FlashAttention: Dao et al. 2022;
 * FlashAttention-2: Dao 2023). Scores are stored transposed, with 32 queries side by side (kernels/attention_kernels.h):
 *
 *   forward    s' = k q'      p' = softmax(s')      y' += v' p'
 *   backward   s' = k q'      p' = exp(s' - lse)    dp' = v dy'      ds' = p' (dp' - delta)
 *              dv += p' dy    dk += ds' q           dq' += k' ds'
 *
 * A task handles some adjacent heads of one sequence; in forward, for a block of queries. A head's data lies in pieces of 128
 * bytes, which hardware prefetchers miss, so each head's kernels prefetch the data of the next head. How a sequence is divided
 * depends only on its length, so results do not depend on the number of threads.
 */
#include "backend/cpu/attention.h"

#include <math.h>
#include <string.h>
#include "backend/cpu/state.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/attention_kernels.h"
#include "backend/dropout.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/pool.h"

enum {
	STRIPE = ATTENTION_STRIPE,
	KEYS = 256, /* keys between two products with v: one stripe of their scores takes 32 KiB of L1 */
	KEY_BLOCKS = KEYS / STRIPE,
	FORWARD_QUERIES = 256, /* queries of a forward task, which share the packed k and v */
	FORWARD_STRIPES = FORWARD_QUERIES / STRIPE,
	BACKWARD_QUERIES = 128, /* queries between two products that add to dk and dv */
	BACKWARD_STRIPES = BACKWARD_QUERIES / STRIPE,
	WINDOW_KEYS = 128, /* instead of KEYS in backward with a window: fewer pairs that see nothing of each other */
	ROTARY_ROWS = 32,  /* per task */
};

static const struct attention_kernels *attention_kernels(enum dtype dtype)
{
	return dtype == DTYPE_BF16 ? cpu_level()->attention_bf16 : cpu_level()->attention_f32;
}

/* Shared by the tasks of one call. */
struct call {
	const struct gemm_kernels *gemm;
	const struct attention_kernels *kernels;
	const struct batch *batch;
	struct tensor qkv, y, lse, dy, dqkv;
	int64_t hidden, heads, window, size, depth; /* size: columns of a head; depth: number of 32-column blocks in a head */
	int64_t block;                              /* bytes of a block of operands */
	float scale, log2_scale;                    /* 1 / sqrt(size), and the same times log2(e) */
	float dropout_scale;
	struct attention_dropout dropout; /* the task sets sample and head */
	char *workspace;                  /* one part per worker */
	size_t worker_bytes;
	int64_t query_blocks; /* forward: of the longest sequence */
	int64_t task_heads;
	bool past;                 /* results are too large for the caches, and bypass them */
	const struct weight *bias; /* backward */
	bool overwrite;
	float *bias_parts; /* (sequences, 3H): column sums of dqkv, by head */
};

/* One head of one sequence. */
struct head {
	int64_t sequence, head, start, length;
	bool is_last; /* last of its task */
	struct attention_dropout dropout;
};

static struct head head_of(const struct call *c, int64_t sequence, int64_t head)
{
	struct head h = {.sequence = sequence, .head = head, .dropout = c->dropout};
	h.is_last = head + 1 == c->heads || (head + 1) % c->task_heads == 0;
	h.start = c->batch->starts[h.sequence];
	h.length = c->batch->starts[h.sequence + 1] - h.start;
	h.dropout.head = (uint32_t)h.head;
	h.dropout.sample = c->batch->samples[h.sequence];
	return h;
}

/* The stripe of keys that queries from `query` on begin to see (and, symmetrically, of queries that see keys from `query` on),
 * and the end of what those before `end` see. */
static int64_t seen_first(const struct call *c, int64_t query)
{
	return c->window > 0 && query > c->window ? (query - c->window) / STRIPE * STRIPE : 0;
}

static int64_t seen_end(const struct call *c, const struct head *h, int64_t end)
{
	return c->window > 0 ? smaller(h->length, end + c->window) : h->length;
}

/* Hides the scores of keys from `key` on that the queries of a stripe from `query` on do not see. */
static void hide_unseen(const struct call *c, float *scores, int64_t key, int64_t keys, int64_t query)
{
	for (int64_t k = 0; c->window > 0 && k < keys; k++)
		for (int64_t q = 0, ahead = key + k - query; q < STRIPE; q++)
			if (ahead - q > c->window || q - ahead > c->window)
				scores[k * STRIPE + q] = -INFINITY;
}

/* First element of the head's columns in row `token` of the sequence; part 0, 1, 2 of qkv: query, key, value. */
static void *at(struct tensor t, const struct call *c, const struct head *h, int64_t token, int64_t part)
{
	int64_t column = part * c->hidden + h->head * c->size;
	return (char *)t.data + (size_t)((h->start + token) * t.columns + column) * dtype_bytes(t.dtype);
}

static float *lse_at(const struct call *c, const struct head *h, int64_t token)
{
	return (float *)c->lse.data + h->head * c->lse.columns + h->start + token;
}

/* Packs rows [token, token + rows) of a part of a tensor. */
static void pack(const struct call *c, block_pack *how, struct tensor t, const struct head *h, int64_t part, int64_t token,
		 int64_t rows, void *blocks, int64_t row_stride, int64_t column_stride)
{
	gemm_pack(c->gemm, how, at(t, c, h, token, part), t.columns, rows, c->size, blocks, row_stride, column_stride);
}

/* Part `number` of `count` of rows [token, token + rows) of a part of a tensor, for the task's next head. */
static struct gemm_fetch ahead(const struct call *c, const struct head *h, struct tensor t, int64_t part, int64_t token,
			       int64_t rows, int64_t number, int64_t count)
{
	int64_t element = (int64_t)dtype_bytes(t.dtype), first = rows * number / count;
	if (h->is_last)
		return (struct gemm_fetch){.rows = 0};
	return (struct gemm_fetch){.from = (char *)at(t, c, h, token + first, part) + c->size * element,
				   .rows = rows * (number + 1) / count - first,
				   .row_bytes = c->size * element,
				   .stride = t.columns * element};
}

/* Chooses as many heads per task as leaves enough tasks for all threads. */
static void choose_tasks(struct call *c, int64_t blocks, int threads)
{
	enum { TASKS = 8 }; /* per thread, so that threads finish at about the same time */
	c->task_heads = c->heads;
	while (c->task_heads > 1 && blocks * (c->heads / c->task_heads) < (int64_t)TASKS * threads)
		c->task_heads = (c->task_heads + 1) / 2;
}

static int64_t tasks_of_sequence(const struct call *c)
{
	return (c->heads + c->task_heads - 1) / c->task_heads;
}

/* Scratch of a forward task. */
struct forward {
	char *k;                                  /* left (key, depth) */
	char *v;                                  /* left (depth, key) */
	char *q;                                  /* right (depth, query): one panel per stripe */
	float *scores;                            /* (KEYS, 32) */
	char *probabilities;                      /* right (key, query) */
	float *y;                                 /* (stripes, 32 depth, 32) */
	float (*largest)[STRIPE], (*sum)[STRIPE]; /* per stripe */
};

static size_t lay_out_forward(struct forward *f, struct arena arena, int64_t depth, int64_t block)
{
	size_t stripe_bytes = STRIPE * sizeof(float);
	f->k = arena_take(&arena, (size_t)(KEY_BLOCKS * depth * block));
	f->v = arena_take(&arena, (size_t)(KEY_BLOCKS * depth * block));
	f->q = arena_take(&arena, (size_t)(FORWARD_STRIPES * depth * block));
	f->scores = arena_take(&arena, KEYS * stripe_bytes);
	f->probabilities = arena_take(&arena, (size_t)(KEY_BLOCKS * block));
	f->y = arena_take(&arena, (size_t)(FORWARD_STRIPES * depth) * STRIPE * stripe_bytes);
	f->largest = arena_take(&arena, FORWARD_STRIPES * stripe_bytes);
	f->sum = arena_take(&arena, FORWARD_STRIPES * stripe_bytes);
	return (size_t)round_up((int64_t)arena.used, ARENA_ALIGNMENT);
}

/* Processes one stripe of the queries [first, first + queries) against what it sees of one block of keys. */
static void forward_stripe(const struct call *c, const struct head *h, const struct forward *f, int64_t stripe, int64_t first,
			   int64_t queries, int64_t block, int64_t block_keys)
{
	int64_t query = first + stripe * STRIPE, stripes = gemm_blocks(queries);
	int64_t key = larger(block, seen_first(c, query)),
		keys = smaller(block + block_keys, seen_end(c, h, query + STRIPE)) - key;
	int64_t skipped = (key - block) / STRIPE;
	bool is_first = key == seen_first(c, query);
	if (keys <= 0)
		return;
	int64_t number = key / KEYS * stripes + stripe, count = (h->length + KEYS - 1) / KEYS * stripes;
	int64_t key_blocks = gemm_blocks(keys), stripe_floats = c->depth * STRIPE * STRIPE;
	float *y = f->y + stripe * stripe_floats;
	float correction[STRIPE];
	c->gemm->multiply(&(struct block_product){
		.m = key_blocks,
		.n = 1,
		.k = c->depth,
		.left = f->k + skipped * c->depth * c->block,
		.left_m = c->depth * c->block,
		.left_k = c->block,
		.right = f->q + stripe * c->depth * c->block,
		.right_k = c->block,
		.out = f->scores,
		.out_m = STRIPE * STRIPE,
		.out_row = STRIPE,
	});
	hide_unseen(c, f->scores, key, keys, query);
	c->kernels->softmax(&(struct attention_softmax){
		.scores = f->scores,
		.keys = keys,
		.first_key = (uint32_t)key,
		.first_query = (uint32_t)query,
		.scale = c->log2_scale,
		.first = is_first,
		.dropout = h->dropout,
		.largest = f->largest[stripe],
		.sum = f->sum[stripe],
		.correction = correction,
		.probabilities = f->probabilities,
		.fetch = {ahead(c, h, c->qkv, 0, first, queries, number, count),
			  ahead(c, h, c->qkv, 1, 0, h->length, number, count),
			  ahead(c, h, c->qkv, 2, 0, h->length, number, count)},
	});
	if (!is_first)
		c->kernels->scale(y, c->depth * STRIPE, correction);
	c->gemm->multiply(&(struct block_product){
		.m = c->depth,
		.n = 1,
		.k = key_blocks,
		.left = f->v + skipped * c->block,
		.left_m = KEY_BLOCKS * c->block,
		.left_k = c->block,
		.right = f->probabilities,
		.right_k = c->block,
		.out = y,
		.out_m = STRIPE * STRIPE,
		.out_row = STRIPE,
		.accumulate = !is_first,
	});
}

static void forward_head(const struct call *c, struct head h, int64_t first, int64_t queries, int worker)
{
	struct forward f;
	struct arena arena = {.base = (unsigned char *)c->workspace + (size_t)worker * c->worker_bytes,
			      .capacity = c->worker_bytes};
	lay_out_forward(&f, arena, c->depth, c->block);

	c->gemm->begin();
	pack(c, c->gemm->right_from_columns, c->qkv, &h, 0, first, queries, f.q, c->depth * c->block, c->block);
	int64_t end = seen_end(c, &h, first + queries);
	for (int64_t key = seen_first(c, first); key < end; key += KEYS) {
		int64_t keys = smaller(KEYS, end - key);
		pack(c, c->gemm->left_from_rows, c->qkv, &h, 1, key, keys, f.k, c->depth * c->block, c->block);
		pack(c, c->gemm->left_from_columns, c->qkv, &h, 2, key, keys, f.v, c->block, KEY_BLOCKS * c->block);
		for (int64_t q = 0; q < queries; q += STRIPE)
			forward_stripe(c, &h, &f, q / STRIPE, first, queries, key, keys);
	}
	c->gemm->end();

	for (int64_t q = 0; q < queries; q += STRIPE) {
		const float *largest = f.largest[q / STRIPE], *sum = f.sum[q / STRIPE];
		int64_t rows = smaller(STRIPE, queries - q);
		float factors[STRIPE];
		for (int64_t i = 0; i < STRIPE; i++)
			factors[i] = c->dropout_scale / sum[i];
		c->kernels->store_transposed(&(struct attention_rows){
			.from = f.y + q * c->depth * STRIPE,
			.rows = rows,
			.columns = c->size,
			.factors = factors,
			.to = at(c->y, c, &h, first + q, 0),
			.to_row = c->y.columns,
			.past = c->past,
		});
		for (int64_t i = 0; c->lse.data && i < rows; i++)
			*lse_at(c, &h, first + q + i) = largest[i] * c->scale + logf(sum[i]);
	}
}

static void forward_task(void *context, int64_t index, int worker)
{
	const struct call *c = context;
	int64_t first = index % c->query_blocks * FORWARD_QUERIES, group = index / c->query_blocks % tasks_of_sequence(c);
	int64_t sequence = index / c->query_blocks / tasks_of_sequence(c);
	for (int64_t i = group * c->task_heads; i < smaller(c->heads, (group + 1) * c->task_heads); i++) {
		struct head h = head_of(c, sequence, i);
		if (first < h.length)
			forward_head(c, h, first, smaller(FORWARD_QUERIES, h.length - first), worker);
	}
}

/* Scratch of a backward task, for a sequence of up to `length` tokens. */
struct backward {
	int64_t stripes;
	char *q_depth, *dy_depth;       /* right (depth, query): one panel per stripe */
	char *q, *dy;                   /* right (query, depth): one panel per 32 columns */
	float *dq;                      /* (stripes, 32 depth, 32) */
	float *lse, *delta;             /* (stripes, 32) */
	char *k, *v;                    /* left (key, depth) */
	char *k_depth;                  /* left (depth, key) */
	float *scores, *dprobabilities; /* (KEYS, 32) */
	char *probabilities, *dscores;  /* left (key, query), BACKWARD_STRIPES blocks wide */
	char *dscores_right;            /* right (key, query) of one stripe */
	float *dk, *dv;                 /* (KEYS, 32 depth) */
};

static size_t lay_out_backward(struct backward *b, struct arena arena, int64_t length, int64_t depth, int64_t block)
{
	b->stripes = gemm_blocks(length);
	size_t panels = (size_t)(b->stripes * depth * block), keys = (size_t)(KEY_BLOCKS * depth * block);
	size_t square = (size_t)(KEY_BLOCKS * BACKWARD_STRIPES * block);
	size_t key_floats = (size_t)(KEYS * depth * STRIPE) * sizeof(float);
	b->q_depth = arena_take(&arena, panels);
	b->dy_depth = arena_take(&arena, panels);
	b->q = arena_take(&arena, panels);
	b->dy = arena_take(&arena, panels);
	b->dq = arena_take(&arena, (size_t)(b->stripes * depth) * STRIPE * STRIPE * sizeof(float));
	b->lse = arena_take(&arena, (size_t)b->stripes * STRIPE * sizeof(float));
	b->delta = arena_take(&arena, (size_t)b->stripes * STRIPE * sizeof(float));
	b->k = arena_take(&arena, keys);
	b->v = arena_take(&arena, keys);
	b->k_depth = arena_take(&arena, keys);
	b->scores = arena_take(&arena, KEYS * STRIPE * sizeof(float));
	b->dprobabilities = arena_take(&arena, KEYS * STRIPE * sizeof(float));
	b->probabilities = arena_take(&arena, square);
	b->dscores = arena_take(&arena, square);
	b->dscores_right = arena_take(&arena, (size_t)(KEY_BLOCKS * block));
	b->dk = arena_take(&arena, key_floats);
	b->dv = arena_take(&arena, key_floats);
	return (size_t)round_up((int64_t)arena.used, ARENA_ALIGNMENT);
}

/* Everything that depends only on the queries. */
static void backward_queries(const struct call *c, const struct head *h, const struct backward *b)
{
	int64_t panel = c->depth * c->block, tall = b->stripes * c->block;
	pack(c, c->gemm->right_from_columns, c->qkv, h, 0, 0, h->length, b->q_depth, panel, c->block);
	pack(c, c->gemm->right_from_columns, c->dy, h, 0, 0, h->length, b->dy_depth, panel, c->block);
	pack(c, c->gemm->right_from_rows, c->qkv, h, 0, 0, h->length, b->q, c->block, tall);
	pack(c, c->gemm->right_from_rows, c->dy, h, 0, 0, h->length, b->dy, c->block, tall);
	c->kernels->delta(at(c->dy, c, h, 0, 0), at(c->y, c, h, 0, 0), c->y.columns, h->length, c->size, b->delta);
	const float log2_e = 1.44269504f;
	for (int64_t i = 0; i < h->length; i++)
		b->lse[i] = lse_at(c, h, 0)[i] * log2_e;
	/* Padding queries get probabilities of 0. */
	for (int64_t i = h->length; i < b->stripes * STRIPE; i++) {
		b->lse[i] = 1e30f;
		b->delta[i] = 0;
	}
}

/* left (key, depth) times one stripe's right (depth, query). */
static void multiply_depth(const struct call *c, const char *left, const char *right, int64_t key_blocks, float *out,
			   struct gemm_fetch fetch)
{
	c->gemm->multiply(&(struct block_product){
		.m = key_blocks,
		.n = 1,
		.k = c->depth,
		.left = left,
		.left_m = c->depth * c->block,
		.left_k = c->block,
		.right = right,
		.right_k = c->block,
		.out = out,
		.out_m = STRIPE * STRIPE,
		.out_row = STRIPE,
		.fetch = {fetch},
	});
}

/* Processes one stripe of queries, number `place` of those processed together, against one block of keys: probabilities,
 * dscores, dq. */
static void backward_stripe(const struct call *c, const struct head *h, const struct backward *b, int64_t stripe, int64_t place,
			    int64_t key, int64_t keys)
{
	int64_t key_blocks = gemm_blocks(keys), panel = c->depth * c->block, column = place * c->block;
	int64_t number = key / KEYS * b->stripes + stripe, count = (h->length + KEYS - 1) / KEYS * b->stripes;
	multiply_depth(c, b->k, b->q_depth + stripe * panel, key_blocks, b->scores,
		       ahead(c, h, c->dy, 0, 0, h->length, number, count));
	multiply_depth(c, b->v, b->dy_depth + stripe * panel, key_blocks, b->dprobabilities,
		       ahead(c, h, c->y, 0, 0, h->length, number, count));
	hide_unseen(c, b->scores, key, keys, stripe * STRIPE);
	c->kernels->gradient(&(struct attention_gradient){
		.scores = b->scores,
		.dprobabilities = b->dprobabilities,
		.keys = keys,
		.first_key = (uint32_t)key,
		.first_query = (uint32_t)(stripe * STRIPE),
		.scale = c->log2_scale,
		.dropout = h->dropout,
		.dropout_scale = c->dropout_scale,
		.lse = b->lse + stripe * STRIPE,
		.delta = b->delta + stripe * STRIPE,
		.probabilities = b->probabilities + column,
		.dscores = b->dscores + column,
		.left_m = BACKWARD_STRIPES * c->block,
		.dscores_right = b->dscores_right,
		.fetch = {ahead(c, h, c->qkv, 0, 0, h->length, number, count),
			  ahead(c, h, c->qkv, 1, 0, h->length, number, count),
			  ahead(c, h, c->qkv, 2, 0, h->length, number, count)},
	});
	c->gemm->multiply(&(struct block_product){
		.m = c->depth,
		.n = 1,
		.k = key_blocks,
		.left = b->k_depth,
		.left_m = KEY_BLOCKS * c->block,
		.left_k = c->block,
		.right = b->dscores_right,
		.right_k = c->block,
		.out = b->dq + stripe * c->depth * STRIPE * STRIPE,
		.out_m = STRIPE * STRIPE,
		.out_row = STRIPE,
		.accumulate = key > 0 || c->window > 0,
	});
}

/* dk or dv += left (key, query) times right (query, depth), for the queries of `stripes` stripes. */
static void multiply_queries(const struct call *c, const struct backward *b, const char *left, const char *right,
			     int64_t key_blocks, int64_t stripe, int64_t stripes, bool is_first, float *out)
{
	c->gemm->multiply(&(struct block_product){
		.m = key_blocks,
		.n = c->depth,
		.k = stripes,
		.left = left,
		.left_m = BACKWARD_STRIPES * c->block,
		.left_k = c->block,
		.right = right + stripe * c->block,
		.right_n = b->stripes * c->block,
		.right_k = c->block,
		.out = out,
		.out_m = STRIPE * c->depth * STRIPE,
		.out_n = STRIPE,
		.out_row = c->depth * STRIPE,
		.accumulate = !is_first,
	});
}

static void store_keys(const struct call *c, const struct head *h, const float *from, int64_t key, int64_t keys, int64_t part,
		       float factor, float *sums)
{
	c->kernels->store(&(struct attention_rows){
		.from = from,
		.from_row = c->depth * STRIPE,
		.rows = keys,
		.columns = c->size,
		.factor = factor,
		.to = at(c->dqkv, c, h, key, part),
		.to_row = c->dqkv.columns,
		.past = c->past,
		.column_sums = sums ? sums + part * c->hidden : NULL,
	});
}

static void backward_head(const struct call *c, struct head h, int worker)
{
	struct backward b;
	struct arena arena = {.base = (unsigned char *)c->workspace + (size_t)worker * c->worker_bytes,
			      .capacity = c->worker_bytes};
	lay_out_backward(&b, arena, h.length, c->depth, c->block);
	float *sums = NULL;
	if (c->bias) {
		sums = c->bias_parts + h.sequence * 3 * c->hidden + h.head * c->size;
		for (int part = 0; part < 3; part++)
			memset(sums + part * c->hidden, 0, (size_t)c->size * sizeof(float));
	}

	c->gemm->begin();
	backward_queries(c, &h, &b);
	if (c->window > 0)
		memset(b.dq, 0, (size_t)(b.stripes * c->depth) * STRIPE * STRIPE * sizeof *b.dq);
	int64_t step = c->window > 0 ? WINDOW_KEYS : KEYS;
	for (int64_t key = 0; key < h.length; key += step) {
		int64_t keys = smaller(step, h.length - key), key_blocks = gemm_blocks(keys);
		int64_t first = seen_first(c, key) / STRIPE, end = gemm_blocks(seen_end(c, &h, key + keys));
		pack(c, c->gemm->left_from_rows, c->qkv, &h, 1, key, keys, b.k, c->depth * c->block, c->block);
		pack(c, c->gemm->left_from_rows, c->qkv, &h, 2, key, keys, b.v, c->depth * c->block, c->block);
		pack(c, c->gemm->left_from_columns, c->qkv, &h, 1, key, keys, b.k_depth, c->block, KEY_BLOCKS * c->block);
		for (int64_t stripe = first; stripe < end; stripe += BACKWARD_STRIPES) {
			int64_t stripes = smaller(BACKWARD_STRIPES, end - stripe);
			for (int64_t i = 0; i < stripes; i++)
				backward_stripe(c, &h, &b, stripe + i, i, key, keys);
			multiply_queries(c, &b, b.probabilities, b.dy, key_blocks, stripe, stripes, stripe == first, b.dv);
			multiply_queries(c, &b, b.dscores, b.q, key_blocks, stripe, stripes, stripe == first, b.dk);
		}
		store_keys(c, &h, b.dk, key, keys, 1, c->scale, sums);
		store_keys(c, &h, b.dv, key, keys, 2, c->dropout_scale, sums);
	}
	c->gemm->end();

	float factors[STRIPE];
	for (int64_t i = 0; i < STRIPE; i++)
		factors[i] = c->scale;
	for (int64_t q = 0; q < h.length; q += STRIPE)
		c->kernels->store_transposed(&(struct attention_rows){
			.from = b.dq + q * c->depth * STRIPE,
			.rows = smaller(STRIPE, h.length - q),
			.columns = c->size,
			.factors = factors,
			.to = at(c->dqkv, c, &h, q, 0),
			.to_row = c->dqkv.columns,
			.past = c->past,
			.column_sums = sums,
		});
}

static void backward_task(void *context, int64_t index, int worker)
{
	const struct call *c = context;
	int64_t sequence = index / tasks_of_sequence(c), first = index % tasks_of_sequence(c) * c->task_heads;
	for (int64_t i = first; i < smaller(c->heads, first + c->task_heads); i++)
		backward_head(c, head_of(c, sequence, i), worker);
}

/* Adds the sequences' parts of the bias gradient in sequence order, BIAS_COLUMNS columns per task. */
enum { BIAS_COLUMNS = 256 };

static void bias_task(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct call *c = context;
	int64_t first = index * BIAS_COLUMNS, columns = smaller(BIAS_COLUMNS, 3 * c->hidden - first);
	float *gradient = (float *)c->bias->gradient.data + first, sums[BIAS_COLUMNS] = {0};
	for (int64_t s = 0; s < c->batch->sequence_count; s++)
		for (int64_t i = 0; i < columns; i++)
			sums[i] += c->bias_parts[s * 3 * c->hidden + first + i];
	for (int64_t i = 0; i < columns; i++)
		gradient[i] = c->overwrite ? sums[i] : gradient[i] + sums[i];
}

size_t cpu_attention_workspace_bytes(const struct shape_limits *limits, int threads)
{
	struct forward f;
	struct backward b;
	int64_t depth = gemm_blocks(limits->hidden / limits->heads), block = STRIPE * STRIPE * (int64_t)sizeof(float);
	size_t forward = (size_t)threads * lay_out_forward(&f, (struct arena){0}, depth, block);
	if (!limits->training)
		return forward;
	size_t backward = (size_t)threads * lay_out_backward(&b, (struct arena){0}, limits->longest, depth, block);
	backward += (size_t)limits->batch.sequences * 3 * (size_t)limits->hidden * sizeof(float);
	return forward > backward ? forward : backward;
}

static struct call call_start(struct replica *r, const struct batch *batch, int32_t heads, int32_t window,
			      const struct dropout *dropout, struct tensor qkv)
{
	struct call c = {.gemm = cpu_gemm_kernels(qkv.dtype),
			 .kernels = attention_kernels(qkv.dtype),
			 .batch = batch,
			 .qkv = qkv,
			 .hidden = qkv.columns / 3,
			 .heads = heads,
			 .window = window,
			 .workspace = r->workspace};
	c.size = c.hidden / heads;
	c.depth = gemm_blocks(c.size);
	c.block = gemm_block_bytes(c.gemm);
	c.scale = (float)(1 / sqrt((double)c.size));
	c.log2_scale = (float)(1.4426950408889634 / sqrt((double)c.size));
	c.dropout_scale = (float)dropout_scale(dropout->p);
	c.dropout = (struct attention_dropout){
		.threshold = dropout_threshold(dropout->p), .seed = r->scalars->seed, .site = dropout->site};
	return c;
}

void cpu_attention_fwd(struct replica *r, const struct attention_fwd *a)
{
	struct call c = call_start(r, a->batch, a->heads, a->window, &a->dropout, a->qkv);
	struct forward f;
	c.y = a->y;
	c.lse = a->lse;
	c.past = tensor_is_large(&a->y);
	c.query_blocks = (a->batch->longest + FORWARD_QUERIES - 1) / FORWARD_QUERIES;
	c.worker_bytes = lay_out_forward(&f, (struct arena){0}, c.depth, c.block);
	BUG_IF(c.worker_bytes * (size_t)pool_threads(r->backend->pool) > r->workspace_bytes);
	choose_tasks(&c, a->batch->sequence_count * c.query_blocks, pool_threads(r->backend->pool));
	pool_run(r->backend->pool, a->batch->sequence_count * tasks_of_sequence(&c) * c.query_blocks, forward_task, &c);
}

void cpu_attention_bwd(struct replica *r, const struct attention_bwd *a)
{
	struct call c = call_start(r, a->batch, a->heads, a->window, &a->dropout, a->qkv);
	struct backward b;
	c.y = a->y;
	c.lse = a->lse;
	c.dy = a->dy;
	c.dqkv = a->dqkv;
	c.past = tensor_is_large(&a->dqkv);
	c.bias = a->bias;
	c.overwrite = a->overwrite;
	c.worker_bytes = lay_out_backward(&b, (struct arena){0}, a->batch->longest, c.depth, c.block);
	size_t workers = c.worker_bytes * (size_t)pool_threads(r->backend->pool);
	size_t parts = (size_t)(a->batch->sequence_count * 3 * c.hidden) * sizeof(float);
	BUG_IF(workers + (a->bias ? parts : 0) > r->workspace_bytes);
	c.bias_parts = (float *)(c.workspace + workers);
	choose_tasks(&c, a->batch->sequence_count, pool_threads(r->backend->pool));
	pool_run(r->backend->pool, a->batch->sequence_count * tasks_of_sequence(&c), backward_task, &c);
	if (a->bias)
		pool_run(r->backend->pool, (3 * c.hidden + BIAS_COLUMNS - 1) / BIAS_COLUMNS, bias_task, &c);
}

struct rotary_call {
	struct replica *r;
	const struct rotary *a;
	float frequencies[ROTARY_LIMIT / 2];
};

static void rotary_slice(void *context, int64_t slice, int worker)
{
	const struct rotary_call *call = context;
	const struct rotary *a = call->a;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t row = slice * ROTARY_ROWS;
	cpu_state(call->r)->kernels->rotary(&(struct rotary_rows){
		.rows = smaller(ROTARY_ROWS, a->qkv.rows - row),
		.stride = a->qkv.columns,
		.heads = 2 * a->heads, /* of queries, then of keys */
		.size = a->qkv.columns / 3 / a->heads,
		.dtype = a->qkv.dtype,
		.back = a->back,
		.positions = a->batch->positions + row,
		.frequencies = call->frequencies,
		.row = scratch->rows + worker * scratch->row_floats,
		.qkv = tensor_at(&a->qkv, row, 0),
	});
}

void cpu_rotary(struct replica *r, const struct rotary *a)
{
	struct rotary_call call = {.r = r, .a = a};
	rotary_frequencies(a->base, (int32_t)(a->qkv.columns / 3 / a->heads), call.frequencies);
	pool_run(r->backend->pool, (a->qkv.rows + ROTARY_ROWS - 1) / ROTARY_ROWS, rotary_slice, &call);
}
