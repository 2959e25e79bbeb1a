/* Replaces hdf5_rows.c when the program is built without HDF5's headers. */
#include <stddef.h>
#include "formats/hdf5_rows.h"

enum status hdf5_require(void)
{
	return error_hinted(error_set(ERR_USAGE, "this bertc was built without HDF5"),
			    "build it where HDF5's headers are (Debian's package libhdf5-dev), or use TFRecord files");
}

enum status hdf5_describe(char *out, size_t size)
{
	(void)size;
	out[0] = '\0';
	return hdf5_require();
}

enum status hdf5_open(struct hdf5_file **out, const char *path)
{
	(void)path;
	*out = NULL;
	return hdf5_require();
}

enum status hdf5_dataset_open(struct hdf5_dataset **out, struct hdf5_file *file, const char *name, int64_t *out_rows,
			      int64_t *out_columns)
{
	(void)file, (void)name;
	*out = NULL;
	*out_rows = *out_columns = 0;
	return hdf5_require();
}

enum status hdf5_read(struct hdf5_dataset *dataset, int64_t first, int64_t count, int32_t *out)
{
	(void)dataset, (void)first, (void)count, (void)out;
	return hdf5_require();
}

void hdf5_close(struct hdf5_file *file)
{
	(void)file;
}

enum status hdf5_writer_open(struct hdf5_writer **out, const char *path)
{
	(void)path;
	*out = NULL;
	return hdf5_require();
}

enum status hdf5_writer_dataset(struct hdf5_writer *writer, const char *name, int64_t columns, int bytes, int *out)
{
	(void)writer, (void)name, (void)columns, (void)bytes;
	*out = 0;
	return hdf5_require();
}

enum status hdf5_writer_append(struct hdf5_writer *writer, int dataset, const int32_t *rows, int64_t count)
{
	(void)writer, (void)dataset, (void)rows, (void)count;
	return hdf5_require();
}

enum status hdf5_writer_commit(struct hdf5_writer *writer)
{
	(void)writer;
	return hdf5_require();
}

void hdf5_writer_abandon(struct hdf5_writer *writer)
{
	(void)writer;
}
