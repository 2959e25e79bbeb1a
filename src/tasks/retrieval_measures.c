/* nDCG with gains as graded, MAP, recall, and MRR of rankings, at several depths. */
#include "tasks/retrieval_measures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const int64_t cuts[RETRIEVAL_CUTS] = {1, 3, 5, 10, RETRIEVAL_DEEPEST};

static int compare_found(const void *left, const void *right, void *context)
{
	const struct retrieved *a = left, *b = right;
	const struct text_list *documents = context;
	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return strcmp(documents->ids[b->document], documents->ids[a->document]);
}

void retrieval_sort(struct retrieved *found, int64_t count, const struct text_list *documents)
{
	qsort_r(found, (size_t)count, sizeof *found, compare_found, (void *)(uintptr_t)documents);
}

static int64_t grade_of(const struct judgment *judgments, int64_t judged, int64_t document)
{
	int64_t low = 0, high = judged;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (judgments[middle].document < document)
			low = middle + 1;
		else
			high = middle;
	}
	return low < judged && judgments[low].document == document ? judgments[low].grade : 0;
}

static int compare_grades(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;
	return *a > *b ? -1 : *a < *b;
}

/* The discounted gains of the best order, up to each cut. */
static enum status ideal_gains(const struct judgment *judgments, int64_t judged, double out[RETRIEVAL_CUTS])
{
	int64_t *grades;
	double gain = 0;
	TRY(memory_new(&grades, judged, sizeof *grades, "judgments"));
	for (int64_t i = 0; i < judged; i++)
		grades[i] = judgments[i].grade;
	qsort(grades, (size_t)judged, sizeof *grades, compare_grades);
	for (int64_t i = 0, c = 0; c < RETRIEVAL_CUTS; i++) {
		gain += i < judged && grades[i] > 0 ? (double)grades[i] / log2((double)i + 2) : 0;
		if (i + 1 == cuts[c])
			out[c++] = gain;
	}
	free(grades);
	return OK;
}

enum status retrieval_add_query(struct retrieval_sums *sums, const struct judgment *judgments, int64_t judged,
				const struct retrieved *found, int64_t count)
{
	double ideal[RETRIEVAL_CUTS], gain = 0, precisions = 0, reciprocal = 0;
	int64_t relevant = 0, right = 0;
	TRY(ideal_gains(judgments, judged, ideal));
	for (int64_t i = 0; i < judged; i++)
		relevant += judgments[i].grade > 0;
	sums->queries++;
	for (int64_t i = 0, c = 0; c < RETRIEVAL_CUTS; i++) {
		int64_t grade = i < count ? grade_of(judgments, judged, found[i].document) : 0;
		if (grade > 0) {
			gain += (double)grade / log2((double)i + 2);
			right++;
			precisions += (double)right / (double)(i + 1);
			reciprocal = reciprocal > 0 ? reciprocal : 1 / (double)(i + 1);
		}
		if (i + 1 < cuts[c])
			continue;
		if (relevant > 0) {
			sums->ndcg[c] += gain / ideal[c];
			sums->map[c] += precisions / (double)relevant;
			sums->recall[c] += (double)right / (double)relevant;
		}
		sums->mrr[c++] += reciprocal;
	}
	return OK;
}

void retrieval_add_measures(const struct retrieval_sums *sums, struct measures *out)
{
	static const char *const names[][RETRIEVAL_CUTS] = {
		{"ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg@100"},
		{"map@1", "map@3", "map@5", "map@10", "map@100"},
		{"recall@1", "recall@3", "recall@5", "recall@10", "recall@100"},
		{"mrr@1", "mrr@3", "mrr@5", "mrr@10", "mrr@100"},
	};
	const double *const values[] = {sums->ndcg, sums->map, sums->recall, sums->mrr};
	for (size_t m = 0; m < sizeof names / sizeof *names; m++)
		for (int c = 0; c < RETRIEVAL_CUTS; c++)
			measures_add(out, &(struct measure){.name = names[m][c],
							    .unit = UNIT_SHARE,
							    .direction = DIRECTION_HIGHER,
							    .value = values[m][c] / (double)sums->queries});
}
