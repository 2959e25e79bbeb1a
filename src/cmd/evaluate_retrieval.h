/* bertc evaluate --retrieval: searches a corpus for queries, and compares what is found with judgments. */
#ifndef CMD_EVALUATE_RETRIEVAL_H
#define CMD_EVALUATE_RETRIEVAL_H

#include "base/measures.h"
#include "infer/device_options.h"
#include "infer/text_search.h"

struct retrieval_settings {
	const char *retrieval, *qrels, *reranker, *run_out;
	struct search_options search;
	struct code_options codes;
	int64_t rerank_top;
};
extern const struct option retrieval_rows[];

/* Adds the measures. `max_seq_length` 0: as the model's folder says. */
MUST_USE enum status retrieval_evaluate(const struct retrieval_settings *settings, const char *model, int64_t max_seq_length,
					int64_t micro_batch_tokens, const struct device_options *device, struct measures *out);

#endif
