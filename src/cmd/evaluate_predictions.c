/* `bertc evaluate --predictions`: scores a file of answers to the questions of a SQuAD file. */
#include "cmd/evaluate_predictions.h"

#include <stdio.h>
#include <string.h>
#include "base/path.h"
#include "cmd/command.h"

#define ROW(member, role, value) OPTION_ROW(struct squad_prediction_settings, member, role, value)

/* clang-format off */
const struct option prediction_rows[] = {
	{.help = "Scores of a file of answers"},
	{ROW(predictions, ROLE_PLACE, "FILE"),
	 .help = "answers to the questions in --test, from any program: predictions.json, or nbest_predictions.json for the best "
	 "answer that is not empty"},
	{ROW(na_prob_file, ROLE_PLACE, "FILE"),
	 .help = "probability that each question has no answer, such as null_odds.json: adds the best thresholds"},
	{ROW(na_prob_thresh, ROLE_RESULT, "X"), .fallback = "1.0",
	 .help = "an answer whose value in --na_prob_file is above this counts as no answer"},
	{ROW(find_threshold, ROLE_RUN, NULL), .fallback = "false",
	 .help = "find the best threshold for the best answers in nbest_predictions.json"},
	{0},
};
/* clang-format on */

static enum status check_options(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
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
	return command_print(&text);
}

enum status evaluate_predictions(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
				 const struct option_list *test, bool json)
{
	struct measures measures = {0};
	TRY(check_options(settings, squad, test));
	TRY(squad_score_predictions(settings, squad, set_path(test->values[0]), &measures));
	return print_measures(&measures, json);
}
