/* bertc evaluate --retrieval: searches a corpus for queries, and compares what is found with judgments. */
#ifndef CMD_EVALUATE_RETRIEVAL_H
#define CMD_EVALUATE_RETRIEVAL_H

#include "base/measures.h"
#include "infer/device_options.h"

struct retrieval_settings {
	const char *retrieval, *qrels, *query_vectors, *corpus_vectors, *query_prompt, *document_prompt, *reranker, *run_out;
	enum { RETRIEVAL_COSINE, RETRIEVAL_DOT } similarity; /* in the order of enum similarity */
	int64_t rerank_top;
};
extern const struct option retrieval_rows[];

/* Whether there are vectors to search with. `model` NULL: there is none. */
MUST_USE enum status retrieval_check(const struct retrieval_settings *settings, const char *model);
/* Adds the measures. `max_seq_length` 0: as the model's folder says. */
MUST_USE enum status retrieval_evaluate(const struct retrieval_settings *settings, const char *model, int64_t max_seq_length,
					int64_t micro_batch_tokens, const struct device_options *device, struct measures *out);

#endif
