/* A corpus to token shards.
 *
 * Rounds of a pipeline of three text batches: while batch k + 1 is read and batch k - 1 is written, the
 * pieces of batch k are encoded. Each is a task of one pool_run, so all cores work without a queue or a lock;
 * the order of documents is kept because a whole batch is written at a time.
 */
#include "data/prepare.h"
#include <stdio.h>
#include <stdlib.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"

#define BATCH_BYTES_PER_THREAD (2 << 20)
#define PIECE_BYTES (64 << 10)
#define UNKNOWN_WARNING 0.05
#define FORM_COUNT TEXT_FORM_COUNT

struct sentence {
	size_t begin, end;   /* in the batch's text */
	int64_t token_count; /* after encoding */
};

/* Consecutive sentences that one task encodes. */
struct piece {
	int64_t first, count;
	int32_t *ids; /* of all its sentences, end to end */
	int64_t id_capacity;
	struct error error;
};

struct text_batch {
	struct buffer text;
	struct sentence *sentences;
	int64_t sentence_count, sentence_capacity;
	struct batch_document {
		uint64_t hash;
		int64_t sentence_end;
	} * documents;
	int64_t document_count, document_capacity;
	struct piece *pieces;
	int64_t piece_count, piece_capacity, piece_ready; /* piece_ready: initialised so far */
};

/* One encoded document. */
struct encoded {
	int32_t *ids, *lengths;
	int64_t id_count, id_capacity, length_count, length_capacity;
	uint64_t hash;
};

struct output {
	struct shard_writer *writer;
	struct shard_description *description;
};

struct pipeline {
	struct corpus *corpus;
	const struct tokenizer *tokenizer;
	int32_t unknown_id;
	struct tokens *encoders; /* [encoder_count] one for each worker */
	int encoder_count;
	size_t batch_bytes;
	struct text_batch batches[3], *reading, *encoding, *writing;
	bool at_end;
	struct error read_error, write_error;

	bool holds_out; /* some documents go to held_out */
	double held_out_fraction;
	bool held_out_found; /* one was below the fraction */
	struct output train, held_out;
	/* Until then: the document with the smallest hash so far, and how often it came (equal hashes are
	 * copies). */
	struct encoded current, smallest;
	int64_t smallest_copies;

	int64_t form_documents[FORM_COUNT];
	char form_reasons[FORM_COUNT][256];
	struct prepare_report *report;
};

/* ---- Reading ---- */

static enum status cut_pieces(struct text_batch *batch)
{
	batch->piece_count = 0;
	for (int64_t first = 0; first < batch->sentence_count;) {
		int64_t end = first;
		while (end < batch->sentence_count &&
		       batch->sentences[end].end - batch->sentences[first].begin <= PIECE_BYTES)
			end++;
		if (end == first)
			end++;
		TRY(memory_grow(&batch->pieces, &batch->piece_capacity, batch->piece_count + 1,
		                sizeof(*batch->pieces), "text"));
		struct piece *piece = &batch->pieces[batch->piece_count++];
		if (batch->piece_ready < batch->piece_count) {
			memset(piece, 0, sizeof(*piece));
			batch->piece_ready = batch->piece_count;
		}
		piece->first = first;
		piece->count = end - first;
		first = end;
	}
	return OK;
}

static void note_form(struct pipeline *pipeline)
{
	const char *reason = "";
	enum text_form form = corpus_form(pipeline->corpus, &reason);
	if (pipeline->form_documents[form]++ == 0)
		snprintf(pipeline->form_reasons[form], sizeof(pipeline->form_reasons[form]), "%s", reason);
}

static enum status add_document(struct text_batch *batch, const struct document *document)
{
	TRY(memory_grow(&batch->documents, &batch->document_capacity, batch->document_count + 1,
	                sizeof(*batch->documents), "text"));
	TRY(memory_grow(&batch->sentences, &batch->sentence_capacity,
	                batch->sentence_count + document->sentence_count, sizeof(*batch->sentences), "text"));
	for (int64_t i = 0; i < document->sentence_count; i++) {
		size_t begin = document->sentences[i].begin, end = document->sentences[i].end;
		struct sentence *sentence = &batch->sentences[batch->sentence_count++];
		sentence->begin = batch->text.size;
		buffer_append(&batch->text, document->text + begin, end - begin);
		sentence->end = batch->text.size;
	}
	batch->documents[batch->document_count++] =
	        (struct batch_document){.hash = document->hash, .sentence_end = batch->sentence_count};
	return buffer_status(&batch->text);
}

static enum status read_batch(struct pipeline *pipeline, struct text_batch *batch)
{
	buffer_clear(&batch->text);
	batch->sentence_count = batch->document_count = batch->piece_count = 0;
	while (!pipeline->at_end && batch->text.size < pipeline->batch_bytes) {
		const struct document *document = NULL;
		TRY(corpus_next(pipeline->corpus, &document));
		if (document == NULL) {
			pipeline->at_end = true;
			break;
		}
		note_form(pipeline);
		TRY(add_document(batch, document));
	}
	return cut_pieces(batch);
}

/* ---- Encoding ---- */

/* Encoders belong to workers: each keeps a cache of words. */
static enum status encode_piece(const struct pipeline *pipeline, struct text_batch *batch,
                                struct piece *piece, struct tokens *tokens)
{
	tokens_clear(tokens);
	for (int64_t i = piece->first; i < piece->first + piece->count; i++) {
		struct sentence *sentence = &batch->sentences[i];
		int64_t before = tokens->count;
		TRY(tokenizer_encode(pipeline->tokenizer, batch->text.data + sentence->begin,
		                     sentence->end - sentence->begin, tokens));
		sentence->token_count = tokens->count - before;
	}
	TRY(memory_grow(&piece->ids, &piece->id_capacity, tokens->count, sizeof(*piece->ids), "text"));
	if (tokens->count > 0)
		memcpy(piece->ids, tokens->ids, (size_t)tokens->count * sizeof(*piece->ids));
	return OK;
}

/* ---- Writing ---- */

static void clear_encoded(struct encoded *document, uint64_t hash)
{
	document->id_count = document->length_count = 0;
	document->hash = hash;
}

static enum status add_sentence(struct encoded *document, const int32_t *ids, int64_t count)
{
	if (count > SENTENCE_TOKENS_MAX)
		return error_set(ERR_DATA, "a sentence of %lld tokens; the limit is %d", (long long)count,
		                 SENTENCE_TOKENS_MAX);
	TRY(memory_grow(&document->ids, &document->id_capacity, document->id_count + count, sizeof(*ids),
	                "document"));
	TRY(memory_grow(&document->lengths, &document->length_capacity, document->length_count + 1,
	                sizeof(*document->lengths), "document"));
	memcpy(document->ids + document->id_count, ids, (size_t)count * sizeof(*ids));
	document->id_count += count;
	document->lengths[document->length_count++] = (int32_t)count;
	return OK;
}

static enum status write_document(const struct pipeline *pipeline, struct output *output,
                                  const struct encoded *document)
{
	const int32_t *ids = document->ids;
	for (int64_t i = 0; i < document->length_count; i++) {
		TRY(shard_writer_sentence(output->writer, ids, document->lengths[i]));
		ids += document->lengths[i];
	}
	for (int64_t i = 0; i < document->id_count; i++)
		output->description->unknown_tokens += document->ids[i] == pipeline->unknown_id;
	output->description->documents++;
	return shard_writer_end_document(output->writer);
}

static enum status write_smallest(struct pipeline *pipeline, struct output *output, int64_t copies)
{
	for (; copies > 0; copies--, pipeline->smallest_copies--)
		TRY(write_document(pipeline, output, &pipeline->smallest));
	return OK;
}

/* Sends the current document where it belongs. */
static enum status route_document(struct pipeline *pipeline)
{
	struct encoded *current = &pipeline->current, *smallest = &pipeline->smallest;
	if (!pipeline->holds_out)
		return write_document(pipeline, &pipeline->train, current);
	if ((double)current->hash * 0x1p-64 < pipeline->held_out_fraction) {
		pipeline->held_out_found = true;
		TRY(write_smallest(pipeline, &pipeline->train, pipeline->smallest_copies));
		return write_document(pipeline, &pipeline->held_out, current);
	}
	if (pipeline->held_out_found)
		return write_document(pipeline, &pipeline->train, current);
	if (pipeline->smallest_copies > 0 && current->hash > smallest->hash)
		return write_document(pipeline, &pipeline->train, current);
	if (pipeline->smallest_copies > 0 && current->hash == smallest->hash) {
		pipeline->smallest_copies++;
		return OK;
	}
	TRY(write_smallest(pipeline, &pipeline->train, pipeline->smallest_copies));
	struct encoded swap = *smallest;
	*smallest = *current;
	*current = swap;
	pipeline->smallest_copies = 1;
	return OK;
}

/* At the end: if no document fell below the fraction, the one with the smallest hash is held out, with its
 * copies unless nothing else would be left to train on. */
static enum status route_smallest(struct pipeline *pipeline)
{
	int64_t held = 0;
	if (!pipeline->held_out_found && pipeline->train.description->documents > 0)
		held = pipeline->smallest_copies;
	else if (!pipeline->held_out_found && pipeline->smallest_copies > 1)
		held = 1;
	TRY(write_smallest(pipeline, &pipeline->held_out, held));
	return write_smallest(pipeline, &pipeline->train, pipeline->smallest_copies);
}

static enum status write_batch(struct pipeline *pipeline, const struct text_batch *batch)
{
	const struct piece *piece = batch->pieces;
	int64_t sentence = 0, offset = 0; /* `offset`: tokens of the piece already used */
	for (int64_t d = 0; d < batch->document_count; d++) {
		clear_encoded(&pipeline->current, batch->documents[d].hash);
		for (; sentence < batch->documents[d].sentence_end; sentence++) {
			if (sentence == piece->first + piece->count) {
				piece++;
				offset = 0;
			}
			int64_t count = batch->sentences[sentence].token_count;
			if (count > 0)
				TRY(add_sentence(&pipeline->current, piece->ids + offset, count));
			else
				pipeline->report->empty_sentences++;
			offset += count;
		}
		if (pipeline->current.length_count > 0)
			TRY(route_document(pipeline));
		else
			pipeline->report->empty_documents++;
	}
	pipeline->report->text_bytes += (int64_t)batch->text.size;
	return OK;
}

/* ---- The pipeline ---- */

enum { TASK_READ, TASK_WRITE, TASK_ENCODE };

static void run_task(void *context, int64_t index, int worker)
{
	struct pipeline *pipeline = context;
	if (index == TASK_READ) {
		if (read_batch(pipeline, pipeline->reading) != OK)
			pipeline->read_error = *error_last();
	} else if (index == TASK_WRITE) {
		if (write_batch(pipeline, pipeline->writing) != OK)
			pipeline->write_error = *error_last();
	} else {
		struct piece *piece = &pipeline->encoding->pieces[index - TASK_ENCODE];
		if (encode_piece(pipeline, pipeline->encoding, piece, &pipeline->encoders[worker]) != OK)
			piece->error = *error_last();
	}
}

static enum status first_error(const struct pipeline *pipeline)
{
	if (pipeline->write_error.status != OK)
		return error_restore(&pipeline->write_error);
	for (int64_t i = 0; i < pipeline->encoding->piece_count; i++)
		if (pipeline->encoding->pieces[i].error.status != OK)
			return error_restore(&pipeline->encoding->pieces[i].error);
	if (pipeline->read_error.status != OK)
		return error_restore(&pipeline->read_error);
	return OK;
}

static void show_progress(const struct pipeline *pipeline, struct progress *progress)
{
	char documents[FORMAT_BYTES];
	int64_t done = corpus_done_bytes(pipeline->corpus);
	const struct corpus_counts *counts = corpus_counts(pipeline->corpus);
	progress_update(progress, done < 0 ? 0 : done, "%s documents",
	                format_count(documents, counts->documents));
}

static enum status run_rounds(struct pipeline *pipeline, struct pool *pool, struct progress *progress)
{
	for (int64_t round = 0;; round++) {
		pipeline->reading = &pipeline->batches[round % 3];
		pipeline->encoding = &pipeline->batches[(round + 2) % 3];
		pipeline->writing = &pipeline->batches[(round + 1) % 3];
		pool_run(pool, TASK_ENCODE + pipeline->encoding->piece_count, run_task, pipeline);
		TRY(first_error(pipeline));
		show_progress(pipeline, progress);
		if (stop_requested())
			return error_set(STOPPED, "stopped by %s; nothing was written", stop_reason());
		if (pipeline->reading->document_count == 0 && pipeline->encoding->document_count == 0)
			return OK;
	}
}

static enum status refuse_empty(const struct corpus_counts *counts)
{
	char bytes[FORMAT_BYTES];
	enum status status =
	        error_set(ERR_DATA, "no usable document: %lld file%s, %s, %lld line%s hold no text",
	                  (long long)counts->files, counts->files == 1 ? "" : "s",
	                  format_size(bytes, (double)counts->bytes), (long long)counts->lines,
	                  counts->lines == 1 ? "" : "s");
	error_hint("a corpus is plain text: a sentence a line with blank lines between documents, running "
	           "text, or a "
	           "document a line (--text_form)");
	return status;
}

static void describe_form(const struct pipeline *pipeline, struct prepare_report *report)
{
	int kinds = 0;
	report->form = TEXT_FORM_AUTO;
	for (int form = 0; form < FORM_COUNT; form++) {
		kinds += pipeline->form_documents[form] > 0;
		if (pipeline->form_documents[form] > pipeline->form_documents[report->form])
			report->form = (enum text_form)form;
	}
	report->mixed_forms = kinds > 1;
	memcpy(report->form_reason, pipeline->form_reasons[report->form], sizeof(report->form_reason));
}

static void describe_shards(const struct pipeline *pipeline, struct prepare_report *report)
{
	const struct tokenizer_settings *settings = tokenizer_settings_of(pipeline->tokenizer);
	struct shard_description *both[] = {&report->train, &report->held_out};
	for (int i = 0; i < 2; i++) {
		struct shard_description *d = both[i];
		d->vocab_hash = tokenizer_vocab(pipeline->tokenizer)->hash;
		d->lowercase = settings->lowercase;
		d->strip_accents = settings->strip_accents;
		d->split_chinese = settings->split_chinese;
		d->source_fingerprint = corpus_fingerprint(pipeline->corpus);
		snprintf(d->text_form, sizeof(d->text_form), "%s",
		         report->mixed_forms ? "mixed" : text_form_names[report->form]);
	}
}

static enum status commit(struct output *output)
{
	struct shard_writer *writer = output->writer;
	output->writer = NULL;
	return shard_writer_commit(writer, output->description);
}

static void warn_of_unknown(const struct prepare_report *report)
{
	double unknown = (double)(report->train.unknown_tokens + report->held_out.unknown_tokens);
	double share = unknown / (double)(report->train.tokens + report->held_out.tokens);
	if (share > UNKNOWN_WARNING)
		log_warning("%.1f %% of the tokens are [UNK]: the vocabulary does not fit this text (another "
		            "language, or "
		            "cased against uncased); `bertc vocab` learns one that does",
		            100 * share);
}

static enum status run_pipeline(struct pipeline *pipeline, struct pool *pool,
                                const struct prepare_settings *settings)
{
	struct prepare_report *report = pipeline->report;
	int32_t vocab_size = tokenizer_vocab(pipeline->tokenizer)->count;
	/* The writers first: a place that cannot be written is found before the corpus is read. */
	TRY(shard_writer_open(&pipeline->train.writer, settings->prefix, vocab_size));
	if (pipeline->holds_out)
		TRY(shard_writer_open(&pipeline->held_out.writer, settings->held_out_prefix, vocab_size));

	struct progress progress;
	int64_t total = corpus_total_bytes(pipeline->corpus);
	progress_start(&progress, "preparing", 0, total < 0 ? 0 : total, "bytes");
	enum status status = run_rounds(pipeline, pool, &progress);
	progress_finish(&progress);
	TRY(status);

	report->counts = *corpus_counts(pipeline->corpus);
	for (int i = 0; i < pipeline->encoder_count; i++)
		report->invalid_bytes += pipeline->encoders[i].invalid_bytes;
	TRY(route_smallest(pipeline));
	if (report->train.documents == 0 && report->held_out.documents == 0)
		return refuse_empty(&report->counts);
	if (report->train.documents == 0) {
		status = error_set(ERR_DATA, "all %lld documents are held out, none is left to train on",
		                   (long long)report->held_out.documents);
		error_hint("lower --held_out_fraction");
		return status;
	}
	describe_form(pipeline, report);
	describe_shards(pipeline, report);
	/* Held-out documents first: where training finds its shard, the other one is there too. */
	if (pipeline->holds_out && report->held_out.documents > 0)
		TRY(commit(&pipeline->held_out));
	else if (pipeline->holds_out)
		TRY(shard_remove(settings->held_out_prefix)); /* an older run's would hold other documents */
	TRY(commit(&pipeline->train));
	warn_of_unknown(report);
	return OK;
}

static void release_pipeline(struct pipeline *pipeline)
{
	for (int b = 0; b < 3; b++) {
		struct text_batch *batch = &pipeline->batches[b];
		for (int64_t i = 0; i < batch->piece_ready; i++)
			free(batch->pieces[i].ids);
		buffer_release(&batch->text);
		free(batch->sentences);
		free(batch->documents);
		free(batch->pieces);
	}
	for (int i = 0; i < pipeline->encoder_count; i++)
		tokens_release(&pipeline->encoders[i]);
	free(pipeline->encoders);
	shard_writer_abandon(pipeline->train.writer);
	shard_writer_abandon(pipeline->held_out.writer);
	free(pipeline->current.ids);
	free(pipeline->current.lengths);
	free(pipeline->smallest.ids);
	free(pipeline->smallest.lengths);
	free(pipeline);
}

enum status prepare_corpus(struct corpus *corpus, const struct tokenizer *tokenizer, struct pool *pool,
                           const struct prepare_settings *settings, struct prepare_report *report)
{
	double start = clock_seconds();
	struct pipeline *pipeline = NULL;
	memset(report, 0, sizeof(*report));
	TRY(memory_new(&pipeline, 1, sizeof(*pipeline), "preparing"));
	pipeline->corpus = corpus;
	pipeline->tokenizer = tokenizer;
	pipeline->unknown_id = tokenizer_vocab(tokenizer)->unk;
	pipeline->batch_bytes = (size_t)pool_threads(pool) * BATCH_BYTES_PER_THREAD;
	pipeline->holds_out = settings->held_out_prefix != NULL;
	pipeline->held_out_fraction = settings->held_out_fraction;
	pipeline->report = report;
	pipeline->train.description = &report->train;
	pipeline->held_out.description = &report->held_out;
	enum status status =
	        memory_new(&pipeline->encoders, pool_threads(pool), sizeof(*pipeline->encoders), "encoders");
	if (status == OK) {
		pipeline->encoder_count = pool_threads(pool);
		status = run_pipeline(pipeline, pool, settings);
	}
	release_pipeline(pipeline);
	report->seconds = clock_seconds() - start;
	return status;
}
