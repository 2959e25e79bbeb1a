/* The web page for trying the models: self-contained HTML that loads nothing from elsewhere. */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include "base/buffer.h"

/* Appends the page. */
void page_write(struct buffer *out);

#endif
