/* The loop knows the task only through its objective, and the machine only through its replica. train_phase(), near the end of
 * this file, shows what it does in order; everything else here is one of its parts. */
#include "train/loop.h"

#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/stop.h"
#include "train/step.h"

static bool due(int64_t step, int64_t every)
{
	return every > 0 && step % every == 0;
}

/* Has the phase used up its steps, its tokens, or its time? */
static bool is_full(const struct phase *phase, const struct train_state *state)
{
	if (phase->seconds > 0 || state->phase.time_is_up)
		return state->phase.time_is_up;
	return state->step - state->phase.first_step >= phase->steps ||
	       (phase->tokens > 0 && state->tokens - state->phase.first_token >= phase->tokens);
}

/* Has its deciding measure stopped improving? */
static bool is_stalled(const struct phase *phase, const struct train_state *state)
{
	return phase->patience > 0 && state->phase.stalled >= phase->patience;
}

struct report_progress train_progress(const struct train_state *state)
{
	return (struct report_progress){
		.step = state->step,
		.samples = state->samples,
		.tokens = state->tokens,
		.seconds = state->seconds,
		.skipped_steps = state->skipped_steps,
		.phase = state->phase.index + 1,
		.evaluated_step = state->evaluated_step,
	};
}

/* Records what an evaluation says about the phase (is it still improving?) and about the checkpoint (is it the best?). */
static void remember_score(struct training *training, const struct measure *decides)
{
	struct train_state *state = &training->state;
	struct phase_state *score = &state->phase;
	const struct phase *phase = &training->phases[score->index];
	double value = decides->value;
	state->evaluated_score = value;
	bool gains = score->evaluations == 0 || !isfinite(score->best_score) ||
		     measure_is_better(decides->direction, value, score->best_score, phase->patience_margin);
	if (gains) {
		score->best_score = value;
		score->best_step = state->step;
	}
	score->stalled = gains ? 0 : score->stalled + 1;
	score->evaluations++;

	bool kept = training->settings.save_best || due(state->step, phase->save_steps) || is_full(phase, state);
	bool best = state->best_step == 0 || measure_is_better(decides->direction, value, state->best_score, 0);
	if (kept && isfinite(value) && best) {
		state->best_step = state->step;
		state->best_score = value;
	}
}

enum status loop_deciding_measure(const char *name, const struct measures *measures, struct measure *decides)
{
	const struct measure *found = measures_find(measures, name);
	struct buffer known = {0};
	if (found && found->direction != DIRECTION_NONE) {
		*decides = *found;
		return OK;
	}
	for (int64_t i = 0; i < measures->count; i++)
		if (measures->item[i].direction != DIRECTION_NONE)
			buffer_format(&known, "%s%s", known.size > 0 ? ", " : "", measures->item[i].name);
	enum status status =
		error_set(ERR_USAGE, "--metric %s: the evaluation has no such measure to choose a checkpoint by", name);
	error_hint("its measures are: %s", buffer_string(&known));
	buffer_release(&known);
	return status;
}

/* Scores a held-out set and reports the result. */
static enum status evaluate_set(struct training *training, int64_t set, struct measures *metrics)
{
	struct objective *objective = training->objective;
	struct report_progress progress = train_progress(&training->state);
	double started = clock_seconds();
	TRY(objective->evaluate(objective, training->replica, set, metrics));
	return report_evaluation(&training->report, &progress, objective->evaluation_names[set], metrics,
				 clock_seconds() - started);
}

/* Scores every held-out set. One of them decides whether the phase is still improving. */
static enum status evaluate(struct training *training)
{
	struct objective *objective = training->objective;
	struct train_state *state = &training->state;
	struct report_progress progress = train_progress(state);
	struct measure decides = {.direction = DIRECTION_LOWER, .value = NAN};
	ranks_section(training->comm, "evaluate", state->step);
	TRY(ranks_settle(training->comm));
	double began = clock_seconds();
	for (int64_t set = 0; set < objective->evaluation_count; set++) {
		struct measures metrics = {0};
		/* Only the first rank reports: the others must not train on while it saves because that has failed. */
		TRY(ranks_agree(training->comm, evaluate_set(training, set, &metrics)));
		if (set == training->settings.best_set)
			TRY(loop_deciding_measure(checkpoint_decides(&training->checkpoints), &metrics, &decides));
	}
	training->longest_evaluation = fmax(training->longest_evaluation, clock_seconds() - began);
	state->evaluated_step = state->step;
	if (objective->evaluation_count == 0)
		return OK;
	/* Every rank has computed it from the same scores, but perhaps with another math library. */
	if (ranks_count(training->comm) > 1)
		TRY(comm_broadcast(training->comm, &decides.value, sizeof decides.value, 0));
	progress.evaluated_step = state->step;
	TRY(ranks_agree(training->comm, report_evaluated(&training->report, &progress)));
	remember_score(training, &decides);
	return OK;
}

/* In a run with a time limit: how much of it has been used. The first rank's clock counts for all. */
static enum status take_time(struct training *training)
{
	struct train_state *state = &training->state;
	if (training->phases[state->phase.index].seconds <= 0)
		return OK;
	state->elapsed = clock_seconds() - training->started;
	return ranks_count(training->comm) > 1 ? comm_broadcast(training->comm, &state->elapsed, sizeof state->elapsed, 0) : OK;
}

/* Seconds needed after the step about to begin: another step like it, an evaluation, and two saves. */
static double seconds_to_end(const struct training *training)
{
	const struct train_state *state = &training->state;
	double a_step = state->step > 0 ? state->seconds / (double)state->step : 0;
	return 2 * a_step + training->longest_evaluation + 2 * checkpoint_writer_longest(training->writer);
}

/* The time of the run at which a phase ends; -1 is the one before the first. */
static double phase_end(const struct training *training, int64_t index)
{
	double begun = training->state.begun, whole = training->phases[training->phase_count - 1].seconds;
	double end = index < 0 ? 0 : training->phases[index].seconds;
	return begun + end / whole * (whole - begun);
}

/* Determines how much of the time for steps has been used, and whether the step about to begin is the last one that fits. */
static enum status look_at_clock(struct training *training)
{
	struct train_state *state = &training->state;
	const struct phase *phase = &training->phases[state->phase.index];
	if (phase->seconds <= 0)
		return OK;
	double to_end = seconds_to_end(training);
	TRY(take_time(training));
	if (ranks_count(training->comm) > 1)
		TRY(comm_broadcast(training->comm, &to_end, sizeof to_end, 0));
	if (state->step == 0)
		state->begun = state->elapsed;
	double begun = phase_end(training, state->phase.index - 1), usable = phase_end(training, state->phase.index) - to_end;
	double steps = (double)(state->step - state->phase.first_step), later = 0;
	for (int64_t i = state->phase.index + 1; i < training->phase_count; i++)
		later += (double)training->phases[i].steps;
	state->phase.time_is_up = state->elapsed >= usable;
	training->share_of_time = state->phase.time_is_up ? 1 : fmax(0, (state->elapsed - begun) / (usable - begun));
	if (state->phase.time_is_up)
		report_expect(&training->report, state->step + 1 + (int64_t)later);
	else if (steps >= 10 && state->elapsed > begun) /* at the pace so far, evaluations included */
		report_expect(&training->report,
			      state->step + (int64_t)ceil((usable - state->elapsed) * steps / (state->elapsed - begun) + later));
	return OK;
}

/* If the clock decides: the share of the time that warm-up may take in order to have all its updates. */
#define LONGEST_WARMUP (1.0 / 3)

/* The place of update `number` of the run in the schedule: its number within the phase or, if the clock decides, the share of
 * the time that has been used, scaled to the phase's steps. Even then, warm-up does not take fewer updates than it should: the
 * first ones are slow, and a rate that rises within a few updates can destroy the initial weights. */
static double place_in_schedule(const struct training *training, int64_t number)
{
	const struct train_state *state = &training->state;
	const struct phase *phase = &training->phases[state->phase.index];
	double update = (double)(number - state->phase.first_step);
	if (phase->seconds <= 0)
		return update;
	double place = fmax(1, training->share_of_time * (double)phase->steps);
	bool warming_up = update < phase->schedule.warmup_steps && training->share_of_time < LONGEST_WARMUP;
	return warming_up ? fmin(place, update) : place;
}

/* Starts a save, unless this very state has been saved: a stop may be requested right after a save. */
static enum status save(struct training *training)
{
	if (training->saved_step == training->state.step)
		return OK;
	training->saved_step = training->state.step;
	ranks_section(training->comm, "save", training->state.step);
	TRY(take_time(training));
	TRY(optimizer_gather_masters(training->optimizer));
	TRY(ranks_settle(training->comm));
	TRY(ranks_compare_weights(training->comm, training->model, training->state.step));
	TRY(ranks_agree(training->comm, training->locate(training->context, &training->state)));
	return checkpoint_writer_save(training->writer, &training->state);
}

/* The marks of the best checkpoint in the run folder are up to the first rank; what it finds there applies to all. */
static enum status check_best(struct training *training)
{
	struct train_state *state = &training->state;
	enum status status = OK;
	if (is_first_rank(training->comm))
		status = checkpoint_best_check(&training->checkpoints, state);
	TRY(ranks_agree(training->comm, status));
	return ranks_count(training->comm) > 1 ? comm_broadcast(training->comm, state, sizeof *state, 0) : OK;
}

/* Makes one update and reports it. STOPPED: it was not made. */
static enum status train_step(struct training *training)
{
	struct train_state *state = &training->state;
	const struct phase *phase = &training->phases[state->phase.index];
	const struct objective *objective = training->objective;
	double started = clock_seconds();
	TRY(look_at_clock(training));
	double learning_rate = schedule_rate(&phase->schedule, place_in_schedule(training, state->step + 1));
	struct step_result result = {0};
	enum guard_verdict verdict;
	const struct step *step;
	TRY(step_next(training, &step));

	step_begin(training, step, learning_rate);
	TRY(step_gradients(training, step, &result));
	TRY(step_measure(training, step, &result));
	TRY(guard_judge(&state->guard, &training->guard, &result.reading, &verdict));
	if (due(step->number, training->settings.compare_weights_steps)) {
		TRY(optimizer_gather_masters(training->optimizer));
		TRY(ranks_settle(training->comm));
		TRY(ranks_compare_weights(training->comm, training->model, step->number));
	}
	BUG_IF(result.updated && (verdict == GUARD_APPLY) != result.finite);
	if (verdict == GUARD_APPLY && !result.updated)
		TRY(optimizer_update(training->optimizer, training->replica));
	else if (verdict == GUARD_NOT_FINITE)
		TRY(step_explain(training, step, &result));
	TRY(training->replica->backend->functions->synchronize(training->replica));

	state->step++;
	state->samples += step->example_count;
	state->tokens += step->token_count;
	state->skipped_steps += verdict != GUARD_APPLY;
	training->optimizer->update_count += verdict == GUARD_APPLY;
	double seconds = clock_seconds() - started;
	state->seconds += seconds;
	double loss = measures_get(&result.metrics, "loss");
	if (isfinite(loss)) {
		state->loss_sum += loss;
		state->loss_count++;
	}
	stop_reserve(checkpoint_writer_longest(training->writer) + seconds / step->most_batches);
	TRY(step_report_times(training));
	struct report_progress progress = train_progress(state);
	return report_step(&training->report,
			   &(struct step_report){
				   .state = &progress,
				   .metrics = &result.metrics,
				   .set = objective->training_set ? objective->training_set(objective, step) : NULL,
				   .learning_rate = learning_rate,
				   .grad_norm = result.reading.grad_norm,
				   .seconds = seconds,
				   .flops = result.flops,
				   .waited = objective->waited ? objective->waited(objective) : 0,
				   .token_count = step->token_count,
				   .sequence_count = step->example_count,
				   .lengths = step->lengths,
			   });
}

/* Tells the report about the phase of `state`, and how long the run will be. */
static void begin_report(struct training *training)
{
	const struct train_state *state = &training->state;
	const struct phase *phase = &training->phases[state->phase.index];
	struct report_progress progress = train_progress(state);
	int64_t total_steps = state->phase.first_step;
	for (int64_t i = state->phase.index; i < training->phase_count; i++)
		total_steps += training->phases[i].steps;
	report_phase(&training->report,
		     &(struct report_phase){
			     .count = training->phase_count,
			     .begins = state->phase.index > 0 && state->step == state->phase.first_step,
			     .log_steps = phase->log_steps,
			     .total_steps = total_steps,
			     .peak_rate = phase->schedule.peak,
		     },
		     &progress);
}

/* After an update: adds the weights to the mean, if the phase has one, and replaces them with it after the last update. */
static enum status average_weights(struct training *training, bool last)
{
	struct train_state *state = &training->state;
	const struct phase *phase = &training->phases[state->phase.index];
	if (phase->averaged <= 0)
		return OK;
	if (average_is_due(phase->averaged, phase->steps, place_in_schedule(training, state->step), state->phase.averaged)) {
		TRY(optimizer_gather_masters(training->optimizer));
		TRY(ranks_settle(training->comm));
		/* A save in progress may still be reading the mean. */
		TRY(ranks_agree(training->comm, checkpoint_writer_finish(training->writer)));
		TRY(average_add(training->average, state->phase.averaged));
		state->phase.averaged++;
	}
	if (!last || state->phase.averaged == 0)
		return OK;
	log_note("the weights are the mean of %lld states of the phase's last %.3g %%", (long long)state->phase.averaged,
		 100 * phase->averaged);
	TRY(average_use(training->average, training->replica));
	state->phase.averaged = 0;
	return OK;
}

/* Runs the phase of `state`, from where it stands to its end. */
static enum status train_phase(struct training *training)
{
	const struct loop_settings *settings = &training->settings;
	struct train_state *state = &training->state;
	const struct phase *phase = &training->phases[state->phase.index];
	bool last = state->phase.index == training->phase_count - 1;
	ranks_section(training->comm, "opening a phase", state->step);
	TRY(ranks_agree(training->comm, training->open_phase(training->context, state, &training->objective)));
	begin_report(training);

	/* The checkpoint was saved because of a request to stop, before an evaluation that was due. */
	bool owed = state->step > state->phase.first_step && state->evaluated_step < state->step;
	if (owed && (due(state->step, phase->eval_steps) || is_full(phase, state))) {
		TRY(evaluate(training));
		TRY(check_best(training));
	}
	while (!phase_has_ended(phase, state)) {
		enum status stepped = train_step(training), evaluated = OK;
		if (stepped != OK && stepped != STOPPED)
			return stepped;
		TRY(ranks_agree(training->comm, checkpoint_writer_check(training->writer)));

		bool full = is_full(phase, state);
		if (stepped == OK || full) /* the step for which there was still time may have been abandoned */
			TRY(average_weights(training, full));
		bool stop = stepped == STOPPED || step_stop(training) || state->step == settings->stop_at_step;
		stop = stop && !(full && last);
		if ((due(state->step, phase->eval_steps) || full) && !stop)
			evaluated = evaluate(training);
		stop = stop || evaluated == STOPPED;
		/* Whatever made an evaluation fail, the training before it is saved, as is the best state so far. */
		bool best = state->best_step == state->step;
		if (due(state->step, phase->save_steps) || full || is_stalled(phase, state) || best || stop || evaluated != OK) {
			struct error error = *error_last();
			TRY(save(training));
			if (evaluated != OK && evaluated != STOPPED)
				return error_restore(&error);
		}
		if (stop)
			return stop_error();
	}
	if (phase->averaged > 0 && phase_ended_early(phase, state))
		log_note("the phase ended early, so its weights are those of its last step, not a mean (--average_weights)");
	return OK;
}

/* However the loop ended, a save that it started is finished. Its failure is reported if nothing else failed; if something
 * did, a missing run folder is the better explanation. */
static enum status last_save(struct training *training, enum status ended)
{
	struct error error = *error_last();
	enum status status = checkpoint_writer_finish(training->writer);
	if (ended == OK || ended == STOPPED) {
		status = ranks_agree(training->comm, status);
		return status == OK ? ended : status;
	}
	TRY(checkpoint_folder_check(training->checkpoints.folder));
	return error_restore(&error);
}

static const char *phase_end_reason(const struct phase *phase, const struct train_state *state)
{
	if (is_stalled(phase, state))
		return "its held-out loss no longer improves";
	if (state->phase.time_is_up)
		return "its time is up";
	return state->step - state->phase.first_step >= phase->steps ? "all its steps are done" : "all its tokens are done";
}

void train_state_next_phase(struct train_state *state)
{
	state->phase = (struct phase_state){
		.index = state->phase.index + 1,
		.first_step = state->step,
		.first_sample = state->samples,
		.first_token = state->tokens,
	};
	/* Losses on other data and lengths do not compare. */
	state->best_step = 0;
	state->guard.observed = 0;
}

void train_state_forget_scores(struct train_state *state)
{
	state->best_step = 0;
	state->phase.evaluations = 0;
	state->phase.stalled = 0;
}

bool phase_has_ended(const struct phase *phase, const struct train_state *state)
{
	return is_full(phase, state) || is_stalled(phase, state);
}

bool phase_ended_early(const struct phase *phase, const struct train_state *state)
{
	return is_stalled(phase, state) && !is_full(phase, state);
}

/* A run that ends before its last step looks like one that was stopped, so it says why. */
static enum status say_early_end(struct training *training)
{
	const struct train_state *state = &training->state;
	const struct phase *phase = &training->phases[state->phase.index];
	char text[FINDING_TEXT_BYTES], count[FORMAT_BYTES], since[64] = "";
	if (!phase_ended_early(phase, state))
		return OK;
	if (state->phase.best_step > 0)
		snprintf(since, sizeof since, " since step %lld", (long long)state->phase.best_step);
	format_counted(count, phase->patience, "evaluation", "evaluations");
	snprintf(text, sizeof text,
		 "Stopped early after step %lld of %lld: %s has not improved%s, in %s (--early_stopping_patience).",
		 (long long)state->step, (long long)(state->phase.first_step + phase->steps),
		 checkpoint_decides(&training->checkpoints), since, count);
	struct report_progress progress = train_progress(state);
	return report_early_end(&training->report, &progress, text);
}

enum status train(struct training *training)
{
	struct train_state *state = &training->state;
	struct report_progress progress;
	enum status status;
	TRY(checkpoint_writer_open(&training->writer, &training->checkpoints, training->model, training->optimizer));
	TRY_GOTO(reduction_open(&training->reduction, &training->optimizer->buckets, training->model, training->settings.wire),
		 failed);
	guard_start(&state->guard, &training->guard);
	step_start(training);
	TRY_GOTO(ranks_agree_on_weights(training->comm, training->model), failed);
	TRY_GOTO(check_best(training), failed);
	progress = train_progress(state);
	TRY_GOTO(report_start(&training->report, &progress), failed);
	for (;;) {
		TRY_GOTO(train_phase(training), done);
		if (state->phase.index == training->phase_count - 1) {
			status = say_early_end(training);
			break;
		}
		log_note("phase %lld ended at step %lld: %s", (long long)state->phase.index + 1, (long long)state->step,
			 phase_end_reason(&training->phases[state->phase.index], state));
		/* The save in progress still describes the data of this phase. */
		TRY_GOTO(ranks_agree(training->comm, checkpoint_writer_finish(training->writer)), done);
		train_state_next_phase(state);
		optimizer_restart(training->optimizer);
	}
done:
	status = last_save(training, status);
	progress = train_progress(state);
	report_finish(&training->report, &progress, status);
failed:
	checkpoint_writer_close(training->writer);
	return status;
}
