/* Attention on the emulated device, beyond the cases shared by all back ends (test_operations.c): lengths on both sides of
 * every tile size, several blocks of keys, heads of every size that has a kernel, and a device with little shared memory,
 * where a sequence takes two kernels. */
#include "test.h"
#include "backend/cuda/state.h"
#include "check.h"
#include "emulation.h"
#include "operations.h"
#include "backend/open.h"

static const char *const lines[] = {
	/* One block of keys: 128 in tiles of 64, in chunks of 32, in parts of 16. */
	"attention_fwd T=129 H=64 heads=1 B=2 longest=128 p=0.1",
	"attention_fwd T=400 H=128 heads=2 B=9 longest=64 p=0.1",
	"attention_bwd T=129 H=64 heads=1 B=2 longest=128 p=0.1 bias=1",
	"attention_bwd T=400 H=128 heads=2 B=9 longest=64 p=0.1 bias=1 overwrite=0",
	"attention_bwd T=97 H=64 heads=1 B=3 longest=33 p=0.5 bias=1",
	/* Several blocks, of mixed lengths. */
	"attention_fwd T=900 H=64 heads=1 B=6 longest=512 p=0.1",
	"attention_bwd T=900 H=64 heads=1 B=6 longest=512 p=0.1 bias=1",
	"attention_fwd T=385 H=128 heads=2 B=1 longest=385",
	"attention_bwd T=385 H=128 heads=2 B=1 longest=385 bias=1",
	/* Heads of 32 and 128 columns; and of 24, for which there is no matrix kernel. */
	"attention_fwd T=333 H=96 heads=3 B=3 longest=200 p=0.1",
	"attention_bwd T=333 H=96 heads=3 B=3 longest=200 p=0.1 bias=1",
	"attention_fwd T=300 H=256 heads=2 B=4 longest=129 p=0.1",
	"attention_bwd T=300 H=256 heads=2 B=4 longest=129 p=0.1 bias=1",
	"attention_bwd T=150 H=128 heads=1 B=2 longest=128 bias=1",
	"attention_bwd T=75 H=72 heads=3 B=3 longest=50 p=0.1 bias=1 overwrite=0",
	/* Scores so large that a single key takes a whole row. */
	"attention_fwd T=200 H=64 heads=1 B=2 longest=150 scale=2",
	"attention_bwd T=200 H=64 heads=1 B=2 longest=150 scale=2",
};

static void run_line(struct checker *k, struct backend *ref, struct replica *replica, const char *line)
{
	struct test_case c;
	case_create(&c, line, k->backend->dtype, replica);
	case_expect(&c, ref);
	check_case(k, &c);
	case_release(&c);
}

/* Every step-th line on a device of compute capability major.minor. */
static void test_device(int major, int minor, enum dtype dtype, size_t step)
{
	struct emulated_device before = emulated_device;
	emulated_device.major = major;
	emulated_device.minor = minor;
	struct pool *pool, *ref_pool;
	struct backend *ref = open_backend("ref", DTYPE_F64, 2, &ref_pool);
	struct checker k = {.backend = open_backend("cuda", dtype, 1, &pool)};
	struct replica replica;
	open_reference_replica(ref, &replica);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i += step) {
		emulated_order = i;
		emulated_race_check = strtol(strstr(lines[i], "T=") + 2, NULL, 10) < 350; /* longer ones add no barriers */
		run_line(&k, ref, &replica, lines[i]);
	}
	emulated_order = 0;
	emulated_race_check = true;
	char title[64];
	snprintf(title, sizeof title, "sm_%d%d %s", major, minor, dtype_names[dtype]);
	print_margins(&k, title);
	ref->functions->replica_release(&replica);
	backend_close(k.backend);
	backend_close(ref);
	pool_free(pool);
	pool_free(ref_pool);
	emulated_device = before;
	assert_int_equal(k.failures, 0);
}

static struct cuda_state *changing;

static void change_kernel(void)
{
	changing->wgmma = !changing->wgmma;
}

/* Heads of 64 columns: wgmma gives the right results, which are those of mma, bit for bit. */
static void test_wgmma(void **state)
{
	for (int f16 = 0; f16 < 2; f16++) {
		struct pool *pool, *ref_pool;
		struct backend *ref = open_backend("ref", DTYPE_F64, 2, &ref_pool);
		struct checker k = {.backend = open_backend("cuda", f16 ? DTYPE_F16 : DTYPE_BF16, 1, &pool),
				    .before_again = change_kernel};
		struct replica replica;
		open_reference_replica(ref, &replica);
		changing = k.backend->state;
		for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
			if (f16 && i % 2)
				continue;
			changing->wgmma = true;
			emulated_order = i;
			emulated_race_check = strtol(strstr(lines[i], "T=") + 2, NULL, 10) < 350;
			run_line(&k, ref, &replica, lines[i]);
		}
		emulated_order = 0;
		emulated_race_check = true;
		print_margins(&k, f16 ? "wgmma f16" : "wgmma bf16");
		ref->functions->replica_release(&replica);
		backend_close(k.backend);
		backend_close(ref);
		pool_free(pool);
		pool_free(ref_pool);
		assert_int_equal(k.failures, 0);
	}
}

static void test_f32(void **state)
{
	test_device(9, 0, DTYPE_F32, 4);
}

static void test_bf16(void **state)
{
	test_device(9, 0, DTYPE_BF16, 1);
}

static void test_f16(void **state)
{
	test_device(9, 0, DTYPE_F16, 3);
}

/* 64 KiB of shared memory: no block can hold a head, so every backward pass takes two kernels. */
static void test_f16_of_little_shared_memory(void **state)
{
	test_device(7, 5, DTYPE_F16, 2);
}

/* The bytes of dqkv in bf16 on a device of compute capability major.minor; the caller frees them and *c. */
static unsigned char *gradients(int major, int minor, const char *line, struct test_case *c)
{
	struct emulated_device before = emulated_device;
	emulated_device.major = major;
	emulated_device.minor = minor;
	struct pool *pool, *ref_pool;
	struct backend *ref = open_backend("ref", DTYPE_F64, 1, &ref_pool), *be = open_backend("cuda", DTYPE_BF16, 1, &pool);
	struct replica ref_replica, replica;
	struct bound b;
	open_reference_replica(ref, &ref_replica);
	case_create(c, line, DTYPE_BF16, &ref_replica);
	assert_ok(be->functions->replica_create(be, &replica, &c->limits));
	bound_create(&b, c, be, &replica);
	bound_run(&b);
	unsigned char *bytes = bound_bytes(&b, find_array(c, "dqkv"));
	bound_release(&b);
	be->functions->replica_release(&replica);
	ref->functions->replica_release(&ref_replica);
	backend_close(be);
	backend_close(ref);
	pool_free(pool);
	pool_free(ref_pool);
	emulated_device = before;
	return bytes;
}

/* Asserts that sequences of at most `longest` tokens have the same gradients on an H100 and on another device. */
static void assert_like_h100(int major, int minor, const char *line, int32_t longest)
{
	struct test_case here, there;
	emulated_race_check = false;
	unsigned char *bytes = gradients(major, minor, line, &here), *others = gradients(9, 0, line, &there);
	emulated_race_check = true;
	size_t row = 2 * 3 * (size_t)here.limits.hidden;
	for (int32_t s = 0; s < here.batch.sequence_count; s++) {
		int32_t start = here.batch.starts[s], length = here.batch.starts[s + 1] - start;
		size_t at = GUARD_BYTES + (size_t)start * row;
		if (length <= longest && memcmp(bytes + at, others + at, (size_t)length * row) != 0)
			fail_msg("%s: sequence %d of %d tokens has other bits on sm_%d%d", line, s, length, major, minor);
	}
	free(bytes);
	free(others);
	case_release(&here);
	case_release(&there);
}

/* 99 KiB of shared memory (RTX 30, 40, 50, L4): heads of 128 columns never fall back to the kernels without matrix
 * instructions. */
static void test_long_sequences_of_large_heads(void **state)
{
	(void)state;
	assert_like_h100(8, 6, "attention_bwd T=390 H=128 heads=1 B=1 longest=390 p=0.1 bias=1", 390);
	assert_like_h100(12, 0, "attention_bwd T=390 H=128 heads=1 B=1 longest=390 window=70 p=0.1 bias=1", 390);
}

/* A long sequence does not change what handles short ones. */
static void a_long_sequence_leaves_short_ones_alone(void **state)
{
	(void)state;
	assert_like_h100(8, 0, "attention_bwd T=900 H=64 heads=1 B=6 longest=512 p=0.1 bias=1", 256);
}

/* Heads that no kernel can hold are refused before anything runs. */
static void test_large_heads(void **state)
{
	struct emulated_device before = emulated_device;
	struct shape_limits limits = {
		.batch = {128, 4, 8}, .longest = 32, .hidden = 512, .heads = 2, .vocab = 8, .intermediate = 8};
	for (int major = 7; major <= 9; major += 2) {
		emulated_device.major = major;
		emulated_device.minor = major == 7 ? 5 : 0;
		struct pool *pool;
		struct backend *be = open_backend("cuda", DTYPE_F16, 1, &pool);
		struct replica replica;
		enum status status = be->functions->replica_create(be, &replica, &limits);
		if (major == 7) {
			assert_int_equal(status, ERR_USAGE);
			assert_non_null(strstr(error_last()->message, "attention heads of 256 columns"));
		} else {
			assert_int_equal(status, OK);
			be->functions->replica_release(&replica);
		}
		backend_close(be);
		pool_free(pool);
	}
	emulated_device = before;
}

/* Backward of one head without tokens, which does nothing but requires the shared memory for `longest` tokens. */
static void queue_backward(const struct cuda_state *state, int32_t *zeros, int32_t longest)
{
	struct kernel_attention a = {.starts = zeros,
				     .samples = (uint32_t *)zeros,
				     .sequences = 1,
				     .heads = 1,
				     .hidden = 64,
				     .longest = longest,
				     .above = -1,
				     .upto = longest};
	assert_int_equal(kernel_attention_bwd(state->stream, DTYPE_BF16, &a), cudaSuccess);
}

/* A kernel's limit of shared memory applies to recorded launches, too: a shorter batch must not lower it. */
static void a_shorter_batch_leaves_recorded_graphs_alone(void **state)
{
	struct pool *pool;
	struct backend *be = open_backend("cuda", DTYPE_BF16, 1, &pool);
	const struct cuda_state *device = be->state;
	void *zeros;
	cudaGraph_t graph;
	cudaGraphExec_t recorded;
	assert_ok(be->functions->allocate(be, &zeros, 64, "a test"));
	assert_int_equal(cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
	queue_backward(device, zeros, 512);
	assert_int_equal(cudaStreamEndCapture(device->stream, &graph), cudaSuccess);
	assert_int_equal(cudaGraphInstantiate(&recorded, graph, 0), cudaSuccess);
	queue_backward(device, zeros, 256);
	assert_int_equal(cudaGraphLaunch(recorded, device->stream), cudaSuccess);
	assert_int_equal(cudaStreamSynchronize(device->stream), cudaSuccess);
	assert_int_equal(cudaGraphExecDestroy(recorded), cudaSuccess);
	assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
	be->functions->release(be, zeros);
	backend_close(be);
	pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wgmma),
		cmocka_unit_test(test_f32),
		cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_f16),
		cmocka_unit_test(test_f16_of_little_shared_memory),
		cmocka_unit_test(test_long_sequences_of_large_heads),
		cmocka_unit_test(a_long_sequence_leaves_short_ones_alone),
		cmocka_unit_test(test_large_heads),
		cmocka_unit_test(a_shorter_batch_leaves_recorded_graphs_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
