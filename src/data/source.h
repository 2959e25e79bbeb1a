/* What every source of instances is to the reader of steps. Internal to src/data. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "data/batch.h"

/* Where the text of an instance lies and how long it will be, before it is spelled out. `a_first` and the next
 * fields are the source's own: for shards, sentences numbered through all of them and tokens before truncation
 * (without a segment B, b_first counts the tokens of sentence a_first that belong to the instance before). */
struct pick {
	int64_t a_first, b_first;
	int64_t a_tokens, b_tokens;
	bool random;         /* B is not what follows A */
	int32_t length;      /* tokens of the instance, with [CLS] and [SEP] */
	int32_t predictions; /* at most */
	int32_t member;      /* of a mixture */
	int64_t sample;      /* its number within its own source */
};

struct source_functions {
	void (*close)(struct instances *instances); /* and frees */
	int64_t (*per_epoch)(const struct instances *instances);
	/* Of the epoch of this sample; NULL: all have as many as the first. */
	enum status (*epoch_count)(struct instances *instances, int64_t sample, int64_t *out);
	enum status (*locate)(struct instances *instances, int64_t sample, int64_t *epoch, int64_t *first);
	enum status (*hint)(struct instances *instances, int64_t epoch, int64_t first);
	/* From here on every epoch has as many samples as the first has instances, so that any sample is found without
	 * walking the epochs before it; called right after opening. Of a larger epoch a few instances are left out (others
	 * each time), of a smaller one a few come twice. NULL: it is so already. */
	void (*even_epochs)(struct instances *instances);
	enum status (*pick)(struct instances *instances, int64_t sample, struct pick *out, int64_t *epoch, int64_t *first);
	enum status (*make)(struct instances *instances, const struct pick *pick, struct instance *out);
};

/* The first member of each source. */
struct instances {
	const struct source_functions *functions;
	struct instance_settings settings;
};

/* The pick of a sample; *epoch and *first (may be NULL) as instances_locate says. */
MUST_USE enum status instances_pick(struct instances *instances, int64_t sample, struct pick *out, int64_t *epoch,
				    int64_t *first);
/* Spells it out: pick->length ids and types, at most pick->predictions predictions, all with a weight. */
MUST_USE enum status instances_make(struct instances *instances, const struct pick *pick, struct instance *out);

#endif
