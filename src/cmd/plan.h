/* A plan of `bertc plan`: what a run would need and how long it would take, on machines that need not be here. Its parts lie in
 * plan_machine.h (what it computes with), plan_result.h (one phase, computed) and plan_print.h. */
#ifndef CMD_PLAN_H
#define CMD_PLAN_H

#include "cmd/plan_assumptions.h"
#include "cmd/plan_options.h"
#include "run/forecast.h"

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
	struct assumptions assumptions;
};

#endif
