/* bertc_task.json: what a fine-tuned model's folder says about its task in addition to config.json, so that files to predict are
 * read like those of training. Written into every checkpoint and finished model (weights/model_folder.h). */
#ifndef TASKS_RECORD_H
#define TASKS_RECORD_H

#include "base/buffer.h"
#include "base/json.h"
#include "tasks/task.h"

/* Writes what training knows about its task: settings, the columns in settings.trained, and the form of tags. */
MUST_USE enum status task_record_write(const struct task_state *state, struct buffer *out);

/* Finds the task that a record names; `name` is the file's, for messages. Fails like task_find(). */
MUST_USE enum status task_record_find(const struct json *record, const char *name, const struct task **task,
				      const struct layout **layout);
/* Reads everything else in a record. Strings are borrowed from `record`. What the record leaves out stays as it is in
 * state->settings. Values of the wrong type are ERR_DATA. */
MUST_USE enum status task_record_read(const struct json *record, const char *name, struct task_state *state);

#endif
