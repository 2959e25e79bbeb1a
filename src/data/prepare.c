/* Converts a corpus to token shards.
 *
 * The pipeline runs in rounds on three text batches: while batch k + 1 is read and batch k - 1 is written, the
 * pieces of batch k are encoded. All of these are tasks of one pool_run, so all cores work without a queue or a lock;
 * documents stay in order because a single task writes a whole batch.
 */
#include "data/prepare.h"
#include <stdio.h>
#include <stdlib.h>
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "data/unknown.h"
#include "data/document_sink.h"
#include "text/sentences.h"

#define BATCH_BYTES_PER_THREAD (2 << 20)
#define PIECE_BYTES (64 << 10)
#define SAVE_SECONDS 30.0
#define FORM_COUNT TEXT_FORM_COUNT

struct sentence {
	size_t begin, end;   /* in the batch's text */
	size_t space;        /* bytes before it that are encoded with it */
	int64_t token_count; /* after encoding */
};

/* Consecutive sentences that one task encodes. */
struct piece {
	int64_t first, count;
	int32_t *ids; /* ids of all its sentences, end to end */
	int64_t id_capacity;
	int64_t invalid_bytes; /* not UTF-8 */
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
	int64_t piece_count, piece_capacity, piece_ready; /* piece_ready: pieces initialized so far */
};

struct pipeline {
	struct corpus *corpus;
	const struct tokenizer *tokenizer;
	struct tokens *encoders; /* [encoder_count] one for each worker */
	int encoder_count;
	size_t batch_bytes;
	struct text_batch batches[3], *reading, *encoding, *writing;
	bool at_end;
	struct error read_error, write_error;

	struct document_sink *sink;
	int64_t documents_written; /* documents of the corpus passed to the sink so far */
	double saved;              /* time of the last save */

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
		while (end < batch->sentence_count && batch->sentences[end].end - batch->sentences[first].begin <= PIECE_BYTES)
			end++;
		if (end == first)
			end++;
		TRY(memory_grow(&batch->pieces, &batch->piece_capacity, batch->piece_count + 1, sizeof *batch->pieces, "text"));
		struct piece *piece = &batch->pieces[batch->piece_count++];
		if (batch->piece_ready < batch->piece_count) {
			memset(piece, 0, sizeof *piece);
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
		snprintf(pipeline->form_reasons[form], sizeof pipeline->form_reasons[form], "%s", reason);
}

/* `space`: what tokens include of the text before a sentence that follows another, or "". */
static enum status add_document(struct text_batch *batch, const struct document *document, const char *space)
{
	TRY(memory_grow(&batch->documents, &batch->document_capacity, batch->document_count + 1, sizeof *batch->documents,
			"text"));
	TRY(memory_grow(&batch->sentences, &batch->sentence_capacity, batch->sentence_count + document->sentence_count,
			sizeof *batch->sentences, "text"));
	for (int64_t i = 0; i < document->sentence_count; i++) {
		size_t begin = document->sentences[i].begin, end = document->sentences[i].end;
		struct sentence *sentence = &batch->sentences[batch->sentence_count++];
		sentence->space =
			i > 0 && space[0] && sentence_follows_space(document->text + begin, end - begin) ? strlen(space) : 0;
		buffer_append(&batch->text, space, sentence->space);
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
		TRY(add_document(batch, document, tokenizer_word_prefix(pipeline->tokenizer)));
	}
	return cut_pieces(batch);
}

/* ---- Encoding ---- */

/* Each worker has its own encoder, since an encoder caches words. */
static enum status encode_piece(const struct pipeline *pipeline, struct text_batch *batch, struct piece *piece,
				struct tokens *tokens)
{
	tokens_clear(tokens);
	int64_t invalid_before = tokens->invalid_bytes;
	for (int64_t i = piece->first; i < piece->first + piece->count; i++) {
		struct sentence *sentence = &batch->sentences[i];
		int64_t before = tokens->count;
		size_t begin = sentence->begin - sentence->space;
		TRY(tokenizer_encode(pipeline->tokenizer, batch->text.data + begin, sentence->end - begin, tokens));
		sentence->token_count = tokens->count - before;
	}
	piece->invalid_bytes = tokens->invalid_bytes - invalid_before;
	TRY(memory_grow(&piece->ids, &piece->id_capacity, tokens->count, sizeof *piece->ids, "text"));
	if (tokens->count > 0)
		memcpy(piece->ids, tokens->ids, (size_t)tokens->count * sizeof *piece->ids);
	return OK;
}

/* ---- Writing ---- */

static enum status write_batch(struct pipeline *pipeline, const struct text_batch *batch)
{
	const struct piece *piece = batch->pieces;
	int64_t sentence = 0, offset = 0; /* `offset`: tokens of the piece already used */
	for (int64_t d = 0; d < batch->document_count; d++) {
		document_sink_begin(pipeline->sink, batch->documents[d].hash);
		for (; sentence < batch->documents[d].sentence_end; sentence++) {
			if (sentence == piece->first + piece->count) {
				piece++;
				offset = 0;
			}
			const struct sentence *s = &batch->sentences[sentence];
			TRY(document_sink_sentence(pipeline->sink, piece->ids + offset, s->token_count,
						   (const char *)batch->text.data + s->begin, s->end - s->begin));
			offset += s->token_count;
		}
		TRY(document_sink_end(pipeline->sink));
	}
	for (int64_t i = 0; i < batch->piece_count; i++)
		pipeline->report->invalid_bytes += batch->pieces[i].invalid_bytes;
	pipeline->report->text_bytes += (int64_t)batch->text.size;
	pipeline->documents_written += batch->document_count;
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
	progress_update(progress, done < 0 ? 0 : done, "%s",
			format_counted(documents, counts->documents, "document", "documents"));
}

static enum status stopped(struct pipeline *pipeline)
{
	TRY(document_sink_save(pipeline->sink, pipeline->documents_written));
	return error_hinted(
		error_set(STOPPED, "stopped by %s after %lld documents", stop_reason(), (long long)pipeline->documents_written),
		document_sink_is_saved(pipeline->sink)
			? "run the same command again to resume"
			: "nothing could be saved yet, or standard input or a pipe is read: the same command starts over");
}

/* Skips the documents that an earlier run has already prepared. */
static enum status skip_documents(struct pipeline *pipeline, int64_t count, struct progress *progress)
{
	if (count > 0)
		log_note("resuming after %lld documents that an earlier run prepared", (long long)count);
	uint64_t hashes = 0;
	for (int64_t i = 0; i < count; i++) {
		const struct document *document = NULL;
		TRY(corpus_next(pipeline->corpus, &document));
		if (document == NULL)
			return error_set(ERR_STATE, "the corpus ends before the %lld documents that were prepared",
					 (long long)count);
		hashes = hash64_combine(hashes, document->hash);
		note_form(pipeline);
		if (i % 1000 == 0)
			show_progress(pipeline, progress);
		if (stop_requested())
			return stopped(pipeline);
	}
	return document_sink_check(pipeline->sink, hashes);
}

static enum status run_rounds(struct pipeline *pipeline, struct pool *pool, double save_seconds, struct progress *progress)
{
	pipeline->saved = clock_seconds();
	for (int64_t round = 0;; round++) {
		pipeline->reading = &pipeline->batches[round % 3];
		pipeline->encoding = &pipeline->batches[(round + 2) % 3];
		pipeline->writing = &pipeline->batches[(round + 1) % 3];
		pool_run(pool, TASK_ENCODE + pipeline->encoding->piece_count, run_task, pipeline);
		TRY(first_error(pipeline));
		show_progress(pipeline, progress);
		if (stop_requested())
			return stopped(pipeline);
		if (clock_seconds() - pipeline->saved > save_seconds) {
			TRY(document_sink_save(pipeline->sink, pipeline->documents_written));
			pipeline->saved = clock_seconds();
		}
		if (pipeline->reading->document_count == 0 && pipeline->encoding->document_count == 0)
			return OK;
	}
}

static enum status refuse_empty(const struct prepare_report *report)
{
	char bytes[FORMAT_BYTES];
	const struct corpus_counts *counts = &report->counts;
	if (counts->documents > report->empty_documents)
		return error_hinted(
			error_set(ERR_DATA, "no document is left: the filters leave out all %lld", (long long)counts->documents),
			"loosen --min_document_tokens, --max_document_tokens or --max_unknown_share");
	return error_hinted(error_set(ERR_DATA, "no usable document: %lld file%s, %s, %lld line%s hold no text",
				      (long long)counts->files, counts->files == 1 ? "" : "s",
				      format_size(bytes, (double)counts->bytes), (long long)counts->lines,
				      counts->lines == 1 ? "" : "s"),
			    "a corpus is plain text: one sentence per line with blank lines between documents, running text, or "
			    "one document per line (--text_form)");
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
	memcpy(report->form_reason, pipeline->form_reasons[report->form], sizeof report->form_reason);
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
		snprintf(d->text_form, sizeof d->text_form, "%s", report->mixed_forms ? "mixed" : text_form_names[report->form]);
	}
}

/* A hash of which entries are added tokens, and how they are found in texts; 0: none are. */
static uint64_t added_hash(const struct vocab *vocab)
{
	uint64_t sum = 0;
	for (int32_t i = 0; i < vocab->added_count; i++) {
		const struct added_token *token = &vocab->added[i];
		const int32_t facts[] = {token->id,     token->normalized, token->single_word,
					 token->lstrip, token->rstrip,     vocab->wordpiece_count};
		sum += hash64(facts, sizeof facts);
	}
	return sum;
}

/* A hash of everything that determines the result: parts with another identity are not resumed. 0: the corpus cannot be read
 * again. */
static uint64_t identity_of(const struct pipeline *pipeline, const struct prepare_settings *settings)
{
	const struct tokenizer_settings *tokenizer = tokenizer_settings_of(pipeline->tokenizer);
	const struct prepare_filters *filters = &settings->filters;
	const struct corpus_settings *input = settings->input;
	char text[512];
	if (corpus_total_bytes(pipeline->corpus) < 0)
		return 0;
	uint64_t vocab = tokenizer_vocab(pipeline->tokenizer)->hash ^ added_hash(tokenizer_vocab(pipeline->tokenizer));
	int size = snprintf(text, sizeof text, "%llx %llx %d%d%d%d %.17g %lld %lld %.17g %d%d",
			    (unsigned long long)corpus_fingerprint(pipeline->corpus), (unsigned long long)vocab,
			    tokenizer->lowercase, tokenizer->strip_accents, tokenizer->split_chinese, tokenizer->special_tokens,
			    settings->held_out_prefix ? settings->held_out_fraction : 0.0,
			    (long long)filters->min_document_tokens, (long long)filters->max_document_tokens,
			    filters->max_unknown_share, filters->drop_copied_documents, filters->drop_copied_sentences);
	if (input)
		snprintf(text + size, sizeof text - (size_t)size, " %d %d %d %.64s", (int)input->input.input_form,
			 (int)input->input.text_form, input->input.on_bad_record == SKIP_BAD_RECORD,
			 input->input.text_key ? input->input.text_key : "");
	return hash64(text, strlen(text)) | 1;
}

static enum status run_pipeline(struct pipeline *pipeline, struct pool *pool, const struct prepare_settings *settings)
{
	struct prepare_report *report = pipeline->report;
	struct progress progress;
	int64_t total = corpus_total_bytes(pipeline->corpus);
	/* The sink comes first, so that an unwritable output is reported before the corpus is read. */
	TRY(document_sink_open(&pipeline->sink, settings, identity_of(pipeline, settings), tokenizer_vocab(pipeline->tokenizer),
			       report, &report->resumed_documents));
	pipeline->documents_written = report->resumed_documents;
	progress_start(&progress, corpus_is_compressed(pipeline->corpus) ? "preparing compressed text" : "preparing", 0,
		       total < 0 ? 0 : total, "bytes");
	enum status status = skip_documents(pipeline, report->resumed_documents, &progress);
	if (status == OK)
		status =
			run_rounds(pipeline, pool, settings->save_seconds > 0 ? settings->save_seconds : SAVE_SECONDS, &progress);
	progress_finish(&progress);
	TRY(status);

	report->counts = *corpus_counts(pipeline->corpus);
	TRY(document_sink_finish(pipeline->sink));
	if (report->train.documents == 0 && report->held_out.documents == 0)
		return refuse_empty(report);
	if (report->train.documents == 0)
		return error_hinted(error_set(ERR_DATA, "all %lld documents are held out, none is left to train on",
					      (long long)report->held_out.documents),
				    "lower --held_out_fraction");
	describe_form(pipeline, report);
	describe_shards(pipeline, report);
	TRY(unknown_check("the text", report->train.unknown_tokens + report->held_out.unknown_tokens,
			  report->train.tokens + report->held_out.tokens));
	TRY(document_sink_commit(pipeline->sink));
	return prepare_write_report(settings, report);
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
	document_sink_close(pipeline->sink);
	free(pipeline);
}

enum status prepare_corpus(struct corpus *corpus, const struct tokenizer *tokenizer, struct pool *pool,
			   const struct prepare_settings *settings, struct prepare_report *report)
{
	double start = clock_seconds();
	struct pipeline *pipeline = NULL;
	memset(report, 0, sizeof *report);
	TRY(memory_new(&pipeline, 1, sizeof *pipeline, "preparing"));
	pipeline->corpus = corpus;
	pipeline->tokenizer = tokenizer;
	pipeline->batch_bytes = (size_t)pool_threads(pool) * BATCH_BYTES_PER_THREAD;
	pipeline->report = report;
	enum status status = memory_new(&pipeline->encoders, pool_threads(pool), sizeof *pipeline->encoders, "encoders");
	if (status == OK) {
		pipeline->encoder_count = pool_threads(pool);
		status = run_pipeline(pipeline, pool, settings);
	}
	release_pipeline(pipeline);
	report->seconds = clock_seconds() - start;
	return status;
}
