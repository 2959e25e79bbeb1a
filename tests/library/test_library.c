/* libbertc as programs use it: through its header and the symbols that the shared object exports. */
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bertc.h"
#include "infer/small_model.h"
#include "test.h"

enum { TEXTS = 3000 };

static const char *const moods[] = {"bad", "so-so", "good"};
static char *many[TEXTS];

static void make_task_model(const char *name, const char *architecture, const struct head *head, const char *problem,
			    const char *const *labels)
{
	struct model_heads heads = {.count = 1, .pooler = head->pooled, .head = {*head}};
	struct task_config task = {0};
	snprintf(heads.architecture, sizeof heads.architecture, "%s", architecture);
	assert_ok(task_config_make(&task, architecture, problem, labels, labels ? head->outputs : 0));
	small_model_write(test_path(name), &heads, &task, NULL, NULL);
	task_config_release(&task);
}

/* Texts of words of the small vocabulary, of unknown words, and of characters of every length. */
static void make_texts(void)
{
	static const char *const rare[] = {"", "übung", "日本", "\xF0\x9F\x98\x80", "[MASK]", "\xFF\xFE", "e\xCC\x81t\xC3\xA9"};
	for (int t = 0; t < TEXTS; t++) {
		struct buffer text = {0};
		struct rng rng = rng_start(11, RNG_TEST, (uint64_t)t);
		int words = (int)rng_below(&rng, 60);
		for (int i = 0; i < words; i++) {
			uint32_t kind = (uint32_t)rng_below(&rng, 12);
			if (kind == 0)
				buffer_format(&text, " %s", rare[rng_below(&rng, 7)]);
			else
				buffer_format(&text, "%sw%c%c%s", i > 0 ? " " : "", 'a' + (int)rng_below(&rng, 2),
					      'a' + (int)rng_below(&rng, 26), kind == 1 ? "," : "");
		}
		many[t] = strdup(buffer_string(&text));
		assert_non_null(many[t]);
		buffer_release(&text);
	}
}

static int setup(void **state)
{
	static const char *const tags[] = {"O", "B-X", "I-X"}, *const one[] = {"LABEL_0"};
	const struct head classes = {.pooled = true, .outputs = 3, .loss = LOSS_CLASSES, .coefficient = 1, .name = "classifier"};
	const struct head number = {.pooled = true, .outputs = 1, .loss = LOSS_SQUARED, .coefficient = 1, .name = "classifier"};
	const struct head words = {
		.input = INPUT_CHOSEN_ROWS, .outputs = 3, .loss = LOSS_CLASSES, .coefficient = 1, .name = "classifier"};
	const struct head spans = {
		.input = INPUT_ALL_ROWS, .outputs = 2, .loss = LOSS_SEGMENT, .coefficient = 1, .name = "qa_outputs"};
	if (test_folder_make(state) != 0)
		return -1;
	small_model_make(test_path("words"), &model_heads_pretraining, NULL, NULL);
	make_task_model("mood", "BertForSequenceClassification", &classes, "single_label_classification", moods);
	make_task_model("number", "BertForSequenceClassification", &number, "regression", one);
	make_task_model("tags", "BertForTokenClassification", &words, NULL, tags);
	make_task_model("squad", "BertForQuestionAnswering", &spans, NULL, NULL);
	make_texts();
	return 0;
}

static int teardown(void **state)
{
	for (int t = 0; t < TEXTS; t++)
		free(many[t]);
	return test_folder_drop(state);
}

#define assert_bertc(call)                                                                                                       \
	do {                                                                                                                     \
		bertc_error e_ = {0};                                                                                            \
		bertc_error *error = &e_;                                                                                        \
		if ((call) != BERTC_OK)                                                                                          \
			fail_msg("%s: %s (%s)", #call, e_.message, e_.hint);                                                     \
		assert_int_equal(e_.status, BERTC_OK);                                                                           \
	} while (0)

/* The call must fail with this status, and with these words in its message. */
#define assert_refused(wanted, words, call)                                                                                      \
	do {                                                                                                                     \
		bertc_error e_ = {0};                                                                                            \
		bertc_error *error = &e_;                                                                                        \
		bertc_status got_ = (call);                                                                                      \
		if (got_ != (wanted) || e_.status != (wanted) || !strstr(e_.message, words))                                     \
			fail_msg("%s: status %d, '%s'", #call, (int)got_, e_.message);                                           \
	} while (0)

static bertc_tokenizer *open_tokenizer(int threads)
{
	bertc_tokenizer *tokenizer;
	const bertc_tokenizer_options options = {.size = sizeof options, .threads = threads};
	assert_bertc(bertc_tokenizer_open(test_path("words"), &options, &tokenizer, error));
	return tokenizer;
}

/* In fp32, so that it runs on any machine. */
static bertc_model *open_model(const char *name)
{
	bertc_model *model;
	const bertc_model_options options = {
		.size = sizeof options, .device = "cpu", .precision = "fp32", .threads = 2, .batch_tokens = 300};
	assert_bertc(bertc_model_open(test_path(name), &options, &model, error));
	return model;
}

/* ---- Tokenizer ---- */

static void assert_ids(const bertc_tokens *tokens, int64_t text, const int32_t *ids, int64_t count)
{
	const int64_t *starts = bertc_tokens_starts(tokens);
	assert_int_equal(starts[text + 1] - starts[text], count);
	assert_memory_equal(bertc_tokens_ids(tokens) + starts[text], ids, (size_t)count * sizeof *ids);
}

static void texts_become_ids(void **state)
{
	bertc_tokenizer *tokenizer = open_tokenizer(1);
	bertc_tokens *tokens;
	/* wai is 8, waj 9: the entries of small_model.h. */
	const char *const texts[] = {"WAI waj.", "", "wai [MASK] \xFF waj"}, *const pairs[] = {"waj, wai wai", NULL, "wba"};
	const int32_t first[] = {2, 8, 9, 5, 3}, second[] = {2, 3}, third[] = {2, 8, 4, 9, 3};
	const int32_t pair[] = {2, 8, 9, 5, 3, 9, 6, 8, 8, 3}, cut[] = {2, 8, 9, 3, 9, 6, 3};
	const int8_t types[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
	assert_bertc(bertc_tokenizer_encode(tokenizer, texts, NULL, 3, NULL, &tokens, error));
	assert_int_equal(bertc_tokens_count(tokens), 3);
	assert_ids(tokens, 0, first, 5);
	assert_ids(tokens, 1, second, 2);
	assert_ids(tokens, 2, third, 5);
	assert_null(bertc_tokens_types(tokens));
	assert_null(bertc_tokens_offsets(tokens));
	bertc_tokens_free(tokens);
	assert_bertc(bertc_tokenizer_encode(tokenizer, texts, pairs, 3, NULL, &tokens, error));
	assert_ids(tokens, 0, pair, 10);
	assert_ids(tokens, 1, second, 2);
	assert_memory_equal(bertc_tokens_types(tokens), types, sizeof types);
	bertc_tokens_free(tokens);
	bertc_encode_options options = {.size = sizeof options, .max_length = 7};
	assert_bertc(bertc_tokenizer_encode(tokenizer, texts, pairs, 1, &options, &tokens, error));
	assert_ids(tokens, 0, cut, 7);
	bertc_tokens_free(tokens);
	options = (bertc_encode_options){.size = sizeof options, .max_length = 2, .no_special_tokens = 1};
	assert_bertc(bertc_tokenizer_encode(tokenizer, texts, NULL, 2, &options, &tokens, error));
	assert_ids(tokens, 0, first + 1, 2);
	assert_ids(tokens, 1, NULL, 0);
	bertc_tokens_free(tokens);
	assert_bertc(bertc_tokenizer_encode(tokenizer, NULL, NULL, 0, NULL, &tokens, error));
	assert_int_equal(bertc_tokens_count(tokens), 0);
	assert_non_null(bertc_tokens_ids(tokens));
	bertc_tokens_free(tokens);
	assert_int_equal(bertc_tokenizer_vocabulary_size(tokenizer), SMALL_VOCAB);
	assert_string_equal(bertc_tokenizer_token(tokenizer, 4), "[MASK]");
	assert_null(bertc_tokenizer_token(tokenizer, SMALL_VOCAB));
	assert_int_equal(bertc_tokenizer_id(tokenizer, "waj"), 9);
	assert_int_equal(bertc_tokenizer_id(tokenizer, "nothing"), -1);
	bertc_tokenizer_close(tokenizer);
}

static void offsets_count_bytes_or_characters(void **state)
{
	bertc_tokenizer *tokenizer = open_tokenizer(1);
	bertc_tokens *tokens;
	const char *const text = "é wai 日\xF0\x9F\x98\x80 waj";
	const uint32_t bytes[] = {0, 0, 0, 2, 3, 6, 7, 10, 10, 14, 15, 18, 0, 0};
	const uint32_t characters[] = {0, 0, 0, 1, 2, 5, 6, 7, 7, 8, 9, 12, 0, 0};
	bertc_encode_options options = {.size = sizeof options, .offsets = BERTC_OFFSETS_BYTES};
	assert_bertc(bertc_tokenizer_encode(tokenizer, &text, NULL, 1, &options, &tokens, error));
	assert_int_equal(bertc_tokens_starts(tokens)[1], 7);
	assert_memory_equal(bertc_tokens_offsets(tokens), bytes, sizeof bytes);
	bertc_tokens_free(tokens);
	options.offsets = BERTC_OFFSETS_CHARACTERS;
	assert_bertc(bertc_tokenizer_encode(tokenizer, &text, NULL, 1, &options, &tokens, error));
	assert_memory_equal(bertc_tokens_offsets(tokens), characters, sizeof characters);
	bertc_tokens_free(tokens);
	bertc_tokenizer_close(tokenizer);
}

/* Many texts, one at a time: the same tokens as on several threads at once. */
static bertc_tokens *encode_many(const bertc_tokenizer *tokenizer, const char *const *pairs)
{
	bertc_tokens *tokens;
	const bertc_encode_options options = {.size = sizeof options, .max_length = 40, .offsets = BERTC_OFFSETS_CHARACTERS};
	assert_bertc(bertc_tokenizer_encode(tokenizer, (const char *const *)many, pairs, TEXTS, &options, &tokens, error));
	return tokens;
}

static void assert_same_tokens(const bertc_tokens *a, const bertc_tokens *b)
{
	int64_t count = bertc_tokens_starts(a)[TEXTS];
	assert_memory_equal(bertc_tokens_starts(a), bertc_tokens_starts(b), (TEXTS + 1) * sizeof(int64_t));
	assert_memory_equal(bertc_tokens_ids(a), bertc_tokens_ids(b), (size_t)count * sizeof(int32_t));
	assert_memory_equal(bertc_tokens_offsets(a), bertc_tokens_offsets(b), 2 * (size_t)count * sizeof(uint32_t));
}

static void many_threads_make_the_same_ids(void **state)
{
	const char *pairs[TEXTS];
	for (int t = 0; t < TEXTS; t++)
		pairs[t] = many[TEXTS - 1 - t];
	for (int with_pairs = 0; with_pairs < 2; with_pairs++) {
		bertc_tokenizer *one = open_tokenizer(1), *four = open_tokenizer(4);
		bertc_tokens *alone = encode_many(one, with_pairs ? pairs : NULL);
		bertc_tokens *together = encode_many(four, with_pairs ? pairs : NULL);
		assert_same_tokens(alone, together);
		bertc_tokens_free(alone);
		bertc_tokens_free(together);
		bertc_tokenizer_close(one);
		bertc_tokenizer_close(four);
	}
}

static void ids_become_text(void **state)
{
	bertc_tokenizer *tokenizer = open_tokenizer(1);
	const int32_t ids[] = {2, 8, 7, 9, 5, 3}, wrong[] = {2, SMALL_VOCAB};
	char *text;
	assert_bertc(bertc_tokenizer_decode(tokenizer, ids, 6, 1, &text, error));
	assert_string_equal(text, "wais waj.");
	bertc_free(text);
	assert_bertc(bertc_tokenizer_decode(tokenizer, ids, 6, 0, &text, error));
	assert_string_equal(text, "[CLS] wais waj. [SEP]");
	bertc_free(text);
	assert_refused(BERTC_ERROR_USAGE, "ids[1] is 60", bertc_tokenizer_decode(tokenizer, wrong, 2, 0, &text, error));
	assert_null(text);
	bertc_tokenizer_close(tokenizer);
}

/* ---- Models ---- */

static void a_model_says_what_it_is(void **state)
{
	bertc_model *words = open_model("words"), *mood = open_model("mood"), *tags = open_model("tags"),
		    *number = open_model("number");
	assert_null(bertc_model_task(words));
	assert_int_equal(bertc_model_hidden_size(words), SMALL_HIDDEN);
	assert_int_equal(bertc_model_embedding_size(words), SMALL_HIDDEN);
	assert_int_equal(bertc_model_max_length(words), SMALL_POSITIONS);
	assert_int_equal(bertc_model_score_count(words), 0);
	assert_non_null(strstr(bertc_model_description(words), "fp32"));
	assert_string_equal(bertc_model_task(mood), "classification");
	assert_int_equal(bertc_model_embedding_size(mood), 0);
	assert_int_equal(bertc_model_label_count(mood), 3);
	assert_int_equal(bertc_model_score_count(mood), 3);
	assert_string_equal(bertc_model_label(mood, 2), "good");
	assert_null(bertc_model_label(mood, 3));
	assert_string_equal(bertc_model_task(tags), "tagging");
	assert_int_equal(bertc_model_score_count(tags), 0);
	assert_string_equal(bertc_model_task(number), "regression");
	assert_int_equal(bertc_model_score_count(number), 1);
	bertc_model_close(words);
	bertc_model_close(mood);
	bertc_model_close(tags);
	bertc_model_close(number);
}

static float *embed_many(bertc_model *model, const bertc_embed_options *options, int64_t count, int64_t width)
{
	float *out = calloc((size_t)(count * width), sizeof *out);
	assert_non_null(out);
	assert_bertc(bertc_model_embed(model, (const char *const *)many, count, options, out, (size_t)(count * width), error));
	return out;
}

/* The default embedding is the mean of the hidden states, which another function returns; and a text alone gives the same
 * bits. */
static void embeddings_are_pooled_states(void **state)
{
	enum { COUNT = 1500 };
	bertc_model *model = open_model("words");
	bertc_states *states;
	float *vectors = embed_many(model, NULL, COUNT, SMALL_HIDDEN), alone[SMALL_HIDDEN];
	assert_bertc(bertc_model_encode(model, (const char *const *)many, COUNT, NULL, &states, error));
	const int64_t *starts = bertc_states_starts(states);
	assert_int_equal(bertc_states_count(states), COUNT);
	for (int t = 0; t < COUNT; t++) {
		int64_t count = starts[t + 1] - starts[t];
		assert_true(count >= 2 && count <= SMALL_POSITIONS);
		assert_int_equal(bertc_states_ids(states)[starts[t]], 2);
		assert_int_equal(bertc_states_ids(states)[starts[t + 1] - 1], 3);
		for (int h = 0; h < SMALL_HIDDEN; h++) {
			double sum = 0;
			for (int64_t i = starts[t]; i < starts[t + 1]; i++)
				sum += bertc_states_values(states)[i * SMALL_HIDDEN + h];
			assert_true(fabs(sum / (double)count - vectors[t * SMALL_HIDDEN + h]) < 1e-5);
		}
		if (t % 100)
			continue;
		assert_bertc(bertc_model_embed(model, (const char *const *)&many[t], 1, NULL, alone, SMALL_HIDDEN, error));
		assert_memory_equal(alone, vectors + t * SMALL_HIDDEN, sizeof alone);
	}
	bertc_states_free(states);
	free(vectors);
	bertc_model_close(model);
}

static void embed_options_are_obeyed(void **state)
{
	bertc_model *model = open_model("words");
	bertc_embed_options options = {.size = sizeof options, .normalize = BERTC_NORMALIZE, .dimensions = 5, .pooling = "cls"};
	bertc_embed_options plain = {.size = sizeof plain, .pooling = "cls"};
	float *cut = embed_many(model, &options, 20, 5), *whole = embed_many(model, &plain, 20, SMALL_HIDDEN);
	for (int t = 0; t < 20; t++) {
		double length = 0;
		for (int i = 0; i < 5; i++)
			length += (double)whole[t * SMALL_HIDDEN + i] * whole[t * SMALL_HIDDEN + i];
		for (int i = 0; i < 5; i++)
			assert_true(fabs(cut[t * 5 + i] - whole[t * SMALL_HIDDEN + i] / sqrt(length)) < 1e-6);
	}
	free(cut);
	free(whole);
	/* A prompt and a text together form one text. */
	const char *const text = "waj wak", *const both = "wai, waj wak";
	float with[SMALL_HIDDEN], wanted[SMALL_HIDDEN];
	options = (bertc_embed_options){.size = sizeof options, .prompt = "wai, "};
	assert_bertc(bertc_model_embed(model, &text, 1, &options, with, SMALL_HIDDEN, error));
	assert_bertc(bertc_model_embed(model, &both, 1, NULL, wanted, SMALL_HIDDEN, error));
	assert_memory_equal(with, wanted, sizeof with);
	bertc_model_close(model);
}

/* A folder whose pooling leaves prompts out; a pooling that is given, as with bertc embed, does not. */
static void a_given_pooling_takes_the_prompt_in(void **state)
{
	enum { TOKENS = 6 }; /* [CLS] wai , waj wak [SEP] */
	const char *const text = "waj wak", *const both = "wai, waj wak";
	const bertc_embed_options options = {.size = sizeof options, .prompt = "wai, "};
	bertc_embed_options given = options;
	bertc_states *states;
	float out[SMALL_HIDDEN];
	small_model_make(test_path("instructed"), &model_heads_none, NULL, NULL);
	put_file("instructed/modules.json",
		 "[{\"idx\": 0, \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"}, "
		 "{\"idx\": 1, \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]");
	assert_ok(folder_make(test_path("instructed/1_Pooling")));
	put_file("instructed/1_Pooling/config.json",
		 "{\"embedding_dimension\": 32, \"pooling_mode\": \"mean\", \"include_prompt\": false}");
	bertc_model *model = open_model("instructed");
	assert_bertc(bertc_model_encode(model, &both, 1, NULL, &states, error));
	const float *rows = bertc_states_values(states);
	assert_int_equal(bertc_states_starts(states)[1], TOKENS);
	for (int way = 0; way < 3; way++) {
		given.pooling = way == 1 ? "mean" : "cls";
		assert_bertc(bertc_model_embed(model, &text, 1, way == 0 ? &options : &given, out, SMALL_HIDDEN, error));
		int first = way == 0 ? 3 : 0, end = way == 2 ? 1 : TOKENS;
		for (int h = 0; h < SMALL_HIDDEN; h++) {
			double sum = 0;
			for (int t = first; t < end; t++)
				sum += rows[t * SMALL_HIDDEN + h];
			assert_true(fabs(sum / (end - first) - out[h]) < 1e-5);
		}
	}
	bertc_states_free(states);
	bertc_model_close(model);
}

static void scores_are_those_of_answers(void **state)
{
	enum { COUNT = 1100 };
	bertc_model *model = open_model("mood");
	bertc_answers *answers;
	float *scores = calloc(3 * COUNT, sizeof *scores), *logits = calloc(3 * COUNT, sizeof *logits);
	const bertc_predict_options raw = {.size = sizeof raw, .raw = 1};
	assert_bertc(bertc_model_scores(model, (const char *const *)many, NULL, COUNT, NULL, scores, 3 * COUNT, error));
	assert_bertc(bertc_model_scores(model, (const char *const *)many, NULL, COUNT, &raw, logits, 3 * COUNT, error));
	assert_bertc(bertc_model_predict(model, (const char *const *)many, NULL, COUNT, NULL, &answers, error));
	assert_int_equal(bertc_answers_count(answers), COUNT);
	for (int t = 0; t < COUNT; t++) {
		struct json_document document;
		int best = 0;
		double sum = 0;
		for (int i = 0; i < 3; i++) {
			best = scores[3 * t + i] > scores[3 * t + best] ? i : best;
			sum += exp(logits[3 * t + i]);
		}
		const char *text = bertc_answers_json(answers, t);
		assert_ok(json_parse(&document, "answer", text, strlen(text)));
		const char *label;
		assert_ok(json_get_string(document.root, "answer", "label", &label));
		assert_string_equal(label, moods[best]);
		const struct json *all = json_member(document.root, "probabilities");
		for (int i = 0; i < 3; i++) {
			double value;
			assert_ok(json_get_number(all, "answer", moods[i], &value));
			assert_true(fabs(value - scores[3 * t + i]) < 1e-6);
			assert_true(fabs(value - exp(logits[3 * t + i]) / sum) < 1e-6);
		}
		json_release(&document);
	}
	assert_null(bertc_answers_json(answers, COUNT));
	bertc_answers_free(answers);
	free(scores);
	free(logits);
	bertc_model_close(model);
}

static void words_and_questions_are_answered(void **state)
{
	bertc_model *tags = open_model("tags"), *squad = open_model("squad"), *number = open_model("number");
	bertc_answers *answers;
	const char *const texts[] = {"wai waj", "", "wak"}, *const passages[] = {"wai. waj wak wal", "wam", "wan wao"};
	float values[3];
	assert_bertc(bertc_model_predict(tags, texts, NULL, 3, NULL, &answers, error));
	assert_int_equal(bertc_answers_count(answers), 3);
	assert_non_null(strstr(bertc_answers_json(answers, 0), "\"tags\""));
	assert_non_null(strstr(bertc_answers_json(answers, 1), "\"tags\":[]"));
	bertc_answers_free(answers);
	assert_bertc(bertc_model_predict(tags, texts + 1, NULL, 1, NULL, &answers, error));
	assert_int_equal(bertc_answers_count(answers), 1);
	bertc_answers_free(answers);
	assert_bertc(bertc_model_predict(squad, texts, passages, 3, NULL, &answers, error));
	assert_non_null(strstr(bertc_answers_json(answers, 2), "\"answer\""));
	bertc_answers_free(answers);
	assert_refused(BERTC_ERROR_DATA, "texts[0]: the model is for questions",
		       bertc_model_predict(squad, texts, NULL, 3, NULL, &answers, error));
	assert_bertc(bertc_model_scores(number, texts, passages, 3, NULL, values, 3, error));
	assert_true(isfinite(values[0]) && values[0] != values[1]);
	bertc_model_close(tags);
	bertc_model_close(squad);
	bertc_model_close(number);
}

/* ---- Misuse ---- */

static void the_tokenizer_refuses_what_is_wrong(void **state)
{
	bertc_tokenizer *tokenizer = open_tokenizer(1), *none = tokenizer;
	bertc_tokens *tokens;
	const char *const texts[] = {"wai", NULL};
	const bertc_tokenizer_options cased = {.size = sizeof cased, .letter_case = BERTC_CASED};
	bertc_encode_options options = {0};
	assert_refused(BERTC_ERROR_USAGE, "path is NULL", bertc_tokenizer_open(NULL, NULL, &none, error));
	assert_null(none);
	assert_refused(BERTC_ERROR_USAGE, "out is NULL", bertc_tokenizer_open("x", NULL, NULL, error));
	assert_refused(BERTC_ERROR_USAGE, "does not exist", bertc_tokenizer_open(test_path("nowhere"), NULL, &none, error));
	assert_refused(BERTC_ERROR_STATE, "cased contradicts", bertc_tokenizer_open(test_path("words"), &cased, &none, error));
	assert_refused(BERTC_ERROR_USAGE, "tokenizer is NULL",
		       bertc_tokenizer_encode(NULL, texts, NULL, 1, NULL, &tokens, error));
	assert_refused(BERTC_ERROR_USAGE, "texts[1] is NULL",
		       bertc_tokenizer_encode(tokenizer, texts, NULL, 2, NULL, &tokens, error));
	assert_refused(BERTC_ERROR_USAGE, "texts is NULL",
		       bertc_tokenizer_encode(tokenizer, NULL, NULL, 2, NULL, &tokens, error));
	assert_refused(BERTC_ERROR_USAGE, "count is -1",
		       bertc_tokenizer_encode(tokenizer, texts, NULL, -1, NULL, &tokens, error));
	assert_refused(BERTC_ERROR_USAGE, "out is NULL", bertc_tokenizer_encode(tokenizer, texts, NULL, 1, NULL, NULL, error));
	assert_refused(BERTC_ERROR_USAGE, "the size of bertc_encode_options is 0",
		       bertc_tokenizer_encode(tokenizer, texts, NULL, 1, &options, &tokens, error));
	options = (bertc_encode_options){.size = sizeof options, .max_length = 1};
	assert_refused(BERTC_ERROR_USAGE, "max_length is 1",
		       bertc_tokenizer_encode(tokenizer, texts, NULL, 1, &options, &tokens, error));
	options = (bertc_encode_options){.size = sizeof options, .offsets = 3};
	assert_refused(BERTC_ERROR_USAGE, "offsets is 3",
		       bertc_tokenizer_encode(tokenizer, texts, NULL, 1, &options, &tokens, error));
	assert_int_equal(bertc_tokenizer_encode(tokenizer, NULL, NULL, 2, NULL, &tokens, NULL), BERTC_ERROR_USAGE);
	/* A caller compiled with an earlier header, and one compiled with a later header. */
	struct {
		bertc_encode_options known;
		int64_t unknown;
	} later = {.known = {.size = sizeof later}};
	options = (bertc_encode_options){.size = offsetof(bertc_encode_options, no_special_tokens), .no_special_tokens = 1};
	assert_bertc(bertc_tokenizer_encode(tokenizer, texts, NULL, 1, &options, &tokens, error));
	assert_int_equal(bertc_tokens_starts(tokens)[1], 3);
	bertc_tokens_free(tokens);
	assert_bertc(bertc_tokenizer_encode(tokenizer, texts, NULL, 1, &later.known, &tokens, error));
	bertc_tokens_free(tokens);
	later.unknown = 1;
	assert_refused(BERTC_ERROR_USAGE, "does not know",
		       bertc_tokenizer_encode(tokenizer, texts, NULL, 1, &later.known, &tokens, error));
	bertc_tokenizer_close(tokenizer);
}

static void a_model_refuses_what_is_wrong(void **state)
{
	bertc_model *words = open_model("words"), *mood = open_model("mood"), *tags = open_model("tags"), *none = words;
	bertc_answers *answers;
	const char *const text = "wai waj";
	float room[SMALL_HIDDEN];
	struct buffer large = {0};
	bertc_model_options options = {.size = sizeof options, .precision = "fp64"};
	assert_refused(BERTC_ERROR_USAGE, "unknown precision 'fp64'",
		       bertc_model_open(test_path("words"), &options, &none, error));
	assert_null(none);
	options = (bertc_model_options){.size = sizeof options, .max_length = 1000};
	assert_refused(BERTC_ERROR_USAGE, "beyond the 48 positions",
		       bertc_model_open(test_path("words"), &options, &none, error));
	assert_refused(BERTC_ERROR_USAGE, "nowhere", bertc_model_open(test_path("nowhere"), NULL, &none, error));
	assert_refused(BERTC_ERROR_USAGE, "model is NULL", bertc_model_embed(NULL, &text, 1, NULL, room, SMALL_HIDDEN, error));
	assert_refused(BERTC_ERROR_USAGE, "out_size is 7", bertc_model_embed(words, &text, 1, NULL, room, 7, error));
	assert_refused(BERTC_ERROR_USAGE, "out is NULL", bertc_model_embed(words, &text, 1, NULL, NULL, SMALL_HIDDEN, error));
	assert_refused(BERTC_ERROR_USAGE, "makes no embeddings", bertc_model_embed(mood, &text, 1, NULL, room, 3, error));
	assert_refused(BERTC_ERROR_USAGE, "not a model for a task",
		       bertc_model_scores(words, &text, NULL, 1, NULL, room, 3, error));
	assert_refused(BERTC_ERROR_USAGE, "no scores of a whole text",
		       bertc_model_scores(tags, &text, NULL, 1, NULL, room, 3, error));
	assert_refused(BERTC_ERROR_USAGE, "not a model for a task",
		       bertc_model_predict(words, &text, NULL, 1, NULL, &answers, error));
	bertc_embed_options embed = {.size = sizeof embed, .pooling = "median"};
	assert_refused(BERTC_ERROR_USAGE, "unknown pooling 'median'",
		       bertc_model_embed(words, &text, 1, &embed, room, SMALL_HIDDEN, error));
	embed = (bertc_embed_options){.size = sizeof embed, .prompt_name = "query"};
	assert_refused(BERTC_ERROR_USAGE, "no prompt 'query'",
		       bertc_model_embed(words, &text, 1, &embed, room, SMALL_HIDDEN, error));
	embed = (bertc_embed_options){.size = sizeof embed, .dimensions = 33};
	assert_refused(BERTC_ERROR_USAGE, "dimensions is 33", bertc_model_embed(words, &text, 1, &embed, room, 33, error));
	/* A text that is too long is truncated, unless truncation is disabled. */
	for (int i = 0; i < 100; i++)
		buffer_text(&large, "wai ");
	const char *const texts[] = {text, buffer_string(&large)};
	float two[2 * SMALL_HIDDEN];
	embed = (bertc_embed_options){.size = sizeof embed, .refuse_long = 1};
	assert_bertc(bertc_model_embed(words, texts, 2, NULL, two, 2 * SMALL_HIDDEN, error));
	assert_refused(BERTC_ERROR_DATA, "texts[1] has 102 tokens",
		       bertc_model_embed(words, texts, 2, &embed, two, 2 * SMALL_HIDDEN, error));
	buffer_release(&large);
	bertc_model_close(words);
	bertc_model_close(mood);
	bertc_model_close(tags);
	bertc_model_close(NULL);
	bertc_tokenizer_close(NULL);
	assert_int_equal(bertc_model_hidden_size(NULL), 0);
	assert_null(bertc_tokens_ids(NULL));
}

static void take_warning(void *context, const char *message)
{
	if (strstr(message, "twice") || strstr(message, "duplicate") || strstr(message, "blank"))
		++*(int *)context;
}

static void warnings_go_to_the_caller(void **state)
{
	static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n\nb\na\n";
	bertc_tokenizer *tokenizer;
	int warnings = 0;
	assert_ok(file_write(test_path("vocab.txt"), vocabulary, strlen(vocabulary)));
	bertc_on_warning(take_warning, &warnings);
	assert_bertc(bertc_tokenizer_open(test_path("vocab.txt"), NULL, &tokenizer, error));
	bertc_on_warning(NULL, NULL);
	assert_true(warnings > 0);
	bertc_tokenizer_close(tokenizer);
}

/* RoBERTa's pairs have four special tokens. */
static void lengths_of_pairs(void **state)
{
	static const char words[] =
		"{\"post_processor\": {\"type\": \"RobertaProcessing\", \"sep\": [\"</s>\", 2], \"cls\": [\"<s>\", 0]},"
		" \"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2,"
		" \"<unk>\": 3, \"<mask>\": 4, \"a\": 5, \"b\": 6}}}";
	const char *const texts[] = {"ab"}, *const pairs[] = {"ba"};
	const int32_t shortest[] = {0, 2, 2, 2};
	bertc_encode_options options = {.size = sizeof options, .max_length = 3};
	bertc_tokenizer *tokenizer;
	bertc_tokens *tokens;
	assert_ok(file_write(test_path("tokenizer.json"), words, strlen(words)));
	assert_bertc(bertc_tokenizer_open(test_path("tokenizer.json"), NULL, &tokenizer, error));
	assert_refused(BERTC_ERROR_USAGE, "no room for 4 special tokens",
		       bertc_tokenizer_encode(tokenizer, texts, pairs, 1, &options, &tokens, error));
	options.max_length = 4;
	assert_bertc(bertc_tokenizer_encode(tokenizer, texts, pairs, 1, &options, &tokens, error));
	assert_ids(tokens, 0, shortest, 4);
	bertc_tokens_free(tokens);
	bertc_tokenizer_close(tokenizer);
}

/* ---- Threads and processes ---- */

struct shared {
	bertc_tokenizer *tokenizer;
	bertc_model *words, *mood;
	const bertc_tokens *tokens;
	const float *vectors, *scores;
};
enum { SHARED_TEXTS = 60 };

static void *use_all(void *context)
{
	const struct shared *shared = context;
	float vectors[SHARED_TEXTS * SMALL_HIDDEN], scores[SHARED_TEXTS * 3];
	bertc_tokens *tokens;
	for (int round = 0; round < 4; round++) {
		tokens = encode_many(shared->tokenizer, NULL);
		assert_same_tokens(tokens, shared->tokens);
		bertc_tokens_free(tokens);
		assert_bertc(bertc_model_embed(shared->words, (const char *const *)many, SHARED_TEXTS, NULL, vectors,
					       SHARED_TEXTS * SMALL_HIDDEN, error));
		assert_memory_equal(vectors, shared->vectors, sizeof vectors);
		assert_bertc(bertc_model_scores(shared->mood, (const char *const *)many, NULL, SHARED_TEXTS, NULL, scores,
						SHARED_TEXTS * 3, error));
		assert_memory_equal(scores, shared->scores, sizeof scores);
		assert_refused(BERTC_ERROR_USAGE, "makes no embeddings",
			       bertc_model_embed(shared->mood, (const char *const *)many, 1, NULL, vectors, 3, error));
	}
	return NULL;
}

static void threads_share_handles(void **state)
{
	enum { THREADS = 4 };
	float scores[SHARED_TEXTS * 3];
	pthread_t threads[THREADS];
	struct shared shared = {.tokenizer = open_tokenizer(2), .words = open_model("words"), .mood = open_model("mood")};
	bertc_tokens *tokens = encode_many(shared.tokenizer, NULL);
	float *vectors = embed_many(shared.words, NULL, SHARED_TEXTS, SMALL_HIDDEN);
	assert_bertc(bertc_model_scores(shared.mood, (const char *const *)many, NULL, SHARED_TEXTS, NULL, scores,
					SHARED_TEXTS * 3, error));
	shared.tokens = tokens;
	shared.vectors = vectors;
	shared.scores = scores;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_all, &shared), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	bertc_tokens_free(tokens);
	free(vectors);
	bertc_tokenizer_close(shared.tokenizer);
	bertc_model_close(shared.words);
	bertc_model_close(shared.mood);
}

/* In the child: 0 if everything is as it should be. */
static int child(bertc_tokenizer *tokenizer, bertc_model *model, const bertc_tokens *expected)
{
	bertc_tokens *tokens;
	bertc_error error;
	const bertc_encode_options options = {.size = sizeof options, .max_length = 40, .offsets = BERTC_OFFSETS_CHARACTERS};
	const char *const text = "wai";
	float vector[SMALL_HIDDEN];
	if (bertc_tokenizer_encode(tokenizer, (const char *const *)many, NULL, TEXTS, &options, &tokens, NULL) != BERTC_OK)
		return 1;
	if (memcmp(bertc_tokens_starts(tokens), bertc_tokens_starts(expected), (TEXTS + 1) * sizeof(int64_t)) != 0)
		return 2;
	bertc_tokens_free(tokens);
	if (bertc_model_embed(model, &text, 1, NULL, vector, SMALL_HIDDEN, &error) != BERTC_ERROR_STATE ||
	    !strstr(error.message, "before fork()"))
		return 3;
	bertc_model_close(model);
	bertc_tokenizer_close(tokenizer);
	return 0;
}

static void a_forked_child_does_not_hang(void **state)
{
	bertc_tokenizer *tokenizer = open_tokenizer(3);
	bertc_model *model = open_model("words");
	bertc_tokens *tokens = encode_many(tokenizer, NULL);
	int status = -1;
	pid_t process = fork();
	assert_true(process >= 0);
	if (process == 0) {
		alarm(60);
		_exit(child(tokenizer, model, tokens));
	}
	assert_int_equal(waitpid(process, &status, 0), process);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	bertc_tokens_free(tokens);
	bertc_tokenizer_close(tokenizer);
	bertc_model_close(model);
}

/* ---- The shared object ---- */

static int run_shell(const char *format, ...)
{
	char command[2048];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(command, sizeof command, format, arguments);
	va_end(arguments);
	return system(command);
}

static void it_shows_its_own_functions_alone(void **state)
{
	const char *build = getenv("BUILD");
	assert_string_equal(bertc_version(), VERSION);
	assert_int_equal(bertc_abi(), BERTC_ABI);
	/* Every symbol is declared in the header, and the other way round. */
	assert_int_equal(
		run_shell("nm -D --defined-only %s/libbertc.so.%d | sed 's/@.*//' | awk '$2 == \"T\" {print $3}' | sort >%s",
			  build ? build : "build", BERTC_ABI, test_path("shown")),
		0);
	assert_int_equal(
		run_shell("grep -oE '^BERTC_API .*bertc_[a-z_]+\\(' include/bertc.h | grep -oE 'bertc_[a-z_]+\\($' | tr -d '(' "
			  "| sort >%s",
			  test_path("declared")),
		0);
	assert_int_equal(run_shell("diff %s/shown %s/declared", test_folder, test_folder), 0);
	assert_int_equal(run_shell("nm -D --defined-only %s/libbertc.so.%d | awk '$2 != \"T\" && $2 != \"A\"' | grep .",
				   build ? build : "build", BERTC_ABI) == 0,
			 0);
}

static void the_header_is_c_and_cpp(void **state)
{
	assert_int_equal(run_shell("echo '#include \"bertc.h\"' | ${CC:-gcc} -std=c99 -Iinclude -Wall -Wextra -Wpedantic -Werror "
				   "-fsyntax-only -x c -"),
			 0);
	assert_int_equal(run_shell("echo '#include \"bertc.h\"' | g++ -std=c++11 -Iinclude -Wall -Wextra -Wpedantic -Werror "
				   "-fsyntax-only -x c++ -"),
			 0);
}

/* The program in docs/library.md, unchanged except for its model, compiled and run. */
static void the_example_of_the_docs_runs(void **state)
{
	const char *build = getenv("BUILD");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* a program without the sanitizer cannot load a library built with it */
#endif
	build = build ? build : "build";
	assert_int_equal(
		run_shell(
			"awk '/^    #include <bertc.h>/ {on = 1} on {print substr($0, 5)} on && /^    }/ {exit}' docs/library.md "
			"| sed 's|runs/mine|%s/words|' >%s",
			test_folder, test_path("example.c")),
		0);
	assert_int_equal(run_shell("${CC:-gcc} -Wall -Wextra -Werror -Iinclude -o %s %s %s/libbertc.so.%d", test_path("example"),
				   test_path("example.c"), build, BERTC_ABI),
			 0);
	assert_int_equal(run_shell("LD_LIBRARY_PATH=%s %s | grep -qE '^-?[0-9]+\\.[0-9]+$'", build, test_path("example")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_become_ids),
		cmocka_unit_test(offsets_count_bytes_or_characters),
		cmocka_unit_test(many_threads_make_the_same_ids),
		cmocka_unit_test(ids_become_text),
		cmocka_unit_test(a_model_says_what_it_is),
		cmocka_unit_test(embeddings_are_pooled_states),
		cmocka_unit_test(embed_options_are_obeyed),
		cmocka_unit_test(a_given_pooling_takes_the_prompt_in),
		cmocka_unit_test(scores_are_those_of_answers),
		cmocka_unit_test(words_and_questions_are_answered),
		cmocka_unit_test(the_tokenizer_refuses_what_is_wrong),
		cmocka_unit_test(a_model_refuses_what_is_wrong),
		cmocka_unit_test(warnings_go_to_the_caller),
		cmocka_unit_test(lengths_of_pairs),
		cmocka_unit_test(threads_share_handles),
		cmocka_unit_test(a_forked_child_does_not_hang),
		cmocka_unit_test(it_shows_its_own_functions_alone),
		cmocka_unit_test(the_header_is_c_and_cpp),
		cmocka_unit_test(the_example_of_the_docs_runs),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
