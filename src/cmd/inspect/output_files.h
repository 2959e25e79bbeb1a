/* Output of the commands for streams of texts, read back by `inspect` and `verify`: vectors in every form that `embed` writes,
 * the part of an interrupted command with the note of its progress, and TensorBoard events. */
#ifndef CMD_INSPECT_OUTPUT_FILES_H
#define CMD_INSPECT_OUTPUT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct vector_facts {
	const char *form;             /* "NumPy array of float32", "JSON lines", "TSV", "extract_features.py's JSON lines", ... */
	int64_t rows, columns, bytes; /* Google's form: one row per token and layer; weights of words: the most of a text */
	bool is_sparse;               /* weights of words */
};
/* Reads a whole file of vectors. Rows of different lengths, numbers that are not finite, and a file that is cut off are ERR_DATA
 * with the line or row. */
MUST_USE enum status vector_file_read(const char *path, struct vector_facts *out);

/* PATH.part and the PATH.progress beside it. */
struct part_facts {
	int64_t bytes;
	bool has_note;
	int64_t texts, saved; /* `texts` texts are answered in the first `saved` bytes */
	uint32_t crc32c;      /* of those bytes */
	char *made_from;      /* lines of "name: value"; the caller frees it */
};
MUST_USE enum status part_file_read(const char *path, struct part_facts *out);

/* Counts the records of a file of events and verifies their checksums. A killed process may leave a last record that is cut off;
 * it is not counted. */
MUST_USE enum status event_file_count(const char *path, int64_t *out_records);

#endif
