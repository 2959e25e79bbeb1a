/* `bertc finetune` without training: writes a fine-tuned model's results to the files that a training run would have written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cmd/finetune_inputs.h"
#include "cmd/finetune_options.h"
#include "infer/task_session.h"
#include "tasks/results.h"
#include "tasks/set_list.h"

/* Tokens computed at a time. */
#define TOKENS 8192

/* Reads a set and scores it, or writes its predictions into `folder`. */
static enum status run_set(struct task_session *session, const struct file_set *files, enum task_use use, const char *folder,
			   struct measures *measures)
{
	struct task_set set = {0};
	struct task_outputs outputs = {0};
	double loss = NAN;
	enum status status = task_session_run(session, files->paths, files->count, use, &set, &outputs, &loss);
	if (status == OK && use == TASK_PREDICT)
		status = folder_make(folder);
	if (status == OK && use == TASK_PREDICT) {
		set.name = files->name;
		status = session->state.task->write(&session->state, &set, &outputs, folder);
	}
	if (status == OK && use == TASK_SCORE) {
		measures_add(measures, &(struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, loss});
		status = session->state.task->score(&session->state, &set, &outputs, measures);
		measures_add(measures,
			     &(struct measure){"examples", NULL, UNIT_COUNT, DIRECTION_NONE, (double)task_answers(&set)});
	}
	task_outputs_release(&outputs);
	task_set_release(&session->state, &set);
	return status;
}

static enum status score_sets(struct task_session *session, const struct set_list *dev, const char *out)
{
	struct measures *measures;
	struct result_set *sets = NULL;
	enum status status;
	if (dev->count == 0)
		return OK;
	TRY(memory_new(&measures, dev->count, sizeof(*measures), "measures"));
	TRY_GOTO(memory_new(&sets, dev->count, sizeof(*sets), "measures"), done);
	for (int64_t i = 0; i < dev->count; i++) {
		TRY_GOTO(run_set(session, &dev->sets[i], TASK_SCORE, NULL, &measures[i]), done);
		sets[i] = (struct result_set){dev->sets[i].name, &measures[i]};
		for (int k = 0; k < measures[i].count; k++) {
			char text[MEASURE_BYTES];
			log_note("%s%s%s", sets[i].name, *sets[i].name ? " " : "", measure_text(text, &measures[i].item[k]));
		}
	}
	const struct result_facts facts = {.sets = sets, .count = (int)dev->count, .global_step = -1, .loss = NAN};
	status = results_write_evaluation(out, &facts);
done:
	free(measures);
	free(sets);
	return status;
}

static enum status predict_sets(struct task_session *session, const struct set_list *test, const char *out)
{
	for (int64_t i = 0; i < test->count; i++) {
		char folder[PATH_BYTES];
		TRY(path_join(folder, out, test->sets[i].name));
		TRY(run_set(session, &test->sets[i], TASK_PREDICT, *test->sets[i].name ? folder : out, NULL));
	}
	return OK;
}

/* Is the model made for the task that was named? */
static enum status check_task(const struct task_session *session, const char *name)
{
	const struct task *task;
	const struct layout *layout;
	TRY(task_find(name, &task, &layout));
	if (task == session->state.task)
		return OK;
	enum status status = error_set(ERR_USAGE, "--task %s: '%s' is a model for %s", name, session->settings->model,
				       session->state.task->name);
	error_hint("--do_train trains it for the task");
	return status;
}

static enum status check_files(const struct finetune_settings *settings)
{
	if (!settings->training.out) {
		enum status status = error_set(ERR_USAGE, "--out is missing");
		error_hint("give a folder for the results");
		return status;
	}
	if (settings->vocab_file || settings->config_file) {
		enum status status =
			error_set(ERR_USAGE, "without training, %s is not used: the model's own is beside its weights",
				  settings->vocab_file ? "--vocab_file" : "--config_file");
		error_hint("leave it out");
		return status;
	}
	return OK;
}

enum status finetune_score(struct options *options)
{
	const struct finetune_settings *settings = options->settings;
	const struct task_session_settings of_session = {
		.model = settings->model,
		.columns = {.text = settings->text_column, .pair = settings->pair_column, .label = settings->label_column},
		.max_seq_length = (int32_t)settings->training.max_seq_length,
		.micro_batch_tokens = TOKENS,
		.squad = squad_options_given(options, &settings->squad),
		.skip_bad = strcmp(settings->on_bad_record, "skip") == 0,
		.device = settings->training.device,
	};
	struct task_session session = {0};
	struct set_list dev = {0}, test = {0};
	enum status status;
	TRY_GOTO(check_files(settings), done);
	TRY_GOTO(set_list_parse(&dev, "dev", &settings->dev, false), done);
	TRY_GOTO(set_list_parse(&test, "test", &settings->test, true), done);
	TRY_GOTO(task_session_open(&session, &of_session), done);
	TRY_GOTO(check_task(&session, settings->task), done);
	TRY_GOTO(folder_make(settings->training.out), done);
	TRY_GOTO(score_sets(&session, &dev, settings->training.out), done);
	session.bad.skip = false; /* predictions have a row for every row of their file, as they do after training */
	status = predict_sets(&session, &test, settings->training.out);
done:
	task_session_close(&session);
	set_list_release(&dev);
	set_list_release(&test);
	return status;
}
