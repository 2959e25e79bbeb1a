/* Tagging schemes: recognizing the scheme, its entities, and conversion between schemes. Entities and conversions have
 * been compared with seqeval's get_entities on random tags; the cases here are those that tell its rules apart. */
#include "tasks/tagging/tags.h"
#include "test.h"

#define WORDS_MAX 32

/* Splits "B-X O / I-X" into sentences. */
static int64_t split(const char *text, char buffer[512], const char *tags[WORDS_MAX], int64_t starts[WORDS_MAX],
		     int64_t *out_sentences)
{
	int64_t count = 0, sentences = 0;
	snprintf(buffer, 512, "%s", text);
	starts[0] = 0;
	for (char *at = buffer, *end; *at; at = end) {
		end = at + strcspn(at, " ");
		if (*end)
			*end++ = '\0';
		if (strcmp(at, "/") == 0)
			starts[++sentences] = count;
		else
			tags[count++] = at;
	}
	starts[++sentences] = count;
	*out_sentences = sentences;
	return count;
}

static enum status detect(const char *text, struct tag_facts *facts, int64_t *bad)
{
	char buffer[512];
	const char *tags[WORDS_MAX];
	int64_t starts[WORDS_MAX], sentences;
	split(text, buffer, tags, starts, &sentences);
	return tags_detect(tags, starts, sentences, facts, bad);
}

static void schemes_are_detected(void **state)
{
	static const struct {
		const char *tags;
		enum tag_scheme scheme;
		int64_t entities, irregular, first_irregular;
	} cases[] = {
		{"I-X I-X O I-Y", TAGS_IO, 2, 0, -1},
		{"I-X B-X O I-Y I-Y", TAGS_IOB1, 3, 0, -1},
		{"B-X I-X O B-Y / B-X B-X", TAGS_IOB2, 4, 0, -1},
		{"B-X O B-Y", TAGS_IOB2, 2, 0, -1},
		{"B-X I-X O B-Y / I-X O B-X", TAGS_IOB2, 4, 1, 4},
		{"I-X O I-X O B-Y I-Y", TAGS_IOB1, 3, 1, 4},
		{"S-X O B-X E-X B-Y I-Y E-Y", TAGS_BIOES, 3, 0, -1},
		{"B-X E-X", TAGS_BIOES, 1, 0, -1},
		{"S-X O I-X", TAGS_BIOES, 2, 1, 2},
		{"B-X O B-X E-X", TAGS_BIOES, 2, 1, 0},
		{"B-X E-X I-X O", TAGS_BIOES, 2, 1, 2},
		{"U-X O B-X L-X B-Y I-Y L-Y", TAGS_BILOU, 3, 0, -1},
		{"U-X U-X B-X L-X U-X", TAGS_BILOU, 4, 0, -1},
		{"B-X M-X E-X S-Y O", TAGS_BMES, 2, 0, -1},
		{"B_X I_X O B_Y", TAGS_IOB2, 2, 0, -1},
		{"B I O B", TAGS_IOB2, 2, 0, -1},
		{"I O I I", TAGS_IO, 2, 0, -1},
		{"NN VB S NN", TAGS_PLAIN, 0, 0, -1},
		{"O O", TAGS_PLAIN, 0, 0, -1},
		{"B-LOC-OLD I-LOC-OLD", TAGS_IOB2, 1, 0, -1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tag_facts facts;
		int64_t bad;
		assert_ok(detect(cases[i].tags, &facts, &bad));
		if (facts.form.scheme != cases[i].scheme || facts.entities != cases[i].entities ||
		    facts.irregular != cases[i].irregular || facts.first_irregular != cases[i].first_irregular)
			fail_msg("%s: %s, %lld entities, %lld irregular, first %lld", cases[i].tags,
				 tag_scheme_name(facts.form.scheme), (long long)facts.entities, (long long)facts.irregular,
				 (long long)facts.first_irregular);
	}
}

static void schemes_have_names(void **state)
{
	enum tag_scheme scheme;
	for (int i = TAGS_PLAIN; i <= TAGS_BMES; i++) {
		assert_true(tag_scheme_find(tag_scheme_name((enum tag_scheme)i), &scheme));
		assert_int_equal(scheme, i);
	}
	assert_false(tag_scheme_find("IOB", &scheme));
}

static void mixtures_are_refused(void **state)
{
	struct tag_facts facts;
	int64_t bad;
	assert_error(ERR_DATA, "the tag 'PER' has no prefix of IOB2", detect("B-X I-X O B-X PER", &facts, &bad));
	assert_int_equal(bad, 4);
	assert_error(ERR_DATA, "the tag 'B_X' has no prefix of IOB2", detect("B-X I-X O B-X B_X", &facts, &bad));
	assert_error(ERR_DATA, "BILOU (L-, U-) and of BIOES", detect("B-X L-X S-X", &facts, &bad));
	assert_error(ERR_DATA, "BMES (M-) and of BIOES (I-)", detect("B-X M-X I-X E-X", &facts, &bad));
}

/* Reads tags of one scheme and writes them in another. */
static void expect_converted(const char *from, enum tag_scheme scheme, enum tag_scheme to, const char *expected)
{
	char buffer[512];
	const char *texts[WORDS_MAX];
	int64_t starts[WORDS_MAX], sentences, count = split(from, buffer, texts, starts, &sentences);
	struct tag tags[WORDS_MAX];
	struct buffer got = {0};
	for (int64_t i = 0; i < count; i++)
		assert_true(tag_parse(texts[i], (struct tag_form){scheme, '-'}, &tags[i]));
	tags_convert(tags, count, to, tags);
	for (int64_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_char(&got, ' ');
		tag_write(&got, tags[i], (struct tag_form){to, '-'});
	}
	assert_string_equal(buffer_string(&got), expected);
	buffer_release(&got);
}

static void one_scheme_becomes_another(void **state)
{
	static const struct {
		enum tag_scheme scheme;
		const char *tags;
	} same[] = {
		/* Three entities: two X that touch, of two words and one, then Y of three; after a gap X of one. */
		{TAGS_IOB1, "I-X I-X B-X I-Y I-Y I-Y O I-X"},  {TAGS_IOB2, "B-X I-X B-X B-Y I-Y I-Y O B-X"},
		{TAGS_BIOES, "B-X E-X S-X B-Y I-Y E-Y O S-X"}, {TAGS_BILOU, "B-X L-X U-X B-Y I-Y L-Y O U-X"},
		{TAGS_BMES, "B-X E-X S-X B-Y M-Y E-Y O S-X"},
	};
	enum { SCHEMES = sizeof same / sizeof *same };
	for (int from = 0; from < SCHEMES; from++) {
		for (int to = 0; to < SCHEMES; to++)
			expect_converted(same[from].tags, same[from].scheme, same[to].scheme, same[to].tags);
		/* IO cannot separate entities that touch. */
		expect_converted(same[from].tags, same[from].scheme, TAGS_IO, "I-X I-X I-X I-Y I-Y I-Y O I-X");
	}
	expect_converted("I-X I-X I-Y O I-X", TAGS_IO, TAGS_IOB2, "B-X I-X B-Y O B-X");
	expect_converted("I-X O I-Y I-X", TAGS_IOB2, TAGS_IOB2, "B-X O B-Y B-X"); /* an entity without a beginning gets one */
	expect_converted("B-X I-Y E-Y I-Y", TAGS_BIOES, TAGS_BIOES, "S-X B-Y E-Y S-Y");
	expect_converted("B I O B B", TAGS_IOB2, TAGS_BIOES, "B E O S S");
}

static void entities_are_seqevals(void **state)
{
	static const struct {
		enum tag_scheme scheme;
		const char *tags, *entities;
	} cases[] = {
		{TAGS_IOB2, "B-X I-X O B-Y", "X0-2 Y3-4"},
		{TAGS_IOB2, "I-X I-Y O I-X", "X0-1 Y1-2 X3-4"},
		{TAGS_IOB2, "B-X B-X I-X I-Y", "X0-1 X1-3 Y3-4"},
		{TAGS_BIOES, "B-X E-X E-X S-X I-X", "X0-2 X2-3 X3-4 X4-5"},
		{TAGS_BIOES, "B-X I-X O E-X", "X0-2 X3-4"},
		{TAGS_IOB1, "I-X B-X I-X", "X0-1 X1-3"},
		{TAGS_BILOU, "U-X U-X B-X L-X L-X", "X0-1 X1-2 X2-4 X4-5"},
		{TAGS_IOB2, "O O", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char buffer[512];
		const char *texts[WORDS_MAX];
		int64_t starts[WORDS_MAX], sentences, count = split(cases[i].tags, buffer, texts, starts, &sentences);
		struct tag tags[WORDS_MAX];
		struct tag_entity entities[WORDS_MAX];
		struct buffer got = {0};
		for (int64_t t = 0; t < count; t++)
			assert_true(tag_parse(texts[t], (struct tag_form){cases[i].scheme, '-'}, &tags[t]));
		int64_t found = tags_entities(tags, count, entities);
		for (int64_t e = 0; e < found; e++)
			buffer_format(&got, "%s%s%lld-%lld", e ? " " : "", entities[e].type, (long long)entities[e].start,
				      (long long)entities[e].end);
		assert_string_equal(buffer_string(&got), cases[i].entities);
		buffer_release(&got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schemes_are_detected),  cmocka_unit_test(schemes_have_names),
		cmocka_unit_test(mixtures_are_refused),  cmocka_unit_test(one_scheme_becomes_another),
		cmocka_unit_test(entities_are_seqevals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
