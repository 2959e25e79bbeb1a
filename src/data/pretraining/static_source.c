/* Static instances as a source of examples: in file order or permuted, epoch after epoch. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/rng.h"
#include "data/pretraining/rewriting.h"
#include "data/pretraining/static_instances.h"

struct static_source {
	struct instances base;
	uint64_t seed;
	bool shuffle, one_segment;
	int32_t mask;
	const struct static_file *files;
	int64_t file_count;
	int64_t *first;           /* [file_count + 1] number of each file's first instance */
	struct epoch_start known; /* the start of some epoch */
};

static struct static_source *self(struct instances *instances)
{
	return (struct static_source *)(void *)instances;
}

static int64_t count_of(const struct static_source *source)
{
	return source->first[source->file_count];
}

static int64_t static_per_epoch(const struct instances *base)
{
	return count_of((const struct static_source *)(const void *)base);
}

static enum status static_locate(struct instances *base, int64_t sample, int64_t *out_epoch, int64_t *out_first)
{
	epoch_start_locate(&self(base)->known, static_per_epoch(base), sample, out_epoch, out_first);
	return OK;
}

static enum status static_hint(struct instances *base, int64_t epoch, int64_t first)
{
	return epoch_start_set(&self(base)->known, epoch, first);
}

static const struct static_file *find_file(const struct static_source *source, int64_t *index)
{
	int64_t low = 0, high = source->file_count;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (source->first[middle] <= *index)
			low = middle;
		else
			high = middle;
	}
	*index -= source->first[low];
	return &source->files[low];
}

static enum status static_plan(struct instances *base, int64_t sample, struct example_plan *out, int64_t *epoch, int64_t *first)
{
	const struct static_source *source = self(base);
	int64_t count = count_of(source);
	TRY(static_locate(base, sample, epoch, first));
	uint64_t index = (uint64_t)(sample - *first);
	if (source->shuffle)
		index = rng_permute(source->seed, RNG_SHUFFLE, (uint32_t)*epoch, (uint64_t)count, index);
	*out = (struct example_plan){.index = (int64_t)index, .sample = sample};
	int64_t within = (int64_t)index;
	const struct static_file *file = find_file(source, &within);
	int32_t length;
	static_file_sizes(file, within, &length, &out->labels[HEAD_MASKED_WORDS]);
	plan_single(out, length);
	out->labels[HEAD_NEXT_SENTENCE] = 1;
	return OK;
}

static enum status static_make(struct instances *base, const struct example_plan *plan, struct example *out)
{
	int64_t within = plan->index;
	struct instance instance = instance_in(out);
	const struct static_file *file = find_file(self(base), &within);
	TRY(static_file_read(file, within, base->bounds.vocab_size, &instance));
	for (int32_t i = 0; self(base)->one_segment && i < instance.length; i++)
		if (instance.types[i] != 0)
			return instances_one_segment(file->path);
	/* Each use of a pair masks its own run. */
	if (instance.draws_span)
		rewriting_mask_run(&instance, &(struct rewriting_mask){.span = instance.prediction_count,
								       .seed = self(base)->seed,
								       .key = (uint64_t)plan->sample,
								       .mask = self(base)->mask,
								       .vocab_size = base->bounds.vocab_size});
	instance_to_example(&instance, out);
	return OK;
}

static void static_close(struct instances *base)
{
	free(self(base)->first);
	free(base);
}

static const struct source_functions static_functions = {
	.close = static_close,
	.per_epoch = static_per_epoch,
	.locate = static_locate,
	.hint = static_hint,
	.plan = static_plan,
	.make = static_make,
};

void instances_static_bounds(const struct static_file *files, int64_t file_count, struct instance_settings *out)
{
	int32_t longest = 1, predictions = 1;
	bool labeled = false;
	for (int64_t i = 0; i < file_count; i++) {
		const struct static_summary *summary = &files[i].summary;
		longest = summary->max_length > longest ? summary->max_length : longest;
		predictions = summary->max_predictions > predictions ? summary->max_predictions : predictions;
		labeled |= summary->labeled_count > 0;
	}
	out->max_seq_length = longest;
	out->max_predictions_per_seq = predictions;
	out->masked_lm_prob = (double)predictions / longest;
	out->next_sentence = labeled ? NEXT_SENTENCE_PAIRS : NEXT_SENTENCE_NONE;
}

enum status instances_open_static(struct instances **out, const struct static_file *files, int64_t file_count,
				  const struct instance_settings *settings)
{
	enum status status;
	struct static_source *source = NULL;
	*out = NULL;
	TRY(memory_new(&source, 1, sizeof *source, "instances"));
	source->base = (struct instances){.functions = &static_functions};
	source->files = files;
	source->file_count = file_count;
	TRY_GOTO(memory_new(&source->first, file_count + 1, sizeof(int64_t), "instances"), fail);
	for (int64_t i = 0; i < file_count; i++)
		source->first[i + 1] = source->first[i] + files[i].summary.count;
	if (count_of(source) == 0) {
		status = error_set(ERR_DATA, "'%s'%s: no instance", file_count > 0 ? files[0].path : "",
				   file_count > 1 ? " and the other files" : "");
		goto fail;
	}
	struct instance_settings own = *settings;
	instances_static_bounds(files, file_count, &own);
	source->base.bounds = instance_bounds(&own);
	source->seed = settings->seed;
	source->shuffle = settings->shuffle;
	source->one_segment = settings->one_segment;
	source->mask = settings->mask;
	*out = &source->base;
	return OK;
fail:
	static_close(&source->base);
	return status;
}
