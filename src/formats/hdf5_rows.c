/* Integer tables in HDF5 files, through the HDF5 library. Without its headers, hdf5_absent.c is built instead. */
#include "formats/hdf5_rows.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/memory.h"
#include "formats/hdf5_library.h"

#define DATASETS_MAX 16
/* Elements per chunk of a dataset that is written: about 64 KiB, as h5py chooses. */
#define CHUNK_ELEMENTS 16384
#define RATIO_MAX 1032.0 /* maximum ratio of claimed to stored bytes: deflate cannot exceed it */
#define GZIP_LEVEL 4     /* h5py's default */

enum status hdf5_require(void)
{
	struct hdf5_library library;
	return hdf5_load(&library);
}

enum status hdf5_describe(char *out, size_t size)
{
	struct hdf5_library library;
	unsigned major = 0, minor = 0, patch = 0;
	out[0] = '\0';
	TRY(hdf5_load(&library));
	library.version(&major, &minor, &patch);
	snprintf(out, size, "%u.%u.%u", major, minor, patch);
	return OK;
}

/* Keeps the innermost reason that the library gives. */
static herr_t first_reason(unsigned depth, const H5E_error2_t *error, void *context)
{
	(void)depth;
	char *reason = context;
	if (reason[0] == 0 && error->desc != NULL)
		snprintf(reason, 256, "%s", error->desc);
	return 0;
}

static enum status failed(const struct hdf5_library *hdf5, enum status status, const char *path, const char *what)
{
	char reason[256] = "";
	hdf5->errors_walk(H5E_DEFAULT, H5E_WALK_UPWARD, first_reason, reason);
	status = error_set(status, "'%s': %s (HDF5: %s)", path, what, reason[0] != 0 ? reason : "no reason given");
	hdf5->errors_clear(H5E_DEFAULT);
	return status;
}

struct hdf5_dataset {
	struct hdf5_file *file;
	hid_t id;
	char name[64];
	int rank;
	hsize_t rows, columns;
};

struct hdf5_file {
	struct hdf5_library library;
	hid_t id;
	char path[PATH_BYTES];
	struct hdf5_dataset datasets[DATASETS_MAX];
	int dataset_count;
};

enum status hdf5_open(struct hdf5_file **out, const char *path)
{
	struct hdf5_library hdf5;
	struct hdf5_file *file;
	*out = NULL;
	TRY(hdf5_load(&hdf5));
	hdf5.errors_print(H5E_DEFAULT, NULL, NULL);
	TRY(memory_new(&file, 1, sizeof *file, "HDF5 file"));
	file->library = hdf5;
	snprintf(file->path, sizeof file->path, "%s", path);
	file->id = hdf5.file_open(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (file->id < 0) {
		free(file);
		return failed(&hdf5, ERR_DATA, path, "cannot be read");
	}
	*out = file;
	return OK;
}

/* Rows that were never written take no space in the file: the library makes up as many as the header says. So the claimed size
 * must not exceed what the stored bytes, which cannot be more than the file, can hold at gzip's best ratio. */
static enum status check_storage(const struct hdf5_dataset *dataset, size_t type_bytes)
{
	const struct hdf5_library *hdf5 = &dataset->file->library;
	int64_t file_bytes = file_size(dataset->file->path);
	double stored = (double)hdf5->dataset_stored_bytes(dataset->id),
	       claimed = (double)type_bytes * (double)dataset->rows * (double)dataset->columns;
	if (file_bytes >= 0 && stored > (double)file_bytes)
		stored = (double)file_bytes;
	if (claimed <= RATIO_MAX * stored)
		return OK;
	return error_set(
		ERR_DATA,
		"'%s': dataset '%s' claims %llu x %llu numbers, but %.0f bytes of the file belong to it: most were never "
		"written",
		dataset->file->path, dataset->name, (unsigned long long)dataset->rows, (unsigned long long)dataset->columns,
		stored);
}

/* Accepts only integers, of rank 1 or 2, in chunks that fit in memory. */
static enum status check_dataset(struct hdf5_dataset *dataset)
{
	const struct hdf5_library *hdf5 = &dataset->file->library;
	const char *path = dataset->file->path;
	hsize_t sizes[2] = {0, 1}, chunk[2] = {1, 1};
	hid_t type = hdf5->dataset_type(dataset->id), space = hdf5->dataset_space(dataset->id),
	      creation = hdf5->dataset_creation(dataset->id);
	bool integers = type >= 0 && hdf5->type_class(type) == H5T_INTEGER;
	size_t type_bytes = type >= 0 ? hdf5->type_size(type) : 0;
	dataset->rank = space >= 0 ? hdf5->space_rank(space) : -1;
	bool good = dataset->rank == 1 || dataset->rank == 2;
	if (good)
		good = hdf5->space_sizes(space, sizes, NULL) == dataset->rank;
	bool chunked = creation >= 0 && hdf5->properties_layout(creation) == H5D_CHUNKED;
	if (good && chunked)
		good = hdf5->properties_chunk(creation, dataset->rank, chunk) == dataset->rank;
	if (type >= 0)
		hdf5->type_close(type);
	if (space >= 0)
		hdf5->space_close(space);
	if (creation >= 0)
		hdf5->properties_close(creation);
	if (!integers)
		return error_set(ERR_DATA, "'%s': dataset '%s' holds no integers", path, dataset->name);
	if (!good)
		return error_set(ERR_DATA, "'%s': dataset '%s' is neither a vector nor a table", path, dataset->name);
	if (sizes[0] > INT64_MAX / 8 || sizes[1] > (hsize_t)HDF5_CHUNK_MAX || chunk[0] > (hsize_t)HDF5_CHUNK_MAX ||
	    chunk[1] > (hsize_t)HDF5_CHUNK_MAX || chunk[0] * chunk[1] > (hsize_t)HDF5_CHUNK_MAX)
		return error_set(ERR_DATA, "'%s': dataset '%s' is too large, or in too large chunks", path, dataset->name);
	dataset->rows = sizes[0];
	dataset->columns = sizes[1];
	return check_storage(dataset, type_bytes);
}

enum status hdf5_dataset_open(struct hdf5_dataset **out, struct hdf5_file *file, const char *name, int64_t *out_rows,
			      int64_t *out_columns)
{
	const struct hdf5_library *hdf5 = &file->library;
	*out = NULL;
	*out_rows = *out_columns = 0;
	htri_t exists = hdf5->link_exists(file->id, name, H5P_DEFAULT);
	if (exists < 0)
		return failed(hdf5, ERR_DATA, file->path, "its list of datasets cannot be read");
	if (exists == 0)
		return OK;
	BUG_IF(file->dataset_count == DATASETS_MAX);
	struct hdf5_dataset *dataset = &file->datasets[file->dataset_count];
	*dataset = (struct hdf5_dataset){.file = file, .id = hdf5->dataset_open(file->id, name, H5P_DEFAULT)};
	snprintf(dataset->name, sizeof dataset->name, "%s", name);
	if (dataset->id < 0)
		return failed(hdf5, ERR_DATA, file->path, "a dataset cannot be opened");
	file->dataset_count++;
	TRY(check_dataset(dataset));
	*out = dataset;
	*out_rows = (int64_t)dataset->rows;
	*out_columns = (int64_t)dataset->columns;
	return OK;
}

enum status hdf5_read(struct hdf5_dataset *dataset, int64_t first, int64_t count, int32_t *out)
{
	const struct hdf5_library *hdf5 = &dataset->file->library;
	hsize_t begin[2] = {(hsize_t)first, 0}, sizes[2] = {(hsize_t)count, dataset->columns};
	BUG_IF(first < 0 || count < 0 || (hsize_t)(first + count) > dataset->rows);
	hid_t memory = hdf5->space_create(dataset->rank, sizes, NULL), space = hdf5->dataset_space(dataset->id);
	bool good = memory >= 0 && space >= 0 && hdf5->space_select(space, H5S_SELECT_SET, begin, NULL, sizes, NULL) >= 0 &&
		    hdf5->dataset_read(dataset->id, *hdf5->native_int32, memory, space, H5P_DEFAULT, out) >= 0;
	enum status status = OK;
	if (!good) {
		char what[160];
		snprintf(what, sizeof what, "dataset '%s' cannot be read at row %lld", dataset->name, (long long)first);
		status = failed(hdf5, ERR_DATA, dataset->file->path, what);
		error_hint(
			"the file is truncated or damaged, or compressed with a filter of another program, such as h5py's lzf: "
			"get it again, or write it with gzip");
	}
	if (memory >= 0)
		hdf5->space_close(memory);
	if (space >= 0)
		hdf5->space_close(space);
	return status;
}

void hdf5_close(struct hdf5_file *file)
{
	if (file == NULL)
		return;
	const struct hdf5_library *hdf5 = &file->library;
	for (int i = 0; i < file->dataset_count; i++)
		hdf5->dataset_close(file->datasets[i].id);
	hdf5->file_close(file->id);
	free(file);
}

struct hdf5_writer {
	struct hdf5_library library;
	hid_t id;
	char path[PATH_BYTES], temporary[PATH_BYTES];
	struct {
		hid_t id;
		int rank;
		hsize_t sizes[2];
	} datasets[DATASETS_MAX];
	int dataset_count;
};

enum status hdf5_writer_open(struct hdf5_writer **out, const char *path)
{
	struct hdf5_library hdf5;
	struct hdf5_writer *writer;
	char target[PATH_BYTES];
	*out = NULL;
	if (file_is_folder(path))
		return error_set(ERR_USAGE, "'%s' is a folder, so no file can be written there", path);
	if (file_exists(path) && file_size(path) < 0) /* a rename would replace a pipe or a device with a file */
		return error_set(ERR_USAGE, "'%s' is not a seekable file, which HDF5 needs", path);
	TRY(path_behind_links(target, path));
	TRY(hdf5_load(&hdf5));
	hdf5.errors_print(H5E_DEFAULT, NULL, NULL);
	TRY(memory_new(&writer, 1, sizeof *writer, "HDF5 writer"));
	writer->library = hdf5;
	memcpy(writer->path, target, sizeof target);
	if (snprintf(writer->temporary, PATH_BYTES, "%s.tmp-%ld", target, (long)getpid()) >= PATH_BYTES) {
		free(writer);
		return error_set(ERR_USAGE, "'%.200s...': the path is too long", path);
	}
	writer->id = hdf5.file_create(writer->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	if (writer->id < 0) {
		free(writer);
		return failed(&hdf5, ERR_RESOURCE, path, "cannot be written");
	}
	*out = writer;
	return OK;
}

enum status hdf5_writer_dataset(struct hdf5_writer *writer, const char *name, int64_t columns, int bytes, int *out)
{
	const struct hdf5_library *hdf5 = &writer->library;
	int index = writer->dataset_count, rank = columns > 0 ? 2 : 1;
	hsize_t width = columns > 0 ? (hsize_t)columns : 1, rows = CHUNK_ELEMENTS / width;
	hsize_t sizes[2] = {0, width}, limits[2] = {H5S_UNLIMITED, width}, chunk[2] = {rows > 0 ? rows : 1, width};
	BUG_IF(index == DATASETS_MAX || (bytes != 1 && bytes != 4));
	hid_t space = hdf5->space_create(rank, sizes, limits), creation = hdf5->properties_create(*hdf5->creating_datasets),
	      id = -1;
	if (space >= 0 && creation >= 0 && hdf5->properties_set_chunk(creation, rank, chunk) >= 0 &&
	    hdf5->properties_set_deflate(creation, GZIP_LEVEL) >= 0)
		id = hdf5->dataset_create(writer->id, name, bytes == 1 ? *hdf5->stored_int8 : *hdf5->stored_int32, space,
					  H5P_DEFAULT, creation, H5P_DEFAULT);
	if (space >= 0)
		hdf5->space_close(space);
	if (creation >= 0)
		hdf5->properties_close(creation);
	if (id < 0)
		return failed(hdf5, ERR_RESOURCE, writer->path, "a dataset cannot be made");
	writer->datasets[index].id = id;
	writer->datasets[index].rank = rank;
	writer->datasets[index].sizes[0] = 0;
	writer->datasets[index].sizes[1] = width;
	*out = writer->dataset_count++;
	return OK;
}

enum status hdf5_writer_append(struct hdf5_writer *writer, int dataset, const int32_t *rows, int64_t count)
{
	const struct hdf5_library *hdf5 = &writer->library;
	hid_t id = writer->datasets[dataset].id;
	int rank = writer->datasets[dataset].rank;
	hsize_t *sizes = writer->datasets[dataset].sizes;
	hsize_t begin[2] = {sizes[0], 0}, part[2] = {(hsize_t)count, sizes[1]};
	if (count == 0)
		return OK;
	sizes[0] += (hsize_t)count;
	hid_t space = -1, memory = hdf5->space_create(rank, part, NULL);
	bool good = memory >= 0 && hdf5->dataset_set_extent(id, sizes) >= 0;
	if (good)
		space = hdf5->dataset_space(id);
	good = good && space >= 0 && hdf5->space_select(space, H5S_SELECT_SET, begin, NULL, part, NULL) >= 0 &&
	       hdf5->dataset_write(id, *hdf5->native_int32, memory, space, H5P_DEFAULT, rows) >= 0;
	if (memory >= 0)
		hdf5->space_close(memory);
	if (space >= 0)
		hdf5->space_close(space);
	return good ? OK : failed(hdf5, ERR_RESOURCE, writer->path, "cannot be written");
}

static bool close_all(struct hdf5_writer *writer)
{
	const struct hdf5_library *hdf5 = &writer->library;
	bool good = true;
	for (int i = 0; i < writer->dataset_count; i++)
		good &= hdf5->dataset_close(writer->datasets[i].id) >= 0;
	return (hdf5->file_close(writer->id) >= 0) & good;
}

static enum status make_durable(struct hdf5_writer *writer)
{
	char folder[PATH_BYTES];
	int descriptor = open(writer->temporary, O_RDONLY | O_CLOEXEC);
	bool synced = descriptor >= 0 && file_operations.fsync(descriptor) == 0;
	int cause = errno;
	if (descriptor >= 0)
		close(descriptor);
	errno = cause;
	if (!synced || file_operations.rename(writer->temporary, writer->path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot be written", writer->path);
	path_folder(folder, writer->path);
	return folder_sync(folder);
}

enum status hdf5_writer_commit(struct hdf5_writer *writer)
{
	enum status status = OK;
	if (!close_all(writer))
		status = failed(&writer->library, ERR_RESOURCE, writer->path, "cannot be written to its end");
	if (status == OK)
		status = make_durable(writer);
	if (status != OK)
		file_operations.unlink(writer->temporary);
	free(writer);
	return status;
}

void hdf5_writer_abandon(struct hdf5_writer *writer)
{
	if (writer == NULL)
		return;
	close_all(writer);
	file_operations.unlink(writer->temporary);
	free(writer);
}
