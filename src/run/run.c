/* Opens a run, shows its plan, trains its phases, and writes the finished model. */
#include "run/card.h"
#include "run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "model/forms.h"
#include "base/stop.h"
#include "run/budget.h"
#include "train/ranks.h"
#include "weights/config_file.h"

/* ---- Before the first step ---- */

/* There is nothing to save, but the job should be run again all the same. */
static void stop_before_training(int number)
{
	static const char text[] = "\nbertc: stopped before the first step\nhint: run the same command again to resume\n";
	(void)number;
	ssize_t written = write(2, text, sizeof text - 1);
	(void)written; /* stderr may be closed */
	_exit(STOPPED);
}

void run_stop_before_training(void)
{
	stop_on_signals(stop_before_training, 0);
}

enum status run_open(struct run *run, const struct run_folder_settings *settings, struct machine *machine,
		     const struct run_task *task)
{
	const struct training_options *given = settings->options->settings;
	const struct ranks_options *ranks = &given->ranks;
	*run = (struct run){
		.settings = settings,
		.machine = machine,
		.task = task,
		.folder = {.lock = -1},
		.open_phase = -1,
		.opened = clock_seconds(),
	};
	if (given->stopping.max_time) {
		double seconds;
		TRY(duration_parse(given->stopping.max_time, &seconds));
		stop_deadline(clock_seconds() + seconds);
	}
	if (ranks->allreduce_post_accumulation_fp16 && ranks->allreduce_post_accumulation_bf16)
		return error_set(ERR_USAGE,
				 "--allreduce_post_accumulation_fp16 and --allreduce_post_accumulation_bf16 cannot be combined");
	TRY(machine_join(machine));
	TRY(run_folder_open(&run->folder, &run->start, settings, machine));
	return run->start.resumed || run->start.begun ? phases_check_record(&run->start) : OK;
}

enum status run_take_options(struct run *run, const struct options *options, struct options *const *phases, int64_t count)
{
	TRY(options_derive(&run->options, options, options->section_count, NULL));
	run->values = run->options.settings;
	TRY(memory_new(&run->phases, count, sizeof *run->phases, "phases"));
	run->phase_count = count;
	for (int64_t i = 0; i < count; i++) {
		struct run_phase *phase = &run->phases[i];
		if (count > 1)
			TRY(options_derive(&phase->own, phases[i], phases[i]->section_count, NULL));
		phase->options = count > 1 ? &phase->own : &run->options;
		phase->values = phase->options->settings;
	}
	return OK;
}

/* The type in which gradients are sent; COMM_F32: their own. */
static enum comm_type wire_of(const struct ranks_options *ranks)
{
	return ranks->allreduce_post_accumulation_fp16   ? COMM_F16
	       : ranks->allreduce_post_accumulation_bf16 ? COMM_BF16
							 : COMM_F32;
}

/* Gradients that are computed or sent in fp16 underflow without a dynamic loss scale. */
static enum status choose_loss_scale(struct run *run)
{
	const double *loss_scale = &run->values->numbers.loss_scale;
	bool narrow = run->values->ranks.allreduce_post_accumulation_fp16 && run->machine->ranks > 1;
	bool given = options_origin_of(&run->options, loss_scale) != ORIGIN_DEFAULT;
	if (!given && run->machine->backend->dtype == DTYPE_F16)
		TRY(options_choose_number(&run->options, loss_scale, 0, 6));
	run->loss_scale = !given && narrow ? 0 : *loss_scale;
	return OK;
}

enum status run_open_device(struct run *run)
{
	TRY(machine_open_device(run->machine, &run->options, &run->values->device));
	return choose_loss_scale(run);
}

static enum status choose_dropout(struct run *run, const double *option, double *probability)
{
	if (options_is_open(&run->options, option))
		TRY(options_choose_number(&run->options, option, *probability, 6));
	*probability = *option;
	return OK;
}

enum status run_choose_dropout(struct run *run)
{
	const struct training_options *values = run->values;
	TRY(choose_dropout(run, &values->hidden_dropout_prob, &run->config.hidden_dropout_prob));
	return choose_dropout(run, &values->attention_probs_dropout_prob, &run->config.attention_probs_dropout_prob);
}

int64_t run_longest(const struct run *run)
{
	int64_t longest = 0;
	for (int64_t i = 0; i < run->phase_count; i++) {
		int64_t length = run->phases[i].values->max_seq_length;
		longest = length > longest ? length : longest;
	}
	return longest;
}

/* Does any of the remaining phases average its weights? */
static bool averages(const struct run *run)
{
	for (int64_t i = run->start.state.phase.index; i < run->phase_count; i++)
		if (run->phases[i].values->rate.average_weights > 0)
			return true;
	return false;
}

/* ---- The options, shown and recorded ---- */

/* The table shown at the start of a run: values that are not defaults, or with --verbose all. */
static enum status show_options(const struct run *run, struct buffer *out)
{
	const struct options **phases = NULL;
	bool all = log_level == LOG_VERBOSE;
	if (!all)
		buffer_text(out, "settings (-v also shows those left at their defaults)\n");
	options_settings_table(&run->options, run->phase_count > 1 ? SCOPE_GENERAL : SCOPE_ALL, all, log_has_color(), out);
	if (run->phase_count == 1)
		return OK;
	TRY(memory_new(&phases, run->phase_count, sizeof *phases, "phases"));
	for (int64_t i = 0; i < run->phase_count; i++)
		phases[i] = run->phases[i].options;
	options_section_table(phases, run->phase_count, all, log_has_color(), out);
	free(phases);
	return OK;
}

/* Writes them as an object; several phases are a list in it. */
static void record_options(const struct run *run, struct json_writer *writer)
{
	json_open(writer, NULL, '{');
	options_write_members(&run->options, writer, run->phase_count > 1 ? SCOPE_GENERAL : SCOPE_ALL);
	if (run->phase_count > 1) {
		json_open(writer, "phases", '[');
		for (int64_t i = 0; i < run->phase_count; i++)
			options_write_json(run->phases[i].options, writer, NULL, SCOPE_SECTION);
		json_close(writer);
	}
	json_close(writer);
}

/* ---- The plan ---- */

/* "  phase 2: 100 steps of 8 x 512 tokens, 1.2 TFLOP each". */
static void show_phases(const struct run *run, struct buffer *out)
{
	for (int64_t i = 0; i < run->phase_count; i++) {
		const struct training_options *training = run->phases[i].values;
		int64_t batch_size = training->batch.train_batch_size, steps = training->length.num_train_steps;
		double flops = plan_step_flops(run->memory.model, batch_size, (int32_t)training->max_seq_length);
		char count[FORMAT_BYTES];
		buffer_format(out, "  phase %-6" PRId64 " %10s  %s of %" PRId64 " x %" PRId64 " tokens, %.3g TFLOP each%s\n",
			      i + 1, format_count(count, steps), steps == 1 ? "step" : "steps", batch_size,
			      training->max_seq_length, flops * 1e-12, i < run->start.state.phase.index ? " (over)" : "");
	}
}

static enum status show_plan(const struct run *run, const struct memory_plan *plan)
{
	struct buffer text = {0};
	enum status status;
	if (run->brief)
		return OK;
	TRY_GOTO(show_options(run, &text), done);
	buffer_char(&text, '\n');
	shapes_print(&run->shapes, &text);
	plan_print(plan, run->memory.model, &run->shapes.limits, &text);
	if (run->phase_count > 1)
		show_phases(run, &text);
	TRY_GOTO(buffer_status(&text), done);
	log_note("%s\n", buffer_string(&text));
	log_note("device: %s", run->machine->backend->description);
done:
	buffer_release(&text);
	return status;
}

/* The steps that a phase has left, and the FLOPs of each. */
static double phase_work(const struct run *run, int64_t index, int64_t *out_steps)
{
	const struct training_options *training = run->phases[index].values;
	const struct train_state *state = &run->start.state;
	int64_t batch_size = training->batch.train_batch_size;
	double mean = (double)training->max_seq_length;
	*out_steps = training->length.num_train_steps;
	if (index == state->phase.index)
		*out_steps -= state->step - state->phase.first_step;
	if (run->task->shapes.mean_length(run->task->shapes.context, index, &mean) != OK)
		mean = (double)training->max_seq_length;
	return plan_step_flops(run->memory.model, batch_size, (int32_t)ceil(mean)) +
	       shapes_teacher_flops(&run->task->shapes, batch_size, (int32_t)ceil(mean));
}

/* Estimates the duration before the first step can be timed. */
static void note_time(const struct run *run)
{
	const struct train_state *start = &run->start.state;
	bool measured = run->machine->training_rate > 0;
	double flops = 0, rate = budget_rate(run->machine, run->config.hidden_size);
	int64_t steps = 0, left;
	char count[FORMAT_BYTES], whole[FORMAT_BYTES], each[FORMAT_BYTES];
	if (!is_first_rank(run->machine->comm) || run->machine->gemm_rate <= 0)
		return;
	for (int64_t i = start->phase.index; i < run->phase_count; i++) {
		double work = phase_work(run, i, &left);
		flops += work * (double)(left > 0 ? left : 0);
		steps += left > 0 ? left : 0;
	}
	if (steps == 0)
		return;
	double seconds = flops / rate, limit = run->phases[run->phase_count - 1].seconds;
	double of_time = limit - start->elapsed, left_of_time = of_time - (clock_seconds() - run->opened);
	if (limit > 0 && left_of_time <= 0)
		return;
	double pace = start->step > 0 ? (start->elapsed - start->begun) / (double)start->step : left_of_time / (double)steps;
	if (limit > 0)
		log_note("time: %s, enough for about %s of about %s, evaluations included (estimated from %s)",
			 format_duration(whole, of_time), format_counted(count, (int64_t)(left_of_time / pace), "step", "steps"),
			 format_duration(each, pace),
			 start->step > 0 ? "its pace so far"
			 : measured      ? "this machine's speed in matrix products and in a few steps"
					 : "this machine's speed in matrix products");
	else if (seconds < 60)
		log_note("time: less than a minute for %s", format_counted(count, steps, "step", "steps"));
	else
		log_note("time: about %s for %s of about %s, evaluations and checkpoints not included (estimated from this "
			 "machine's speed in matrix products)",
			 format_duration(whole, seconds), format_counted(count, steps, "step", "steps"),
			 format_duration(each, seconds / (double)steps));
}

static enum status describe_model(struct run *run)
{
	TRY(run_memory_describe(&run->memory, run->machine, &run->config, run->task->heads));
	run->shapes.model = run->memory.model;
	return run->layers ? layer_options_apply(run->layers, run->phases[0].values->rate.learning_rate, run->memory.model) : OK;
}

/* Is this a finished run that was started again? There is nothing to plan then. */
static bool is_over(const struct run *run)
{
	const struct train_state *state = &run->start.state;
	if (!run->start.resumed || run->start.begins_phase || state->phase.index < run->phase_count - 1)
		return false;
	const struct phase last = phase_of(&run->phases[run->phase_count - 1]);
	return phase_has_ended(&last, state);
}

/* Before the plan: a step that has gone by would not stop the run. */
static enum status check_stop(const struct run *run)
{
	const struct stopping_options *stopping = &run->values->stopping;
	int64_t stop = stopping->stop_at_step, step = run->start.state.step;
	if (stop == 0 || stop > step || stopping->steps_this_run > 0 || is_over(run))
		return OK;
	return error_hinted(
		error_set(ERR_USAGE, "--stop_at_step %" PRId64 ": the run is at step %" PRId64 " already", stop, step),
		"give a later step, or leave the option out to train to the end");
}

enum status run_plan(struct run *run)
{
	const struct machine *machine = run->machine;
	run->shapes = (struct shapes){
		.machine = machine,
		.phases = run->phases,
		.phase_count = run->phase_count,
		.first_phase = run->start.state.phase.index,
		.longest_evaluated = run->longest_evaluated,
		.narrow = wire_of(&run->values->ranks) != COMM_F32,
		.averages = averages(run),
		.source = run->task->shapes,
	};
	TRY(check_stop(run));
	TRY(describe_model(run));
	TRY(shapes_choose(&run->shapes));
	struct memory_plan plan = shapes_memory(&run->shapes);
	bool over = is_over(run) && !run->values->folder.plan;
	if (!over)
		TRY(show_plan(run, &plan));
	TRY(machine_measure_rate(run->machine));
	if (!over)
		note_time(run);
	/* All ranks check before any of them allocates memory. */
	return ranks_agree(machine->comm, plan_check(&plan, machine->backend, machine_local_ranks(machine)));
}

/* ---- What the ranks must have in common ---- */

/* Everything that affects the result. The number of threads may differ between machines; paths of data are the same
 * everywhere. */
static enum status agree(struct run *run)
{
	const struct machine *machine = run->machine;
	const struct ranks_options *ranks = &run->values->ranks;
	const char *precision = options_text_of(&run->options, &run->values->device.precision);
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	if (!machine->comm)
		return OK;
	buffer_format(&text,
		      "vocabulary %016" PRIx64 "\ndata %016" PRIx64 "\nevaluation %016" PRIx64 "\ntest %016" PRIx64
		      "\nstep %" PRId64 "\n",
		      run->vocab->hash, run->data_hash, run->evaluation_hash, run->test_hash, run->start.state.step);
	buffer_format(&text, "replicas_per_gpu %" PRId64 "\nprecision %s\n", machine->replicas, precision ? precision : "fp64");
	buffer_format(&text, "allreduce_post_accumulation %d %d %d\n", ranks->allreduce_post_accumulation,
		      ranks->allreduce_post_accumulation_fp16, ranks->allreduce_post_accumulation_bf16);
	buffer_format(&text, "check_weights_steps %" PRId64 "\n", ranks->check_weights_steps);
	config_file_put(&writer, &run->config, run->task_config);
	buffer_format(&text, "\nsettings %s\n", buffer_string(&run->record_text));
	enum status status = ranks_agree(machine->comm, buffer_status(&text));
	if (status == OK)
		status = comm_agree(machine->comm, "the settings of the run", buffer_string(&text));
	buffer_release(&text);
	return status;
}

/* Makes the settings as every checkpoint records them; the first rank writes them into the run folder. */
static enum status write_settings(struct run *run)
{
	char path[PATH_BYTES];
	struct comm *comm = run->machine->comm;
	struct json_writer writer = {.out = &run->record_text, .indent = 2};
	buffer_clear(&run->record_text);
	record_options(run, &writer);
	TRY(ranks_agree(comm, buffer_status(&run->record_text)));
	TRY(agree(run));
	if (!is_first_rank(comm))
		return OK;
	TRY(path_join(path, run->folder.path, "settings.json"));
	run->wrote_settings |= !file_exists(path);
	return owned_file_write(path, run->record_text.data, run->record_text.size);
}

/* Logs where the run resumes, and whether it continues bit for bit. */
static enum status note_resumption(struct run *run)
{
	const struct machine *machine = run->machine;
	const struct run_start *start = &run->start;
	const char *before = NULL;
	char split[64] = "";
	if (machine->ranks * machine->replicas > 1)
		snprintf(split, sizeof split, ", %d ranks x %d replicas%s", machine->ranks, (int)machine->replicas,
			 comm_on_device(machine->comm) ? ", norm by NCCL" : "");
	snprintf(run->computed_on, sizeof run->computed_on, "bertc " VERSION ", %s%s", machine->backend->numerics, split);
	if (start->begun)
		log_note("no checkpoint yet: starting over with the settings in %s", start->settings);
	if (!start->resumed)
		return OK;
	log_note("resuming from %s", start->checkpoint);
	TRY(json_get_string(start->record.root, start->checkpoint, "computed_on", &before));
	if (before && strcmp(before, run->computed_on) != 0)
		log_note("computed with %s before, with %s now: the run continues up to rounding, not bit for bit", before,
			 run->computed_on);
	return OK;
}

/* ---- Memory and weights ---- */

/* Number of attempts at allocating memory. */
#define ATTEMPTS 4

/* Allocates all memory. If another program has taken device memory since the plan was made, tries again with smaller
 * micro-batches, on all ranks. */
static enum status find_room(struct run *run)
{
	for (int attempt = 1;; attempt++) {
		enum status status = run_memory_allocate(&run->memory, run->machine, &run->shapes.limits, &run->values->optimizer,
							 averages(run));
		if (status == OK && run->task->allocate)
			status = run->task->allocate(run->task->context, &run->shapes.limits);
		if (status != ERR_RESOURCE || attempt == ATTEMPTS)
			return status;
		struct error error = *error_last();
		int32_t tokens = run->shapes.limits.batch.tokens;
		bool smaller = false;
		char counts[2][FORMAT_BYTES];
		run_memory_release(&run->memory, run->machine);
		if (run->task->give_back)
			TRY(run->task->give_back(run->task->context));
		TRY(describe_model(run));
		if (shapes_choose_smaller(&run->shapes, &smaller) != OK || !smaller)
			return error_restore(&error);
		log_warning("%s: trying again with micro-batches of up to %s tokens instead of %s", error.message,
			    format_count(counts[0], run->shapes.limits.batch.tokens), format_count(counts[1], tokens));
		TRY(write_settings(run));
	}
}

static enum status load_weights(struct run *run)
{
	struct run_memory *memory = &run->memory;
	const struct run_task *task = run->task;
	if (run->start.resumed) {
		TRY(checkpoint_load(run->start.checkpoint, memory->model, &memory->replica, memory->optimizer));
		if (run->start.begins_phase)
			optimizer_restart(memory->optimizer);
		return run->start.state.phase.averaged > 0 ? checkpoint_load_average(run->start.checkpoint, &memory->average)
							   : OK;
	}
	TRY(model_initialize(memory->model, &memory->replica, (uint64_t)run->values->seed));
	return task->load_weights ? task->load_weights(task->context, memory->model, &memory->replica) : OK;
}

/* ---- The training loop ---- */

static void close_phase(struct run *run)
{
	if (run->open_phase < 0)
		return;
	if (run->objective)
		run->objective->close(run->objective);
	run->objective = NULL;
	run->task->close_phase(run->task->context, run->open_phase);
	run->open_phase = -1;
}

enum status run_find_best_set(const struct run *run, const char *const *names, int64_t count, int64_t *out)
{
	const char *wanted = run->values->saving.best_by;
	struct buffer known = {0};
	*out = 0;
	for (int64_t i = 0; wanted && i < count; i++) {
		const char *name = names[i] ? names[i] : "";
		if (strcmp(name, wanted) == 0) {
			*out = i;
			buffer_release(&known);
			return OK;
		}
		if (name[0])
			buffer_format(&known, "%s%s", known.size > 0 ? ", " : "", name);
	}
	if (!wanted)
		return OK;
	enum status status = error_set(ERR_USAGE, "--best_by %s: there is no evaluation set of this name", wanted);
	if (known.size > 0)
		error_hint("the sets with names are: %s", buffer_string(&known));
	else
		error_hint("name sets where they are given: %s=PATH", wanted);
	buffer_release(&known);
	return status;
}

static enum status open_phase(void *context, const struct train_state *state, struct objective **out)
{
	struct run *run = context;
	struct run_phase *phase = &run->phases[state->phase.index];
	close_phase(run);
	run->open_phase = state->phase.index;
	run->training.checkpoints.data_hash = phase->data_hash;
	phase->steps.first_step = state->step + 1;
	phase->steps.last_step = phase->seconds > 0 ? 0 : state->phase.first_step + phase->values->length.num_train_steps;
	phase->steps.steps_before = state->phase.first_step;
	phase->steps.samples_before = state->phase.first_sample;
	TRY(run->task->open_phase(run->task->context, state, &run->objective));
	TRY(run_find_best_set(run, run->objective->evaluation_names, run->objective->evaluation_count,
			      &run->training.settings.best_set));
	*out = run->objective;
	return OK;
}

static enum status locate(void *context, struct train_state *state)
{
	struct run *run = context;
	return run->task->locate(run->task->context, state);
}

/* Before each save: the folder must still belong to this run alone, and the training data must still be what was opened. */
static enum status may_save(void *context)
{
	struct run *run = context;
	TRY(folder_lock_check(run->folder.path, &run->folder.lock_taken));
	return run->task->check_data ? run->task->check_data(run->task->context, false) : OK;
}

static enum status open_report(struct run *run)
{
	struct report *report = &run->training.report;
	*report = (struct report){.silent = true};
	if (!is_first_rank(run->machine->comm))
		return OK;
	*report = (struct report){
		.folder = run->folder.path,
		.metrics_path = run->folder.metrics,
		.gemm_rate = run->machine->gemm_rate,
		.facts =
			{
				.device = run->machine->backend->description,
				.form = model_form_of(&run->config)->model_type,
				.layers = run->config.num_hidden_layers,
				.hidden = run->config.hidden_size,
				.parameters = run->memory.model->element_count,
				.vocab_size = run->config.vocab_size,
			},
	};
	report->options = &run->options;
	return run->task->describe ? run->task->describe(run->task->context, report) : OK;
}

/* The phases in the form that the loop takes. */
static enum status make_schedules(struct run *run)
{
	TRY(memory_new(&run->schedules, run->phase_count, sizeof *run->schedules, "phases"));
	for (int64_t i = 0; i < run->phase_count; i++)
		run->schedules[i] = phase_of(&run->phases[i]);
	return OK;
}

/* Identifies what determines the best checkpoint and early stopping: the sets, which of them decides, and by what measure. */
static void find_evaluation(struct run *run)
{
	const char *by = run->values->saving.best_by, *decides = run->task->decides;
	if (by)
		run->evaluation_hash = hash64_combine(run->evaluation_hash, hash64(by, strlen(by)));
	if (decides)
		run->evaluation_hash = hash64_combine(run->evaluation_hash, hash64(decides, strlen(decides)));
}

/* Scores from before an interruption mean nothing if something else is evaluated now. */
static enum status compare_evaluation(struct run *run)
{
	struct run_start *start = &run->start;
	const char *before = NULL;
	if (!start->resumed || start->begins_phase)
		return OK;
	TRY(json_get_string(start->record.root, start->checkpoint, "evaluation_hash", &before));
	if (!before || strtoull(before, NULL, 16) == run->evaluation_hash)
		return OK;
	const struct train_state *state = &start->state;
	const struct phase last = phase_of(&run->phases[run->phase_count - 1]);
	if (state->phase.index == run->phase_count - 1 && phase_has_ended(&last, state)) {
		/* Without the earlier scores, the last checkpoint would take the place of a better one. */
		if (state->best_step > 0)
			log_warning("the evaluation data have changed since '%s', but nothing is left to train: the best "
				    "checkpoint is still the one of step %" PRId64 ", chosen by the earlier data",
				    start->checkpoint, state->best_step);
		return OK;
	}
	log_warning("the evaluation data have changed since '%s': the best checkpoint and early stopping start over from "
		    "here on",
		    start->checkpoint);
	train_state_forget_scores(&start->state);
	return OK;
}

static enum status start_training(struct run *run)
{
	const struct training_options *training = run->values;
	const struct run_start *start = &run->start;
	int64_t steps = training->stopping.steps_this_run;
	TRY(make_schedules(run));
	run->training = (struct training){
		.settings =
			{
				.seed = (uint64_t)training->seed,
				.stop_at_step = steps > 0 ? start->state.step + steps : training->stopping.stop_at_step,
				.save_best = training->saving.save_best,
				.reduce_every_batch = !training->ranks.allreduce_post_accumulation,
				.wire = wire_of(&training->ranks),
				.compare_weights_steps = training->ranks.check_weights_steps,
			},
		.guard =
			{
				.skip_spikes = training->numbers.skip_spikes,
				.dynamic = run->loss_scale == 0,
				.loss_scale = run->loss_scale == 0 ? training->numbers.init_loss_scale : run->loss_scale,
			},
		.state = start->state,
		.started = run->opened - start->state.elapsed,
		.saved_step = start->resumed && start->own ? start->state.step : -1,
		.phases = run->schedules,
		.phase_count = run->phase_count,
		.model = run->memory.model,
		.replica = &run->memory.replica,
		.comm = run->machine->comm,
		.optimizer = run->memory.optimizer,
		.average = averages(run) ? &run->memory.average : NULL,
		.checkpoints =
			{
				.folder = run->folder.path,
				.comm = run->machine->comm,
				.task = run->task_config,
				.base = &run->adapter_base,
				.vocab = run->vocab,
				.tokenizer = run->tokenizer,
				.max_seq_length = model_positions(&run->config),
				.data_hash = run->data_hash,
				.evaluation_hash = run->evaluation_hash,
				.teacher_hash = run->teacher_hash,
				.settings_json = buffer_string(&run->record_text),
				.computed_on = run->computed_on,
				.resumed_from = start->resumed_from[0] ? start->resumed_from : NULL,
				.average = averages(run) ? &run->memory.average : NULL,
				.keep = training->saving.keep_checkpoints,
				.decides = run->task->decides,
				.may_save = may_save,
				.may_save_context = run,
			},
		.open_phase = open_phase,
		.locate = locate,
		.context = run,
	};
	TRY(open_report(run));
	return train(&run->training);
}

static enum status stopped(const struct run *run)
{
	const char *reason = stop_reason();
	int64_t total = run->training.report.total_steps; /* 0: stopped before the phase was opened */
	char steps[48] = "";
	if (total > 0)
		snprintf(steps, sizeof steps, " of %" PRId64, total);
	return error_hinted(error_set(STOPPED, "stopped at step %" PRId64 "%s%s%s, saved", run->training.state.step, steps,
				      reason ? " by " : "", reason ? reason : ""),
			    "run the same command again to resume");
}

/* The messages shown on Ctrl-C. */
static void announce_stop(const struct run *run)
{
	if (run->start.resumed)
		stop_loss("what was trained since %.200s is lost; the same command resumes there", run->start.checkpoint);
	else
		stop_loss("there is no checkpoint yet, so all training so far is lost");
	stop_announce("finishing this step, then saving");
}

/* In the end a run publishes its last step, which after an early end is not the best one. */
static void note_early_end(const struct run *run)
{
	const struct train_state *state = &run->training.state;
	const struct phase *phase = &run->training.phases[run->phase_count - 1];
	bool has_task = run->settings->has_task; /* then there is --save_best */
	if (!phase_ended_early(phase, state) || (has_task && run->values->saving.save_best))
		return;
	if (state->best_step > 0 && state->best_step < state->step)
		log_note("it is the model of step %" PRId64 ", the last one; the best checkpoint, of step %" PRId64
			 ", is in %s/checkpoint-%" PRId64 "%s",
			 state->step, state->best_step, run->folder.path, state->best_step,
			 has_task ? " (--save_best makes it the model)" : "");
	else
		log_note("it is the model of step %" PRId64 ", the last one%s", state->step,
			 has_task ? "; with --save_best it would be the best one" : "");
}

enum status run_train(struct run *run)
{
	struct comm *comm = run->machine->comm;
	find_evaluation(run);
	TRY(write_settings(run));
	TRY(note_resumption(run));
	TRY(compare_evaluation(run));
	TRY(find_room(run));
	TRY(load_weights(run));
	enum status status = OK;
	if (run->start.goes_back && is_first_rank(comm))
		status = checkpoint_supersede(run->folder.path, run->start.state.step);
	TRY(ranks_agree(comm, status));
	if (is_first_rank(comm))
		announce_stop(run);
	stop_install();
	status = start_training(run);
	if (status == STOPPED)
		return stopped(run);
	TRY(status);
	ranks_section(comm, "saving the final model", run->training.state.step);
	if (is_first_rank(comm) && run->task->check_data)
		status = run->task->check_data(run->task->context, true);
	if (is_first_rank(comm) && status == OK)
		status = checkpoint_save_final(&run->training.checkpoints, run->memory.model, run->training.state.step);
	if (is_first_rank(comm) && status == OK)
		status = run_write_card(run, run->training.state.step, NULL, 0);
	TRY(ranks_agree(comm, status));
	log_note("finished: the model is in %s/final, the report is %s/report.html", run->folder.path, run->folder.path);
	log_result("model                  %s/final", run->folder.path);
	log_result("report                 %s/report.html", run->folder.path);
	note_early_end(run);
	if (run->start.resumed && run->training.state.step == run->start.state.step)
		log_note("the run had finished before, so nothing was left to train; --fresh starts over");
	return OK;
}

/* Settings of a run that failed before its first checkpoint (no memory, weights that do not fit, a loss that is not finite) must
 * not bind the next. */
static void forget_settings(const struct run *run)
{
	const struct error failure = *error_last();
	char path[PATH_BYTES];
	int64_t *steps = NULL, count;
	if (!run->wrote_settings)
		return;
	if (checkpoint_list(run->folder.path, &steps, &count) != OK)
		BUG_IF(error_restore(&failure) == OK); /* a folder that is gone does not hide what failed */
	else if (count == 0 && path_join(path, run->folder.path, "settings.json") == OK)
		unlink(path);
	free(steps);
}

void run_close(struct run *run, enum status status)
{
	if (!run->settings)
		return;
	if (status != OK && status != STOPPED)
		forget_settings(run);
	const struct training_options *given = run->settings->options->settings;
	if (status != OK || given->folder.plan)
		run_folder_leave(&run->folder);
	close_phase(run);
	run_memory_release(&run->memory, run->machine);
	for (int64_t i = 0; i < run->phase_count; i++)
		options_release(&run->phases[i].own);
	free(run->phases);
	free(run->schedules);
	options_release(&run->options);
	buffer_release(&run->record_text);
	run_start_release(&run->start);
	run_folder_close(&run->folder);
	*run = (struct run){0};
}
