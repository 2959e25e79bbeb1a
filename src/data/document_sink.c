/* Receives encoded documents for `bertc prepare`: filters them, writes the shards, saves progress, and removes copies. */
#include "data/document_sink.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/copies.h"
#include "text/decode.h"

#define STATE_LIMIT (1 << 20)
#define DOCUMENT_HASHES ".document_hashes"
#define SENTENCE_HASHES ".sentence_hashes"

/* One encoded document. */
struct encoded {
	int32_t *ids, *lengths;
	uint64_t *sentence_hashes;
	int64_t id_count, id_capacity, count, capacity, hash_capacity; /* `count`: sentences */
	uint64_t hash;
	char sample[PREPARE_SAMPLE_BYTES]; /* how its text begins */
};

/* A shard under construction, and the hashes of its contents. */
struct output {
	const char *prefix;
	struct shard_writer *writer;
	struct file_writer *document_hashes, *sentence_hashes;
	struct shard_description *description;
};

struct document_sink {
	const struct prepare_settings *settings;
	const struct vocab *vocab;
	struct prepare_report *report;
	uint64_t identity;
	uint64_t begun;           /* the hashes of all documents so far, combined */
	bool saved;               /* there is a saved state on disk */
	struct output outputs[2]; /* for training; held out */
	int output_count;
	bool held_out_found; /* a document has fallen below the fraction */
	/* `smallest`: until one has, the document with the smallest hash so far, and its number of copies (equal hashes). */
	struct encoded current, smallest;
	int64_t smallest_copies;
};

/* ---- Parts and their state ---- */

static enum status state_path(char *out, const char *prefix)
{
	int length = snprintf(out, PATH_BYTES, "%s.part.json", prefix);
	return length < PATH_BYTES ? OK : error_set(ERR_USAGE, "'%.100s...': the path is too long", prefix);
}

/* The plain counts of a state, listed once for both writing and reading. */
struct count_field {
	const char *name;
	int64_t *value;
};
#define COUNT_FIELDS 32

static int report_fields(struct prepare_report *report, struct count_field fields[COUNT_FIELDS])
{
	int count = 0;
	fields[count++] = (struct count_field){"empty_sentences", &report->empty_sentences};
	fields[count++] = (struct count_field){"empty_documents", &report->empty_documents};
	fields[count++] = (struct count_field){"text_bytes", &report->text_bytes};
	fields[count++] = (struct count_field){"invalid_bytes", &report->invalid_bytes};
	return count;
}

static int output_fields(struct shard_writer_state *state, struct shard_description *description,
			 struct file_writer_state *document_hashes, struct file_writer_state *sentence_hashes,
			 struct count_field fields[COUNT_FIELDS])
{
	int count = 0;
	fields[count++] = (struct count_field){"sentences", &state->sentences};
	fields[count++] = (struct count_field){"documents", &state->documents};
	fields[count++] = (struct count_field){"tokens", &state->tokens};
	fields[count++] = (struct count_field){"unknown_tokens", &description->unknown_tokens};
	fields[count++] = (struct count_field){"bin_bytes", &state->bin.offset};
	fields[count++] = (struct count_field){"lengths_bytes", &state->lengths.offset};
	fields[count++] = (struct count_field){"ends_bytes", &state->ends.offset};
	fields[count++] = (struct count_field){"document_hashes_bytes", &document_hashes->offset};
	fields[count++] = (struct count_field){"sentence_hashes_bytes", &sentence_hashes->offset};
	return count;
}

/* Checksum of the bytes that one of an output's files holds so far. */
struct checksum_field {
	const char *name;
	uint32_t *crc32c;
};
enum { CHECKSUM_FIELDS = 5 };

static void list_checksums(struct shard_writer_state *state, struct file_writer_state *document_hashes,
			   struct file_writer_state *sentence_hashes, struct checksum_field fields[CHECKSUM_FIELDS])
{
	fields[0] = (struct checksum_field){"bin_crc32c", &state->bin.crc32c};
	fields[1] = (struct checksum_field){"lengths_crc32c", &state->lengths.crc32c};
	fields[2] = (struct checksum_field){"ends_crc32c", &state->ends.crc32c};
	fields[3] = (struct checksum_field){"document_hashes_crc32c", &document_hashes->crc32c};
	fields[4] = (struct checksum_field){"sentence_hashes_crc32c", &sentence_hashes->crc32c};
}

static void put_fields(struct json_writer *writer, const struct count_field *fields, int count)
{
	for (int i = 0; i < count; i++)
		json_put_integer(writer, fields[i].name, *fields[i].value);
}

static enum status get_fields(const struct json *object, const char *path, const struct count_field *fields, int count)
{
	for (int i = 0; i < count; i++)
		TRY(json_get_integer(object, path, fields[i].name, 0, INT64_MAX, fields[i].value));
	return OK;
}

static void put_dropped(struct json_writer *writer, const struct prepare_report *report)
{
	json_open(writer, "dropped", '[');
	for (int kind = 0; kind < PREPARE_DROPS; kind++) {
		const struct prepare_dropped *dropped = &report->dropped[kind];
		json_open(writer, NULL, '{');
		json_put_integer(writer, "count", dropped->count);
		json_put_integer(writer, "tokens", dropped->tokens);
		json_open(writer, "samples", '[');
		for (int i = 0; i < dropped->sample_count; i++)
			json_put_string(writer, NULL, dropped->samples[i]);
		json_close(writer);
		json_close(writer);
	}
	json_close(writer);
}

static enum status get_dropped(const struct json *root, const char *path, struct prepare_report *report)
{
	const struct json *list = json_member(root, "dropped");
	const struct json *item = list && list->kind == JSON_ARRAY ? list->first_child : NULL;
	for (int kind = 0; kind < PREPARE_DROPS; kind++, item = item->next) {
		struct prepare_dropped *dropped = &report->dropped[kind];
		if (!item || item->kind != JSON_OBJECT)
			return error_set(ERR_DATA, "'%s': not of this version", path);
		TRY(json_get_integer(item, path, "count", 0, INT64_MAX, &dropped->count));
		TRY(json_get_integer(item, path, "tokens", 0, INT64_MAX, &dropped->tokens));
		const struct json *samples = json_member(item, "samples");
		const struct json *sample = samples && samples->kind == JSON_ARRAY ? samples->first_child : NULL;
		for (; sample && dropped->sample_count < PREPARE_SAMPLES; sample = sample->next)
			if (sample->kind == JSON_STRING)
				snprintf(dropped->samples[dropped->sample_count++], PREPARE_SAMPLE_BYTES, "%s", sample->text);
	}
	return OK;
}

bool document_sink_is_saved(const struct document_sink *sink)
{
	return sink->saved;
}

enum status document_sink_save(struct document_sink *sink, int64_t documents)
{
	char path[PATH_BYTES], identity[32], begun[32];
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 1};
	struct count_field fields[COUNT_FIELDS];
	/* Nothing can be saved while a document waits in memory for its shard to be decided; at usual fractions that is brief. */
	if (sink->identity == 0 || (sink->output_count > 1 && !sink->held_out_found))
		return OK;
	TRY(state_path(path, sink->settings->prefix));
	json_open(&writer, NULL, '{');
	snprintf(identity, sizeof identity, "%016llx", (unsigned long long)sink->identity);
	json_put_string(&writer, "identity", identity);
	json_put_integer(&writer, "documents_read", documents);
	snprintf(begun, sizeof begun, "%016llx", (unsigned long long)sink->begun);
	json_put_string(&writer, "documents_hash", begun);
	put_fields(&writer, fields, report_fields(sink->report, fields));
	put_dropped(&writer, sink->report);
	json_open(&writer, "outputs", '[');
	enum status status = OK;
	for (int i = 0; status == OK && i < sink->output_count; i++) {
		struct output *output = &sink->outputs[i];
		struct shard_writer_state state;
		struct file_writer_state document_hashes, sentence_hashes;
		TRY_GOTO(shard_writer_save(output->writer, &state), done);
		TRY_GOTO(file_writer_save(output->document_hashes, &document_hashes), done);
		TRY_GOTO(file_writer_save(output->sentence_hashes, &sentence_hashes), done);
		json_open(&writer, NULL, '{');
		put_fields(&writer, fields,
			   output_fields(&state, output->description, &document_hashes, &sentence_hashes, fields));
		struct checksum_field checksums[CHECKSUM_FIELDS];
		list_checksums(&state, &document_hashes, &sentence_hashes, checksums);
		for (int k = 0; k < CHECKSUM_FIELDS; k++)
			json_put_integer(&writer, checksums[k].name, *checksums[k].crc32c);
		json_close(&writer);
	}
	json_close(&writer);
	json_close(&writer);
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(file_write(path, text.data, text.size), done);
	sink->saved = true;
done:
	buffer_release(&text);
	return status;
}

static enum status open_output(struct output *output, const struct json *saved, const char *path, int32_t vocab_size)
{
	struct shard_writer_state state = {0};
	struct file_writer_state document_hashes = {0}, sentence_hashes = {0};
	struct count_field fields[COUNT_FIELDS];
	char name[PATH_BYTES];
	struct checksum_field checksums[CHECKSUM_FIELDS];
	list_checksums(&state, &document_hashes, &sentence_hashes, checksums);
	if (saved) {
		TRY(get_fields(saved, path, fields,
			       output_fields(&state, output->description, &document_hashes, &sentence_hashes, fields)));
		for (int k = 0; k < CHECKSUM_FIELDS; k++) {
			int64_t crc = 0;
			TRY(json_get_integer(saved, path, checksums[k].name, 0, UINT32_MAX, &crc));
			*checksums[k].crc32c = (uint32_t)crc;
		}
	}
	TRY(shard_writer_resume(&output->writer, output->prefix, vocab_size, &state));
	snprintf(name, sizeof name, "%.4060s%s", output->prefix, DOCUMENT_HASHES);
	TRY(file_writer_resume(&output->document_hashes, name, document_hashes));
	snprintf(name, sizeof name, "%.4060s%s", output->prefix, SENTENCE_HASHES);
	return file_writer_resume(&output->sentence_hashes, name, sentence_hashes);
}

static void close_outputs(struct document_sink *sink, bool keep)
{
	for (int i = 0; i < sink->output_count; i++) {
		struct output *output = &sink->outputs[i];
		(keep ? shard_writer_suspend : shard_writer_abandon)(output->writer);
		(keep ? file_writer_suspend : file_writer_abandon)(output->document_hashes);
		(keep ? file_writer_suspend : file_writer_abandon)(output->sentence_hashes);
		output->writer = NULL;
		output->document_hashes = output->sentence_hashes = NULL;
	}
}

/* Continues where the saved state left off. If state and parts do not fit together: ERR_DATA or ERR_STATE, and the caller
 * starts afresh. */
static enum status resume(struct document_sink *sink, const char *path, int64_t *out_documents)
{
	struct json_document document;
	struct count_field fields[COUNT_FIELDS];
	const char *identity = "", *begun = NULL;
	char expected[32];
	sink->saved = true; /* also after an error: what is not known to be unusable must stay */
	TRY(json_read(&document, path, STATE_LIMIT));
	enum status status;
	TRY_GOTO(json_get_string(document.root, path, "identity", &identity), done);
	snprintf(expected, sizeof expected, "%016llx", (unsigned long long)sink->identity);
	if (strcmp(identity, expected) != 0)
		TRY_GOTO(error_set(ERR_STATE, "'%s' was made with another text, vocabulary, or setting", path), done);
	TRY_GOTO(json_get_integer(document.root, path, "documents_read", 1, INT64_MAX, out_documents), done);
	TRY_GOTO(json_get_string(document.root, path, "documents_hash", &begun), done);
	if (!begun)
		TRY_GOTO(error_set(ERR_DATA, "'%s': not of this version", path), done);
	sink->begun = strtoull(begun, NULL, 16);
	TRY_GOTO(get_fields(document.root, path, fields, report_fields(sink->report, fields)), done);
	TRY_GOTO(get_dropped(document.root, path, sink->report), done);
	const struct json *list = json_member(document.root, "outputs");
	const struct json *item = list && list->kind == JSON_ARRAY ? list->first_child : NULL;
	for (int i = 0; i < sink->output_count; i++, item = item->next) {
		if (!item)
			TRY_GOTO(error_set(ERR_DATA, "'%s': not of this version", path), done);
		TRY_GOTO(open_output(&sink->outputs[i], item, path, sink->vocab->count), done);
		sink->outputs[i].description->documents = 0;
	}
	sink->held_out_found = true;
done:
	json_release(&document);
	return status;
}

/* What was saved is removed only when the parts are locked: it may be that of a run under way. */
static enum status open_anew(struct document_sink *sink, const char *path)
{
	for (int i = 0; i < sink->output_count; i++)
		TRY(open_output(&sink->outputs[i], NULL, path, sink->vocab->count));
	if (file_exists(path) && file_operations.unlink(path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
	return OK;
}

enum status document_sink_open(struct document_sink **out, const struct prepare_settings *settings, uint64_t identity,
			       const struct vocab *vocab, struct prepare_report *report, int64_t *out_documents)
{
	char path[PATH_BYTES];
	struct document_sink *sink;
	*out_documents = 0;
	TRY(state_path(path, settings->prefix));
	TRY(memory_new(&sink, 1, sizeof *sink, "preparing"));
	*sink = (struct document_sink){
		.settings = settings, .vocab = vocab, .report = report, .identity = identity, .output_count = 1};
	sink->outputs[0] = (struct output){.prefix = settings->prefix, .description = &report->train};
	if (settings->held_out_prefix) {
		sink->outputs[1] = (struct output){.prefix = settings->held_out_prefix, .description = &report->held_out};
		sink->output_count = 2;
	}
	enum status status = ERR_STATE;
	if (identity != 0 && file_exists(path)) {
		status = resume(sink, path, out_documents);
		if (status == ERR_DATA || status == ERR_STATE) {
			log_note("the unfinished result of an earlier run is not resumed: %s", error_last()->message);
			close_outputs(sink, false);
			sink->saved = false;
			sink->begun = 0;
			*report = (struct prepare_report){0};
			*out_documents = 0;
		}
	}
	if (status == ERR_DATA || status == ERR_STATE)
		status = open_anew(sink, path);
	if (status != OK) {
		document_sink_close(sink);
		return status;
	}
	*out = sink;
	return OK;
}

void document_sink_close(struct document_sink *sink)
{
	if (sink == NULL)
		return;
	close_outputs(sink, sink->saved);
	struct encoded *documents[] = {&sink->current, &sink->smallest};
	for (int i = 0; i < 2; i++) {
		free(documents[i]->ids);
		free(documents[i]->lengths);
		free(documents[i]->sentence_hashes);
	}
	free(sink);
}

/* ---- Documents ---- */

enum status document_sink_check(const struct document_sink *sink, uint64_t hashes)
{
	if (sink->begun == hashes)
		return OK;
	return error_hinted(error_set(ERR_STATE, "the text has changed since an earlier run prepared a part of it"),
			    "to start over, remove the unfinished result '%s.part.json'", sink->settings->prefix);
}

void document_sink_begin(struct document_sink *sink, uint64_t hash)
{
	struct encoded *current = &sink->current;
	current->id_count = current->count = 0;
	current->hash = hash;
	sink->begun = hash64_combine(sink->begun, hash);
	current->sample[0] = 0;
}

/* Cuts the text to the size of a sample, at a character boundary. */
static void set_sample(char sample[PREPARE_SAMPLE_BYTES], const char *text, size_t size)
{
	if (size > PREPARE_SAMPLE_BYTES - 1) {
		size = PREPARE_SAMPLE_BYTES - 1;
		while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80)
			size--;
	}
	for (size_t i = 0; i < size; i++)
		sample[i] = text[i] ? text[i] : ' ';
	sample[size] = 0;
}

enum status document_sink_sentence(struct document_sink *sink, const int32_t *ids, int64_t count, const char *text, size_t size)
{
	struct encoded *current = &sink->current;
	if (count == 0) {
		sink->report->empty_sentences++;
		return OK;
	}
	if (count > SENTENCE_TOKENS_MAX)
		return error_set(ERR_DATA, "a sentence of %lld tokens; the limit is %d", (long long)count, SENTENCE_TOKENS_MAX);
	TRY(memory_grow(&current->ids, &current->id_capacity, current->id_count + count, sizeof *ids, "document"));
	TRY(memory_grow(&current->lengths, &current->capacity, current->count + 1, sizeof *current->lengths, "document"));
	TRY(memory_grow(&current->sentence_hashes, &current->hash_capacity, current->count + 1, sizeof *current->sentence_hashes,
			"document"));
	if (current->count == 0)
		set_sample(current->sample, text, size);
	memcpy(current->ids + current->id_count, ids, (size_t)count * sizeof *ids);
	current->id_count += count;
	current->sentence_hashes[current->count] = hash64(text, size);
	current->lengths[current->count++] = (int32_t)count;
	return OK;
}

static int64_t count_unknown(const struct document_sink *sink, const struct encoded *document)
{
	int64_t unknown = 0;
	for (int64_t i = 0; i < document->id_count; i++)
		unknown += document->ids[i] == sink->vocab->unk;
	return unknown;
}

static enum status write_document(struct document_sink *sink, struct output *output, const struct encoded *document)
{
	const int32_t *ids = document->ids;
	for (int64_t i = 0; i < document->count; i++) {
		TRY(shard_writer_sentence(output->writer, ids, document->lengths[i]));
		ids += document->lengths[i];
	}
	output->description->unknown_tokens += count_unknown(sink, document);
	TRY(file_writer_write(output->sentence_hashes, document->sentence_hashes,
			      (size_t)document->count * sizeof *document->sentence_hashes));
	TRY(file_writer_write(output->document_hashes, &document->hash, sizeof document->hash));
	return shard_writer_end_document(output->writer);
}

static enum status write_smallest(struct document_sink *sink, struct output *output, int64_t copies)
{
	for (; copies > 0; copies--, sink->smallest_copies--)
		TRY(write_document(sink, output, &sink->smallest));
	return OK;
}

static bool is_below_fraction(const struct document_sink *sink, const struct encoded *document)
{
	return (double)document->hash * 0x1p-64 < sink->settings->held_out_fraction;
}

/* Sends the current document to its shard, or keeps it as the smallest. The first one is kept even if it is to be held out, since
 * there may be no other to train on. */
static enum status route_document(struct document_sink *sink)
{
	struct encoded *current = &sink->current, *smallest = &sink->smallest;
	struct output *train = &sink->outputs[0], *held_out = &sink->outputs[1];
	if (sink->output_count == 1)
		return write_document(sink, train, current);
	bool another = sink->held_out_found || (sink->smallest_copies > 0 && current->hash != smallest->hash);
	if (another && is_below_fraction(sink, current)) {
		sink->held_out_found = true;
		TRY(write_smallest(sink, is_below_fraction(sink, smallest) ? held_out : train, sink->smallest_copies));
		return write_document(sink, held_out, current);
	}
	if (sink->held_out_found)
		return write_document(sink, train, current);
	if (sink->smallest_copies > 0 && current->hash > smallest->hash)
		return write_document(sink, train, current);
	if (sink->smallest_copies > 0 && current->hash == smallest->hash) {
		sink->smallest_copies++;
		return OK;
	}
	TRY(write_smallest(sink, train, sink->smallest_copies));
	struct encoded swap = *smallest;
	*smallest = *current;
	*current = swap;
	sink->smallest_copies = 1;
	return OK;
}

static void count_dropped(struct prepare_dropped *dropped, int64_t tokens, const char *sample)
{
	dropped->count++;
	dropped->tokens += tokens;
	if (dropped->sample_count < PREPARE_SAMPLES)
		snprintf(dropped->samples[dropped->sample_count++], PREPARE_SAMPLE_BYTES, "%s", sample);
}

enum status document_sink_end(struct document_sink *sink)
{
	const struct encoded *current = &sink->current;
	const struct prepare_filters *filters = &sink->settings->filters;
	if (current->count == 0) {
		sink->report->empty_documents++;
		return OK;
	}
	int kind = -1;
	if (current->id_count < filters->min_document_tokens)
		kind = PREPARE_SHORT;
	else if (filters->max_document_tokens > 0 && current->id_count > filters->max_document_tokens)
		kind = PREPARE_LONG;
	else if (filters->max_unknown_share > 0 &&
		 (double)count_unknown(sink, current) > filters->max_unknown_share * (double)current->id_count)
		kind = PREPARE_UNKNOWN;
	if (kind < 0)
		return route_document(sink);
	count_dropped(&sink->report->dropped[kind], current->id_count, current->sample);
	return OK;
}

/* ---- The end ---- */

/* If no document fell below the fraction, the one with the smallest hash is held out with all its copies; if there is nothing
 * else to train on, only one of the copies is held out. */
static enum status route_smallest(struct document_sink *sink)
{
	struct shard_writer_state state;
	int64_t held = 0;
	if (sink->output_count == 1)
		return OK;
	TRY(shard_writer_save(sink->outputs[0].writer, &state));
	if (!sink->held_out_found && state.documents > 0)
		held = sink->smallest_copies;
	else if (!sink->held_out_found && sink->smallest_copies > 1)
		held = 1;
	TRY(write_smallest(sink, &sink->outputs[1], held));
	return write_smallest(sink, &sink->outputs[0], sink->smallest_copies);
}

static bool marked(const uint8_t *map, int64_t index)
{
	return map[index / 8] >> (index % 8) & 1;
}

/* State of the second pass over the sentences. */
struct look {
	struct document_sink *sink;
	const uint8_t *documents, *sentences; /* bitmaps of duplicates */
	int64_t sampled_document;
};

/* The text of the ids, as much as fits. */
static void spell(const struct vocab *vocab, const int32_t *ids, int32_t count, char sample[PREPARE_SAMPLE_BYTES])
{
	struct buffer text = {0};
	vocab_decode(vocab, ids, count < PREPARE_SAMPLE_BYTES ? count : PREPARE_SAMPLE_BYTES, false, &text);
	set_sample(sample, buffer_string(&text), text.size);
	buffer_release(&text);
}

static enum status look_at_sentence(void *context, int64_t document, int64_t sentence, const int32_t *ids, int32_t count)
{
	struct look *look = context;
	struct prepare_dropped *documents = &look->sink->report->dropped[PREPARE_COPIED_DOCUMENT];
	struct prepare_dropped *sentences = &look->sink->report->dropped[PREPARE_COPIED_SENTENCE];
	char sample[PREPARE_SAMPLE_BYTES];
	if (marked(look->documents, document)) {
		documents->tokens += count;
		if (document != look->sampled_document && documents->sample_count < PREPARE_SAMPLES) {
			spell(look->sink->vocab, ids, count, documents->samples[documents->sample_count++]);
		}
		look->sampled_document = document;
	} else if (marked(look->sentences, sentence)) {
		sentences->count++;
		sentences->tokens += count;
		if (sentences->sample_count < PREPARE_SAMPLES) {
			spell(look->sink->vocab, ids, count, sample);
			memcpy(sentences->samples[sentences->sample_count++], sample, sizeof sample);
		}
	}
	return OK;
}

static enum status copies_of(struct file_writer *hashes, uint8_t **out_map, int64_t *out_found)
{
	struct file_writer_state state;
	TRY(file_writer_save(hashes, &state));
	return copies_find(file_writer_part(hashes), state.offset / (int64_t)sizeof(uint64_t), COPIES_MEMORY, out_map, out_found);
}

/* A sentence counts as copied if it occurs earlier in this shard; sentences of copied documents are not counted separately. */
static enum status find_copies(struct document_sink *sink, struct output *output)
{
	const struct prepare_filters *filters = &sink->settings->filters;
	uint8_t *documents = NULL, *sentences = NULL;
	int64_t copied_documents, copied_sentences;
	enum status status;
	TRY_GOTO(copies_of(output->document_hashes, &documents, &copied_documents), done);
	TRY_GOTO(copies_of(output->sentence_hashes, &sentences, &copied_sentences), done);
	sink->report->dropped[PREPARE_COPIED_DOCUMENT].count += copied_documents;
	if (copied_sentences > 0) {
		struct look look = {.sink = sink, .documents = documents, .sentences = sentences, .sampled_document = -1};
		TRY_GOTO(shard_writer_visit(output->writer, look_at_sentence, &look), done);
	}
	bool drops_documents = filters->drop_copied_documents && copied_documents > 0;
	bool drops_sentences = filters->drop_copied_sentences && copied_sentences > 0;
	if (drops_documents || drops_sentences)
		TRY_GOTO(shard_writer_drop(&output->writer, drops_sentences ? sentences : NULL,
					   drops_documents ? documents : NULL, sink->vocab->unk,
					   &output->description->unknown_tokens),
			 done);
done:
	free(documents);
	free(sentences);
	return status;
}

enum status document_sink_finish(struct document_sink *sink)
{
	TRY(route_smallest(sink));
	for (int i = 0; i < sink->output_count; i++) {
		struct output *output = &sink->outputs[i];
		struct shard_writer_state state;
		TRY(find_copies(sink, output));
		TRY(shard_writer_save(output->writer, &state));
		output->description->documents = state.documents;
		output->description->sentences = state.sentences;
		output->description->tokens = state.tokens;
	}
	const struct prepare_filters *filters = &sink->settings->filters;
	struct prepare_dropped *dropped = sink->report->dropped;
	dropped[PREPARE_SHORT].left_out = dropped[PREPARE_LONG].left_out = dropped[PREPARE_UNKNOWN].left_out = true;
	dropped[PREPARE_COPIED_DOCUMENT].left_out = filters->drop_copied_documents;
	dropped[PREPARE_COPIED_SENTENCE].left_out = filters->drop_copied_sentences;
	return OK;
}

/* Documents held out when the shard was last made would now be training text: they are removed if they are of the same source as
 * the shard that is replaced, and reported otherwise, since training evaluates on a shard of this name. */
static enum status remove_held_out(const struct document_sink *sink)
{
	char held_out[PATH_BYTES];
	struct shard_description old, held;
	bool old_described = false, held_described = false;
	snprintf(held_out, sizeof held_out, "%.4000s.held_out", sink->settings->prefix);
	if (!shard_exists(held_out))
		return OK;
	/* What cannot be read is not described. */
	if (shard_exists(sink->settings->prefix) && shard_read_splitting(sink->settings->prefix, &old, &old_described) != OK)
		old_described = false;
	if (shard_read_splitting(held_out, &held, &held_described) != OK)
		held_described = false;
	if (old_described && held_described && held.source_fingerprint != 0 &&
	    held.source_fingerprint == old.source_fingerprint) {
		log_note("'%s' is removed: its documents are not held out any more", held_out);
		return shard_remove(held_out);
	}
	log_warning("'%s' is left over from an earlier run, and training on '%s' will be evaluated on it unless you name an "
		    "evaluation set: remove it if that is not what you want",
		    held_out, sink->settings->prefix);
	return OK;
}

enum status document_sink_commit(struct document_sink *sink)
{
	char path[PATH_BYTES];
	if (sink->output_count == 1)
		TRY(remove_held_out(sink));
	TRY(state_path(path, sink->settings->prefix));
	sink->saved = false; /* from here on the parts are renamed */
	if (file_exists(path) && file_operations.unlink(path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot remove", path);
	/* Held-out documents first: once the training shard exists, the held-out one does, too. */
	for (int i = sink->output_count - 1; i >= 0; i--) {
		struct output *output = &sink->outputs[i];
		struct shard_writer *writer = output->writer;
		if (i == 1 && output->description->documents == 0) {
			TRY(shard_remove(output->prefix)); /* one left by an older run would hold other documents */
			continue;
		}
		output->writer = NULL;
		TRY(shard_writer_commit(writer, output->description));
	}
	return OK;
}
