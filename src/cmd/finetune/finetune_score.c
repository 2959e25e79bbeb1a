/* `bertc finetune` without training: writes a fine-tuned model's results to the files that a training run would have written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cmd/finetune/finetune_run.h"
#include "infer/task_session.h"
#include "tasks/results.h"
#include "base/set_list.h"

/* Tokens computed at a time. */
#define TOKENS 8192

/* Reads a set and answers it. With a folder, writes the predictions there; if the set is labeled, scores it. */
static enum status run_set(struct task_session *session, const struct file_set *files, const char *folder, bool *out_scored,
			   struct set_scores *scores)
{
	const struct task *task = session->state.task;
	struct task_set set = {0};
	struct task_outputs outputs = {0};
	double loss = NAN;
	enum status status =
		task_session_run(session, files->paths, files->count, folder ? TASK_PREDICT : TASK_SCORE, &set, &outputs, &loss);
	set.name = files->name;
	if (status == OK && folder)
		status = folder_make(folder);
	if (status == OK && folder)
		status = task->write(&session->state, &set, &outputs, folder);
	*out_scored = status == OK && (!folder || task_is_labeled(&set));
	if (*out_scored) {
		if (!task->loss) /* one over whole steps exists only in training */
			measures_add(&scores->measures, &(struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, loss});
		status = task->score(&session->state, &set, &outputs, &scores->measures);
		measures_add(&scores->measures,
			     &(struct measure){"examples", NULL, UNIT_COUNT, DIRECTION_NONE, (double)task_answers(&set)});
	}
	if (*out_scored && status == OK && task->score_classes)
		status = task->score_classes(&session->state, &set, &outputs, &scores->classes);
	if (status == OK)
		status = class_scores_keep_names(&scores->classes);
	task_outputs_release(&outputs);
	task_set_release(&session->state, &set);
	return status;
}

static enum status score_sets(struct task_session *session, const struct set_list *dev, const char *out)
{
	struct set_scores *scores;
	struct result_set *sets = NULL;
	bool scored;
	enum status status;
	if (dev->count == 0)
		return OK;
	TRY(memory_new(&scores, dev->count, sizeof *scores, "measures"));
	TRY_GOTO(memory_new(&sets, dev->count, sizeof *sets, "measures"), done);
	for (int64_t i = 0; i < dev->count; i++) {
		TRY_GOTO(run_set(session, &dev->sets[i], NULL, &scored, &scores[i]), done);
		sets[i] = (struct result_set){dev->sets[i].name, &scores[i].measures, &scores[i].classes};
		results_log(sets[i].name, sets[i].measures);
	}
	status = results_write_evaluation(
		out,
		&(struct result_facts){.sets = sets, .count = (int)dev->count, .kind = "eval", .global_step = -1, .loss = NAN});
done:
	for (int64_t i = 0; i < dev->count; i++)
		class_scores_release(&scores[i].classes);
	free(scores);
	free(sets);
	return status;
}

/* Writes the predictions for a test set and, if it is labeled, its scores. */
static enum status predict_set(struct task_session *session, const struct file_set *files, const char *folder)
{
	struct set_scores scores = {0};
	char label[80];
	bool scored;
	enum status status = run_set(session, files, folder, &scored, &scores);
	if (status == OK)
		log_note("predictions for the test set%s%s: in '%s'", *files->name ? " " : "", files->name, folder);
	if (status == OK && !scored)
		status = results_remove_evaluation(folder, "test");
	if (status == OK && scored) {
		const struct result_set result = {"", &scores.measures, &scores.classes};
		status = results_write_evaluation(
			folder,
			&(struct result_facts){.sets = &result, .count = 1, .kind = "test", .global_step = -1, .loss = NAN});
		snprintf(label, sizeof label, "test%s%.60s", *files->name ? " " : "", files->name);
		results_log(label, &scores.measures);
	}
	class_scores_release(&scores.classes);
	return status;
}

static enum status predict_sets(struct task_session *session, const struct set_list *test, const char *out)
{
	for (int64_t i = 0; i < test->count; i++) {
		char folder[PATH_BYTES];
		TRY(path_join(folder, out, test->sets[i].name));
		TRY(predict_set(session, &test->sets[i], *test->sets[i].name ? folder : out));
	}
	return OK;
}

/* Options that are obeyed when training is done. */
static enum status check_options(const struct options *options)
{
	static const char *const names[] = {"calibrate", "thresholds", "find_threshold", "folds", "negative_label"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (options_said(options, names[i]))
			return error_hinted(error_set(ERR_USAGE, "--%s has no effect without training", names[i]),
					    "give --do_train; `bertc evaluate` takes --calibrate and --thresholds for a finished "
					    "model");
	return OK;
}

static enum status check_files(const struct finetune_settings *settings)
{
	if (!settings->training.folder.out)
		return error_hinted(error_set(ERR_USAGE, "--out is missing"), "give a folder for the results");
	if (settings->labeled.vocab_file || settings->labeled.config_file)
		return error_hinted(error_set(ERR_USAGE,
					      "without training, %s is not used: the model's own is beside its weights",
					      settings->labeled.vocab_file ? "--vocab_file" : "--config_file"),
				    "leave it out");
	return OK;
}

enum status finetune_score(struct options *options)
{
	const struct finetune_settings *settings = options->settings;
	const struct labeled_options *labeled = &settings->labeled;
	const struct task_session_settings of_session = {
		.model = labeled->model,
		.task = labeled->task,
		.columns = &labeled->columns,
		.max_seq_length = settings->training.max_seq_length,
		.micro_batch_tokens = TOKENS,
		.options = options,
		.own = &labeled->own,
		.windows = &labeled->windows,
		.calibration = &labeled->calibration,
		.on_bad_record = labeled->on_bad_record,
		.device = &settings->training.device,
	};
	struct task_session session = {0};
	struct set_list dev = {0}, test = {0};
	enum status status;
	TRY_GOTO(check_options(options), done);
	TRY_GOTO(check_files(settings), done);
	TRY_GOTO(set_list_parse(&dev, &labeled->dev), done);
	TRY_GOTO(set_list_parse(&test, &labeled->test), done);
	TRY_GOTO(set_list_check_folders(&test, "test"), done);
	TRY_GOTO(task_session_open(&session, &of_session), done);
	TRY_GOTO(folder_make(settings->training.folder.out), done);
	session.state.settings.most = labeled->max_eval_samples;
	TRY_GOTO(score_sets(&session, &dev, settings->training.folder.out), done);
	session.bad.skip = false; /* predictions have a row for every row of their file, as they do after training */
	session.state.settings.most = labeled->max_predict_samples;
	status = predict_sets(&session, &test, settings->training.folder.out);
done:
	task_session_close(&session);
	set_list_release(&dev);
	set_list_release(&test);
	return status;
}
