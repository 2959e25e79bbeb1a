/* Static instances: masked once, when the file was made. This is the only form in which training reads them; Google's
 * TFRecord and NVIDIA's HDF5 files are converted to it (instance_files.h). The layout is in docs/formats.md. */
#ifndef DATA_PRETRAINING_STATIC_INSTANCES_H
#define DATA_PRETRAINING_STATIC_INSTANCES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "data/shard_check.h"
#include "data/pretraining/instances.h"
#include "text/vocab.h"

/* Most tokens of an instance. */
#define STATIC_LENGTH_MAX (1 << 20)

/* What the end of a file records about all its instances. */
struct static_summary {
	int64_t count, token_count, prediction_count, labeled_count; /* labeled: those with a next-sentence label */
	int32_t max_length, max_predictions;                         /* of any one instance */
	int32_t largest_id;
	bool has_pairs;              /* pairs, whose masked run is drawn when they are used */
	uint64_t source_fingerprint; /* of the file it was converted from; 0 = not converted */
};

/* Writing, completely or not at all. The offsets of the instances are kept in memory until the end, 8 bytes each. */
struct static_writer;
MUST_USE enum status static_writer_open(struct static_writer **out, const char *path);
/* prediction_weights may be NULL (all 1). Predictions must be in ascending order of position. */
MUST_USE enum status static_writer_add(struct static_writer *writer, const struct instance *instance);
/* Adds a pair for learning to rewrite (rewriting.h), unmasked: prediction_count is the length of the run that is masked when the
 * pair is used; the positions and labels are the first ones of B. A file with pairs has version 2. */
MUST_USE enum status static_writer_add_pair(struct static_writer *writer, const struct instance *instance);
int64_t static_writer_bytes(const struct static_writer *writer); /* written so far */
const struct static_summary *static_writer_summary(const struct static_writer *writer);
/* Frees the writer even on failure. */
MUST_USE enum status static_writer_commit(struct static_writer *writer, uint64_t source_fingerprint);
void static_writer_abandon(struct static_writer *writer); /* NULL is fine */

/* Reading: the file is mapped. Opening verifies the end of the file, and the offsets of all instances against its size; an
 * instance is checked when it is read. */
struct static_file {
	struct file_map map;
	struct static_summary summary;
	/* Of the end of the file, which includes a checksum of the rest, but without source_fingerprint, since a source that
	 * was copied is the same; dated_hash: with it, as older checkpoints have it. */
	uint64_t content_hash, dated_hash;
	const unsigned char *places;
	char path[PATH_BYTES];
};
MUST_USE enum status static_file_open(struct static_file *out, const char *path);
void static_file_close(struct static_file *file);
/* True if the file begins and ends like one of ours; nothing else is checked. */
bool static_file_is(const char *path);
/* Reads instance `index`. Buffers of `out` have max_length and max_predictions entries; prediction_weights may be NULL.
 * Ids outside [0, vocab_size), sizes that do not fit and positions out of order are ERR_DATA naming file, instance and offset. */
MUST_USE enum status static_file_read(const struct static_file *file, int64_t index, int32_t vocab_size, struct instance *out);
/* Only the length and number of predictions; both 0 if the instance is damaged. */
void static_file_sizes(const struct static_file *file, int64_t index, int32_t *out_length, int32_t *out_predictions);
/* Verifies the checksum of an open file; shard_check.h does it in the background. */
struct shard_contents static_contents(const struct static_file *file);
/* For a sample of instances spread over the file: number of tokens, including predicted words but not special tokens, and how
 * many of them are [UNK]. */
MUST_USE enum status static_file_unknown(const struct static_file *file, const struct vocab *vocab, int64_t *out_unknown,
					 int64_t *out_tokens);
/* Verifies the checksum and every instance. */
MUST_USE enum status static_file_verify(const char *path);

#endif
