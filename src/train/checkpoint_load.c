/* Loads a checkpoint's weights and moments into a model and optimizer of any back end and precision. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "formats/safetensors.h"
#include "train/checkpoint_internal.h"
#include "weights/finite_values.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"

#define MEANS_PREFIX "exp_avg."
#define SQUARES_PREFIX "exp_avg_sq."

int checkpoint_slabs(const struct model *model, const struct optimizer *optimizer, struct slab_source out[SLAB_SOURCES])
{
	out[0] = (struct slab_source){"exp_avg", &optimizer->m, model->frozen_count};
	out[1] = (struct slab_source){"exp_avg_sq", &optimizer->v, model->frozen_count};
	out[2] = (struct slab_source){"master", &model->slab, 0};
	return model->slab.dtype == DTYPE_F32 ? 2 : 3;
}

/* Where a slab's values go. */
struct destination {
	const struct tensor *slab;
	int64_t begin, end; /* elements of the model's slab that it holds of a bucket ... */
	int64_t place;      /* ... and where they begin in `slab` */
};

/* Copies the part of one parameter that belongs there. `host` holds the whole parameter. */
static void put_values(struct backend *be, const struct destination *to, const struct parameter *parameter, const void *host)
{
	int64_t first = larger(parameter->offset, to->begin);
	int64_t end = smaller(parameter->offset + parameter->count, to->end);
	size_t element = dtype_bytes(to->slab->dtype);
	if (first < end)
		be->functions->to_device(be, (char *)to->slab->data + (size_t)(to->place + first - to->begin) * element,
					 (const char *)host + (size_t)(first - parameter->offset) * element,
					 (size_t)(end - first) * element);
}

/* Reports values that no training produces: they would end up in the weights. */
static enum status bad_value(const char *path, const char *name, int64_t at, const char *what)
{
	return error_hinted(error_set(ERR_DATA, "'%s': value %" PRId64 " of '%s' is %s", path, at, name, what),
			    "the checkpoint is damaged, whatever its checksums say: resume from an earlier one (--resume_from)");
}

static double value_at(const void *host, enum dtype dtype, int64_t i)
{
	return dtype == DTYPE_F64 ? ((const double *)host)[i] : (double)((const float *)host)[i];
}

/* `host` holds the whole tensor. */
static enum status check_values(const char *path, const char *name, const void *host, enum dtype dtype, int64_t count)
{
	int64_t at = first_not_finite(host, dtype, count);
	if (at >= 0)
		return bad_value(path, name, at, "not finite");
	bool squares = strncmp(name, SQUARES_PREFIX, strlen(SQUARES_PREFIX)) == 0;
	for (int64_t i = 0; squares && i < count; i++)
		if (value_at(host, dtype, i) < 0)
			return bad_value(path, name, i, "negative, although it is a mean of squares");
	return OK;
}

/* For a mean m of gradients and a mean v of their squares, the Cauchy-Schwarz inequality bounds |m| by sqrt(v) times (1 - b1)
 * / sqrt((1 - b2)(1 - b1²/b2)), which is 7 for 0.9 and 0.999. This limit is a thousand times higher, to allow for other b1 and
 * b2, and small m are not checked: if b1² exceeds b2, m outlives v. */
#define MEAN_MOST 1e4
#define MEAN_LARGE 1e3

static enum status number_at(const struct safetensors_entry *entry, const char *path, int64_t i, double *out)
{
	struct safetensors_entry one = *entry;
	one.bytes = entry->bytes / (uint64_t)entry->count;
	one.data = (const unsigned char *)entry->data + (uint64_t)i * one.bytes;
	one.count = 1;
	return safetensors_to_double(&one, path, out);
}

/* An update by a mean that is implausible for its mean of squares could throw the weight anywhere. */
static enum status check_means(const char *path, const struct safetensors *file, const char *name, const void *host,
			       enum dtype dtype, int64_t count)
{
	char squares_name[160], what[160];
	if (strncmp(name, MEANS_PREFIX, strlen(MEANS_PREFIX)) != 0)
		return OK;
	snprintf(squares_name, sizeof squares_name, SQUARES_PREFIX "%s", name + strlen(MEANS_PREFIX));
	const struct safetensors_entry *squares = safetensors_find(file, squares_name);
	for (int64_t i = 0; i < count && squares && squares->count == count; i++) {
		double mean = value_at(host, dtype, i), square;
		if (fabs(mean) < MEAN_LARGE)
			continue;
		TRY(number_at(squares, path, i, &square));
		if (fabs(mean) < MEAN_MOST * sqrt(square))
			continue;
		snprintf(what, sizeof what, "%.3g, which cannot be the mean of gradients whose squares have a mean of %.3g", mean,
			 square);
		return bad_value(path, name, i, what);
	}
	return OK;
}

/* Reads tensor `name`, which must have `count` values, as `dtype`. */
static enum status entry_read(const char *path, const struct safetensors *file, struct file_check *check, const char *name,
			      enum dtype dtype, int64_t count, void *host)
{
	const struct safetensors_entry *entry = safetensors_find(file, name);
	if (!entry || entry->count != count)
		return error_set(ERR_STATE, "'%s': '%s' is %s", path, name, entry ? "of another size" : "missing");
	file_check_advance(check, &file->map, (const unsigned char *)entry->data + entry->bytes - file->map.data);
	TRY(dtype == DTYPE_F64 ? safetensors_to_double(entry, path, host) : safetensors_to_float(entry, path, host));
	TRY(check_values(path, name, host, dtype, count));
	return check_means(path, file, name, host, dtype, count);
}

/* Reads one "<kind>.<parameter>" set of a file into a device slab of any float type; of moments, only what this rank owns. */
static enum status slab_read(const char *path, const struct safetensors *file, struct file_check *check,
			     const struct slab_source *source, const struct model *model, const struct buckets *buckets)
{
	const struct tensor *slab = source->slab;
	int64_t longest = 0;
	void *host;
	for (int64_t i = 0; i < model->parameter_count; i++)
		longest = larger(longest, model->parameters[i].count);
	TRY(memory_new(&host, longest, dtype_bytes(slab->dtype), "copy of the moments"));
	enum status status = OK;
	for (int64_t i = source->first; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		const struct bucket *bucket = bucket_of(buckets, parameter->layer);
		struct destination to = {slab, bucket->own_offset, bucket->own_offset + bucket->own_count, bucket->moments};
		if (slab == &model->slab)
			to = (struct destination){slab, 0, model->slab_count, 0};
		char name[128];
		snprintf(name, sizeof name, "%s.%s", source->kind, parameter->name);
		TRY_GOTO(entry_read(path, file, check, name, slab->dtype, parameter->count, host), done);
		put_values(model->backend, &to, parameter, host);
	}
done:
	free(host);
	return status;
}

/* Reads "average.<parameter>" of a file into host memory. */
static enum status average_read(const char *path, const struct safetensors *file, struct file_check *check,
				const struct average *average)
{
	const struct model *model = average->model;
	enum dtype dtype = model->slab.dtype;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		void *host = (char *)average->mean + (size_t)parameter->offset * dtype_bytes(dtype);
		char name[128];
		snprintf(name, sizeof name, AVERAGE_KIND ".%s", parameter->name);
		TRY(entry_read(path, file, check, name, dtype, parameter->count, host));
	}
	return OK;
}

enum status checkpoint_load_average(const char *path, struct average *average)
{
	char file_path[PATH_BYTES];
	struct safetensors file;
	struct file_check check;
	if (!average->mean)
		return OK;
	TRY(path_join(file_path, path, OPTIMIZER_NAME));
	TRY(file_check_begin(&check, file_path));
	enum status status = safetensors_open(&file, file_path);
	if (status != OK)
		return file_check_end(&check, NULL, status);
	status = average_read(file_path, &file, &check, average);
	status = file_check_end(&check, &file.map, status);
	safetensors_close(&file);
	return status;
}

/* Reads the moments, and the masters unless they are fp32. */
static enum status moments_read(const char *path, const struct model *model, const struct optimizer *optimizer)
{
	struct safetensors file;
	struct file_check check;
	struct slab_source sources[SLAB_SOURCES];
	int source_count = checkpoint_slabs(model, optimizer, sources);
	TRY(file_check_begin(&check, path));
	enum status status = safetensors_open(&file, path);
	if (status != OK)
		return file_check_end(&check, NULL, status);
	for (int i = 0; i < source_count && status == OK; i++) {
		bool optional = sources[i].slab == &model->slab;
		char first[128];
		snprintf(first, sizeof first, "%s.%s", sources[i].kind, model->parameters[0].name);
		if (optional && !safetensors_find(&file, first))
			continue;
		status = slab_read(path, &file, &check, &sources[i], model, &optimizer->buckets);
	}
	status = file_check_end(&check, &file.map, status);
	safetensors_close(&file);
	return status;
}

/* Reads the number of updates so far, and what the back end chose. */
static enum status record_read(const char *path, struct model *model, struct optimizer *optimizer)
{
	struct json_document document;
	TRY(json_read(&document, path, CHECKPOINT_JSON_LIMIT));
	enum status status = checkpoint_update_count(document.root, path, &optimizer->update_count);
	if (status == OK)
		status = checkpoint_choices_use(document.root, path, optimizer->buckets.rank, model->backend);
	json_release(&document);
	return status;
}

enum status checkpoint_load(const char *path, struct model *model, struct replica *replica, struct optimizer *optimizer)
{
	char file_path[PATH_BYTES], state_path[PATH_BYTES];
	float *slab = NULL;
	enum status status;
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof *slab, "copy of the weights"), done);
	TRY_GOTO(model_folder_load(path, model, MISSING_NOTHING, slab, NULL), done);
	TRY_GOTO(model_set_weights(model, replica, slab), done);
	TRY_GOTO(path_join(file_path, path, OPTIMIZER_NAME), done);
	TRY_GOTO(moments_read(file_path, model, optimizer), done);
	model_refresh(model, replica);
	TRY_GOTO(path_join(state_path, path, STATE_NAME), done);
	status = record_read(state_path, model, optimizer);
done:
	free(slab);
	return status;
}

/* ---- Without a model ---- */

static enum status verify_optimizer(const char *path)
{
	struct safetensors file;
	struct file_check check;
	int64_t longest = 0;
	double *host = NULL;
	TRY(file_check_begin(&check, path));
	enum status status = safetensors_open(&file, path);
	if (status != OK)
		return file_check_end(&check, NULL, status);
	for (int64_t i = 0; i < file.count; i++)
		longest = larger(longest, file.entries[i].count);
	status = memory_new(&host, longest, sizeof *host, "copy of the moments");
	for (int64_t i = 0; i < file.count && status == OK; i++) {
		const struct safetensors_entry *entry = &file.entries[i];
		enum dtype dtype = entry->dtype == ST_F64 ? DTYPE_F64 : DTYPE_F32;
		status = entry_read(path, &file, &check, entry->name, dtype, entry->count, host);
	}
	status = file_check_end(&check, &file.map, status);
	safetensors_close(&file);
	free(host);
	return status;
}

enum status checkpoint_verify_values(const char *path)
{
	char optimizer[PATH_BYTES];
	struct json_document document;
	struct train_state state;
	uint64_t hash;
	TRY(checkpoint_read_state(path, &document, &state, &hash));
	json_release(&document);
	TRY(path_join(optimizer, path, OPTIMIZER_NAME));
	return verify_optimizer(optimizer);
}
