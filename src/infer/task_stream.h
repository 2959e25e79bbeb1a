/* What a fine-tuned model answers for the rows of files that are read piece by piece (infer/line_stream.h): tables, JSON lines, a
 * text a line. */
#ifndef INFER_TASK_STREAM_H
#define INFER_TASK_STREAM_H

#include <pthread.h>
#include "infer/encoder.h"
#include "infer/line_stream.h"
#include "infer/task_session.h"

/* Zero-initialise; released also after a failure. */
struct task_stream {
	struct task_session *session; /* borrowed; its model is opened */
	bool pipeline;                /* answers are what transformers' pipeline of the task returns: task.put_pipeline */
	struct encoder *encoder;
	struct encoder_answers answers;
	struct encoder_text *sequences;
	int64_t sequence_capacity;
	int64_t answered, cut_count, cut_tokens; /* texts; those that were too long, and what was cut off them */
	int64_t empty;                           /* texts without a token */
	int64_t unknown, tokens;                 /* of the texts' tokens, those that are [UNK] */
	/* Chunks are made ready one after the other, since a later one takes its columns from the first of its file. */
	pthread_mutex_t lock;
	pthread_cond_t turn;
	int64_t next;      /* number of the chunk whose turn it is */
	struct table form; /* of the file being read */
	struct example_columns *columns;
};

/* A chunk's own. */
struct task_piece {
	struct task_set set;
	const struct task_state *state; /* NULL: it is empty */
};

/* Can files of this task be read so? Otherwise they are read whole (task_session_run). */
bool task_streams(const struct task *task);
MUST_USE enum status task_stream_open(struct task_stream *stream, struct task_session *session);
/* Before other files: a new stream of lines counts its chunks from 0. */
void task_stream_restart(struct task_stream *stream);
void task_stream_release(struct task_stream *stream);
/* Makes the examples of a chunk, as line_stream_settings.work: `context` is the stream. */
MUST_USE enum status task_stream_work(void *context, struct line_chunk *chunk);
void task_piece_release(void *piece);
/* Appends the answers to a chunk, a JSON object and a line end each. */
MUST_USE enum status task_stream_answer(struct task_stream *stream, const struct line_chunk *chunk, struct buffer *out,
					int64_t *out_texts);

#endif
