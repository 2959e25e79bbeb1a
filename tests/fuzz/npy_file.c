/* NumPy's array files, of numbers and of bytes. A file that is accepted has all the numbers that its header promises. */
#include "formats/npy_file.h"
#include "fuzz.h"

#define HEAD(type, order, shape) "\x93NUMPY\1\0\x46\0{'descr': '" type "', 'fortran_order': " order ", 'shape': (" shape "), }"

FUZZ_SEEDS(FUZZ_SEED(HEAD("<f4", "False", "1, 2") "            \nabcdefgh"),
	   FUZZ_SEED(HEAD("<f2", "True", "3,") "              \nabcdef"), FUZZ_SEED("\x93NUMPY\2\0\x10\0\0\0{'descr': '<f4'}"),
	   FUZZ_SEED(HEAD("|u1", "False", "2, 4") "            \nabcdefgh"),
	   FUZZ_SEED(HEAD("|i1", "False", "2, 4") "            \nabcdefgh"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char *copy = fuzz_copy(bytes, count);
	for (int takes_codes = 0; takes_codes < 2; takes_codes++) {
		struct npy_file file = {.takes_codes = takes_codes};
		volatile float sum = 0;
		if (npy_view((const unsigned char *)copy, count, "vectors", &file) != OK)
			continue;
		BUG_IF((file.values == NULL) == (file.codes == NULL) || (file.codes && !takes_codes));
		for (int64_t i = 0; i < file.rows * file.columns; i++)
			sum += file.values ? file.values[i] : (float)file.codes[i];
	}
	free(copy);
	return 0;
}
