/* The libraries that read and write other people's formats. */
#ifndef FORMATS_LIBRARIES_H
#define FORMATS_LIBRARIES_H

#include "base/library_list.h"

/* Those that are loaded, HDF5 and libcurl, are loaded for it. */
void formats_libraries(struct library_list *list);

#endif
