/* A tokenizer as a chain of stages, the normalizers and pre-tokenizers of a tokenizer.json, and a model at its end. Texts go
 * through it word by word: a stage takes a piece of text, changes it or divides it, and passes on what becomes of it with
 * chain_next(). So nothing is collected between two stages. Every byte of a piece knows the bytes of the source that it comes
 * from.
 *
 * To add a stage, write a struct stage_kind in a file of its own and list it in tokenizer_parts.c; a model is a struct
 * token_model in another table there. BERT's own normalizer, pre-tokenizer, and model together take the shorter way of
 * tokenizer_walk.h. */
#ifndef TEXT_TOKENIZER_CHAIN_H
#define TEXT_TOKENIZER_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/tokenizer_normalize.h"
#include "text/vocab.h"

/* A piece of text in a chain: valid UTF-8, not empty, and not NUL-terminated. */
struct word {
	const char *text;
	size_t size;
	uint32_t begin, end;           /* in the source */
	const uint32_t *begins, *ends; /* of each byte; NULL if byte i is source byte begin + i */
};
/* The bytes [from, to) of a piece. */
static inline struct word word_part(const struct word *word, size_t from, size_t to)
{
	struct word part = {.text = word->text + from, .size = to - from};
	if (from == to)
		return part;
	if (!word->begins) {
		part.begin = word->begin + (uint32_t)from;
		part.end = word->begin + (uint32_t)to;
		return part;
	}
	part.begins = word->begins + from;
	part.ends = word->ends + from;
	part.begin = part.begins[0];
	part.end = part.ends[part.size - 1];
	return part;
}
/* Where the character that contains byte `at` of a piece comes from. */
void word_place(const struct word *word, size_t at, uint32_t *begin, uint32_t *end);

/* ---- Stages ---- */

struct chain_run;
struct stage;

/* What a part of a tokenizer.json says, and where it stands, for messages: "normalizer" of 'model/tokenizer.json'. */
struct part {
	const struct json *object;
	const char *path, *role;
};

struct stage_kind {
	const char *type;           /* in tokenizer.json */
	const char *const *members; /* those that open() reads, then NULL; others are named in a warning */
	/* Reads the members into stage->own. A value that cannot be obeyed is refused with part_refuse(). May be NULL. */
	enum status (*open)(struct stage *stage, const struct part *part);
	/* Takes a piece and calls chain_next() for each piece that it becomes, in order. Changed text is made in chain_buffer(),
	 * which keeps it until the call returns. */
	enum status (*run)(const struct stage *stage, struct chain_run *run, const struct word *word);
	void (*close)(struct stage *stage); /* frees stage->own; NULL: free() does */
};
struct stage {
	const struct stage_kind *kind;
	int index; /* in the chain */
	void *own; /* what the kind needs to know */
};

/* Whether the spaces at the ends of a token are left out of its offsets (ByteLevel), except the one that add_prefix_space adds.
 */
struct offset_trimming {
	bool is_on, add_prefix_space;
	uint8_t *spaces; /* [2 * vocabulary] spaces at the beginning and at the end of each entry */
};

#define CHAIN_STAGES 16
struct chain {
	struct stage stages[CHAIN_STAGES];
	int count, normalizer_count; /* the first normalizer_count stages make normalized text */
	/* The model receives a word's bytes as they are, and its entries are sequences of bytes (ByteLevel). */
	bool bytes;
	const struct token_model *model;
	void *model_own; /* what the model has opened */
	struct offset_trimming trimming;
	/* The file that the chain was read from, usually tokenizer.json, and the files beside it; "" if there is none. */
	struct buffer json, config, special_tokens;
	const char *json_name, *class_name; /* NULL: tokenizer.json, PreTrainedTokenizerFast */
};

/* A text's way through a chain, with the memory for it. */
struct chain_run {
	const struct chain *chain;
	struct normalized_text buffers[CHAIN_STAGES + 1];
	/* Called for each word that leaves the chain. */
	enum status (*word)(void *context, const struct word *word);
	/* Called for each token in normalized text that is listed in `added` (may be NULL). */
	enum status (*token)(void *context, int32_t id, const struct word *word);
	const struct added_patterns *added;
	void *context;
	int64_t invalid_bytes; /* found so far */
};

/* Passes on a piece from a stage to the one behind it; an empty piece vanishes. */
MUST_USE enum status chain_next(struct chain_run *run, const struct stage *stage, const struct word *word);
/* Sends text[begin, end) through the chain. Bytes that are not UTF-8 become U+FFFD and are counted. */
MUST_USE enum status chain_run_text(struct chain_run *run, const char *text, size_t begin, size_t end);
/* Appends to *out what the normalizers alone make of a text. */
MUST_USE enum status chain_normalize(const struct chain *chain, const char *text, size_t size, struct buffer *out);
void chain_run_release(struct chain_run *run);
void chain_release(struct chain *chain);

/* The buffer of a stage, emptied. */
struct normalized_text *chain_buffer(struct chain_run *run, const struct stage *stage);
/* The contents of a buffer as a piece; its size may be 0. */
struct word word_of_buffer(const struct normalized_text *buffer);

/* Changes a piece character by character, and finds where the bytes of the result come from as Hugging Face's
 * NormalizedString::transform() does. */
struct rewriting {
	const struct word *from;
	size_t at; /* bytes of it that have been replaced */
	struct normalized_text *out;
};
/* Begins in the buffer of a stage. */
struct rewriting rewriting_begin(struct chain_run *run, const struct stage *stage, const struct word *word);
/* Appends a character. change 0: in place of the next character of the piece; -n: in place of the next, and the n after it are
 * left out; above 0: inserted, with the place of what comes before. */
MUST_USE enum status rewriting_put(struct rewriting *rewriting, uint32_t code_point, int64_t change);
/* Leaves out the next `count` characters of the piece. */
void rewriting_skip(struct rewriting *rewriting, int64_t count);
/* Takes the next `size` bytes of the piece as they are. */
MUST_USE enum status rewriting_copy(struct rewriting *rewriting, size_t size);

/* ---- Models ---- */

/* The part of a word that a token stands for. */
struct piece {
	int32_t id;
	uint32_t begin, end; /* bytes of the word */
};
struct pieces {
	struct piece *items;
	int64_t count, capacity;
	/* Memory for a model to work in, from call to call; see pieces_work(). */
	void *work;
	int64_t work_capacity;
};
MUST_USE enum status pieces_grow(struct pieces *pieces);
static inline enum status pieces_put(struct pieces *pieces, int32_t id, size_t begin, size_t end)
{
	if (pieces->count == pieces->capacity)
		TRY(pieces_grow(pieces));
	pieces->items[pieces->count++] = (struct piece){id, (uint32_t)begin, (uint32_t)end};
	return OK;
}
/* *(void **)out: room for `bytes` bytes, uninitialized; valid until the next call. */
MUST_USE enum status pieces_work(struct pieces *pieces, int64_t bytes, void *out);
void pieces_release(struct pieces *pieces);

/* What a model is made from. `json` is the "model" of a tokenizer.json. */
struct model_source {
	const struct vocab *vocab; /* its entries are borrowed as long as the model is open, but the struct may move: copy it */
	struct part part;
	bool bytes; /* as in struct chain */
};
struct token_model {
	const char *type; /* in tokenizer.json */
	bool takes_bytes; /* can be behind a ByteLevel stage */
	const char *const *members;
	enum status (*open)(void **out, const struct model_source *source);
	/* Appends the pieces of a word, in order. The same word always has the same pieces, so they may come from a cache. */
	enum status (*cut)(const void *model, const char *text, size_t size, struct pieces *out);
	void (*close)(void *model); /* of NULL does nothing */
};

/* ---- Reading ---- */

/* Reads "normalizer", "pre_tokenizer", and "model" of a tokenizer.json, whose entries are `vocab` (borrowed). A part
 * that is not in the tables of tokenizer_parts.c is refused by name. */
MUST_USE enum status chain_read(struct chain *out, const struct vocab *vocab, const struct json *root, const char *path);
/* Adds a stage behind the others. */
MUST_USE enum status chain_add(struct chain *chain, const struct stage_kind *kind, const struct part *part);
/* ERR_DATA: the value of a member cannot be obeyed. */
MUST_USE enum status part_refuse(const struct part *part, const char *member);
/* The same, for a value (may be NULL) within the member. */
MUST_USE enum status part_refuse_value(const struct part *part, const char *member, const struct json *value);
/* ERR_DATA: bertc does not have a part's type. */
MUST_USE enum status part_refuse_type(const struct part *part);
/* Warns of members that are neither in `known` nor in `ignored` (both end with NULL; may be NULL). */
void part_warn_unknown(const struct part *part, const char *const *known, const char *const *ignored);

#endif
