/* Saving without stopping the training: the step waits only while weights and moments are copied; a separate thread then
 * writes, checks, publishes, and prunes. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "formats/safetensors.h"
#include "train/checkpoint_internal.h"
#include "train/ranks.h"
#include "weights/finite_values.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"

/* The writing thread yields to those that compute. */
#define WRITER_NICENESS 10
/* A save that takes up to this many times as long as expected, or up to this many seconds, is put down to a slow disk; beyond
 * both limits, the disk hangs. */
#define SLOW_DISK 50
#define SLOW_DISK_SECONDS 60
#define JOIN_NANOSECONDS 200000000 /* between two signs of life while waiting */
/* Disk rate in bytes/s assumed until a save has been timed. */
#define ASSUMED_RATE 200e6

struct checkpoint_writer {
	const struct checkpoint_context *context;
	struct model *model;
	struct optimizer *optimizer;

	/* What is being saved: copies in host memory, in the order of checkpoint_slabs(), and the weights in fp32. */
	struct arena memory;
	int slab_count;
	void *slabs[SLAB_SOURCES];
	float *weights;
	struct buffer state_text;
	struct train_state state;

	pthread_t thread;
	double started; /* when the save began, by clock_seconds() */
	bool busy;      /* the thread is running, or has ended but not been joined */
	atomic_bool ended;
	enum status status; /* the result of the thread's work, with its error */
	struct error error;
	_Atomic double longest; /* seconds of the longest save so far */
};

/* Lays out the copies; with an arena without memory, only measures them. */
static void lay_out(struct checkpoint_writer *writer, const struct model *model, struct arena *arena)
{
	size_t element = dtype_bytes(model->slab.dtype);
	int count = model->slab.dtype == DTYPE_F32 ? 2 : 3;
	for (int i = 0; i < count; i++) /* moments, masters */
		writer->slabs[i] = arena_take(arena, (size_t)(i < 2 ? model->gradients.columns : model->slab_count) * element);
	writer->weights = arena_take(arena, (size_t)model->slab_count * sizeof(float));
	writer->slab_count = count;
}

size_t checkpoint_writer_bytes(const struct model *model)
{
	struct checkpoint_writer writer;
	struct arena arena = {0};
	lay_out(&writer, model, &arena);
	return arena.used;
}

/* The constant covers the tokenizer's files and JSON. */
double checkpoint_disk_bytes(const struct model *model)
{
	double weights = (double)(model->adapted_count > 0 ? model->gradients.columns : model->slab_count) * sizeof(float);
	double moments = 2 * (double)model->gradients.columns * (double)dtype_bytes(model->slab.dtype);
	return 1.02 * (weights + moments) + 4e6;
}

/* With the mean of the weights, if the run takes one. */
static double disk_bytes(const struct checkpoint_context *context, const struct model *model)
{
	return checkpoint_disk_bytes(model) + (context->average ? (double)average_bytes(model) : 0);
}

/* Refuses to start what cannot fit. */
static enum status space_check(const char *folder, double need, const char *what)
{
	int64_t left = folder_free_bytes(folder);
	if (left < 0 || (double)left >= need)
		return OK;
	char need_text[FORMAT_BYTES], left_text[FORMAT_BYTES];
	return error_hinted(error_set(ERR_RESOURCE, "'%s': %s %s, but the disk has %s left", folder, what,
				      format_size(need_text, need), format_size(left_text, (double)left)),
			    "free some space and run the same command again; older checkpoints are untouched");
}

enum status checkpoint_writer_open(struct checkpoint_writer **out, const struct checkpoint_context *context, struct model *model,
				   struct optimizer *optimizer)
{
	*out = NULL;
	struct checkpoint_writer *writer;
	int64_t *steps = NULL, existing;
	enum status status;
	TRY(memory_new(&writer, 1, sizeof *writer, "checkpoint writer"));
	writer->context = context;
	writer->model = model;
	writer->optimizer = optimizer;
	if (!is_first_rank(context->comm)) {
		*out = writer;
		return OK;
	}
	/* The checkpoints that are kept and one being written must fit, minus those already there. */
	TRY_GOTO(checkpoint_list(context->folder, &steps, &existing), failed);
	double more = (double)(context->keep > 0 ? context->keep + 1 : 1) - (double)existing;
	TRY_GOTO(space_check(context->folder, disk_bytes(context, model) * (more > 1 ? more : 1),
			     "the checkpoints of this run need"),
		 failed);
	TRY_GOTO(arena_create(&writer->memory, checkpoint_writer_bytes(model), "copies while saving"), failed);
	lay_out(writer, model, &writer->memory);
	free(steps);
	*out = writer;
	return OK;
failed:
	free(steps);
	checkpoint_writer_close(writer);
	return status;
}

/* ---- In the writing thread ---- */

static enum status not_finite(const char *kind, const char *name)
{
	return error_hinted(
		error_set(ERR_NUMERIC, "%s of '%s' are not finite: the checkpoint is not saved", kind, name),
		"a resumed run keeps its settings: start another run (--out) from the last checkpoint's weights, which "
		"are intact, with a lower --learning_rate");
}

/* Where a parameter lies in a copy that begins with parameter `first`. */
static const void *place_of(const void *copy, const struct model *model, int64_t first, int64_t parameter)
{
	int64_t offset = model->parameters[parameter].offset - model->parameters[first].offset;
	return (const char *)copy + (size_t)offset * dtype_bytes(model->slab.dtype);
}

/* Non-finite numbers must never get into files; the gaps between tensors hold zeros. */
static enum status verify_finite(const struct checkpoint_writer *writer)
{
	static const char *const kinds[SLAB_SOURCES] = {"first moments", "second moments", "weights"};
	const struct model *model = writer->model;
	struct slab_source sources[SLAB_SOURCES];
	checkpoint_slabs(model, writer->optimizer, sources);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		enum dtype dtype = model->slab.dtype;
		if (first_not_finite(writer->weights + parameter->offset, DTYPE_F32, parameter->count) >= 0)
			return not_finite("weights", parameter->name);
		for (int k = 0; k < writer->slab_count; k++) {
			if (i >= sources[k].first && first_not_finite(place_of(writer->slabs[k], model, sources[k].first, i),
								      dtype, parameter->count) >= 0)
				return not_finite(kinds[k], parameter->name);
		}
	}
	return OK;
}

static enum status optimizer_write(const struct checkpoint_writer *writer, const char *folder, struct folder_files *files)
{
	const struct model *model = writer->model;
	enum dtype dtype = model->slab.dtype;
	struct slab_source sources[SLAB_SOURCES + 1];
	int source_count = checkpoint_slabs(model, writer->optimizer, sources);
	const void *slabs[SLAB_SOURCES + 1];
	memcpy(slabs, writer->slabs, sizeof writer->slabs);
	if (writer->state.phase.averaged > 0) {
		slabs[source_count] = writer->context->average->mean;
		sources[source_count++] = (struct slab_source){.kind = AVERAGE_KIND};
	}
	int64_t count = 0, most = source_count * model->parameter_count;
	struct safetensors_entry *entries = NULL;
	char(*names)[128] = NULL, path[PATH_BYTES];
	uint32_t crc;
	int64_t bytes;
	enum status status;
	TRY_GOTO(memory_new(&entries, most, sizeof *entries, "checkpoint"), done);
	TRY_GOTO(memory_new(&names, most, sizeof *names, "checkpoint"), done);
	for (int64_t i = 0; i < most; i++) {
		const struct slab_source *source = &sources[i / model->parameter_count];
		int64_t number = i % model->parameter_count;
		const struct parameter *parameter = &model->parameters[number];
		if (number < source->first)
			continue;
		int length = snprintf(names[count], sizeof *names, "%s.%s", source->kind, parameter->name);
		BUG_IF(length < 0 || (size_t)length >= sizeof *names);
		entries[count] = (struct safetensors_entry){
			.name = names[count],
			.dtype = dtype == DTYPE_F64 ? ST_F64 : ST_F32,
			.rank = 1,
			.shape = {parameter->count},
			.count = parameter->count,
			.data = place_of(slabs[i / model->parameter_count], model, source->first, number),
			.bytes = (uint64_t)parameter->count * dtype_bytes(dtype),
		};
		count++;
	}
	TRY_GOTO(path_join(path, folder, OPTIMIZER_NAME), done);
	TRY_GOTO(safetensors_write(path, entries, count, NULL, &crc, &bytes), done);
	TRY_GOTO(folder_files_add(files, OPTIMIZER_NAME, bytes, crc), done);
done:
	free(entries);
	free(names);
	return status;
}

static struct model_folder_content folder_content(const struct checkpoint_context *context, const struct model *model,
						  const float *slab)
{
	return (struct model_folder_content){
		.model = model,
		.slab = slab,
		.task = context->task,
		.base = context->base,
		.vocab = context->vocab,
		.tokenizer = context->tokenizer,
		.max_length = context->max_seq_length,
	};
}

/* Writes every file of the checkpoint into a folder with a temporary name; the manifest last. */
static enum status write_files(const struct checkpoint_writer *writer, const char *folder)
{
	const struct checkpoint_context *context = writer->context;
	struct folder_files files = {0};
	char path[PATH_BYTES];
	enum status status;
	TRY_GOTO(folder_make(folder), done);
	struct model_folder_content content = folder_content(context, writer->model, writer->weights);
	content.training = true;
	TRY_GOTO(model_folder_save(folder, &content, &files), done);
	TRY_GOTO(optimizer_write(writer, folder, &files), done);
	TRY_GOTO(path_join(path, folder, STATE_NAME), done);
	TRY_GOTO(file_write(path, writer->state_text.data, writer->state_text.size), done);
	TRY_GOTO(folder_files_add(&files, STATE_NAME, (int64_t)writer->state_text.size,
				  crc32c(0, writer->state_text.data, writer->state_text.size)),
		 done);
	TRY_GOTO(manifest_write(folder, writer->state.step, &files), done);
done:
	free(files.files);
	return status;
}

static enum status write_checkpoint(struct checkpoint_writer *writer)
{
	const struct checkpoint_context *context = writer->context;
	const struct train_state *state = &writer->state;
	char name[64], temporary_name[96], temporary[PATH_BYTES];
	checkpoint_name(name, state->step);
	snprintf(temporary_name, sizeof temporary_name, TEMPORARY_PREFIX "%s-%ld", name, (long)getpid());
	TRY(path_join(temporary, context->folder, temporary_name));
	TRY(verify_finite(writer));
	TRY(checkpoint_folder_check(context->folder));
	if (context->may_save)
		TRY(context->may_save(context->may_save_context));
	TRY(space_check(context->folder, disk_bytes(context, writer->model), "a checkpoint needs"));
	enum status status = write_files(writer, temporary);
	if (status == OK)
		status = checkpoint_folder_publish(context->folder, temporary, name);
	if (status != OK)
		return checkpoint_folder_abandon(temporary);
	log_detail("saved %s", name);
	stop_loss("what was trained since %s is lost; the same command resumes there", name);
	/* The checkpoint is complete: any failure from here on only causes a warning. */
	if (state->best_step == state->step &&
	    checkpoint_mark_best(context->folder, state->best_step, checkpoint_decides(context), state->best_score) != OK)
		log_warning("the best checkpoint could not be marked: %s", error_last()->message);
	if (checkpoint_prune(context->folder, context->keep, state->step, state->best_step) != OK)
		log_warning("an older checkpoint could not be removed: %s", error_last()->message);
	return OK;
}

static void run_save(struct checkpoint_writer *writer)
{
	double started = clock_seconds();
	writer->status = write_checkpoint(writer);
	if (writer->status != OK)
		writer->error = *error_last();
	double seconds = clock_seconds() - started;
	writer->longest = seconds > writer->longest ? seconds : writer->longest;
}

static void *writer_main(void *argument)
{
	struct checkpoint_writer *writer = argument;
	setpriority(PRIO_PROCESS, (id_t)gettid(), WRITER_NICENESS); /* if refused, it competes */
	run_save(writer);
	atomic_store(&writer->ended, true);
	return NULL;
}

/* ---- In the training thread ---- */

/* Waits until the thread has ended. While the disk is merely slow, the rank does not count as hanging. */
static void join(struct checkpoint_writer *writer)
{
	double patience = SLOW_DISK * checkpoint_writer_longest(writer);
	patience = patience > SLOW_DISK_SECONDS ? patience : SLOW_DISK_SECONDS;
	for (;;) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += JOIN_NANOSECONDS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_timedjoin_np(writer->thread, NULL, &until) != ETIMEDOUT)
			return;
		if (clock_seconds() - writer->started < patience)
			ranks_alive(writer->context->comm);
	}
}

/* Joins the thread, if there is one, and returns the result of its save. */
static enum status collect(struct checkpoint_writer *writer)
{
	if (!writer->busy)
		return OK;
	join(writer);
	writer->busy = false;
	arena_forget(&writer->memory);
	return writer->status == OK ? OK : error_restore(&writer->error);
}

enum status checkpoint_writer_check(struct checkpoint_writer *writer)
{
	return writer->busy && atomic_load(&writer->ended) ? collect(writer) : OK;
}

enum status checkpoint_writer_finish(struct checkpoint_writer *writer)
{
	return collect(writer);
}

/* Bytes copied through the host at a time. */
#define PIECE ((size_t)1 << 20)

/* Copies this rank's share of a bucket from the moments to its place in the slab of gradients. */
static void place_share(const struct model *model, const struct bucket *bucket, const struct tensor *moments,
			unsigned char *piece)
{
	struct backend *be = model->backend;
	size_t element = dtype_bytes(model->slab.dtype), bytes = (size_t)bucket->own_count * element;
	const char *from = (const char *)moments->data + (size_t)bucket->moments * element;
	char *to = buckets_gradients(model, bucket->own_offset, bucket->own_count).data;
	for (size_t done = 0; done < bytes; done += PIECE) {
		size_t part = bytes - done < PIECE ? bytes - done : PIECE;
		be->functions->to_host(be, piece, from + done, part);
		be->functions->to_device(be, to + done, piece, part);
	}
}

/* Gathers the moments of all ranks in the slab of gradients. [all] */
static enum status gather_moments(const struct checkpoint_writer *writer, const struct tensor *moments)
{
	const struct model *model = writer->model;
	const struct buckets *buckets = &writer->optimizer->buckets;
	comm_ticket newest = 0;
	unsigned char *piece;
	TRY(memory_new(&piece, 1, PIECE, "a piece of the moments"));
	for (int64_t i = 0; i < buckets->count; i++) {
		const struct bucket *bucket = &buckets->items[i];
		if (bucket->count == 0)
			continue;
		place_share(model, bucket, moments, piece);
		newest = comm_all_gather(buckets->comm, buckets_gradients(model, bucket->offset, bucket->count).data,
					 bucket->count, buckets_type(model));
	}
	enum status status = comm_wait(buckets->comm, newest);
	free(piece);
	return status;
}

/* Copies weights and moments to the host, in the first rank. [all] */
static enum status take_copies(struct checkpoint_writer *writer)
{
	struct model *model = writer->model;
	struct backend *be = model->backend;
	struct slab_source sources[SLAB_SOURCES];
	bool shares = writer->optimizer->buckets.ranks > 1, writes = is_first_rank(writer->context->comm);
	int count = checkpoint_slabs(model, writer->optimizer, sources);
	for (int i = 0; i < count; i++) {
		const struct tensor *slab = sources[i].slab;
		if (shares && slab != &model->slab) {
			TRY(gather_moments(writer, slab));
			slab = &model->gradients;
		}
		if (writes)
			be->functions->to_host(be, writer->slabs[i], slab->data,
					       (size_t)slab->columns * dtype_bytes(slab->dtype));
	}
	return writes ? model_get_weights(model, writer->weights) : OK;
}

/* Does what can fail in the rank that writes, before all ranks take part. */
static enum status begin_save(struct checkpoint_writer *writer, const struct train_state *state, const struct buffer *choices)
{
	if (!is_first_rank(writer->context->comm))
		return OK;
	TRY(checkpoint_writer_finish(writer));
	buffer_clear(&writer->state_text);
	return checkpoint_state_text(&writer->state_text, writer->context, writer->optimizer, state, choices);
}

enum status checkpoint_writer_save(struct checkpoint_writer *writer, const struct train_state *state)
{
	struct buffer choices = {0};
	enum status status = checkpoint_choices_write(&choices, writer->context->comm, writer->model->backend);
	if (status == OK)
		status = ranks_agree(writer->context->comm, begin_save(writer, state, &choices));
	buffer_release(&choices);
	TRY(status);
	TRY(take_copies(writer));
	if (!is_first_rank(writer->context->comm))
		return OK;
	writer->state = *state;
	writer->started = clock_seconds();
	atomic_store(&writer->ended, false);

	/* Signals must go to the main thread. */
	sigset_t all, before;
	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* a mapped file was truncated: handled in the thread that reads it */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&writer->thread, NULL, writer_main, writer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failure == 0) {
		writer->busy = true;
		return OK;
	}
	/* No thread could be started: saving matters more than the time it takes. */
	run_save(writer);
	return writer->status;
}

double checkpoint_writer_longest(const struct checkpoint_writer *writer)
{
	return writer->longest > 0 ? writer->longest : checkpoint_disk_bytes(writer->model) / ASSUMED_RATE;
}

void checkpoint_writer_close(struct checkpoint_writer *writer)
{
	if (!writer)
		return;
	if (collect(writer) != OK)
		log_warning("%s", error_last()->message);
	arena_release(&writer->memory);
	buffer_release(&writer->state_text);
	free(writer);
}

/* ---- The finished model ---- */

enum status checkpoint_save_final(const struct checkpoint_context *context, struct model *model, int64_t step)
{
	char temporary[PATH_BYTES];
	float *slab = NULL;
	struct folder_files files = {0};
	bool made = false;
	enum status status;
	TRY_GOTO(checkpoint_folder_check(context->folder), done);
	if (context->may_save)
		TRY_GOTO(context->may_save(context->may_save_context), done);
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof *slab, "copy of the weights"), done);
	TRY_GOTO(model_get_weights(model, slab), done);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		if (first_not_finite(slab + parameter->offset, DTYPE_F32, parameter->count) >= 0)
			TRY_GOTO(not_finite("weights", parameter->name), done);
	}
	TRY_GOTO(space_check(context->folder, 1.02 * (double)model->slab_count * sizeof(float) + 4e6, "the finished model needs"),
		 done);
	TRY_GOTO(path_join(temporary, context->folder, TEMPORARY_PREFIX "final"), done);
	if (file_exists(temporary))
		TRY_GOTO(folder_remove(temporary), done);
	made = true;
	TRY_GOTO(folder_make(temporary), done);
	struct model_folder_content content = folder_content(context, model, slab);
	TRY_GOTO(model_folder_save(temporary, &content, &files), done);
	TRY_GOTO(manifest_write(temporary, step, &files), done);
	TRY_GOTO(checkpoint_folder_publish(context->folder, temporary, "final"), done);
done:
	if (status != OK && made)
		status = checkpoint_folder_abandon(temporary);
	free(slab);
	free(files.files);
	return status;
}
