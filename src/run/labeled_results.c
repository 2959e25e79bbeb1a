/* What a fine-tuning run leaves: the finished model's settings and card, its scores, and its predictions. */
#include "run/labeled_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "run/card.h"
#include "run/run_results.h"
#include "tasks/results.h"
#include "train/checkpoint.h"
#include "train/ranks.h"
#include "weights/checkpoint_folder.h"

/* Scores a set and, on the first rank, writes its results into `folder`. */
static enum status finish_set(struct labeled_run *labeled, const struct labeled_settings *settings, struct task_set *set,
			      const char *folder, struct set_scores *scores)
{
	struct task_outputs outputs = {0};
	const struct task *task = labeled->state.task;
	bool first = is_first_rank(settings->comm);
	TRY(labeled_score(settings, &labeled->run->memory.replica, set, &outputs, &scores->measures));
	enum status status = OK;
	if (first && set->has_labels && task->score_classes)
		status = task->score_classes(&labeled->state, set, &outputs, &scores->classes);
	if (first && folder && status == OK)
		status = folder_make(folder);
	if (first && folder && status == OK)
		status = task->write(&labeled->state, set, &outputs, folder);
	if (first && set == labeled->dev && labeled->fold_rows && status == OK)
		status = folds_write(&labeled->given->folds, &labeled->state, set, &outputs, labeled->fold_rows,
				     labeled->run->folder.path);
	task_outputs_release(&outputs);
	return ranks_agree(settings->comm, status);
}

/* With save_best, the best checkpoint's weights become the finished model's. */
static enum status take_best(struct labeled_run *labeled, int64_t *out_step)
{
	struct run *run = labeled->run;
	const struct train_state *state = &run->training.state;
	char path[PATH_BYTES], name[64];
	*out_step = state->step;
	if (!labeled->run->values->saving.save_best || state->best_step == 0 || state->best_step == state->step)
		return OK;
	/* Some file systems have no links, so there may be no `best`. */
	checkpoint_name(name, state->best_step);
	TRY(path_join(path, run->folder.path, name));
	TRY(checkpoint_load(path, run->memory.model, &run->memory.replica, run->memory.optimizer));
	*out_step = state->best_step;
	log_note("the best checkpoint is the one of step %lld", (long long)state->best_step);
	return is_first_rank(run->machine->comm) ? checkpoint_save_final(&run->training.checkpoints, run->memory.model, *out_step)
						 : OK;
}

/* Tunes, on the first dev set, how the finished model's answers are chosen, and records it with the model. */
static enum status tune(struct labeled_run *labeled, const struct labeled_settings *settings, int64_t step)
{
	struct run *run = labeled->run;
	struct task_outputs outputs = {0};
	struct measures measures = {0};
	if (!labeled->state.task->tunes || !labeled->state.task->tunes(&labeled->state))
		return OK;
	if (labeled->dev_count > 0)
		TRY(labeled_score(settings, &run->memory.replica, &labeled->dev[0], &outputs, &measures));
	enum status status = labeled->state.task->tune(&labeled->state, labeled->dev_count > 0 ? labeled->dev : NULL, &outputs);
	task_outputs_release(&outputs);
	if (status == OK)
		status = labeled_run_record(labeled);
	if (status == OK && is_first_rank(settings->comm))
		status = checkpoint_save_final(&run->training.checkpoints, run->memory.model, step);
	return ranks_agree(settings->comm, status);
}

/* Writes the model card, with the measures on the dev sets. */
static enum status write_card(const struct labeled_run *labeled, const struct result_set *sets, int64_t step)
{
	struct card_metric *metrics = NULL;
	int count = 0;
	enum status status;
	TRY(memory_new(&metrics, labeled->dev_count * MEASURES_MOST, sizeof *metrics, "measures"));
	for (int64_t i = 0; i < labeled->dev_count; i++)
		for (int k = 0; k < sets[i].measures->count; k++)
			metrics[count++] = (struct card_metric){sets[i].name[0] ? sets[i].name : "dev",
								sets[i].measures->item[k].name, sets[i].measures->item[k].value};
	status = run_write_card(labeled->run, step, metrics, count);
	free(metrics);
	return status;
}

/* Writes the predictions for a test set and, if it is labeled, its scores. */
static enum status finish_test(struct labeled_run *labeled, const struct labeled_settings *settings, struct task_set *set,
			       struct result_facts facts)
{
	char named[PATH_BYTES], label[80];
	const struct run *run = labeled->run;
	const char *folder = set->name[0] ? named : run->folder.path;
	struct set_scores scores = {0};
	enum status status;
	TRY(path_join(named, run->folder.path, set->name));
	TRY_GOTO(finish_set(labeled, settings, set, folder, &scores), done);
	if (!is_first_rank(run->machine->comm))
		goto done;
	log_note("predictions for the test set%s%s: in '%s'", set->name[0] ? " " : "", set->name, folder);
	if (!task_is_labeled(set)) {
		status = results_remove_evaluation(folder, "test");
		goto done;
	}
	const struct result_set result = {"", &scores.measures, &scores.classes};
	facts.sets = &result;
	facts.count = 1;
	facts.kind = "test";
	status = results_write_evaluation(folder, &facts);
	snprintf(label, sizeof label, "test%s%.60s", set->name[0] ? " " : "", set->name);
	if (status == OK)
		results_log(label, &scores.measures);
done:
	class_scores_release(&scores.classes);
	return ranks_agree(run->machine->comm, status);
}

enum status labeled_run_finish(struct labeled_run *labeled)
{
	struct run *run = labeled->run;
	struct labeled_settings settings = labeled_run_settings(labeled);
	struct set_scores *scores = NULL;
	struct result_set *sets = NULL;
	int64_t step;
	bool first = is_first_rank(run->machine->comm);
	enum status status;
	settings.preview = NULL;
	TRY(run_results_clear(run, labeled->dev_count > 0, labeled->test, labeled->test_count));
	TRY(ranks_agree(run->machine->comm, take_best(labeled, &step)));
	TRY_GOTO(tune(labeled, &settings, step), done);
	TRY_GOTO(memory_new(&scores, labeled->dev_count + 1, sizeof *scores, "measures"), done);
	TRY_GOTO(memory_new(&sets, labeled->dev_count + 1, sizeof *sets, "measures"), done);
	for (int64_t i = 0; i < labeled->dev_count; i++) {
		TRY_GOTO(finish_set(labeled, &settings, &labeled->dev[i], NULL, &scores[i]), done);
		sets[i] = (struct result_set){labeled->dev[i].name, &scores[i].measures, &scores[i].classes};
	}
	const struct train_state *state = &run->training.state;
	int64_t deciding = run->training.settings.best_set;
	const char *selected = labeled->dev_count > 0 ? labeled->dev[deciding].name : NULL;
	struct result_facts facts = {
		.sets = sets,
		.count = (int)labeled->dev_count,
		.kind = "eval",
		.global_step = step,
		.loss = state->loss_count > 0 ? state->loss_sum / (double)state->loss_count : NAN,
		.selected_on = labeled->run->values->saving.save_best && selected ? (*selected ? selected : "dev") : NULL,
	};
	if (labeled->dev_count > 0)
		labeled->result = (struct labeled_result){
			.step = step, .set = selected, .score = measures_get(&scores[deciding].measures, labeled->task.decides)};
	status = first && labeled->dev_count > 0 ? results_write_evaluation(run->folder.path, &facts) : OK;
	if (first && status == OK)
		status = write_card(labeled, sets, step);
	TRY_GOTO(ranks_agree(run->machine->comm, status), done);
	for (int64_t i = 0; first && i < labeled->dev_count; i++)
		results_log(labeled->dev[i].name, &scores[i].measures);
	for (int64_t i = 0; i < labeled->test_count; i++)
		TRY_GOTO(finish_test(labeled, &settings, &labeled->test[i], facts), done);
done:
	for (int64_t i = 0; scores && i < labeled->dev_count; i++)
		class_scores_release(&scores[i].classes);
	free(scores);
	free(sets);
	return run_results_stopped(status);
}
