/* Verifies checksums of shards and instance files, in a thread of its own if they are large. */
#include "data/shard_check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"

struct shard_check {
	struct shard_contents *items; /* [count] */
	int64_t count;
	pthread_t thread;
	bool started;
	atomic_bool cancelled, done; /* `done` is set after `error` */
	struct error error;
};

static bool is_cancelled(const void *context)
{
	const struct shard_check *check = context;
	return check->cancelled;
}

static void *check_main(void *context)
{
	struct shard_check *check = context;
	enum status status = OK;
	for (int64_t i = 0; i < check->count && status == OK && !check->cancelled; i++)
		status = check->items[i].verify(check->items[i].file, is_cancelled, check);
	if (status != OK && !check->cancelled)
		check->error = *error_last();
	check->done = true;
	return NULL;
}

static enum status verify_shard(const void *shard, bool (*cancelled)(const void *context), const void *context)
{
	return shard_check_contents(shard, cancelled, context);
}

struct shard_contents shard_contents(const struct shard *shard)
{
	return (struct shard_contents){.verify = verify_shard, .file = shard, .bytes = (int64_t)shard->bin.size};
}

enum status shard_check_start(struct shard_check **out, const struct shard_contents *items, int64_t count, int64_t at_once)
{
	struct shard_check *check;
	int64_t bytes = 0;
	char size[FORMAT_BYTES];
	*out = NULL;
	for (int64_t i = 0; i < count; i++)
		bytes += items[i].bytes;
	if (bytes <= at_once) {
		for (int64_t i = 0; i < count; i++)
			TRY(items[i].verify(items[i].file, NULL, NULL));
		return OK;
	}
	TRY(memory_new(&check, 1, sizeof *check, "a check of shards"));
	enum status status = memory_new(&check->items, count, sizeof *check->items, "a check of shards");
	for (int64_t i = 0; status == OK && i < count; i++)
		check->items[i] = items[i];
	check->count = count;
	if (status == OK && pthread_create(&check->thread, NULL, check_main, check) != 0)
		status = error_set(ERR_RESOURCE, "cannot start the thread that checks training data");
	if (status != OK) {
		free(check->items);
		free(check);
		return status;
	}
	check->started = true;
	log_detail("the checksums of %s of training data are compared in the background", format_size(size, (double)bytes));
	*out = check;
	return OK;
}

enum status shard_check_status(struct shard_check *check)
{
	return check && check->done && check->error.status != OK ? error_restore(&check->error) : OK;
}

enum status shard_check_wait(struct shard_check *check)
{
	if (check && !check->done)
		log_note("waiting until all tokens are compared with their checksums");
	while (check && !check->done && !stop_requested())
		clock_pause(0.05);
	if (check && !check->done)
		return error_set(STOPPED, "stopped by %s while tokens were compared with their checksums", stop_reason());
	return shard_check_status(check);
}

void shard_check_close(struct shard_check *check)
{
	if (!check)
		return;
	check->cancelled = true;
	if (check->started)
		pthread_join(check->thread, NULL);
	free(check->items);
	free(check);
}
