/* Losses of hidden tokens: each is -log of the probability that the model gives to the token when it, or its whole word,
 * is hidden; with several windows, every token counts once, where it has the most context. */
#include <math.h>
#include "base/memory.h"
#include "infer/small_model.h"
#include "infer/word_losses.h"

static struct session session;
static struct encoder *encoder;

static int setup(void **state)
{
	static const struct session_heads heads = {.heads = &model_heads_words, .missing = MISSING_NOTHING};
	static const struct device_options settings = {.device = DEVICE_CPU, .precision = PRECISION_FP32, .threads = 2};
	if (test_folder_make(state) != 0)
		return -1;
	small_model_make(test_path("model"), &model_heads_pretraining, NULL, NULL);
	assert_ok(session_open_heads(&session, test_path("model"), &settings, &heads,
				     encoder_capacity(heads.heads, 200, SMALL_POSITIONS), SMALL_POSITIONS));
	assert_ok(encoder_open(&encoder, &session));
	return 0;
}

static int teardown(void **state)
{
	encoder_close(encoder);
	session_close(&session);
	return test_folder_drop(state);
}

/* Makes a chunk of these lines. */
static void make_chunk(struct text_chunk *texts, const char *lines, const struct text_settings *settings)
{
	struct line_chunk chunk = {.path = "test", .first_line = 1};
	buffer_text(&chunk.text, lines);
	for (const char *at = lines; *at; at += strcspn(at, "\n") + 1) {
		assert_ok(memory_grow(&chunk.lines, &chunk.capacity, chunk.count + 1, sizeof *chunk.lines, "test"));
		chunk.lines[chunk.count++] = (struct line){.begin = (size_t)(at - lines), .size = strcspn(at, "\n")};
	}
	assert_ok(text_chunk_make(texts, &chunk, settings));
	buffer_release(&chunk.text);
	free(chunk.lines);
}

/* -log p of token `at` of a sequence in which tokens [begin, end) are hidden, from the list of all words. */
static double expected(const struct encoder_text *sequence, int32_t begin, int32_t end, int32_t at)
{
	struct encoder_answers answers = {0};
	int32_t ids[SMALL_POSITIONS];
	memcpy(ids, sequence->ids, (size_t)sequence->count * sizeof *ids);
	for (int32_t i = begin; i < end; i++)
		ids[i] = session.tokenizer.vocab.mask;
	struct encoder_text hidden = *sequence;
	hidden.ids = ids;
	hidden.rows = &at;
	hidden.row_count = 1;
	assert_ok(encoder_run(encoder, &(struct encoder_wish){.answer = ENCODER_WORDS, .k = SMALL_VOCAB}, &hidden, 1, &answers));
	double loss = NAN;
	for (int i = 0; i < SMALL_VOCAB; i++)
		if (answers.words[i] == sequence->ids[at])
			loss = -log((double)answers.values[i]);
	encoder_answers_release(&answers);
	return loss;
}

static void check_short(bool whole_words)
{
	struct word_losses losses = {0};
	struct text_chunk texts = {0};
	struct tokenizer *tokenizer;
	assert_ok(tokenizer_open(&tokenizer, &session.tokenizer.vocab, &session.tokenizer.settings));
	make_chunk(&texts, "wai wajss wak\n\nwais ||| wajs.\n",
		   &(struct text_settings){.tokenizer = tokenizer,
					   .max_seq_length = SMALL_POSITIONS,
					   .long_texts = LONG_STOP,
					   .pair_separator = " ||| "});
	assert_ok(word_losses_compute(&losses, encoder, &texts, &session.tokenizer.vocab, whole_words));
	assert_int_equal(losses.text_count, 3);
	assert_int_equal(losses.texts[0].count, 5);
	assert_int_equal(losses.texts[0].units, whole_words ? 3 : 5);
	assert_int_equal(losses.texts[1].count, 0);
	assert_int_equal(losses.texts[1].units, 0);
	assert_int_equal(losses.texts[2].count, 5);
	assert_int_equal(losses.texts[2].units, whole_words ? 3 : 5);
	/* [CLS] wai waj ##s ##s wak [SEP]; [CLS] wai ##s [SEP] waj ##s . [SEP] */
	static const int32_t words[2][5][3] = {{{1, 2, 1}, {2, 5, 2}, {2, 5, 3}, {2, 5, 4}, {5, 6, 5}},
					       {{1, 3, 1}, {1, 3, 2}, {4, 6, 4}, {4, 6, 5}, {6, 7, 6}}};
	for (int t = 0; t < 2; t++) {
		const struct encoder_text *sequence = &texts.sequences[2 * t];
		for (int i = 0; i < 5; i++) {
			int32_t at = words[t][i][2], begin = whole_words ? words[t][i][0] : at;
			int64_t token = losses.texts[2 * t].first + i;
			assert_int_equal(losses.tokens[token], sequence->ids[at]);
			assert_near(losses.losses[token], expected(sequence, begin, whole_words ? words[t][i][1] : at + 1, at),
				    1e-5);
		}
	}
	word_losses_release(&losses);
	text_chunk_release(&texts);
	tokenizer_close(tokenizer);
}

static void tokens_are_hidden_one_by_one(void **state)
{
	check_short(false);
}

static void words_are_hidden_whole(void **state)
{
	check_short(true);
}

/* 26 tokens in windows of 10 that start 5 tokens apart. */
static void a_token_counts_in_its_best_window(void **state)
{
	struct word_losses losses = {0};
	struct text_chunk texts = {0};
	struct tokenizer *tokenizer;
	assert_ok(tokenizer_open(&tokenizer, &session.tokenizer.vocab, &session.tokenizer.settings));
	const struct text_settings settings = {
		.tokenizer = tokenizer, .max_seq_length = 12, .long_texts = LONG_WINDOWS, .stride = 5};
	char text[256] = "";
	for (int i = 0; i < 23; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "wa%c%s ", 'i' + i % 15, i % 9 == 4 ? "s" : "");
	strcat(text, "\n");
	make_chunk(&texts, text, &settings);
	const struct ready_text *ready = &texts.texts[0];
	int64_t tokens = texts.window_starts[ready->count - 1] + texts.sequences[ready->count - 1].count - 2;
	assert_int_equal(tokens, 26);
	assert_int_equal(ready->count, 5);
	for (int whole = 0; whole < 2; whole++) {
		assert_ok(word_losses_compute(&losses, encoder, &texts, &session.tokenizer.vocab, whole));
		assert_int_equal(losses.texts[0].count, tokens);
		assert_int_equal(losses.texts[0].units, whole ? 23 : 26);
		for (int64_t g = 0; g < tokens && !whole; g++) {
			int32_t best = 0;
			int64_t most = -1;
			for (int32_t w = 0; w < ready->count; w++) {
				int64_t left = g - texts.window_starts[w];
				int64_t right = texts.window_starts[w] + texts.sequences[w].count - 2 - g - 1;
				int64_t around = left < right ? left : right;
				best = around > most ? w : best;
				most = around > most ? around : most;
			}
			int32_t at = (int32_t)(g - texts.window_starts[best]) + 1;
			assert_int_equal(losses.tokens[g], texts.sequences[best].ids[at]);
			assert_near(losses.losses[g], expected(&texts.sequences[best], at, at + 1, at), 1e-5);
		}
	}
	word_losses_release(&losses);
	text_chunk_release(&texts);
	tokenizer_close(tokenizer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_hidden_one_by_one),
		cmocka_unit_test(words_are_hidden_whole),
		cmocka_unit_test(a_token_counts_in_its_best_window),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
