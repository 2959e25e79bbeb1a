/* The methods of the pre-training objective: gradients, metrics, and evaluation. */
#include "train/pretraining.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stop.h"
#include "model/flops.h"
#include "train/ranks.h"
#include "weights/finite_values.h"

struct pretraining {
	struct objective objective;
	struct pretraining_settings settings;
	struct step_reader *reader;
	const char **evaluation_names;
};

static struct pretraining *self(const struct objective *objective)
{
	return objective->state;
}

static enum status next_step(struct objective *objective, const struct step **out)
{
	return step_reader_next(self(objective)->reader, out);
}

static void gradients(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
		      struct layer_hook hook)
{
	const struct pretraining_settings *settings = &self(objective)->settings;
	model_gradients(settings->model, settings->activations, replica, batch, first, hook.done, hook.context);
}

static double ratio(double sum, double count)
{
	return count > 0 ? sum / count : 0.0;
}

#define LOSS(name, label, value) ((struct measure){(name), (label), UNIT_NATS, DIRECTION_LOWER, (value)})
#define ACCURACY(name, label, value) ((struct measure){(name), (label), UNIT_SHARE, DIRECTION_HIGHER, (value)})
#define COUNT(name, value) ((struct measure){(name), NULL, UNIT_COUNT, DIRECTION_NONE, (value)})

/* The losses and accuracies that follow from the sums over a set with these counts, in the order in which they are shown. In
 * an evaluation, each loss is shown separately, since the perplexity is that of the masked words alone. */
static void losses(const struct accumulators *sums, double prediction_weight, double labeled, bool evaluation,
		   struct measures *out)
{
	double mlm = ratio(sums->value[sum_of_loss(HEAD_MASKED_WORDS)], prediction_weight);
	double nsp = ratio(sums->value[sum_of_loss(HEAD_NEXT_SENTENCE)], labeled);
	out->count = 0;
	measures_add(out, &LOSS("loss", evaluation ? NULL : "loss", mlm + nsp));
	measures_add(out, &LOSS("mlm_loss", evaluation ? "MLM loss" : NULL, mlm));
	if (evaluation)
		measures_add(out, &(struct measure){"mlm_perplexity", NULL, UNIT_NUMBER, DIRECTION_LOWER, exp(mlm)});
	measures_add(out,
		     &ACCURACY("mlm_accuracy", "MLM", ratio(sums->value[sum_of_correct(HEAD_MASKED_WORDS)], prediction_weight)));
	measures_add(out, &LOSS("nsp_loss", evaluation && labeled > 0 ? "NSP loss" : NULL, nsp));
	measures_add(out, &ACCURACY("nsp_accuracy", labeled > 0 ? "NSP" : NULL,
				    ratio(sums->value[sum_of_correct(HEAD_NEXT_SENTENCE)], labeled)));
}

static void step_metrics(struct objective *objective, const struct step *step, const struct accumulators *sums,
			 struct measures *out)
{
	(void)objective;
	losses(sums, step->weights[HEAD_MASKED_WORDS], step->weights[HEAD_NEXT_SENTENCE], false, out);
}

/* A scoring in progress. */
struct score {
	const struct model *model;
	struct activations *activations;
	struct replica *replica;
	struct comm *comm;
	struct step_reader *reader;
	struct batch batch; /* on the device */
	double weight, labeled, predictions;
};

/* Has this rank or another one failed, or been asked to stop? */
static enum status agree_to_score(const struct score *score, enum status own)
{
	double failed = own != OK || stop_requested();
	if (ranks_count(score->comm) == 1)
		return own != OK ? own : stop_check();
	TRY(comm_max(score->comm, &failed, 1));
	if (failed == 0)
		return OK;
	return comm_agree_status(score->comm, own != OK ? own : stop_check());
}

static void queue_losses(void *context)
{
	const struct score *score = context;
	model_forward(score->model, score->activations, score->replica, &score->batch, false);
	model_losses(score->model, score->activations, score->replica, &score->batch, false, false);
}

/* Adds the losses of a step to the replica's accumulators. */
static enum status score_step(struct score *score, const struct step *step)
{
	struct replica *replica = score->replica;
	model_await(score->model);
	for (int32_t i = 0; i < step->batch_count; i++) {
		const struct batch *host;
		TRY(step_batch(step, i, &host));
		replica->backend->functions->upload(replica, host, &score->batch);
		struct work_key key = work_key(score->activations, WORK_LOSS, &score->batch);
		work_queue(replica, &key, queue_losses, score);
	}
	score->weight += step->weights[HEAD_MASKED_WORDS];
	score->labeled += step->weights[HEAD_NEXT_SENTENCE];
	score->predictions += (double)step->labeled[HEAD_MASKED_WORDS];
	return OK;
}

static enum status score_steps(struct score *score)
{
	const struct step *step = NULL;
	enum status status = OK;
	do {
		if (status == OK)
			status = step_reader_next(score->reader, &step);
		TRY(agree_to_score(score, status));
		if (step)
			status = score_step(score, step);
	} while (step);
	return OK;
}

/* Reads the sums over all ranks. */
static enum status read_score(const struct score *score, struct accumulators *sums, double counts[3])
{
	struct backend *be = score->replica->backend;
	double all[ACCUMULATOR_COUNT + 3];
	TRY(be->functions->synchronize(score->replica));
	be->functions->to_host(be, sums, score->replica->accumulators, sizeof *sums);
	memcpy(all, sums->value, sizeof sums->value);
	memcpy(all + ACCUMULATOR_COUNT, (double[3]){score->weight, score->labeled, score->predictions}, 3 * sizeof(double));
	if (ranks_count(score->comm) > 1)
		TRY(comm_sum(score->comm, all, ACCUMULATOR_COUNT + 3));
	memcpy(sums->value, all, sizeof sums->value);
	memcpy(counts, all + ACCUMULATOR_COUNT, 3 * sizeof(double));
	return OK;
}

enum status pretraining_score(const struct model *model, struct activations *activations, struct replica *replica,
			      struct comm *comm, struct instances *instances, int64_t limit, struct batch_capacity capacity,
			      struct measures *out)
{
	int64_t count = instances_per_epoch(instances);
	if (limit > 0 && limit < count)
		count = limit;
	if (count == 0)
		return error_hinted(error_set(ERR_DATA, "the evaluation set has no instances"),
				    "its documents are too short; give more text");
	struct step_settings steps = {
		.batch_size = (int64_t)capacity.sequences * ranks_count(comm),
		.rank = comm ? comm_place(comm)->rank : 0,
		.ranks = ranks_count(comm),
		.linear_work = model_linear_work(&model->config, &model->heads),
		.capacity = capacity,
		.first_step = 1,
		.sample_count = count,
	};
	struct score score = {.model = model, .activations = activations, .replica = replica, .comm = comm};
	struct accumulators sums = {0};
	double counts[3];
	enum status status;
	TRY(ranks_agree(comm, step_reader_open(&score.reader, instances, &steps)));
	replica->backend->functions->to_device(replica->backend, replica->accumulators, &sums, sizeof sums);
	TRY_GOTO(score_steps(&score), done);
	TRY_GOTO(read_score(&score, &sums, counts), done);
	losses(&sums, counts[0], counts[1], true, out);
	if (!isfinite(measures_get(out, "loss"))) {
		status = answer_not_finite("the model's loss");
		goto done;
	}
	measures_add(out, &COUNT("predictions", counts[2]));
	measures_add(out, &COUNT("instances", (double)count));
done:
	step_reader_close(score.reader);
	return status;
}

static enum status evaluate(struct objective *objective, struct replica *replica, int64_t set, struct measures *out)
{
	const struct pretraining_settings *settings = &self(objective)->settings;
	const struct evaluation_set *scored = &settings->evaluation_sets[set];
	int64_t limit = scored->whole ? 0 : settings->evaluation_instances;
	return pretraining_score(settings->model, settings->activations, replica, settings->comm, scored->instances, limit,
				 settings->evaluation_capacity, out);
}

static bool locate_not_finite(struct objective *objective, bool loss_is_finite, char *out, size_t size)
{
	const struct pretraining_settings *settings = &self(objective)->settings;
	return model_locate_not_finite(settings->model, settings->activations, loss_is_finite, out, size);
}

static void close_objective(struct objective *objective)
{
	struct pretraining *pretraining = self(objective);
	step_reader_close(pretraining->reader);
	free(pretraining->evaluation_names);
	free(pretraining);
}

/* Seconds that the loop has waited for data so far. */
static double pretraining_waited(const struct objective *objective)
{
	return step_reader_waited(self(objective)->reader);
}

enum status pretraining_create(struct objective **out, const struct pretraining_settings *settings)
{
	*out = NULL;
	struct pretraining *pretraining;
	TRY(memory_new(&pretraining, 1, sizeof *pretraining, "pre-training objective"));
	pretraining->settings = *settings;
	pretraining->objective = (struct objective){
		.name = "pretraining",
		.state = pretraining,
		.next_step = next_step,
		.gradients = gradients,
		.metrics = step_metrics,
		.evaluation_count = settings->evaluation_count,
		.evaluate = evaluate,
		.locate_not_finite = locate_not_finite,
		.waited = pretraining_waited,
		.close = close_objective,
	};
	enum status status;
	TRY_GOTO(memory_new(&pretraining->evaluation_names, settings->evaluation_count, sizeof *pretraining->evaluation_names,
			    "evaluation sets"),
		 failed);
	for (int64_t i = 0; i < settings->evaluation_count; i++)
		pretraining->evaluation_names[i] = settings->evaluation_sets[i].name;
	pretraining->objective.evaluation_names = pretraining->evaluation_names;
	if (settings->train)
		TRY_GOTO(step_reader_open(&pretraining->reader, settings->train, &settings->steps), failed);
	*out = &pretraining->objective;
	return OK;
failed:
	close_objective(&pretraining->objective);
	return status;
}
