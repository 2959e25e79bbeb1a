/* Sources of examples, by their functions. */
#include "data/source.h"

void instances_close(struct instances *instances)
{
	if (instances)
		instances->functions->close(instances);
}

const struct example_bounds *instances_bounds(const struct instances *instances)
{
	return &instances->bounds;
}

int64_t instances_per_epoch(struct instances *instances)
{
	return instances->functions->per_epoch(instances);
}

enum status instances_epoch_count(struct instances *instances, int64_t first, int64_t *out)
{
	if (instances->functions->epoch_count)
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
	if (epoch)
		*epoch = found_epoch;
	if (first)
		*first = found_first;
	return OK;
}

enum status instances_make(struct instances *instances, const struct pick *pick, struct example *out)
{
	return instances->functions->make(instances, pick, out);
}

enum status instances_mean_length(struct instances *instances, int64_t limit, double *out)
{
	int64_t count = instances_per_epoch(instances), tokens = 0;
	struct pick pick;
	count = count < limit ? count : limit;
	for (int64_t i = 0; i < count; i++) {
		TRY(instances_pick(instances, i, &pick, NULL, NULL));
		tokens += pick.tokens;
	}
	*out = count > 0 ? (double)tokens / (double)count : 0.0;
	return OK;
}
