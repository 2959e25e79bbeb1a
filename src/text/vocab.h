/* A WordPiece vocabulary: vocab.txt, an entry a line, the id is the zero-based line number. */
#ifndef TEXT_VOCAB_H
#define TEXT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

#define VOCAB_ADDED_MOST 8

struct vocab {
	int32_t count;
	const char **text;                            /* [count] NUL-terminated entries, "##" included */
	uint32_t *size;                               /* [count] bytes */
	bool *is_continuation;                        /* [count] starts with "##" */
	int32_t pad, unk, cls, sep, mask;             /* ids of [PAD] [UNK] [CLS] [SEP] [MASK] */
	int32_t added[VOCAB_ADDED_MOST], added_count; /* entries that stand for themselves wherever a text has them, as the
							 special ones do: a tokenizer.json lists them */
	uint64_t hash;                                /* of all entries in order; shards and checkpoints record it */
	void *memory;
};

/* Reads vocab.txt. Trailing white space of a line is cut; a byte order mark, CR line ends, a blank entry in
 * the middle, a duplicate or a missing special token is reported: missing special tokens and an empty file
 * are ERR_DATA, the rest a warning naming the lines (published vocabularies have some; the later duplicate
 * wins, as in Hugging Face). A path that ends in ".json" is a tokenizer.json, the only place of the vocabulary in many
 * folders of today: its WordPiece model's entries, and its added tokens, whose ids must follow one another from 0. */
MUST_USE enum status vocab_read(struct vocab *out, const char *path);
/* Makes a vocabulary from entries in order (copied). */
MUST_USE enum status vocab_from_entries(struct vocab *out, const char *const *entries, int32_t count);
MUST_USE enum status vocab_write(const struct vocab *vocab, const char *path);
/* Id of an entry, or -1. */
int32_t vocab_find(const struct vocab *vocab, const char *text, size_t size);
/* Makes `text` an entry that stands for itself (vocab.added): the one that is there, else the next free row of those called
 * [unused0], [unused1], ..., which takes the name. *out: its id. ERR_USAGE: there is no free row, or the text is longer than
 * the row's name. Tokenizers that are open do not find the entry in texts. */
MUST_USE enum status vocab_add_token(struct vocab *vocab, const char *text, int32_t *out);
bool vocab_is_special(const struct vocab *vocab, int32_t id);
/* Whether the vocabulary was made from text with its upper case kept: more than one in a hundred of its entries has a letter A to
 * Z, special and [unused…] entries aside. Vocabularies of lower-cased text can have a few: SciBERT's has 37 of 31,090, Chinese
 * BERT's 2 of 21,128; BERT's cased vocabulary has 28 %. */
bool vocab_looks_cased(const struct vocab *vocab);
void vocab_release(struct vocab *vocab);

#endif
