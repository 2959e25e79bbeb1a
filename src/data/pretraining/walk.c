/* The walk of a document, one instance at a time, so that it can be resumed anywhere. */
#include "data/pretraining/walk.h"
#include <stdlib.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"

#define SEQUENCE_LENGTH_MAX (1 << 20)
/* How often a document is drawn for a random second segment until it is a different one. */
#define DOCUMENT_TRIES 10

/* The shard that holds global number `index`, given the first number of each shard. */
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

const struct shard *text_set_sentence(const struct text_set *set, int64_t *sentence)
{
	int64_t s = find_shard(set->sentence_base, set->shard_count, *sentence);
	*sentence -= set->sentence_base[s];
	return &set->shards[s];
}

static enum status check_settings(const struct instance_settings *settings)
{
	const struct token_template *template = instance_template(settings);
	int32_t shortest = template_size(template) + (instance_is_pair(settings) ? 2 : 1);
	if (settings->max_seq_length < shortest || settings->max_seq_length > SEQUENCE_LENGTH_MAX)
		return error_set(ERR_USAGE, "max_seq_length %d must lie between %d and %d", settings->max_seq_length, shortest,
				 SEQUENCE_LENGTH_MAX);
	if (settings->min_seq_length < 0 || settings->min_seq_length > settings->max_seq_length)
		return error_set(ERR_USAGE, "min_seq_length %d must lie between 0 and max_seq_length %d",
				 settings->min_seq_length, settings->max_seq_length);
	if (!(settings->masked_lm_prob >= 0 && settings->masked_lm_prob <= 1))
		return error_set(ERR_USAGE, "masked_lm_prob %g must lie between 0 and 1", settings->masked_lm_prob);
	if (!(settings->running_text_share >= 0 && settings->running_text_share <= 1))
		return error_set(ERR_USAGE, "running_text_share %g must lie between 0 and 1", settings->running_text_share);
	if (!(settings->short_seq_prob >= 0 && settings->short_seq_prob <= 1))
		return error_set(ERR_USAGE, "short_seq_prob %g must lie between 0 and 1", settings->short_seq_prob);
	int32_t size = settings->vocab_size;
	BUG_IF(size < 1 || settings->mask < 0 || settings->mask >= size || template->before < 1);
	for (int i = 0; i < template_size(template); i++)
		BUG_IF(template->ids[i] < 0 || template->ids[i] >= size);
	BUG_IF(settings->whole_word_mask && settings->is_continuation == NULL);
	return OK;
}

/* Numbers documents and sentences across all shards. */
static enum status number_shards(struct text_set *set)
{
	int64_t shard_count = set->shard_count, usable = 0;
	TRY(memory_new(&set->document_base, shard_count + 1, sizeof(int64_t), "shards"));
	TRY(memory_new(&set->sentence_base, shard_count + 1, sizeof(int64_t), "shards"));
	for (int64_t s = 0; s < shard_count; s++) {
		const struct shard *shard = &set->shards[s];
		set->document_base[s + 1] = set->document_base[s] + shard->document_count;
		set->sentence_base[s + 1] = set->sentence_base[s] + shard->sentence_count;
		for (int64_t d = 0; d < shard->document_count; d++) {
			int64_t count = shard_document(shard, d + 1) - shard_document(shard, d);
			usable += count > 0;
			if (count > UINT32_MAX)
				return error_set(ERR_DATA, "'%s': document %lld has %lld sentences, the limit is 2^32",
						 shard->prefix, (long long)d, (long long)count);
		}
	}
	if (text_set_documents(set) > UINT32_MAX)
		return error_set(ERR_DATA, "%lld documents; the limit is 2^32", (long long)text_set_documents(set));
	if (usable == 0)
		return error_hinted(error_set(ERR_DATA, "'%s'%s: no document with text",
					      shard_count > 0 ? set->shards[0].prefix : "",
					      shard_count > 1 ? " and the other shards" : ""),
				    "prepare the shard from a corpus with text");
	return OK;
}

void instances_warn_of_pairs(const struct shard *shards, int64_t shard_count, const struct instance_settings *settings)
{
	int64_t documents = 0, sentences = 0;
	for (int64_t s = 0; s < shard_count; s++) {
		documents += shards[s].document_count;
		sentences += shards[s].sentence_count;
	}
	if (settings->next_sentence != NEXT_SENTENCE_PAIRS)
		return;
	if (documents == 1)
		log_warning("only one document to train on: random second segments come from the same document, so "
			    "next-sentence prediction learns little; put blank lines between documents");
	else if ((sentences - documents) * 100 <= documents) /* at most one of a hundred has a second one */
		log_warning(
			"the documents are single sentences, which nothing follows: nearly all second segments are random, so "
			"next-sentence prediction learns little; blank lines belong between documents, not between sentences");
}

enum status text_set_open(struct text_set *out, const struct shard *shards, int64_t shard_count,
			  const struct instance_settings *settings)
{
	*out = (struct text_set){.shards = shards, .shard_count = shard_count, .settings = *settings};
	TRY(check_settings(settings));
	out->room = settings->max_seq_length - template_size(instance_template(settings));
	enum status status = number_shards(out);
	if (status != OK)
		text_set_close(out);
	return status;
}

void text_set_close(struct text_set *set)
{
	free(set->document_base);
	free(set->sentence_base);
	set->document_base = set->sentence_base = NULL;
}

/* A document's sentences: [begin, end) within its shard. */
struct extent {
	const struct shard *shard;
	int64_t sentence_base;
	int64_t begin, end;
};

static struct extent document_extent(const struct text_set *set, int64_t document)
{
	int64_t s = find_shard(set->document_base, set->shard_count, document);
	const struct shard *shard = &set->shards[s];
	int64_t local = document - set->document_base[s];
	return (struct extent){.shard = shard,
			       .sentence_base = set->sentence_base[s],
			       .begin = shard_document(shard, local),
			       .end = shard_document(shard, local + 1)};
}

/* Takes B from another document: from a random sentence until it has `wanted` tokens. If every try gives the
 * current document, that one is used, and B still counts as random. */
static void random_segment(struct walker *walker, int64_t wanted, struct example_plan *plan)
{
	const struct text_set *set = walker->set;
	int64_t documents = text_set_documents(set);
	struct extent other = {0};
	for (int i = 0; i < DOCUMENT_TRIES; i++) {
		int64_t document = rng_below(&walker->rng, (uint32_t)documents);
		other = document_extent(set, document);
		while (other.begin == other.end) { /* in place of an empty document, take the next one with text */
			document = document + 1 < documents ? document + 1 : 0;
			other = document_extent(set, document);
		}
		if (document != walker->document)
			break;
	}
	int64_t start = other.begin + rng_below(&walker->rng, (uint32_t)(other.end - other.begin));
	int64_t tokens = 0;
	for (int64_t i = start; i < other.end; i++) {
		tokens += shard_length(other.shard, i);
		if (tokens >= wanted)
			break;
	}
	plan->b_first = other.sentence_base + start;
	plan->b_tokens = tokens;
	plan->random = true;
}

/* Collects sentences until they reach the target length and divides them in two; half of the time, the second part is
 * replaced by a random segment and its sentences are walked again. */
static bool next_pair(struct walker *walker, struct example_plan *plan)
{
	int64_t chunk = walker->next, tokens = 0;
	if (chunk == walker->last)
		return false;
	int64_t i = chunk;
	for (;; i++) {
		tokens += shard_length(walker->shard, i);
		if (tokens >= walker->target || i + 1 == walker->last)
			break;
	}
	int64_t count = i + 1 - chunk, a_count = 1;
	if (count > 1)
		a_count = 1 + rng_below(&walker->rng, (uint32_t)(count - 1));
	for (int64_t j = chunk; j < chunk + a_count; j++)
		plan->a_tokens += shard_length(walker->shard, j);
	plan->a_first = walker->sentence_base + chunk;
	walker->next = i + 1;
	if (count == 1 || rng_below(&walker->rng, 2) == 0) {
		random_segment(walker, walker->target - plan->a_tokens, plan);
		walker->next = chunk + a_count;
	} else {
		plan->b_first = plan->a_first + a_count;
		plan->b_tokens = tokens - plan->a_tokens;
	}
	return true;
}

/* The same for sentence order: collects at least two sentences; both parts come from the document, in order or swapped. A
 * single sentence left at the end has no order and is left out. */
static bool next_order(struct walker *walker, struct example_plan *plan)
{
	int64_t chunk = walker->next, tokens = 0, i = chunk;
	for (; i < walker->last; i++) {
		tokens += shard_length(walker->shard, i);
		if (i > chunk && tokens >= walker->target)
			break;
	}
	int64_t count = (i < walker->last ? i + 1 : i) - chunk;
	walker->next = chunk + count;
	if (count < 2)
		return false;
	int64_t front = 1 + rng_below(&walker->rng, (uint32_t)(count - 1)), front_tokens = 0;
	for (int64_t j = chunk; j < chunk + front; j++)
		front_tokens += shard_length(walker->shard, j);
	plan->a_first = walker->sentence_base + chunk;
	plan->a_tokens = front_tokens;
	plan->b_first = plan->a_first + front;
	plan->b_tokens = tokens - front_tokens;
	plan->random = rng_below(&walker->rng, 2) == 1;
	if (plan->random) {
		plan->b_first = plan->a_first;
		plan->a_first += front;
		plan->a_tokens = plan->b_tokens;
		plan->b_tokens = front_tokens;
	}
	return true;
}

/* Contiguous text: as many whole sentences as fit the target length. A sentence longer than the target is cut there
 * and continues in the next instance, so no token of the document is left out. */
static bool next_text(struct walker *walker, struct example_plan *plan)
{
	int64_t tokens = 0;
	if (walker->next == walker->last)
		return false;
	plan->a_first = walker->sentence_base + walker->next;
	plan->b_first = walker->skipped;
	for (; walker->next < walker->last; walker->next++) {
		int64_t left = shard_length(walker->shard, walker->next) - walker->skipped;
		if (tokens + left > walker->target) {
			if (tokens == 0) {
				tokens = walker->target;
				walker->skipped += tokens;
			}
			break;
		}
		tokens += left;
		walker->skipped = 0;
	}
	plan->a_tokens = tokens;
	return true;
}

/* A sentence by itself, cut to the available room. */
static bool next_single(struct walker *walker, struct example_plan *plan)
{
	if (walker->next == walker->last)
		return false;
	int64_t length = shard_length(walker->shard, walker->next);
	plan->a_first = walker->sentence_base + walker->next++;
	plan->a_tokens = length < walker->set->room ? length : walker->set->room;
	return true;
}

/* A sentence, or the beginning of one, and as much of another text as it is to be mixed with: of what follows, or of another
 * document. */
static bool next_overlap(struct walker *walker, struct example_plan *plan)
{
	int64_t half = walker->set->room / 2; /* of the two texts each */
	if (walker->next == walker->last)
		return false;
	int64_t sentence = walker->next++;
	plan->a_first = walker->sentence_base + sentence;
	plan->a_tokens = smaller(shard_length(walker->shard, sentence), half);
	if (plan->a_tokens > 0 && rng_below(&walker->rng, 2) == 0)
		plan->a_tokens = 1 + rng_below(&walker->rng, (uint32_t)plan->a_tokens);
	int64_t wanted = smaller(half, plan->a_tokens / 2 + 1 + rng_below(&walker->rng, (uint32_t)plan->a_tokens + 1));
	if (walker->next < walker->last && rng_below(&walker->rng, 3) == 0) {
		plan->b_first = plan->a_first + 1;
		for (int64_t i = walker->next; i < walker->last && plan->b_tokens < wanted; i++)
			plan->b_tokens += shard_length(walker->shard, i);
	} else {
		random_segment(walker, wanted, plan);
	}
	plan->b_tokens = smaller(plan->b_tokens, wanted);
	return true;
}

/* Starts the walker's current document: finds its sentences and draws the target length. */
static void open_document(struct walker *walker)
{
	const struct text_set *set = walker->set;
	const struct instance_settings *settings = &set->settings;
	struct extent extent = document_extent(set, walker->document);
	walker->shard = extent.shard;
	walker->sentence_base = extent.sentence_base;
	walker->first = walker->next = extent.begin;
	walker->last = extent.end;
	walker->skipped = 0;
	walker->open = true;
	walker->rng = rng_start(settings->seed, RNG_DOCUMENT, (uint64_t)walker->epoch << 32 | (uint64_t)walker->document);
	walker->kind = settings->next_sentence;
	if (walker->kind == NEXT_SENTENCE_OVERLAP && rng_double(&walker->rng) < settings->running_text_share)
		walker->kind = NEXT_SENTENCE_NONE;
	int64_t shortest = next_sentence_is_pair(walker->kind) ? 2 : 1;
	int64_t room = settings->max_seq_length - template_size(template_of(settings, walker->kind));
	walker->target = room;
	if (rng_double(&walker->rng) < settings->short_seq_prob)
		walker->target = shortest + rng_below(&walker->rng, (uint32_t)(room - shortest + 1));
}

struct walker walk_from(const struct text_set *set, int64_t epoch, int64_t document, int64_t end)
{
	return (struct walker){.set = set, .epoch = epoch, .document = document, .end = end};
}

struct walker walk_from_mark(const struct text_set *set, int64_t epoch, const struct mark *mark, int64_t end)
{
	struct walker walker = walk_from(set, epoch, mark->document, end);
	if (!mark->open)
		return walker;
	open_document(&walker);
	walker.next = walker.first + mark->sentence;
	walker.skipped = mark->skipped;
	walker.rng.block = mark->draws / 4;
	walker.rng.left = 0;
	for (uint32_t i = 0; i < mark->draws % 4; i++)
		rng_u32(&walker.rng);
	return walker;
}

struct mark walk_mark(const struct walker *walker)
{
	return (struct mark){.document = walker->document,
			     .sentence = (uint32_t)(walker->next - walker->first),
			     .skipped = (uint32_t)walker->skipped,
			     .draws = walker->rng.block * 4 - (uint32_t)walker->rng.left,
			     .open = walker->open};
}

static void measure(const struct walker *walker, struct example_plan *plan)
{
	const struct instance_settings *settings = &walker->set->settings;
	plan->pair = next_sentence_is_pair(walker->kind);
	int64_t length = plan->a_tokens + plan->b_tokens + template_size(template_of(settings, walker->kind));
	plan_single(plan, length < settings->max_seq_length ? (int32_t)length : settings->max_seq_length);
	plan->labels[HEAD_MASKED_WORDS] = instance_predictions(settings, plan->tokens);
	plan->labels[HEAD_NEXT_SENTENCE] = 1;
}

bool walk_next(struct walker *walker, struct example_plan *out)
{
	static bool (*const next[])(struct walker *, struct example_plan *) = {next_pair, next_order, next_text, next_single,
									       next_overlap};
	const struct instance_settings *settings = &walker->set->settings;
	while (walker->document < walker->end) {
		if (!walker->open)
			open_document(walker);
		*out = (struct example_plan){0};
		if (!next[walker->kind](walker, out)) {
			walker->open = false;
			walker->document++;
			continue;
		}
		measure(walker, out);
		if (out->tokens >= settings->min_seq_length)
			return true;
	}
	return false;
}
