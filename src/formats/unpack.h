/* Archives unpacked beside themselves, by libarchive: zip, tar.gz and the like. */
#ifndef FORMATS_UNPACK_H
#define FORMATS_UNPACK_H

#include <stdbool.h>
#include "base/error.h"

/* True for names that unpack() is meant for: .zip, .tar, .tgz, .tar.gz, ... */
bool unpack_is_archive(const char *path);

/* Unpacks regular files and folders of an archive below `folder`, which exists; what is there is written over. Entries
 * that would land outside it, links and devices are ERR_DATA, as is a damaged archive. */
MUST_USE enum status unpack(const char *archive, const char *folder);

#endif
