/* Parses tags, detects their scheme, and converts between schemes. */
#include "tasks/tagging/tags.h"

#include <string.h>

/* The letters of each scheme for the prefixes B, I, E, S; 0: none. */
static const struct {
	const char *name;
	char begin, inside, end, single;
} schemes[] = {
	[TAGS_PLAIN] = {"plain tags", 0, 0, 0, 0},    [TAGS_IO] = {"IO", 0, 'I', 0, 0},
	[TAGS_IOB1] = {"IOB1", 'B', 'I', 0, 0},       [TAGS_IOB2] = {"IOB2", 'B', 'I', 0, 0},
	[TAGS_BIOES] = {"BIOES", 'B', 'I', 'E', 'S'}, [TAGS_BILOU] = {"BILOU", 'B', 'I', 'L', 'U'},
	[TAGS_BMES] = {"BMES", 'B', 'M', 'E', 'S'},
};

const char *tag_scheme_name(enum tag_scheme scheme)
{
	return schemes[scheme].name;
}

bool tag_scheme_find(const char *name, enum tag_scheme *out)
{
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		*out = (enum tag_scheme)i;
		if (strcmp(schemes[i].name, name) == 0)
			return true;
	}
	return false;
}

bool tag_parse(const char *text, struct tag_form form, struct tag *out)
{
	char letter = *text;
	*out = (struct tag){'O', ""};
	if (strcmp(text, "O") == 0)
		return true;
	if (letter == '\0' || letter == 'O' || form.scheme == TAGS_PLAIN || (text[1] != '\0' && text[1] != form.separator))
		return false;
	out->prefix = letter == schemes[form.scheme].begin    ? 'B'
		      : letter == schemes[form.scheme].inside ? 'I'
		      : letter == schemes[form.scheme].end    ? 'E'
		      : letter == schemes[form.scheme].single ? 'S'
							      : '\0';
	if (!out->prefix)
		return false;
	out->type = text[1] ? text + 2 : "";
	return true;
}

void tag_write(struct buffer *out, struct tag tag, struct tag_form form)
{
	char letter = tag.prefix == 'B'   ? schemes[form.scheme].begin
		      : tag.prefix == 'I' ? schemes[form.scheme].inside
		      : tag.prefix == 'E' ? schemes[form.scheme].end
		      : tag.prefix == 'S' ? schemes[form.scheme].single
					  : 'O';
	BUG_IF(!letter);
	buffer_char(out, letter);
	if (letter != 'O' && *tag.type) {
		buffer_char(out, form.separator);
		buffer_text(out, tag.type);
	}
}

/* Does a word continue the entity of the word before it? By seqeval's rules, it does not after O, E or S, nor with B or S, nor if
 * the type changes. */
static bool continues(struct tag before, struct tag tag)
{
	return (before.prefix == 'B' || before.prefix == 'I') && (tag.prefix == 'I' || tag.prefix == 'E') &&
	       strcmp(before.type, tag.type) == 0;
}

int64_t tags_entities(const struct tag *tags, int64_t count, struct tag_entity *out)
{
	int64_t found = 0;
	for (int64_t i = 0; i < count; i++) {
		if (tags[i].prefix == 'O')
			continue;
		if (i > 0 && found > 0 && continues(tags[i - 1], tags[i]))
			out[found - 1].end = i + 1;
		else
			out[found++] = (struct tag_entity){tags[i].type, i, i + 1};
	}
	return found;
}

/* The prefix of a word in an entity, which may be its `first` and its `last`; `touches`: an entity of the same type ends right
 * before it. */
static char prefix_in(enum tag_scheme scheme, bool first, bool last, bool touches)
{
	switch (scheme) {
	case TAGS_IO: return 'I';
	case TAGS_IOB1: return first && touches ? 'B' : 'I';
	case TAGS_IOB2: return first ? 'B' : 'I';
	default: return first && last ? 'S' : first ? 'B' : last ? 'E' : 'I';
	}
}

void tags_convert(const struct tag *tags, int64_t count, enum tag_scheme scheme, struct tag *out)
{
	BUG_IF(scheme == TAGS_PLAIN);
	struct tag before = {'O', ""};
	bool first = true;
	for (int64_t i = 0; i < count; i++) {
		struct tag tag = tags[i], next = i + 1 < count ? tags[i + 1] : (struct tag){'O', ""};
		if (tag.prefix == 'O') {
			out[i] = (struct tag){'O', ""};
		} else {
			first = !continues(before, tag);
			bool touches = before.prefix != 'O' && strcmp(before.type, tag.type) == 0;
			out[i] = (struct tag){prefix_in(scheme, first, !continues(tag, next), touches), tag.type};
		}
		before = tag;
	}
}

/* Counts of the prefixes and forms of tags. */
struct prefix_counts {
	int64_t letters[128];
	int64_t prefixed, bare; /* tags with a prefix and a type; all others except O and lone prefixes */
	int64_t separators[2];  /* '-' and '_' */
	int64_t lone;           /* prefixes without a type */
	int64_t first_bare;
};

static bool is_prefix(char letter)
{
	return letter && strchr("BIESLUM", letter);
}

static void count_prefixes(const char *const *tags, int64_t count, struct prefix_counts *out)
{
	*out = (struct prefix_counts){.first_bare = -1};
	for (int64_t i = 0; i < count; i++) {
		const char *tag = tags[i];
		bool lone = is_prefix(tag[0]) && tag[1] == '\0';
		bool prefixed = is_prefix(tag[0]) && (tag[1] == '-' || tag[1] == '_') && tag[2];
		if (strcmp(tag, "O") == 0)
			continue;
		if (prefixed || lone)
			out->letters[(unsigned char)tag[0]]++;
		out->lone += lone;
		out->prefixed += prefixed;
		if (prefixed)
			out->separators[tag[1] == '_']++;
		if (!prefixed && !lone) {
			out->bare++;
			if (out->first_bare < 0)
				out->first_bare = i;
		}
	}
}

/* Tells IOB1 from IOB2: after O or another type, entities begin with B- in IOB2 and with I- in IOB1. */
static enum tag_scheme tell_iob(const char *const *tags, const int64_t *starts, int64_t sentence_count, char separator)
{
	const struct tag_form form = {TAGS_IOB2, separator};
	int64_t begun_with[2] = {0}; /* B, I */
	for (int64_t s = 0; s < sentence_count; s++) {
		struct tag before = {'O', ""}, tag;
		for (int64_t i = starts[s]; i < starts[s + 1]; i++, before = tag) {
			if (!tag_parse(tags[i], form, &tag) || tag.prefix == 'O')
				continue;
			if (before.prefix == 'O' || strcmp(before.type, tag.type) != 0)
				begun_with[tag.prefix == 'I']++;
		}
	}
	return begun_with[1] > begun_with[0] ? TAGS_IOB1 : TAGS_IOB2;
}

static enum status choose_scheme(const struct prefix_counts *counts, enum tag_scheme *out)
{
	const int64_t *n = counts->letters;
	bool end = n['E'] > 0, last = n['L'] > 0 || n['U'] > 0, middle = n['M'] > 0;
	*out = last ? TAGS_BILOU : middle ? TAGS_BMES : end || n['S'] > 0 ? TAGS_BIOES : n['B'] > 0 ? TAGS_IOB2 : TAGS_IO;
	if (last && (end || n['S'] > 0 || middle))
		return error_set(ERR_DATA, "the tags have prefixes of BILOU (L-, U-) and of BIOES (E-, S-, M-)");
	if (middle && n['I'] > 0)
		return error_set(ERR_DATA, "the tags have prefixes of BMES (M-) and of BIOES (I-)");
	return OK;
}

/* Counts entities, and tags that would be different if written by the rules. */
static void count_irregular(const char *const *tags, const int64_t *starts, int64_t sentence_count, struct tag_facts *facts)
{
	enum { AHEAD = 1 };
	for (int64_t s = 0; s < sentence_count; s++) {
		struct tag window[3] = {{'O', ""}, {'O', ""}, {'O', ""}}, right[3];
		int64_t count = starts[s + 1] - starts[s];
		for (int64_t i = 0; i < count; i++) {
			/* Only a tag and its neighbors matter, so a window of three is enough. */
			window[0] = i > 0 ? window[1] : window[0];
			(void)tag_parse(tags[starts[s] + i], facts->form, &window[1]);
			window[2] = (struct tag){'O', ""};
			if (i + AHEAD < count)
				(void)tag_parse(tags[starts[s] + i + AHEAD], facts->form, &window[2]);
			tags_convert(window, 3, facts->form.scheme, right);
			facts->entities += window[1].prefix != 'O' && !continues(window[0], window[1]);
			if (right[1].prefix == window[1].prefix)
				continue;
			if (facts->irregular++ == 0)
				facts->first_irregular = starts[s] + i;
		}
	}
}

enum status tags_detect(const char *const *tags, const int64_t *starts, int64_t sentence_count, struct tag_facts *out,
			int64_t *out_bad)
{
	struct prefix_counts counts;
	enum tag_scheme scheme;

	*out = (struct tag_facts){.form = {TAGS_PLAIN, '-'}, .first_irregular = -1};
	*out_bad = -1;
	count_prefixes(tags, starts[sentence_count], &counts);
	bool bare_prefixes = counts.prefixed == 0 && counts.bare == 0 && counts.lone > 0;
	if (!bare_prefixes && counts.prefixed <= counts.bare + counts.lone)
		return OK;
	TRY(choose_scheme(&counts, &scheme));
	char separator = counts.separators[1] > counts.separators[0] ? '_' : '-';
	if (scheme == TAGS_IOB2)
		scheme = tell_iob(tags, starts, sentence_count, separator);
	out->form = (struct tag_form){scheme, separator};
	for (int64_t i = 0; i < starts[sentence_count]; i++) {
		struct tag tag;
		if (tag_parse(tags[i], out->form, &tag))
			continue;
		*out_bad = i;
		return error_set(ERR_DATA, "the tag '%.100s' has no prefix of %s, which the other tags have", tags[i],
				 tag_scheme_name(scheme));
	}
	count_irregular(tags, starts, sentence_count, out);
	return OK;
}
