/* Recognizes published checksums and computes them, and HMACs, with Nettle. */
#include "formats/checksum.h"

#include <ctype.h>
#include <inttypes.h>
#include <nettle/hmac.h>
#include <nettle/md5.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"

static const struct algorithm {
	const char *name, *hash; /* hash: its name in Nettle */
	size_t digits;
} algorithms[] = {{"md5", "md5", 32}, {"sha1", "sha1", 40}, {"sha256", "sha256", 64}, {"git", "sha1", 40}};
#define ALGORITHM_COUNT (sizeof algorithms / sizeof *algorithms)

/* The algorithm that `text` names, or the one whose digests have as many digits; *digits points to the digits. */
static const struct algorithm *algorithm_of(const char *text, const char **digits)
{
	for (size_t i = 0; i < ALGORITHM_COUNT; i++) {
		size_t size = strlen(algorithms[i].name);
		if (strncmp(text, algorithms[i].name, size) == 0 && text[size] == ':') {
			*digits = text + size + 1;
			return &algorithms[i];
		}
	}
	*digits = text;
	for (size_t i = 0; i < ALGORITHM_COUNT; i++) {
		if (strlen(text) == algorithms[i].digits)
			return &algorithms[i];
	}
	return NULL;
}

enum status checksum_parse(const char *text, char out[CHECKSUM_BYTES])
{
	const char *digits;
	const struct algorithm *algorithm = algorithm_of(text, &digits);
	if (!algorithm || strlen(digits) != algorithm->digits || strspn(digits, "0123456789abcdefABCDEF") != algorithm->digits)
		return error_hinted(error_set(ERR_USAGE, "'%.80s' is not a checksum", text),
				    "write md5:, sha1: or sha256: and 32, 40 or 64 hexadecimal digits");
	int used = snprintf(out, CHECKSUM_BYTES, "%s:", algorithm->name);
	for (size_t i = 0; i <= algorithm->digits; i++)
		out[(size_t)used + i] = (char)tolower((unsigned char)digits[i]);
	return OK;
}

enum status checksum_file(const char *path, const char *like, char out[CHECKSUM_BYTES])
{
	const char *digits;
	const struct algorithm *algorithm = algorithm_of(like, &digits);
	BUG_IF(!algorithm);
	const struct nettle_hash *hash = nettle_lookup_hash(algorithm->hash);
	union {
		struct md5_ctx md5;
		struct sha1_ctx sha1;
		struct sha256_ctx sha256;
	} context;
	uint8_t bytes[1 << 16], digest[SHA256_DIGEST_SIZE];
	BUG_IF(!hash || hash->context_size > sizeof context || 2 * (size_t)hash->digest_size != algorithm->digits);

	FILE *file = fopen(path, "rb");
	if (!file)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot read", path);
	hash->init(&context);
	size_t count;
	if (strcmp(algorithm->name, "git") == 0) {
		int used = snprintf((char *)bytes, sizeof bytes, "blob %" PRId64, file_size(path));
		hash->update(&context, (size_t)used + 1, bytes);
	}
	while ((count = fread(bytes, 1, sizeof bytes, file)) > 0)
		hash->update(&context, count, bytes);
	bool failed = ferror(file) != 0;
	enum status status = failed ? error_set_errno(ERR_RESOURCE, "'%s': cannot read", path) : OK;
	(void)fclose(file);
	TRY(status);
	hash->digest(&context, hash->digest_size, digest);
	int used = snprintf(out, CHECKSUM_BYTES, "%s:", algorithm->name);
	for (size_t i = 0; i < algorithm->digits / 2; i++)
		snprintf(out + used + 2 * i, 3, "%02x", digest[i]);
	return OK;
}

bool checksum_in_list(const char *list, const char *name, char out[CHECKSUM_BYTES])
{
	size_t name_size = strlen(name);
	for (const char *line = list; *line;) {
		const char *end = line + strcspn(line, "\r\n");
		size_t digits = strspn(line, "0123456789abcdefABCDEF");
		const char *at = line + digits;
		if (digits > 0 && digits < CHECKSUM_BYTES && (*at == ' ' || *at == '\t')) {
			at += strspn(at, " \t");
			at += *at == '*';
			char text[CHECKSUM_BYTES];
			snprintf(text, sizeof text, "%.*s", (int)digits, line);
			if ((size_t)(end - at) == name_size && memcmp(at, name, name_size) == 0)
				return checksum_parse(text, out) == OK;
		}
		line = end + strspn(end, "\r\n");
	}
	return false;
}

void checksum_hmac(const char *key, const void *data, size_t bytes, unsigned char out[CHECKSUM_HMAC_BYTES])
{
	struct hmac_sha256_ctx state;
	hmac_sha256_set_key(&state, strlen(key), (const uint8_t *)key);
	hmac_sha256_update(&state, bytes, data);
	hmac_sha256_digest(&state, CHECKSUM_HMAC_BYTES, out);
}

bool checksum_hmac_equal(const unsigned char a[CHECKSUM_HMAC_BYTES], const unsigned char b[CHECKSUM_HMAC_BYTES])
{
	unsigned char differences = 0;
	for (int i = 0; i < CHECKSUM_HMAC_BYTES; i++)
		differences |= a[i] ^ b[i];
	return differences == 0;
}
