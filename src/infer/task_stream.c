/* Makes examples of a task from chunks of lines, and computes their answers. */
#include "infer/task_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

enum status task_stream_open(struct task_stream *stream, struct task_session *session)
{
	const struct task_session_settings *settings = session->settings;
	const struct session_heads heads = {.heads = &session->heads, .missing = MISSING_NOTHING};
	int32_t longest = session->state.settings.max_seq_length;
	*stream = (struct task_stream){.session = session};
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->turn, NULL);
	const struct task_settings *task = &session->state.settings;
	struct table_options unused = {.header = TABLE_DETECT};
	TRY(header_hints_find(&stream->names, &task->columns, &task->trained, task->negative_columns, header_names, &unused));
	TRY(session_open_heads(&session->session, settings->model, settings->device, &heads,
			       encoder_capacity(&session->heads, settings->micro_batch_tokens, longest), longest));
	session->is_open = true;
	TRY(model_files_check(&session->files, settings->model));
	return encoder_open(&stream->encoder, &session->session);
}

void task_stream_restart(struct task_stream *stream)
{
	stream->next = stream->answered = stream->cut_count = stream->cut_tokens = 0;
	stream->empty = stream->unknown = stream->tokens = 0;
	stream->unread.count = 0;
}

void task_stream_release(struct task_stream *stream)
{
	if (!stream->session)
		return;
	encoder_close(stream->encoder);
	encoder_answers_release(&stream->answers);
	free(stream->sequences);
	header_hints_release(&stream->names);
	table_release(&stream->table);
	example_columns_free(stream->columns);
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->turn);
	*stream = (struct task_stream){0};
}

void task_piece_release(void *context)
{
	struct task_piece *piece = context;
	if (piece->state)
		task_set_release(piece->state, &piece->set);
	*piece = (struct task_piece){0};
}

/* Keeps the table's form and columns for later chunks of the file. */
static enum status keep_form(struct task_stream *stream, struct example_set *examples)
{
	table_release(&stream->table);
	example_columns_free(stream->columns);
	stream->columns = examples->found;
	examples->found = NULL;
	return table_copy_form(&stream->table, &examples->tables[0]);
}

static enum status make_piece(struct task_stream *stream, struct line_chunk *chunk)
{
	struct task_piece *own = chunk->own;
	struct task_state state = stream->session->state;
	const struct example_piece piece = {.table = {.name = chunk->path,
						      .text = chunk->text.data,
						      .size = chunk->text.size,
						      .first_line = chunk->first_line,
						      .like = chunk->begins_file ? NULL : &stream->table},
					    .columns = chunk->begins_file ? NULL : stream->columns};
	task_piece_release(own);
	TRY(line_chunk_check(chunk));
	state.settings.piece = &piece;
	state.settings.quiet = true;
	own->state = &stream->session->state;
	own->set = (struct task_set){.name = "", .use = TASK_PREDICT};
	TRY(state.task->read(&state, &own->set, &chunk->path, 1));
	if (chunk->begins_file)
		TRY(keep_form(stream, &own->set.examples));
	return chunk->done || own->set.examples.count == 0 ? OK : state.task->encode(&state, &own->set);
}

enum status task_stream_work(void *context, struct line_chunk *chunk)
{
	struct task_stream *stream = context;
	pthread_mutex_lock(&stream->lock);
	while (stream->next != chunk->number)
		pthread_cond_wait(&stream->turn, &stream->lock);
	enum status status = make_piece(stream, chunk);
	stream->next++;
	pthread_cond_broadcast(&stream->turn);
	pthread_mutex_unlock(&stream->lock);
	return status;
}

enum status task_stream_answer(struct task_stream *stream, const struct line_chunk *chunk, struct buffer *out, int64_t *out_texts)
{
	const struct task_piece *piece = chunk->own;
	const struct task_state *state = &stream->session->state;
	const struct labeled_set *set = &piece->set.encoded;
	const struct encoder_wish wish = {.answer = ENCODER_HEAD};
	struct task_outputs outputs = {0};
	enum status status = OK;
	*out_texts = 0;
	if (chunk->done || set->example_count == 0)
		return OK;
	TRY(memory_grow(&stream->sequences, &stream->sequence_capacity, set->sequence_count, sizeof *stream->sequences, "texts"));
	encoder_texts_of(set, stream->sequences);
	TRY(encoder_run(stream->encoder, &wish, stream->sequences, set->sequence_count, &stream->answers));
	TRY(task_outputs_create(&outputs, set, &stream->session->heads.head[0]));
	/* The answers are in sequence order, which is also example order. */
	BUG_IF(outputs.starts[outputs.count] != stream->answers.starts[set->sequence_count]);
	memcpy(outputs.values, stream->answers.values, (size_t)outputs.starts[outputs.count] * sizeof *outputs.values);
	windows_pool(state, &piece->set, &outputs);
	*out_texts = task_answers(&piece->set);
	for (int64_t i = 0; i < *out_texts && status == OK; i++)
		status = task_put(state, stream->form, &piece->set, &outputs, i, out);
	task_outputs_release(&outputs);
	stream->answered += *out_texts;
	const struct vocab *vocab = &stream->session->folder_tokenizer.vocab;
	for (int64_t i = 0; i < set->sequence_count; i++) { /* special tokens only */
		bool pair = stream->sequences[i].second > 0;
		stream->empty += stream->sequences[i].count <= template_size(pair ? &vocab->pair : &vocab->single);
	}
	labeled_count_unknown(set, &stream->session->folder_tokenizer.vocab, &stream->unknown, &stream->tokens);
	stream->cut_count += piece->set.cut_count;
	stream->cut_tokens += piece->set.cut_tokens;
	if (stream->unread.count == 0)
		stream->unread = piece->set.examples.unread;
	else
		stream->unread.count += piece->set.examples.unread.count;
	return status;
}
