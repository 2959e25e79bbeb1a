/* Instances from token shards: the walk of an epoch, its permutation, and how one instance is spelled out. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/rng.h"
#include "data/pretraining/masking.h"
#include "data/pretraining/overlap.h"
#include "data/pretraining/walk.h"

/* Initial capacity for the first samples of epochs. */
#define EPOCHS_KNOWN 4096
/* Most masking scratches kept for later calls. */
#define SCRATCHES 64

struct shard_instances {
	struct instances base;
	struct text_set set;
	float *weights; /* of tokens, for texts that share words; else NULL */

	pthread_rwlock_t lock; /* guards the map and the known epochs; a walk changes them */
	struct epoch_map map;
	int64_t first_epoch_count;
	/* known[i]: first sample of epoch known_base + i. */
	int64_t *known;
	int64_t known_base, known_count, known_capacity;
	int64_t even; /* samples of every epoch regardless of its instances, so that known[0] is enough; 0: each as many as its
			 instances */

	pthread_mutex_t scratch_lock;
	struct masking *scratches[SCRATCHES];
	int scratch_count;
};

static struct shard_instances *self(struct instances *instances)
{
	return (struct shard_instances *)(void *)instances;
}

static enum status walk_epoch(struct shard_instances *instances, int64_t epoch)
{
	if (instances->map.epoch == epoch)
		return OK;
	return epoch_map_walk(&instances->map, &instances->set, epoch, 0);
}

/* Index of a sample's epoch in known[] (beyond its end if `even`), or -1 if finding it takes a walk. */
static int64_t known_epoch(const struct shard_instances *instances, int64_t sample)
{
	int64_t count = instances->known_count, low = 0, high = count;
	if (sample < instances->known[0])
		return -1;
	if (instances->even > 0)
		return (sample - instances->known[0]) / instances->even;
	/* An epoch has at least one instance: its first sample can be placed without walking it. */
	bool in_last = sample == instances->known[count - 1] ||
		       (sample > instances->known[count - 1] && instances->map.epoch == instances->known_base + count - 1 &&
			sample < instances->known[count - 1] + instances->map.count);
	if (in_last)
		return count - 1;
	if (sample > instances->known[count - 1])
		return -1;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (instances->known[middle] <= sample)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int64_t epoch_begin(const struct shard_instances *instances, int64_t index)
{
	return instances->even > 0 ? instances->known[0] + index * instances->even : instances->known[index];
}

static enum status check_epoch(const struct shard_instances *instances, int64_t index, int64_t sample)
{
	if (instances->known_base + index < UINT32_MAX)
		return OK;
	return error_set(ERR_USAGE, "sample %lld is beyond 2^32 epochs", (long long)sample);
}

/* As known_epoch(), but walks as many epochs as needed. */
static enum status find_epoch(struct shard_instances *instances, int64_t sample, int64_t *out_index)
{
	BUG_IF(sample < 0);
	if (sample < instances->known[0]) {
		instances->known_base = 0;
		instances->known_count = 1;
		instances->known[0] = 0;
	}
	while ((*out_index = known_epoch(instances, sample)) < 0) {
		int64_t last = instances->known_count - 1;
		TRY(walk_epoch(instances, instances->known_base + last));
		if (sample < instances->known[last] + instances->map.count)
			continue;
		if (instances->map.count == 0)
			return error_set(ERR_DATA, "epoch %lld has no instance: the documents are too short",
					 (long long)(instances->known_base + last));
		TRY(check_epoch(instances, last, sample));
		TRY(memory_grow(&instances->known, &instances->known_capacity, instances->known_count + 1,
				sizeof *instances->known, "epochs"));
		instances->known[instances->known_count++] = instances->known[last] + instances->map.count;
	}
	return check_epoch(instances, *out_index, sample);
}

static enum status shards_locate(struct instances *base, int64_t sample, int64_t *out_epoch, int64_t *out_first)
{
	struct shard_instances *instances = self(base);
	int64_t index = 0;
	pthread_rwlock_wrlock(&instances->lock);
	enum status status = find_epoch(instances, sample, &index);
	if (status == OK) {
		*out_epoch = instances->known_base + index;
		*out_first = epoch_begin(instances, index);
	}
	pthread_rwlock_unlock(&instances->lock);
	return status;
}

static enum status shards_hint(struct instances *base, int64_t epoch, int64_t first_sample)
{
	struct shard_instances *instances = self(base);
	enum status status = OK;
	pthread_rwlock_wrlock(&instances->lock);
	int64_t index = epoch - instances->known_base;
	bool known = index >= 0 && index < instances->known_count;
	if (epoch < 0 || epoch > UINT32_MAX || first_sample < 0 || (known && instances->known[index] != first_sample)) {
		status = error_set(ERR_STATE, "epoch %lld does not begin with sample %lld in this data", (long long)epoch,
				   (long long)first_sample);
		error_hint("the checkpoint comes from a run with other data or settings");
	} else if (!known) {
		instances->known_base = epoch;
		instances->known_count = 1;
		instances->known[0] = first_sample;
	}
	pthread_rwlock_unlock(&instances->lock);
	return status;
}

/* The plan of a sample; the map is its epoch's. */
static enum status find_plan(const struct shard_instances *instances, int64_t sample, int64_t index, struct example_plan *out,
			     int64_t *epoch, int64_t *first)
{
	*epoch = instances->known_base + index;
	*first = epoch_begin(instances, index);
	uint64_t offset = (uint64_t)(sample - *first), count = (uint64_t)instances->map.count;
	/* An epoch that is too small repeats its first few instances, with different masks. */
	if (instances->even > 0 && count > 0)
		offset %= count;
	/* A wrong hint is detected here at the latest. */
	if (offset >= count)
		return error_set(ERR_STATE, "sample %lld: epoch %lld begins with sample %lld and has %lld instances",
				 (long long)sample, (long long)*epoch, (long long)*first, (long long)count);
	if (instances->set.settings.shuffle)
		offset = rng_permute(instances->set.settings.seed, RNG_SHUFFLE, (uint32_t)*epoch, count, offset);
	epoch_map_find(&instances->map, &instances->set, (int64_t)offset, out);
	out->sample = sample;
	return OK;
}

static enum status shards_plan(struct instances *base, int64_t sample, struct example_plan *out, int64_t *epoch, int64_t *first)
{
	struct shard_instances *instances = self(base);
	BUG_IF(sample < 0);
	pthread_rwlock_rdlock(&instances->lock);
	int64_t index = known_epoch(instances, sample);
	if (index >= 0 && instances->map.epoch == instances->known_base + index) {
		enum status status = find_plan(instances, sample, index, out, epoch, first);
		pthread_rwlock_unlock(&instances->lock);
		return status;
	}
	pthread_rwlock_unlock(&instances->lock);
	pthread_rwlock_wrlock(&instances->lock);
	enum status status = find_epoch(instances, sample, &index);
	if (status == OK)
		status = walk_epoch(instances, instances->known_base + index);
	if (status == OK)
		status = find_plan(instances, sample, index, out, epoch, first);
	pthread_rwlock_unlock(&instances->lock);
	return status;
}

static int64_t shards_per_epoch(const struct instances *base)
{
	return ((const struct shard_instances *)(const void *)base)->first_epoch_count;
}

static enum status shards_epoch_count(struct instances *base, int64_t sample, int64_t *out)
{
	struct shard_instances *instances = self(base);
	int64_t index = 0;
	pthread_rwlock_wrlock(&instances->lock);
	enum status status = find_epoch(instances, sample, &index);
	if (status == OK)
		status = walk_epoch(instances, instances->known_base + index);
	*out = instances->even > 0 ? instances->even : instances->map.count;
	pthread_rwlock_unlock(&instances->lock);
	return status;
}

static void shards_even_epochs(struct instances *base)
{
	self(base)->even = self(base)->first_epoch_count;
}

/* Copies `count` tokens of the text, starting `skip` tokens into a sentence. */
static enum status copy_text(const struct text_set *set, int64_t sentence, int64_t skip, int64_t count, int32_t *out)
{
	const struct shard *shard = text_set_sentence(set, &sentence);
	int32_t limit = set->settings.vocab_size * (set->settings.segmented_words ? 2 : 1);
	for (; count > 0; sentence++) {
		int64_t length = shard_length(shard, sentence);
		if (skip >= length) {
			skip -= length;
			continue;
		}
		int64_t part = length - skip < count ? length - skip : count;
		TRY(shard_tokens(shard, sentence, skip, part, limit, out));
		out += part;
		count -= part;
		skip = 0;
	}
	return OK;
}

/* How many of `cut` tokens are cut at the front: each with probability one half. */
static int64_t front_cuts(struct rng *rng, int64_t cut)
{
	int64_t front = 0;
	for (; cut >= 32; cut -= 32)
		front += __builtin_popcount(rng_u32(rng));
	if (cut > 0)
		front += __builtin_popcount(rng_u32(rng) >> (32 - cut));
	return front;
}

/* Sets the special tokens, the types, and the length of an instance; the places of its texts stay open. */
static void frame(const struct token_template *template, int64_t a, int64_t b, struct instance *out)
{
	out->length = template_frame(template, a, b, out->ids);
	int32_t first = template_type_0(template, a, b);
	for (int32_t i = 0; i < out->length; i++)
		out->types[i] = i >= first;
}

/* Fills in ids and types. As long as A and B are too long together, the longer one (B if equal) loses a token at its front
 * or back; how many each loses is known beforehand, so only the sides are drawn. */
static enum status spell_out(const struct shard_instances *instances, const struct example_plan *plan, struct rng *rng,
			     struct masking *scratch, struct instance *out)
{
	const struct instance_settings *settings = &instances->set.settings;
	const struct text_set *set = &instances->set;
	const struct token_template *template = plan->pair ? &settings->pair : &settings->single;
	int64_t a = plan->a_tokens, b = plan->b_tokens, skip = plan->b_first;
	if (!plan->pair) {
		frame(template, a, 0, out);
		out->next_label = -1;
		return copy_text(set, plan->a_first, skip, a, out->ids + template->before);
	}
	int64_t excess = a + b - set->room, cut_a = 0, cut_b = 0;
	if (excess > 0) {
		cut_a = a > b ? (a - b < excess ? a - b : excess) : 0;
		cut_b = b > a ? (b - a < excess ? b - a : excess) : 0;
		int64_t rest = excess - cut_a - cut_b;
		cut_a += rest / 2;
		cut_b += rest - rest / 2;
	}
	int64_t front_a = front_cuts(rng, cut_a), front_b = front_cuts(rng, cut_b);
	a -= cut_a;
	b -= cut_b;
	frame(template, a, b, out);
	out->next_label = plan->random;
	int32_t *text_a = out->ids + template->before, *text_b = text_a + a + template->between;
	TRY(copy_text(set, plan->a_first, front_a, a, text_a));
	TRY(copy_text(set, plan->b_first, front_b, b, text_b));
	if (instances->weights != NULL)
		out->next_label = overlap_mix(settings, instances->weights, rng, text_a, a, text_b, b, masking_scratch(scratch));
	return OK;
}

static struct masking *take_scratch(struct shard_instances *instances)
{
	struct masking *scratch = NULL;
	pthread_mutex_lock(&instances->scratch_lock);
	if (instances->scratch_count > 0)
		scratch = instances->scratches[--instances->scratch_count];
	pthread_mutex_unlock(&instances->scratch_lock);
	return scratch;
}

static void return_scratch(struct shard_instances *instances, struct masking *scratch)
{
	pthread_mutex_lock(&instances->scratch_lock);
	if (instances->scratch_count < SCRATCHES) {
		instances->scratches[instances->scratch_count++] = scratch;
		scratch = NULL;
	}
	pthread_mutex_unlock(&instances->scratch_lock);
	masking_free(scratch);
}

static enum status shards_make(struct instances *base, const struct example_plan *plan, struct example *out)
{
	struct shard_instances *instances = self(base);
	const struct instance_settings *settings = &instances->set.settings;
	struct rng rng = rng_start(settings->seed, RNG_MASK, (uint64_t)plan->sample);
	struct masking *scratch = take_scratch(instances);
	if (scratch == NULL)
		TRY(masking_create(&scratch, settings));
	struct instance instance = instance_in(out);
	enum status status = spell_out(instances, plan, &rng, scratch, &instance);
	if (status == OK) {
		/* Words of a mixed text are not predicted: their order is no language. */
		bool mixed = plan->pair && instances->weights != NULL;
		int32_t end = mixed ? settings->pair.before + (int32_t)plan->a_tokens : instance.length;
		mask_instance(scratch, settings, &rng, end, &instance);
		instance_to_example(&instance, out);
	}
	return_scratch(instances, scratch);
	return status;
}

static void shards_close(struct instances *base)
{
	struct shard_instances *instances = self(base);
	pthread_rwlock_destroy(&instances->lock);
	pthread_mutex_destroy(&instances->scratch_lock);
	while (instances->scratch_count > 0)
		masking_free(instances->scratches[--instances->scratch_count]);
	epoch_map_close(&instances->map);
	text_set_close(&instances->set);
	free(instances->weights);
	free(instances->known);
	free(instances);
}

static const struct source_functions shard_functions = {
	.close = shards_close,
	.per_epoch = shards_per_epoch,
	.epoch_count = shards_epoch_count,
	.locate = shards_locate,
	.hint = shards_hint,
	.even_epochs = shards_even_epochs,
	.plan = shards_plan,
	.make = shards_make,
};

enum status instances_one_segment(const char *what)
{
	return error_hinted(
		error_set(ERR_USAGE, "%s: an instance has two segments, but the model has one segment type (\"type_vocab_size\")",
			  what),
		"use a model with \"type_vocab_size\" 2, or --next_sentence none");
}

enum status instances_open(struct instances **out, const struct shard *shards, int64_t shard_count,
			   const struct instance_settings *settings)
{
	enum status status;
	struct shard_instances *instances = NULL;
	struct masking *scratch = NULL;
	*out = NULL;
	if (settings->one_segment && instance_is_pair(settings))
		return instances_one_segment("next sentences");
	TRY(memory_new(&instances, 1, sizeof *instances, "instances"));
	instances->base = (struct instances){.functions = &shard_functions, .bounds = instance_bounds(settings)};
	pthread_rwlock_init(&instances->lock, NULL);
	pthread_mutex_init(&instances->scratch_lock, NULL);
	TRY_GOTO(text_set_open(&instances->set, shards, shard_count, settings), fail);
	if (settings->next_sentence == NEXT_SENTENCE_OVERLAP)
		TRY_GOTO(overlap_weights(&instances->weights, shards, shard_count, settings), fail);
	TRY_GOTO(epoch_map_open(&instances->map, &instances->set), fail);
	TRY_GOTO(masking_create(&scratch, settings), fail);
	return_scratch(instances, scratch);
	TRY_GOTO(memory_grow(&instances->known, &instances->known_capacity, EPOCHS_KNOWN, sizeof(int64_t), "epochs"), fail);
	instances->known[0] = 0;
	instances->known_count = 1;
	TRY_GOTO(walk_epoch(instances, 0), fail);
	instances->first_epoch_count = instances->map.count;
	TRY_GOTO(epoch_map_reserve(&instances->map), fail);
	*out = &instances->base;
	return OK;
fail:
	shards_close(&instances->base);
	return status;
}

void instance_to_example(const struct instance *instance, struct example *out)
{
	struct batch_labels *words = &out->labels[HEAD_MASKED_WORDS], *next = &out->labels[HEAD_NEXT_SENTENCE];
	out->token_count = out->lengths[0] = instance->length;
	out->sequence_count = 1;
	words->count = instance->prediction_count;
	next->count = 1;
	next->classes[0] = instance->next_label;
	next->weights[0] = instance->next_label >= 0;
}

enum status instances_get(struct instances *instances, int64_t sample, struct instance *out)
{
	struct example_plan plan;
	int32_t length, label;
	float weight;
	struct example example = {.lengths = &length, .ids = out->ids, .types = out->types};
	example.labels[HEAD_MASKED_WORDS] = (struct batch_labels){
		.rows = out->prediction_positions, .classes = out->prediction_labels, .weights = out->prediction_weights};
	example.labels[HEAD_NEXT_SENTENCE] = (struct batch_labels){.classes = &label, .weights = &weight};
	TRY(instances_plan(instances, sample, &plan, NULL, NULL));
	TRY(instances_make(instances, &plan, &example));
	out->length = length;
	out->prediction_count = example.labels[HEAD_MASKED_WORDS].count;
	out->next_label = label;
	return OK;
}

struct example_bounds instance_bounds(const struct instance_settings *settings)
{
	struct example_bounds bounds = {
		.max_seq_length = settings->max_seq_length, .sequences = 1, .vocab_size = settings->vocab_size};
	bounds.labels[HEAD_MASKED_WORDS] = (struct label_bounds){
		.most = instance_predictions(settings, settings->max_seq_length),
		.per_token = settings->masked_lm_prob,
		.width = 1,
		.row_width = 1,
	};
	bounds.labels[HEAD_NEXT_SENTENCE] = (struct label_bounds){.most = 1, .width = 1};
	return bounds;
}

struct batch_capacity instance_capacity(int32_t tokens, int32_t sequences, int32_t predictions)
{
	struct batch_capacity capacity = INSTANCE_CAPACITY(tokens, sequences, predictions);
	return capacity;
}

const char *const next_sentence_names[] = {"pairs", "order", "none", "single", "overlap", NULL};
