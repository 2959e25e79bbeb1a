/* API keys: who may ask. */
#ifndef SERVE_API_KEYS_H
#define SERVE_API_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

#define API_KEY_BYTES 256

/* Zero-initialise: without keys everybody may ask. */
struct api_keys {
	char (*keys)[API_KEY_BYTES]; /* [count] padded with zeros */
	int64_t count;
};

/* Reads a file of keys, one a line; empty lines and those that begin with # are passed over. A key of more than 255 bytes or with
 * spaces or control characters, and a file without keys, are ERR_DATA. Warns of a file that other users can read. */
MUST_USE enum status api_keys_read(struct api_keys *out, const char *path);
void api_keys_release(struct api_keys *keys);

/* Is this the value of an Authorization header, "Bearer KEY", with one of the keys? Takes the same time whichever bytes of which
 * key are wrong. */
bool api_keys_allow(const struct api_keys *keys, const char *authorization);

#endif
