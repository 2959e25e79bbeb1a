/* Model folders as Hugging Face writes and reads them: config.json, model.safetensors and the tokenizer's files.
 * Every checkpoint of ours is one, with our own files beside it. */
#ifndef WEIGHTS_MODEL_FOLDER_H
#define WEIGHTS_MODEL_FOLDER_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "model/model.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "weights/config_file.h"
#include "weights/folder_file.h"
#include "weights/model_weights.h"

/* The configuration that `model` means: the path of a config.json or bert_config.json, or what model_source_find understands and
 * has one beside it. "gelu" in a bert_config.json is the tanh form, as in Google's code, but the erf form beside weights that are
 * not TensorFlow's, as in Hugging Face's and NVIDIA's. With a file that leaves it out, vocab_size is 0. */
MUST_USE enum status model_folder_config(const char *model, struct model_config *out);
/* The same where a model may also be new: the name of a size ("base"), whose vocab_size is 0, comes before a folder of that name.
 */
MUST_USE enum status model_size_or_folder_config(const char *model, struct model_config *out);
/* What the same file says of the task that the model was trained for. The caller releases *out. */
MUST_USE enum status model_folder_task(const char *model, struct task_config *out);

/* What a person means by a model: a folder, a file of weights, the prefix of a TensorFlow checkpoint, or the folder of a
 * run, which stands for its finished model or newest checkpoint. What is not there is "". */
struct model_source {
	char weights[PATH_BYTES]; /* for weights_file_open */
	char config[PATH_BYTES];  /* config.json or bert_config.json beside the weights */
	char vocab[PATH_BYTES];   /* vocab.txt or tokenizer.json beside them */
};
/* No weights at all is ERR_USAGE. */
MUST_USE enum status model_source_find(const char *path, struct model_source *out);
/* A file that may exist beside the weights, verified by the manifest; *out_found false: it does not exist, and is not missed. */
MUST_USE enum status model_source_beside(const struct model_source *source, const char *name, char out[PATH_BYTES],
					 bool *out_found);

/* Tokens that a folder must let a text have, [CLS] and [SEP] included: less leaves no room for one. */
#define SHORTEST_LENGTH 8

/* A vocabulary and how text is split with it. Released by folder_tokenizer_release. */
struct folder_tokenizer {
	struct vocab vocab;
	struct tokenizer_settings settings;
	int64_t max_length; /* "model_max_length" of tokenizer_config.json; 0: not said, or no bound */
};
/* Reads the tokenizer beside the weights: vocab.txt, else the vocabulary in tokenizer.json (all there is in folders of
 * transformers 5); the settings from tokenizer_config.json, else tokenizer.json, else by whether the vocabulary looks
 * cased. A tokenizer.json with other entries than vocab.txt is said. None of these files is ERR_USAGE. */
MUST_USE enum status folder_tokenizer_read(struct folder_tokenizer *out, const struct model_source *source);
/* Do its words fit a model of *rows rows (0: not said, becomes their number)? More words than rows are ERR_STATE that names
 * `path`; far fewer are warned of: a vocabulary that was cut short reads well. */
MUST_USE enum status folder_tokenizer_fit(const struct folder_tokenizer *tokenizer, const char *path, int32_t *rows);
void folder_tokenizer_release(struct folder_tokenizer *tokenizer);

/* Reads weights that fit the model as they are; see model_weights.h. */
MUST_USE enum status model_folder_load(const char *path, const struct model *model, enum missing_weights missing, float *slab,
				       struct model_folder_report *report);

/* What a model folder is made of; all borrowed. */
struct model_folder_content {
	const struct model *model;
	const float *slab;              /* [model->slab_count] the masters, in host memory */
	const struct task_config *task; /* NULL: a model from pre-training */
	const struct vocab *vocab;
	const struct tokenizer_settings *tokenizer;
	int64_t max_length; /* the longest sequence that the tokenizer should make ("model_max_length") */
	bool training;      /* with the weights of training alone: of a checkpoint */
};
/* What bertc knows of the task of a fine-tuned model besides its configuration. */
#define TASK_RECORD_FILE "bertc_task.json"

/* Writes config.json, the task's record if there is one, and the tokenizer's files into `folder`, which exists, and appends them
 * to `files`: what stands beside weights of any form. Each file appears whole or not at all. */
MUST_USE enum status model_folder_save_description(const char *folder, const struct model_folder_content *content,
						   struct folder_files *files);
/* The name that a parameter has in such a folder. */
const char *model_folder_tensor_name(const struct parameter *parameter, const struct task_config *task);
/* The same with the weights, model.safetensors (F32). Tensors have the names of the model's parameters; with the architecture
 * BertModel without "bert." in front, as transformers writes them. The folder as a whole is the caller's to rename. */
MUST_USE enum status model_folder_save(const char *folder, const struct model_folder_content *content,
				       struct folder_files *files);

#endif
