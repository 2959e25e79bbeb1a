/* Tables. Rows come in order and have fields; delimited text that was read and written reads back the same. */
#include "formats/table.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("label\tsentence1\tsentence2\r\n1\ta\tb\"c\n0\t\"d\te\n\n"),
	   FUZZ_SEED("\xEF\xBB\xBFid,text\n1,\"a \"\"b\"\"\nc\"\n2,d\n3,\"e\" f\n4,\"g\n"), FUZZ_SEED("a;b\n1;2\n3\n4;5;6\n"),
	   FUZZ_SEED("{\"text\": \"a\", \"m\": {\"x\": [1, \"b\", {\"c\": null}]}}\n\n{\"label\": true}\nx\n"),
	   FUZZ_SEED("[{\"a\": 1}, {\"a\": \"b]\",\n \"c\": {\"d\": 2}}, 3]\n"), FUZZ_SEED("one\rtwo\rthree"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const char *const names[] = {"data", "data.tsv", "data.csv.gz"};
	static const char *const known[] = {"text", "label", NULL}, *const given[] = {"b", NULL};
	for (int i = 0; i < 3; i++) {
		struct table table;
		struct bad_records bad = {.skip = (count + (size_t)i) % 2};
		struct table_options options = {.known_names = i ? known : NULL,
						.given_names = i == 2 ? given : NULL,
						.rather_no_header = count % 2,
						.bad = &bad};
		if (table_read(&table, fuzz_file(names[i], bytes, count), &options) != OK)
			continue;
		struct buffer text = {0};
		table_describe(&table, &text);
		int64_t line = 0;
		for (int64_t row = 0; row < table.row_count; row++) {
			BUG_IF(table.rows[row].line <= line && table.form != TABLE_JSON_ARRAY);
			line = table.rows[row].line;
			for (int64_t column = 0; column < table.column_count; column++) {
				const char *field = table_field(&table, row, column);
				BUG_IF(!field && table.form == TABLE_DELIMITED);
				buffer_text(&text, field ? field : "");
			}
		}
		BUG_IF(bad.skip && bad.count > (int64_t)count);
		buffer_release(&text);
		table_release(&table);
	}
	return 0;
}
