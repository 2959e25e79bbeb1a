/* Checksums that publishers print beside their files: MD5, SHA-1, SHA-256 (by Nettle). They tell a broken
 * or outdated file from a good one; against an attacker only SHA-256 counts. */
#ifndef FORMATS_CHECKSUM_H
#define FORMATS_CHECKSUM_H

#include <stdbool.h>
#include "base/error.h"

#define CHECKSUM_BYTES 80 /* of "sha256:" and 64 hexadecimal digits, lower case */

/* Reads "md5:HEX", "sha1:HEX" or "sha256:HEX", or the digits alone (their number tells which), into `out`. */
MUST_USE enum status checksum_parse(const char *text, char out[CHECKSUM_BYTES]);

/* The checksum of a file, by the algorithm of `like` (as checksum_parse wrote it). */
MUST_USE enum status checksum_file(const char *path, const char *like, char out[CHECKSUM_BYTES]);

/* Looks up `name` in a list as sha1sum and md5sum write it ("HEX  NAME" or "HEX *NAME" a line). */
bool checksum_in_list(const char *list, const char *name, char out[CHECKSUM_BYTES]);

#endif
