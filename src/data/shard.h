/* Token shards: Megatron's PREFIX.bin / PREFIX.idx, one sequence a sentence, plus PREFIX.json, a description that
 * says what is needed to use them (vocabulary hash, tokenizer settings, counts, source fingerprint). */
#ifndef DATA_SHARD_H
#define DATA_SHARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"

struct shard_description {
	uint64_t vocab_hash;
	int32_t vocab_size;
	bool lowercase, strip_accents, split_chinese;
	uint64_t source_fingerprint; /* of the corpus files; 0 if unknown */
	int64_t documents, sentences, tokens, unknown_tokens;
	char text_form[32];
};

/* Writing: temporary files, made durable and visible together by commit (.bin, then .idx, then .json). */
struct shard_writer;
MUST_USE enum status shard_writer_open(struct shard_writer **out, const char *prefix, int32_t vocab_size);
MUST_USE enum status shard_writer_sentence(struct shard_writer *writer, const int32_t *ids, int64_t count);
MUST_USE enum status shard_writer_end_document(struct shard_writer *writer);
/* Fills in the counts of `description`, writes all three files; frees the writer whatever happens. */
MUST_USE enum status shard_writer_commit(struct shard_writer *writer, struct shard_description *description);
void shard_writer_abandon(struct shard_writer *writer);

/* Reading: mapped; every number in the index is proved against the sizes of the files before use, every id against
 * the vocabulary size. */
struct shard {
	const void *ids;             /* uint16_t or int32_t, by `wide` */
	bool wide;
	const int32_t *lengths;      /* [sentence_count] */
	const int64_t *byte_offsets; /* [sentence_count] */
	const int64_t *documents;    /* [document_count + 1] first sentence of each document, and the end */
	int64_t sentence_count, document_count, token_count;
	struct shard_description description;
	bool described;              /* PREFIX.json was there */
	uint64_t content_hash;       /* of the index file: a checkpoint records it */
	struct file_map bin, idx;
	char prefix[PATH_BYTES];
};
MUST_USE enum status shard_open(struct shard *out, const char *prefix);
void shard_close(struct shard *shard);
bool shard_exists(const char *prefix);
/* ERR_STATE with both hashes and sizes if the shard was not made with this vocabulary; ERR_DATA if ids reach
 * beyond it. */
MUST_USE enum status shard_check_vocab(const struct shard *shard, uint64_t vocab_hash, int32_t vocab_size);
/* Copies the ids of a sentence to out[lengths[sentence]]. */
void shard_sentence(const struct shard *shard, int64_t sentence, int32_t *out);

#endif
