/* The files of a sentence-transformers folder besides its BERT: modules.json and those that it refers to. The old format, the new
 * one (of sentence-transformers 5 and later), and mixtures can be read; the old one, which every version can read, is written. */
#ifndef WEIGHTS_SENTENCE_FOLDER_H
#define WEIGHTS_SENTENCE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "model/pooling.h"
#include "weights/folder_file.h"

struct sentence_prompt {
	char *name, *text; /* `text` is prepended verbatim to what is embedded */
};

struct sentence_folder {
	bool found;                   /* there is a modules.json; if not, everything else is empty */
	char modules[PATH_BYTES];     /* the path of modules.json */
	char transformer[PATH_BYTES]; /* the folder with the BERT: the folder itself, or one in it ("0_Transformer") */
	unsigned pooling;       /* a set of enum pooling_mode, or POOLING_SPLADE (a SparseEncoder); 0: none (a cross-encoder) */
	bool leaves_out_prompt; /* a prompt's rows are not pooled ("include_prompt": false) */
	bool normalize;
	bool lowercase;         /* lowercase text before tokenizing, whatever the tokenizer does ("do_lower_case") */
	int32_t max_seq_length; /* 0: absent; then the tokenizer's model_max_length applies */
	int32_t truncate_dim;   /* dimensions that vectors are cut to after normalization; 0: not cut */
	struct sentence_prompt *prompts;
	int32_t prompt_count;
	int32_t default_prompt; /* -1: none */
	char similarity[32];    /* "cosine", "dot", ...; "": absent */
};

/* Reads these files from `model`, a model folder or a run; for anything else (a file of weights), found is false. Modules that
 * bertc does not support (Dense, CNN, WordWeights, ...) give ERR_USAGE, naming the module, as do members whose value it cannot
 * obey; unknown members are named in a warning, and broken files give ERR_DATA. The caller releases *out, even after a failure.
 */
MUST_USE enum status sentence_folder_read(struct sentence_folder *out, const char *model);
void sentence_folder_release(struct sentence_folder *folder);
/* The index of the prompt with this name; -1: there is none. */
int32_t sentence_folder_prompt(const struct sentence_folder *folder, const char *name);

/* The text of the prompt for queries or for documents, under the names that sentence-transformers looks for ("query"; "document",
 * "passage", or "corpus"). NULL: there is none, or it is empty. */
const char *sentence_folder_query_prompt(const struct sentence_folder *folder);
const char *sentence_folder_document_prompt(const struct sentence_folder *folder);
/* Sets the prompts for queries and documents: changes existing ones, or adds "query" and "document". NULL: no change. */
MUST_USE enum status sentence_folder_set_prompts(struct sentence_folder *folder, const char *query, const char *document);

/* Writes modules.json, 1_Pooling/config.json (1_SpladePooling; neither if nothing is pooled), sentence_bert_config.json, and
 * config_sentence_transformers.json into `folder`, beside the model's own files (weights/model_folder.h), and appends them to
 * `files`. `hidden` is the width of the model. `about->transformer` is not used: the BERT is in the folder itself. */
MUST_USE enum status sentence_folder_write(const char *folder, const struct sentence_folder *about, int32_t hidden,
					   struct folder_files *files);

#endif
