/* The plan of one phase on a number of devices, and the search for that number. */
#ifndef CMD_PLAN_RESULT_H
#define CMD_PLAN_RESULT_H

#include "cmd/plan.h"
#include "run/plan.h"

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

/* One phase on `devices`; the whole run, or 0 if a phase has no number of steps; the fewest devices that
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

#endif
