/* Integer tables of HDF5 files, read and written by rows. HDF5's own library does the work and is loaded for it; where the
 * machine lacks it (ERR_RESOURCE), or the program was built without its headers (ERR_USAGE), every call here fails and says so.
 * The library trusts what it reads: a file of unknown origin is read in a process that may die (data/instance_convert.c). One
 * thread at a time. */
#ifndef FORMATS_HDF5_ROWS_H
#define FORMATS_HDF5_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* The error that every other call here would give, before work has gone into it. Loads the library. */
MUST_USE enum status hdf5_require(void);
/* "1.10.8": the library of this machine. Fails as hdf5_require() does. */
MUST_USE enum status hdf5_describe(char *out, size_t size);

/* Largest chunk and largest row that are read, in elements: what the library takes into memory at a time. */
#define HDF5_CHUNK_MAX ((int64_t)64 << 20)

struct hdf5_file;
struct hdf5_dataset; /* closed with its file */
MUST_USE enum status hdf5_open(struct hdf5_file **out, const char *path);
/* A dataset of integers, [rows] or [rows, columns]; *out = NULL if the file has none of that name. Another type, rank
 * or size is ERR_DATA. */
MUST_USE enum status hdf5_dataset_open(struct hdf5_dataset **out, struct hdf5_file *file, const char *name, int64_t *out_rows,
				       int64_t *out_columns);
/* Rows [first, first + count) as 32-bit numbers (values beyond become the nearest). */
MUST_USE enum status hdf5_read(struct hdf5_dataset *dataset, int64_t first, int64_t count, int32_t *out);
void hdf5_close(struct hdf5_file *file); /* NULL is fine */

/* Writing, whole or not at all: datasets grow by rows, compressed by gzip as h5py does by default. */
struct hdf5_writer;
MUST_USE enum status hdf5_writer_open(struct hdf5_writer **out, const char *path);
/* `columns` 0: a vector. `bytes` of the stored type: 1 or 4. Returns the dataset's number in *out. */
MUST_USE enum status hdf5_writer_dataset(struct hdf5_writer *writer, const char *name, int64_t columns, int bytes, int *out);
MUST_USE enum status hdf5_writer_append(struct hdf5_writer *writer, int dataset, const int32_t *rows, int64_t count);
MUST_USE enum status hdf5_writer_commit(struct hdf5_writer *writer); /* frees whatever happens */
void hdf5_writer_abandon(struct hdf5_writer *writer);                /* NULL is fine */

#endif
