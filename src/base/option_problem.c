/* The part of option.h about problems with a command line, and messages about it. */
#include <stdarg.h>
#include <stdio.h>
#include "base/buffer.h"
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

enum status option_answer(struct options *options, const char *ignored, const char *format, ...)
{
	char text[1024];
	struct option_answer answer = {0};
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	TRY(memory_grow(&options->answers, &options->answer_capacity, options->answer_count + 1, sizeof *options->answers,
			"the options"));
	TRY(option_copy_text(options, text, &answer.text));
	if (ignored)
		TRY(option_copy_text(options, ignored, &answer.ignored));
	options->answers[options->answer_count++] = answer;
	return OK;
}

/* More ignored names than this share one warning: a file of all arguments of transformers has dozens. */
#define MANY_IGNORED 6

static void say_ignored(const struct options *options, int64_t ignored)
{
	struct buffer names = {0};
	for (int64_t i = 0; i < options->answer_count; i++) {
		const struct option_answer *answer = &options->answers[i];
		if (!answer->ignored)
			continue;
		if (ignored > MANY_IGNORED)
			log_detail("%s", answer->text);
		else
			log_warning("%s", answer->text);
		buffer_format(&names, "%s%s", names.size > 0 ? ", " : "", answer->ignored);
	}
	if (ignored > MANY_IGNORED)
		log_warning("%lld names of other programs' options are ignored (-v says why for each): %s", (long long)ignored,
			    buffer_string(&names));
	buffer_release(&names);
}

void option_say_answers(struct options *options)
{
	int64_t ignored = 0;
	for (int64_t i = 0; i < options->answer_count && !options->silent; i++) {
		ignored += options->answers[i].ignored != NULL;
		if (!options->answers[i].ignored)
			log_note("%s", options->answers[i].text);
	}
	if (ignored > 0)
		say_ignored(options, ignored);
	options->answer_count = 0;
}
