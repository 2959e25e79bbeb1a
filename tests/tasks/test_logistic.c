/* Logistic regression against scikit-learn: the numbers below are those of its LogisticRegression with C = 1 and tol = 1e-12, and
 * of OneVsRestClassifier, on the vectors that vectors() makes. */
#include "tasks/logistic.h"
#include "test.h"

enum { COUNT = 12, WIDTH = 3 };

static void vectors(float out[COUNT * WIDTH])
{
	for (int i = 0; i < COUNT; i++)
		for (int j = 0; j < WIDTH; j++)
			out[i * WIDTH + j] = (float)((i * 7 + j * 5) % 11 - 5) / 4 + (i % 3 == j ? 0.75f : 0);
}

static void check(const struct logistic_examples *examples, const double *weights, const double *biases)
{
	float fitted[3 * WIDTH], fitted_biases[3];
	assert_ok(logistic_fit(examples, fitted, fitted_biases));
	for (int64_t i = 0; i < examples->outputs * WIDTH; i++)
		assert_float_equal(fitted[i], weights[i], 2e-6);
	for (int64_t k = 0; k < examples->outputs; k++)
		assert_float_equal(fitted_biases[k], biases[k], 2e-6);
}

static void as_scikit_learn(void **state)
{
	(void)state;
	float x[COUNT * WIDTH], values[COUNT * 2];
	int32_t three[COUNT], two[COUNT];
	vectors(x);
	for (int i = 0; i < COUNT; i++) {
		three[i] = i % 3;
		two[i] = i % 3 == 0;
		values[2 * i] = i % 3 == 0;
		values[2 * i + 1] = i % 2 == 0;
	}
	struct logistic_examples examples = {.count = COUNT, .width = WIDTH, .outputs = 3, .vectors = x, .classes = three};
	check(&examples,
	      (const double[]){0.824092, -0.348249, 0.746685, 0.338076, 0.399859, -0.580327, -1.162168, -0.051611, -0.166358},
	      (const double[]){-0.397321, 0.315168, 0.082154});
	examples.outputs = 2;
	examples.classes = two;
	check(&examples, (const double[]){0, 0, 0, 1.009823, -0.488143, 0.782519}, (const double[]){0, -1.289576});
	examples.classes = NULL;
	examples.values = values;
	check(&examples, (const double[]){1.009823, -0.488143, 0.782519, -0.28037, -0.15949, -0.45542},
	      (const double[]){-1.289576, 0.241607});
}

/* Ridge with alpha = 1; the same from sparse vectors, whose elements may be in any order. */
static void numbers(void **state)
{
	(void)state;
	float x[COUNT * WIDTH], sparse[COUNT * WIDTH], values[COUNT];
	int64_t starts[COUNT + 1] = {0};
	int32_t columns[COUNT * WIDTH];
	vectors(x);
	for (int i = 0; i < COUNT; i++)
		values[i] = (float)(i * i % 7) - 1.5f;
	struct logistic_examples examples = {
		.count = COUNT, .width = WIDTH, .outputs = 1, .vectors = x, .values = values, .squared = true};
	const double weights[] = {-0.082285, -0.451943, -0.428372}, bias = 0.693367;
	check(&examples, weights, &bias);
	for (int i = 0; i < COUNT; i++) {
		starts[i + 1] = starts[i];
		for (int j = WIDTH - 1; j >= 0; j--)
			if (x[i * WIDTH + j] != 0) {
				columns[starts[i + 1]] = j;
				sparse[starts[i + 1]++] = x[i * WIDTH + j];
			}
	}
	examples.vectors = sparse;
	examples.starts = starts;
	examples.columns = columns;
	check(&examples, weights, &bias);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_scikit_learn),
		cmocka_unit_test(numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
