/* The parts of `bertc inspect`. Each puts its facts into the open object of the writer. */
#ifndef CMD_INSPECT_H
#define CMD_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/json.h"

struct inspect_settings {
	bool json;
	bool tensors;
	const char *vocab_file;
	int64_t records, first; /* how many records are shown, from which on */
};

/* inspect_data.c: training data. */
MUST_USE enum status inspect_shard(const struct inspect_settings *settings, const char *prefix, struct json_writer *writer);
/* A file of instances: TFRecord, HDF5 or our own. *out_known = false, and nothing is put, if it is none. */
MUST_USE enum status inspect_instances(const struct inspect_settings *settings, const char *path, struct json_writer *writer,
				       bool *out_known);

#endif
