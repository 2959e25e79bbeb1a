/* The CUDA back end's device, emulated: its messages when there is none or it fails, copies, batches, the choice of
 * products. */
#include <string.h>
#include <unistd.h>
#include "data/pretraining/instances.h"
#include "test.h"
#include "backend/cuda/gemm.h"
#include "cublasLt.h"
#include "backend/cuda/gemm_cache.h"
#include "base/file.h"
#include "base/rng.h"
#include "emulation.h"
#include "fp8_rounding.h"
#include "backend/open.h"

static struct pool *pool;

static enum status try_open(struct backend **be, enum dtype dtype)
{
	return backend_open(be, &(struct backend_settings){.device = "cuda", .dtype = dtype, .pool = pool});
}

static enum status try_fp8(struct backend **be, enum dtype dtype)
{
	return backend_open(be, &(struct backend_settings){.device = "cuda", .dtype = dtype, .fp8 = true, .pool = pool});
}

static struct backend *open_device(enum dtype dtype)
{
	struct backend *be;
	assert_ok(try_open(&be, dtype));
	return be;
}

static const struct shape_limits small = {.batch = INSTANCE_CAPACITY(300, 7, 50),
					  .longest = 128,
					  .hidden = 64,
					  .heads = 1,
					  .intermediate = 256,
					  .vocab = 100,
					  .training = true,
					  .exact = true};

static void expect_refusal_of(enum status (*open)(struct backend **be, enum dtype dtype), struct emulated_device device,
			      enum dtype dtype, enum status status, const char *message, const char *hint)
{
	struct emulated_device before = emulated_device;
	struct backend *be;
	emulated_device = device;
	assert_int_equal(open(&be, dtype), status);
	emulated_device = before;
	cudaGetLastError();
	if (!strstr(error_last()->message, message) || !strstr(error_last()->hint, hint))
		print_error("%s\n%s\n", error_last()->message, error_last()->hint);
	assert_non_null(strstr(error_last()->message, message));
	assert_non_null(strstr(error_last()->hint, hint));
	assert_int_equal(emulated_blocks(), 0);
}

static void expect_refusal(struct emulated_device device, enum dtype dtype, enum status status, const char *message,
			   const char *hint)
{
	expect_refusal_of(try_open, device, dtype, status, message, hint);
}

static void what_is_not_there_is_said(void **state)
{
	struct emulated_device device = emulated_device;
	device.driver_version = 0;
	expect_refusal(device, DTYPE_F32, ERR_RESOURCE, "no NVIDIA driver", "--device cpu");
	device = emulated_device;
	device.count = 0;
	expect_refusal(device, DTYPE_F32, ERR_RESOURCE, "no GPU", "nvidia-smi");
	device = emulated_device;
	device.major = 7;
	expect_refusal(device, DTYPE_F16, ERR_RESOURCE, "too old", "Turing");
	device.minor = 5;
	expect_refusal(device, DTYPE_BF16, ERR_USAGE, "does not compute in bf16", "fp16");
	expect_refusal_of(try_fp8, device, DTYPE_BF16, ERR_USAGE, "capability 7.5, 8.9 is needed", "--precision fp16");
	device.major = 8;
	device.minor = 6;
	expect_refusal_of(try_fp8, device, DTYPE_BF16, ERR_USAGE, "capability 8.6, 8.9 is needed", "--precision bf16");
	device = emulated_device;
	device.memory = 1 << 20;
	struct backend *be;
	struct replica replica;
	struct emulated_device before = emulated_device;
	emulated_device = device;
	be = open_device(DTYPE_F32);
	assert_int_equal(be->functions->replica_create(be, &replica, &small), ERR_RESOURCE);
	assert_non_null(strstr(error_last()->message, "not enough GPU memory for the workspace"));
	backend_close(be);
	emulated_device = before;
	assert_int_equal(emulated_blocks(), 0);
}

static void a_failing_device_is_reported_once_it_is_waited_for(void **state)
{
	struct backend *be = open_device(DTYPE_F32);
	struct replica replica;
	assert_ok(be->functions->replica_create(be, &replica, &small));
	void *memory;
	assert_ok(be->functions->allocate(be, &memory, 4096, "a test"));
	emulated_fail_after(0, cudaErrorECCUncorrectable);
	cuda_run(&replica, kernel_random(cuda_stream(&replica), DTYPE_F32, 100, 1, 1, memory), "random");
	assert_int_equal(be->functions->synchronize(&replica), ERR_RESOURCE);
	assert_non_null(strstr(error_last()->message, "ECC"));
	assert_non_null(strstr(error_last()->hint, "checkpoint"));
	emulated_fail_after(-1, cudaSuccess);
	assert_int_equal(be->functions->synchronize(&replica), ERR_RESOURCE); /* permanently */
	be->functions->replica_release(&replica);
	backend_close(be);
}

/* Sizes on both sides of the size of the pinned blocks. */
static void copies_arrive(void **state)
{
	static const size_t sizes[] = {1, 1000, STAGE_BYTES - 1, STAGE_BYTES, STAGE_BYTES + 1, 6 * STAGE_BYTES + 12345};
	struct backend *be = open_device(DTYPE_F32);
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		unsigned char *host = malloc(sizes[s]), *back = calloc(1, sizes[s]);
		struct rng rng = rng_start(1, RNG_TEST, s);
		for (size_t i = 0; i < sizes[s]; i++)
			host[i] = (unsigned char)rng_u32(&rng);
		void *device;
		assert_ok(be->functions->allocate(be, &device, sizes[s], "a test"));
		be->functions->to_device(be, device, host, sizes[s]);
		memcpy(back, host, sizes[s]);
		memset(host, 0, sizes[s]); /* it may be reused at once */
		unsigned char *expected = back;
		unsigned char *got = malloc(sizes[s]);
		be->functions->to_host(be, got, device, sizes[s]);
		assert_memory_equal(got, expected, sizes[s]);
		be->functions->release(be, device);
		free(host);
		free(back);
		free(got);
	}
	backend_close(be);
}

/* The batch numbered `number`, which determines T, B, P and the contents. */
static void make_batch(struct batch *batch, int number)
{
	struct batch_capacity capacity = small.batch;
	assert_ok(batch_create(batch, &capacity));
	batch->token_count = 300 - number;
	batch->sequence_count = 7 - number % 3;
	batch->labels[HEAD_MASKED_WORDS].count = 50 - number;
	batch->longest = 128;
	for (int i = 0; i < batch->token_count; i++) {
		batch->ids[i] = number * 1000 + i;
		batch->id_order[i] = i;
	}
	for (int i = 0; i < batch->labels[HEAD_MASKED_WORDS].count; i++) {
		batch->labels[HEAD_MASKED_WORDS].rows[i] = i * 2;
		batch->labels[HEAD_MASKED_WORDS].weights[i] = (float)number + (float)i / 64;
	}
	batch->starts[batch->sequence_count] = batch->token_count;
}

/* Batches are uploaded without waiting; each is complete for everything queued after its upload. */
static void batches_arrive_in_order(void **state)
{
	enum { BATCHES = 5 };
	struct backend *be = open_device(DTYPE_F32);
	struct replica replica;
	assert_ok(be->functions->replica_create(be, &replica, &small));
	float *copy[BATCHES], got[64];
	struct batch host[BATCHES], device;
	for (int n = 0; n < BATCHES; n++) {
		void *memory;
		assert_ok(be->functions->allocate(be, &memory, sizeof got, "a test"));
		copy[n] = memory;
		make_batch(&host[n], n);
		be->functions->upload(&replica, &host[n], &device);
		assert_int_equal(device.token_count, host[n].token_count);
		/* Something that reads the batch later: prediction weights as rows of one column, gathered by row index /
		 * 2. */
		gather_fwd(&replica, &(struct gather_fwd){
					     .rows = device.labels[HEAD_MASKED_WORDS].rows,
					     .count = 20,
					     .x = {.data = device.labels[HEAD_MASKED_WORDS].weights,
						   .dtype = DTYPE_F32,
						   .rows = 50,
						   .columns = 1},
					     .y = {.data = copy[n], .dtype = DTYPE_F32, .rows = 20, .columns = 1},
				     });
		host[n].labels[HEAD_MASKED_WORDS].weights[0] = -1; /* the host's copy may change at once */
		if (n % 2)
			cuda_batches_clear_next(&replica); /* while the copy may still be pending */
	}
	assert_ok(be->functions->synchronize(&replica));
	for (int n = 0; n < BATCHES; n++) {
		be->functions->to_host(be, got, copy[n], 20 * sizeof(float));
		for (int i = 0; i < 20; i++)
			assert_true(got[i] == (float)n + (float)(2 * i) / 64);
	}
	int32_t ids[300];
	be->functions->to_host(be, ids, device.ids, sizeof ids);
	assert_int_equal(ids[0], (BATCHES - 1) * 1000);
	assert_int_equal(ids[299], 0); /* beyond T */
	for (int n = 0; n < BATCHES; n++) {
		be->functions->release(be, copy[n]);
		batch_release(&host[n]);
	}
	be->functions->replica_release(&replica);
	backend_close(be);
	assert_int_equal(emulated_blocks(), 0);
}

/* About a millisecond passes from one call to the next. */
static double ticking_clock(void)
{
	static double now;
	return now += 1.0 / 1024;
}

static enum status whole_product(struct backend *be, enum whole_product product, int64_t rows, double *seconds)
{
	return be->functions->whole_product(be, product, rows, 32, 16, ticking_clock, seconds);
}

/* The first run measures, the next one reads the results. */
static void products_are_chosen_once(void **state)
{
	char folder[] = "/tmp/bertc-test-XXXXXX";
	assert_non_null(mkdtemp(folder));
	setenv("BERTC_CACHE", folder, 1);
	for (int run = 0; run < 3; run++) {
		struct backend *be = open_device(DTYPE_BF16);
		double seconds;
		int64_t plans, measured;
		for (int product = WHOLE_FORWARD; product <= WHOLE_WGRAD; product++)
			for (int again = 0; again < 2; again++)
				assert_ok(whole_product(be, (enum whole_product)product, 64, &seconds));
		/* Rows of the same size class share a choice. */
		assert_ok(whole_product(be, WHOLE_FORWARD, 61, &seconds));
		assert_ok(whole_product(be, WHOLE_WGRAD, 62, &seconds));
		gemm_counts(((struct cuda_state *)be->state)->gemm, &plans, &measured);
		assert_int_equal(plans, 3);
		assert_int_equal(measured, run == 0 ? 3 : 0);
		backend_close(be);
		struct name_list files = {0};
		assert_ok(folder_list(folder, &files));
		assert_int_equal(files.count, 1);
		/* Damage costs only the affected choice, here that of no shape at all: the file is read line by line. */
		char path[PATH_BYTES];
		assert_ok(path_join(path, folder, files.names[0]));
		if (run == 1)
			assert_ok(file_append_line(path, "64 32 16 nonsense = 12"));
		name_list_release(&files);
	}
	setenv("BERTC_CACHE", "", 1);
	assert_ok(folder_remove(folder));
}

static void run_products(struct backend *be, int64_t *out_measured)
{
	double seconds;
	int64_t plans;
	for (int product = WHOLE_FORWARD; product <= WHOLE_WGRAD; product++)
		assert_ok(whole_product(be, (enum whole_product)product, 64, &seconds));
	gemm_counts(((struct cuda_state *)be->state)->gemm, &plans, out_measured);
}

/* Choices made by one run are adopted and passed on by another, once each; unusable ones are made again. */
static void choices_are_handed_on(void **state)
{
	struct buffer first = {0}, second = {0}, third = {0};
	int64_t measured;
	struct backend *be = open_device(DTYPE_BF16);
	run_products(be, &measured);
	assert_int_equal(measured, 3);
	be->functions->choices(be, &first);
	backend_close(be);

	be = open_device(DTYPE_BF16);
	assert_true(be->functions->use_choices(be, buffer_string(&first)));
	assert_true(be->functions->use_choices(be, buffer_string(&first)));
	be->functions->choices(be, &second); /* before any choice has been made */
	assert_string_equal(buffer_string(&first), buffer_string(&second));
	run_products(be, &measured);
	assert_int_equal(measured, 0);
	buffer_clear(&second);
	be->functions->choices(be, &second);
	assert_string_equal(buffer_string(&first), buffer_string(&second));
	backend_close(be);

	/* An algorithm that the library does not know, and an invalid line. */
	be = open_device(DTYPE_BF16);
	char *mark = strstr(first.data, "656d756c61746564");
	mark[0] = '7';
	buffer_text(&first, "nonsense\n");
	assert_true(be->functions->use_choices(be, buffer_string(&first)));
	run_products(be, &measured);
	assert_int_equal(measured, 1);
	be->functions->choices(be, &third);
	assert_null(strstr(third.data, "756d756c61746564"));
	assert_null(strstr(third.data, "nonsense"));
	assert_false(be->functions->use_choices(be, "another device, cuBLASLt 13.1.0\n"));
	assert_false(be->functions->use_choices(be, ""));
	backend_close(be);
	buffer_release(&first);
	buffer_release(&second);
	buffer_release(&third);
}

/* An algorithm for operands aligned to 256 bytes is not used for other operands, for which a separate choice is made. */
static void products_know_how_their_operands_are_aligned(void **state)
{
	struct backend *be = open_device(DTYPE_BF16);
	struct replica replica;
	int64_t plans, measured;
	void *memory[3];
	assert_ok(be->functions->replica_create(be, &replica, &small));
	for (int i = 0; i < 3; i++)
		assert_ok(be->functions->allocate(be, &memory[i], 1 << 14, "a test"));
	struct product p = {.operation = "a test",
			    .inputs = DTYPE_BF16,
			    .output = DTYPE_BF16,
			    .rows = 16,
			    .columns = 32,
			    .depth = 16,
			    .a_stride = 16,
			    .b_stride = 16,
			    .b_transposed = true,
			    .y_stride = 32};
	for (int offset = 0; offset < 4; offset++) { /* none, then that of each operand in turn */
		p.a = (char *)memory[0] + 16 * (offset == 1);
		p.b = (char *)memory[1] + 16 * (offset == 2);
		p.y = (char *)memory[2] + 16 * (offset == 3);
		cuda_product(&replica, &p);
		cuda_product(&replica, &p);
		assert_ok(be->functions->synchronize(&replica));
		gemm_counts(((struct cuda_state *)be->state)->gemm, &plans, &measured);
		assert_int_equal(plans, offset + 1);
		assert_int_equal(measured, offset + 1);
	}
	struct buffer choices = {0};
	be->functions->choices(be, &choices);
	assert_non_null(strstr(choices.data, " bf16 nt aligned 256 16 256 256 ="));
	buffer_release(&choices);
	for (int i = 0; i < 3; i++)
		be->functions->release(be, memory[i]);
	be->functions->replica_release(&replica);
	backend_close(be);
}

/* Sums of 16-bit numbers lose what lies more than 23 binary places below the largest addend, as in tensor cores; those of
 * fp32 do not. */
static void sums_are_cut_as_tensor_cores_cut_them(void **state)
{
	enum { ROWS = 16, DEPTH = 64 };
	for (int wide = 0; wide < 2; wide++) {
		struct backend *be = open_device(wide ? DTYPE_F32 : DTYPE_BF16);
		struct replica replica;
		void *memory[2];
		float y[ROWS * ROWS];
		uint32_t x[ROWS * DEPTH] = {0}; /* 1, then 2^-12: products of 1 and 2^-24 */
		for (int i = 0; i < ROWS * DEPTH; i++) {
			uint32_t bits = i % DEPTH == 0 ? 0x3f800000 : 0x39800000;
			if (wide)
				x[i] = bits;
			else
				x[i / 2] |= bits >> 16 << (i % 2 * 16);
		}
		assert_ok(be->functions->replica_create(be, &replica, &small));
		assert_ok(be->functions->allocate(be, &memory[0], sizeof x, "a test"));
		assert_ok(be->functions->allocate(be, &memory[1], sizeof y, "a test"));
		be->functions->to_device(be, memory[0], x, sizeof x);
		cuda_product(&replica, &(struct product){.operation = "a test",
							 .inputs = be->dtype,
							 .output = DTYPE_F32,
							 .rows = ROWS,
							 .columns = ROWS,
							 .depth = DEPTH,
							 .a = memory[0],
							 .a_stride = DEPTH,
							 .b = memory[0],
							 .b_stride = DEPTH,
							 .b_transposed = true,
							 .y = memory[1],
							 .y_stride = ROWS});
		be->functions->to_host(be, y, memory[1], sizeof y);
		assert_ok(be->functions->synchronize(&replica));
		assert_true(wide ? y[0] > 1.000002f : y[0] == 1);
		be->functions->release(be, memory[0]);
		be->functions->release(be, memory[1]);
		be->functions->replica_release(&replica);
		backend_close(be);
	}
}

/* BERTC_PRODUCT_CANDIDATES=1: nothing is measured. */
static void products_can_be_taken_unmeasured(void **state)
{
	int64_t measured;
	struct backend *be;
	setenv("BERTC_PRODUCT_CANDIDATES", "1", 1);
	be = open_device(DTYPE_BF16);
	run_products(be, &measured);
	assert_int_equal(measured, 0);
	backend_close(be);
	setenv("BERTC_PRODUCT_CANDIDATES", "none", 1);
	assert_error(ERR_USAGE, "BERTC_PRODUCT_CANDIDATES is 'none': 1 to 64 are possible", try_open(&be, DTYPE_BF16));
	unsetenv("BERTC_PRODUCT_CANDIDATES");
}

/* The finalists are compared while the device is hot: an algorithm that is fast only at first is not chosen. */
static void products_are_chosen_under_load(void **state)
{
	for (int hot = 0; hot < 2; hot++) {
		struct buffer choices = {0};
		double seconds;
		setenv("BERTC_PRODUCT_MS", hot ? "20" : "0", 1);
		emulated_cool_products = 40;
		struct backend *be = open_device(DTYPE_BF16);
		assert_ok(whole_product(be, WHOLE_FORWARD, 64, &seconds));
		be->functions->choices(be, &choices);
		assert_non_null(strstr(buffer_string(&choices),
				       hot ? "= 656d756c61746564 0000000000000001" : "= 656d756c61746564 0000000000000000"));
		buffer_release(&choices);
		backend_close(be);
	}
	emulated_cool_products = INT64_MAX;
	struct backend *be;
	setenv("BERTC_PRODUCT_MS", "1.5", 1);
	assert_error(ERR_USAGE, "BERTC_PRODUCT_MS is '1.5': 0 to 1000 are possible", try_open(&be, DTYPE_BF16));
	unsetenv("BERTC_PRODUCT_MS");
}

/* How often the library is called for a product that is to be repeated for so many milliseconds. */
static int64_t calls_for(struct backend *be, enum whole_product product, const char *milliseconds)
{
	double seconds;
	emulated_cool_products = INT64_MAX;
	setenv("BERTC_LIBRARY_MS", milliseconds, 1);
	assert_ok(whole_product(be, product, 64, &seconds));
	unsetenv("BERTC_LIBRARY_MS");
	return INT64_MAX - emulated_cool_products;
}

/* Whole products are measured in the device's precision, FP8 included, once their algorithms are chosen. */
static void whole_products_are_repeated(void **state)
{
	for (int fp8 = 0; fp8 < 2; fp8++) {
		struct buffer choices = {0};
		struct backend *be;
		assert_ok(backend_open(&be, &(struct backend_settings){.device = "cuda", .dtype = DTYPE_BF16, .fp8 = fp8}));
		for (int product = WHOLE_FORWARD; product <= WHOLE_WGRAD; product++) {
			calls_for(be, (enum whole_product)product, "0");
			assert_int_equal(calls_for(be, (enum whole_product)product, "0"), 9);
			/* Nine before, then twice as many as last 5 ms: eight took 1/1024 s of this clock. */
			assert_int_equal(calls_for(be, (enum whole_product)product, "10"), 9 + 2 * 40);
		}
		be->functions->choices(be, &choices);
		for (int product = WHOLE_FORWARD; product <= WHOLE_WGRAD; product++) {
			static const char *const types[][2] = {{" bf16 bf16 nt", " e4m3 bf16 nt"},
							       {" bf16 bf16 nn", " e4m3-e5m2 bf16 nt"},
							       {" bf16 fp32 tn", " e4m3-e5m2 fp32 nt"}};
			assert_non_null(strstr(buffer_string(&choices), types[product][fp8]));
		}
		buffer_release(&choices);
		backend_close(be);
	}
	emulated_cool_products = INT64_MAX;
}

/* Where HOME is unset or not writable, as in many containers, choices are still cached. */
static void choices_are_kept_without_a_home(void **state)
{
	struct gemm_cache cache;
	char folder[64];
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	unsetenv("BERTC_CACHE");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	gemm_cache_open(&cache, "a test");
	assert_non_null(strstr(cache.path, "/products-a-test"));
	gemm_cache_close(&cache);
	setenv("HOME", "/nonexistent", 1);
	gemm_cache_open(&cache, "a test");
	snprintf(folder, sizeof folder, "/var/tmp/bertc-%u", (unsigned)geteuid());
	assert_memory_equal(cache.path, folder, strlen(folder));
	gemm_cache_close(&cache);
	rmdir(folder);
	/* A folder that others could have put there is not read. */
	assert_int_equal(symlink("/tmp", folder), 0);
	gemm_cache_open(&cache, "a test");
	assert_string_equal(cache.path, "");
	gemm_cache_close(&cache);
	assert_int_equal(unlink(folder), 0);
	if (home)
		setenv("HOME", home, 1);
	free(home);
	setenv("BERTC_CACHE", "", 1);
}

/* Ranks of one machine measure at the same time, each for itself: all take the choice that was stored first. */
static void ranks_take_the_choice_that_was_stored_first(void **state)
{
	char folder[] = "/tmp/bertc-cache-XXXXXX";
	assert_non_null(mkdtemp(folder));
	setenv("BERTC_CACHE", folder, 1);
	struct gemm_cache first, second;
	uint64_t one[8] = {1, 2, 3}, two[8] = {4, 5, 6}, other[8] = {7};
	gemm_cache_open(&first, "a test");
	gemm_cache_open(&second, "a test");
	gemm_cache_add(&first, "a product", one);
	gemm_cache_add(&second, "a product", two);
	gemm_cache_add(&second, "another product", other);
	assert_int_equal(one[0], 1);
	assert_memory_equal(two, one, sizeof one);
	assert_int_equal(other[0], 7);
	gemm_cache_close(&first);
	gemm_cache_close(&second);
	char path[128];
	snprintf(path, sizeof path, "%s/products-a-test", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	setenv("BERTC_CACHE", "", 1);
}

/* What a resumed run compares in order to say whether it continues bit for bit. */
static void numerics_name_the_kernels(void **state)
{
	struct backend *be = open_device(DTYPE_BF16);
	assert_non_null(strstr(be->numerics, ", kernels "));
	assert_non_null(strstr(be->numerics, " wgmma bf16"));
	backend_close(be);
	setenv("BERTC_ATTENTION", "mma", 1);
	be = open_device(DTYPE_BF16);
	assert_null(strstr(be->numerics, "wgmma"));
	backend_close(be);
	unsetenv("BERTC_ATTENTION");
}

static void errors_say_what_to_do(void **state)
{
	assert_error(ERR_RESOURCE, "the GPU failed", cuda_error(cudaErrorSystemNotReady, "cudaGetDeviceCount"));
	assert_non_null(strstr(error_last()->hint, "nvidia-fabricmanager"));
}

/* The number of kernels that a linear layer with GELU queues, forward and backward, on a device that has cached `lines`;
 * its choices are appended to `out`. */
static int64_t kernels_of_gelu(enum activation activation, const char *lines, struct buffer *out)
{
	struct backend *be = open_device(DTYPE_BF16);
	struct replica r;
	float values[16 * FP8_WIDTH];
	for (int i = 0; i < 16 * FP8_WIDTH; i++)
		values[i] = (float)(i % 37 - 18) / 16;
	assert_ok(be->functions->replica_create(be, &r, &small));
	assert_true(lines[0] == '\0' || be->functions->use_choices(be, lines));
	struct weight w = {.use = WEIGHT_LINEAR, .master = fp8_tensor(be, DTYPE_F32, 16, values)};
	struct weight b = {.use = WEIGHT_VECTOR, .master = fp8_tensor(be, DTYPE_F32, 1, values)}, *const weights[] = {&w, &b};
	w.gradient = fp8_tensor(be, DTYPE_F32, 16, NULL);
	for (int i = 0; i < 2; i++) {
		weights[i]->copy_bytes = (int64_t)be->functions->weight_copy_bytes(be, weights[i]);
		assert_ok(be->functions->allocate(be, &weights[i]->copy, (size_t)weights[i]->copy_bytes, "a test"));
	}
	be->functions->weights_refresh(&r, weights, 2);
	struct tensor x = fp8_tensor(be, DTYPE_BF16, 16, values), pre = fp8_tensor(be, DTYPE_BF16, 16, NULL),
		      y = fp8_tensor(be, DTYPE_BF16, 16, NULL), dx = fp8_tensor(be, DTYPE_BF16, 16, NULL);
	int64_t before = 0;
	for (int i = 0; i < 2; i++) { /* the first time, it chooses */
		assert_ok(be->functions->synchronize(&r));
		before = emulated_launches;
		linear_gelu_fwd(
			&r, &(struct linear_gelu_fwd){.w = &w, .b = &b, .activation = activation, .x = x, .pre = pre, .y = y});
		linear_bwd(
			&r,
			&(struct linear_bwd){
				.w = &w, .pre_activation = activation, .overwrite = true, .dy = x, .x = y, .pre = pre, .dx = dx});
	}
	assert_ok(be->functions->synchronize(&r));
	int64_t kernels = emulated_launches - before;
	be->functions->choices(be, out);
	be->functions->replica_release(&r);
	backend_close(be);
	return kernels;
}

/* The tanh form uses the library's epilogue if that is faster, which it is on this device; a cached choice to the contrary
 * is kept; the erf form never uses it. */
static void epilogues_are_a_choice(void **state)
{
	struct buffer lines = {0}, again = {0}, erf = {0};
	assert_int_equal(kernels_of_gelu(ACTIVATION_GELU_TANH, "", &lines), 0);
	char *text = lines.data, *at = strstr(text, " gelu pre = ");
	assert_non_null(at);
	assert_non_null(strstr(text, " dgelu = "));
	for (char *c = at + strlen(" gelu pre = "); *c != '\n'; c++)
		*c = *c == ' ' ? ' ' : '0';
	assert_int_equal(kernels_of_gelu(ACTIVATION_GELU_TANH, text, &again), 1);
	assert_non_null(strstr(again.data, " gelu pre = 0000000000000000 "));
	assert_int_equal(kernels_of_gelu(ACTIVATION_GELU_ERF, "", &erf), 2);
	assert_null(strstr(erf.data, "gelu"));
	buffer_release(&lines);
	buffer_release(&again);
	buffer_release(&erf);
}

/* All three products of a linear layer: none uses our own plain kernel, and every number is rounded as fp8.h says. */
static void products_in_fp8_are_the_librarys(void **state)
{
	struct backend *be;
	int64_t plans, measured;
	assert_ok(try_fp8(&be, DTYPE_BF16));
	check_fp8_rounding(be);
	gemm_counts(((struct cuda_state *)be->state)->gemm, &plans, &measured);
	assert_int_equal(plans, 3);
	assert_int_equal(measured, 3);
	backend_close(be);
	assert_int_equal(emulated_blocks(), 0);
}

int main(void)
{
	setenv("BERTC_CACHE", "", 1); /* no cache file */
	assert_ok(pool_create(&pool, 1));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_there_is_said),
		cmocka_unit_test(a_failing_device_is_reported_once_it_is_waited_for),
		cmocka_unit_test(copies_arrive),
		cmocka_unit_test(batches_arrive_in_order),
		cmocka_unit_test(products_are_chosen_once),
		cmocka_unit_test(choices_are_handed_on),
		cmocka_unit_test(products_know_how_their_operands_are_aligned),
		cmocka_unit_test(products_can_be_taken_unmeasured),
		cmocka_unit_test(products_are_chosen_under_load),
		cmocka_unit_test(whole_products_are_repeated),
		cmocka_unit_test(sums_are_cut_as_tensor_cores_cut_them),
		cmocka_unit_test(choices_are_kept_without_a_home),
		cmocka_unit_test(ranks_take_the_choice_that_was_stored_first),
		cmocka_unit_test(numerics_name_the_kernels),
		cmocka_unit_test(errors_say_what_to_do),
		cmocka_unit_test(products_in_fp8_are_the_librarys),
		cmocka_unit_test(epilogues_are_a_choice),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	pool_free(pool);
	return failed;
}
