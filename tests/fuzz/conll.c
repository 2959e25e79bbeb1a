/* Columns of tagged words. Words and tags are never empty, and sentences never have no words. */
#include "formats/conll.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\n# a comment\n# NN O\r\n"),
	   FUZZ_SEED("\xE5\xBD\x93\tO\n\xE5\xB8\x8C\tB-PER\n\n \tO\n\nx\n"), FUZZ_SEED("one\ntwo\n\n\nthree\n"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	const char *path = fuzz_file("words", bytes, count);
	char *text = fuzz_copy(bytes, count);
	conll_recognize(text, count);
	free(text);
	for (int column = -2; column <= 2; column++) {
		struct conll conll;
		struct text_file file;
		struct bad_records bad = {.skip = count % 2};
		struct conll_options options = {
			.word_column = column, .tag_column = -column, .needs_tags = count % 3 == 0, .bad = &bad};
		if (text_file_read(&file, path, TEXT_FILE_LIMIT) != OK || conll_parse(&conll, &file, &options) != OK)
			continue;
		struct buffer out = {0};
		conll_describe(&conll, &out);
		for (int64_t i = 0; i < conll.sentence_count; i++)
			BUG_IF(conll.sentence_starts[i + 1] <= conll.sentence_starts[i]);
		BUG_IF(conll.sentence_starts[conll.sentence_count] != conll.token_count);
		for (int64_t i = 0; i < conll.token_count; i++) {
			BUG_IF(!*conll_word(&conll, i) || (conll.tag_column >= 0 && !*conll_tag(&conll, i)));
			BUG_IF(i > 0 && conll.lines[i] <= conll.lines[i - 1]);
		}
		for (int64_t i = 0; i < conll.document_count; i++)
			BUG_IF(conll.documents[i].first_sentence > conll.sentence_count);
		buffer_release(&out);
		conll_release(&conll);
	}
	return 0;
}
