/* The loop and its guard: values that are not finite never reach a weight, and are explained; spikes; the loss scale; all
 * of this resumes from a checkpoint as if nothing had happened. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "base/stop.h"
#include "train/loop_world.h"

static struct world w;
static float *seen[8];
static char log_path[128];

/* The log messages since the last log_start(). */
static void log_start(void)
{
	log_to_file(NULL);
	snprintf(log_path, sizeof log_path, "%s/log", test_folder);
	unlink(log_path);
	log_to_file(log_path);
}

static int log_count(const char *part)
{
	struct buffer text = {0};
	int count = 0;
	if (file_exists(log_path))
		assert_ok(file_read(log_path, 1 << 24, &text));
	for (const char *at = buffer_string(&text); (at = strstr(at, part)); at++)
		count++;
	buffer_release(&text);
	return count;
}

/* The weights at the beginning of eight steps. */
static int64_t first_seen;

static void remember(struct world *world, int64_t step)
{
	if (step >= first_seen && step < first_seen + 8) {
		free(seen[step - first_seen]);
		seen[step - first_seen] = world_weights(world);
	}
}

static int drop_seen(void **state)
{
	for (int i = 0; i < 8; i++) {
		free(seen[i]);
		seen[i] = NULL;
	}
	first_seen = 0;
	return 0;
}

static double nan_in_step_3(int64_t step, int32_t batch, int run, double scale)
{
	(void)run, (void)scale;
	return step == 3 && batch == 1 ? NAN : 1;
}

static void one_bad_step_is_left_out(void **state)
{
	log_start();
	world_open(&w, "bad", 6, 0);
	w.gradient = nan_in_step_3;
	w.before_step = remember;
	assert_ok(train(&w.training));
	assert_true(same_weights(&w, seen[3], seen[4]));
	assert_false(same_weights(&w, seen[2], seen[3]));
	assert_false(same_weights(&w, seen[4], seen[5]));
	assert_int_equal(w.training.state.skipped_steps, 1);
	assert_int_equal(w.training.state.guard.skipped_in_row, 0);
	assert_int_equal(w.optimizer->update_count, 5);
	assert_int_equal(log_count("step 3: loss 5, gradients not finite, in micro-batch 2 of 2 (samples 7 to 7), first in "
				   "the gradient; repeating it gave the same"),
			 1);
	world_close(&w);
}

static double nan_from_step_5(int64_t step, int32_t batch, int run, double scale)
{
	(void)batch, (void)run, (void)scale;
	return step >= 5 ? INFINITY : 1;
}

static void three_in_a_row_end_the_run(void **state)
{
	world_open(&w, "row", 100, 2);
	w.gradient = nan_from_step_5;
	assert_error(ERR_NUMERIC, "number 3 in a row", train(&w.training));
	assert_non_null(strstr(error_last()->message, "step 7"));
	assert_non_null(strstr(error_last()->message, "micro-batch 1 of 2"));
	/* A resumed run refuses another rate, so the advice is to begin another run. */
	assert_non_null(strstr(error_last()->hint, "start another run (--out) from the last checkpoint's weights"));
	assert_ok(checkpoint_verify(test_path("row/checkpoint-6")));
	assert_false(file_exists(test_path("row/checkpoint-7")));
	/* The row of skipped steps is part of the checkpoint: run again, training ends at the same step. */
	world_close(&w);
	world_open(&w, "row", 100, 2);
	w.gradient = nan_from_step_5;
	world_resume(&w);
	assert_int_equal(w.training.state.guard.skipped_in_row, 2);
	assert_error(ERR_NUMERIC, "step 7", train(&w.training));
	world_close(&w);
}

static int64_t bad_every;

static double nan_now_and_then(int64_t step, int32_t batch, int run, double scale)
{
	(void)batch, (void)run, (void)scale;
	return step % bad_every == 0 ? NAN : 1;
}

static void ten_in_a_thousand_end_the_run(void **state)
{
	bad_every = 20;
	world_open(&w, "ten", 2000, 50);
	w.gradient = nan_now_and_then;
	assert_error(ERR_NUMERIC, "number 10 within 1000", train(&w.training));
	assert_non_null(strstr(error_last()->message, "step 200"));
	world_close(&w);
	/* ... including those before a resume ... */
	world_open(&w, "ten", 2000, 0);
	w.gradient = nan_now_and_then;
	world_resume(&w);
	assert_int_equal(w.training.state.step, 150);
	assert_error(ERR_NUMERIC, "step 200", train(&w.training));
	world_close(&w);
	/* ... but not when they are further apart. */
	bad_every = 112;
	world_open(&w, "few", 1200, 0);
	w.gradient = nan_now_and_then;
	assert_ok(train(&w.training));
	assert_int_equal(w.training.state.skipped_steps, 10);
	world_close(&w);
}

static double nan_the_first_time(int64_t step, int32_t batch, int run, double scale)
{
	(void)batch, (void)scale;
	return step == 2 && run == 1 ? NAN : step == 4 ? (run == 1 ? NAN : 1e200) : 1;
}

static double other_each_time(int64_t step, int run)
{
	return step == 3 ? NAN : step == 4 ? (run == 1 ? NAN : 1 / 0.0) : 5;
}

static void a_fault_of_the_machine_is_told_apart(void **state)
{
	log_start();
	world_open(&w, "machine", 5, 0);
	w.gradient = nan_the_first_time;
	w.before_step = remember;
	assert_ok(train(&w.training));
	assert_int_equal(log_count("step 2: loss 5, gradients not finite, but not when repeated: faulty hardware"), 1);
	assert_int_equal(log_count("first in the gradient; repeating it gave other numbers"), 1);
	assert_true(same_weights(&w, seen[2], seen[3]));
	world_close(&w);
	/* If only the loss is not finite, nothing of that step is used, either. */
	log_start();
	world_open(&w, "loss", 6, 0);
	w.loss = other_each_time;
	w.before_step = remember;
	assert_ok(train(&w.training));
	assert_true(same_weights(&w, seen[3], seen[5]));
	assert_int_equal(
		log_count("step 3: loss nan, gradients finite, in micro-batch 1 of 2 (samples 6 to 6), first in the loss; "
			  "repeating it gave the same"),
		1);
	assert_int_equal(
		log_count("step 4: loss nan, gradients finite, in micro-batch 1 of 2 (samples 8 to 8), first in the loss; "
			  "repeating it gave other numbers"),
		1);
	world_close(&w);
}

static double loss_with_a_spike(int64_t step, int run)
{
	(void)run;
	return step == 150 ? 9 : 5 + 0.1 * (double)(step % 5);
}

static double norm_with_a_spike(int64_t step, int32_t batch, int run, double scale)
{
	(void)batch, (void)run, (void)scale;
	return step == 140 ? 100 : 1 + 0.01 * (double)(step % 3);
}

static void spikes_are_left_out_on_request(void **state)
{
	log_start();
	world_open(&w, "spikes", 160, 0);
	w.loss = loss_with_a_spike;
	w.gradient = norm_with_a_spike;
	assert_ok(train(&w.training));
	assert_int_equal(log_count("standard deviations above"), 0);
	assert_int_equal(w.training.state.skipped_steps, 0);
	float *with = world_weights(&w);
	world_close(&w);

	log_start();
	world_open(&w, "skipped", 160, 0);
	w.loss = loss_with_a_spike;
	w.gradient = norm_with_a_spike;
	w.training.guard.skip_spikes = 6;
	w.before_step = remember;
	first_seen = 148;
	assert_ok(train(&w.training));
	assert_true(same_weights(&w, seen[2], seen[3]));
	assert_false(same_weights(&w, seen[1], seen[2]));
	assert_int_equal(log_count("update skipped"), 2);
	assert_int_equal(log_count("step 140: gradient norm"), 1);
	assert_int_equal(log_count("step 150: loss 9 is"), 1);
	assert_int_equal(w.training.state.skipped_steps, 2);
	assert_int_equal(w.optimizer->update_count, 158);
	float *without = world_weights(&w);
	assert_false(same_weights(&w, with, without));
	world_close(&w);

	/* The window is part of the checkpoint: a spike right after it is noticed, and the weights end the same. */
	world_open(&w, "window", 160, 0);
	w.loss = loss_with_a_spike;
	w.gradient = norm_with_a_spike;
	w.training.guard.skip_spikes = 6;
	w.training.settings.stop_at_step = 139;
	assert_int_equal(train(&w.training), STOPPED);
	struct guard_state before = w.training.state.guard;
	world_close(&w);
	world_open(&w, "window", 160, 0);
	w.loss = loss_with_a_spike;
	w.gradient = norm_with_a_spike;
	w.training.guard.skip_spikes = 6;
	world_resume(&w);
	assert_memory_equal(&before, &w.training.state.guard, sizeof before);
	assert_ok(train(&w.training));
	float *resumed = world_weights(&w);
	assert_true(same_weights(&w, without, resumed));
	free(with);
	free(without);
	free(resumed);
	world_close(&w);
}

static double overflow_above_1024(int64_t step, int32_t batch, int run, double scale)
{
	(void)step, (void)batch, (void)run;
	return scale > 1024 ? INFINITY : 1;
}

static double overflow_always(int64_t step, int32_t batch, int run, double scale)
{
	(void)batch, (void)run, (void)scale;
	return step < 4 ? 1 : INFINITY;
}

static double nan_from_then_on(int64_t step, int run)
{
	(void)run;
	return step >= 3 ? NAN : 5;
}

static void the_loss_scale_follows(void **state)
{
	/* 65536 overflows six times, down to 1024; 2000 clean steps later 2048 is tried once, and so on. */
	world_open(&w, "scale", 4020, 0);
	w.gradient = overflow_above_1024;
	w.training.guard = (struct guard_settings){.dynamic = true, .loss_scale = 65536};
	assert_ok(train(&w.training));
	assert_int_equal(w.training.state.skipped_steps, 8);
	assert_near(w.training.state.guard.loss_scale, 1024, 0);
	assert_int_equal(w.training.state.guard.clean_steps, 4020 - 8 - 4000);
	world_close(&w);

	/* A scale changes only the range: the same weights as without one, where nothing overflows. */
	world_open(&w, "scaled", 30, 0);
	w.training.guard = (struct guard_settings){.dynamic = true, .loss_scale = 1024};
	w.training.settings.stop_at_step = 11;
	assert_int_equal(train(&w.training), STOPPED);
	world_close(&w);
	world_open(&w, "scaled", 30, 0);
	w.training.guard = (struct guard_settings){.dynamic = true, .loss_scale = 65536};
	world_resume(&w);
	assert_near(w.training.state.guard.loss_scale, 1024, 0); /* from the checkpoint, not the initial value again */
	assert_ok(train(&w.training));
	assert_int_equal(w.training.state.guard.clean_steps, 30);
	float *scaled = world_weights(&w);
	world_close(&w);
	world_open(&w, "unscaled", 30, 0);
	assert_ok(train(&w.training));
	float *unscaled = world_weights(&w);
	assert_true(same_weights(&w, scaled, unscaled));
	free(scaled);
	free(unscaled);
	world_close(&w);

	/* What overflows at any scale ends the run at the minimum, 2^-14, instead of looping forever. */
	world_open(&w, "floor", 1000, 0);
	w.gradient = overflow_always;
	w.training.guard = (struct guard_settings){.dynamic = true, .loss_scale = 65536};
	assert_error(ERR_NUMERIC, "smallest loss scale", train(&w.training));
	assert_int_equal(w.training.state.step, 33); /* 3 good, 30 halvings, and the one that cannot be halved */
	world_close(&w);

	/* A loss that is not finite has nothing to do with the scale: it ends the run after three steps. */
	world_open(&w, "nan", 1000, 0);
	w.loss = nan_from_then_on;
	w.gradient = nan_from_step_5;
	w.training.guard = (struct guard_settings){.dynamic = true, .loss_scale = 65536};
	assert_error(ERR_NUMERIC, "number 3 in a row", train(&w.training));
	assert_near(w.training.state.guard.loss_scale, 65536, 0);
	world_close(&w);
}

static double falls_then_rises(int64_t step)
{
	return step <= 4 ? 5 - 0.5 * (double)step : 4;
}

static double never_better(int64_t step)
{
	return (double)step;
}

static void assert_link(const char *name, const char *target)
{
	char found[256] = "";
	assert_true(readlink(test_path(name), found, sizeof found - 1) > 0);
	assert_string_equal(found, target);
}

static void the_best_is_kept(void **state)
{
	world_open(&w, "best", 20, 5);
	w.phase.eval_steps = 2;
	w.objective.evaluation_count = 1;
	w.evaluation = falls_then_rises;
	w.training.checkpoints.keep = 1;
	assert_ok(train(&w.training));
	assert_int_equal(w.training.state.best_step, 4);
	assert_ok(checkpoint_verify(test_path("best/checkpoint-4")));
	assert_ok(checkpoint_verify(test_path("best/checkpoint-20")));
	assert_false(file_exists(test_path("best/checkpoint-2")));
	assert_false(file_exists(test_path("best/checkpoint-15")));
	assert_link("best/best", "checkpoint-4");
	world_close(&w);

	/* A mark that is missing because of a kill is restored; a best checkpoint that is gone is forgotten. */
	assert_int_equal(unlink(test_path("best/best")), 0);
	assert_int_equal(unlink(test_path("best/best.json")), 0);
	world_open(&w, "best", 20, 5);
	world_resume(&w);
	assert_int_equal(w.training.state.best_step, 4);
	assert_ok(train(&w.training));
	assert_link("best/best", "checkpoint-4");
	assert_true(file_exists(test_path("best/best.json")));
	world_close(&w);
	assert_ok(folder_remove(test_path("best/checkpoint-4")));
	world_open(&w, "best", 20, 5);
	world_resume(&w);
	assert_ok(train(&w.training));
	assert_int_equal(w.training.state.best_step, 0);
	assert_false(file_exists(test_path("best/best.json")));
	world_close(&w);

	/* Without save_best, only checkpoints that are saved anyway can be the best. */
	world_open(&w, "due", 20, 5);
	w.phase.eval_steps = 1;
	w.objective.evaluation_count = 1;
	w.evaluation = never_better;
	w.training.settings.save_best = false;
	w.training.checkpoints.keep = 1;
	assert_ok(train(&w.training));
	assert_int_equal(w.training.state.best_step, 5);
	assert_link("due/best", "checkpoint-5");
	world_close(&w);
}

static double ask_to_stop(int64_t step, int run)
{
	(void)run;
	if (step == 4)
		raise(SIGUSR1);
	return 5;
}

/* Between two micro-batches: the step is abandoned, and computed after the resume. */
static void stops_between_micro_batches(void **state)
{
	pid_t child = fork();
	if (child == 0) {
		stop_install();
		world_open(&w, "stop", 10, 0);
		w.loss = ask_to_stop;
		enum status status = train(&w.training);
		_exit(status == STOPPED && w.training.state.step == 3 ? 75 : 1);
	}
	int result;
	waitpid(child, &result, 0);
	assert_true(WIFEXITED(result));
	assert_int_equal(WEXITSTATUS(result), 75);
	world_open(&w, "stop", 10, 0);
	world_resume(&w);
	assert_int_equal(w.training.state.step, 3);
	assert_ok(train(&w.training));
	float *stopped = world_weights(&w);
	world_close(&w);
	world_open(&w, "straight", 10, 0);
	assert_ok(train(&w.training));
	float *straight = world_weights(&w);
	assert_true(same_weights(&w, stopped, straight));
	free(stopped);
	free(straight);
	world_close(&w);
}

static void take_a_while(struct world *world, int64_t step)
{
	(void)world, (void)step;
	usleep(5000);
}

static void stops_in_time(void **state)
{
	double started = clock_seconds();
	world_open(&w, "time", 100000, 0);
	w.before_step = take_a_while;
	stop_deadline(started + 0.5);
	assert_int_equal(train(&w.training), STOPPED);
	assert_string_equal(stop_reason(), "the time limit");
	stop_deadline(0);
	stop_reserve(0);
	assert_true(w.training.state.step > 0);
	char name[64];
	snprintf(name, sizeof name, "time/checkpoint-%lld", (long long)w.training.state.step);
	assert_ok(checkpoint_verify(test_path(name)));
	world_close(&w);
}

static double ask_when_time_is_up(int64_t step, int run)
{
	(void)step, (void)run;
	if (w.training.state.phase.time_is_up)
		raise(SIGUSR1);
	return 5;
}

/* The last step that its time allows is abandoned on request: the phase ends there, with the mean of its weights. */
static void stops_when_time_is_up(void **state)
{
	pid_t child = fork();
	if (child == 0) {
		stop_install();
		world_open(&w, "up", 20, 0);
		w.loss = ask_when_time_is_up;
		w.before_step = take_a_while;
		w.phase.seconds = 0.5;
		w.phase.averaged = 0.9;
		w.training.started = clock_seconds();
		_exit(train(&w.training) == OK && stop_requested() && w.training.state.phase.averaged == 0 ? 0 : 1);
	}
	int result;
	waitpid(child, &result, 0);
	assert_int_equal(result, 0);
}

static int teardown(void **state)
{
	log_to_file(NULL);
	return test_folder_drop(state);
}

/* The weights after 20 steps, averaged over the last `share` of them; interrupted after `stop`, if not 0. The caller frees
 * them. */
static float *averaged_run(const char *name, double share, int64_t stop)
{
	world_open(&w, name, 20, 0);
	w.phase.averaged = share;
	w.before_step = remember;
	w.training.settings.stop_at_step = stop;
	if (stop > 0) {
		assert_int_equal(train(&w.training), STOPPED);
		world_close(&w);
		world_open(&w, name, 20, 0);
		w.phase.averaged = share;
		world_resume(&w);
		assert_int_equal(w.training.state.step, stop);
	}
	assert_ok(train(&w.training));
	float *weights = world_weights(&w);
	world_close(&w);
	return weights;
}

/* The last quarter of 20 steps: the mean of the weights after steps 16 to 20. The optimizer's states are those of a run
 * that does not average. */
static void weights_end_as_their_mean(void **state)
{
	first_seen = 17;
	float *last = averaged_run("single", 0, 0), *mean = averaged_run("mean", 0.25, 0);
	int64_t elements = 0, moved = 0;
	world_open(&w, "sizes", 1, 0);
	elements = w.model->slab_count;
	world_close(&w);
	for (int64_t i = 0; i < elements; i++) {
		double sum = last[i];
		for (int k = 0; k < 4; k++)
			sum += seen[k][i];
		assert_true(fabs(mean[i] - sum / 5) < 1e-7);
		moved += mean[i] != last[i];
	}
	assert_true(moved > elements / 2);
	free(last);
	free(mean);
}

static void a_mean_goes_on_from_a_checkpoint(void **state)
{
	float *whole = averaged_run("whole", 0.5, 0);
	static const int64_t stops[] = {4, 13, 19};
	static const char *const names[] = {"stopped-4", "stopped-13", "stopped-19"};
	world_open(&w, "sizes-2", 1, 0);
	size_t bytes = (size_t)w.model->slab_count * sizeof(float);
	world_close(&w);
	for (int i = 0; i < 3; i++) {
		float *parts = averaged_run(names[i], 0.5, stops[i]);
		assert_memory_equal(whole, parts, bytes);
		free(parts);
	}
	free(whole);
}

/* A thousand updates, averaging over the last tenth: every second of them, including the last. With few updates: all of
 * them. */
static void snapshots_stand_at_equal_distances(void **state)
{
	int64_t taken = 0;
	for (int64_t update = 1; update <= 1000; update++) {
		bool due = average_is_due(0.1, 1000, (double)update, taken);
		assert_int_equal(due, update > 900 && update % 2 == 0);
		taken += due;
	}
	assert_int_equal(taken, AVERAGE_SNAPSHOTS);
	for (int64_t update = 1; update <= 20; update++)
		assert_int_equal(average_is_due(0.25, 20, (double)update, update > 15 ? 10 * (update - 16) : 0), update > 15);
}

int main(void)
{
	log_level = LOG_QUIET;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_bad_step_is_left_out, drop_seen),
		cmocka_unit_test(three_in_a_row_end_the_run),
		cmocka_unit_test(ten_in_a_thousand_end_the_run),
		cmocka_unit_test_teardown(a_fault_of_the_machine_is_told_apart, drop_seen),
		cmocka_unit_test_teardown(spikes_are_left_out_on_request, drop_seen),
		cmocka_unit_test(the_loss_scale_follows),
		cmocka_unit_test(the_best_is_kept),
		cmocka_unit_test(stops_between_micro_batches),
		cmocka_unit_test(stops_in_time),
		cmocka_unit_test(stops_when_time_is_up),
		cmocka_unit_test_teardown(weights_end_as_their_mean, drop_seen),
		cmocka_unit_test_teardown(a_mean_goes_on_from_a_checkpoint, drop_seen),
		cmocka_unit_test(snapshots_stand_at_equal_distances),
	};
	return cmocka_run_group_tests(tests, test_folder_make, teardown);
}
