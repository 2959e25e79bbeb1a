/* Writes model folders in int8, and recognizes them when reading. */
#include "weights/int8_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/int8.h"
#include "base/memory.h"
#include "formats/safetensors.h"
#include "formats/weights_file.h"
#include "weights/weight_names.h"

#define SCALE_SUFFIX "_scale"

bool int8_weight_fits(const struct weight *weight)
{
	return weight->use == WEIGHT_LINEAR && weight->master.columns <= INT8_INPUTS_MOST;
}

/* ---- Writing ---- */

struct int8_writer {
	const struct model_folder_content *content;
	const bool *kept;
	struct parameter_place *places;
	struct safetensors_entry *entries; /* at most two per parameter */
	int64_t count;
	char (*names)[2][TENSOR_NAME_BYTES]; /* of a parameter and its scales */
	unsigned char *memory;               /* for all data that are not stored as F32 unchanged */
	size_t used;
};

static enum safetensors_dtype stored_type(const struct int8_writer *writer, int64_t parameter)
{
	const struct model *model = writer->content->model;
	int64_t number = writer->places[parameter].weight;
	const struct weight *weight = model->weights[number];
	if (int8_weight_fits(weight))
		return writer->kept && writer->kept[number] ? ST_BF16 : ST_I8;
	return weight->use == WEIGHT_VECTOR || weight->use == WEIGHT_HEAD ? ST_F32 : ST_BF16;
}

static void round_rows(const float *from, int64_t rows, int64_t columns, int8_t *to, float *scales)
{
	for (int64_t i = 0; i < rows; i++) {
		struct int8_scale scale = int8_scale_of_row(from + i * columns, columns);
		scales[i] = scale.scale;
		for (int64_t k = 0; k < columns; k++)
			to[i * columns + k] = int8_rounded(from[i * columns + k], scale.factor);
	}
}

static void *take(struct int8_writer *writer, int64_t count, size_t size)
{
	void *memory = writer->memory + writer->used;
	writer->used += ((size_t)count * size + 63) / 64 * 64;
	return memory;
}

static void add_parameter(struct int8_writer *writer, int64_t number)
{
	const struct parameter *p = &writer->content->model->parameters[number];
	const float *values = writer->content->slab + p->offset;
	int rank = parameter_rank(p);
	char(*names)[TENSOR_NAME_BYTES] = writer->names[number];
	struct safetensors_entry *entry = &writer->entries[writer->count++];
	model_folder_tensor_name(writer->content->model, p, writer->content->task, names[0]);
	*entry = (struct safetensors_entry){
		.name = names[0],
		.dtype = stored_type(writer, number),
		.rank = rank,
		.shape = {rank == 2 ? p->rows : p->columns, rank == 2 ? p->columns : 0},
		.count = p->count,
		.data = values,
		.bytes = (uint64_t)(p->count * dtype_element_bytes(stored_type(writer, number))),
	};
	if (entry->dtype == ST_BF16) {
		uint16_t *rounded = take(writer, p->count, sizeof *rounded);
		for (int64_t i = 0; i < p->count; i++)
			rounded[i] = float_to_bf16(values[i]);
		entry->data = rounded;
	}
	if (entry->dtype != ST_I8)
		return;
	int8_t *bytes = take(writer, p->count, 1);
	float *scales = take(writer, p->rows, sizeof *scales);
	round_rows(values, p->rows, p->columns, bytes, scales);
	entry->data = bytes;
	snprintf(names[1], sizeof names[1], "%.*s" SCALE_SUFFIX, (int)(sizeof names[0] - sizeof SCALE_SUFFIX), names[0]);
	writer->entries[writer->count++] = (struct safetensors_entry){
		.name = names[1],
		.dtype = ST_F32,
		.rank = 2,
		.shape = {p->rows, 1},
		.count = p->rows,
		.data = scales,
		.bytes = (uint64_t)p->rows * sizeof(float),
	};
}

enum status int8_weights_save(const char *folder, const struct model_folder_content *content, const bool *kept,
			      struct folder_files *files)
{
	const struct model *model = content->model;
	struct int8_writer writer = {.content = content, .kept = kept};
	char path[PATH_BYTES];
	uint32_t crc = 0;
	int64_t bytes = 0, count = model->parameter_count;
	enum status status;
	TRY_GOTO(path_join(path, folder, INT8_WEIGHTS_FILE), done);
	TRY_GOTO(memory_new(&writer.places, count, sizeof *writer.places, "weights of a file"), done);
	TRY_GOTO(memory_new(&writer.entries, 2 * count, sizeof *writer.entries, "weights of a file"), done);
	TRY_GOTO(memory_new(&writer.names, count, sizeof *writer.names, "weights of a file"), done);
	/* 5 bytes per number are enough: BF16 takes 2, and int8 with its row's scale at most 5 (in a row of one number). */
	TRY_GOTO(memory_new(&writer.memory, model->element_count + 128 * count, 5, "rounded weights"), done);
	parameter_places(model, writer.places);
	for (int64_t p = 0; p < count; p++)
		add_parameter(&writer, p);
	TRY_GOTO(safetensors_write(path, writer.entries, writer.count, NULL, &crc, &bytes), done);
	status = folder_files_add(files, INT8_WEIGHTS_FILE, bytes, crc);
done:
	free(writer.places);
	free(writer.entries);
	free(writer.names);
	free(writer.memory);
	return status;
}

/* ---- Reading ---- */

static enum status mark(const struct weights_file *file, struct model *model)
{
	struct parameter_place *places = NULL;
	TRY(memory_new(&places, model->parameter_count, sizeof *places, "places of weights"));
	parameter_places(model, places);
	for (int64_t i = 0; i < file->count; i++) {
		int64_t p = model_find_parameter(model, tensor_name_from(file->tensors[i].name).name);
		if (p >= 0 && !file->tensors[i].row_scales)
			model->weights[places[p].weight]->unquantized = true;
	}
	free(places);
	return OK;
}

enum status int8_weights_mark(const char *path, struct model *model, bool *out)
{
	struct weights_file file;
	enum status status = OK;
	*out = false;
	TRY(weights_file_open(&file, path));
	for (int64_t i = 0; i < file.count; i++)
		*out |= file.tensors[i].row_scales != NULL;
	if (*out && model)
		status = mark(&file, model);
	weights_file_close(&file);
	return status;
}
