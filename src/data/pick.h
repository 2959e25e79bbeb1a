/* What the walk of an epoch remembers of an instance, and what a step needs to make it. Internal to src/data.
 */
#ifndef DATA_PICK_H
#define DATA_PICK_H

#include <stdint.h>
#include "data/batch.h"

/* Where the tokens of an instance lie, before truncation: 24 bytes. Sentences are numbered through all
 * shards. With NEXT_SENTENCE_NONE there is no B, and b_first counts the tokens of sentence a_first that
 * belong to the instance before. */
struct pick {
	int64_t a_first, b_first; /* sentences */
	uint32_t a_tokens;
	uint32_t b_tokens : 31, random : 1;
};
_Static_assert(sizeof(struct pick) == 24, "an epoch's memory is documented as 24 bytes an instance");

/* The pick of a sample; *epoch and *first (may be NULL) as instances_locate says. */
MUST_USE enum status instances_pick(struct instances *instances, int64_t sample, struct pick *out,
                                    int64_t *epoch, int64_t *first);
/* Tokens of the instance, with [CLS] and [SEP]. */
int32_t pick_length(const struct instance_settings *settings, const struct pick *pick);
/* Spells it out; writes pick_length() ids and types, and at most instance_predictions() predictions. */
MUST_USE enum status instances_make(struct instances *instances, int64_t sample, const struct pick *pick,
                                    struct instance *out);
const struct instance_settings *instances_settings(const struct instances *instances);

#endif
