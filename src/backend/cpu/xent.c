/* Softmax cross entropy over a few classes. */
#include <math.h>
#include "backend/cpu/cpu.h"

static double get(const struct tensor *t, int64_t row, int64_t column)
{
	const void *element = tensor_at(t, row, column);
	return t->dtype == DTYPE_BF16 ? bf16_to_float(*(const uint16_t *)element) : *(const float *)element;
}

static void put(const struct tensor *t, int64_t row, int64_t column, double value)
{
	void *element = tensor_at(t, row, column);
	if (t->dtype == DTYPE_BF16)
		*(uint16_t *)element = float_to_bf16((float)value);
	else
		*(float *)element = (float)value;
}

struct xent_call {
	struct replica *r;
	const struct xent *a;
};

/* Loss and correct of a slice go to its first two partial sums. */
static void xent_slice(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct xent_call *call = context;
	const struct xent *a = call->a;
	const struct scalars *s = call->r->scalars;
	int64_t first = slice * ROW_MULTIPLE, end = first + slice_rows(a->logits.rows, slice);
	int64_t classes = a->logits.columns;
	double loss = 0, correct = 0;
	for (int64_t i = first; i < end; i++) {
		int32_t label = a->labels[i];
		BUG_IF(label < -1 || label >= classes);
		int64_t best = 0;
		for (int64_t c = 1; c < classes; c++)
			if (get(&a->logits, i, c) > get(&a->logits, i, best))
				best = c;
		double max = get(&a->logits, i, best), sum = 0;
		for (int64_t c = 0; c < classes; c++)
			sum += exp(get(&a->logits, i, c) - max);
		double lse = max + log(sum);
		if (label >= 0) {
			loss += lse - get(&a->logits, i, label);
			correct += best == label;
		}
		for (int64_t c = 0; a->dlogits.data && c < classes; c++) {
			double d = exp(get(&a->logits, i, c) - lse) - (c == label);
			put(&a->dlogits, i, c, label < 0 ? 0 : d * s->inverse_instances * s->loss_scale);
		}
	}
	double *sums = cpu_scratch(call->r)->slice_sums + slice * 2;
	sums[0] = loss;
	sums[1] = correct;
}

void cpu_xent(struct replica *r, const struct xent *a)
{
	struct xent_call call = {r, a};
	const struct cpu_scratch *scratch = cpu_scratch(r);
	int64_t slices = slice_count(a->logits.rows);
	BUG_IF(slices > scratch->slices);
	pool_run(r->backend->pool, slices, xent_slice, &call);
	double loss = 0, correct = 0;
	for (int64_t slice = 0; slice < slices; slice++) {
		loss += scratch->slice_sums[slice * 2];
		correct += scratch->slice_sums[slice * 2 + 1];
	}
	*a->loss += loss;
	*a->correct += correct;
}
