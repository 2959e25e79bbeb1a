/* Scores answers to all questions, including the thresholds of SQuAD 2.0. */
#include "tasks/squad/squad_score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "tasks/squad/squad_compare.h"
#include "text/letters.h"
#include "text/python_text.h"

static void add(struct measures *out, const char *name, enum measure_unit unit, enum measure_direction direction, double value)
{
	measures_add(out, &(struct measure){.name = name, .unit = unit, .direction = direction, .value = value});
}

static void add_points(struct measures *out, const char *name, double value)
{
	add(out, name, UNIT_POINTS, DIRECTION_HIGHER, value);
}

/* ---- Scores of single answers ---- */

/* The best score over a question's gold answers. If there are none or, in version 2, none with words, "" is the right answer. */
static enum status score_question(struct squad_comparer *comparer, const struct squad_set *set, int64_t q, const char *text,
				  bool version_2, struct squad_score *out)
{
	const struct squad_question *question = &set->questions[q];
	bool compared = false;
	*out = (struct squad_score){0};
	TRY(squad_comparer_set(comparer, text));
	for (int64_t i = 0; i <= question->answer_count; i++) {
		struct squad_score score;
		bool has_words;
		if (i == question->answer_count && compared)
			break;
		const char *gold = i == question->answer_count ? "" : set->answers[question->first_answer + i].text;
		TRY(squad_compare(comparer, gold, version_2, &score, &has_words));
		if (version_2 && !has_words && i < question->answer_count)
			continue;
		compared = true;
		out->exact = fmax(out->exact, score.exact);
		out->f1 = fmax(out->f1, score.f1);
	}
	return OK;
}

/* Scores each question's text, with 0 for NULL. The caller frees *out. */
static enum status score_all(const struct squad_set *set, const char *const *texts, bool version_2, struct squad_score **out)
{
	struct squad_comparer comparer = {0};
	enum status status = OK;
	TRY(memory_new(out, set->question_count, sizeof **out, "scores"));
	for (int64_t q = 0; q < set->question_count && status == OK; q++)
		if (texts[q])
			status = score_question(&comparer, set, q, texts[q], version_2, &(*out)[q]);
	squad_comparer_release(&comparer);
	if (status != OK)
		free(*out);
	return status;
}

/* ---- SQuAD 1.1 ---- */

static enum status check_answers(const struct squad_set *set)
{
	for (int64_t q = 0; q < set->question_count; q++) {
		if (set->questions[q].answer_count > 0)
			continue;
		return error_hinted(error_set(ERR_DATA, "question '%.100s' has no answer to compare with", set->questions[q].id),
				    "a set with questions that have no answer is scored with --version_2_with_negative");
	}
	return OK;
}

/* Logs how many questions have no prediction; returns their number. */
static int64_t log_missing(const struct squad_set *set, const char *const *texts)
{
	char number[FORMAT_BYTES];
	int64_t missing = 0, first = -1;
	for (int64_t q = 0; q < set->question_count; q++) {
		missing += !texts[q];
		first = first < 0 && !texts[q] ? q : first;
	}
	if (missing > 0)
		log_warning("%s without a prediction, which will score 0; the first: '%.100s'",
			    format_counted(number, missing, "question", "questions"), set->questions[first].id);
	return missing;
}

enum status squad_score_1(const struct squad_set *set, const char *const *texts, struct measures *out)
{
	struct squad_score *scores, sum = {0};
	double total = (double)set->question_count;
	TRY(check_answers(set));
	TRY(score_all(set, texts, false, &scores));
	log_missing(set, texts);
	for (int64_t q = 0; q < set->question_count; q++) {
		sum.exact += scores[q].exact;
		sum.f1 += scores[q].f1;
	}
	free(scores);
	add_points(out, "exact_match", 100.0 * sum.exact / total);
	add_points(out, "f1", 100.0 * sum.f1 / total);
	return OK;
}

/* ---- SQuAD 2.0 ---- */

/* Lists the questions for which values[q] is missing. */
static enum status missing_error(const struct squad_set *set, const char *const *texts, const double *values, const char *what)
{
	char list[700] = "";
	size_t used = 0;
	int64_t missing = 0;
	for (int64_t q = 0; q < set->question_count; q++) {
		if (texts ? texts[q] != NULL : !isnan(values[q]))
			continue;
		if (missing++ < 5)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.100s'", used ? ", " : "",
						 set->questions[q].id);
	}
	if (missing == 0)
		return OK;
	char number[FORMAT_BYTES];
	return error_hinted(error_set(ERR_DATA, "%s without a %s: %s%s", format_counted(number, missing, "question", "questions"),
				      what, list, missing > 5 ? ", ..." : ""),
			    "the file must have an entry for every question of the test set");
}

static bool has_answer(const struct squad_set *set, int64_t q)
{
	return set->questions[q].answer_count > 0;
}

/* The questions that are averaged over. */
enum group { GROUP_ALL, GROUP_HAS_ANSWER, GROUP_NO_ANSWER };

static void add_group(const struct squad_set *set, const struct squad_score *scores, enum group group, struct measures *out)
{
	static const char *const names[][3] = {{"exact", "f1", "total"},
					       {"HasAns_exact", "HasAns_f1", "HasAns_total"},
					       {"NoAns_exact", "NoAns_f1", "NoAns_total"}};
	struct squad_score sum = {0};
	double total = 0;
	for (int64_t q = 0; q < set->question_count; q++) {
		if (group != GROUP_ALL && has_answer(set, q) != (group == GROUP_HAS_ANSWER))
			continue;
		sum.exact += scores[q].exact;
		sum.f1 += scores[q].f1;
		total++;
	}
	if (group != GROUP_ALL && total == 0)
		return;
	add_points(out, names[group][0], 100.0 * sum.exact / total);
	add_points(out, names[group][1], 100.0 * sum.f1 / total);
	add(out, names[group][2], UNIT_COUNT, DIRECTION_NONE, total);
}

/* A null score and its index in the file. */
struct ordered {
	double score;
	int64_t place, question;
};

static int by_score(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;
	if (a->score != b->score)
		return a->score < b->score ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

static enum status sort_null_scores(const struct squad_null_scores *null_scores, struct ordered **out)
{
	TRY(memory_new(out, null_scores->count, sizeof **out, "null scores"));
	for (int64_t i = 0; i < null_scores->count; i++)
		(*out)[i] = (struct ordered){null_scores->scores[i], i, null_scores->questions[i]};
	qsort(*out, (size_t)null_scores->count, sizeof **out, by_score);
	return OK;
}

static double score_of(const struct squad_score *scores, int64_t q, bool f1)
{
	return f1 ? scores[q].f1 : scores[q].exact;
}

/* find_best_thresh of the official script, including its flaws: it starts at 0, and treats equal scores one after another. */
static double official_threshold(const struct squad_set *set, const char *const *texts, const struct squad_score *scores, bool f1,
				 const struct ordered *sorted, int64_t count, double *out_threshold)
{
	double current = 0, best;
	for (int64_t q = 0; q < set->question_count; q++)
		current += !has_answer(set, q);
	best = current;
	*out_threshold = 0;
	for (int64_t i = 0; i < count; i++) {
		int64_t q = sorted[i].question;
		current += has_answer(set, q) ? score_of(scores, q, f1) : texts[q][0] ? -1 : 0;
		if (current > best) {
			best = current;
			*out_threshold = sorted[i].score;
		}
	}
	return 100.0 * best / (double)set->question_count;
}

static enum status add_best(const struct squad_set *set, const char *const *texts, const struct squad_score *scores,
			    const struct squad_null_scores *null_scores, struct measures *out)
{
	struct ordered *sorted;
	double threshold;
	TRY(sort_null_scores(null_scores, &sorted));
	for (int f1 = 0; f1 < 2; f1++) {
		double best = official_threshold(set, texts, scores, f1, sorted, null_scores->count, &threshold);
		add_points(out, f1 ? "best_f1" : "best_exact", best);
		add(out, f1 ? "best_f1_thresh" : "best_exact_thresh", UNIT_NUMBER, DIRECTION_NONE, threshold);
	}
	free(sorted);
	return OK;
}

enum status squad_score_2(const struct squad_set *set, const char *const *texts, const struct squad_null_scores *null_scores,
			  double threshold, struct measures *out)
{
	struct squad_score *raw, *final;
	enum status status;
	TRY(missing_error(set, texts, NULL, "prediction"));
	TRY(score_all(set, texts, true, &raw));
	TRY_GOTO(memory_new(&final, set->question_count, sizeof *final, "scores"), out);
	for (int64_t q = 0; q < set->question_count; q++) {
		bool silenced = null_scores && null_scores->by_question[q] > threshold;
		double as_none = has_answer(set, q) ? 0 : 1;
		final[q] = silenced ? (struct squad_score){as_none, as_none} : raw[q];
	}
	add_group(set, final, GROUP_ALL, out);
	add_group(set, final, GROUP_HAS_ANSWER, out);
	add_group(set, final, GROUP_NO_ANSWER, out);
	free(final);
	if (null_scores)
		status = add_best(set, texts, raw, null_scores, out);
out:
	free(raw);
	return status;
}

/* ---- A threshold for null scores ---- */

/* Starting with "no answer" everywhere, questions are answered in the order of their null scores, equal ones together. */
static double best_threshold(const struct squad_set *set, const char *const *texts, const struct squad_score *scores, bool f1,
			     const struct ordered *sorted, double *out_threshold)
{
	int64_t count = set->question_count;
	double current = 0, best;
	for (int64_t q = 0; q < count; q++)
		current += !has_answer(set, q);
	best = current;
	*out_threshold = count > 0 ? nextafter(sorted[0].score, -INFINITY) : 0;
	for (int64_t i = 0; i < count; i++) {
		int64_t q = sorted[i].question;
		bool answered = texts[q] && texts[q][0];
		if (answered)
			current += score_of(scores, q, f1) - (has_answer(set, q) ? 0 : 1);
		if (i + 1 < count && sorted[i + 1].score == sorted[i].score)
			continue;
		if (current > best) {
			best = current;
			*out_threshold = sorted[i].score;
		}
	}
	return 100.0 * best / (double)count;
}

enum status squad_find_thresholds(const struct squad_set *set, const char *const *texts, const double *null_scores,
				  struct squad_thresholds *out)
{
	struct squad_null_scores all;
	struct squad_score *scores = NULL;
	struct ordered *sorted = NULL;
	enum status status;
	TRY(missing_error(set, NULL, null_scores, "null score"));
	TRY(squad_null_scores_make(&all, null_scores, set->question_count));
	TRY_GOTO(score_all(set, texts, true, &scores), out);
	TRY_GOTO(sort_null_scores(&all, &sorted), out);
	out->exact = best_threshold(set, texts, scores, false, sorted, &out->exact_threshold);
	out->f1 = best_threshold(set, texts, scores, true, sorted, &out->f1_threshold);
	free(scores);
out:
	free(sorted);
	squad_null_scores_release(&all);
	return status;
}

/* ---- CMRC 2018 ---- */

enum status squad_score_chinese(const struct squad_set *set, const char *const *texts, struct measures *out)
{
	struct squad_comparer comparer = {0};
	struct squad_score sum = {0};
	double total = (double)set->question_count;
	enum status status;
	TRY(check_answers(set));
	for (int64_t q = 0; q < set->question_count; q++) {
		const struct squad_question *question = &set->questions[q];
		struct squad_score best = {0}, score;
		for (int64_t i = 0; texts[q] && i < question->answer_count; i++) {
			const char *gold = set->answers[question->first_answer + i].text;
			TRY_GOTO(squad_compare_chinese(&comparer, gold, texts[q], &score), out);
			best.exact = fmax(best.exact, score.exact);
			best.f1 = fmax(best.f1, score.f1);
		}
		sum.exact += best.exact;
		sum.f1 += best.f1;
	}
	status = OK;
	double exact = 100.0 * sum.exact / total, f1 = 100.0 * sum.f1 / total;
	add_points(out, "exact_match", exact);
	add_points(out, "f1", f1);
	add_points(out, "average", (exact + f1) * 0.5);
	add(out, "total", UNIT_COUNT, DIRECTION_NONE, total);
	add(out, "skip", UNIT_COUNT, DIRECTION_NONE, (double)log_missing(set, texts));
out:
	squad_comparer_release(&comparer);
	return status;
}

bool squad_is_chinese(const struct squad_set *set)
{
	struct text_letters letters = {0};
	for (int64_t i = 0; i < set->answer_count; i++)
		text_letters_count(set->answers[i].text, (size_t)set->answers[i].text_size, &letters);
	return letters.ideographs > letters.others;
}
