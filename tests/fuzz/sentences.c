/* The sentence splitter: its slices are in order, trimmed and not empty, with nothing but white space between them. */
#include "fuzz.h"
#include "text/sentences.h"
#include "text/utf8.h"

FUZZ_SEEDS(FUZZ_SEED("Mr. J. R. Smith paid $3.50 at 5 p.m. on Jan. 5. \"Really?\" he said. (Yes.) It was so "
		     "[12]."),
	   FUZZ_SEED("“走吧！”，他说。为什么？我不知道…… 1. 总则；第二条。"),
	   FUZZ_SEED("यह एक वाक्य है। दूसरा। هل هذا؟ نعم. እንዴት ነህ። ประโยค หนึ่ง"),
	   FUZZ_SEED("No. 5 and U.S. troops, e.g. in fig. 3a etc. The end.2 We saw cells.[12,13] So it goes!?!"))

struct slices {
	const char *text;
	size_t size, end;
};

static enum status take(void *context, size_t begin, size_t end)
{
	struct slices *slices = context;
	size_t gap_begin = slices->end, gap_end = begin, first = begin, last = end;

	BUG_IF(begin < slices->end || end <= begin || end > slices->size);
	utf8_trim(slices->text, &gap_begin, &gap_end);
	BUG_IF(gap_begin != gap_end);
	utf8_trim(slices->text, &first, &last);
	BUG_IF(first != begin);
	slices->end = end;
	return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char *text = fuzz_copy(bytes, count);
	struct slices slices = {text, count, 0};

	BUG_IF(sentences_split(text, count, take, &slices) != OK);
	size_t begin = slices.end, end = count;
	utf8_trim(text, &begin, &end);
	BUG_IF(begin != end);
	free(text);
	return 0;
}
