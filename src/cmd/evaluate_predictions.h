/* `bertc evaluate --predictions`: scoring answers from a file. */
#ifndef CMD_EVALUATE_PREDICTIONS_H
#define CMD_EVALUATE_PREDICTIONS_H

#include <stdbool.h>
#include "base/error.h"
#include "base/option.h"
#include "tasks/squad.h"

/* Rows of evaluate's table; `at` is the struct squad_prediction_settings within the command's settings. */
#define PREDICTION_OPTIONS(type_, at)                                                                                            \
	{.help = "Scores of a file of answers"},                                                                                 \
		{.name = "predictions",                                                                                          \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(type_, at.predictions),                                                                       \
		 .role = ROLE_PLACE,                                                                                             \
		 .value_name = "FILE",                                                                                           \
		 .help = "answers to the questions in --test, from any program: predictions.json, or nbest_predictions.json "    \
			 "for the best answer that is not empty"},                                                               \
		{.name = "na_prob_file",                                                                                         \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(type_, at.na_prob_file),                                                                      \
		 .role = ROLE_PLACE,                                                                                             \
		 .value_name = "FILE",                                                                                           \
		 .help = "probability that each question has no answer, such as null_odds.json: adds the best thresholds"},      \
		{.name = "na_prob_thresh",                                                                                       \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(type_, at.na_prob_thresh),                                                                    \
		 .fallback = "1.0",                                                                                              \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .help = "an answer whose value in --na_prob_file is above this counts as no answer"},                           \
	{                                                                                                                        \
		.name = "find_threshold", .type = OPTION_FLAG, .field = offsetof(type_, at.find_threshold), .fallback = "false", \
		.role = ROLE_RUN, .help = "find the best threshold for the best answers in nbest_predictions.json"               \
	}

/* Reads the predictions and `test`, compares them, and prints the measures. ERR_USAGE: options that cannot be combined. */
MUST_USE enum status evaluate_predictions(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
					  const struct option_list *test, bool json);

#endif
