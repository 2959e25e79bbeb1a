/* Shows training data: token shards and files of instances, with tokens as text if the vocabulary is known. */
#include "cmd/inspect/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/temporary.h"
#include "data/pretraining/instance_files.h"
#include "data/shard.h"
#include "formats/example.h"
#include "formats/tfrecord.h"
#include "text/vocab.h"
#include "weights/tokenizer_file.h"

#define LENGTH_BUCKETS 8
#define VALUES_SHOWN 4096

/* Reads the vocabulary that --vocab_file names, or the one beside the data; *out_found says whether there is one. */
static enum status find_vocab(const struct inspect_settings *settings, const char *path, struct vocab *out, bool *out_found)
{
	char folder[PATH_BYTES], beside[PATH_BYTES];
	*out = (struct vocab){0};
	*out_found = settings->vocab_file != NULL;
	if (settings->vocab_file != NULL)
		return vocab_file_read(out, settings->vocab_file);
	path_folder(folder, path);
	TRY(vocab_file_find(folder, beside));
	*out_found = beside[0] != 0;
	return *out_found ? vocab_file_read(out, beside) : OK;
}

static const char *entry(const struct vocab *vocab, int32_t id)
{
	return id >= 0 && id < vocab->count ? vocab->text[id] : "[id beyond the vocabulary]";
}

/* Appends a token: separated by a space, or joined to its word if it is a continuation. */
static void put_word(struct buffer *out, const char *text)
{
	bool joins = text[0] == '#' && text[1] == '#' && text[2] != 0 && out->size > 0;
	if (out->size > 0 && !joins)
		buffer_char(out, ' ');
	buffer_text(out, joins ? text + 2 : text);
}

/* Writes the instance as text: a masked token appears as the model sees it, followed by the answer in braces. */
static void spell_instance(const struct vocab *vocab, const struct instance *instance, struct buffer *out)
{
	int32_t next = 0;
	for (int32_t i = 0; i < instance->length; i++) {
		put_word(out, entry(vocab, instance->ids[i]));
		if (next == instance->prediction_count || instance->prediction_positions[next] != i)
			continue;
		buffer_char(out, '{');
		buffer_text(out, entry(vocab, instance->prediction_labels[next++]));
		buffer_char(out, '}');
	}
}

/* Writes numbers: as a list with --json, on one line otherwise. */
static void put_numbers(const struct inspect_settings *settings, struct json_writer *writer, const char *key,
			const int32_t *integers, const float *floats, int64_t count)
{
	struct buffer line = {0};
	if (settings->json)
		json_open(writer, key, '[');
	for (int64_t i = 0; i < count; i++) {
		if (settings->json && integers != NULL)
			json_put_integer(writer, NULL, integers[i]);
		else if (settings->json)
			json_put_float(writer, NULL, floats[i]);
		else if (integers != NULL)
			buffer_format(&line, "%s%d", i > 0 ? " " : "", integers[i]);
		else
			buffer_format(&line, "%s%g", i > 0 ? " " : "", (double)floats[i]);
	}
	if (settings->json)
		json_close(writer);
	else
		json_put_string(writer, key, buffer_string(&line));
	buffer_release(&line);
}

static void put_instance(const struct inspect_settings *settings, const struct vocab *vocab, bool has_vocab,
			 const struct instance *instance, int64_t number, struct json_writer *writer)
{
	struct buffer text = {0};
	json_open(writer, NULL, '{');
	json_put_integer(writer, "number", number);
	json_put_integer(writer, "tokens", instance->length);
	json_put_integer(writer, "predictions", instance->prediction_count);
	if (instance->next_label >= 0)
		json_put_integer(writer, "next_sentence_label", instance->next_label);
	if (has_vocab) {
		spell_instance(vocab, instance, &text);
		json_put_string(writer, "text", buffer_string(&text));
		buffer_release(&text);
	}
	if (settings->json || !has_vocab) {
		int32_t length = instance->length, masked = instance->prediction_count;
		put_numbers(settings, writer, "ids", instance->ids, NULL, length);
		put_numbers(settings, writer, "segments", instance->types, NULL, length);
		put_numbers(settings, writer, "masked_positions", instance->prediction_positions, NULL, masked);
		put_numbers(settings, writer, "masked_ids", instance->prediction_labels, NULL, masked);
		put_numbers(settings, writer, "weights", NULL, instance->prediction_weights, masked);
	}
	json_close(writer);
}

static void put_buckets(struct json_writer *writer, const char *key, const int64_t counts[LENGTH_BUCKETS])
{
	static const char *const names[LENGTH_BUCKETS] = {"up to 8",   "9 to 16",    "17 to 32",   "33 to 64",
							  "65 to 128", "129 to 256", "257 to 512", "above 512"};
	json_open(writer, key, '{');
	for (int i = 0; i < LENGTH_BUCKETS; i++)
		json_put_integer(writer, names[i], counts[i]);
	json_close(writer);
}

static int bucket(int64_t length)
{
	int i = 0;
	while (i < LENGTH_BUCKETS - 1 && length > 8 << i)
		i++;
	return i;
}

/* ---- Shards ---- */

/* Writes the requested sentences, one per line. */
static enum status put_sentences(const struct inspect_settings *settings, const struct shard *shard, const struct vocab *vocab,
				 struct json_writer *writer)
{
	enum status status = OK;
	int32_t *ids = NULL;
	struct buffer text = {0};
	TRY(memory_new(&ids, shard->longest_sentence, sizeof *ids, "sentence"));
	json_open(writer, "text", '[');
	for (int64_t i = settings->first; i < shard->sentence_count && i - settings->first < settings->records; i++) {
		int32_t length = shard_length(shard, i);
		TRY_GOTO(shard_tokens(shard, i, 0, length, INT32_MAX, ids), done);
		buffer_clear(&text);
		for (int32_t k = 0; k < length; k++)
			put_word(&text, entry(vocab, ids[k]));
		json_put_string(writer, NULL, buffer_string(&text));
	}
	json_close(writer);
done:
	buffer_release(&text);
	free(ids);
	return status;
}

enum status inspect_shard(const struct inspect_settings *settings, const char *prefix, struct json_writer *writer)
{
	struct shard shard;
	struct vocab vocab;
	bool has_vocab;
	char hex[24];
	TRY(shard_open(&shard, prefix));
	int64_t counts[LENGTH_BUCKETS] = {0};
	for (int64_t i = 0; i < shard.sentence_count; i++)
		counts[bucket(shard_length(&shard, i))]++;
	json_put_integer(writer, "documents", shard.document_count);
	json_put_integer(writer, "sentences", shard.sentence_count);
	json_put_integer(writer, "tokens", shard.token_count);
	json_put_string(writer, "id_type", shard.wide ? "int32" : "uint16");
	json_put_integer(writer, "bytes", (int64_t)(shard.bin.size + shard.idx.size));
	json_put_integer(writer, "longest_sentence", shard.longest_sentence);
	put_buckets(writer, "sentences_by_tokens", counts);
	if (shard.described) {
		snprintf(hex, sizeof hex, "%016" PRIx64, shard.description.vocab_hash);
		json_put_integer(writer, "unknown_tokens", shard.description.unknown_tokens);
		json_put_integer(writer, "vocab_size", shard.description.vocab_size);
		json_put_string(writer, "vocab_hash", hex);
		json_put_bool(writer, "lowercase", shard.description.lowercase);
		json_put_string(writer, "text_form", shard.description.text_form);
	}
	enum status status = find_vocab(settings, prefix, &vocab, &has_vocab);
	if (status == OK && has_vocab)
		status = put_sentences(settings, &shard, &vocab, writer);
	vocab_release(&vocab);
	shard_close(&shard);
	return status;
}

/* ---- bertc's own format, and HDF5 converted to it ---- */

static enum status put_static(const struct inspect_settings *settings, const struct static_file *file, const struct vocab *vocab,
			      bool has_vocab, struct json_writer *writer)
{
	const struct static_summary *summary = &file->summary;
	struct instance instance;
	int64_t counts[LENGTH_BUCKETS] = {0};
	for (int64_t i = 0; i < summary->count; i++) {
		int32_t length, predictions;
		static_file_sizes(file, i, &length, &predictions);
		counts[bucket(length)]++;
	}
	json_put_integer(writer, "instances", summary->count);
	json_put_integer(writer, "tokens", summary->token_count);
	json_put_integer(writer, "predictions", summary->prediction_count);
	json_put_integer(writer, "with_next_sentence_label", summary->labeled_count);
	json_put_integer(writer, "longest", summary->max_length);
	json_put_integer(writer, "most_predictions", summary->max_predictions);
	json_put_integer(writer, "largest_id", summary->largest_id);
	put_buckets(writer, "instances_by_tokens", counts);
	TRY(instance_create(&instance, summary->max_length, summary->max_predictions));
	enum status status = OK;
	json_open(writer, "records", '[');
	for (int64_t i = settings->first; i < summary->count && i - settings->first < settings->records; i++) {
		TRY_GOTO(static_file_read(file, i, INT32_MAX, &instance), done);
		put_instance(settings, vocab, has_vocab, &instance, i, writer);
	}
	json_close(writer);
done:
	instance_release(&instance);
	return status;
}

static enum status inspect_static(const struct inspect_settings *settings, const char *path, const struct vocab *vocab,
				  bool has_vocab, struct json_writer *writer)
{
	struct static_file file;
	TRY(static_file_open(&file, path));
	enum status status = put_static(settings, &file, vocab, has_vocab, writer);
	static_file_close(&file);
	return status;
}

static enum status inspect_hdf5(const struct inspect_settings *settings, const char *path, const struct vocab *vocab,
				bool has_vocab, struct json_writer *writer)
{
	char own[PATH_BYTES];
	struct temporary_folder folder;
	struct instance_counts counts;
	TRY(temporary_folder_make(&folder, "inspect"));
	enum status status = path_join(own, folder.path, "converted");
	if (status == OK)
		status = instance_file_convert(path, &(struct instance_demands){0}, own, &counts);
	if (status == OK)
		status = inspect_static(settings, own, vocab, has_vocab, writer);
	temporary_folder_remove(&folder);
	return status;
}

/* ---- TFRecord ---- */

/* Writes a record that is not an instance: every feature with its values. */
static enum status put_example(const struct inspect_settings *settings, const struct tf_example *example, int64_t number,
			       struct json_writer *writer)
{
	static const char *const kinds[] = {"empty", "bytes", "floats", "integers"};
	static int32_t integers[VALUES_SHOWN];
	static float floats[VALUES_SHOWN];
	json_open(writer, NULL, '{');
	json_put_integer(writer, "number", number);
	for (int i = 0; i < example->count; i++) {
		const struct example_feature *feature = &example->features[i];
		int64_t count;
		TRY(feature_count(feature, &count));
		json_open(writer, feature->name[0] != 0 ? feature->name : "(no name)", '{');
		json_put_string(writer, "kind", kinds[feature->kind]);
		json_put_integer(writer, "count", count);
		if (feature->kind == FEATURE_INTEGERS && feature_integers(feature, integers, VALUES_SHOWN, &count) == OK)
			put_numbers(settings, writer, "values", integers, NULL, count);
		if (feature->kind == FEATURE_FLOATS && feature_floats(feature, floats, VALUES_SHOWN, &count) == OK)
			put_numbers(settings, writer, "values", NULL, floats, count);
		json_close(writer);
	}
	json_close(writer);
	return OK;
}

static enum status put_examples(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct tfrecord_reader *reader;
	struct tf_example example;
	int64_t records = 0;
	enum status status;
	TRY(tfrecord_open(&reader, path));
	json_open(writer, "records", '[');
	for (;; records++) {
		const unsigned char *payload;
		size_t size;
		TRY_GOTO(tfrecord_next(reader, &payload, &size), done);
		if (payload == NULL)
			break;
		if (records < settings->first || records - settings->first >= settings->records)
			continue;
		if (example_parse(&example, payload, size) == OK) {
			TRY_GOTO(put_example(settings, &example, records, writer), done);
			continue;
		}
		json_open(writer, NULL, '{');
		json_put_integer(writer, "number", records);
		json_put_integer(writer, "bytes", (int64_t)size);
		json_close(writer);
	}
	json_close(writer);
	json_put_integer(writer, "record_count", records);
done:
	tfrecord_close(reader);
	return status;
}

static enum status put_records(const struct inspect_settings *settings, const char *path, const struct vocab *vocab,
			       bool has_vocab, struct json_writer *writer)
{
	struct record_reader *reader;
	const struct instance *instance;
	int64_t counts[LENGTH_BUCKETS] = {0}, tokens = 0, predictions = 0, labeled = 0, number = 0;
	int32_t length, most;
	enum status status;
	TRY(record_reader_open(&reader, path, &(struct instance_demands){0}));
	json_open(writer, "records", '[');
	for (;; number++) {
		TRY_GOTO(record_reader_next(reader, &instance), done);
		if (instance == NULL)
			break;
		if (number >= settings->first && number - settings->first < settings->records)
			put_instance(settings, vocab, has_vocab, instance, number, writer);
		counts[bucket(instance->length)]++;
		tokens += instance->length;
		predictions += instance->prediction_count;
		labeled += instance->next_label >= 0;
	}
	json_close(writer);
	record_reader_shape(reader, &length, &most);
	json_put_integer(writer, "instances", number);
	json_put_integer(writer, "tokens", tokens);
	json_put_integer(writer, "predictions", predictions);
	json_put_integer(writer, "with_next_sentence_label", labeled);
	json_put_integer(writer, "max_seq_length", length);
	json_put_integer(writer, "max_predictions_per_seq", most);
	put_buckets(writer, "instances_by_tokens", counts);
done:
	record_reader_close(reader);
	return status;
}

/* Does the first record have the features of pre-training? */
static bool is_pretraining(const char *path)
{
	struct tfrecord_reader *reader;
	const unsigned char *payload = NULL;
	size_t size = 0;
	struct tf_example example;
	if (tfrecord_open(&reader, path) != OK)
		return false;
	bool found = tfrecord_next(reader, &payload, &size) == OK && payload != NULL &&
		     example_parse(&example, payload, size) == OK && example_find(&example, "masked_lm_positions") != NULL &&
		     example_find(&example, "input_ids") != NULL;
	tfrecord_close(reader);
	return found;
}

enum status inspect_instances(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	enum instance_format format;
	struct vocab vocab;
	bool has_vocab;
	TRY(instance_file_format(path, &format));
	TRY(find_vocab(settings, path, &vocab, &has_vocab));
	enum status status;
	if (format == INSTANCE_STATIC) {
		json_put_string(writer, "kind", "instances");
		status = inspect_static(settings, path, &vocab, has_vocab, writer);
	} else if (format == INSTANCE_HDF5) {
		json_put_string(writer, "kind", "instances (NVIDIA's HDF5)");
		status = inspect_hdf5(settings, path, &vocab, has_vocab, writer);
	} else if (is_pretraining(path)) {
		json_put_string(writer, "kind", "instances (TFRecord)");
		status = put_records(settings, path, &vocab, has_vocab, writer);
	} else {
		json_put_string(writer, "kind", "TFRecord");
		status = put_examples(settings, path, writer);
	}
	vocab_release(&vocab);
	return status;
}
