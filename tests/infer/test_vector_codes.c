/* Codes of vectors: those of sentence-transformers' quantize_embeddings(). */
#include "test.h"
#include "infer/vector_codes.h"

enum { WIDTH = 11 };

static const float calibration[6 * WIDTH] = {-0.8f,  -1.32f, -0.25f, 0.5f, 1.14f,  0.11f,  -0.55f, -0.78f, 0.75f,  1.63f,  0.27f,
					     -1.23f, -0.96f, 1.6f,   0.5f, -1.73f, -0.08f, -1.16f, -0.63f, -0.49f, -0.71f, 0.55f,
					     -0.06f, -0.59f, 0.41f,  0.5f, -1.64f, -0.26f, -0.98f, -0.17f, -1.29f, 0.02f,  -0.04f,
					     -0.3f,  -1.05f, -0.4f,  0.5f, -1.36f, 0.22f,  -1.11f, 1.17f,  0.72f,  -2,     0.27f,
					     -1.1f,  0.03f,  0.04f,  0.5f, -0.23f, -0.26f, 0.96f,  -1.18f, 0.74f,  -1.1f,  -0.33f,
					     -0.84f, 1.45f,  0.57f,  0.5f, 0.64f,  0.84f,  0.84f,  -0.61f, -0.07f, 1.35f,  -0.4f};
static const float vectors[2 * WIDTH] = {0.19f,  -0.02f, 0.61f,  0.5f,   -0.15f, 0.24f, 0.1f,   -0.86f, 0.9f,  -1.3f, -1.2f,
					 -1.28f, 0.97f,  -0.36f, -0.97f, -1.14f, 0.42f, -1.05f, -1.27f, 0.61f, -1.2f, -0.32f};

static void check(enum vector_code code, const struct code_ranges *ranges, const char *type, const int *expected)
{
	float codes[WIDTH];
	int64_t count = vector_code_count(code, WIDTH);
	assert_string_equal(vector_code_type(code), type);
	for (int64_t v = 0; v < 2; v++) {
		vector_code(code, ranges, vectors + v * WIDTH, WIDTH, codes);
		for (int64_t i = 0; i < count; i++)
			assert_int_equal((int)codes[i], expected[v * count + i]);
	}
}

static void codes_are_those_of_sentence_transformers(void **state)
{
	struct code_ranges ranges = {0};
	struct vectors some = {.values = calibration, .width = WIDTH, .count = 6};
	assert_ok(code_ranges_find(&ranges, &some));
	check(CODE_INT8, &ranges, "|i1", (const int[]){127,  -9, 0,    -128, 12,  -13, 23,   -94,  127, -79, -128,
						       -128, 82, -123, -128, -76, 29,  -115, -128, 109, -72, -107});
	check(CODE_UINT8, &ranges, "|u1",
	      (const int[]){255, 119, 128, 0, 140, 115, 151, 34, 255, 49, 0, 0, 210, 5, 0, 52, 157, 13, 0, 237, 56, 21});
	check(CODE_BINARY, NULL, "|i1", (const int[]){54, 0, -60, 0});
	check(CODE_UBINARY, NULL, "|u1", (const int[]){182, 128, 68, 128});
	code_ranges_release(&ranges);
	some.count = 1;
	assert_error(ERR_USAGE, "fewer than two vectors", code_ranges_find(&ranges, &some));
	code_ranges_release(&ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(codes_are_those_of_sentence_transformers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
