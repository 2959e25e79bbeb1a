/* Tables in text files: what is detected, what is read, and what is refused. */
#include "formats/table.h"
#include <time.h>
#include "base/log.h"
#include "test.h"

static struct bad_records bad;
static const char *const known_names[] = {"label", "sentence1", "sentence2", "sentence", "text", NULL};

static enum status read_with(struct table *table, const char *name, const char *bytes, size_t size, struct table_options options)
{
	const char *path = test_path(name);
	bad.count = 0;
	options.bad = &bad;
	options.known_names = known_names;
	assert_ok(file_write(path, bytes, size));
	return table_read(table, path, &options);
}

/* Reads a table of the given name. Expected: the table's description, '|', and its fields, with rows separated by '/' and
 * columns by ','. "-" stands for a missing field. */
static void expect_as(const char *name, const char *text, size_t size, struct table_options options, const char *expected)
{
	struct table table;
	struct buffer got = {0};
	if (read_with(&table, name, text, size, options) != OK)
		fail_msg("%s", error_last()->message);
	table_describe(&table, &got);
	buffer_char(&got, '|');
	for (int64_t row = 0; row < table.row_count; row++) {
		for (int64_t column = 0; column < table.column_count; column++) {
			const char *field = table_field(&table, row, column);
			buffer_format(&got, "%s%s", column ? "," : "", field ? field : "-");
		}
		buffer_char(&got, '/');
	}
	assert_string_equal(buffer_string(&got), expected);
	buffer_release(&got);
	table_release(&table);
}
#define EXPECT(name, text, expected) expect_as(name, text, sizeof text - 1, (struct table_options){0}, expected)
/* The same with one option given. */
#define EXPECT_WITH(option, text, expected) expect_as("a.tsv", text, sizeof text - 1, (struct table_options){option}, expected)

static void quotes_are_characters_where_nothing_shows_quoting(void **state)
{
	EXPECT("a.tsv", "label\tsentence\n1\t\"Stop\n0\t5\" disk\n1\t\"all\" of it\n",
	       "TSV with a header, 2 columns (label, sentence), 3 rows|1,\"Stop/0,5\" disk/1,\"all\" of it/");
	/* A quote that opens on one line and closes on another does not make a quoted field if every line is complete
	 * without it. */
	EXPECT("a.tsv", "label\tsentence\n1\t\"Go on\n0\tuntil you stop.\"\n",
	       "TSV with a header, 2 columns (label, sentence), 2 rows|1,\"Go on/0,until you stop.\"/");
	EXPECT("a.tsv", "label\tsentence\n1\t\"Go on\n0\tthen stop.\"\n1\t\"say \"\"no\"\"\"\n",
	       "TSV with a header, 2 columns (label, sentence), 3 rows|1,\"Go on/0,then stop.\"/1,\"say \"\"no\"\"\"/");
	EXPECT("a.tsv", "label\tsentence\n1\t\"Stop!\"\n0\tgo\n1\tno\n",
	       "TSV with a header, 2 columns (label, sentence), 3 rows|1,\"Stop!\"/0,go/1,no/");
	/* Here, the quotes do show quoting. */
	EXPECT("a.tsv", "label\tsentence\n1\t\"say \"\"no\"\"\"\n0\tgo\n",
	       "TSV with a header, fields quoted, 2 columns (label, sentence), 2 rows|1,say \"no\"/0,go/");
	EXPECT("a.tsv", "label\tsentence\n1\t\"a\tb\"\n0\tgo\n",
	       "TSV with a header, fields quoted, 2 columns (label, sentence), 2 rows|1,a\tb/0,go/");
	EXPECT("a.tsv", "label\tsentence\n1\t\"a\nb\"\n0\tgo\n",
	       "TSV with a header, fields quoted, 2 columns (label, sentence), 2 rows|1,a\nb/0,go/");
	EXPECT("a.tsv", "\"label\"\t\"sentence\"\n\"1\"\t\"a\"\n",
	       "TSV with a header, fields quoted, 2 columns (label, sentence), 1 row|1,a/");
	EXPECT("a.tsv", "label\tsentence\n1\t\"a\"\n0\t\"b\"\n1\t\"c\"\n",
	       "TSV with a header, fields quoted, 2 columns (label, sentence), 3 rows|1,a/0,b/1,c/");
	/* But not together with an unquoted field that contains a quote. */
	EXPECT("a.tsv", "label\tsentence\n1\t\"say \"\"no\"\"\"\n0\t5\" disk\n",
	       "TSV with a header, 2 columns (label, sentence), 2 rows|1,\"say \"\"no\"\"\"/0,5\" disk/");
	EXPECT_WITH(.quotes = TABLE_YES, "1\t\"a\"\n", "TSV without a header, fields quoted, 2 columns, 1 row|1,a/");
}

static void commas_go_with_quotes(void **state)
{
	EXPECT("a.csv", "\xEF\xBB\xBFtext,label\r\n\"a, \"\"b\"\"\r\nc\",1\r\nd \"e\" f,0\r\n\"\",1",
	       "CSV with a header, 2 columns (text, label), 3 rows|a, \"b\"\r\nc,1/d \"e\" f,0/,1/");
	EXPECT("a.csv", "text\n\"a, b\"\nc\n",
	       "CSV with a header, 1 column (text)"
	       ", 2 rows|a, b/c/");
	EXPECT("a.csv", "x;y\n1,5;2\n3;4\n", "fields between ';' with a header, 2 columns (x, y), 2 rows|1,5,2/3,4/");
	/* Detected without a telling name if the first row holds names. */
	EXPECT("a.txt", "text,label\na b,1\n\"c, d\",0\n", "CSV with a header, 2 columns (text, label), 2 rows|a b,1/c, d,0/");
	/* Prose with one comma per line is not a table of two columns. */
	EXPECT("a.txt", "\n\ntext,label\na b,1\n",
	       "CSV with a header, 2 columns (text, label), 1 row, 2 empty lines skipped|a b,1/");
	EXPECT("a.txt", "n,Text\n", "CSV with a header, 2 columns (n, Text), 0 rows|");
	EXPECT("a.txt", "one,two\n", "one text a line without a header, 1 column, 1 row|one,two/");
	EXPECT("a.txt", "Hello, world\nBye, all\n", "one text a line without a header, 1 column, 2 rows|Hello, world/Bye, all/");
	/* ',NAME,...' as spreadsheets write it. */
	EXPECT("a.csv", ",sent1,label\n0,a,1\n1,b,2\n", "CSV with a header, 3 columns (, sent1, label), 2 rows|0,a,1/1,b,2/");
}

/* However many there are, each is looked at once. */
static void returns_within_a_field(void **state)
{
	enum { RETURNS = 1000000 };
	struct buffer text = {0};
	struct table table;
	buffer_text(&text, "1\ta\n0\tb");
	for (int i = 0; i < RETURNS; i++)
		buffer_char(&text, '\r');
	buffer_text(&text, "c\n");
	assert_ok(read_with(&table, "a.tsv", text.data, text.size, (struct table_options){0}));
	assert_int_equal(table.row_count, 2);
	assert_int_equal(strlen(table_field(&table, 1, 1)), RETURNS + 2);
	table_release(&table);
	buffer_release(&text);
}

static void lines_end_in_several_ways(void **state)
{
	EXPECT("a.tsv", "1\ta\r\n\r\n0\tb\r\n\n", "TSV without a header, 2 columns, 2 rows, 2 empty lines skipped|1,a/0,b/");
	EXPECT("a.tsv", "1\ta\r0\tb", "TSV without a header, 2 columns, 2 rows|1,a/0,b/");
	EXPECT("a.tsv", "1\ta\n0\tb\r", "TSV without a header, 2 columns, 2 rows|1,a/0,b/");
	EXPECT("a.tsv", "1\ta\rb\n0\tc", "TSV without a header, 2 columns, 2 rows|1,a\rb/0,c/");
	/* In a file of texts alone, an empty line is an empty text, so that answers stay aligned with their lines. */
	EXPECT("a.txt", "a\n\nb\n", "one text a line without a header, 1 column, 3 rows|a//b/");
	EXPECT("a.txt", "", "one text a line without a header, 0 columns, 0 rows|");
}

static void headers_are_told_from_rows(void **state)
{
	EXPECT("a.tsv", "Label\tx y z\n1\ta\n", "TSV with a header, 2 columns (Label, x y z), 1 row|1,a/");
	EXPECT("a.tsv", "gold\twords\n1\ta\n2\tb\n", "TSV with a header, 2 columns (gold, words), 2 rows|1,a/2,b/");
	EXPECT("a.tsv", "good\twell done\nbad\toh no\n", "TSV without a header, 2 columns, 2 rows|good,well done/bad,oh no/");
	EXPECT("a.tsv", "1\ta\n2\tb\n", "TSV without a header, 2 columns, 2 rows|1,a/2,b/");
	EXPECT_WITH(.header = TABLE_YES, "good\twell done\nbad\toh no\n",
		    "TSV with a header, 2 columns (good, well done), 1 row|bad,oh no/");
	EXPECT_WITH(.header = TABLE_NO, "label\ttext\n1\tb\n", "TSV without a header, 2 columns, 2 rows|label,text/1,b/");
}

/* A usual name may also be a label or a text, which the rest of the table tells. */
static void one_usual_name_is_not_always_a_header(void **state)
{
	/* The column has the value again, or the row has a text or a number. */
	EXPECT("a.tsv", "that is fine\ttext\nno\tlabel\nyes\ttext\n",
	       "TSV without a header, 2 columns, 3 rows|that is fine,text/no,label/yes,text/");
	EXPECT("a.tsv", "hide new secretions from the parental units\ttext\nno wit\tx\n",
	       "TSV without a header, 2 columns, 2 rows|hide new secretions from the parental units,text/no wit,x/");
	EXPECT("a.tsv", "Is it far?\ttext\nHere it is.\tx\n",
	       "TSV without a header, 2 columns, 2 rows|Is it far?,text/Here it is.,x/");
	EXPECT("a.tsv", "离这里远吗？\ttext\n不远\tx\n", "TSV without a header, 2 columns, 2 rows|离这里远吗？,text/不远,x/");
	EXPECT("a.tsv", "text\t17\nx\ty\n", "TSV without a header, 2 columns, 2 rows|text,17/x,y/");
	/* Still a header: joined files repeat theirs, and numbers below a word say more than a text that is the word. */
	EXPECT("a.tsv", "kind\ttext\nx\ta b\nkind\ttext\ny\tc\n",
	       "TSV with a header, 2 columns (kind, text), 3 rows|x,a b/kind,text/y,c/");
	EXPECT("a.tsv", "text\tHow good is it?\na b\t5\ntext\t4\n",
	       "TSV with a header, 2 columns (text, How good is it?), 2 rows|a b,5/text,4/");
	/* Several names: all must be values further down. */
	EXPECT("a.tsv", "label\ttext\nx\ta\ny\ttext\n", "TSV with a header, 2 columns (label, text), 2 rows|x,a/y,text/");
	EXPECT("a.tsv", "label\ttext\nlabel\ta\ny\ttext\n", "TSV without a header, 2 columns, 3 rows|label,text/label,a/y,text/");
	/* Similar files have no header. */
	EXPECT_WITH(.rather_no_header = true, "a film\ttext\nx\ty\n", "TSV without a header, 2 columns, 2 rows|a film,text/x,y/");
	EXPECT_WITH(.rather_no_header = true, "label\ttext\nx\ty\n", "TSV with a header, 2 columns (label, text), 1 row|x,y/");
}

/* In a list of words, a usual name is one of them; above longer texts, or in a file that is a table by its name, it is a header.
 */
static void the_first_of_many_lines(void **state)
{
	EXPECT("a.txt", "text\na b\nc\n", "one text a line with a header, 1 column (text), 2 rows|a b/c/");
	EXPECT("a.txt", "text\nword\nc d\n", "one text a line without a header, 1 column, 3 rows|text/word/c d/");
	EXPECT("a.txt", "text\n很好\n", "one text a line with a header, 1 column (text), 1 row|很好/");
	EXPECT("a.txt", "text\n", "one text a line without a header, 1 column, 1 row|text/");
	EXPECT("a.csv", "text\nword\n", "CSV with a header, 1 column (text), 1 row|word/");
	const struct table_options options = {.rather_no_header = true};
	expect_as("a.txt", "text\na b\n", 9, options, "one text a line without a header, 1 column, 2 rows|text/a b/");
	expect_as("a.csv", "text\na b\n", 9, options, "CSV with a header, 1 column (text), 1 row|a b/");
}

static void given_names_show_a_header(void **state)
{
	static const char *const given[] = {"bewertung", "标签", NULL};
	EXPECT_WITH(.given_names = given, "Kommentar\t Bewertung \na\tb\nc\tBewertung\n",
		    "TSV with a header, 2 columns (Kommentar, Bewertung), 2 rows|a,b/c,Bewertung/");
	EXPECT_WITH(.given_names = given, "评论\t标签\n好吃\t好\n", "TSV with a header, 2 columns (评论, 标签), 1 row|好吃,好/");
	EXPECT("a.tsv", "Kommentar\tBewertung\na\tb\n", "TSV without a header, 2 columns, 2 rows|Kommentar,Bewertung/a,b/");
	const struct table_options options = {.given_names = given};
	expect_as("a", "标签,评论\n好,好吃\n", strlen("标签,评论\n好,好吃\n"), options,
		  "CSV with a header, 2 columns (标签, 评论), 1 row|好,好吃/");
}

static void names_have_letters_of_any_script(void **state)
{
	EXPECT("a.tsv", "评论\t标签\n好吃\t1\n难吃\t0\n", "TSV with a header, 2 columns (评论, 标签), 2 rows|好吃,1/难吃,0/");
	EXPECT("a", "Prüfungstext,Güte\na b,1\nc,0\n", "CSV with a header, 2 columns (Prüfungstext, Güte), 2 rows|a b,1/c,0/");
	EXPECT("a", "text , label\na b,x\nc,y\n", "CSV with a header, 2 columns (text, label), 2 rows|a b,x/c,y/");
	EXPECT("a", "你好,谢谢\n再见,朋友\n", "one text a line without a header, 1 column, 2 rows|你好,谢谢/再见,朋友/");
}

static void a_name_may_occur_twice(void **state)
{
	struct table table;
	int64_t column;
	static const char text[] = "text\ttext\tlabel\t\na\tb\tx\tq\nc\td\ty\tr\n";
	EXPECT("a.tsv", text, "TSV with a header, 4 columns (text, text, label, ), 2 rows|a,b,x,q/c,d,y,r/");
	assert_ok(read_with(&table, "a.tsv", text, sizeof text - 1, (struct table_options){0}));
	assert_error(ERR_USAGE, "column 'text' occurs twice; give its number: its columns are 1 text, 2 text, 3 label",
		     table_choose_column(&table, "text", &column));
	assert_ok(table_choose_column(&table, "2", &column));
	assert_int_equal(column, 1);
	assert_ok(table_choose_column(&table, "label", &column));
	table_release(&table);
}

/* All rows, the first included, are to have as many fields; a comma between two digits is rather a decimal one. */
static void the_delimiter_that_fits_all_rows(void **state)
{
	EXPECT("a.csv", "some text ;0,96\nother text;1,5\n",
	       "fields between ';' without a header, 2 columns, 2 rows|some text ,0,96/other text,1,5/");
	EXPECT("a.csv", "text;score\nsome text;0,96\nother;1,5\n",
	       "fields between ';' with a header, 2 columns (text, score), 2 rows|some text,0,96/other,1,5/");
	EXPECT("a.csv", "well; a text,x\nno; another,y\n",
	       "CSV without a header, 2 columns, 2 rows|well; a text,x/no; another,y/");
	EXPECT("a.csv", "1,2\n3,4\n", "CSV without a header, 2 columns, 2 rows|1,2/3,4/");
	struct table table;
	static const char text[] = "a,b,c\n1,2,3\n4,5\n";
	assert_error(ERR_DATA, "line 3: 2 fields where the other rows have 3",
		     read_with(&table, "a.csv", text, sizeof text - 1, (struct table_options){0}));
	assert_non_null(strstr(error_last()->hint, "fields are separated by ',' here"));
}

static void rows_may_have_more_than_the_least(void **state)
{
	struct table table;
	EXPECT_WITH(.least_fields = 3, "1\t2\t3\n4\t5\t6\n7\t8\t9\t0\n",
		    "TSV without a header, 3 columns, 3 rows|1,2,3/4,5,6/7,8,9/");
	/* A table that has fewer in general is of another form. */
	EXPECT_WITH(.least_fields = 3, "1\t2\n4\t5\n", "TSV without a header, 2 columns, 2 rows|1,2/4,5/");
	static const char text[] = "1\t2\n3\t4\n5\t6\t7\n";
	assert_error(ERR_DATA, "line 3: 3 fields where the other rows have 2",
		     read_with(&table, "a.tsv", text, sizeof text - 1, (struct table_options){.least_fields = 3}));
}

static void json_objects_are_rows(void **state)
{
	EXPECT("a.jsonl",
	       "{\"text\": \"a\\n\\u00e9\", \"label\": 1, \"m\": {\"x\": true, \"y\": {\"z\": 1.50}}}\n\n"
	       " {\"label\": null, \"extra\": [1, \"b\", {\"c\": [0.5]}], \"text\": \"\"} \r\n",
	       "JSON lines, 5 columns (text, label, m.x, m.y.z, extra), 2 rows, 1 empty line skipped|"
	       "a\n\xC3\xA9,1,true,1.50,-/,-,-,-,[1,\"b\",{\"c\":[0.5]}]/");
	EXPECT("a.json", "[\n {\"a\": \"x]},\\\"{\"},\n {\"b\": {}}, {\"a\":\n 2}\n]\n",
	       "a JSON list of objects, 1 column (a), 3 rows|x]},\"{/-/2/");
	EXPECT("a.json", " [ ] ", "a JSON list of objects, 0 columns, 0 rows|");
	EXPECT("a.json", "\x1E{\"a\": 1}\n\x1E{\"a\": 2}\n",
	       "JSON lines, 1 column (a), 2 rows|1/2/"); /* a sequence of RFC 7464 */
	/* A text may begin with a bracket. */
	EXPECT("a.txt", "[CLS] is a token\n{so} is this\n",
	       "one text a line without a header, 1 column, 2 rows|[CLS] is a "
	       "token/{so} is this/");
}

static void lines_are_counted(void **state)
{
	struct table table;
	static const char csv[] = "text,label\n\"a\nb\",1\n\n\"c\",2\n", list[] = "[\n{\"a\": 1},\n\n{\"a\":\n2}, {\"a\": 3}]";
	assert_ok(read_with(&table, "a.csv", csv, sizeof csv - 1, (struct table_options){0}));
	assert_int_equal(table.rows[0].line, 2);
	assert_int_equal(table.rows[1].line, 5);
	table_release(&table);
	assert_ok(read_with(&table, "a.json", list, sizeof list - 1, (struct table_options){0}));
	assert_int_equal(table.rows[0].line, 2);
	assert_int_equal(table.rows[1].line, 4);
	assert_int_equal(table.rows[2].line, 5);
	table_release(&table);
}

static void damage_is_named_by_its_line(void **state)
{
	static const struct {
		const char *name, *text;
		size_t size;
		const char *message;
		int64_t rows_left, bad;
	} cases[] = {
#define CASE(name, text, message, rows_left, bad) {name, text, sizeof text - 1, message, rows_left, bad}
		CASE("a.tsv", "label\ttext\n1\ta\n0\n1\tb\n", "line 3: 1 field where the other rows have 2", 2, 1),
		CASE("a.tsv", "label\ttext\n1\ta\n0\tb\tc\td\n1\tb\n", "line 3: 4 fields where the other rows have 2", 2, 1),
		CASE("a.tsv", "label\ttext\tx\n1\ta\n0\tb\n1\tb\n", "line 1: 3 fields where the other rows have 2", 3, 1),
		CASE("a.tsv", "x\ty\tz\n1\ta\n", "line 2: 2 fields where the other rows have 3", 1,
		     1), /* the first of the two is right */
		CASE("a.csv", "label,text\n1,a\n0,\"b\n1,c\n0,d\n", "line 3: the quote that opens field 2 never ends", 3, 1),
		CASE("a.csv", "label,text\n1,a\n0,\"b\" c\n1,c\n", "line 3: text after the quote that closes field 2", 2, 1),
		CASE("a.csv", "label,text\n1,\"a\n0,\"b\"\n1,c\n", "line 2: text after the quote that closes field 2", 2, 1),
		CASE("a.tsv", "label\ttext\n1\ta\n0\tb\xFF\n1\tc\n", "line 3: invalid UTF-8 at byte 4 of the line", 2, 1),
		CASE("a.tsv", "label\ttext\n1\ta\n0\tb\0\n1\tc\n", "line 3: a NUL byte at byte 4 of the line", 2, 1),
		CASE("a.csv", "label,text\n1,a\n0,\"b\n\xC3\"\n1,c\n", "line 4: invalid UTF-8 at byte 1 of the line", 2, 1),
		CASE("a.jsonl", "{\"a\": 1}\n{\"a\": }\n{\"a\": 2}\n", "line 2: JSON: unexpected character at byte 6", 2, 1),
		CASE("a.jsonl", "{\"a\": 1}\n{\"a\": 1, \"a\": 2}\n", "line 2: JSON: key \"a\" twice", 1, 1),
		CASE("a.jsonl", "{\"a\": 1}\n{\"b\": {\"c\": 1}, \"b.c\": 2}\n{\"b.c\": 5}\n",
		     "line 2: \"b.c\" stands for two values", 2, 1),
		CASE("a.jsonl", "{\"a\": 1}\n[1]\n", "line 2: not a JSON object", 1, 1),
		CASE("a.jsonl", "{\"a\": 1}\n{\"a\": \"\\u0000\"}\n", "line 2: the text of \"a\" has a NUL in it", 1, 1),
		CASE("a.jsonl", "{\"a\": \"b\xFF\"}\n{\"a\": 1}\n", "line 1: invalid UTF-8 at byte 9 of the line", 1, 1),
		CASE("a.json", "[{\"a\": 1},\n3,\n{\"a\": 2}]", "line 2: not a JSON object", 2, 1),
		CASE("a.json", "[{\"a\": 1},\n{\"a\": 2}", "line 2: the list of objects has no end", -1, 0),
		CASE("a.json", "[{\"a\": 1},\n{\"a\": 2}\n]\nx", "line 4: more text after the list", -1, 0),
		CASE("a.json", "{\n \"a\": 1\n}\n", "this is one JSON object over several lines", -1, 0),
		CASE("a.tsv", "\xFF\xFEl\0a\0", "this is UTF-16 text, not UTF-8", -1, 0),
#undef CASE
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct table table;
		bad.skip = false;
		assert_error(ERR_DATA, cases[i].message,
			     read_with(&table, cases[i].name, cases[i].text, cases[i].size, (struct table_options){0}));
		bad.skip = true;
		enum status status = read_with(&table, cases[i].name, cases[i].text, cases[i].size, (struct table_options){0});
		if (cases[i].rows_left < 0) {
			assert_int_equal(status, ERR_DATA);
			continue;
		}
		assert_int_equal(status, OK);
		if (table.row_count != cases[i].rows_left || bad.count != cases[i].bad)
			fail_msg("case %zu: %lld rows, %lld bad", i, (long long)table.row_count, (long long)bad.count);
		assert_non_null(strstr(bad.first.message, cases[i].message));
		table_release(&table);
	}
	bad.skip = false;
}

/* After a quote that never ends, reading continues with the next line, and the lines keep their numbers. */
static void rows_behind_a_bad_one_keep_their_lines(void **state)
{
	struct table table;
	static const char text[] = "label,text\n1,\"a\nb\"\n0,\"c\n1,d\n0,e\n";
	bad.skip = true;
	assert_ok(read_with(&table, "a.csv", text, sizeof text - 1, (struct table_options){0}));
	bad.skip = false;
	assert_int_equal(table.row_count, 3);
	assert_int_equal(table.rows[0].line, 2);
	assert_int_equal(table.rows[1].line, 5);
	assert_int_equal(table.rows[2].line, 6);
	assert_string_equal(table_field(&table, 2, 1), "e");
	table_release(&table);
}

static void columns_are_chosen_by_name_or_number(void **state)
{
	struct table table;
	int64_t column;
	static const char text[] = "Label\ttext\t2\n1\ta\tb\n";
	assert_ok(read_with(&table, "a.tsv", text, sizeof text - 1, (struct table_options){0}));
	assert_ok(table_choose_column(&table, "text", &column));
	assert_int_equal(column, 1);
	assert_ok(table_choose_column(&table, "label", &column));
	assert_int_equal(column, 0);
	assert_ok(table_choose_column(&table, "2", &column)); /* names take precedence over numbers */
	assert_int_equal(column, 2);
	assert_ok(table_choose_column(&table, "1", &column));
	assert_int_equal(column, 0);
	assert_error(ERR_USAGE, "has no column '4'; its columns are 1 Label, 2 text, 3 2",
		     table_choose_column(&table, "4", &column));
	assert_string_equal(error_last()->hint, "");
	assert_error(ERR_USAGE, "has no column 'score'", table_choose_column(&table, "score", &column));
	assert_error(ERR_USAGE, "has no column 'texts'", table_choose_column(&table, "texts", &column));
	assert_string_equal(error_last()->hint, "did you mean text?");
	table_release(&table);
}

static void later_pieces_have_the_separator_of_the_first(void **state)
{
	static const char *const pieces[][2] = {{"0 ||| a b\n1 ||| c\n", "2 ||| d e\n"}, {"0\t\ta b\n1\t\tc\n", "2\t\td e\n"}};
	for (int i = 0; i < 2; i++) {
		const struct table_options options = {.header = TABLE_NO, .bad = &bad};
		struct table first, form, later;
		struct table_piece piece = {.name = "a", .text = pieces[i][0], .size = strlen(pieces[i][0]), .first_line = 1};
		assert_ok(table_read_piece(&first, &piece, &options));
		assert_ok(table_copy_form(&form, &first));
		piece = (struct table_piece){
			.name = "a", .text = pieces[i][1], .size = strlen(pieces[i][1]), .first_line = 3, .like = &form};
		assert_ok(table_read_piece(&later, &piece, &options));
		assert_int_equal(later.column_count, 2);
		assert_string_equal(table_field(&later, 0, 0), "2");
		assert_string_equal(table_field(&later, 0, 1), "d e");
		table_release(&later);
		table_release(&form);
		table_release(&first);
	}
}

/* Four tabs are two separators with an empty field between. */
static void empty_fields_between_two_tabs(void **state)
{
	const struct table_options options = {.header = TABLE_NO, .bad = &bad};
	const char *text = "a\t\tb\t\tc\na\t\t\t\tc\n";
	const struct table_piece piece = {.name = "a", .text = text, .size = strlen(text), .first_line = 1};
	struct table table;
	assert_ok(table_read_piece(&table, &piece, &options));
	assert_int_equal(table.column_count, 3);
	assert_string_equal(table_field(&table, 1, 1), "");
	assert_string_equal(table_field(&table, 1, 2), "c");
	table_release(&table);
}

/* What is known of a table of which only the first lines have come. */
static void the_first_line_shows_what_to_wait_for(void **state)
{
	static const struct {
		const char *line;
		char delimiter;
		bool may_be_header;
	} cases[] = {
		{"label\tsentence", '\t', true},
		{"\"y\",\"x\"", ',', true},
		{"stars;review", ';', true},
		{"Sentence", 0, true},
		{"a fine film\t1", '\t', false},
		{"a film\tTEXT", '\t', true},
		{"well, a fine film", 0, false},
		{"a film", 0, false},
		{"label a film", 0, false},
		{"{\"text\": \"a\", \"label\": 1}", 0, false},
		{"Urteil der Leute,Film", ',', true},
		{"标签|评论", '|', true},
		{"Film", 0, true},
	};
	static const char *const given[] = {"FILM", "标签", NULL};
	struct table_start start;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		table_look_at_first_line(&start, cases[i].line, strlen(cases[i].line), known_names, given);
		if (start.delimiter != cases[i].delimiter || start.may_be_header != cases[i].may_be_header)
			fail_msg("'%s': '%c' %d", cases[i].line, start.delimiter ? start.delimiter : '-', start.may_be_header);
	}
	static const struct {
		const char *text;
		bool within;
	} rows[] = {
		{"x,y\n1,\"a\n", true},    {"x,y\n1,\"a\nb\"\n", false},    {"x,y\n1,\"a \"\"b\n", true},
		{"x,y\n1,5\" b\n", false}, {"x\ty\n\"a\n", true},           {"x\ty\n\"a\nb\"\t1\n", false},
		{"x\ty\n\"a\t1\n", false}, {"x\ty\n\"a\t1\nb\t0\n", false}, {"\"a film\nb\n", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		table_look_at_first_line(&start, rows[i].text, strcspn(rows[i].text, "\n"), known_names, NULL);
		if (table_ends_within_row(&start, rows[i].text, strlen(rows[i].text)) != rows[i].within)
			fail_msg("'%s'", rows[i].text);
	}
}

static void wide_tables_stay_fast(void **state)
{
	enum { COLUMNS = 60000 };
	struct buffer text = {0};
	struct table table;
	for (int row = 0; row < 2; row++)
		for (int i = 0; i < COLUMNS; i++)
			buffer_format(&text, "%c%d%c", row ? 'x' : 'c', i, i + 1 < COLUMNS ? ',' : '\n');
	clock_t began = clock(); /* of the processor, which others may be using too; it took minutes */
	assert_ok(read_with(&table, "a.csv", text.data, text.size, (struct table_options){0}));
	assert_true(clock() - began < 10 * CLOCKS_PER_SEC);
	assert_int_equal(table.column_count, COLUMNS);
	table_release(&table);
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_fields_between_two_tabs),
		cmocka_unit_test(quotes_are_characters_where_nothing_shows_quoting),
		cmocka_unit_test(commas_go_with_quotes),
		cmocka_unit_test(lines_end_in_several_ways),
		cmocka_unit_test(returns_within_a_field),
		cmocka_unit_test(headers_are_told_from_rows),
		cmocka_unit_test(one_usual_name_is_not_always_a_header),
		cmocka_unit_test(the_first_of_many_lines),
		cmocka_unit_test(given_names_show_a_header),
		cmocka_unit_test(names_have_letters_of_any_script),
		cmocka_unit_test(a_name_may_occur_twice),
		cmocka_unit_test(the_delimiter_that_fits_all_rows),
		cmocka_unit_test(rows_may_have_more_than_the_least),
		cmocka_unit_test(json_objects_are_rows),
		cmocka_unit_test(lines_are_counted),
		cmocka_unit_test(damage_is_named_by_its_line),
		cmocka_unit_test(rows_behind_a_bad_one_keep_their_lines),
		cmocka_unit_test(columns_are_chosen_by_name_or_number),
		cmocka_unit_test(later_pieces_have_the_separator_of_the_first),
		cmocka_unit_test(the_first_line_shows_what_to_wait_for),
		cmocka_unit_test(wide_tables_stay_fast),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
