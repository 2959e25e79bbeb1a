/* A plan of `bertc plan`: what a run would need and how long it would take, on machines that need not be present. plan_machine.c
 * has what it computes with; plan_result.h, the result for one phase. */
#ifndef CMD_PLAN_PLAN_H
#define CMD_PLAN_PLAN_H

#include "comm/link.h"
#include "cmd/plan/plan_options.h"
#include "run/forecast.h"

/* The figures that a plan is based on, and where each comes from. */
struct assumption {
	char name[40], value[64], source[128];
	enum provenance provenance;
};

#define ASSUMPTIONS 128 /* --device_rate makes one for each phase, of which there can be 100 */
struct assumptions {
	struct assumption items[ASSUMPTIONS];
	int count;
};

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

/* Notes an assumption; the source is formatted. */
void plan_assume(struct assumptions *assumptions, enum provenance provenance, const char *name, const char *value,
		 const char *format, ...) PRINTF_LIKE(5, 6);

/* Sets what the plan computes with: back end, rates of the device, and links, each noted with its source. */
MUST_USE enum status plan_open_machine(struct plan *plan);
/* Sets the plan's rates, those of CPUs, from steps measured now on its back end, with micro-batches like those of the first
 * phase. */
MUST_USE enum status plan_measure(struct plan *plan);

#endif
