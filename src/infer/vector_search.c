/* Searches documents block by block on the back end, and computes the similarities of what it found in double. */
#include "infer/vector_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/open.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "infer/device.h"

enum { BLOCK_ROWS = 4080 };              /* vectors rounded, and documents offered, at a time */
#define QUERY_BYTES ((int64_t)256 << 20) /* packed queries and heaps of a pass over the documents */

double vectors_similarity(enum similarity similarity, const float *a, const float *b, int64_t width)
{
	double product = 0, left = 0, right = 0;
	for (int64_t i = 0; i < width; i++) {
		product += (double)a[i] * (double)b[i];
		left += (double)a[i] * (double)a[i];
		right += (double)b[i] * (double)b[i];
	}
	if (similarity == SIMILARITY_DOT)
		return product;
	return left > 0 && right > 0 ? product / sqrt(left * right) : 0;
}

/* Vectors in the form that products take: of length 1 for cosines, and in the back end's type. */
struct rounding {
	const struct vectors *vectors;
	int64_t first;
	bool normalize;
	enum dtype dtype;
	void *rows;     /* out, dense */
	double *errors; /* out: |rounded - exact| of each vector; NULL: not wanted */
	double *sizes;  /* out: |rounded| */
	int bad;        /* out: a vector is not finite */
};

static void round_row(void *context, int64_t index, int worker)
{
	(void)worker;
	struct rounding *r = context;
	int64_t width = r->vectors->width;
	const float *from = vector_at(r->vectors, r->first + index);
	double squares = 0, error = 0, size = 0;
	for (int64_t i = 0; i < width; i++)
		squares += (double)from[i] * (double)from[i];
	if (!isfinite(squares))
		__atomic_store_n(&r->bad, 1, __ATOMIC_RELAXED);
	double scale = r->normalize ? (squares > 0 ? 1 / sqrt(squares) : 0) : 1;
	if (r->dtype == DTYPE_F32) {
		float *to = (float *)r->rows + index * width;
		for (int64_t i = 0; i < width; i++)
			to[i] = (float)((double)from[i] * scale);
		return;
	}
	uint16_t *to = (uint16_t *)r->rows + index * width;
	for (int64_t i = 0; i < width; i++) {
		double exact = (double)from[i] * scale;
		to[i] = float_to_bf16((float)exact);
		double rounded = (double)bf16_to_float(to[i]);
		error += (rounded - exact) * (rounded - exact);
		size += rounded * rounded;
	}
	r->errors[index] = sqrt(error);
	r->sizes[index] = sqrt(size);
}

enum status vectors_check(const struct vectors *vectors, int64_t first, int64_t count, const char *what)
{
	for (int64_t i = first; i < first + count; i++) {
		const float *vector = vector_at(vectors, i);
		for (int64_t k = 0; k < vectors->width; k++)
			if (!isfinite(vector[k]))
				return error_set(ERR_NUMERIC, "the vector of %s %lld has a number that is not finite", what,
						 (long long)(vectors->rows ? vectors->rows[i] : i) + 1);
	}
	return OK;
}

static enum status round_rows(struct pool *pool, struct rounding *r, int64_t count, const char *what)
{
	r->bad = 0;
	pool_run(pool, count, round_row, r);
	return r->bad ? vectors_check(r->vectors, r->first, count, what) : OK;
}

struct exact_row {
	double score;
	int32_t row;
};

/* A pass over the documents for some queries. */
struct pass {
	const struct vector_search *search;
	struct backend *be;
	nearest_search *nearest;
	struct vectors queries;
	int64_t kept; /* documents per query that are computed in double */
	struct weight weight;
	struct arena arena;
	struct nearest_row *best;           /* [queries, kept] heaps */
	void *block;                        /* [BLOCK_ROWS, width] in the back end's type */
	double *errors, *sizes;             /* [BLOCK_ROWS] of the block, in bf16 */
	double *query_errors, *query_sizes; /* [queries] */
	double largest_error, largest_size; /* of the documents */
	struct nearest_row *out;            /* [queries, most] */
	unsigned char *uncertain;           /* [queries]: documents may be missing */
	struct exact_row *exact;            /* [workers, kept] */
	struct progress *progress;
	int64_t done; /* queries of passes before this one */
};

static void lay_out(struct pass *p, int64_t queries)
{
	int64_t width = p->queries.width, workers = pool_threads(p->be->pool);
	struct arena *arena = &p->arena;
	p->weight.copy = arena_take(arena, p->be->functions->weight_copy_bytes(p->be, &p->weight));
	p->best = arena_take(arena, (size_t)(queries * p->kept) * sizeof *p->best);
	p->block = arena_take(arena, (size_t)(BLOCK_ROWS * width) * dtype_bytes(p->be->dtype));
	p->errors = arena_take(arena, BLOCK_ROWS * sizeof(double));
	p->sizes = arena_take(arena, BLOCK_ROWS * sizeof(double));
	p->query_errors = arena_take(arena, (size_t)round_up(queries, BLOCK_ROWS) * sizeof(double));
	p->query_sizes = arena_take(arena, (size_t)round_up(queries, BLOCK_ROWS) * sizeof(double));
	p->exact = arena_take(arena, (size_t)(workers * p->kept) * sizeof *p->exact);
}

/* Packs the queries, which take the place of a weight's rows. */
static enum status pack_queries(struct pass *p)
{
	struct rounding rounding = {.vectors = &p->queries,
				    .normalize = p->search->similarity == SIMILARITY_COSINE,
				    .dtype = p->be->dtype,
				    .rows = p->block};
	for (int64_t first = 0; first < p->queries.count; first += BLOCK_ROWS) {
		int64_t count = p->queries.count - first < BLOCK_ROWS ? p->queries.count - first : BLOCK_ROWS;
		rounding.first = first;
		rounding.errors = p->query_errors + first;
		rounding.sizes = p->query_sizes + first;
		TRY(round_rows(p->be->pool, &rounding, count, "query"));
		p->be->functions->weight_pack(
			p->be, &p->weight,
			&(struct weight_rows){.first = first, .count = count, .dtype = p->be->dtype, .data = p->block});
	}
	return OK;
}

static enum status offer_documents(struct pass *p)
{
	const struct vectors *documents = &p->search->documents;
	struct rounding rounding = {.vectors = documents,
				    .normalize = p->search->similarity == SIMILARITY_COSINE,
				    .dtype = p->be->dtype,
				    .rows = p->block,
				    .errors = p->errors,
				    .sizes = p->sizes};
	for (int64_t first = 0; first < documents->count; first += BLOCK_ROWS) {
		int64_t count = documents->count - first < BLOCK_ROWS ? documents->count - first : BLOCK_ROWS;
		TRY(stop_check());
		rounding.first = first;
		TRY(round_rows(p->be->pool, &rounding, count, "document"));
		for (int64_t i = 0; i < count && p->be->dtype != DTYPE_F32; i++) {
			p->largest_error = fmax(p->largest_error, p->errors[i]);
			p->largest_size = fmax(p->largest_size, p->sizes[i]);
		}
		p->nearest(p->be,
			   &(struct nearest){
				   .queries = &p->weight,
				   .x = {.data = p->block, .dtype = p->be->dtype, .rows = count, .columns = documents->width},
				   .first = (int32_t)first,
				   .most = (int32_t)p->kept,
				   .best = p->best,
			   });
		progress_update(p->progress, p->done + (first + count) * p->queries.count / documents->count, "%lld documents",
				(long long)documents->count);
	}
	return OK;
}

static int compare_rows(const void *left, const void *right)
{
	const struct exact_row *a = left, *b = right;
	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* By how much a product in bf16 can differ from the exact one: |q d - q' d'| <= |q - q'| |d'| + |q| |d - d'|, and the rounding of
 * its sum in fp32. */
static double widest_error(const struct pass *p, int64_t query)
{
	double own = p->query_errors[query], size = p->query_sizes[query];
	return own * p->largest_size + (size + own) * p->largest_error +
	       (double)p->queries.width * 0x1p-23 * size * p->largest_size;
}

static void finish_query(void *context, int64_t query, int worker)
{
	struct pass *p = context;
	struct exact_row *rows = p->exact + worker * p->kept;
	const struct vector_search *search = p->search;
	const struct nearest_row *best = p->best + query * p->kept;
	struct nearest_row *out = p->out + query * search->most;
	int64_t count = 0;
	for (int64_t i = 0; i < p->kept; i++)
		if (best[i].row >= 0)
			rows[count++] = (struct exact_row){
				.score = vectors_similarity(search->similarity, vector_at(&p->queries, query),
							    vector_at(&search->documents, best[i].row), p->queries.width),
				.row = best[i].row};
	qsort(rows, (size_t)count, sizeof *rows, compare_rows);
	for (int64_t i = 0; i < search->most; i++)
		out[i] =
			i < count ? (struct nearest_row){(float)rows[i].score, rows[i].row} : (struct nearest_row){-INFINITY, -1};
	/* What was not kept has at most the score of the worst that was. */
	p->uncertain[query] = p->be->dtype != DTYPE_F32 && count == p->kept &&
			      rows[search->most - 1].score < (double)best[0].score + widest_error(p, query);
}

static enum status run_pass(struct pass *p)
{
	lay_out(p, p->queries.count);
	TRY(arena_create(&p->arena, p->arena.used, "a search"));
	lay_out(p, p->queries.count);
	for (int64_t i = 0; i < p->queries.count * p->kept; i++)
		p->best[i] = (struct nearest_row){-INFINITY, -1};
	TRY(pack_queries(p));
	TRY(offer_documents(p));
	pool_run(p->be->pool, p->queries.count, finish_query, p);
	return OK;
}

/* Searches for all queries, as many at a time as memory is meant for. */
static enum status run_passes(const struct vector_search *search, struct backend *be, nearest_search *nearest,
			      const struct vectors *queries, struct nearest_row *out, unsigned char *uncertain)
{
	/* A rounded product may rank a document lower than it belongs: in fp32 among its equals, in bf16 among its neighbors. */
	int64_t kept = be->dtype == DTYPE_F32 ? search->most + 16 : 2 * search->most + 64;
	int64_t query_bytes = queries->width * (int64_t)sizeof(float) + kept * (int64_t)sizeof(struct nearest_row);
	int64_t step = QUERY_BYTES / query_bytes > BLOCK_ROWS ? QUERY_BYTES / query_bytes : BLOCK_ROWS;
	struct progress progress;
	enum status status = OK;
	progress_start(&progress, search->title, 0, queries->count, "queries");
	for (int64_t first = 0; first < queries->count && status == OK; first += step) {
		struct pass pass = {.search = search,
				    .be = be,
				    .nearest = nearest,
				    .queries = *queries,
				    .kept = kept,
				    .out = out + first * search->most,
				    .uncertain = uncertain + first,
				    .progress = &progress,
				    .done = first};
		if (queries->rows)
			pass.queries.rows += first;
		else
			pass.queries.values += first * queries->width;
		pass.queries.count = queries->count - first < step ? queries->count - first : step;
		pass.weight =
			(struct weight){.use = WEIGHT_HEAD,
					.master = {.dtype = DTYPE_F32, .rows = pass.queries.count, .columns = queries->width}};
		status = run_pass(&pass);
		arena_release(&pass.arena);
	}
	progress_finish(&progress);
	return status;
}

/* Searches again in fp32 for the queries that are uncertain. */
static enum status search_again(const struct vector_search *search, unsigned char *uncertain, struct nearest_row *out)
{
	static const struct device_options exact = {.device = DEVICE_CPU, .precision = PRECISION_FP32};
	struct backend *be = NULL;
	struct nearest_row *found = NULL;
	struct vectors queries = search->queries;
	int32_t *rows = NULL, *numbers = NULL;
	enum status status;
	queries.count = 0;
	TRY_GOTO(memory_new(&rows, search->queries.count, sizeof *rows, "a search"), done);
	TRY_GOTO(memory_new(&numbers, search->queries.count, sizeof *numbers, "a search"), done);
	for (int64_t q = 0; q < search->queries.count; q++) {
		if (!uncertain[q])
			continue;
		numbers[queries.count] = (int32_t)q;
		rows[queries.count++] = search->queries.rows ? search->queries.rows[q] : (int32_t)q;
	}
	if (queries.count == 0)
		goto done;
	log_detail("%lld of %lld queries are searched again in fp32", (long long)queries.count, (long long)search->queries.count);
	queries.rows = rows;
	TRY_GOTO(memory_new(&found, queries.count * search->most, sizeof *found, "a search"), done);
	TRY_GOTO(device_open_on(&exact, true, search->backend->pool, &be), done);
	TRY_GOTO(run_passes(search, be, backend_nearest(be), &queries, found, uncertain), done);
	for (int64_t i = 0; i < queries.count; i++)
		memcpy(out + numbers[i] * search->most, found + i * search->most, (size_t)search->most * sizeof *found);
done:
	if (be)
		backend_close(be);
	free(found);
	free(rows);
	free(numbers);
	return status;
}

enum status vector_search_run(const struct vector_search *search, struct nearest_row *out)
{
	unsigned char *uncertain;
	BUG_IF(search->queries.width != search->documents.width || !search->nearest || search->most < 1 ||
	       search->documents.count > INT32_MAX || search->queries.count > INT32_MAX);
	TRY(memory_new(&uncertain, search->queries.count, sizeof *uncertain, "a search"));
	enum status status = run_passes(search, search->backend, search->nearest, &search->queries, out, uncertain);
	if (status == OK)
		status = search_again(search, uncertain, out);
	free(uncertain);
	return status;
}
