/* Settles which devices and links a plan is for, and their rates. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/described.h"
#include "base/log.h"
#include "base/memory.h"
#include "cmd/plan/plan.h"
#include "model/forms.h"
#include "weights/model_folder.h"
#include "backend/open.h"

void plan_assume(struct assumptions *assumptions, enum provenance provenance, const char *name, const char *value,
		 const char *format, ...)
{
	va_list arguments;
	BUG_IF(assumptions->count == ASSUMPTIONS);
	struct assumption *row = &assumptions->items[assumptions->count++];
	row->provenance = provenance;
	snprintf(row->name, sizeof row->name, "%s", name);
	snprintf(row->value, sizeof row->value, "%s", value);
	va_start(arguments, format);
	vsnprintf(row->source, sizeof row->source, format, arguments);
	va_end(arguments);
}

static void assume_rate(struct plan *plan, enum provenance provenance, const char *name, double rate, const char *unit,
			const char *source)
{
	char value[64];
	double scale = strcmp(unit, "FLOP/s") == 0 && rate >= 1e12 ? 1e-12 : 1e-9;
	snprintf(value, sizeof value, "%.4g %c%s", rate * scale, scale == 1e-12 ? 'T' : 'G', unit);
	plan_assume(&plan->assumptions, provenance, name, value, "%s", source);
}

/* ---- Devices ---- */

static enum status choose_precision(struct plan *plan)
{
	plan->precision = plan->kind->products[DEVICE_BF16] > 0 ? DEVICE_BF16 : DEVICE_FP16;
	if (!options_is_open(plan->options, &plan->settings->precision))
		plan->precision = plan->settings->precision;
	if (plan->kind->products[plan->precision] > 0)
		return OK;
	return error_set(ERR_USAGE, "a %s has no matrix products in %s", plan->kind->name,
			 device_precision_names[plan->precision]);
}

static void assume_kind(struct plan *plan)
{
	const struct device_kind *kind = plan->kind;
	char name[40];
	snprintf(name, sizeof name, "products in %s", device_precision_names[plan->precision]);
	assume_rate(plan, kind->products_provenance, name, kind->products[plan->precision], "FLOP/s", kind->what);
	assume_rate(plan, kind->bandwidth_provenance, "memory", kind->bandwidth, "B/s", kind->what);
	assume_rate(plan, FIGURE_ESTIMATE, "attention", kind->attention_forward, "FLOP/s",
		    "forward, long sequences, heads of 64, fused kernels as published for such devices");
	plan_assume(&plan->assumptions, FIGURE_ESTIMATE, "share of them reached",
		    plan->precision == DEVICE_FP8 ? "75 %, 85 %" : "88 %, 85 %",
		    "products and memory, by kernels that are tuned; small products less, as they fill the device");
	plan_assume(&plan->assumptions, FIGURE_ESTIMATE, "on top", "4 %, 1.5 us",
		    "of a step for data and gaps; of each operation to begin");
	plan_assume(&plan->assumptions, FIGURE_ESTIMATE, "while it communicates", "9 % slower",
		    "multiprocessors that carry data do not compute");
}

static enum status open_gpus(struct plan *plan)
{
	const char *name = plan->settings->device_kind ? plan->settings->device_kind : "h200";
	plan->kind = device_kind_find(name);
	if (!plan->kind)
		return error_hinted(error_set(ERR_USAGE, "--device_kind %s: unknown kind of GPU", name),
				    "give one of those that --help lists, or the nearest one with the rate of yours as "
				    "--device_rate");
	TRY(choose_precision(plan));
	static const enum dtype types[DEVICE_PRECISION_COUNT] = {DTYPE_F32, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_BF16};
	backend_describe(&plan->described, types[plan->precision], plan->precision == DEVICE_FP8);
	plan->backend = &plan->described;
	plan->rates = device_kind_rates(plan->kind, plan->precision);
	plan->device_memory = plan->kind->memory;
	plan->copy_rate = plan->kind->to_host;
	assume_kind(plan);
	return OK;
}

static enum status open_cpus(struct plan *plan)
{
	const struct plan_settings *settings = plan->settings;
	int64_t threads = settings->threads;
	if (settings->device_kind)
		return error_set(ERR_USAGE, "--device_kind is for --gpus");
	if (threads == 0) {
		threads = pool_available_cores() / plan->topology.per_host;
		threads = threads > 0 ? threads : 1;
	}
	TRY(pool_create(&plan->pool, (int)threads));
	struct backend_settings backend = {.device = "cpu", .pool = plan->pool, .dtype = backend_best_dtype("cpu")};
	enum device_precision precision = settings->precision;
	bool given = !options_is_open(plan->options, &settings->precision);
	if (given && precision != DEVICE_BF16 && precision != DEVICE_FP32)
		return error_set(ERR_USAGE, "--precision %s: CPUs compute in fp32 or bf16", device_precision_names[precision]);
	if (given)
		backend.dtype = precision == DEVICE_BF16 ? DTYPE_BF16 : DTYPE_F32;
	TRY(backend_open(&plan->backend, &backend));
	plan->precision = plan->backend->dtype == DTYPE_BF16 ? DEVICE_BF16 : DEVICE_FP32;
	plan->device_memory = (double)memory_available();
	plan->copy_rate = 1.2e9;
	return OK;
}

static enum status measure_cpus(struct plan *plan)
{
	TRY(plan_measure(plan));
	/* The communicating thread is one of the host's threads. */
	plan->rates.slowed = 1.0 / pool_threads(plan->pool);
	return OK;
}

/* ---- Links ---- */

static const char wires[] = "name one of those that --help lists, or give a number of GB/s";

/* Finds a link by name, or makes one from a bandwidth. */
static enum status find_link(struct plan *plan, const char *option, const char *given, const char *usual, bool between,
			     struct link_kind *out)
{
	const char *name = given ? given : usual;
	const struct link_kind *kind = link_find(name);
	char *end;
	double number = strtod(name, &end);
	if (!kind && *end == '\0' && number > 0 && number < 1e6) {
		*out = *link_find(usual);
		out->bandwidth = number * 1e9;
		out->name = "given";
		out->provenance = FIGURE_GIVEN;
		out->source = option;
	} else if (kind && (kind->wire == WIRE_INFINIBAND || kind->wire == WIRE_TCP) == between) {
		*out = *kind;
	} else {
		return error_hinted(error_set(ERR_USAGE, "--%s %s: no link %s hosts has this name", option, name,
					      between ? "between" : "within"),
				    "%s", wires);
	}
	char title[40];
	snprintf(title, sizeof title, "%s %s", between ? "between hosts:" : "within a host:", out->name);
	assume_rate(plan, out->provenance, title, out->bandwidth, "B/s", out->source);
	return OK;
}

static enum status open_links(struct plan *plan)
{
	const struct plan_settings *settings = plan->settings;
	struct topology *t = &plan->topology;
	t->cards = settings->cards ? settings->cards : plan->kind ? plan->kind->cards : 1;
	bool measured = !plan->on_gpus && !settings->local_link;
	if (measured) {
		TRY(link_measure_memory(&t->local));
		assume_rate(plan, FIGURE_MEASURED, "sums in shared memory", t->local.bandwidth, "B/s", t->local.source);
	} else if (t->per_host > 1)
		TRY(find_link(plan, "local_link", settings->local_link, plan->kind ? plan->kind->local_link : "shared", false,
			      &t->local));
	else
		t->local = *link_find("shared");
	t->network = *link_find("10gbe");
	/* The plan also shows what more devices would cost, so the network matters even if only one host is planned. */
	if (t->ranks > t->per_host || settings->within || settings->link || plan->kind) {
		TRY(find_link(plan, "link", settings->link, plan->kind ? plan->kind->network : "10gbe", true, &t->network));
		char value[64];
		snprintf(value, sizeof value, "%lld", (long long)t->cards);
		plan_assume(&plan->assumptions, settings->cards ? FIGURE_GIVEN : FIGURE_ESTIMATE, "network cards of a host",
			    value, "%s", settings->cards ? "--cards" : "what such hosts usually have");
	}
	return OK;
}

/* ---- The machine ---- */

static enum status choose_hosts(struct plan *plan)
{
	const struct plan_settings *settings = plan->settings;
	struct topology *t = &plan->topology;
	plan->on_gpus = settings->gpus > 0 || (settings->device_kind && settings->ranks == 0);
	if (settings->gpus > 0 && settings->ranks > 0 && settings->gpus != settings->ranks)
		return error_set(ERR_USAGE, "--gpus %lld and --ranks %lld: on GPUs a rank is a device; give one of them",
				 (long long)settings->gpus, (long long)settings->ranks);
	t->ranks = settings->gpus > 0 ? settings->gpus : settings->ranks > 0 ? settings->ranks : 1;
	const struct device_kind *kind =
		plan->on_gpus ? device_kind_find(settings->device_kind ? settings->device_kind : "h200") : NULL;
	t->per_host = settings->gpus_per_node > 0 ? settings->gpus_per_node : kind ? kind->per_host : t->ranks;
	return OK;
}

/* Before anything is measured with sequences of this length. */
static enum status check_lengths(const struct plan *plan)
{
	for (int64_t i = 0; i < plan->phase_count; i++) {
		int64_t length = plan->phases[i].settings->training.max_seq_length;
		if (length > model_positions(&plan->config))
			return error_set(ERR_USAGE, "--max_seq_length %lld is beyond the model's %d positions", (long long)length,
					 model_positions(&plan->config));
	}
	return OK;
}

enum status plan_open_machine(struct plan *plan)
{
	const struct plan_settings *settings = plan->settings;
	TRY(model_shaped_config(settings->model, &settings->sizes, &plan->config));
	if (plan->config.vocab_size == 0)
		plan->config.vocab_size = (int32_t)settings->vocab_size;
	TRY(check_lengths(plan));
	TRY(choose_hosts(plan));
	TRY(plan->on_gpus ? open_gpus(plan) : open_cpus(plan));
	TRY(model_create(&plan->model, plan->backend, &plan->config, model_heads_of_words(&plan->config)));
	if (!plan->on_gpus)
		TRY(measure_cpus(plan));
	if (settings->device_memory > 0)
		plan->device_memory = settings->device_memory * 1e9;
	char size[FORMAT_BYTES];
	plan_assume(&plan->assumptions,
		    settings->device_memory > 0 ? FIGURE_GIVEN
		    : plan->on_gpus             ? FIGURE_PUBLISHED
						: FIGURE_MEASURED,
		    plan->on_gpus ? "memory of a device" : "memory of a host", format_size(size, plan->device_memory), "%s",
		    settings->device_memory > 0 ? "--device_memory"
		    : plan->on_gpus             ? plan->kind->what
						: "left on this machine");
	TRY(open_links(plan));
	if (topology_hosts(&plan->topology) > 1)
		plan_assume(&plan->assumptions, FIGURE_ESTIMATE, "hosts are uneven by", "2 %",
			    "of a step; fitted to published runs of many hosts");
	assume_rate(plan, FIGURE_ESTIMATE, "copies while saving", plan->copy_rate, "B/s",
		    plan->on_gpus ? "over PCIe" : "as seen on a busy machine of two cores");
	return OK;
}
