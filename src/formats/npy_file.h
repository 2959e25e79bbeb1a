/* Reads NumPy's array files (.npy) that hold vectors: one matrix of float32, little-endian, row by row; or of bytes. */
#ifndef FORMATS_NPY_FILE_H
#define FORMATS_NPY_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/file_map.h"

/* Zero-initialize; close even after a failure. */
struct npy_file {
	struct file_map map;
	int64_t rows, columns;
	const float *values;        /* [rows * columns], in the mapped file; NULL: there are bytes instead */
	const unsigned char *codes; /* [rows * columns] */
	bool is_signed;             /* these bytes are from -128 */
	bool takes_codes;           /* in: a file of bytes is not refused */
};

/* ERR_DATA names the file and what is wrong: another type or order of the numbers, another number of dimensions, a damaged
 * header, or a file of the wrong size. */
MUST_USE enum status npy_file_open(struct npy_file *out, const char *path);
/* Refuses numbers that are not finite. */
MUST_USE enum status npy_file_check(const struct npy_file *file, const char *path);
void npy_file_close(struct npy_file *file);

/* The same for bytes in memory. `name` is for messages; `bytes` must be aligned to 4 and outlive the view. */
MUST_USE enum status npy_view(const unsigned char *bytes, size_t size, const char *name, struct npy_file *out);

#endif
