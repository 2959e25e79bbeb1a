#include "cmd/evaluate_predictions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "tasks/set_list.h"
#include "tasks/squad_score.h"

static enum status check_options(const struct prediction_settings *settings, const struct squad_settings *squad,
				 const struct option_list *test)
{
	enum status status = OK;
	if (test->count != 1) {
		status = error_set(ERR_USAGE, test->count == 0 ? "--test is missing: the questions that --predictions answers"
							       : "--predictions answers the questions of one --test file");
		error_hint("bertc evaluate --predictions predictions.json --test dev-v1.1.json");
	} else if (!squad->version_2_with_negative && (settings->na_prob_file || settings->find_threshold)) {
		status = error_set(ERR_USAGE, "%s needs --version_2_with_negative",
				   settings->na_prob_file ? "--na_prob_file" : "--find_threshold");
	} else if (squad->version_2_with_negative && squad->scorer == SQUAD_SCORER_CMRC) {
		status = error_set(ERR_USAGE, "--scorer cmrc has no measures for --version_2_with_negative");
	} else if (!settings->na_prob_file && (settings->find_threshold || settings->na_prob_thresh != 1)) {
		status = error_set(ERR_USAGE, "%s needs --na_prob_file",
				   settings->find_threshold ? "--find_threshold" : "--na_prob_thresh");
	}
	return status;
}

static enum status check_predictions(const struct prediction_settings *settings, const struct squad_predictions *predictions,
				     const struct squad_set *set, const char *path)
{
	if (predictions->missing_count == set->question_count) {
		enum status status = error_set(ERR_STATE, "'%s' answers none of the %" PRId64 " questions of '%s'",
					       settings->predictions, set->question_count, path);
		error_hint("the ids must be those of the test set: are these the answers to another file?");
		return status;
	}
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

static enum status score(const struct prediction_settings *settings, const struct squad_settings *squad,
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

/* At full precision, as the official scripts print them; with `json`, as one object. */
static enum status print_measures(const struct measures *measures, bool json)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	if (json)
		json_open(&writer, NULL, '{');
	for (int i = 0; i < measures->count; i++) {
		const struct measure *measure = &measures->item[i];
		if (!json)
			buffer_format(&text, "%-18s ", measure->name);
		if (measure->unit == UNIT_COUNT)
			json_put_integer(&writer, measure->name, (int64_t)measure->value);
		else
			json_put_double(&writer, measure->name, measure->value);
		if (!json)
			buffer_char(&text, '\n');
	}
	if (json) {
		json_close(&writer);
		buffer_char(&text, '\n');
	}
	enum status status = buffer_status(&text);
	if (status == OK)
		fputs(buffer_string(&text), stdout);
	buffer_release(&text);
	return status;
}

enum status evaluate_predictions(const struct prediction_settings *settings, const struct squad_settings *squad,
				 const struct option_list *test, bool json)
{
	struct squad_set set;
	struct squad_predictions predictions = {0};
	struct measures measures = {0};
	struct bad_records bad = {.skip = false};
	TRY(check_options(settings, squad, test));
	const char *path = set_path(test->values[0]);
	TRY(squad_read(&set, path, &(struct squad_options){.use = SQUAD_PREDICT, .allow_impossible = true, .bad = &bad}));
	enum status status = squad_predictions_read(&predictions, settings->predictions, &set);
	if (status == OK)
		status = check_predictions(settings, &predictions, &set, path);
	if (status == OK)
		status = score(settings, squad, &set, &predictions, &measures);
	if (status == OK)
		status = print_measures(&measures, json);
	squad_predictions_release(&predictions);
	squad_release(&set);
	return status;
}
