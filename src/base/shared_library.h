/* Libraries that the program does without until it needs them: they are loaded then, and one that the machine lacks is named
 * with the package that has it. */
#ifndef BASE_SHARED_LIBRARY_H
#define BASE_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

#define SHARED_LIBRARY_FILES 8

struct shared_library {
	const char *name; /* as people call it: "NCCL" */
	/* As the loader finds them: "libnccl.so.2". The first that is on the machine is loaded; the rest may be NULL. None at
	 * all: the program itself. */
	const char *files[SHARED_LIBRARY_FILES];
	const char *folder;  /* where it may lie without the loader's knowledge; NULL: nowhere */
	const char *package; /* that has it: "NVIDIA's package libnccl2" */
	const char *instead; /* what works without it: "give --device cpu" */
	bool global;         /* libraries loaded later find its symbols */
};

struct shared_library_function {
	const char *name;
	void *to; /* the pointer to a function that takes its address */
};

/* Loads the library and looks up the functions, or variables. It stays loaded until shared_library_close(). ERR_RESOURCE: it is
 * not on this machine, or lacks a function; then nothing is loaded. */
MUST_USE enum status shared_library_open(void **out_handle, const struct shared_library *library,
					 const struct shared_library_function *functions, size_t count);
void shared_library_close(void *handle); /* NULL is fine */

#endif
