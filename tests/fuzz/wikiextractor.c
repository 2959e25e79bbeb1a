/* WikiExtractor's output. */
#include "records.h"

FUZZ_SEEDS(FUZZ_SEED("\3<doc id=\"1\" url=\"u\" title=\"A &amp; B\">\nA & B\n\nText &lt;b&gt; &amp;x "
		     "&.\n</doc>\n\n<doc id=\"2\">\n</doc>\n"),
	   FUZZ_SEED("\1<doc id=1>\n<doc id=2>\na\n</doc>\nrest\n<doc id=3>\nb"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	fuzz_records(RECORDS_WIKIEXTRACTOR, NULL, bytes, count);
	return 0;
}
