/* bertc inspect: what a file or folder of ours holds. Facts are gathered as one JSON object, printed as it is with
 * --json and as an outline for a person. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/inspect.h"
#include "cmd/inspect_weights.h"
#include "data/shard.h"
#include "model/model.h"
#include "text/vocab.h"
#include "train/checkpoint.h"
#include "weights/checkpoint_folder.h"
#include "weights/model_folder.h"
#include "weights/tokenizer_file.h"

#define FIELD(name) offsetof(struct inspect_settings, name)

static const struct option inspect_options[] = {
	{.name = "json",
	 .type = OPTION_FLAG,
	 .field = FIELD(json),
	 .fallback = "false",
	 .role = ROLE_RUN,
	 .help = "print one JSON object"},
	{.name = "tensors",
	 .type = OPTION_FLAG,
	 .field = FIELD(tensors),
	 .fallback = "false",
	 .role = ROLE_RUN,
	 .help = "list every tensor with its range of values, and verify its checksum"},
	{.name = "vocab_file",
	 .type = OPTION_TEXT,
	 .field = FIELD(vocab_file),
	 .role = ROLE_RUN,
	 .value_name = "FILE",
	 .fallback_text = "vocab.txt beside the data, if any",
	 .help = "vocabulary for showing the tokens of shards and instances as text"},
	{.name = "records",
	 .type = OPTION_INTEGER,
	 .field = FIELD(records),
	 .fallback = "3",
	 .range = "0..",
	 .role = ROLE_RUN,
	 .value_name = "N",
	 .help = "number of instances, sentences, or records to show"},
	{.name = "first",
	 .type = OPTION_INTEGER,
	 .field = FIELD(first),
	 .fallback = "0",
	 .range = "0..",
	 .role = ROLE_RUN,
	 .value_name = "N",
	 .help = "index of the first one to show"},
	{.name = NULL},
};

static const struct command_text inspect_text = {
	.name = "inspect",
	.synopsis = "PATH [--json] [--tensors] [--vocab_file FILE] [--records N]",
	.summary = "show what a file or folder contains",
	.description = "PATH is a run folder, a checkpoint, a model folder, a file of weights (.safetensors, PyTorch's .bin or "
		       ".pt, the prefix or index of a TensorFlow checkpoint), token shards (PREFIX or any of its files), a "
		       "file of instances (TFRecord, NVIDIA's HDF5, bertc's own), a vocabulary, or a "
		       "metrics.jsonl. A masked token is shown as the model sees it, with the answer behind it: [MASK]{cat}.",
	.examples = "bertc inspect runs/mine\twhere a run stands\n"
		    "bertc inspect runs/mine/data/train\ttoken shards\n"
		    "bertc inspect train.tfrecord --vocab_file vocab.txt --records 10\tinstances as text\n"
		    "bertc inspect runs/mine/final/model.safetensors --tensors\tevery tensor\n"
		    "bertc inspect uncased_L-12_H-768_A-12/bert_model.ckpt --tensors\ta checkpoint of Google's",
};

#define JSON_LIMIT ((size_t)64 << 20)

/* Copies a parsed value into the writer. */
static void put_json(struct json_writer *writer, const char *key, const struct json *value)
{
	switch (value->kind) {
	case JSON_NULL: json_put_null(writer, key); break;
	case JSON_BOOL: json_put_bool(writer, key, value->boolean); break;
	case JSON_NUMBER:
		if (value->is_integer)
			json_put_integer(writer, key, value->integer);
		else
			json_put_double(writer, key, value->number);
		break;
	case JSON_STRING: json_put_text(writer, key, value->text, value->text_size); break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		json_open(writer, key, value->kind == JSON_ARRAY ? '[' : '{');
		for (const struct json *child = value->first_child; child; child = child->next)
			put_json(writer, child->key, child);
		json_close(writer);
		break;
	}
}

static enum status put_file_json(struct json_writer *writer, const char *key, const char *folder, const char *name)
{
	char path[PATH_BYTES];
	struct json_document document;
	TRY(path_join(path, folder, name));
	if (!file_exists(path))
		return OK;
	TRY(json_read(&document, path, JSON_LIMIT));
	put_json(writer, key, document.root);
	json_release(&document);
	return OK;
}

static enum status inspect_vocab(const char *path, struct json_writer *writer)
{
	struct vocab vocab;
	char hex[24];
	TRY(vocab_file_read(&vocab, path));
	int64_t continuations = 0;
	for (int32_t i = 0; i < vocab.count; i++)
		continuations += vocab.is_continuation[i];
	snprintf(hex, sizeof(hex), "%016" PRIx64, vocab.hash);
	json_put_string(writer, "kind", "vocabulary");
	json_put_integer(writer, "entries", vocab.count);
	json_put_integer(writer, "continuations", continuations);
	json_put_string(writer, "hash", hex);
	json_open(writer, "special_tokens", '{');
	const int32_t ids[] = {vocab.pad, vocab.unk, vocab.cls, vocab.sep, vocab.mask};
	for (int i = 0; i < 5; i++)
		json_put_integer(writer, vocab.text[ids[i]], ids[i]);
	json_close(writer);
	vocab_release(&vocab);
	return OK;
}

/* The last training line and the last evaluation line of a metrics.jsonl. */
static enum status put_metrics(const char *path, struct json_writer *writer)
{
	struct buffer text = {0};
	TRY(file_read(path, (size_t)1 << 32, &text));
	const char *line = buffer_string(&text), *end = line + text.size;
	const char *last[2] = {NULL, NULL};
	size_t size[2] = {0, 0};
	int64_t lines = 0;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline)
			break;
		int kind = memmem(line, (size_t)(newline - line), "\"eval_", 6) != NULL;
		last[kind] = line;
		size[kind] = (size_t)(newline - line);
		line = newline + 1;
		lines++;
	}
	json_put_integer(writer, "lines", lines);
	enum status status = OK;
	for (int kind = 0; kind < 2 && status == OK; kind++) {
		struct json_document document;
		if (!last[kind])
			continue;
		status = json_parse(&document, path, last[kind], size[kind]);
		if (status == OK) {
			put_json(writer, kind ? "last_evaluation" : "last_step", document.root);
			json_release(&document);
		}
	}
	buffer_release(&text);
	return status;
}

static enum status inspect_model_folder(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	char file[PATH_BYTES];
	TRY(path_join(file, path, "MANIFEST.json"));
	bool checkpoint = file_exists(file);
	json_put_string(writer, "kind", checkpoint ? "checkpoint" : "model folder");
	if (checkpoint) {
		json_put_bool(writer, "whole", checkpoint_verify(path) == OK);
		TRY(put_file_json(writer, "state", path, "training_state.json"));
	}
	TRY(put_file_json(writer, "config", path, "config.json"));
	TRY(put_file_json(writer, "config", path, "bert_config.json"));
	if (!is_weights(path))
		return OK;
	json_open(writer, "weights", '{');
	enum status status = inspect_weights(path, settings->tensors, writer);
	json_close(writer);
	return status;
}

static enum status inspect_run(const char *path, struct json_writer *writer)
{
	struct name_list names = {0};
	char file[PATH_BYTES];
	enum status status;
	json_put_string(writer, "kind", "run folder");
	TRY_GOTO(folder_list(path, &names), done);
	json_open(writer, "checkpoints", '[');
	for (int64_t i = 0; i < names.count; i++)
		if (strncmp(names.names[i], "checkpoint-", 11) == 0)
			json_put_string(writer, NULL, names.names[i]);
	json_close(writer);
	TRY_GOTO(path_join(file, path, "final"), done);
	json_put_bool(writer, "finished", file_is_folder(file));
	TRY_GOTO(path_join(file, path, "metrics.jsonl"), done);
	if (file_exists(file))
		TRY_GOTO(put_metrics(file, writer), done);
	TRY_GOTO(put_file_json(writer, "settings", path, "settings.json"), done);
done:
	name_list_release(&names);
	return status;
}

/* Megatron's own shards have no description. */
static bool is_shard(const char *prefix)
{
	char path[PATH_BYTES];
	return snprintf(path, sizeof(path), "%s.idx", prefix) < PATH_BYTES && file_exists(path);
}

static enum status inspect_path(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	char other[PATH_BYTES];
	if (file_is_folder(path)) {
		TRY(path_join(other, path, "config.json"));
		if (file_exists(other))
			return inspect_model_folder(settings, path, writer);
		TRY(path_join(other, path, "settings.json"));
		if (file_exists(other))
			return inspect_run(path, writer);
		TRY(path_join(other, path, "bert_config.json"));
		if (file_exists(other))
			return inspect_model_folder(settings, path, writer);
		if (is_weights(path))
			return inspect_weights(path, settings->tensors, writer);
	} else if (text_ends_with(path, ".jsonl")) {
		json_put_string(writer, "kind", "metrics");
		return put_metrics(path, writer);
	} else if (text_ends_with(path, ".txt")) {
		return inspect_vocab(path, writer);
	} else {
		snprintf(other, sizeof(other), "%.4000s", path);
		if (!is_shard(other) && (text_ends_with(path, ".bin") || text_ends_with(path, ".idx")))
			other[strlen(other) - 4] = 0;
		if (!is_shard(other) && text_ends_with(path, ".json"))
			other[strlen(other) - 5] = 0;
		if (is_shard(other))
			return inspect_shard(settings, other, writer);
		if (is_weights(path))
			return inspect_weights(path, settings->tensors, writer);
		if (text_ends_with(path, ".json") && file_exists(path)) {
			struct json_document document;
			TRY(json_read(&document, path, JSON_LIMIT));
			json_put_string(writer, "kind", "json");
			put_json(writer, "content", document.root);
			json_release(&document);
			return OK;
		}
	}
	if (!file_exists(path))
		return checkpoint_missing(path);
	if (!file_is_folder(path)) {
		bool known;
		TRY(inspect_instances(settings, path, writer, &known));
		if (known)
			return OK;
	}
	enum status status = error_set(ERR_DATA, "bertc does not recognize '%s'", path);
	error_hint("give a run folder, checkpoint, model folder, file of weights, shards, instances, vocab.txt or "
		   "metrics.jsonl");
	return status;
}

/* Text from a file, of any length. */
static void print_shown(const char *text)
{
	char out[8];
	size_t left = strlen(text), size;
	for (const unsigned char *p = (const unsigned char *)text; left > 0; p += size, left -= size) {
		char one[8] = "";
		(void)text_is_control(p, left, &size);
		memcpy(one, p, size);
		fputs(text_escape(out, sizeof(out), one, false), stdout);
	}
}

static void outline(const struct json *value, int depth)
{
	int width = depth < 12 ? 26 - 2 * depth : 1;
	for (const struct json *child = value->first_child; child; child = child->next) {
		int length = child->key ? (int)strlen(child->key) : 1;
		width = length > width && length <= 40 ? length : width;
	}
	for (const struct json *child = value->first_child; child; child = child->next) {
		printf("%*s%-*s ", 2 * depth, "", width, child->key ? TEXT_SHOWN(child->key) : "-");
		switch (child->kind) {
		case JSON_NULL: printf("-\n"); break;
		case JSON_BOOL: printf("%s\n", child->boolean ? "yes" : "no"); break;
		case JSON_NUMBER:
			if (child->is_integer)
				printf("%" PRId64 "\n", child->integer);
			else
				printf("%.6g\n", child->number);
			break;
		case JSON_STRING:
			print_shown(child->text);
			putchar('\n');
			break;
		case JSON_ARRAY:
		case JSON_OBJECT:
			printf("\n");
			outline(child, depth + 1);
			break;
		}
	}
}

static enum status run_inspect(struct options *options)
{
	const struct inspect_settings *settings = options->settings;
	if (options->positional.count != 1) {
		enum status status = error_set(ERR_USAGE, "inspect takes one path");
		error_hint("bertc inspect runs/mine");
		return status;
	}
	const char *path = options->positional.values[0];
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	struct json_document document;
	enum status status;
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "path", path);
	TRY_GOTO(inspect_path(settings, path, &writer), done);
	json_close(&writer);
	TRY_GOTO(buffer_status(&text), done);
	if (settings->json) {
		printf("%s\n", buffer_string(&text));
		goto done;
	}
	TRY_GOTO(json_parse(&document, path, buffer_string(&text), text.size), done);
	outline(document.root, 0);
	json_release(&document);
done:
	buffer_release(&text);
	return status;
}

const struct command command_inspect = {
	.text = &inspect_text,
	.options = inspect_options,
	.settings_bytes = sizeof(struct inspect_settings),
	.run = run_inspect,
	.takes_arguments = true,
};
