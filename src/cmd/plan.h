/* The parts of `bertc plan`: what a run would need and how long it would take, on machines that need not be here. */
#ifndef CMD_PLAN_H
#define CMD_PLAN_H

#include "base/option.h"
#include "cmd/command.h"
#include "data/pretraining/instances.h"
#include "data/step_reader.h"
#include "run/forecast.h"
#include "run/plan.h"

struct plan_settings {
	/* as pretrain has them */
	const char *model, *optimizer, *precision;
	int64_t vocab_size, threads;
	int64_t train_batch_size, gradient_accumulation_steps, micro_batch_tokens, max_seq_length, max_predictions_per_seq;
	int64_t num_train_steps, num_train_tokens, save_checkpoints_steps, eval_steps, eval_instances;
	double masked_lm_prob;
	int64_t batch_size_per_gpu, replicas;
	bool post_accumulation, gradients_fp16, gradients_bf16;
	/* its own */
	int64_t num_train_samples, gpus, ranks, per_host, cards, device_rate_batch;
	double mean_seq_length, device_rate, device_memory, bucket_size, disk_rate;
	const char *device_kind, *profile, *local_link, *link, *scheme, *within;
	bool measure, json;
};
extern const struct option plan_options[];
extern const struct command_text plan_text;

/* One figure that the plan rests on. */
struct assumption {
	char name[40], value[64], source[128];
	enum provenance provenance;
};
#define ASSUMPTIONS 32

struct plan_phase {
	struct options *options, own;
	struct plan_settings *settings;
	int64_t batch_size; /* instances of a step; with `per_device`, of each device's share */
	bool per_device;
	double mean_length; /* tokens of a sequence */
	double scale;       /* of the device's time: what --device_rate says over what the rates say */
};

struct plan {
	struct options *options;
	const struct plan_settings *settings;
	struct plan_phase *phases; /* [phase_count] */
	int64_t phase_count;
	bool on_gpus;
	struct model_config config;
	struct pool *pool;       /* CPU only */
	struct backend *backend; /* the CPU's, or `described` */
	struct backend described;
	struct model *model;
	const struct device_kind *kind; /* GPUs only */
	enum device_precision precision;
	struct device_rates rates;
	struct topology topology; /* `ranks` is what is asked for */
	double device_memory;     /* bytes of one device; on CPUs of a host */
	double copy_rate;         /* bytes/s into the host's copies while saving */
	struct assumption assumptions[ASSUMPTIONS];
	int assumption_count;
};

/* A phase on so many devices. */
struct plan_result {
	int64_t devices;
	int64_t micro_tokens, micro_sequences;
	struct batch_capacity capacity;
	struct memory_plan memory;       /* of one rank */
	double device_bytes, host_bytes; /* of one device; on its host (CPUs: all of it is on the host) */
	bool fits, memory_bound;         /* memory_bound: with more memory the micro-batches would be larger */
	struct forecast forecast;
	int64_t steps, saves, evaluations;                           /* steps 0: not said */
	double training_seconds, evaluation_seconds, saving_seconds; /* of the phase; 0 without a number of steps */
	double checkpoint_bytes, writing_seconds;                    /* of a checkpoint on the disk; behind the training's back */
};

/* plan_machine.c: back end, rates and links, with what they rest on. */
MUST_USE enum status plan_open_machine(struct plan *plan);
void plan_assume(struct plan *plan, enum provenance provenance, const char *name, const char *value, const char *format, ...)
	PRINTF_LIKE(5, 6);

/* plan_profile.c: rates from the operations of a training step, as `bertc bench --json` wrote them, or measured now on
 * the plan's back end with micro-batches like the first phase's. */
MUST_USE enum status plan_read_profile(struct plan *plan, const char *path);
MUST_USE enum status plan_measure(struct plan *plan);

/* plan_result.c: one phase on `devices`; the whole run, or 0 if a phase has no number of steps; the fewest devices that
 * finish in `seconds`, 0 if no number does. */
int64_t plan_batch_size(const struct plan *plan, const struct plan_phase *phase, int64_t devices);
int64_t plan_steps(const struct plan *plan, const struct plan_phase *phase, int64_t devices);
MUST_USE enum status plan_compute(const struct plan *plan, const struct plan_phase *phase, int64_t devices,
				  struct plan_result *out);
MUST_USE enum status plan_duration(const struct plan *plan, int64_t devices, double *out_seconds);
MUST_USE enum status plan_find_devices(const struct plan *plan, double seconds, int64_t *out_devices, double *out_best);
/* Seconds of a step of the phase on one device, in micro-batches of so many sequences; 0: as `result` has them. */
double plan_alone(const struct plan *plan, const struct plan_phase *phase, const struct plan_result *result,
		  int64_t micro_sequences);
/* The same phase with other buckets or types of gradients on the way, for advice. */
MUST_USE enum status plan_step_with(const struct plan *plan, const struct plan_result *result, const struct plan_phase *phase,
				    double bucket_bytes, double gradient_bytes, double *out_step);
double plan_gradient_bytes(const struct plan_settings *settings);

/* plan_print.c */
enum status plan_show(const struct plan *plan, const struct plan_result *results, int64_t wanted_devices, double wanted_seconds);
enum status plan_show_json(const struct plan *plan, const struct plan_result *results, int64_t wanted_devices,
			   double wanted_seconds);

#endif
