/* Static instances: masked once, by whoever made the file. This is the one form in which training reads them; Google's
 * TFRecord and NVIDIA's HDF5 files are converted to it (instance_files.h). The bytes are in docs/formats.md. */
#ifndef DATA_PRETRAINING_STATIC_INSTANCES_H
#define DATA_PRETRAINING_STATIC_INSTANCES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "data/shard_check.h"
#include "data/pretraining/instances.h"
#include "text/vocab.h"

/* Longest instance in tokens. */
#define STATIC_LENGTH_MAX (1 << 20)

/* What the end of a file says of all its instances. */
struct static_summary {
	int64_t count, token_count, prediction_count, labelled_count; /* labelled: with a next-sentence label */
	int32_t max_length, max_predictions;                          /* of one instance */
	int32_t largest_id;
	bool has_pairs;              /* whose masked run is drawn when they are used */
	uint64_t source_fingerprint; /* of the file it was converted from; 0 = made by bertc */
};

/* Writing, whole or not at all. The places of the instances are held in memory until the end, 8 bytes each. */
struct static_writer;
MUST_USE enum status static_writer_open(struct static_writer **out, const char *path);
/* prediction_weights may be NULL: all 1. Predictions are in ascending order of position. */
MUST_USE enum status static_writer_add(struct static_writer *writer, const struct instance *instance);
/* A pair for learning to rewrite (rewriting.h), not masked: prediction_count is the length of the run that is masked when it is
 * used; the positions and labels are the first ones of B. A file with pairs is of version 2. */
MUST_USE enum status static_writer_add_pair(struct static_writer *writer, const struct instance *instance);
int64_t static_writer_bytes(const struct static_writer *writer); /* so far */
const struct static_summary *static_writer_summary(const struct static_writer *writer);
/* Frees the writer whatever happens. */
MUST_USE enum status static_writer_commit(struct static_writer *writer, uint64_t source_fingerprint);
void static_writer_abandon(struct static_writer *writer); /* NULL is fine */

/* Reading: mapped. Opening verifies the end of the file and the places of all instances against its size; an instance is
 * checked when it is read. */
struct static_file {
	struct file_map map;
	struct static_summary summary;
	uint64_t content_hash; /* of the end of the file, which has the checksum of the rest */
	const unsigned char *places;
	char path[PATH_BYTES];
};
MUST_USE enum status static_file_open(struct static_file *out, const char *path);
void static_file_close(struct static_file *file);
/* True if the file begins and ends as ours do (nothing else is looked at). */
bool static_file_is(const char *path);
/* Reads instance `index`. Buffers of `out` have max_length and max_predictions entries; prediction_weights may be NULL.
 * ids outside [0, vocab_size), or anything else that cannot be, is ERR_DATA naming file, instance and offset. */
MUST_USE enum status static_file_read(const struct static_file *file, int64_t index, int32_t vocab_size, struct instance *out);
/* Length and number of predictions alone; 0 for an instance that is damaged. */
void static_file_sizes(const struct static_file *file, int64_t index, int32_t *out_length, int32_t *out_predictions);
/* Verifies the checksum of an open file; shard_check.h does it in the background. */
struct shard_contents static_contents(const struct static_file *file);
/* Of some instances throughout the file: tokens but the special ones, predicted words included, and how many of them the
 * vocabulary has as [UNK]. */
MUST_USE enum status static_file_unknown(const struct static_file *file, const struct vocab *vocab, int64_t *out_unknown,
					 int64_t *out_tokens);
/* Verifies the checksum and every instance. */
MUST_USE enum status static_file_verify(const char *path);

#endif
