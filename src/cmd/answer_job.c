/* Runs an answer job: reads chunks of lines, writes their answers, and saves the note from which it can resume. */
#include "cmd/answer_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file_sample.h"
#include "base/json.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/stop.h"
#include "base/text.h"
#include "cmd/command.h"
#include "formats/stream.h"

#define FORMAT_VERSION 1
#define NOTE_LIMIT ((size_t)64 << 20)
#define SAVE_SECONDS 10.0
#define CHUNK_BYTES ((size_t)128 << 10)
#define CHUNK_LINES 1024
#define LONGEST_LINE ((size_t)8 << 20)
/* Computing takes most of a machine; tokenizing takes only a few percent of that. */
#define CORES_A_HELPER 16

struct run {
	const struct answer_job *job;
	struct line_stream *lines;
	struct file_writer *writer; /* NULL: standard output */
	bool resumable;
	char target[PATH_BYTES]; /* the output, behind symbolic links; beside it TARGET.part and TARGET.progress */
	char note[PATH_BYTES];
	struct buffer identity, out;
	/* As recorded in the note. */
	struct line_place place;
	struct file_writer_state written;
	int64_t texts;
	bool is_ending; /* bytes already written are about to change, so their checksum is no longer kept */
	double saved;   /* time of the last save; 0: none yet, so that the first chunk is saved */
	struct progress progress;
	int64_t first_texts;
	double started;
};

void answer_identity_file(struct buffer *out, const char *name, const char *path, const struct file_stamp *stamp)
{
	buffer_format(out, "%s: %s, %" PRId64 " bytes, written at %" PRId64 " ns, sample %016" PRIx64 "\n", name, path,
		      stamp->size, stamp->nanoseconds, file_sample_hash(path, stamp));
}

/* Paths need not be UTF-8, but the note, a JSON file, is: writes invalid bytes as \xE9. */
static enum status escape_invalid(struct buffer *text)
{
	struct buffer out = {0};
	const unsigned char *bytes = (const unsigned char *)text->data;
	for (size_t i = 0, length; i < text->size; i += length ? length : 1) {
		length = text_utf8_length(bytes + i, text->size - i);
		if (length > 0)
			buffer_append(&out, text->data + i, length);
		else
			buffer_format(&out, "\\x%02X", bytes[i]);
	}
	buffer_release(text);
	*text = out;
	return buffer_status(text);
}

static enum status make_identity(struct run *run)
{
	const struct answer_job *job = run->job;
	buffer_text(&run->identity, job->identity);
	for (int64_t i = 0; i < job->path_count; i++) {
		char name[32];
		struct file_stamp stamp = file_stamp_at(job->paths[i]);
		snprintf(name, sizeof name, "input %" PRId64, i + 1);
		answer_identity_file(&run->identity, name, job->paths[i], &stamp);
	}
	return escape_invalid(&run->identity);
}

/* ---- The note ---- */

static enum status save_note(struct run *run)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	TRY(file_writer_save(run->writer, &run->written));
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "format", FORMAT_VERSION);
	json_put_text(&writer, "made_from", run->identity.data, run->identity.size);
	json_put_integer(&writer, "file", run->place.file);
	json_put_integer(&writer, "line", run->place.line);
	json_put_integer(&writer, "texts", run->texts);
	json_put_integer(&writer, "bytes", run->written.offset);
	json_put_integer(&writer, "crc32c", run->is_ending ? 0 : run->written.crc32c);
	json_close(&writer);
	buffer_char(&text, '\n');
	enum status status = buffer_status(&text);
	if (status == OK)
		status = file_write(run->note, text.data, text.size);
	buffer_release(&text);
	run->saved = clock_seconds();
	return status;
}

/* Names the first line in which the identity now and `then` differ. */
static enum status refuse_other(const struct run *run, const char *then)
{
	const char *now = buffer_string(&run->identity);
	size_t now_size = 0, then_size = 0;
	while (*now || *then) {
		now_size = strcspn(now, "\n");
		then_size = strcspn(then, "\n");
		if (now_size != then_size || memcmp(now, then, now_size) != 0)
			break;
		now += now_size + (now[now_size] == '\n');
		then += then_size + (then[then_size] == '\n');
	}
	return error_hinted(error_set(ERR_STATE, "'%s.part' was started with other settings: '%.*s' then, '%.*s' now",
				      run->target, (int)then_size, then, (int)now_size, now),
			    "give the same input and options to resume, or --fresh to start over");
}

static enum status read_note(struct run *run, const struct json *root)
{
	const char *made_from = NULL;
	int64_t format = 0, crc = 0;
	TRY(json_get_integer(root, run->note, "format", 0, INT64_MAX, &format));
	if (format != FORMAT_VERSION)
		return error_set(ERR_STATE, "'%s' was written by another version of bertc; --fresh starts over", run->note);
	TRY(json_get_string(root, run->note, "made_from", &made_from));
	if (!made_from || strcmp(made_from, buffer_string(&run->identity)) != 0)
		return refuse_other(run, made_from ? made_from : "");
	TRY(json_get_integer(root, run->note, "file", 0, INT64_MAX, &run->place.file));
	TRY(json_get_integer(root, run->note, "line", 0, INT64_MAX, &run->place.line));
	TRY(json_get_integer(root, run->note, "texts", 0, INT64_MAX, &run->texts));
	TRY(json_get_integer(root, run->note, "bytes", 0, INT64_MAX, &run->written.offset));
	TRY(json_get_integer(root, run->note, "crc32c", 0, UINT32_MAX, &crc));
	run->written.crc32c = (uint32_t)crc;
	return OK;
}

static enum status find_note(struct run *run)
{
	struct json_document document;
	char part[PATH_BYTES + 8];
	snprintf(part, sizeof part, "%s.part", run->target);
	for (int64_t i = 0; i < run->job->path_count; i++) {
		TRY(command_check_input(run->job->paths[i], "out", part));
		TRY(command_check_input(run->job->paths[i], "out", run->note));
	}
	if (run->job->fresh || !file_exists(run->note) || !file_exists(part))
		return OK;
	TRY(json_read(&document, run->note, NOTE_LIMIT));
	enum status status = read_note(run, document.root);
	json_release(&document);
	return status;
}

/* ---- Output ---- */

/* Can the input be read again from its beginning, and is the output a regular file? */
static bool is_resumable(const struct answer_job *job)
{
	if (job->once || !job->out || (file_exists(job->out) && file_stamp_at(job->out).inode == 0))
		return false;
	for (int64_t i = 0; i < job->path_count; i++)
		if (file_stamp_at(job->paths[i]).inode == 0)
			return false;
	return true;
}

static enum status open_output(struct run *run)
{
	const struct answer_job *job = run->job;
	if (!job->out) {
		progress_beside_results();
		return OK;
	}
	if (file_is_folder(job->out))
		return error_set(ERR_USAGE, "'%s' is a folder, so no file can be written there", job->out);
	run->resumable = is_resumable(job);
	if (!run->resumable)
		return file_writer_open(&run->writer, job->out);
	stop_install();
	TRY(path_behind_links(run->target, job->out));
	if (snprintf(run->note, sizeof run->note, "%s.progress", run->target) >= PATH_BYTES)
		return error_set(ERR_USAGE, "--out: the path is too long");
	TRY(find_note(run));
	TRY(file_writer_resume(&run->writer, run->target, run->written));
	if (run->texts > 0)
		log_note("resuming after %" PRId64 " texts already answered in '%s'", run->texts, file_writer_part(run->writer));
	return OK;
}

static enum status write_out(struct run *run)
{
	if (run->writer)
		return file_writer_write(run->writer, run->out.data, run->out.size);
	if (run->out.size > 0 && fwrite(run->out.data, 1, run->out.size, stdout) != run->out.size)
		return command_output_failed();
	if (fflush(stdout) != 0)
		return command_output_failed();
	return OK;
}

/* ---- The work ---- */

static enum status open_lines(struct run *run)
{
	const struct answer_job *job = run->job;
	int helpers = 1 + pool_available_cores() / CORES_A_HELPER;
	return line_stream_open(&run->lines, &(struct line_stream_settings){
						     .paths = job->paths,
						     .path_count = job->path_count,
						     .longest_line = LONGEST_LINE,
						     .chunk_bytes = CHUNK_BYTES,
						     .chunk_lines = job->chunk_lines > 0 ? job->chunk_lines : CHUNK_LINES,
						     .header_names = job->header_names,
						     .given_names = job->given_names,
						     .begin = run->place,
						     .helpers = helpers,
						     .work = job->work,
						     .begin_file = job->begin_file,
						     .context = job->context,
						     .own_bytes = job->own_bytes,
						     .release_own = job->release_own,
					     });
}

static enum status answer_chunk(struct run *run, struct line_chunk *chunk)
{
	int64_t texts = 0;
	buffer_clear(&run->out);
	TRY(run->job->answer(run->job->context, chunk, run->texts, &run->out, &texts));
	TRY(buffer_status(&run->out));
	TRY(write_out(run));
	if (!chunk->done)
		run->place = chunk->end;
	run->texts += texts;
	if (run->resumable && clock_seconds() - run->saved > SAVE_SECONDS)
		TRY(save_note(run));
	return OK;
}

static void show_progress(struct run *run, int64_t bytes)
{
	char count[FORMAT_BYTES];
	double seconds = clock_seconds() - run->started;
	progress_update(&run->progress, bytes, "%s, %.0f per second", format_counted(count, run->texts, "text", "texts"),
			seconds > 0 ? (double)(run->texts - run->first_texts) / seconds : 0);
}

static enum status answer_all(struct run *run)
{
	struct line_chunk *chunk;
	for (;;) {
		if (run->resumable)
			TRY(stop_check());
		TRY(line_stream_next(run->lines, &chunk));
		if (!chunk)
			return OK;
		TRY(answer_chunk(run, chunk));
		show_progress(run, chunk->bytes);
	}
}

static enum status finish(struct run *run)
{
	const struct answer_job *job = run->job;
	if (run->texts == 0)
		log_warning("there is no text in the input");
	buffer_clear(&run->out);
	if (job->end && run->resumable) {
		run->is_ending = true;
		TRY(save_note(run));
	}
	if (job->end) {
		TRY(job->end(job->context, &run->out, run->writer, run->texts));
		TRY(buffer_status(&run->out));
		TRY(write_out(run));
	}
	if (!run->writer)
		return OK;
	/* A failure from here on leaves the part, and a completely written part is resumed at its end. */
	if (run->resumable)
		TRY(file_writer_save(run->writer, &run->written));
	struct file_writer *writer = run->writer;
	run->writer = NULL;
	TRY(file_writer_commit(writer));
	if (run->resumable && file_exists(run->note) && unlink(run->note) != 0)
		log_warning("'%s' could not be removed", run->note);
	return OK;
}

/* Leaves behind what is needed to resume; the first error is the one reported. */
static enum status interrupt(struct run *run, enum status status)
{
	struct error error = *error_last();
	if (!run->writer || !run->resumable) {
		file_writer_abandon(run->writer);
		return error_restore(&error);
	}
	/* A part without a note is started over. */
	bool saved = run->texts > 0 && save_note(run) == OK;
	file_writer_suspend(run->writer);
	if (status == STOPPED)
		return error_set(STOPPED, "stopped by %s after %" PRId64 " texts; run the same command again to resume",
				 stop_reason(), run->texts);
	if (saved || file_exists(run->note))
		log_note("run the same command again to resume after the texts that are answered");
	return error_restore(&error);
}

static enum status run_lines(struct run *run)
{
	run->started = clock_seconds();
	run->first_texts = run->texts;
	progress_start(&run->progress, run->job->title, 0, line_stream_size(run->lines), "bytes");
	enum status status = answer_all(run);
	progress_finish(&run->progress);
	return status;
}

enum status answer_job_run(const struct answer_job *job)
{
	struct run run = {.job = job};
	enum status status;
	TRY_GOTO(make_identity(&run), done);
	TRY_GOTO(stream_check_paths(job->paths, job->path_count), done);
	TRY_GOTO(open_output(&run), done);
	status = open_lines(&run);
	if (status == OK && run.written.offset == 0 && job->begin) {
		status = job->begin(job->context, &run.out);
		if (status == OK)
			status = write_out(&run);
	}
	if (status == OK)
		status = run_lines(&run);
	if (status == OK)
		status = finish(&run);
	if (status != OK)
		status = interrupt(&run, status);
done:
	line_stream_close(run.lines);
	buffer_release(&run.identity);
	buffer_release(&run.out);
	return status;
}
