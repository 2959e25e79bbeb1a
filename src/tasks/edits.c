/* Finds the cheapest edits from one text to another by dynamic programming, and applies them. */
#include "tasks/edits.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/unicode.h"
#include "text/utf8.h"

/* ---- Finding ---- */

/* The costs of edits. Copying a token costs a little, so that what can stay is not deleted and copied; a token that cannot be
 * produced costs more than all others together. */
enum { COST_COPY = 1, COST_EDIT = 1 << 12, COST_MISSING = 1 << 24 };

/* The least cost of turning the source from token i on into the target from token j on; `inserted`: something has been inserted
 * before i. Filled in from the ends. */
struct search {
	const struct edit_texts *texts;
	int64_t *costs;   /* [source_count + 1][target_count + 1][2] */
	int32_t *matches; /* [copied_count + 1][target_count + 1]: number of equal tokens from there on */
	int32_t *longest; /* [target_count + 1] the longest of those matches */
};

static int64_t *cost_at(const struct search *search, int64_t i, int64_t j, bool inserted)
{
	return &search->costs[(i * (search->texts->target_count + 1) + j) * 2 + inserted];
}

static int32_t *match_at(const struct search *search, int64_t row, int64_t j)
{
	return &search->matches[row * (search->texts->target_count + 1) + j];
}

static void find_matches(const struct search *search)
{
	const struct edit_texts *texts = search->texts;
	for (int64_t row = texts->copied_count - 1; row >= 0; row--) {
		for (int64_t j = 0; j < texts->target_count; j++) {
			bool same = texts->copied[row] >= 0 && texts->copied[row] == texts->target[j];
			int32_t length = same ? 1 + *match_at(search, row + 1, j + 1) : 0;
			*match_at(search, row, j) = length;
			if (length > search->longest[j])
				search->longest[j] = length;
		}
	}
}

/* A step from (i, j, inserted), and its cost including all that follows. */
struct step {
	enum { STEP_END, STEP_KEEP, STEP_INSERT, STEP_DELETE, STEP_MISS } kind;
	int32_t length; /* of what is inserted */
	int64_t cost;
};

static void better(struct step *best, int kind, int32_t length, int64_t cost)
{
	if (best->cost >= 0 && best->cost <= cost)
		return;
	best->kind = kind;
	best->length = length;
	best->cost = cost;
}

/* Of equally cheap steps, keeping is preferred to changing. */
static struct step best_step(const struct search *search, int64_t i, int64_t j, bool inserted)
{
	const struct edit_texts *texts = search->texts;
	struct step best = {.cost = -1};
	if (i == texts->source_count && j == texts->target_count)
		return (struct step){.kind = STEP_END};
	if (i < texts->source_count && j < texts->target_count && texts->source[i] == texts->target[j])
		better(&best, STEP_KEEP, 0, *cost_at(search, i + 1, j + 1, false));
	for (int32_t length = 1; !inserted && length <= search->longest[j]; length++)
		better(&best, STEP_INSERT, length,
		       COST_EDIT + COST_COPY * (int64_t)length + *cost_at(search, i, j + length, true));
	if (i < texts->source_count)
		better(&best, STEP_DELETE, 0, COST_EDIT + *cost_at(search, i + 1, j, false));
	if (j < texts->target_count)
		better(&best, STEP_MISS, 0, COST_MISSING + *cost_at(search, i, j + 1, inserted));
	return best;
}

/* The place from which the run of `length` target tokens from j on is copied. */
static int32_t find_run(const struct search *search, int64_t j, int32_t length)
{
	const struct edit_texts *texts = search->texts;
	for (int32_t row = texts->preferred - 1; row >= 0; row--)
		if (*match_at(search, row, j) >= length)
			return row;
	for (int32_t row = texts->copied_count - 1; row >= texts->preferred; row--)
		if (*match_at(search, row, j) >= length)
			return row;
	BUG_IF(true); /* the match was counted among the longest */
	return -1;
}

static void follow(const struct search *search, struct edit *out, int64_t *missing)
{
	bool inserted = false;
	*missing = 0;
	for (int64_t i = 0; i <= search->texts->source_count; i++)
		out[i] = (struct edit){.first = -1, .last = -1};
	for (int64_t i = 0, j = 0;;) {
		struct step step = best_step(search, i, j, inserted);
		switch (step.kind) {
		case STEP_END: return;
		case STEP_INSERT:
			out[i].first = find_run(search, j, step.length);
			out[i].last = out[i].first + step.length - 1;
			j += step.length;
			inserted = true;
			continue;
		case STEP_MISS:
			out[i].unknown = true;
			++*missing;
			j++;
			continue;
		case STEP_KEEP: j++; break;
		case STEP_DELETE: out[i].deleted = true; break;
		}
		i++;
		inserted = false;
	}
}

enum status edits_find(const struct edit_texts *texts, struct edit *out, int64_t *out_missing)
{
	struct search search = {.texts = texts};
	int64_t width = texts->target_count + 1;
	enum status status;
	TRY_GOTO(memory_new(&search.costs, (texts->source_count + 1) * width, 2 * sizeof *search.costs, "edits"), done);
	TRY_GOTO(memory_new(&search.matches, (texts->copied_count + 1) * width, sizeof *search.matches, "edits"), done);
	TRY_GOTO(memory_new(&search.longest, width, sizeof *search.longest, "edits"), done);
	find_matches(&search);
	/* Each cost depends on those of the same (i, j) with `inserted` set and of larger i and j, which are computed first. */
	for (int64_t i = texts->source_count; i >= 0; i--)
		for (int64_t j = texts->target_count; j >= 0; j--)
			for (int inserted = 1; inserted >= 0; inserted--)
				*cost_at(&search, i, j, inserted) = best_step(&search, i, j, inserted).cost;
	follow(&search, out, out_missing);
	status = OK;
done:
	free(search.costs);
	free(search.matches);
	free(search.longest);
	return status;
}

/* ---- Applying ---- */

/* Does the character belong to words that are written with spaces between them? */
static bool is_spaced(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} unspaced[] = {/* Thai, Lao, Myanmar, Khmer, kana, ideographs */
			{0x0E00, 0x0EFF}, {0x1000, 0x109F}, {0x1780, 0x17FF}, {0x2E80, 0xA4CF},
			{0xF900, 0xFAFF}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}, {0x20000, 0x3FFFF}};
	if (c == UTF8_INVALID)
		return false;
	for (size_t i = 0; i < sizeof unspaced / sizeof *unspaced; i++)
		if (c >= unspaced[i].first && c <= unspaced[i].last)
			return false;
	return !(unicode_flags(UNICODE_GOOGLE, c) & (UNICODE_DROPPED | UNICODE_SPACE | UNICODE_PUNCTUATION));
}

/* Is there a space between this character and a following word, in text with spaces between words? */
static bool ends_spaced(uint32_t c)
{
	return is_spaced(c) || (c < 0x80 && strchr(",.;:!?)]}", (int)c));
}

static uint32_t last_character(const struct buffer *out)
{
	uint32_t c = UTF8_INVALID;
	if (out->size > 0)
		utf8_decode_last(out->data, out->size, &c);
	return c;
}

static uint32_t first_character(const char *text, size_t size)
{
	uint32_t c = UTF8_INVALID;
	if (size > 0)
		utf8_decode(text, size, &c);
	return c;
}

/* Appends text that did not follow what is there already. `gap`: what preceded it in the source ("" or white space). */
static void append_apart(struct buffer *out, const char *gap, size_t gap_size, const char *text, size_t size)
{
	bool before = ends_spaced(last_character(out)), behind = is_spaced(first_character(text, size));
	if (out->size > 0 && gap_size > 0 && (before || behind))
		buffer_append(out, gap, gap_size);
	else if (before && behind)
		buffer_char(out, ' ');
	buffer_append(out, text, size);
}

enum status edits_apply(const char *source, const struct edit_token *tokens, int64_t count, const struct edit *edits,
			const struct edit_token *copied, struct buffer *out, size_t *ends)
{
	size_t done = 0;
	bool moved = false; /* what was written last did not precede what comes next */
	BUG_IF(out->size > 0);
	for (int64_t i = 0; i <= count; i++) {
		size_t at = i < count ? tokens[i].begin : done, gap = at > done ? at - done : 0;
		const char *lead = source + done;
		if (edits[i].first >= 0) {
			const struct edit_token *first = &copied[edits[i].first], *last = &copied[edits[i].last];
			append_apart(out, lead, gap, first->text + first->begin, last->end - first->begin);
			moved = true;
		}
		if (i == count)
			break;
		if (edits[i].deleted) {
			moved = true;
		} else {
			if (moved)
				append_apart(out, lead, gap, source + at, tokens[i].end - at);
			else
				buffer_append(out, lead, tokens[i].end - done);
			moved = false;
		}
		if (ends)
			ends[i] = edits[i].deleted ? 0 : out->size;
		done = tokens[i].end > done ? tokens[i].end : done;
	}
	buffer_text(out, source + done);
	return buffer_status(out);
}
