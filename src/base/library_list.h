/* The third-party libraries that the program uses, for `bertc version`: each folder adds its own. */
#ifndef BASE_LIBRARY_LIST_H
#define BASE_LIBRARY_LIST_H

#include "base/buffer.h"
#include "base/error.h"

struct library_list {
	struct buffer linked; /* "zlib 1.2.13, bzip2 1.0.8" */
	struct buffer loaded; /* loaded when needed; one line each: " HDF5 1.10.8\n" */
};

void library_list_add(struct library_list *list, const char *name, const char *version);
/* Adds a library that is loaded at run time, with the result of loading it: if `status` is an error, error_last() says what the
 * machine lacks. */
void library_list_add_loaded(struct library_list *list, const char *name, enum status status, const char *version);
void library_list_release(struct library_list *list);

/* Adds xxHash. */
void base_libraries(struct library_list *list);

#endif
