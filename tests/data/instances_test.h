/* A corpus whose every token has its own id, so that any instance can be traced back to its place. */
#ifndef TESTS_DATA_INSTANCES_TEST_H
#define TESTS_DATA_INSTANCES_TEST_H

#include "base/rng.h"
#include "data/pretraining/instances.h"
#include "test.h"
#include "base/log.h"
#include "data/step_reader.h"

enum { CLS = 1, SEP = 2, MASK = 3, FIRST_ID = 5, TRACED_VOCAB = 60000 };

struct corpus_map {
	int document[TRACED_VOCAB]; /* of each id; -1: no token has it */
	bool sentence_begins[TRACED_VOCAB];
	int32_t end; /* ids used: FIRST_ID .. end - 1 */
};

/* Writes documents [first_document, last_document) of the corpus that belongs to `seed`. */
static inline void write_traced_shard(const char *prefix, uint64_t seed, int documents, int most_sentences, int longest,
				      int first_document, int last_document, struct corpus_map *map)
{
	struct rng rng = rng_start(seed, RNG_TEST, 1);
	struct shard_writer *writer;
	struct shard_description description = {.vocab_hash = 1};
	int32_t next = FIRST_ID;
	for (int i = 0; i < TRACED_VOCAB; i++)
		map->document[i] = -1;
	assert_ok(shard_writer_open(&writer, prefix, TRACED_VOCAB));
	for (int d = 0; d < documents; d++) {
		int sentences = 1 + (int)rng_below(&rng, (uint32_t)most_sentences);
		bool wanted = d >= first_document && d < last_document;
		for (int s = 0; s < sentences; s++) {
			int32_t ids[512], count = 1 + (int32_t)rng_below(&rng, (uint32_t)longest);
			assert_true(next + count < TRACED_VOCAB);
			for (int32_t i = 0; i < count; i++) {
				map->document[next] = d;
				map->sentence_begins[next] = i == 0;
				ids[i] = next++;
			}
			if (wanted)
				assert_ok(shard_writer_sentence(writer, ids, count));
		}
		if (wanted)
			assert_ok(shard_writer_end_document(writer));
	}
	map->end = next;
	assert_ok(shard_writer_commit(writer, &description));
}

static inline struct instance_settings usual_settings(void)
{
	return (struct instance_settings){.seed = 11,
					  .max_seq_length = 64,
					  .masked_lm_prob = 0.15,
					  .max_predictions_per_seq = 10,
					  .short_seq_prob = 0.1,
					  .shuffle = true,
					  .vocab_size = TRACED_VOCAB,
					  .single = template_usual(CLS, SEP, false),
					  .pair = template_usual(CLS, SEP, true),
					  .mask = MASK};
}

/* An instance with enough room for any test. */
struct instance_room {
	int32_t ids[512], types[512], positions[512], labels[512];
	struct instance instance;
};

static inline struct instance *room_for(struct instance_room *room)
{
	room->instance = (struct instance){.ids = room->ids,
					   .types = room->types,
					   .prediction_positions = room->positions,
					   .prediction_labels = room->labels};
	return &room->instance;
}

#endif
