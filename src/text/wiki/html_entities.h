/* Character references of HTML: &amp; &#38; &#x26; */
#ifndef TEXT_WIKI_HTML_ENTITIES_H
#define TEXT_WIKI_HTML_ENTITIES_H

#include <stddef.h>
#include <stdint.h>

/* Reads the reference that begins at text[0] = '&' into *out. Returns its size including the ';', or 0 if there is
 * none. */
size_t html_entity(const char *text, size_t size, uint32_t *out);

#endif
