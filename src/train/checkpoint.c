#include "train/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "formats/safetensors.h"
#include "train/model_folder.h"

#define FORMAT_VERSION 1
#define PREFIX "checkpoint-"
#define TEMPORARY_PREFIX ".tmp-"
#define TRASH_PREFIX ".trash-"
#define STATE_NAME "training_state.json"
#define MANIFEST_NAME "MANIFEST.json"
#define OPTIMIZER_NAME "optimizer.safetensors"
#define JSON_LIMIT ((size_t)16 << 20)

/* ---- Writing ---- */

/* Lists the files with the sizes and checksums they were written with. */
static enum status manifest_write(const char *folder, int64_t step, const struct folder_files *files)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	char path[PATH_BYTES];
	enum status status;
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "format", FORMAT_VERSION);
	json_put_string(&writer, "program", "bertc " VERSION);
	json_put_integer(&writer, "step", step);
	json_put_integer(&writer, "ranks", 1);
	json_open(&writer, "files", '[');
	for (int64_t i = 0; i < files->count; i++) {
		json_open(&writer, NULL, '{');
		json_put_string(&writer, "name", files->files[i].name);
		json_put_integer(&writer, "bytes", files->files[i].bytes);
		json_put_integer(&writer, "crc32c", files->files[i].crc32c);
		json_close(&writer);
	}
	json_close(&writer);
	json_close(&writer);
	buffer_char(&text, '\n');
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(path_join(path, folder, MANIFEST_NAME), done);
	TRY_GOTO(file_write(path, text.data, text.size), done);
done:
	buffer_release(&text);
	return status;
}

static void put_hash(struct json_writer *writer, const char *key, uint64_t hash)
{
	char hex[17];
	snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
	json_put_string(writer, key, hex);
}

static enum status state_write(const char *folder, const struct checkpoint_context *context,
			       const struct optimizer *optimizer, const struct train_state *state)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	char path[PATH_BYTES];
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "format", FORMAT_VERSION);
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "samples", state->samples);
	json_put_integer(&writer, "tokens", state->tokens);
	json_put_double(&writer, "seconds", state->seconds);
	json_put_integer(&writer, "epoch", state->epoch);
	json_put_integer(&writer, "epoch_first_sample", state->epoch_first_sample);
	json_put_integer(&writer, "skipped_steps", state->skipped_steps);
	json_put_integer(&writer, "update_count", optimizer->update_count);
	json_open(&writer, "phase", '{');
	json_put_integer(&writer, "index", state->phase.index);
	json_put_integer(&writer, "first_step", state->phase.first_step);
	json_put_integer(&writer, "first_sample", state->phase.first_sample);
	json_put_integer(&writer, "first_token", state->phase.first_token);
	json_put_integer(&writer, "evaluations", state->phase.evaluations);
	json_put_integer(&writer, "stalled", state->phase.stalled);
	if (isfinite(state->phase.best_loss))
		json_put_double(&writer, "best_loss", state->phase.best_loss);
	json_close(&writer);
	json_put_integer(&writer, "evaluated_step", state->evaluated_step);
	if (isfinite(state->evaluated_loss))
		json_put_double(&writer, "evaluated_loss", state->evaluated_loss);
	put_hash(&writer, "data_hash", context->data_hash);
	put_hash(&writer, "vocab_hash", context->vocab->hash);
	json_close(&writer);
	/* The settings are a ready-made object: put in before the closing brace. */
	if (!text.failed) {
		while (text.size > 0 && (text.data[text.size - 1] == '}' || text.data[text.size - 1] == '\n'))
			text.size--;
		buffer_format(&text, ",\n  \"settings\": %s\n}\n", context->settings_json);
	}
	enum status status;
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(path_join(path, folder, STATE_NAME), done);
	TRY_GOTO(file_write(path, text.data, text.size), done);
done:
	buffer_release(&text);
	return status;
}

/* Entries "<kind>.<parameter>" over a host copy of a slab. */
static enum status slab_entries(const struct model *model, const char *kind, const void *host, enum dtype dtype,
				struct safetensors_entry *entries, char (*names)[128])
{
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		int length = snprintf(names[i], sizeof(names[i]), "%s.%s", kind, parameter->name);
		BUG_IF(length < 0 || (size_t)length >= sizeof(names[i]));
		entries[i] = (struct safetensors_entry){
			.name = names[i],
			.dtype = dtype == DTYPE_F64 ? ST_F64 : ST_F32,
			.rank = 1,
			.shape = {parameter->count},
			.count = parameter->count,
			.data = (const char *)host + (size_t)parameter->offset * dtype_bytes(dtype),
			.bytes = (uint64_t)parameter->count * dtype_bytes(dtype),
		};
	}
	return OK;
}

/* Slabs that optimizer.safetensors holds, in order. Masters are in model.safetensors unless that rounds them. */
struct slab_source {
	const char *kind;
	const struct tensor *slab;
};

static int slab_sources(const struct model *model, const struct optimizer *optimizer, struct slab_source out[3])
{
	out[0] = (struct slab_source){"exp_avg", &optimizer->m};
	out[1] = (struct slab_source){"exp_avg_sq", &optimizer->v};
	out[2] = (struct slab_source){"master", &model->slab};
	return model->slab.dtype == DTYPE_F32 ? 2 : 3;
}

static enum status optimizer_write(const char *folder, struct model *model, struct optimizer *optimizer,
				   struct folder_files *files)
{
	struct backend *be = model->backend;
	enum dtype dtype = be->master_dtype;
	struct slab_source sources[3];
	int source_count = slab_sources(model, optimizer, sources);
	int64_t count = model->parameter_count;
	struct safetensors_entry *entries = NULL;
	char(*names)[128] = NULL;
	void *host[3] = {NULL};
	char path[PATH_BYTES];
	uint32_t crc;
	int64_t bytes;
	enum status status;
	TRY_GOTO(memory_new(&entries, source_count * count, sizeof(*entries), "checkpoint"), done);
	TRY_GOTO(memory_new(&names, source_count * count, sizeof(*names), "checkpoint"), done);
	for (int i = 0; i < source_count; i++) {
		TRY_GOTO(memory_new(&host[i], model->slab_count, dtype_bytes(dtype), "copy of the moments"), done);
		be->functions->to_host(be, host[i], sources[i].slab->data,
				       (size_t)model->slab_count * dtype_bytes(dtype));
		TRY_GOTO(slab_entries(model, sources[i].kind, host[i], dtype, entries + i * count, names + i * count),
			 done);
	}
	TRY_GOTO(path_join(path, folder, OPTIMIZER_NAME), done);
	TRY_GOTO(safetensors_write(path, entries, source_count * count, NULL, &crc, &bytes), done);
	TRY_GOTO(folder_files_add(files, OPTIMIZER_NAME, bytes, crc), done);
done:
	free(entries);
	free(names);
	for (int i = 0; i < 3; i++)
		free(host[i]);
	return status;
}

static enum status weights_fetch(struct model *model, float **out)
{
	*out = NULL;
	float *slab;
	TRY(memory_new(&slab, model->slab_count, sizeof(*slab), "copy of the weights"));
	enum status status;
	TRY_GOTO(model_get_weights(model, slab), failed);
	for (int64_t i = 0; i < model->slab_count; i++)
		if (!isfinite(slab[i])) {
			status = error_set(ERR_NUMERIC, "weight %" PRId64 " is not finite: not saved", i);
			error_hint("the last checkpoint is sound; try a lower --learning_rate");
			goto failed;
		}
	*out = slab;
	return OK;
failed:
	free(slab);
	return status;
}

/* Refuses to begin a save that cannot fit. */
static enum status space_check(const char *folder, const struct model *model, double slabs)
{
	double need = 1.05 * slabs * (double)model->slab_count * 4 + 4e6;
	int64_t left = folder_free_bytes(folder);
	if (left < 0 || (double)left >= need)
		return OK;
	char need_text[FORMAT_BYTES], left_text[FORMAT_BYTES];
	enum status status = error_set(ERR_RESOURCE, "'%s': a checkpoint needs %s, the disk has %s left", folder,
				       format_size(need_text, need), format_size(left_text, (double)left));
	error_hint("free some space and run the same command again; older checkpoints are untouched");
	return status;
}

/* Removes a folder that others may be looking at: first out of sight, then away. */
static enum status folder_discard(const char *parent, const char *name)
{
	char from[PATH_BYTES], to[PATH_BYTES], trash[320];
	snprintf(trash, sizeof(trash), TRASH_PREFIX "%.256s", name);
	TRY(path_join(from, parent, name));
	TRY(path_join(to, parent, trash));
	if (file_exists(to))
		TRY(folder_remove(to));
	if (file_operations.rename(from, to) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot rename", from);
	return folder_remove(to);
}

/* Makes the finished temporary folder visible under `name`. */
static enum status folder_publish(const char *parent, const char *temporary, const char *name)
{
	char path[PATH_BYTES];
	TRY(folder_sync(temporary));
	TRY(path_join(path, parent, name));
	if (file_exists(path))
		TRY(folder_discard(parent, name));
	if (file_operations.rename(temporary, path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot rename to '%s'", temporary, path);
	return folder_sync(parent);
}

/* "checkpoint-120" -> 120; -1 for any other name. */
static int64_t step_of(const char *name)
{
	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return -1;
	const char *digits = name + strlen(PREFIX);
	if (*digits < '0' || *digits > '9' || strlen(digits) > 18)
		return -1;
	char *end;
	int64_t step = strtoll(digits, &end, 10);
	return *end == 0 ? step : -1;
}

static int compare_steps(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return (left < right) - (left > right);
}

/* Steps of all folders named like checkpoints, newest first. The caller frees. */
static enum status list_steps(const char *folder, int64_t **out, int64_t *out_count)
{
	struct name_list names = {0};
	*out = NULL;
	*out_count = 0;
	enum status status;
	TRY_GOTO(folder_list(folder, &names), done);
	TRY_GOTO(memory_new(out, names.count, sizeof(**out), "list of checkpoints"), done);
	for (int64_t i = 0; i < names.count; i++) {
		int64_t step = step_of(names.names[i]);
		if (step >= 0)
			(*out)[(*out_count)++] = step;
	}
	qsort(*out, (size_t)*out_count, sizeof(**out), compare_steps);
done:
	name_list_release(&names);
	return status;
}

/* Keeps the newest of the checkpoints up to `saved_step`. One of a later step is damaged (the run went on from an
 * earlier one): it does not count as kept, and is replaced when its step comes again. */
static enum status prune(const struct checkpoint_context *context, int64_t saved_step)
{
	if (context->keep <= 0)
		return OK;
	int64_t *steps, count, first = 0;
	enum status status = list_steps(context->folder, &steps, &count);
	while (status == OK && first < count && steps[first] > saved_step)
		first++;
	for (int64_t i = first + context->keep; status == OK && i < count; i++) {
		char name[64];
		snprintf(name, sizeof(name), PREFIX "%" PRId64, steps[i]);
		status = folder_discard(context->folder, name);
	}
	free(steps);
	return status;
}

enum status checkpoint_save(const struct checkpoint_context *context, struct model *model,
			    struct optimizer *optimizer, const struct train_state *state)
{
	char name[64], temporary_name[96], temporary[PATH_BYTES] = "";
	float *slab = NULL;
	struct folder_files files = {0};
	enum status status;
	snprintf(name, sizeof(name), PREFIX "%" PRId64, state->step);
	snprintf(temporary_name, sizeof(temporary_name), TEMPORARY_PREFIX "%s-%ld", name, (long)getpid());
	TRY_GOTO(weights_fetch(model, &slab), failed);
	TRY_GOTO(space_check(context->folder, model, 3.0), failed);
	TRY_GOTO(path_join(temporary, context->folder, temporary_name), failed);
	TRY_GOTO(folder_make(temporary), failed);
	TRY_GOTO(model_folder_save(temporary, model, slab, context->vocab, context->tokenizer,
				   context->max_seq_length, &files),
		 failed);
	TRY_GOTO(optimizer_write(temporary, model, optimizer, &files), failed);
	TRY_GOTO(state_write(temporary, context, optimizer, state), failed);
	TRY_GOTO(folder_files_measure(&files, temporary, STATE_NAME), failed);
	TRY_GOTO(manifest_write(temporary, state->step, &files), failed);
	TRY_GOTO(folder_publish(context->folder, temporary, name), failed);
	free(slab);
	free(files.files);
	log_detail("saved %s", name);
	if (prune(context, state->step) != OK)
		log_warning("an older checkpoint could not be removed: %s", error_last()->message);
	return OK;
failed:
	free(slab);
	free(files.files);
	if (temporary[0] && file_exists(temporary)) {
		struct error error = *error_last();
		if (folder_remove(temporary) != OK)
			log_warning("'%s' could not be removed", temporary);
		return error_restore(&error);
	}
	return status;
}

enum status checkpoint_save_final(const struct checkpoint_context *context, struct model *model)
{
	char temporary[PATH_BYTES];
	float *slab = NULL;
	struct folder_files files = {0};
	enum status status;
	TRY_GOTO(weights_fetch(model, &slab), done);
	TRY_GOTO(space_check(context->folder, model, 1.0), done);
	TRY_GOTO(path_join(temporary, context->folder, TEMPORARY_PREFIX "final"), done);
	if (file_exists(temporary))
		TRY_GOTO(folder_remove(temporary), done);
	TRY_GOTO(folder_make(temporary), done);
	TRY_GOTO(model_folder_save(temporary, model, slab, context->vocab, context->tokenizer,
				   context->max_seq_length, &files),
		 done);
	TRY_GOTO(folder_publish(context->folder, temporary, "final"), done);
done:
	free(slab);
	free(files.files);
	return status;
}

/* ---- Reading ---- */

static enum status damaged(const char *path, const char *format, ...) PRINTF_LIKE(2, 3) MUST_USE;
static enum status damaged(const char *path, const char *format, ...)
{
	char reason[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return error_set(ERR_DATA, "'%s': damaged checkpoint: %s", path, reason);
}

static enum status verify_file(const char *folder, const struct json *row, const char *manifest)
{
	const char *name = NULL;
	int64_t bytes = -1, crc = -1;
	TRY(json_get_string(row, manifest, "name", &name));
	TRY(json_get_integer(row, manifest, "bytes", 0, INT64_MAX, &bytes));
	TRY(json_get_integer(row, manifest, "crc32c", 0, UINT32_MAX, &crc));
	if (!name || bytes < 0 || crc < 0 || strchr(name, '/') || strcmp(name, "..") == 0)
		return damaged(folder, "its manifest has an incomplete row");
	char path[PATH_BYTES];
	TRY(path_join(path, folder, name));
	if (!file_exists(path))
		return damaged(folder, "'%s' is missing", name);
	struct file_map map;
	TRY(file_map_open(&map, path));
	enum status status = OK;
	if ((int64_t)map.size != bytes)
		status = damaged(folder, "'%s' has %zu bytes, not %" PRId64, name, map.size, bytes);
	else if (crc32c(0, map.data, map.size) != (uint32_t)crc)
		status = damaged(folder, "'%s' has the wrong checksum", name);
	file_map_close(&map);
	return status;
}

enum status checkpoint_verify(const char *path)
{
	char manifest[PATH_BYTES];
	struct json_document document;
	TRY(path_join(manifest, path, MANIFEST_NAME));
	if (!file_exists(manifest))
		return damaged(path, "it has no " MANIFEST_NAME);
	TRY(json_read(&document, manifest, JSON_LIMIT));
	int64_t format = 0;
	const struct json *files = json_member(document.root, "files");
	enum status status;
	TRY_GOTO(json_get_integer(document.root, manifest, "format", 1, FORMAT_VERSION, &format), done);
	if (!files || files->kind != JSON_ARRAY || files->child_count == 0) {
		status = damaged(path, "its manifest lists no files");
		goto done;
	}
	for (const struct json *row = files->first_child; row; row = row->next)
		TRY_GOTO(verify_file(path, row, manifest), done);
done:
	json_release(&document);
	return status;
}

/* Names that only a save of ours gives; anything else in the folder is the user's. */
static bool is_leftover(const char *name)
{
	static const char *const prefixes[] = {TEMPORARY_PREFIX PREFIX, TEMPORARY_PREFIX "final", TRASH_PREFIX PREFIX,
					       TRASH_PREFIX "final"};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

enum status checkpoint_clean(const char *folder)
{
	struct name_list names = {0};
	enum status status;
	TRY_GOTO(folder_list(folder, &names), done);
	for (int64_t i = 0; i < names.count; i++) {
		const char *name = names.names[i];
		char path[PATH_BYTES];
		if (!is_leftover(name))
			continue;
		TRY_GOTO(path_join(path, folder, name), done);
		TRY_GOTO(folder_remove(path), done);
	}
done:
	name_list_release(&names);
	return status;
}

enum status checkpoint_latest(const char *folder, char out_path[PATH_BYTES], bool *out_found)
{
	int64_t *steps = NULL, count;
	enum status status;
	*out_found = false;
	TRY_GOTO(list_steps(folder, &steps, &count), done);
	for (int64_t i = 0; i < count; i++) {
		char name[64];
		snprintf(name, sizeof(name), PREFIX "%" PRId64, steps[i]);
		TRY_GOTO(path_join(out_path, folder, name), done);
		status = checkpoint_verify(out_path);
		if (status == OK) {
			*out_found = true;
			goto done;
		}
		if (status != ERR_DATA)
			goto done;
		log_warning("%s; passed over", error_last()->message);
	}
	if (count > 0) {
		status = error_set(ERR_DATA, "'%s': none of its %" PRId64 " checkpoints is whole", folder, count);
		error_hint("remove them, or give --fresh to begin again");
	}
done:
	free(steps);
	return status;
}

/* The phase that a state is in; a record from before there were phases is in the first. */
static enum status phase_read(const struct json *root, const char *file, struct train_state *state)
{
	const struct json *record = json_member(root, "phase");
	struct phase_state *phase = &state->phase;
	phase->best_loss = state->evaluated_loss = NAN;
	TRY(json_get_integer(root, file, "evaluated_step", 0, INT64_MAX, &state->evaluated_step));
	TRY(json_get_number(root, file, "evaluated_loss", &state->evaluated_loss));
	TRY(json_get_integer(record, file, "index", 0, INT32_MAX, &phase->index));
	TRY(json_get_integer(record, file, "first_step", 0, state->step, &phase->first_step));
	TRY(json_get_integer(record, file, "first_sample", 0, state->samples, &phase->first_sample));
	TRY(json_get_integer(record, file, "first_token", 0, state->tokens, &phase->first_token));
	TRY(json_get_integer(record, file, "evaluations", 0, INT64_MAX, &phase->evaluations));
	TRY(json_get_integer(record, file, "stalled", 0, INT64_MAX, &phase->stalled));
	return json_get_number(record, file, "best_loss", &phase->best_loss);
}

enum status checkpoint_read_state(const char *path, struct json_document *document, struct train_state *state,
				  uint64_t *data_hash)
{
	char file[PATH_BYTES];
	TRY(path_join(file, path, STATE_NAME));
	TRY(json_read(document, file, JSON_LIMIT));
	const struct json *root = document->root;
	const char *hash = NULL;
	enum status status;
	*state = (struct train_state){.step = -1};
	TRY_GOTO(json_get_integer(root, file, "step", 0, INT64_MAX, &state->step), failed);
	TRY_GOTO(json_get_integer(root, file, "samples", 0, INT64_MAX, &state->samples), failed);
	TRY_GOTO(json_get_integer(root, file, "tokens", 0, INT64_MAX, &state->tokens), failed);
	TRY_GOTO(json_get_number(root, file, "seconds", &state->seconds), failed);
	TRY_GOTO(json_get_integer(root, file, "epoch", 0, INT64_MAX, &state->epoch), failed);
	TRY_GOTO(json_get_integer(root, file, "epoch_first_sample", 0, INT64_MAX, &state->epoch_first_sample),
		 failed);
	TRY_GOTO(json_get_integer(root, file, "skipped_steps", 0, INT64_MAX, &state->skipped_steps), failed);
	TRY_GOTO(phase_read(root, file, state), failed);
	TRY_GOTO(json_get_string(root, file, "data_hash", &hash), failed);
	if (state->step < 0 || !hash) {
		status = damaged(path, "'" STATE_NAME "' has no step or data hash");
		goto failed;
	}
	*data_hash = strtoull(hash, NULL, 16);
	return OK;
failed:
	json_release(document);
	return status;
}

/* One "<kind>.<parameter>" set of a file into a device slab of any float type. */
static enum status slab_read(const char *path, const struct safetensors *file, const char *kind,
			     const struct model *model, const struct tensor *slab)
{
	struct backend *be = model->backend;
	bool wide = slab->dtype == DTYPE_F64;
	void *host;
	TRY(memory_new(&host, model->slab_count, dtype_bytes(slab->dtype), "copy of the moments"));
	enum status status = OK;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		char name[128];
		snprintf(name, sizeof(name), "%s.%s", kind, parameter->name);
		const struct safetensors_entry *entry = safetensors_find(file, name);
		if (!entry || entry->count != parameter->count) {
			status = error_set(ERR_STATE, "'%s': '%s' is %s", path, name,
					   entry ? "of another size" : "missing");
			goto done;
		}
		if (wide)
			TRY_GOTO(safetensors_to_double(entry, path, (double *)host + parameter->offset), done);
		else
			TRY_GOTO(safetensors_to_float(entry, path, (float *)host + parameter->offset), done);
	}
	be->functions->to_device(be, slab->data, host, (size_t)model->slab_count * dtype_bytes(slab->dtype));
done:
	free(host);
	return status;
}

enum status checkpoint_load(const char *path, struct model *model, struct replica *replica,
			    struct optimizer *optimizer)
{
	char file_path[PATH_BYTES], state_path[PATH_BYTES];
	float *slab = NULL;
	struct safetensors file = {0};
	struct json_document document = {0};
	struct slab_source sources[3];
	int source_count = slab_sources(model, optimizer, sources);
	enum status status;
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof(*slab), "copy of the weights"), done);
	TRY_GOTO(model_folder_load(path, model, MISSING_NOTHING, slab, NULL), done);
	TRY_GOTO(model_set_weights(model, replica, slab), done);
	TRY_GOTO(path_join(file_path, path, OPTIMIZER_NAME), done);
	TRY_GOTO(safetensors_open(&file, file_path), done);
	for (int i = 0; i < source_count; i++) {
		bool optional = sources[i].slab == &model->slab;
		char first[128];
		snprintf(first, sizeof(first), "%s.%s", sources[i].kind, model->parameters[0].name);
		if (optional && !safetensors_find(&file, first))
			continue;
		TRY_GOTO(slab_read(file_path, &file, sources[i].kind, model, sources[i].slab), done);
	}
	model_refresh(model, replica);
	TRY_GOTO(path_join(state_path, path, STATE_NAME), done);
	TRY_GOTO(json_read(&document, state_path, JSON_LIMIT), done);
	TRY_GOTO(json_get_integer(document.root, state_path, "update_count", 0, INT64_MAX, &optimizer->update_count),
		 done);
done:
	free(slab);
	safetensors_close(&file);
	json_release(&document);
	return status;
}
