/* config.json: the sizes of a model and the task of its head, as Hugging Face's transformers reads and writes them.
 * model_config_from_json (model/model.h) reads only the sizes. */
#ifndef WEIGHTS_CONFIG_FILE_H
#define WEIGHTS_CONFIG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "model/model.h"

struct sentence_folder; /* weights/sentence_folder.h */

/* What config.json says about the task, besides the encoder's sizes. */
struct task_config {
	/* The transformers class for the folder, such as "BertForTokenClassification": the first entry of "architectures", which
	 * for another form begins with its name instead of "Bert". NULL if the file has none. */
	char *architecture;
	/* "regression", "single_label_classification", or "multi_label_classification"; NULL if the file has none. */
	char *problem_type;
	/* [label_count] The names of the classes by number, from "id2label" or "label2id". NULL if the file has neither. */
	char **labels;
	int32_t label_count; /* without names: "num_labels", or 2 if that is absent or 0 */
	/* Dropout on the head's input; negative (null in the file): the same as in the encoder's hidden layers. */
	double classifier_dropout;
	/* The score of a single output is the output itself, not its sigmoid: the activation of sentence-transformers'
	 * cross-encoders is Identity. */
	bool scores_are_outputs;
	/* The text of bertc_task.json, a file beside config.json (tasks/record.h); NULL: none. */
	char *record;
	/* What goes into the files of sentence-transformers; borrowed. NULL: write none. */
	const struct sentence_folder *sentence;
};

/* Reads these members from the object in a config.json; `name` is for messages. Returns ERR_DATA if the class numbers do not run
 * from 0 without gaps, the problem type is unknown, or a value has the wrong type. The caller releases *out with
 * task_config_release, except after a failure. */
MUST_USE enum status task_config_from_json(struct task_config *out, const struct json *object, const char *name);
/* Reads the member "activation_fn" (or an older name of it, `member`) of sentence-transformers, which says what becomes of a
 * single output. ERR_DATA: neither Identity nor Sigmoid. What is not PyTorch's is ignored with a warning, as
 * sentence-transformers does. */
MUST_USE enum status task_config_read_activation(struct task_config *task, const struct json *object, const char *name,
						 const char *member);
/* Warns of members that neither this nor model_config_from_json() reads, unless they are known to change no answer. */
void config_file_warn_unknown(const struct json *object, const char *name);
/* Makes a task_config from these values. Strings and labels, all of which may be NULL, are copied. `classifier_dropout` is left
 * to that of the hidden layers. */
MUST_USE enum status task_config_make(struct task_config *out, const char *architecture, const char *problem_type,
				      const char *const *labels, int32_t label_count);
/* Names the classes as transformers does if they have no names: LABEL_0, LABEL_1, ... */
MUST_USE enum status task_config_name_labels(struct task_config *task);
/* Gives it another of transformers' classes, of any form. */
MUST_USE enum status task_config_take_class(struct task_config *task, const char *name);
/* Gives its head another number of outputs: classes then have no names. */
void task_config_resize(struct task_config *task, int32_t outputs);
void task_config_release(struct task_config *task);
/* The number of outputs of the task's head: the labels, except for multiple choice, where transformers' class has one output for
 * each choice and ignores the number of labels. */
int32_t task_config_outputs(const struct task_config *task);
/* The number of the label with this name; -1: there is none. */
int32_t task_config_find_label(const struct task_config *task, const char *label);
/* Whether the task's classes are exactly these, in any order. If so, rows[i] is the number of labels[i] in `task`, as needed by
 * struct weight_adaptation, and the head can be trained further. Unnamed classes never match. */
bool task_config_rows(const struct task_config *task, const char *const *labels, int32_t count, int32_t *rows);

/* Writes the object for a config.json. `task` NULL: a model from pre-training (BertForPreTraining). Classes without names are
 * called LABEL_0, LABEL_1, ..., as in transformers. */
void config_file_put(struct json_writer *writer, const struct model_config *config, const struct task_config *task);

#endif
