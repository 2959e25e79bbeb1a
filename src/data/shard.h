/* Token shards: Megatron's PREFIX.bin / PREFIX.idx with one sequence per sentence, plus PREFIX.json, a description of
 * what is needed to use them (vocabulary hash, tokenizer settings, counts, source fingerprint). The layout of the
 * three files is in docs/formats.md. */
#ifndef DATA_SHARD_H
#define DATA_SHARD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/error.h"
#include "base/file.h"

/* Most tokens in a sentence of a shard: the sum of two such counts still fits in 32 bits. */
#define SENTENCE_TOKENS_MAX (1 << 30)

/* Ids take 2 bytes for vocabularies smaller than this, else 4, as in the files that Megatron writes. */
#define SHARD_NARROW_VOCAB 65500

struct shard_description {
	uint64_t vocab_hash;
	int32_t vocab_size;
	bool lowercase, strip_accents, split_chinese;
	uint64_t source_fingerprint; /* fingerprint of the corpus files; 0 if unknown */
	int64_t documents, sentences, tokens, unknown_tokens;
	char text_form[32];
};

/* ERR_USAGE if files that are not shards of bertc's have the names that a writer of this prefix would give: Megatron's PREFIX.bin
 * and PREFIX.idx, or somebody's PREFIX.json. */
MUST_USE enum status shard_check_own(const char *prefix);

/* Writing: ids go to PREFIX.bin.part as they come, lengths and document ends to two more part files, so memory use does not
 * grow with the shard. Commit builds the index from these and moves .bin, .idx and .json into place in this order; an older
 * .json is removed first, so a .json always belongs to the files beside it. Creates the folder of `prefix`. Only one
 * process at a time can write a prefix (ERR_LOCKED). */
struct shard_writer;
MUST_USE enum status shard_writer_open(struct shard_writer **out, const char *prefix, int32_t vocab_size);
/* `count` is at least 1; an id outside the vocabulary or more than SENTENCE_TOKENS_MAX ids is ERR_DATA. */
MUST_USE enum status shard_writer_sentence(struct shard_writer *writer, const int32_t *ids, int64_t count);
MUST_USE enum status shard_writer_end_document(struct shard_writer *writer);

/* Resuming after a kill: save() makes the parts durable and reports their state, from which resume() continues; suspend()
 * closes the writer but keeps the parts (NULL is fine). */
struct shard_writer_state {
	struct file_writer_state bin, lengths, ends;
	int64_t sentences, documents, tokens;
};
MUST_USE enum status shard_writer_save(struct shard_writer *writer, struct shard_writer_state *out);
MUST_USE enum status shard_writer_resume(struct shard_writer **out, const char *prefix, int32_t vocab_size,
					 const struct shard_writer_state *state);
void shard_writer_suspend(struct shard_writer *writer);

/* Removes from what has been written each sentence i and document i whose bit (map[i / 8] >> i % 8) is set, and documents left
 * without sentences. Either map may be NULL. *out_unknown counts `unknown_id` in what remains. Rewrites the remaining data and
 * replaces *writer. */
MUST_USE enum status shard_writer_drop(struct shard_writer **writer, const uint8_t *sentences, const uint8_t *documents,
				       int32_t unknown_id, int64_t *out_unknown);

/* Calls `visit` for each sentence written so far, in order, with its ids: for a second pass before the commit. */
MUST_USE enum status shard_writer_visit(struct shard_writer *writer,
					enum status (*visit)(void *context, int64_t document, int64_t sentence,
							     const int32_t *ids, int32_t count),
					void *context);

/* Fills in documents, sentences, tokens and vocab_size of `description` and writes all three files. Frees the writer even on
 * failure. */
MUST_USE enum status shard_writer_commit(struct shard_writer *writer, struct shard_description *description);
/* Removes the parts and frees; NULL is fine. */
void shard_writer_abandon(struct shard_writer *writer);

/* Removes the files of a shard, the description first; files that do not exist are fine. */
MUST_USE enum status shard_remove(const char *prefix);

/* Reading: the files are mapped. Opening verifies every number of the index against the sizes of the files, and the
 * description (if there is one) against the index; ids are checked against the vocabulary by
 * shard_check_vocab() and again wherever they are used. Closing a zero-initialized or already closed shard is fine.
 */
struct shard {
	const void *ids; /* int32_t if `wide`, else uint16_t */
	bool wide;
	int64_t sentence_count, document_count, token_count;
	int32_t longest_sentence; /* tokens */
	struct shard_description description;
	bool described;        /* there is a PREFIX.json */
	uint32_t bin_crc32c;   /* of PREFIX.bin: as recorded in the description, or else computed */
	uint64_t content_hash; /* of the index and bin_crc32c; checkpoints record it */
	/* The arrays of the index as they are in the file, unaligned; use the functions below. */
	const unsigned char *lengths, *byte_offsets, *documents;
	struct file_map bin, idx;
	char prefix[PATH_BYTES];
};
MUST_USE enum status shard_open(struct shard *out, const char *prefix);
void shard_close(struct shard *shard);
/* Reads all of PREFIX.bin and compares its checksum with the one that the description records (ERR_DATA if they differ). Does
 * nothing for a shard without a description. Ends early, with any result, once `cancelled` (may be NULL) returns true.
 * shard_check.h does this in the background. */
MUST_USE enum status shard_check_contents(const struct shard *shard, bool (*cancelled)(const void *context), const void *context);
/* How the text of a shard was split into tokens, and its source_fingerprint, from its description alone; nothing else in it is
 * read or checked. *out_described: whether there is a description. */
MUST_USE enum status shard_read_splitting(const char *prefix, struct shard_description *out, bool *out_described);
/* True if all three files that we write exist, that is, if a commit was completed. */
bool shard_exists(const char *prefix);
/* ERR_STATE with both hashes if the shard was made with another vocabulary; ERR_DATA naming file and sentence
 * if an id is outside the vocabulary. A shard without a description is read in full for this; the ids of one with a
 * description were checked when it was written. */
MUST_USE enum status shard_check_vocab(const struct shard *shard, uint64_t vocab_hash, int32_t vocab_size);

/* Number of tokens in a sentence. */
static inline int32_t shard_length(const struct shard *shard, int64_t sentence)
{
	int32_t length;
	memcpy(&length, shard->lengths + sentence * 4, 4);
	return length;
}

/* Where the ids of a sentence begin in `ids`. */
static inline int64_t shard_byte_offset(const struct shard *shard, int64_t sentence)
{
	int64_t offset;
	memcpy(&offset, shard->byte_offsets + sentence * 8, 8);
	return offset;
}

/* First sentence of a document; for document == document_count, the number of sentences. */
static inline int64_t shard_document(const struct shard *shard, int64_t document)
{
	int64_t first;
	memcpy(&first, shard->documents + document * 8, 8);
	return first;
}

/* Opens a shard and verifies it to the last byte: the index and, if there is a description, the checksums of both
 * files and every id against the vocabulary size. ERR_DATA says what is wrong. out_bytes (receives the total size of .bin and
 * .idx) and out_described may be NULL. */
MUST_USE enum status shard_verify(const char *prefix, int64_t *out_bytes, bool *out_described);

/* Copies the tokens [begin, begin + count) of a sentence. An id outside [0, vocab_size) is ERR_DATA naming
 * file and sentence. */
MUST_USE enum status shard_tokens(const struct shard *shard, int64_t sentence, int64_t begin, int64_t count, int32_t vocab_size,
				  int32_t *out);

#endif
