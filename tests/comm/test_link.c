/* Times of collectives, against values computed by hand from the formulas in docs/parallel.md. */
#include "comm/link.h"
#include "test.h"

#define US 1e-6

/* `ranks` ranks in hosts of `per_host` ranks, with these links. */
static struct topology hosts_of(int64_t ranks, int64_t per_host, const char *local, const char *network, int64_t cards)
{
	return (struct topology){ranks, per_host, *link_find(local), *link_find(network), cards};
}

static void assert_time(const struct topology *topology, enum collective collective, double bytes, double seconds,
			const char *algorithm)
{
	struct collective_time time = collective_time(topology, collective, bytes);
	assert_near(time.seconds, seconds, 2e-4 * seconds);
	assert_string_equal(time.algorithm, algorithm);
}

/* 8.4 + 7 x 3.4 us and 672 MB x 7/8 over 369 GB/s; twice the steps for an all-reduce. */
static void test_one_host(void **state)
{
	struct topology eight = hosts_of(8, 8, "nvlink4", "ndr", 8);
	assert_time(&eight, COLLECTIVE_REDUCE_SCATTER, 672e6, 32.2 * US + 588e6 / 369e9, "ring, Simple");
	assert_time(&eight, COLLECTIVE_ALL_GATHER, 672e6, 32.2 * US + 588e6 / 369e9, "ring, Simple");
	/* 8.4 + 14 x 3.4 us, 1,176 MB over 235 GB/s. */
	struct topology a100 = hosts_of(8, 8, "nvlink3", "hdr", 8);
	assert_time(&a100, COLLECTIVE_ALL_REDUCE, 672e6, 56 * US + 1176e6 / 235e9, "ring, Simple");
	/* Small messages: 6.6 + 14 x 0.6 us in words with flags. */
	assert_time(&a100, COLLECTIVE_ALL_REDUCE, 16, 15.0 * US, "ring, LL");
	/* 1 MB: 14 + 7 x 1.9 us, 875 kB over 235 x 120/128 GB/s; Simple would be 32.2 + 3.7 us, LL 10.8 + 7.4. */
	assert_time(&a100, COLLECTIVE_REDUCE_SCATTER, 1e6, 10.8 * US + 875e3 / 117.5e9, "ring, LL");
	assert_time(&a100, COLLECTIVE_REDUCE_SCATTER, 8e6, 27.3 * US + 7e6 / 220.3125e9, "ring, LL128");
}

static void test_many_hosts(void **state)
{
	/* Eight rails of 46.9 GB/s are 375.2 GB/s; the ring within hosts has 369. 63 steps, 7 of them between hosts. */
	struct topology t = hosts_of(64, 8, "nvlink4", "ndr", 8);
	assert_int_equal(topology_hosts(&t), 8);
	double lines = 14 * US + 56 * 1.9 * US + 7 * 4 * US + 672e6 * 63 / 64 / (369e9 * 120 / 128);
	double simple = 8.4 * US + 56 * 3.4 * US + 7 * 14 * US + 672e6 * 63 / 64 / 369e9;
	assert_true(lines < simple);
	assert_time(&t, COLLECTIVE_REDUCE_SCATTER, 672e6, lines, "ring, LL128");
	/* A few numbers, by a tree of three levels: 6.8 us + 14 x 0.6 x 1.8 us + 6 x 5 us. */
	assert_time(&t, COLLECTIVE_ALL_REDUCE, 16, 51.92 * US, "tree, LL");
	/* 1,024 ranks, 25 MB: 6.6 us + 896 x 0.6 x 1.8 us + 127 x 2.7 us, half the bandwidth. */
	struct topology large = hosts_of(1024, 8, "nvlink4", "ndr", 8);
	assert_time(&large, COLLECTIVE_REDUCE_SCATTER, 25e6, 1317.18 * US + 25e6 * 1023 / 1024 / 184.5e9, "ring, LL");
}

static void test_without_nccl(void **state)
{
	/* Shared memory: a rank reads a quarter of each of four blocks; for a gather, three quarters. */
	struct topology four = hosts_of(4, 4, "shared", "10gbe", 1);
	double rate = link_find("shared")->bandwidth;
	assert_time(&four, COLLECTIVE_REDUCE_SCATTER, 100e6, 20 * US + 100e6 / rate, "shared memory");
	assert_time(&four, COLLECTIVE_ALL_GATHER, 100e6, 20 * US + 75e6 / rate, "shared memory");
	assert_time(&four, COLLECTIVE_ALL_REDUCE, 100e6, 40 * US + 175e6 / rate, "shared memory");
	/* Two hosts of two: half of the data of each of two ranks leaves a host, 100 MB over 1.15 GB/s; 24 rounds of 4
	 * MiB, and all of it is added up. For a gather, two rounds of 16 MiB, and half of it is copied. */
	struct topology two = hosts_of(4, 2, "shared", "10gbe", 1);
	assert_time(&two, COLLECTIVE_REDUCE_SCATTER, 100e6, 720 * US + 100e6 / 1.15e9 + 100e6 / rate, "exchange");
	assert_time(&two, COLLECTIVE_ALL_GATHER, 100e6, 60 * US + 100e6 / 1.15e9 + 50e6 / rate, "exchange");
	struct topology one = hosts_of(1, 1, "shared", "10gbe", 1);
	assert_time(&one, COLLECTIVE_ALL_REDUCE, 100e6, 0, "");
}

/* Measured memory speed lies between that of a slow bus and that of a cache. */
static void test_measured(void **state)
{
	struct link_kind memory;
	assert_ok(link_measure_memory(&memory));
	assert_true(memory.wire == WIRE_MEMORY && memory.provenance == FIGURE_MEASURED);
	assert_true(memory.bandwidth > 1e7 && memory.bandwidth < 1e12);
	assert_true(memory.copies > 1e7 && memory.copies < 1e12);
}

static void test_table(void **state)
{
	assert_null(link_find("token ring"));
	for (const struct link_kind *kind = link_kinds; kind->name; kind++) {
		assert_ptr_equal(link_find(kind->name), kind);
		assert_true(kind->bandwidth > 0 && kind->source[0]);
		assert_true(kind->provenance == FIGURE_PUBLISHED || kind->provenance == FIGURE_ESTIMATE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_host), cmocka_unit_test(test_many_hosts), cmocka_unit_test(test_without_nccl),
		cmocka_unit_test(test_measured), cmocka_unit_test(test_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
