/* Files of text to documents: the first byte chooses the declared form of the file, the second the meaning of a line and
 * whether damage is skipped. Lines, which are read in batches, must give the same documents as the whole text at once. */
#include "base/buffer.h"
#include "formats/line_ends.h"
#include "fuzz.h"
#include "text/corpus.h"
#include "text/document_builder.h"
#include "text/utf8.h"

#define BOOK "*** START OF THE PROJECT GUTENBERG EBOOK A ***\n\nProduced by B\n\nCHAPTER I\n\n[Illustration: a\nb]\n\n"

FUZZ_SEEDS(FUZZ_SEED("\0\0One sentence.\nAnother one.\n\nA new document.\nIts end.\n"),
	   FUZZ_SEED("\1\2A paragraph. Of two sentences.\r\n\r\nAnother \"one.\" Here; Mr. B. said so.\n"),
	   FUZZ_SEED("\1\3This is a line of running text that was broken at a column which is\nrather narrow and "
		     "goes on here until the end of the para-\ngraph. It is so.\n\n\n\n\nChapter two\n"),
	   FUZZ_SEED("\1\4A document a line. Of two sentences.\nThe next one.\n"),
	   FUZZ_SEED("\0\0The Project Gutenberg eBook of A\n\n" BOOK
		     "It was _so_. He went.\n\n* * *\n\n*** END OF THE PROJECT GUTENBERG EBOOK A ***\nLicence\n"),
	   FUZZ_SEED("\2\0" BOOK "It was so.\n\n      *       *\n\nAnd so.\n\nEnd of Project Gutenberg's A\n"),
	   FUZZ_SEED("\3\x8<mediawiki><siteinfo><namespaces><namespace "
		     "key=\"6\">File</namespace></namespaces></siteinfo><page><title>A</title><ns>0</ns><revision><text>'''A''' "
		     "is [[b]]. It "
		     "was.</text></revision></page></mediawiki>"),
	   FUZZ_SEED("\4\0{\"index\":{}}\n{\"namespace\":0,\"title\":\"A\",\"text\":\"A is b. So.\"}\n"),
	   FUZZ_SEED("\5\x8<doc id=\"1\" title=\"A\">\nA\n\nIt is so.\n</doc>\n"),
	   FUZZ_SEED("\6\0{\"content\": \"One. Two.\\nThree.\\n\\nFour.\"}\n{\"content\": \"\"}\n"),
	   FUZZ_SEED("\7\x8WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: "
		     "23\r\n\r\nHello, this is a line.\n\r\n\r\n"),
	   FUZZ_SEED("\0\x8[{\"text\": \"a\"}, 1]"), FUZZ_SEED("\0\0<!DOCTYPE html><html>"),
	   FUZZ_SEED("\0\0\xff\xfe"
		     "a\0b\0"),
	   FUZZ_SEED("\1\1\xe4\xbb\x96\xe6\x9d\xa5\xe3\x80\x82\xff\xfe\xfd"))

static void check(const struct document *document)
{
	size_t end = 0;
	BUG_IF(document->sentence_count < 1);
	for (int64_t i = 0; i < document->sentence_count; i++) {
		struct sentence_bounds sentence = document->sentences[i], trimmed = sentence;
		BUG_IF(sentence.begin < end || sentence.end <= sentence.begin || sentence.end > document->text_size);
		BUG_IF(i > 0 && (sentence.begin != end + 1 || document->text[end] != '\n'));
		BUG_IF(memchr(document->text + sentence.begin, '\n', sentence.end - sentence.begin));
		utf8_trim(document->text, &trimmed.begin, &trimmed.end);
		BUG_IF(trimmed.begin != sentence.begin || trimmed.end != sentence.end);
		end = sentence.end;
	}
	BUG_IF(end != document->text_size);
}

/* The documents from all lines at once, without files and batches. */
static struct document_builder whole;
static struct corpus_counts whole_counts;

static void build_whole(enum text_form form, const char *text, size_t size)
{
	static struct buffer mended; /* with LF where lines end, as the reader of lines gives them */
	buffer_clear(&mended);
	buffer_append(&mended, text, size);
	if (line_ends_are_cr(buffer_string(&mended), size, true))
		line_ends_mend(mended.data, size);
	builder_reset(&whole);
	whole.form = form;
	whole.counts = &whole_counts;
	BUG_IF(builder_text(&whole, buffer_string(&mended), size) != OK || builder_end(&whole) != OK);
}

static void check_same(const struct document *document, int64_t number)
{
	BUG_IF(number >= whole.document_count);
	const struct built_document *built = &whole.documents[number];
	BUG_IF(built->text_size != document->text_size || built->sentence_count != document->sentence_count);
	BUG_IF(memcmp(whole.text + built->text_begin, document->text, document->text_size) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	if (count < 2)
		return 0;
	struct corpus_settings settings = {.input.input_form = (enum input_form)(bytes[0] % (INPUT_WARC + 1)),
					   .input.text_form = (enum text_form)(bytes[1] % 8 % (TEXT_FORM_DOCUMENTS + 1)),
					   .input.on_bad_record = bytes[1] & 8 ? SKIP_BAD_RECORD : STOP_ON_BAD_RECORD,
					   .threads = 1};
	const char *path = fuzz_file("corpus", bytes + 2, count - 2);
	const struct document *document;
	struct corpus *corpus;
	bool lines = settings.input.input_form == INPUT_TEXT && settings.input.text_form != TEXT_FORM_AUTO;
	if (lines)
		build_whole(settings.input.text_form, (const char *)bytes + 2, count - 2);
	BUG_IF(corpus_open(&corpus, &path, 1, &settings) != OK);
	enum status status;
	int64_t documents = 0, sentences = 0;
	while ((status = corpus_next(corpus, &document)) == OK && document) {
		check(document);
		if (lines)
			check_same(document, documents);
		documents++;
		sentences += document->sentence_count;
	}
	BUG_IF(settings.input.on_bad_record == SKIP_BAD_RECORD && status == ERR_DATA);
	BUG_IF(lines && status == OK && documents > 0 && documents != whole.document_count);
	if (status == OK)
		BUG_IF(corpus_counts(corpus)->documents != documents || corpus_counts(corpus)->sentences != sentences);
	corpus_close(corpus);
	return 0;
}
