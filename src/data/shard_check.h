/* Proves that the tokens of open shards are those their descriptions were written for. Few are read at once; of many a thread
 * reads them while work on them begins. */
#ifndef DATA_SHARD_CHECK_H
#define DATA_SHARD_CHECK_H

#include "data/shard.h"

struct shard_check;
/* Shards are borrowed until shard_check_close(). Up to `at_once` bytes in all are read before this returns: ERR_DATA names the
 * shard whose checksum is wrong. */
#define SHARD_CHECK_AT_ONCE ((int64_t)256 << 20)
MUST_USE enum status shard_check_start(struct shard_check **out, const struct shard *const *shards, int64_t count,
				       int64_t at_once);
/* What the thread has found so far; does not wait. NULL is fine, as for the next two. */
MUST_USE enum status shard_check_status(struct shard_check *check);
/* Waits until all is read; STOPPED if a request to stop comes first. */
MUST_USE enum status shard_check_wait(struct shard_check *check);
void shard_check_close(struct shard_check *check);

#endif
