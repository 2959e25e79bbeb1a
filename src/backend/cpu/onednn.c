/* The only calls into oneDNN for packed products; its primitives are made once per shape, with scratch memory of ours. */
#include "backend/cpu/onednn.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cpu/onednn_version.h"
#include "base/log.h"
#include "base/memory.h"

/* The library crashes if there is no memory for the machine code that it generates, a few megabytes in all. */
#define ROOM ((int64_t)32 << 20)

/* What one worker needs to run a product; data handles are set at each call. */
struct call {
	dnnl_memory_t x, packed, y, master;
	dnnl_memory_t multiply_scratch, add_scratch, pack_scratch; /* views of `scratch` */
	void *scratch;
};

struct product {
	struct product_shape shape;
	struct onednn *dnnl;
	dnnl_primitive_t multiply, multiply_add, pack; /* y = x w; y += x w, if the shape asks; packing w */
	size_t packed_bytes;
	struct product_layout layout;
	struct call *calls; /* [workers] */
	struct product *next;
};

struct onednn {
	dnnl_engine_t engine;
	dnnl_stream_t *streams; /* [workers] */
	int workers;
	struct product *products;
	char version[32];
};

/* Panels of columns whose rows along k are contiguous, in bf16 as pairs: "BA16a64b" and "BA16a64b2a", with any sizes. */
static struct product_layout layout_of(const_description d, enum dtype dtype)
{
	struct product_layout none = {0};
	struct blocking b = blocking_of(d);
	bool pairs = dtype == DTYPE_BF16;
	if (b.count != (pairs ? 3 : 2) || b.dimensions[0] != 0 || b.dimensions[1] != 1)
		return none;
	if (pairs && (b.dimensions[2] != 0 || b.sizes[2] != 2))
		return none;
	int64_t panel = b.sizes[1], rows = b.sizes[0] * (pairs ? 2 : 1);
	if (panel % 16 || b.padded[0] % rows || b.strides[0] != rows * panel || b.strides[1] != b.padded[0] * panel)
		return none;
	return (struct product_layout){.panel = panel, .k_padded = b.padded[0]};
}

static dnnl_memory_t memory_handle(const struct onednn *dnnl, const_description d)
{
	dnnl_memory_t out;
	CHECK(dnnl_memory_create(&out, d, dnnl->engine, DNNL_MEMORY_NONE));
	return out;
}

/* Scratch memory is ours, one piece per worker: oneDNN's own is shared by all threads that use a primitive. */
static dnnl_primitive_attr_t attributes_new(bool accumulate)
{
	dnnl_primitive_attr_t out;
	CHECK(dnnl_primitive_attr_create(&out));
	CHECK(dnnl_primitive_attr_set_scratchpad_mode(out, dnnl_scratchpad_mode_user));
	if (accumulate) {
		dnnl_post_ops_t sum;
		CHECK(dnnl_post_ops_create(&sum));
#if DNNL_VERSION_MAJOR >= 3
		CHECK(dnnl_post_ops_append_sum(sum, 1, 0, dnnl_data_type_undef));
#else
		CHECK(dnnl_post_ops_append_sum(sum, 1));
#endif
		CHECK(dnnl_primitive_attr_set_post_ops(out, sum));
		dnnl_post_ops_destroy(sum);
	}
	return out;
}

static size_t scratch_bytes(const_dnnl_primitive_desc_t primitive)
{
	return dnnl_memory_desc_get_size(described(primitive, dnnl_query_scratchpad_md));
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static dnnl_memory_t scratch_handle(const struct onednn *dnnl, const_dnnl_primitive_desc_t primitive, void *scratch)
{
	dnnl_memory_t out = memory_handle(dnnl, described(primitive, dnnl_query_scratchpad_md));
	CHECK(dnnl_memory_set_data_handle(out, scratch));
	return out;
}

/* Makes the primitives and every worker's handles; `product` is zeroed except for shape, dnnl and calls. */
static dnnl_status_t product_make(struct product *product)
{
	struct onednn *dnnl = product->dnnl;
	const struct product_shape *s = &product->shape;
	description x = describe_strides(ROW_MULTIPLE, s->k, data_type(s->dtype), s->k, 1);
	description w = describe_any(s->k, s->n, data_type(s->dtype));
	description y = describe_strides(ROW_MULTIPLE, s->n, dnnl_f32, s->n, 1);
	description master = describe_strides(s->k, s->n, dnnl_f32, s->k_stride, s->n_stride);
	dnnl_primitive_attr_t plain = attributes_new(false), sum = attributes_new(true);
	dnnl_primitive_desc_t multiply = NULL, multiply_add = NULL, pack = NULL;
	dnnl_status_t status = describe_matmul(&multiply, dnnl->engine, borrow(&x), borrow(&w), borrow(&y), plain);
	if (status == dnnl_success) {
		const_description packed = described(multiply, dnnl_query_weights_md);
		product->packed_bytes = dnnl_memory_desc_get_size(packed);
		product->layout = layout_of(packed, s->dtype);
		CHECK(dnnl_primitive_create(&product->multiply, multiply));
		CHECK(dnnl_reorder_primitive_desc_create(&pack, borrow(&master), dnnl->engine, packed, dnnl->engine, plain));
		CHECK(dnnl_primitive_create(&product->pack, pack));
		size_t scratch = larger(scratch_bytes(multiply), scratch_bytes(pack));
		if (s->accumulates) {
			CHECK(describe_matmul(&multiply_add, dnnl->engine, borrow(&x), packed, borrow(&y), sum));
			CHECK(dnnl_primitive_create(&product->multiply_add, multiply_add));
			scratch = larger(scratch, scratch_bytes(multiply_add));
		}
		for (int i = 0; i < dnnl->workers; i++) {
			struct call *call = &product->calls[i];
			call->scratch = aligned_alloc(4096, scratch / 4096 * 4096 + 4096);
			BUG_IF(!call->scratch);
			call->x = memory_handle(dnnl, borrow(&x));
			call->packed = memory_handle(dnnl, packed);
			call->y = memory_handle(dnnl, borrow(&y));
			call->master = memory_handle(dnnl, borrow(&master));
			call->multiply_scratch = scratch_handle(dnnl, multiply, call->scratch);
			call->pack_scratch = scratch_handle(dnnl, pack, call->scratch);
			if (s->accumulates)
				call->add_scratch = scratch_handle(dnnl, multiply_add, call->scratch);
		}
		dnnl_primitive_desc_destroy(multiply);
		dnnl_primitive_desc_destroy(multiply_add);
		dnnl_primitive_desc_destroy(pack);
	}
	dnnl_primitive_attr_destroy(plain);
	dnnl_primitive_attr_destroy(sum);
	forget(x);
	forget(w);
	forget(y);
	forget(master);
	return status;
}

static void product_free(struct product *product)
{
	for (int i = 0; product->calls && i < product->dnnl->workers; i++) {
		struct call *call = &product->calls[i];
		dnnl_memory_destroy(call->x);
		dnnl_memory_destroy(call->packed);
		dnnl_memory_destroy(call->y);
		dnnl_memory_destroy(call->master);
		dnnl_memory_destroy(call->multiply_scratch);
		dnnl_memory_destroy(call->add_scratch);
		dnnl_memory_destroy(call->pack_scratch);
		free(call->scratch);
	}
	dnnl_primitive_destroy(product->multiply);
	dnnl_primitive_destroy(product->multiply_add);
	dnnl_primitive_destroy(product->pack);
	free(product->calls);
	free(product);
}

static enum status product_new(struct onednn *dnnl, const struct product_shape *shape, struct product **out)
{
	struct product *product;
	TRY(memory_new(&product, 1, sizeof *product, "a matrix product"));
	product->shape = *shape;
	product->dnnl = dnnl;
	enum status status;
	TRY_GOTO(memory_new(&product->calls, dnnl->workers, sizeof *product->calls, "a matrix product"), fail);
	dnnl_status_t made = product_make(product);
	if (made != dnnl_success) {
		status = error_set(ERR_RESOURCE, "%s cannot make a matrix product (status %d)", dnnl->version, (int)made);
		error_hint("it writes machine code at run time: is executable memory forbidden here?");
		goto fail;
	}
	product->next = dnnl->products;
	dnnl->products = product;
	*out = product;
	return OK;
fail:
	product_free(product);
	return status;
}

static void single_thread(void *context, int64_t index, int worker)
{
	(void)context, (void)index, (void)worker;
	omp_set_num_threads(1);
}

static dnnl_cpu_isa_t isa_limit(enum cpu_isa isa)
{
	switch (isa) {
	case CPU_ISA_AVX2: return dnnl_cpu_isa_avx2;
	case CPU_ISA_AVX512:
	case CPU_ISA_AVX512_VNNI: return dnnl_cpu_isa_avx512_core;
	case CPU_ISA_AVX512_BF16: return dnnl_cpu_isa_avx512_core_bf16;
	default:
#if DNNL_VERSION_MAJOR >= 3
		return dnnl_cpu_isa_default;
#else
		return dnnl_cpu_isa_all;
#endif
	}
}

static enum status open_it(struct onednn **out, struct pool *pool, enum cpu_isa isa)
{
	struct onednn *dnnl = NULL;
	enum status status;
	if (memory_available() < ROOM) {
		char need[FORMAT_BYTES], have[FORMAT_BYTES];
		return error_set(ERR_RESOURCE, "not enough memory for oneDNN: %s needed, %s available",
				 format_size(need, (double)ROOM), format_size(have, (double)memory_available()));
	}
	TRY(memory_new(&dnnl, 1, sizeof *dnnl, "oneDNN"));
	dnnl->workers = pool_threads(pool);
	const dnnl_version_t *version = dnnl_version();
	snprintf(dnnl->version, sizeof dnnl->version, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
	/* Fails harmlessly if oneDNN has already been used in this process: the limit is then already set. */
	dnnl_set_max_cpu_isa(isa_limit(isa));
	TRY_GOTO(memory_new(&dnnl->streams, dnnl->workers, sizeof *dnnl->streams, "oneDNN"), fail);
	pool_run_each(pool, single_thread, NULL);
	dnnl_status_t made = dnnl_engine_create(&dnnl->engine, dnnl_cpu, 0);
	for (int i = 0; made == dnnl_success && i < dnnl->workers; i++)
		made = dnnl_stream_create(&dnnl->streams[i], dnnl->engine, dnnl_stream_default_flags);
	if (made != dnnl_success) {
		status = error_set(ERR_RESOURCE, "%s does not start (status %d)", dnnl->version, (int)made);
		goto fail;
	}
	struct product *probe;
	TRY_GOTO(product_new(dnnl, &(struct product_shape){.n = 64, .k = 64, .dtype = DTYPE_F32, .k_stride = 1, .n_stride = 64},
			     &probe),
		 fail);
	*out = dnnl;
	return OK;
fail:
	onednn_close(dnnl);
	return status;
}

enum status onednn_open(struct onednn **out, struct pool *pool, enum cpu_isa isa, bool restore)
{
	int threads = omp_get_max_threads();
	enum status status = open_it(out, pool, isa);
	if (restore)
		omp_set_num_threads(threads);
	return status;
}

void onednn_close(struct onednn *dnnl)
{
	if (!dnnl)
		return;
	while (dnnl->products) {
		struct product *product = dnnl->products;
		dnnl->products = product->next;
		product_free(product);
	}
	for (int i = 0; dnnl->streams && i < dnnl->workers; i++)
		dnnl_stream_destroy(dnnl->streams[i]);
	dnnl_engine_destroy(dnnl->engine);
	free(dnnl->streams);
	free(dnnl);
}

const char *onednn_version(const struct onednn *dnnl)
{
	return dnnl->version;
}

static bool same_shape(const struct product_shape *a, const struct product_shape *b)
{
	return a->n == b->n && a->k == b->k && a->dtype == b->dtype && a->k_stride == b->k_stride && a->n_stride == b->n_stride &&
	       a->accumulates == b->accumulates;
}

const struct product *onednn_product(struct onednn *dnnl, const struct product_shape *shape)
{
	for (struct product *p = dnnl->products; p; p = p->next)
		if (same_shape(&p->shape, shape))
			return p;
	struct product *out = NULL;
	omp_set_num_threads(1); /* the caller need not be the thread that called onednn_open() */
	BUG_IF(product_new(dnnl, shape, &out) != OK);
	return out;
}

size_t product_packed_bytes(const struct product *product)
{
	return product->packed_bytes;
}

struct product_layout product_layout(const struct product *product)
{
	return product->layout;
}

void product_pack(const struct product *product, const float *master, void *packed, int worker)
{
	struct call *call = &product->calls[worker];
	/* oneDNN takes no pointers to const, but writes only to its destination. */
	CHECK(dnnl_memory_set_data_handle(call->master, (void *)(uintptr_t)master));
	CHECK(dnnl_memory_set_data_handle(call->packed, packed));
	dnnl_exec_arg_t arguments[] = {
		{DNNL_ARG_FROM, call->master}, {DNNL_ARG_TO, call->packed}, {DNNL_ARG_SCRATCHPAD, call->pack_scratch}};
	CHECK(dnnl_primitive_execute(product->pack, product->dnnl->streams[worker], 3, arguments));
}

void product_run(const struct product *product, bool accumulate, const void *x, const void *packed, float *y, int worker)
{
	struct call *call = &product->calls[worker];
	CHECK(dnnl_memory_set_data_handle(call->x, (void *)(uintptr_t)x));
	CHECK(dnnl_memory_set_data_handle(call->packed, (void *)(uintptr_t)packed));
	CHECK(dnnl_memory_set_data_handle(call->y, y));
	dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, call->x},
				       {DNNL_ARG_WEIGHTS, call->packed},
				       {DNNL_ARG_DST, call->y},
				       {DNNL_ARG_SCRATCHPAD, accumulate ? call->add_scratch : call->multiply_scratch}};
	CHECK(dnnl_primitive_execute(accumulate ? product->multiply_add : product->multiply, product->dnnl->streams[worker], 4,
				     arguments));
}
