/* The HDF5 functions that we call. The library is loaded when an HDF5 file is read or written, not when the program starts. */
#ifndef FORMATS_HDF5_LIBRARY_H
#define FORMATS_HDF5_LIBRARY_H

#include <hdf5.h>
#include "base/error.h"

/* The constants of hdf5.h first call these two library functions; hdf5_load() already does that. */
#undef H5OPEN
#define H5OPEN
#undef H5CHECK
#define H5CHECK

/* Each as hdf5.h declares it. */
struct hdf5_library {
	__typeof__(H5open) *open;
	__typeof__(H5get_libversion) *version;
	__typeof__(H5Eset_auto2) *errors_print;
	__typeof__(H5Ewalk2) *errors_walk;
	__typeof__(H5Eclear2) *errors_clear;
	__typeof__(H5Fopen) *file_open;
	__typeof__(H5Fcreate) *file_create;
	__typeof__(H5Fclose) *file_close;
	__typeof__(H5Lexists) *link_exists;
	__typeof__(H5Dopen2) *dataset_open;
	__typeof__(H5Dcreate2) *dataset_create;
	__typeof__(H5Dclose) *dataset_close;
	__typeof__(H5Dread) *dataset_read;
	__typeof__(H5Dwrite) *dataset_write;
	__typeof__(H5Dset_extent) *dataset_set_extent;
	__typeof__(H5Dget_type) *dataset_type;
	__typeof__(H5Dget_space) *dataset_space;
	__typeof__(H5Dget_create_plist) *dataset_creation;
	__typeof__(H5Dget_storage_size) *dataset_stored_bytes;
	__typeof__(H5Tget_class) *type_class;
	__typeof__(H5Tget_size) *type_size;
	__typeof__(H5Tclose) *type_close;
	__typeof__(H5Screate_simple) *space_create;
	__typeof__(H5Sget_simple_extent_ndims) *space_rank;
	__typeof__(H5Sget_simple_extent_dims) *space_sizes;
	__typeof__(H5Sselect_hyperslab) *space_select;
	__typeof__(H5Sclose) *space_close;
	__typeof__(H5Pcreate) *properties_create;
	__typeof__(H5Pget_layout) *properties_layout;
	__typeof__(H5Pget_chunk) *properties_chunk;
	__typeof__(H5Pset_chunk) *properties_set_chunk;
	__typeof__(H5Pset_deflate) *properties_set_deflate;
	__typeof__(H5Pclose) *properties_close;
	/* The variables behind H5T_NATIVE_INT32, H5T_STD_I8LE, H5T_STD_I32LE, and H5P_DATASET_CREATE. */
	hid_t *native_int32, *stored_int8, *stored_int32, *creating_datasets;
};

/* Loads it for the lifetime of the process, since it cleans up at exit. ERR_RESOURCE: this machine does not have a usable one. */
MUST_USE enum status hdf5_load(struct hdf5_library *out);

#endif
