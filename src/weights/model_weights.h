/* Weights of a file, whatever program wrote it (formats/weights_file.h), into a model: names understood, shapes verified,
 * rows carried over to another vocabulary, and a report of what became of every tensor. */
#ifndef WEIGHTS_MODEL_WEIGHTS_H
#define WEIGHTS_MODEL_WEIGHTS_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "formats/weights_file.h"
#include "model/model.h"
#include "text/vocab.h"

/* What may be left as it was because the file does not have it. */
enum missing_weights {
	MISSING_NOTHING,
	MISSING_NEXT_SENTENCE, /* the pooler and the next-sentence layer: Hugging Face's BertForMaskedLM has none */
	MISSING_HEADS,         /* the pooler and what follows it: an encoder from elsewhere gets fresh heads */
};

/* What to do where the model has another number of positions than the file. */
enum position_policy {
	POSITIONS_SAME, /* an error */
	POSITIONS_TILE, /* rows of the file again and again */
	POSITIONS_DRAW, /* rows beyond the file's keep what the slab holds */
};

/* With what rows tokens begin that the file's vocabulary lacks. */
enum token_policy {
	TOKENS_DRAW, /* what the slab holds; output bias: the mean of those carried over */
	TOKENS_MEAN, /* the mean of the rows of the pieces into which the file's vocabulary cuts them, and so their output bias;
			drawn where it cannot */
};

/* How the file's weights are fitted to the model. */
struct weight_adaptation {
	enum missing_weights missing;
	enum position_policy positions;
	/* Vocabularies of the file and of the model, or both NULL: then row i is row i. Rows of tokens that both have are
	 * carried over, others are what `tokens` says. */
	const struct vocab *source_vocab, *vocab;
	enum token_policy tokens;
	/* Beginnings of the names of parameters, ended by NULL, that keep what the slab holds whatever the file has: a head of
	 * the same name but of another task. They may be missing. NULL: none. */
	const char *const *fresh;
	/* [class_count] For each class of the model's "classifier" the row of the file's that is the same class, where the
	 * classes are the same but numbered otherwise. NULL: row i is class i. */
	const int32_t *class_rows;
	int32_t class_count;
};

/* What became of each tensor. Zero-initialise; released by model_folder_report_release. */
struct model_folder_report {
	int64_t loaded;             /* parameters of the model found */
	struct name_list missing;   /* parameters of the model not found: `slab` keeps what it held */
	struct name_list unused;    /* tensors that the model has no place for (heads of other tasks) */
	struct name_list optimizer; /* state of an optimiser, left out */
	struct name_list others;    /* counters and constants, left out */
	struct name_list names;     /* "ours = theirs" of all that were loaded */
	char path[PATH_BYTES];      /* of the file */
	enum weights_format format;
	enum safetensors_dtype dtype; /* of the word embeddings */
	int64_t padding_rows;         /* rows beyond the vocabulary, left out */
	/* With another vocabulary: from the same token, from the pieces of a new one, drawn. */
	int64_t carried_tokens, composed_tokens, drawn_tokens;
	int64_t positions_source; /* of the file, where the model has another number; else 0 */
};
void model_folder_report_release(struct model_folder_report *report);

/* Reads the weights that `path` means (weights_file_find) into `slab` (model->slab_count floats), or, where that is NULL, packed
 * into the memory that model_allocate_copies() has made: then what the file lacks becomes zeros. A missing weight that
 * is not allowed, an encoder weight that the model has no place for, a wrong shape, and one weight under two names with
 * different values are ERR_STATE that names the tensor and both shapes; damaged files, also by the manifest of their folder,
 * and values that are not finite are ERR_DATA. A pooler and heads that the model has no place for are left out. Rows that pad a
 * vocabulary to a multiple of 8 are left out. `report` may be NULL. */
MUST_USE enum status model_weights_load(const char *path, const struct model *model, const struct weight_adaptation *adaptation,
					float *slab, struct model_folder_report *report);

#endif
