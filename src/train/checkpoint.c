/* A checkpoint's record of where a run stood. Saving is in checkpoint_writer.c; loading of weights and moments in
 * checkpoint_load.c. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/checkpoint_internal.h"
#include "weights/manifest.h"

#define FORMAT_VERSION 1

/* ---- The record ---- */

static void put_hash(struct json_writer *writer, const char *key, uint64_t hash)
{
	char hex[17];
	snprintf(hex, sizeof hex, "%016" PRIx64, hash);
	json_put_string(writer, key, hex);
}

enum status checkpoint_state_text(struct buffer *out, const struct checkpoint_context *context, const struct optimizer *optimizer,
				  const struct train_state *state, const struct buffer *choices)
{
	struct json_writer writer = {.out = out, .indent = 2};
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "format", FORMAT_VERSION);
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "samples", state->samples);
	json_put_integer(&writer, "tokens", state->tokens);
	json_put_double(&writer, "seconds", state->seconds);
	if (state->elapsed > 0)
		json_put_double(&writer, "elapsed", state->elapsed);
	if (state->begun > 0)
		json_put_double(&writer, "begun", state->begun);
	json_put_double(&writer, "loss_sum", state->loss_sum);
	json_put_integer(&writer, "loss_count", state->loss_count);
	json_put_integer(&writer, "epoch", state->epoch);
	json_put_integer(&writer, "epoch_first_sample", state->epoch_first_sample);
	json_put_integer(&writer, "skipped_steps", state->skipped_steps);
	json_put_integer(&writer, "update_count", optimizer->update_count);
	json_open(&writer, "phase", '{');
	json_put_integer(&writer, "index", state->phase.index);
	json_put_integer(&writer, "first_step", state->phase.first_step);
	json_put_integer(&writer, "first_sample", state->phase.first_sample);
	json_put_integer(&writer, "first_token", state->phase.first_token);
	if (state->phase.time_is_up)
		json_put_bool(&writer, "time_is_up", true);
	if (state->phase.averaged > 0)
		json_put_integer(&writer, "averaged", state->phase.averaged);
	json_put_integer(&writer, "evaluations", state->phase.evaluations);
	json_put_integer(&writer, "stalled", state->phase.stalled);
	json_put_integer(&writer, "improved_step", state->phase.best_step);
	if (isfinite(state->phase.best_score))
		json_put_double(&writer, "best_score", state->phase.best_score);
	json_close(&writer);
	json_put_integer(&writer, "evaluated_step", state->evaluated_step);
	if (isfinite(state->evaluated_score))
		json_put_double(&writer, "evaluated_score", state->evaluated_score);
	if (state->best_step > 0) {
		json_open(&writer, "best", '{');
		json_put_integer(&writer, "step", state->best_step);
		json_put_double(&writer, "score", state->best_score);
		json_close(&writer);
	}
	guard_write(&state->guard, &writer, "guard");
	json_put_string(&writer, "computed_on", context->computed_on);
	if (context->resumed_from)
		json_put_string(&writer, "resumed_from", context->resumed_from);
	put_hash(&writer, "data_hash", context->data_hash);
	put_hash(&writer, "evaluation_hash", context->evaluation_hash);
	put_hash(&writer, "vocab_hash", context->vocab->hash);
	if (context->teacher_hash)
		put_hash(&writer, "teacher_hash", context->teacher_hash);
	if (choices->size > 0)
		json_put_written(&writer, "choices", buffer_string(choices));
	json_put_written(&writer, "settings", context->settings_json);
	json_close(&writer);
	buffer_char(out, '\n');
	return buffer_status(out);
}

/* More than any run reaches, yet small enough that sums of such counts stay far from the limit of 64 bits. */
#define COUNT_LIMIT (INT64_C(1) << 56)

/* Three thousand years. */
#define SECONDS_LIMIT 1e11

/* Reads a count from 0 to `limit`, which every record has. */
static enum status read_count(const struct json *object, const char *file, const char *key, int64_t limit, int64_t *out)
{
	*out = -1;
	TRY(json_get_integer(object, file, key, 0, limit, out));
	return *out >= 0 ? OK : error_set(ERR_DATA, "'%s': damaged: \"%s\" is missing", file, key);
}

/* Each loss is a float, which limits their sum. */
static enum status losses_read(const struct json *root, const char *file, struct train_state *state)
{
	state->loss_sum = json_member(root, "loss_count") ? NAN : 0; /* both, or neither */
	TRY(json_get_number(root, file, "loss_sum", &state->loss_sum));
	TRY(json_get_integer(root, file, "loss_count", 0, state->step, &state->loss_count));
	if (fabs(state->loss_sum) <= (double)state->loss_count * FLT_MAX)
		return OK;
	return error_set(ERR_DATA, "'%s': damaged: \"loss_sum\" is %g, of %" PRId64 " losses", file, state->loss_sum,
			 state->loss_count);
}

/* Reads a measure by which checkpoints are compared. Before it could be anything other than a loss, it had another name. */
static enum status read_score(const struct json *object, const char *file, const char *key, const char *before, double *out)
{
	TRY(json_get_number(object, file, before, out));
	return json_get_number(object, file, key, out);
}

static enum status phase_read(const struct json *root, const char *file, struct train_state *state)
{
	const struct json *record = json_member(root, "phase");
	struct phase_state *phase = &state->phase;
	phase->best_score = state->evaluated_score = NAN;
	TRY(read_count(root, file, "evaluated_step", state->step, &state->evaluated_step));
	TRY(read_score(root, file, "evaluated_score", "evaluated_loss", &state->evaluated_score));
	TRY(read_count(record, file, "index", INT32_MAX, &phase->index));
	TRY(read_count(record, file, "first_step", state->step, &phase->first_step));
	TRY(read_count(record, file, "first_sample", state->samples, &phase->first_sample));
	TRY(read_count(record, file, "first_token", state->tokens, &phase->first_token));
	TRY(json_get_bool(record, file, "time_is_up", &phase->time_is_up));
	TRY(json_get_integer(record, file, "averaged", 0, AVERAGE_SNAPSHOTS, &phase->averaged));
	TRY(read_count(record, file, "evaluations", COUNT_LIMIT, &phase->evaluations));
	TRY(read_count(record, file, "stalled", COUNT_LIMIT, &phase->stalled));
	TRY(json_get_integer(record, file, "improved_step", 0, state->step, &phase->best_step));
	return read_score(record, file, "best_score", "best_loss", &phase->best_score);
}

/* Reads the best checkpoint, which is absent before the first evaluation. */
static enum status best_read(const struct json *root, const char *file, struct train_state *state)
{
	const struct json *record = json_member(root, "best");
	if (!record)
		return OK;
	state->best_score = NAN;
	TRY(json_get_integer(record, file, "step", 1, state->step, &state->best_step));
	TRY(read_score(record, file, "score", "loss", &state->best_score));
	if (state->best_step < 1 || !isfinite(state->best_score))
		return error_set(ERR_DATA, "'%s': damaged: \"best\" is incomplete", file);
	return OK;
}

/* Reads a time: one that every record has if `absent` is negative, otherwise one that defaults to `absent`. */
static enum status seconds_read(const struct json *root, const char *file, const char *key, double absent, double *out)
{
	*out = absent;
	TRY(json_get_number(root, file, key, out));
	return *out >= 0 && *out <= SECONDS_LIMIT ? OK : error_set(ERR_DATA, "'%s': damaged: \"%s\" is not a time", file, key);
}

/* Reads a hash such as "00c3…": the 16 digits of put_hash(). */
static enum status hash_read(const struct json *root, const char *file, const char *key, bool must_be_there, uint64_t *out)
{
	const char *text = NULL;
	TRY(json_get_string(root, file, key, &text));
	if (!text && !must_be_there)
		return OK;
	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return error_set(ERR_DATA, "'%s': damaged: \"%s\" is not a hash", file, key);
	*out = strtoull(text, NULL, 16);
	return OK;
}

/* Checks the hashes that are compared as strings where they are needed; some are not in every checkpoint. */
static enum status check_hashes(const struct json *root, const char *file)
{
	static const char *const keys[] = {"evaluation_hash", "vocab_hash", "teacher_hash"};
	uint64_t hash;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		TRY(hash_read(root, file, keys[i], false, &hash));
	return OK;
}

static enum status format_read(const struct json *root, const char *file)
{
	int64_t format = 0;
	TRY(json_get_integer(root, file, "format", 0, INT32_MAX, &format));
	if (format == FORMAT_VERSION)
		return OK;
	if (format < FORMAT_VERSION)
		return error_set(ERR_DATA, "'%s': damaged: unknown format", file);
	return error_hinted(error_set(ERR_STATE, "'%s': format %" PRId64 "; this version reads formats up to %d", file, format,
				      FORMAT_VERSION),
			    "this checkpoint was written by a newer bertc: use that version");
}

enum status checkpoint_state_read(const struct json *root, const char *file, struct train_state *state, uint64_t *data_hash)
{
	*state = (struct train_state){.step = -1};
	TRY(format_read(root, file));
	TRY(read_count(root, file, "step", COUNT_LIMIT, &state->step));
	TRY(read_count(root, file, "samples", COUNT_LIMIT, &state->samples));
	TRY(read_count(root, file, "tokens", COUNT_LIMIT, &state->tokens));
	TRY(seconds_read(root, file, "seconds", -1, &state->seconds));
	TRY(seconds_read(root, file, "elapsed", 0, &state->elapsed));
	TRY(seconds_read(root, file, "begun", 0, &state->begun));
	TRY(losses_read(root, file, state));
	TRY(read_count(root, file, "epoch", COUNT_LIMIT, &state->epoch));
	TRY(read_count(root, file, "epoch_first_sample", state->samples, &state->epoch_first_sample));
	TRY(read_count(root, file, "skipped_steps", state->step, &state->skipped_steps));
	TRY(phase_read(root, file, state));
	TRY(best_read(root, file, state));
	TRY(guard_read(&state->guard, json_member(root, "guard"), file, state->step));
	TRY(check_hashes(root, file));
	return hash_read(root, file, "data_hash", true, data_hash);
}

enum status checkpoint_update_count(const struct json *root, const char *file, int64_t *out)
{
	int64_t step;
	TRY(read_count(root, file, "step", COUNT_LIMIT, &step));
	return read_count(root, file, "update_count", step, out);
}

/* The name, manifest, and record of a checkpoint must agree on the step. */
static enum status check_step(const char *path, const struct train_state *state)
{
	int64_t named = checkpoint_path_step(path), listed;
	TRY(manifest_step(path, &listed));
	if (state->step != listed)
		return folder_damaged(path, "'" STATE_NAME "' is of step %" PRId64 ", its " MANIFEST_NAME " of step %" PRId64,
				      state->step, listed);
	if (named >= 0 && state->step != named)
		return folder_damaged(path, "'" STATE_NAME "' is of step %" PRId64, state->step);
	return OK;
}

enum status checkpoint_read_state(const char *path, struct json_document *document, struct train_state *state,
				  uint64_t *data_hash)
{
	char file[PATH_BYTES];
	TRY(path_join(file, path, STATE_NAME));
	TRY(manifest_verify_file(file));
	TRY(json_read(document, file, CHECKPOINT_JSON_LIMIT));
	enum status status = checkpoint_state_read(document->root, file, state, data_hash);
	if (status == OK)
		status = check_step(path, state);
	if (status != OK)
		json_release(document);
	return status;
}

enum status checkpoint_best_check(const struct checkpoint_context *context, struct train_state *state)
{
	const char *folder = context->folder;
	char name[64], path[PATH_BYTES];
	checkpoint_name(name, state->best_step);
	TRY(path_join(path, folder, name));
	if (state->best_step > 0 && file_is_folder(path))
		return checkpoint_mark_best(folder, state->best_step, checkpoint_decides(context), state->best_score);
	state->best_step = 0;
	return checkpoint_unmark_best(folder);
}
