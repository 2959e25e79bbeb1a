/* The libraries that read and write third-party formats. */
#ifndef FORMATS_LIBRARIES_H
#define FORMATS_LIBRARIES_H

#include "base/library_list.h"

/* Loads HDF5 and libcurl, which are otherwise loaded on demand. */
void formats_libraries(struct library_list *list);

#endif
