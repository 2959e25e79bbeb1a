/* Opens the emulated device together with the reference, for tests that run operations on both. */
#ifndef TESTS_CUDA_BESIDE_REFERENCE_H
#define TESTS_CUDA_BESIDE_REFERENCE_H

#include "test.h"
#include "check.h"
#include "emulation.h"
#include "operations.h"
#include "backend/open.h"

static struct pool *pool, *ref_pool;
static struct backend *be, *ref;
static struct replica ref_replica;

/* An emulated GPU of this compute capability. */
static void open_both(int major, int minor, const struct backend_settings *settings)
{
	emulated_device.major = major;
	emulated_device.minor = minor;
	be = open_backend_as(*settings, 1, &pool);
	ref = open_backend("ref", DTYPE_F64, 1, &ref_pool);
	open_reference_replica(ref, &ref_replica);
}

static void close_both(void)
{
	ref->functions->replica_release(&ref_replica);
	backend_close(ref);
	pool_free(ref_pool);
	backend_close(be);
	pool_free(pool);
	assert_int_equal(emulated_blocks(), 0);
}

#endif
