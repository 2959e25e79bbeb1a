/* The JSON form of a plan. */
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/plan/plan_result.h"
static void put_memory(struct json_writer *writer, const struct plan_result *r)
{
	json_open(writer, "memory", '{');
	json_put_integer(writer, "weights", (int64_t)r->memory.weights);
	json_put_integer(writer, "moments", (int64_t)r->memory.moments);
	json_put_integer(writer, "activations", (int64_t)r->memory.activations);
	json_put_integer(writer, "workspace", (int64_t)r->memory.workspace);
	json_put_integer(writer, "communication", (int64_t)r->memory.communication);
	json_put_integer(writer, "batches", (int64_t)r->memory.batches);
	json_put_integer(writer, "checkpoint", (int64_t)r->memory.checkpoint);
	json_put_integer(writer, "device", (int64_t)r->device_bytes);
	json_put_integer(writer, "host", (int64_t)r->host_bytes);
	json_put_bool(writer, "fits", r->fits);
	json_close(writer);
}

static void put_buckets(struct json_writer *writer, const struct forecast *f)
{
	json_open(writer, "buckets", '[');
	for (int i = 0; i < f->bucket_count; i++) {
		const struct forecast_bucket *bucket = &f->buckets[i];
		json_open(writer, NULL, '{');
		json_put_integer(writer, "first_layer", bucket->first_layer);
		json_put_integer(writer, "last_layer", bucket->last_layer);
		json_put_double(writer, "bytes", bucket->bytes);
		json_put_double(writer, "ready_seconds", bucket->ready);
		json_put_double(writer, "reduce_seconds", bucket->reduce);
		json_put_double(writer, "reduced_at_seconds", bucket->end);
		json_put_double(writer, "gather_seconds", bucket->gather);
		json_close(writer);
	}
	json_close(writer);
}

static void put_phase(struct json_writer *writer, const struct plan *plan, const struct plan_phase *phase,
		      const struct plan_result *r)
{
	const struct forecast *f = &r->forecast;
	json_open(writer, NULL, '{');
	json_put_integer(writer, "steps", r->steps);
	json_put_integer(writer, "train_batch_size", plan_batch_size(plan, phase, r->devices));
	json_put_integer(writer, "max_seq_length", phase->settings->training.max_seq_length);
	json_put_double(writer, "mean_seq_length", phase->mean_length);
	json_put_integer(writer, "gradient_accumulation_steps", f->accumulation);
	json_put_integer(writer, "micro_batch_tokens", r->micro_tokens);
	put_memory(writer, r);
	json_put_double(writer, "forward_seconds", f->forward);
	json_put_double(writer, "heads_seconds", f->heads);
	json_put_double(writer, "backward_seconds", f->backward);
	json_put_double(writer, "update_seconds", f->update);
	json_put_double(writer, "computing_seconds", f->computing);
	json_put_double(writer, "communication_seconds", f->communication);
	json_put_double(writer, "exposed_seconds", f->exposed);
	json_put_double(writer, "uneven_seconds", f->uneven);
	json_put_double(writer, "step_seconds", f->step);
	json_put_double(writer, "alone_step_seconds", f->alone);
	json_put_double(writer, "efficiency", f->efficiency);
	json_put_double(writer, "sequences_per_second", f->sequences_per_second);
	json_put_double(writer, "tokens_per_second", f->tokens_per_second);
	json_put_double(writer, "model_flops_per_second", f->model_flops / f->step);
	json_put_string(writer, "collective", f->largest.algorithm);
	put_buckets(writer, f);
	json_put_double(writer, "training_seconds", r->training_seconds);
	json_put_double(writer, "evaluation_seconds", r->evaluation_seconds);
	json_put_double(writer, "saving_seconds", r->saving_seconds);
	json_put_double(writer, "checkpoint_bytes", r->checkpoint_bytes);
	json_close(writer);
}

enum status plan_show_json(const struct plan *plan, const struct plan_result *results, int64_t wanted_devices,
			   double wanted_seconds)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	double total = 0;
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "model", plan->settings->model);
	json_put_integer(&writer, "parameters", plan->model->element_count);
	json_put_string(&writer, "device", plan->on_gpus ? plan->kind->name : "cpu");
	json_put_string(&writer, "precision", device_precision_names[plan->precision]);
	json_put_integer(&writer, "ranks", plan->topology.ranks);
	json_put_integer(&writer, "ranks_per_host", plan->topology.per_host);
	json_open(&writer, "phases", '[');
	for (int64_t i = 0; i < plan->phase_count; i++) {
		put_phase(&writer, plan, &plan->phases[i], &results[i]);
		total += results[i].training_seconds + results[i].evaluation_seconds + results[i].saving_seconds;
	}
	json_close(&writer);
	json_put_double(&writer, "seconds", total);
	if (plan->settings->within) {
		json_put_double(&writer, "within_seconds", wanted_seconds);
		json_put_integer(&writer, "ranks_within", wanted_devices);
	}
	json_open(&writer, "assumptions", '[');
	for (int i = 0; i < plan->assumptions.count; i++) {
		const struct assumption *row = &plan->assumptions.items[i];
		json_open(&writer, NULL, '{');
		json_put_string(&writer, "name", row->name);
		json_put_string(&writer, "value", row->value);
		json_put_string(&writer, "provenance", provenance_names[row->provenance]);
		json_put_string(&writer, "source", row->source);
		json_close(&writer);
	}
	json_close(&writer);
	json_close(&writer);
	buffer_char(&text, '\n');
	return command_print(&text);
}
