/* A model run over all texts in memory, slice by slice: their vectors, or the scores of pairs. For uses that need all of them at
 * once, such as a search. */
#ifndef INFER_TEXT_PASS_H
#define INFER_TEXT_PASS_H

#include "formats/npy_file.h"
#include "infer/sparse_vectors.h"
#include "infer/text_model.h"
#include "infer/vector_search.h"

struct text_pass {
	struct text_model *model; /* borrowed */
	const char *title;        /* of the progress bar; NULL: none is shown, as where the caller shows one */
	const char *prompt;       /* of vectors; NULL or "": none */
};

/* Vectors and the file or memory that holds them. Zero-initialize; release even after a failure. */
struct text_vectors {
	struct vectors vectors;
	struct sparse_vectors sparse; /* instead, of a model that weighs words */
	/* Private from here. */
	struct npy_file file;
	float *values;
};

/* The vectors of a file, one for each of `rows` texts, which `what` names ("queries"); of some of them if `places` is not NULL.
 * Another number of vectors is ERR_DATA. */
MUST_USE enum status text_vectors_map(struct text_vectors *out, const char *path, int64_t rows, const char *what,
				      const int32_t *places, int64_t count);
/* The vectors of texts, as the model's folder pools, normalizes, and truncates them. Texts that are too long are cut. An error
 * names the text by its number, counted from 1. STOPPED if a stop was requested. */
MUST_USE enum status text_vectors_make(struct text_vectors *out, const struct text_pass *pass, const char *const *texts,
				       int64_t count);
void text_vectors_release(struct text_vectors *vectors);
/* The scores that a reranker gives to pairs of texts, as `predict` prints them. */
MUST_USE enum status text_pass_scores(const struct text_pass *pass, const struct text_input *pairs, int64_t count, double *out);
/* ERR_USAGE unless the model in `folder` gives one number for a pair of texts. */
MUST_USE enum status text_pass_check_reranker(const struct text_model *model, const char *folder);

#endif
