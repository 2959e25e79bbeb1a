/* Determines this process's rank and the number of ranks, and opens its device. */
#include "run/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/affinity.h"
#include "train/ranks.h"
#include "backend/open.h"

/* What the driver says to a process of its own: this one may ask only when CUDA_VISIBLE_DEVICES is final. Ranks that this one
 * starts find all GPUs named there, and do not ask again. */
static int64_t ask_driver(void)
{
	static int64_t count = -1; /* once this process has asked, its children cannot */
	int status;
	if (count >= 0 || !backend_has_cuda())
		return count > 0 ? count : 0;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		_exit(backend_count_gpus());
	bool answered = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
	count = answered ? WEXITSTATUS(status) : 0;
	char all[8 * GPUS_LIMIT];
	for (int64_t i = 0, at = 0; i < count; i++)
		at += snprintf(all + at, sizeof all - (size_t)at, "%s%lld", i > 0 ? "," : "", (long long)i);
	if (count > 1)
		setenv("CUDA_VISIBLE_DEVICES", all, 1);
	return count;
}

/* Number of GPUs that this process may use. */
static int64_t count_devices(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int64_t count = 0;
	if (!visible)
		return ask_driver();
	/* "0,1" or names; -1 ends the list. */
	while (*visible && *visible != '-') {
		count++;
		visible += strcspn(visible, ",");
		visible += *visible == ',';
	}
	return count;
}

/* Will this run compute on GPUs? */
static bool is_on_gpus(const struct machine *machine)
{
	if (machine->given.device != DEVICE_FASTEST)
		return machine->given.device == DEVICE_CUDA;
	if (!backend_has_cuda() || count_devices() == 0)
		return false;
	return machine->asked.n_gpus > 0 || machine->place.ranks.size > 1 || strcmp(backend_best_device(), "cuda") == 0;
}

/* The error for --n_gpus when no GPU can be used: says why, and how to get the same without GPUs. */
static enum status no_gpus(const struct machine *machine)
{
	long long wanted = (long long)machine->asked.n_gpus;
	enum device_name device = machine->given.device;
	bool elsewhere = device != DEVICE_FASTEST && device != DEVICE_CUDA;
	enum status status;
	if (elsewhere)
		status = error_set(ERR_USAGE, "--n_gpus %lld and --device %s cannot be combined", wanted, device_name(device));
	else if (!backend_has_cuda())
		status = error_set(ERR_USAGE, "--n_gpus %lld: this program was built without CUDA", wanted);
	else
		status = error_set(ERR_USAGE, "--n_gpus %lld: this process has no GPU to use", wanted);
	error_hint("to train on CPUs with that many processes, give --ranks %lld%s", wanted,
		   !backend_has_cuda() ? "; for GPUs build with make CUDA=1"
		   : elsewhere         ? ""
				       : "; for GPUs check nvidia-smi and CUDA_VISIBLE_DEVICES");
	return status;
}

/* How many ranks the settings ask for. */
static enum status count_ranks(struct machine *machine, int32_t *out)
{
	const struct ranks_options *asked = &machine->asked;
	int64_t visible = is_on_gpus(machine) ? count_devices() : 0, gpus = asked->n_gpus;
	if (gpus > 0 && visible == 0)
		return no_gpus(machine);
	/* As in bert-ad, asking for a multiple of the existing GPUs makes replicas on each. */
	if (visible > 0 && gpus > visible && gpus % visible == 0 && asked->replicas_per_gpu == 1) {
		machine->replicas = gpus / visible;
		gpus = visible;
	}
	if (gpus > visible)
		return error_hinted(
			error_set(ERR_USAGE, "--n_gpus %lld: this process sees %lld GPU%s", (long long)gpus, (long long)visible,
				  visible == 1 ? "" : "s"),
			"CUDA_VISIBLE_DEVICES selects the visible ones; a multiple of their number runs replicas on them");
	if (gpus > 0 && asked->ranks > 0 && gpus != asked->ranks)
		return error_set(ERR_USAGE, "--n_gpus %lld and --ranks %lld: each rank needs its own GPU", (long long)gpus,
				 (long long)asked->ranks);
	int64_t ranks = asked->ranks > 0 ? asked->ranks : gpus > 0 ? gpus : visible;
	*out = ranks < 1 ? 1 : (int32_t)ranks;
	return OK;
}

/* Selects this rank's GPU among those that this process sees, before anything asks the driver. A process that sees only one was
 * given it by its launcher. */
static enum status choose_device(const struct machine *machine)
{
	int64_t visible = count_devices();
	int32_t rank = machine->place.ranks.local_rank;
	const char *names = getenv("CUDA_VISIBLE_DEVICES");
	char own[128];
	if (!is_on_gpus(machine) || machine->place.ranks.local_size == 1 || visible == 1)
		return OK;
	if (rank >= visible)
		return error_set(ERR_USAGE, "rank %d of this machine has no GPU: only %lld are visible", rank,
				 (long long)visible);
	snprintf(own, sizeof own, "%d", rank);
	for (int32_t i = 0; names && i < rank; i++)
		names += strcspn(names, ",") + 1;
	if (names)
		snprintf(own, sizeof own, "%.*s", (int)strcspn(names, ","), names);
	setenv("CUDA_VISIBLE_DEVICES", own, 1);
	return OK;
}

/* Checks the settings of ranks started by another launcher. They may repeat the number of ranks, in total or on this machine, but
 * not differ from it: asking for more GPUs would mean replicas on each rank. */
static enum status check_started(const struct machine *machine)
{
	const struct ranks_options *asked = &machine->asked;
	const struct comm_place *ranks = &machine->place.ranks;
	bool other_ranks = asked->ranks > 0 && asked->ranks != ranks->size;
	bool other_gpus = asked->n_gpus > 0 && asked->n_gpus != ranks->size && asked->n_gpus != ranks->local_size;
	const char *name = other_ranks ? "ranks" : "n_gpus";
	if (asked->n_gpus > 0 && !(is_on_gpus(machine) && count_devices() > 0))
		return no_gpus(machine);
	if (!other_ranks && !other_gpus)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--%s %lld, but this process was started as one of %d", name,
				      (long long)(other_ranks ? asked->ranks : asked->n_gpus), ranks->size),
			    "leave --%s out under mpirun, srun, or torchrun: they set the number of ranks", name);
}

enum status machine_find(struct machine *out, const struct training_options *training)
{
	*out = (struct machine){.asked = training->ranks,
				.given = training->device,
				.device = training->device,
				.replicas = training->ranks.replicas_per_gpu,
				.ranks = 1};
	TRY(place_find(&out->place));
	if (out->place.ranks.size == 1)
		return count_ranks(out, &out->ranks);
	TRY(out->place.launched ? count_ranks(out, &out->ranks) : check_started(out));
	out->ranks = out->place.ranks.size;
	if (out->device.threads == 0)
		out->device.threads = out->place.cores;
	return choose_device(out);
}

int32_t machine_local_ranks(const struct machine *machine)
{
	return machine->place.ranks.size > 1 ? machine->place.ranks.local_size : machine->ranks;
}

bool machine_launches(const struct machine *machine)
{
	return machine->place.ranks.size == 1 && machine->ranks > 1;
}

enum status machine_join(struct machine *machine)
{
	if (machine->place.ranks.size == 1 || machine->comm)
		return OK;
	int threads;
	TRY(comm_open(&machine->comm,
		      &(struct comm_settings){.place = &machine->place, .watchdog_seconds = machine->asked.watchdog_seconds}));
	TRY(affinity_threads(machine->comm, &threads));
	if (machine->device.threads == 0)
		machine->device.threads = threads;
	return OK;
}

void machine_resume(struct machine *machine, const struct training_options *training)
{
	int64_t threads = machine->device.threads;
	machine->given = machine->device = training->device;
	if (training->device.threads == 0)
		machine->device.threads = threads;
	if (training->ranks.replicas_per_gpu != machine->asked.replicas_per_gpu)
		machine->replicas = training->ranks.replicas_per_gpu;
	machine->asked = training->ranks;
}

enum status machine_open_device(struct machine *machine, struct options *options, const struct device_options *of_run)
{
	if (machine->given.device == DEVICE_FASTEST) {
		TRY(options_choose(options, &of_run->device, device_name(machine->device.device)));
		machine->device.device = of_run->device;
	}
	if (!machine->backend) {
		TRY(device_open(&machine->device, false, &machine->pool, &machine->backend));
		TRY(ranks_use_device(machine->comm, machine->backend));
	}
	if (machine->given.precision != PRECISION_FASTEST || machine->backend->dtype == DTYPE_F64)
		return OK;
	TRY(options_choose(options, &of_run->precision, dtype_names[machine->backend->dtype]));
	machine->device.precision = of_run->precision;
	return OK;
}

bool machine_on_gpu(const struct machine *machine)
{
	return machine->backend != NULL && strcmp(machine->backend->name, "cuda") == 0;
}

enum status machine_measure_rate(struct machine *machine)
{
	double (*gemm_rate)(struct backend *) = machine->backend->functions->gemm_rate;
	machine->gemm_rate = gemm_rate ? gemm_rate(machine->backend) : 0.0;
	return ranks_count(machine->comm) > 1 ? comm_sum(machine->comm, &machine->gemm_rate, 1) : OK;
}

void machine_close(struct machine *machine)
{
	if (machine->backend)
		backend_close(machine->backend);
	pool_free(machine->pool);
	comm_close(machine->comm);
	machine->backend = NULL;
	machine->pool = NULL;
	machine->comm = NULL;
}
