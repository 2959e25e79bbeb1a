/* The tokenizer in each of its modes: ids are in the vocabulary, offsets ascend and lie within the text. The first byte
 * chooses the mode; half of the modes have added tokens. */
#include "fuzz.h"
#include "text/tokenizer.h"

FUZZ_SEEDS(FUZZ_SEED("\0The cats sat, unaffordably: [MASK] [CLS]x."), FUZZ_SEED("\1Überraschung ΣΑΣ İ ﬁ e\xcc\x81\xcc\xa7"),
	   FUZZ_SEED("\2他来了\xf0\xab\xa0\xa0，我走。"), FUZZ_SEED("\7\xff\xfe\x80 \xe4\xb8 a\0b\xc2\xad\xe2\x80\x8b"),
	   FUZZ_SEED("\40the cat  a\xEA\xB0\x81 \xC3\x9C\xE4\xBB\x96 [E1] \xCE\xA3"), FUZZ_SEED("\50thecat \xCC\x81 a[MASK]"),
	   FUZZ_SEED("\14aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))

static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat",        "##s",
				      "un",    "##aff", "##ord", "##a",   "a",      "e",   "##\xcc\x81", "他",
				      "了",    ",",     ".",     "[",     "]",      "σ",   "##ς",        "i"};
/* Among them one that normalization removes, one that is white space, and one that is the beginning of another. */
static const struct {
	const char *text;
	struct added_token token;
} added[] = {
	{"cat", {.normalized = true}},
	{"the cat", {.normalized = true, .rstrip = true}},
	{"\xC3\x9C", {.normalized = true, .single_word = true}},
	{"\xE4\xBB\x96", {.normalized = true, .lstrip = true, .rstrip = true}},
	{"\xCC\x81", {.normalized = true}},
	{"[E1]", {.special = true, .rstrip = true}},
	{" a", {.lstrip = true}},
	{" \xE2\x80\x8B", {.normalized = true, .rstrip = true}}, /* a space, when it is normalized */
	{"\xCE\xA3", {.normalized = true}},
	{"\xEA\xB0\x81", {.normalized = true}}, /* three letters when it is decomposed, */
	{"\xEA\xB0\x80", {.normalized = true}}, /* of which these are the first two */
};
#define ADDED ((int32_t)(sizeof added / sizeof *added))
static struct vocab vocabs[2];

static void make_vocabs(void)
{
	int32_t count = sizeof entries / sizeof *entries;
	const char *all[sizeof entries / sizeof *entries + sizeof added / sizeof *added];
	memcpy(all, entries, sizeof entries);
	for (int32_t i = 0; i < ADDED; i++)
		all[count + i] = added[i].text;
	BUG_IF(vocab_from_entries(&vocabs[0], entries, count) != OK || vocab_from_entries(&vocabs[1], all, count + ADDED) != OK);
	vocabs[1].wordpiece_count = count;
	for (int32_t i = 0; i < ADDED; i++) {
		struct added_token token = added[i].token;
		token.id = count + i;
		BUG_IF(vocab_list_added(&vocabs[1], &token) != OK);
	}
}

static struct tokenizer *open_mode(unsigned mode)
{
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(mode & 1);
	settings.split_chinese = !(mode & 2);
	settings.compat = mode & 4 ? COMPAT_GOOGLE : COMPAT_HUGGINGFACE;
	settings.special_tokens = mode & 8;
	settings.strip_accents = settings.lowercase != !!(mode & 16);
	settings.max_word_characters = mode & 4 ? 200 : 100;
	BUG_IF(tokenizer_open(&tokenizer, &vocabs[mode / 32], &settings) != OK);
	return tokenizer;
}

static enum status take_word(void *context, const char *word, size_t bytes)
{
	(void)context;
	BUG_IF(bytes == 0 || memchr(word, ' ', bytes));
	return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct tokenizer *modes[64];
	static struct tokens tokens[64];

	if (count == 0)
		return 0;
	if (!vocabs[0].count)
		make_vocabs();
	unsigned mode = bytes[0] % 64;
	if (!modes[mode])
		modes[mode] = open_mode(mode);
	char *text = fuzz_copy(bytes + 1, --count);
	struct tokens *out = &tokens[mode];
	tokens_clear(out);
	BUG_IF(tokenizer_encode(modes[mode], text, count, out) != OK);
	for (int64_t i = 0; i < out->count; i++) {
		BUG_IF(out->ids[i] < 0 || out->ids[i] >= vocabs[mode / 32].count);
		BUG_IF(out->begin[i] > out->end[i] || out->end[i] > count);
	}
	if (mode % 3 == 0) /* as for learning a vocabulary */
		BUG_IF(tokenizer_words(tokenizer_settings_of(modes[mode]), text, count, out, take_word, NULL) != OK);
	free(text);
	return 0;
}
