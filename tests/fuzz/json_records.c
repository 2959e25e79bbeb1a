/* JSON lines and arrays; CirrusSearch dumps if the second bit of the first byte is set. */
#include "records.h"

FUZZ_SEEDS(FUZZ_SEED("\1{\"title\": \"A\", \"text\": \"b\\n\\u00e9\\ud83d\\ude00\", \"n\": [1, {\"text\": "
		     "2}]}\n{\"x\": null}\n"),
	   FUZZ_SEED("\5[{\"a\": {\"b\": [\"c\", \"d\"]}}, {\"text\": \"\"}]"),
	   FUZZ_SEED("\7{\"index\":{\"_id\":\"1\"}}\n{\"namespace\":0,\"text\":\"a "
		     "b\"}\n{\"namespace\":1,\"text\":\"c\"}\n"),
	   FUZZ_SEED("\1{\"text\": \"a\nb\"}\n{\"text\": -1.5e3, \"t\": true}\n"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	const char *key;
	if (count == 0)
		return 0;
	if (bytes[0] & 2)
		fuzz_records(RECORDS_CIRRUS, "text", bytes, count);
	else
		fuzz_records(RECORDS_JSON, bytes[0] & 4 ? "a.b" : "text", bytes, count);
	enum record_form form;
	if (records_recognize((const char *)bytes + 1, count - 1, &form))
		BUG_IF(form > RECORDS_WARC);
	if (records_find_text_key("fuzz", (const char *)bytes + 1, count - 1, &key) == OK)
		BUG_IF(!key);
	return 0;
}
