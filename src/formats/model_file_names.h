/* Names of the files that describe a model, beside its weights. */
#ifndef FORMATS_MODEL_FILE_NAMES_H
#define FORMATS_MODEL_FILE_NAMES_H

#include <stdbool.h>

/* What bertc keeps about the task of a fine-tuned model, and peft about an adapter. */
#define TASK_RECORD_FILE "bertc_task.json"
#define ADAPTER_CONFIG_FILE "adapter_config.json"

/* All of them; a folder has only some. The last pointer is NULL. */
extern const char *const model_file_names[];

/* Whether `name` (without a folder) is one of them. */
bool model_file_name_is(const char *name);

#endif
