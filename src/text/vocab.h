/* A vocabulary: the entries of a vocab.txt, whose ids are their zero-based line numbers, or those of a tokenizer.json. */
#ifndef TEXT_VOCAB_H
#define TEXT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "text/token_template.h"

/* An entry that is a token wherever it occurs in a text, before the text is split into words. The attributes are those of Hugging
 * Face's tokenizer.json. */
struct added_token {
	int32_t id;
	bool normalized;     /* looked for in the normalized text, not in the text as it stands */
	bool single_word;    /* only where no letter, digit, or underscore adjoins it */
	bool lstrip, rstrip; /* takes the white space before it, after it */
	bool special;        /* decoding may leave it out, like [CLS] */
};

struct chain;
struct decoder;

#define VOCAB_PREFIX_BYTES 16
struct vocab {
	int32_t count;
	const char **text;                /* [count] NUL-terminated entries, with the prefix */
	uint32_t *size;                   /* [count] bytes */
	bool *is_continuation;            /* [count] continues a word: in WordPiece, starts with the prefix */
	char prefix[VOCAB_PREFIX_BYTES];  /* of WordPieces that continue a word: "##" */
	int32_t pad, unk, cls, sep, mask; /* ids of [PAD] [UNK] [CLS] [SEP] [MASK], whatever they are called */
	struct token_template single, pair;
	struct chain *chain;       /* how texts become entries; NULL: BERT's way, with tokenizer_settings */
	struct decoder *decoder;   /* how entries become text again; NULL: BERT's way */
	int32_t wordpiece_count;   /* entries from this id on are added tokens, not pieces of words */
	struct added_token *added; /* [added_count] besides the five special tokens */
	int32_t added_count;
	uint64_t hash; /* of all entries in order; shards and checkpoints record it */
	void *memory;
};

/* Reads vocab.txt. Trailing white space of a line is cut. Missing special tokens, an empty file and invalid UTF-8 are ERR_DATA. A
 * byte order mark, CR line ends, trailing white space, blank entries and duplicates cause a warning naming the lines (published
 * vocabularies have some; the later duplicate wins, as in Hugging Face). */
MUST_USE enum status vocab_read_lines(struct vocab *out, const char *path);

/* The same, or reads what another path names: a tokenizer.json (in many folders, the only file with the vocabulary), vocab.json
 * with merges.txt beside it, or sentencepiece's file. Ids must be consecutive from 0. Parts that bertc does not have, a duplicate
 * id, and a gap between ids are ERR_DATA. (vocab_file_read in weights/tokenizer_file.h reads all files of a folder.) */
MUST_USE enum status vocab_read(struct vocab *out, const char *path);
/* Makes a vocabulary from entries in order; they are copied. */
MUST_USE enum status vocab_from_entries(struct vocab *out, const char *const *entries, int32_t count);
/* The same for the entries of a tokenizer.json, which may contain line ends. `special`: what the special tokens are called; NULL:
 * there is none, and its id is -1. */
#define VOCAB_SPECIAL_TOKENS 5
MUST_USE enum status vocab_from_tokens(struct vocab *out, const char *const *entries, int32_t count,
				       const char *const special[VOCAB_SPECIAL_TOKENS]);
/* The ids of pad, unk, cls, sep and mask; -1: none. */
void vocab_special_ids(const struct vocab *vocab, int32_t out[VOCAB_SPECIAL_TOKENS]);
/* Size of an entry without the white space at its end, which vocab.txt cannot represent. */
size_t vocab_trimmed_size(const char *text, size_t size);
MUST_USE enum status vocab_write(const struct vocab *vocab, const char *path);
/* Id of an entry, or -1. */
int32_t vocab_find(const struct vocab *vocab, const char *text, size_t size);
/* Lists `text` in vocab.added, as a special token: the entry of that name if there is one, otherwise the first free row
 * ([unused0], [unused1], ...), which is renamed. *out: its id. ERR_USAGE if there is no free row whose name is at least as long
 * as the text. Tokenizers that are already open do not find the entry in texts. */
MUST_USE enum status vocab_add_token(struct vocab *vocab, const char *text, int32_t *out);
/* Adds a token to vocab.added. */
MUST_USE enum status vocab_list_added(struct vocab *vocab, const struct added_token *token);
/* True for [PAD], [UNK], [CLS], [SEP] and [MASK]. */
bool vocab_is_special(const struct vocab *vocab, int32_t id);
/* True if the vocabulary seems to be made from cased text: more than 1 % of its entries, special and [unused...] entries aside,
 * contain a letter A to Z. Vocabularies of lower-cased text can have a few: SciBERT's has 37 of 31,090, Chinese
 * BERT's 2 of 21,128; in BERT's cased vocabulary, it is 28 %. */
bool vocab_looks_cased(const struct vocab *vocab);
void vocab_release(struct vocab *vocab);

#endif
