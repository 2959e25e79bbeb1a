/* bertc predict: a fine-tuned model's answers for texts, in the order of the input. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/answer_options.h"
#include "cmd/command.h"
#include "cmd/saved_models.h"
#include "cmd/folder_watch.h"
#include "infer/device_options.h"
#include "formats/stream.h"
#include "data/unknown.h"
#include "infer/task_session.h"
#include "infer/task_stream.h"
#include "run/run_folder.h"

struct predict_settings {
	const char *model, *watch;
	struct answer_output output;
	struct column_choice columns;
	enum on_bad_record on_bad_record;
	enum answer_form format;
	int64_t max_seq_length;
	struct window_options windows;
	struct calibration_options calibration; /* of which one is an option */
	struct task_options own;                /* of each task */
	struct device_options device;
};

#define FIELD(name) offsetof(struct predict_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct predict_settings, member, role, value)

/* clang-format off */
static const struct option predict_options[] = {
	{.help = "Input"},
	{ROW(model, ROLE_PLACE, "FOLDER"), .alias = "model_name_or_path",
	 .help = "a run of bertc finetune, its final/, or a task folder of transformers"},
	{.group = column_rows, .only = "text_column pair_column", .fallback_text = "as in training", .field = FIELD(columns)},
	{ROW(max_seq_length, ROLE_RESULT, "N"), .range = "8..65536", .fallback_text = "as in training",
	 .help = "maximum number of tokens per example; longer texts are truncated"},
	{ROW(on_bad_record, ROLE_RESULT, "WHAT"), .range = "stop|skip", .fallback = "stop",
	 .help = "on a row that cannot be used: stop with an error, or skip and count it"},
	{.group = window_rows, .fallback_text = "as in training", .field = FIELD(windows)},
	{.group = calibration_rows, .only = "min_score", .fallback_text = "as in training", .field = FIELD(calibration)},
	{.group = task_answer_rows, .field = FIELD(own)},
	{ROW(watch, ROLE_PLACE, "FOLDER"),
	 .help = "answer each file that appears in this folder until stopped by SIGTERM; the answers go into the existing "
	 "folder --out, under the file's name with .jsonl or .tsv appended; not for tags and questions about passages"},
	{.help = "Output"},
	{.group = answer_output_rows, .only = "out fresh", .field = FIELD(output)},
	{.reworded = true, .name = "out",
	 .help = "a file for the predictions; run an interrupted command again to resume it (not for tags, questions "
	 "about passages, or a JSON list, which are not read line by line). A folder, which either exists or is given "
	 "with a slash at the end, receives the task's result files"},
	{ROW(format, ROLE_RESULT, "NAME"), .range = "jsonl|tsv|pipeline", .fallback = "jsonl",
	 .help = "jsonl: a JSON object for each text; tsv: columns, the probabilities of classes as in Google's "
	 "test_results.tsv; pipeline: what transformers' pipeline of the task returns"},
	{.help = "Machine"},
	{.group = answer_output_rows, .only = "micro_batch_tokens", .field = FIELD(output)},
	{.group = device_rows, .field = FIELD(device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text predict_text = {
	.name = "predict",
	.synopsis = "--model FOLDER [FILE...|-] [options]",
	.summary = "answer texts with a fine-tuned model",
	.description =
		"Reads texts from files or standard input (one text per line, TSV, CSV, or JSON lines; the format is "
		"detected) and prints a JSON object for each, in the order of the input: {\"label\", \"probabilities\"} "
		"for classes, {\"value\"} for numbers, {\"labels\", \"probabilities\"} for several labels, {\"answer\", "
		"\"start\", \"end\", \"score\"} for questions, {\"tags\", \"entities\"} for tagged words, {\"label\", "
		"\"probabilities\"} with the numbers of the choices for multiple choice, {\"score\"} for pairs to be ranked, and "
		"{\"text\", \"edits\"} for rewritten texts. An \"id\" of the input is repeated.",
	.examples = "bertc predict --model runs/task texts.txt\tprint the predicted label of each line\n",
};

static enum status write_lines(const struct task_session *session, const struct task_set *set, const struct task_outputs *outputs,
			       enum answer_form form, const char *out)
{
	struct buffer text = {0};
	enum status status = OK;
	for (int64_t i = 0; i < task_answers(set) && status == OK; i++) {
		status = task_put(&session->state, form, set, outputs, i, &text);
		if (status == OK && !out) {
			fwrite(text.data, 1, text.size, stdout);
			buffer_clear(&text);
		}
	}
	if (status == OK)
		status = buffer_status(&text);
	if (status == OK && out)
		status = file_write(out, text.data ? text.data : "", text.size);
	buffer_release(&text);
	return status;
}

/* ---- Files that are read whole: questions, tags, lists of JSON objects ---- */

static enum status predict_whole(struct task_session *session, const char *const *paths, int64_t count, enum answer_form form,
				 const char *out)
{
	struct task_set set = {0};
	struct task_outputs outputs = {0};
	enum status status;
	TRY_GOTO(task_session_run(session, paths, count, TASK_PREDICT, &set, &outputs, NULL), done);
	if (out && file_is_folder(out))
		status = session->state.task->write(&session->state, &set, &outputs, out);
	else
		status = write_lines(session, &set, &outputs, form, out);
done:
	task_outputs_release(&outputs);
	task_set_release(&session->state, &set);
	return status;
}

/* ---- Files that are read piece by piece ---- */

static enum status answer(void *context, struct line_chunk *chunk, int64_t first, struct buffer *out, int64_t *out_texts)
{
	(void)first;
	return task_stream_answer(context, chunk, out, out_texts);
}

static void log_stream(const struct task_stream *stream, const char *path)
{
	char count[FORMAT_BYTES];
	const struct task_session *session = stream->session;
	if (stream->cut_count > 0)
		log_note("%s longer than %d tokens and cut, by %.0f tokens on average; --max_seq_length raises the limit",
			 format_counted(count, stream->cut_count, "text was", "texts were"),
			 session->state.settings.max_seq_length, (double)stream->cut_tokens / (double)stream->cut_count);
	if (stream->empty > 0)
		log_warning("%s empty", format_counted(count, stream->empty, "text was", "texts were"));
	unknown_warn("the texts", stream->unknown, stream->tokens);
	example_log_unread(&stream->unread, path);
	bad_records_log(&session->bad, path);
}

/* A job for all files, or for one that has appeared. */
static enum status make_job(struct answer_job *job, struct task_stream *stream, const struct options *options,
			    struct buffer *identity)
{
	const struct predict_settings *settings = options->settings;
	*job = (struct answer_job){.title = "predicting",
				   .out = answer_target(settings->output.out),
				   .fresh = settings->output.fresh,
				   .header_names = header_names,
				   .given_names = stream->names.given,
				   .context = stream,
				   .work = task_stream_work,
				   .answer = answer,
				   .own_bytes = sizeof(struct task_piece),
				   .release_own = task_piece_release};
	return answer_job_fill(job, options, &stream->session->files, stream->session->session.backend, identity);
}

static enum status predict_stream(struct task_session *session, const struct options *options, enum answer_form form)
{
	struct task_stream stream = {0};
	struct buffer identity = {0};
	struct answer_job job;
	enum status status;
	TRY_GOTO(task_stream_open(&stream, session), done);
	stream.form = form;
	TRY_GOTO(make_job(&job, &stream, options, &identity), done);
	status = answer_job_run(&job);
	log_stream(&stream, job.paths[0]);
done:
	buffer_release(&identity);
	task_stream_release(&stream);
	return status;
}

/* ---- Files as they appear in a folder ---- */

struct watch {
	struct task_stream stream;
	struct answer_job job;
};

static enum status answer_file(void *context, const char *path, const char *out)
{
	struct watch *watch = context;
	task_stream_restart(&watch->stream);
	watch->stream.session->bad.count = 0;
	watch->job.paths = &path;
	watch->job.path_count = 1;
	watch->job.out = out;
	watch->job.once = true;
	TRY(answer_job_run(&watch->job));
	log_stream(&watch->stream, path);
	return OK;
}

static enum status predict_watch(struct task_session *session, const struct options *options, enum answer_form form)
{
	const struct predict_settings *settings = options->settings;
	struct watch watch = {.stream = {0}};
	struct buffer identity = {0};
	enum status status = OK;
	if (options->positional.count > 0)
		status = error_set(ERR_USAGE, "--watch answers the files in a folder: no other files can be given");
	else if (!session->state.task->streams)
		status = error_set(ERR_USAGE, "--watch does not know files for %s", session->state.task->name);
	TRY_GOTO(status, done);
	TRY_GOTO(task_stream_open(&watch.stream, session), done);
	watch.stream.form = form;
	TRY_GOTO(make_job(&watch.job, &watch.stream, options, &identity), done);
	status = folder_watch(settings->watch, settings->output.out, form == ANSWER_TSV ? ".tsv" : ".jsonl", answer_file, &watch);
done:
	buffer_release(&identity);
	task_stream_release(&watch.stream);
	return status;
}

/* Does a file hold a list of JSON objects, which cannot be read line by line? Pipes cannot be checked in advance. */
static enum status is_list(const char *path, bool *out)
{
	struct line_reader *reader;
	const char *bytes;
	size_t size;
	*out = false;
	if (strcmp(path, "-") == 0 || file_stamp_at(path).inode == 0)
		return OK;
	TRY(line_reader_open(&reader, path, 1 << 16));
	enum status status = line_reader_peek(reader, 1 << 12, &bytes, &size);
	for (size_t i = 0; status == OK && i < size && !*out && strchr(" \t\r\n[", bytes[i]); i++)
		*out = bytes[i] == '[';
	line_reader_close(reader);
	return status;
}

/* Can the files be read piece by piece? */
static enum status can_stream(const struct task_session *session, const char *const *paths, int64_t count, const char *out,
			      bool *out_can)
{
	*out_can = session->state.task->streams && !(out && file_is_folder(out));
	for (int64_t i = 0; i < count && *out_can; i++) {
		bool list;
		TRY(is_list(paths[i], &list));
		*out_can = !list;
	}
	return OK;
}

static enum status check_predict(struct options *options)
{
	const struct predict_settings *settings = options->settings;
	TRY(options_require(options, "model", "give a folder that `bertc finetune` wrote, or a task folder of transformers"));
	TRY(saved_model_check(options, settings->model));
	return text_arguments_check(options, "bertc predict --model FOLDER");
}

static enum status run_predict(struct options *options)
{
	static const char *const standard_input[] = {"-"};
	const struct predict_settings *settings = options->settings;
	const struct option_list *files = &options->positional;
	const char *const *paths = files->count > 0 ? files->values : standard_input;
	int64_t count = files->count > 0 ? files->count : 1;
	struct task_session_settings of_session = {
		.model = settings->model,
		.columns = &settings->columns,
		.max_seq_length = settings->max_seq_length,
		.micro_batch_tokens = settings->output.micro_batch_tokens,
		.options = options,
		.own = &settings->own,
		.calibration = &settings->calibration,
		.windows = &settings->windows,
		.on_bad_record = settings->on_bad_record,
		.device = &settings->device,
	};
	struct task_session session = {0};
	bool streams;
	enum status status;
	if (settings->output.out && !settings->watch)
		TRY(run_folder_check_results(settings->output.out));
	TRY_GOTO(task_session_open(&session, &of_session), done);
	TRY_GOTO(task_options_check(options, session.state.task, NULL), done);
	if (!session.state.task->put) {
		status = error_set(ERR_USAGE, "'%s' gives vectors, not answers", settings->model);
		error_hint("bertc embed prints them");
		goto done;
	}
	const enum answer_form form = settings->format;
	if (form == ANSWER_PIPELINE && !session.state.task->put_pipeline) {
		status = error_set(ERR_USAGE, "--format pipeline: transformers has no pipeline for %s", session.state.task->name);
		error_hint("--format jsonl prints a JSON object for each text");
		goto done;
	}
	if (settings->output.out && text_ends_with(settings->output.out, "/")) /* a folder, even if there is none yet */
		TRY_GOTO(folder_make(settings->output.out), done);
	if (settings->watch) {
		status = predict_watch(&session, options, form);
		goto done;
	}
	TRY_GOTO(can_stream(&session, paths, count, answer_target(settings->output.out), &streams), done);
	if (streams)
		status = predict_stream(&session, options, form);
	else
		status = predict_whole(&session, paths, count, form, answer_target(settings->output.out));
done:
	task_session_close(&session);
	return status;
}

const struct command command_predict = {
	.text = &predict_text,
	.options = predict_options,
	.settings_bytes = sizeof(struct predict_settings),
	.check = check_predict,
	.run = run_predict,
	.prints_out = true,
	.takes_arguments = true,
};
