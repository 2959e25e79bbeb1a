/* The words that decide about a period: abbreviations by kind, words that start sentences, and words that follow numbers. */
#include "text/sentence_words.h"

#include <string.h>

/* An entry in lower case also matches its capitalized form; one with capitals matches only as it is. No entry is a word
 * that commonly ends English sentences. */
static const struct {
	enum abbreviation kind;
	const char *words; /* each with a space on both sides */
} abbreviations[] = {
	{ABBREVIATION_NEVER,
	 " mr mrs ms dr messrs mme mlle prof Profs St Sts Gen Col Lt Capt Cpl Sgt Maj Adm Cdr Cmdr Pfc Spc Rev "
	 "Revd Fr Hon Gov Govs Sen Sens Rep Reps Supt Insp Mt Ft vs viz cf ca approx resp incl esp "
	 "Genl Brig Pvt Mgr Msgr Pres Amb v "
	 /* German */
	 "bzw evtl ggf inkl exkl zzgl sog bspw vgl geb gest allg kath evang griech röm jur phil Dipl Ing Mio Mrd Tsd Hr Frl "
	 "Str Bd Jh Jhd "
	 /* Spanish, Portuguese, Italian, French */
	 "Sr Sra Srta Sres Sras Dra Lic Ud Uds Avda Gral Cnel Admón Núm núm párr págs Exmo Exma Ltda sig sigg Sig Sigg dott "
	 "Dott avv geom pag Mmes Mlles éd env "
	 /* Dutch, Polish, Czech, Scandinavian */
	 "dhr mevr bijv blz np tzn tzw ul św mgr inż hab godz wyd např tj tzv č str kl bl "
	 /* Russian, Ukrainian */
	 "г гг ул проф акад см рис стр тыс млн млрд руб коп пгт обл просп пр пер д кв ст н э вв др Проф Акад "},
	{ABBREVIATION_NUMBER, " no nos fig figs vol vols pp p pg ch chap chaps sec sect eq eqs eqn eqns art arts ref "
			      "refs tab par para pt pts bk cap op suppl ext app nr n Abb Kap Abs Nr "},
	{ABBREVIATION_MAYBE, " etc al inc ltd Co corp Bros Jr Sr Esq Jan Feb Mar Apr Jun Jul Aug Sept Sep Oct Nov Dec "
			     "Mon Tue Tues Wed Thu Thur Thurs Fri Ave Blvd Rd dept univ assn ed eds trans est PhD Phd MD BC AD "
			     "sp spp subsp var cv ssp ibid seq "},
	{ABBREVIATION_STATE, " Ala Ariz Ark Calif Colo Conn Del Fla Ga Ind Kan Ky Md Mich Minn Miss Mo Mont Neb Nev "
			     "Okla Ore Pa Penn Tenn Tex Va Vt Wash Wis Wyo "},
};

/* Words, in lower case, that start sentences far more often than they follow an abbreviation or an initial. */
static const char sentence_starters[] =
	" a about after all also although an and another any are as at be because before both but by can "
	"could did "
	"do does during each even every few finally first for from further furthermore given had has have he "
	"hence "
	"her here his how however i if in indeed instead is it its let many more moreover most my neither "
	"never "
	"nevertheless next no nor not nothing now of on once one only or other others our over perhaps "
	"several she "
	"should similarly since so some soon still such that the their then there therefore these they this "
	"those "
	"though through thus to today together two under unfortunately unless until was we were what "
	"whatever when "
	"where whereas whether which while who whose why will with within without would yes yet you your ";

/* Words that follow a German ordinal number. */
static const char ordinal_nouns[] = " januar jänner jän februar märz april mai juni juli august september oktober november "
				    "dezember jahrhundert jahrhunderts jh jhd ";

/* Words of at most three letters that end English sentences; others that short, before a number, are abbreviations in some
 * language. */
static const char short_words[] =
	" act add age ago aid aim air all art ask bad bag bar bay bed big bit box boy bus but buy bye can car cat cup cut day "
	"did die do dog dry due ear eat egg end era eye far fat few fit fly for fun gap gas get go god got gun guy had hat her "
	"hey hi him his hit hot how ice if ill in is it its job joy key kid lab law lay leg let lie log lot low man map may me "
	"men met mix my net new not now off oil ok old on one our out own pay pen pet plan put raw red rid row run sad sat say "
	"sea see set sex she shy sir sit six sky so son sum sun tax tea ten the them tie tip to too top toy try two up us use "
	"war was way web wet who why win won yes yet you zoo ";

/* True if `word` is one of the words of `list`, each of which has a space on both sides. */
static bool list_has(const char *list, const char *word, size_t size)
{
	char pattern[SENTENCE_WORD_BYTES + 3];

	if (size == 0 || size > SENTENCE_WORD_BYTES)
		return false;
	pattern[0] = ' ';
	memcpy(pattern + 1, word, size);
	pattern[size + 1] = ' ';
	pattern[size + 2] = '\0';
	return strstr(list, pattern) != NULL;
}

static char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

enum abbreviation sentence_abbreviation(const char *word, size_t size)
{
	char lower[SENTENCE_WORD_BYTES], title[SENTENCE_WORD_BYTES];
	bool capitals = size > 1;

	if (size > SENTENCE_WORD_BYTES)
		return ABBREVIATION_NONE;
	for (size_t i = 0; i < size; i++) {
		capitals = capitals && word[i] >= 'A' && word[i] <= 'Z';
		lower[i] = i == 0 || capitals ? ascii_lower(word[i]) : word[i];
		title[i] = i == 0 ? word[i] : ascii_lower(word[i]);
	}
	for (size_t k = 0; k < sizeof abbreviations / sizeof *abbreviations; k++) {
		const char *list = abbreviations[k].words;
		if (list_has(list, word, size) || list_has(list, lower, size) || (capitals && list_has(list, title, size)))
			return abbreviations[k].kind;
	}
	return ABBREVIATION_NONE;
}

/* True if the word is in a list of lower-case words, whatever its own case. */
static bool has_lower(const char *list, const char *word, size_t size)
{
	char lower[SENTENCE_WORD_BYTES];
	if (size > SENTENCE_WORD_BYTES)
		return false;
	for (size_t i = 0; i < size; i++)
		lower[i] = ascii_lower(word[i]);
	return list_has(list, lower, size);
}

bool sentence_starter(const char *word, size_t size)
{
	return has_lower(sentence_starters, word, size);
}

bool sentence_ordinal_noun(const char *word, size_t size)
{
	return has_lower(ordinal_nouns, word, size);
}

bool sentence_short_word(const char *word, size_t size)
{
	return list_has(short_words, word, size);
}

bool sentence_dose_word(const char *word, size_t size)
{
	return list_has(" i.v i.p i.m s.c p.o i.c.v i.t i.n b.i.d t.i.d q.i.d q.d p.r.n ", word, size);
}
