/* Compares the codes of each query with those of all documents, and what is nearest with the query itself. */
#include "infer/code_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stop.h"
#include "formats/npy_file.h"

#define ROW(member, role, value) OPTION_ROW(struct code_options, member, role, value)

/* clang-format off */
const struct option code_rows[] = {
	{ROW(calibration_vectors, ROLE_PLACE, "FILE.npy"),
	 .help = "for --corpus_vectors of bytes (embed --vector_type int8 or uint8): the vectors from which the ranges of "
	 "their numbers were taken"},
	{ROW(rescore_multiplier, ROLE_RESULT, "N"), .range = "1..1000", .fallback = "2",
	 .help = "for --corpus_vectors of bytes or bits: documents to find by them, as a multiple of those wanted; their codes "
	 "are then compared with the queries in full precision"},
	{0},
};
/* clang-format on */

struct found {
	double score;
	int32_t row;
};

struct work {
	const struct code_search *search;
	struct code_ranges ranges;
	int64_t bytes, kept;  /* of a vector; candidates per query */
	struct found *found;  /* [workers, 2 * kept] */
	float *coded;         /* [workers, bytes] */
	unsigned char *query; /* [workers, bytes] */
	struct nearest_row *out;
	int stopped;
};

static int compare(const void *left, const void *right)
{
	const struct found *a = left, *b = right;
	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static bool is_bits(enum vector_code code)
{
	return code == CODE_BINARY || code == CODE_UBINARY;
}

/* Exact: at most 255^2 times 65,536 numbers. */
static double nearness(const struct work *w, const unsigned char *query, const unsigned char *document)
{
	const unsigned char flip = w->search->code == CODE_INT8 || w->search->code == CODE_BINARY ? 0x80 : 0;
	uint32_t product = 0;
	int differ = 0;
	if (!is_bits(w->search->code)) {
		for (int64_t i = 0; i < w->bytes; i++)
			product += (uint32_t)query[i] * (unsigned char)(document[i] ^ flip);
		return product;
	}
	for (int64_t i = 0; i < w->bytes; i++)
		differ += __builtin_popcount(query[i] ^ (unsigned char)(document[i] ^ flip));
	return -differ;
}

/* The product of a query and what a document's codes stand for. */
static double score(const struct work *w, const float *query, const unsigned char *document)
{
	const unsigned char flip = w->search->code == CODE_INT8 || w->search->code == CODE_BINARY ? 0x80 : 0;
	double sum = 0;
	for (int64_t i = 0; i < w->search->queries.width; i++) {
		if (is_bits(w->search->code))
			sum += (document[i / 8] ^ flip) >> (7 - i % 8) & 1 ? (double)query[i] : 0;
		else
			sum += (double)query[i] *
			       ((double)(document[i] ^ flip) * (double)w->ranges.steps[i] + (double)w->ranges.starts[i]);
	}
	return sum;
}

static void search_query(void *context, int64_t number, int worker)
{
	struct work *w = context;
	const struct code_search *search = w->search;
	const float *vector = vector_at(&search->queries, number);
	struct found *found = w->found + worker * 2 * w->kept;
	float *coded = w->coded + worker * w->bytes;
	unsigned char *query = w->query + worker * w->bytes;
	int64_t count = 0;
	double worst = -INFINITY; /* of those that are kept, once there are enough */
	if (stop_requested())
		__atomic_store_n(&w->stopped, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&w->stopped, __ATOMIC_RELAXED))
		return;
	vector_code(is_bits(search->code) ? CODE_UBINARY : CODE_UINT8, &w->ranges, vector, search->queries.width, coded);
	for (int64_t i = 0; i < w->bytes; i++)
		query[i] = (unsigned char)coded[i];
	for (int64_t d = 0; d < search->count; d++) {
		double near = nearness(w, query, search->codes + d * w->bytes);
		if (near <= worst)
			continue;
		found[count++] = (struct found){near, (int32_t)d};
		if (count < 2 * w->kept)
			continue;
		qsort(found, (size_t)count, sizeof *found, compare);
		count = w->kept;
		worst = found[count - 1].score;
	}
	qsort(found, (size_t)count, sizeof *found, compare);
	count = count < w->kept ? count : w->kept;
	for (int64_t i = 0; i < count; i++)
		found[i].score = score(w, vector, search->codes + found[i].row * w->bytes);
	qsort(found, (size_t)count, sizeof *found, compare);
	for (int64_t i = 0; i < search->most; i++)
		w->out[number * search->most + i] = i < count ? (struct nearest_row){(float)found[i].score, found[i].row}
							      : (struct nearest_row){-INFINITY, -1};
}

static enum status find_ranges(struct work *w)
{
	const char *path = w->search->options->calibration_vectors;
	struct npy_file file = {0};
	if (is_bits(w->search->code))
		return OK;
	if (!path)
		return error_hinted(error_set(ERR_USAGE, "vectors of bytes need --calibration_vectors"),
				    "give the file with which embed made them");
	enum status status = npy_file_open(&file, path);
	if (status == OK && file.columns != w->search->queries.width)
		status = error_set(ERR_DATA, "the vectors of '%s' have %lld numbers, those of the queries %lld", path,
				   (long long)file.columns, (long long)w->search->queries.width);
	if (status == OK)
		status = npy_file_check(&file, path);
	if (status == OK)
		status = code_ranges_find(&w->ranges, &(struct vectors){file.values, file.columns, file.rows, NULL});
	npy_file_close(&file);
	return status;
}

enum status code_search_run(const struct code_search *search, struct nearest_row *out)
{
	static const char what[] = "a search";
	struct work w = {.search = search, .out = out, .bytes = vector_code_count(search->code, search->queries.width)};
	int64_t workers = pool_threads(search->pool), wanted = search->most * search->options->rescore_multiplier;
	enum status status;
	w.kept = wanted < search->count ? wanted : search->count;
	TRY_GOTO(vectors_check(&search->queries, 0, search->queries.count, "query"), done);
	TRY_GOTO(find_ranges(&w), done);
	TRY_GOTO(memory_new(&w.found, workers * 2 * w.kept, sizeof *w.found, what), done);
	TRY_GOTO(memory_new(&w.coded, workers * w.bytes, sizeof *w.coded, what), done);
	TRY_GOTO(memory_new(&w.query, workers * w.bytes, sizeof *w.query, what), done);
	pool_run(search->pool, search->queries.count, search_query, &w);
	status = w.stopped ? stop_check() : OK;
done:
	code_ranges_release(&w.ranges);
	free(w.found);
	free(w.coded);
	free(w.query);
	return status;
}
