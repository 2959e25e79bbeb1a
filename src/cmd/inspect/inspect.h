/* The parts of `bertc inspect`. Each writes its facts into the object that is open in the writer. */
#ifndef CMD_INSPECT_INSPECT_H
#define CMD_INSPECT_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/json.h"

struct inspect_settings {
	bool json;
	bool tensors;
	const char *vocab_file;
	int64_t records, first; /* how many records to show, and the first one */
};

/* Size limit of a JSON file, in bytes. */
#define INSPECT_JSON_LIMIT ((size_t)64 << 20)

/* inspect_values.c: the contents of JSON files. Writes a value as it is. */
void inspect_put_json(struct json_writer *writer, const char *key, const struct json *value);
/* Writes the content of the file `name` in a folder, if it exists. */
MUST_USE enum status inspect_put_file(struct json_writer *writer, const char *key, const char *folder, const char *name);
/* Writes the number of lines of a metrics.jsonl, its last training line, and its last evaluation line. */
MUST_USE enum status inspect_put_metrics(const char *path, struct json_writer *writer);

/* inspect_folders.c: runs and models. */
MUST_USE enum status inspect_sweep(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_run(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_run_data(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_model_folder(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_onnx(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_onnx_folder(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_triton(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_triton_repository(const struct inspect_settings *settings, const char *path,
					       struct json_writer *writer);
/* A folder of any other kind: lists what bertc recognizes in it. ERR_DATA if there is nothing. */
MUST_USE enum status inspect_folder(const char *path, struct json_writer *writer);

/* inspect_outputs.c: output of the commands for streams of texts, and texts themselves. */
MUST_USE enum status inspect_vectors(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_answers(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_part(const struct inspect_settings *settings, const char *path, struct json_writer *writer);
MUST_USE enum status inspect_text(const struct inspect_settings *settings, const char *path, struct json_writer *writer);

/* inspect_data.c: training data. */
MUST_USE enum status inspect_shard(const struct inspect_settings *settings, const char *prefix, struct json_writer *writer);
/* A file of instances: TFRecord, HDF5, or bertc's own format. */
MUST_USE enum status inspect_instances(const struct inspect_settings *settings, const char *path, struct json_writer *writer);

#endif
