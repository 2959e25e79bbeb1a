#include "backend/cpu/wgrad.h"

#include "base/pool.h"

size_t cpu_wgrad_workspace_bytes(int64_t rows, int64_t outputs, int64_t inputs)
{
	(void)rows, (void)outputs, (void)inputs;
	return 0;
}

static float element(struct tensor t, int64_t row, int64_t column)
{
	int64_t index = row * t.columns + column;
	return t.dtype == DTYPE_F32 ? ((const float *)t.data)[index] : bf16_to_float(((const uint16_t *)t.data)[index]);
}

/* One row of dw. */
static void wgrad_row(void *context, int64_t o, int worker)
{
	(void)worker;
	const struct cpu_wgrad *a = context;
	float *row = a->dw + o * a->x.columns, sum = 0;
	for (int64_t i = 0; a->overwrite && i < a->x.columns; i++)
		row[i] = 0;
	for (int64_t t = 0; t < a->dy.rows; t++) {
		float dy = element(a->dy, t, o);
		sum += dy;
		for (int64_t i = 0; i < a->x.columns; i++)
			row[i] += dy * element(a->x, t, i);
	}
	if (a->column_sums)
		a->column_sums[o] = a->overwrite ? sum : a->column_sums[o] + sum;
}

void cpu_wgrad(struct replica *r, const struct cpu_wgrad *a)
{
	struct cpu_wgrad copy = *a;
	pool_run(r->backend->pool, a->dy.columns, wgrad_row, &copy);
}
