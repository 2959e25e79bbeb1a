/* bertc fill: what a model puts into the blanks of a text. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/saved_models.h"
#include "cmd/device_options.h"
#include "data/pretraining/instances.h"
#include "infer/predictor.h"
#include "infer/session.h"
#include "weights/model_folder.h"

struct fill_settings {
	const char *model;
	int64_t top_k;
	bool json;
	struct device_settings device;
};

#define FIELD(name) offsetof(struct fill_settings, name)

static const struct option fill_options[] = {
	{.name = "model",
	 .type = OPTION_TEXT,
	 .field = FIELD(model),
	 .role = ROLE_PLACE,
	 .value_name = "FOLDER",
	 .help = "run folder, checkpoint, or any BERT's folder or file of weights with configuration and vocabulary beside "
		 "it"},
	{.name = "top_k",
	 .letter = 'k',
	 .type = OPTION_INTEGER,
	 .field = FIELD(top_k),
	 .fallback = "5",
	 .range = "1..100",
	 .role = ROLE_RUN,
	 .value_name = "K",
	 .help = "words shown for each blank"},
	{.name = "json",
	 .type = OPTION_FLAG,
	 .field = FIELD(json),
	 .fallback = "false",
	 .role = ROLE_RUN,
	 .help = "print one JSON object"},
	{.help = "Device"},
	DEVICE_OPTIONS(struct fill_settings, device),
	{.name = NULL},
};

static const struct command_text fill_text = {
	.name = "fill",
	.synopsis = "--model FOLDER [options] TEXT...",
	.summary = "fill in the [MASK] of a text",
	.description = "Prints the most probable words for each [MASK], with their probabilities. A TEXT of - reads texts "
		       "from standard input, one a line.",
	.examples = "bertc fill --model runs/mine \"Paris is the [MASK] of France.\"\tthe five most probable words",
};

/* Prints the text with the best words in place of its blanks, then the candidates of each. */
static void print_person(const char *text, const struct vocab *vocab, int32_t blanks, int32_t k, const int32_t *ids,
			 const double *probabilities)
{
	const char *rest = text;
	for (int32_t b = 0; b < blanks; b++) {
		const char *blank = strstr(rest, "[MASK]");
		if (!blank)
			break;
		printf("%.*s%s", (int)(blank - rest), rest, TEXT_SHOWN(predictor_token(vocab, ids[b * k])));
		rest = blank + strlen("[MASK]");
	}
	printf("%s\n", rest);
	for (int32_t b = 0; b < blanks; b++) {
		if (blanks > 1)
			printf("  blank %d\n", b + 1);
		for (int32_t i = 0; i < k; i++)
			printf("  %6.2f %%  %s\n", 100.0 * probabilities[b * k + i],
			       TEXT_SHOWN(predictor_token(vocab, ids[b * k + i])));
	}
}

static void print_json(struct json_writer *writer, const char *text, const struct vocab *vocab, int32_t blanks, int32_t k,
		       const int32_t *ids, const double *probabilities)
{
	json_open(writer, NULL, '{');
	json_put_string(writer, "text", text);
	json_open(writer, "blanks", '[');
	for (int32_t b = 0; b < blanks; b++) {
		json_open(writer, NULL, '[');
		for (int32_t i = 0; i < k; i++) {
			int32_t id = ids[b * k + i];
			json_open(writer, NULL, '{');
			json_put_string(writer, "token", predictor_token(vocab, id));
			json_put_integer(writer, "id", id);
			json_put_double(writer, "probability", probabilities[b * k + i]);
			json_close(writer);
		}
		json_close(writer);
	}
	json_close(writer);
	json_close(writer);
}

/* Texts from the arguments; "-" stands for the lines of standard input, held in `input`. */
static enum status collect_texts(const struct option_list *arguments, struct buffer *input, struct name_list *texts)
{
	for (int64_t i = 0; i < arguments->count; i++) {
		if (strcmp(arguments->values[i], "-") != 0) {
			TRY(name_list_add(texts, arguments->values[i]));
			continue;
		}
		TRY(file_read("/dev/stdin", (size_t)64 << 20, input));
		char *line = input->data, *end = input->data + input->size;
		while (line < end) {
			char *newline = memchr(line, '\n', (size_t)(end - line));
			if (newline)
				*newline = '\0';
			line[strcspn(line, "\r")] = '\0';
			if (*line)
				TRY(name_list_add(texts, line));
			line = newline ? newline + 1 : end;
		}
	}
	if (texts->count > 0)
		return OK;
	enum status status = error_set(ERR_USAGE, "no text to fill in");
	error_hint("bertc fill --model FOLDER \"Paris is the [MASK] of France.\"");
	return status;
}

static enum status fill_texts(const struct fill_settings *settings, struct session *session, const struct name_list *texts)
{
	struct tokenizer *tokenizer = NULL;
	struct tokens tokens = {0};
	struct predictor predictor = {0};
	struct buffer out = {0};
	struct json_writer writer = {.out = &out};
	const struct vocab *vocab = &session->tokenizer.vocab;
	struct tokenizer_settings tokenizer_settings = session->tokenizer.settings;
	tokenizer_settings.special_tokens = true;
	enum status status;
	TRY_GOTO(tokenizer_open(&tokenizer, vocab, &tokenizer_settings), done);
	TRY_GOTO(predictor_open(&predictor, session->model, session->activations, &session->replica, vocab,
				session->capacity.tokens, (int32_t)settings->top_k),
		 done);
	json_open(&writer, NULL, '{');
	json_open(&writer, "results", '[');
	for (int64_t i = 0; i < texts->count; i++) {
		const char *text = texts->names[i];
		tokens_clear(&tokens);
		TRY_GOTO(tokenizer_encode(tokenizer, text, strlen(text), &tokens), done);
		TRY_GOTO(predictor_fill(&predictor, tokens.ids, tokens.count, text), done);
		if (settings->json)
			print_json(&writer, text, vocab, predictor.blanks, predictor.k, predictor.ids, predictor.probabilities);
		else
			print_person(text, vocab, predictor.blanks, predictor.k, predictor.ids, predictor.probabilities);
	}
	json_close(&writer);
	json_close(&writer);
	TRY_GOTO(buffer_status(&out), done);
	if (settings->json)
		printf("%s\n", buffer_string(&out));
done:
	tokenizer_close(tokenizer);
	tokens_release(&tokens);
	predictor_release(&predictor);
	buffer_release(&out);
	return status;
}

static enum status check_fill(struct options *options)
{
	const struct fill_settings *settings = options->settings;
	TRY(options_require(options, "model", "for instance: bertc fill --model FOLDER \"Paris is the [MASK] of France.\""));
	return saved_model_check(options, settings->model);
}

static enum status run_fill(struct options *options)
{
	const struct fill_settings *settings = options->settings;
	struct buffer input = {0};
	struct name_list texts = {0};
	struct session session = {0};
	struct model_config config;
	enum status status;
	TRY_GOTO(collect_texts(&options->positional, &input, &texts), done);
	TRY_GOTO(session_needs_words(settings->model), done);
	TRY_GOTO(model_folder_config(settings->model, &config), done);
	int32_t length = config.max_position_embeddings;
	TRY_GOTO(session_open(&session, settings->model, &settings->device, instance_capacity(length, 1, length), length), done);
	status = fill_texts(settings, &session, &texts);
	session_close(&session);
done:
	name_list_release(&texts);
	buffer_release(&input);
	return status;
}

const struct command command_fill = {
	.text = &fill_text,
	.options = fill_options,
	.settings_bytes = sizeof(struct fill_settings),
	.check = check_fill,
	.run = run_fill,
	.takes_arguments = true,
};
