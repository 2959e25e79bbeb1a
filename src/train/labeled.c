/* The methods of a labeled task's objective: gradients, metrics, and evaluation. */
#include "train/labeled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "infer/outputs.h"
#include "tasks/embedding.h"
#include "train/labeled_report.h"
#include "train/ranks.h"
#include "train/step_vectors.h"

struct labeled {
	struct objective objective;
	struct labeled_settings settings;
	struct step_reader *reader;
	const char **evaluation_names;
	int64_t step;                 /* the newest step that was asked for; evaluations are of the weights after it */
	struct step_vectors *vectors; /* for a task whose loss covers the vectors of a whole step; otherwise NULL */
};

static struct labeled *self(const struct objective *objective)
{
	return objective->state;
}

static enum status next_step(struct objective *objective, const struct step **out)
{
	TRY(step_reader_next(self(objective)->reader, out));
	if (*out)
		self(objective)->step = (*out)->number;
	return OK;
}

/* Computes the loss of the whole step. Only the first rank's accumulators receive it, since the ranks' accumulators are added
 * up. */
static enum status begin_step(struct objective *objective, struct replica *replica, const struct step *step)
{
	const struct labeled *labeled = self(objective);
	const struct labeled_settings *settings = &labeled->settings;
	struct backend *be = replica->backend;
	struct accumulators sums = {0};
	double loss;
	model_clear_unused_gradients(settings->model);
	TRY(step_vectors_compute(labeled->vectors, replica, step, objective, &loss));
	if (is_first_rank(settings->comm))
		sums.value[sum_of_loss(0)] = loss * step->weights[0];
	be->functions->to_device(be, replica->accumulators, &sums, sizeof sums);
	/* Recorded work, when it is queued again, does not give the activations the shapes of this batch. */
	objective->forwarded = step->batch_count == 1 && !be->queues;
	return OK;
}

static enum status begin_batch(struct objective *objective, struct replica *replica, int32_t number, const struct batch *batch)
{
	(void)replica;
	step_vectors_send(self(objective)->vectors, number, batch);
	return OK;
}

/* The second forward pass of the batch, unless the first one has left what backward needs; then backward. */
static void vector_gradients(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
			     struct layer_hook hook)
{
	const struct labeled_settings *settings = &self(objective)->settings;
	if (!objective->forwarded) {
		model_forward(settings->model, settings->activations, replica, batch, true);
		model_outputs(settings->model, settings->activations, replica, batch, 0);
	}
	model_vectors_backward(settings->model, settings->activations, replica, batch, 0, first);
	model_backward(settings->model, settings->activations, replica, batch, first, hook.done, hook.context);
}

static void gradients(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
		      struct layer_hook hook)
{
	const struct labeled_settings *settings = &self(objective)->settings;
	model_gradients(settings->model, settings->activations, replica, batch, first, hook.done, hook.context);
}

static struct measure loss_measure(double value)
{
	return (struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, value};
}

/* The mean loss over the labels of a step; with several heads, the sum of their means times their coefficients. */
static void step_metrics(struct objective *objective, const struct step *step, const struct accumulators *sums,
			 struct measures *out)
{
	const struct model_heads *heads = &self(objective)->settings.model->heads;
	double loss = 0;
	for (int h = 0; h < heads->count; h++)
		if (step->weights[h] > 0)
			loss += heads->head[h].coefficient * sums->value[sum_of_loss(h)] / step->weights[h];
	struct measure measure = loss_measure(loss);
	out->count = 0;
	measures_add(out, &measure);
}

/* The loss of a set as if its examples were trained on in order: the mean over its steps. NaN without labels. */
static enum status loss_of_vectors(const struct labeled_settings *settings, struct replica *replica, const struct task_set *set,
				   const struct task_outputs *outputs, double *out)
{
	struct contrastive_scratch scratch = {0};
	struct vector_set vectors = {0};
	int64_t most = settings->steps.batch_size;
	double sum = 0;
	*out = NAN;
	if (!set->has_labels)
		return OK;
	enum status status = vector_set_make(&vectors, set, outputs);
	for (int64_t first = 0; status == OK && first < outputs->count; first += most) {
		double loss = 0;
		int64_t count = outputs->count - first < most ? outputs->count - first : most;
		struct contrastive_step step = vector_set_part(&vectors, first, count);
		status = settings->task->task->loss(settings->task, set, &step, replica->backend->pool, &scratch, &loss, NULL);
		sum += loss * (double)count;
	}
	if (status == OK)
		*out = sum / (double)outputs->count;
	vector_set_release(&vectors);
	contrastive_scratch_release(&scratch);
	return status;
}

enum status labeled_measures(const struct task_state *task, const struct head *head, const struct task_set *set,
			     struct measures *out)
{
	struct task_outputs outputs = {0};
	struct measure measure = loss_measure(NAN);
	TRY(task_outputs_create(&outputs, &set->encoded, head));
	windows_pool(task, set, &outputs);
	out->count = 0;
	measures_add(out, &measure);
	enum status status = set->has_labels ? task->task->score(task, set, &outputs, out) : OK;
	task_outputs_release(&outputs);
	return status;
}

enum status labeled_score(const struct labeled_settings *settings, struct replica *replica, struct task_set *set,
			  struct task_outputs *outputs, struct measures *out)
{
	struct instances *instances = NULL;
	struct labeled_source source = {.vocab_size = settings->vocab_size};
	struct output_pass pass = {.model = settings->model,
				   .activations = settings->activations,
				   .replica = replica,
				   .comm = settings->comm,
				   .capacity = settings->evaluation_capacity};
	double loss = NAN;
	bool has_vectors = settings->task->task->loss != NULL;
	enum status status;
	TRY(task_outputs_create(outputs, &set->encoded, &settings->model->heads.head[0]));
	if (set->encoded.example_count > 0) { /* the texts of a test set may have no words */
		TRY_GOTO(instances_open_labeled(&instances, &set->encoded, &source), done);
		TRY_GOTO(outputs_compute(&pass, instances, outputs, &loss), done);
	}
	windows_pool(settings->task, set, outputs);
	if (has_vectors)
		TRY_GOTO(loss_of_vectors(settings, replica, set, outputs, &loss), done);
	if (isinf(loss)) {
		status = error_set(ERR_NUMERIC, "the loss of the %s set %s is not finite",
				   set->use == TASK_SCORE ? "dev" : "test", set->name);
		error_hint("its numbers, or the model's answers, are too large to be squared and added up");
		goto done;
	}
	out->count = 0;
	struct measure measure = loss_measure(loss);
	measures_add(out, &measure);
	if (set->has_labels)
		status = settings->task->task->score(settings->task, set, outputs, out);
	measure = (struct measure){"examples", NULL, UNIT_COUNT, DIRECTION_NONE, (double)task_answers(set)};
	measures_add(out, &measure);
done:
	instances_close(instances);
	if (status != OK)
		task_outputs_release(outputs);
	return status;
}

static enum status evaluate(struct objective *objective, struct replica *replica, int64_t number, struct measures *out)
{
	const struct labeled_settings *settings = &self(objective)->settings;
	struct task_outputs outputs = {0};
	TRY(labeled_score(settings, replica, &settings->evaluation[number], &outputs, out));
	const struct task_set *set = &settings->evaluation[number];
	enum status status = OK;
	if (settings->preview && number == 0 && set->has_labels)
		status = labeled_show(settings, self(objective)->step, set, &outputs);
	task_outputs_release(&outputs);
	return status;
}

static bool locate_not_finite(struct objective *objective, bool loss_is_finite, char *out, size_t size)
{
	const struct labeled_settings *settings = &self(objective)->settings;
	return model_locate_not_finite(settings->model, settings->activations, loss_is_finite, out, size);
}

static double waited(const struct objective *objective)
{
	return step_reader_waited(self(objective)->reader);
}

static const char *training_set(const struct objective *objective, const struct step *step)
{
	const struct labeled_set *set = &self(objective)->settings.train_set->encoded;
	return set->part_count > 1 ? set->part_names[step->member] : NULL;
}

static void close_objective(struct objective *objective)
{
	struct labeled *labeled = self(objective);
	step_reader_close(labeled->reader);
	step_vectors_free(labeled->vectors);
	free(labeled->evaluation_names);
	free(labeled);
}

enum status labeled_objective_create(struct objective **out, const struct labeled_settings *settings)
{
	struct labeled *labeled;
	enum status status;
	*out = NULL;
	TRY(memory_new(&labeled, 1, sizeof *labeled, "objective"));
	labeled->settings = *settings;
	labeled->step = settings->steps.first_step - 1;
	labeled->objective = (struct objective){
		.name = settings->task->task->name,
		.state = labeled,
		.next_step = next_step,
		.gradients = gradients,
		.metrics = step_metrics,
		.evaluation_count = settings->evaluation_count,
		.evaluate = evaluate,
		.locate_not_finite = locate_not_finite,
		.training_set = training_set,
		.waited = waited,
		.close = close_objective,
	};
	TRY_GOTO(memory_new(&labeled->evaluation_names, settings->evaluation_count, sizeof *labeled->evaluation_names,
			    "evaluation sets"),
		 failed);
	for (int64_t i = 0; i < settings->evaluation_count; i++)
		labeled->evaluation_names[i] = settings->evaluation[i].name[0] ? settings->evaluation[i].name : NULL;
	labeled->objective.evaluation_names = labeled->evaluation_names;
	if (settings->task->task->loss) {
		struct step_vectors_settings of_vectors = {.task = settings->task,
							   .train = settings->train_set,
							   .model = settings->model,
							   .activations = settings->activations,
							   .comm = settings->comm,
							   .steps = &labeled->settings.steps,
							   .sequences = instances_bounds(settings->train)->sequences};
		TRY_GOTO(step_vectors_create(&labeled->vectors, &of_vectors), failed);
		labeled->objective.begin_step = begin_step;
		labeled->objective.begin_batch = begin_batch;
		labeled->objective.gradients = vector_gradients;
	}
	TRY_GOTO(step_reader_open(&labeled->reader, settings->train, &settings->steps), failed);
	*out = &labeled->objective;
	return OK;
failed:
	close_objective(&labeled->objective);
	return status;
}
