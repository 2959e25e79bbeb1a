/* Two marked mentions in a text: the formats of published data sets, chemical names that look like markers, positions in
 * JSON. */
#include "tasks/mentions.h"
#include "tasks/task.h"
#include "test.h"

static struct bad_records bad;

static struct example_text text_of(const char *text)
{
	return (struct example_text){.text = text, .file = "f.tsv", .line = 7};
}

/* The text with '{' '}' in place of the first mention's markers and '(' ')' in place of the second's. */
static void expect_marks(const struct marked_text *marked, const struct mention_form *form, const char *expected)
{
	static const char signs[] = "{}()";
	struct buffer got = {0};
	const char *text = buffer_string(&marked->text);
	for (size_t at = 0; at < marked->text.size;) {
		int mark = 0;
		while (mark < MENTION_MARKS && marked->at[mark] != at)
			mark++;
		if (mark == MENTION_MARKS) {
			buffer_char(&got, text[at++]);
			continue;
		}
		buffer_char(&got, signs[mark]);
		assert_memory_equal(text + at, form->marks[mark], strlen(form->marks[mark]));
		at += strlen(form->marks[mark]);
	}
	assert_string_equal(buffer_string(&got), expected);
	buffer_release(&got);
}

static void expect_found(const char *text, const char *expected)
{
	struct marked_text marked = {0};
	struct example_text example = text_of(text);
	const struct mention_form *form = mention_form_detect(text);
	assert_non_null(form);
	assert_ok(mentions_find(&example, form, &marked));
	expect_marks(&marked, form, expected);
	marked_text_release(&marked);
}

static void markers_of_published_files(void **state)
{
	expect_found("the << Ang II >>-induced [[ valsartan ]], 51%", "the { Ang II }-induced ( valsartan ), 51%");
	expect_found("a [[drug]] of <<gene>>", "a (drug) of {gene}");
	expect_found("[E1]anna[/E1] meets [E2] bo [/E2].", "{anna} meets ( bo ).");
	expect_found("the <e2>box</e2> of <e1>wood</e1>", "the (box) of {wood}");
	/* ChemProt, as published: brackets of chemical names, and comparisons. */
	expect_found("-2(S)- [[(1,1-dimethyl)amino] of << alpha(1A) >> and [[ 5-methylurapidil ]] (0.1 mg)",
		     "-2(S)- [[(1,1-dimethyl)amino] of { alpha(1A) } and ( 5-methylurapidil ) (0.1 mg)");
	expect_found("<< Panx1 >>: [[ carbenoxolone ]] >> DIDS >> NPPB", "{ Panx1 }: ( carbenoxolone ) >> DIDS >> NPPB");
	expect_found("[[ 2-(S)-[[a]carbonyl]]-p ]] and << b >>", "( 2-(S)-[[a]carbonyl]]-p ) and { b }");
	expect_found("[[ a << b >> c ]]", "( a { b } c )");
	assert_null(mention_form_detect("no << marker >> of a second"));
}

static void what_is_missing_is_named(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"a << b >> c", "'f.tsv', line 7: the text has no marker '[['"},
		{"a << b c [[ d ]]", "line 7: the text has no marker '>>' behind '<<'"},
		{"a << b >> [[ c", "line 7: the text has no marker ']]' behind '[['"},
		{">> b << [[ c ]]", "line 7: the text has no marker '>>' behind '<<'"},
		{"<< a >> << b >> [[ c ]]", "line 7: the text has more than one marker '<<'"},
		{"", "line 7: the text has no marker '<<'"},
	};
	struct mention_form form;
	struct marked_text marked = {0};
	assert_ok(mention_form_parse("<<,>>,[[,]]", &form));
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct example_text example = text_of(cases[i].text);
		assert_error(ERR_DATA, cases[i].message, mentions_find(&example, &form, &marked));
	}
	marked_text_release(&marked);
}

static void markers_of_a_person(void **state)
{
	struct mention_form form;
	struct marked_text marked = {0};
	static const char *const texts[][2] = {
		{"a $ b $ and # c # d", "a { b } and ( c ) d"},
		{"$aspirin$ inhibits #COX-1#.", "{aspirin} inhibits (COX-1)."},
		{"$aspirin$ inhibits $ 5 (#COX-1# )", "{aspirin} inhibits $ 5 ((COX-1) )"},
		{"for 5$ a $ b $ and # c #", "for 5$ a { b } and ( c )"},
		{"$ b$, # c #", "{ b}, ( c )"},
	};
	assert_ok(mention_form_parse("$,$,#,#", &form));
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct example_text example = text_of(texts[i][0]);
		assert_ok(mentions_find(&example, &form, &marked));
		expect_marks(&marked, &form, texts[i][1]);
	}
	struct example_text none = text_of("a # c #");
	assert_error(ERR_DATA, "line 7: the text has no marker '$'", mentions_find(&none, &form, &marked));
	none.file = NULL;
	assert_error(ERR_DATA, "text 7: the text has no marker '$'", mentions_find(&none, &form, &marked));
	marked_text_release(&marked);
	static const char *const wrong[] = {"", "a", "a,b,c", "a,b,c,d,e", "a,b,a,b", "a,,c,d", "a,b b,c,d", "a,b,c,"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_error(ERR_USAGE, "not the markers of two mentions", mention_form_parse(wrong[i], &form));
}

/* Examples of a relation from JSON lines. */
static void read_lines(struct task_state *task, struct task_set *set, const char *lines)
{
	const char *path = test_path("mentions.jsonl");
	bad = (struct bad_records){0};
	*task = (struct task_state){.task = &task_relation, .settings = {.bad = &bad}};
	*set = (struct task_set){.use = TASK_PREDICT};
	assert_ok(file_write(path, lines, strlen(lines)));
	assert_ok(task_read_tables(task, set, &path, 1));
}

static void places_in_json(void **state)
{
	static const struct {
		const char *line, *expected;
	} cases[] = {
		{"{\"text\": \"anna likes bo\", \"h\": {\"pos\": [0, 4]}, \"t\": {\"name\": \"bo\", \"pos\": [11, 13]}}",
		 "{anna} likes (bo)"},
		{"{\"text\": \"ä\xf0\x9f\x98\x80 likes bo\", \"head\": {\"start\": 9, \"end\": 11}, \"tail\": {\"start\": 0, "
		 "\"end\": 2}}",
		 "(ä\xf0\x9f\x98\x80) likes {bo}"},
		{"{\"text\": \"anna likes bo\", \"e1\": [0, 4], \"e2\": [5, 13]}", "{anna} (likes bo)"},
		{"{\"text\": \"anna likes bo\", \"spans\": [[5, 10], [0, 13]]}", "(anna {likes} bo)"},
		{"{\"text\": \"anna likes bo\", \"spans\": [{\"start\": 0, \"end\": 4}, {\"start\": 0, \"end\": 4}]}",
		 "{(anna)} likes bo"},
		{"{\"text\": \"ab\", \"spans\": [[0, 1], [1, 2]]}", "{a}(b)"},
		{"{\"text\": \"anna likes bo\", \"subj_start\": 0, \"subj_end\": 4, \"obj_start\": 11, \"obj_end\": 13}",
		 "{anna} likes (bo)"},
		/* OpenNRE's and TACRED's word positions: an exclusive end, and the last word. */
		{"{\"token\": [\"anna\", \"bell\", \"likes\", \"bo\"], \"h\": {\"pos\": [0, 2]}, \"t\": {\"pos\": [3, 4]}}",
		 "{anna bell} likes (bo)"},
		{"{\"token\": [\"anna\", \"bell\", \"likes\", \"bo\"], \"subj_start\": 3, \"subj_end\": 3, \"obj_start\": 0, "
		 "\"obj_end\": 1}",
		 "(anna bell) likes {bo}"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct task_state task;
		struct task_set set;
		struct marked_text marked = {0};
		read_lines(&task, &set, cases[i].line);
		assert_true(mentions_have_places(&set.examples, 0));
		assert_ok(mentions_mark(&set.examples, 0, mention_form_usual(), &marked));
		expect_marks(&marked, mention_form_usual(), cases[i].expected);
		marked_text_release(&marked);
		task_set_release(&task, &set);
	}
}

static void places_beyond_the_text(void **state)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{"{\"text\": \"ab\", \"e1\": [0, 3], \"e2\": [0, 1]}",
		 "from 0 to 3 is not part of the text, which has 2 characters"},
		{"{\"text\": \"ab\", \"e1\": [1, 1], \"e2\": [0, 1]}", "from 1 to 1 is not part"},
		{"{\"text\": \"ab\", \"e1\": [-1, 1], \"e2\": [0, 1]}", "from -1 to 1 is not part"},
		{"{\"token\": [\"ab\"], \"e1\": [0, 1], \"e2\": [0, 2]}",
		 "from 0 to 2 is not part of the text, which has 1 words"},
		{"{\"token\": [\"ab\", 3], \"e1\": [0, 1], \"e2\": [0, 2]}", "holds something other than a string"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct task_state task;
		struct task_set set;
		struct marked_text marked = {0};
		read_lines(&task, &set, cases[i].line);
		assert_error(ERR_DATA, cases[i].message, mentions_mark(&set.examples, 0, mention_form_usual(), &marked));
		assert_non_null(strstr(error_last()->message, "mentions.jsonl', line 1: "));
		marked_text_release(&marked);
		task_set_release(&task, &set);
	}
	struct task_state task;
	struct task_set set;
	read_lines(&task, &set, "{\"text\": \"ab\", \"e1\": [0, 1]}");
	assert_false(mentions_have_places(&set.examples, 0));
	task_set_release(&task, &set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(markers_of_published_files), cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(markers_of_a_person),        cmocka_unit_test(places_in_json),
		cmocka_unit_test(places_beyond_the_text),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
