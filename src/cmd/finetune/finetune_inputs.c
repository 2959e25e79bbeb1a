/* Turns other programs' options into the files and actions of `bertc finetune`, and checks that they are complete. */
#include "cmd/finetune/finetune_run.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "tasks/data_dir.h"

/* The task that a given option implies, or NULL; *out_option is that option. */
static const struct task *implied_task(const struct options *options, const char **out_option)
{
	int count;
	const struct task *const *tasks = tasks_all(&count);
	for (int t = 0; t < count; t++)
		for (const char *const *option = tasks[t]->implied_by; option && *option; option++)
			if (options_given(options, *option)) {
				*out_option = *option;
				return tasks[t];
			}
	return NULL;
}

static bool is_asked(const struct options *options, const bool *flag)
{
	return *flag && options_origin_of(options, flag) >= ORIGIN_FILE;
}

static bool is_refused(const struct options *options, const bool *flag)
{
	return !*flag && options_origin_of(options, flag) >= ORIGIN_FILE;
}

static const struct labeled_options *given_in(const struct options *options)
{
	return &((const struct finetune_settings *)options->settings)->labeled;
}

/* Sets a list option unless it is given. */
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
	const struct labeled_options *given = given_in(options);
	struct data_dir folder = {.train = NULL};
	enum status status = data_dir_find(&folder, task, layout, task_options_of(&given->own, task), given->data_dir);
	if (status == OK)
		status = use_files(options, "train", &folder.train, 1);
	if (status == OK && given->folds.folds == 0)
		status = use_files(options, "dev", folder.dev, DATA_SETS);
	/* Test sets are large and have no labels, so they are predicted only on request, as in run_classifier.py. */
	if (status == OK && is_asked(options, &given->do_predict))
		status = use_files(options, "test", folder.test, DATA_SETS);
	data_dir_release(&folder);
	return status;
}

static enum status check_there(const char *folder, const char *option, const char *list, int64_t count)
{
	if (count > 0)
		return OK;
	enum status status = error_set(ERR_USAGE, "--%s is given, but there is no %s set", option, list);
	if (folder)
		error_hint("name its file: --%s FILE; '%s' has none under the task's usual names", list, folder);
	else
		error_hint("name its file: --%s FILE, or a folder of a published task's files: --data_dir", list);
	return status;
}

/* For a task whose test set is scored. */
static enum status score_predictions(struct options *options)
{
	const struct labeled_options *given = given_in(options);
	if (given->dev.count > 0 || given->test.count == 0)
		return OK;
	log_note("--do_eval: the answers to the test set are scored");
	for (int64_t i = 0; i < given->test.count; i++)
		TRY(options_set(options, "dev", given->test.values[i], ORIGIN_CHOSEN));
	return OK;
}

/* Without do_train, training is meant unless evaluation or prediction is requested. */
static bool trains(const struct options *options)
{
	const struct labeled_options *given = given_in(options);
	if (options_given(options, "do_train"))
		return given->do_train;
	return !is_asked(options, &given->do_eval) && !is_asked(options, &given->do_predict);
}

static enum status nothing_to_do(void)
{
	return error_hinted(
		error_set(ERR_USAGE, "there is nothing to do: --do_train, --do_eval and --do_predict are false"),

		"at least one of them must be true; if none is given, the model is trained, evaluated, and used for predictions");
}

/* Does the sweep list values for this option? */
static bool is_swept(const struct option_list *sweep, const char *name)
{
	size_t length = strlen(name);
	for (int64_t i = 0; i < sweep->count; i++) {
		for (const char *word = sweep->values[i]; *word; word += strcspn(word, " ")) {
			word += strspn(word, " ");
			if (strncmp(word, name, length) == 0 && word[length] == '=')
				return true;
		}
	}
	return false;
}

/* A run that has started has its task, model, and files recorded, so --out alone resumes it. */
static bool may_be_recorded(const struct options *options)
{
	const struct finetune_settings *settings = options->settings;
	const struct folder_options *folder = &settings->training.folder;
	bool begun = (folder->out && file_exists(folder->out)) || folder->resume_from;
	return begun && trains(options) && settings->sweep.count == 0;
}

enum status finetune_check(struct options *options)
{
	const struct finetune_settings *settings = options->settings;
	const struct labeled_options *given = &settings->labeled;
	const char *implying = NULL;
	const struct task *task = implied_task(options, &implying);
	const struct layout *layout;
	bool training_is_meant = trains(options), recorded = may_be_recorded(options);
	TRY(training_check(options));
	if (given->task)
		TRY(options_blame(options, task_find(given->task, &task, &layout)));
	else if (!task && (!recorded || given->data_dir))
		TRY(options_require(options, "task",
				    "say what to learn, such as --task classification, --task squad or --task mrpc"));
	if (!training_is_meant && !is_asked(options, &given->do_eval) && !is_asked(options, &given->do_predict))
		TRY(options_blame(options, nothing_to_do()));
	if (!training_is_meant && settings->sweep.count > 0) {
		enum status status = error_set(ERR_USAGE, "--sweep tries values for training, but nothing is trained");
		error_hint("give --do_train, or leave --sweep out");
		TRY(options_blame(options, status));
	}
	if (!given->data_dir) {
		bool scores_test = task && task->scores_test;
		int64_t scored = given->dev.count + (scores_test ? given->test.count : 0);
		if (is_asked(options, &given->do_eval))
			TRY(options_blame(options, check_there(NULL, "do_eval", "dev", scored)));
		if (is_asked(options, &given->do_predict))
			TRY(options_blame(options, check_there(NULL, "do_predict", "test", given->test.count)));
	}
	/* A student made of some of its teacher's layers starts from the teacher. */
	if (!given->model && given->init_layers && settings->distillation.teacher)
		TRY(options_set(options, "model", settings->distillation.teacher, ORIGIN_CHOSEN));
	if (recorded)
		return OK;
	if (!is_swept(&settings->sweep, "model"))
		TRY(options_require(options, "model", "give a pre-trained model: a run of `bertc pretrain`, or any BERT folder"));
	if (training_is_meant && !given->data_dir)
		TRY(options_require(options, "train", "give labeled examples: --train FILE, or --data_dir FOLDER"));
	return OK;
}

enum status finetune_inputs(struct options *options, bool *out_train)
{
	const struct labeled_options *given = given_in(options);
	const char *implying = NULL;
	const struct task *task = implied_task(options, &implying);
	const struct layout *layout = NULL;
	bool evaluates = is_asked(options, &given->do_eval);
	bool predicts = is_asked(options, &given->do_predict);
	*out_train = trains(options);
	if (!*out_train)
		log_note("nothing is trained%s: the model is evaluated and used as it is",
			 options_given(options, "do_train") ? ""
							    : ", since --do_eval or --do_predict is given without --do_train");
	if (!given->task && task) {
		log_note("--task %s is assumed, since --%s is given", task->name, implying);
		TRY(options_set(options, "task", task->name, ORIGIN_CHOSEN));
	}
	if (given->task)
		TRY(task_find(given->task, &task, &layout));
	if (given->data_dir)
		TRY(use_folder(options, task, layout));
	if (evaluates && task && task->scores_test)
		TRY(score_predictions(options));
	if (evaluates)
		TRY(check_there(given->data_dir, "do_eval", "dev", given->dev.count));
	if (predicts)
		TRY(check_there(given->data_dir, "do_predict", "test", given->test.count));
	if (is_refused(options, &given->do_eval) || (!*out_train && !evaluates))
		options_forget(options, "dev");
	if (is_refused(options, &given->do_predict) || (!*out_train && !predicts))
		options_forget(options, "test");
	return OK;
}
