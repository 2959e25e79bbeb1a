/* Integer tables in HDF5 files, read and written by rows. The HDF5 library does the work and is loaded on demand; if the machine
 * lacks it (ERR_RESOURCE), or the program was built without its headers (ERR_USAGE), every call here fails with that error. The
 * library trusts what it reads, so a file of unknown origin is read in a separate process that may crash
 * (data/pretraining/instance_convert.c). Not thread-safe. */
#ifndef FORMATS_HDF5_ROWS_H
#define FORMATS_HDF5_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Returns early the error that every other call here would return. Loads the library. */
MUST_USE enum status hdf5_require(void);
/* Writes the version of this machine's library: "1.10.8". Fails as hdf5_require() does. */
MUST_USE enum status hdf5_describe(char *out, size_t size);

/* Largest chunk and largest row that can be read, in elements: what the library holds in memory at a time. */
#define HDF5_CHUNK_MAX ((int64_t)64 << 20)

struct hdf5_file;
struct hdf5_dataset; /* closed with its file */
MUST_USE enum status hdf5_open(struct hdf5_file **out, const char *path);
/* Opens a dataset of integers, [rows] or [rows, columns]; *out = NULL if the file has none of that name. A different type or
 * rank, or too large a size, is ERR_DATA. */
MUST_USE enum status hdf5_dataset_open(struct hdf5_dataset **out, struct hdf5_file *file, const char *name, int64_t *out_rows,
				       int64_t *out_columns);
/* Reads rows [first, first + count) as 32-bit numbers; values out of range are clamped. */
MUST_USE enum status hdf5_read(struct hdf5_dataset *dataset, int64_t first, int64_t count, int32_t *out);
void hdf5_close(struct hdf5_file *file); /* NULL is allowed */

/* Writing is all or nothing: datasets grow by rows and are compressed with gzip at h5py's default level. */
struct hdf5_writer;
MUST_USE enum status hdf5_writer_open(struct hdf5_writer **out, const char *path);
/* `columns` 0: a vector. `bytes`: size of the stored type, 1 or 4. Sets *out to the dataset's number. */
MUST_USE enum status hdf5_writer_dataset(struct hdf5_writer *writer, const char *name, int64_t columns, int bytes, int *out);
MUST_USE enum status hdf5_writer_append(struct hdf5_writer *writer, int dataset, const int32_t *rows, int64_t count);
MUST_USE enum status hdf5_writer_commit(struct hdf5_writer *writer); /* frees the writer in any case */
void hdf5_writer_abandon(struct hdf5_writer *writer);                /* NULL is allowed */

#endif
