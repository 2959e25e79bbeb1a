/* NumPy's array files. A file that is accepted has all the numbers that its header promises. */
#include "formats/npy_file.h"
#include "fuzz.h"

#define HEAD(type, order, shape) "\x93NUMPY\1\0\x46\0{'descr': '" type "', 'fortran_order': " order ", 'shape': (" shape "), }"

FUZZ_SEEDS(FUZZ_SEED(HEAD("<f4", "False", "1, 2") "            \nabcdefgh"),
	   FUZZ_SEED(HEAD("<f2", "True", "3,") "              \nabcdef"), FUZZ_SEED("\x93NUMPY\2\0\x10\0\0\0{'descr': '<f4'}"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct npy_file file = {0};
	char *copy = fuzz_copy(bytes, count);
	if (npy_view((const unsigned char *)copy, count, "vectors", &file) == OK) {
		volatile float sum = 0;
		for (int64_t i = 0; i < file.rows * file.columns; i++)
			sum += file.values[i];
	}
	free(copy);
	return 0;
}
