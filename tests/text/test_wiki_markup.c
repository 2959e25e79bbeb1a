/* Wiki markup to text: each case is markup and what a reader sees of it, with one paragraph per line. */
#include <time.h>
#include "base/buffer.h"
#include "text/wiki/html_entities.h"
#include "text/wiki/wiki_markup.h"
#include "test.h"

static const struct {
	const char *markup, *text;
} cases[] = {
	/* paragraphs, emphasis, entities */
	{"'''Cats''' are ''small'' '''''animals'''''. It's so.", "Cats are small animals. It's so.\n"},
	{"One line goes\non here.\n\nThe next one is apart.", "One line goes on here.\nThe next one is apart.\n"},
	{"第一行，\n第二行。", "第一行，第二行。\n"},
	{"첫째 줄\n둘째 줄.", "첫째 줄 둘째 줄.\n"},
	{"A&nbsp;b &amp; c &lt;d&gt; &#233;&#xE9; &bogus; end.", "A b & c <d> éé &bogus; end.\n"},
	{"__NOTOC__A word&shy;s end.", "A words end.\n"},
	/* links */
	{"A [[cat]] and [[Dog (animal)|dogs]] and [[cat]]s.", "A cat and dogs and cats.\n"},
	{"See [[:Category:Cats]] and [[#History|above]].", "See Category:Cats and above.\n"},
	{"Text.[[Category:Cats]] [[Категория:Коты]] [[de:Katze]] [[zh-min-nan:Niau]]", "Text.\n"},
	{"[[File:Cat.jpg|thumb|A [[cat]] here.|left]]The cat. [[Bild:X.svg]]", "The cat.\n"},
	{"[[Fails:Cat.jpg|A cat.]]The cat [[Fichier:a.png|b]] is.", "The cat is.\n"},
	{"[[Unknown:picture.JPG|thumb|Words.]]It goes on.", "It goes on.\n"},
	{"A [http://a.b/c site] and [https://d.e] end ([//f.g h] i).", "A site and end (h i).\n"},
	{"[http://a [http://b c] d is odd.", "c d is odd.\n"},
	{"Not [[a link\n\nhere]] at all.", "here]] at all.\n"},
	/* templates */
	{"It is {{convert|5|km|mi}} long, {{lang|fr|mot}} by {{lang-de|Wort}}.{{citation needed|date=x}}",
	 "It is 5 km long, mot by Wort.\n"},
	{"{{Infobox|a={{b|[[c]]}}|d=\n|e=f}}\nThe text is here.", "The text is here.\n"},
	/* numbers: whole, or their sentence is dropped */
	{"It is {{convert|5|to|10|km|mi}} or {{convert|0.5|-|2|m|0}} long.", "It is 5 to 10 km or 0.5–2 m long.\n"},
	{"It is {{convert|5|ft|11|in|m}} by {{convert|10|C|0}} high.", "It is 5 ft 11 in by 10 C high.\n"},
	{"It is {{cvt|20|by|30|x|40|m|ft}}.", "It is 20 by 30 × 40 m.\n"},
	{"It is {{convert|−5|and(-)|6|km}} long. So is {{convert|several|km}} long.",
	 "It is −5 and 6 km long. So is several km long.\n"},
	{"It is {{convert|1//2|mi}} or {{convert|2+1//2|to|3|ft|5//8|in}}.", "It is 1/2 mi or 2+1/2 to 3 ft 5/8 in.\n"},
	{"It is {{convert|5}}. Or {{convert|5|about|10|km}}. Or {{convert||km}}. This stays.", "This stays.\n"},
	{"Une aire de {{unité|8|à|9|km|2}} et {{unité|5}}. Elle a {{unité|8|km|-1}}.", "Une aire de 8 à 9 km² et 5.\n"},
	{"It is {{val|5|u=kg}}, {{val|6|(2)}}. But {{val|1.5|e=9}}. Only {{gaps|1|234|567}} are.",
	 "It is 5 kg, 6. Only 1234567 are.\n"},
	{"It is {{val|7|u=m}}. Is {{val|p=~|7|u=m}}. Is {{val|7|s=%}}. Is {{convert|5|to|about 10|km}}. Is {{convert|5|a|ha}}.",
	 "It is 7 m. Is 5 a.\n"},
	{"Of 5{{e|6}} or 5{{±|1}} or {{duration|1|30}} one. Au XIX{{e}} siècle. Some {{chem|H|2|O}}, {{chem2|CO2}}, {{nts|50}}.",
	 "Au XIXe siècle. Some H2O, CO2, 50.\n"},
	{"Du {{sp-|XV|e|au|XVI|e}} on. It has {{padleft:7|3|0}} and {{spellnum|5}}. This stays.", "This stays.\n"},
	{"Of {{gaps|1|2|3|4|5|6|7|8|9|0}}. It is {{gaps|1|2|3|4|5|6|7|8|9}}.", "It is 123456789.\n"},
	{"About {{frac|2|1|2}}, 3{{frac|1|2}}, {{frac|4}}, {{sfrac|''n''|2}}.", "About 2 1/2, 3 1/2, 1/4, n/2.\n"},
	{"Il y a {{formatnum:6000}} et {{Formatnum: 12.5 |R}} {{uc:habitants}}.", "Il y a 6000 et 12.5 habitants.\n"},
	{"Today ${{Inflation|US|5|1900}}. It has {{ #expr: 1+1 }} parts. It {{#if:a|b}} stays.{{cite|x}}", "It stays.\n"},
	/* apostrophes: MediaWiki's rule for lines where bold and italics stay open */
	{"Dans l'''Encyclopédie'' et '''dans''' l'art.", "Dans l'Encyclopédie et dans l'art.\n"},
	{"The ''Eagle'''s shadow is '''bold''' here.", "The Eagle's shadow is bold here.\n"},
	{"''Both'' stay '''bold'''.", "Both stay bold.\n"},
	{"The {{nowrap|1={{lang|la|a b}} c}} is {{frac|1|2}} and {{circa|1200}}.", "The a b c is 1/2 and c. 1200.\n"},
	{"A {{{parameter|x}}} b {{{{{a}}}|c}} end.", "A b end.\n"},
	{"The cat ({{IPA|x}}; {{lang|la|felis}}) and dog ({{x}}) and （{{x}}，）bird.", "The cat (felis) and dog and bird.\n"},
	{"Unclosed {{template is text here.", "Unclosed {{template is text here.\n"},
	{"{{quote|Words of the wise.}}", "Words of the wise.\n"},
	/* tags */
	{"A<ref name=\"x\">b {{c}} [[d]]</ref> e<ref name=x /> f<ref>g</ref>.", "A e f.\n"},
	{"A<!-- b\n\nc --> d <nowiki>[[e]] '''f'''</nowiki> g<br/>h.", "A d [[e]] '''f''' g h.\n"},
	{"If a < b and c > d then <small>so</small>.", "If a < b and c > d then so.\n"},
	{"Let <math>x</math> be. So <math>\\frac{a}{b}</math> holds. Then this.", "Let x be. Then this.\n"},
	{"<gallery>\nA.jpg|b\n</gallery>\n<div>Text is here.</div><table><tr><td>A cell.</td></tr></table>", "Text is here.\n"},
	{"Never closed <ref>goes on.", "Never closed goes on.\n"},
	/* markup that is not running text */
	{"== Head ==\nText.\n* item one.\n# item two.\n: indented.\n; term\n----\n", "Text.\n"},
	{"{| class=\"x\"\n! head\n|-\n| A cell. || {{b}}\n{|\n| inner.\n|}\n|}\nAfter it.", "After it.\n"},
	{"These are known facts. They include:\n* one\n* two\n\nThe end.", "These are known facts.\nThe end.\n"},
	{"Alone it has no full stop", ""},
	{"#REDIRECT [[Cat]]", ""},
	{"#перенаправление [[Кот]]", ""},
	/* Chinese variants */
	{"用-{zh-hans:计算机; zh-hant:電腦}-和-{网络}-。-{H|zh-cn:甲;zh-tw:乙}-", "用计算机和网络。\n"},
	{"", ""},
};

static void convert(const char *markup, size_t size, struct buffer *out)
{
	static const struct wiki_names names = {"Fails", "", "Kategoreja"};
	struct wiki_scratch scratch = {0};
	buffer_clear(out);
	assert_ok(wiki_text(markup, size, &names, &scratch, out));
	wiki_scratch_release(&scratch);
}

static void test_cases(void **state)
{
	struct buffer out = {0};
	int wrong = 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		convert(cases[i].markup, strlen(cases[i].markup), &out);
		if (strcmp(buffer_string(&out), cases[i].text) != 0) {
			print_error("markup   %s\nexpected %s\n     got %s\n", cases[i].markup, cases[i].text,
				    buffer_string(&out));
			wrong++;
		}
	}
	buffer_release(&out);
	assert_int_equal(wrong, 0);
}

/* Markup that would take forever if anything were searched twice. */
static void test_time_is_linear(void **state)
{
	static const char *const pieces[] = {"{{",         "[[",       "{{a|",     "[[a|",    "{|\n", "<ref>", "<!--",
					     "[http://a ", "-{",       "}}",       "]]",      "{{{",  "'''",   "<table>",
					     "&",          "{{a|b=[[", "<nowiki>", "\n{|\n|", "(",    "-{a|"};
	struct buffer markup = {0}, out = {0};
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		buffer_clear(&markup);
		while (markup.size < 1 << 20)
			buffer_text(&markup, pieces[i]);
		clock_t start = clock();
		convert(markup.data, markup.size, &out);
		double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
		if (seconds > 10) /* linear: a few hundredths of a second; with sanitizers, a second */
			fail_msg("a megabyte of '%s' took %.1f s", pieces[i], seconds);
	}
	buffer_release(&markup);
	buffer_release(&out);
}

static void test_entities(void **state)
{
	uint32_t c;
	assert_int_equal(html_entity("&amp;", 5, &c), 5);
	assert_int_equal(c, '&');
	assert_int_equal(html_entity("&thetasym;", 10, &c), 10);
	assert_int_equal(c, 977);
	assert_int_equal(html_entity("&#65;", 5, &c), 5);
	assert_int_equal(c, 'A');
	assert_int_equal(html_entity("&#x1F600;", 9, &c), 9);
	assert_int_equal(c, 0x1F600);
	assert_int_equal(html_entity("&#xD800;", 8, &c), 8);
	assert_int_equal(c, 0xFFFD);
	static const char *const none[] = {"&", "&;", "&#;", "&#x;", "&amp", "&ampere;", "&#x110000000;", "&#6a;", "&no;"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_int_equal(html_entity(none[i], strlen(none[i]), &c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_time_is_linear),
		cmocka_unit_test(test_entities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
