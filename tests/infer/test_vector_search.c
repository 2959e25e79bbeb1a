/* Exact search: the same documents, in the same order, as sorting all similarities in double gives; on the CPU, and on a made-up
 * back end that multiplies in bf16 as badly as it may. */
#include <math.h>
#include "test.h"
#include "backend/open.h"
#include "base/rng.h"
#include "infer/vector_search.h"

enum { WIDTH = 33, DOCUMENTS = 4500, QUERIES = 37, MOST = 9 };

static float documents[DOCUMENTS * WIDTH], queries[QUERIES * WIDTH];
static struct pool *pool;

/* Vectors around a common one: `spread` small makes their cosines nearly equal. Some are copies of each other. */
static void draw(float *vectors, int64_t count, uint64_t stream, float spread)
{
	struct rng rng = rng_start(3, RNG_TEST, stream);
	for (int64_t i = 0; i < count; i++)
		for (int64_t k = 0; k < WIDTH; k++)
			vectors[i * WIDTH + k] = (i % 3 + 1) * (sinf((float)k) + spread * (float)rng_truncated_normal(&rng));
	for (int64_t i = 50; i + 1 < count; i += 50)
		memcpy(vectors + (i + 1) * WIDTH, vectors + i * WIDTH, WIDTH * sizeof *vectors);
}

struct scored {
	double score;
	int32_t row;
};

static int compare(const void *left, const void *right)
{
	const struct scored *a = left, *b = right;
	return a->score != b->score ? (a->score > b->score ? -1 : 1) : a->row - b->row;
}

static nearest_search *searching; /* by the back end under test */

static void check(struct backend *be, enum similarity similarity, const struct vectors *q, const struct vectors *d, int64_t most)
{
	struct nearest_row *found = calloc((size_t)(q->count * most), sizeof *found);
	struct scored *all = calloc((size_t)d->count, sizeof *all);
	assert_true(found && all);
	const struct vector_search search = {.backend = be,
					     .nearest = searching,
					     .similarity = similarity,
					     .most = most,
					     .queries = *q,
					     .documents = *d,
					     .title = "searching"};
	assert_ok(vector_search_run(&search, found));
	for (int64_t i = 0; i < q->count; i++) {
		for (int64_t k = 0; k < d->count; k++)
			all[k] = (struct scored){vectors_similarity(similarity, vector_at(q, i), vector_at(d, k), WIDTH),
						 (int32_t)k};
		qsort(all, (size_t)d->count, sizeof *all, compare);
		for (int64_t k = 0; k < most; k++) {
			const struct nearest_row *row = &found[i * most + k];
			assert_int_equal(row->row, k < d->count ? all[k].row : -1);
			assert_true(k < d->count ? row->score == (float)all[k].score : row->score == -INFINITY);
		}
	}
	free(found);
	free(all);
}

static void check_all(struct backend *be)
{
	static int32_t some[DOCUMENTS / 7];
	struct vectors q = {queries, WIDTH, QUERIES, NULL}, d = {documents, WIDTH, DOCUMENTS, NULL};
	for (int32_t i = 0; i < DOCUMENTS / 7; i++)
		some[i] = 7 * i;
	draw(queries, QUERIES, 1, 0.5f);
	draw(documents, DOCUMENTS, 2, 1);
	check(be, SIMILARITY_COSINE, &q, &d, MOST);
	check(be, SIMILARITY_DOT, &q, &d, MOST);
	d.rows = some;
	d.count = DOCUMENTS / 7;
	check(be, SIMILARITY_COSINE, &q, &d, 1);
	d.count = 5; /* fewer than are wanted */
	check(be, SIMILARITY_COSINE, &q, &d, MOST);
	memset(queries, 0, WIDTH * sizeof *queries); /* cosines of 0 with all */
	check(be, SIMILARITY_COSINE, &q, &d, 2);
}

static void finds_what_sorting_finds(void **state)
{
	struct backend *be;
	(void)state;
	assert_ok(backend_open(&be,
			       &(struct backend_settings){.device = "cpu", .dtype = DTYPE_F32, .inference = true, .pool = pool}));
	searching = backend_nearest(be);
	assert_non_null(searching);
	check_all(be);
	draw(documents, 100, 2, 1);
	documents[40 * WIDTH + 3] = NAN;
	struct nearest_row found[QUERIES];
	struct vector_search search = {.backend = be,
				       .nearest = searching,
				       .most = 1,
				       .queries = {queries, WIDTH, QUERIES, NULL},
				       .documents = {documents, WIDTH, 100, NULL}};
	assert_error(ERR_NUMERIC, "document 41", vector_search_run(&search, found));
	backend_close(be);
}

/* ---- A back end that multiplies in bf16, and offers what was left out last ---- */

static size_t copy_bytes(struct backend *be, const struct weight *weight)
{
	(void)be;
	return (size_t)(weight->master.rows * weight->master.columns) * sizeof(uint16_t);
}

static void pack(struct backend *be, struct weight *weight, const struct weight_rows *rows)
{
	(void)be;
	assert_int_equal(rows->dtype, DTYPE_BF16);
	memcpy((uint16_t *)weight->copy + rows->first * weight->master.columns, rows->data,
	       (size_t)(rows->count * weight->master.columns) * sizeof(uint16_t));
}

static int64_t offered; /* by the made-up back end */

/* Replaces the worst row wherever it is, and leaves the worst in front, as a heap does. */
static void take(struct nearest_row *best, int32_t most, struct nearest_row row)
{
	if (!nearest_is_worse(best[0], row))
		return;
	best[0] = row;
	for (int32_t i = 1; i < most; i++)
		if (nearest_is_worse(best[i], best[0])) {
			struct nearest_row other = best[i];
			best[i] = best[0];
			best[0] = other;
		}
}

static void nearest(struct backend *be, const struct nearest *a)
{
	const uint16_t *x = a->x.data, *q = a->queries->copy;
	(void)be;
	offered += a->x.rows;
	for (int64_t query = 0; query < a->queries->master.rows; query++)
		for (int64_t row = 0; row < a->x.rows; row++) {
			float sum = 0;
			for (int64_t k = 0; k < WIDTH; k++)
				sum += bf16_to_float(x[row * WIDTH + k]) * bf16_to_float(q[query * WIDTH + k]);
			take(a->best + query * a->most, a->most, (struct nearest_row){sum, a->first + (int32_t)row});
		}
}

static void rounding_hides_no_document(void **state)
{
	static const struct backend_functions functions = {.weight_copy_bytes = copy_bytes, .weight_pack = pack};
	struct backend be = {.dtype = DTYPE_BF16, .inference = true, .functions = &functions, .pool = pool};
	struct vectors q = {queries, WIDTH, QUERIES, NULL}, d = {documents, WIDTH, DOCUMENTS, NULL};
	(void)state;
	searching = nearest;
	check_all(&be);
	/* Cosines that bf16 cannot tell apart: which documents it keeps is chance. */
	draw(queries, QUERIES, 4, 0.01f);
	draw(documents, DOCUMENTS, 5, 0.01f);
	check(&be, SIMILARITY_COSINE, &q, &d, MOST);
	assert_true(offered > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_sorting_finds),
					   cmocka_unit_test(rounding_hides_no_document)};
	assert_ok(pool_create(&pool, 2));
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	pool_free(pool);
	return failed;
}
