/* Writing files of static instances, in our own format and those of other programs. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "data/pretraining/instance_files.h"
#include "formats/example.h"
#include "formats/hdf5_rows.h"
#include "formats/tfrecord.h"

/* Rows collected before the HDF5 library is called. */
#define SLAB_ROWS 1024

enum { HDF5_IDS, HDF5_MASK, HDF5_SEGMENTS, HDF5_POSITIONS, HDF5_LABELS, HDF5_NEXT, HDF5_DATASETS };

struct instance_writer {
	struct instance_writer_settings settings;
	struct tfrecord_writer *records;
	struct static_writer *own;
	struct hdf5_writer *hdf5;
	int datasets[HDF5_DATASETS];
	int32_t *slab[HDF5_DATASETS]; /* [SLAB_ROWS, columns] */
	int64_t rows;                 /* in the slab */
};

static int64_t columns_of(const struct instance_writer_settings *settings, int dataset)
{
	if (dataset == HDF5_NEXT)
		return 1;
	return dataset < HDF5_POSITIONS ? settings->max_seq_length : settings->max_predictions;
}

static enum status open_hdf5(struct instance_writer *writer, const char *path)
{
	static const struct {
		const char *name;
		int bytes;
	} table[HDF5_DATASETS] = {
		{"input_ids", 4},           {"input_mask", 1},    {"segment_ids", 1},
		{"masked_lm_positions", 4}, {"masked_lm_ids", 4}, {"next_sentence_labels", 1},
	};
	const struct instance_writer_settings *settings = &writer->settings;
	TRY(hdf5_writer_open(&writer->hdf5, path));
	for (int i = 0; i < HDF5_DATASETS; i++) {
		if (i == HDF5_NEXT && !settings->labeled)
			continue;
		int64_t columns = columns_of(settings, i);
		TRY(hdf5_writer_dataset(writer->hdf5, table[i].name, i == HDF5_NEXT ? 0 : columns, table[i].bytes,
					&writer->datasets[i]));
		TRY(memory_new(&writer->slab[i], SLAB_ROWS * columns, sizeof(int32_t), "rows of HDF5"));
	}
	return OK;
}

enum status instance_writer_open(struct instance_writer **out, const char *path, const struct instance_writer_settings *settings)
{
	enum status status = OK;
	struct instance_writer *writer = NULL;
	*out = NULL;
	TRY(memory_new(&writer, 1, sizeof *writer, "writer of instances"));
	writer->settings = *settings;
	switch (settings->format) {
	case INSTANCE_TFRECORD:
	case INSTANCE_TFRECORD_GZIP:
		status = tfrecord_writer_open(&writer->records, path, settings->format == INSTANCE_TFRECORD_GZIP);
		break;
	case INSTANCE_STATIC: status = static_writer_open(&writer->own, path); break;
	case INSTANCE_HDF5: status = open_hdf5(writer, path); break;
	case INSTANCE_PAIRS: BUG_IF(true); break; /* pairs are only read */
	}
	if (status != OK)
		instance_writer_abandon(writer);
	else
		*out = writer;
	return status;
}

static bool has_records(const struct instance_writer_settings *settings)
{
	return settings->format == INSTANCE_TFRECORD || settings->format == INSTANCE_TFRECORD_GZIP;
}

enum status instance_encoder_create(struct instance_encoder *out, const struct instance_writer_settings *settings)
{
	int64_t length = settings->max_seq_length, predictions = settings->max_predictions;
	*out = (struct instance_encoder){0};
	if (!has_records(settings))
		return OK;
	TRY(memory_new(&out->lists, 3 * length + 3 * predictions, sizeof(int32_t), "record"));
	/* An integer takes at most five bytes, a weight four; 1024 bytes are for names and framing. */
	return memory_new(&out->record, 15 * length + 14 * predictions + 1024, 1, "record");
}

void instance_encoder_release(struct instance_encoder *encoder)
{
	free(encoder->lists);
	free(encoder->record);
	*encoder = (struct instance_encoder){0};
}

/* Copies a list of the instance to `row` and fills it up with zeros. */
static const int32_t *pad(int32_t *row, const int32_t *values, int64_t count, int64_t length)
{
	memcpy(row, values, (size_t)count * sizeof *row);
	memset(row + count, 0, (size_t)(length - count) * sizeof *row);
	return row;
}

void instance_encode(struct instance_encoder *encoder, const struct instance_writer_settings *settings,
		     const struct instance *instance)
{
	int64_t length = settings->max_seq_length, predictions = settings->max_predictions;
	int64_t masked = instance->prediction_count;
	if (!has_records(settings))
		return;
	BUG_IF(instance->length > length || masked > predictions);
	int32_t *ids = encoder->lists, *mask = ids + length, *types = mask + length, *positions = types + length;
	int32_t *labels = positions + predictions, next = instance->next_label > 0;
	float *weights = (float *)(void *)(labels + predictions);
	for (int64_t i = 0; i < length; i++)
		mask[i] = i < instance->length;
	for (int64_t i = 0; i < predictions; i++)
		weights[i] = i >= masked ? 0 : instance->prediction_weights != NULL ? instance->prediction_weights[i] : 1;
	const struct example_value values[] = {
		{"input_ids", pad(ids, instance->ids, instance->length, length), NULL, length},
		{"input_mask", mask, NULL, length},
		{"segment_ids", pad(types, instance->types, instance->length, length), NULL, length},
		{"masked_lm_positions", pad(positions, instance->prediction_positions, masked, predictions), NULL, predictions},
		{"masked_lm_ids", pad(labels, instance->prediction_labels, masked, predictions), NULL, predictions},
		{"masked_lm_weights", NULL, weights, predictions},
		{"next_sentence_labels", &next, NULL, 1},
	};
	size_t size = example_encode(values, settings->labeled ? 7 : 6, encoder->record + TFRECORD_HEAD_BYTES);
	tfrecord_frame(encoder->record, size);
	encoder->size = size + TFRECORD_FRAME_BYTES;
}

static enum status flush_slab(struct instance_writer *writer)
{
	for (int i = 0; i < HDF5_DATASETS; i++)
		if (writer->slab[i] != NULL)
			TRY(hdf5_writer_append(writer->hdf5, writer->datasets[i], writer->slab[i], writer->rows));
	writer->rows = 0;
	return OK;
}

static enum status add_row(struct instance_writer *writer, const struct instance *instance)
{
	int64_t length = writer->settings.max_seq_length, predictions = writer->settings.max_predictions;
	int64_t row = writer->rows, count = instance->prediction_count;
	BUG_IF(instance->length > length || count > predictions);
	pad(writer->slab[HDF5_IDS] + row * length, instance->ids, instance->length, length);
	pad(writer->slab[HDF5_SEGMENTS] + row * length, instance->types, instance->length, length);
	pad(writer->slab[HDF5_POSITIONS] + row * predictions, instance->prediction_positions, count, predictions);
	pad(writer->slab[HDF5_LABELS] + row * predictions, instance->prediction_labels, count, predictions);
	for (int64_t i = 0; i < length; i++)
		writer->slab[HDF5_MASK][row * length + i] = i < instance->length;
	if (writer->settings.labeled)
		writer->slab[HDF5_NEXT][row] = instance->next_label > 0;
	return ++writer->rows == SLAB_ROWS ? flush_slab(writer) : OK;
}

enum status instance_writer_add(struct instance_writer *writer, const struct instance *instance,
				const struct instance_encoder *encoder)
{
	switch (writer->settings.format) {
	case INSTANCE_STATIC: return static_writer_add(writer->own, instance);
	case INSTANCE_HDF5: return add_row(writer, instance);
	default: return tfrecord_writer_framed(writer->records, encoder->record, encoder->size);
	}
}

static void release(struct instance_writer *writer)
{
	for (int i = 0; i < HDF5_DATASETS; i++)
		free(writer->slab[i]);
	free(writer);
}

enum status instance_writer_commit(struct instance_writer *writer)
{
	enum status status = OK;
	if (writer->records != NULL)
		status = tfrecord_writer_commit(writer->records);
	if (writer->own != NULL)
		status = static_writer_commit(writer->own, 0);
	if (writer->hdf5 != NULL) {
		status = flush_slab(writer);
		if (status == OK)
			status = hdf5_writer_commit(writer->hdf5);
		else
			hdf5_writer_abandon(writer->hdf5);
	}
	release(writer);
	return status;
}

void instance_writer_abandon(struct instance_writer *writer)
{
	if (writer == NULL)
		return;
	tfrecord_writer_abandon(writer->records);
	static_writer_abandon(writer->own);
	hdf5_writer_abandon(writer->hdf5);
	release(writer);
}
