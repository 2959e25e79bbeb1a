/* Where the lines of a text end: at LF, with any CRs before it, or, in files of old Macintoshes and of some spreadsheets, at CR.
 * The file decides, not the line, since a stray CR is white space. Readers of whole files and of streams both ask here. */
#ifndef FORMATS_LINE_ENDS_H
#define FORMATS_LINE_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* This much text without an LF is enough to decide. */
#define LINE_ENDS_BYTES ((size_t)64 << 10)

/* Whether CR ends the lines of a text that begins with these bytes, which reach to its first LF, to LINE_ENDS_BYTES, or to its
 * end (`whole`): there is a CR and no LF at all, or several come before the first LF. Bytes beyond LINE_ENDS_BYTES do not count.
 */
bool line_ends_are_cr(const char *text, size_t size, bool whole);
/* Replaces each CR that no LF follows by an LF. */
void line_ends_mend(char *text, size_t size);
/* The number of CRs in a text whose lines end in LF, apart from those at the ends of lines. */
int64_t line_ends_stray(const char *text, size_t size);
/* The size of a line without the CRs at its end. */
size_t line_ends_trim(const char *line, size_t size);
/* Warns of `stray` CRs, unless there are none. */
void line_ends_warn(const char *name, int64_t stray);

#endif
