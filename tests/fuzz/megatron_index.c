/* PREFIX.idx of token shards, beside a PREFIX.bin of 64 bytes. */
#include "data/shard.h"
#include "fuzz.h"

#define HEADER "MMIDIDX\0\0\1\0\0\0\0\0\0\0\10"

FUZZ_SEEDS(FUZZ_SEED(HEADER "\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
			    "\20\0\0\0\20\0\0\0\0\0\0\0\0\0\0\0\40\0\0\0\0\0\0\0"
			    "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"),
	   FUZZ_SEED(HEADER "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), FUZZ_SEED("MMIDIDX\0\0\2"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const uint8_t ids[64] = {1, 0, 2, 0, 3, 0, 4, 0, 255, 255};
	static struct shard shard;
	char prefix[300];
	int32_t copy[32];

	snprintf(prefix, sizeof prefix, "%s", fuzz_file("s.idx", bytes, count));
	fuzz_file("s.bin", ids, sizeof ids);
	prefix[strlen(prefix) - strlen(".idx")] = '\0';
	if (shard_open(&shard, prefix) == OK) {
		enum status checked = shard_check_vocab(&shard, 0, 1000);
		for (int64_t i = 0; i < shard.sentence_count; i++) {
			int32_t length = shard_length(&shard, i);
			BUG_IF(length < 1 || length > 32 || length > shard.longest_sentence);
			enum status got = shard_tokens(&shard, i, 0, length, 1000, copy);
			BUG_IF(got != OK && checked == OK);
		}
		for (int64_t d = 0; d < shard.document_count; d++)
			BUG_IF(shard_document(&shard, d) > shard_document(&shard, d + 1));
		shard_close(&shard);
	}
	return 0;
}
