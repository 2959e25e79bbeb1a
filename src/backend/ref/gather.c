/* Gathers rows, and adds their gradients back. */
#include "backend/ref/ref.h"

#include <string.h>

void ref_gather_fwd(struct replica *r, const struct gather_fwd *a)
{
	(void)r;
	for (int64_t i = 0; i < a->count; i++) {
		BUG_IF(a->rows[i] < 0 || a->rows[i] >= a->x.rows);
		memcpy(ref_row(&a->y, i), ref_row(&a->x, a->rows[i]), (size_t)a->x.columns * sizeof(double));
	}
}

void ref_gather_bwd(struct replica *r, const struct gather_bwd *a)
{
	(void)r;
	if (a->overwrite)
		memset(a->dx.data, 0, (size_t)(a->dx.rows * a->dx.columns) * sizeof(double));
	for (int64_t i = 0; i < a->count; i++) {
		int64_t row = a->rows ? a->rows[i] : i;
		BUG_IF(row < 0 || row >= a->dx.rows);
		for (int64_t j = 0; j < a->dx.columns; j++)
			ref_row(&a->dx, row)[j] += ref_row(&a->dy, i)[j];
	}
}
