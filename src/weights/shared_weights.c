/* Compares the bases of adapters, and has models use each other's weights. */
#include "weights/shared_weights.h"

#include <string.h>

#include "base/memory.h"
#include "weights/adapter.h"
#include "weights/weight_names.h"

enum status weights_have_one_base(const char *a, const char *b, bool *out)
{
	struct adapter_config left, right;
	TRY(adapter_config_read(&left, a));
	TRY(adapter_config_read(&right, b));
	struct file_stamp one = file_stamp_at(left.base[0] ? left.base : a),
			  other = file_stamp_at(right.base[0] ? right.base : b);
	*out = file_stamp_is_same_file(&one, &other);
	return OK;
}

/* Whether an adapter changes a parameter of ours. */
static bool changes(const struct adapter *adapter, const char *name)
{
	if (adapter_find(adapter, name))
		return true;
	for (int64_t i = 0; i < adapter->file.count; i++)
		if (adapter_replaces(&adapter->file.tensors[i]) &&
		    strcmp(tensor_name_from(adapter->file.tensors[i].name).name, name) == 0)
			return true;
	return false;
}

/* Whether parameters [first, end) of both models are the same, of the base. */
static bool are_common(const struct model *a, const struct adapter *of_a, const struct model *b, const struct adapter *of_b,
		       int64_t first, int64_t end)
{
	for (int64_t i = first; i < end; i++) {
		const struct parameter *left = &a->parameters[i], *right = &b->parameters[i];
		if (i >= b->parameter_count || strcmp(left->name, right->name) != 0 || left->rows != right->rows ||
		    left->columns != right->columns || changes(of_a, left->name) || changes(of_b, left->name))
			return false;
	}
	return true;
}

static void share(struct model *model, const struct adapter *own, const struct model *lender, const struct adapter *other)
{
	int64_t parameter = 0;
	for (int64_t i = 0; i < model->weight_count && i < lender->weight_count; i++) {
		const struct weight *weight = model->weights[i];
		int64_t first = parameter;
		for (int64_t left = weight->master.rows * weight->master.columns; left > 0; parameter++)
			left -= model->parameters[parameter].count;
		if (lender->weights[i]->use == weight->use && are_common(model, own, lender, other, first, parameter))
			model->shared[i] = lender->weights[i];
	}
}

enum status weights_share(struct model *model, const char *weights, const struct model *lender, const char *lender_weights)
{
	struct adapter own = {0}, other = {0};
	enum status status;
	TRY_GOTO(memory_new(&model->shared, model->weight_count, sizeof *model->shared, "shared weights"), done);
	TRY_GOTO(adapter_open(&own, weights), done);
	TRY_GOTO(adapter_open(&other, lender_weights), done);
	share(model, &own, lender, &other);
done:
	adapter_close(&own);
	adapter_close(&other);
	return status;
}
