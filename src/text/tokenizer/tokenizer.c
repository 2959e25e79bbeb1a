/* Encodes texts: normalizes them, splits them into words, and cuts words into pieces, with a cache of recent words. */
#include "text/tokenizer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/tokenizer_normalize.h"
#include "text/tokenizer/tokenizer_walk.h"
#include "text/tokenizer_wordpiece.h"

/* The pieces of a word of at most 16 bytes and 3 pieces. Text repeats its words, so most of them are found here. */
#ifndef TOKENIZER_CACHE_BITS /* fuzzing makes this small, so that words evict each other */
#define TOKENIZER_CACHE_BITS 15
#endif
#define CACHE_PIECES 3
struct cached_word {
	uint64_t key[2]; /* the bytes of the word, then zeros (a word contains no NUL); all zero: unused */
	int32_t ids[CACHE_PIECES];
	uint8_t ends[CACHE_PIECES]; /* end of each piece, in bytes of the word */
	uint8_t count;
};

struct tokenizer {
	const struct vocab *vocab;
	struct tokenizer_settings settings;
	const struct chain *chain;    /* the vocabulary's; NULL: BERT's words, as in tokenizer_walk.h, */
	struct normalizer normalizer; /* with these two */
	struct wordpiece_model *wordpiece;
	const struct token_model *model; /* cuts words */
	const void *model_own;
	struct added_tokens added;
	int32_t *character_ids; /* [UNICODE_LIMIT] id + 1 of the entry that is this one character, 0 = none */
	uint64_t serial;        /* unique in the process: tells which tokenizer's words a cache holds */
};

/* Working memory of one caller, in tokens->scratch. */
struct scratch {
	struct normalized_text word;
	struct pieces pieces;
	struct chain_run run;
	struct cached_word *cache;    /* [1 << TOKENIZER_CACHE_BITS] */
	uint64_t cache_owner;         /* serial of the tokenizer that filled it */
	struct normalizer normalizer; /* for tokenizer_words */
	bool has_normalizer;
	struct normalized_text normalized; /* for added tokens */
};

struct tokenizer_settings tokenizer_defaults(bool cased)
{
	return (struct tokenizer_settings){
		.lowercase = !cased,
		.strip_accents = !cased,
		.split_chinese = true,
		.special_tokens = false,
		.compat = COMPAT_HUGGINGFACE,
		.max_word_characters = 100,
	};
}

static enum status use_chain(struct tokenizer *t)
{
	if (t->settings.compat == COMPAT_GOOGLE)
		return error_set(ERR_USAGE, "Google's rules are for a vocab.txt; this vocabulary's tokenizer.json has its own");
	t->model = t->chain->model;
	t->model_own = t->chain->model_own;
	return added_tokens_init(&t->added, t->vocab, t->chain, NULL, t->settings.special_tokens);
}

static enum status use_wordpiece(struct tokenizer *t)
{
	const struct vocab *vocab = t->vocab;

	TRY(normalizer_init(&t->normalizer, &t->settings));
	TRY(wordpiece_model_new(&t->wordpiece, vocab, vocab->unk, t->settings.max_word_characters));
	t->model = &wordpiece_model;
	t->model_own = t->wordpiece;
	if (t->settings.compat == COMPAT_HUGGINGFACE) /* Google's tokenizer has none */
		TRY(added_tokens_init(&t->added, vocab, NULL, &t->normalizer, t->settings.special_tokens));
	TRY(memory_new(&t->character_ids, UNICODE_LIMIT, sizeof *t->character_ids, "tokenizer"));
	for (int32_t id = 0; id < vocab->wordpiece_count; id++) {
		uint32_t code_point;

		if (vocab->size[id] > 0 && utf8_decode(vocab->text[id], vocab->size[id], &code_point) == vocab->size[id])
			t->character_ids[code_point] = id + 1;
	}
	return OK;
}

enum status tokenizer_open(struct tokenizer **out, const struct vocab *vocab, const struct tokenizer_settings *settings)
{
	static atomic_uint_least64_t last_serial;
	struct tokenizer *t = NULL;
	enum status status;

	*out = NULL;
	TRY_GOTO(memory_new(&t, 1, sizeof *t, "tokenizer"), fail);
	t->vocab = vocab;
	t->settings = *settings;
	t->serial = atomic_fetch_add(&last_serial, 1) + 1;
	t->chain = vocab->chain;
	TRY_GOTO(t->chain ? use_chain(t) : use_wordpiece(t), fail);
	*out = t;
	return OK;
fail:
	tokenizer_close(t);
	return status;
}

void tokenizer_close(struct tokenizer *tokenizer)
{
	if (!tokenizer)
		return;
	normalizer_release(&tokenizer->normalizer);
	wordpiece_model.close(tokenizer->wordpiece);
	added_tokens_release(&tokenizer->added);
	free(tokenizer->character_ids);
	free(tokenizer);
}

const struct vocab *tokenizer_vocab(const struct tokenizer *tokenizer)
{
	return tokenizer->vocab;
}

const char *tokenizer_word_prefix(const struct tokenizer *tokenizer)
{
	return tokenizer->chain && tokenizer->chain->bytes ? " " : "";
}

const struct tokenizer_settings *tokenizer_settings_of(const struct tokenizer *tokenizer)
{
	return &tokenizer->settings;
}

void tokens_clear(struct tokens *tokens)
{
	tokens->count = 0;
}

void tokens_release(struct tokens *tokens)
{
	struct scratch *scratch = tokens->scratch;

	if (scratch) {
		normalized_text_release(&scratch->word);
		pieces_release(&scratch->pieces);
		chain_run_release(&scratch->run);
		free(scratch->cache);
		normalizer_release(&scratch->normalizer);
		normalized_text_release(&scratch->normalized);
	}
	free(scratch);
	free(tokens->ids);
	free(tokens->begin);
	free(tokens->end);
	*tokens = (struct tokens){.count = 0};
}

static enum status scratch_of(struct tokens *tokens, struct scratch **out)
{
	if (!tokens->scratch)
		TRY(memory_new(&tokens->scratch, 1, sizeof(struct scratch), "tokenizer"));
	*out = tokens->scratch;
	return OK;
}

struct encoding {
	const struct tokenizer *tokenizer;
	struct scratch *scratch;
	struct tokens *tokens;
	const char *text;
	int64_t first; /* number of tokens before this text's */
};

static enum status tokens_grow(struct tokens *tokens)
{
	int64_t ids = tokens->capacity, begins = tokens->capacity, ends = tokens->capacity;
	int64_t needed = tokens->capacity + 1;

	TRY(memory_grow(&tokens->ids, &ids, needed, sizeof *tokens->ids, "tokens"));
	TRY(memory_grow(&tokens->begin, &begins, needed, sizeof *tokens->begin, "tokens"));
	TRY(memory_grow(&tokens->end, &ends, needed, sizeof *tokens->end, "tokens"));
	tokens->capacity = ids;
	return OK;
}

static inline enum status push(struct tokens *tokens, int32_t id, uint32_t begin, uint32_t end)
{
	if (tokens->count == tokens->capacity)
		TRY(tokens_grow(tokens));
	tokens->ids[tokens->count] = id;
	tokens->begin[tokens->count] = begin;
	tokens->end[tokens->count] = end;
	tokens->count++;
	return OK;
}

/* Takes characters off the ends of a token's place, as ByteLevel::process_offsets() does. A single space at the beginning of a
 * text that gets one is taken to be that one. */
static void trim(const struct encoding *e, uint32_t leading, uint32_t trailing, uint32_t *begin, uint32_t *end)
{
	const char *text = e->text;

	if (leading == 1 && e->tokenizer->chain->trimming.add_prefix_space && (*begin == 0 || e->tokens->count == e->first))
		leading = 0;
	for (; leading > 0 && *begin < *end; leading--)
		do
			++*begin;
		while (*begin < *end && ((unsigned char)text[*begin] & 0xC0) == 0x80);
	for (; trailing > 0 && *end > *begin; trailing--)
		do
			--*end;
		while (*end > *begin && ((unsigned char)text[*end] & 0xC0) == 0x80);
}

/* Pieces of a chain's words may begin or end within a character, and may leave out spaces at their ends. */
static inline enum status push_chain_piece(struct encoding *e, const struct word *word, int32_t id, size_t begin, size_t end)
{
	const struct offset_trimming *trimming = &e->tokenizer->chain->trimming;
	uint32_t first, last;

	if (word->begins) {
		first = word->begins[begin];
		last = word->ends[end - 1];
	} else {
		while (begin > 0 && ((unsigned char)word->text[begin] & 0xC0) == 0x80)
			begin--;
		while (end < word->size && ((unsigned char)word->text[end] & 0xC0) == 0x80)
			end++;
		first = word->begin + (uint32_t)begin;
		last = word->begin + (uint32_t)end;
	}
	if (trimming->spaces && (trimming->spaces[2 * (size_t)id] | trimming->spaces[2 * (size_t)id + 1]))
		trim(e, trimming->spaces[2 * (size_t)id], trimming->spaces[2 * (size_t)id + 1], &first, &last);
	return push(e->tokens, id, first, last);
}

/* Appends the piece of a word that consists of its bytes [begin, end), with its place in the source. */
static inline enum status push_piece(struct encoding *e, const struct word *word, int32_t id, size_t begin, size_t end)
{
	if (e->tokenizer->chain)
		return push_chain_piece(e, word, id, begin, end);
	if (word->begins)
		return push(e->tokens, id, word->begins[begin], word->ends[end - 1]);
	return push(e->tokens, id, word->begin + (uint32_t)begin, word->begin + (uint32_t)end);
}

/* Stores the pieces of a word if they fit and if one begins where the other ends; of several, none may be unknown. */
static void store(const struct pieces *pieces, size_t size, int32_t unknown, struct cached_word *cached)
{
	size_t end = 0;

	cached->count = 0;
	if (pieces->count > CACHE_PIECES)
		return;
	for (int64_t i = 0; i < pieces->count; i++) {
		const struct piece *piece = &pieces->items[i];

		if (piece->begin != end || (piece->id == unknown && pieces->count > 1))
			return;
		end = piece->end;
		cached->ids[i] = piece->id;
		cached->ends[i] = (uint8_t)end;
	}
	if (end == size)
		cached->count = (uint8_t)pieces->count;
}

/* Has the model cut a word. If the result fits, it is also stored in `cached`. */
static enum status split_word(struct encoding *e, const struct word *word, struct cached_word *cached)
{
	const struct tokenizer *t = e->tokenizer;
	struct pieces *pieces = &e->scratch->pieces;

	pieces->count = 0;
	TRY(t->model->cut(t->model_own, word->text, word->size, pieces));
	for (int64_t i = 0; i < pieces->count; i++) {
		const struct piece *piece = &pieces->items[i];

		TRY(push_piece(e, word, piece->id, piece->begin, piece->end));
		e->tokens->unknown += piece->id == t->vocab->unk;
	}
	if (cached)
		store(pieces, word->size, t->vocab->unk, cached);
	return OK;
}

/* Encodes a word of at most 16 bytes, which are also given as numbers. */
static inline enum status encode_cached(struct encoding *e, const struct word *word, uint64_t low, uint64_t high)
{
	uint64_t hash = (low ^ (high * 0x9E3779B97F4A7C15u)) * 0xD6E8FEB86659FD93u;
	struct cached_word *cached = &e->scratch->cache[hash >> (64 - TOKENIZER_CACHE_BITS)];

	if (cached->key[0] != low || cached->key[1] != high) {
		cached->key[0] = cached->key[1] = 0;
		TRY(split_word(e, word, cached));
		if (cached->count > 0) {
			cached->key[0] = low;
			cached->key[1] = high;
		}
		return OK;
	}
	if (cached->ids[0] == e->tokenizer->vocab->unk)
		e->tokens->unknown++;
	for (size_t i = 0, begin = 0; i < cached->count; i++) {
		TRY(push_piece(e, word, cached->ids[i], begin, cached->ends[i]));
		begin = cached->ends[i];
	}
	return OK;
}

static inline enum status encode_short_word(void *context, uint64_t low, uint64_t high, size_t size, uint32_t begin)
{
	uint64_t bytes[2] = {htole64(low), htole64(high)};
	struct word word = {.text = (const char *)bytes, .size = size, .begin = begin};

	word.end = begin + (uint32_t)size;
	return encode_cached(context, &word, low, high);
}

static enum status encode_word(void *context, const struct word *word)
{
	uint64_t low, high;

	if (word->size > 16)
		return split_word(context, word, NULL);
	load_16(word->text, word->size, 0, &low, &high);
	return encode_cached(context, word, low, high);
}

static inline enum status encode_character(void *context, uint32_t code_point, const char *text, size_t size, uint32_t begin)
{
	struct encoding *e = context;
	int32_t id = e->tokenizer->character_ids[code_point] - 1;

	(void)text;
	if (id < 0) {
		id = e->tokenizer->vocab->unk;
		e->tokens->unknown++;
	}
	return push(e->tokens, id, begin, begin + (uint32_t)size);
}

static enum status encode_special(void *context, int which, uint32_t begin, uint32_t end)
{
	struct encoding *e = context;
	const struct vocab *v = e->tokenizer->vocab;
	const int32_t ids[] = {v->pad, v->unk, v->cls, v->sep, v->mask};

	return push(e->tokens, ids[which], begin, end);
}

/* Makes sure that the cache holds only words of this tokenizer. */
static enum status take_cache(struct scratch *scratch, const struct tokenizer *tokenizer)
{
	if (scratch->cache_owner == tokenizer->serial)
		return OK;
	free(scratch->cache);
	scratch->cache = NULL;
	scratch->cache_owner = 0;
	TRY(memory_new(&scratch->cache, 1 << TOKENIZER_CACHE_BITS, sizeof *scratch->cache, "tokenizer cache"));
	scratch->cache_owner = tokenizer->serial;
	return OK;
}

/* Encodes text[begin, end), in which added tokens are not looked for. */
static enum status encode_words(struct encoding *e, const char *text, size_t begin, size_t end)
{
	static const struct visitor visitor = {encode_short_word, encode_word, encode_character, encode_special};
	struct walk walk = {
		.normalizer = &e->tokenizer->normalizer,
		.context = e,
		.buffer = &e->scratch->word,
		.text = text,
		.size = end,
		.at = begin,
		.run_begin = begin,
	};
	enum status status = walk_text(&visitor, &walk);

	e->tokens->invalid_bytes += walk.invalid_bytes;
	return status;
}

/* Other than BERT's words, those of a chain may contain NULs. */
static enum status encode_chain_word(void *context, const struct word *word)
{
	return memchr(word->text, '\0', word->size) ? split_word(context, word, NULL) : encode_word(context, word);
}

/* Appends an added token, with the white space that it takes. */
static enum status push_added(struct encoding *e, int32_t id, uint32_t begin, uint32_t end)
{
	if (e->tokenizer->chain && e->tokenizer->chain->trimming.is_on) {
		uint32_t leading = 0, trailing = 0, c;

		for (size_t at = begin; at < end; leading++) {
			at += utf8_decode(e->text + at, end - at, &c);
			if (!unicode_is_space(c))
				break;
		}
		for (size_t at = end; at > begin; trailing++) {
			at -= utf8_decode_last(e->text + begin, at - begin, &c);
			if (!unicode_is_space(c))
				break;
		}
		trim(e, leading, trailing, &begin, &end);
	}
	return push(e->tokens, id, begin, end);
}

static enum status encode_chain_token(void *context, int32_t id, const struct word *word)
{
	return push_added(context, id, word->begin, word->end);
}

/* Encodes text[begin, end) in a chain; the same tokens are looked for. */
static enum status encode_chain(struct encoding *e, const char *text, size_t begin, size_t end)
{
	const struct added_patterns *patterns = &e->tokenizer->added.normalized;
	struct chain_run *run = &e->scratch->run;

	run->chain = e->tokenizer->chain;
	run->word = encode_chain_word;
	run->token = encode_chain_token;
	run->added = patterns->count > 0 ? patterns : NULL;
	run->context = e;
	run->invalid_bytes = 0;
	TRY(chain_run_text(run, text, begin, end));
	e->tokens->invalid_bytes += run->invalid_bytes;
	return OK;
}

/* Whether a match consists of whole characters of the source: parts of a decomposed one may match by themselves. */
static bool is_whole(const struct normalized_text *normalized, const struct added_match *match)
{
	int64_t first = (int64_t)match->begin, last = (int64_t)match->end - 1;

	return (first == 0 || normalized->ends[first - 1] <= normalized->begins[first]) &&
	       (last + 1 == normalized->size || normalized->ends[last] <= normalized->begins[last + 1]);
}

/* Encodes text[begin, end), in which only those added tokens are left that are looked for in normalized text. */
static enum status encode_normalized(struct encoding *e, const char *text, size_t begin, size_t end)
{
	const struct added_patterns *patterns = &e->tokenizer->added.normalized;
	struct normalized_text *normalized = &e->scratch->normalized;
	struct added_match match;

	if (e->tokenizer->chain)
		return encode_chain(e, text, begin, end);
	if (patterns->count == 0 || begin == end)
		return encode_words(e, text, begin, end);
	TRY(normalized_text_make(normalized, &e->tokenizer->normalizer, text, begin, end));
	for (size_t at = 0, from = 0;
	     added_tokens_next(patterns, normalized->text, (size_t)normalized->size, &at, from, &match);) {
		if (!is_whole(normalized, &match))
			continue;
		size_t source = normalized->begins[match.begin], source_end = normalized->ends[match.end - 1];
		TRY(encode_words(e, text, begin, source));
		TRY(push(e->tokens, match.id, (uint32_t)source, (uint32_t)source_end));
		begin = source_end;
		from = match.end;
	}
	return encode_words(e, text, begin, end);
}

/* Encodes a text in which added tokens may occur. */
static enum status encode_with_added(struct encoding *e, const char *text, size_t size)
{
	struct added_match match;
	size_t done = 0;

	if (size > UINT32_MAX)
		return text_too_long(size);
	for (size_t at = 0; added_tokens_next(&e->tokenizer->added.plain, text, size, &at, done, &match); done = match.end) {
		TRY(encode_normalized(e, text, done, match.begin));
		TRY(push_added(e, match.id, (uint32_t)match.begin, (uint32_t)match.end));
	}
	return encode_normalized(e, text, done, size);
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size, struct tokens *out)
{
	struct encoding encoding = {.tokenizer = tokenizer, .tokens = out, .text = text, .first = out->count};

	TRY(scratch_of(out, &encoding.scratch));
	TRY(take_cache(encoding.scratch, tokenizer));
	if (tokenizer->chain || tokenizer->added.plain.count + tokenizer->added.normalized.count > 0)
		return encode_with_added(&encoding, text, size);
	return encode_words(&encoding, text, 0, size);
}

struct word_collection {
	enum status (*visit)(void *context, const char *word, size_t bytes);
	void *context;
};

static enum status collect_short_word(void *context, uint64_t low, uint64_t high, size_t size, uint32_t begin)
{
	const struct word_collection *collection = context;
	uint64_t bytes[2] = {htole64(low), htole64(high)};

	(void)begin;
	return collection->visit(collection->context, (const char *)bytes, size);
}

static enum status collect_word(void *context, const struct word *word)
{
	const struct word_collection *collection = context;

	return collection->visit(collection->context, word->text, word->size);
}

static enum status collect_character(void *context, uint32_t code_point, const char *text, size_t size, uint32_t begin)
{
	const struct word_collection *collection = context;

	(void)code_point;
	(void)begin;
	return collection->visit(collection->context, text, size);
}

/* A special token is not a word. */
static enum status collect_special(void *context, int which, uint32_t begin, uint32_t end)
{
	(void)context;
	(void)which;
	(void)begin;
	(void)end;
	return OK;
}

static bool same_settings(const struct tokenizer_settings *a, const struct tokenizer_settings *b)
{
	return a->lowercase == b->lowercase && a->strip_accents == b->strip_accents && a->split_chinese == b->split_chinese &&
	       a->special_tokens == b->special_tokens && a->compat == b->compat &&
	       a->max_word_characters == b->max_word_characters;
}

enum status tokenizer_words(const struct tokenizer_settings *settings, const char *text, size_t size, struct tokens *scratch,
			    enum status (*visit)(void *context, const char *word, size_t bytes), void *context)
{
	static const struct visitor visitor = {collect_short_word, collect_word, collect_character, collect_special};
	struct word_collection collection = {visit, context};
	struct scratch *s;
	struct walk walk;
	enum status status;

	TRY(scratch_of(scratch, &s));
	if (!s->has_normalizer || !same_settings(&s->normalizer.settings, settings)) {
		normalizer_release(&s->normalizer);
		s->has_normalizer = false;
		TRY(normalizer_init(&s->normalizer, settings));
		s->has_normalizer = true;
	}
	walk = (struct walk){
		.normalizer = &s->normalizer, .context = &collection, .buffer = &s->word, .text = text, .size = size};
	status = walk_text(&visitor, &walk);
	scratch->invalid_bytes += walk.invalid_bytes;
	return status;
}
