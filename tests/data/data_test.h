/* What the tests of src/data share: a temporary folder, and shards written from arrays. */
#ifndef TESTS_DATA_DATA_TEST_H
#define TESTS_DATA_DATA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/file.h"
#include "base/rng.h"
#include "data/shard.h"

static char folder[64];

static inline int make_folder(void **state)
{
	(void)state;
	const char *base = getenv("TMPDIR");
	snprintf(folder, sizeof(folder), "%.40s/data-XXXXXX", base && *base ? base : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static inline int drop_folder(void **state)
{
	(void)state;
	return folder_remove(folder) == OK ? 0 : -1;
}

/* "folder/name" in one of four buffers that take turns: for one call. */
static inline const char *in_folder(const char *name)
{
	static char paths[4][128];
	static int turn;
	char *path = paths[turn++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

#define MUST(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != OK)                                                                            \
			fail_msg("%s: %s", #call, error_last()->message);                                    \
	} while (0)

/* Fails unless `call` gives `status` with `part` in its message. */
#define REFUSED(call, wanted, part)                                                                          \
	do {                                                                                                 \
		enum status got_ = (call);                                                                   \
		if (got_ != (wanted) || !strstr(error_last()->message, (part)))                              \
			fail_msg("%s: status %d, \"%s\" instead of %d, \"%s\"", #call, (int)got_,            \
			         got_ == OK ? "" : error_last()->message, (int)(wanted), (part));            \
	} while (0)

/* A shard of documents with random sentences: ids from `first_id` on, 1 to `longest` tokens each. */
static inline void write_random_shard(const char *prefix, uint64_t seed, int documents, int most_sentences,
                                      int longest, int32_t first_id, int32_t vocab_size)
{
	struct rng rng = rng_start(seed, RNG_TEST, 0);
	struct shard_writer *writer;
	struct shard_description description = {.vocab_hash = seed};
	MUST(shard_writer_open(&writer, prefix, vocab_size));
	for (int d = 0; d < documents; d++) {
		int sentences = 1 + (int)rng_below(&rng, (uint32_t)most_sentences);
		for (int s = 0; s < sentences; s++) {
			int32_t ids[512];
			int count = 1 + (int)rng_below(&rng, (uint32_t)longest);
			for (int i = 0; i < count; i++)
				ids[i] = first_id +
				         (int32_t)rng_below(&rng, (uint32_t)(vocab_size - first_id));
			MUST(shard_writer_sentence(writer, ids, count));
		}
		MUST(shard_writer_end_document(writer));
	}
	MUST(shard_writer_commit(writer, &description));
}

#endif
