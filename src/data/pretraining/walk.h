/* The walk over documents that decides where each instance's text lies; the words of the algorithm are in
 * docs/math.md, "Instances" (Devlin et al., "BERT", 2019, appendix A.2). Internal to src/data. */
#ifndef DATA_PRETRAINING_WALK_H
#define DATA_PRETRAINING_WALK_H

#include "base/rng.h"
#include "data/pretraining/instances.h"

/* Shards with their documents and sentences numbered through. */
struct text_set {
	const struct shard *shards;
	int64_t shard_count;
	int64_t *document_base, *sentence_base; /* [shard_count + 1] global number of each shard's first one */
	struct instance_settings settings;
	int32_t room; /* tokens of text in a full instance */
};
MUST_USE enum status text_set_open(struct text_set *out, const struct shard *shards, int64_t shard_count,
				   const struct instance_settings *settings);
void text_set_close(struct text_set *set);
static inline int64_t text_set_documents(const struct text_set *set)
{
	return set->document_base[set->shard_count];
}
/* The shard that holds a global sentence; *sentence becomes its own number there. */
const struct shard *text_set_sentence(const struct text_set *set, int64_t *sentence);

/* Walks documents [document, end) of an epoch, instance by instance. */
struct walker {
	const struct text_set *set;
	int64_t epoch, document, end;
	/* Within the document: */
	const struct shard *shard;
	int64_t sentence_base;     /* global number of the shard's sentence 0 */
	int64_t first, last, next; /* its sentences [first, last) of the shard, and the next one */
	int64_t skipped;           /* tokens of `next` already used (running text) */
	int64_t target;            /* tokens to collect */
	struct rng rng;
	bool open; /* a document is being walked */
};
/* A place in a walk from which it can be continued. */
struct mark {
	int64_t document;
	uint32_t sentence, skipped; /* sentence: within the document */
	uint32_t draws;             /* from the document's random numbers */
	uint32_t open;              /* the document is being walked */
};
_Static_assert(sizeof(struct mark) == 24, "an epoch's memory is documented as 24 bytes for 32 instances");

struct walker walk_from(const struct text_set *set, int64_t epoch, int64_t document, int64_t end);
struct walker walk_from_mark(const struct text_set *set, int64_t epoch, const struct mark *mark, int64_t end);
struct mark walk_mark(const struct walker *walker);
/* The next instance, or false at the end. */
bool walk_next(struct walker *walker, struct example_plan *out);

/* All instances of an epoch, found by number: a mark of every MARK_INSTANCES-th in each range of documents. */
#define MARK_INSTANCES 32
struct epoch_map {
	int64_t epoch; /* -1: none */
	int64_t count; /* instances */
	int threads;   /* of a walk, unless it says otherwise */
	int64_t range_count;
	struct epoch_range {
		int64_t document, end; /* documents [document, end) */
		int64_t first, count;  /* instances */
		struct mark *marks;
		int64_t mark_capacity;
	} * ranges;
};
MUST_USE enum status epoch_map_open(struct epoch_map *out, const struct text_set *set);
void epoch_map_close(struct epoch_map *map);
/* Walks an epoch on `threads` threads of its own (0 = as many as there are cores); the result does not depend on
 * them. */
MUST_USE enum status epoch_map_walk(struct epoch_map *map, const struct text_set *set, int64_t epoch, int threads);
/* Later epochs differ a little in size: with room for a quarter more, a run in its middle needs no memory. */
MUST_USE enum status epoch_map_reserve(struct epoch_map *map);
/* Instance `index` of the mapped epoch, in the order of the walk. */
void epoch_map_find(const struct epoch_map *map, const struct text_set *set, int64_t index, struct example_plan *out);

#endif
