/* Builds sets of labeled examples, and presents a set as a source of instances. */
#include "data/labeled.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"

void labeled_form(struct labeled_set *set, int head, int32_t width, int32_t row_width, bool values)
{
	set->items[head].width = width;
	set->items[head].row_width = row_width;
	set->items[head].values = values;
}

/* Makes room in an array for `more` elements after the first `used`. */
#define GROW(array, capacity, used, more) memory_grow(&(array), &(capacity), (used) + (more), sizeof *(array), "labeled examples")

enum status labeled_part(struct labeled_set *set, const char *name, double weight)
{
	TRY(GROW(set->parts, set->part_capacity, set->part_count, 1));
	TRY(GROW(set->part_names, set->name_capacity, set->part_count, 1));
	set->part_names[set->part_count] = name;
	set->parts[set->part_count++] = (struct labeled_part){.first = set->example_count, .weight = weight};
	return OK;
}

static int64_t part_examples(const struct labeled_set *set, int64_t part)
{
	int64_t end = part + 1 < set->part_count ? set->parts[part + 1].first : set->example_count;
	return end - (set->part_count > 0 ? set->parts[part].first : 0);
}

int64_t labeled_batches(const struct labeled_set *set, int64_t batch_size)
{
	int64_t batches = 0;
	for (int64_t part = 0; part == 0 || part < set->part_count; part++)
		batches += (part_examples(set, part) + batch_size - 1) / batch_size;
	return batches;
}

enum status labeled_begin(struct labeled_set *set)
{
	if (!set->examples) {
		TRY(GROW(set->examples, set->example_capacity, 0, 2));
		TRY(GROW(set->sequences, set->sequence_capacity, 0, 1));
		set->examples[0] = set->sequences[0] = 0;
	}
	TRY(GROW(set->examples, set->example_capacity, set->example_count, 2));
	set->example_count++;
	set->examples[set->example_count] = set->sequence_count;
	for (int h = 0; h < BATCH_HEADS; h++) {
		struct labeled_items *items = &set->items[h];
		if (items->width == 0)
			continue;
		TRY(GROW(items->starts, items->capacity[0], set->example_count, 1));
		items->starts[set->example_count - 1] = items->starts[set->example_count] = items->count;
	}
	return OK;
}

enum status labeled_sequence(struct labeled_set *set, const int32_t *ids, int32_t count, int32_t second)
{
	BUG_IF(count < 1 || second < 0 || second > count || set->example_count == 0);
	TRY(GROW(set->sequences, set->sequence_capacity, set->sequence_count, 2));
	TRY(GROW(set->seconds, set->second_capacity, set->sequence_count, 1));
	TRY(GROW(set->ids, set->capacity, set->token_count, count));
	memcpy(set->ids + set->token_count, ids, (size_t)count * sizeof *ids);
	set->seconds[set->sequence_count] = second;
	set->token_count += count;
	set->sequences[++set->sequence_count] = set->token_count;
	set->examples[set->example_count] = set->sequence_count;
	int64_t sequences = set->sequence_count - set->examples[set->example_count - 1];
	set->longest = count > set->longest ? count : set->longest;
	set->most_sequences = sequences > set->most_sequences ? (int32_t)sequences : set->most_sequences;
	return OK;
}

enum status labeled_item(struct labeled_set *set, int head, const int32_t *rows, const int32_t *classes, const float *values,
			 float weight)
{
	struct labeled_items *items = &set->items[head];
	int64_t at = items->count;
	BUG_IF(items->width == 0 || (items->row_width > 0) != (rows != NULL) || items->values != (values != NULL));
	TRY(GROW(items->weights, items->capacity[1], at, 1));
	if (rows) {
		TRY(GROW(items->rows, items->capacity[2], at * items->row_width, items->row_width));
		memcpy(items->rows + at * items->row_width, rows, (size_t)items->row_width * sizeof *rows);
	}
	if (values) {
		TRY(GROW(items->numbers, items->capacity[3], at * items->width, items->width));
		memcpy(items->numbers + at * items->width, values, (size_t)items->width * sizeof *values);
	} else {
		TRY(GROW(items->classes, items->capacity[3], at * items->width, items->width));
		memcpy(items->classes + at * items->width, classes, (size_t)items->width * sizeof *classes);
	}
	items->weights[at] = weight;
	items->starts[set->example_count] = ++items->count;
	int64_t own = items->count - items->starts[set->example_count - 1];
	items->most = own > items->most ? (int32_t)own : items->most;
	return OK;
}

void labeled_release(struct labeled_set *set)
{
	free(set->examples);
	free(set->sequences);
	free(set->seconds);
	free(set->ids);
	free(set->parts);
	free(set->part_names);
	for (int h = 0; h < BATCH_HEADS; h++) {
		free(set->items[h].starts);
		free(set->items[h].rows);
		free(set->items[h].classes);
		free(set->items[h].numbers);
		free(set->items[h].weights);
	}
	*set = (struct labeled_set){0};
}

int64_t labeled_tokens(const struct labeled_set *set, int64_t example)
{
	return set->sequences[set->examples[example + 1]] - set->sequences[set->examples[example]];
}

static uint64_t add_array(uint64_t hash, const void *array, int64_t count, size_t size)
{
	return array ? hash64_combine(hash, hash64(array, (size_t)count * size)) : hash;
}

void labeled_count_unknown(const struct labeled_set *set, const struct vocab *vocab, int64_t *unknown, int64_t *tokens)
{
	for (int64_t i = 0; i < set->token_count; i++) {
		*unknown += set->ids[i] == vocab->unk;
		*tokens += !template_has(&vocab->pair, set->ids[i]);
	}
}

uint64_t labeled_hash(const struct labeled_set *set)
{
	uint64_t hash = 0;
	hash = add_array(hash, set->examples, set->example_count + 1, sizeof *set->examples);
	hash = add_array(hash, set->sequences, set->sequence_count + 1, sizeof *set->sequences);
	hash = add_array(hash, set->seconds, set->sequence_count, sizeof *set->seconds);
	hash = add_array(hash, set->ids, set->token_count, sizeof *set->ids);
	if (set->part_count > 1)
		hash = add_array(hash, set->parts, set->part_count, sizeof *set->parts);
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct labeled_items *items = &set->items[h];
		/* The head's index and the form of its labels matter as much as the numbers. */
		const int32_t form[] = {h, items->width, items->row_width, items->values};
		if (items->width > 0)
			hash = add_array(hash, form, 4, sizeof *form);
		hash = add_array(hash, items->starts, items->starts ? set->example_count + 1 : 0, sizeof *items->starts);
		hash = add_array(hash, items->rows, items->count * items->row_width, sizeof *items->rows);
		hash = add_array(hash, items->classes, items->count * items->width, sizeof *items->classes);
		hash = add_array(hash, items->numbers, items->count * items->width, sizeof *items->numbers);
		hash = add_array(hash, items->weights, items->count, sizeof *items->weights);
	}
	return set->beside_hash ? hash64_combine(hash, set->beside_hash) : hash;
}

/* ---- As a source ---- */

struct labeled_instances {
	struct instances base;
	const struct labeled_set *set;
	struct labeled_source source;
	int64_t first, count;     /* its examples of the set */
	struct epoch_start known; /* the start of some epoch */
};

static struct labeled_instances *self(struct instances *base)
{
	return (struct labeled_instances *)(void *)base;
}

static int64_t labeled_per_epoch(const struct instances *base)
{
	return ((const struct labeled_instances *)(const void *)base)->count;
}

static enum status labeled_locate(struct instances *base, int64_t sample, int64_t *out_epoch, int64_t *out_first)
{
	epoch_start_locate(&self(base)->known, labeled_per_epoch(base), sample, out_epoch, out_first);
	return OK;
}

static enum status labeled_hint(struct instances *base, int64_t epoch, int64_t first)
{
	return epoch_start_set(&self(base)->known, epoch, first);
}

static enum status labeled_plan(struct instances *base, int64_t sample, struct example_plan *out, int64_t *epoch, int64_t *first)
{
	const struct labeled_instances *own = self(base);
	const struct labeled_set *set = own->set;
	TRY(labeled_locate(base, sample, epoch, first));
	uint64_t index = (uint64_t)(sample - *first);
	if (own->source.shuffle)
		index = rng_permute(own->source.seed, RNG_SHUFFLE, (uint32_t)*epoch, (uint64_t)own->count, index);
	index += (uint64_t)own->first;
	*out = (struct example_plan){.index = (int64_t)index, .sample = sample};
	for (int64_t s = set->examples[index]; s < set->examples[index + 1]; s++) {
		int32_t length = (int32_t)(set->sequences[s + 1] - set->sequences[s]);
		out->tokens += length;
		out->squares += (int64_t)length * length;
		out->longest = length > out->longest ? length : out->longest;
		out->sequences++;
	}
	for (int h = 0; h < BATCH_HEADS; h++)
		if (set->items[h].width > 0)
			out->labels[h] = (int32_t)(set->items[h].starts[index + 1] - set->items[h].starts[index]);
	return OK;
}

static void copy_items(const struct labeled_items *items, int64_t example, struct batch_labels *out)
{
	int64_t first = items->starts[example], count = items->starts[example + 1] - first;
	out->count = (int32_t)count;
	memcpy(out->weights, items->weights + first, (size_t)count * sizeof *out->weights);
	if (items->row_width > 0)
		memcpy(out->rows, items->rows + first * items->row_width, (size_t)(count * items->row_width) * sizeof *out->rows);
	if (items->values)
		memcpy(out->values, items->numbers + first * items->width, (size_t)(count * items->width) * sizeof *out->values);
	else
		memcpy(out->classes, items->classes + first * items->width,
		       (size_t)(count * items->width) * sizeof *out->classes);
}

bool labeled_has_pairs(const struct labeled_set *set)
{
	for (int64_t s = 0; s < set->sequence_count; s++)
		if (set->seconds[s] < set->sequences[s + 1] - set->sequences[s])
			return true;
	return false;
}

static enum status labeled_make(struct instances *base, const struct example_plan *plan, struct example *out)
{
	const struct labeled_set *set = self(base)->set;
	int64_t first = set->examples[plan->index], end = set->examples[plan->index + 1];
	out->sequence_count = (int32_t)(end - first);
	out->token_count = 0;
	for (int64_t s = first; s < end; s++) {
		int32_t length = (int32_t)(set->sequences[s + 1] - set->sequences[s]);
		out->lengths[s - first] = length;
		memcpy(out->ids + out->token_count, set->ids + set->sequences[s], (size_t)length * sizeof *out->ids);
		for (int32_t i = 0; i < length; i++)
			out->types[out->token_count + i] = i >= set->seconds[s];
		out->token_count += length;
	}
	for (int h = 0; h < BATCH_HEADS; h++)
		if (set->items[h].width > 0)
			copy_items(&set->items[h], plan->index, &out->labels[h]);
	return OK;
}

static void labeled_close(struct instances *base)
{
	free(base);
}

static const struct source_functions labeled_functions = {
	.close = labeled_close,
	.per_epoch = labeled_per_epoch,
	.locate = labeled_locate,
	.hint = labeled_hint,
	.plan = labeled_plan,
	.make = labeled_make,
};

/* Opens `count` examples of a set. */
static enum status open_range(struct instances **out, const struct labeled_set *set, const struct labeled_source *source,
			      int64_t first, int64_t count)
{
	struct labeled_instances *own = NULL;
	TRY(memory_new(&own, 1, sizeof *own, "labeled examples"));
	own->set = set;
	own->source = *source;
	own->first = first;
	own->count = count;
	own->base = (struct instances){
		.functions = &labeled_functions,
		.bounds = {.max_seq_length = set->longest, .sequences = set->most_sequences, .vocab_size = source->vocab_size},
	};
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct labeled_items *items = &set->items[h];
		own->base.bounds.labels[h] = (struct label_bounds){.most = items->width > 0 ? items->most : 0,
								   .width = items->width,
								   .row_width = items->row_width,
								   .values = items->values};
	}
	*out = &own->base;
	return OK;
}

/* Opens a source for each part, with its own seed, and mixes their batches by weight. */
static enum status open_parts(struct instances **out, const struct labeled_set *set, const struct labeled_source *source)
{
	struct instances **sources = NULL;
	double *weights = NULL;
	enum status status;
	TRY_GOTO(memory_new(&sources, set->part_count, sizeof(struct instances *), "sets of examples"), done);
	TRY_GOTO(memory_new(&weights, set->part_count, sizeof *weights, "sets of examples"), done);
	for (int64_t part = 0; part < set->part_count; part++) {
		struct labeled_source own = *source;
		int64_t count = part_examples(set, part);
		own.seed = hash64_combine(source->seed, (uint64_t)part);
		weights[part] = set->parts[part].weight;
		if (weights[part] == 0)
			weights[part] = (double)((count + source->batch_size - 1) / source->batch_size);
		TRY_GOTO(open_range(&sources[part], set, &own, set->parts[part].first, count), done);
	}
	status = instances_open_batch_mixture(out, sources, weights, set->part_count, source->seed, source->batch_size,
					      labeled_batches(set, source->batch_size));
done:
	for (int64_t part = 0; status != OK && sources && part < set->part_count; part++)
		instances_close(sources[part]);
	free(sources);
	free(weights);
	return status;
}

enum status instances_open_labeled(struct instances **out, const struct labeled_set *set, const struct labeled_source *source)
{
	*out = NULL;
	if (set->example_count == 0)
		return error_set(ERR_DATA, "there are no examples");
	if (source->batch_size > 0 && set->part_count > 1)
		return open_parts(out, set, source);
	return open_range(out, set, source, 0, set->example_count);
}
