/* Sources of examples: dispatch to the functions of a source. */
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

enum status instances_plan(struct instances *instances, int64_t sample, struct example_plan *out, int64_t *epoch, int64_t *first)
{
	int64_t found_epoch = 0, found_first = 0;
	TRY(instances->functions->plan(instances, sample, out, &found_epoch, &found_first));
	if (epoch)
		*epoch = found_epoch;
	if (first)
		*first = found_first;
	return OK;
}

enum status instances_make(struct instances *instances, const struct example_plan *plan, struct example *out)
{
	return instances->functions->make(instances, plan, out);
}

void epoch_start_locate(struct epoch_start *known, int64_t per_epoch, int64_t sample, int64_t *out_epoch, int64_t *out_first)
{
	BUG_IF(sample < 0);
	if (sample < known->first)
		*known = (struct epoch_start){0};
	int64_t passed = (sample - known->first) / per_epoch;
	*out_epoch = known->epoch + passed;
	*out_first = known->first + passed * per_epoch;
}

enum status epoch_start_set(struct epoch_start *known, int64_t epoch, int64_t first)
{
	if (epoch < 0 || epoch > UINT32_MAX || first < 0)
		return error_hinted(
			error_set(ERR_STATE, "epoch %lld cannot begin with sample %lld", (long long)epoch, (long long)first),
			"the checkpoint is damaged, or comes from a run on other data");
	*known = (struct epoch_start){.epoch = epoch, .first = first};
	return OK;
}

enum status instances_mean_length(struct instances *instances, int64_t limit, double *out)
{
	int64_t count = instances_per_epoch(instances), tokens = 0;
	struct example_plan plan;
	count = count < limit ? count : limit;
	for (int64_t i = 0; i < count; i++) {
		TRY(instances_plan(instances, i, &plan, NULL, NULL));
		tokens += plan.tokens;
	}
	*out = count > 0 ? (double)tokens / (double)count : 0.0;
	return OK;
}
