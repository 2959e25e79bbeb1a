/* Sentence boundaries: each case is a text with '|' where a sentence must end; there must be no other boundary. */
#include <time.h>
#include "base/buffer.h"
#include "text/sentences.h"
#include "test.h"

static const char *const cases[] = {
	/* plain sentences, all marks, all ends */
	"One. |Two! |Three? |Four",
	"Hello!!! |What?! |Well... |Then",
	"He came.\t |She left. \n |It rained",
	"Über alles. |Élan. |Zwei",
	/* quotes and brackets that close a sentence are part of it */
	"\"Come in.\" |He sat (on a chair.) |They left.) |Done",
	"“Yes.” |‘No!’ |«Oui.» |End",
	"\"Where are you?\" he asked. |\"Here!\" she said. |\"Come.\" |So he came",
	/* abbreviations that never end a sentence */
	"Mr. Smith and Mrs. Jones met Dr. Brown and Prof. Black at St. John's. |Gen. Lee came",
	"MR. SMITH met DR. JONES. |He smiled",
	"Some, e.g. Peter, i.e. The one, differ, cf. Smith. |Roe v. Wade vs. Others. |Done",
	/* with and without a number */
	"See Fig. 3 and Figs. S1 to S4, Vol. II, pp. 12-14, No. 5 and Eq. (3). |Then go",
	"Did he? |No. |He did not. |No. |I know",
	"In Sec. IV we say. |It is so",
	/* abbreviations that may end a sentence */
	"At 5 p.m. Monday in the U.S. Army of Smith Inc. Ltd. people",
	"He lives in the U.S. |The law. |Up at 5 a.m. |However late, etc. |But no",
	"Smith et al. (1999) say. |So do Jones et al. |They agree",
	"They met in Hartford, Conn. |Police came to Carson, Calif. 90745 and to Ardmore, Okla., with Wash. Irving. |End",
	"On Jan. 5 and Sept. 11. |In Dec. |The end",
	/* initials and single letters */
	"J. R. R. Tolkien met John F. Kennedy. |George W. Bush left",
	"Take vitamin C. |The rest is (vitamin D). |Then go",
	/* numbers, addresses, lists */
	"Pi is 3.14 and e is 2.71. |It cost $5. |In 1999. |We left",
	"Visit www.example.com or a.b@c.org. |The site",
	"1. The first. |2. The second",
	"IV. The Return. |(B) More",
	"A. The first part. |It is long",
	"2.3. Results are good. |They are",
	/* lower case continues the sentence, except in texts without upper case */
	"He said hm. and left... or so. |But no",
	"i went home. |he did too. |e.g. that one. |ok",
	/* notes attached to the mark */
	"the training data.2 |Specifically, cells.[12, 13] |We saw.3,4 |It is",
	/* ellipses and spaced marks */
	"Well . . . and then . . . he went . |So",
	"word , word . |The next @.@ thing . |End",
	"Wait… |What? |No… not yet",
	/* Chinese, Japanese */
	"你好。|今天天气很好！|是吗？|甲；|乙",
	"他说：“你好！”|然后走了。|「好。」|『啊？』|完",
	"“走吧！”，他说。|看《为什么？》这本书。|（甲；乙）好",
	"等等……好吗？|真的。。。|好",
	"准确率.|结果是3.5倍.|对(P<0.05).|结论,见file.txt好!|是",
	"第1.节不分。|１．分",
	"今日は。|元気？|はい｡|終",
	/* other scripts */
	"यह वाक्य है। |दूसरा॥ |तीसरा",
	"هل أنت بخير؟ |نعم۔ |اهلا",
	"Բարեւ։ |Այո",
	"ሰላም። |እሺ",
	"Это так. |Это тоже. это дальше. |Да",
	"¿Qué? |¡Sí! |¿Cómo",
	/* quotes that open elsewhere close at a mark; French spaces */
	"„Komm mit.“ |Er ging. |»Nein.« |„Warum?“ fragte sie. |‚Gut.‘ |Ende",
	"Elle dit : « C’est bon. » |Puis « Quoi ? » |Il rit : « Non. », dit-on. |Fin",
	"Er rief. |»Wer da?« |Stille",
	/* abbreviations and numbers of other languages */
	"Am 3. Mai kam Dr. Kern bzw. Frau Prof. Lang in die Weber Str. 5 an. |So war es",
	"Vgl. Abb. 3 und Bd. IV, z. B. Seite 9. |Etwa 5 Mio. Menschen. |Ja",
	"El Sr. Vega y la Srta. Luz fueron con el Lic. Mora. |Hoy no",
	"Pan Kowal mieszka przy ul. Leśnej w woj. śląskim. |Koniec",
	"Он жил на ул. Лесной в г. Орле, см. рис. 4. |А. И. Петров и проф. Седов. |Конец",
	/* a number begins a sentence after a short word, but continues it after an abbreviation */
	"It was hot. |30 degrees. |We let him in. |12 came too. |See c. 650 and ca. 20",
	"This is one. |2. And that is two. |3. Last",
	"She gave 10 mg i.p.; 48 h later Pfc. Dale of Miller/J.D. Ross left. |Then",
	"They got 5 mg/kg i.v. |Blood was drawn at 6 p.m. Monday. |Others i.p. MK-801. |End",
	"他走了。|“好吗？”|她问。",
	/* text without a proper sentence */
	"... Then",
	"* * *",
};

struct sink {
	const char *text;
	struct buffer joined;
	size_t last;
};

static enum status emit(void *context, size_t begin, size_t end)
{
	struct sink *sink = context;
	assert_true(begin >= sink->last && begin < end);
	/* Only white space lies between sentences. */
	for (size_t at = sink->last; at < begin; at++)
		assert_non_null(strchr(" \t\n", sink->text[at]));
	if (sink->last > 0)
		buffer_char(&sink->joined, '|');
	buffer_append(&sink->joined, sink->text + begin, end - begin);
	sink->last = end;
	return OK;
}

static void test_cases(void **state)
{
	int wrong = 0;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buffer text = {0}, expected = {0};
		struct sink sink = {0};
		/* The expected sentences are the parts between '|', trimmed. */
		for (const char *c = cases[i]; *c; c++) {
			if (*c != '|')
				buffer_char(&text, *c);
			while (*c == '|' && expected.size && strchr(" \t\n", expected.data[expected.size - 1]))
				expected.size--;
			buffer_char(&expected, *c);
		}
		sink.text = buffer_string(&text);
		assert_int_equal(sentences_split(text.data, text.size, emit, &sink), OK);
		if (strcmp(buffer_string(&sink.joined), buffer_string(&expected)) != 0) {
			print_error("expected %s\n     got %s\n", buffer_string(&expected), buffer_string(&sink.joined));
			wrong++;
		}
		buffer_release(&text);
		buffer_release(&expected);
		buffer_release(&sink.joined);
	}
	assert_int_equal(wrong, 0);
}

static enum status count(void *context, size_t begin, size_t end)
{
	assert_true(begin < end);
	++*(int *)context;
	return OK;
}

static void test_nothing_and_noise(void **state)
{
	int found = 0;
	assert_int_equal(sentences_split("", 0, count, &found), OK);
	assert_int_equal(sentences_split(" \n\t\xe3\x80\x80 ", 7, count, &found), OK);
	assert_int_equal(found, 0);

	/* Arbitrary bytes: each one is in at most one sentence, and nothing is read beyond the end. */
	uint32_t random = 1;
	char *noise = test_malloc(200);
	for (int round = 0; round < 20000; round++) {
		static const char marks[] = ".!?; \"')]\xe3\x80\x82\xff\xef\xbc\x9b(aA1e";
		size_t size = (size_t)(round % 200);
		for (size_t i = 0; i < size; i++) {
			random = random * 1664525 + 1013904223;
			noise[i] = marks[(random >> 16) % (sizeof marks - 1)];
		}
		assert_int_equal(sentences_split(noise, size, count, &found), OK);
	}
	test_free(noise);
}

static enum status refuse(void *context, size_t begin, size_t end)
{
	(void)context;
	(void)begin;
	(void)end;
	return error_set(ERR_RESOURCE, "enough");
}

static void test_emit_can_stop(void **state)
{
	assert_int_equal(sentences_split("One. Two.", 9, refuse, NULL), ERR_RESOURCE);
}

/* A line of brackets, then of initials, none of which ends the sentence. */
static void test_time_is_linear(void **state)
{
	struct buffer text = {0};
	int found = 0;
	(void)state;
	for (int i = 0; i < 200000; i++)
		buffer_char(&text, '(');
	for (int i = 0; i < 50000; i++)
		buffer_text(&text, "A. ");
	clock_t began = clock();
	assert_ok(sentences_split(text.data, text.size, count, &found));
	assert_true(clock() - began < CLOCKS_PER_SEC);
	assert_int_equal(found, 1);
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_nothing_and_noise),
		cmocka_unit_test(test_emit_can_stop),
		cmocka_unit_test(test_time_is_linear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
