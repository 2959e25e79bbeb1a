#include "text/tokenizer.h"

#include <endian.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer_normalize.h"
#include "text/tokenizer_wordpiece.h"

/* The pieces of a word of at most 16 bytes and 3 pieces. Natural text repeats its words: most are found here.
 */
#define CACHE_BITS 15
#define CACHE_PIECES 3
struct cached_word {
	uint64_t key[2]; /* the word's bytes, zeros behind (a word holds no NUL); all zero: unused */
	int32_t ids[CACHE_PIECES];
	uint8_t ends[CACHE_PIECES]; /* of each piece, in bytes of the word */
	uint8_t count;
};

struct tokenizer {
	const struct vocab *vocab;
	struct tokenizer_settings settings;
	struct normalizer normalizer;
	struct wordpiece wordpiece;
	int32_t *character_ids; /* [UNICODE_LIMIT] id + 1 of the entry that is this one character, 0 = none */
	uint64_t serial; /* differs between any two tokenizers of a process: whose words a cache holds */
};

/* Memory of one caller, in tokens->scratch. */
struct scratch {
	char *text; /* the word under construction, and for each of its bytes where the source has it */
	uint32_t *begins, *ends;
	int64_t text_capacity, begins_capacity, ends_capacity;
	struct stretch stretch;
	struct cached_word *cache;    /* [1 << CACHE_BITS] */
	uint64_t cache_owner;         /* serial of the tokenizer that filled it */
	struct normalizer normalizer; /* of tokenizer_words */
	bool has_normalizer;
};

/* A normalised word, and where its bytes come from. */
struct word {
	const char *text;
	size_t size;
	uint32_t begin, end;           /* in the source */
	const uint32_t *begins, *ends; /* of each byte; NULL where byte i is source byte begin + i */
};

static const char *const special_texts[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

/* What a walk over a text meets, in order. One walker for encoding, one for collecting words; both are known
 * when the walk is compiled, so the calls are inlined. */
struct visitor {
	/* A word of 1 to 15 ASCII letters and digits, lower-cased if asked, as in struct cached_word. */
	enum status (*short_word)(void *context, uint64_t low, uint64_t high, size_t size, uint32_t begin);
	enum status (*word)(void *context, const struct word *word);
	/* A word of one character that normalisation leaves alone. */
	enum status (*character)(void *context, uint32_t code_point, const char *text, size_t size,
	                         uint32_t begin);
	enum status (*special)(void *context, int which, uint32_t begin, uint32_t end);
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

enum status tokenizer_open(struct tokenizer **out, const struct vocab *vocab,
                           const struct tokenizer_settings *settings)
{
	static atomic_uint_least64_t last_serial;
	struct tokenizer *t = NULL;
	enum status status;

	*out = NULL;
	TRY_GOTO(memory_new(&t, 1, sizeof(*t), "tokenizer"), fail);
	t->vocab = vocab;
	t->settings = *settings;
	t->serial = atomic_fetch_add(&last_serial, 1) + 1;
	TRY_GOTO(normalizer_init(&t->normalizer, settings), fail);
	TRY_GOTO(wordpiece_init(&t->wordpiece, vocab), fail);
	TRY_GOTO(memory_new(&t->character_ids, UNICODE_LIMIT, sizeof(*t->character_ids), "tokenizer"), fail);
	for (int32_t id = 0; id < vocab->count; id++) {
		uint32_t code_point;

		if (vocab->size[id] > 0 &&
		    utf8_decode(vocab->text[id], vocab->size[id], &code_point) == vocab->size[id])
			t->character_ids[code_point] = id + 1;
	}
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
	wordpiece_release(&tokenizer->wordpiece);
	free(tokenizer->character_ids);
	free(tokenizer);
}

const struct vocab *tokenizer_vocab(const struct tokenizer *tokenizer)
{
	return tokenizer->vocab;
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
		free(scratch->text);
		free(scratch->begins);
		free(scratch->ends);
		stretch_release(&scratch->stretch);
		free(scratch->cache);
		normalizer_release(&scratch->normalizer);
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

/* The 16 bytes from text[at] as little-endian numbers; zeros behind the end of the text. */
static inline void load_16(const char *text, size_t size, size_t at, uint64_t *low, uint64_t *high)
{
	size_t rest = size - at;

	if (rest >= 16) {
		memcpy(low, text + at, 8);
		memcpy(high, text + at + 8, 8);
		*low = le64toh(*low);
		*high = le64toh(*high);
	} else if (size >= 16) {
		/* The last 16 bytes, shifted, so that nothing behind the end is touched. */
		unsigned shift = 8 * (16 - (unsigned)rest);
		uint64_t a, b;

		memcpy(&a, text + size - 16, 8);
		memcpy(&b, text + size - 8, 8);
		a = le64toh(a);
		b = le64toh(b);
		*low = shift >= 64 ? b >> (shift - 64) : a >> shift | b << (64 - shift);
		*high = shift >= 64 ? 0 : b >> shift;
	} else {
		*low = *high = 0;
		for (size_t i = 0; i < rest && i < 8; i++)
			*low |= (uint64_t)(unsigned char)text[at + i] << 8 * i;
		for (size_t i = 8; i < rest; i++)
			*high |= (uint64_t)(unsigned char)text[at + i] << 8 * (i - 8);
	}
}

/* 0x80 in each byte of x that is no ASCII letter or digit. All bytes at once: adding 0x80 - c to a byte below
 * 0x80 sets its high bit exactly if it is at least c, and never carries into the next. */
static inline uint64_t other_bytes(uint64_t x)
{
	const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;
	uint64_t low7 = x & ~high, folded = low7 | 0x20 * ones;
	uint64_t letter = (folded + (0x80 - 'a') * ones) & ~(folded + (0x80 - 'z' - 1) * ones);
	uint64_t digit = (low7 + (0x80 - '0') * ones) & ~(low7 + (0x80 - '9' - 1) * ones);

	return (~(letter | digit) | x) & high;
}

/* Index of the special token written at text[at], or -1. */
static int find_special(const struct normalizer *n, const char *text, size_t size, size_t at)
{
	if (!n->settings.special_tokens || text[at] != '[')
		return -1;
	for (int i = 0; i < 5; i++) {
		size_t length = strlen(special_texts[i]);

		if (size - at >= length && memcmp(text + at, special_texts[i], length) == 0)
			return i;
	}
	return -1;
}

/* Bytes and kind of the character at text[at]; invalid bytes are dropped. */
static inline size_t look_up(const struct normalizer *n, const char *text, size_t size, size_t at,
                             uint32_t *out_entry, uint32_t *out_code_point)
{
	size_t length = utf8_decode(text + at, size - at, out_code_point);

	*out_entry = *out_code_point == UTF8_INVALID ? KIND_DROP : n->entries[*out_code_point];
	return length;
}

static inline bool ends_word(enum code_point_kind kind)
{
	return kind == KIND_SPACE || kind == KIND_PUNCTUATION || kind == KIND_IDEOGRAPH;
}

static inline enum status append_to_word(struct scratch *s, int64_t *size, const char *text, size_t count,
                                         uint32_t begin, uint32_t end)
{
	int64_t needed = *size + (int64_t)count;

	if (needed > s->text_capacity || needed > s->begins_capacity || needed > s->ends_capacity) {
		TRY(memory_grow(&s->text, &s->text_capacity, needed, 1, "word"));
		TRY(memory_grow(&s->begins, &s->begins_capacity, needed, sizeof(*s->begins), "word"));
		TRY(memory_grow(&s->ends, &s->ends_capacity, needed, sizeof(*s->ends), "word"));
	}
	for (size_t i = 0; i < count; i++) {
		s->text[*size] = text[i];
		s->begins[*size] = begin;
		s->ends[*size] = end;
		(*size)++;
	}
	return OK;
}

static inline enum status finish_word(const struct visitor *visitor, void *context, struct scratch *s,
                                      int64_t *size)
{
	struct word word = {.text = s->text, .size = (size_t)*size, .begins = s->begins, .ends = s->ends};

	if (*size == 0)
		return OK;
	word.begin = s->begins[0];
	word.end = s->ends[*size - 1];
	*size = 0;
	return visitor->word(context, &word);
}

/* The long way for text[from, *at), where *at becomes the next space, ideograph or special token. */
static inline enum status walk_stretch(const struct normalizer *n, const struct visitor *visitor,
                                       void *context, struct tokens *tokens, const char *text, size_t size,
                                       size_t context_begin, size_t from, size_t *at)
{
	struct scratch *s = tokens->scratch;
	int64_t word_size = 0;
	size_t end = from;

	while (end < size) {
		uint32_t entry, code_point;
		size_t length = look_up(n, text, size, end, &entry, &code_point);

		if (entry_kind(entry) == KIND_SPACE || entry_kind(entry) == KIND_IDEOGRAPH ||
		    find_special(n, text, size, end) >= 0)
			break;
		end += length;
	}
	*at = end;
	TRY(normalize_stretch(n, text, context_begin, from, end, &s->stretch));
	tokens->invalid_bytes += s->stretch.invalid_bytes;
	for (int64_t i = 0; i < s->stretch.count; i++) {
		const struct character *character = &s->stretch.characters[i];
		bool is_punctuation = unicode_flags(n->column, character->code_point) & UNICODE_PUNCTUATION;
		char bytes[4];
		size_t length = utf8_encode(character->code_point, bytes);

		if (is_punctuation)
			TRY(finish_word(visitor, context, s, &word_size));
		TRY(append_to_word(s, &word_size, bytes, length, character->begin, character->end));
		if (is_punctuation)
			TRY(finish_word(visitor, context, s, &word_size));
	}
	return finish_word(visitor, context, s, &word_size);
}

/* A word of any characters from text[*at] on, at least one; *at becomes its end. */
static inline enum status walk_word(const struct normalizer *n, const struct visitor *visitor, void *context,
                                    struct tokens *tokens, const char *text, size_t size,
                                    size_t context_begin, size_t *at)
{
	struct scratch *s = tokens->scratch;
	int64_t word_size = 0, invalid = 0;
	size_t end = *at;

	while (end < size) {
		uint32_t entry, code_point, begin = (uint32_t)end;
		size_t length = look_up(n, text, size, end, &entry, &code_point);
		enum code_point_kind kind = entry_kind(entry);

		if (ends_word(kind))
			break;
		if (kind == KIND_CONTEXT)
			return walk_stretch(n, visitor, context, tokens, text, size, context_begin, *at, at);
		end += length;
		if (kind == KIND_KEEP)
			TRY(append_to_word(s, &word_size, text + begin, length, begin, (uint32_t)end));
		else if (kind == KIND_REPLACE)
			TRY(append_to_word(s, &word_size, entry_text(n, entry), entry_size(entry), begin,
			                   (uint32_t)end));
		else if (code_point == UTF8_INVALID)
			invalid += (int64_t)length;
	}
	*at = end;
	tokens->invalid_bytes += invalid;
	return finish_word(visitor, context, s, &word_size);
}

/* Is the character at text[at] the end of the word before it? */
static inline bool is_boundary(const struct normalizer *n, const char *text, size_t size, size_t at)
{
	uint32_t entry, code_point;

	if (at == size)
		return true;
	look_up(n, text, size, at, &entry, &code_point);
	return ends_word(entry_kind(entry));
}

/* Calls the visitor for every word of a text. */
static inline __attribute__((always_inline)) enum status walk(const struct normalizer *n,
                                                              const struct visitor *visitor, void *context,
                                                              struct tokens *tokens, const char *text,
                                                              size_t size)
{
	const uint64_t fold = n->settings.lowercase ? 0x2020202020202020u : 0;
	size_t at = 0, context_begin = 0; /* where the present run without spaces began */

	if (size > UINT32_MAX)
		return error_set(ERR_DATA, "a text of %zu bytes is too long to be tokenised in one piece",
		                 size);
	while (at < size) {
		uint32_t entry, code_point;
		uint64_t low, high, others;
		size_t length;
		enum code_point_kind kind;

		load_16(text, size, at, &low, &high);
		others = other_bytes(low);
		if (others & 0x80)
			goto other_character;
		/* An ASCII word: cut the 16 bytes behind it and lower its case (0x20 is set in digits
		 * already). */
		if (others) {
			unsigned bits = (unsigned)__builtin_ctzll(others) - 7;

			length = bits / 8;
			low = (low | fold) & ~(~(uint64_t)0 << bits);
			high = 0;
		} else {
			others = other_bytes(high);
			length = 16;
			if (others) {
				unsigned bits = (unsigned)__builtin_ctzll(others) - 7;

				length = 8 + bits / 8;
				low |= fold;
				high = (high | fold) & ~(~(uint64_t)0 << bits);
			}
		}
		if (length < 16 && is_boundary(n, text, size, at + length)) {
			TRY(visitor->short_word(context, low, high, length, (uint32_t)at));
			at += length;
		} else {
			TRY(walk_word(n, visitor, context, tokens, text, size, context_begin, &at));
		}
		continue;

	other_character:
		length = look_up(n, text, size, at, &entry, &code_point);
		kind = entry_kind(entry);
		if (kind == KIND_SPACE) {
			at += length;
			context_begin = at;
		} else if (kind == KIND_PUNCTUATION || kind == KIND_IDEOGRAPH) {
			int special = find_special(n, text, size, at);

			if (special >= 0) {
				size_t end = at + strlen(special_texts[special]);

				TRY(visitor->special(context, special, (uint32_t)at, (uint32_t)end));
				at = context_begin = end;
				continue;
			}
			if (entry_size(entry) == 0) {
				TRY(visitor->character(context, code_point, text + at, length, (uint32_t)at));
			} else {
				int64_t word_size = 0;

				TRY(append_to_word(tokens->scratch, &word_size, entry_text(n, entry),
				                   entry_size(entry), (uint32_t)at, (uint32_t)(at + length)));
				TRY(finish_word(visitor, context, tokens->scratch, &word_size));
			}
			at += length;
			if (kind == KIND_IDEOGRAPH)
				context_begin = at;
		} else {
			TRY(walk_word(n, visitor, context, tokens, text, size, context_begin, &at));
		}
	}
	return OK;
}

struct encoding {
	const struct tokenizer *tokenizer;
	struct scratch *scratch;
	struct tokens *tokens;
};

static enum status tokens_grow(struct tokens *tokens)
{
	int64_t ids = tokens->capacity, begins = tokens->capacity, ends = tokens->capacity;
	int64_t needed = tokens->capacity + 1;

	TRY(memory_grow(&tokens->ids, &ids, needed, sizeof(*tokens->ids), "tokens"));
	TRY(memory_grow(&tokens->begin, &begins, needed, sizeof(*tokens->begin), "tokens"));
	TRY(memory_grow(&tokens->end, &ends, needed, sizeof(*tokens->end), "tokens"));
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

/* Where the piece of bytes [begin, end) of a word lies in the source. */
static inline enum status push_piece(struct tokens *tokens, const struct word *word, int32_t id, size_t begin,
                                     size_t end)
{
	if (word->begins)
		return push(tokens, id, word->begins[begin], word->ends[end - 1]);
	return push(tokens, id, word->begin + (uint32_t)begin, word->begin + (uint32_t)end);
}

/* Greedy longest match; the whole word is [UNK] if some part matches nothing, or if it is too long. If the
 * result fits, it is also put into `cached`. */
static enum status split_word(struct encoding *e, const struct word *word, struct cached_word *cached)
{
	const struct tokenizer *t = e->tokenizer;
	size_t limit = (size_t)t->settings.max_word_characters, done = 0;
	int64_t first = e->tokens->count;
	int pieces = 0;

	if (word->size <= limit || utf8_length(word->text, word->size) <= limit) {
		while (done < word->size) {
			size_t length;
			int32_t id = wordpiece_match(&t->wordpiece, done > 0, word->text + done,
			                             word->size - done, &length);

			if (id < 0)
				break;
			TRY(push_piece(e->tokens, word, id, done, done + length));
			done += length;
			if (cached && pieces < CACHE_PIECES) {
				cached->ids[pieces] = id;
				cached->ends[pieces] = (uint8_t)done;
			}
			pieces++;
		}
	}
	if (done < word->size) {
		e->tokens->count = first;
		e->tokens->unknown++;
		TRY(push(e->tokens, t->vocab->unk, word->begin, word->end));
		if (cached) {
			cached->ids[0] = t->vocab->unk;
			cached->ends[0] = (uint8_t)word->size;
		}
		pieces = 1;
	}
	if (cached)
		cached->count = pieces <= CACHE_PIECES ? (uint8_t)pieces : 0;
	return OK;
}

/* A word of at most 16 bytes, which are also given as numbers. */
static inline enum status encode_cached(struct encoding *e, const struct word *word, uint64_t low,
                                        uint64_t high)
{
	uint64_t hash = (low ^ (high * 0x9E3779B97F4A7C15u)) * 0xD6E8FEB86659FD93u;
	struct cached_word *cached = &e->scratch->cache[hash >> (64 - CACHE_BITS)];

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
		TRY(push_piece(e->tokens, word, cached->ids[i], begin, cached->ends[i]));
		begin = cached->ends[i];
	}
	return OK;
}

static inline enum status encode_short_word(void *context, uint64_t low, uint64_t high, size_t size,
                                            uint32_t begin)
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

static inline enum status encode_character(void *context, uint32_t code_point, const char *text, size_t size,
                                           uint32_t begin)
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

enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                             struct tokens *out)
{
	static const struct visitor visitor = {encode_short_word, encode_word, encode_character,
	                                       encode_special};
	struct encoding encoding = {.tokenizer = tokenizer, .tokens = out};

	TRY(scratch_of(out, &encoding.scratch));
	if (encoding.scratch->cache_owner != tokenizer->serial) {
		free(encoding.scratch->cache);
		encoding.scratch->cache = NULL;
		encoding.scratch->cache_owner = 0;
		TRY(memory_new(&encoding.scratch->cache, 1 << CACHE_BITS, sizeof(struct cached_word),
		               "tokenizer cache"));
		encoding.scratch->cache_owner = tokenizer->serial;
	}
	return walk(&tokenizer->normalizer, &visitor, &encoding, out, text, size);
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

static enum status collect_character(void *context, uint32_t code_point, const char *text, size_t size,
                                     uint32_t begin)
{
	const struct word_collection *collection = context;

	(void)code_point;
	(void)begin;
	return collection->visit(collection->context, text, size);
}

/* A control token is no word. */
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
	return a->lowercase == b->lowercase && a->strip_accents == b->strip_accents &&
	       a->split_chinese == b->split_chinese && a->special_tokens == b->special_tokens &&
	       a->compat == b->compat && a->max_word_characters == b->max_word_characters;
}

enum status tokenizer_words(const struct tokenizer_settings *settings, const char *text, size_t size,
                            struct tokens *scratch,
                            enum status (*visit)(void *context, const char *word, size_t bytes),
                            void *context)
{
	static const struct visitor visitor = {collect_short_word, collect_word, collect_character,
	                                       collect_special};
	struct word_collection collection = {visit, context};
	struct scratch *s;

	TRY(scratch_of(scratch, &s));
	if (!s->has_normalizer || !same_settings(&s->normalizer.settings, settings)) {
		normalizer_release(&s->normalizer);
		s->has_normalizer = false;
		TRY(normalizer_init(&s->normalizer, settings));
		s->has_normalizer = true;
	}
	return walk(&s->normalizer, &visitor, &collection, scratch, text, size);
}
