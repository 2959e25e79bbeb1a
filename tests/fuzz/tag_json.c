/* Tagged words in JSON, and texts with spans. The first byte chooses what is asked of the file. Texts keep their words in
 * order, and the tags made of spans fit their scheme. */
#include "tasks/tagging/tag_json.h"
#include "fuzz.h"
#include "text/vocab.h"

FUZZ_SEEDS(
	FUZZ_SEED("\1{\"tokens\": [\"EU\", \"rejects\"], \"ner_tags\": [\"B-ORG\", \"O\"]}\n\n{\"words\": [\"x\"], \"tags\": "
		  "[0]}\n"),
	FUZZ_SEED("\3{\"text\": \"EU rejects it\", \"entities\": [{\"start\": 0, \"end\": 2, \"label\": \"ORG\"}]}\n"),
	FUZZ_SEED("\x0d[{\"text\": \"a \xE5\xBD\x93\xE5\xB8\x8C b\", \"label\": [[2, 3, \"X\"], [3, 4, \"Y\"]]}]"),
	FUZZ_SEED("\x23{\"text\": \"ab cd\", \"spans\": [{\"start\": 1, \"end\": 4, \"label\": \"L\"}], \"answer\": \"accept\"}\n"
		  "{\"text\": \"b\", \"answer\": \"reject\"}"))

static void check_words(const struct conll *conll, const char *const *texts, const struct tag_form form)
{
	for (int64_t s = 0; s < conll->sentence_count; s++) {
		BUG_IF(conll->sentence_starts[s + 1] < conll->sentence_starts[s]);
		const char *at = texts ? texts[s] : NULL;
		for (int64_t w = conll->sentence_starts[s]; w < conll->sentence_starts[s + 1]; w++) {
			struct tag tag;
			BUG_IF(!*conll_word(conll, w) || (conll->tag_column >= 0 && !*conll_tag(conll, w)));
			if (!texts)
				continue;
			at = strstr(at, conll_word(conll, w));
			BUG_IF(!at);
			at += strlen(conll_word(conll, w));
			BUG_IF(conll->tag_column >= 0 && !tag_parse(conll_tag(conll, w), form, &tag));
		}
	}
	BUG_IF(conll->sentence_starts[conll->sentence_count] != conll->token_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const char *const names[] = {"O", "B-ORG", "I-ORG"};
	if (count == 0)
		return 0;
	struct label_list labels = {names, bytes[0] & 16 ? 0 : 3};
	struct bad_records bad = {.skip = bytes[0] & 32};
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "\xE5\xBD\x93"};
	static struct vocab vocab;
	static struct tokenizer *tokenizer;
	if (!tokenizer) {
		struct tokenizer_settings defaults = tokenizer_defaults(false);
		BUG_IF(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries) != OK);
		BUG_IF(tokenizer_open(&tokenizer, &vocab, &defaults) != OK);
	}
	struct tag_cutter cutter = {.kind = bytes[0] >> 1 & 1 ? WORDS_CHARACTERS : WORDS_TOKENS, .tokenizer = tokenizer};
	struct tag_json_settings settings = {.needs_tags = bytes[0] & 1,
					     .labels = &labels,
					     .cutter = &cutter,
					     .form = {TAGS_IO + (bytes[0] >> 6) % 3, '-'},
					     .bad = &bad};
	if (bytes[0] & 8)
		settings.form.scheme = TAGS_BIOES;
	struct text_file file;
	if (text_file_read(&file, fuzz_file("words.json", bytes + 1, count - 1), TEXT_FILE_LIMIT) != OK)
		return 0;
	if (tag_json_recognize(buffer_string(&file.text), file.text.size)) {
		struct tag_json_facts facts;
		struct conll conll;
		if (tag_json_read(&conll, &file, &settings, &facts) == OK) {
			BUG_IF(facts.widened > facts.spans || facts.shared > facts.spans);
			check_words(&conll, facts.texts, settings.form);
			free(facts.texts);
			free(facts.ids);
		}
		conll_release(&conll);
	}
	tag_cutter_release(&cutter);
	text_file_release(&file);
	return 0;
}
