/* The web pages: self-contained HTML that loads nothing from elsewhere. */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include "base/buffer.h"

/* Appends the page for trying the models. */
void page_write(struct buffer *out);
/* Appends the page that lists the endpoints, which it reads from openapi.json. */
void docs_page_write(struct buffer *out);

#endif
