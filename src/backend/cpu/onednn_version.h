/* Hides the differences between oneDNN 2.x and 3.x: memory descriptors and matmul. The only header that includes dnnl.h. */
#ifndef BACKEND_CPU_ONEDNN_VERSION_H
#define BACKEND_CPU_ONEDNN_VERSION_H

#include <stdio.h>
#include <oneapi/dnnl/dnnl.h>
#include "backend/tensor.h"
#include "base/error.h"

/* For oneDNN calls that must not fail. */
static inline void onednn_check(dnnl_status_t status, const char *what)
{
	if (status == dnnl_success)
		return;
	fprintf(stderr, "oneDNN: %s failed with status %d\n", what, (int)status);
	BUG_IF(status != dnnl_success);
}
#define CHECK(call) onednn_check(call, #call)

static inline dnnl_data_type_t data_type(enum dtype dtype)
{
	return dtype == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* Strides between whole blocks, and the inner blocks from the largest to the smallest: "sizes[i] of dimensions[i]". */
struct blocking {
	const dnnl_dim_t *strides, *padded, *sizes, *dimensions;
	int count;
};

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t description;             /* owned */
typedef const_dnnl_memory_desc_t const_description; /* borrowed */

static inline description describe_strides(int64_t rows, int64_t columns, dnnl_data_type_t type, int64_t row_stride,
					   int64_t column_stride)
{
	description out;
	CHECK(dnnl_memory_desc_create_with_strides(&out, 2, (dnnl_dims_t){rows, columns}, type,
						   (dnnl_dims_t){row_stride, column_stride}));
	return out;
}

static inline description describe_any(int64_t rows, int64_t columns, dnnl_data_type_t type)
{
	description out;
	CHECK(dnnl_memory_desc_create_with_tag(&out, 2, (dnnl_dims_t){rows, columns}, type, dnnl_format_tag_any));
	return out;
}

static inline const_description borrow(const description *d)
{
	return *d;
}

static inline void forget(description d)
{
	dnnl_memory_desc_destroy(d);
}

static inline dnnl_status_t describe_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const_description x,
					    const_description w, const_description y, dnnl_primitive_attr_t attributes)
{
	return dnnl_matmul_primitive_desc_create(out, engine, x, w, NULL, y, attributes);
}

static inline struct blocking blocking_of(const_description d)
{
	struct blocking out = {0};
	CHECK(dnnl_memory_desc_query(d, dnnl_query_strides, &out.strides));
	CHECK(dnnl_memory_desc_query(d, dnnl_query_padded_dims, &out.padded));
	CHECK(dnnl_memory_desc_query(d, dnnl_query_inner_nblks_s32, &out.count));
	CHECK(dnnl_memory_desc_query(d, dnnl_query_inner_blks, &out.sizes));
	CHECK(dnnl_memory_desc_query(d, dnnl_query_inner_idxs, &out.dimensions));
	return out;
}
#else
typedef dnnl_memory_desc_t description;
typedef const dnnl_memory_desc_t *const_description;

static inline description describe_strides(int64_t rows, int64_t columns, dnnl_data_type_t type, int64_t row_stride,
					   int64_t column_stride)
{
	description out;
	CHECK(dnnl_memory_desc_init_by_strides(&out, 2, (dnnl_dims_t){rows, columns}, type,
					       (dnnl_dims_t){row_stride, column_stride}));
	return out;
}

static inline description describe_any(int64_t rows, int64_t columns, dnnl_data_type_t type)
{
	description out;
	CHECK(dnnl_memory_desc_init_by_tag(&out, 2, (dnnl_dims_t){rows, columns}, type, dnnl_format_tag_any));
	return out;
}

static inline const_description borrow(const description *d)
{
	return d;
}

static inline void forget(description d)
{
	(void)d;
}

static inline dnnl_status_t describe_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const_description x,
					    const_description w, const_description y, dnnl_primitive_attr_t attributes)
{
	dnnl_matmul_desc_t matmul;
	dnnl_status_t status = dnnl_matmul_desc_init(&matmul, x, w, NULL, y);
	return status == dnnl_success ? dnnl_primitive_desc_create(out, &matmul, attributes, engine, NULL) : status;
}

static inline struct blocking blocking_of(const_description d)
{
	return (struct blocking){.strides = d->format_desc.blocking.strides,
				 .padded = d->padded_dims,
				 .sizes = d->format_desc.blocking.inner_blks,
				 .dimensions = d->format_desc.blocking.inner_idxs,
				 .count = d->format_desc.blocking.inner_nblks};
}
#endif

static inline const_description described(const_dnnl_primitive_desc_t primitive, dnnl_query_t what)
{
	return dnnl_primitive_desc_query_md(primitive, what, 0);
}

#endif
