/* Answers from a file, of any program, scored with the official measures (`bertc evaluate --predictions`). */
#include <inttypes.h>

#include "base/log.h"
#include "tasks/squad.h"
#include "tasks/squad/squad_score.h"

static enum status check_predictions(const struct squad_prediction_settings *settings,
				     const struct squad_predictions *predictions, const struct squad_set *set, const char *path)
{
	if (predictions->missing_count == set->question_count)
		return error_hinted(error_set(ERR_STATE, "'%s' answers none of the %" PRId64 " questions of '%s'",
					      settings->predictions, set->question_count, path),
				    "the ids must be those of the test set: are these the answers to another file?");
	if (predictions->unknown_count > 0)
		log_note("'%s': %" PRId64 " answers are to questions that are not in '%s', and are left out",
			 settings->predictions, predictions->unknown_count, path);
	if (predictions->list_count > 0)
		log_note("'%s' has lists of answers: the first that is not empty is taken", settings->predictions);
	return OK;
}

static enum status add_found_threshold(const struct squad_set *set, const char *const *texts,
				       const struct squad_null_scores *null_scores, struct measures *out)
{
	struct squad_thresholds found;
	TRY(squad_find_thresholds(set, texts, null_scores->by_question, &found));
	const struct measure rows[] = {
		{.name = "found_exact", .unit = UNIT_POINTS, .value = found.exact},
		{.name = "found_exact_thresh", .unit = UNIT_NUMBER, .value = found.exact_threshold},
		{.name = "found_f1", .unit = UNIT_POINTS, .value = found.f1},
		{.name = "found_f1_thresh", .unit = UNIT_NUMBER, .value = found.f1_threshold},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		measures_add(out, &rows[i]);
	return OK;
}

static enum status score(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
			 const struct squad_set *set, const struct squad_predictions *predictions, struct measures *out)
{
	struct squad_null_scores null_scores = {0};
	if (!squad->version_2_with_negative) {
		bool chosen = squad->scorer != SQUAD_SCORER_AUTO;
		bool chinese = chosen ? squad->scorer == SQUAD_SCORER_CMRC : squad_is_chinese(set);
		if (chinese && !chosen)
			log_note("the answers are Chinese: the measures are CMRC 2018's (--scorer squad for SQuAD's)");
		return chinese ? squad_score_chinese(set, predictions->texts, out) : squad_score_1(set, predictions->texts, out);
	}
	if (!settings->na_prob_file)
		return squad_score_2(set, predictions->texts, NULL, settings->na_prob_thresh, out);
	TRY(squad_null_scores_read(&null_scores, settings->na_prob_file, set));
	enum status status = squad_score_2(set, predictions->texts, &null_scores, settings->na_prob_thresh, out);
	if (status == OK && settings->find_threshold)
		status = add_found_threshold(set, predictions->texts, &null_scores, out);
	squad_null_scores_release(&null_scores);
	return status;
}

enum status squad_score_predictions(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
				    const char *test, struct measures *out)
{
	struct squad_set set;
	struct squad_predictions predictions = {0};
	struct bad_records bad = {.skip = false};
	TRY(squad_read(&set, test, &(struct squad_options){.use = SQUAD_PREDICT, .allow_impossible = true, .bad = &bad}));
	enum status status = squad_predictions_read(&predictions, settings->predictions, &set);
	if (status == OK)
		status = check_predictions(settings, &predictions, &set, test);
	if (status == OK)
		status = score(settings, squad, &set, &predictions, out);
	squad_predictions_release(&predictions);
	squad_release(&set);
	return status;
}
