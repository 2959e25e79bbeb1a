/* config.json: the sizes of a model, and the task that its head was trained for, as Hugging Face's transformers writes and
 * reads them. The sizes alone are read by model_config_from_json (model/model.h). */
#ifndef WEIGHTS_CONFIG_FILE_H
#define WEIGHTS_CONFIG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "model/model.h"

struct sentence_folder; /* weights/sentence_folder.h */

/* What config.json says of the head beside the encoder. */
struct task_config {
	/* The class of transformers that the folder is meant for, "BertForTokenClassification": the first of "architectures";
	 * NULL where the file does not say. */
	char *architecture;
	/* "regression", "single_label_classification" or "multi_label_classification"; NULL where the file does not say. */
	char *problem_type;
	/* [label_count] The names of the classes in the order of their numbers ("id2label", or "label2id" turned round); NULL
	 * where the file has neither. */
	char **labels;
	int32_t label_count; /* without names "num_labels", else 2, as in transformers */
	/* On the head's input; below 0 (null in the file): that of the encoder's hidden layers. */
	double classifier_dropout;
	/* The text of bertc_task.json, which lies beside config.json (tasks/record.h); NULL: none. Not read from config.json. */
	char *record;
	/* What sentence-transformers needs to know about the model, in its own files; borrowed; NULL: nothing. */
	const struct sentence_folder *sentence;
};

/* Reads the members above of the object that a config.json holds; `name` is for messages. Class numbers that do not run
 * from 0 without gaps, a problem type of another name and values of a wrong kind are ERR_DATA. The caller releases *out
 * with task_config_release, not needed after a failure. */
MUST_USE enum status task_config_from_json(struct task_config *out, const struct json *object, const char *name);
/* A task_config of its own that says the same; strings and labels (may be NULL) are copied. `classifier_dropout` becomes
 * that of the hidden layers. */
MUST_USE enum status task_config_make(struct task_config *out, const char *architecture, const char *problem_type,
				      const char *const *labels, int32_t label_count);
/* Gives classes without names those of transformers: LABEL_0, LABEL_1, ... */
MUST_USE enum status task_config_name_labels(struct task_config *task);
void task_config_release(struct task_config *task);
/* The number of a label; -1: none of the labels has that name. */
int32_t task_config_find_label(const struct task_config *task, const char *label);
/* Whether the classes are these, in whatever order: then rows[i] is the number that labels[i] has in `task`, as
 * struct weight_adaptation takes it, and the head can be trained further. Classes without names are nobody's. */
bool task_config_rows(const struct task_config *task, const char *const *labels, int32_t count, int32_t *rows);

/* Writes the object that a config.json holds. `task` NULL is a model from pre-training (BertForPreTraining). Classes
 * without names are called LABEL_0, LABEL_1, …, as transformers calls them. */
void config_file_put(struct json_writer *writer, const struct model_config *config, const struct task_config *task);

#endif
