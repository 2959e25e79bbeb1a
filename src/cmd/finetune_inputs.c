#include "cmd/finetune_inputs.h"

#include <string.h>

#include "base/log.h"
#include "cmd/finetune_options.h"
#include "tasks/data_folder.h"

/* Options that only questions about paragraphs have. */
static const char *const of_squad[] = {"version_2_with_negative", "doc_stride",
				       "max_query_length",        "n_best_size",
				       "max_answer_length",       "null_score_diff_threshold"};

/* run_squad.py and run_qa.py name no task. */
static enum status guess_task(struct options *options)
{
	for (size_t i = 0; i < sizeof(of_squad) / sizeof(of_squad[0]); i++)
		if (options_given(options, of_squad[i])) {
			log_note("--task squad is meant, since --%s is given", of_squad[i]);
			return options_set(options, "task", "squad", ORIGIN_CHOSEN);
		}
	enum status status = error_set(ERR_USAGE, "--task is missing");
	error_hint("say what is to be learned, as --task classification, --task squad or --task mrpc");
	return status;
}

static bool is_asked(const struct options *options, const char *name, bool value)
{
	return options_given(options, name) && value;
}

static bool is_refused(const struct options *options, const char *name, bool value)
{
	return options_given(options, name) && !value;
}

/* Sets a list that nobody has given. */
static enum status use_files(struct options *options, const char *name, const char *const *files, int most)
{
	if (options_given(options, name))
		return OK;
	for (int i = 0; i < most && files[i]; i++) {
		TRY(options_set(options, name, files[i], ORIGIN_CHOSEN));
		log_note("--%s %s", name, files[i]);
	}
	return OK;
}

static enum status use_folder(struct options *options, const struct task *task, const struct layout *layout)
{
	const struct finetune_settings *settings = options->settings;
	struct data_folder folder = {.train = NULL};
	enum status status = data_folder_find(&folder, task, layout, settings->squad.version_2_with_negative, settings->data_dir);
	if (status == OK)
		status = use_files(options, "train", &folder.train, 1);
	if (status == OK)
		status = use_files(options, "dev", folder.dev, DATA_SETS);
	/* Test sets are large and have no labels: they are predicted on request, as in run_classifier.py. */
	if (status == OK && is_asked(options, "do_predict", settings->do_predict))
		status = use_files(options, "test", folder.test, DATA_SETS);
	data_folder_release(&folder);
	return status;
}

static enum status check_there(const char *option, const char *list, int64_t count)
{
	if (count > 0)
		return OK;
	enum status status = error_set(ERR_USAGE, "--%s is given, but there is no %s set", option, list);
	error_hint("name its file: --%s FILE, or a folder of a published task's files: --data_dir", list);
	return status;
}

/* run_squad.py scores the answers to its --predict_file. */
static enum status score_predictions(struct options *options)
{
	const struct finetune_settings *settings = options->settings;
	if (settings->dev.count > 0 || settings->test.count == 0)
		return OK;
	log_note("--do_eval: the answers to the test set are scored");
	for (int64_t i = 0; i < settings->test.count; i++)
		TRY(options_set(options, "dev", settings->test.values[i], ORIGIN_CHOSEN));
	return OK;
}

enum status finetune_inputs(struct options *options, bool *out_train)
{
	const struct finetune_settings *settings = options->settings;
	const struct task *task;
	const struct layout *layout;
	bool evaluates = is_asked(options, "do_eval", settings->do_eval);
	bool predicts = is_asked(options, "do_predict", settings->do_predict);
	*out_train = options_given(options, "do_train") ? settings->do_train : !evaluates && !predicts;
	if (!*out_train && !evaluates && !predicts) {
		enum status status =
			error_set(ERR_USAGE, "there is nothing to do: --do_train, --do_eval and --do_predict are false");
		error_hint("at least one of them must be true; without any, the model is trained, evaluated and asked");
		return status;
	}
	if (!*out_train)
		log_note("nothing is trained%s: the model is evaluated and asked as it is",
			 options_given(options, "do_train") ? ""
							    : ", since --do_train is not given beside --do_eval or --do_predict");
	if (!settings->task)
		TRY(guess_task(options));
	TRY(task_find(settings->task, &task, &layout));
	if (settings->data_dir)
		TRY(use_folder(options, task, layout));
	if (evaluates && task == &task_squad)
		TRY(score_predictions(options));
	if (evaluates)
		TRY(check_there("do_eval", "dev", settings->dev.count));
	if (predicts)
		TRY(check_there("do_predict", "test", settings->test.count));
	if (is_refused(options, "do_eval", settings->do_eval) || (!*out_train && !evaluates))
		options_forget(options, "dev");
	if (is_refused(options, "do_predict", settings->do_predict) || (!*out_train && !predicts))
		options_forget(options, "test");
	return OK;
}
