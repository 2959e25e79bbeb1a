/* Verifies that the contents of open shards and files of instances are those that were written. Few are read at once; of many a
 * thread reads them while work on them begins. */
#ifndef DATA_SHARD_CHECK_H
#define DATA_SHARD_CHECK_H

#include "data/shard.h"

/* Something open whose bytes have a checksum. */
struct shard_contents {
	/* ERR_DATA that names what is wrong. `cancelled` ends it early, with any result. */
	enum status (*verify)(const void *file, bool (*cancelled)(const void *context), const void *context);
	const void *file;
	int64_t bytes;
};
struct shard_contents shard_contents(const struct shard *shard);

struct shard_check;
/* What the items stand for is borrowed until shard_check_close(). Up to `at_once` bytes in all are read before this returns:
 * ERR_DATA names the file whose checksum is wrong. */
#define SHARD_CHECK_AT_ONCE ((int64_t)256 << 20)
MUST_USE enum status shard_check_start(struct shard_check **out, const struct shard_contents *items, int64_t count,
				       int64_t at_once);
/* What the thread has found so far; does not wait. NULL is fine, as for the next two. */
MUST_USE enum status shard_check_status(struct shard_check *check);
/* Waits until all is read; STOPPED if a request to stop comes first. */
MUST_USE enum status shard_check_wait(struct shard_check *check);
void shard_check_close(struct shard_check *check);

#endif
