/* Files that commands for streams of texts leave, read again by `inspect` and `verify`: vectors in every form of `embed`, the
 * part of an interrupted command with the note of its progress, TensorBoard's events. */
#ifndef CMD_OUTPUT_FILES_H
#define CMD_OUTPUT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct vector_facts {
	const char *form;             /* "NumPy array of float32", "JSON lines", "TSV", "extract_features.py's JSON lines" */
	int64_t rows, columns, bytes; /* of Google's form: tokens of all texts, numbers of a layer */
};
/* Reads all of a file of vectors. Rows of different lengths, numbers that are not finite, and a file that is cut off are ERR_DATA
 * with the line or row. */
MUST_USE enum status vector_file_read(const char *path, struct vector_facts *out);

/* PATH.part and, beside it, PATH.progress. */
struct part_facts {
	int64_t bytes;
	bool has_note;
	int64_t texts, saved; /* so many texts are answered in the first `saved` bytes */
	uint32_t crc32c;      /* of these */
	char *made_from;      /* lines of "name: value"; the caller frees it */
};
MUST_USE enum status part_file_read(const char *path, struct part_facts *out);

/* Counts the records of a file of events; their checksums are verified. A last record that is cut off is what a process that was
 * killed leaves: it is not counted. */
MUST_USE enum status event_file_count(const char *path, int64_t *out_records);

#endif
