/* Sources of instances, by their functions. */
#include "data/source.h"
#include <string.h>

const char *const next_sentence_names[] = {"pairs", "order", "none", "single", NULL};

enum next_sentence next_sentence_named(const char *name)
{
	int kind = 0;
	while (strcmp(next_sentence_names[kind], name) != 0) {
		kind++;
		BUG_IF(next_sentence_names[kind] == NULL);
	}
	return (enum next_sentence)kind;
}

void instances_close(struct instances *instances)
{
	if (instances != NULL)
		instances->functions->close(instances);
}

const struct instance_settings *instances_settings(const struct instances *instances)
{
	return &instances->settings;
}

int64_t instances_per_epoch(struct instances *instances)
{
	return instances->functions->per_epoch(instances);
}

enum status instances_epoch_count(struct instances *instances, int64_t first, int64_t *out)
{
	if (instances->functions->epoch_count != NULL)
		return instances->functions->epoch_count(instances, first, out);
	*out = instances_per_epoch(instances);
	return OK;
}

enum status instances_locate(struct instances *instances, int64_t sample, int64_t *out_epoch, int64_t *out_first)
{
	return instances->functions->locate(instances, sample, out_epoch, out_first);
}

enum status instances_hint(struct instances *instances, int64_t epoch, int64_t first_sample)
{
	return instances->functions->hint(instances, epoch, first_sample);
}

enum status instances_pick(struct instances *instances, int64_t sample, struct pick *out, int64_t *epoch, int64_t *first)
{
	int64_t found_epoch = 0, found_first = 0;
	TRY(instances->functions->pick(instances, sample, out, &found_epoch, &found_first));
	if (epoch != NULL)
		*epoch = found_epoch;
	if (first != NULL)
		*first = found_first;
	return OK;
}

enum status instances_make(struct instances *instances, const struct pick *pick, struct instance *out)
{
	return instances->functions->make(instances, pick, out);
}

enum status instances_get(struct instances *instances, int64_t sample, struct instance *out)
{
	struct pick pick;
	TRY(instances_pick(instances, sample, &pick, NULL, NULL));
	return instances_make(instances, &pick, out);
}
