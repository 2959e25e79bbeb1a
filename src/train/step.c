/* Queues the gradients of a step's micro-batches, adds up what the ranks report, and explains non-finite results. */
#include "train/step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/loss_scale.h"
#include "base/memory.h"
#include "base/stop.h"
#include "model/flops.h"

void step_start(struct training *training)
{
	const struct guard_state *guard = &training->state.guard;
	struct scalars scalars = {
		.loss_scale = guard->loss_scale,
		.clean_steps = guard->clean_steps,
		.dynamic_scale = training->guard.dynamic,
	};
	struct replica *replica = training->replica;
	replica->backend->functions->to_device(replica->backend, replica->scalars, &scalars, sizeof scalars);
}

void step_begin(struct training *training, const struct step *step, double learning_rate)
{
	struct scalars scalars = {
		.seed = training->settings.seed,
		.learning_rate = learning_rate,
		.inverse_tokens = step->token_count > 0 ? 1 / (double)step->token_count : 0,
	};
	optimizer_prepare(training->optimizer, &scalars);
	const struct model_heads *heads = &training->model->heads;
	for (int h = 0; h < heads->count; h++)
		scalars.inverse_weight[h] = step->weights[h] > 0 ? heads->head[h].coefficient / step->weights[h] : 0;
	struct accumulators zero = {0};
	struct replica *replica = training->replica;
	struct backend *be = replica->backend;
	be->functions->to_device(be, replica->scalars, &scalars, SCALARS_OF_STEP);
	be->functions->to_device(be, replica->accumulators, &zero, sizeof zero);
}

enum status step_next(struct training *training, const struct step **out)
{
	const struct step *step = NULL;
	double started = clock_seconds();
	ranks_section(training->comm, "data", training->state.step + 1);
	enum status status = training->objective->next_step(training->objective, &step);
	training->times.waited += clock_seconds() - started;
	BUG_IF(status == OK && (!step || step->number != training->state.step + 1 || step->most_batches < step->batch_count));
	*out = step;
	if (ranks_count(training->comm) == 1)
		return status;
	enum { FAILED, WEIGHTS, LABELED = WEIGHTS + BATCH_HEADS, SHARED = LABELED + BATCH_HEADS };
	double shared[SHARED] = {[FAILED] = status != OK};
	for (int h = 0; step && h < BATCH_HEADS; h++) {
		shared[WEIGHTS + h] = step->weights[h];
		shared[LABELED + h] = (double)step->labeled[h];
	}
	TRY(comm_sum(training->comm, shared, SHARED));
	if (shared[FAILED] > 0)
		return comm_agree_status(training->comm, status);
	training->whole = *step;
	for (int h = 0; h < BATCH_HEADS; h++) {
		training->whole.weights[h] = shared[WEIGHTS + h];
		training->whole.labeled[h] = (int64_t)shared[LABELED + h];
	}
	*out = &training->whole;
	return OK;
}

/* Forward and backward of a micro-batch, to be queued. */
struct micro_batch {
	struct objective *objective;
	struct replica *replica;
	struct batch batch;
	bool first;
	struct layer_hook hook;
};

static void forward_and_backward(void *context)
{
	const struct micro_batch *m = context;
	m->objective->gradients(m->objective, m->replica, &m->batch, m->first, m->hook);
}

/* What a micro-batch has to do with other ranks (it waits for the weights that they have updated; its gradients are reduced).
 * EXAMINED: the caller examines the results, so operations are called one by one. */
enum { AWAITS = 1, REDUCES = 2, EXAMINED = 4 };

static enum status micro_batch_gradients(struct training *training, const struct step *step, int32_t number, int32_t hooks,
					 double *flops)
{
	struct micro_batch m = {.objective = training->objective, .replica = training->replica, .first = number == 0};
	if (hooks & REDUCES)
		m.hook = reduction_hook(&training->reduction);
	const struct batch *host;
	TRY(step_batch(step, number, &host));
	m.replica->backend->functions->upload(m.replica, host, &m.batch);
	if (m.objective->begin_batch)
		TRY(m.objective->begin_batch(m.objective, m.replica, number, &m.batch));
	enum work_part part = m.objective->forwarded ? WORK_BACKWARD : m.first ? WORK_TRAINING_FIRST : WORK_TRAINING_NEXT;
	struct work_key key = work_key(m.objective, part, &m.batch);
	key.hooks = hooks;
	if (hooks & EXAMINED)
		forward_and_backward(&m);
	else
		work_queue(m.replica, &key, forward_and_backward, &m);
	*flops += model_training_flops(training->model, host);
	if (m.objective->more_flops)
		*flops += m.objective->more_flops(m.objective, host);
	return OK;
}

static enum status begin_step(struct training *training, const struct step *step)
{
	struct objective *objective = training->objective;
	return objective->begin_step ? objective->begin_step(objective, training->replica, step) : OK;
}

/* For a rank without a micro-batch in a step. */
static void no_gradients(struct training *training)
{
	model_clear_gradients(training->model, training->model->frozen_elements, training->model->gradients.columns);
}

/* Micro-batches between two agreements on whether to stop. */
#define STOP_ROUNDS 8

/* Should this step be aborted before micro-batch `round`? A step of a thousand micro-batches takes longer than the grace
 * period of a scheduler. Once a rank has started to reduce, it is too late. */
static enum status asked_to_stop(struct training *training, const struct step *step, int32_t round)
{
	if (round == 0)
		return OK;
	if (ranks_count(training->comm) == 1)
		return stop_check();
	if (round % STOP_ROUNDS != 0 || round >= step->fewest_batches)
		return OK;
	double stop = stop_requested();
	TRY(comm_max(training->comm, &stop, 1));
	return stop > 0 ? stop_error() : OK;
}

static struct moment now_in(const struct training *training)
{
	struct moment now = {.seconds = clock_seconds()};
	double busy;
	if (training->comm)
		comm_seconds(training->comm, &busy, &now.exposed);
	return now;
}

enum status step_gradients(struct training *training, const struct step *step, struct step_result *result)
{
	struct reduction *reduction = &training->reduction;
	bool alone = ranks_count(training->comm) == 1, each = training->settings.reduce_every_batch;
	result->flops = 0;
	training->window = now_in(training);
	ranks_section(training->comm, "forward and backward", step->number);
	TRY(begin_step(training, step));
	if (step->batch_count == 0)
		no_gradients(training);
	for (int32_t i = 0; i < step->most_batches; i++) {
		bool reduces = !alone && (each || i + 1 == step->batch_count), awaits = !alone && i == 0;
		if (i > 0 && each && !alone) {
			TRY(reduction_finish(reduction));
			reduction_keep_own(reduction);
		}
		TRY(asked_to_stop(training, step, i));
		if (i < step->batch_count)
			TRY(micro_batch_gradients(training, step, i, (awaits ? AWAITS : 0) | (reduces ? REDUCES : 0),
						  &result->flops));
		else if (!alone && (each || (i == 0 && step->batch_count == 0)))
			reduction_begin_all(reduction);
	}
	return optimizer_settle(training->optimizer);
}

/* Waits for queued work, of what ranks do together up to `ticket` (0: all), and reads the sums of this rank. */
static enum status read_sums(struct training *training, comm_ticket ticket, struct scalars *scalars, struct accumulators *sums)
{
	struct replica *replica = training->replica;
	struct backend *be = replica->backend;
	if (ranks_count(training->comm) > 1)
		TRY(comm_settle(training->comm, ticket));
	TRY(be->functions->synchronize(replica));
	be->functions->to_host(be, scalars, replica->scalars, sizeof *scalars);
	be->functions->to_host(be, sums, replica->accumulators, sizeof *sums);
	return OK;
}

static bool sums_finite(const struct accumulators *sums)
{
	for (int i = 0; i < ACCUMULATOR_COUNT; i++)
		if (!isfinite(sums->value[i]))
			return false;
	return true;
}

/* The norm over all ranks, and whether everything is finite in all of them, without the host if they are on GPUs. */
static enum status judge_on_device(struct training *training, comm_ticket *out)
{
	struct scalars *scalars = training->replica->scalars;
	_Static_assert(offsetof(struct scalars, finite) == offsetof(struct scalars, losses_finite) + sizeof(int64_t),
		       "two flags");
	if (comm_on_device(training->comm)) {
		*out = comm_all_reduce(training->comm, &scalars->gradient_square_sum, &scalars->losses_finite, 2);
		TRY(comm_wait(training->comm, *out));
	}
	return OK;
}

/* Adds up what the ranks report after their gradients. On CPUs, makes the decisions that a device makes, and returns them: norm
 * and loss scale, which the update and the next step read. */
static enum status add_ranks(struct training *training, struct scalars *scalars, struct accumulators *sums, double *flops)
{
	enum { SQUARES = ACCUMULATOR_COUNT, NOT_FINITE, FLOPS, STOP, COUNT };
	double shared[COUNT];
	struct backend *be = training->replica->backend;
	memcpy(shared, sums->value, sizeof sums->value);
	shared[SQUARES] = scalars->gradient_square_sum;
	shared[NOT_FINITE] = scalars->finite ? 0 : 1;
	shared[FLOPS] = *flops;
	shared[STOP] = stop_requested();
	TRY(comm_sum(training->comm, shared, COUNT));
	memcpy(sums->value, shared, sizeof sums->value);
	*flops = shared[FLOPS];
	training->stop = shared[STOP] > 0;
	if (comm_on_device(training->comm))
		return OK;
	scalars->gradient_square_sum = shared[SQUARES];
	scalars->losses_finite = sums_finite(sums);
	scalars->finite = shared[NOT_FINITE] == 0;
	loss_scale_next(scalars);
	be->functions->to_device(be, training->replica->scalars, scalars, sizeof *scalars);
	return OK;
}

enum status step_measure(struct training *training, const struct step *step, struct step_result *result)
{
	struct scalars scalars;
	struct accumulators sums;
	ranks_section(training->comm, "reduce", step->number);
	TRY(reduction_finish(&training->reduction));
	optimizer_measure(training->optimizer, training->replica);
	comm_ticket judged = 0;
	TRY(judge_on_device(training, &judged));
	if (judged)
		optimizer_decide(training->optimizer, training->replica);
	result->updated = (ranks_count(training->comm) == 1 || judged) && training->guard.skip_spikes == 0;
	if (result->updated)
		TRY(optimizer_update(training->optimizer, training->replica));
	TRY(read_sums(training, judged, &scalars, &sums));
	struct moment now = now_in(training);
	training->times.computed += (now.seconds - training->window.seconds) - (now.exposed - training->window.exposed);
	result->own = sums;
	if (ranks_count(training->comm) > 1)
		TRY(add_ranks(training, &scalars, &sums, &result->flops));
	training->objective->metrics(training->objective, step, &sums, &result->metrics);
	result->gradient_square_sum = scalars.gradient_square_sum;
	result->finite = scalars.finite != 0;
	result->reading = (struct guard_reading){
		.step = step->number,
		.loss = result->metrics.item[0].value,
		.grad_norm = sqrt(scalars.gradient_square_sum) / scalars.gradient_scale,
		.finite = isfinite(scalars.gradient_square_sum),
		.loss_scale = scalars.gradient_scale,
		.next_loss_scale = scalars.loss_scale,
		.clean_steps = scalars.clean_steps,
	};
	return OK;
}

/* Steps between two reports of times. */
#define TIMED_STEPS 100

enum status step_report_times(struct training *training)
{
	struct rank_times *times = &training->times, *all = NULL;
	int32_t ranks = ranks_count(training->comm);
	double communicated, exposed;
	if (ranks == 1 || ++times->steps < TIMED_STEPS)
		return OK;
	comm_seconds(training->comm, &communicated, &exposed);
	times->communicated = communicated - training->communicated;
	times->exposed = exposed - training->exposed;
	training->communicated = communicated;
	training->exposed = exposed;
	snprintf(times->host, sizeof times->host, "%s", comm_place(training->comm)->host);
	enum status status;
	TRY_GOTO(memory_new(&all, ranks, sizeof *all, "times of the ranks"), done);
	TRY_GOTO(comm_gather(training->comm, times, sizeof *times, all), done);
	struct report_progress progress = train_progress(&training->state);
	status = report_times(&training->report, &progress, all, ranks);
	*times = (struct rank_times){0};
done:
	free(all);
	return status;
}

bool step_stop(const struct training *training)
{
	return ranks_count(training->comm) > 1 ? training->stop : stop_requested();
}

/* ---- A step that is not finite ---- */

/* Where a repetition of the step first went wrong in one rank. */
struct bad_place {
	int32_t rank;
	char host[64];
	int32_t batch, batches;             /* the micro-batch, -1: nowhere; how many there are */
	uint32_t first_sample, last_sample; /* of that micro-batch */
	char where[192];
	bool same;          /* its sums equal those of the first run, bit for bit */
	bool sum_is_finite; /* the gradients' norm over all ranks is finite */
};

/* All NaNs count as equal: their bits may differ without meaning anything. */
static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Measures all gradients of this rank, not its share of the sum. */
static void measure_own(struct training *training)
{
	sumsq_finite(training->replica, &(struct sumsq_finite){.range = training->model->gradients});
}

/* Runs this rank's micro-batches again, without a reduction. */
static enum status repeat_batches(struct training *training, const struct step *step, struct bad_place *out,
				  struct scalars *scalars, struct accumulators *sums)
{
	struct objective *objective = training->objective;
	double flops = 0;
	TRY(begin_step(training, step));
	for (int32_t i = 0; i < step->batch_count; i++) {
		TRY(micro_batch_gradients(training, step, i, EXAMINED, &flops));
		measure_own(training);
		TRY(read_sums(training, 0, scalars, sums));
		if (out->batch >= 0 || (scalars->finite && isfinite(scalars->gradient_square_sum) && sums_finite(sums)))
			continue;
		const struct batch *batch;
		TRY(step_batch(step, i, &batch));
		out->batch = i;
		if (batch->sequence_count > 0) {
			out->first_sample = batch->samples[0];
			out->last_sample = batch->samples[batch->sequence_count - 1];
		}
		if (objective->locate_not_finite)
			objective->locate_not_finite(objective, sums_finite(sums), out->where, sizeof out->where);
	}
	return OK;
}

static enum status repeat_step(struct training *training, const struct step *step, const struct step_result *result,
			       struct bad_place *out)
{
	struct replica *replica = training->replica;
	struct accumulators sums = {0};
	struct scalars scalars = {0};
	bool alone = ranks_count(training->comm) == 1;
	*out = (struct bad_place){.batch = -1, .batches = step->batch_count, .where = "an unknown place"};
	replica->backend->functions->to_device(replica->backend, replica->accumulators, &sums, sizeof sums);
	if (step->batch_count == 0)
		no_gradients(training);
	enum status status = repeat_batches(training, step, out, &scalars, &sums);
	TRY(ranks_agree(training->comm, status));
	if (!alone) {
		reduction_begin_all(&training->reduction);
		TRY(reduction_finish(&training->reduction));
		comm_ticket judged = 0;
		optimizer_measure(training->optimizer, replica);
		TRY(judge_on_device(training, &judged));
		TRY(read_sums(training, judged, &scalars, &sums));
		if (!judged)
			TRY(comm_sum(training->comm, &scalars.gradient_square_sum, 1));
	}
	/* Sums that were reduced batch by batch do not equal these bit for bit. */
	bool comparable = alone || !training->settings.reduce_every_batch;
	out->same = !comparable || same_number(scalars.gradient_square_sum, result->gradient_square_sum);
	out->sum_is_finite = isfinite(scalars.gradient_square_sum);
	for (int i = 0; i < ACCUMULATOR_COUNT; i++)
		out->same &= same_number(sums.value[i], result->own.value[i]);
	return OK;
}

/* Finds the bad place of the lowest rank that has one, and whether all ranks computed the same again. */
static enum status find_bad_rank(struct comm *comm, struct bad_place *place)
{
	int32_t ranks = ranks_count(comm);
	struct bad_place *all, found = *place;
	if (ranks == 1)
		return OK;
	snprintf(found.host, sizeof found.host, "%s", comm_place(comm)->host);
	found.rank = comm_place(comm)->rank;
	TRY(memory_new(&all, ranks, sizeof *all, "what ranks found"));
	enum status status = comm_gather(comm, &found, sizeof found, all);
	bool same = true;
	for (int32_t i = ranks - 1; status == OK && i >= 0; i--) {
		same = same && all[i].same;
		if (i == ranks - 1 || all[i].batch >= 0)
			*place = all[i];
	}
	place->same = same;
	free(all);
	return status;
}

/* "step 7: loss nan, gradients not finite: micro-batch 2 of 4 (samples 96 to 127), first in …" */
static void describe(const struct training *training, const struct step *step, const struct step_result *result,
		     const struct bad_place *place, char *out, size_t size)
{
	char where[512], rank[112] = "";
	const char *again = place->same ? "repeating it gave the same: the data or the recipe, not the machine"
					: "repeating it gave other numbers: faulty hardware (memory, overclocking) or a race";
	if (ranks_count(training->comm) > 1)
		snprintf(rank, sizeof rank, " of rank %d (%s)", place->rank, place->host);
	if (place->batch >= 0)
		snprintf(where, sizeof where, "in micro-batch %d of %d%s (samples %u to %u), first in %s; %s", place->batch + 1,
			 place->batches, rank, place->first_sample, place->last_sample, place->where, again);
	else if (!place->sum_is_finite)
		snprintf(where, sizeof where, "in the sum over ranks alone; %s", again);
	else
		snprintf(where, sizeof where, "but not when repeated: faulty hardware (memory, overclocking) or a race");
	snprintf(out, size, "step %lld: loss %g, gradients %sfinite, %s", (long long)step->number, result->reading.loss,
		 result->reading.finite ? "" : "not ", where);
}

enum status step_explain(struct training *training, const struct step *step, const struct step_result *result)
{
	const struct guard_state *guard = &training->state.guard;
	struct bad_place place;
	char text[768];
	ranks_section(training->comm, "repeating a step", step->number);
	TRY(repeat_step(training, step, result, &place));
	TRY(find_bad_rank(training->comm, &place));
	describe(training, step, result, &place, text, sizeof text);
	if (!guard_is_exhausted(guard, step->number)) {
		log_warning("%s; the weights stay as they were", text);
		return OK;
	}
	enum status status;
	if (guard->skipped_in_row >= GUARD_IN_ROW)
		status = error_set(ERR_NUMERIC, "%s; this was number %lld in a row", text, (long long)guard->skipped_in_row);
	else
		status = error_set(ERR_NUMERIC, "%s; this was number %d within %d steps", text, GUARD_RECENT, GUARD_HORIZON);
	if (place.batch < 0 || !place.same)
		error_hint("the last checkpoint is intact: run the same command on another machine, or test this one's memory");
	else
		error_hint("look at those samples; a resumed run keeps its settings: start over (--fresh), or start another run "
			   "(--out) from the last checkpoint's weights, which are intact, with a lower --learning_rate, more "
			   "--num_warmup_steps, or a lower --max_grad_norm");
	return status;
}
