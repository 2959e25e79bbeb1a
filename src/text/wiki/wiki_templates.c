/* Templates that stand for words of a sentence, in the wikis of several languages. All others (boxes,
 * references, notes to editors) are dropped. */
#include <stdbool.h>
#include <string.h>
#include "text/wiki/wiki_markup.h"

/* Names in lower case; '*' at the end of a name stands for any ending. In a pattern, $1 is the first argument; a
 * part in [ ] is left out if the first argument in it is missing. Some are functions of wiki_numbers.c instead. */
static const struct {
	const char *names; /* separated by '/' */
	const char *pattern;
} templates[] = {
	/* the argument is the text */
	{"nowrap/nobr/no "
	 "wrap/j/small/smaller/big/larger/em/strong/abbr/tooltip/mvar/math/var/sup/sub/sc/smallcaps/sc1/"
	 "unicode/polytonic/script/hebrew/vanchor/visible anchor/angbr/as "
	 "written/typo/nihongo/nihongo2/nihongo3/"
	 "ill/interlanguage link/illm/link-interwiki/quote/blockquote/cquote/quotation/zitat/cita/quote box2/"
	 "flag/flagcountry/flagu/transl2/not a typo/proper name/linktext/wikt-lang/zhs/zht/zh-hans/zh-hant/"
	 "仮リンク/link-en/link-de/link-fr/link-ru/link-ja/le/illj/нп/нп2/нп3/нп4/нп5/не переведено/"
	 "internal link "
	 "helper*/lang-*/langue-*/ens/las/grcs/els/frs/des/its/ess/rus/jas/zhs2/ars/hes/lien/ruby-zh-b/kana/"
	 "underline/uline/midsize/resize2",
	 "$1"},
	{"lang/langue/transl/transliteration/color/font color/colour/script2/resize/langx/lingua", "$2"},
	{"tsl", "$3"},
	/* numbers and units */
	{"convert/cvt", WIKI_CONVERT},
	{"unité/unidad/число/num", WIKI_MEASURE},
	{"val", WIKI_VALUE},
	{"formatnum/nombre/nts/chem2", "$1"},
	{"e", "e[" WIKI_HOLE "$1]"}, /* French XIX{{e}}; English 5{{e|6}} */
	{"gaps/chem", "$1$2$3$4$5$6$7$8$9"},
	{"frac/fraction/sfrac", WIKI_FRACTION},
	/* numbers and amounts that cannot be computed here */
	{"inflation*/pop density/height/age/age in */ordinal/rnd/esp/x10^/ftin/auto mi/auto ft/percentage/percent/pct/"
	 "aud/a$/au$/cad/c$/ca$/nzd/nz$/sgd/s$/hkd/hk$/twd/nt$/chf/sek/nok/dkk/rub/cny/rmb/cn¥/krw/₩/zar/mxn/brl/r$/php/₱/"
	 "krwconvert/to usd/to eur/currency/dm/itl/frf/km to mi/mi to km/ft to m/m to ft/km2 to mi2/s2/s2-/-s/-s-/höhe/"
	 "sp-/sp/heure/tmp/rom/rom-maj/10^/±/+-/su/number to word/numtext/spellnum/ordinal to word/roman/radic/sqrt/"
	 "duration/ratio/track gauge/railgauge/deg/degree/ft in/frac2/half/sigfig/round/inrconvert/us dollar/£sd/lira/"
	 "fmtn/liczba/numberofarticles/numberofusers/currentyear/currentday/"
	 "padleft:/padright:/#expr:/#time:/#timel:/#ifexpr:/plural:",
	 WIKI_HOLE},
	/* functions of the parser */
	{"formatnum:/lc:/uc:/lcfirst:/ucfirst:/#formatdate:/#dateformat:", "$1"},
	{"usd/us$", "US$$1"},
	{"gbp/£", "£$1"},
	{"eur/euro/€", "€$1"},
	{"inr/indian rupee/₹", "₹$1"},
	{"jpy/¥", "¥$1"},
	{"pi", "π"},
	/* time */
	{"circa/c./ca", "c. [$1][–$2]"},
	{"reign", "r. $1[–$2]"},
	{"as of", "As of $1"},
	{"bd", "$1[$2][－$3][$4]"},
	{"s/s-/siècle", "$1e siècle"},
	{"1er", "1er"},
	{"date/date-", "$1[ $2][ $3]"},
	/* ships */
	{"uss", "USS $1"},
	{"hms", "HMS $1"},
	{"hmas", "HMAS $1"},
	{"hmcs", "HMCS $1"},
	{"rms", "RMS $1"},
	{"sms", "SMS $1"},
	{"ss", "SS $1"},
	{"mv", "MV $1"},
	{"ship/sclass/sclass2", "$1 $2"},
	/* characters */
	{"ndash/en dash/–", "–"},
	{"mdash/em dash/—", "—"},
	{"snd/spnd/spaced ndash/spaced en dash/snds", " – "},
	{"spaced mdash/smd", " — "},
	{"'", "'"},
	{"'s", "'s"},
	{"-'", "'"},
	{"!", "|"},
	{"=", "="},
	{"nbsp/space/spaces/clear space/thinsp/thin space", " "},
	{"okina/'okina", "ʻ"},
	{"ayin", "ʿ"},
	{"hamza", "ʾ"},
	{"dot/·/bullet/•", " · "},
	{"sharp", "♯"},
	{"flat", "♭"},
	{"ellipsis/...", "…"},
};

/* The form in which names are compared: without surrounding space, in lower case (ASCII), with ' ' for '_'. */
static size_t normalize(const char *name, size_t size, char out[64])
{
	while (size && strchr(" \t\n\r", *name) && *name) {
		name++;
		size--;
	}
	while (size && strchr(" \t\n\r", name[size - 1]) && name[size - 1])
		size--;
	if (size == 0 || size >= 64)
		return 0;
	for (size_t i = 0; i < size; i++)
		out[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i] == '_' ? ' ' : name[i];
	return size;
}

/* True if `name` is one of `names`. One with '*' matches any name that begins with it. */
static bool list_has(const char *names, const char *name, size_t size)
{
	while (*names) {
		size_t length = strcspn(names, "/");
		if (length > 0 && names[length - 1] == '*') {
			if (size >= length - 1 && memcmp(names, name, length - 1) == 0)
				return true;
		} else if (length == size && memcmp(names, name, size) == 0) {
			return true;
		}
		names += length + (names[length] == '/');
	}
	return false;
}

const char *wiki_template_pattern(const char *name, size_t size)
{
	char normal[64];

	size = normalize(name, size, normal);
	if (size == 0)
		return NULL;
	for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
		if (list_has(templates[i].names, normal, size))
			return templates[i].pattern;
	return NULL;
}
