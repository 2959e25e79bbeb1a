/* Answering all texts of files, from the first to the last: lines are read and prepared ahead, answered in order, and written to
 * standard output or to a file. A file is first written as PATH.part. Together with PATH.progress, a note that says how far it
 * has come and what it is made from, this lets an interrupted job resume. */
#ifndef CMD_ANSWER_JOB_H
#define CMD_ANSWER_JOB_H

#include "base/file.h"
#include "infer/line_stream.h"

struct answer_job {
	const char *title;        /* for the progress bar, such as "embedding" */
	const char *const *paths; /* "-" is standard input */
	int64_t path_count;
	const char *out;                 /* NULL: standard output */
	bool fresh;                      /* start over instead of resuming an earlier job */
	int64_t chunk_lines;             /* 0: a default number */
	const char *const *header_names; /* as in line_stream_settings */
	const char *const *given_names;
	bool once; /* never resumed: a job that fails or is killed leaves nothing behind, and no signal ends it */
	/* What the answers depend on besides the input files: lines of "name: value". A job resumes only if all of them are the
	 * same. */
	const char *identity;
	void *context;
	/* Prepares a chunk, in any thread. */
	enum status (*work)(void *context, struct line_chunk *chunk);
	/* As in line_stream_settings; may be NULL. */
	enum status (*begin_file)(void *context, const struct line_chunk *chunk, const void **out_form);
	/* Appends the answers to a chunk, in the order of its lines, and stores the number of texts they answer. `first` texts
	 * have been answered before, including by an earlier process. */
	enum status (*answer)(void *context, struct line_chunk *chunk, int64_t first, struct buffer *out, int64_t *out_texts);
	/* What comes before the first answer and after the last; each may be NULL. `writer` NULL: standard output. */
	enum status (*begin)(void *context, struct buffer *out);
	enum status (*end)(void *context, struct buffer *out, struct file_writer *writer, int64_t texts);
	size_t own_bytes; /* size of line_chunk.own */
	void (*release_own)(void *own);
};

/* Runs the job. If the output is a file, SIGTERM and SIGINT end the job after the current chunk and save what is needed to
 * resume: STOPPED. A full disk (ERR_RESOURCE) does the same. A part that was made from other input or with other options is
 * ERR_STATE, which names the difference. */
MUST_USE enum status answer_job_run(const struct answer_job *job);

/* Appends "name: path, size, time, hash of a sample" of a file to an identity. */
void answer_identity_file(struct buffer *out, const char *name, const char *path, const struct file_stamp *stamp);

#endif
