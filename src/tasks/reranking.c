/* Rerankers (cross-encoders): how well a text answers a query, with both read together. The head is one output on the pooler:
 * BertForSequenceClassification, as in sentence-transformers' CrossEncoder. It is trained with binary cross entropy, or on the
 * texts of a query at once: listwise softmax cross entropy (as the rerankers of FlagEmbedding), ListNet (Cao et al. 2007), or
 * MarginMSE (Hofstaetter et al. 2020). */
#include "tasks/reranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/string_index.h"
#include "tasks/labels.h"
#include "tasks/measures.h"
#include "tasks/ranking_file.h"
#include "tasks/results.h"
#include "tasks/task.h"
#include "tasks/words_alone.h"

/* ---- Settings ---- */

/* clang-format off */
const struct option reranking_rows[] = {
	{.help = "Rerankers"},
	{OPTION_ROW(struct reranking_settings, ranking_loss, ROLE_RESULT, "NAME"),
	 .range = "binary|listwise|listnet|margin_mse", .fallback = "binary",
	 .help = "loss for rerankers: binary cross entropy of each pair; or over the texts of a query, listwise: cross entropy "
	 "of their softmax, listnet: the same against the softmax of their scores, margin_mse: squared difference of margins to "
	 "the first text between the model's outputs and the scores"},
	{0},
};
/* clang-format on */

static enum ranking_loss loss_of(const struct task_state *state)
{
	return ((const struct reranking_settings *)state->own)->ranking_loss;
}

/* ---- Reading ---- */

/* Numbers the distinct queries and counts them; queries[i] (may be NULL) is the query of example i. */
static enum status find_queries(const struct example_set *set, int64_t *queries, int64_t *out_count)
{
	struct string_index index = {0};
	enum status status = OK;
	*out_count = 0;
	for (int64_t i = 0; i < set->count && status == OK; i++) {
		int64_t query;
		status = string_index_add(&index, set->examples[i].text, *out_count, &query);
		*out_count += query == *out_count;
		if (queries)
			queries[i] = query;
	}
	string_index_release(&index);
	return status;
}

static enum status read_sets(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	const struct task_settings *settings = &state->settings;
	struct ranking_options options = {.given = settings->columns,
					  .trained = settings->trained,
					  .negatives = settings->negative_columns,
					  .scores_all = true,
					  .scores_rows = set->use == TASK_TRAIN && loss_of(state) != RANKING_BINARY,
					  .needs_scores = set->use != TASK_PREDICT,
					  .allows_empty = set->use == TASK_PREDICT,
					  .bad = settings->bad,
					  .piece = settings->piece};
	enum ranking_form form = RANKING_SCORED;
	int64_t queries;
	for (int64_t i = 0; i < count; i++)
		TRY(ranking_file_read(&set->examples, paths[i], &options, &form));
	set->has_labels = form == RANKING_SCORED;
	if (set->use == TASK_SCORE && !state->decides) {
		TRY(find_queries(&set->examples, NULL, &queries));
		state->decides = queries == set->examples.count ? "spearmanr" : "ndcg@10";
	}
	if (set->use == TASK_TRAIN) {
		state->settings.trained = set->examples.columns;
		state->pairs = true;
	}
	return OK;
}

/* ---- Encoding ---- */

static enum status read_score(const struct task_state *state, const struct task_set *set, const struct example_text *example,
			      float *out)
{
	enum ranking_loss loss = loss_of(state);
	double score;
	TRY(label_number(example->label, example->file, example->line, &score));
	*out = (float)score;
	if (loss == RANKING_LISTNET || loss == RANKING_MARGINS)
		return OK;
	if (score >= 0 && (score <= 1 || set->use != TASK_TRAIN || loss == RANKING_LISTWISE))
		return OK;
	if (loss == RANKING_LISTWISE)
		return error_hinted(error_set(ERR_DATA, "'%s', line %lld: the score %g is below 0", example->file,
					      (long long)example->line, score),
				    "--ranking_loss listnet takes any numbers");
	return error_hinted(error_set(ERR_DATA, "'%s', line %lld: the score is %g; a reranker learns scores from 0 to 1",
				      example->file, (long long)example->line, score),
			    "divide the scores by the largest; --ranking_loss listnet or margin_mse learns any numbers");
}

struct encoding {
	struct task_state *state;
	struct task_set *set;
	struct tokens scratch[2];
	int32_t *ids;
	bool lists;           /* the texts of a query, if they stand one after the other, are one example */
	const char *previous; /* the query of the example before */
};

static enum status add_example(void *context, int64_t number)
{
	struct encoding *e = context;
	const struct example_text *example = &e->set->examples.examples[number];
	const struct task_settings *settings = &e->state->settings;
	bool known = e->set->has_labels && example->label;
	struct encoded_text text;
	float score = 0;
	if (known)
		TRY(task_label_read(e->set, number, read_score(e->state, e->set, example, &score)));
	known = known && example->label;
	TRY(task_encode_text(settings->tokenizer, e->scratch, example->text, example->pair, settings->max_seq_length, e->ids,
			     &text));
	if (!e->lists || !e->previous || strcmp(e->previous, example->text) != 0)
		TRY(labeled_begin(&e->set->encoded));
	e->previous = example->text;
	TRY(labeled_sequence(&e->set->encoded, e->ids, text.count, text.second));
	e->set->cut_count += text.cut > 0;
	e->set->cut_tokens += text.cut;
	return labeled_item(&e->set->encoded, 0, NULL, NULL, &score, known ? 1 : 0);
}

/* Turns the scores of a list into what its loss takes, and weights so that lists count alike; for margins, so do texts but the
 * first. A list without a right text teaches nothing. */
static void make_targets(enum ranking_loss loss, float *scores, float *weights, int64_t count)
{
	double most = -INFINITY, sum = 0;
	for (int64_t i = 0; i < count; i++)
		most = fmax(most, (double)scores[i]);
	for (int64_t i = 0; i < count; i++)
		sum += loss == RANKING_LISTNET ? exp((double)scores[i] - most) : (double)scores[i];
	for (int64_t i = 0; i < count; i++) {
		weights[i] = loss == RANKING_MARGINS ? i > 0 : i == 0 && count > 1 && sum > 0;
		if (loss == RANKING_LISTNET)
			scores[i] = (float)(exp((double)scores[i] - most) / sum);
		else if (loss == RANKING_LISTWISE && sum > 0)
			scores[i] = (float)((double)scores[i] / sum);
	}
}

static enum status make_lists(const struct task_state *state, struct task_set *set)
{
	struct labeled_set *encoded = &set->encoded;
	struct labeled_items *items = &encoded->items[0];
	int64_t teaching = 0;
	for (int64_t e = 0; e < encoded->example_count; e++) {
		int64_t first = items->starts[e], count = items->starts[e + 1] - first;
		make_targets(loss_of(state), items->numbers + first, items->weights + first, count);
		teaching += count > 1 && (items->weights[first] > 0 || items->weights[first + 1] > 0);
	}
	if (teaching == 0)
		return error_hinted(error_set(ERR_DATA,
					      "'%s': no query has several texts one after the other, of which one is right",
					      set->examples.examples[0].file),
				    "sort the rows by their queries, give negatives, or use --ranking_loss binary");
	log_note("%lld pairs are %lld lists of the texts of a query, of at most %d; %lld can be learned from",
		 (long long)encoded->sequence_count, (long long)encoded->example_count, encoded->most_sequences,
		 (long long)teaching);
	return OK;
}

static enum status encode(struct task_state *state, struct task_set *set)
{
	struct encoding e = {.state = state, .set = set, .lists = set->use == TASK_TRAIN && loss_of(state) != RANKING_BINARY};
	enum status status;
	TRY_GOTO(memory_new(&e.ids, state->settings.max_seq_length, sizeof *e.ids, "a text's tokens"), done);
	labeled_form(&set->encoded, 0, 1, 0, true);
	status = task_add_examples(state, set, add_example, &e);
	if (status == OK && e.lists)
		status = make_lists(state, set);
done:
	tokens_release(&e.scratch[0]);
	tokens_release(&e.scratch[1]);
	free(e.ids);
	return status;
}

static void heads(const struct task_state *state, struct model_heads *out)
{
	static const enum head_loss losses[] = {[RANKING_BINARY] = LOSS_BINARY,
						[RANKING_LISTWISE] = LOSS_SHARES,
						[RANKING_LISTNET] = LOSS_SHARES,
						[RANKING_MARGINS] = LOSS_MARGINS};
	*out = (struct model_heads){.architecture = "BertForSequenceClassification", .pooler = true, .count = 1};
	out->head[0] = (struct head){
		.input = INPUT_FIRST_ROW,
		.pooled = true,
		.drops = true,
		.outputs = 1,
		.loss = losses[loss_of(state)],
		.coefficient = 1,
		.name = "classifier",
	};
}

/* ---- Scores ---- */

/* Groups the examples by query: those of query q are order[starts[q]] to order[starts[q + 1] - 1]. */
static void group(const int64_t *queries, int64_t count, int64_t query_count, int64_t *starts, int64_t *order)
{
	for (int64_t i = 0; i < count; i++)
		starts[queries[i] + 1]++;
	for (int64_t q = 0; q < query_count; q++)
		starts[q + 1] += starts[q];
	for (int64_t i = count - 1; i >= 0; i--) /* each group's end moves down to its beginning */
		order[--starts[queries[i] + 1]] = i;
	for (int64_t q = 0; q < query_count; q++)
		starts[q] = starts[q + 1];
	starts[query_count] = count;
}

/* The loss of a query's texts as in training, and in *weight what it counts; for margins, the best of them is taken as the first.
 */
static double list_loss(enum ranking_loss loss, const double *outputs, const double *gold, int64_t count, double *weight)
{
	double most = -INFINITY, outs = 0, golds = 0, sum = 0;
	int64_t best = 0;
	for (int64_t i = 0; i < count; i++) {
		most = fmax(most, outputs[i]);
		best = gold[i] > gold[best] ? i : best;
	}
	double top = gold[best];
	for (int64_t i = 0; i < count; i++) {
		outs += exp(outputs[i] - most);
		golds += loss == RANKING_LISTNET ? exp(gold[i] - top) : gold[i];
	}
	*weight = loss == RANKING_MARGINS ? (double)(count - 1) : golds > 0;
	for (int64_t i = 0; *weight != 0 && i < count; i++) {
		double off = outputs[best] - outputs[i] - (top - gold[i]);
		double share = (loss == RANKING_LISTNET ? exp(gold[i] - top) : gold[i]) / golds;
		sum += loss == RANKING_MARGINS ? off * off : share * (most + log(outs) - outputs[i]);
	}
	return sum;
}

/* `outputs` NULL: all scores are equal. As ranking measures are averaged over all orders of equal scores, this gives the expected
 * values of a random order. */
static enum status measure(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			   struct measures *out)
{
	int64_t count = set->encoded.example_count, query_count = 0;
	int64_t *queries = NULL, *starts = NULL, *order = NULL;
	double *gold = NULL, *predicted = NULL;
	enum status status;
	TRY_GOTO(memory_new(&queries, count, sizeof *queries, "a ranking"), done);
	TRY_GOTO(memory_new(&order, count, sizeof *order, "a ranking"), done);
	TRY_GOTO(memory_new(&starts, count + 2, sizeof *starts, "a ranking"), done);
	TRY_GOTO(memory_new(&gold, count, sizeof *gold, "a ranking"), done);
	TRY_GOTO(memory_new(&predicted, count, sizeof *predicted, "a ranking"), done);
	TRY_GOTO(find_queries(&set->examples, queries, &query_count), done);
	group(queries, count, query_count, starts, order);
	for (int64_t i = 0; i < count; i++) {
		gold[i] = set->encoded.items[0].numbers[order[i]];
		predicted[i] = outputs ? task_output(outputs, order[i])[0] : 0;
	}
	double loss = 0, weights = 0, weight;
	for (int64_t q = 0; outputs && loss_of(state) != RANKING_BINARY && q < query_count; q++) {
		int64_t first = starts[q];
		loss += list_loss(loss_of(state), predicted + first, gold + first, starts[q + 1] - first, &weight);
		weights += weight;
	}
	if (weights > 0) /* the heads have computed it text by text */
		out->item[0].value = loss / weights;
	if (query_count < count)
		TRY_GOTO(measure_rankings(predicted, gold, starts, query_count, out), done);
	status = outputs ? measure_correlations(gold, predicted, count, out) : OK;
done:
	free(queries);
	free(order);
	free(starts);
	free(gold);
	free(predicted);
	return status;
}

static enum status score(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			 struct measures *out)
{
	return measure(state, set, outputs, out);
}

/* A random order, and what words alone give. */
static enum status baseline(const struct task_state *state, const struct task_set *train, const struct task_set *set,
			    struct measures *out)
{
	const char *decides = task_decides(state);
	struct measures words = {0};
	(void)train;
	TRY(measure(state, set, NULL, out));
	TRY(words_alone_cosines(state, set, &words));
	if (measures_find(&words, decides))
		measures_add(out, &(struct measure){.name = "words_alone", .value = measures_get(&words, decides)});
	return OK;
}

/* ---- Results ---- */

static enum status write_results(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 const char *folder)
{
	char path[PATH_BYTES];
	float *scores;
	enum status status;
	(void)set;
	TRY(memory_new(&scores, outputs->count, sizeof *scores, "results"));
	for (int64_t i = 0; i < outputs->count; i++)
		scores[i] = (float)task_score(state, task_output(outputs, i)[0]);
	TRY_GOTO(path_join(path, folder, "test_results.tsv"), done);
	status = results_write_values(path, scores, outputs->count, 1);
done:
	free(scores);
	return status;
}

static enum status put(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
		       int64_t example, struct buffer *out)
{
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '{');
	example_put_id(&set->examples, example, &writer);
	json_put_double(&writer, "score", task_score(state, task_output(outputs, example)[0]));
	json_close(&writer);
	return buffer_status(out);
}

static enum status put_tsv(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			   int64_t example, struct buffer *out)
{
	(void)set;
	results_put_float(out, (float)task_score(state, task_output(outputs, example)[0]));
	return buffer_status(out);
}

const struct task task_reranking = {
	.name = "reranking",
	.other_names = (const char *const[]){"text-ranking", NULL},
	.summary = "how well a text answers a query, from 0 to 1",
	.architecture = "BertForSequenceClassification",
	.input = TASK_INPUT_PAIR,
	.target = TARGET_NUMBER,
	.decides = "ndcg@10",
	.view = VIEW_RANKINGS,
	.streams = true,
	.output_is_logit = true,
	.read = read_sets,
	.take = task_take_texts,
	.encode = encode,
	.heads = heads,
	.score = score,
	.baseline = baseline,
	.write = write_results,
	.put = put,
	.put_tsv = put_tsv,
	.settings_bytes = sizeof(struct reranking_settings),
	.exclusive = (const char *const[]){"ranking_loss", NULL},
	.options = reranking_rows,
};
