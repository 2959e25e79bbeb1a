/* Arrays that move from memory to a file when they grow large, so that what is too much for the machine becomes slow
 * instead of impossible. The file has no name and ends with the process. */
#ifndef BASE_SPILL_H
#define BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Where and when. */
struct spill_settings {
	const char *folder;   /* of the files; NULL: TMPDIR or /tmp */
	int64_t memory_limit; /* bytes of one array that stay in memory; 0: any number */
};

/* Zero-initialise, with `settings` set (borrowed; NULL: memory alone). */
struct spill {
	const struct spill_settings *settings;
	int64_t capacity; /* elements */
	size_t mapped;    /* bytes of the file; 0: in memory */
	int descriptor;
};

/* As memory_grow: makes *(void **)array hold at least `needed` elements of `size` bytes. A full disk is ERR_RESOURCE. */
MUST_USE enum status spill_grow(struct spill *spill, void *array, int64_t needed, size_t size, const char *what);
/* Frees the array and sets it to NULL. */
void spill_release(struct spill *spill, void *array);

/* A file without a name in the settings' folder, open for reading and writing. */
MUST_USE enum status spill_file(const struct spill_settings *settings, int *out_descriptor);

#endif
