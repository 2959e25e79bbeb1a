/* Loads the weights of a file, whatever program wrote it (formats/weights_file.h), into a model: maps names, checks shapes,
 * carries rows over to another vocabulary, and reports what became of each tensor. */
#ifndef WEIGHTS_MODEL_WEIGHTS_H
#define WEIGHTS_MODEL_WEIGHTS_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "formats/weights_file.h"
#include "model/model.h"
#include "text/vocab.h"

/* Which of the model's weights the file may lack. */
enum missing_weights {
	MISSING_NOTHING,
	MISSING_NEXT_SENTENCE, /* the pooler and the next-sentence layer, which Hugging Face's BertForMaskedLM lacks */
	MISSING_HEADS,         /* the pooler and all heads: an encoder from elsewhere gets new heads */
};

/* What to do if the model and the file have different numbers of positions. */
enum position_policy {
	POSITIONS_SAME, /* an error */
	POSITIONS_TILE, /* repeat the file's rows */
	POSITIONS_DRAW, /* rows beyond the file's keep what the slab holds */
};

/* Initial rows for tokens that the file's vocabulary lacks. */
enum token_policy {
	TOKENS_DRAW, /* keep what the slab holds; output bias: the mean of those carried over */
	TOKENS_MEAN, /* the mean of the rows of the pieces into which the file's vocabulary splits the token, likewise for the
			output bias; as TOKENS_DRAW if it cannot */
};

/* How to adapt the file's weights to the model. */
struct weight_adaptation {
	enum missing_weights missing;
	enum position_policy positions;
	/* The vocabularies of the file and of the model; both NULL: row i stays row i. Rows of tokens in both are carried over;
	 * for others, see `tokens`. */
	const struct vocab *source_vocab, *vocab;
	enum token_policy tokens;
	/* Prefixes of the names of parameters, ending with NULL, that keep what the slab holds even if the file has them, such as
	 * a head with the same name but for another task. The file may lack them. NULL: none. */
	const char *const *fresh;
	/* [class_count] For each class of the model's "classifier", the file's row for that class, if the classes are the same
	 * but in a different order. NULL: row i is class i. */
	const int32_t *class_rows;
	int32_t class_count;
};

/* What became of each tensor. Zero-initialize; released by model_folder_report_release. */
struct model_folder_report {
	int64_t loaded;             /* number of the model's parameters found */
	struct name_list missing;   /* the model's parameters not found; `slab` keeps what it held */
	struct name_list unused;    /* tensors with no place in the model, or left out as `fresh` */
	struct name_list optimizer; /* optimizer state, left out */
	struct name_list others;    /* counters and constants, left out */
	struct name_list names;     /* "ours = theirs" of all that were loaded */
	char path[PATH_BYTES];      /* of the file */
	enum weights_format format;
	enum safetensors_dtype dtype; /* of the word embeddings */
	int64_t padding_rows;         /* rows beyond the vocabulary, left out */
	/* With another vocabulary: rows taken from the same token, composed of pieces, or drawn. */
	int64_t carried_tokens, composed_tokens, drawn_tokens;
	int64_t positions_source; /* number in the file, if it differs from the model's; otherwise 0 */
};
void model_folder_report_release(struct model_folder_report *report);

/* Loads the weights that `path` means (weights_file_find) into `slab` (model->slab_count floats). If `slab` is NULL, packs them
 * into the memory allocated by model_allocate_copies(), and what the file lacks becomes zeros. Returns ERR_STATE, naming the
 * tensor, for a missing weight that is not allowed to be missing, an encoder weight with no place in the model, a wrong shape
 * (naming both shapes), and one weight stored under two names with different values; and ERR_DATA for damaged files, including
 * those that differ from their folder's manifest, and for non-finite values. A pooler and heads with no place in the model are
 * left out, as are rows that pad a vocabulary to a multiple of 8. `report` may be NULL. */
MUST_USE enum status model_weights_load(const char *path, const struct model *model, const struct weight_adaptation *adaptation,
					float *slab, struct model_folder_report *report);

#endif
