/* Files of static instances that others made, or want: Google's TFRecord (plain or compressed), NVIDIA's HDF5, and our
 * own form. Reading verifies every instance: lengths, ids, positions, labels. */
#ifndef DATA_PRETRAINING_INSTANCE_FILES_H
#define DATA_PRETRAINING_INSTANCE_FILES_H

#include "data/pretraining/instances.h"
#include "data/pretraining/static_instances.h"
#include "text/tokenizer.h"

enum instance_format { INSTANCE_TFRECORD, INSTANCE_TFRECORD_GZIP, INSTANCE_HDF5, INSTANCE_STATIC, INSTANCE_PAIRS };

/* What is demanded of instances that are read. */
struct instance_demands {
	int32_t vocab_size; /* ids below this; 0 = any */
	int32_t max_length; /* at most so many tokens (the model's positions); 0 = any */
	bool skip_bad;      /* a bad record is skipped and counted, and the first few are reported, instead of an error */
	/* Of pairs for learning to rewrite (rewriting.h): tokens of an instance, and predictions (0: as many as A has) at most.
	 * Without a tokenizer a file of pairs is refused. */
	const struct tokenizer *tokenizer;
	int32_t pair_length, pair_predictions;
};

struct instance_counts {
	int64_t instances;
	int64_t bad; /* passed over */
};

/* By content: TFRecord, HDF5, our own, or lines of pairs; never by the name. */
MUST_USE enum status instance_file_format(const char *path, enum instance_format *out);

/* A row as the formats of the world hold it, padded to the longest. */
struct padded_row {
	int64_t length, predictions; /* of the arrays */
	const int32_t *ids, *mask, *segments;
	const int32_t *positions, *labels;
	const float *weights; /* NULL: the list ends with the first position 0, as in NVIDIA's files */
	int32_t next_label;   /* -1 = none */
};
/* Padding dropped by the mask, predictions by their weight 0. `out` has room for `length` and `predictions`. What cannot
 * be is ERR_DATA with the reason. */
MUST_USE enum status instance_from_row(const struct padded_row *row, const struct instance_demands *demands,
				       struct instance *out);

/* A TFRecord file of Google's training data, instance by instance. */
struct record_reader;
MUST_USE enum status record_reader_open(struct record_reader **out, const char *path, const struct instance_demands *demands);
/* The next instance, valid until the next call; *out = NULL at the end. */
MUST_USE enum status record_reader_next(struct record_reader *reader, const struct instance **out);
/* Length and predictions that all records of the file are padded to; 0 before the first record. */
void record_reader_shape(const struct record_reader *reader, int32_t *out_length, int32_t *out_predictions);
const struct instance_counts *record_reader_counts(const struct record_reader *reader);
void record_reader_close(struct record_reader *reader); /* NULL is fine */

/* Name, size and time of a file, hashed: tells whether a conversion of it is still good. (That of pairs depends on the demands,
 * too.) */
MUST_USE enum status instance_file_fingerprint(const char *path, uint64_t *out);
/* Any of the formats to our own. An HDF5 file is read by a child process, so that what is wrong with it can harm
 * nothing but the child. */
MUST_USE enum status instance_file_convert(const char *path, const struct instance_demands *demands, const char *static_path,
					   struct instance_counts *out);

/* Reads all of a file: the checksums of TFRecord (whatever its records hold) and HDF5, and every instance. */
MUST_USE enum status instance_file_verify(const char *path, struct instance_counts *out);

/* Writing one file, in any of the formats, whole or not at all. Rows are padded to the given length and predictions;
 * without labels (no instance has one) next_sentence_labels is left out. */
struct instance_writer;
struct instance_writer_settings {
	enum instance_format format;
	int32_t max_seq_length, max_predictions;
	bool labelled;
};
MUST_USE enum status instance_writer_open(struct instance_writer **out, const char *path,
					  const struct instance_writer_settings *settings);
/* An instance made ready for a file of these settings, by any thread; nothing is done for HDF5 and our own form. */
struct instance_encoder {
	int32_t *lists;
	unsigned char *record; /* [size] framed */
	size_t size;
};
MUST_USE enum status instance_encoder_create(struct instance_encoder *out, const struct instance_writer_settings *settings);
void instance_encoder_release(struct instance_encoder *encoder);
void instance_encode(struct instance_encoder *encoder, const struct instance_writer_settings *settings,
		     const struct instance *instance);
/* `encoder` has encoded it. */
MUST_USE enum status instance_writer_add(struct instance_writer *writer, const struct instance *instance,
					 const struct instance_encoder *encoder);
MUST_USE enum status instance_writer_commit(struct instance_writer *writer); /* frees whatever happens */
void instance_writer_abandon(struct instance_writer *writer);                /* NULL is fine */

/* Room for one instance of these bounds; instance_release frees it. */
MUST_USE enum status instance_create(struct instance *out, int64_t length, int64_t predictions);
void instance_release(struct instance *instance);

#endif
