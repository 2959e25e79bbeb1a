/* The Unicode library in use. */
#ifndef TEXT_LIBRARIES_H
#define TEXT_LIBRARIES_H

#include "base/library_list.h"

void text_libraries(struct library_list *list);

#endif
