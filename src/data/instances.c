/* Instances of an epoch: the walk over the documents that decides where each instance's text lies. The words
 * of the algorithm are in docs/math.md, "Instances"; Devlin et al., "BERT" (2019), appendix A.2. */
#include <pthread.h>
#include <stdlib.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/masking.h"
#include "data/pick.h"

#define SEQUENCE_LENGTH_MAX (1 << 20)
/* How often another document is tried for a random second segment. */
#define DOCUMENT_TRIES 10
/* Room to begin with for the first samples of epochs. */
#define EPOCHS_KNOWN 4096

struct instances {
	const struct shard *shards;
	int64_t shard_count;
	int64_t *document_base,
	        *sentence_base; /* [shard_count + 1] global number of each shard's first one */
	struct instance_settings settings;
	int32_t room; /* tokens of text in a full instance */

	pthread_mutex_t lock; /* of all below */
	struct pick *picks;   /* of epoch `epoch`, in the order of the walk */
	int64_t epoch, pick_count, pick_capacity, first_epoch_count;
	/* known[i]: first sample of epoch known_base + i. */
	int64_t *known;
	int64_t known_base, known_count, known_capacity;
	struct masking *masking;
};

/* The shard that holds the global number `index`, given each shard's first number. */
static int64_t find_shard(const int64_t *base, int64_t shard_count, int64_t index)
{
	int64_t low = 0, high = shard_count;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (base[middle] <= index)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int64_t document_total(const struct instances *instances)
{
	return instances->document_base[instances->shard_count];
}

/* A document's sentences: [begin, end) within its shard. */
struct extent {
	const struct shard *shard;
	int64_t sentence_base; /* global number of the shard's sentence 0 */
	int64_t begin, end;
};

static struct extent document_extent(const struct instances *instances, int64_t document)
{
	int64_t s = find_shard(instances->document_base, instances->shard_count, document);
	const struct shard *shard = &instances->shards[s];
	int64_t local = document - instances->document_base[s];
	return (struct extent){.shard = shard,
	                       .sentence_base = instances->sentence_base[s],
	                       .begin = shard_document(shard, local),
	                       .end = shard_document(shard, local + 1)};
}

static enum status add_pick(struct instances *instances, const struct pick *pick)
{
	TRY(memory_grow(&instances->picks, &instances->pick_capacity, instances->pick_count + 1,
	                sizeof(*instances->picks), "instances of an epoch"));
	instances->picks[instances->pick_count++] = *pick;
	return OK;
}

/* B from another document, from a random sentence on until it has `wanted` tokens. When every try gives the
 * current document, that one is taken, and B still counts as random. */
static void random_segment(const struct instances *instances, struct rng *rng, int64_t current,
                           int64_t wanted, struct pick *pick)
{
	struct extent other = {0};
	for (int i = 0; i < DOCUMENT_TRIES; i++) {
		int64_t document = rng_below(rng, (uint32_t)document_total(instances));
		other = document_extent(instances, document);
		while (other.begin == other.end) { /* an empty document stands for the next one with text */
			document = document + 1 < document_total(instances) ? document + 1 : 0;
			other = document_extent(instances, document);
		}
		if (document != current)
			break;
	}
	int64_t start = other.begin + rng_below(rng, (uint32_t)(other.end - other.begin));
	int64_t tokens = 0;
	for (int64_t i = start; i < other.end; i++) {
		tokens += shard_length(other.shard, i);
		if (tokens >= wanted)
			break;
	}
	pick->b_first = other.sentence_base + start;
	pick->b_tokens = (uint32_t)tokens;
	pick->random = 1;
}

/* Sentences are collected until they reach the target; the collection is cut in two, and half of the time the
 * second part is replaced by a random one and goes back to be walked again. */
static enum status walk_pairs(struct instances *instances, struct rng *rng, int64_t document,
                              const struct extent *extent, int64_t target)
{
	int64_t chunk = extent->begin, tokens = 0;
	for (int64_t i = extent->begin; i < extent->end; i++) {
		tokens += shard_length(extent->shard, i);
		if (tokens < target && i + 1 < extent->end)
			continue;
		int64_t count = i + 1 - chunk, a_count = 1, a_tokens = 0;
		if (count > 1)
			a_count = 1 + rng_below(rng, (uint32_t)(count - 1));
		for (int64_t j = chunk; j < chunk + a_count; j++)
			a_tokens += shard_length(extent->shard, j);
		struct pick pick = {.a_first = extent->sentence_base + chunk, .a_tokens = (uint32_t)a_tokens};
		if (count == 1 || rng_below(rng, 2) == 0) {
			random_segment(instances, rng, document, target - a_tokens, &pick);
			i = chunk + a_count - 1;
		} else {
			pick.b_first = pick.a_first + a_count;
			pick.b_tokens = (uint32_t)(tokens - a_tokens);
		}
		TRY(add_pick(instances, &pick));
		chunk = i + 1;
		tokens = 0;
	}
	return OK;
}

/* Contiguous text: as many whole sentences as fit the target. A sentence longer than the target is cut at it
 * and goes on in the next instance, so no token of the document is left out. */
static enum status walk_text(struct instances *instances, const struct extent *extent, int64_t target)
{
	int64_t first = extent->begin, skipped = 0; /* where the open instance begins */
	int64_t tokens = 0;
	for (int64_t i = extent->begin; i < extent->end; i++) {
		int64_t left = shard_length(extent->shard, i); /* of sentence i, not yet taken */
		while (tokens + left > target) {
			int64_t taken = tokens > 0 ? 0 : target;
			struct pick pick = {.a_first = extent->sentence_base + first,
			                    .b_first = skipped,
			                    .a_tokens = (uint32_t)(tokens + taken)};
			TRY(add_pick(instances, &pick));
			left -= taken;
			first = i;
			skipped = shard_length(extent->shard, i) - left;
			tokens = 0;
		}
		tokens += left;
	}
	struct pick pick = {
	        .a_first = extent->sentence_base + first, .b_first = skipped, .a_tokens = (uint32_t)tokens};
	return add_pick(instances, &pick);
}

static enum status walk_document(struct instances *instances, int64_t epoch, int64_t document)
{
	const struct instance_settings *settings = &instances->settings;
	struct extent extent = document_extent(instances, document);
	if (extent.begin == extent.end)
		return OK;
	struct rng rng = rng_start(settings->seed, RNG_DOCUMENT, (uint64_t)epoch << 32 | (uint64_t)document);
	bool pairs = settings->next_sentence == NEXT_SENTENCE_PAIRS;
	int64_t target = instances->room, shortest = pairs ? 2 : 1;
	if (rng_double(&rng) < settings->short_seq_prob)
		target = shortest + rng_below(&rng, (uint32_t)(instances->room - shortest + 1));
	return pairs ? walk_pairs(instances, &rng, document, &extent, target)
	             : walk_text(instances, &extent, target);
}

/* Makes the picks of an epoch, unless they are there. */
static enum status walk_epoch(struct instances *instances, int64_t epoch)
{
	if (instances->epoch == epoch)
		return OK;
	instances->epoch = -1;
	instances->pick_count = 0;
	for (int64_t document = 0; document < document_total(instances); document++)
		TRY(walk_document(instances, epoch, document));
	instances->epoch = epoch;
	return OK;
}

/* Epoch of a sample as an index into known[], walking on as far as needed. */
static enum status locate(struct instances *instances, int64_t sample, int64_t *out_index)
{
	BUG_IF(sample < 0);
	if (sample < instances->known[0]) {
		instances->known_base = 0;
		instances->known_count = 1;
		instances->known[0] = 0;
	}
	/* An epoch has at least one instance: its first sample can be placed without walking it. */
	while (sample > instances->known[instances->known_count - 1]) {
		int64_t last = instances->known_count - 1;
		TRY(walk_epoch(instances, instances->known_base + last));
		int64_t next = instances->known[last] + instances->pick_count;
		TRY(memory_grow(&instances->known, &instances->known_capacity, instances->known_count + 1,
		                sizeof(*instances->known), "epochs"));
		instances->known[instances->known_count++] = next;
		if (instances->known_base + last >= UINT32_MAX)
			return error_set(ERR_USAGE, "sample %lld lies beyond 2^32 epochs", (long long)sample);
	}
	int64_t index = instances->known_count - 1;
	while (instances->known[index] > sample)
		index--;
	*out_index = index;
	return OK;
}

static enum status check_settings(const struct instance_settings *settings)
{
	bool pairs = settings->next_sentence == NEXT_SENTENCE_PAIRS;
	int32_t shortest = pairs ? 5 : 3;
	if (settings->max_seq_length < shortest || settings->max_seq_length > SEQUENCE_LENGTH_MAX)
		return error_set(ERR_USAGE, "max_seq_length %d must lie between %d and %d",
		                 settings->max_seq_length, shortest, SEQUENCE_LENGTH_MAX);
	if (!(settings->masked_lm_prob >= 0 && settings->masked_lm_prob <= 1))
		return error_set(ERR_USAGE, "masked_lm_prob %g must lie between 0 and 1",
		                 settings->masked_lm_prob);
	if (!(settings->short_seq_prob >= 0 && settings->short_seq_prob <= 1))
		return error_set(ERR_USAGE, "short_seq_prob %g must lie between 0 and 1",
		                 settings->short_seq_prob);
	int32_t size = settings->vocab_size;
	BUG_IF(size < 1 || settings->cls < 0 || settings->cls >= size || settings->sep < 0 ||
	       settings->sep >= size || settings->mask < 0 || settings->mask >= size);
	BUG_IF(settings->whole_word_mask && settings->is_continuation == NULL);
	return OK;
}

/* Numbers documents and sentences through all shards. */
static enum status number_shards(struct instances *instances)
{
	int64_t shard_count = instances->shard_count, usable = 0;
	TRY(memory_new(&instances->document_base, shard_count + 1, sizeof(int64_t), "shards"));
	TRY(memory_new(&instances->sentence_base, shard_count + 1, sizeof(int64_t), "shards"));
	for (int64_t s = 0; s < shard_count; s++) {
		const struct shard *shard = &instances->shards[s];
		instances->document_base[s + 1] = instances->document_base[s] + shard->document_count;
		instances->sentence_base[s + 1] = instances->sentence_base[s] + shard->sentence_count;
		for (int64_t d = 0; d < shard->document_count; d++) {
			int64_t count = shard_document(shard, d + 1) - shard_document(shard, d);
			usable += count > 0;
			if (count > UINT32_MAX)
				return error_set(ERR_DATA,
				                 "'%s': document %lld has %lld sentences, the limit is 2^32",
				                 shard->prefix, (long long)d, (long long)count);
		}
	}
	if (document_total(instances) > UINT32_MAX)
		return error_set(ERR_DATA, "%lld documents; the limit is 2^32",
		                 (long long)document_total(instances));
	if (usable == 0) {
		enum status status = error_set(ERR_DATA, "'%s'%s: no document with text",
		                               shard_count > 0 ? instances->shards[0].prefix : "",
		                               shard_count > 1 ? " and the other shards" : "");
		error_hint("prepare the shard from a corpus with text");
		return status;
	}
	if (usable == 1 && instances->settings.next_sentence == NEXT_SENTENCE_PAIRS)
		log_warning("only one document: random second segments come from the same document, so "
		            "next-sentence "
		            "prediction learns little; put blank lines between documents");
	return OK;
}

enum status instances_open(struct instances **out, const struct shard *shards, int64_t shard_count,
                           const struct instance_settings *settings)
{
	enum status status;
	struct instances *instances = NULL;
	*out = NULL;
	TRY(check_settings(settings));
	TRY(memory_new(&instances, 1, sizeof(*instances), "instances"));
	pthread_mutex_init(&instances->lock, NULL);
	instances->shards = shards;
	instances->shard_count = shard_count;
	instances->settings = *settings;
	instances->room = settings->max_seq_length - (settings->next_sentence == NEXT_SENTENCE_PAIRS ? 3 : 2);
	instances->epoch = -1;
	TRY_GOTO(number_shards(instances), fail);
	TRY_GOTO(masking_create(&instances->masking, settings->max_seq_length), fail);
	TRY_GOTO(memory_grow(&instances->known, &instances->known_capacity, EPOCHS_KNOWN, sizeof(int64_t),
	                     "epochs"),
	         fail);
	instances->known[0] = 0;
	instances->known_count = 1;
	TRY_GOTO(walk_epoch(instances, 0), fail);
	instances->first_epoch_count = instances->pick_count;
	/* Later epochs differ a little in size: here, and with room for many epochs above, the middle of a
	 * run needs no memory. */
	TRY_GOTO(memory_grow(&instances->picks, &instances->pick_capacity,
	                     instances->pick_count + instances->pick_count / 8 + 1024,
	                     sizeof(*instances->picks), "instances of an epoch"),
	         fail);
	*out = instances;
	return OK;
fail:
	instances_close(instances);
	return status;
}

void instances_close(struct instances *instances)
{
	if (instances == NULL)
		return;
	pthread_mutex_destroy(&instances->lock);
	masking_free(instances->masking);
	free(instances->document_base);
	free(instances->sentence_base);
	free(instances->picks);
	free(instances->known);
	free(instances);
}

int64_t instances_per_epoch(struct instances *instances)
{
	return instances->first_epoch_count;
}

const struct instance_settings *instances_settings(const struct instances *instances)
{
	return &instances->settings;
}

enum status instances_locate(struct instances *instances, int64_t sample, int64_t *out_epoch,
                             int64_t *out_first)
{
	int64_t index = 0;
	pthread_mutex_lock(&instances->lock);
	enum status status = locate(instances, sample, &index);
	if (status == OK) {
		*out_epoch = instances->known_base + index;
		*out_first = instances->known[index];
	}
	pthread_mutex_unlock(&instances->lock);
	return status;
}

enum status instances_hint(struct instances *instances, int64_t epoch, int64_t first_sample)
{
	enum status status = OK;
	pthread_mutex_lock(&instances->lock);
	int64_t index = epoch - instances->known_base;
	bool known = index >= 0 && index < instances->known_count;
	if (epoch < 0 || epoch > UINT32_MAX || first_sample < epoch ||
	    (known && instances->known[index] != first_sample)) {
		status = error_set(ERR_STATE, "epoch %lld does not begin with sample %lld in this data",
		                   (long long)epoch, (long long)first_sample);
		error_hint("the checkpoint comes from a run with other data or settings");
	} else if (!known) {
		instances->known_base = epoch;
		instances->known_count = 1;
		instances->known[0] = first_sample;
	}
	pthread_mutex_unlock(&instances->lock);
	return status;
}

static enum status find_pick(struct instances *instances, int64_t sample, struct pick *out, int64_t *epoch,
                             int64_t *first)
{
	int64_t index = 0;
	TRY(locate(instances, sample, &index));
	*epoch = instances->known_base + index;
	*first = instances->known[index];
	TRY(walk_epoch(instances, *epoch));
	/* A false hint is noticed here, at the latest. */
	uint64_t offset = (uint64_t)(sample - *first), count = (uint64_t)instances->pick_count;
	if (offset >= count)
		return error_set(ERR_STATE,
		                 "sample %lld: epoch %lld begins with sample %lld and has %lld instances",
		                 (long long)sample, (long long)*epoch, (long long)*first, (long long)count);
	if (instances->settings.shuffle)
		offset = rng_permute(instances->settings.seed, RNG_SHUFFLE, (uint32_t)*epoch, count, offset);
	*out = instances->picks[offset];
	return OK;
}

enum status instances_pick(struct instances *instances, int64_t sample, struct pick *out, int64_t *epoch,
                           int64_t *first)
{
	int64_t found_epoch = 0, found_first = 0;
	pthread_mutex_lock(&instances->lock);
	enum status status = find_pick(instances, sample, out, &found_epoch, &found_first);
	pthread_mutex_unlock(&instances->lock);
	if (status == OK && epoch != NULL)
		*epoch = found_epoch;
	if (status == OK && first != NULL)
		*first = found_first;
	return status;
}

int32_t pick_length(const struct instance_settings *settings, const struct pick *pick)
{
	bool pairs = settings->next_sentence == NEXT_SENTENCE_PAIRS;
	int64_t length = (int64_t)pick->a_tokens + pick->b_tokens + (pairs ? 3 : 2);
	return length < settings->max_seq_length ? (int32_t)length : settings->max_seq_length;
}

/* Copies `count` tokens of the text that begins `skip` tokens into a sentence. */
static enum status copy_text(const struct instances *instances, int64_t sentence, int64_t skip, int64_t count,
                             int32_t *out)
{
	int64_t s = find_shard(instances->sentence_base, instances->shard_count, sentence);
	const struct shard *shard = &instances->shards[s];
	sentence -= instances->sentence_base[s];
	for (; count > 0; sentence++) {
		int64_t length = shard_length(shard, sentence);
		if (skip >= length) {
			skip -= length;
			continue;
		}
		int64_t part = length - skip < count ? length - skip : count;
		TRY(shard_tokens(shard, sentence, skip, part, instances->settings.vocab_size, out));
		out += part;
		count -= part;
		skip = 0;
	}
	return OK;
}

/* How many of `cut` tokens go at the front: each with probability one half. */
static int64_t front_cuts(struct rng *rng, int64_t cut)
{
	int64_t front = 0;
	for (; cut >= 32; cut -= 32)
		front += __builtin_popcount(rng_u32(rng));
	if (cut > 0)
		front += __builtin_popcount(rng_u32(rng) >> (32 - cut));
	return front;
}

/* Text into ids and types. While A and B are too long, the longer one (B if equal) loses a token at its front
 * or back; how many each loses is known beforehand, so only the sides are drawn. */
static enum status spell_out(const struct instances *instances, const struct pick *pick, struct rng *rng,
                             struct instance *out)
{
	const struct instance_settings *settings = &instances->settings;
	int64_t a = pick->a_tokens, b = pick->b_tokens, skip = pick->b_first;
	int32_t n = 0;
	if (settings->next_sentence == NEXT_SENTENCE_NONE) {
		out->ids[n++] = settings->cls;
		TRY(copy_text(instances, pick->a_first, skip, a, out->ids + n));
		n += (int32_t)a;
		out->ids[n++] = settings->sep;
		memset(out->types, 0, (size_t)n * sizeof(*out->types));
		out->length = n;
		out->next_label = -1;
		return OK;
	}
	int64_t excess = a + b - instances->room, cut_a = 0, cut_b = 0;
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
	out->ids[n++] = settings->cls;
	TRY(copy_text(instances, pick->a_first, front_a, a, out->ids + n));
	n += (int32_t)a;
	out->ids[n++] = settings->sep;
	memset(out->types, 0, (size_t)n * sizeof(*out->types));
	TRY(copy_text(instances, pick->b_first, front_b, b, out->ids + n));
	for (int64_t i = 0; i <= b; i++)
		out->types[n + i] = 1;
	n += (int32_t)b;
	out->ids[n++] = settings->sep;
	out->length = n;
	out->next_label = (int32_t)pick->random;
	return OK;
}

enum status instances_make(struct instances *instances, int64_t sample, const struct pick *pick,
                           struct instance *out)
{
	struct rng rng = rng_start(instances->settings.seed, RNG_MASK, (uint64_t)sample);
	pthread_mutex_lock(&instances->lock); /* the scratch of masking */
	enum status status = spell_out(instances, pick, &rng, out);
	if (status == OK)
		mask_instance(instances->masking, &instances->settings, &rng, out);
	pthread_mutex_unlock(&instances->lock);
	return status;
}

enum status instances_get(struct instances *instances, int64_t sample, struct instance *out)
{
	struct pick pick;
	TRY(instances_pick(instances, sample, &pick, NULL, NULL));
	return instances_make(instances, sample, &pick, out);
}
