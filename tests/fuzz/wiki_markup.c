/* Wiki markup to text. */
#include "fuzz.h"
#include "text/wiki/wiki_markup.h"

FUZZ_SEEDS(FUZZ_SEED("'''Cats''' ({{lang-la|felis}}; {{IPA|x}}) are [[animal|animals]].<ref "
		     "name=\"a\">{{cite|b=[[c]]}}</ref>\n"
		     "== Head ==\n* list\n{| class=x\n|-\n| a || b\n|}\n[[File:a.jpg|thumb|A [[b]] c]]\nThe "
		     "end&nbsp;is.\n"),
	   FUZZ_SEED("#REDIRECT [[Cat]]"),
	   FUZZ_SEED("<nowiki>[[a]] {{b}}</nowiki> <!-- c --> [http://d.e f g] -{zh-cn:一;zh-tw:二}-."),
	   FUZZ_SEED("{{convert|5|km|mi}} {{frac|1|2}} <math>x+1</math> __NOTOC__ ( , ) {{{1|}}} "
		     "<table><td>a</table> b."))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct wiki_names names = {"Fails", "", "Kategoreja"};
	static struct wiki_scratch scratch;
	static struct buffer out;
	char *markup = fuzz_copy(bytes, count);

	buffer_clear(&out);
	BUG_IF(wiki_text(markup, count, &names, &scratch, &out) != OK);
	/* Text can grow a little (a ship's name, "e siècle"), never much. */
	BUG_IF(out.size > 8 * count + 64);
	BUG_IF(out.size && out.data[out.size - 1] != '\n');
	free(markup);
	return 0;
}
