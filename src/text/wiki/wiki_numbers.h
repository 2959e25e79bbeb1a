/* Templates that show numbers: which of their arguments are shown, and what stands between them. */
#ifndef TEXT_WIKI_WIKI_NUMBERS_H
#define TEXT_WIKI_WIKI_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

#define WIKI_PIECES 32

/* The value of an argument as written in the page, or a text of the template's own. */
struct wiki_piece {
	const char *text;
	size_t size;
	int argument; /* its number, from 0; -1: a text */
};

/* Whether a pattern of wiki_template_pattern() is one of WIKI_CONVERT and its like. */
bool wiki_is_number_pattern(const char *pattern);
/* What such a template shows, in order; returns the number of pieces, 0 if its number or unit would be incomplete. `unit`: the
 * value of u=, or NULL. */
int wiki_numbers(const char *pattern, const struct wiki_piece *arguments, int count, const struct wiki_piece *unit,
		 struct wiki_piece out[WIKI_PIECES]);

#endif
