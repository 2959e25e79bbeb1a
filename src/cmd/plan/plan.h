/* A plan of `bertc plan`: what a run would need and how long it would take, on machines that need not be present. Its parts are
 * in plan_machine.h (what it computes with), plan_result.h (the result for one phase), and plan_print.h. */
#ifndef CMD_PLAN_PLAN_H
#define CMD_PLAN_PLAN_H

#include "cmd/plan/plan_assumptions.h"
#include "cmd/plan/plan_options.h"
#include "run/forecast.h"

struct plan_phase {
	struct options *options, own;
	struct plan_settings *settings;
	int64_t batch_size; /* instances per step; with `per_device`, of each device and replica */
	bool per_device;
	double mean_length; /* tokens per sequence */
	double scale;       /* factor by which --device_rate changes the device's time from what the rates give */
};

struct plan {
	struct options *options;
	const struct plan_settings *settings;
	struct plan_phase *phases; /* [phase_count] */
	int64_t phase_count;
	bool on_gpus;
	struct model_config config;
	struct pool *pool;       /* CPU only */
	struct backend *backend; /* that of the CPU, or `described` */
	struct backend described;
	struct model *model;
	const struct device_kind *kind; /* GPUs only */
	enum device_precision precision;
	struct device_rates rates;
	struct topology topology; /* `ranks` is the number asked for */
	double device_memory;     /* bytes of one device; for CPUs, of a host */
	double copy_rate;         /* bytes/s of copies to host memory while saving */
	struct assumptions assumptions;
};

#endif
