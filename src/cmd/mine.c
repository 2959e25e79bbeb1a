/* bertc mine: finds hard negatives for training pairs, texts of a corpus that are near a text and do not belong to it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/saved_models.h"
#include "infer/device_options.h"
#include "infer/hard_negatives.h"
#include "infer/text_search.h"
#include "tasks/ranking_file.h"
#include "tasks/retrieval_files.h"

/* Values of its options that are left open become NaN or, of range_max, what follows from the others. */
struct mine_settings {
	const char *model, *reranker, *corpus_column, *out;
	struct search_options search;
	struct option_list train, corpus;
	struct column_choice columns;
	struct negative_choice {
		int64_t num_negatives, range_min, range_max, seed;
		double max_score, min_score, absolute_margin, relative_margin;
	} choice;
	enum { SAMPLE_TOP, SAMPLE_RANDOM } sampling;
	enum { ROWS_TUPLE, ROWS_TRIPLET } format;
	int64_t max_seq_length, micro_batch_tokens;
	bool output_scores;
	struct device_options device;
};

#define FIELD(name) offsetof(struct mine_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct mine_settings, member, role, value)
#define CHOICE_ROW(name_, value) OPTION_AS(#name_, struct mine_settings, choice.name_, ROLE_RESULT, value)

/* clang-format off */
static const struct option mine_options[] = {
	{.help = "Texts"},
	{ROW(train, ROLE_PLACE, "FILE..."),
	 .help = "pairs of texts that belong together, as finetune --task embedding reads them"},
	{.group = column_rows, .only = "text_column pair_column", .field = FIELD(columns)},
	{ROW(corpus, ROLE_PLACE, "FILE..."), .fallback_text = "the second texts of the pairs",
	 .help = "texts to search: one per line, JSON lines, or a table; those of the pairs are added"},
	{ROW(corpus_column, ROLE_RESULT, "NAME"), .fallback_text = "found by its name, such as text, after title",
	 .help = "column of the corpus that holds its texts"},
	{.help = "Vectors"},
	{ROW(model, ROLE_PLACE, "FOLDER"), .alias = "model_name_or_path", .help = "model that turns the texts into vectors"},
	{.group = search_rows, .field = FIELD(search)},
	{ROW(max_seq_length, ROLE_RESULT, "N"), .range = "8..65536", .fallback_text = "as the folder says",
	 .help = "maximum number of tokens per text; longer texts are truncated"},
	{.help = "Which negatives"},
	{CHOICE_ROW(num_negatives, "N"), .range = "1..1000", .fallback = "3", .help = "negatives per first text"},
	{CHOICE_ROW(range_min, "N"), .range = "0..2147483647", .fallback = "0",
	 .help = "skip the nearest N texts, which may belong to the query although no pair says so"},
	{CHOICE_ROW(range_max, "N"), .range = "1..2147483647", .fallback_text = "as many as the other options may need",
	 .help = "take negatives from the nearest N texts"},
	{CHOICE_ROW(absolute_margin, "X"), .range = "0..",
	 .help = "leave out texts whose score plus this exceeds that of the lowest positive"},
	{CHOICE_ROW(relative_margin, "X"), .range = "0..1",
	 .help = "the same as a share of that score: with 0.05, negatives have at most 95 % of it"},
	{CHOICE_ROW(max_score, "X"), .help = "leave out texts with a higher score"},
	{CHOICE_ROW(min_score, "X"), .help = "leave out texts with a lower score"},
	{ROW(reranker, ROLE_PLACE, "FOLDER"),
	 .help = "model of --task reranking whose scores replace those of the vectors: the rules above then apply to them"},
	{ROW(sampling, ROLE_RESULT, "HOW"), .range = "top|random", .fallback = "top", .alias = "sampling_strategy",
	 .help = "take the nearest of the remaining texts, or draw from them"},
	{CHOICE_ROW(seed, "N"), .range = "0..", .fallback = "42", .help = "seed of --sampling random"},
	{.help = "Output"},
	{ROW(out, ROLE_PLACE, "FILE"), .help = "training rows, as JSON lines"},
	{ROW(format, ROLE_RESULT, "NAME"), .range = "tuple|triplet", .fallback = "tuple", .alias = "output_format",
	 .synonym = "n-tuple=tuple",
	 .help = "tuple: a row for each pair, with a list of negatives; triplet: a row for each negative"},
	{ROW(output_scores, ROLE_RESULT, NULL), .fallback = "false",
	 .help = "add the scores of a row's positive and negatives, as \"scores\""},
	{.help = "Machine"},
	{ROW(micro_batch_tokens, ROLE_RUN, "N"), .range = "128..1048576", .fallback = "4096",
	 .help = "maximum number of tokens computed at a time"},
	{.group = device_rows, .field = FIELD(device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text mine_text = {
	.name = "mine",
	.synopsis = "--train FILE... (--model FOLDER | --query_vectors FILE.npy --corpus_vectors FILE.npy) --out FILE [options]",
	.summary = "find hard negatives for pairs of texts",
	.description =
		"Takes the first text of each pair as a query, finds the texts of a corpus with the nearest vectors, by an "
		"exact search, and leaves out those that belong to the query and those that the rules exclude. The rest are "
		"hard negatives: texts that the model considers similar. The output is training data for finetune --task "
		"embedding. Vectors in files are mapped, not read into memory; they belong to the rows of --train and to the "
		"texts of --corpus or, without it, to the second texts. Vectors that --model makes are kept in memory.",
	.examples = "bertc mine --model runs/vectors --train pairs.tsv --corpus corpus.txt --relative_margin 0.05 --out "
		    "triplets.jsonl\tthree negatives per pair, none nearer than 95% of the positive\n",
};

/* ---- The texts ---- */

struct mine {
	const struct mine_settings *settings;
	struct bad_records bad;
	struct example_set pairs;
	struct text_list corpus;   /* its rows, and then texts of the pairs that it lacks */
	int64_t corpus_rows;       /* those of files */
	struct string_index index; /* text of the corpus -> number of its document */
	int32_t *documents;        /* [document_count] row of each distinct text */
	int64_t document_count, document_capacity;
	int32_t *queries, *query_of; /* [query_count] first pair of each distinct first text; [pairs] its query */
	int64_t query_count;
	int64_t *starts;    /* [query_count + 1] where a query's positives begin: */
	int32_t *positives; /* [pairs] documents */
	double *scores;     /* [pairs] of those, with their queries; NaN: unknown */
	int64_t most_positives;
	struct text_search search;
	/* What was found. */
	int64_t most;
	struct nearest_row *found; /* [query_count, most] */
};

static enum status add_document(struct mine *mine, int64_t row)
{
	int64_t number;
	TRY(string_index_add(&mine->index, mine->corpus.texts[row], mine->document_count, &number));
	if (number != mine->document_count)
		return OK;
	TRY(memory_grow(&mine->documents, &mine->document_capacity, mine->document_count + 1, sizeof *mine->documents,
			"a corpus"));
	mine->documents[mine->document_count++] = (int32_t)row;
	return OK;
}

static enum status read_corpus(struct mine *mine)
{
	const struct mine_settings *settings = mine->settings;
	for (int64_t i = 0; i < settings->corpus.count; i++)
		TRY(text_list_read(&mine->corpus, settings->corpus.values[i], settings->corpus_column));
	mine->corpus_rows = settings->corpus.count > 0 ? mine->corpus.count : mine->pairs.count;
	for (int64_t i = 0; i < mine->pairs.count; i++)
		if (settings->corpus.count == 0 || !settings->search.corpus_vectors)
			TRY(text_list_add(&mine->corpus, mine->pairs.examples[i].pair, NULL));
	if (mine->corpus.count > INT32_MAX || mine->pairs.count > INT32_MAX)
		return error_set(ERR_USAGE, "more than %d texts", INT32_MAX);
	for (int64_t row = 0; row < mine->corpus.count; row++)
		TRY(add_document(mine, row));
	return OK;
}

/* Numbers the distinct first texts, and puts the positives of each together. */
static enum status group_pairs(struct mine *mine)
{
	struct string_index index = {0};
	char number[FORMAT_BYTES];
	int64_t count = mine->pairs.count, missing = 0;
	enum status status;
	TRY_GOTO(memory_new(&mine->queries, count, sizeof *mine->queries, "pairs"), done);
	TRY_GOTO(memory_new(&mine->query_of, count, sizeof *mine->query_of, "pairs"), done);
	TRY_GOTO(memory_new(&mine->positives, count, sizeof *mine->positives, "pairs"), done);
	TRY_GOTO(memory_new(&mine->scores, count, sizeof *mine->scores, "pairs"), done);
	TRY_GOTO(memory_new(&mine->starts, count + 2, sizeof *mine->starts, "pairs"), done);
	for (int64_t i = 0; i < count; i++) {
		int64_t query;
		TRY_GOTO(string_index_add(&index, mine->pairs.examples[i].text, mine->query_count, &query), done);
		if (query == mine->query_count)
			mine->queries[mine->query_count++] = (int32_t)i;
		mine->query_of[i] = (int32_t)query;
		mine->starts[query + 2]++;
	}
	for (int64_t q = 0; q < mine->query_count; q++) {
		mine->most_positives = mine->starts[q + 2] > mine->most_positives ? mine->starts[q + 2] : mine->most_positives;
		mine->starts[q + 2] += mine->starts[q + 1];
	}
	for (int64_t i = 0; i < count; i++) {
		int64_t document = string_index_find(&mine->index, mine->pairs.examples[i].pair);
		mine->positives[mine->starts[mine->query_of[i] + 1]++] = (int32_t)document;
		missing += document < 0;
	}
	if (missing > 0) {
		status = error_set(ERR_DATA, "%s a second text that is not in the corpus, so that it has no vector",
				   format_counted(number, missing, "pair has", "pairs have"));
		error_hint("add them to the corpus and to --corpus_vectors, or have --model make the vectors");
	}
done:
	string_index_release(&index);
	return status;
}

static enum status read_texts(struct mine *mine)
{
	const struct mine_settings *settings = mine->settings;
	const struct ranking_options options = {.given = settings->columns, .bad = &mine->bad};
	enum ranking_form form = RANKING_PAIRS;
	for (int64_t i = 0; i < settings->train.count; i++)
		TRY(ranking_file_read(&mine->pairs, settings->train.values[i], &options, &form));
	if (form == RANKING_SCORED)
		return error_hinted(error_set(ERR_USAGE, "'%s' has pairs with scores, which do not say what belongs together",
					      settings->train.values[0]),
				    "keep the pairs with high scores, and leave out the column of scores");
	TRY(read_corpus(mine));
	return group_pairs(mine);
}

/* ---- Vectors ---- */

static enum status get_vectors(struct mine *mine)
{
	const char **texts;
	TRY(memory_new(&texts, mine->query_count + mine->document_count, sizeof *texts, "texts"));
	for (int64_t q = 0; q < mine->query_count; q++)
		texts[q] = mine->pairs.examples[mine->queries[q]].text;
	for (int64_t d = 0; d < mine->document_count; d++)
		texts[mine->query_count + d] = mine->corpus.texts[mine->documents[d]];
	const struct searched_texts queries = {"pairs", texts, mine->query_count, mine->pairs.count, mine->queries};
	const struct searched_texts documents = {"texts in the corpus", texts + mine->query_count, mine->document_count,
						 mine->corpus_rows, mine->documents};
	enum status status = text_search_vectors(&mine->search, &queries, &documents);
	free(texts);
	return status;
}

/* ---- The search, and what is taken from it ---- */

static bool has_rules(const struct negative_choice *choice)
{
	return !isnan(choice->absolute_margin) || !isnan(choice->relative_margin) || !isnan(choice->max_score) ||
	       !isnan(choice->min_score);
}

static enum status search(struct mine *mine, int64_t range_max)
{
	const struct vectors *queries = &mine->search.queries.vectors, *documents = &mine->search.documents.vectors;
	/* As many candidates remain even if all positives, and the text itself, are among the nearest. */
	mine->most = range_max + mine->most_positives + 1;
	mine->most = mine->most < mine->document_count ? mine->most : mine->document_count;
	TRY(memory_new(&mine->found, mine->query_count * mine->most, sizeof *mine->found, "the nearest texts"));
	TRY(text_search_nearest(&mine->search, mine->most, mine->found));
	for (int64_t q = 0; q < mine->query_count; q++)
		for (int64_t i = mine->starts[q]; i < mine->starts[q + 1]; i++)
			mine->scores[i] = vectors_similarity(mine->settings->search.similarity, vector_at(queries, q),
							     vector_at(documents, mine->positives[i]), queries->width);
	return OK;
}

static const char *document_text(const struct mine *mine, int32_t document)
{
	return mine->corpus.texts[mine->documents[document]];
}

/* Pairs scored at a time by the reranker. */
#define RERANK_AT_ONCE 8192

/* Replaces the scores of query [first, end) and their positives by those of the reranker. */
static enum status rerank_queries(struct mine *mine, int64_t first, int64_t end, struct text_input *pairs, double *scores)
{
	const struct text_pass pass = {.model = &mine->search.reranker};
	int64_t count = 0;
	for (int64_t q = first; q < end; q++) {
		const char *query = mine->pairs.examples[mine->queries[q]].text;
		for (int64_t i = 0; i < mine->most; i++)
			if (mine->found[q * mine->most + i].row >= 0)
				pairs[count++] = (struct text_input){
					.text = query, .pair = document_text(mine, mine->found[q * mine->most + i].row)};
		for (int64_t i = mine->starts[q]; i < mine->starts[q + 1]; i++)
			pairs[count++] = (struct text_input){.text = query, .pair = document_text(mine, mine->positives[i])};
	}
	TRY(text_pass_scores(&pass, pairs, count, scores));
	for (int64_t q = first; q < end; q++) {
		for (int64_t i = 0; i < mine->most; i++)
			if (mine->found[q * mine->most + i].row >= 0)
				mine->found[q * mine->most + i].score = (float)*scores++;
		for (int64_t i = mine->starts[q]; i < mine->starts[q + 1]; i++)
			mine->scores[i] = *scores++;
	}
	return OK;
}

static enum status rerank(struct mine *mine)
{
	int64_t room = mine->most + mine->most_positives, step = RERANK_AT_ONCE / room > 0 ? RERANK_AT_ONCE / room : 1;
	struct text_input *pairs = NULL;
	struct progress progress;
	double *scores = NULL;
	enum status status;
	TRY(text_search_open_reranker(&mine->search, mine->settings->reranker));
	progress_start(&progress, "reranking", 0, mine->query_count, "queries");
	TRY_GOTO(memory_new(&pairs, step * room, sizeof *pairs, "pairs"), done);
	TRY_GOTO(memory_new(&scores, step * room, sizeof *scores, "scores"), done);
	for (int64_t q = 0; q < mine->query_count; q += step) {
		int64_t end = q + step < mine->query_count ? q + step : mine->query_count;
		TRY_GOTO(rerank_queries(mine, q, end, pairs, scores), done);
		progress_update(&progress, end, NULL);
	}
done:
	progress_finish(&progress);
	free(pairs);
	free(scores);
	return status;
}

/* ---- Writing ---- */

struct writing {
	struct file_writer *writer;
	struct buffer text;
	struct negative_counts counts;
	int64_t rows, negatives, short_queries;
	double positive_sum, negative_sum; /* of scores */
};

static void put_row(const struct mine *mine, const struct example_text *pair, double score,
		    const struct negative_candidate *negatives, int64_t count, struct buffer *out)
{
	struct json_writer writer = {.out = out};
	bool list = mine->settings->format == ROWS_TUPLE;
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "anchor", pair->text);
	json_put_string(&writer, "positive", pair->pair);
	if (list)
		json_open(&writer, "negatives", '[');
	for (int64_t i = 0; i < count; i++)
		json_put_string(&writer, list ? NULL : "negative", document_text(mine, negatives[i].document));
	if (list)
		json_close(&writer);
	if (mine->settings->output_scores) {
		json_open(&writer, "scores", '[');
		json_put_float(&writer, NULL, (float)score);
		for (int64_t i = 0; i < count; i++)
			json_put_float(&writer, NULL, (float)negatives[i].score);
		json_close(&writer);
	}
	json_close(&writer);
	buffer_char(out, '\n');
}

/* Of pair number `i`, whose query has these negatives. */
static enum status write_pair(const struct mine *mine, int64_t i, double score, const struct negative_candidate *negatives,
			      int64_t count, struct writing *w)
{
	int64_t step = mine->settings->format == ROWS_TUPLE ? count : 1;
	buffer_clear(&w->text);
	for (int64_t n = 0; n < count; n += step, w->rows++)
		put_row(mine, &mine->pairs.examples[i], score, negatives + n, step, &w->text);
	for (int64_t n = 0; n < count; n++)
		w->negative_sum += negatives[n].score;
	w->positive_sum += score * (double)count;
	w->negatives += count;
	TRY(buffer_status(&w->text));
	return file_writer_write(w->writer, w->text.data, w->text.size);
}

/* The negatives of each query: chosen [query_count, num_negatives], and how many of them. */
static enum status choose(const struct mine *mine, const struct negative_rules *rules, struct negative_candidate *chosen,
			  int32_t *counts, struct writing *w)
{
	struct negative_candidate *candidates;
	TRY(memory_new(&candidates, mine->most, sizeof *candidates, "candidates"));
	for (int64_t q = 0; q < mine->query_count; q++) {
		const char *query = mine->pairs.examples[mine->queries[q]].text;
		struct query_positives positives = {.documents = mine->positives + mine->starts[q],
						    .count = mine->starts[q + 1] - mine->starts[q],
						    .lowest = INFINITY,
						    .self = (int32_t)string_index_find(&mine->index, query)};
		int64_t count = 0;
		for (int64_t i = mine->starts[q]; i < mine->starts[q + 1]; i++)
			positives.lowest = fmin(positives.lowest, mine->scores[i]);
		for (int64_t i = 0; i < mine->most; i++) {
			const struct nearest_row *row = &mine->found[q * mine->most + i];
			if (row->row >= 0)
				candidates[count++] = (struct negative_candidate){(double)row->score, row->row};
		}
		counts[q] = (int32_t)negatives_choose(rules, q, &positives, candidates, count, &w->counts);
		memcpy(chosen + q * rules->count, candidates, (size_t)counts[q] * sizeof *chosen);
		w->short_queries += counts[q] < rules->count;
	}
	free(candidates);
	return OK;
}

static void log_results(const struct mine *mine, const struct writing *w)
{
	char negatives[FORMAT_BYTES], pairs[FORMAT_BYTES], rows[FORMAT_BYTES];
	log_note("%s negatives for %s, in %s of '%s'", format_count(negatives, w->negatives),
		 format_counted(pairs, mine->pairs.count, "pair", "pairs"), format_counted(rows, w->rows, "row", "rows"),
		 mine->settings->out);
	if (w->negatives > 0)
		log_note("mean score: %.4f of positives, %.4f of negatives", w->positive_sum / (double)w->negatives,
			 w->negative_sum / (double)w->negatives);
	const struct negative_counts *counts = &w->counts;
	if (counts->absolute_margin + counts->relative_margin + counts->max_score + counts->min_score > 0)
		log_note("left out: %" PRId64 " by --absolute_margin, %" PRId64 " by --relative_margin, %" PRId64
			 " by --max_score, %" PRId64 " by --min_score",
			 counts->absolute_margin, counts->relative_margin, counts->max_score, counts->min_score);
	if (w->short_queries > 0)
		log_warning("first texts with fewer than %" PRId64 " negatives: %" PRId64 " of %" PRId64
			    "; a larger --range_max, or weaker rules, may find more",
			    mine->settings->choice.num_negatives, w->short_queries, mine->query_count);
}

static enum status write_rows(const struct mine *mine, const struct negative_rules *rules)
{
	struct writing w = {.rows = 0};
	struct negative_candidate *chosen = NULL;
	int64_t *next = NULL; /* [query_count] place of its next pair's positive */
	int32_t *counts = NULL;
	enum status status;
	TRY_GOTO(memory_new(&chosen, mine->query_count * rules->count, sizeof *chosen, "negatives"), done);
	TRY_GOTO(memory_new(&counts, mine->query_count, sizeof *counts, "negatives"), done);
	TRY_GOTO(memory_new(&next, mine->query_count, sizeof *next, "negatives"), done);
	memcpy(next, mine->starts, (size_t)mine->query_count * sizeof *next);
	TRY_GOTO(choose(mine, rules, chosen, counts, &w), done);
	TRY_GOTO(file_writer_open(&w.writer, mine->settings->out), done);
	for (int64_t i = 0; i < mine->pairs.count; i++) {
		int32_t q = mine->query_of[i];
		TRY_GOTO(write_pair(mine, i, mine->scores[next[q]++], chosen + q * rules->count, counts[q], &w), done);
	}
	status = file_writer_commit(w.writer);
	w.writer = NULL;
	if (status == OK)
		log_results(mine, &w);
done:
	if (w.writer)
		file_writer_abandon(w.writer);
	buffer_release(&w.text);
	free(chosen);
	free(counts);
	free(next);
	return status;
}

/* ---- The command ---- */

/* Rules that are not given leave out nothing. */
static enum status complete_mine(struct options *options)
{
	struct negative_choice *choice = &((struct mine_settings *)options->settings)->choice;
	double *values[] = {&choice->absolute_margin, &choice->relative_margin, &choice->max_score, &choice->min_score};
	static const char *const names[] = {"absolute_margin", "relative_margin", "max_score", "min_score"};
	for (int i = 0; i < 4; i++)
		if (!options_given(options, names[i]))
			*values[i] = NAN;
	return OK;
}

static enum status check_mine(struct options *options)
{
	const struct mine_settings *settings = options->settings;
	const struct negative_choice *choice = &settings->choice;
	enum status status;
	TRY(options_require(options, "train", "pairs of texts that belong together: bertc mine --train pairs.tsv"));
	TRY(options_require(options, "out", "the file to write: --out triplets.jsonl"));
	TRY(saved_model_check(options, settings->model));
	TRY(saved_model_check(options, settings->reranker));
	status = text_search_check(&settings->search, settings->model);
	if (status == OK && choice->range_max > 0 && choice->range_max - choice->range_min < choice->num_negatives)
		status = error_set(ERR_USAGE,
				   "--num_negatives %" PRId64 " cannot be taken from --range_min %" PRId64
				   " to --range_max %" PRId64,
				   choice->num_negatives, choice->range_min, choice->range_max);
	return options_blame(options, status);
}

static enum status mine_all(struct mine *mine)
{
	const struct negative_choice *choice = &mine->settings->choice;
	struct negative_rules rules = {.max_score = choice->max_score,
				       .min_score = choice->min_score,
				       .absolute_margin = choice->absolute_margin,
				       .relative_margin = choice->relative_margin,
				       .range_min = choice->range_min,
				       .range_max = choice->range_max,
				       .count = choice->num_negatives,
				       .random = mine->settings->sampling == SAMPLE_RANDOM,
				       .seed = (uint64_t)choice->seed};
	TRY(read_texts(mine));
	/* As in sentence-transformers: rules may leave out most of the nearest texts. */
	if (rules.range_max == 0)
		rules.range_max = rules.range_min + rules.count * (has_rules(choice) ? 10 : 1) + mine->most_positives;
	TRY(text_search_open(&mine->search, mine->settings->model));
	TRY(get_vectors(mine));
	TRY(search(mine, rules.range_max));
	if (mine->settings->reranker)
		TRY(rerank(mine));
	return write_rows(mine, &rules);
}

static enum status run_mine(struct options *options)
{
	const struct mine_settings *settings = options->settings;
	struct mine mine = {.settings = settings,
			    .search = {.options = &settings->search,
				       .of_models = {.device = settings->device,
						     .batch_tokens = settings->micro_batch_tokens,
						     .max_seq_length = settings->max_seq_length,
						     .no_blanks = true,
						     .tool = "mine"}}};
	stop_install();
	enum status status = mine_all(&mine);
	text_search_close(&mine.search);
	free(mine.found);
	free(mine.documents);
	free(mine.queries);
	free(mine.query_of);
	free(mine.starts);
	free(mine.positives);
	free(mine.scores);
	string_index_release(&mine.index);
	text_list_release(&mine.corpus);
	example_set_release(&mine.pairs);
	return status;
}

const struct command command_mine = {
	.text = &mine_text,
	.options = mine_options,
	.settings_bytes = sizeof(struct mine_settings),
	.complete = complete_mine,
	.check = check_mine,
	.run = run_mine,
};
