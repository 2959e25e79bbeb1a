/* Keeps the weights that are not zero, and searches by lists of each word's documents. */
#include "infer/sparse_vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stop.h"

enum status sparse_vectors_add(struct sparse_vectors *v, const float *numbers, int64_t width)
{
	static const char what[] = "weights of texts";
	int64_t first = v->count > 0 ? v->starts[v->count] : 0, count = 0;
	for (int64_t i = 0; i < width; i++)
		count += numbers[i] != 0;
	TRY(memory_grow(&v->starts, &v->starts_capacity, v->count + 2, sizeof *v->starts, what));
	TRY(memory_grow(&v->words, &v->words_capacity, first + count, sizeof *v->words, what));
	TRY(memory_grow(&v->weights, &v->weights_capacity, first + count, sizeof *v->weights, what));
	v->starts[v->count++] = first;
	for (int64_t i = 0; i < width; i++) {
		if (numbers[i] == 0)
			continue;
		v->words[first] = (int32_t)i;
		v->weights[first++] = numbers[i];
	}
	v->starts[v->count] = first;
	return OK;
}

void sparse_vectors_release(struct sparse_vectors *v)
{
	free(v->starts);
	free(v->words);
	free(v->weights);
	*v = (struct sparse_vectors){.count = 0};
}

double sparse_vectors_active(const struct sparse_vectors *v)
{
	return v->count > 0 ? (double)v->starts[v->count] / (double)v->count : 0;
}

static int by_weight(const void *left, const void *right, void *numbers)
{
	const int32_t *a = left, *b = right;
	const float *weights = numbers;
	struct nearest_row of_a = {weights[*a], *a}, of_b = {weights[*b], *b};
	return nearest_is_worse(of_a, of_b) ? 1 : nearest_is_worse(of_b, of_a) ? -1 : 0;
}

int64_t sparse_words(const float *numbers, int64_t width, int64_t most, int32_t *out)
{
	int64_t count = 0;
	for (int64_t i = 0; i < width; i++)
		if (numbers[i] != 0)
			out[count++] = (int32_t)i;
	qsort_r(out, (size_t)count, sizeof *out, by_weight, (void *)(uintptr_t)numbers);
	return count < most ? count : most;
}

/* ---- Search ---- */

struct search {
	const struct sparse_vectors *queries, *documents;
	int64_t most;
	int64_t *starts; /* [width + 1] postings of each word */
	struct nearest_row *postings;
	double *products; /* [workers, documents] */
	struct nearest_row *out;
};

/* Sorts the documents' weights by word, and within a word by document. */
static void make_postings(struct search *s, int64_t width)
{
	const struct sparse_vectors *d = s->documents;
	for (int64_t k = 0; k < d->starts[d->count]; k++)
		s->starts[d->words[k] + 1]++;
	for (int64_t w = 0; w < width; w++)
		s->starts[w + 1] += s->starts[w];
	for (int64_t i = 0; i < d->count; i++)
		for (int64_t k = d->starts[i]; k < d->starts[i + 1]; k++)
			s->postings[s->starts[d->words[k]]++] = (struct nearest_row){d->weights[k], (int32_t)i};
	memmove(s->starts + 1, s->starts, (size_t)width * sizeof *s->starts);
	s->starts[0] = 0;
}

/* Inserts a document among the best so far, the best first. */
static void offer(struct nearest_row *best, int64_t most, struct nearest_row row)
{
	int64_t at = most - 1;
	if (best[at].row >= 0 && !nearest_is_worse(best[at], row))
		return;
	for (; at > 0 && (best[at - 1].row < 0 || nearest_is_worse(best[at - 1], row)); at--)
		best[at] = best[at - 1];
	best[at] = row;
}

static void search_query(void *context, int64_t q, int worker)
{
	const struct search *s = context;
	int64_t documents = s->documents->count;
	double *products = s->products + worker * documents;
	struct nearest_row *best = s->out + q * s->most;
	memset(products, 0, (size_t)documents * sizeof *products);
	for (int64_t k = s->queries->starts[q]; k < s->queries->starts[q + 1]; k++) {
		double weight = s->queries->weights[k];
		int64_t end = s->starts[s->queries->words[k] + 1];
		for (int64_t p = s->starts[s->queries->words[k]]; p < end; p++)
			products[s->postings[p].row] += weight * s->postings[p].score;
	}
	for (int64_t i = 0; i < s->most; i++)
		best[i] = (struct nearest_row){-INFINITY, -1};
	for (int64_t i = 0; i < documents && s->most > 0; i++)
		offer(best, s->most, (struct nearest_row){(float)products[i], (int32_t)i});
}

enum status sparse_search(struct pool *pool, const struct sparse_vectors *queries, const struct sparse_vectors *documents,
			  int64_t width, int64_t most, struct nearest_row *out)
{
	static const char what[] = "a search";
	struct search search = {.queries = queries, .documents = documents, .most = most, .out = out};
	int64_t weights = documents->count > 0 ? documents->starts[documents->count] : 0;
	enum status status;
	TRY_GOTO(memory_new(&search.starts, width + 1, sizeof *search.starts, what), done);
	TRY_GOTO(memory_new(&search.postings, weights, sizeof *search.postings, what), done);
	TRY_GOTO(memory_new(&search.products, pool_threads(pool) * documents->count, sizeof *search.products, what), done);
	if (documents->count > 0)
		make_postings(&search, width);
	TRY_GOTO(stop_check(), done);
	pool_run(pool, queries->count, search_query, &search);
done:
	free(search.starts);
	free(search.postings);
	free(search.products);
	return status;
}
