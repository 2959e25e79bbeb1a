/* The nearest texts of a corpus for each of many queries, by their vectors: what `bertc mine` and `bertc evaluate --retrieval`
 * have in common. Vectors come from files or from a model; a second model may score what is found. */
#ifndef INFER_TEXT_SEARCH_H
#define INFER_TEXT_SEARCH_H

#include "infer/code_search.h"
#include "infer/text_pass.h"

/* Options that commands splice. */
struct search_options {
	const char *query_vectors, *corpus_vectors, *query_prompt, *document_prompt;
	enum similarity similarity;
};
extern const struct option search_rows[];

/* Zero-initialize, and set the first two; close even after a failure. */
struct text_search {
	const struct search_options *options;   /* borrowed */
	struct text_model_settings of_models;   /* of both models */
	const struct code_options *codes;       /* borrowed; a file of the corpus may hold bytes or bits; NULL: it may not */
	bool takes_weights;                     /* the model may weigh words: infer/sparse_vectors.h */
	struct pool *pool;                      /* after text_search_open() */
	struct text_model model, reranker;      /* as far as opened */
	struct text_vectors queries, documents; /* after text_search_vectors() */
	/* Private from here. */
	struct backend *be;
	enum vector_code code; /* of the corpus */
};

/* Texts that are queries, or the corpus. */
struct searched_texts {
	const char *what;         /* names them in messages: "queries" */
	const char *const *texts; /* [count]; not looked at if a file has the vectors */
	int64_t count;
	int64_t rows;          /* vectors that a file of them must have */
	const int32_t *places; /* [count] row of each text's vector in such a file; NULL: all in order */
};

/* ERR_USAGE if neither a model nor files provide vectors. `model` may be NULL. */
MUST_USE enum status text_search_check(const struct search_options *options, const char *model);
/* Opens the model, which must make vectors; NULL: both files are given. */
MUST_USE enum status text_search_open(struct text_search *search, const char *model);
/* The vectors of both, which must have the same width. STOPPED if a stop was requested. */
MUST_USE enum status text_search_vectors(struct text_search *search, const struct searched_texts *queries,
					 const struct searched_texts *documents);
/* For each query the `most` nearest documents, out [queries, most]; on the CPU, exactly (infer/vector_search.h). */
MUST_USE enum status text_search_nearest(struct text_search *search, int64_t most, struct nearest_row *out);
/* Opens the model in `folder`, which must give one number for a pair of texts. */
MUST_USE enum status text_search_open_reranker(struct text_search *search, const char *folder);
void text_search_close(struct text_search *search);

#endif
