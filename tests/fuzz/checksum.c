/* Published checksums: a single one, or a list of them with names. */
#include "formats/checksum.h"
#include "fuzz.h"

#define MD5 "0123456789abcdef0123456789ABCDEF"

FUZZ_SEEDS(FUZZ_SEED(MD5), FUZZ_SEED("md5:" MD5), FUZZ_SEED("sha1:" MD5 "01234567"), FUZZ_SEED("sha256:" MD5 MD5),
	   FUZZ_SEED(MD5 "  a\r\n" MD5 " *file\n" MD5 MD5 "\tfile\n"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char out[CHECKSUM_BYTES], again[CHECKSUM_BYTES];
	char *text = malloc(count + 1);
	BUG_IF(!text);
	memcpy(text, bytes, count);
	text[count] = 0;
	if (checksum_parse(text, out) == OK)
		BUG_IF(checksum_parse(out, again) != OK || strcmp(out, again) != 0);
	if (checksum_in_list(text, "file", out))
		BUG_IF(checksum_parse(out, again) != OK || strcmp(out, again) != 0);
	free(text);
	return 0;
}
