/* Answers that are spans of a paragraph: files in the form of SQuAD (tasks/squad/squad_file.h). Each token gets two numbers, for
 * starting and for ending the answer: BertForQuestionAnswering. An example is a window of a paragraph, after its question
 * (tasks/squad/squad_features.h); the windows of a question together give its answer (tasks/squad/squad_answers.h). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/results.h"
#include "tasks/squad.h"
#include "tasks/squad/squad_answers.h"
#include "tasks/squad/squad_compare.h"
#include "tasks/squad/squad_score.h"
#include "tasks/task.h"

/* ---- Settings ---- */

#define ROW(member, value) OPTION_ROW(struct squad_settings, member, ROLE_RESULT, value)

/* clang-format off */
const struct option squad_rows[] = {
	{.help = "Questions about paragraphs"},
	{ROW(version_2_with_negative, NULL), .fallback_text = "false", .alias = "version_2",
	 .help = "SQuAD 2.0: a question may have no answer in its paragraph"},
	{ROW(doc_stride, "N"), .range = "1..65536", .fallback_text = "128",
	 .help = "a paragraph too long for one sequence, or a text with --long_texts, is read in windows that begin this many "
	 "tokens apart"},
	{ROW(max_query_length, "N"), .range = "1..65536", .fallback_text = "64",
	 .help = "maximum number of tokens per question; longer ones are truncated"},
	{ROW(n_best_size, "N"), .range = "1..1000", .fallback_text = "20",
	 .help = "number of starts and ends per window to combine, and of answers in nbest_predictions.json"},
	{ROW(max_answer_length, "N"), .range = "1..65536", .fallback_text = "30", .help = "maximum number of tokens per answer"},
	{ROW(null_score_diff_threshold, "X"), .fallback_text = "0",
	 .help = "SQuAD 2.0: answer \"no answer\" if its score exceeds that of the best answer by more than this"},
	{ROW(scorer, "WHOSE"), .range = "auto|squad|cmrc", .fallback_text = "auto",
	 .help = "measures of SQuAD, or of CMRC 2018 and DRCD; auto: the latter where the answers are Chinese"},
	{OPTION_ROW(struct squad_settings, find_threshold, ROLE_RUN, NULL), .fallback = "false",
	 .help = "SQuAD 2.0: choose null_score_diff_threshold on the first dev set after training"},
	{0},
};

const struct option squad_answer_rows[] = {
	{.help = "Questions about paragraphs"},
	{.group = squad_rows, .fallback_text = "as in training",
	 .only = "version_2_with_negative doc_stride max_query_length n_best_size max_answer_length null_score_diff_threshold "
	 "scorer"},
	{0},
};
/* clang-format on */

static struct squad_settings *own_of(const struct task_state *state)
{
	return state->own;
}

/* Google's defaults apply where nothing is given. */
static int32_t given_or(int64_t value, int32_t otherwise)
{
	return value > 0 ? (int32_t)value : otherwise;
}

static const struct data_names *squad_data_names(const void *own)
{
	static const struct data_names version_1 = {{"train-v1.1.json", "train.json"},
						    {"dev-v1.1.json", "dev.json"},
						    {"test.json"}},
				       version_2 = {
					       {"train-v2.0.json", "train.json"}, {"dev-v2.0.json", "dev.json"}, {"test.json"}};
	const struct squad_settings *settings = own;
	return settings->version_2_with_negative ? &version_2 : &version_1;
}

static enum status squad_settle(struct task_state *state, const struct task_beginning *beginning)
{
	const struct squad_settings *own = own_of(state);
	if (!own->find_threshold || (own->version_2_with_negative && beginning->has_dev))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--find_threshold needs --version_2_with_negative and a --dev set"),
			    "the threshold decides between an answer and none, and is chosen on the dev set");
}

static struct squad_feature_settings window_settings(const struct task_state *state, bool find_targets)
{
	const struct squad_settings *given = own_of(state);
	return (struct squad_feature_settings){
		.max_seq_length = state->settings.max_seq_length,
		.max_query_length = given_or(given->max_query_length, 64),
		.doc_stride = given_or(given->doc_stride, 128),
		.find_targets = find_targets,
	};
}

static struct squad_answer_settings answer_settings(const struct task_state *state)
{
	const struct squad_settings *given = own_of(state);
	return (struct squad_answer_settings){
		.n_best_size = given_or(given->n_best_size, 20),
		.max_answer_length = given_or(given->max_answer_length, 30),
		.version_2 = given->version_2_with_negative,
		.null_threshold = given->null_score_diff_threshold,
	};
}

/* ---- Reading ---- */

/* The files of a set. Sets to be scored or predicted have just one. */
struct squad_part {
	const char *path; /* borrowed */
	struct squad_set set;
	struct squad_features features;
};
struct squad_parts {
	int64_t count;
	struct squad_part part[];
};

static const struct squad_part *only_part(const struct task_set *set)
{
	const struct squad_parts *parts = set->own;
	BUG_IF(parts->count != 1);
	return &parts->part[0];
}

static void squad_close(struct task_set *set)
{
	struct squad_parts *parts = set->own;
	for (int64_t i = 0; i < parts->count; i++) {
		squad_features_release(&parts->part[i].features);
		squad_release(&parts->part[i].set);
	}
	free(parts);
	set->own = NULL;
}

static enum status squad_read_files(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	static const enum squad_use uses[] = {
		[TASK_TRAIN] = SQUAD_TRAIN, [TASK_SCORE] = SQUAD_SCORE, [TASK_PREDICT] = SQUAD_PREDICT};
	struct squad_options options = {
		.use = uses[set->use], .allow_impossible = own_of(state)->version_2_with_negative, .bad = state->settings.bad};
	struct squad_parts *parts;
	if (count < 1)
		return error_set(ERR_USAGE, "no file of questions is given");
	if (count > 1 && set->use != TASK_TRAIN)
		return error_hinted(
			error_set(ERR_USAGE, "'%s' and '%s': questions are answered from one file at a time", paths[0], paths[1]),
			"run the command once for each file");
	TRY(memory_new(&parts, 1, sizeof *parts + (size_t)count * sizeof parts->part[0], "files of questions"));
	set->own = parts;
	for (int64_t i = 0; i < count; i++) {
		parts->part[i].path = paths[i];
		TRY(squad_read(&parts->part[i].set, paths[i], &options));
		parts->count++;
	}
	set->has_labels = set->use != TASK_PREDICT;
	if (set->use == TASK_TRAIN)
		state->pairs = true;
	return OK;
}

static enum status squad_take_texts(struct task_state *state, struct task_set *set, const struct task_text *texts, int64_t count)
{
	struct squad_parts *parts;
	(void)state;
	TRY(memory_new(&parts, 1, sizeof *parts + sizeof parts->part[0], "questions"));
	set->use = TASK_PREDICT;
	set->own = parts;
	parts->part[0].path = "";
	parts->count = 1;
	for (int64_t i = 0; i < count; i++)
		TRY(squad_add(&parts->part[0].set, texts[i].text, texts[i].pair ? texts[i].pair : ""));
	return OK;
}

/* ---- Encoding ---- */

/* Are the right rows known? An answer that is not where the file says cannot be found in the windows. */
static bool has_target(const struct task_set *set, const struct squad_set *questions, int64_t question)
{
	const struct squad_question *asked = &questions->questions[question];
	if (!set->has_labels || asked->is_impossible)
		return set->has_labels;
	return squad_is_placed(&questions->answers[asked->first_answer]);
}

static enum status encode_part(struct task_set *set, const struct squad_part *part, int32_t *ids, int32_t *segments)
{
	const struct squad_features *features = &part->features;
	for (int64_t w = 0; w < features->window_starts[part->set.question_count]; w++) {
		const struct squad_window *window = &features->windows[w];
		int32_t rows[2] = {-1, -1}, size = squad_window_size(features, w);
		bool known = has_target(set, &part->set, window->question);
		if (known) {
			rows[0] = window->start_row;
			rows[1] = window->end_row;
		}
		squad_window_fill(features, w, ids, segments);
		TRY(labeled_begin(&set->encoded));
		TRY(labeled_sequence(&set->encoded, ids, size, size - window->length - 1));
		TRY(labeled_item(&set->encoded, 0, NULL, rows, NULL, known ? 1 : 0));
	}
	return OK;
}

static enum status squad_encode(struct task_state *state, struct task_set *set)
{
	struct squad_parts *parts = set->own;
	struct squad_feature_settings settings = window_settings(state, set->has_labels);
	int32_t *ids = NULL, *segments = NULL;
	enum status status;
	TRY_GOTO(memory_new(&ids, settings.max_seq_length, sizeof *ids, "a window's tokens"), done);
	TRY_GOTO(memory_new(&segments, settings.max_seq_length, sizeof *segments, "a window's tokens"), done);
	labeled_form(&set->encoded, 0, 2, 0, false);
	for (int64_t i = 0; i < parts->count; i++) {
		struct squad_part *part = &parts->part[i];
		TRY_GOTO(squad_features_make(&part->features, &part->set, state->settings.tokenizer, &settings), done);
		if (!state->settings.quiet)
			squad_features_log(&part->features, part->path);
		TRY_GOTO(encode_part(set, part, ids, segments), done);
		set->answer_count += part->set.question_count;
		set->cut_questions += part->features.cut_questions;
	}
	status = OK;
done:
	free(ids);
	free(segments);
	return status;
}

static void squad_heads(const struct task_state *state, struct model_heads *out)
{
	(void)state;
	*out = (struct model_heads){.architecture = "BertForQuestionAnswering", .count = 1};
	out->head[0] = (struct head){
		.input = INPUT_ALL_ROWS,
		.drops = true,
		.outputs = 2,
		.loss = LOSS_SEGMENT,
		.coefficient = 1,
		.name = "qa_outputs",
	};
}

/* ---- Answers ---- */

/* State for answering one question after another. */
struct answering {
	const struct squad_part *part;
	const struct task_outputs *outputs;
	struct squad_decoder *decoder;
	double *starts, *ends; /* logits of a window */
};

static void answering_close(struct answering *answering)
{
	squad_decoder_close(answering->decoder);
	free(answering->starts);
	free(answering->ends);
}

static enum status answering_open(struct answering *out, const struct task_state *state, const struct task_set *set,
				  const struct task_outputs *outputs)
{
	struct squad_answer_settings settings = answer_settings(state);
	enum status status;
	*out = (struct answering){.part = only_part(set), .outputs = outputs};
	TRY_GOTO(squad_decoder_open(&out->decoder, &out->part->features, &settings), failed);
	TRY_GOTO(memory_new(&out->starts, set->encoded.longest, sizeof *out->starts, "answers"), failed);
	TRY_GOTO(memory_new(&out->ends, set->encoded.longest, sizeof *out->ends, "answers"), failed);
	return OK;
failed:
	answering_close(out);
	return status;
}

/* Reads the logits of a window; returns the number of its rows. */
static int32_t read_window(struct answering *answering, int64_t window)
{
	const float *logits = task_output(answering->outputs, window);
	int32_t size = squad_window_size(&answering->part->features, window);
	for (int32_t row = 0; row < size; row++) {
		answering->starts[row] = logits[2 * row];
		answering->ends[row] = logits[2 * row + 1];
	}
	return size;
}

static enum status answer(struct answering *answering, int64_t question, struct squad_result *out)
{
	const struct squad_features *features = &answering->part->features;
	TRY(squad_decoder_begin(answering->decoder, question));
	for (int64_t w = features->window_starts[question]; w < features->window_starts[question + 1]; w++) {
		int32_t size = read_window(answering, w);
		TRY(squad_decoder_window(answering->decoder, w, answering->starts, answering->ends, size));
	}
	return squad_decoder_end(answering->decoder, out);
}

static enum status measure_answers(const struct task_state *state, const struct squad_set *questions, const char *const *texts,
				   const double *odds, struct measures *out)
{
	struct squad_null_scores null_scores;
	const struct squad_settings *settings = own_of(state);
	if (settings->version_2_with_negative) {
		TRY(squad_null_scores_make(&null_scores, odds, questions->question_count));
		enum status status = squad_score_2(questions, texts, &null_scores, settings->null_score_diff_threshold, out);
		squad_null_scores_release(&null_scores);
		return status;
	}
	/* Chinese has no spaces between words. */
	bool by_cmrc =
		settings->scorer == SQUAD_SCORER_AUTO ? squad_is_chinese(questions) : settings->scorer == SQUAD_SCORER_CMRC;
	return by_cmrc ? squad_score_chinese(questions, texts, out) : squad_score_1(questions, texts, out);
}

/* The answers to all questions. */
struct answers {
	const char **predicted, **best; /* [questions] what is predicted; the best non-empty answer, "" if there is none */
	double *null_odds;
	struct string_store store;
};

static void answers_release(struct answers *answers)
{
	string_store_release(&answers->store);
	free(answers->predicted);
	free(answers->best);
	free(answers->null_odds);
}

static enum status answer_all(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			      struct answers *out)
{
	struct answering answering;
	int64_t count = only_part(set)->set.question_count;
	enum status status;
	TRY(answering_open(&answering, state, set, outputs));
	TRY_GOTO(memory_new(&out->predicted, count, sizeof *out->predicted, "answers"), done);
	TRY_GOTO(memory_new(&out->best, count, sizeof *out->best, "answers"), done);
	TRY_GOTO(memory_new(&out->null_odds, count, sizeof *out->null_odds, "answers"), done);
	for (int64_t q = 0; q < count; q++) {
		struct squad_result result;
		TRY_GOTO(answer(&answering, q, &result), done);
		const char *best = result.best ? result.best->text : "";
		TRY_GOTO(string_store_copy(&out->store, result.prediction, strlen(result.prediction), &out->predicted[q]), done);
		TRY_GOTO(string_store_copy(&out->store, best, strlen(best), &out->best[q]), done);
		out->null_odds[q] = result.null_odds;
	}
	status = OK;
done:
	answering_close(&answering);
	return status;
}

/* Never giving an answer is right where there is none. */
static enum status squad_baseline(const struct task_state *state, const struct task_set *train, const struct task_set *set,
				  struct measures *out)
{
	(void)state;
	(void)train;
	const struct squad_set *questions = &only_part(set)->set;
	if (questions->impossible_count > 0)
		measures_add(out,
			     &(struct measure){"f1", NULL, UNIT_POINTS, DIRECTION_HIGHER,
					       100 * ((double)questions->impossible_count / (double)questions->question_count)});
	return OK;
}

static enum status squad_score_set(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				   struct measures *out)
{
	struct answers answers = {0};
	enum status status = answer_all(state, set, outputs, &answers);
	if (status == OK)
		status = measure_answers(state, &only_part(set)->set, answers.predicted, answers.null_odds, out);
	answers_release(&answers);
	return status;
}

/* Is the prediction none of the right answers, compared as in the official scripts? */
static enum status is_wrong(struct squad_comparer *comparer, const struct squad_set *questions, int64_t question,
			    const char *predicted, bool *out)
{
	const struct squad_question *asked = &questions->questions[question];
	*out = asked->answer_count > 0 || *predicted;
	TRY(squad_comparer_set(comparer, predicted));
	for (int64_t i = 0; i < asked->answer_count && *out; i++) {
		struct squad_score score;
		bool has_words;
		const char *gold = questions->answers[asked->first_answer + i].text;
		TRY(squad_compare(comparer, gold, false, &score, &has_words));
		*out = score.exact < 1;
	}
	return OK;
}

static enum status squad_examine(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 struct task_answer_reader reader)
{
	static const char none[] = "(no answer)";
	const struct squad_set *questions = &only_part(set)->set;
	struct squad_comparer comparer = {0};
	struct answers answers = {0};
	enum status status = answer_all(state, set, outputs, &answers);
	for (int64_t q = 0; q < questions->question_count && status == OK; q++) {
		const struct squad_question *asked = &questions->questions[q];
		const char *right = asked->answer_count > 0 ? questions->answers[asked->first_answer].text : none;
		bool wrong = false;
		status = is_wrong(&comparer, questions, q, answers.predicted[q], &wrong);
		if (status == OK)
			status = reader.take(
				reader.context,
				&(struct task_answer){.number = q + 1,
						      .text = asked->text,
						      .pair = questions->paragraphs[asked->paragraph].text,
						      .right = right,
						      .predicted = *answers.predicted[q] ? answers.predicted[q] : none,
						      .loss = NAN,
						      .wrong = wrong});
	}
	squad_comparer_release(&comparer);
	answers_release(&answers);
	return status;
}

/* Finds the threshold of "no answer" with the highest F1. */
static bool squad_tunes(const struct task_state *state)
{
	return own_of(state)->find_threshold;
}

static enum status squad_tune(struct task_state *state, const struct task_set *set, const struct task_outputs *outputs)
{
	struct squad_settings *settings = own_of(state);
	struct squad_thresholds found;
	struct answers answers = {0};
	enum status status = answer_all(state, set, outputs, &answers);
	if (status == OK)
		status = squad_find_thresholds(&only_part(set)->set, answers.best, answers.null_odds, &found);
	if (status == OK) {
		settings->null_score_diff_threshold = found.f1_threshold;
		log_note("null_score_diff_threshold %.6g, chosen on the dev set: F1 %.2f there", found.f1_threshold, found.f1);
	}
	answers_release(&answers);
	return status;
}

/* ---- Results ---- */

static enum status squad_write(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			       const char *folder)
{
	struct answering answering;
	struct squad_files files = {0};
	const struct squad_set *questions = &only_part(set)->set;
	bool version_2 = own_of(state)->version_2_with_negative;
	enum status status = OK;
	TRY(answering_open(&answering, state, set, outputs));
	for (int64_t q = 0; q < questions->question_count; q++) {
		struct squad_result result;
		TRY_GOTO(answer(&answering, q, &result), done);
		squad_files_add(&files, questions->questions[q].id, &result, version_2);
	}
	status = squad_files_write(&files, folder, "", version_2);
done:
	answering_close(&answering);
	squad_files_release(&files);
	return status;
}

/* The choice that was predicted. An answer that is not from the paragraph goes from 0 to 0. */
static const struct squad_choice *choice_of(const struct squad_result *result)
{
	for (int32_t i = 0; i < result->count; i++)
		if (strcmp(result->choices[i].text, result->prediction) == 0)
			return &result->choices[i];
	return NULL;
}

static void put_answer(const char *id, const char *text, int64_t begin, int64_t end, double score, struct buffer *out)
{
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '{');
	if (id)
		json_put_string(&writer, "id", id);
	json_put_string(&writer, "answer", text);
	json_put_integer(&writer, "start", begin);
	json_put_integer(&writer, "end", end);
	json_put_double(&writer, "score", score);
	json_close(&writer);
}

/* The same values as columns. */
static void put_columns(const char *id, const char *text, int64_t begin, int64_t end, double score, struct buffer *out)
{
	results_put_cell(out, id ? id : "");
	buffer_char(out, '\t');
	results_put_cell(out, text);
	buffer_format(out, "\t%" PRId64 "\t%" PRId64 "\t", begin, end);
	results_put_float(out, (float)score);
}

static enum status
answer_with(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs, int64_t question,
	    void (*put)(const char *id, const char *text, int64_t begin, int64_t end, double score, struct buffer *out),
	    struct buffer *out)
{
	struct answering answering;
	struct squad_result result;
	const struct squad_set *questions = &only_part(set)->set;
	const struct squad_question *asked = &questions->questions[question];
	int64_t begin = 0, end = 0;
	TRY(answering_open(&answering, state, set, outputs));
	enum status status = answer(&answering, question, &result);
	if (status == OK) {
		const struct squad_choice *choice = choice_of(&result);
		bool placed = choice && choice->end > choice->begin;
		if (placed)
			squad_code_points(&questions->paragraphs[asked->paragraph], choice->begin, choice->end, &begin, &end);
		put(asked->id, result.best ? result.prediction : "", begin, end, choice ? choice->probability : NAN, out);
		status = buffer_status(out);
	}
	answering_close(&answering);
	return status;
}

static enum status squad_put(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			     int64_t question, struct buffer *out)
{
	return answer_with(state, set, outputs, question, put_answer, out);
}

static enum status squad_put_tsv(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 int64_t question, struct buffer *out)
{
	return answer_with(state, set, outputs, question, put_columns, out);
}

/* Most tokens in an answer by default in transformers' pipeline. */
#define PIPELINE_ANSWER 15

static enum status squad_put_pipeline(const struct task_state *state, const struct task_set *set,
				      const struct task_outputs *outputs, int64_t question, struct buffer *out)
{
	const struct squad_settings *settings = own_of(state);
	struct answering answering;
	struct squad_pipeline pipeline = {0};
	struct json_writer writer = {.out = out};
	enum status status;
	TRY(answering_open(&answering, state, set, outputs));
	const struct squad_features *features = &answering.part->features;
	const struct squad_paragraph *paragraph = &features->set->paragraphs[features->set->questions[question].paragraph];
	squad_pipeline_begin(&pipeline, features, question,
			     settings->max_answer_length > 0 ? settings->max_answer_length : PIPELINE_ANSWER);
	for (int64_t w = features->window_starts[question]; w < features->window_starts[question + 1]; w++) {
		read_window(&answering, w);
		TRY_GOTO(squad_pipeline_window(&pipeline, w, answering.starts, answering.ends), done);
	}
	struct squad_pipeline_answer best = squad_pipeline_best(&pipeline, settings->version_2_with_negative);
	int64_t begin = 0, end = 0;
	if (best.end > best.begin)
		squad_code_points(paragraph, best.begin, best.end, &begin, &end);
	json_open(&writer, NULL, '{');
	json_put_double(&writer, "score", best.score);
	json_put_integer(&writer, "start", begin);
	json_put_integer(&writer, "end", end);
	json_put_text(&writer, "answer", paragraph->text + best.begin, (size_t)(best.end - best.begin));
	json_close(&writer);
	status = buffer_status(out);
done:
	squad_pipeline_release(&pipeline);
	answering_close(&answering);
	return status;
}

static int64_t squad_keep_questions(struct task_set *set, int64_t most)
{
	struct squad_parts *parts = set->own;
	int64_t all = 0;
	for (int64_t i = 0; i < parts->count; i++) {
		struct squad_set *questions = &parts->part[i].set;
		int64_t own = questions->question_count;
		squad_keep(questions, most > all ? most - all : 0);
		all += own;
	}
	return all;
}

/* ---- Its record ---- */

static const char *const scorers[] = {"auto", "squad", "cmrc"};

static void squad_put_record(const void *own, struct json_writer *writer)
{
	const struct squad_settings *squad = own;
	json_open(writer, "squad", '{');
	json_put_bool(writer, "version_2_with_negative", squad->version_2_with_negative);
	/* 0 means the default and is not recorded. */
	if (squad->doc_stride > 0)
		json_put_integer(writer, "doc_stride", squad->doc_stride);
	if (squad->max_query_length > 0)
		json_put_integer(writer, "max_query_length", squad->max_query_length);
	if (squad->n_best_size > 0)
		json_put_integer(writer, "n_best_size", squad->n_best_size);
	if (squad->max_answer_length > 0)
		json_put_integer(writer, "max_answer_length", squad->max_answer_length);
	json_put_double(writer, "null_score_diff_threshold", squad->null_score_diff_threshold);
	json_put_string(writer, "scorer", scorers[squad->scorer]);
	json_close(writer);
}

static enum status squad_read_record(const struct json *record, const char *name, void *own)
{
	const struct json *squad = json_member(record, "squad");
	struct squad_settings *out = own;
	static const char *const keys[] = {"doc_stride", "max_query_length", "n_best_size", "max_answer_length"};
	int64_t *const numbers[] = {&out->doc_stride, &out->max_query_length, &out->n_best_size, &out->max_answer_length};
	const char *scorer = scorers[out->scorer];
	if (!squad)
		return OK;
	for (int i = 0; i < 4; i++)
		TRY(json_get_integer(squad, name, keys[i], 1, 1 << 20, numbers[i]));
	TRY(json_get_bool(squad, name, "version_2_with_negative", &out->version_2_with_negative));
	TRY(json_get_number(squad, name, "null_score_diff_threshold", &out->null_score_diff_threshold));
	TRY(json_get_string(squad, name, "scorer", &scorer));
	for (int i = 0; i < 3; i++)
		if (strcmp(scorer, scorers[i]) == 0) {
			out->scorer = (enum squad_scorer)i;
			return OK;
		}
	return error_set(ERR_DATA, "'%s': unknown scorer '%.40s'", name, scorer);
}

/* run_squad.py and run_qa.py name no task, but have options that imply it. */
static const char *const options_of_squad[] = {
	"version_2_with_negative",   "doc_stride", "max_query_length", "n_best_size", "max_answer_length",
	"null_score_diff_threshold", NULL};

const struct task task_squad = {
	.name = "squad",
	.other_names = (const char *const[]){"qa", "question-answering", NULL},
	.summary = "the answer to a question as a stretch of a paragraph",
	.architecture = "BertForQuestionAnswering",
	.input = TASK_INPUT_PAIR,
	.target = TARGET_PARTS,
	.max_seq_length = 384,
	.decides = "f1",
	.view = VIEW_QUESTIONS,
	.has_windows = true,
	.scores_test = true,
	.implied_by = options_of_squad,
	.keep = squad_keep_questions,
	.read = squad_read_files,
	.take = squad_take_texts,
	.encode = squad_encode,
	.heads = squad_heads,
	.score = squad_score_set,
	.baseline = squad_baseline,
	.write = squad_write,
	.put = squad_put,
	.put_tsv = squad_put_tsv,
	.examine = squad_examine,
	.put_pipeline = squad_put_pipeline,
	.tunes = squad_tunes,
	.tune = squad_tune,
	.close_set = squad_close,
	.exclusive = (const char *const[]){"find_threshold", "version_2_with_negative", "max_query_length", "n_best_size",
					   "max_answer_length", "null_score_diff_threshold", "scorer", NULL},
	.settings_bytes = sizeof(struct squad_settings),
	.options = squad_rows,
	.data_names = squad_data_names,
	.settle = squad_settle,
	.put_record = squad_put_record,
	.read_record = squad_read_record,
};
