/* Other people's libraries that a program is made of, for `bertc version`: each folder adds its own. */
#ifndef BASE_LIBRARY_LIST_H
#define BASE_LIBRARY_LIST_H

#include "base/buffer.h"
#include "base/error.h"

struct library_list {
	struct buffer linked; /* "zlib 1.2.13, bzip2 1.0.8" */
	struct buffer loaded; /* when they are needed; a line for each: "  HDF5 1.10.8\n" */
};

void library_list_add(struct library_list *list, const char *name, const char *version);
/* A library that has been loaded, with what came of it: where `status` is an error, error_last() says what the machine lacks. */
void library_list_add_loaded(struct library_list *list, const char *name, enum status status, const char *version);
void library_list_release(struct library_list *list);

/* xxHash. */
void base_libraries(struct library_list *list);

#endif
