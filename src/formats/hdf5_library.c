/* Loads HDF5 and finds its functions. */
#include "formats/hdf5_library.h"

#include "base/shared_library.h"

#define INSTEAD "use TFRecord files"

/* HDF5's object identifiers have 64 bits since 1.10. */
#if !H5_VERSION_GE(1, 10, 0)
#error "hdf5.h of 1.10 or later is needed"
#endif

enum status hdf5_load(struct hdf5_library *out)
{
	void *handle;
	/* 1.10, 1.12, and 1.14, as named by Debian and others: the functions that we call are the same in all of them. */
	static const struct shared_library library = {
		.name = "HDF5",
		.files = {"libhdf5_serial.so.103", "libhdf5.so.103", "libhdf5.so.200", "libhdf5_serial.so.310", "libhdf5.so.310"},
		.package = "HDF5 1.10 to 1.14 (the package libhdf5-103-1 of Debian 12 and Ubuntu, hdf5 of Fedora)",
		.instead = INSTEAD};
	/* clang-format off */
	const struct shared_library_function functions[] = {
		{"H5open", &out->open}, {"H5get_libversion", &out->version}, {"H5Eset_auto2", &out->errors_print},
		{"H5Ewalk2", &out->errors_walk}, {"H5Eclear2", &out->errors_clear}, {"H5Fopen", &out->file_open},
		{"H5Fcreate", &out->file_create}, {"H5Fclose", &out->file_close}, {"H5Lexists", &out->link_exists},
		{"H5Dopen2", &out->dataset_open}, {"H5Dcreate2", &out->dataset_create}, {"H5Dclose", &out->dataset_close},
		{"H5Dread", &out->dataset_read}, {"H5Dwrite", &out->dataset_write}, {"H5Dset_extent", &out->dataset_set_extent},
		{"H5Dget_type", &out->dataset_type}, {"H5Dget_space", &out->dataset_space},
		{"H5Dget_create_plist", &out->dataset_creation}, {"H5Dget_storage_size", &out->dataset_stored_bytes},
		{"H5Tget_class", &out->type_class}, {"H5Tget_size", &out->type_size}, {"H5Tclose", &out->type_close},
		{"H5Screate_simple", &out->space_create}, {"H5Sget_simple_extent_ndims", &out->space_rank},
		{"H5Sget_simple_extent_dims", &out->space_sizes}, {"H5Sselect_hyperslab", &out->space_select},
		{"H5Sclose", &out->space_close}, {"H5Pcreate", &out->properties_create},
		{"H5Pget_layout", &out->properties_layout}, {"H5Pget_chunk", &out->properties_chunk},
		{"H5Pset_chunk", &out->properties_set_chunk}, {"H5Pset_deflate", &out->properties_set_deflate},
		{"H5Pclose", &out->properties_close}, {"H5T_NATIVE_INT32_g", &out->native_int32},
		{"H5T_STD_I8LE_g", &out->stored_int8}, {"H5T_STD_I32LE_g", &out->stored_int32},
		{"H5P_CLS_DATASET_CREATE_ID_g", &out->creating_datasets},
	};
	/* clang-format on */
	TRY(shared_library_open(&handle, &library, functions, sizeof functions / sizeof functions[0]));
	unsigned major = 0, minor = 0, patch = 0;
	if (out->open() < 0 || out->version(&major, &minor, &patch) < 0)
		return error_set(ERR_RESOURCE, "HDF5's library does not start");
	if (major == 1 && minor >= 10 && minor <= 14)
		return OK;
	return error_hinted(error_set(ERR_RESOURCE, "this machine has HDF5 %u.%u.%u, but only 1.10 to 1.14 are supported", major,
				      minor, patch),
			    "install %s, or " INSTEAD, library.package);
}
