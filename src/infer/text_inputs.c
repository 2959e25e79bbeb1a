/* Encodes texts in memory for the encoder (infer/text_model.h). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "infer/text_model.h"
#include "model/forms.h"

/* One block with the tokens of all texts. Pointers into it are made only once it is complete, since it moves as it grows. */
struct id_block {
	int32_t *ids;
	int64_t count, capacity;
};

static enum status append_ids(struct id_block *block, const int32_t *ids, int64_t count)
{
	TRY(memory_grow(&block->ids, &block->capacity, block->count + count, sizeof *block->ids, "the tokens of texts"));
	if (count > 0)
		memcpy(block->ids + block->count, ids, (size_t)count * sizeof *ids);
	block->count += count;
	return OK;
}

static enum status too_long(int64_t number, int64_t tokens, int32_t longest)
{
	return error_set(ERR_DATA, "text %lld has %lld tokens, but the model takes at most %d", (long long)number + 1,
			 (long long)tokens, longest);
}

/* Ids must be valid for this model and complete: another tokenizer's ids would stand for a text that nobody wrote. */
static enum status check_ids(const struct text_model *model, const struct text_input *input, int64_t number)
{
	const struct vocab *vocab = &model->session.tokenizer.vocab;
	if (input->id_count > model->longest)
		return too_long(number, input->id_count, model->longest);
	for (int64_t i = 0; i < input->id_count; i++)
		if (input->ids[i] < 0 || input->ids[i] >= vocab->count)
			return error_set(ERR_DATA, "text %lld has a token id %d, and the vocabulary has %d entries",
					 (long long)number + 1, input->ids[i], vocab->count);
	const struct token_template *template = &vocab->single;
	int32_t special = template_size(template), before = template->before;
	bool whole = input->id_count >= special && memcmp(input->ids, template->ids, (size_t)before * sizeof *input->ids) == 0 &&
		     memcmp(input->ids + input->id_count - template->after, template->ids + before,
			    (size_t) template->after * sizeof *input->ids) == 0;
	if (!whole)
		return error_set(ERR_DATA,
				 "text %lld: token ids must be those of this model's own tokenizer, from %s (%d) to %s (%d)",
				 (long long)number + 1, vocab->text[template->ids[0]], template->ids[0],
				 vocab->text[template->ids[special - 1]], template->ids[special - 1]);
	return OK;
}

/* Appends a text with its special tokens, cut to the model's length if that is allowed. */
static enum status append_text(struct id_block *block, const struct text_model *model, const int32_t *ids, int64_t count,
			       int64_t number, const struct encoding_rules *rules)
{
	const struct vocab *vocab = &model->session.tokenizer.vocab;
	const struct token_template *template = &vocab->single;
	int64_t room = model->longest - template_size(template), cut = count > room ? count - room : 0;
	if (cut > 0 && !rules->truncates)
		return too_long(number, count + template_size(template), model->longest);
	if (rules->cuts_left)
		ids += cut;
	if (count + template_size(template) == 0)
		return append_ids(block, &template->filler, 1);
	TRY(append_ids(block, template->ids, template->before));
	TRY(append_ids(block, ids, count - cut));
	return append_ids(block, template->ids + template->before, template->after);
}

enum status text_model_prompt(const struct text_model *model, const char *name, const char **out)
{
	const struct sentence_folder *sentences = &model->sentences;
	int32_t prompt = sentences->found ? sentences->default_prompt : -1;
	*out = NULL;
	if (name)
		prompt = sentences->found ? sentence_folder_prompt(sentences, name) : -1;
	if (name && prompt < 0)
		return error_set(ERR_USAGE, "the model has no prompt '%.100s'", name);
	if (prompt >= 0)
		*out = sentences->prompts[prompt].text;
	return OK;
}

/* Tokenizes the prompt and the text as one string. */
static enum status tokenize_prompted(const struct text_model *model, const char *prompt, const char *text, struct tokens *tokens)
{
	struct buffer joined = {0};
	enum status status;
	tokens_clear(tokens);
	if (!prompt)
		return tokenizer_encode(model->plain, text, strlen(text), tokens);
	buffer_text(&joined, prompt);
	buffer_text(&joined, text);
	TRY_GOTO(buffer_status(&joined), done);
	status = tokenizer_encode(model->plain, joined.data, joined.size, tokens);
done:
	buffer_release(&joined);
	return status;
}

static enum status encode_vector(const struct text_model *model, const struct text_input *input, int64_t number,
				 const struct encoding_rules *rules, struct tokens *tokens, struct id_block *block,
				 struct encoder_text *text)
{
	const char *prompt = rules->prompt;
	int64_t before = block->count;
	int32_t before_text = model->session.tokenizer.vocab.single.before;
	if (input->ids) {
		TRY(check_ids(model, input, number));
		TRY(append_ids(block, input->ids, input->id_count));
		text->count = (int32_t)(block->count - before);
		return OK;
	}
	if (prompt && model->sentences.leaves_out_prompt && !rules->pools_prompt) {
		tokens_clear(tokens);
		TRY(tokenizer_encode(model->plain, prompt, strlen(prompt), tokens));
		text->left_out = (int32_t)tokens->count + before_text;
	}
	TRY(tokenize_prompted(model, prompt, input->text, tokens));
	TRY(append_text(block, model, tokens->ids, tokens->count, number, rules));
	text->count = (int32_t)(block->count - before);
	/* Cutting on the left removes the prompt first. */
	int64_t cut = tokens->count + template_size(&model->session.tokenizer.vocab.single) - text->count;
	if (rules->cuts_left && text->left_out > before_text && cut > 0)
		text->left_out = text->left_out - before_text > cut ? text->left_out - (int32_t)cut : before_text;
	/* If the prompt fills the sequence, only its last token is left to pool. */
	if (text->left_out >= text->count)
		text->left_out = text->count - 1;
	return OK;
}

static enum status encode_blanks(const struct text_model *model, const struct text_input *input, int64_t number,
				 struct tokens *tokens, struct id_block *block, struct id_block *rows, struct encoder_text *text)
{
	/* Never truncate: the part cut off might contain the blank. */
	const struct encoding_rules rules = {.truncates = false};
	tokens_clear(tokens);
	TRY(tokenizer_encode(model->blanks, input->text, strlen(input->text), tokens));
	TRY(append_text(block, model, tokens->ids, tokens->count, number, &rules));
	const struct vocab *vocab = &model->session.tokenizer.vocab;
	text->count = (int32_t)tokens->count + template_size(&vocab->single);
	for (int32_t i = 0; i < tokens->count; i++) {
		int32_t row = i + vocab->single.before;
		if (tokens->ids[i] != vocab->mask)
			continue;
		TRY(append_ids(rows, &row, 1));
		text->row_count++;
	}
	return text->row_count > 0 ? OK
				   : error_set(ERR_DATA, "text %lld has no %s", (long long)number + 1,
					       vocab->mask >= 0 ? vocab->text[vocab->mask] : "[MASK]");
}

/* Points the texts into the blocks, which now belong to `out`. */
static void take_blocks(struct encoded_inputs *out, const struct id_block *block, const struct id_block *rows)
{
	const int32_t *ids = block->ids, *row = rows->ids;
	out->ids = block->ids;
	out->rows = rows->ids;
	for (int64_t i = 0; i < out->count; i++) {
		struct encoder_text *text = &out->texts[i];
		text->ids = ids;
		ids += text->count;
		text->rows = text->row_count > 0 ? row : NULL;
		row += text->row_count;
	}
}

/* `rules` NULL: encode for blanks. */
static enum status encode_texts(const struct text_model *model, const struct text_input *inputs, int64_t count,
				const struct encoding_rules *rules, struct encoded_inputs *out)
{
	struct id_block block = {0}, rows = {0};
	struct tokens tokens = {0};
	enum status status = OK;
	TRY(memory_new(&out->texts, count, sizeof *out->texts, "texts"));
	out->count = count;
	for (int64_t i = 0; i < count && status == OK; i++)
		status = rules ? encode_vector(model, &inputs[i], i, rules, &tokens, &block, &out->texts[i])
			       : encode_blanks(model, &inputs[i], i, &tokens, &block, &rows, &out->texts[i]);
	take_blocks(out, &block, &rows);
	tokens_release(&tokens);
	return status;
}

enum status text_model_encode_vectors(const struct text_model *model, const struct text_input *inputs, int64_t count,
				      const struct encoding_rules *rules, struct encoded_inputs *out)
{
	return encode_texts(model, inputs, count, rules, out);
}

enum status text_model_encode_blanks(const struct text_model *model, const struct text_input *inputs, int64_t count,
				     struct encoded_inputs *out)
{
	return encode_texts(model, inputs, count, NULL, out);
}

/* A model can be asked about what it was trained on: single texts or pairs. For models from elsewhere, that is not known. */
static enum status check_pairs(const struct text_model *model, const struct text_input *inputs, int64_t count)
{
	const struct task_state *state = &model->task.state;
	const struct column_choice *trained = &state->settings.trained;
	const struct layout *layout = state->settings.layout;
	bool of_words = state->task->target == TARGET_PARTS && state->task->input == TASK_INPUT_TEXT;
	bool of_passages = model->task.heads.head[0].loss == LOSS_SEGMENT;
	bool known = of_words || of_passages || trained->text || layout;
	if (state->task->input == TASK_INPUT_DIALOGUE) /* earlier turns before a text are optional */
		return OK;
	bool paired = of_passages || (!of_words && (trained->pair || (layout && layout->pair[0])));
	for (int64_t i = 0; known && i < count; i++)
		if ((inputs[i].pair != NULL) != paired)
			return error_set(ERR_DATA, "text %lld: the model is for %s", (long long)i + 1,
					 of_passages ? "questions and the passages that answer them"
					 : paired    ? "pairs of texts"
						     : "single texts, not for pairs");
	return OK;
}

enum status text_model_encode_task(struct text_model *model, const struct text_input *inputs, int64_t count,
				   const struct encoding_rules *rules, struct encoded_inputs *out)
{
	struct task_state *state = &model->task.state;
	struct task_text *texts;
	TRY(check_pairs(model, inputs, count));
	TRY(memory_new(&texts, count, sizeof *texts, "texts"));
	for (int64_t i = 0; i < count; i++)
		texts[i] = (struct task_text){inputs[i].text, inputs[i].pair};
	enum status status = state->task->take(state, &out->set, texts, count);
	free(texts);
	TRY(status);
	status = state->task->encode(state, &out->set);
	/* The question leaves no room for its passage. */
	if (status == ERR_USAGE)
		status = error_set(ERR_DATA, "%s", error_last()->message);
	TRY(status);
	if (out->set.cut_count > 0 && !rules->truncates)
		return error_set(ERR_DATA, "%lld of the texts have more tokens than the %d that the model takes",
				 (long long)out->set.cut_count, model->longest);
	if (out->set.cut_questions > 0 && !rules->truncates)
		return error_set(ERR_DATA, "%lld of the questions have more tokens than the model takes of a question",
				 (long long)out->set.cut_questions);
	if (!model_takes_pairs(&model->session.model->config) && labeled_has_pairs(&out->set.encoded))
		return error_set(ERR_DATA,
				 "the model has one segment type (\"type_vocab_size\") and takes single texts, not pairs");
	out->count = out->set.encoded.sequence_count;
	TRY(memory_new(&out->texts, out->count, sizeof *out->texts, "texts"));
	encoder_texts_of(&out->set.encoded, out->texts);
	return OK;
}

void encoded_inputs_release(const struct text_model *model, struct encoded_inputs *inputs)
{
	if (model->has_task)
		task_set_release(&model->task.state, &inputs->set);
	free(inputs->texts);
	free(inputs->ids);
	free(inputs->rows);
	*inputs = (struct encoded_inputs){0};
}
