/* Gathers rows, and adds their gradients back. */
#include <string.h>
#include "backend/cpu/state.h"

struct gather_call {
	struct replica *r;
	const int32_t *rows;
	const struct tensor *from, *to;
};

static void gather_slice(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct gather_call *call = context;
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(call->to->rows, slice);
	for (int64_t i = first; i < end; i++)
		memcpy(tensor_at(call->to, i, 0), tensor_at(call->from, call->rows[i], 0),
		       (size_t)call->to->columns * dtype_bytes(call->to->dtype));
}

void cpu_gather_fwd(struct replica *r, const struct gather_fwd *a)
{
	struct gather_call call = {r, a->rows, &a->x, &a->y};
	BUG_IF(a->count != a->y.rows);
	pool_run(r->backend->pool, slice_count(a->count), gather_slice, &call);
}

static void scatter_slice(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct gather_call *call = context;
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(call->from->rows, slice);
	for (int64_t i = first; i < end; i++)
		cpu_state(call->r)->kernels->add_row_into(tensor_at(call->to, call->rows ? call->rows[i] : i, 0),
							  tensor_at(call->from, i, 0), call->to->columns, call->to->dtype);
}

void cpu_gather_bwd(struct replica *r, const struct gather_bwd *a)
{
	struct gather_call call = {r, a->rows, &a->dy, &a->dx};
	BUG_IF(a->count != a->dy.rows);
	if (a->overwrite)
		cpu_zero(r, a->dx.data, (size_t)(a->dx.rows * a->dx.columns) * dtype_bytes(a->dx.dtype));
	pool_run(r->backend->pool, slice_count(a->count), scatter_slice, &call);
}
