/* Model folders in Hugging Face's format: config.json, model.safetensors, and the tokenizer's files. Each of our checkpoints is
 * one, with our own files added. */
#ifndef WEIGHTS_MODEL_FOLDER_H
#define WEIGHTS_MODEL_FOLDER_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "formats/model_file_names.h"
#include "model/model.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "weights/config_file.h"
#include "weights/folder_file.h"
#include "weights/model_weights.h"
#include "weights/weight_names.h"

/* Reads the configuration that `model` means: the path of a config.json or bert_config.json, or anything that model_source_find
 * accepts and that has a configuration beside it. "gelu" in a bert_config.json is the tanh form, as in Google's code, unless the
 * weights beside it are not TensorFlow's: then it is the erf form, as in Hugging Face's and NVIDIA's code. If the file has no
 * vocab_size, it is 0. */
MUST_USE enum status model_folder_config(const char *model, struct model_config *out);
/* The same, but `model` may also be the name of a size ("base"), which takes precedence over a folder of that name and has a
 * vocab_size of 0. */
MUST_USE enum status model_size_or_folder_config(const char *model, struct model_config *out);
/* The same, in another form and with other sizes as the options say: for models that are not trained. */
MUST_USE enum status model_shaped_config(const char *model, const struct model_sizes *sizes, struct model_config *out);
/* Reads from the same file what task the model was trained for. The caller releases *out. */
MUST_USE enum status model_folder_task(const char *model, struct task_config *out);

/* The files of a model that a user gives as a folder, a file of weights, the prefix of a TensorFlow checkpoint, or the folder of
 * a run, which stands for its finished model or its newest checkpoint. Files that do not exist are "". */
struct model_source {
	char weights[PATH_BYTES]; /* for model_weights_load */
	char base[PATH_BYTES];    /* if these are an adapter's (weights/adapter.h): the weights that it is merged into */
	char config[PATH_BYTES];  /* config.json or bert_config.json beside the weights */
	char vocab[PATH_BYTES];   /* vocab.txt or tokenizer.json beside them */
};
/* Configuration and vocabulary of an adapter are its base's if there are none beside it. Returns ERR_USAGE if there are no
 * weights. */
MUST_USE enum status model_source_find(const char *path, struct model_source *out);
/* The vocabulary in a model folder, or in that of a run: vocab.txt or tokenizer.json. Returns ERR_USAGE if there is none. */
MUST_USE enum status model_folder_vocab(const char *folder, char out[PATH_BYTES]);
/* The path of an optional file beside the weights, verified against the manifest. *out_found = false: it does not exist. */
MUST_USE enum status model_source_beside(const struct model_source *source, const char *name, char out[PATH_BYTES],
					 bool *out_found);

/* The smallest maximum length that a folder may set, including [CLS] and [SEP]; less leaves no room for a text. */
#define SHORTEST_LENGTH 8

/* A vocabulary and the tokenizer's settings. Released by folder_tokenizer_release. */
struct folder_tokenizer {
	struct vocab vocab;
	struct tokenizer_settings settings;
	int64_t max_length; /* "model_max_length" of tokenizer_config.json; 0: absent or unlimited */
};
/* Reads the tokenizer beside the weights. The vocabulary comes from vocab.txt, otherwise from tokenizer.json (folders of
 * transformers 5 have no other); the settings come from tokenizer_config.json, otherwise from tokenizer.json, otherwise from
 * whether the vocabulary looks cased. Warns if vocab.txt and tokenizer.json have different entries. Returns ERR_USAGE if there is
 * no vocabulary. */
MUST_USE enum status folder_tokenizer_read(struct folder_tokenizer *out, const struct model_source *source);
/* Checks that the vocabulary fits a model of *rows rows; if *rows is 0 (unknown), it becomes the vocabulary's size. More entries
 * than rows give ERR_STATE, naming `path`. Warns if there are far fewer, since a truncated vocabulary reads without errors. */
MUST_USE enum status folder_tokenizer_fit(const struct folder_tokenizer *tokenizer, const char *path, int32_t *rows);
/* Warns if a vocabulary has so few entries that the model's other rows cannot be padding. */
void vocab_warn_of_rows(const char *path, int32_t entries, int32_t rows);
void folder_tokenizer_release(struct folder_tokenizer *tokenizer);

/* Loads weights that fit the model without adaptation; see model_weights.h. */
MUST_USE enum status model_folder_load(const char *path, const struct model *model, enum missing_weights missing, float *slab,
				       struct model_folder_report *report);

/* The model that an adapter belongs to. */
struct adapter_base {
	char path[PATH_BYTES]; /* its folder */
	uint64_t hash;         /* adapter_base_hash() */
};

/* The contents of a model folder; all borrowed. */
struct model_folder_content {
	const struct model *model;
	const float *slab;              /* [model->slab_count] master weights, in host memory */
	const struct task_config *task; /* NULL: a model from pre-training */
	const struct vocab *vocab;
	const struct tokenizer_settings *tokenizer;
	int64_t max_length;              /* maximum sequence length for the tokenizer ("model_max_length") */
	bool training;                   /* include weights that only training needs, as in a checkpoint */
	const struct adapter_base *base; /* of a model with low-rank matrices, which is saved as an adapter (weights/adapter.h) */
};

/* Writes everything but the weights into the existing `folder` and appends it to `files`: config.json, the task's record and the
 * files of sentence-transformers if there are any, and the tokenizer's files. Each file is written atomically. */
MUST_USE enum status model_folder_save_description(const char *folder, const struct model_folder_content *content,
						   struct folder_files *files);
/* The name of a parameter in such a folder: that of transformers' class, which for an encoder without heads (BertModel) omits the
 * prefix "bert.". */
void model_folder_tensor_name(const struct model *model, const struct parameter *parameter, const struct task_config *task,
			      char out[TENSOR_NAME_BYTES]);
/* What a file of weights says of a parameter, whose values are in `slab`, under `name`; both are borrowed. */
struct safetensors_entry model_folder_entry(const struct parameter *parameter, const float *slab, const char *name);
/* Writes the same files and the weights, model.safetensors (F32). Publishing the folder as a whole is up to the
 * caller. */
MUST_USE enum status model_folder_save(const char *folder, const struct model_folder_content *content,
				       struct folder_files *files);

#endif
