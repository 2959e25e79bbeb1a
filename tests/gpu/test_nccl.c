/* NCCL with one rank on a real GPU: large operations of every type on a stream of their own, ordered with respect to the
 * back end's stream. With several GPUs, tests/gpu/run.sh also trains on two of them. */
#include <math.h>
#include <string.h>
#include "test.h"
#include "backend/backend.h"
#include "backend/open.h"
#include "base/pool.h"
#include "comm/device.h"

#define COUNT 1000003 /* not a multiple of 64 */

static struct pool *pool;
static struct backend *be;
static struct comm *comm;

static enum dtype dtype_of(enum comm_type type)
{
	return type == COMM_F32 ? DTYPE_F32 : type == COMM_BF16 ? DTYPE_BF16 : DTYPE_F16;
}

static enum status convert(void *context, void *stream, void *out, enum comm_type out_type, const void *in,
			   enum comm_type in_type, int64_t count)
{
	(void)context;
	return be->functions->convert(be, stream, out, dtype_of(out_type), in, dtype_of(in_type), count);
}

/* comm_use_device() does nothing for one rank, since such a run does not need NCCL. */
static int setup(void **state)
{
	struct backend_settings settings = {.device = "cuda", .dtype = DTYPE_F32};
	assert_ok(pool_create(&pool, 1));
	settings.pool = pool;
	assert_ok(backend_open(&be, &settings));
	assert_ok(comm_open(&comm, &(struct comm_settings){.place = NULL}));
	struct comm_device device = {.stream = be->functions->queue(be), .convert = convert, .explain = be->functions->explain};
	assert_ok(nccl_use(comm, &device));
	return 0;
}

static int teardown(void **state)
{
	comm_close(comm);
	backend_close(be);
	pool_free(pool);
	return 0;
}

static void run(int32_t kind, void *data, enum comm_type wire)
{
	struct operation operation = {.kind = kind, .type = COMM_F32, .wire = wire, .data = data, .count = COUNT};
	comm_ticket ticket = comm->device->begin(comm, &operation);
	assert_ok(comm->device->wait(comm, ticket));
}

static void numbers_come_back(void **state)
{
	static const struct {
		enum comm_type wire;
		double limit;
	} wires[] = {{COMM_F32, 0}, {COMM_BF16, 1.0 / 256}, {COMM_F16, 1.0 / 2048}};
	float *host = malloc(COUNT * sizeof *host), *back = malloc(COUNT * sizeof *back);
	void *data;
	assert_ok(comm->device->allocate(comm, &data, COUNT * sizeof *host, "a test"));
	assert_ok(comm->device->reserve(comm, COUNT * 2));
	for (int64_t i = 0; i < COUNT; i++)
		host[i] = (float)sin((double)i) + 2;
	for (size_t w = 0; w < sizeof wires / sizeof *wires; w++) {
		be->functions->to_device(be, data, host, COUNT * sizeof *host); /* queued: the sum comes after it */
		run(OPERATION_REDUCE_SCATTER, data, wires[w].wire);
		run(OPERATION_ALL_GATHER, data, COMM_F32);
		assert_ok(comm->device->settle(comm, 0));
		be->functions->to_host(be, back, data, COUNT * sizeof *host);
		for (int64_t i = 0; i < COUNT; i++)
			assert_true(fabs((double)back[i] - (double)host[i]) <= wires[w].limit * (double)host[i]);
	}
	double busy, exposed;
	comm->device->seconds(comm, &busy, &exposed);
	assert_true(busy > 0 && exposed >= 0);
	comm->device->release(comm, data);
	free(host);
	free(back);
}

/* Work that waits for NCCL's operations continues when they are aborted, and all later operations fail. */
static void abandoned_operations_fail(void **state)
{
	void *data;
	assert_ok(comm->device->allocate(comm, &data, COUNT * sizeof(float), "a test"));
	struct operation operation = {
		.kind = OPERATION_ALL_GATHER, .type = COMM_F32, .wire = COMM_F32, .data = data, .count = COUNT};
	comm_ticket ticket = comm->device->begin(comm, &operation);
	assert_ok(comm->device->wait(comm, ticket));
	assert_int_equal(error_set(ERR_PEER, "a test"), ERR_PEER);
	comm->device->abandon(comm);
	assert_int_equal(comm->device->wait(comm, ticket), ERR_PEER);
	assert_int_equal(comm->device->settle(comm, 0), ERR_PEER);
	comm->device->release(comm, data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_come_back),
		cmocka_unit_test(abandoned_operations_fail),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
