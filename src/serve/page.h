/* The page on which a person tries the models: one piece of HTML that needs nothing from anywhere else. */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include "base/buffer.h"

void page_write(struct buffer *out);

#endif
