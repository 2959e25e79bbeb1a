/* Runs a few training steps on this machine's CPU and derives the rates of a plan from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "data/pretraining/instances.h"
#include "cmd/plan/plan_result.h"
#include "run/benchmark.h"

/* Kinds of operations, each with its own rate in struct device_rates. */
enum kind {
	PRODUCTS_FORWARD,
	PRODUCTS_BACKWARD,
	ATTENTION_FORWARD,
	ATTENTION_BACKWARD,
	ELEMENTS_FORWARD,
	ELEMENTS_BACKWARD,
	HEADS,
	EMBEDDINGS,
	UPDATE,
	KIND_COUNT
};

/* The step that was measured. */
struct tally {
	double seconds[KIND_COUNT];
	double step;
	struct model_work work;
};

static const struct {
	const char *name;
	enum kind kind;
} names[] = {
	{"embed_fwd", EMBEDDINGS},
	{"embed_bwd", EMBEDDINGS},
	{"linear_fwd", PRODUCTS_FORWARD},
	{"linear_gelu_fwd", PRODUCTS_FORWARD},
	{"linear_norm_fwd", PRODUCTS_FORWARD},
	{"linear_bwd", PRODUCTS_BACKWARD},
	{"norm_bwd", ELEMENTS_BACKWARD},
	{"attention_fwd", ATTENTION_FORWARD},
	{"attention_bwd", ATTENTION_BACKWARD},
	{"dropout_fwd", ELEMENTS_FORWARD},
	{"dropout_bwd", ELEMENTS_BACKWARD},
	{"sumsq_finite", UPDATE},
	{"adamw", UPDATE},
	{"lamb_norms", UPDATE},
	{"lamb_apply", UPDATE},
	{"weights_refresh", UPDATE},
};

/* "linear_fwd M=1024 O=1536 I=512": products whose number of rows is not that of the encoder belong to the heads, as do all
 * operations with unknown names. */
static enum kind kind_of(const char *operation, double tokens)
{
	size_t length = strcspn(operation, " ");
	const char *rows = strstr(operation, " M=");
	enum kind kind = HEADS;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strlen(names[i].name) == length && strncmp(names[i].name, operation, length) == 0)
			kind = names[i].kind;
	if (kind != PRODUCTS_FORWARD && kind != PRODUCTS_BACKWARD)
		return kind;
	return rows && strtod(rows + 3, NULL) == tokens ? kind : HEADS;
}

static double *rate_of(struct device_rates *rates, enum kind kind)
{
	double *fields[KIND_COUNT] = {
		[PRODUCTS_FORWARD] = &rates->products_forward,
		[PRODUCTS_BACKWARD] = &rates->products_backward,
		[ATTENTION_FORWARD] = &rates->attention_forward,
		[ATTENTION_BACKWARD] = &rates->attention_backward,
		[ELEMENTS_FORWARD] = &rates->elements_forward,
		[ELEMENTS_BACKWARD] = &rates->elements_backward,
		[HEADS] = &rates->head,
		[EMBEDDINGS] = &rates->embeddings,
		[UPDATE] = &rates->update,
	};
	return fields[kind];
}

/* A rate so high that the operation takes no time. */
#define AT_ONCE 1e300

/* Sets the rates so that the forecast of the measured step matches its measured times: each is the amount of work that the
 * forecast counts, divided by the measured seconds. */
static void set_rates(struct plan *plan, const struct tally *tally)
{
	const struct model *model = plan->model;
	double known = 0;
	struct forecast_setup setup = {.model = model};
	struct device_rates rates = {.element_bytes = plan->backend->dtype == DTYPE_F32 ? 4 : 2, .attention_memory = AT_ONCE};
	for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
		setup.rates = rates;
		for (enum kind other = 0; other < KIND_COUNT; other++)
			*rate_of(&setup.rates, other) = other == kind ? 1 : AT_ONCE;
		double amount = kind == UPDATE ? (double)model->element_count * UPDATE_BYTES_ADAMW
					       : forecast_micro_batch(&setup, &tally->work);
		*rate_of(&rates, kind) = tally->seconds[kind] > 0 ? amount / tally->seconds[kind] : AT_ONCE;
		known += tally->seconds[kind];
	}
	rates.overhead = tally->step / known - 1; /* the medians of the operations may add up to more than that of the step */
	rates.slowed = DEVICE_SLOWED;
	rates.uneven = HOSTS_UNEVEN;
	plan->rates = rates;
}

static void assume_rates(struct plan *plan, const struct tally *tally)
{
	const struct device_rates *rates = &plan->rates;
	char value[64];
	snprintf(value, sizeof value, "%.4g, %.4g GFLOP/s", rates->products_forward * 1e-9, rates->products_backward * 1e-9);
	plan_assume(&plan->assumptions, FIGURE_MEASURED, "encoder products", value, "forward, backward; on this machine, now");
	snprintf(value, sizeof value, "%.4g, %.4g GFLOP/s", rates->attention_forward * 1e-9, rates->attention_backward * 1e-9);
	plan_assume(&plan->assumptions, FIGURE_MEASURED, "attention", value, "forward, backward; at %.0f tokens a sequence",
		    tally->work.tokens / tally->work.sequences);
	snprintf(value, sizeof value, "%.4g GFLOP/s", rates->head * 1e-9);
	plan_assume(&plan->assumptions, FIGURE_MEASURED, "heads and loss", value, "forward and backward");
	snprintf(value, sizeof value, "%.4g GB/s", rates->update * 1e-9);
	plan_assume(&plan->assumptions, FIGURE_MEASURED, "update", value, "with the norm of the gradients and refreshed copies");
	snprintf(value, sizeof value, "%.3g s", tally->step);
	plan_assume(&plan->assumptions, FIGURE_MEASURED, "the step measured", value,
		    "%.0f tokens in %.0f sequences, update included", tally->work.tokens, tally->work.sequences);
}

#define ROUNDS 3
#define MEASURED_TOKENS 4096

static void record(void *context, const struct operation_done *done)
{
	struct tally *tally = context;
	char name[128];
	snprintf(name, sizeof name, "%s %s", done->name, done->letters);
	tally->seconds[kind_of(name, tally->work.tokens)] += done->seconds;
}

static int compare_tallies(const void *a, const void *b)
{
	double x = ((const struct tally *)a)->step, y = ((const struct tally *)b)->step;
	return (x > y) - (x < y);
}

static enum status measure_rounds(struct benchmark *benchmark, const struct batch *batch, struct tally *tallies)
{
	struct progress progress;
	progress_start(&progress, "measuring", 0, ROUNDS + 1, "rounds");
	enum status status = benchmark_step(benchmark, batch, 1, NULL);
	for (int round = 0; round < ROUNDS && status == OK; round++) {
		struct operation_observer observer = {.done = record, .clock = clock_seconds, .context = &tallies[round]};
		progress_update(&progress, round + 1, "%s", "");
		operations_observe(&observer);
		double started = clock_seconds();
		status = benchmark_step(benchmark, batch, 1, NULL);
		tallies[round].step = clock_seconds() - started;
		operations_observe(NULL);
	}
	progress_update(&progress, ROUNDS + 1, "%s", "");
	progress_finish(&progress);
	return status;
}

enum status plan_measure(struct plan *plan)
{
	const struct plan_phase *phase = &plan->phases[0];
	struct benchmark benchmark;
	struct batch batch;
	int32_t length = (int32_t)(phase->mean_length + 0.5);
	int64_t local = plan_batch_size(plan, phase, plan->topology.ranks) / plan->topology.ranks /
			plan->settings->training.ranks.replicas_per_gpu;
	int64_t most = phase->settings->training.batch.micro_batch_tokens ? phase->settings->training.batch.micro_batch_tokens
									  : MEASURED_TOKENS;
	int64_t sequences = (most < MEASURED_TOKENS ? most : MEASURED_TOKENS) / length;
	if (phase->settings->training.batch.gradient_accumulation_steps > 0)
		local /= phase->settings->training.batch.gradient_accumulation_steps;
	sequences = sequences > local ? local : sequences;
	TRY(benchmark_batch(&batch, &plan->config, (int32_t)(sequences > 0 ? sequences : 1), length, false));
	struct batch_capacity capacity = batch_capacity_of(&batch);
	struct tally tallies[ROUNDS];
	for (int i = 0; i < ROUNDS; i++)
		tallies[i] = (struct tally){
			.work = {batch.token_count, batch.sequence_count, batch.labels[HEAD_MASKED_WORDS].count,
				 (double)batch.token_count * length},
		};
	enum status status = benchmark_open(&benchmark, plan->backend, &plan->config, capacity, batch.longest, true);
	if (status == OK) {
		status = measure_rounds(&benchmark, &batch, tallies);
		benchmark_close(&benchmark);
	}
	batch_release(&batch);
	TRY(status);
	qsort(tallies, ROUNDS, sizeof tallies[0], compare_tallies);
	const struct tally *middle = &tallies[ROUNDS / 2];
	set_rates(plan, middle);
	assume_rates(plan, middle);
	return OK;
}
