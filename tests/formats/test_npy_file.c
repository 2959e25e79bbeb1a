/* NumPy's array files: what is read, and what is refused. */
#include "test.h"
#include <math.h>
#include "formats/npy_file.h"

static enum status view(const char *head, size_t prefix, size_t numbers, struct npy_file *out)
{
	static _Alignas(16) unsigned char bytes[512];
	size_t length = 128 - prefix;
	memset(bytes, ' ', sizeof bytes);
	memcpy(bytes, "\x93NUMPY\1\0", 8);
	bytes[6] = prefix == 10 ? 1 : 3;
	memset(bytes + 8, 0, 4);
	bytes[8] = (unsigned char)length;
	memcpy(bytes + prefix, head, strlen(head));
	for (size_t i = 0; i < numbers; i++) {
		float number = (float)i / 4;
		memcpy(bytes + 128 + 4 * i, &number, 4);
	}
	return npy_view(bytes, 128 + 4 * numbers, "vectors.npy", out);
}

#define HEAD(type, order, shape) "{'descr': '" type "', 'fortran_order': " order ", 'shape': (" shape "), }"

static void reads_matrices(void **state)
{
	struct npy_file file = {0};
	assert_ok(view(HEAD("<f4", "False", "2, 3"), 10, 6, &file));
	assert_int_equal(file.rows, 2);
	assert_int_equal(file.columns, 3);
	assert_true(file.values[4] == 1);
	assert_ok(view(HEAD("<f4", "False", "0, 3"), 12, 0, &file));
	assert_int_equal(file.rows, 0);
}

static void numbers_must_be_finite(void **state)
{
	float values[] = {1, -2, 0, INFINITY};
	const struct npy_file file = {.rows = 2, .columns = 2, .values = values};
	assert_error(ERR_DATA, "'v.npy': row 2 has a number that is not finite", npy_file_check(&file, "v.npy"));
	values[3] = 3;
	assert_ok(npy_file_check(&file, "v.npy"));
}

static void refuses_the_rest(void **state)
{
	struct npy_file file = {0};
	assert_error(ERR_DATA, "of the type '<f8', not float32", view(HEAD("<f8", "False", "2, 3"), 10, 6, &file));
	assert_error(ERR_DATA, "column by column", view(HEAD("<f4", "True", "2, 3"), 10, 6, &file));
	assert_error(ERR_DATA, "its shape is not (rows, columns)", view(HEAD("<f4", "False", "6,"), 10, 6, &file));
	assert_error(ERR_DATA, "its shape is not (rows, columns)", view(HEAD("<f4", "False", "1, 2, 3"), 10, 6, &file));
	assert_error(ERR_DATA, "names no type or order", view("{}", 10, 6, &file));
	assert_error(ERR_DATA, "should hold 2 vectors of 3 numbers, and has 20 bytes",
		     view(HEAD("<f4", "False", "2, 3"), 10, 5, &file));
	assert_error(ERR_DATA, "does not begin as NumPy's",
		     npy_view((const unsigned char *)"\x93NUMPZ\1\0 (no more)", 16, "x", &file));
	assert_error(ERR_DATA, "its header is too long",
		     npy_view((const unsigned char *)"\x93NUMPY\1\0\xff\0{}    ", 16, "x", &file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_matrices), cmocka_unit_test(numbers_must_be_finite),
					   cmocka_unit_test(refuses_the_rest)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
