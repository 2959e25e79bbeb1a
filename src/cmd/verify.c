/* bertc verify: verifies all checksums of files. A table lists the kinds that can be verified; a run folder is verified part by
 * part. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "base/text.h"
#include "base/hash.h"
#include "cmd/command.h"
#include "cmd/inspect/output_files.h"
#include "cmd/inspect/path_kind.h"
#include "data/pretraining/instance_files.h"
#include "data/shard.h"
#include "data/pretraining/static_instances.h"
#include "formats/onnx_reader.h"
#include "formats/weights_file.h"
#include "model/forms.h"
#include "model/model.h"
#include "text/vocab.h"
#include "run/run_data.h"
#include "run/run_folder.h"
#include "tasks/results.h"
#include "train/checkpoint.h"
#include "weights/checkpoint_folder.h"
#include "weights/finite_values.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"
#include "weights/sentence_folder.h"
#include "weights/tokenizer_file.h"

struct verify_settings {
	bool json;
};

static const struct option verify_options[] = {
	{OPTION_ROW(struct verify_settings, json, ROLE_RUN, NULL), .fallback = "false", .help = "print one JSON object"},
	{.name = NULL},
};

static const struct command_text verify_text = {
	.name = "verify",
	.synopsis = "PATH... [--json]",
	.summary = "verify the checksums of files",
	.description = "PATH is a run or sweep (everything in it is verified), a checkpoint, a model folder, an export (ONNX, "
		       "Triton, TensorFlow, sentence-transformers, int8), a file of weights, token shards (PREFIX or any of its "
		       "files), instances (TFRecord, HDF5, or bertc's own format), vectors, or the unfinished output of an "
		       "interrupted command (PATH.part). Every byte is read. Prints one line for each item and what its "
		       "soundness rests on; the exit code is 0 if all are intact, 3 if one is damaged.",
	.examples = "bertc verify runs/mine\tall checkpoints, the finished model and the data of a run\n"
		    "bertc verify runs/mine/checkpoint-5000\tone checkpoint\n"
		    "bertc verify data/train\ttoken shards",
};

/* What was found out about one item. */
struct finding {
	int64_t bytes;
	const char *proof; /* what the verdict "sound" is based on */
};

/* ---- Weights ---- */

/* Trained weights rarely exceed a few tens. Beyond the range of fp16, even products in fp32 may not be finite. */
#define LARGEST_USUAL 65504.0F

static enum status verify_tensor(const struct stored_tensor *tensor)
{
	float block[1024], largest = 0;
	int64_t columns = tensor->rank > 0 && tensor->shape[tensor->rank - 1] > 0 ? tensor->shape[tensor->rank - 1] : 1;
	TRY(stored_tensor_verify(tensor));
	if (!stored_tensor_is_real(tensor))
		return OK;
	for (int64_t first = 0; first < tensor->count; first += 1024) {
		int64_t count = tensor->count - first < 1024 ? tensor->count - first : 1024;
		TRY(stored_tensor_read(tensor, first, count, block));
		int64_t bad = first_not_finite(block, DTYPE_F32, count);
		if (bad >= 0)
			return tensor_not_finite(tensor, (double)block[bad], (first + bad) / columns, (first + bad) % columns,
						 NULL);
		for (int64_t i = 0; i < count; i++)
			largest = fmaxf(largest, fabsf(block[i]));
	}
	if (largest > LARGEST_USUAL)
		log_warning("'%s': tensor '%.200s' has values up to %.3g, far beyond those of trained models: results "
			    "computed from them may not be finite",
			    tensor->path, tensor->name, (double)largest);
	return OK;
}

static enum status verify_tensors(const char *path, enum weights_format *out_format, int64_t *out_bytes)
{
	struct weights_file file;
	enum status status = OK;
	TRY(weights_file_open(&file, path));
	*out_format = file.format;
	for (int64_t i = 0; status == OK && i < file.count; i++) {
		status = verify_tensor(&file.tensors[i]);
		*out_bytes += file.tensors[i].count * dtype_element_bytes(file.tensors[i].dtype);
	}
	weights_file_close(&file);
	return status;
}

static enum status verify_weights(const char *path, struct finding *out)
{
	enum weights_format format;
	out->proof = "format rules and finite numbers only: such files have no checksums";
	TRY(manifest_verify_file(path));
	TRY(verify_tensors(path, &format, &out->bytes));
	if (format == WEIGHTS_TENSORFLOW)
		out->proof = "every tensor has a checksum and finite numbers";
	return OK;
}

/* A folder with a manifest. Checksums prove that the bytes are those that were written, not that the weights are finite. */
static enum status verify_manifest(const char *path, struct finding *out)
{
	struct manifest_facts facts;
	struct model_source source;
	enum weights_format format;
	int64_t bytes = 0;
	out->proof = "all bytes are covered by checksums, and every weight is finite";
	TRY(manifest_verify(path, &facts));
	out->bytes = facts.bytes;
	TRY(model_source_find(path, &source));
	return verify_tensors(source.weights, &format, &bytes);
}

static enum status verify_checkpoint(const char *path, struct finding *out)
{
	TRY(verify_manifest(path, out));
	out->proof = "all bytes are covered by checksums, and weights, moments, and record have values that training can produce";
	return checkpoint_verify_values(path);
}

/* A configuration without a size has that of the vocabulary. */
static enum status verify_vocab_size(const struct model_source *source, struct model_config *config)
{
	struct vocab vocab;
	bool sized = config->vocab_size > 0;
	if (!sized && !source->vocab[0])
		return error_set(ERR_DATA, "'%s' has no \"vocab_size\", and there is no vocabulary beside it", source->config);
	if (sized && !text_ends_with(source->vocab, ".txt"))
		return OK;
	TRY(vocab_file_read(&vocab, source->vocab));
	int32_t count = vocab.count;
	vocab_release(&vocab);
	if (!sized)
		config->vocab_size = count;
	if (count > config->vocab_size)
		return error_set(ERR_STATE, "'%s': %d entries for a model of %d", source->vocab, count, config->vocab_size);
	return OK;
}

/* Verifies the weights, that they fit the configuration, and the vocabulary. */
static enum status verify_model(const char *path, struct finding *out)
{
	struct backend names_only = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32};
	struct model_config config;
	struct model *model = NULL;
	struct model_source source;
	float *slab = NULL;
	enum status status;
	TRY(model_folder_config(path, &config));
	TRY(model_source_find(path, &source));
	TRY(verify_weights(path, out));
	TRY(verify_vocab_size(&source, &config));
	TRY_GOTO(model_create(&model, &names_only, &config, model_heads_of_words(&config)), done);
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof *slab, "weights"), done);
	status = model_folder_load(path, model, MISSING_HEADS, slab, NULL);
done:
	free(slab);
	model_free(model);
	return status;
}

/* Verifies the adapter, and that its base is there and takes it. */
static enum status verify_adapter(const char *path, struct finding *out)
{
	TRY(verify_model(path, out));
	out->proof = "every number is finite, and the adapter fits its base";
	if (!folder_has(path, MANIFEST_NAME))
		return OK;
	out->proof = "all bytes are covered by checksums, every number is finite, and the adapter fits its base";
	return manifest_verify(path, NULL);
}

/* ---- Data ---- */

static enum status verify_shard(const char *path, struct finding *out)
{
	char prefix[PATH_BYTES];
	bool described = false;
	BUG_IF(!path_shard_prefix(path, prefix));
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

static enum status verify_instances(const char *path, struct finding *out)
{
	struct instance_counts counts;
	enum instance_format format;
	TRY(instance_file_format(path, &format));
	out->bytes = file_size(path);
	out->proof =
		format == INSTANCE_HDF5 ? "every instance was read" : "every record has a checksum, and every instance was read";
	return instance_file_verify(path, &counts);
}

/* ---- Exports ---- */

/* The manifest of a folder; those that bertc 0.1.0 exported as ONNX or for Triton have none. */
static enum status verify_listed(const char *path, struct finding *out)
{
	if (!folder_has(path, MANIFEST_NAME))
		return OK;
	out->proof = "all bytes are covered by checksums, and every weight is finite";
	return manifest_verify(path, NULL);
}

static enum status verify_onnx(const char *path, struct finding *out)
{
	struct onnx_file file;
	enum status status = OK;
	TRY(onnx_file_open(&file, path));
	out->proof =
		file.recorded
			? "all bytes are covered by checksums, and every weight is finite"
			: "every weight is whole and finite; there is no record of its bytes, which bertc 0.1.0 did not make";
	status = onnx_file_verify(&file, path);
	for (int64_t i = 0; status == OK && i < file.count; i++)
		status = verify_tensor(&file.tensors[i]);
	out->bytes += file.bytes;
	onnx_file_close(&file);
	return status;
}

static enum status verify_onnx_folder(const char *path, struct finding *out)
{
	char graph[PATH_BYTES];
	TRY(path_join(graph, path, "onnx/model.onnx"));
	TRY(verify_onnx(graph, out));
	return verify_listed(path, out);
}

static enum status verify_triton(const char *path, struct finding *out)
{
	char graph[PATH_BYTES];
	TRY(triton_graph(path, graph));
	TRY(verify_onnx(graph, out));
	return verify_listed(path, out);
}

/* Verifies the model and the modules beside it. */
static enum status verify_sentence_folder(const char *path, struct finding *out)
{
	struct sentence_folder sentences;
	enum status status = sentence_folder_read(&sentences, path);
	if (status == OK && folder_has(path, MANIFEST_NAME))
		status = verify_manifest(path, out);
	else if (status == OK)
		status = verify_model(sentences.transformer, out);
	sentence_folder_release(&sentences);
	return status;
}

/* ---- Outputs ---- */

static enum status verify_vectors(const char *path, struct finding *out)
{
	struct vector_facts facts;
	out->proof = "every row is whole and finite; such files have no checksums";
	TRY(vector_file_read(path, &facts));
	out->bytes = facts.bytes;
	return OK;
}

/* Verifies what had been written when the note of progress was saved. */
static enum status verify_part(const char *path, struct finding *out)
{
	struct part_facts facts;
	struct file_map map;
	out->proof = "what is saved of it has a checksum";
	TRY(part_file_read(path, &facts));
	free(facts.made_from);
	out->bytes = facts.saved;
	if (!facts.has_note)
		return error_hinted(error_set(ERR_USAGE, "'%s': no record of its progress beside it", path),
				    "an unfinished output can be verified with its .progress");
	if (facts.saved > facts.bytes)
		return error_set(ERR_DATA, "'%s': %" PRId64 " bytes, where %" PRId64 " were saved", path, facts.bytes,
				 facts.saved);
	if (facts.crc32c == 0 && facts.saved > 0) { /* answer_job.c: the beginning of the file is being written again */
		out->proof = "it has the length that was saved; it was being finished, when it has no checksum";
		return OK;
	}
	TRY(file_map_open(&map, path));
	bool same = crc32c(0, map.data, (size_t)facts.saved) == facts.crc32c;
	file_map_close(&map);
	return same ? OK
		    : error_set(ERR_DATA, "'%s': its first %" PRId64 " bytes are not those that were saved", path, facts.saved);
}

static enum status verify_events(const char *path, struct finding *out)
{
	int64_t records;
	out->proof = "every record has a checksum";
	out->bytes = file_size(path);
	return event_file_count(path, &records);
}

/* One JSON object per line. The last line may be one that a process was writing when it was killed. */
static enum status verify_json_lines(const char *path, struct finding *out)
{
	struct file_map map;
	enum status status = OK;
	out->proof = "every complete line is a JSON object; such files have no checksums";
	TRY(file_map_open(&map, path));
	out->bytes = (int64_t)map.size;
	const char *line = (const char *)map.data, *end = line + map.size;
	for (int64_t number = 1; line < end && status == OK; number++) {
		struct json_document document;
		char name[PATH_BYTES + 32];
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline) {
			if (*line != '{' || memchr(line, '\0', (size_t)(end - line)))
				status = error_set(ERR_DATA, "'%s': line %" PRId64 " is not the beginning of a JSON object", path,
						   number);
			break;
		}
		snprintf(name, sizeof name, "%s:%" PRId64, path, number);
		status = json_parse(&document, name, line, (size_t)(newline - line));
		if (status == OK) {
			if (document.root->kind != JSON_OBJECT)
				status = error_set(ERR_DATA, "'%s': not a JSON object", name);
			json_release(&document);
		}
		line = newline + 1;
	}
	file_map_close(&map);
	return status;
}

static enum status verify_vocabulary(const char *path, struct finding *out)
{
	struct vocab vocab;
	out->proof = "its special tokens are there; such files have no checksums";
	out->bytes = file_size(path);
	TRY(manifest_verify_file(path));
	TRY(vocab_file_read(&vocab, path));
	vocab_release(&vocab);
	return OK;
}

/* The function that verifies each kind. Runs, their data, and sweeps are verified part by part; .json files, and folders of any
 * other kind, are not verified. */
static enum status (*const proofs[PATH_KINDS])(const char *path, struct finding *out) = {
	[PATH_CHECKPOINT] = verify_checkpoint,
	[PATH_FINISHED_MODEL] = verify_manifest,
	[PATH_INT8_MODEL] = verify_manifest,
	[PATH_ADAPTER] = verify_adapter,
	[PATH_SENTENCE_MODEL] = verify_sentence_folder,
	[PATH_ONNX_FOLDER] = verify_onnx_folder,
	[PATH_TRITON_MODEL] = verify_triton,
	[PATH_TENSORFLOW_FOLDER] = verify_model,
	[PATH_MODEL_FOLDER] = verify_model,
	[PATH_PART] = verify_part,
	[PATH_ONNX] = verify_onnx,
	[PATH_SHARDS] = verify_shard,
	[PATH_STATIC_INSTANCES] = verify_static,
	[PATH_TFRECORD] = verify_instances,
	[PATH_HDF5] = verify_instances,
	[PATH_EVENTS] = verify_events,
	[PATH_WEIGHTS] = verify_weights,
	[PATH_VECTORS_NPY] = verify_vectors,
	[PATH_VECTORS_JSON] = verify_vectors,
	[PATH_VECTORS_TSV] = verify_vectors,
	[PATH_METRICS] = verify_json_lines,
	[PATH_SAMPLES] = verify_json_lines,
	[PATH_ANSWERS] = verify_json_lines,
	[PATH_VOCABULARY] = verify_vocabulary,
};

/* ---- The command ---- */

struct verification {
	const struct verify_settings *settings;
	struct json_writer *writer; /* with --json */
	int64_t sound, damaged;
	struct error first;               /* the first failure */
	struct name_list unread, missing; /* with --json: files in runs that were not read, or that are listed and not there */
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

/* What is not read must not pass for sound. */
static enum status say_unread(struct verification *v, const char *path)
{
	if (v->settings->json)
		return name_list_add(&v->unread, path);
	printf("not read %s: bertc did not write it, or it has no form to verify\n", TEXT_SHOWN(path));
	return OK;
}

/* A file beside those of the manifest may change how the model answers. */
static void say_unlisted(struct verification *v, const char *folder)
{
	struct name_list names = {0};
	char path[PATH_BYTES];
	enum status status = manifest_unlisted(folder, &names);
	for (int64_t i = 0; status == OK && i < names.count; i++) {
		status = path_join(path, folder, names.names[i]);
		if (status == OK)
			status = say_unread(v, path);
	}
	if (status != OK)
		log_warning("%s", error_last()->message);
	name_list_release(&names);
}

static void conclude(struct verification *v, const char *path, const char *kind, const struct finding *found, enum status status)
{
	say(v, path, kind, found, status);
	if (status == OK && folder_has(path, MANIFEST_NAME))
		say_unlisted(v, path);
	if (status == OK)
		v->sound++;
	else if (v->damaged++ == 0)
		v->first = *error_last();
}

/* Is it verified part by part? That also applies to other folders that hold things of ours, such as one with the exports of
 * several runs. */
static bool has_parts(enum path_kind kind, const char *path)
{
	return kind == PATH_RUN || kind == PATH_RUN_DATA || kind == PATH_SWEEP || kind == PATH_TRITON_REPOSITORY ||
	       (kind == PATH_UNKNOWN && file_is_folder(path));
}

/* Verifies one item; items of kinds that cannot be verified are skipped. STOPPED if it was interrupted. */
static enum status verify_thing(struct verification *v, const char *path)
{
	enum path_kind kind = path_kind_find(path);
	struct finding found = {0};
	if (!proofs[kind] || path_is_unfinished(path))
		return OK;
	enum status status = proofs[kind](path, &found);
	if (status == STOPPED)
		return status;
	conclude(v, path, path_kind_names[kind], &found, status);
	return OK;
}

/* ---- The files of a run ---- */

static enum status verify_json(const char *path)
{
	struct json_document document;
	TRY(json_read(&document, path, (size_t)1 << 30));
	json_release(&document);
	return OK;
}

/* A text that was written in one piece ends with a line end, and has no NUL. */
static enum status verify_lines(const char *path)
{
	struct file_map map;
	TRY(file_map_open(&map, path));
	bool whole = map.size == 0 || (map.data[map.size - 1] == '\n' && !memchr(map.data, '\0', map.size));
	file_map_close(&map);
	return whole ? OK
		     : error_set(ERR_DATA, "'%s': not the text that bertc writes: it has a NUL, or no line end at its end", path);
}

/* A file that bertc wrote as a whole: by its checksum in the list of the run's files, or else by its form. */
static enum status verify_run_file(const char *path, const struct owned_file *listed, struct finding *out)
{
	int64_t bytes;
	uint32_t crc;
	out->bytes = file_size(path);
	if (listed && listed->crc32c != OWNED_UNKNOWN) {
		out->proof = "it has the checksum that the run has recorded";
		TRY(file_checksum(path, &bytes, &crc));
		if (crc != listed->crc32c)
			return error_set(ERR_DATA, "'%s': not what bertc wrote: its checksum is another", path);
		return OK;
	}
	out->proof = "its form only: there is no checksum of it";
	return text_ends_with(path, ".json") ? verify_json(path) : verify_lines(path);
}

static enum status same_file(const char *a, const char *b, const char *name, bool *same)
{
	char left[PATH_BYTES], right[PATH_BYTES];
	int64_t bytes_a, bytes_b;
	uint32_t crc_a, crc_b;
	TRY(path_join(left, a, name));
	TRY(path_join(right, b, name));
	*same = true;
	if (!file_exists(left) || !file_exists(right))
		return OK;
	TRY(file_checksum(left, &bytes_a, &crc_a));
	TRY(file_checksum(right, &bytes_b, &crc_b));
	*same = bytes_a == bytes_b && crc_a == crc_b;
	return OK;
}

static enum status foreign_final(const char *path)
{
	return error_hinted(error_set(ERR_DATA, "'%s': not the model that this run has made", path),
			    "it came from elsewhere; move it away and run the training command again, which then writes its own");
}

/* Is the finished model the one that the run has made? Runs of bertc 0.1.0 recorded nothing about it; there it must have the
 * configuration and vocabulary of the newest checkpoint. */
static enum status verify_origin(const char *run, const char *path, const struct owned_files *own)
{
	const struct owned_file *listed = owned_files_find(own, "final");
	char other[PATH_BYTES];
	int64_t bytes;
	uint32_t crc;
	bool found, same = true;
	if (own->exists && !listed)
		return foreign_final(path);
	if (listed && listed->crc32c != OWNED_UNKNOWN) {
		TRY(path_join(other, path, MANIFEST_NAME));
		TRY(file_checksum(other, &bytes, &crc));
		return crc == listed->crc32c ? OK : foreign_final(path);
	}
	TRY(checkpoint_latest(run, other, &found));
	if (found)
		TRY(same_file(path, other, "config.json", &same));
	if (found && same)
		TRY(same_file(path, other, "vocab.txt", &same));
	if (found && same)
		TRY(same_file(path, other, "tokenizer.json", &same));
	return same ? OK : foreign_final(path);
}

static enum status verify_model_of_run(const char *run, const char *path, const struct owned_files *own, struct finding *out)
{
	TRY(proofs[path_kind_find(path)](path, out));
	return verify_origin(run, path, own);
}

static enum status verify_page(const char *path, struct finding *out)
{
	static const char end[] = "</html>";
	struct file_map map;
	out->proof = "it has its end; there is no checksum of it";
	out->bytes = file_size(path);
	TRY(file_map_open(&map, path));
	bool whole = !memchr(map.data, '\0', map.size) && memmem(map.data, map.size, end, sizeof end - 1);
	file_map_close(&map);
	return whole ? OK : error_set(ERR_DATA, "'%s': not a page that bertc wrote", path);
}

/* Verifies an entry of a run's folder that no table knows; false: it is not the run's. */
static bool find_proof(const char *run, const char *name, const char *path, const struct owned_files *own, enum status *status,
		       struct finding *found)
{
	const struct owned_file *listed = owned_files_find(own, name);
	bool in_data = path_kind_find(run) == PATH_RUN_DATA;
	if (strcmp(name, "final") == 0 && file_is_folder(path) && proofs[path_kind_find(path)])
		*status = verify_model_of_run(run, path, own, found);
	else if (text_ends_with(name, ".html") && (listed || in_data || strcmp(name, "report.html") == 0))
		*status = verify_page(path, found);
	else if (strcmp(name, "metrics.jsonl") == 0 || strcmp(name, "samples.jsonl") == 0)
		*status = verify_json_lines(path, found);
	else if (in_data && path_kind_find(path) == PATH_JSON)
		*status = verify_run_file(path, NULL, found);
	else if (!file_is_folder(path) &&
		 (results_is_file(name) || strcmp(name, "settings.json") == 0 || strcmp(name, "best.json") == 0 ||
		  strcmp(name, SWEEP_RECORD) == 0 || (listed && listed->crc32c != OWNED_UNKNOWN)))
		*status = verify_run_file(path, listed, found);
	else
		return false;
	return true;
}

/* Names what bertc wrote and somebody has removed since, which is no damage: people move finished models, for instance. */
static enum status say_missing(struct verification *v, const char *folder, const struct owned_files *own)
{
	char path[PATH_BYTES];
	for (int64_t i = 0; i < own->count; i++) {
		TRY(path_join(path, folder, own->files[i].name));
		if (own->files[i].crc32c == OWNED_UNKNOWN || file_exists(path))
			continue;
		if (v->settings->json)
			TRY(name_list_add(&v->missing, path));
		else
			printf("missing  %s: bertc wrote it, and it is no longer there\n", TEXT_SHOWN(path));
	}
	return OK;
}

/* Verifies everything in a folder of a run or sweep, including parts of parts. A shard is verified once, when its index is
 * encountered. */
static enum status verify_parts(struct verification *v, const char *folder)
{
	struct name_list names = {0};
	struct owned_files own;
	char path[PATH_BYTES];
	enum status status = owned_files_read(&own, folder);
	enum path_kind whole = path_kind_find(folder);
	bool of_run = whole == PATH_RUN || whole == PATH_SWEEP || whole == PATH_RUN_DATA || own.exists ||
		      run_folder_holds_results(folder);
	if (status != OK) { /* the list itself is damaged */
		TRY(path_join(path, folder, OWNED_FILES_NAME));
		conclude(v, path, "list of a run's files", &(struct finding){0}, status);
	}
	TRY_GOTO(folder_list(folder, &names), done);
	for (int64_t i = 0; status == OK && i < names.count; i++) {
		const char *name = names.names[i], *dot = strrchr(name, '.');
		TRY_GOTO(path_join(path, folder, name), done);
		bool other_part = dot && (strcmp(dot, ".bin") == 0 || strcmp(dot, ".json") == 0);
		char prefix[PATH_BYTES], target[8];
		/* A link to a checkpoint, which is verified under its own name. */
		bool is_best = strcmp(name, "best") == 0 && file_exists(path) && readlink(path, target, sizeof target) > 0;
		if (name[0] == '.' || is_best || (other_part && path_shard_prefix(path, prefix)))
			continue;
		enum path_kind kind = path_kind_find(path);
		struct finding found = {0};
		bool parts = has_parts(kind, path) && (kind != PATH_UNKNOWN || run_folder_holds_results(path));
		if (of_run && find_proof(folder, name, path, &own, &status, &found)) {
			if (status == STOPPED)
				goto done;
			conclude(v, path, proofs[kind] ? path_kind_names[kind] : "file of a run", &found, status);
			status = OK;
		} else if (parts) {
			status = verify_parts(v, path);
		} else if (of_run && !proofs[kind] && !path_is_unfinished(path)) {
			status = say_unread(v, path);
		} else {
			status = verify_thing(v, path);
		}
	}
	if (status == OK)
		status = say_missing(v, folder, &own);
done:
	owned_files_release(&own);
	name_list_release(&names);
	return status;
}

static enum status check_path(const char *path)
{
	enum path_kind kind = path_kind_find(path);
	if ((has_parts(kind, path) || proofs[kind]) && !path_is_unfinished(path))
		return OK;
	if (!file_exists(path))
		return checkpoint_missing(path, "");
	if (path_is_unfinished(path))
		return error_hinted(error_set(ERR_USAGE, "'%s': unfinished: a command is writing it, or was killed", path),
				    "run the command again: it starts over what is unfinished");
	return error_hinted(
		error_set(ERR_USAGE, "'%s': nothing that bertc can verify", path),
		"give a run, sweep, checkpoint, model folder, export, file of weights, token shards (PREFIX), instances, "
		"vectors or answers");
}

static enum status check_verify(struct options *options)
{
	if (options->positional.count > 0)
		return OK;
	enum status status = error_set(ERR_USAGE, "no PATH given");
	error_hint("for instance: bertc verify runs/mine");
	return options_blame(options, status);
}

static void put_names(struct json_writer *writer, const char *key, const struct name_list *names)
{
	json_open(writer, key, '[');
	for (int64_t i = 0; i < names->count; i++)
		json_put_string(writer, NULL, names->names[i]);
	json_close(writer);
}

static enum status run_verify(struct options *options)
{
	const struct verify_settings *settings = options->settings;
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	struct verification v = {.settings = settings, .writer = &writer};
	enum status status = OK;
	for (int64_t i = 0; i < options->positional.count; i++)
		TRY(check_path(options->positional.values[i]));
	json_open(&writer, NULL, '{');
	json_open(&writer, "results", '[');
	for (int64_t i = 0; status == OK && i < options->positional.count; i++) {
		const char *path = options->positional.values[i];
		status = has_parts(path_kind_find(path), path) ? verify_parts(&v, path) : verify_thing(&v, path);
	}
	json_close(&writer);
	put_names(&writer, "unread", &v.unread);
	put_names(&writer, "missing", &v.missing);
	name_list_release(&v.unread);
	name_list_release(&v.missing);
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
	.check = check_verify,
	.run = run_verify,
};
