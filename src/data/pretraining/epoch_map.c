/* Finds the instances of an epoch by number. Documents are divided into ranges with about equal numbers of sentences; each range
 * is walked by whichever thread is free and has its own marks. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/pool.h"
#include "data/pretraining/walk.h"

#define RANGE_SENTENCES 65536
#define THREADS_MAX 64

static int64_t sentences_before(const struct text_set *set, int64_t document)
{
	int64_t s = set->shard_count - 1;
	while (s > 0 && set->document_base[s] > document)
		s--;
	return set->sentence_base[s] + shard_document(&set->shards[s], document - set->document_base[s]);
}

/* The first document with at least `sentence` sentences before it. */
static int64_t document_at(const struct text_set *set, int64_t sentence)
{
	int64_t low = 0, high = text_set_documents(set);
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (sentences_before(set, middle) < sentence)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

enum status epoch_map_open(struct epoch_map *out, const struct text_set *set)
{
	int64_t sentences = set->sentence_base[set->shard_count], documents = text_set_documents(set);
	int64_t wanted = sentences / RANGE_SENTENCES + 1;
	*out = (struct epoch_map){.epoch = -1, .threads = pool_available_cores()};
	TRY(memory_new(&out->ranges, wanted, sizeof *out->ranges, "ranges of documents"));
	for (int64_t i = 1, from = 0; i <= wanted; i++) {
		int64_t end = i < wanted ? document_at(set, sentences / wanted * i) : documents;
		if (end == from)
			continue;
		out->ranges[out->range_count++] = (struct epoch_range){.document = from, .end = end};
		from = end;
	}
	return OK;
}

void epoch_map_close(struct epoch_map *map)
{
	for (int64_t i = 0; i < map->range_count; i++)
		free(map->ranges[i].marks);
	free(map->ranges);
	*map = (struct epoch_map){.epoch = -1};
}

struct walking {
	struct epoch_map *map;
	const struct text_set *set;
	int64_t epoch;
	atomic_llong next; /* next range to walk */
	pthread_mutex_t lock;
	struct error error; /* the first one; status OK while nothing has failed */
};

static enum status walk_range(const struct walking *walking, struct epoch_range *range)
{
	struct walker walker = walk_from(walking->set, walking->epoch, range->document, range->end);
	struct example_plan plan;
	range->count = 0;
	for (;;) {
		struct mark mark = walk_mark(&walker);
		if (!walk_next(&walker, &plan))
			return OK;
		if (range->count % MARK_INSTANCES == 0) {
			int64_t index = range->count / MARK_INSTANCES;
			TRY(memory_grow(&range->marks, &range->mark_capacity, index + 1, sizeof *range->marks,
					"instances of an epoch"));
			range->marks[index] = mark;
		}
		range->count++;
	}
}

static void *walk_ranges(void *context)
{
	struct walking *walking = context;
	for (;;) {
		int64_t index = atomic_fetch_add(&walking->next, 1);
		if (index >= walking->map->range_count)
			return NULL;
		if (walk_range(walking, &walking->map->ranges[index]) == OK)
			continue;
		pthread_mutex_lock(&walking->lock);
		if (walking->error.status == OK)
			walking->error = *error_last();
		pthread_mutex_unlock(&walking->lock);
		atomic_store(&walking->next, walking->map->range_count);
	}
}

enum status epoch_map_walk(struct epoch_map *map, const struct text_set *set, int64_t epoch, int threads)
{
	struct walking walking = {.map = map, .set = set, .epoch = epoch};
	pthread_t helpers[THREADS_MAX];
	int helper_count = 0;
	if (threads == 0)
		threads = map->threads;
	if (threads > map->range_count)
		threads = (int)map->range_count;
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	map->epoch = -1;
	pthread_mutex_init(&walking.lock, NULL);
	/* Only the main thread handles signals. Helpers that cannot be started are not needed. */
	sigset_t all, before;
	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* a mapped file was truncated: the handler runs in the thread that reads it */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (helper_count < threads - 1 && pthread_create(&helpers[helper_count], NULL, walk_ranges, &walking) == 0)
		helper_count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	walk_ranges(&walking);
	for (int i = 0; i < helper_count; i++)
		pthread_join(helpers[i], NULL);
	pthread_mutex_destroy(&walking.lock);
	if (walking.error.status != OK)
		return error_restore(&walking.error);
	map->count = 0;
	for (int64_t i = 0; i < map->range_count; i++) {
		map->ranges[i].first = map->count;
		map->count += map->ranges[i].count;
	}
	map->epoch = epoch;
	return OK;
}

enum status epoch_map_reserve(struct epoch_map *map)
{
	for (int64_t i = 0; i < map->range_count; i++) {
		struct epoch_range *range = &map->ranges[i];
		int64_t marks = range->count / MARK_INSTANCES + 1;
		TRY(memory_grow(&range->marks, &range->mark_capacity, marks + marks / 4 + 32, sizeof *range->marks,
				"instances of an epoch"));
	}
	return OK;
}

void epoch_map_find(const struct epoch_map *map, const struct text_set *set, int64_t index, struct example_plan *out)
{
	int64_t low = 0, high = map->range_count;
	BUG_IF(index < 0 || index >= map->count);
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (map->ranges[middle].first <= index)
			low = middle;
		else
			high = middle;
	}
	const struct epoch_range *range = &map->ranges[low];
	index -= range->first;
	struct walker walker = walk_from_mark(set, map->epoch, &range->marks[index / MARK_INSTANCES], range->end);
	for (int64_t i = 0; i <= index % MARK_INSTANCES; i++)
		BUG_IF(!walk_next(&walker, out));
}
