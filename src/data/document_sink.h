/* Takes encoded documents: filters them, decides which are held out, writes shards, saves its state from time to time so that
 * a killed run can be resumed, and looks for duplicates at the end. prepare.c feeds it in corpus order. */
#ifndef DATA_DOCUMENT_SINK_H
#define DATA_DOCUMENT_SINK_H

#include "data/prepare.h"

struct document_sink;

/* `identity` is a hash of everything that determines the result (corpus, vocabulary, settings, ...); 0: cannot be resumed.
 * Continues with the parts that an earlier run of the same identity saved, and sets *out_documents to the number of corpus
 * documents they cover; otherwise starts afresh. */
MUST_USE enum status document_sink_open(struct document_sink **out, const struct prepare_settings *settings, uint64_t identity,
					const struct vocab *vocab, struct prepare_report *report, int64_t *out_documents);
/* ERR_STATE unless the documents that the parts cover had these hashes, combined from 0 on with hash64_combine(): the identity of
 * a corpus knows only names, sizes, times, and ends of its files. */
MUST_USE enum status document_sink_check(const struct document_sink *sink, uint64_t hashes);

/* One document: begin, its sentences, end. A sentence without ids is counted and left out, and so is a document without
 * sentences. `text` is the text of the sentence: it is hashed to find duplicates and quoted in samples of what is left out. */
void document_sink_begin(struct document_sink *sink, uint64_t hash);
MUST_USE enum status document_sink_sentence(struct document_sink *sink, const int32_t *ids, int64_t count, const char *text,
					    size_t size);
MUST_USE enum status document_sink_end(struct document_sink *sink);

/* Whether a later run can resume from what was saved last. */
bool document_sink_is_saved(const struct document_sink *sink);
/* Makes durable everything written for the first `documents` documents of the corpus; does nothing where that is not possible
 * (yet). */
MUST_USE enum status document_sink_save(struct document_sink *sink, int64_t documents);

/* After the last document: settles which documents are held out, finds duplicates and, if the settings say so, drops them.
 * Completes the report's counts. */
MUST_USE enum status document_sink_finish(struct document_sink *sink);
/* Moves the shards into place. */
MUST_USE enum status document_sink_commit(struct document_sink *sink);

/* Keeps parts that were saved for a later run and removes all others. NULL is fine. */
void document_sink_close(struct document_sink *sink);

#endif
