/* The ranks of a run: from our launcher, mpirun, srun or torchrun's variables, or started here. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/pretrain.h"
#include "comm/affinity.h"
#include "comm/launcher.h"

/* GPUs that a process may use, without asking the driver: that comes after the ranks have started. */
static int64_t count_devices(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int64_t count = 0;
	if (visible) {
		/* "0,1" or names; -1, and nothing, end the list. */
		while (*visible && *visible != '-') {
			count++;
			visible += strcspn(visible, ",");
			visible += *visible == ',';
		}
		return count;
	}
	DIR *folder = opendir("/dev");
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		const char *digits = entry->d_name + strlen("nvidia");
		if (strncmp(entry->d_name, "nvidia", strlen("nvidia")) == 0 && *digits &&
		    strspn(digits, "0123456789") == strlen(digits))
			count++;
	}
	if (folder)
		closedir(folder);
	return count;
}

/* Will this run compute on GPUs? A rank must know before it may ask the driver, which sees the rank's GPU alone. */
static bool is_on_gpus(const struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	if (settings->device.device)
		return strcmp(settings->device.device, "cuda") == 0;
	if (settings->n_gpus > 0 || run->place.ranks.size > 1)
		return backend_has_cuda() && count_devices() > 0;
	return strcmp(backend_best_device(), "cuda") == 0;
}

/* --n_gpus where none can be used: why, and what does the same without them. */
static enum status no_gpus(const struct pretrain_settings *settings)
{
	long long wanted = (long long)settings->n_gpus;
	const char *device = settings->device.device;
	enum status status;
	if (device && strcmp(device, "cuda") != 0)
		status = error_set(ERR_USAGE, "--n_gpus %lld and --device %s exclude each other", wanted, device);
	else if (!backend_has_cuda())
		status = error_set(ERR_USAGE, "--n_gpus %lld: this program was built without CUDA", wanted);
	else
		status = error_set(ERR_USAGE, "--n_gpus %lld: there is no GPU here that this process may use", wanted);
	error_hint("to train on CPUs in as many processes, give --ranks %lld%s", wanted,
		   !backend_has_cuda()                     ? "; for GPUs build with make CUDA=1"
		   : device && strcmp(device, "cuda") != 0 ? ""
							   : "; for GPUs see what nvidia-smi and CUDA_VISIBLE_DEVICES say");
	return status;
}

/* How many ranks this command asks for. */
static enum status count_ranks(struct pretrain *run, int32_t *out)
{
	struct pretrain_settings *settings = run->settings;
	bool on_gpus = is_on_gpus(run);
	int64_t visible = on_gpus ? count_devices() : 0;
	if (settings->n_gpus > 0 && visible == 0)
		return no_gpus(settings);
	/* As in bert-ad, more GPUs than there are cards are replicas on them. */
	if (visible > 0 && settings->n_gpus > visible && settings->n_gpus % visible == 0 && settings->replicas_per_gpu == 1) {
		settings->replicas_per_gpu = settings->n_gpus / visible;
		settings->n_gpus = visible;
	}
	if (settings->n_gpus > visible) {
		enum status status = error_set(ERR_USAGE, "--n_gpus %lld: this process sees %lld GPU%s",
					       (long long)settings->n_gpus, (long long)visible, visible == 1 ? "" : "s");
		error_hint("CUDA_VISIBLE_DEVICES says which it may see; a multiple of their number makes replicas on them");
		return status;
	}
	if (settings->n_gpus > 0 && settings->ranks > 0 && settings->n_gpus != settings->ranks)
		return error_set(ERR_USAGE, "--n_gpus %lld and --ranks %lld: each rank has a GPU of its own",
				 (long long)settings->n_gpus, (long long)settings->ranks);
	int64_t ranks = settings->ranks > 0 ? settings->ranks : settings->n_gpus > 0 ? settings->n_gpus : visible;
	*out = ranks < 1 ? 1 : (int32_t)ranks;
	return OK;
}

/* Of the GPUs this process sees the one of its rank, before anything asks the driver. Who sees one was given it. */
static enum status choose_device(const struct pretrain *run)
{
	int64_t visible = count_devices();
	int32_t rank = run->place.ranks.local_rank;
	const char *names = getenv("CUDA_VISIBLE_DEVICES");
	char own[128];
	if (!is_on_gpus(run) || run->place.ranks.local_size == 1 || visible == 1)
		return OK;
	if (rank >= visible)
		return error_set(ERR_USAGE, "rank %d of this machine has no GPU of its own: %lld are visible", rank,
				 (long long)visible);
	snprintf(own, sizeof(own), "%d", rank);
	for (int32_t i = 0; names && i < rank; i++)
		names += strcspn(names, ",") + 1;
	if (names)
		snprintf(own, sizeof(own), "%.*s", (int)strcspn(names, ","), names);
	setenv("CUDA_VISIBLE_DEVICES", own, 1);
	return OK;
}

enum status pretrain_find_ranks(struct pretrain *run, bool *launches)
{
	struct pretrain_settings *settings = run->settings;
	int32_t wanted = 1;
	*launches = false;
	TRY(place_find(&run->place));
	TRY(count_ranks(run, &wanted));
	if (run->place.ranks.size == 1) {
		run->ranks = wanted;
		*launches = wanted > 1 && !settings->plan && settings->out;
		return OK;
	}
	run->ranks = run->place.ranks.size;
	if (settings->ranks > 0 && settings->ranks != run->ranks) {
		enum status status = error_set(ERR_USAGE, "--ranks %lld, but this process was started as one of %d",
					       (long long)settings->ranks, run->ranks);
		error_hint("leave out --ranks under mpirun, srun or torchrun: they say how many there are");
		return status;
	}
	if (settings->device.threads == 0)
		settings->device.threads = run->place.cores;
	return choose_device(run);
}

enum status pretrain_open_ranks(struct pretrain *run)
{
	if (run->place.ranks.size == 1)
		return OK;
	int threads;
	TRY(comm_open(&run->comm,
		      &(struct comm_settings){.place = &run->place, .watchdog_seconds = run->settings->watchdog_seconds}));
	TRY(affinity_threads(run->comm, &threads));
	if (run->settings->device.threads == 0)
		run->settings->device.threads = threads;
	return OK;
}

/* Everything that decides the result. Threads may differ from machine to machine; data have the same paths in all. */
enum status pretrain_agree(struct pretrain *run)
{
	struct buffer text = {0};
	if (!run->comm)
		return OK;
	buffer_format(&text, "vocabulary %016llx\ndata %016llx\nstep %lld\n", (unsigned long long)run->data.vocab.hash,
		      (unsigned long long)run->data.hash, (long long)run->training.state.step);
	buffer_format(&text, "replicas_per_gpu %lld\nprecision %s\n", (long long)run->settings->replicas_per_gpu,
		      run->settings->device.precision ? run->settings->device.precision : "fp64");
	buffer_format(&text, "allreduce_post_accumulation %d %d %d\n", run->settings->allreduce_post_accumulation,
		      run->settings->allreduce_post_accumulation_fp16, run->settings->allreduce_post_accumulation_bf16);
	buffer_format(&text, "check_weights_steps %lld\n", (long long)run->settings->check_weights_steps);
	buffer_format(&text, "settings %s\n", buffer_string(&run->record_text));
	enum status status = buffer_status(&text);
	status = ranks_agree(run->comm, status);
	if (status == OK)
		status = comm_agree(run->comm, "the settings of the run", buffer_string(&text));
	buffer_release(&text);
	return status;
}

/* A run that did not begin leaves no logs either: they say what was said on the terminal. */
static void remove_logs(const struct pretrain *run)
{
	char path[PATH_BYTES];
	struct name_list names = {0};
	bool began = !run->made_folder || folder_list(run->settings->out, &names) != OK;
	for (int64_t i = 0; i < names.count; i++)
		began |= strcmp(names.names[i], ".lock") != 0 && strcmp(names.names[i], "logs") != 0;
	name_list_release(&names);
	if (began || path_join(path, run->settings->out, "logs") != OK || folder_remove(path) != OK)
		return;
}

enum status pretrain_launch(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	run->made_folder = !file_exists(settings->out);
	TRY(path_join(run->data_folder, settings->out, "data"));
	TRY(folder_make(settings->out));
	TRY(folder_lock(settings->out, &run->lock));
	enum status status = launcher_run(&(struct launcher_settings){
		.ranks = run->ranks,
		.folder = settings->out,
		.watchdog_seconds = settings->watchdog_seconds,
		.max_restarts = settings->max_restarts,
	});
	if (status != OK) {
		struct error error = *error_last();
		pretrain_leave_folder(run); /* data, if there are none */
		remove_logs(run);
		status = error_restore(&error);
	}
	return status;
}
