/* What a sentence-transformers folder says besides its BERT: modules.json and the files that it names. Read in the old and in the
 * new form (of sentence-transformers 5 and later), or a mixture; written in the old one, which every reader knows. */
#ifndef WEIGHTS_SENTENCE_FOLDER_H
#define WEIGHTS_SENTENCE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "model/pooling.h"
#include "weights/folder_file.h"

struct sentence_prompt {
	char *name, *text; /* the text is put before what is embedded, as it stands */
};

struct sentence_folder {
	bool found;                   /* there is a modules.json; without one everything else is empty */
	char transformer[PATH_BYTES]; /* the folder with the BERT: the folder itself, or one in it ("0_Transformer") */
	unsigned pooling;             /* a set of enum pooling_mode; 0: no pooling (a cross-encoder) */
	bool leaves_out_prompt;       /* a prompt's rows are not pooled ("include_prompt": false) */
	bool normalize;
	bool lowercase;         /* text is lower-cased before the tokenizer, whatever that does ("do_lower_case") */
	int32_t max_seq_length; /* 0: not said; then model_max_length of the tokenizer holds */
	int32_t truncate_dim;   /* vectors are cut to so many numbers after they are normalised; 0: they are not */
	struct sentence_prompt *prompts;
	int32_t prompt_count;
	int32_t default_prompt; /* -1: none */
	char similarity[32];    /* "cosine", "dot", ...; "": not said */
};

/* Reads what `model` holds, a folder of its own or the run that it comes from; anything else (a file of weights) has found ==
 * false. Modules that bertc does not
 * compute (Dense, CNN, WordWeights, ...) are ERR_USAGE that names them, broken files ERR_DATA. The caller releases *out, also
 * after a failure. */
MUST_USE enum status sentence_folder_read(struct sentence_folder *out, const char *model);
void sentence_folder_release(struct sentence_folder *folder);
/* Number of the prompt of that name; -1: there is none. */
int32_t sentence_folder_prompt(const struct sentence_folder *folder, const char *name);

/* The text of the prompt for queries, or for documents (called "document", "passage" or "corpus"), by the names that
 * sentence-transformers looks for; NULL: there is none, or it is empty. */
const char *sentence_folder_query_prompt(const struct sentence_folder *folder);
const char *sentence_folder_document_prompt(const struct sentence_folder *folder);
/* Adds prompts for queries ("query") and documents ("document"), or changes those that there are. NULL: it stays as it is. */
MUST_USE enum status sentence_folder_set_prompts(struct sentence_folder *folder, const char *query, const char *document);

/* Writes modules.json, 1_Pooling/config.json, sentence_bert_config.json and config_sentence_transformers.json into `folder`,
 * beside the model's own files (weights/model_folder.h), and appends those in the folder itself to `files`. `hidden` is the width
 * of the model; `about->transformer` is not read: the BERT lies in the folder. */
MUST_USE enum status sentence_folder_write(const char *folder, const struct sentence_folder *about, int32_t hidden,
					   struct folder_files *files);

#endif
