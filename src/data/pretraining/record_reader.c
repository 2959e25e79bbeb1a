/* Reading TFRecord files of Google's training data: tf.Example messages with features of fixed size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "data/pretraining/instance_files.h"
#include "formats/example.h"
#include "formats/tfrecord.h"

/* Bad records reported individually; further ones are only counted. */
#define BAD_TOLD 5

struct record_reader {
	struct tfrecord_reader *file;
	struct instance_demands demands;
	char *path;
	struct tf_example example;
	int64_t length, predictions;                         /* of every record; 0 before the first */
	int32_t *ids, *mask, *segments, *positions, *labels; /* [length], [predictions] */
	float *weights;
	struct instance instance;
	struct instance_counts counts;
};

enum status record_reader_open(struct record_reader **out, const char *path, const struct instance_demands *demands)
{
	enum status status;
	struct record_reader *reader = NULL;
	*out = NULL;
	TRY(memory_new(&reader, 1, sizeof *reader, "reader of instances"));
	reader->demands = *demands;
	size_t size = strlen(path) + 1;
	TRY_GOTO(memory_new(&reader->path, (int64_t)size, 1, "path"), fail);
	memcpy(reader->path, path, size);
	TRY_GOTO(tfrecord_open(&reader->file, path), fail);
	*out = reader;
	return OK;
fail:
	record_reader_close(reader);
	return status;
}

void record_reader_close(struct record_reader *reader)
{
	if (reader == NULL)
		return;
	tfrecord_close(reader->file);
	instance_release(&reader->instance);
	free(reader->ids);
	free(reader->mask);
	free(reader->segments);
	free(reader->positions);
	free(reader->labels);
	free(reader->weights);
	free(reader->path);
	free(reader);
}

static enum status lacks(const struct tf_example *example, const char *name)
{
	char found[512] = "";
	size_t used = 0;
	bool packed = false;
	for (int i = 0; i < example->count && used < sizeof found - EXAMPLE_NAME_BYTES - 4; i++) {
		used += (size_t)snprintf(found + used, sizeof found - used, "%s%s", i > 0 ? ", " : "", example->features[i].name);
		packed |= strncmp(example->features[i].name, "packed_", 7) == 0;
	}
	enum status status = error_set(ERR_DATA, "no feature '%s'; it has: %s", name, found[0] != 0 ? found : "nothing");
	if (packed)
		error_hint("rows of several packed sequences are not read: give the file that they were packed from");
	else
		error_hint("pre-training records have input_ids, input_mask, segment_ids, masked_lm_positions, "
			   "masked_lm_ids, and may have masked_lm_weights and next_sentence_labels");
	return status;
}

/* The first record determines the sizes of all records. */
static enum status learn_shape(struct record_reader *reader)
{
	const struct tf_example *example = &reader->example;
	const struct example_feature *ids = example_find(example, "input_ids");
	const struct example_feature *positions = example_find(example, "masked_lm_positions");
	int64_t length, predictions;
	if (ids == NULL || positions == NULL)
		return lacks(example, ids == NULL ? "input_ids" : "masked_lm_positions");
	TRY(feature_count(ids, &length));
	TRY(feature_count(positions, &predictions));
	if (length < 1 || length > STATIC_LENGTH_MAX)
		return error_set(ERR_DATA, "input_ids has %lld values", (long long)length);
	if (predictions > STATIC_LENGTH_MAX) /* more than input_ids is fine: the rest is padding */
		return error_set(ERR_DATA, "masked_lm_positions has %lld values", (long long)predictions);
	instance_release(&reader->instance);
	TRY(instance_create(&reader->instance, length, predictions));
	int32_t **const arrays[] = {&reader->ids, &reader->mask, &reader->segments, &reader->positions, &reader->labels};
	for (int i = 0; i < 5; i++) {
		free(*arrays[i]);
		*arrays[i] = NULL;
		TRY(memory_new(arrays[i], i < 3 ? length : predictions, sizeof(int32_t), "record"));
	}
	free(reader->weights);
	reader->weights = NULL;
	TRY(memory_new(&reader->weights, predictions, sizeof(float), "record"));
	reader->length = length;
	reader->predictions = predictions;
	return OK;
}

static enum status get_integers(const struct tf_example *example, const char *name, int32_t *out, int64_t wanted)
{
	const struct example_feature *feature = example_find(example, name);
	int64_t count;
	if (feature == NULL)
		return lacks(example, name);
	TRY(feature_integers(feature, out, wanted, &count));
	if (count != wanted)
		return error_set(ERR_DATA, "feature '%s' has %lld values, not %lld as in the records before", name,
				 (long long)count, (long long)wanted);
	return OK;
}

/* Without weights, the list ends before the first position 0. */
static enum status get_weights(struct record_reader *reader, struct padded_row *row)
{
	const struct example_feature *feature = example_find(&reader->example, "masked_lm_weights");
	int64_t count;
	row->weights = NULL;
	if (feature == NULL)
		return OK;
	TRY(feature_floats(feature, reader->weights, reader->predictions, &count));
	if (count != reader->predictions)
		return error_set(ERR_DATA, "feature 'masked_lm_weights' has %lld values, not %lld", (long long)count,
				 (long long)reader->predictions);
	row->weights = reader->weights;
	return OK;
}

static enum status get_label(struct record_reader *reader, struct padded_row *row)
{
	const struct example_feature *feature = example_find(&reader->example, "next_sentence_labels");
	row->next_label = -1;
	if (feature == NULL)
		return OK;
	int64_t count;
	TRY(feature_integers(feature, &row->next_label, 1, &count));
	if (count != 1)
		return error_set(ERR_DATA, "feature 'next_sentence_labels' is empty");
	if (row->next_label == -1)
		return error_set(ERR_DATA, "next_sentence_labels is -1, neither 0 nor 1");
	return OK;
}

static enum status read_example(struct record_reader *reader, const unsigned char *payload, size_t size)
{
	const struct tf_example *example = &reader->example;
	TRY(example_parse(&reader->example, payload, size));
	if (reader->length == 0)
		TRY(learn_shape(reader));
	struct padded_row row = {.length = reader->length,
				 .predictions = reader->predictions,
				 .ids = reader->ids,
				 .mask = reader->mask,
				 .segments = reader->segments,
				 .positions = reader->positions,
				 .labels = reader->labels};
	TRY(get_integers(example, "input_ids", reader->ids, reader->length));
	TRY(get_integers(example, "input_mask", reader->mask, reader->length));
	TRY(get_integers(example, "segment_ids", reader->segments, reader->length));
	TRY(get_integers(example, "masked_lm_positions", reader->positions, reader->predictions));
	TRY(get_integers(example, "masked_lm_ids", reader->labels, reader->predictions));
	TRY(get_weights(reader, &row));
	TRY(get_label(reader, &row));
	return instance_from_row(&row, &reader->demands, &reader->instance);
}

/* Adds the place of the bad record to the last error. */
static enum status refuse_record(const struct record_reader *reader)
{
	struct error reason = *error_last();
	enum status status =
		error_set(reason.status, "'%s': record %lld at byte %lld: %.900s", reader->path,
			  (long long)tfrecord_record(reader->file), (long long)tfrecord_offset(reader->file), reason.message);
	if (reason.hint[0] != 0)
		error_hint("%s", reason.hint);
	else
		error_hint("the file was made with another vocabulary or by another program, or is damaged; --on_bad_record skip "
			   "leaves such records out");
	return status;
}

enum status record_reader_next(struct record_reader *reader, const struct instance **out)
{
	*out = NULL;
	for (;;) {
		const unsigned char *payload;
		size_t size;
		enum status status = tfrecord_next(reader->file, &payload, &size);
		if (status == OK && payload == NULL)
			return OK;
		if (status == OK) {
			status = read_example(reader, payload, size);
			if (status == OK) {
				reader->counts.instances++;
				*out = &reader->instance;
				return OK;
			}
			status = refuse_record(reader);
			if (reader->counts.instances == 0)
				reader->length = 0; /* a bad record must not determine the sizes */
		}
		if (status != ERR_DATA || !reader->demands.skip_bad)
			return status;
		if (++reader->counts.bad <= BAD_TOLD)
			log_warning("%s; skipped", error_last()->message);
	}
}

void record_reader_shape(const struct record_reader *reader, int32_t *out_length, int32_t *out_predictions)
{
	*out_length = (int32_t)reader->length;
	*out_predictions = (int32_t)reader->predictions;
}

const struct instance_counts *record_reader_counts(const struct record_reader *reader)
{
	return &reader->counts;
}
