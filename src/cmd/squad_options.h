/* How questions about paragraphs are read, answered, and scored: rows of the option tables of finetune, predict, and evaluate. */
#ifndef CMD_SQUAD_OPTIONS_H
#define CMD_SQUAD_OPTIONS_H

#include "base/option.h"
#include "tasks/task.h"

struct squad_settings {
	int64_t doc_stride, max_query_length, n_best_size, max_answer_length;
	double null_score_diff_threshold;
	bool version_2_with_negative;
	const char *scorer;
};

/* `at` is the struct squad_settings within the command's settings; `when` is the rows' role; `otherwise` says in the help what
 * holds without the option: "as in training", or NULL to name Google's defaults. */
#define SQUAD_OPTIONS(type_, at, when, otherwise)                                                                                \
	{.help = "Questions about paragraphs"},                                                                                  \
		{.name = "version_2_with_negative",                                                                              \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(type_, at.version_2_with_negative),                                                           \
		 .role = when,                                                                                                   \
		 .fallback_text = (otherwise) ? (otherwise) : "false",                                                           \
		 .alias = "version_2",                                                                                           \
		 .help = "SQuAD 2.0: a question may have no answer in its paragraph"},                                           \
		{.name = "doc_stride",                                                                                           \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(type_, at.doc_stride),                                                                        \
		 .range = "1..65536",                                                                                            \
		 .role = when,                                                                                                   \
		 .value_name = "N",                                                                                              \
		 .fallback_text = (otherwise) ? (otherwise) : "128",                                                             \
		 .help = "a paragraph too long for one sequence is read in windows that begin this many tokens apart"},          \
		{.name = "max_query_length",                                                                                     \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(type_, at.max_query_length),                                                                  \
		 .range = "1..65536",                                                                                            \
		 .role = when,                                                                                                   \
		 .value_name = "N",                                                                                              \
		 .fallback_text = (otherwise) ? (otherwise) : "64",                                                              \
		 .help = "maximum number of tokens per question; longer ones are truncated"},                                    \
		{.name = "n_best_size",                                                                                          \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(type_, at.n_best_size),                                                                       \
		 .range = "1..1000",                                                                                             \
		 .role = when,                                                                                                   \
		 .value_name = "N",                                                                                              \
		 .fallback_text = (otherwise) ? (otherwise) : "20",                                                              \
		 .help = "number of starts and ends per window to combine, and of answers in nbest_predictions.json"},           \
		{.name = "max_answer_length",                                                                                    \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(type_, at.max_answer_length),                                                                 \
		 .range = "1..65536",                                                                                            \
		 .role = when,                                                                                                   \
		 .value_name = "N",                                                                                              \
		 .fallback_text = (otherwise) ? (otherwise) : "30",                                                              \
		 .help = "maximum number of tokens per answer"},                                                                 \
		{.name = "null_score_diff_threshold",                                                                            \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(type_, at.null_score_diff_threshold),                                                         \
		 .role = when,                                                                                                   \
		 .value_name = "X",                                                                                              \
		 .fallback_text = (otherwise) ? (otherwise) : "0",                                                               \
		 .help = "SQuAD 2.0: answer \"no answer\" if its score exceeds that of the best answer by more than this"},      \
	{                                                                                                                        \
		.name = "scorer", .type = OPTION_CHOICE, .field = offsetof(type_, at.scorer), .range = "auto|squad|cmrc",        \
		.role = when, .value_name = "WHOSE", .fallback_text = (otherwise) ? (otherwise) : "auto",                        \
		.help = "measures of SQuAD, or of CMRC 2018 and DRCD; auto: the latter where the answers are Chinese"            \
	}

/* The settings that were given; all others stay open. */
struct squad_task_settings squad_options_given(const struct options *options, const struct squad_settings *settings);

#endif
