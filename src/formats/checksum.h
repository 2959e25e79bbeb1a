/* Checksums that publishers print beside their files: MD5, SHA-1, SHA-256 (by Nettle). They tell a broken
 * or outdated file from a good one; against an attacker only SHA-256 counts. */
#ifndef FORMATS_CHECKSUM_H
#define FORMATS_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

#define CHECKSUM_BYTES 80 /* of "sha256:" and 64 hexadecimal digits, lower case */

/* Reads "md5:HEX", "sha1:HEX" or "sha256:HEX", or the digits alone (their number tells which), into `out`. */
MUST_USE enum status checksum_parse(const char *text, char out[CHECKSUM_BYTES]);

/* The checksum of a file, by the algorithm of `like` (as checksum_parse wrote it). */
MUST_USE enum status checksum_file(const char *path, const char *like, char out[CHECKSUM_BYTES]);

/* Looks up `name` in a list as sha1sum and md5sum write it ("HEX  NAME" or "HEX *NAME" a line). */
bool checksum_in_list(const char *list, const char *name, char out[CHECKSUM_BYTES]);

/* HMAC-SHA256 of `bytes` bytes: whoever can make it knows the key. */
#define CHECKSUM_HMAC_BYTES 32
void checksum_hmac(const char *key, const void *data, size_t bytes, unsigned char out[CHECKSUM_HMAC_BYTES]);
/* Compares two of them in a time that does not tell where they differ. */
bool checksum_hmac_equal(const unsigned char a[CHECKSUM_HMAC_BYTES], const unsigned char b[CHECKSUM_HMAC_BYTES]);

#endif
