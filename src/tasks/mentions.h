/* Two mentions in a text, as files for relation extraction mark them: with markers around each, or by positions in JSON. */
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
	char marks[MENTION_MARKS][MARK_BYTES]; /* indexed by the names above; marks[0] empty: unknown */
};

/* Whether the markers become tokens of their own or are treated as ordinary text. */
enum marker_tokens { MARKERS_AUTO, MARKERS_TEXT, MARKERS_VOCABULARY };

/* Detects which usual form's opening markers the text has: << >> [[ ]] (ChemProt), [E1] [/E1] [E2] [/E2], <e1> </e1> <e2> </e2>
 * (SemEval 2010); NULL: none. */
const struct mention_form *mention_form_detect(const char *text);
/* The form used to mark positions from JSON: [E1] [/E1] [E2] [/E2]. */
const struct mention_form *mention_form_usual(void);
/* Parses "A,B,C,D" as the user gives it; ERR_USAGE if it is not a valid form. */
MUST_USE enum status mention_form_parse(const char *text, struct mention_form *out);
/* Appends "<< >> [[ ]]". */
void mention_form_describe(const struct mention_form *form, struct buffer *out);

/* A text with its markers, and the bytes where they begin. Zero-initialize, release at the end; reused from example to
 * example. */
struct marked_text {
	struct buffer text;
	size_t at[MENTION_MARKS];
};
/* Finds the markers in a text. A marker with white space on its inner side ("<< aspirin >>") takes precedence over the same
 * characters without (chemical names may contain "[["). ERR_DATA with file and line: a mention is missing, ends before it begins,
 * or is opened twice. */
MUST_USE enum status mentions_find(const struct example_text *example, const struct mention_form *form, struct marked_text *out);

/* Does the example have positions instead? "h" and "t", "head" and "tail", "e1" and "e2", "subj" and "obj", "subject" and
 * "object" or "entity1" and "entity2", each as [begin, end], {"pos": [begin, end]}, {"start", "end"}, or with members h_start and
 * h_end beside the text; or both in a list, "spans". Positions count code points, or words if the text is a list of words, and
 * the end is exclusive; but "subj_start" and "subj_end" for a list of words, as in TACRED, include the last word. */
bool mentions_have_places(const struct example_set *set, int64_t example);
/* Writes the text with markers at those positions. ERR_DATA with file and line: positions beyond the text, or an empty
 * mention. */
MUST_USE enum status mentions_mark(const struct example_set *set, int64_t example, const struct mention_form *form,
				   struct marked_text *out);
void marked_text_release(struct marked_text *text);

#endif
