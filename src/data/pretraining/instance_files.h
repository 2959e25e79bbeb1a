/* Files of static instances exchanged with other programs: Google's TFRecord (plain or compressed), NVIDIA's HDF5, and our
 * own form. Reading verifies every instance: lengths, ids, positions, labels. */
#ifndef DATA_PRETRAINING_INSTANCE_FILES_H
#define DATA_PRETRAINING_INSTANCE_FILES_H

#include "data/pretraining/instances.h"
#include "data/pretraining/static_instances.h"
#include "text/tokenizer.h"

enum instance_format { INSTANCE_TFRECORD, INSTANCE_TFRECORD_GZIP, INSTANCE_HDF5, INSTANCE_STATIC, INSTANCE_PAIRS };

/* Requirements for instances that are read. */
struct instance_demands {
	int32_t vocab_size; /* ids must be below this; 0 = any */
	int32_t max_length; /* most tokens (the model's positions); 0 = any */
	bool skip_bad;      /* skip and count bad records and report the first few, instead of failing */
	/* For pairs for learning to rewrite (rewriting.h): most tokens of an instance, and most predictions (0: as many as A has
	 * tokens). Without a tokenizer, a file of pairs is refused. */
	const struct tokenizer *tokenizer;
	int32_t pair_length, pair_predictions;
};

struct instance_counts {
	int64_t instances;
	int64_t bad; /* skipped */
};

/* Determined by the content (TFRecord, HDF5, our own form, or lines of pairs), never by the name. Compressed TFRecord files are
 * INSTANCE_TFRECORD, too. */
MUST_USE enum status instance_file_format(const char *path, enum instance_format *out);

/* A row as other programs' formats store it, padded to the longest. */
struct padded_row {
	int64_t length, predictions; /* sizes of the arrays */
	const int32_t *ids, *mask, *segments;
	const int32_t *positions, *labels;
	const float *weights; /* NULL: the list ends before the first position 0, as in NVIDIA's files */
	int32_t next_label;   /* -1 = none */
};
/* Drops padding according to the mask, and predictions with weight 0. `out` has room for `length` and `predictions`. An
 * invalid row is ERR_DATA with the reason. */
MUST_USE enum status instance_from_row(const struct padded_row *row, const struct instance_demands *demands,
				       struct instance *out);

/* Reads a TFRecord file of Google's training data, instance by instance. */
struct record_reader;
MUST_USE enum status record_reader_open(struct record_reader **out, const char *path, const struct instance_demands *demands);
/* The next instance, valid until the next call; *out = NULL at the end. */
MUST_USE enum status record_reader_next(struct record_reader *reader, const struct instance **out);
/* The length and number of predictions that all records of the file are padded to; 0 before the first record. */
void record_reader_shape(const struct record_reader *reader, int32_t *out_length, int32_t *out_predictions);
const struct instance_counts *record_reader_counts(const struct record_reader *reader);
void record_reader_close(struct record_reader *reader); /* NULL is fine */

/* Hash of a file's path, size and modification time: tells whether a conversion of it is still valid. (A conversion of pairs also
 * depends on the demands.) */
MUST_USE enum status instance_file_fingerprint(const char *path, uint64_t *out);
/* Converts a file of any of the other formats to our own. An HDF5 file is read by a child process, so that a damaged file
 * can crash only the child. */
MUST_USE enum status instance_file_convert(const char *path, const struct instance_demands *demands, const char *static_path,
					   struct instance_counts *out);

/* Reads and verifies a whole file: the checksums of TFRecord (whatever its records contain) and HDF5, and every instance. */
MUST_USE enum status instance_file_verify(const char *path, struct instance_counts *out);

/* Writes one file in any of the formats except pairs, completely or not at all. Rows are padded to the given length and number
 * of predictions; if `labeled` is false (no instance has a label), next_sentence_labels is left out. */
struct instance_writer;
struct instance_writer_settings {
	enum instance_format format;
	int32_t max_seq_length, max_predictions;
	bool labeled;
};
MUST_USE enum status instance_writer_open(struct instance_writer **out, const char *path,
					  const struct instance_writer_settings *settings);
/* Encodes an instance for a file with these settings; any thread may do so. Does nothing for HDF5 and our own form. */
struct instance_encoder {
	int32_t *lists;
	unsigned char *record; /* [size] the record in its frame */
	size_t size;
};
MUST_USE enum status instance_encoder_create(struct instance_encoder *out, const struct instance_writer_settings *settings);
void instance_encoder_release(struct instance_encoder *encoder);
void instance_encode(struct instance_encoder *encoder, const struct instance_writer_settings *settings,
		     const struct instance *instance);
/* `encoder` has encoded the instance. */
MUST_USE enum status instance_writer_add(struct instance_writer *writer, const struct instance *instance,
					 const struct instance_encoder *encoder);
MUST_USE enum status instance_writer_commit(struct instance_writer *writer); /* frees even on failure */
void instance_writer_abandon(struct instance_writer *writer);                /* NULL is fine */

/* Allocates room for one instance of up to these sizes; instance_release frees it. */
MUST_USE enum status instance_create(struct instance *out, int64_t length, int64_t predictions);
void instance_release(struct instance *instance);

#endif
