/* Answering the texts of files from first to last: lines are read and made ready ahead, answered in order, and written to
 * standard output or to a file. A file is written as PATH.part; together with PATH.progress, a note of how far it has come and
 * what it was made from, an interrupted job resumes there. */
#ifndef CMD_ANSWER_JOB_H
#define CMD_ANSWER_JOB_H

#include "base/file.h"
#include "infer/line_stream.h"

struct answer_job {
	const char *title;        /* for the progress bar: "embedding" */
	const char *const *paths; /* "-" is standard input */
	int64_t path_count;
	const char *out;     /* NULL: standard output */
	bool fresh;          /* start over instead of resuming an earlier job */
	int64_t chunk_lines; /* 0: many */
	bool keeps_quotes;   /* as in line_stream_settings */
	bool once; /* a job that fails or is killed leaves nothing: it is always done from the beginning, and no signal ends it */
	/* What the answers depend on besides the input files: lines of "name: value". A job resumes only if all are the same. */
	const char *identity;
	void *context;
	/* Makes a chunk ready, in any thread. */
	enum status (*work)(void *context, struct line_chunk *chunk);
	/* Appends the answers of a chunk, in the order of its lines, and says how many texts they are of; `first` have been
	 * answered before, also by an earlier process. */
	enum status (*answer)(void *context, struct line_chunk *chunk, int64_t first, struct buffer *out, int64_t *out_texts);
	/* What stands before the first answer and behind the last; may be NULL. `writer` NULL: standard output. */
	enum status (*begin)(void *context, struct buffer *out);
	enum status (*end)(void *context, struct buffer *out, struct file_writer *writer, int64_t texts);
	size_t own_bytes; /* of a chunk's own */
	void (*release_own)(void *own);
};

/* Does the job. With a file as output, SIGTERM and SIGINT end it after the current chunk, and save what is needed to resume:
 * STOPPED; so does a full disk (ERR_RESOURCE). A part that was made from other input or with other options is ERR_STATE that
 * names the difference. */
MUST_USE enum status answer_job_run(const struct answer_job *job);

/* Appends "name: path size time" of a file, for an identity. */
void answer_identity_file(struct buffer *out, const char *name, const char *path, const struct file_stamp *stamp);

#endif
