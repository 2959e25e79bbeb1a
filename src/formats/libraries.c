/* Lists the libraries behind the formats, for `bertc version`. */
#include "formats/libraries.h"

#include <archive.h>
#include <bzlib.h>
#include <expat.h>
#include <lzma.h>
#include <nettle/version.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include "formats/curl_library.h"
#include "formats/hdf5_rows.h"

/* Extracts the first version from "libcurl/7.88.1 OpenSSL/3.0.16 zlib/1.2.13". */
static void curl_version_of(const struct curl_library *library, char *out, size_t size)
{
	const char *text = library->version(), *slash = strchr(text, '/');
	const char *begin = slash ? slash + 1 : text;
	snprintf(out, size, "%.*s", (int)strcspn(begin, " "), begin);
}

void formats_libraries(struct library_list *list)
{
	struct curl_library curl;
	char version[32];
	library_list_add(list, "zlib", zlibVersion());
	/* "1.0.8, 13-Jul-2019" */
	snprintf(version, sizeof version, "%.*s", (int)strcspn(BZ2_bzlibVersion(), ","), BZ2_bzlibVersion());
	library_list_add(list, "bzip2", version);
	library_list_add(list, "Zstandard", ZSTD_versionString());
	library_list_add(list, "liblzma", lzma_version_string());
	const char *expat = XML_ExpatVersion(); /* "expat_2.5.0" */
	library_list_add(list, "Expat", strchr(expat, '_') ? strchr(expat, '_') + 1 : expat);
	snprintf(version, sizeof version, "%d.%d", nettle_version_major(), nettle_version_minor());
	library_list_add(list, "Nettle", version);
	int number = archive_version_number(); /* 3006002 */
	snprintf(version, sizeof version, "%d.%d.%d", number / 1000000, number / 1000 % 1000, number % 1000);
	library_list_add(list, "libarchive", version);

	enum status status = hdf5_describe(version, sizeof version);
	library_list_add_loaded(list, "HDF5", status, version);
	status = curl_load(&curl);
	if (status == OK)
		curl_version_of(&curl, version, sizeof version);
	library_list_add_loaded(list, "libcurl", status, version);
}
