/* Different texts that look alike: composed and decomposed letters, kinds of spaces, dashes, and digits, characters without
 * width, Greek and Cyrillic letters instead of Latin ones. */
#ifndef TEXT_LOOK_ALIKE_H
#define TEXT_LOOK_ALIKE_H

#include "base/buffer.h"

/* Appends the form that texts which look alike have in common. */
void look_alike_form(const char *text, struct buffer *out);
/* Appends the code points in which two texts differ, for the first of them: "U+0065 U+0301"; "nothing" if there are none. */
void look_alike_difference(const char *text, const char *other, struct buffer *out);

#endif
