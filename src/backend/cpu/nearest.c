/* Exact search on the CPU: rows times packed queries, and for each query a heap of the best rows. The product's sums are compared
 * with the heaps' worst scores while they are in the first-level cache; few of them are larger, once some rows have been seen. */
#include "backend/nearest.h"

#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/inference.h"

enum {
	PANELS_MOST = 16, /* per task: as many queries use the rows of a chunk while these are in the second-level cache */
	TASKS = 4,        /* per thread */
};

struct nearest_call {
	const struct nearest *a;
	const struct packed_weight *queries;
	struct product_rows x;
	int64_t panels; /* per task */
};

/* Replaces a heap's worst row. */
static void replace_worst(struct nearest_row *heap, int64_t count, struct nearest_row row)
{
	int64_t at = 0;
	for (int64_t child = 1; child < count; child = 2 * at + 1) {
		if (child + 1 < count && nearest_is_worse(heap[child + 1], heap[child]))
			child++;
		if (!nearest_is_worse(heap[child], row))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = row;
}

/* Offers rows [first, first + rows) to the queries of a panel. */
static void offer(const struct nearest_call *call, int64_t panel, int64_t first, int64_t rows)
{
	_Alignas(64) float sums[SELECT_ROWS * PANEL_MOST];
	_Alignas(64) float worst[PANEL_MOST];
	struct selected found[SELECT_ROWS * PANEL_MOST];
	const struct inference_kernels *kernels = inference_kernels();
	const struct nearest *a = call->a;
	int64_t query = panel * kernels->panel;
	inference_multiply(call->queries, &call->x, first, rows, panel, sums, kernels->panel);
	for (int64_t c = 0; c < kernels->panel; c++)
		worst[c] = query + c < call->queries->outputs ? a->best[(query + c) * a->most].score : INFINITY;
	int64_t count = kernels->select(sums, rows, worst, found);
	for (int64_t i = 0; i < count; i++) {
		struct nearest_row *heap = a->best + (query + found[i].column) * a->most;
		if (found[i].value > heap->score)
			replace_worst(heap, a->most,
				      (struct nearest_row){found[i].value, a->first + (int32_t)first + found[i].row});
	}
}

static void nearest_task(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct nearest_call *call = context;
	int64_t begin = index * call->panels, end = begin + call->panels;
	int64_t all = (call->queries->outputs + inference_kernels()->panel - 1) / inference_kernels()->panel;
	for (int64_t first = 0; first < call->x.rows; first += SELECT_ROWS) {
		int64_t rows = call->x.rows - first < SELECT_ROWS ? call->x.rows - first : SELECT_ROWS;
		for (int64_t panel = begin; panel < end && panel < all; panel++)
			offer(call, panel, first, rows);
	}
}

void cpu_nearest(struct backend *be, const struct nearest *a)
{
	struct nearest_call call = {.a = a, .queries = packed(a->queries)};
	int64_t panels = (call.queries->outputs + inference_kernels()->panel - 1) / inference_kernels()->panel;
	int64_t tasks = TASKS * (int64_t)pool_threads(be->pool);
	BUG_IF(a->most < 1 || a->x.dtype != call.queries->dtype || a->x.columns != call.queries->inputs);
	call.x = (struct product_rows){
		.x = a->x.data, .row_bytes = a->x.columns * (int64_t)dtype_bytes(a->x.dtype), .rows = a->x.rows};
	call.panels = (panels + tasks - 1) / tasks;
	call.panels = call.panels < PANELS_MOST ? call.panels : PANELS_MOST;
	pool_run(be->pool, (panels + call.panels - 1) / call.panels, nearest_task, &call);
}
