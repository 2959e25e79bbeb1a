/* How well a search found what judgments (qrels) say belongs to each query: the measures of trec_eval, as pytrec_eval computes
 * them. */
#ifndef TASKS_RETRIEVAL_MEASURES_H
#define TASKS_RETRIEVAL_MEASURES_H

#include "base/measures.h"
#include "tasks/retrieval_files.h"

/* A text that was found for a query. */
struct retrieved {
	float score;
	int64_t document; /* number in the corpus */
};

/* Puts what was found in trec_eval's order: by descending score; of equal scores, the document with the larger id first. */
void retrieval_sort(struct retrieved *found, int64_t count, const struct text_list *documents);

/* Where the measures are taken: among the first 1, 3, 5, 10 and 100. */
enum { RETRIEVAL_CUTS = 5, RETRIEVAL_DEEPEST = 100 };
/* Sums over queries. Zero-initialize. */
struct retrieval_sums {
	int64_t queries;
	double ndcg[RETRIEVAL_CUTS], map[RETRIEVAL_CUTS], recall[RETRIEVAL_CUTS], mrr[RETRIEVAL_CUTS];
};
/* Adds a query with these judgments ([judged], sorted by document), for which `found` was found, in order. */
MUST_USE enum status retrieval_add_query(struct retrieval_sums *sums, const struct judgment *judgments, int64_t judged,
					 const struct retrieved *found, int64_t count);
/* Adds the means over all queries as measures: ndcg@1, ..., map@1, ..., recall@1, ..., mrr@1, ... */
void retrieval_add_measures(const struct retrieval_sums *sums, struct measures *out);

#endif
