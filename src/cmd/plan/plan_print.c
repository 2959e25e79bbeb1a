/* The form of a plan for people: memory, time of a step, duration, what limits it, and every assumption. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/plan/plan_result.h"
#include "base/log.h"
#include "data/pretraining/instances.h"

static const char *seconds_text(char out[FORMAT_BYTES], double seconds)
{
	if (seconds < 1e-3)
		snprintf(out, FORMAT_BYTES, "%.0f us", seconds * 1e6);
	else if (seconds < 1)
		snprintf(out, FORMAT_BYTES, "%.3g ms", seconds * 1e3);
	else if (seconds < 100)
		snprintf(out, FORMAT_BYTES, "%.3g s", seconds);
	else
		format_duration(out, seconds);
	return out;
}

/* 12.3, 1,234 */
static const char *rate_text(char out[FORMAT_BYTES], double rate)
{
	if (rate < 100)
		snprintf(out, FORMAT_BYTES, "%.3g", rate);
	else
		format_count(out, (int64_t)(rate + 0.5));
	return out;
}

static const char *device_word(const struct plan *plan, int64_t count)
{
	return plan->on_gpus ? count == 1 ? "GPU" : "GPUs" : count == 1 ? "rank" : "ranks";
}

static void print_subject(const struct plan *plan)
{
	char count[FORMAT_BYTES], rows[FORMAT_BYTES], layers[FORMAT_BYTES];
	const struct topology *t = &plan->topology;
	printf("model    %s: %s, %d wide, %s parameters, vocabulary of %s\n", plan->settings->model,
	       format_counted(layers, plan->config.num_hidden_layers, "layer", "layers"), plan->config.hidden_size,
	       format_count(count, plan->model->element_count), format_count(rows, plan->config.vocab_size));
	int64_t hosts = topology_hosts(t);
	printf("on       %s %s", format_count(count, t->ranks), device_word(plan, t->ranks));
	if (hosts > 1)
		printf(" in %s hosts of %" PRId64, format_count(rows, hosts), t->per_host);
	printf(", %s, %s\n", plan->on_gpus ? plan->kind->what : plan->backend->description,
	       device_precision_names[plan->precision]);
}

static void memory_row(const char *name, double bytes, const char *what)
{
	char size[FORMAT_BYTES];
	printf("    %-14s %10s  %s\n", name, format_size(size, bytes), what);
}

static void print_memory(const struct plan *plan, const struct plan_result *r)
{
	char note[96], have[FORMAT_BYTES];
	memory_row("weights", (double)r->memory.weights, "master weights, gradients, compute copies");
	memory_row("moments", (double)r->memory.moments,
		   r->devices > 1 ? "the rank's share of the optimizer's" : "of the optimizer");
	snprintf(note, sizeof note, "of %d tokens, %d predictions", r->capacity.tokens,
		 r->capacity.labels[HEAD_MASKED_WORDS].count);
	memory_row("activations", (double)r->memory.activations, note);
	memory_row("workspace", (double)r->memory.workspace, plan->on_gpus ? "of the back end (estimate)" : "of the back end");
	if (plan->on_gpus) {
		if (r->memory.communication > 0)
			memory_row("communication", (double)r->memory.communication, "NCCL's own (an allowance)");
		snprintf(note, sizeof note, "of %s%s", format_size(have, plan->device_memory), r->fits ? "" : ": DOES NOT FIT");
		memory_row("a GPU", r->device_bytes, note);
		memory_row("its host", r->host_bytes, "batches read ahead; copies while saving, for the first GPU alone");
	} else {
		memory_row("batches", (double)r->memory.batches, "read ahead");
		memory_row("checkpoint", (double)r->memory.checkpoint,
			   r->devices > 1 ? "copies while saving, in the first rank alone" : "copies while saving");
		int64_t together = r->devices < plan->topology.per_host ? r->devices : plan->topology.per_host;
		snprintf(note, sizeof note, "%" PRId64 " on a host of %s%s", together, format_size(have, plan->device_memory),
			 r->fits ? "" : ": DOES NOT FIT");
		memory_row("a rank", (double)r->memory.total, note);
	}
}

/* "80 % encoder products, 9 % attention, ..." */
static void print_parts(const struct forecast *f)
{
	double all = 0;
	const char *separator = "    of it          ";
	for (int i = 0; i < 5; i++)
		all += f->parts[i];
	for (int i = 0; i < 5; i++) {
		if (f->parts[i] < 0.005 * all)
			continue;
		printf("%s%.0f %% %s", separator, 100 * f->parts[i] / all, forecast_part_names[i]);
		separator = ", ";
	}
	printf("\n");
}

static void time_row(const char *name, double seconds, const char *what)
{
	char text[FORMAT_BYTES];
	printf("    %-14s %10s%s%s\n", name, seconds_text(text, seconds), what[0] ? "  " : "", what);
}

static void print_time(const struct plan *plan, const struct plan_result *r)
{
	const struct forecast *f = &r->forecast;
	char a[FORMAT_BYTES], b[FORMAT_BYTES], note[160];
	printf("  time\n");
	snprintf(note, sizeof note, "forward %s, backward %s", seconds_text(a, f->forward + f->heads / 3),
		 seconds_text(b, f->backward + f->heads * 2 / 3));
	time_row("micro-batch", f->forward + f->heads + f->backward, note);
	print_parts(f);
	time_row("update", f->update, r->devices > 1 ? "of its share of the weights" : "");
	if (r->devices > 1) {
		snprintf(note, sizeof note, "%d pieces, the largest %s: %s", f->bucket_count, seconds_text(a, f->largest.seconds),
			 f->largest.algorithm);
		time_row("communication", f->communication, note);
		snprintf(note, sizeof note, "%.3g GB/s, %s until the first byte", f->largest.bus_bandwidth * 1e-9,
			 seconds_text(a, f->largest.latency));
		printf("    %-14s %10s  %s\n", "", "", note);
		time_row("exposed", f->exposed, "the part that computation does not hide");
	}
	if (f->uneven > 0)
		time_row("waiting", f->uneven, "for the slowest host");
	time_row("step", f->step, "");
	printf("  throughput       %10s  sequences/s, %s tokens/s\n", rate_text(a, f->sequences_per_second),
	       rate_text(b, f->tokens_per_second));
	printf("  %-16s %10.4g  TFLOP/s of the model's work in each %s\n", "work",
	       f->model_flops / f->step / (double)r->devices * 1e-12, device_word(plan, 1));
	if (r->devices > 1)
		printf("  efficiency       %9.1f%%  of %s times one alone\n", 100 * f->efficiency, format_count(a, r->devices));
}

static void print_duration(const struct plan_result *r)
{
	char a[FORMAT_BYTES], b[FORMAT_BYTES], c[FORMAT_BYTES], size[FORMAT_BYTES];
	double all = r->training_seconds + r->evaluation_seconds + r->saving_seconds;
	if (r->steps > 0)
		printf("  duration         %10s  training %s; %" PRId64 " evaluations %s, %" PRId64 " checkpoints %s\n",
		       seconds_text(size, all), seconds_text(a, r->training_seconds), r->evaluations,
		       seconds_text(b, r->evaluation_seconds), r->saves, seconds_text(c, r->saving_seconds));
	printf("  checkpoint       %10s  written during training\n", format_size(size, r->checkpoint_bytes));
}

static void print_buckets(const struct forecast *f)
{
	char size[FORMAT_BYTES], a[FORMAT_BYTES], b[FORMAT_BYTES], c[FORMAT_BYTES], d[FORMAT_BYTES];
	printf("  pieces of the gradients, from the beginning of the last backward pass\n");
	printf("    %-12s %10s %10s %10s %10s %10s\n", "layers", "bytes", "reduce", "ready", "reduced", "gather");
	for (int i = 0; i < f->bucket_count; i++) {
		const struct forecast_bucket *k = &f->buckets[i];
		char layers[32];
		if (k->first_layer == k->last_layer)
			snprintf(layers, sizeof layers, k->last_layer < 0 ? "embeddings" : "%d", k->last_layer);
		else
			snprintf(layers, sizeof layers, k->last_layer < 0 ? "%d to emb." : "%d to %d", k->first_layer,
				 k->last_layer);
		printf("    %-12s %10s %10s %10s %10s %10s\n", layers, format_size(size, k->bytes), seconds_text(a, k->reduce),
		       seconds_text(b, k->ready), seconds_text(c, k->end), seconds_text(d, k->gather));
	}
}

/* ---- Bottlenecks, and what would help ---- */

static enum status print_advice(const struct plan *plan, const struct plan_phase *phase, const struct plan_result *r)
{
	const struct forecast *f = &r->forecast;
	double exposed = f->exposed / f->step, bucket = plan->settings->bucket_size * 1e6,
	       bytes = plan_gradient_bytes(plan->settings);
	double micro = f->forward + f->heads + f->backward, per_sequence = micro / f->work.sequences;
	double full = f->alone / (double)plan_batch_size(plan, phase, r->devices);
	printf("  limit            ");
	if (!r->fits)
		printf("memory: a micro-batch of %" PRId64 " tokens does not fit\n", r->micro_tokens);
	else if (exposed > 0.1)
		printf("links: %.0f %% of the step waits for them, %s\n", 100 * exposed,
		       f->largest.latency > f->largest.seconds / 2 ? "mostly steps of the algorithm, not bytes"
								   : "mostly for bytes");
	else if (plan->on_gpus && per_sequence > 1.15 * full)
		printf("batch: %.0f sequences at a time leave a %s partly idle, %.0f %% slower for each\n", f->work.sequences,
		       device_word(plan, 1), 100 * (per_sequence / full - 1));
	else
		printf("computing: %.0f %% of the step\n", 100 * f->computing / f->step);
	if (!r->fits)
		printf("  advice           lower --micro_batch_tokens%s, --max_seq_length or the size of the model\n",
		       phase->settings->training.batch.gradient_accumulation_steps > 0
			       ? " (or raise --gradient_accumulation_steps)"
			       : "");
	if (r->memory_bound && f->accumulation > 1)
		printf("  note             memory holds micro-batches of %" PRId64 " tokens: %" PRId64 " of them a step\n",
		       r->micro_tokens, f->accumulation);
	if (r->steps > 0 && r->saving_seconds > 0.02 * r->training_seconds)
		printf("  advice           checkpoints cost %.0f %%: raise --save_checkpoints_steps\n",
		       100 * r->saving_seconds / r->training_seconds);
	if (exposed < 0.03 || r->devices == 1)
		return OK;
	double best = f->step, best_bucket = bucket, step;
	static const double sizes[] = {25e6, 50e6, 100e6, 200e6, 400e6, 1e12};
	for (int i = 0; i < 6; i++) {
		TRY(plan_step_with(plan, r, phase, sizes[i], bytes, &step));
		if (step < best) {
			best = step;
			best_bucket = sizes[i];
		}
	}
	char a[FORMAT_BYTES];
	if (best < 0.97 * f->step && best_bucket >= 1e12)
		printf("  note             reduced all at once, not layer by layer as bertc does, a step would take %s "
		       "(--bucket_size 1000000)\n",
		       seconds_text(a, best));
	else if (best < 0.97 * f->step)
		printf("  note             reduced in larger pieces than layers, a step would take %s (--bucket_size %.0f)\n",
		       seconds_text(a, best), best_bucket * 1e-6);
	if (bytes > 2) {
		TRY(plan_step_with(plan, r, phase, bucket, 2, &step));
		if (step < 0.97 * f->step)
			printf("  advice           gradients sent in 16 bits, --allreduce_post_accumulation_bf16: a step of %s\n",
			       seconds_text(a, step));
	}
	if (exposed > 0.1)
		printf("  advice           a larger --train_batch_size hides more of it; fewer devices waste less\n");
	return OK;
}

static enum status print_scaling(const struct plan *plan, const struct plan_phase *phase, int64_t devices)
{
	int64_t most = phase->per_device ? INT64_MAX : phase->batch_size / plan->settings->training.ranks.replicas_per_gpu;
	bool timed = plan_steps(plan, phase, devices) > 0;
	char count[FORMAT_BYTES], a[FORMAT_BYTES], b[FORMAT_BYTES], c[FORMAT_BYTES];
	printf("  scaling %9s %10s %12s %9s %11s %10s\n", plan->on_gpus ? "GPUs" : "ranks", "step", "sequences/s", "exposed",
	       "efficiency", timed ? "duration" : "");
	for (int shift = -3; shift <= 2; shift++) {
		int64_t n = shift < 0 ? devices >> -shift : devices << shift;
		if (n < 1 || n > most || (shift < 0 && n << -shift != devices))
			continue;
		struct plan_result r;
		TRY(plan_compute(plan, phase, n, &r));
		printf("          %9s %10s %12s %8.1f%% %10.1f%% %10s\n", format_count(count, n),
		       seconds_text(a, r.forecast.step), rate_text(c, r.forecast.sequences_per_second),
		       100 * r.forecast.exposed / r.forecast.step, 100 * r.forecast.efficiency,
		       timed ? seconds_text(b, r.training_seconds + r.evaluation_seconds + r.saving_seconds) : "");
	}
	return OK;
}

#define SOURCE_COLUMN 28 /* of sources that do not fit beside the value */
#define LAST_COLUMN 80

/* Prints name, value, provenance, and source; the source wraps below itself. */
static void print_assumptions(const struct plan *plan)
{
	printf("\nwhat it rests on\n");
	for (int i = 0; i < plan->assumptions.count; i++) {
		const struct assumption *row = &plan->assumptions.items[i];
		int column = printf("  %-25s %-23s %-10s", row->name, row->value, provenance_names[row->provenance]);
		char words[sizeof row->source], *rest = words, *word;
		snprintf(words, sizeof words, "%s", row->source);
		if (column + 1 + (int)strlen(words) > LAST_COLUMN)
			column = printf("\n%*s", SOURCE_COLUMN, "") - 1;
		while ((word = strtok_r(rest, " ", &rest))) {
			if (column + 1 + (int)strlen(word) > LAST_COLUMN)
				column = printf("\n%*s", SOURCE_COLUMN, "") - 1;
			column += printf(" %s", word);
		}
		printf("\n");
	}
}

static void print_target(const struct plan *plan, int64_t devices, double seconds)
{
	char time[FORMAT_BYTES], count[FORMAT_BYTES];
	printf("\nwithin %s: ", seconds_text(time, seconds));
	if (devices > 0)
		printf("%s %s\n", format_count(count, devices), device_word(plan, devices));
	else
		printf("no number of such devices would be enough with these batches\n");
}

enum status plan_show(const struct plan *plan, const struct plan_result *results, int64_t wanted_devices, double wanted_seconds)
{
	char count[FORMAT_BYTES], size[FORMAT_BYTES];
	double total = 0;
	print_subject(plan);
	for (int64_t i = 0; i < plan->phase_count; i++) {
		const struct plan_phase *phase = &plan->phases[i];
		const struct plan_result *r = &results[i];
		const struct forecast *f = &r->forecast;
		printf("\nphase %" PRId64 "  ", i + 1);
		if (r->steps > 0)
			printf("%s of ", format_counted(count, r->steps, "step", "steps"));
		printf("%s sequences", format_count(size, plan_batch_size(plan, phase, r->devices)));
		printf(" of %s%" PRId64 " tokens",
		       phase->mean_length < (double)phase->settings->training.max_seq_length ? "up to " : "",
		       phase->settings->training.max_seq_length);
		if (phase->mean_length < (double)phase->settings->training.max_seq_length)
			printf(" (%g on average)", phase->mean_length);
		printf("; each %s %" PRId64 " micro-batch%s of %.4g sequences\n", device_word(plan, 1), f->accumulation,
		       f->accumulation == 1 ? "" : "es", f->work.sequences);
		printf("  memory\n");
		print_memory(plan, r);
		print_time(plan, r);
		print_duration(r);
		TRY(print_advice(plan, phase, r));
		TRY(print_scaling(plan, phase, r->devices));
		if (log_level == LOG_VERBOSE && r->devices > 1)
			print_buckets(f);
		total += r->training_seconds + r->evaluation_seconds + r->saving_seconds;
	}
	if (plan->phase_count > 1 && total > 0)
		printf("\nall      %s\n", seconds_text(size, total));
	if (plan->settings->within)
		print_target(plan, wanted_devices, wanted_seconds);
	print_assumptions(plan);
	return OK;
}
