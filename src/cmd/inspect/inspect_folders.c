/* Folders: the state of runs and sweeps, and models in every form that bertc writes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/inspect/inspect.h"
#include "cmd/inspect/inspect_weights.h"
#include "cmd/inspect/path_kind.h"
#include "formats/onnx_reader.h"
#include "report/history.h"
#include "run/data_folder.h"
#include "train/checkpoint.h"
#include "weights/adapter.h"
#include "weights/checkpoint_folder.h"
#include "weights/manifest.h"

#define CONFIG_LIMIT ((size_t)1 << 20)

/* ---- Runs ---- */

/* Reads a run's length and task from settings.json; both stay unchanged if they are not in it. */
static enum status read_settings(const char *folder, int64_t *out_steps, char task[64])
{
	char path[PATH_BYTES];
	struct json_document document;
	TRY(path_join(path, folder, "settings.json"));
	if (!file_exists(path))
		return OK;
	TRY(json_read(&document, path, INSPECT_JSON_LIMIT));
	const struct json *steps = json_member(document.root, "num_train_steps"), *name = json_member(document.root, "task");
	/* Settings are recorded as they are written on the command line. */
	if (steps && (steps->kind == JSON_NUMBER || steps->kind == JSON_STRING))
		*out_steps = (int64_t)strtod(steps->text, NULL);
	if (name && name->kind == JSON_STRING)
		snprintf(task, 64, "%.60s", name->text);
	json_release(&document);
	return OK;
}

/* The last step in metrics.jsonl, 0 if none is logged, and whether the run ended early at the newest one: why, otherwise "". */
static enum status last_step(const char *folder, int64_t saved, int64_t *out, char early[FINDING_TEXT_BYTES])
{
	char path[PATH_BYTES];
	struct history history = {0};
	*out = 0;
	TRY(path_join(path, folder, "metrics.jsonl"));
	enum status status = history_read(&history, path);
	if (status == OK && history.steps.count > 0)
		*out = (int64_t)history_value(&history.steps, history.steps.count - 1, HISTORY_STEP);
	*out = saved > *out ? saved : *out; /* not every step is logged */
	const struct history_event *end = status == OK ? history_early_end(&history, *out) : NULL;
	snprintf(early, FINDING_TEXT_BYTES, "%s", end ? end->text : "");
	history_release(&history);
	return status;
}

/* "running: step 500 of 1000", "stopped at step 500 of 1000; the newest checkpoint is checkpoint-450". */
static enum status put_state(const char *folder, struct json_writer *writer)
{
	char text[256], task[64] = "", of[32] = "", saved[96] = "; it has no checkpoint yet", early[FINDING_TEXT_BYTES];
	int64_t *steps, count, step, total = 0;
	TRY(read_settings(folder, &total, task));
	TRY(checkpoint_list(folder, &steps, &count));
	enum status status = last_step(folder, count > 0 ? steps[0] : 0, &step, early);
	if (count > 0)
		snprintf(saved, sizeof saved, "; the newest checkpoint is checkpoint-%" PRId64, steps[0]);
	free(steps);
	TRY(status);
	if (total > 0)
		snprintf(of, sizeof of, " of %" PRId64, total);
	long process = folder_lock_holder(folder);
	bool finished = folder_has(folder, "final");
	if (process > 0)
		snprintf(text, sizeof text, "running (process %ld): step %" PRId64 "%s%s", process, step, of, saved);
	else if (finished)
		snprintf(text, sizeof text, "finished after %" PRId64 " steps", step);
	else if (step > 0)
		snprintf(text, sizeof text, "stopped at step %" PRId64 "%s%s: run the same command again to resume", step, of,
			 saved);
	else
		snprintf(text, sizeof text, "started, but no step taken yet: run the same command again to resume");
	json_put_string(writer, "state", text);
	if (finished && *early)
		json_put_string(writer, "stopped_early", early);
	if (*task)
		json_put_string(writer, "task", task);
	json_put_bool(writer, "finished", finished);
	return OK;
}

static enum status put_checkpoints(const char *folder, struct json_writer *writer)
{
	int64_t *steps, count;
	char name[64];
	TRY(checkpoint_list(folder, &steps, &count));
	json_open(writer, "checkpoints", '[');
	for (int64_t i = count; i-- > 0;) {
		checkpoint_name(name, steps[i]);
		json_put_string(writer, NULL, name);
	}
	json_close(writer);
	free(steps);
	return inspect_put_file(writer, "best", folder, "best.json");
}

enum status inspect_run(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	char file[PATH_BYTES];
	(void)settings;
	TRY(put_state(path, writer));
	TRY(put_checkpoints(path, writer));
	TRY(path_join(file, path, "metrics.jsonl"));
	if (file_exists(file))
		TRY(inspect_put_metrics(file, writer));
	TRY(inspect_put_file(writer, "results", path, "eval_results.json"));
	return inspect_put_file(writer, "settings", path, "settings.json");
}

/* The mark lists what the folder was made with, one setting per line. */
enum status inspect_run_data(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct name_list names = {0};
	struct buffer mark = {0};
	char file[PATH_BYTES];
	enum status status;
	TRY_GOTO(path_join(file, path, DATA_FOLDER_MARK), done);
	TRY_GOTO(file_read(file, CONFIG_LIMIT, &mark), done);
	TRY_GOTO(folder_list(path, &names), done);
	json_open(writer, "made_with", '[');
	for (char *line = mark.size ? (char *)buffer_string(&mark) : NULL, *next; line && *line; line = next) {
		next = line + strcspn(line, "\n");
		json_put_text(writer, NULL, line, (size_t)(next - line));
		next += *next == '\n';
	}
	json_close(writer);
	for (int64_t i = 0; i < names.count && status == OK; i++) {
		size_t size = strlen(names.names[i]);
		if (size < 5 || strcmp(names.names[i] + size - 4, ".idx") != 0)
			continue;
		names.names[i][size - 4] = '\0';
		TRY_GOTO(path_join(file, path, names.names[i]), done);
		json_open(writer, names.names[i], '{');
		status = inspect_shard(&(struct inspect_settings){.json = settings->json, .vocab_file = settings->vocab_file},
				       file, writer);
		json_close(writer);
	}
done:
	name_list_release(&names);
	buffer_release(&mark);
	return status;
}

/* Counts the runs of a sweep in each state. */
enum status inspect_sweep(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	static const char *const states[] = {"finished", "running", "failed", "waiting"};
	char file[PATH_BYTES];
	struct json_document document;
	int64_t counts[4] = {0}, known = 0, total = 0;
	(void)settings;
	TRY(path_join(file, path, "sweep.json"));
	TRY(json_read(&document, file, INSPECT_JSON_LIMIT));
	const struct json *runs = json_member(document.root, "runs");
	for (const struct json *run = runs ? runs->first_child : NULL; run; run = run->next, total++) {
		const struct json *state = json_member(run, "status");
		for (int i = 0; i < 4; i++)
			if (state && state->kind == JSON_STRING && strcmp(state->text, states[i]) == 0) {
				counts[i]++;
				known++;
			}
	}
	char text[160];
	long process = folder_lock_holder(path);
	snprintf(text, sizeof text, "%s: %" PRId64 " of %" PRId64 " runs are done, %" PRId64 " failed%s",
		 process > 0                      ? "running"
		 : counts[0] + counts[2] == total ? "finished"
						  : "unfinished",
		 counts[0] + counts[2], total, counts[2],
		 process > 0 || counts[0] + counts[2] == total ? "" : "; run the same command again to resume");
	json_put_string(writer, "state", text);
	inspect_put_json(writer, "sweep", document.root);
	json_release(&document);
	return OK;
}

/* ---- Models ---- */

enum status inspect_model_folder(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	if (folder_has(path, MANIFEST_NAME) || checkpoint_path_step(path) >= 0) {
		bool whole = checkpoint_verify(path) == OK;
		json_put_bool(writer, "whole", whole);
		if (!whole)
			json_put_string(writer, "damage", error_last()->message);
	}
	TRY(inspect_put_file(writer, "state", path, "training_state.json"));
	TRY(inspect_put_file(writer, "config", path, "config.json"));
	TRY(inspect_put_file(writer, "bert_config", path, "bert_config.json"));
	TRY(inspect_put_file(writer, "adapter", path, ADAPTER_CONFIG_FILE));
	TRY(inspect_put_file(writer, "task", path, "bertc_task.json"));
	TRY(inspect_put_file(writer, "modules", path, "modules.json"));
	TRY(inspect_put_file(writer, "pooling", path, "1_Pooling/config.json"));
	if (!is_weights(path))
		return OK;
	json_open(writer, "weights", '{');
	enum status status = inspect_weights(path, settings->tensors, writer);
	json_close(writer);
	return status;
}

static void put_ports(struct json_writer *writer, const char *key, const struct onnx_port *ports, int64_t count)
{
	json_open(writer, key, '{');
	for (int64_t i = 0; i < count; i++) {
		char text[512];
		snprintf(text, sizeof text, "%s %.400s", onnx_type_name(ports[i].type), ports[i].shape);
		json_put_string(writer, ports[i].name, text);
	}
	json_close(writer);
}

enum status inspect_onnx(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct onnx_file file;
	TRY(onnx_file_open(&file, path));
	json_put_string(writer, "producer", file.producer);
	json_put_integer(writer, "ir_version", file.ir_version);
	json_put_integer(writer, "opset", file.opset);
	json_put_integer(writer, "nodes", file.node_count);
	json_put_integer(writer, "bytes", file.bytes);
	put_ports(writer, "inputs", file.inputs, file.input_count);
	put_ports(writer, "outputs", file.outputs, file.output_count);
	enum status status = inspect_tensors(file.tensors, file.count, settings->tensors, writer);
	onnx_file_close(&file);
	return status;
}

static enum status put_onnx(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	json_open(writer, "model", '{');
	enum status status = inspect_onnx(settings, path, writer);
	json_close(writer);
	return status;
}

enum status inspect_onnx_folder(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	char model[PATH_BYTES];
	TRY(path_join(model, path, "onnx/model.onnx"));
	TRY(put_onnx(settings, model, writer));
	TRY(inspect_put_file(writer, "config", path, "config.json"));
	TRY(inspect_put_file(writer, "task", path, "bertc_task.json"));
	return inspect_put_file(writer, "modules", path, "modules.json");
}

enum status inspect_triton(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct buffer text = {0};
	char file[PATH_BYTES];
	TRY(path_join(file, path, "config.pbtxt"));
	enum status status = file_read(file, CONFIG_LIMIT, &text);
	if (status == OK) {
		json_open(writer, "config.pbtxt", '[');
		for (const char *line = buffer_string(&text), *next; *line; line = next) {
			next = line + strcspn(line, "\n");
			json_put_text(writer, NULL, line, (size_t)(next - line));
			next += *next == '\n';
		}
		json_close(writer);
	}
	buffer_release(&text);
	TRY(status);
	TRY(triton_graph(path, file));
	return put_onnx(settings, file, writer);
}

enum status inspect_triton_repository(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct name_list names = {0};
	char model[PATH_BYTES];
	enum status status;
	TRY_GOTO(folder_list(path, &names), done);
	for (int64_t i = 0; i < names.count && status == OK; i++) {
		TRY_GOTO(path_join(model, path, names.names[i]), done);
		if (!folder_has(model, "config.pbtxt"))
			continue;
		json_open(writer, names.names[i], '{');
		status = inspect_triton(settings, model, writer);
		json_close(writer);
	}
done:
	name_list_release(&names);
	return status;
}

/* ---- Others ---- */

enum status inspect_folder(const char *path, struct json_writer *writer)
{
	struct name_list names = {0};
	char part[PATH_BYTES];
	int64_t known = 0;
	enum status status;
	TRY_GOTO(folder_list(path, &names), done);
	json_put_string(writer, "kind", "folder");
	if (path_is_unfinished(path))
		json_put_string(writer, "unfinished", "a command is writing it, or was killed while it did");
	json_open(writer, "contains", '{');
	for (int64_t i = 0; i < names.count; i++) {
		TRY_GOTO(path_join(part, path, names.names[i]), done);
		enum path_kind kind = path_kind_find(part);
		if (kind == PATH_UNKNOWN)
			continue;
		json_put_string(writer, names.names[i], path_kind_names[kind]);
		known++;
	}
	json_close(writer);
	if (known == 0) {
		status = error_set(ERR_DATA, "bertc does not recognize '%s'", path);
		error_hint(
			"give a run, sweep, checkpoint, model folder, export, file of weights, shards, instances, vocab.txt or "
			"metrics.jsonl; `bertc help inspect` lists all");
	}
done:
	name_list_release(&names);
	return status;
}
