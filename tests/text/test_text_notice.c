/* Files that are more than running text are noticed; prose with commas and equals signs is not. */
#include "test.h"
#include "text/text_notice.h"

static void tables_and_headings(void **state)
{
	static const struct {
		const char *name, *text, *said; /* "": nothing */
	} cases[] = {
		{"a.csv", "id,text\n1,One.\n2,Two.\n3,Three.\n", "(CSV, columns 1 id, 2 text)"},
		{"a.txt", "id,text\n1,One.\n2,Two.\n3,Three.\n", "(CSV, columns 1 id, 2 text)"},
		{"a.txt", "text\tsource\nOne.\ta\nTwo.\tb\n", "(TSV, columns 1 text, 2 source)"},
		{"a.tsv", "One.\t1\nTwo.\t0\nThree.\t1\n", "(TSV, columns 1 to 2, without names)"},
		/* Quoted fields over several lines. */
		{"a.csv", "id,text\n1,\"One.\nTwo.\"\n2,\"Three.\"\n3,\"Four.\nFive.\"\n", "(CSV, columns 1 id, 2 text)"},
		{"a.txt", "One ||| Two.\nThree ||| Four.\nFive ||| Six.\n", "(fields between separators, columns 1 to 2"},
		{"a.txt", "It came, it saw.\nIt went, it slept.\nIt ate, it drank.\n", ""},
		{"a.txt", "Wait, what?\nNo, never, not once.\nYes.\nWell, perhaps.\n", ""},
		{"a.txt", "One.\nTwo.\nThree.\n", ""},
		{"a.txt", "a\tb\n", ""},
		{"wiki.tokens", " = Robert Boulter = \n \n He is an actor . \n\n = = Career = = \n\n He acted . \n",
		 "headings between equals signs (\"= Robert Boulter =\")"},
		{"a.txt", "= Alone =\nOne heading is none.\n", ""},
		{"a.txt", "x = 1\ny = 2\n= =\na == b\n", ""},
		{"a.txt", "", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char notice[TEXT_NOTICE_BYTES];
		assert_ok(text_notice(cases[i].name, cases[i].text, strlen(cases[i].text), notice));
		if (cases[i].said[0] ? !strstr(notice, cases[i].said) : notice[0] != 0)
			fail_msg("case %zu: '%s'", i, notice);
	}
}

/* The sample may end inside a row. */
static void a_long_table(void **state)
{
	struct buffer text = {0};
	char notice[TEXT_NOTICE_BYTES];
	buffer_text(&text, "id,title,text\n");
	for (int i = 0; text.size < 200000; i++)
		buffer_format(&text, "%d,\"A title, %d\",\"Some text.\nMore of it, with a \"\"quote\"\".\"\n", i, i);
	assert_ok(text_notice("a.csv", text.data, text.size, notice));
	assert_non_null(strstr(notice, "columns 1 id, 2 title, 3 text"));
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_and_headings),
		cmocka_unit_test(a_long_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
