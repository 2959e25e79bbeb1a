/* Numbers, units and fractions of templates, as Wikipedia's own code lays them out; converted values are left out. */
#include "text/wiki/wiki_numbers.h"

#include <string.h>
#include <strings.h>
#include "text/wiki/wiki_markup.h"

/* What has been laid out so far. */
struct layout {
	const struct wiki_piece *arguments;
	int count, shown;
	struct wiki_piece *out;
};

static struct wiki_piece trimmed(struct wiki_piece piece)
{
	while (piece.size > 0 && strchr(" \t\n", *piece.text)) {
		piece.text++;
		piece.size--;
	}
	while (piece.size > 0 && strchr(" \t\n", piece.text[piece.size - 1]))
		piece.size--;
	return piece;
}

static bool is_empty(const struct layout *layout, int argument)
{
	return argument >= layout->count || trimmed(layout->arguments[argument]).size == 0;
}

static bool is_number(const struct layout *layout, int argument)
{
	if (is_empty(layout, argument))
		return false;
	struct wiki_piece piece = trimmed(layout->arguments[argument]);
	static const char *const signs[] = {"+", "-", "~", ".", "\xe2\x88\x92", "&minus;", "\xc2\xb1"};
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		size_t size = strlen(signs[i]);
		if (piece.size > size && memcmp(piece.text, signs[i], size) == 0) {
			piece.text += size;
			piece.size -= size;
		}
	}
	return *piece.text >= '0' && *piece.text <= '9';
}

static void put_argument(struct layout *layout, int argument)
{
	struct wiki_piece piece = trimmed(layout->arguments[argument]);
	const char *slashes = is_number(layout, argument) ? memmem(piece.text, piece.size, "//", 2) : NULL;
	if (slashes) { /* 1//2: a fraction, one number above the other */
		size_t before = (size_t)(slashes + 1 - piece.text);
		layout->out[layout->shown++] = (struct wiki_piece){piece.text, before, -1};
		layout->out[layout->shown++] = (struct wiki_piece){slashes + 2, piece.size - before - 1, -1};
		return;
	}
	layout->out[layout->shown++] = layout->arguments[argument];
}

static void put_text(struct layout *layout, const char *text)
{
	layout->out[layout->shown++] = (struct wiki_piece){text, strlen(text), -1};
}

/* What stands between the two numbers of a range; NULL: the argument is no such word. */
static const char *range_mark(const struct layout *layout, int argument)
{
	/* clang-format off */
	static const char *const marks[][2] = {
		{"to", " to "}, {"and", " and "}, {"or", " or "}, {"by", " by "}, {"x", " \xc3\x97 "}, {"xx", " \xc3\x97 "},
		{"*", " \xc3\x97 "}, {"\xc3\x97", " \xc3\x97 "}, {"-", "\xe2\x80\x93"}, {"\xe2\x80\x93", "\xe2\x80\x93"},
		{"to(-)", " to "}, {"and(-)", " and "}, {"to about", " to about "}, {"+/-", " \xc2\xb1 "},
		{"\xc2\xb1", " \xc2\xb1 "}, {"+", " + "}, {",", ", "}, {", and", ", and "}, {", or", ", or "},
		{"\xc3\xa0", " \xc3\xa0 "}, {"et", " et "}, {"ou", " ou "}, {"a", " a "}, {"y", " y "}, {"o", " o "},
		{"bis", " bis "}, {"und", " und "}, {"e", " e "},
	};
	/* clang-format on */
	if (argument >= layout->count)
		return NULL;
	struct wiki_piece word = trimmed(layout->arguments[argument]);
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (strlen(marks[i][0]) == word.size && strncasecmp(marks[i][0], word.text, word.size) == 0)
			return marks[i][1];
	return NULL;
}

/* Units that others follow: 5 ft 11 in. */
static bool is_divided(const struct layout *layout, int argument)
{
	static const char units[] =
		"/mi/mile/miles/yd/yard/yards/ft/foot/feet/in/st/stone/lb/lbs/oz/ton/lt/long ton/cwt/long cwt/qtr/"
		"ch/chain/chains/furlong/fathom/hand/km/m/cm/kg/acre/acres/rood/gal/impgal/usgal/qt/pt/league/";
	char name[16] = "/";
	struct wiki_piece unit = trimmed(layout->arguments[argument]);
	if (unit.size + 3 > sizeof name)
		return false;
	memcpy(name + 1, unit.text, unit.size);
	memcpy(name + 1 + unit.size, "/", 2);
	return strcasestr(units, name) != NULL;
}

/* 5 km, 5 to 10 km, 5 ft 11 in; 5 km2 with a power behind the unit. */
static bool put_measure(struct layout *layout, bool powers)
{
	int at = 1;
	if (is_empty(layout, 0))
		return false;
	put_argument(layout, 0);
	if (!is_number(layout, 0)) { /* "several", or a template */
		if (!is_empty(layout, 1)) {
			put_text(layout, " ");
			put_argument(layout, 1);
		}
		return true;
	}
	for (const char *mark; (mark = range_mark(layout, at)) && is_number(layout, at + 1); at += 2) {
		put_text(layout, mark);
		put_argument(layout, at + 1);
	}
	if (is_empty(layout, at))
		return powers;
	/* Two letters or more are no unit: 5 to about 10 km. */
	if (is_number(layout, at) ||
	    (range_mark(layout, at) && trimmed(layout->arguments[at]).size > 1 && !is_empty(layout, at + 1)))
		return false;
	put_text(layout, " ");
	put_argument(layout, at);
	if (powers && is_number(layout, at + 1)) {
		struct wiki_piece power = trimmed(layout->arguments[at + 1]);
		bool square = power.size == 1 && *power.text == '2', cube = power.size == 1 && *power.text == '3';
		put_text(layout, square ? "\xc2\xb2" : "\xc2\xb3");
		return square || cube;
	}
	for (; !powers && is_number(layout, at + 1) && !is_empty(layout, at + 2); at += 2) {
		if (!is_divided(layout, at) || is_number(layout, at + 2))
			return false;
		put_text(layout, " ");
		put_argument(layout, at + 1);
		put_text(layout, " ");
		put_argument(layout, at + 2);
	}
	return true;
}

/* {{frac|2}} is 1/2, {{frac|2|1|2}} 2 1/2. */
static bool put_fraction(struct layout *layout)
{
	int count = layout->count, part = count > 2 ? 1 : 0;
	for (int i = 0; i < count; i++)
		if (is_empty(layout, i))
			return false;
	if (count > 2) {
		put_argument(layout, 0);
		put_text(layout, " ");
	}
	if (count == 1)
		put_text(layout, "1");
	else if (count > 0)
		put_argument(layout, part);
	put_text(layout, "/");
	if (count > 0)
		put_argument(layout, count == 1 ? 0 : part + 1);
	return count > 0 && count <= 3;
}

static bool put_value(struct layout *layout, const struct wiki_piece *unit)
{
	if (is_empty(layout, 0))
		return false;
	put_argument(layout, 0);
	if (unit) {
		put_text(layout, " ");
		layout->out[layout->shown++] = *unit;
	}
	return true;
}

bool wiki_is_number_pattern(const char *pattern)
{
	return strcmp(pattern, WIKI_CONVERT) == 0 || strcmp(pattern, WIKI_MEASURE) == 0 || strcmp(pattern, WIKI_VALUE) == 0 ||
	       strcmp(pattern, WIKI_FRACTION) == 0;
}

int wiki_numbers(const char *pattern, const struct wiki_piece *arguments, int count, const struct wiki_piece *unit,
		 struct wiki_piece out[WIKI_PIECES])
{
	struct layout layout = {.arguments = arguments, .count = count, .out = out};
	bool whole = strcmp(pattern, WIKI_FRACTION) == 0 ? put_fraction(&layout)
		     : strcmp(pattern, WIKI_VALUE) == 0  ? put_value(&layout, unit)
							 : put_measure(&layout, strcmp(pattern, WIKI_MEASURE) == 0);
	return whole ? layout.shown : 0;
}
