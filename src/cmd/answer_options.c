/* Opens the model for the commands that answer texts, with the length and stride that the options ask for. */
#include "cmd/answer_options.h"

#include <string.h>

#include "base/log.h"
#include "cmd/saved_models.h"
#include "model/forms.h"
#include "weights/model_folder.h"

#define ROW(member, role, value) OPTION_ROW(struct answer_settings, member, role, value)

/* clang-format off */
const struct option answer_input_rows[] = {
	{.group = saved_model_rows, .field = offsetof(struct answer_settings, model)},
	{ROW(input, ROLE_RESULT, "FORM"), .range = "auto|text", .fallback = "auto",
	 .help = "what a line is: auto reads a file as JSON lines if its first nonblank line begins a JSON object, as a "
	 "table (TSV, CSV) if --text_column or --pair_column is given, and as texts otherwise"},
	{ROW(text_column, ROLE_RESULT, "NAME"), .fallback_text = "text",
	 .help = "member of a JSON object, or column of a table by name or by number from 1, that holds the text"},
	{ROW(pair_column, ROLE_RESULT, "NAME"), .fallback_text = "text_pair or pair of a JSON object, if there is one",
	 .help = "member of a JSON object, or column of a table, that holds the second text of a pair"},
	{ROW(pair_separator, ROLE_RESULT, "TEXT"), .fallback_text = "none: a line is one text",
	 .help = "what separates the two texts of a pair in one line, as in 'a ||| b'; its last occurrence counts"},
	{ROW(max_seq_length, ROLE_RESULT, "N"), .range = "8..65536",
	 .fallback_text = "as the folder says, but at most the model's number of positions",
	 .help = "maximum number of tokens per text, including special ones such as [CLS]"},
	{ROW(long_texts, ROLE_RESULT, "WHAT"), .range = "cut|windows|stop", .fallback = "cut",
	 .help = "what to do with texts that are too long: cut and count them, split them into windows, or stop with an error"},
	{ROW(doc_stride, ROLE_RESULT, "N"), .range = "1..65536",
	 .fallback_text = "the length of a window, or half of it if windows must overlap",
	 .help = "distance in tokens between the beginnings of successive windows"},
	{0},
};

#undef ROW
#define ROW(member, role, value) OPTION_ROW(struct answer_output, member, role, value)
const struct option answer_output_rows[] = {
	{ROW(out, ROLE_PLACE, "FILE"), .fallback_text = "standard output",
	 .help = "a file for the answers; run an interrupted command again to resume it"},
	{ROW(fresh, ROLE_RUN, NULL), .fallback = "false", .help = "start over even if an interrupted command left part of --out"},
	{ROW(micro_batch_tokens, ROLE_RUN, "N"), .range = "64..", .fallback_text = "4096; on a GPU 8192 or more, in whole waves",
	 .help = "tokens computed at a time"},
	{0},
};
/* clang-format on */

/* Maximum tokens per sequence: as requested, else as the folder says, else the model's number of positions. */
static enum status choose_length(const struct answer_settings *settings, int32_t said, int32_t positions, int32_t *out)
{
	*out = said > 0 && said < positions ? said : positions;
	if (positions < SHORTEST_LENGTH)
		return error_set(ERR_USAGE, "the model has %d positions, which leaves no room for a text", positions);
	if (settings->max_seq_length == 0)
		return OK;
	if (settings->max_seq_length > positions)
		return error_hinted(error_set(ERR_USAGE, "--max_seq_length %lld is beyond the model's %d positions",
					      (long long)settings->max_seq_length, positions),
				    "lower it; --long_texts windows takes longer texts piece by piece");
	*out = (int32_t)settings->max_seq_length;
	return OK;
}

static enum status choose_stride(const struct answer_settings *settings, struct text_settings *texts, bool overlap)
{
	int32_t special = template_size(&tokenizer_vocab(texts->tokenizer)->single), room = texts->max_seq_length - special;
	if (room < 1 && texts->long_texts == LONG_WINDOWS)
		return error_set(ERR_USAGE, "windows of %d tokens have no room for text: the tokenizer adds %d special tokens",
				 texts->max_seq_length, special);
	texts->stride = settings->doc_stride > 0 ? (int32_t)settings->doc_stride : overlap ? (room + 1) / 2 : room;
	if (texts->stride > room)
		return error_set(ERR_USAGE, "--doc_stride %d would leave out text: a window has room for %d tokens",
				 texts->stride, room);
	return OK;
}

enum status answer_model_open(struct answer_model *out, const struct answer_settings *settings, const char *model,
			      const struct session_heads *heads, int32_t length, bool lowercase, bool overlap)
{
	struct model_config config;
	struct text_settings *texts = &out->texts;
	int32_t longest;
	if (settings->input == LINES_TEXT && (settings->text_column || settings->pair_column))
		return error_set(ERR_USAGE, "--input text takes whole lines as texts, which have no --%s",
				 settings->text_column ? "text_column" : "pair_column");
	if (settings->doc_stride > 0 && settings->long_texts != LONG_WINDOWS)
		return error_set(ERR_USAGE, "--doc_stride has no effect without --long_texts windows");
	TRY(model_folder_config(model, &config));
	TRY(choose_length(settings, length, model_positions(&config), &longest));
	TRY(session_open_heads(&out->session, model, &settings->device, heads,
			       encoder_capacity(heads->heads, settings->output.micro_batch_tokens, longest), longest));
	out->is_open = true;
	struct folder_tokenizer *folder = &out->session.tokenizer;
	if (settings->max_seq_length == 0 && length == 0 && folder->max_length > 0 && folder->max_length < longest)
		longest = (int32_t)folder->max_length;
	folder->settings.special_tokens = false; /* "[MASK]" in a text is text */
	folder->settings.lowercase = folder->settings.lowercase || lowercase;
	TRY(tokenizer_open(&out->tokenizer, &folder->vocab, &folder->settings));
	TRY(encoder_open(&out->encoder, &out->session));
	*texts = (struct text_settings){
		.tokenizer = out->tokenizer,
		.max_seq_length = longest,
		.long_texts = settings->long_texts,
		.text_key = settings->text_column,
		.pair_key = settings->pair_column,
		.pair_separator = settings->pair_separator,
		.plain = settings->input == LINES_TEXT,
	};
	if (texts->pair_separator && !texts->pair_separator[0])
		return error_set(ERR_USAGE, "--pair_separator is empty");
	TRY(choose_stride(settings, texts, overlap));
	return model_files_check(&out->files, settings->model);
}

void answer_model_close(struct answer_model *model)
{
	text_tables_free(model->tables);
	encoder_close(model->encoder);
	tokenizer_close(model->tokenizer);
	if (model->is_open)
		session_close(&model->session);
	model_files_release(&model->files);
	*model = (struct answer_model){0};
}

static enum status work(void *context, struct line_chunk *chunk)
{
	const struct answer_model *model = context;
	return text_chunk_make(chunk->own, chunk, &model->texts);
}

static enum status begin_file(void *context, const struct line_chunk *chunk, const void **out_form)
{
	struct answer_model *model = context;
	return text_table_find(&model->tables, chunk, &model->texts, out_form);
}

static void release_own(void *own)
{
	text_chunk_release(own);
}

struct answer_job answer_model_job(struct answer_model *model, const struct answer_settings *settings, const char *title,
				   enum status (*answer)(void *context, struct line_chunk *chunk, int64_t first,
							 struct buffer *out, int64_t *out_texts))
{
	const char *text = settings->text_column, *pair = settings->pair_column;
	const bool plain = settings->input == LINES_TEXT;
	model->columns[0] = text ? text : "id";
	model->columns[1] = pair ? pair : "id";
	model->columns[2] = "id";
	return (struct answer_job){.out = answer_target(settings->output.out),
				   .fresh = settings->output.fresh,
				   .title = title,
				   .context = model,
				   .header_names = !plain && (text || pair) ? model->columns : NULL,
				   .given_names = model->columns,
				   .begin_file = plain ? NULL : begin_file,
				   .work = work,
				   .answer = answer,
				   .own_bytes = sizeof(struct text_chunk),
				   .release_own = release_own};
}

enum status answer_model_run(struct answer_model *model, struct answer_job *job, const struct options *options)
{
	struct buffer identity = {0};
	enum status status = answer_job_fill(job, options, &model->files, model->session.backend, &identity);
	if (status == OK) {
		status = answer_job_run(job);
		text_counts_log(&model->counts, &model->texts);
	}
	buffer_release(&identity);
	return status;
}

enum status answer_job_fill(struct answer_job *job, const struct options *options, const struct model_files *model,
			    const struct backend *device, struct buffer *identity)
{
	static const char *const standard_input[] = {"-"};
	const struct option_list *files = &options->positional;
	struct buffer scratch = {0};
	job->paths = files->count > 0 ? files->values : standard_input;
	job->path_count = files->count > 0 ? files->count : 1;
	buffer_format(identity, "command: %s\n", job->title);
	for (int i = 0; i < options->count; i++) {
		const struct option *row = &options->table[i];
		if (!row->name)
			continue;
		const char *value = options_value(options, row->name, &scratch);
		if (row->role == ROLE_RESULT || strcmp(row->name, "min_score") == 0) /* which a training run may change */
			buffer_format(identity, "--%s: %s\n", row->name, value);
		else if (row->role == ROLE_SOURCE && options_given(options, row->name)) {
			struct file_stamp stamp = file_stamp_at(value);
			answer_identity_file(identity, row->name, value, &stamp);
		}
	}
	buffer_release(&scratch);
	for (int64_t i = 0; i < model->paths.count; i++)
		answer_identity_file(identity, "model", model->paths.names[i], &model->stamps[i]);
	buffer_format(identity, "device: %s\n", device->description);
	job->identity = buffer_string(identity);
	return buffer_status(identity);
}
