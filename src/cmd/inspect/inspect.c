/* bertc inspect: shows the contents of a file or folder. Facts are gathered as one JSON object, which is printed as it is with
 * --json and as an outline otherwise. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/inspect/inspect.h"
#include "cmd/inspect/inspect_weights.h"
#include "cmd/inspect/path_kind.h"
#include "text/vocab.h"
#include "weights/checkpoint_folder.h"
#include "weights/tokenizer_file.h"

#define ROW(member, role, value) OPTION_ROW(struct inspect_settings, member, role, value)

/* clang-format off */
static const struct option inspect_options[] = {
	{ROW(json, ROLE_RUN, NULL), .fallback = "false", .help = "print one JSON object"},
	{ROW(tensors, ROLE_RUN, NULL), .fallback = "false",
	 .help = "list every tensor with its range of values, and verify its checksum"},
	{ROW(vocab_file, ROLE_RUN, "FILE"), .fallback_text = "vocab.txt beside the data, if any",
	 .help = "vocabulary for showing the tokens of shards and instances as text"},
	{ROW(records, ROLE_RUN, "N"), .range = "0..", .fallback = "3",
	 .help = "number of instances, sentences, or records to show"},
	{ROW(first, ROLE_RUN, "N"), .range = "0..", .fallback = "0", .help = "index of the first one to show"},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text inspect_help = {
	.name = "inspect",
	.synopsis = "PATH [--json] [--tensors] [--vocab_file FILE] [--records N]",
	.summary = "show what a file or folder contains",
	.description =
		"PATH is anything that bertc writes: a run or sweep (finished or not), a checkpoint, a model folder, an export "
		"(ONNX, Triton, TensorFlow, sentence-transformers, int8), token shards (PREFIX or any of its files), static "
		"instances, vectors and answers (unfinished ones too: PATH.part), a vocabulary, metrics.jsonl. Also weights of "
		"other programs (.safetensors, PyTorch's .bin or .pt, the prefix or index of a TensorFlow checkpoint), "
		"instances as TFRecord or NVIDIA's HDF5, and a text, of which it shows how a corpus would be read. A masked "
		"token is shown as the model sees it, followed by the answer: [MASK]{cat}.",
	.examples = "bertc inspect runs/mine\tthe state of a run\nbertc inspect task-onnx\tinputs and outputs of an exported "
		    "model\nbertc inspect runs/mine/data/train\ttoken shards\nbertc inspect train.tfrecord --vocab_file "
		    "vocab.txt --records 10\tinstances as text\nbertc inspect runs/mine/final/model.safetensors --tensors\tevery "
		    "tensor\nbertc inspect uncased_L-12_H-768_A-12/bert_model.ckpt --tensors\ta checkpoint of Google's",
};

static enum status inspect_vocab(const char *path, struct json_writer *writer)
{
	struct vocab vocab;
	char hex[24];
	TRY(vocab_file_read(&vocab, path));
	int64_t continuations = 0;
	for (int32_t i = 0; i < vocab.count; i++)
		continuations += vocab.is_continuation[i];
	snprintf(hex, sizeof hex, "%016" PRIx64, vocab.hash);
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

/* ---- The kinds ---- */

typedef enum status inspect_function(const struct inspect_settings *settings, const char *path, struct json_writer *writer);

static enum status inspect_weights_at(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	return inspect_weights(path, settings->tensors, writer);
}

static enum status inspect_vocabulary(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	(void)settings;
	return inspect_vocab(path, writer);
}

static enum status inspect_metrics(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	(void)settings;
	return inspect_put_metrics(path, writer);
}

static enum status inspect_json(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct json_document document;
	(void)settings;
	TRY(json_read(&document, path, INSPECT_JSON_LIMIT));
	inspect_put_json(writer, "content", document.root);
	json_release(&document);
	return OK;
}

static enum status inspect_prefix(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	char prefix[PATH_BYTES];
	BUG_IF(!path_shard_prefix(path, prefix));
	return inspect_shard(settings, prefix, writer);
}

static inspect_function *const functions[PATH_KINDS] = {
	[PATH_SWEEP] = inspect_sweep,
	[PATH_RUN] = inspect_run,
	[PATH_RUN_DATA] = inspect_run_data,
	[PATH_CHECKPOINT] = inspect_model_folder,
	[PATH_FINISHED_MODEL] = inspect_model_folder,
	[PATH_INT8_MODEL] = inspect_model_folder,
	[PATH_ADAPTER] = inspect_model_folder,
	[PATH_SENTENCE_MODEL] = inspect_model_folder,
	[PATH_ONNX_FOLDER] = inspect_onnx_folder,
	[PATH_TRITON_MODEL] = inspect_triton,
	[PATH_TRITON_REPOSITORY] = inspect_triton_repository,
	[PATH_TENSORFLOW_FOLDER] = inspect_model_folder,
	[PATH_MODEL_FOLDER] = inspect_model_folder,
	[PATH_WEIGHTS_FOLDER] = inspect_weights_at,
	[PATH_PART] = inspect_part,
	[PATH_ONNX] = inspect_onnx,
	[PATH_SHARDS] = inspect_prefix,
	[PATH_STATIC_INSTANCES] = inspect_instances,
	[PATH_TFRECORD] = inspect_instances,
	[PATH_HDF5] = inspect_instances,
	[PATH_WEIGHTS] = inspect_weights_at,
	[PATH_VECTORS_NPY] = inspect_vectors,
	[PATH_VECTORS_JSON] = inspect_vectors,
	[PATH_VECTORS_TSV] = inspect_vectors,
	[PATH_METRICS] = inspect_metrics,
	[PATH_SAMPLES] = inspect_metrics,
	[PATH_ANSWERS] = inspect_answers,
	[PATH_VOCABULARY] = inspect_vocabulary,
	[PATH_JSON] = inspect_json,
};

static enum status inspect_path(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	enum path_kind kind = path_kind_find(path);
	if (kind != PATH_UNKNOWN) {
		/* The other kinds are named by the functions that read the file. */
		if (kind != PATH_WEIGHTS && kind != PATH_WEIGHTS_FOLDER && kind != PATH_TFRECORD && kind != PATH_HDF5 &&
		    kind != PATH_STATIC_INSTANCES)
			json_put_string(writer, "kind", path_kind_names[kind]);
		if (path_is_unfinished(path))
			json_put_string(writer, "unfinished", "a command is writing it, or was killed while it did");
		if (functions[kind])
			return functions[kind](settings, path, writer);
		return error_hinted(error_set(ERR_USAGE, "'%s': %s are not shown", path, path_kind_names[kind]),
				    "metrics.jsonl beside it has the same figures; `bertc verify` verifies it");
	}
	if (!file_exists(path))
		return checkpoint_missing(path, "");
	if (!file_is_folder(path))
		return inspect_text(settings, path, writer);
	return inspect_folder(path, writer);
}

/* Prints text from a file, of any length. */
static void print_shown(const char *text)
{
	char out[8];
	size_t left = strlen(text), size;
	for (const unsigned char *p = (const unsigned char *)text; left > 0; p += size, left -= size) {
		char one[8] = "";
		(void)text_is_control(p, left, &size);
		memcpy(one, p, size);
		fputs(text_escape(out, sizeof out, one, false), stdout);
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

static enum status check_inspect(struct options *options)
{
	if (options->positional.count == 1)
		return OK;
	enum status status = error_set(ERR_USAGE, "inspect takes one path");
	error_hint("for instance: bertc inspect runs/mine");
	return options_blame(options, status);
}

static enum status run_inspect(struct options *options)
{
	const struct inspect_settings *settings = options->settings;
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
	.text = &inspect_help,
	.options = inspect_options,
	.settings_bytes = sizeof(struct inspect_settings),
	.check = check_inspect,
	.run = run_inspect,
	.takes_arguments = true,
};
