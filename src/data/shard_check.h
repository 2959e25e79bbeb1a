/* Verifies that the contents of open shards and instance files are what was written. A small amount of data is read right away; a
 * large amount is read by a thread while work on it begins. */
#ifndef DATA_SHARD_CHECK_H
#define DATA_SHARD_CHECK_H

#include "data/shard.h"

/* An open file whose contents have a checksum. */
struct shard_contents {
	/* ERR_DATA says what is wrong. Ends early, with any result, once `cancelled` returns true. */
	enum status (*verify)(const void *file, bool (*cancelled)(const void *context), const void *context);
	const void *file;
	int64_t bytes;
};
struct shard_contents shard_contents(const struct shard *shard);

struct shard_check;
/* The files behind the items are borrowed until shard_check_close(). If they have at most `at_once` bytes in all, they are read
 * before this returns (ERR_DATA names the file whose checksum is wrong) and *out is NULL; otherwise a thread reads them. */
#define SHARD_CHECK_AT_ONCE ((int64_t)256 << 20)
MUST_USE enum status shard_check_start(struct shard_check **out, const struct shard_contents *items, int64_t count,
				       int64_t at_once);
/* What the thread has found so far; does not wait. NULL is fine, also for the next two. */
MUST_USE enum status shard_check_status(struct shard_check *check);
/* Waits until everything is read; STOPPED if a request to stop comes first. */
MUST_USE enum status shard_check_wait(struct shard_check *check);
void shard_check_close(struct shard_check *check);

#endif
