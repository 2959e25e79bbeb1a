/* The part of option.h about problems with a command line, and messages about it. */
#include <stdarg.h>
#include <stdio.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/option_internal.h"

enum status options_blame(struct options *options, enum status status)
{
	if (status == OK)
		return OK;
	const struct error error = *error_last();
	struct option_problem problem = {.status = status};
	TRY(memory_grow(&options->problems, &options->problem_capacity, options->problem_count + 1, sizeof *options->problems,
			"the options"));
	TRY(option_copy_text(options, error.message, &problem.message));
	if (error.hint[0])
		TRY(option_copy_text(options, error.hint, &problem.hint));
	options->problems[options->problem_count++] = problem;
	return OK;
}

enum status options_require(struct options *options, const char *name, const char *hint)
{
	int index = options_find(options, name);
	BUG_IF(index < 0);
	if (options->text[index] || options->faulty[index])
		return OK;
	enum status status = error_set(ERR_USAGE, "--%s is missing", name);
	if (hint)
		error_hint("%s", hint);
	return options_blame(options, status);
}

enum status options_problem_status(const struct options *options)
{
	if (options->problem_count == 0)
		return OK;
	const struct option_problem *first = &options->problems[0];
	enum status status = error_set(first->status, "%s", first->message);
	if (first->hint)
		error_hint("%s", first->hint);
	return status;
}

enum status option_answer(struct options *options, bool is_warning, const char *format, ...)
{
	char text[1024];
	struct option_answer answer = {.is_warning = is_warning};
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	TRY(memory_grow(&options->answers, &options->answer_capacity, options->answer_count + 1, sizeof *options->answers,
			"the options"));
	TRY(option_copy_text(options, text, &answer.text));
	options->answers[options->answer_count++] = answer;
	return OK;
}

void option_say_answers(struct options *options)
{
	for (int64_t i = 0; i < options->answer_count && !options->silent; i++) {
		if (options->answers[i].is_warning)
			log_warning("%s", options->answers[i].text);
		else
			log_note("%s", options->answers[i].text);
	}
	options->answer_count = 0;
}
