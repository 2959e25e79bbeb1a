#include "cmd/answer_options.h"

#include <string.h>

#include "base/log.h"
#include "weights/model_folder.h"

bool answer_is_plain(const struct answer_settings *settings)
{
	return strcmp(settings->input, "text") == 0;
}

static enum long_texts long_texts_named(const char *name)
{
	return strcmp(name, "cut") == 0 ? LONG_CUT : strcmp(name, "windows") == 0 ? LONG_WINDOWS : LONG_STOP;
}

/* Maximum tokens per sequence: as requested, else as the folder says, else the model's number of positions. */
static enum status choose_length(const struct answer_settings *settings, int32_t said, int32_t positions, int32_t *out)
{
	*out = said > 0 && said < positions ? said : positions;
	if (positions < SHORTEST_LENGTH)
		return error_set(ERR_USAGE, "the model has %d positions, which leaves no room for a text", positions);
	if (settings->max_seq_length == 0)
		return OK;
	if (settings->max_seq_length > positions) {
		enum status status = error_set(ERR_USAGE, "--max_seq_length %lld is beyond the model's %d positions",
					       (long long)settings->max_seq_length, positions);
		error_hint("lower it; --long_texts windows takes longer texts piece by piece");
		return status;
	}
	*out = (int32_t)settings->max_seq_length;
	return OK;
}

static enum status choose_stride(const struct answer_settings *settings, struct text_settings *texts, bool overlap)
{
	int32_t room = texts->max_seq_length - 2;
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
	*out = (struct answer_model){0};
	TRY(model_folder_config(model, &config));
	TRY(choose_length(settings, length, config.max_position_embeddings, &longest));
	TRY(session_open_heads(&out->session, model, &settings->device, heads,
			       encoder_capacity(heads->heads, settings->micro_batch_tokens, longest), longest));
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
		.long_texts = long_texts_named(settings->long_texts),
		.text_key = settings->text_column,
		.pair_key = settings->pair_column,
		.pair_separator = settings->pair_separator,
		.plain = answer_is_plain(settings),
	};
	if (texts->pair_separator && !texts->pair_separator[0])
		return error_set(ERR_USAGE, "--pair_separator is empty");
	return choose_stride(settings, texts, overlap);
}

void answer_model_close(struct answer_model *model)
{
	text_tables_free(model->tables);
	encoder_close(model->encoder);
	tokenizer_close(model->tokenizer);
	if (model->is_open)
		session_close(&model->session);
	*model = (struct answer_model){0};
}

enum status answer_model_begin_file(struct answer_model *model, const struct line_chunk *chunk, const void **out_form)
{
	return text_table_find(&model->tables, chunk, &model->texts, out_form);
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
		if (row->name && row->role == ROLE_RESULT)
			buffer_format(identity, "--%s: %s\n", row->name, options_value(options, row->name, &scratch));
	}
	buffer_release(&scratch);
	for (int64_t i = 0; i < model->paths.count; i++)
		answer_identity_file(identity, "model", model->paths.names[i], &model->stamps[i]);
	buffer_format(identity, "device: %s\n", device->description);
	job->identity = buffer_string(identity);
	return buffer_status(identity);
}
