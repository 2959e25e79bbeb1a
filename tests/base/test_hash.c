/* Checksums by known answers, and hashes that must never change. */
#include "test.h"
#include "base/hash.h"
#include "base/rng.h"

/* RFC 3720 B.4 and the usual check value. */
static void crc32c_known_answers(void **state)
{
	unsigned char bytes[32];
	assert_int_equal(crc32c(0, "123456789", 9), 0xE3069283);
	assert_int_equal(crc32c(0, "", 0), 0);
	memset(bytes, 0, 32);
	assert_int_equal(crc32c(0, bytes, 32), 0x8A9136AA);
	memset(bytes, 0xFF, 32);
	assert_int_equal(crc32c(0, bytes, 32), 0x62A8AB43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(crc32c(0, bytes, 32), 0x46DD794E);
	assert_int_equal(crc32c_portable(0, bytes, 32), 0x46DD794E);
	/* "foo" in LevelDB's tests; TFRecord's masking comes from LevelDB */
	assert_int_equal(crc32c_masked(0), 0xA282EAD8);
	assert_int_equal(crc32c_masked(crc32c(0, "foo", 3)), (uint32_t)((0xCFC4AE1D >> 15 | 0xCFC4AE1Du << 17) + 0xA282EAD8));
}

/* The instruction and the tables agree for every length, alignment and split. */
static void crc32c_ways_agree(void **state)
{
	unsigned char bytes[300];
	struct rng rng = rng_start(3, RNG_TEST, 0);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)rng_u32(&rng);
	for (size_t start = 0; start < 9; start++) {
		for (size_t count = 0; start + count <= sizeof bytes; count++) {
			uint32_t whole = crc32c(0, bytes + start, count);
			assert_int_equal(whole, crc32c_portable(0, bytes + start, count));
			size_t cut = count / 3;
			assert_int_equal(whole, crc32c(crc32c(0, bytes + start, cut), bytes + start + cut, count - cut));
		}
	}
}

/* Hashes are stored in files: they must never change. */
static void hash64_is_stable(void **state)
{
	assert_true(hash64("", 0) == 0x2D06800538D394C2); /* from the specification of XXH3 */
	assert_true(hash64("a", 1) == 0xE6C632B61E964E1F);
	assert_true(hash64_combine(1, 2) != hash64_combine(2, 1));
	uint64_t pair[2] = {1, 2};
	assert_true(hash64_combine(1, 2) == hash64(pair, sizeof pair));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_known_answers),
		cmocka_unit_test(crc32c_ways_agree),
		cmocka_unit_test(hash64_is_stable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
