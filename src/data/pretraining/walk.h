/* The walk over documents that determines the text of each instance; the algorithm is described in
 * docs/developers/math.md, "Instances" (Devlin et al., "BERT", 2019, appendix A.2). Internal to src/data. */
#ifndef DATA_PRETRAINING_WALK_H
#define DATA_PRETRAINING_WALK_H

#include "base/rng.h"
#include "data/pretraining/instances.h"

/* Shards, with documents and sentences numbered across all of them. */
struct text_set {
	const struct shard *shards;
	int64_t shard_count;
	int64_t *document_base, *sentence_base; /* [shard_count + 1] global number of the first one in each shard */
	struct instance_settings settings;
	int32_t room; /* tokens of text that fit an instance of two segments, if there are such instances */
};
MUST_USE enum status text_set_open(struct text_set *out, const struct shard *shards, int64_t shard_count,
				   const struct instance_settings *settings);
void text_set_close(struct text_set *set);
static inline int64_t text_set_documents(const struct text_set *set)
{
	return set->document_base[set->shard_count];
}
/* The shard that holds a sentence given by its global number; *sentence becomes its number within the shard. */
const struct shard *text_set_sentence(const struct text_set *set, int64_t *sentence);

/* State of a walk over the documents [document, end) of an epoch, instance by instance. */
struct walker {
	const struct text_set *set;
	int64_t epoch, document, end;
	/* Within the document: */
	enum next_sentence kind; /* of its instances */
	const struct shard *shard;
	int64_t sentence_base;     /* global number of the shard's sentence 0 */
	int64_t first, last, next; /* its sentences are [first, last) of the shard; `next` comes next */
	int64_t skipped;           /* tokens of `next` already used (running text) */
	int64_t target;            /* tokens to collect */
	struct rng rng;
	bool open; /* a document is being walked */
};
/* A place from which a walk can be continued. */
struct mark {
	int64_t document;
	uint32_t sentence, skipped; /* `sentence`: number within the document */
	uint32_t draws;             /* random numbers drawn for the document so far */
	uint32_t open;              /* the document is being walked */
};
_Static_assert(sizeof(struct mark) == 24, "an epoch's memory is documented as 24 bytes for 32 instances");

struct walker walk_from(const struct text_set *set, int64_t epoch, int64_t document, int64_t end);
struct walker walk_from_mark(const struct text_set *set, int64_t epoch, const struct mark *mark, int64_t end);
struct mark walk_mark(const struct walker *walker);
/* The next instance, or false at the end. */
bool walk_next(struct walker *walker, struct example_plan *out);

/* Finds any instance of an epoch by its number: there is a mark for every MARK_INSTANCES-th in each range of documents. */
#define MARK_INSTANCES 32
struct epoch_map {
	int64_t epoch; /* -1: none */
	int64_t count; /* instances */
	int threads;   /* default number for a walk */
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
/* Walks an epoch on `threads` threads (0 = as many as there are cores); the result does not depend on their number. */
MUST_USE enum status epoch_map_walk(struct epoch_map *map, const struct text_set *set, int64_t epoch, int threads);
/* Makes room for a quarter more marks, since later epochs differ a little in size: then a run does not need more memory later. */
MUST_USE enum status epoch_map_reserve(struct epoch_map *map);
/* Instance `index` of the mapped epoch, in the order of the walk. */
void epoch_map_find(const struct epoch_map *map, const struct text_set *set, int64_t index, struct example_plan *out);

#endif
