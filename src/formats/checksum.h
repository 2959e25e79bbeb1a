/* Checksums that publishers provide with their files: MD5, SHA-1, SHA-256 (by Nettle), and the name that Git gives a file, which
 * is the SHA-1 of "blob SIZE", a NUL, and its bytes. They detect damaged or outdated files; only SHA-256 protects against an
 * attacker. */
#ifndef FORMATS_CHECKSUM_H
#define FORMATS_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

#define CHECKSUM_BYTES 80 /* room for "sha256:" and 64 lowercase hexadecimal digits */

/* Parses "md5:HEX", "sha1:HEX", "sha256:HEX", "git:HEX", or just the digits (their number determines the algorithm) into `out`.
 */
MUST_USE enum status checksum_parse(const char *text, char out[CHECKSUM_BYTES]);

/* Computes the checksum of a file with the algorithm of `like` (as written by checksum_parse). */
MUST_USE enum status checksum_file(const char *path, const char *like, char out[CHECKSUM_BYTES]);

/* Looks up `name` in a list in the format of sha1sum and md5sum (lines of "HEX NAME" or "HEX *NAME"). */
bool checksum_in_list(const char *list, const char *name, char out[CHECKSUM_BYTES]);

/* HMAC-SHA256 of `bytes` bytes: whoever can compute it knows the key. */
#define CHECKSUM_HMAC_BYTES 32
void checksum_hmac(const char *key, const void *data, size_t bytes, unsigned char out[CHECKSUM_HMAC_BYTES]);
/* Compares two HMACs in constant time, so that the duration does not reveal where they differ. */
bool checksum_hmac_equal(const unsigned char a[CHECKSUM_HMAC_BYTES], const unsigned char b[CHECKSUM_HMAC_BYTES]);

#endif
