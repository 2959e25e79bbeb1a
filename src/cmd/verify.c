/* bertc verify: proves files to their last checksum. What can be verified is a table of kinds; a run folder is verified
 * part by part. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cmd/command.h"
#include "data/pretraining/instance_files.h"
#include "data/shard.h"
#include "data/pretraining/static_instances.h"
#include "formats/weights_file.h"
#include "model/model.h"
#include "text/vocab.h"
#include "run/run_data.h"
#include "weights/checkpoint_folder.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"
#include "weights/tokenizer_file.h"

struct verify_settings {
	bool json;
};

static const struct option verify_options[] = {
	{.name = "json",
	 .type = OPTION_FLAG,
	 .field = offsetof(struct verify_settings, json),
	 .fallback = "false",
	 .role = ROLE_RUN,
	 .help = "print one JSON object"},
	{.name = NULL},
};

static const struct command_text verify_text = {
	.name = "verify",
	.synopsis = "PATH... [--json]",
	.summary = "verify the checksums of files",
	.description =
		"PATH is a run folder (everything in it is verified), a checkpoint, a model folder, a file of weights, token "
		"shards (PREFIX or any of its files), or static instances (TFRecord, HDF5, or bertc's own format). Every byte is "
		"read. Prints one line for each item verified; the exit status is 0 if all are intact, 3 if one is damaged.",
	.examples = "bertc verify runs/mine\tall checkpoints, the finished model and the data of a run\n"
		    "bertc verify runs/mine/checkpoint-5000\tone checkpoint\n"
		    "bertc verify data/train\ttoken shards",
};

/* What was found of one thing. */
struct finding {
	int64_t bytes;
	const char *proof; /* what "sound" rests on */
};

/* A kind of thing: how it is known by its path, and its proof, whose failure is the error. */
struct kind {
	const char *name;
	bool (*is)(const char *path);
	enum status (*verify)(const char *path, struct finding *out);
};

static bool has(const char *folder, const char *name)
{
	char path[PATH_BYTES];
	return path_join(path, folder, name) == OK && file_exists(path);
}

/* ---- Folders with a manifest ---- */

static bool is_checkpoint(const char *path)
{
	const char *slash = strrchr(path, '/');
	/* By its name, too: a checkpoint that has lost its manifest is a damaged checkpoint, no other folder. */
	return has(path, MANIFEST_NAME) || (file_is_folder(path) && strncmp(slash ? slash + 1 : path, "checkpoint-", 11) == 0);
}

static enum status verify_manifest(const char *path, struct finding *out)
{
	struct manifest_facts facts;
	out->proof = "all bytes are covered by checksums";
	TRY(manifest_verify(path, &facts));
	out->bytes = facts.bytes;
	return OK;
}

/* ---- Weights ---- */

static enum status verify_tensor(const struct stored_tensor *tensor)
{
	float block[1024];
	TRY(stored_tensor_verify(tensor));
	if (!stored_tensor_is_real(tensor))
		return OK;
	for (int64_t first = 0; first < tensor->count; first += 1024) {
		int64_t count = tensor->count - first < 1024 ? tensor->count - first : 1024;
		TRY(stored_tensor_read(tensor, first, count, block));
		for (int64_t i = 0; i < count; i++)
			if (!isfinite(block[i]))
				return error_set(ERR_DATA, "'%s': tensor '%s' is not finite at element %" PRId64, tensor->path,
						 tensor->name, first + i);
	}
	return OK;
}

static bool is_weights_file(const char *path)
{
	static const char *const ends[] = {".safetensors", ".bin", ".pt", ".pth", ".index", ".index.json"};
	return !file_is_folder(path) && file_exists(path) && text_has_ending(path, ends, sizeof(ends) / sizeof(*ends));
}

static enum status verify_weights(const char *path, struct finding *out)
{
	struct weights_file file;
	enum status status = OK;
	out->proof = "format rules and finite numbers only: such files have no checksums";
	TRY(manifest_prove(path));
	TRY(weights_file_open(&file, path));
	if (file.format == WEIGHTS_TENSORFLOW)
		out->proof = "every tensor has a checksum and finite numbers";
	for (int64_t i = 0; status == OK && i < file.count; i++) {
		status = verify_tensor(&file.tensors[i]);
		out->bytes += file.tensors[i].count * dtype_element_bytes(file.tensors[i].dtype);
	}
	weights_file_close(&file);
	return status;
}

static bool is_model_folder(const char *path)
{
	return has(path, "config.json") || has(path, "bert_config.json");
}

/* Weights, that they fit the configuration, and the vocabulary. */
static enum status verify_model(const char *path, struct finding *out)
{
	struct backend names_only = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32};
	struct model_config config;
	struct model *model = NULL;
	struct model_source source;
	struct vocab vocab = {0};
	float *slab = NULL;
	enum status status;
	TRY(model_folder_config(path, &config));
	TRY(model_source_find(path, &source));
	TRY(verify_weights(path, out));
	TRY_GOTO(model_create(&model, &names_only, &config, &model_heads_pretraining), done);
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof(*slab), "weights"), done);
	TRY_GOTO(model_folder_load(path, model, MISSING_HEADS, slab, NULL), done);
	if (text_ends_with(source.vocab, ".txt")) {
		TRY_GOTO(vocab_file_read(&vocab, source.vocab), done);
		if (vocab.count > config.vocab_size)
			status = error_set(ERR_STATE, "'%s': %d entries for a model of %d", source.vocab, vocab.count,
					   config.vocab_size);
	}
done:
	vocab_release(&vocab);
	free(slab);
	model_free(model);
	return status;
}

/* ---- Data ---- */

/* PREFIX of "PREFIX", "PREFIX.bin", "PREFIX.idx" or "PREFIX.json" of a shard. */
static bool shard_prefix(const char *path, char out[PATH_BYTES])
{
	static const char *const ends[] = {"", ".bin", ".idx", ".json"};
	char index[PATH_BYTES + 8];
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t size = strlen(path), end = strlen(ends[i]);
		if (size <= end || size >= PATH_BYTES || !text_ends_with(path, ends[i]))
			continue;
		snprintf(out, PATH_BYTES, "%.*s", (int)(size - end), path);
		snprintf(index, sizeof(index), "%s.idx", out);
		if (file_exists(index))
			return true;
	}
	return false;
}

static bool is_shard(const char *path)
{
	char prefix[PATH_BYTES];
	return shard_prefix(path, prefix);
}

static enum status verify_shard(const char *path, struct finding *out)
{
	char prefix[PATH_BYTES];
	bool described = false;
	BUG_IF(!shard_prefix(path, prefix));
	enum status status = shard_verify(prefix, &out->bytes, &described);
	out->proof = described ? "both files have checksums; ids are within the vocabulary"
			       : "index and ids are consistent: without PREFIX.json there are no checksums";
	return status;
}

static enum status verify_static(const char *path, struct finding *out)
{
	out->bytes = file_size(path);
	out->proof = "checksum, and every instance";
	return static_file_verify(path);
}

/* By name, so that a damaged one is known, too. */
static bool is_record_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	bool named = strstr(name, ".tfrecord") || strstr(name, ".tf_record");
	return named && file_exists(path) && !file_is_folder(path);
}

static bool is_hdf5(const char *path)
{
	enum instance_format format;
	return !file_is_folder(path) && instance_file_format(path, &format) == OK && format == INSTANCE_HDF5;
}

static enum status verify_instances(const char *path, struct finding *out)
{
	struct instance_counts counts;
	out->bytes = file_size(path);
	out->proof = "every record has a checksum, and every instance was read";
	if (is_hdf5(path))
		out->proof = "every instance was read";
	return instance_file_verify(path, &counts);
}

/* In the order in which a path is tried. */
static const struct kind kinds[] = {
	{"checkpoint or finished model", is_checkpoint, verify_manifest},
	{"token shards", is_shard, verify_shard},
	{"static instances", static_file_is, verify_static},
	{"TFRecord", is_record_file, verify_instances},
	{"instances (HDF5)", is_hdf5, verify_instances},
	{"weights", is_weights_file, verify_weights},
	{"model folder", is_model_folder, verify_model},
};

/* ---- The command ---- */

struct verification {
	const struct verify_settings *settings;
	struct json_writer *writer; /* with --json */
	int64_t sound, damaged;
	struct error first; /* failure */
};

static void say(struct verification *v, const char *path, const char *kind, const struct finding *found, enum status status)
{
	const char *message = status == OK ? NULL : error_last()->message;
	if (v->settings->json) {
		json_open(v->writer, NULL, '{');
		json_put_string(v->writer, "path", path);
		json_put_string(v->writer, "kind", kind);
		json_put_bool(v->writer, "sound", status == OK);
		json_put_integer(v->writer, "status", status);
		if (message)
			json_put_string(v->writer, "message", message);
		else
			json_put_string(v->writer, "proof", found->proof);
		json_put_integer(v->writer, "bytes", found->bytes);
		json_close(v->writer);
		return;
	}
	char size[FORMAT_BYTES];
	if (status == OK)
		printf("sound    %s (%s, %s): %s\n", TEXT_SHOWN(path), kind, format_size(size, (double)found->bytes),
		       found->proof);
	else
		printf("%s %s (%s): %s\n", status == ERR_DATA ? "DAMAGED " : "PROBLEM ", TEXT_SHOWN(path), kind, message);
}

static bool is_of_known_kind(const char *path)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].is(path))
			return true;
	return false;
}

/* Verifies a thing of a known kind; others are passed over. STOPPED if it could not come to its end. */
static enum status verify_thing(struct verification *v, const char *path)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!kinds[i].is(path))
			continue;
		struct finding found = {0};
		enum status status = kinds[i].verify(path, &found);
		if (status == STOPPED)
			return status;
		say(v, path, kinds[i].name, &found, status);
		if (status == OK)
			v->sound++;
		else if (v->damaged++ == 0)
			v->first = *error_last();
		return OK;
	}
	return OK;
}

static bool is_run_folder(const char *path)
{
	return has(path, RUN_FOLDER_MARK) || has(path, "settings.json");
}

/* Every thing that lies in a folder of a run, `data` included. A shard is met once, by its index. */
static enum status verify_parts(struct verification *v, const char *folder)
{
	struct name_list names;
	char path[PATH_BYTES];
	TRY(folder_list(folder, &names));
	enum status status = OK;
	for (int64_t i = 0; status == OK && i < names.count; i++) {
		const char *name = names.names[i], *dot = strrchr(name, '.');
		TRY_GOTO(path_join(path, folder, name), done);
		bool other_part = dot && (strcmp(dot, ".bin") == 0 || strcmp(dot, ".json") == 0);
		if (name[0] == '.' || strcmp(name, "best") == 0 || (other_part && is_shard(path)))
			continue;
		if (strcmp(name, "data") == 0 && file_is_folder(path))
			status = verify_parts(v, path);
		else
			status = verify_thing(v, path);
	}
done:
	name_list_release(&names);
	return status;
}

static enum status check_path(const char *path)
{
	if (is_run_folder(path) || is_of_known_kind(path))
		return OK;
	if (!file_exists(path))
		return checkpoint_missing(path);
	enum status status = error_set(ERR_USAGE, "'%s': nothing that bertc can verify", path);
	error_hint("a run folder, checkpoint, model folder, file of weights, token shards (PREFIX) or static instances");
	return status;
}

static enum status run_verify(struct options *options)
{
	const struct verify_settings *settings = options->settings;
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	struct verification v = {.settings = settings, .writer = &writer};
	enum status status = OK;
	if (options->positional.count == 0)
		return error_set(ERR_USAGE, "no PATH given");
	for (int64_t i = 0; i < options->positional.count; i++)
		TRY(check_path(options->positional.values[i]));
	json_open(&writer, NULL, '{');
	json_open(&writer, "results", '[');
	for (int64_t i = 0; status == OK && i < options->positional.count; i++) {
		const char *path = options->positional.values[i];
		if (is_run_folder(path))
			status = verify_parts(&v, path);
		else
			status = verify_thing(&v, path);
	}
	json_close(&writer);
	json_put_integer(&writer, "sound", v.sound);
	json_put_integer(&writer, "damaged", v.damaged);
	json_close(&writer);
	if (status == OK && settings->json)
		printf("%s\n", buffer_string(&text));
	buffer_release(&text);
	TRY(status);
	if (v.damaged > 0)
		return error_restore(&v.first);
	if (v.sound == 0)
		return error_set(ERR_USAGE, "'%s': contains nothing that bertc can verify", options->positional.values[0]);
	return OK;
}

const struct command command_verify = {
	.text = &verify_text,
	.options = verify_options,
	.settings_bytes = sizeof(struct verify_settings),
	.takes_arguments = true,
	.run = run_verify,
};
