#include "train/step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/stop.h"

void step_begin(struct training *training, const struct step *step, double learning_rate)
{
	struct scalars scalars = {
		.seed = training->settings.seed,
		.learning_rate = learning_rate,
		.loss_scale = training->state.guard.loss_scale,
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

static enum status micro_batch_gradients(struct training *training, const struct step *step, int32_t number,
					 double *flops)
{
	struct objective *objective = training->objective;
	struct replica *replica = training->replica;
	const struct batch *host;
	struct batch batch;
	TRY(step_batch(step, number, &host));
	replica->backend->functions->upload(replica, host, &batch);
	objective->forward(objective, replica, &batch, number == 0);
	objective->backward(objective, replica, &batch, number == 0);
	*flops += model_training_flops(&training->model->config, host);
	return OK;
}

enum status step_gradients(struct training *training, const struct step *step, struct step_result *result)
{
	result->flops = 0;
	for (int32_t i = 0; i < step->batch_count; i++) {
		/* A step of a thousand micro-batches is longer than the grace a scheduler gives. */
		if (i > 0 && stop_requested())
			return STOPPED;
		TRY(micro_batch_gradients(training, step, i, &result->flops));
	}
	return OK;
}

/* Waits for what is queued and reads the sums so far. */
static enum status read_sums(struct training *training, struct scalars *scalars, struct accumulators *sums)
{
	struct replica *replica = training->replica;
	struct backend *be = replica->backend;
	optimizer_measure(training->optimizer, replica);
	TRY(be->functions->synchronize(replica));
	be->functions->to_host(be, scalars, replica->scalars, sizeof(*scalars));
	be->functions->to_host(be, sums, replica->accumulators, sizeof(*sums));
	return OK;
}

enum status step_measure(struct training *training, const struct step *step, struct step_result *result)
{
	struct scalars scalars;
	TRY(read_sums(training, &scalars, &result->sums));
	training->objective->metrics(training->objective, step, &result->sums, &result->metrics);
	result->gradient_square_sum = scalars.gradient_square_sum;
	result->reading = (struct guard_reading){
		.step = step->number,
		.loss = result->metrics.item[0].value,
		.grad_norm = sqrt(scalars.gradient_square_sum) / scalars.loss_scale,
		.finite = scalars.finite != 0,
	};
	return OK;
}

/* ---- A step that is not finite ---- */

/* Where a repetition of the step first went wrong. */
struct bad_place {
	int32_t batch; /* -1: nowhere */
	uint32_t first_sample, last_sample; /* of that micro-batch */
	char where[192];
	bool same;     /* its sums are those of the first run, bit for bit */
};

static bool sums_finite(const struct accumulators *sums)
{
	for (int i = 0; i < ACCUMULATOR_COUNT; i++)
		if (!isfinite(sums->value[i]))
			return false;
	return true;
}

/* NaNs differ in bits that mean nothing. */
static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static enum status repeat_step(struct training *training, const struct step *step, const struct step_result *result,
			       struct bad_place *out)
{
	struct objective *objective = training->objective;
	struct replica *replica = training->replica;
	struct accumulators sums = {0};
	struct scalars scalars = {0};
	double flops = 0;
	*out = (struct bad_place){.batch = -1, .where = "an unknown place"};
	replica->backend->functions->to_device(replica->backend, replica->accumulators, &sums, sizeof(sums));
	for (int32_t i = 0; i < step->batch_count; i++) {
		TRY(micro_batch_gradients(training, step, i, &flops));
		TRY(read_sums(training, &scalars, &sums));
		if (out->batch >= 0 ||
		    (scalars.finite && isfinite(scalars.gradient_square_sum) && sums_finite(&sums)))
			continue;
		const struct batch *batch;
		TRY(step_batch(step, i, &batch));
		out->batch = i;
		out->first_sample = out->last_sample = batch->sequence_count > 0 ? batch->samples[0] : 0;
		out->last_sample += (uint32_t)(batch->sequence_count > 0 ? batch->sequence_count - 1 : 0);
		if (objective->locate_not_finite)
			objective->locate_not_finite(objective, sums_finite(&sums), out->where, sizeof(out->where));
	}
	out->same = same_number(scalars.gradient_square_sum, result->gradient_square_sum);
	for (int i = 0; i < ACCUMULATOR_COUNT; i++)
		out->same &= same_number(sums.value[i], result->sums.value[i]);
	return OK;
}

/* "step 7: loss nan, gradients not finite: micro-batch 2 of 4 (samples 96 to 127), first in …" */
static void describe(const struct step *step, const struct step_result *result, const struct bad_place *place,
		     char *out, size_t size)
{
	char where[384];
	if (place->batch < 0) {
		snprintf(where, sizeof(where), "but not when repeated: the hardware (memory, overclocking) or a race");
	} else {
		snprintf(where, sizeof(where), "in micro-batch %d of %d (samples %u to %u), first in %s; %s",
			 place->batch + 1, step->batch_count, place->first_sample, place->last_sample, place->where,
			 place->same ? "the same when repeated: data or recipe, not the machine"
				     : "other numbers when repeated: the hardware (memory, overclocking) or a race");
	}
	snprintf(out, size, "step %lld: loss %g, gradients %sfinite, %s", (long long)step->number,
		 result->reading.loss, result->reading.finite ? "" : "not ", where);
}

enum status step_explain(struct training *training, const struct step *step, const struct step_result *result)
{
	const struct guard_state *guard = &training->state.guard;
	struct bad_place place;
	char text[640];
	TRY(repeat_step(training, step, result, &place));
	describe(step, result, &place, text, sizeof(text));
	if (!guard_is_exhausted(guard, step->number)) {
		log_warning("%s; the weights stay as they were", text);
		return OK;
	}
	enum status status;
	if (guard->skipped_in_row >= GUARD_IN_ROW)
		status = error_set(ERR_NUMERIC, "%s; it was number %lld in a row", text, (long long)guard->skipped_in_row);
	else
		status = error_set(ERR_NUMERIC, "%s; it was number %d within %d steps", text, GUARD_RECENT, GUARD_HORIZON);
	if (place.batch < 0 || !place.same)
		error_hint("the last checkpoint is sound: run the same command on another machine, or test this one's memory");
	else
		error_hint("the last checkpoint is sound: go on from it with a lower --learning_rate, more --num_warmup_steps "
			   "or a lower --max_grad_norm, and look at those samples");
	return status;
}
