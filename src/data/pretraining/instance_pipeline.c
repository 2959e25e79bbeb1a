/* Rounds of instances: all cores encode a round, and then one thread writes it in order. */
#include "data/pretraining/instance_pipeline.h"
#include <stdlib.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"

/* Instances made per round, and per task. */
#define SLOTS 4096
#define TASK_SLOTS 64

struct slot {
	struct instance instance;
	struct instance_encoder encoder;
};

struct instance_pipeline {
	struct pool *pool;
	struct instance_writer_settings settings;
	struct instance_writer **writers; /* [writer_count] */
	int64_t writer_count, turn;
	struct slot *slots; /* [SLOTS] */
	struct error errors[SLOTS / TASK_SLOTS];
	struct instance_totals totals;
	/* Of the current round: */
	instance_maker *make;
	void *context;
	int64_t first, count;
};

enum status instance_pipeline_open(struct instance_pipeline **out, struct pool *pool, const char *const *paths,
				   int64_t path_count, const struct instance_writer_settings *settings)
{
	enum status status;
	struct instance_pipeline *pipeline = NULL;
	*out = NULL;
	TRY(memory_new(&pipeline, 1, sizeof *pipeline, "writing of instances"));
	pipeline->pool = pool;
	pipeline->settings = *settings;
	TRY_GOTO(memory_new(&pipeline->writers, path_count, sizeof(struct instance_writer *), "files of instances"), fail);
	for (; pipeline->writer_count < path_count; pipeline->writer_count++)
		TRY_GOTO(
			instance_writer_open(&pipeline->writers[pipeline->writer_count], paths[pipeline->writer_count], settings),
			fail);
	TRY_GOTO(memory_new(&pipeline->slots, SLOTS, sizeof *pipeline->slots, "instances"), fail);
	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = &pipeline->slots[i];
		TRY_GOTO(instance_create(&slot->instance, settings->max_seq_length, settings->max_seq_length), fail);
		TRY_GOTO(instance_encoder_create(&slot->encoder, settings), fail);
	}
	*out = pipeline;
	return OK;
fail:
	instance_pipeline_abandon(pipeline);
	return status;
}

static void run_task(void *context, int64_t index, int worker)
{
	(void)worker;
	struct instance_pipeline *pipeline = context;
	int64_t end = (index + 1) * TASK_SLOTS < pipeline->count ? (index + 1) * TASK_SLOTS : pipeline->count;
	pipeline->errors[index].status = OK;
	for (int64_t i = index * TASK_SLOTS; i < end; i++) {
		struct slot *slot = &pipeline->slots[i];
		if (pipeline->make(pipeline->context, pipeline->first + i, &slot->instance) != OK) {
			pipeline->errors[index] = *error_last();
			return;
		}
		instance_encode(&slot->encoder, &pipeline->settings, &slot->instance);
	}
}

static enum status write_slots(struct instance_pipeline *pipeline)
{
	struct instance_totals *totals = &pipeline->totals;
	for (int64_t i = 0; i < pipeline->count; i++) {
		const struct slot *slot = &pipeline->slots[i];
		TRY(instance_writer_add(pipeline->writers[pipeline->turn], &slot->instance, &slot->encoder));
		pipeline->turn = pipeline->turn + 1 < pipeline->writer_count ? pipeline->turn + 1 : 0;
		totals->instances++;
		totals->tokens += slot->instance.length;
		totals->predictions += slot->instance.prediction_count;
		totals->labeled += slot->instance.next_label >= 0;
		totals->random += slot->instance.next_label > 0;
	}
	return OK;
}

static enum status run_rounds(struct instance_pipeline *pipeline, int64_t count, struct progress *progress)
{
	for (int64_t first = 0; first < count; first += SLOTS) {
		pipeline->first = first;
		pipeline->count = count - first < SLOTS ? count - first : SLOTS;
		int64_t tasks = (pipeline->count + TASK_SLOTS - 1) / TASK_SLOTS;
		pool_run(pipeline->pool, tasks, run_task, pipeline);
		for (int64_t i = 0; i < tasks; i++)
			if (pipeline->errors[i].status != OK)
				return error_restore(&pipeline->errors[i]);
		TRY(write_slots(pipeline));
		progress_update(progress, first + pipeline->count, "%lld tokens", (long long)pipeline->totals.tokens);
		if (stop_requested())
			return error_set(STOPPED, "stopped by %s; nothing was written", stop_reason());
	}
	return OK;
}

enum status instance_pipeline_run(struct instance_pipeline *pipeline, instance_maker *make, void *context, int64_t count)
{
	struct progress progress;
	pipeline->make = make;
	pipeline->context = context;
	progress_start(&progress, "writing", 0, count, "instances");
	enum status status = run_rounds(pipeline, count, &progress);
	progress_finish(&progress);
	return status;
}

const struct instance_totals *instance_pipeline_totals(const struct instance_pipeline *pipeline)
{
	return &pipeline->totals;
}

enum status instance_pipeline_commit(struct instance_pipeline *pipeline)
{
	enum status status = OK;
	for (int64_t i = 0; i < pipeline->writer_count && status == OK; i++) {
		struct instance_writer *writer = pipeline->writers[i];
		pipeline->writers[i] = NULL;
		status = instance_writer_commit(writer);
	}
	instance_pipeline_abandon(pipeline);
	return status;
}

void instance_pipeline_abandon(struct instance_pipeline *pipeline)
{
	if (pipeline == NULL)
		return;
	for (int64_t i = 0; i < pipeline->writer_count; i++)
		instance_writer_abandon(pipeline->writers[i]);
	for (int i = 0; i < SLOTS && pipeline->slots != NULL; i++) {
		instance_release(&pipeline->slots[i].instance);
		instance_encoder_release(&pipeline->slots[i].encoder);
	}
	free(pipeline->slots);
	free(pipeline->writers);
	free(pipeline);
}
