/* Two mentions in a text, as the files of relation extraction mark them: with markers around each, or by their places in JSON. */
#ifndef TASKS_MENTIONS_H
#define TASKS_MENTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buffer.h"
#include "base/error.h"
#include "tasks/examples.h"

enum { FIRST_BEGINS, FIRST_ENDS, SECOND_BEGINS, SECOND_ENDS, MENTION_MARKS };

#define MARK_BYTES 32
struct mention_form {
	char marks[MENTION_MARKS][MARK_BYTES]; /* by the names above; marks[0] empty: not known */
};

/* Are the markers become tokens of their own, or are they text like any other? */
enum marker_tokens { MARKERS_AUTO, MARKERS_TEXT, MARKERS_VOCABULARY };

/* The usual form whose opening markers the text has: << >> [[ ]] (ChemProt), [E1] [/E1] [E2] [/E2], <e1> </e1> <e2> </e2>
 * (SemEval 2010); NULL: it has none. */
const struct mention_form *mention_form_detect(const char *text);
/* The form that places in JSON are marked with: [E1] [/E1] [E2] [/E2]. */
const struct mention_form *mention_form_usual(void);
/* "A,B,C,D" as a person gives them; ERR_USAGE if that is no form. */
MUST_USE enum status mention_form_parse(const char *text, struct mention_form *out);
/* Appends "<< >> [[ ]]". */
void mention_form_describe(const struct mention_form *form, struct buffer *out);

/* A text with its markers, and where these begin, in bytes. Zero-initialise, release at the end; reused from example to
 * example. */
struct marked_text {
	struct buffer text;
	size_t at[MENTION_MARKS];
};
/* Finds the markers in a text. A marker with white space inwards ("<< aspirin >>") is taken before the same characters without
 * (as chemical names have "[["). ERR_DATA with file and line: one is missing, ends before it begins, or opens twice. */
MUST_USE enum status mentions_find(const struct example_text *example, const struct mention_form *form, struct marked_text *out);

/* Has the example places instead? "h" and "t", "head" and "tail", "e1" and "e2", "subj" and "obj", "subject" and "object" or
 * "entity1" and "entity2", each as [begin, end], {"pos": [begin, end]}, {"start", "end"}, or with members h_start and h_end
 * beside the text; or both in a list, "spans". Places are code points, or words where the text is a list of words, the end
 * exclusive; but "subj_start" and "subj_end" of a list of words, as TACRED has them, end with the last word. */
bool mentions_have_places(const struct example_set *set, int64_t example);
/* Writes the text with markers at those places. ERR_DATA with file and line: places beyond the text, or empty ones. */
MUST_USE enum status mentions_mark(const struct example_set *set, int64_t example, const struct mention_form *form,
				   struct marked_text *out);
void marked_text_release(struct marked_text *text);

#endif
