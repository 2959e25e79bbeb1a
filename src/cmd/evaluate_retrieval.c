/* Retrieval as BEIR measures it: a first stage that searches vectors, and perhaps a reranker for what it finds. */
#include "cmd/evaluate_retrieval.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/open.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/stop.h"
#include "infer/device.h"
#include "infer/text_pass.h"
#include "tasks/retrieval_measures.h"

#define ROW(member, role, value) OPTION_ROW(struct retrieval_settings, member, role, value)

/* clang-format off */
const struct option retrieval_rows[] = {
	{.help = "Retrieval"},
	{ROW(retrieval, ROLE_PLACE, "FOLDER"),
	 .help = "a data set as BEIR lays it out, corpus.jsonl, queries.jsonl, and qrels/test.tsv: searches the corpus for each "
	 "query"},
	{ROW(qrels, ROLE_PLACE, "FILE"), .fallback_text = "qrels/test.tsv in the folder",
	 .help = "judgments of which documents answer which queries, as BEIR or TREC write them"},
	{ROW(query_vectors, ROLE_PLACE, "FILE.npy"), .help = "vectors of all queries, instead of having --model make them"},
	{ROW(corpus_vectors, ROLE_PLACE, "FILE.npy"), .help = "vectors of the corpus"},
	{ROW(query_prompt, ROLE_RESULT, "TEXT"), .fallback_text = "that of the model's folder",
	 .help = "put this before queries"},
	{ROW(document_prompt, ROLE_RESULT, "TEXT"), .alias = "corpus_prompt", .fallback_text = "that of the model's folder",
	 .help = "put this before documents"},
	{ROW(similarity, ROLE_RESULT, "NAME"), .range = "cosine|dot", .fallback = "cosine", .help = "what makes vectors near"},
	{ROW(reranker, ROLE_PLACE, "FOLDER"), .help = "model of --task reranking that scores what the search finds"},
	{ROW(rerank_top, ROLE_RESULT, "N"), .range = "1..1000", .fallback = "100",
	 .help = "documents per query that --reranker scores; only these count as found"},
	{ROW(run_out, ROLE_PLACE, "FILE"), .help = "write what is found, in TREC's form, for other programs to measure"},
	{0},
};
/* clang-format on */

struct retrieval {
	const struct retrieval_settings *settings;
	struct text_list queries, documents;
	struct judgments judgments;
	int32_t *judged; /* [judged_count] queries that have judgments, in order */
	int64_t judged_count;
	struct pool *pool;
	struct backend *be;
	struct text_model model, reranker;
	struct text_model_settings of_models;
	struct text_vectors query_vectors, corpus_vectors;
	int64_t most;             /* documents found per query */
	struct nearest_row *near; /* [judged_count, most] */
	struct retrieved *found;  /* [judged_count, most] in trec_eval's order */
	int64_t *counts;          /* [judged_count] */
};

enum status retrieval_check(const struct retrieval_settings *settings, const char *model)
{
	if (model || (settings->query_vectors && settings->corpus_vectors))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "there are no vectors to search"),
			    "--model FOLDER makes them; --query_vectors and --corpus_vectors name files of them");
}

/* ---- Files ---- */

/* Reads NAME.jsonl, plain or compressed, in the folder. */
static enum status read_list(const char *folder, const char *name, struct text_list *list)
{
	static const char *const endings[] = {".jsonl", ".jsonl.gz", ".jsonl.zst", ".tsv"};
	char path[PATH_BYTES], file[64];
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		snprintf(file, sizeof file, "%s%s", name, endings[i]);
		TRY(path_join(path, folder, file));
		if (file_exists(path))
			return text_list_read(list, path, NULL);
	}
	return error_set(ERR_USAGE, "'%s' has no %s.jsonl: it is not laid out as BEIR's data sets are", folder, name);
}

static enum status read_files(struct retrieval *r)
{
	char qrels[PATH_BYTES];
	const char *folder = r->settings->retrieval;
	TRY(read_list(folder, "queries", &r->queries));
	TRY(read_list(folder, "corpus", &r->documents));
	TRY(path_join(qrels, folder, "qrels/test.tsv"));
	TRY(judgments_read(&r->judgments, r->settings->qrels ? r->settings->qrels : qrels, &r->queries, &r->documents));
	if (r->queries.count > INT32_MAX || r->documents.count > INT32_MAX)
		return error_set(ERR_USAGE, "more than %d texts", INT32_MAX);
	TRY(memory_new(&r->judged, r->judgments.count, sizeof *r->judged, "queries"));
	for (int64_t i = 0; i < r->judgments.count; i++)
		if (i == 0 || r->judgments.items[i].query != r->judgments.items[i - 1].query)
			r->judged[r->judged_count++] = (int32_t)r->judgments.items[i].query;
	if (r->judgments.unknown_queries > 0)
		log_warning("%" PRId64 " judgments are about queries that queries.jsonl does not have",
			    r->judgments.unknown_queries);
	log_note("%" PRId64 " documents, %" PRId64 " queries with %" PRId64 " judgments", r->documents.count, r->judged_count,
		 r->judgments.count);
	return OK;
}

/* ---- The first stage ---- */

static enum status get_vectors(struct retrieval *r, const char *model)
{
	const struct retrieval_settings *settings = r->settings;
	const struct sentence_folder *folder = &r->model.sentences;
	const struct text_pass queries = {&r->model, "queries",
					  settings->query_prompt ? settings->query_prompt : sentence_folder_query_prompt(folder)};
	const struct text_pass documents = {&r->model, "corpus",
					    settings->document_prompt ? settings->document_prompt
								      : sentence_folder_document_prompt(folder)};
	const char **texts;
	enum status status;
	if (model && !r->model.makes_vectors)
		return error_set(ERR_USAGE, "'%s' answers a task and makes no vectors", model);
	TRY(memory_new(&texts, r->judged_count, sizeof *texts, "queries"));
	for (int64_t i = 0; i < r->judged_count; i++)
		texts[i] = r->queries.texts[r->judged[i]];
	status = settings->query_vectors ? text_vectors_map(&r->query_vectors, settings->query_vectors, r->queries.count,
							    "queries", r->judged, r->judged_count)
					 : text_vectors_make(&r->query_vectors, &queries, texts, r->judged_count);
	free(texts);
	TRY(status);
	TRY(settings->corpus_vectors ? text_vectors_map(&r->corpus_vectors, settings->corpus_vectors, r->documents.count,
							"documents", NULL, r->documents.count)
				     : text_vectors_make(&r->corpus_vectors, &documents, r->documents.texts, r->documents.count));
	if (r->query_vectors.vectors.width != r->corpus_vectors.vectors.width)
		return error_set(ERR_DATA, "the vectors of the queries have %" PRId64 " numbers, those of the corpus %" PRId64,
				 r->query_vectors.vectors.width, r->corpus_vectors.vectors.width);
	return OK;
}

/* Finds as many documents as the measures look at, and one more for that with the query's own id, which BEIR leaves out. */
static enum status search(struct retrieval *r)
{
	struct device_options on_cpu = {.device = DEVICE_CPU, .precision = r->of_models.device.precision};
	int64_t wanted = r->settings->reranker ? r->settings->rerank_top : RETRIEVAL_DEEPEST;
	if (on_cpu.precision != PRECISION_FP32 && on_cpu.precision != PRECISION_BF16)
		on_cpu.precision = PRECISION_FASTEST;
	r->most = wanted + 1 < r->documents.count ? wanted + 1 : r->documents.count;
	TRY(memory_new(&r->near, r->judged_count * r->most, sizeof *r->near, "the nearest documents"));
	TRY(memory_new(&r->found, r->judged_count * r->most, sizeof *r->found, "the nearest documents"));
	TRY(memory_new(&r->counts, r->judged_count, sizeof *r->counts, "the nearest documents"));
	TRY(device_open_on(&on_cpu, true, r->pool, &r->be));
	TRY(vector_search_run(&(struct vector_search){.backend = r->be,
						      .nearest = backend_nearest(r->be),
						      .similarity = (enum similarity)r->settings->similarity,
						      .most = r->most,
						      .queries = r->query_vectors.vectors,
						      .documents = r->corpus_vectors.vectors,
						      .title = "searching"},
			      r->near));
	for (int64_t q = 0; q < r->judged_count; q++) {
		const char *id = r->queries.ids[r->judged[q]];
		for (int64_t i = 0; i < r->most && r->counts[q] < wanted; i++) {
			struct nearest_row row = r->near[q * r->most + i];
			if (row.row >= 0 && strcmp(r->documents.ids[row.row], id) != 0)
				r->found[q * r->most + r->counts[q]++] = (struct retrieved){row.score, row.row};
		}
	}
	return OK;
}

/* ---- The second stage ---- */

static enum status rerank_query(struct retrieval *r, int64_t q, struct text_input *pairs, double *scores)
{
	const struct text_pass pass = {.model = &r->reranker};
	struct retrieved *found = r->found + q * r->most;
	for (int64_t i = 0; i < r->counts[q]; i++)
		pairs[i] = (struct text_input){.text = r->queries.texts[r->judged[q]],
					       .pair = r->documents.texts[found[i].document]};
	TRY(text_pass_scores(&pass, pairs, r->counts[q], scores));
	for (int64_t i = 0; i < r->counts[q]; i++)
		found[i].score = (float)scores[i];
	return OK;
}

static enum status rerank(struct retrieval *r)
{
	struct text_input *pairs = NULL;
	struct progress progress;
	double *scores = NULL;
	enum status status;
	TRY(text_model_open(&r->reranker, r->settings->reranker, r->pool, &r->of_models));
	TRY(text_pass_check_reranker(&r->reranker, r->settings->reranker));
	progress_start(&progress, "reranking", 0, r->judged_count, "queries");
	TRY_GOTO(memory_new(&pairs, r->most, sizeof *pairs, "pairs"), done);
	TRY_GOTO(memory_new(&scores, r->most, sizeof *scores, "scores"), done);
	for (int64_t q = 0; q < r->judged_count; q++) {
		TRY_GOTO(rerank_query(r, q, pairs, scores), done);
		progress_update(&progress, q + 1, "%" PRId64 " queries", q + 1);
	}
done:
	progress_finish(&progress);
	free(pairs);
	free(scores);
	return status;
}

/* ---- Results ---- */

static enum status write_run(const struct retrieval *r)
{
	struct buffer text = {0};
	for (int64_t q = 0; q < r->judged_count; q++)
		for (int64_t i = 0; i < r->counts[q]; i++) {
			const struct retrieved *found = &r->found[q * r->most + i];
			buffer_format(&text, "%s Q0 %s %" PRId64 " %.9g bertc\n", r->queries.ids[r->judged[q]],
				      r->documents.ids[found->document], i + 1, (double)found->score);
		}
	enum status status = buffer_status(&text);
	if (status == OK)
		status = file_write(r->settings->run_out, text.data ? text.data : "", text.size);
	buffer_release(&text);
	return status;
}

static enum status measure(struct retrieval *r, struct measures *out)
{
	struct retrieval_sums sums = {0};
	const struct judgment *judgments = r->judgments.items;
	for (int64_t q = 0; q < r->judged_count; q++) {
		int64_t judged = 0;
		struct retrieved *found = r->found + q * r->most;
		while (judgments + judged < r->judgments.items + r->judgments.count && judgments[judged].query == r->judged[q])
			judged++;
		retrieval_sort(found, r->counts[q], &r->documents);
		TRY(retrieval_add_query(&sums, judgments, judged, found, r->counts[q]));
		judgments += judged;
	}
	retrieval_add_measures(&sums, out);
	measures_add(out, &(struct measure){"queries", NULL, UNIT_COUNT, DIRECTION_NONE, (double)sums.queries});
	return r->settings->run_out ? write_run(r) : OK;
}

static enum status evaluate(struct retrieval *r, const char *model, struct measures *out)
{
	TRY(read_files(r));
	TRY(pool_create(&r->pool, (int)r->of_models.device.threads));
	if (model)
		TRY(text_model_open(&r->model, model, r->pool, &r->of_models));
	TRY(get_vectors(r, model));
	TRY(search(r));
	if (r->settings->reranker)
		TRY(rerank(r));
	return measure(r, out);
}

enum status retrieval_evaluate(const struct retrieval_settings *settings, const char *model, int64_t max_seq_length,
			       int64_t micro_batch_tokens, const struct device_options *device, struct measures *out)
{
	struct retrieval r = {.settings = settings,
			      .of_models = {.device = *device,
					    .batch_tokens = micro_batch_tokens,
					    .max_seq_length = max_seq_length,
					    .no_blanks = true,
					    .tool = "evaluate"}};
	stop_install();
	enum status status = evaluate(&r, model, out);
	text_model_close(&r.reranker);
	text_model_close(&r.model);
	if (r.be)
		backend_close(r.be);
	pool_free(r.pool);
	text_vectors_release(&r.query_vectors);
	text_vectors_release(&r.corpus_vectors);
	text_list_release(&r.queries);
	text_list_release(&r.documents);
	judgments_release(&r.judgments);
	free(r.judged);
	free(r.near);
	free(r.found);
	free(r.counts);
	return status;
}
