/* API keys: who may use the service. */
#ifndef SERVE_API_KEYS_H
#define SERVE_API_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

#define API_KEY_BYTES 256

/* Zero-initialize. Without keys, everyone is allowed. */
struct api_keys {
	char (*keys)[API_KEY_BYTES]; /* [count] padded with zeros */
	int64_t count;
};

/* Reads a file of keys, one per line, skipping empty lines and lines that begin with #. Returns ERR_DATA if a key is longer than
 * 255 bytes or has anything but visible ASCII characters, or if there are no keys. Warns if other users can read the file. */
MUST_USE enum status api_keys_read(struct api_keys *out, const char *path);
void api_keys_release(struct api_keys *keys);

/* Whether the value of an Authorization header is "Bearer KEY" with one of the keys. Takes the same time whichever bytes of a key
 * are wrong. */
bool api_keys_allow(const struct api_keys *keys, const char *authorization);

#endif
