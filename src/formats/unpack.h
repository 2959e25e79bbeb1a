/* Unpacks archives (zip, tar.gz, and the like) next to themselves, using libarchive. */
#ifndef FORMATS_UNPACK_H
#define FORMATS_UNPACK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

/* Limits on what an archive may expand to. A few megabytes can contain terabytes of zeros. */
struct unpack_limits {
	int64_t bytes, files; /* in total; folders count as files */
	double ratio;         /* unpacked bytes for each byte of the archive; not applied below 64 MiB unpacked */
};

/* Whether the name is one that unpack() is meant for: .zip, .tar, .tgz, .tar.gz, ... */
bool unpack_is_archive(const char *path);

/* The folder that an archive is unpacked into: its path without the ending, written into out[PATH_BYTES]. */
void unpack_folder(const char *archive, char *out);

/* Unpacks the regular files and folders of an archive into `folder`, which must not exist yet and appears only when it is
 * complete. If everything is in a single folder of the archive, `folder` replaces that one. Entries that would be written
 * elsewhere, links, and devices are ERR_DATA, as is a damaged archive; exceeding the limits or the free disk space is
 * ERR_RESOURCE; a folder that already exists is ERR_STATE. Nothing is left after an error. Returns STOPPED on request. */
MUST_USE enum status unpack(const char *archive, const char *folder, const struct unpack_limits *limits);

#endif
