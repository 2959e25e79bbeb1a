/* Project Gutenberg's plain text books: removes the license text before and after the book, and the markup for its
 * typography. */
#ifndef TEXT_GUTENBERG_H
#define TEXT_GUTENBERG_H

#include <stdbool.h>
#include <stddef.h>

/* True if a book begins in these first bytes of a file. */
bool gutenberg_recognize(const char *beginning, size_t size);
/* Where the book itself begins: at the end of the line with the start mark. 0 if there is none. */
size_t gutenberg_begin(const char *beginning, size_t size);

/* State while a file is read; zero at its beginning. */
struct gutenberg {
	bool within;       /* inside the book */
	bool credits;      /* in the lines at its beginning that credit who made the file */
	bool begun;        /* the book's own text has begun */
	bool illustration; /* in a caption of several lines */
	char line[4096];
};
/* True if this line (without '\n') is part of the book. Markup is removed, so *line and *size may change, and *line
 * may then point into `state`. A file may contain several books in succession. */
bool gutenberg_line(struct gutenberg *state, const char **line, size_t *size);

#endif
