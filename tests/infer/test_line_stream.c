/* Files with odd lines, read as a whole and in pieces: the same rows. */
#include "test.h"
#include "base/rng.h"
#include "formats/table.h"
#include "infer/line_stream.h"

static const char *const names[] = {"text", "label", "sentence", NULL};

/* The rows of a table, "line: field|field", with LF for CR LF within quoted fields. */
static void list_rows(const struct table *table, struct buffer *out)
{
	for (int64_t row = 0; row < table->row_count; row++) {
		buffer_format(out, "%lld: ", (long long)table->rows[row].line);
		for (int64_t column = 0; column < table->column_count; column++) {
			const char *field = table_field(table, row, column);
			if (!field) /* of a JSON object */
				continue;
			for (; *field; field++)
				if (*field != '\r' || field[1] != '\n')
					buffer_char(out, *field);
			buffer_char(out, '|');
		}
		buffer_char(out, '\n');
	}
}

/* What the pieces of a file have in common. */
struct reading {
	struct table form;
	struct buffer rows;
};

static enum status read_piece(void *context, struct line_chunk *chunk)
{
	struct reading *reading = context;
	struct bad_records bad = {.skip = false};
	const struct table_options options = {.known_names = names, .bad = &bad};
	const struct table_piece piece = {.name = chunk->path,
					  .text = chunk->text.data,
					  .size = chunk->text.size,
					  .first_line = chunk->first_line,
					  .like = chunk->begins_file ? NULL : &reading->form};
	struct table table;
	TRY(table_read_piece(&table, &piece, &options));
	list_rows(&table, &reading->rows);
	enum status status = chunk->begins_file ? table_copy_form(&reading->form, &table) : OK;
	table_release(&table);
	return status;
}

static void assert_read_alike(const char *name, const char *bytes, size_t size)
{
	const char *path = test_path(name);
	struct bad_records bad = {.skip = false};
	struct reading reading = {.rows = {0}};
	struct buffer whole = {0}, shown = {0};
	struct line_stream *stream;
	struct line_chunk *chunk;
	struct table table;
	assert_ok(file_write(path, bytes, size));
	assert_ok(table_read(&table, path, &(struct table_options){.known_names = names, .bad = &bad}));
	list_rows(&table, &whole);
	table_release(&table);
	assert_ok(line_stream_open(&stream, &(struct line_stream_settings){.paths = &path,
									   .path_count = 1,
									   .longest_line = 1 << 20,
									   .chunk_bytes = 1 << 20,
									   .chunk_lines = 6,
									   .header_names = names,
									   .work = read_piece,
									   .context = &reading,
									   .own_bytes = 1}));
	do
		assert_ok(line_stream_next(stream, &chunk));
	while (chunk);
	line_stream_close(stream);
	for (size_t i = 0; i < size; i++)
		buffer_format(&shown, bytes[i] == '\r' ? "\\r" : bytes[i] == '\n' ? "\\n" : "%c", bytes[i]);
	if (strcmp(buffer_string(&whole), buffer_string(&reading.rows)) != 0)
		fail_msg("%s: %s\nas a whole:\n%sin pieces:\n%s", name, buffer_string(&shown), buffer_string(&whole),
			 buffer_string(&reading.rows));
	table_release(&reading.form);
	buffer_release(&reading.rows);
	buffer_release(&whole);
	buffer_release(&shown);
}

static const char *const line_ends[] = {"\n", "\r\n", "\r", "\r\r\n"};

static void odd_files_have_the_same_rows(void **state)
{
	static const struct {
		const char *name, *header, *rows[6];
	} kinds[] = {
		{"a.txt", NULL, {"wai waj", "", "\"wak", " ", "a\xC2\xA0", "wal, wam"}},
		{"a.csv", "text", {"wai waj", "", " ", "wak wal", "\xE2\x80\xA8", "wam"}},
		{"a.tsv", "sentence", {"wai waj", "", "\f", "wak wal", "wai", "wam"}},
		{"a.csv", "text,label", {"wai waj,1", "", "\"a, b\",0", "\"a \"\"b\"\"\",1", ",0", "wam,0"}},
		{"a.tsv", "text\tlabel", {"wai waj\t1", "", "\ta", " \tb", "wak\t", "wam\tb"}},
		{"a.jsonl", NULL, {"{\"text\": \"wai\"}", "", " \t", "{\"text\": \"\"}", "{\"label\": 1}", "{}"}},
	};
	struct rng rng = rng_start(7, RNG_TEST, 0);
	struct buffer text = {0};
	for (int round = 0; round < 700; round++) {
		uint32_t kind = rng_below(&rng, sizeof kinds / sizeof *kinds);
		const char *end = line_ends[rng_below(&rng, 4)];
		bool header = kinds[kind].header;
		buffer_clear(&text);
		if (rng_below(&rng, 4) == 0)
			buffer_text(&text, "\xEF\xBB\xBF");
		for (uint32_t i = rng_below(&rng, 6) < 4 ? 0 : rng_below(&rng, 3); i > 0; i--)
			buffer_text(&text, end);
		if (header)
			buffer_format(&text, "%s%s", kinds[kind].header, end);
		/* The first row is a usual one. */
		buffer_format(&text, "%s", kinds[kind].rows[0]);
		for (uint32_t i = rng_below(&rng, 20); i > 0; i--)
			buffer_format(&text, "%s%s", end, kinds[kind].rows[rng_below(&rng, 6)]);
		for (uint32_t i = rng_below(&rng, 3); i > 0; i--)
			buffer_text(&text, end);
		assert_ok(buffer_status(&text));
		assert_read_alike(kinds[kind].name, text.data, text.size);
	}
	buffer_release(&text);
}

/* A quote within a field that is not quoted begins nothing, so pieces end between rows. */
static void pieces_end_between_rows(void **state)
{
	struct buffer text = {0};
	buffer_text(&text, "text,label\n5\" screen,1\n");
	for (int i = 0; i < 20; i++)
		buffer_format(&text, "\"row %d,\nof two lines\",0\n", i);
	assert_read_alike("quotes.csv", text.data, text.size);
	buffer_release(&text);
}

static void assert_rows(const char *name, const char *text, const char *expected)
{
	struct bad_records bad = {.skip = false};
	struct buffer rows = {0};
	struct table table;
	assert_read_alike(name, text, strlen(text));
	assert_ok(table_read(&table, test_path(name), &(struct table_options){.known_names = names, .bad = &bad}));
	list_rows(&table, &rows);
	assert_string_equal(buffer_string(&rows), expected);
	table_release(&table);
	buffer_release(&rows);
}

static void lines_end_where_they_seem_to(void **state)
{
	assert_rows("a.txt", "a\rb\r\rc", "1: a|\n2: b|\n3: |\n4: c|\n");
	/* A program that only knows LF added one. */
	assert_rows("a.csv", "text,label\rwai,1\rwaj,0\n", "2: wai|1|\n3: waj|0|\n");
	assert_rows("a.csv", "text,label\rwai,1\rwaj,0\r\n\"a\rb\",1\n", "2: wai|1|\n3: waj|0|\n4: a\nb|1|\n");
	/* A stray CR is white space. */
	assert_rows("a.txt", "a\rb\nc\r\nd", "1: a\rb|\n2: c|\n3: d|\n");
	assert_rows("a.txt", "a\r\r\nb\r\r\n", "1: a|\n2: b|\n");
}

/* Each line of a single column is a row, so that answers can be laid beside the file. */
static void empty_lines_of_a_single_column_are_rows(void **state)
{
	assert_rows("a.txt", "a\n\nb\n\n", "1: a|\n2: |\n3: b|\n4: |\n");
	assert_rows("a.tsv", "a\n\nb\n\n", "1: a|\n2: |\n3: b|\n4: |\n");
	assert_rows("a.csv", "\n\ntext\nthe cat\n\na dog\n", "4: the cat|\n5: |\n6: a dog|\n");
	assert_rows("a.csv", "text,label\n\nwai,1\n\n\nwaj,0\n", "3: wai|1|\n6: waj|0|\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_files_have_the_same_rows),
		cmocka_unit_test(pieces_end_between_rows),
		cmocka_unit_test(lines_end_where_they_seem_to),
		cmocka_unit_test(empty_lines_of_a_single_column_are_rows),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
