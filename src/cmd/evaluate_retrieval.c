/* Retrieval as BEIR measures it: a first stage that searches vectors, and perhaps a reranker for what it finds. */
#include "cmd/evaluate_retrieval.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "tasks/retrieval_measures.h"

#define ROW(member, role, value) OPTION_ROW(struct retrieval_settings, member, role, value)

/* clang-format off */
const struct option retrieval_rows[] = {
	{.help = "Retrieval"},
	{ROW(retrieval, ROLE_PLACE, "FOLDER"),
	 .help = "a data set in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/test.tsv); the corpus is searched for each "
	 "query"},
	{ROW(qrels, ROLE_PLACE, "FILE"), .fallback_text = "qrels/test.tsv in the folder",
	 .help = "judgments of which documents answer which queries, as BEIR or TREC write them"},
	{.group = search_rows, .field = offsetof(struct retrieval_settings, search)},
	{.group = code_rows, .field = offsetof(struct retrieval_settings, codes)},
	{ROW(reranker, ROLE_PLACE, "FOLDER"), .help = "model of --task reranking that scores the documents found"},
	{ROW(rerank_top, ROLE_RESULT, "N"), .range = "1..1000", .fallback = "100",
	 .help = "documents per query that --reranker scores; only these count as found"},
	{ROW(run_out, ROLE_PLACE, "FILE"), .help = "write the documents found, in TREC's format, for other programs"},
	{0},
};
/* clang-format on */

struct retrieval {
	const struct retrieval_settings *settings;
	struct text_list queries, documents;
	struct judgments judgments;
	int32_t *judged; /* [judged_count] queries that have judgments, in order */
	int64_t judged_count;
	struct text_search search;
	int64_t most;             /* documents found per query */
	struct nearest_row *near; /* [judged_count, most] */
	struct retrieved *found;  /* [judged_count, most] in trec_eval's order */
	int64_t *counts;          /* [judged_count] */
};

/* ---- Files ---- */

/* Finds NAME.jsonl, plain or compressed, in the folder. */
static enum status find_list(const struct retrieval_settings *settings, const char *name, char path[PATH_BYTES])
{
	static const char *const endings[] = {".jsonl", ".jsonl.gz", ".jsonl.zst", ".tsv"};
	const char *folder = settings->retrieval;
	char file[64];
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		snprintf(file, sizeof file, "%s%s", name, endings[i]);
		TRY(path_join(path, folder, file));
		if (file_exists(path))
			return command_check_input(path, "run_out", settings->run_out);
	}
	return error_set(ERR_USAGE, "'%s' has no %s.jsonl: it does not have the layout of BEIR's data sets", folder, name);
}

/* Reads the three files, which belong together: if the folder is replaced meanwhile, that is ERR_STATE. */
static enum status read_lists(struct retrieval *r)
{
	char queries[PATH_BYTES], corpus[PATH_BYTES], folder_qrels[PATH_BYTES];
	TRY(find_list(r->settings, "queries", queries));
	TRY(find_list(r->settings, "corpus", corpus));
	TRY(path_join(folder_qrels, r->settings->retrieval, "qrels/test.tsv"));
	TRY(command_check_input(folder_qrels, "run_out", r->settings->run_out));
	const char *const paths[] = {queries, corpus, r->settings->qrels ? r->settings->qrels : folder_qrels};
	struct file_stamp before[] = {file_stamp_at(paths[0]), file_stamp_at(paths[1]), file_stamp_at(paths[2])};
	TRY(text_list_read(&r->queries, paths[0], NULL));
	TRY(text_list_read(&r->documents, paths[1], NULL));
	TRY(judgments_read(&r->judgments, paths[2], &r->queries, &r->documents));
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct file_stamp now = file_stamp_at(paths[i]);
		TRY(file_stamp_check(paths[i], &before[i], &now, "while the data set was read"));
	}
	return OK;
}

static enum status read_files(struct retrieval *r)
{
	char documents[FORMAT_BYTES], queries[FORMAT_BYTES], count[FORMAT_BYTES];
	TRY(read_lists(r));
	if (r->queries.count > INT32_MAX || r->documents.count > INT32_MAX)
		return error_set(ERR_USAGE, "more than %d texts", INT32_MAX);
	TRY(memory_new(&r->judged, r->judgments.count, sizeof *r->judged, "queries"));
	for (int64_t i = 0; i < r->judgments.count; i++)
		if (i == 0 || r->judgments.items[i].query != r->judgments.items[i - 1].query)
			r->judged[r->judged_count++] = (int32_t)r->judgments.items[i].query;
	if (r->judgments.unknown_queries > 0)
		log_warning("%s about queries that queries.jsonl does not have",
			    format_counted(count, r->judgments.unknown_queries, "judgment is", "judgments are"));
	if (r->judgments.unknown_documents > 0)
		log_warning("%s about documents that the corpus does not have, which count as not found",
			    format_counted(count, r->judgments.unknown_documents, "judgment is", "judgments are"));
	if (r->judgments.repeated > 0)
		log_warning("judgments given more than once, which count once: %" PRId64, r->judgments.repeated);
	log_note("%s, %s with %s", format_counted(documents, r->documents.count, "document", "documents"),
		 format_counted(queries, r->judged_count, "query", "queries"),
		 format_counted(count, r->judgments.count, "judgment", "judgments"));
	return OK;
}

/* ---- The first stage ---- */

static enum status get_vectors(struct retrieval *r)
{
	const char **texts;
	TRY(memory_new(&texts, r->judged_count, sizeof *texts, "queries"));
	for (int64_t i = 0; i < r->judged_count; i++)
		texts[i] = r->queries.texts[r->judged[i]];
	const struct searched_texts queries = {"queries", texts, r->judged_count, r->queries.count, r->judged};
	const struct searched_texts documents = {"documents", r->documents.texts, r->documents.count, r->documents.count, NULL};
	enum status status = text_search_vectors(&r->search, &queries, &documents);
	free(texts);
	return status;
}

/* Finds as many documents as the measures look at, and one more for that with the query's own id, which BEIR leaves out. */
static enum status search(struct retrieval *r)
{
	int64_t wanted = r->settings->reranker ? r->settings->rerank_top : RETRIEVAL_DEEPEST;
	r->most = wanted + 1 < r->documents.count ? wanted + 1 : r->documents.count;
	TRY(memory_new(&r->near, r->judged_count * r->most, sizeof *r->near, "the nearest documents"));
	TRY(memory_new(&r->found, r->judged_count * r->most, sizeof *r->found, "the nearest documents"));
	TRY(memory_new(&r->counts, r->judged_count, sizeof *r->counts, "the nearest documents"));
	TRY(text_search_nearest(&r->search, r->most, r->near));
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
	const struct text_pass pass = {.model = &r->search.reranker};
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
	TRY(text_search_open_reranker(&r->search, r->settings->reranker));
	progress_start(&progress, "reranking", 0, r->judged_count, "queries");
	TRY_GOTO(memory_new(&pairs, r->most, sizeof *pairs, "pairs"), done);
	TRY_GOTO(memory_new(&scores, r->most, sizeof *scores, "scores"), done);
	for (int64_t q = 0; q < r->judged_count; q++) {
		TRY_GOTO(rerank_query(r, q, pairs, scores), done);
		progress_update(&progress, q + 1, NULL);
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
	/* As sentence-transformers' SparseInformationRetrievalEvaluator names them. */
	static const char *const active[] = {"query_active_dims", "corpus_active_dims"};
	const struct sparse_vectors *vectors[] = {&r->search.queries.sparse, &r->search.documents.sparse};
	for (int i = 0; i < 2 && r->search.model.weighs_words; i++)
		measures_add(out,
			     &(struct measure){active[i], NULL, UNIT_NUMBER, DIRECTION_NONE, sparse_vectors_active(vectors[i])});
	return r->settings->run_out ? write_run(r) : OK;
}

static enum status evaluate(struct retrieval *r, const char *model, struct measures *out)
{
	TRY(read_files(r));
	TRY(text_search_open(&r->search, model));
	TRY(get_vectors(r));
	TRY(search(r));
	if (r->settings->reranker)
		TRY(rerank(r));
	return measure(r, out);
}

enum status retrieval_evaluate(const struct retrieval_settings *settings, const char *model, int64_t max_seq_length,
			       int64_t micro_batch_tokens, const struct device_options *device, struct measures *out)
{
	struct retrieval r = {.settings = settings,
			      .search = {.options = &settings->search,
					 .codes = &settings->codes,
					 .takes_weights = true,
					 .of_models = {.device = *device,
						       .batch_tokens = micro_batch_tokens,
						       .max_seq_length = max_seq_length,
						       .no_blanks = true,
						       .tool = "evaluate"}}};
	stop_install();
	enum status status = evaluate(&r, model, out);
	text_search_close(&r.search);
	text_list_release(&r.queries);
	text_list_release(&r.documents);
	judgments_release(&r.judgments);
	free(r.judged);
	free(r.near);
	free(r.found);
	free(r.counts);
	return status;
}
