/* Answers a fine-tuned model's task for the rows of files that are read piece by piece (infer/line_stream.h): tables, JSON lines,
 * or one text per line. */
#ifndef INFER_TASK_STREAM_H
#define INFER_TASK_STREAM_H

#include <pthread.h>
#include "infer/encoder.h"
#include "infer/line_stream.h"
#include "infer/task_session.h"
#include "tasks/header_hints.h"

/* Zero-initialize; release even after a failure. */
struct task_stream {
	struct task_session *session; /* borrowed; task_stream_open() opens its model */
	enum answer_form form;
	struct encoder *encoder;
	struct encoder_answers answers;
	struct encoder_text *sequences;
	int64_t sequence_capacity;
	int64_t answered, cut_count, cut_tokens; /* texts answered; texts too long; tokens cut off them */
	int64_t empty;                           /* texts without a token */
	struct bad_records unread;               /* labels that could not be read */
	int64_t unknown, tokens;                 /* how many of the texts' tokens are [UNK]; all tokens */
	/* Chunks are prepared one at a time, in order, since later ones take their columns from the first of their file. */
	pthread_mutex_t lock;
	pthread_cond_t turn;
	int64_t next;       /* number of the chunk whose turn it is */
	struct table table; /* the form of the file being read */
	struct example_columns *columns;
	struct header_hints names; /* of columns, from options and training */
};

/* The `own` data of a chunk. */
struct task_piece {
	struct task_set set;
	const struct task_state *state; /* NULL: the piece is empty */
};

/* Opens the session's model and an encoder on it. Only for tasks that stream (task.streams); files of others are read whole, by
 * task_session_run(). */
MUST_USE enum status task_stream_open(struct task_stream *stream, struct task_session *session);
/* Call before reading other files: a new stream of lines numbers its chunks from 0. */
void task_stream_restart(struct task_stream *stream);
void task_stream_release(struct task_stream *stream);
/* Makes the examples of a chunk; for line_stream_settings.work, with the stream as `context`. */
MUST_USE enum status task_stream_work(void *context, struct line_chunk *chunk);
void task_piece_release(void *piece);
/* Appends the answers to a chunk's rows. */
MUST_USE enum status task_stream_answer(struct task_stream *stream, const struct line_chunk *chunk, struct buffer *out,
					int64_t *out_texts);

#endif
