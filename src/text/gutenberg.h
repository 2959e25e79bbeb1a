/* Project Gutenberg's plain text books: the licence before and after the book, and the marks of its
 * typesetting. */
#ifndef TEXT_GUTENBERG_H
#define TEXT_GUTENBERG_H

#include <stdbool.h>
#include <stddef.h>

/* Does a book begin in these first bytes of a file? */
bool gutenberg_recognise(const char *beginning, size_t size);
/* Where the book itself begins: behind the line with the mark. 0 if there is none. */
size_t gutenberg_begin(const char *beginning, size_t size);

/* Where in the file we are; zero at its beginning. */
struct gutenberg {
	bool within;       /* the book */
	bool credits;      /* the lines at its beginning that say who made the file */
	bool begun;        /* the book's own text */
	bool illustration; /* a caption that goes over several lines */
	char line[4096];
};
/* Is this line (without '\n') part of the book? What stays is what the book says: *line and *size may change,
 * and point into `state`. Several books may follow each other in one file. */
bool gutenberg_line(struct gutenberg *state, const char **line, size_t *size);

#endif
