/* Text that is read line by line: pairs for learning to rewrite (first byte even), or sentences as Google's script reads
 * them, with marked words if the second bit is set. */
#include "base/file.h"
#include "data/pretraining/instance_files.h"
#include "data/line_shard.h"
#include "data/pretraining/rewriting.h"
#include "data/shard.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("\0"
		     "1\t7\ta b\ta b c d\n0\t8\tb c\tc\n -1 \t9\ta b c\ta b c a b c a b c\r\nx\t\t\t\n\n"),
	   FUZZ_SEED("\1a b c\nab c\n\n\xe4\xbb\x96 b\n\x1c\nc"),
	   FUZZ_SEED("\3"
		     "ab a\n\n\xe4\xbb\x96\xe4\xbb\x96\n"))

static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",          "[MASK]",      "a",
				      "b",     "c",     "##b",   "##\xe4\xbb\x96", "\xe4\xbb\x96"};

static int sync_nothing(int descriptor)
{
	(void)descriptor;
	return 0;
}

static void read_pairs(const struct tokenizer *tokenizer, const char *path, const char *prefix)
{
	struct rewriting_settings settings = {&path, 1, tokenizer, prefix, 1, 16, 4};
	struct rewriting_counts counts;
	struct rewriting *rewriting;
	struct instance instance;
	BUG_IF(instance_create(&instance, 16, 4) != OK);
	if (rewriting_open(&rewriting, &settings, &counts) == OK) {
		int64_t count = rewriting_count(rewriting);
		BUG_IF(count < 1 || count != counts.pairs || counts.lines < count + counts.unfit + counts.malformed);
		for (int64_t i = 0; i < count && i < 8; i++) {
			BUG_IF(rewriting_get(rewriting, 0, i, &instance) != OK);
			BUG_IF(instance.length < 8 || instance.length > 16 || instance.prediction_count < 1);
		}
		rewriting_close(rewriting);
	}
	instance_release(&instance);
}

static void read_lines(const struct tokenizer *tokenizer, const char *path, const char *prefix, bool segmented)
{
	struct line_shard_settings settings = {&path, 1, tokenizer, prefix, segmented};
	struct line_shard_counts counts;
	struct shard shard;
	if (line_shard_write(&settings, &counts) != OK)
		return;
	BUG_IF(shard_open(&shard, prefix) != OK);
	BUG_IF(shard.sentence_count != counts.sentences || shard.token_count != counts.tokens);
	shard_close(&shard);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct vocab vocab;
	static struct tokenizer *tokenizer;
	if (count == 0)
		return 0;
	if (!tokenizer) {
		struct tokenizer_settings settings = tokenizer_defaults(false);
		BUG_IF(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries) != OK);
		BUG_IF(tokenizer_open(&tokenizer, &vocab, &settings) != OK);
		file_operations.fsync = sync_nothing;
	}
	char prefix[300];
	const char *path = fuzz_file("lines", bytes + 1, count - 1);
	snprintf(prefix, sizeof prefix, "%s/shard", fuzz_folder);
	if (bytes[0] & 1)
		read_lines(tokenizer, path, prefix, bytes[0] & 2);
	else
		read_pairs(tokenizer, path, prefix);
	return 0;
}
