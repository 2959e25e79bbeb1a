/* `bertc evaluate --predictions`: scores a file of answers to the questions of a SQuAD file. */
#include "cmd/evaluate_predictions.h"

#include <stdio.h>
#include <string.h>
#include "base/path.h"

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
	enum status status = buffer_status(&text);
	if (status == OK)
		fputs(buffer_string(&text), stdout);
	buffer_release(&text);
	return status;
}

enum status evaluate_predictions(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
				 const struct option_list *test, bool json)
{
	struct measures measures = {0};
	TRY(check_options(settings, squad, test));
	TRY(squad_score_predictions(settings, squad, set_path(test->values[0]), &measures));
	return print_measures(&measures, json);
}
