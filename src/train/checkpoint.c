/* A checkpoint's record of where a run stood. Saving is in checkpoint_writer.c, loading of weights and moments in
 * checkpoint_load.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/checkpoint_internal.h"
#include "weights/manifest.h"

#define FORMAT_VERSION 1

/* ---- The record ---- */

static void put_hash(struct json_writer *writer, const char *key, uint64_t hash)
{
	char hex[17];
	snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
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
	if (state->best_step > 0) {
		json_open(&writer, "best", '{');
		json_put_integer(&writer, "step", state->best_step);
		json_put_double(&writer, "loss", state->best_loss);
		json_close(&writer);
	}
	guard_write(&state->guard, &writer, "guard");
	json_put_string(&writer, "computed_on", context->computed_on);
	if (context->resumed_from)
		json_put_string(&writer, "resumed_from", context->resumed_from);
	put_hash(&writer, "data_hash", context->data_hash);
	put_hash(&writer, "vocab_hash", context->vocab->hash);
	json_close(&writer);
	/* Settings and choices are ready-made: put in before the closing brace. */
	TRY(buffer_status(out));
	while (out->size > 0 && (out->data[out->size - 1] == '}' || out->data[out->size - 1] == '\n'))
		out->size--;
	if (choices->size > 0)
		buffer_format(out, ",\n  \"choices\": %s", buffer_string(choices));
	buffer_format(out, ",\n  \"settings\": %s\n}\n", context->settings_json);
	return buffer_status(out);
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

static enum status best_read(const struct json *root, const char *file, struct train_state *state)
{
	const struct json *record = json_member(root, "best");
	TRY(json_get_integer(record, file, "step", 0, state->step, &state->best_step));
	return json_get_number(record, file, "loss", &state->best_loss);
}

enum status checkpoint_read_state(const char *path, struct json_document *document, struct train_state *state,
				  uint64_t *data_hash)
{
	char file[PATH_BYTES];
	TRY(path_join(file, path, STATE_NAME));
	TRY(json_read(document, file, CHECKPOINT_JSON_LIMIT));
	const struct json *root = document->root;
	const char *hash = NULL;
	enum status status;
	*state = (struct train_state){.step = -1};
	TRY_GOTO(json_get_integer(root, file, "step", 0, INT64_MAX, &state->step), failed);
	TRY_GOTO(json_get_integer(root, file, "samples", 0, INT64_MAX, &state->samples), failed);
	TRY_GOTO(json_get_integer(root, file, "tokens", 0, INT64_MAX, &state->tokens), failed);
	TRY_GOTO(json_get_number(root, file, "seconds", &state->seconds), failed);
	TRY_GOTO(json_get_integer(root, file, "epoch", 0, INT64_MAX, &state->epoch), failed);
	TRY_GOTO(json_get_integer(root, file, "epoch_first_sample", 0, INT64_MAX, &state->epoch_first_sample), failed);
	TRY_GOTO(json_get_integer(root, file, "skipped_steps", 0, INT64_MAX, &state->skipped_steps), failed);
	TRY_GOTO(phase_read(root, file, state), failed);
	TRY_GOTO(best_read(root, file, state), failed);
	TRY_GOTO(guard_read(&state->guard, json_member(root, "guard"), file), failed);
	TRY_GOTO(json_get_string(root, file, "data_hash", &hash), failed);
	if (state->step < 0 || !hash) {
		status = folder_damaged(path, "'" STATE_NAME "' has no step or data hash");
		goto failed;
	}
	*data_hash = strtoull(hash, NULL, 16);
	return OK;
failed:
	json_release(document);
	return status;
}

enum status checkpoint_best_check(const char *folder, struct train_state *state)
{
	char name[64], path[PATH_BYTES];
	checkpoint_name(name, state->best_step);
	TRY(path_join(path, folder, name));
	if (state->best_step > 0 && file_is_folder(path))
		return checkpoint_mark_best(folder, state->best_step, state->best_loss);
	state->best_step = 0;
	return checkpoint_unmark_best(folder);
}
