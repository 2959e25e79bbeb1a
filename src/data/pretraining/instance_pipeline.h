/* Writes instances to files: they are made and encoded on all cores and written in order. */
#ifndef DATA_PRETRAINING_INSTANCE_PIPELINE_H
#define DATA_PRETRAINING_INSTANCE_PIPELINE_H

#include "base/pool.h"
#include "data/pretraining/instance_files.h"

/* Makes instance `index`; called by any thread, in any order. */
typedef enum status instance_maker(void *context, int64_t index, struct instance *out);

struct instance_totals {
	int64_t instances, tokens, predictions, labeled, random; /* random: with label 1 */
};

/* Several files, which receive instances in turn, as in Google's script. */
struct instance_pipeline;
MUST_USE enum status instance_pipeline_open(struct instance_pipeline **out, struct pool *pool, const char *const *paths,
					    int64_t path_count, const struct instance_writer_settings *settings);
/* Appends the instances 0 to count - 1 that `make` makes. */
MUST_USE enum status instance_pipeline_run(struct instance_pipeline *pipeline, instance_maker *make, void *context,
					   int64_t count);
const struct instance_totals *instance_pipeline_totals(const struct instance_pipeline *pipeline);
/* Frees the pipeline even on failure. */
MUST_USE enum status instance_pipeline_commit(struct instance_pipeline *pipeline);
void instance_pipeline_abandon(struct instance_pipeline *pipeline); /* NULL is fine */

#endif
