/* The loop knows a task only through its objective, a machine only through its replica. What it does, in order, is
 * train() at the end of this file; everything else here is one step of it.
 */
#include "train/loop.h"

#include <math.h>

#include "base/stop.h"

/* Updates left out in a row before the run gives up: one bad batch passes, a diverged run does not. */
#define MAX_SKIPPED_IN_ROW 3

/* Sets what the operations of this step read on the device. */
static void step_begin(struct training *training, const struct step *step, double learning_rate)
{
	struct scalars scalars = {
		.seed = training->settings.seed,
		.learning_rate = learning_rate,
		.loss_scale = 1.0,
		.finite = 1,
	};
	optimizer_prepare(training->optimizer, &scalars);
	training->objective->normalise(training->objective, step, &scalars);
	struct accumulators zero = {0};
	struct replica *replica = training->replica;
	struct backend *be = replica->backend;
	be->functions->to_device(be, replica->scalars, &scalars, sizeof(scalars));
	be->functions->to_device(be, replica->accumulators, &zero, sizeof(zero));
}

/* Forward and backward of every micro-batch; gradients add up over them. Returns the model FLOPs done. */
static double step_gradients(struct training *training, const struct step *step)
{
	struct objective *objective = training->objective;
	struct replica *replica = training->replica;
	double flops = 0;
	for (int32_t i = 0; i < step->batch_count; i++) {
		struct batch batch;
		bool first = i == 0;
		replica->backend->functions->upload(replica, &step->batches[i], &batch);
		objective->forward(objective, replica, &batch, first);
		objective->backward(objective, replica, &batch, first);
		flops += model_training_flops(&training->model->config, &step->batches[i]);
	}
	return flops;
}

/* Waits for the step, reads its sums, and applies the policy for numbers that are not finite: the device has left
 * the weights alone; a few in a row end the run. */
static enum status step_end(struct training *training, const struct step *step, struct metrics *metrics,
			    double *grad_norm, int *skipped_in_row)
{
	struct replica *replica = training->replica;
	struct backend *be = replica->backend;
	struct scalars scalars;
	struct accumulators sums;
	TRY(be->functions->synchronize(replica));
	be->functions->to_host(be, &scalars, replica->scalars, sizeof(scalars));
	be->functions->to_host(be, &sums, replica->accumulators, sizeof(sums));
	training->objective->metrics(training->objective, step, &sums, metrics);
	*grad_norm = sqrt(scalars.gradient_square_sum) / scalars.loss_scale;

	struct train_state *state = &training->state;
	state->step++;
	state->samples += step->instance_count;
	state->tokens += step->token_count;
	if (scalars.finite) {
		training->optimizer->update_count++;
		*skipped_in_row = 0;
		return OK;
	}
	state->skipped_steps++;
	++*skipped_in_row;
	log_warning("step %lld: a gradient is not finite (loss %g); weights left as they were",
		    (long long)state->step, metrics->item[0].value);
	if (*skipped_in_row < MAX_SKIPPED_IN_ROW)
		return OK;
	enum status status = error_set(ERR_NUMERIC, "gradients were not finite in %d steps in a row, up to step %lld",
				       *skipped_in_row, (long long)state->step);
	error_hint("the last checkpoint is sound; try a lower --learning_rate or more --num_warmup_steps");
	return status;
}

static enum status evaluate(struct training *training)
{
	struct objective *objective = training->objective;
	if (!objective->evaluate)
		return OK;
	struct metrics metrics = {0};
	double started = clock_seconds();
	TRY(objective->evaluate(objective, training->replica, &metrics));
	TRY(report_evaluation(&training->report, &training->state, NULL, &metrics, clock_seconds() - started));
	return report_evaluated(&training->report, &training->state);
}

static enum status save(struct training *training)
{
	TRY(training->locate(training->locate_context, &training->state));
	return checkpoint_save(&training->checkpoints, training->model, training->optimizer, &training->state);
}

static bool due(int64_t step, int64_t every)
{
	return every > 0 && step % every == 0;
}

enum status train(struct training *training)
{
	const struct loop_settings *settings = &training->settings;
	struct train_state *state = &training->state;
	struct metrics metrics = {0};
	int skipped_in_row = 0;
	int64_t saved_step = state->step, evaluated_step = state->step;
	enum status status = OK;

	TRY(report_start(&training->report, state));
	while (state->step < settings->total_steps) {
		double started = clock_seconds(), grad_norm;
		double learning_rate = schedule_rate(&training->schedule, state->step + 1);
		const struct step *step;
		TRY_GOTO(training->objective->next_step(training->objective, &step), done);
		BUG_IF(!step || step->number != state->step + 1);

		step_begin(training, step, learning_rate);
		double flops = step_gradients(training, step);
		optimizer_update(training->optimizer, training->replica);
		TRY_GOTO(step_end(training, step, &metrics, &grad_norm, &skipped_in_row), done);

		double seconds = clock_seconds() - started;
		state->seconds += seconds;
		TRY_GOTO(report_step(&training->report, &(struct step_report){
								.state = state,
								.metrics = &metrics,
								.learning_rate = learning_rate,
								.grad_norm = grad_norm,
								.seconds = seconds,
								.flops = flops,
								.data = step,
							}),
			 done);

		bool stop = stop_requested() || state->step == settings->stop_at_step;
		if (due(state->step, settings->save_steps) || stop) {
			TRY_GOTO(save(training), done);
			saved_step = state->step;
		}
		if (stop && state->step < settings->total_steps) {
			status = STOPPED;
			goto done;
		}
		/* After the save: what an evaluation may fail at costs no training. */
		if (due(state->step, settings->eval_steps)) {
			TRY_GOTO(evaluate(training), done);
			evaluated_step = state->step;
		}
	}
	if (saved_step != state->step)
		TRY_GOTO(save(training), done);
	if (evaluated_step != state->step)
		TRY_GOTO(evaluate(training), done);
done:
	report_finish(&training->report, state, status);
	return status;
}
