/* The tokenizer against a simple one: the steps of the original programs one after another, each over all characters, as
 * docs/tokenizer.md lists them. Both use the same properties of single code points (text/unicode.h). The first byte
 * chooses the mode, as in tokenizer.c. */
#include "base/buffer.h"
#include "base/memory.h"
#include "fuzz.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

FUZZ_SEEDS(FUZZ_SEED("\0The cats sat, unaffordably: [MASK] [CLS]x aaaaaaaaaaaaaaaaaaaaaaaaaaaa."),
	   FUZZ_SEED("\1\xc3\x9c"
		     "berraschung \xce\xa3\xce\x91\xce\xa3 \xc4\xb0 \xef\xac\x81 e\xcc\x81\xcc\xa7"),
	   FUZZ_SEED("\4\xce\xa3\xce\x91\xce\xa3 \xce\x91\xce\xa3. \xce\x91'\xce\xa3\xcc\x81 \xce\xa3\xce\xb1"),
	   FUZZ_SEED("\2\xe4\xbb\x96\xe6\x9d\xa5\xe4\xba\x86\xf0\xab\xa0\xa0\xef\xbc\x8c\xe6\x88\x91\xe8\xb5\xb0\xe3\x80\x82"),
	   FUZZ_SEED("\7\xff\xfe\x80 \xe4\xb8 a\0b\xc2\xad\xe2\x80\x8b"), FUZZ_SEED("\11[MASK][mask] [[SEP]]\t[PAD\xff]"),
	   FUZZ_SEED("\20\xea\xb0\x81\xe1\x84\x80\xe1\x85\xa1 \xe2\x89\xa0 \xcd\xbe \xe1\xbf\xaf a\xcc\xb8\xcc\x81 \xe0\xbe\xb7"))

static const char *const entries[] = {"[PAD]",
				      "[UNK]",
				      "[CLS]",
				      "[SEP]",
				      "[MASK]",
				      "the",
				      "cat",
				      "##s",
				      "un",
				      "##aff",
				      "##ord",
				      "##a",
				      "a",
				      "e",
				      "##\xcc\x81",
				      "\xe4\xbb\x96",
				      "\xe4\xba\x86",
				      ",",
				      ".",
				      "[",
				      "]",
				      "\xcf\x83",
				      "##\xcf\x83",
				      "##\xcf\x82",
				      "i",
				      "##b",
				      "b",
				      "##e",
				      "s",
				      "A",
				      "\xce\xb1",
				      "##\xce\xb1",
				      "mask",
				      "\xcf\x82",
				      "\xe1\x84\x80",
				      "##\xe1\x85\xa1",
				      ";",
				      "`"};
static struct vocab vocab;

/* Code points, grown as needed. */
struct row {
	uint32_t *points;
	int64_t count, capacity;
};

static void put(struct row *row, uint32_t point)
{
	BUG_IF(memory_grow(&row->points, &row->capacity, row->count + 1, sizeof *row->points, "row") != OK);
	row->points[row->count++] = point;
}

static bool has(enum unicode_column column, uint32_t point, int flag)
{
	return unicode_flags(column, point) & flag;
}

static bool is_ideograph(enum unicode_column column, uint32_t c)
{
	uint32_t extension = column == UNICODE_GOOGLE ? 0x2B820 : 0x2B920;
	return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
	       (c >= 0x2A700 && c <= 0x2B81F) || (c >= extension && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
	       (c >= 0x2F800 && c <= 0x2FA1F);
}

/* Cleaning: removes invalid characters, turns white space into spaces, and puts spaces around ideographs. */
static void clean(const struct tokenizer_settings *settings, enum unicode_column column, const char *text, size_t size,
		  struct row *out)
{
	out->count = 0;
	for (size_t at = 0; at < size;) {
		uint32_t c;
		at += utf8_decode(text + at, size - at, &c);
		if (c == UTF8_INVALID || has(column, c, UNICODE_DROPPED))
			continue;
		bool apart = settings->split_chinese && is_ideograph(column, c);
		if (apart)
			put(out, ' ');
		put(out, has(column, c, UNICODE_SPACE) ? ' ' : c);
		if (apart)
			put(out, ' ');
	}
}

/* A capital sigma at the end of a word: preceded by a cased letter, and followed by none before the next space. */
static bool is_final_sigma(enum unicode_column column, const struct row *row, int64_t at)
{
	int64_t i = at - 1;
	while (i >= 0 && row->points[i] != ' ' && has(column, row->points[i], UNICODE_IGNORABLE))
		i--;
	if (i < 0 || row->points[i] == ' ' || !has(column, row->points[i], UNICODE_CASED))
		return false;
	for (i = at + 1; i < row->count && row->points[i] != ' ' && has(column, row->points[i], UNICODE_IGNORABLE);)
		i++;
	return i == row->count || row->points[i] == ' ' || !has(column, row->points[i], UNICODE_CASED);
}

static void lower(enum unicode_column column, const struct row *in, struct row *out)
{
	out->count = 0;
	for (int64_t i = 0; i < in->count; i++) {
		uint32_t c = in->points[i];
		if (c == 0x130) {
			put(out, 'i');
			put(out, 0x307);
		} else if (c == 0x3A3 && column == UNICODE_GOOGLE) {
			put(out, is_final_sigma(column, in, i) ? 0x3C2 : 0x3C3);
		} else {
			put(out, unicode_lowercase(column, c));
		}
	}
}

/* Canonical decomposition, marks ordered by their combining classes, then nonspacing marks removed. */
static void strip(enum unicode_column column, const struct row *in, struct row *out)
{
	out->count = 0;
	for (int64_t i = 0; i < in->count; i++) {
		uint32_t parts[4];
		int count = unicode_decompose(column, in->points[i], parts);
		for (int k = 0; k < count; k++)
			put(out, parts[k]);
	}
	for (int64_t i = 1; i < out->count; i++) {
		uint32_t c = out->points[i];
		uint8_t class = unicode_combining_class(column, c);
		int64_t to = i;
		while (class > 0 && to > 0 && unicode_combining_class(column, out->points[to - 1]) > class) {
			out->points[to] = out->points[to - 1];
			to--;
		}
		out->points[to] = c;
	}
	int64_t kept = 0;
	for (int64_t i = 0; i < out->count; i++)
		if (!has(column, out->points[i], UNICODE_MARK))
			out->points[kept++] = out->points[i];
	out->count = kept;
}

/* The longest entry at each position; a word that is not composed of entries is unknown. */
static void pieces(const struct row *row, int64_t begin, int64_t end, int most, struct row *ids)
{
	int64_t first = ids->count, at = begin;
	while (at < end && end - begin <= most) {
		char text[64] = "##";
		size_t size = 2, skipped = at == begin ? 2 : 0;
		int32_t found = -1;
		int64_t next = at;
		for (int64_t i = at; i < end && size < sizeof text - 4; i++) {
			size += utf8_encode(row->points[i], text + size);
			int32_t id = vocab_find(&vocab, text + skipped, size - skipped);
			if (id >= 0) {
				found = id;
				next = i + 1;
			}
		}
		if (found < 0)
			break;
		put(ids, (uint32_t)found);
		at = next;
	}
	if (at < end) {
		ids->count = first;
		put(ids, (uint32_t)vocab.unk);
	}
}

static void encode_part(const struct tokenizer_settings *settings, const char *text, size_t size, struct row *ids)
{
	static struct row rows[2];
	enum unicode_column column = settings->compat == COMPAT_GOOGLE ? UNICODE_GOOGLE : UNICODE_HUGGINGFACE;
	struct row *row = &rows[0], *other = &rows[1], *swap;
	bool google = settings->compat == COMPAT_GOOGLE;
	clean(settings, column, text, size, row);
	for (int step = 0; step < 2; step++) {
		bool lowers = google == (step == 0);
		if (!(lowers ? settings->lowercase : settings->strip_accents))
			continue;
		(lowers ? lower : strip)(column, row, other);
		swap = row, row = other, other = swap;
	}
	for (int64_t begin = 0, end; begin < row->count; begin = end) {
		end = begin + 1;
		if (has(column, row->points[begin], UNICODE_SPACE))
			continue;
		if (!has(column, row->points[begin], UNICODE_PUNCTUATION))
			while (end < row->count && !has(column, row->points[end], UNICODE_PUNCTUATION | UNICODE_SPACE))
				end++;
		pieces(row, begin, end, settings->max_word_characters, ids);
	}
}

/* Special tokens written in the text are cut out first. */
static void encode(const struct tokenizer_settings *settings, const char *text, size_t size, struct row *ids)
{
	size_t begin = 0, at = 0;
	ids->count = 0;
	while (settings->special_tokens && at < size) {
		int32_t special = -1;
		for (int32_t id = 0; id < 5 && special < 0; id++)
			if (size - at >= vocab.size[id] && memcmp(text + at, vocab.text[id], vocab.size[id]) == 0)
				special = id;
		if (special < 0) {
			at++;
			continue;
		}
		encode_part(settings, text + begin, at - begin, ids);
		put(ids, (uint32_t)special);
		begin = at += vocab.size[special];
	}
	encode_part(settings, text + begin, size - begin, ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct tokenizer *modes[32];
	static struct tokens tokens[32];
	static struct row expected;
	if (count == 0)
		return 0;
	if (!vocab.count)
		BUG_IF(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries) != OK);
	unsigned mode = bytes[0] % 32;
	struct tokenizer_settings settings = tokenizer_defaults(mode & 1);
	settings.split_chinese = !(mode & 2);
	settings.compat = mode & 4 ? COMPAT_GOOGLE : COMPAT_HUGGINGFACE;
	settings.special_tokens = mode & 8;
	settings.strip_accents = settings.lowercase != !!(mode & 16);
	settings.max_word_characters = 20;
	if (!modes[mode])
		BUG_IF(tokenizer_open(&modes[mode], &vocab, &settings) != OK);
	char *text = fuzz_copy(bytes + 1, --count);
	struct tokens *out = &tokens[mode];
	tokens_clear(out);
	BUG_IF(tokenizer_encode(modes[mode], text, count, out) != OK);
	encode(&settings, text, count, &expected);
	BUG_IF(out->count != expected.count);
	for (int64_t i = 0; i < out->count; i++)
		BUG_IF(out->ids[i] != (int32_t)expected.points[i] || out->end[i] > count);
	free(text);
	return 0;
}
