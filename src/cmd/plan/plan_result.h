/* The plan of one phase on a number of devices, and the search for that number. */
#ifndef CMD_PLAN_PLAN_RESULT_H
#define CMD_PLAN_PLAN_RESULT_H

#include "cmd/plan/plan.h"
#include "run/plan.h"

/* A phase on `devices` devices. */
struct plan_result {
	int64_t devices;
	int64_t micro_tokens, micro_sequences;
	struct batch_capacity capacity;
	struct memory_plan memory;       /* of one rank */
	double device_bytes, host_bytes; /* of one device; on its host (CPUs: everything is on the host) */
	bool fits, memory_bound;         /* memory_bound: micro-batches would be larger with more memory */
	struct forecast forecast;
	int64_t steps, saves, evaluations;                           /* steps 0: not known */
	double training_seconds, evaluation_seconds, saving_seconds; /* of the phase; 0 if the number of steps is not known */
	double checkpoint_bytes;                                     /* of a checkpoint on disk */
};

/* On a number of devices: the batch size of a phase, its number of steps (0: not known), the plan of a phase, and the duration of
 * the whole run, in which a phase with an unknown number of steps counts as 0. plan_find_devices() looks for the smallest number
 * of devices that finishes in `seconds` (0: none does); *out_best is the shortest duration it has seen. */
int64_t plan_batch_size(const struct plan *plan, const struct plan_phase *phase, int64_t devices);
int64_t plan_steps(const struct plan *plan, const struct plan_phase *phase, int64_t devices);
MUST_USE enum status plan_compute(const struct plan *plan, const struct plan_phase *phase, int64_t devices,
				  struct plan_result *out);
MUST_USE enum status plan_find_devices(const struct plan *plan, double seconds, int64_t *out_devices, double *out_best);
/* Seconds that a step of the phase takes on one device, in micro-batches of `micro_sequences` sequences; 0: as in `result`. */
double plan_alone(const struct plan *plan, const struct plan_phase *phase, const struct plan_result *result,
		  int64_t micro_sequences);
/* The step time of the same phase with other buckets, or another type of gradient between ranks, for advice. */
MUST_USE enum status plan_step_with(const struct plan *plan, const struct plan_result *result, const struct plan_phase *phase,
				    double bucket_bytes, double gradient_bytes, double *out_step);
double plan_gradient_bytes(const struct plan_settings *settings);

/* Prints a plan: for people, or as JSON for programs. */
MUST_USE enum status plan_show(const struct plan *plan, const struct plan_result *results, int64_t wanted_devices,
			       double wanted_seconds);
MUST_USE enum status plan_show_json(const struct plan *plan, const struct plan_result *results, int64_t wanted_devices,
				    double wanted_seconds);

#endif
