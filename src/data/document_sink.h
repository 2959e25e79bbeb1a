/* Where encoded documents go: filtered, held out or not, written to shards, saved now and then so that a killed run goes
 * on, and searched for copies at the end. prepare.c feeds it, in the order of the corpus. */
#ifndef DATA_DOCUMENT_SINK_H
#define DATA_DOCUMENT_SINK_H

#include "data/prepare.h"

struct document_sink;

/* `identity` stands for everything that decides the result but the settings here (corpus, vocabulary, ...); 0: not to be
 * resumed. Goes on with parts that an earlier run of the same identity saved, and says in *out_documents how many
 * documents of the corpus they hold; otherwise begins anew. */
MUST_USE enum status document_sink_open(struct document_sink **out, const struct prepare_settings *settings, uint64_t identity,
					const struct vocab *vocab, struct prepare_report *report, int64_t *out_documents);

/* One document: begin, its sentences, end. A sentence without ids is counted and left out, so is a document without
 * sentences. `text` is the sentence's, for samples of what is left out. */
void document_sink_begin(struct document_sink *sink, uint64_t hash);
MUST_USE enum status document_sink_sentence(struct document_sink *sink, const int32_t *ids, int64_t count, const char *text,
					    size_t size);
MUST_USE enum status document_sink_end(struct document_sink *sink);

/* Makes durable what was written, after `documents` of the corpus; does nothing where that is not possible yet. */
MUST_USE enum status document_sink_save(struct document_sink *sink, int64_t documents);

/* After the last document: decides the held-out ones, finds and (by the settings) drops copies. The report is complete
 * but for what document_sink_commit counts. */
MUST_USE enum status document_sink_finish(struct document_sink *sink);
/* Puts the shards in place. */
MUST_USE enum status document_sink_commit(struct document_sink *sink);

/* Closes; leaves saved parts for a later run, removes all others. NULL is fine. */
void document_sink_close(struct document_sink *sink);

#endif
