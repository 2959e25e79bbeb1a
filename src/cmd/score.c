/* bertc score: how probable a model considers texts, token by token. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cmd/answer_options.h"
#include "cmd/command.h"
#include "cmd/saved_models.h"
#include "infer/word_losses.h"

struct score_settings {
	struct answer_settings answer;
	bool whole_word;
};

#define FIELD(name) offsetof(struct score_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct score_settings, member, role, value)

/* clang-format off */
static const struct option score_options[] = {
	{.help = "Input"},
	{.group = answer_input_rows, .field = FIELD(answer)},
	{.reworded = true, .name = "long_texts", .fallback = "windows"},
	{.help = "Scores"},
	{ROW(whole_word, ROLE_RESULT, NULL), .fallback = "false",
	 .help = "mask all pieces of a word together, and compute the perplexity per word"},
	{.help = "Output"},
	{.group = answer_output_rows, .only = "out fresh", .field = FIELD(answer.output)},
	{.help = "Machine"},
	{.group = answer_output_rows, .only = "micro_batch_tokens", .field = FIELD(answer.output)},
	{.group = device_rows, .field = FIELD(answer.device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text score_text = {
	.name = "score",
	.synopsis = "--model FOLDER [FILE...|-] [options]",
	.summary = "score each token of a text with a masked-word model",
	.description = "Masks each token of a text in turn and asks the model for it: the loss of the token is -log of the "
		       "probability it gets. Prints a JSON object for each text, in the order of the input: {\"tokens\", "
		       "\"losses\", \"sum\", \"pseudo_perplexity\"}, the last being exp of the mean loss. A text of n tokens "
		       "takes as long as n texts. Longer texts than the model can take are split into windows that overlap "
		       "by half; each token is scored in the window where it has the most context.",
	.examples = "bertc score --model runs/mine sentences.txt\thow likely each sentence is\nbertc score --model BERT "
		    "--whole_word sentences.txt --out scores.jsonl\tmask whole words\n",
};

struct score {
	struct answer_model model; /* first, as answer_model_job() asks */
	struct word_losses losses;
	bool whole_word;
};

static void put_text(const struct score *score, const struct text_chunk *texts, int64_t number, struct buffer *out)
{
	const struct ready_text *text = &texts->texts[number];
	const struct text_losses *own = &score->losses.texts[number];
	const struct vocab *vocab = &score->model.session.tokenizer.vocab;
	const double *losses = score->losses.losses + own->first;
	struct json_writer writer = {.out = out};
	double sum = 0;
	json_open(&writer, NULL, '{');
	if (text->id_size > 0) {
		struct buffer id = {0};
		buffer_append(&id, buffer_string(&texts->ids_text) + text->id, text->id_size);
		json_put_written(&writer, "id", buffer_string(&id));
		buffer_release(&id);
	}
	json_open(&writer, "tokens", '[');
	for (int64_t i = 0; i < own->count; i++)
		json_put_string(&writer, NULL, vocab->text[score->losses.tokens[own->first + i]]);
	json_close(&writer);
	json_open(&writer, "losses", '[');
	for (int64_t i = 0; i < own->count; i++) {
		json_put_float(&writer, NULL, (float)losses[i]);
		sum += losses[i];
	}
	json_close(&writer);
	json_put_double(&writer, "sum", sum);
	json_put_double(&writer, "pseudo_perplexity", own->units > 0 ? exp(sum / (double)own->units) : NAN);
	json_close(&writer);
	buffer_char(out, '\n');
}

static enum status answer(void *context, struct line_chunk *chunk, int64_t first, struct buffer *out, int64_t *out_texts)
{
	struct score *score = context;
	const struct text_chunk *texts = chunk->own;
	(void)first;
	TRY(word_losses_compute(&score->losses, score->model.encoder, texts, &score->model.session.tokenizer.vocab,
				score->whole_word));
	for (int64_t i = 0; i < texts->text_count; i++)
		put_text(score, texts, i, out);
	text_counts_add(&score->model.counts, &texts->counts);
	*out_texts = texts->text_count;
	return OK;
}

/* Texts per chunk: each takes as long as hundreds of texts in other commands. */
#define CHUNK_LINES 64

static enum status check_score(struct options *options)
{
	const struct score_settings *settings = options->settings;
	TRY(options_require(options, "model", "for instance: bertc score --model FOLDER sentences.txt"));
	TRY(saved_model_check(options, settings->answer.model));
	return text_arguments_check(options, "bertc score --model FOLDER");
}

static enum status run_score(struct options *options)
{
	static const struct session_heads heads = {.heads = &model_heads_words, .missing = MISSING_NOTHING};
	const struct score_settings *settings = options->settings;
	struct score score = {.whole_word = settings->whole_word};
	struct answer_job job = answer_model_job(&score.model, &settings->answer, "scoring", answer);
	enum status status;
	job.chunk_lines = CHUNK_LINES;
	TRY_GOTO(model_files_look(&score.model.files, settings->answer.model), done);
	TRY_GOTO(session_needs_words(settings->answer.model), done);
	TRY_GOTO(answer_model_open(&score.model, &settings->answer, settings->answer.model, &heads, 0, false, true), done);
	status = answer_model_run(&score.model, &job, options);
done:
	word_losses_release(&score.losses);
	answer_model_close(&score.model);
	return status;
}

const struct command command_score = {
	.text = &score_text,
	.options = score_options,
	.settings_bytes = sizeof(struct score_settings),
	.check = check_score,
	.run = run_score,
	.prints_out = true,
	.takes_arguments = true,
};
