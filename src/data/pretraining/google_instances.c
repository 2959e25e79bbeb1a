/* Reproduces Google's create_pretraining_data.py draw by draw. */
#include "data/pretraining/google_instances.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "data/pretraining/python_random.h"

/* How often a random document is drawn until it is not the current one. */
#define DOCUMENT_TRIES 10

/* Positions masked together: the pieces of a word are contiguous except for separators. */
struct word {
	int32_t begin, count;
};

struct maker {
	const struct shard *shard;
	const struct google_settings *settings;
	struct static_writer *writer;
	struct python_random random;
	int64_t *documents; /* [document_count] in the shuffled order */
	int64_t document_count;
	int32_t *vocab_words; /* [word_count] ids in the order of Python's dictionary */
	int32_t word_count;
	int32_t *a, *b; /* [capacity] tokens of the two segments */
	int64_t a_capacity, b_capacity;
	struct word *words; /* [max_seq_length] */
	int64_t *order;     /* [max_seq_length] indices of words, shuffled */
	int32_t *labels;    /* [max_seq_length] original id of a masked position, else -1 */
	struct instance instance;
	struct progress progress;
	int64_t documents_done;
};

/* For a duplicate entry, a Python dictionary keeps the position of its first line and the id of its last. */
static enum status list_words(struct maker *maker)
{
	const struct vocab *vocab = maker->settings->vocab;
	bool *seen;
	TRY(memory_new(&maker->vocab_words, vocab->count, sizeof(int32_t), "vocabulary"));
	TRY(memory_new(&seen, vocab->count, sizeof(bool), "vocabulary"));
	for (int32_t i = 0; i < vocab->count; i++) {
		int32_t id = vocab_find(vocab, vocab->text[i], vocab->size[i]);
		if (id >= 0 && !seen[id])
			maker->vocab_words[maker->word_count++] = id;
		if (id >= 0)
			seen[id] = true;
	}
	free(seen);
	return OK;
}

static enum status list_documents(struct maker *maker)
{
	const struct shard *shard = maker->shard;
	TRY(memory_new(&maker->documents, shard->document_count, sizeof(int64_t), "documents"));
	for (int64_t d = 0; d < shard->document_count; d++)
		if (shard_document(shard, d + 1) > shard_document(shard, d))
			maker->documents[maker->document_count++] = d;
	python_random_shuffle(&maker->random, maker->documents, maker->document_count);
	return OK;
}

/* Appends the tokens of a sentence to a segment. */
static enum status extend(struct maker *maker, int32_t **tokens, int64_t *count, int64_t *capacity, int64_t sentence)
{
	int32_t length = shard_length(maker->shard, sentence);
	TRY(memory_grow(tokens, capacity, *count + length, sizeof **tokens, "segment"));
	TRY(shard_tokens(maker->shard, sentence, 0, length, maker->settings->vocab->count, *tokens + *count));
	*count += length;
	return OK;
}

/* truncate_seq_pair: the longer one (B if equal) loses a token, at its front or back with equal probability. */
static void truncate_pair(struct maker *maker, int32_t **a, int64_t *a_count, int32_t **b, int64_t *b_count, int64_t room)
{
	while (*a_count + *b_count > room) {
		bool cuts_a = *a_count > *b_count;
		bool front = python_random_double(&maker->random) < 0.5;
		if (front && cuts_a)
			++*a;
		else if (front)
			++*b;
		--*(cuts_a ? a_count : b_count);
	}
}

static int32_t find_words(const struct maker *maker, int32_t length)
{
	const struct vocab *vocab = maker->settings->vocab;
	int32_t count = 0;
	for (int32_t i = 0; i < length; i++) {
		int32_t id = maker->instance.ids[i];
		if (id == vocab->cls || id == vocab->sep)
			continue;
		if (count > 0 && maker->settings->whole_word_mask && vocab->is_continuation[id]) {
			maker->words[count - 1].count++;
			continue;
		}
		maker->order[count] = count;
		maker->words[count++] = (struct word){i, 1};
	}
	return count;
}

static int32_t masked_id(struct maker *maker, int32_t id)
{
	if (python_random_double(&maker->random) < 0.8)
		return maker->settings->vocab->mask;
	if (python_random_double(&maker->random) < 0.5)
		return id;
	return maker->vocab_words[python_random_below(&maker->random, (uint64_t)maker->word_count)];
}

/* create_masked_lm_predictions. */
static void mask(struct maker *maker)
{
	const struct google_settings *settings = maker->settings;
	struct instance *instance = &maker->instance;
	int32_t *labels = maker->labels;
	int32_t word_count = find_words(maker, instance->length);
	python_random_shuffle(&maker->random, maker->order, word_count);
	double share = nearbyint(instance->length * settings->masked_lm_prob); /* ties to even, as Python's round */
	int32_t wanted = share < 1 ? 1 : (int32_t)share, chosen = 0;
	if (wanted > settings->max_predictions_per_seq)
		wanted = settings->max_predictions_per_seq;
	for (int32_t i = 0; i < word_count && chosen < wanted; i++) {
		struct word word = maker->words[maker->order[i]];
		if (chosen + word.count > wanted)
			continue;
		chosen += word.count;
		for (int32_t at = word.begin; word.count > 0; at++) {
			int32_t id = instance->ids[at];
			if (id == settings->vocab->cls || id == settings->vocab->sep)
				continue;
			labels[at] = id;
			instance->ids[at] = masked_id(maker, id);
			word.count--;
		}
	}
	int32_t count = 0;
	for (int32_t at = 0; count < chosen; at++) {
		if (labels[at] < 0)
			continue;
		instance->prediction_positions[count] = at;
		instance->prediction_labels[count++] = labels[at];
		labels[at] = -1;
	}
	instance->prediction_count = count;
}

static enum status put_instance(struct maker *maker, int64_t a_count, int64_t b_count, bool random_next)
{
	const struct vocab *vocab = maker->settings->vocab;
	struct instance *instance = &maker->instance;
	int32_t *a = maker->a, *b = maker->b, n = 0;
	truncate_pair(maker, &a, &a_count, &b, &b_count, maker->settings->max_seq_length - 3);
	instance->ids[n++] = vocab->cls;
	memcpy(instance->ids + n, a, (size_t)a_count * sizeof *a);
	n += (int32_t)a_count;
	instance->ids[n++] = vocab->sep;
	int32_t first_b = n;
	memcpy(instance->ids + n, b, (size_t)b_count * sizeof *b);
	n += (int32_t)b_count;
	instance->ids[n++] = vocab->sep;
	for (int32_t i = 0; i < n; i++)
		instance->types[i] = i >= first_b;
	instance->length = n;
	instance->next_label = random_next;
	mask(maker);
	return static_writer_add(maker->writer, instance);
}

/* Takes B from a random document, starting at a random sentence. */
static enum status random_segment(struct maker *maker, int64_t current, int64_t wanted, int64_t *b_count)
{
	int64_t place = current;
	for (int i = 0; i < DOCUMENT_TRIES; i++) {
		place = python_random_int(&maker->random, 0, maker->document_count - 1);
		if (place != current)
			break;
	}
	int64_t begin = shard_document(maker->shard, maker->documents[place]);
	int64_t end = shard_document(maker->shard, maker->documents[place] + 1);
	int64_t start = begin + python_random_int(&maker->random, 0, end - begin - 1);
	for (int64_t j = start; j < end; j++) {
		TRY(extend(maker, &maker->b, b_count, &maker->b_capacity, j));
		if (*b_count >= wanted)
			break;
	}
	return OK;
}

/* create_instances_from_document. `place`: index of the document in the shuffled list. */
static enum status walk_document(struct maker *maker, int64_t place)
{
	const struct google_settings *settings = maker->settings;
	int64_t begin = shard_document(maker->shard, maker->documents[place]);
	int64_t end = shard_document(maker->shard, maker->documents[place] + 1);
	int64_t room = settings->max_seq_length - 3, target = room;
	if (python_random_double(&maker->random) < settings->short_seq_prob)
		target = python_random_int(&maker->random, 2, room);
	int64_t chunk = begin, tokens = 0;
	for (int64_t i = begin; i < end; i++) {
		tokens += shard_length(maker->shard, i);
		if (i + 1 < end && tokens < target)
			continue;
		int64_t count = i + 1 - chunk, a_end = 1, a_count = 0, b_count = 0;
		if (count >= 2)
			a_end = python_random_int(&maker->random, 1, count - 1);
		for (int64_t j = 0; j < a_end; j++)
			TRY(extend(maker, &maker->a, &a_count, &maker->a_capacity, chunk + j));
		bool random_next = count == 1 || python_random_double(&maker->random) < 0.5;
		if (random_next) {
			TRY(random_segment(maker, place, target - a_count, &b_count));
			i -= count - a_end; /* sentences not used are walked again */
		} else {
			for (int64_t j = a_end; j < count; j++)
				TRY(extend(maker, &maker->b, &b_count, &maker->b_capacity, chunk + j));
		}
		TRY(put_instance(maker, a_count, b_count, random_next));
		chunk = i + 1;
		tokens = 0;
	}
	return OK;
}

static enum status walk_all(struct maker *maker)
{
	int64_t all = maker->document_count * maker->settings->dupe_factor;
	for (int32_t round = 0; round < maker->settings->dupe_factor; round++)
		for (int64_t place = 0; place < maker->document_count; place++) {
			TRY(walk_document(maker, place));
			if (++maker->documents_done % 64 == 0 || maker->documents_done == all)
				progress_update(&maker->progress, maker->documents_done, "%lld instances",
						(long long)static_writer_summary(maker->writer)->count);
			if (stop_requested())
				return error_set(STOPPED, "stopped by %s; nothing was written", stop_reason());
		}
	return OK;
}

static enum status shuffled_order(struct maker *maker, int64_t **out_order)
{
	int64_t count = static_writer_summary(maker->writer)->count;
	TRY(memory_new(out_order, count, sizeof **out_order, "order of instances"));
	for (int64_t i = 0; i < count; i++)
		(*out_order)[i] = i;
	python_random_shuffle(&maker->random, *out_order, count);
	return OK;
}

static enum status take_memory(struct maker *maker)
{
	int32_t length = maker->settings->max_seq_length;
	struct instance *instance = &maker->instance;
	TRY(memory_new(&maker->words, length, sizeof *maker->words, "instance"));
	TRY(memory_new(&maker->order, length, sizeof *maker->order, "instance"));
	TRY(memory_new(&maker->labels, length, sizeof(int32_t), "instance"));
	TRY(memory_new(&instance->ids, length, sizeof(int32_t), "instance"));
	TRY(memory_new(&instance->types, length, sizeof(int32_t), "instance"));
	TRY(memory_new(&instance->prediction_positions, length, sizeof(int32_t), "instance"));
	TRY(memory_new(&instance->prediction_labels, length, sizeof(int32_t), "instance"));
	for (int32_t i = 0; i < length; i++)
		maker->labels[i] = -1;
	return OK;
}

static void release(struct maker *maker)
{
	free(maker->documents);
	free(maker->vocab_words);
	free(maker->a);
	free(maker->b);
	free(maker->words);
	free(maker->order);
	free(maker->labels);
	free(maker->instance.ids);
	free(maker->instance.types);
	free(maker->instance.prediction_positions);
	free(maker->instance.prediction_labels);
}

enum status google_instances(const struct shard *shard, const struct google_settings *settings, struct static_writer *writer,
			     int64_t **out_order)
{
	enum status status;
	struct maker maker = {.shard = shard, .settings = settings, .writer = writer};
	*out_order = NULL;
	python_random_seed(&maker.random, settings->seed);
	TRY_GOTO(take_memory(&maker), done);
	TRY_GOTO(list_words(&maker), done);
	TRY_GOTO(list_documents(&maker), done);
	progress_start(&maker.progress, "instances", 0, maker.document_count * settings->dupe_factor, "documents");
	status = walk_all(&maker);
	progress_finish(&maker.progress);
	if (status == OK)
		status = shuffled_order(&maker, out_order);
done:
	release(&maker);
	return status;
}
