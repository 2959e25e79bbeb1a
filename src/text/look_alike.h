/* Texts that look alike and are not: composed and decomposed letters, kinds of spaces, dashes, and digits, characters without
 * width, letters of Greek and Cyrillic beside Latin ones. */
#ifndef TEXT_LOOK_ALIKE_H
#define TEXT_LOOK_ALIKE_H

#include "base/buffer.h"

/* Appends the form that texts which look alike have in common. */
void look_alike_form(const char *text, struct buffer *out);
/* Appends the code points in which two texts differ, for the first of them: "U+0065 U+0301"; "nothing" if there are none. */
void look_alike_difference(const char *text, const char *other, struct buffer *out);

#endif
