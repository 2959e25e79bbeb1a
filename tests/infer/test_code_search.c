/* Search among bytes and bits: the documents and scores of sentence-transformers' semantic_search_faiss() with rescoring, faiss
 * replaced by NumPy. */
#include "infer/code_search.h"
#include <math.h>
#include "infer/vector_format.h"
#include "test.h"

enum { WIDTH = 11, DOCUMENTS = 14, QUERIES = 2, MOST = 3 };

static float documents[DOCUMENTS * WIDTH] = {
	0.05f,  0.5f,   -1,     0.69f,  -0.42f, -1.58f, -0.65f, 0.6f,   0.33f, -1.15f, 0.62f,  -0.09f, 0.43f,  0.33f,
	-1.16f, 0.35f,  -0.61f, 1.55f,  0.72f,  0.05f,  -0.98f, 0.05f,  0.16f, -1.21f, 2.22f,  0.39f,  1.69f,  -1.11f,
	1.64f,  -1.36f, -0.65f, 0.54f,  0.05f,  -2.36f, -1.11f, 0.84f,  2.09f, 0.91f,  -0.28f, 0.8f,   -1.14f, 0.51f,
	-1.35f, -0.01f, -0.13f, 0.8f,   -0.3f,  1.2f,   -0.2f,  0.84f,  0.79f, -1.84f, 0.04f,  0.04f,  -0.78f, 0.18f,
	-1.46f, 0.56f,  0.51f,  0.3f,   2.48f,  0.35f,  0.07f,  -0.73f, 0.3f,  -0.96f, 1.27f,  -0.65f, 0.16f,  1.99f,
	1.16f,  0.24f,  1.38f,  -0.05f, 0.8f,   0.02f,  -0.91f, 0.43f,  0.93f, -0.35f, -1.1f,  -0.53f, -2.38f, -0.61f,
	-1.08f, 2.02f,  -0.56f, -1.54f, 0.87f,  -0.18f, 0.05f,  0.19f,  0.21f, -0.37f, 0.95f,  0.52f,  -0.5f,  -0.17f,
	-0.94f, 0.28f,  0.74f,  0.65f,  0.61f,  -0.13f, 1.58f,  -0.21f, 0.03f, -0.34f, 0.08f,  -0.24f, 2.03f,  0.43f,
	-1.68f, -0.43f, -1.42f, 0.88f,  1.37f,  -0.45f, 0.61f,  -0.21f, 0.41f, 1.73f,  -0.35f, -1.23f, 0.72f,  0.52f,
	0.67f,  1.03f,  -0.68f, -1.97f, 1.04f,  -0.41f, -1.21f, -1.17f, 1.13f, 0.18f,  0.3f,   0.85f,  -0.68f, -1.13f,
	-0.85f, -1.1f,  -0.29f, -0.89f, 0.04f,  -0.48f, -0.08f, 0.65f,  1.4f,  1.56f,  0.11f,  0.21f,  -0.51f, 1.01f};
static float queries[QUERIES * WIDTH] = {1.53f,  -0.59f, 0.76f,  -0.33f, -0.17f, 0.18f,  -0.4f, 0.9f, -1.5f, -0.7f, -0.12f,
					 -1.04f, 0.36f,  -1.51f, 0.06f,  -1.44f, -0.15f, 0.51f, 2.2f, 1.08f, 1.62f, 0.07f};

static void check(enum vector_code code, int64_t multiplier, const struct nearest_row *expected)
{
	struct code_options options = {.calibration_vectors = test_path("ranges.npy"), .rescore_multiplier = multiplier};
	struct vectors all = {.values = documents, .width = WIDTH, .count = DOCUMENTS};
	struct code_ranges ranges = {0};
	unsigned char codes[DOCUMENTS * WIDTH];
	int64_t bytes = vector_code_count(code, WIDTH);
	assert_ok(code_ranges_find(&ranges, &all));
	for (int64_t d = 0; d < DOCUMENTS; d++) {
		float coded[WIDTH];
		vector_code(code, &ranges, documents + d * WIDTH, WIDTH, coded);
		for (int64_t i = 0; i < bytes; i++)
			codes[d * bytes + i] = (unsigned char)(int)coded[i];
	}
	for (int threads = 1; threads <= 2; threads++) {
		struct nearest_row found[QUERIES * MOST];
		struct code_search search = {.options = &options,
					     .queries = {.values = queries, .width = WIDTH, .count = QUERIES},
					     .code = code,
					     .codes = codes,
					     .count = DOCUMENTS,
					     .most = MOST};
		assert_ok(pool_create(&search.pool, threads));
		assert_ok(code_search_run(&search, found));
		for (int64_t i = 0; i < QUERIES * MOST; i++) {
			assert_int_equal(found[i].row, expected[i].row);
			assert_near((double)found[i].score, (double)expected[i].score, 2e-6);
		}
		pool_free(search.pool);
	}
	code_ranges_release(&ranges);
}

static void finds_what_sentence_transformers_finds(void **state)
{
	static const struct nearest_row bytes[] = {{2.697905f, 5},  {2.398438f, 8},  {1.186027f, 9},
						   {2.484947f, 10}, {1.032349f, 13}, {0.108569f, 1}};
	static const struct nearest_row bytes_once[] = {{1.186027f, 9},  {-0.086024f, 6}, {-2.187986f, 13},
							{2.484947f, 10}, {1.032349f, 13}, {-1.308756f, 9}};
	static const struct nearest_row bits[] = {{2.29f, 8}, {1.77f, 5}, {1.75f, 9}, {3.48f, 4}, {2.73f, 0}, {2.63f, 13}};
	static const struct nearest_row bits_once[] = {{2.29f, 8}, {1.77f, 5}, {1.75f, 9}, {3.48f, 4}, {2.73f, 0}, {1.27f, 1}};
	struct buffer file = {0};
	vector_put_npy_header(&file, "<f4", DOCUMENTS, WIDTH);
	buffer_append(&file, documents, sizeof documents);
	assert_ok(file_write(test_path("ranges.npy"), file.data, file.size));
	buffer_release(&file);
	check(CODE_UINT8, 2, bytes);
	check(CODE_INT8, 2, bytes);
	check(CODE_UINT8, 1, bytes_once);
	check(CODE_UBINARY, 2, bits);
	check(CODE_BINARY, 2, bits);
	check(CODE_BINARY, 1, bits_once);
}

static void a_query_that_is_not_finite_is_named(void **state)
{
	float odd[QUERIES * WIDTH];
	unsigned char codes[2] = {1, 2};
	struct code_options options = {.rescore_multiplier = 1};
	struct nearest_row found[QUERIES];
	struct code_search search = {.options = &options,
				     .queries = {.values = odd, .width = WIDTH, .count = QUERIES},
				     .code = CODE_UBINARY,
				     .codes = codes,
				     .count = 1,
				     .most = 1};
	memcpy(odd, queries, sizeof odd);
	odd[WIDTH + 3] = NAN;
	assert_ok(pool_create(&search.pool, 1));
	assert_error(ERR_NUMERIC, "the vector of query 2", code_search_run(&search, found));
	pool_free(search.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_sentence_transformers_finds),
					   cmocka_unit_test(a_query_that_is_not_finite_is_named)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
