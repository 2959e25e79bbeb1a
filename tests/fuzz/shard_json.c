/* PREFIX.json of token shards, beside files of two sentences. */
#include "base/hash.h"
#include "data/shard.h"
#include "fuzz.h"

static const uint8_t idx[] = "MMIDIDX\0\0\1\0\0\0\0\0\0\0\10\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
			     "\2\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
			     "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0";
static const uint8_t bin[] = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0};
#define IDX_BYTES (sizeof idx - 1)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char seed[1024];
	(void)argc;
	int size =
		snprintf(seed, sizeof seed,
			 "{\"format\": \"bertc token shard\", \"version\": 1, \"documents\": 1, \"sentences\": 2, \"tokens\": 5, "
			 "\"bin_bytes\": %zu, \"idx_bytes\": %zu, \"idx_crc32c\": \"%08x\", \"bin_crc32c\": \"%08x\", "
			 "\"vocab_size\": 10, \"unknown_tokens\": 1, \"vocab_hash\": \"00ff\", \"source_fingerprint\": \"1\", "
			 "\"lowercase\": true, \"text_form\": \"sentences\"}",
			 sizeof bin, IDX_BYTES, crc32c(0, idx, IDX_BYTES), crc32c(0, bin, sizeof bin));
	fuzz_add_seed(*argv, seed, (size_t)size);
	fuzz_add_seed(*argv, "{\"format\": \"bertc token shard\", \"version\": 2}", 45);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct shard shard;
	char prefix[300];
	bool described;
	int64_t total;

	fuzz_file("s.idx", idx, IDX_BYTES);
	fuzz_file("s.bin", bin, sizeof bin);
	snprintf(prefix, sizeof prefix, "%s", fuzz_file("s.json", bytes, count));
	prefix[strlen(prefix) - strlen(".json")] = '\0';
	if (shard_open(&shard, prefix) == OK) {
		const struct shard_description *description = &shard.description;
		BUG_IF(!shard.described || description->tokens != 5 || description->unknown_tokens > 5);
		BUG_IF(memchr(description->text_form, 0, sizeof description->text_form) == NULL);
		shard_close(&shard);
		if (shard_verify(prefix, &total, &described) == OK)
			BUG_IF(!described || total != (int64_t)(IDX_BYTES + sizeof bin));
	}
	return 0;
}
