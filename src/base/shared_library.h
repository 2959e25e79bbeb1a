/* Libraries that are loaded only when the program needs them; if the machine lacks one, the error names it and the package that
 * provides it. */
#ifndef BASE_SHARED_LIBRARY_H
#define BASE_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

#define SHARED_LIBRARY_FILES 8

struct shared_library {
	const char *name; /* its usual name: "NCCL" */
	/* File names for the loader: "libnccl.so.2". The first that the machine has is loaded; the rest may be NULL. None at all:
	 * the program itself. */
	const char *files[SHARED_LIBRARY_FILES];
	const char *folder;  /* another place to look, which the loader does not search; NULL: none */
	const char *package; /* the package that provides it: "NVIDIA's package libnccl2" */
	const char *instead; /* what works without it: "give --device cpu" */
	bool global;         /* libraries loaded later find its symbols */
};

struct shared_library_function {
	const char *name;
	void *to; /* the function pointer that receives its address */
};

/* Loads the library and looks up the functions, or variables. It stays loaded until the process ends. ERR_RESOURCE: the
 * machine does not have it, or it lacks a function; nothing stays loaded then. */
MUST_USE enum status shared_library_open(void **out_handle, const struct shared_library *library,
					 const struct shared_library_function *functions, size_t count);

#endif
