/* Instances in memory, and their conversion from padded rows. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "data/pretraining/instance_files.h"

enum status instance_create(struct instance *out, int64_t length, int64_t predictions)
{
	enum status status;
	*out = (struct instance){0};
	TRY_GOTO(memory_new(&out->ids, length, sizeof(int32_t), "instance"), fail);
	TRY_GOTO(memory_new(&out->types, length, sizeof(int32_t), "instance"), fail);
	TRY_GOTO(memory_new(&out->prediction_positions, predictions, sizeof(int32_t), "instance"), fail);
	TRY_GOTO(memory_new(&out->prediction_labels, predictions, sizeof(int32_t), "instance"), fail);
	TRY_GOTO(memory_new(&out->prediction_weights, predictions, sizeof(float), "instance"), fail);
	return OK;
fail:
	instance_release(out);
	return status;
}

void instance_release(struct instance *instance)
{
	free(instance->ids);
	free(instance->types);
	free(instance->prediction_positions);
	free(instance->prediction_labels);
	free(instance->prediction_weights);
	*instance = (struct instance){0};
}

static enum status check_ids(const char *name, const int32_t *ids, int64_t count, int32_t vocab_size)
{
	for (int64_t i = 0; i < count; i++)
		if (ids[i] < 0 || (vocab_size > 0 && ids[i] >= vocab_size)) {
			if (vocab_size > 0)
				return error_set(ERR_DATA, "%s[%lld] is %d, but the vocabulary has %d entries", name,
						 (long long)i, ids[i], vocab_size);
			return error_set(ERR_DATA, "%s[%lld] is %d", name, (long long)i, ids[i]);
		}
	return OK;
}

/* Number of tokens before the padding; the mask must be ones, then zeros. */
static enum status find_length(const struct padded_row *row, int64_t *out)
{
	int64_t length = 0;
	while (length < row->length && row->mask[length] == 1)
		length++;
	for (int64_t i = length; i < row->length; i++)
		if (row->mask[i] != 0)
			return error_set(ERR_DATA, "input_mask is not ones followed by zeros (at %lld)", (long long)i);
	if (length == 0)
		return error_set(ERR_DATA, "input_mask is all zeros: nothing but padding");
	*out = length;
	return OK;
}

/* Inserts a prediction so that positions are in ascending order. */
static enum status add_prediction(struct instance *out, int32_t position, int32_t label, float weight)
{
	int32_t at = out->prediction_count++;
	for (; at > 0 && out->prediction_positions[at - 1] >= position; at--) {
		if (out->prediction_positions[at - 1] == position)
			return error_set(ERR_DATA, "position %d is masked twice", position);
		out->prediction_positions[at] = out->prediction_positions[at - 1];
		out->prediction_labels[at] = out->prediction_labels[at - 1];
		out->prediction_weights[at] = out->prediction_weights[at - 1];
	}
	out->prediction_positions[at] = position;
	out->prediction_labels[at] = label;
	out->prediction_weights[at] = weight;
	return OK;
}

static enum status take_predictions(const struct padded_row *row, struct instance *out)
{
	out->prediction_count = 0;
	for (int64_t i = 0; i < row->predictions; i++) {
		float weight = row->weights != NULL ? row->weights[i] : 1;
		int32_t position = row->positions[i];
		if (row->weights == NULL && position == 0)
			break;
		if (weight == 0)
			continue;
		if (!(weight > 0 && weight < 1e6f))
			return error_set(ERR_DATA, "masked_lm_weights[%lld] is %g", (long long)i, (double)weight);
		if (position < 0 || position >= out->length)
			return error_set(ERR_DATA, "masked_lm_positions[%lld] is %d, but the instance has %d tokens",
					 (long long)i, position, out->length);
		TRY(add_prediction(out, position, row->labels[i], weight));
	}
	return OK;
}

enum status instance_from_row(const struct padded_row *row, const struct instance_demands *demands, struct instance *out)
{
	int64_t length = 0;
	TRY(find_length(row, &length));
	if (demands->max_length > 0 && length > demands->max_length)
		return error_set(ERR_DATA, "%lld tokens, but the model has %d positions", (long long)length, demands->max_length);
	TRY(check_ids("input_ids", row->ids, length, demands->vocab_size));
	for (int64_t i = 0; i < length; i++)
		if (row->segments[i] != 0 && row->segments[i] != 1)
			return error_set(ERR_DATA, "segment_ids[%lld] is %d, neither 0 nor 1", (long long)i, row->segments[i]);
	if (row->next_label < -1 || row->next_label > 1)
		return error_set(ERR_DATA, "next_sentence_labels is %d, neither 0 nor 1", row->next_label);
	out->length = (int32_t)length;
	out->next_label = row->next_label;
	memcpy(out->ids, row->ids, (size_t)length * sizeof *out->ids);
	memcpy(out->types, row->segments, (size_t)length * sizeof *out->types);
	TRY(take_predictions(row, out));
	return check_ids("masked_lm_ids", out->prediction_labels, out->prediction_count, demands->vocab_size);
}
