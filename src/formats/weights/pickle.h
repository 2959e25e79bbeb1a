/* Pickles read as data: a strict interpreter of the few opcodes and names that rebuild dictionaries, lists, numbers, strings and
 * PyTorch tensors. Nothing is imported, called, or executed: any other opcode or name is an error that says which. A pickle may
 * refer to itself; nothing here follows references further than a caller asks. */
#ifndef FORMATS_WEIGHTS_PICKLE_H
#define FORMATS_WEIGHTS_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "formats/safetensors.h"

enum pickle_kind {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INTEGER,
	PICKLE_FLOAT,
	PICKLE_TEXT,
	PICKLE_TUPLE,
	PICKLE_LIST,
	PICKLE_DICT,
	PICKLE_STORAGE, /* numbers stored elsewhere in the file, identified by a key */
	PICKLE_TENSOR,  /* a view of a storage */
	PICKLE_NAME,    /* one of the known Python names, before it is applied */
};

struct pickle_value {
	enum pickle_kind kind;
	union {
		int64_t integer; /* also for PICKLE_BOOL, and the index of a PICKLE_NAME */
		double number;
		struct {
			const char *bytes; /* NUL-terminated; may contain NULs */
			size_t size;
		} text;
		struct { /* for tuples and lists; a dict has key, value, key, value, … */
			struct pickle_value **values;
			int64_t count, capacity;
		} items;
		struct {
			enum safetensors_dtype dtype;
			const char *key;                 /* name of the storage */
			int64_t elements;                /* of the whole storage */
			const struct pickle_value *next; /* the one read before, or NULL */
		} storage;
		struct pickle_tensor *tensor;
	};
};

#define PICKLE_RANK_LIMIT 8
struct pickle_tensor {
	const struct pickle_value *storage;
	int64_t offset; /* elements */
	int rank;
	int64_t shape[PICKLE_RANK_LIMIT], strides[PICKLE_RANK_LIMIT]; /* strides in elements */
	int64_t count;                                                /* elements; all of them are within the storage */
};

struct pickle {
	struct pickle_value *root;
	const struct pickle_value *storages; /* all of them, the last one first; a key may occur several times */
	size_t bytes;                        /* of the input, up to and including STOP */
	void *memory;
};

/* Reads one pickle from the beginning of `bytes`, which are at byte `base` of file `path` (for messages). Anything unsupported or
 * malformed is ERR_DATA; memory is bounded by a multiple of the bytes read, which are at most PICKLE_BYTES_LIMIT. On failure
 * there is nothing to release. */
#define PICKLE_BYTES_LIMIT ((size_t)4 << 20)
MUST_USE enum status pickle_read(struct pickle *out, const char *path, uint64_t base, const unsigned char *bytes, size_t size);
void pickle_release(struct pickle *pickle);

/* The value of a text key in a dict, or NULL (also if `dict` is NULL or not a dict). */
const struct pickle_value *pickle_member(const struct pickle_value *dict, const char *key);

#endif
