/* bertc fill: fills in the blanks of a text with the words that a model predicts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cmd/command.h"
#include "infer/device_options.h"
#include "cmd/saved_models.h"
#include "infer/blanks.h"
#include "infer/line_stream.h"
#include "infer/text_model.h"
#include "text/decode.h"

struct fill_settings {
	const char *model;
	int64_t top_k;
	bool json;
	struct device_options device;
};

#define FIELD(name) offsetof(struct fill_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct fill_settings, member, role, value)

/* clang-format off */
static const struct option fill_options[] = {
	{.group = saved_model_rows, .field = FIELD(model)},
	{ROW(top_k, ROLE_RUN, "K"), .letter = 'k', .range = "1..100", .fallback = "5",
	 .help = "number of words to show for each blank"},
	{ROW(json, ROLE_RUN, NULL), .fallback = "false", .help = "print one JSON object"},
	{.help = "Device"},
	{.group = device_rows, .field = FIELD(device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text fill_text = {
	.name = "fill",
	.synopsis = "--model FOLDER [options] TEXT...",
	.summary = "fill in the blanks of a text",
	.description =
		"Prints the most probable words for each [MASK] (<mask> where that is the model's token for it), with their "
		"probabilities. A TEXT of - reads texts from standard input, one per line.",
	.examples = "bertc fill --model runs/mine \"Paris is the [MASK] of France.\"\tthe five most probable words",
};

/* The texts, answered one after another. */
struct fill {
	const struct fill_settings *settings;
	struct text_model model;
	struct encoder_answers answers;
	struct buffer out;
	struct json_writer writer; /* --json: one object around all answers */
	struct line_stream *lines;
	int64_t count; /* texts so far */
};

static void hint_how_to_ask(const struct fill *fill)
{
	const struct vocab *vocab = &fill->model.session.tokenizer.vocab;
	error_hint("write %s where a word should be filled in, in a text that fits into the model",
		   vocab->mask >= 0 ? vocab->text[vocab->mask] : "[MASK]");
}

/* The encoder's output for a text. */
struct blanks {
	int32_t count, k;
	const int32_t *words;       /* [count][k] */
	const float *probabilities; /* [count][k] */
};

static void put_word(struct buffer *out, const struct vocab *vocab, int32_t id)
{
	struct buffer word = {0};
	const char *shown = TEXT_SHOWN(blank_word(vocab, id, &word));
	buffer_append(out, shown, strlen(shown));
	buffer_release(&word);
}

/* Writes the text with the best word in place of each blank, then the candidates for each blank. */
static void put_person(struct buffer *out, const char *text, const struct vocab *vocab, const struct blanks *blanks)
{
	const char *rest = text, *mask = vocab->text[vocab->mask];
	const int32_t k = blanks->k;
	for (int32_t b = 0; b < blanks->count; b++) {
		const char *blank = strstr(rest, mask);
		if (!blank)
			break;
		buffer_append(out, rest, (size_t)(blank - rest));
		put_word(out, vocab, blanks->words[b * k]);
		rest = blank + strlen(mask);
	}
	buffer_format(out, "%s\n", rest);
	for (int32_t b = 0; b < blanks->count; b++) {
		if (blanks->count > 1)
			buffer_format(out, "  blank %d\n", b + 1);
		for (int32_t i = b * k; i < (b + 1) * k; i++) {
			buffer_format(out, "  %6.2f %%  ", 100.0 * (double)blanks->probabilities[i]);
			put_word(out, vocab, blanks->words[i]);
			buffer_char(out, '\n');
		}
	}
}

static enum status print(struct fill *fill)
{
	TRY(buffer_status(&fill->out));
	if (fwrite(fill->out.data, 1, fill->out.size, stdout) != fill->out.size || fflush(stdout) != 0)
		return command_output_failed();
	buffer_clear(&fill->out);
	return OK;
}

/* Answers texts in memory, all at once. A problem with one is ERR_DATA that names it by its number, counted from 1. */
static enum status fill_texts(struct fill *fill, const struct text_input *inputs, int64_t count)
{
	const struct vocab *vocab = &fill->model.session.tokenizer.vocab;
	const int64_t top = fill->settings->top_k;
	const struct encoder_wish wish = {.answer = ENCODER_WORDS, .k = top < vocab->count ? (int32_t)top : vocab->count};
	struct encoded_inputs encoded = {0};
	enum status status;
	TRY_GOTO(text_model_encode_blanks(&fill->model, inputs, count, &encoded), done);
	TRY_GOTO(encoder_run(fill->model.encoder, &wish, encoded.texts, encoded.count, &fill->answers), done);
	for (int64_t i = 0; i < count; i++) {
		const int64_t first = fill->answers.starts[i];
		const struct blanks blanks = {.count = encoded.texts[i].row_count,
					      .k = wish.k,
					      .words = fill->answers.words + first,
					      .probabilities = fill->answers.values + first};
		if (fill->settings->json)
			blanks_put_json(&fill->writer, inputs[i].text, vocab, blanks.count, blanks.k, blanks.words,
					blanks.probabilities);
		else
			put_person(&fill->out, inputs[i].text, vocab, &blanks);
	}
	fill->count += count;
	status = print(fill);
done:
	encoded_inputs_release(&fill->model, &encoded);
	return status;
}

/* Takes an error about one of several texts apart: returns the text's number, counted from 1 (0: it names none), and the words
 * after "text N". */
static int64_t wrong_text(const char **out_what)
{
	const char *message = error_last()->message;
	char *end;
	long long number = strncmp(message, "text ", 5) == 0 ? strtoll(message + 5, &end, 10) : 0;
	*out_what = number > 0 ? end + strspn(end, " ") : message;
	return number;
}

static enum status no_work(void *context, struct line_chunk *chunk)
{
	(void)context;
	(void)chunk;
	return OK;
}

static enum status check_line(const struct line_chunk *chunk, int64_t i)
{
	const struct line *line = &chunk->lines[i];
	const char *wrong = line->cut                                                  ? "is longer than a text may be"
			    : memchr(chunk->text.data + line->begin, '\0', line->size) ? "holds a NUL"
										       : NULL;
	return wrong ? error_set(ERR_DATA, "line %lld of standard input %s", (long long)(chunk->first_line + i), wrong) : OK;
}

static enum status blame_line(const struct fill *fill, const struct text_input *inputs, const int64_t *numbers, int64_t count)
{
	char message[sizeof(error_last()->message)];
	const char *what;
	int64_t wrong = wrong_text(&what);
	snprintf(message, sizeof message, "%s", what);
	if (wrong < 1 || wrong > count)
		return error_last()->status;
	enum status status = error_set(ERR_DATA, "line %lld of standard input, '%.60s', %.300s", (long long)numbers[wrong - 1],
				       inputs[wrong - 1].text, message);
	hint_how_to_ask(fill);
	return status;
}

/* Answers the lines of a chunk that are not empty. */
static enum status fill_chunk(struct fill *fill, const struct line_chunk *chunk)
{
	struct text_input *inputs = NULL;
	char **copies = NULL;
	int64_t *numbers = NULL, count = 0;
	enum status status = OK;
	TRY_GOTO(memory_new(&inputs, chunk->count, sizeof *inputs, "lines"), done);
	TRY_GOTO(memory_new(&copies, chunk->count, sizeof *copies, "lines"), done);
	TRY_GOTO(memory_new(&numbers, chunk->count, sizeof *numbers, "lines"), done);
	for (int64_t i = 0; i < chunk->count; i++) {
		const struct line *line = &chunk->lines[i];
		if (line->size == 0)
			continue;
		TRY_GOTO(check_line(chunk, i), done);
		TRY_GOTO(memory_new(&copies[count], (int64_t)line->size + 1, 1, "a line"), done);
		memcpy(copies[count], chunk->text.data + line->begin, line->size);
		inputs[count].text = copies[count];
		numbers[count] = chunk->first_line + i;
		count++;
	}
	if (count > 0)
		status = fill_texts(fill, inputs, count);
	if (status == ERR_DATA)
		status = blame_line(fill, inputs, numbers, count);
done:
	for (int64_t i = 0; copies && i < chunk->count; i++)
		free(copies[i]);
	free(copies);
	free(numbers);
	free(inputs);
	return status;
}

#define CHUNK_BYTES ((size_t)64 << 10)
#define CHUNK_LINES 256
#define LONGEST_LINE ((size_t)1 << 20)

/* Answers lines as they arrive, in memory that does not grow with the input. */
static enum status fill_lines(struct fill *fill)
{
	static const char *const path[] = {"-"};
	struct line_chunk *chunk;
	TRY(line_stream_open(&fill->lines, &(struct line_stream_settings){.paths = path,
									  .path_count = 1,
									  .longest_line = LONGEST_LINE,
									  .chunk_bytes = CHUNK_BYTES,
									  .chunk_lines = CHUNK_LINES,
									  .work = no_work}));
	for (;;) {
		TRY(line_stream_next(fill->lines, &chunk));
		if (!chunk)
			return OK;
		TRY(fill_chunk(fill, chunk));
	}
}

static enum status fill_arguments(struct fill *fill, const struct option_list *arguments)
{
	for (int64_t i = 0; i < arguments->count; i++) {
		const char *text = arguments->values[i];
		if (strcmp(text, "-") == 0) {
			TRY(fill_lines(fill));
			line_stream_close(fill->lines);
			fill->lines = NULL;
			continue;
		}
		enum status status = fill_texts(fill, &(struct text_input){.text = text}, 1);
		if (status == ERR_DATA) {
			char message[sizeof(error_last()->message)];
			const char *what;
			wrong_text(&what);
			snprintf(message, sizeof message, "%s", what);
			status = error_set(ERR_USAGE, "'%.60s' %.300s", text, message);
			hint_how_to_ask(fill);
		}
		TRY(status);
	}
	if (fill->count > 0)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "no text to fill in"),
			    "bertc fill --model FOLDER \"Paris is the [MASK] of France.\"");
}

/* A single text costs less than a pass over a full batch; a few hundred lines of standard input make several batches. */
#define BATCH_TOKENS 4096

static enum status open_model(struct fill *fill, struct pool *pool)
{
	const struct text_model_settings settings = {
		.device = fill->settings->device, .batch_tokens = BATCH_TOKENS, .tool = "bertc fill"};
	const char *model = fill->settings->model;
	TRY(session_needs_words(model));
	TRY(text_model_open(&fill->model, model, pool, &settings));
	if (fill->model.fills_blanks)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "'%s' has no head that predicts words", model),
			    "use a pre-trained model (BertForPreTraining, BertForMaskedLM); bertc embed works with this one");
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
	struct fill fill = {.settings = settings};
	struct pool *pool = NULL;
	enum status status;
	fill.writer.out = &fill.out;
	TRY_GOTO(pool_create(&pool, (int)settings->device.threads), done);
	TRY_GOTO(open_model(&fill, pool), done);
	if (settings->json) {
		json_open(&fill.writer, NULL, '{');
		json_open(&fill.writer, "results", '[');
	}
	status = fill_arguments(&fill, &options->positional);
	if (settings->json) { /* after an error, too: the answers until then are complete JSON */
		json_close(&fill.writer);
		json_close(&fill.writer);
		buffer_char(&fill.out, '\n');
		enum status printed = print(&fill);
		status = status == OK ? printed : status;
	}
done:
	line_stream_close(fill.lines);
	encoder_answers_release(&fill.answers);
	text_model_close(&fill.model);
	pool_free(pool);
	buffer_release(&fill.out);
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
