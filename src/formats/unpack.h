/* Archives unpacked beside themselves, by libarchive: zip, tar.gz and the like. */
#ifndef FORMATS_UNPACK_H
#define FORMATS_UNPACK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

/* What an archive may become. A few megabytes can hold terabytes of zeros. */
struct unpack_limits {
	int64_t bytes, files; /* in all; folders count as files */
	double ratio;         /* unpacked bytes for each byte of the archive; not applied below 64 MiB unpacked */
};

/* True for names that unpack() is meant for: .zip, .tar, .tgz, .tar.gz, ... */
bool unpack_is_archive(const char *path);

/* The folder that an archive is unpacked into: its path without the ending, written into out[PATH_BYTES]. */
void unpack_folder(const char *archive, char *out);

/* Unpacks the regular files and folders of an archive into `folder`, which must not exist yet and appears only when all is
 * there. If everything lies in a single folder of the archive, `folder` takes the place of that one. Entries that would land
 * elsewhere, links and devices are ERR_DATA, as is a damaged archive; one that exceeds the limits, or the space that is left on
 * the disk, is ERR_RESOURCE; a folder that exists is ERR_STATE. Nothing stays after an error. Stops with STOPPED on request. */
MUST_USE enum status unpack(const char *archive, const char *folder, const struct unpack_limits *limits);

#endif
