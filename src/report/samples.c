/* Chooses held-out sentences with blanks, has the model fill them at each evaluation, and keeps the answers. */
#include "report/samples.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/pretraining/instances.h"
#include "infer/blanks.h"
#include "model/forms.h"

#define SHORTEST 8 /* fewest tokens that give enough context for a guess */
#define TRIES 4000
#define APART 4 /* minimum distance between blanks, in tokens */

/* Whether a token is a whole word worth guessing: not a piece, number, or punctuation mark. */
static bool is_word(const struct vocab *vocab, const int32_t *ids, int32_t count, int32_t at)
{
	const unsigned char *text = (const unsigned char *)vocab->text[ids[at]];
	if (vocab->is_continuation[ids[at]] || vocab_is_special(vocab, ids[at]) ||
	    (at + 1 < count && vocab->is_continuation[ids[at + 1]]))
		return false;
	if (text[0] >= 0x80)
		return true;
	for (size_t i = 0; text[i]; i++)
		if (!isalpha(text[i]) && text[i] < 0x80)
			return false;
	return strlen((const char *)text) >= 3;
}

/* Chooses the blanks of a sentence at random. False: the sentence is not worth showing. */
static bool choose_blanks(struct sample_sentence *sentence, const struct vocab *vocab, struct rng *rng)
{
	int32_t words = 0, wanted = sentence->count >= 12 ? 2 : 1, taken[SAMPLE_BLANKS];
	for (int32_t i = 0; i < sentence->count; i++) {
		if (sentence->ids[i] == vocab->unk || sentence->ids[i] == vocab->mask)
			return false;
		words += is_word(vocab, sentence->ids, sentence->count, i);
	}
	if (2 * words < sentence->count) /* lists, addresses, formulas */
		return false;
	sentence->blanks = 0;
	for (int try = 0; try < 64 && sentence->blanks < wanted; try++) {
		int32_t at = (int32_t)rng_below(rng, (uint32_t)sentence->count);
		bool fits = is_word(vocab, sentence->ids, sentence->count, at);
		for (int32_t b = 0; b < sentence->blanks; b++)
			fits &= abs(taken[b] - at) >= APART;
		if (fits)
			taken[sentence->blanks++] = at;
	}
	if (sentence->blanks == 2 && taken[0] > taken[1]) {
		int32_t other = taken[0];
		taken[0] = taken[1];
		taken[1] = other;
	}
	for (int32_t b = 0; b < sentence->blanks; b++) {
		sentence->answers[b] = sentence->ids[taken[b]];
		sentence->ids[taken[b]] = vocab->mask;
	}
	return sentence->blanks > 0;
}

static enum status choose_sentences(struct samples *samples, const struct shard *shards, int64_t shard_count,
				    const struct vocab *vocab, int32_t longest)
{
	uint64_t total = 0;
	for (int64_t s = 0; s < shard_count; s++)
		total += (uint64_t)shards[s].sentence_count;
	if (total == 0)
		return OK;
	if (longest > SAMPLE_TOKENS)
		longest = SAMPLE_TOKENS;
	for (uint64_t try = 0; try < TRIES && try < total && samples->count < SAMPLE_SENTENCES; try++) {
		int64_t number = (int64_t)rng_permute(EVALUATION_SEED, RNG_SAMPLE, 0, total, try);
		const struct shard *shard = shards;
		while (number >= shard->sentence_count)
			number -= shard++->sentence_count;
		struct sample_sentence sentence = {.count = shard_length(shard, number)};
		if (sentence.count < SHORTEST || sentence.count > longest)
			continue;
		TRY(shard_tokens(shard, number, 0, sentence.count, vocab->count, sentence.ids));
		struct rng rng = rng_start(EVALUATION_SEED, RNG_SAMPLE, (uint64_t)try + 1);
		if (choose_blanks(&sentence, vocab, &rng))
			samples->sentences[samples->count++] = sentence;
	}
	return OK;
}

static double number(const struct json *object, const char *key)
{
	const struct json *value = json_member(object, key);
	return value && value->kind == JSON_NUMBER ? value->number : 0;
}

/* Reads an evaluation from a line's object. False: it does not match the sentences. */
static bool parse_evaluation(const struct samples *samples, const struct json *line, struct sample_evaluation *out)
{
	*out = (struct sample_evaluation){.step = (int64_t)number(line, "step"), .tokens = (int64_t)number(line, "tokens")};
	const struct json *list = json_member(line, "sentences"), *item = list ? list->first_child : NULL;
	for (int s = 0; s < samples->count; s++, item = item->next) {
		const struct json *blanks = item ? json_member(item, "blanks") : NULL;
		const struct json *blank = blanks ? blanks->first_child : NULL;
		for (int b = 0; b < samples->sentences[s].blanks; b++, blank = blank->next) {
			const struct json *guesses = blank ? json_member(blank, "guesses") : NULL;
			if (!guesses || (int32_t)number(blank, "answer_id") != samples->sentences[s].answers[b])
				return false;
			struct sample_blank *to = &out->blanks[s][b];
			to->place = (int32_t)number(blank, "place");
			to->probability = (float)number(blank, "probability");
			int k = 0;
			for (const struct json *guess = guesses->first_child; guess && k < SAMPLE_SHOWN;
			     guess = guess->next, k++) {
				to->ids[k] = (int32_t)number(guess, "id");
				to->probabilities[k] = (float)number(guess, "probability");
			}
		}
	}
	return samples->count > 0;
}

static enum status keep(struct samples *samples, const struct sample_evaluation *evaluation)
{
	TRY(memory_grow(&samples->evaluations, &samples->evaluation_capacity, samples->evaluation_count + 1, sizeof *evaluation,
			"sample predictions"));
	samples->evaluations[samples->evaluation_count++] = *evaluation;
	return OK;
}

/* Reads back what samples.jsonl holds up to step `last`, and cuts off the rest: a killed run may have evaluated more than it
 * saved. */
static enum status read_earlier(struct samples *samples, int64_t last)
{
	struct buffer text = {0}, kept = {0};
	enum status status;
	if (!file_exists(samples->path))
		return OK;
	TRY_GOTO(file_read(samples->path, (size_t)1 << 32, &text), done);
	const char *line = buffer_string(&text), *end = line + text.size, *newline;
	for (; line < end && (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1) {
		struct json_document document;
		struct sample_evaluation evaluation;
		if (json_parse(&document, samples->path, line, (size_t)(newline - line)) != OK)
			continue;
		bool fits = parse_evaluation(samples, document.root, &evaluation) && evaluation.step <= last;
		json_release(&document);
		if (!fits)
			continue;
		buffer_append(&kept, line, (size_t)(newline - line) + 1);
		TRY_GOTO(keep(samples, &evaluation), done);
	}
	TRY_GOTO(buffer_status(&kept), done);
	if (kept.size != text.size)
		status = file_write(samples->path, buffer_string(&kept), kept.size);
done:
	buffer_release(&text);
	buffer_release(&kept);
	return status;
}

enum status samples_open(struct samples *samples, const char *folder, const struct shard *held_out, int64_t held_out_count,
			 const struct model *model, struct replica *replica, const struct vocab *vocab,
			 const struct report_progress *state)
{
	TRY(path_join(samples->path, folder, "samples.jsonl"));
	int32_t special = template_size(&vocab->single), longest = model_positions(&model->config) - special;
	TRY(choose_sentences(samples, held_out, held_out_count, vocab, longest));
	if (samples->count == 0)
		return OK;
	int32_t room = SAMPLE_TOKENS + special;
	struct batch_capacity capacity = instance_capacity(room, 1, room);
	TRY(activations_create(&samples->activations, model, capacity, room, false));
	TRY(predictor_open(&samples->predictor, model, samples->activations, replica, vocab, room, SAMPLE_RANKS));
	return read_earlier(samples, state->evaluated_step);
}

/* The prediction of one blank, from the predictor's lists. */
static struct sample_blank read_blank(const struct predictor *predictor, int32_t blank, int32_t answer)
{
	struct sample_blank out = {0};
	const int32_t *ids = predictor->ids + (size_t)blank * (size_t)predictor->k;
	const double *probabilities = predictor->probabilities + (size_t)blank * (size_t)predictor->k;
	for (int32_t i = 0; i < predictor->k; i++) {
		if (i < SAMPLE_SHOWN) {
			out.ids[i] = ids[i];
			out.probabilities[i] = (float)probabilities[i];
		}
		if (ids[i] == answer) {
			out.place = i + 1;
			out.probability = (float)probabilities[i];
		}
	}
	return out;
}

static void spell_plain(void *context, const char *text, int32_t id, bool glued)
{
	struct buffer *out = context;
	(void)id;
	if (!glued && out->size > 0)
		buffer_char(out, ' ');
	buffer_text(out, text);
}

static void put_sentence(struct json_writer *writer, const struct vocab *vocab, const struct sample_sentence *sentence,
			 const struct sample_blank *blanks)
{
	struct buffer text = {0};
	samples_spell(vocab, sentence->ids, sentence->count, spell_plain, &text);
	json_open(writer, NULL, '{');
	json_put_text(writer, "text", buffer_string(&text), text.size);
	json_open(writer, "blanks", '[');
	for (int32_t b = 0; b < sentence->blanks; b++) {
		const struct sample_blank *blank = &blanks[b];
		json_open(writer, NULL, '{');
		json_put_string(writer, "answer", blank_word(vocab, sentence->answers[b], &text));
		json_put_integer(writer, "answer_id", sentence->answers[b]);
		json_put_integer(writer, "place", blank->place);
		json_put_float(writer, "probability", blank->probability);
		json_open(writer, "guesses", '[');
		for (int i = 0; i < SAMPLE_SHOWN && i < vocab->count; i++) {
			json_open(writer, NULL, '{');
			json_put_string(writer, "token", blank_word(vocab, blank->ids[i], &text));
			json_put_integer(writer, "id", blank->ids[i]);
			json_put_float(writer, "probability", blank->probabilities[i]);
			json_close(writer);
		}
		json_close(writer);
		json_close(writer);
	}
	json_close(writer);
	json_close(writer);
	buffer_release(&text);
}

enum status samples_evaluate(struct samples *samples, const struct report_progress *state)
{
	struct sample_evaluation evaluation = {.step = state->step, .tokens = state->tokens};
	const struct vocab *vocab = samples->predictor.vocab;
	struct buffer line = {0};
	struct json_writer writer = {.out = &line};
	if (samples->count == 0)
		return OK;
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "tokens", state->tokens);
	json_put_double(&writer, "seconds", state->seconds);
	json_open(&writer, "sentences", '[');
	enum status status = OK;
	for (int s = 0; s < samples->count; s++) {
		const struct sample_sentence *sentence = &samples->sentences[s];
		TRY_GOTO(predictor_fill(&samples->predictor, sentence->ids, sentence->count, "sample"), done);
		for (int32_t b = 0; b < sentence->blanks; b++)
			evaluation.blanks[s][b] = read_blank(&samples->predictor, b, sentence->answers[b]);
		put_sentence(&writer, vocab, sentence, evaluation.blanks[s]);
	}
	json_close(&writer);
	json_close(&writer);
	buffer_char(&line, '\n');
	TRY_GOTO(buffer_status(&line), done);
	TRY_GOTO(keep(samples, &evaluation), done);
	status = file_append_line(samples->path, buffer_string(&line));
done:
	buffer_release(&line);
	return status;
}

void samples_release(struct samples *samples)
{
	predictor_release(&samples->predictor);
	activations_free(samples->activations);
	free(samples->evaluations);
	*samples = (struct samples){0};
}

/* Chinese and Japanese are written without spaces, so none are put between two such characters. */
static bool is_cjk(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	return p[0] >= 0xE3 && p[0] <= 0xE9;
}

void samples_spell(const struct vocab *vocab, const int32_t *ids, int32_t count,
		   void (*put)(void *context, const char *text, int32_t id, bool glued), void *context)
{
	bool is_wordpiece = vocab->prefix[0], glue_next = false, was_cjk = false;
	struct buffer word = {0};
	int quotes = 0;
	for (int32_t i = 0; i < count; i++) {
		const char *text = blank_word(vocab, ids[i], &word);
		bool piece = ids[i] < vocab->count && vocab->is_continuation[ids[i]], cjk = is_cjk(text);
		bool single = text[0] && !text[1];
		bool closes = single && strchr(".,;:!?)]}%'-", text[0]);
		bool opens = single && strchr("([{'-$", text[0]);
		if (single && text[0] == '"') {
			opens = quotes % 2 == 0;
			closes = !opens;
			quotes++;
		}
		/* other tokenizers say of each word whether it follows a space */
		bool attached = is_wordpiece && (glue_next || closes || (cjk && was_cjk));
		put(context, is_wordpiece && piece ? text + strlen(vocab->prefix) : text, ids[i], i == 0 || piece || attached);
		glue_next = opens;
		was_cjk = cjk;
	}
	buffer_release(&word);
}
