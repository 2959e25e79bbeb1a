/* The core of inference: answers do not depend on the batch; vectors, rows, heads and losses agree with each other and
 * with the reference. */
#include <math.h>
#include "infer/encoder.h"
#include "backend/cpu_bf16.h"
#include "model/pooling.h"
#include "infer/small_model.h"

enum { TEXTS = 41, ROWS = 3 };

static struct model *model; /* the model of the folder, without a device */
static float *slab;
static struct encoder_text texts[TEXTS];

static int setup(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	small_model_make(test_path("model"), &model_heads_pretraining, &model, &slab);
	for (int t = 0; t < TEXTS; t++) {
		struct rng rng = rng_start(7, RNG_TEST, (uint64_t)t);
		int32_t count = t == 5 ? SMALL_POSITIONS : t == 6 ? 2 : 3 + (int32_t)rng_below(&rng, 20);
		int32_t *ids = calloc((size_t)count + 2 * ROWS, sizeof *ids), *rows = ids + count, *words = rows + ROWS;
		assert_non_null(ids);
		for (int32_t i = 0; i < count; i++)
			ids[i] = 4 + (int32_t)rng_below(&rng, SMALL_VOCAB - 4);
		texts[t] = (struct encoder_text){.ids = ids, .count = count, .rows = rows, .words = words};
		texts[t].second = t % 3 == 0 && count > 4 ? count / 2 : 0;
		texts[t].row_count = t % 4 == 3 ? 0 : count < ROWS ? 1 : ROWS;
		for (int32_t r = 0; r < texts[t].row_count; r++) {
			rows[r] = r;
			words[r] = 4 + (int32_t)rng_below(&rng, SMALL_VOCAB - 4);
		}
	}
	return 0;
}

static int teardown(void **state)
{
	for (int t = 0; t < TEXTS; t++)
		free((void *)(uintptr_t)texts[t].ids);
	model_free(model);
	free(slab);
	return test_folder_drop(state);
}

static void open_session(struct session *session, const struct model_heads *heads, const char *device, const char *precision,
			 int64_t tokens)
{
	const struct session_heads with = {.heads = heads, .missing = MISSING_HEADS};
	struct device_options settings = {.device = (unsigned)option_word(DEVICE_WORDS, device),
					  .precision = (unsigned)option_word(PRECISION_WORDS, precision),
					  .threads = 2};
	assert_ok(session_open_heads(session, test_path("model"), &settings, &with,
				     encoder_capacity(heads, tokens, SMALL_POSITIONS), SMALL_POSITIONS));
}

static bool has_int8(void)
{
	struct session session;
	const struct session_heads with = {.heads = &model_heads_encoder, .missing = MISSING_HEADS};
	struct device_options settings = {.device = DEVICE_CPU, .precision = PRECISION_INT8, .threads = 1};
	enum status status = session_open_heads(&session, test_path("model"), &settings, &with,
						encoder_capacity(&model_heads_encoder, 64, 8), 8);
	if (status == OK)
		session_close(&session);
	return status == OK;
}

/* Precisions that a device cannot compute in are refused, not replaced by something else. */
static void unknown_precisions_are_refused(void **state)
{
	struct session session;
	const struct session_heads with = {.heads = &model_heads_encoder, .missing = MISSING_HEADS};
	struct device_options settings = {.device = DEVICE_CPU, .precision = PRECISION_FP8, .threads = 1};
	assert_error(ERR_USAGE, "no FP8",
		     session_open_heads(&session, test_path("model"), &settings, &with,
					encoder_capacity(&model_heads_encoder, 64, 8), 8));
	settings.precision = PRECISION_TF32;
	assert_error(ERR_USAGE, "no TF32",
		     session_open_heads(&session, test_path("model"), &settings, &with,
					encoder_capacity(&model_heads_encoder, 64, 8), 8));
}

static const int32_t two_layers[] = {SMALL_LAYERS, 1}, embedded[] = {0};

static const struct encoder_wish wishes[] = {
	{.answer = ENCODER_VECTORS, .pooling = POOLING_MEAN},
	{.answer = ENCODER_VECTORS,
	 .pooling = (1 << POOLING_MODES) - 1,
	 .normalize = true,
	 .layers = two_layers,
	 .layer_count = 2},
	{.answer = ENCODER_ROWS},
	{.answer = ENCODER_ROWS, .layers = embedded, .layer_count = 1},
	{.answer = ENCODER_HEAD, .head = 1},
	{.answer = ENCODER_LOSSES},
	{.answer = ENCODER_WORDS, .k = 7},
};

/* Each text alone, and all texts together in batches of a few: the same bits. */
static void check_alone(const char *precision)
{
	struct session session;
	struct encoder *encoder;
	struct encoder_answers all = {0}, one = {0};
	open_session(&session, &model_heads_pretraining, "cpu", precision, 100);
	assert_ok(encoder_open(&encoder, &session));
	for (size_t w = 0; w < sizeof wishes / sizeof wishes[0]; w++) {
		assert_ok(encoder_run(encoder, &wishes[w], texts, TEXTS, &all));
		assert_int_equal(all.count, TEXTS);
		for (int t = TEXTS - 1; t >= 0; t--) {
			assert_ok(encoder_run(encoder, &wishes[w], &texts[t], 1, &one));
			size_t size = (size_t)(all.starts[t + 1] - all.starts[t]);
			assert_int_equal(one.starts[1], size);
			assert_memory_equal(one.values, all.values + all.starts[t], size * sizeof(float));
			if (wishes[w].answer == ENCODER_WORDS)
				assert_memory_equal(one.words, all.words + all.starts[t], size * sizeof(int32_t));
		}
	}
	encoder_answers_release(&all);
	encoder_answers_release(&one);
	encoder_close(encoder);
	session_close(&session);
}

static void an_answer_does_not_depend_on_its_batch(void **state)
{
	check_alone("fp32");
	if (has_int8())
		check_alone("int8");
}

static void nor_does_one_in_bf16(void **state)
{
	if (!cpu_computes_bf16())
		skip();
	check_alone("bf16");
}

static const float *parameter(const char *name)
{
	int64_t i = model_find_parameter(model, name);
	assert_true(i >= 0);
	return slab + model->parameters[i].offset;
}

/* The first row after a linear layer with tanh: the pooler, by its definition. */
static double pooled_number(const float *row, int column)
{
	const float *w = parameter("bert.pooler.dense.weight"), *b = parameter("bert.pooler.dense.bias");
	double sum = (double)b[column];
	for (int i = 0; i < SMALL_HIDDEN; i++)
		sum += (double)w[column * SMALL_HIDDEN + i] * (double)row[i];
	return tanh(sum);
}

static void answers_agree_with_each_other(void **state)
{
	struct session session, pooler;
	struct encoder *encoder, *of_pooler;
	struct encoder_answers rows = {0}, first = {0}, vectors = {0}, losses = {0}, words = {0}, pooled = {0};
	const int32_t first_layer[] = {1};
	open_session(&session, &model_heads_pretraining, "cpu", "fp32", 100);
	open_session(&pooler, &model_heads_pooler, "cpu", "fp32", 100);
	assert_ok(encoder_open(&encoder, &session));
	assert_ok(encoder_open(&of_pooler, &pooler));
	assert_ok(encoder_run(encoder, &(struct encoder_wish){.answer = ENCODER_ROWS}, texts, TEXTS, &rows));
	assert_ok(encoder_run(encoder, &(struct encoder_wish){.answer = ENCODER_ROWS, .layers = first_layer, .layer_count = 1},
			      texts, TEXTS, &first));
	assert_ok(encoder_run(
		encoder,
		&(struct encoder_wish){
			.answer = ENCODER_VECTORS, .pooling = POOLING_MEAN | POOLING_CLS, .layers = two_layers, .layer_count = 2},
		texts, TEXTS, &vectors));
	assert_ok(encoder_run(encoder, &(struct encoder_wish){.answer = ENCODER_LOSSES}, texts, TEXTS, &losses));
	assert_ok(encoder_run(encoder, &(struct encoder_wish){.answer = ENCODER_WORDS, .k = SMALL_VOCAB}, texts, TEXTS, &words));
	assert_ok(encoder_run(of_pooler, &(struct encoder_wish){.answer = ENCODER_HEAD}, texts, TEXTS, &pooled));
	for (int t = 0; t < TEXTS; t++) {
		const float *vector = vectors.values + vectors.starts[t], *last = rows.values + rows.starts[t];
		assert_int_equal(rows.starts[t + 1] - rows.starts[t], texts[t].count * SMALL_HIDDEN);
		for (int c = 0; c < SMALL_HIDDEN; c++) {
			double mean = 0, mean_of_first = 0;
			for (int i = 0; i < texts[t].count; i++) {
				mean += (double)last[i * SMALL_HIDDEN + c] / texts[t].count;
				mean_of_first += (double)first.values[first.starts[t] + i * SMALL_HIDDEN + c] / texts[t].count;
			}
			assert_near((double)vector[c], (double)last[c], 0); /* CLS lies first */
			assert_near((double)vector[SMALL_HIDDEN + c], mean, 1e-6);
			assert_near((double)vector[3 * SMALL_HIDDEN + c], mean_of_first, 1e-6);
			assert_near((double)pooled.values[pooled.starts[t] + c], pooled_number(last, c), 1e-6);
		}
		for (int r = 0; r < texts[t].row_count; r++) {
			const int64_t list = words.starts[t] + r * SMALL_VOCAB;
			double all = 0, hidden = 0;
			for (int i = 0; i < SMALL_VOCAB; i++) {
				all += (double)words.values[list + i];
				assert_true(i == 0 || words.values[list + i] <= words.values[list + i - 1]);
				if (words.words[list + i] == texts[t].words[r])
					hidden = (double)words.values[list + i];
			}
			assert_near(all, 1, 1e-5);
			assert_near((double)losses.values[losses.starts[t] + r], -log(hidden), 1e-5);
		}
	}
	struct encoder_answers *const lists[] = {&rows, &first, &vectors, &losses, &words, &pooled};
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
		encoder_answers_release(lists[i]);
	encoder_close(encoder);
	encoder_close(of_pooler);
	session_close(&session);
	session_close(&pooler);
}

static void answers_are_those_of_the_reference(void **state)
{
	static const char *const devices[] = {"cpu", "ref"};
	struct session session[2];
	struct encoder *encoder[2];
	struct encoder_answers answers[2] = {{0}};
	for (int d = 0; d < 2; d++) {
		open_session(&session[d], &model_heads_pretraining, devices[d], "fp32", 100);
		assert_ok(encoder_open(&encoder[d], &session[d]));
	}
	for (size_t w = 0; w < sizeof wishes / sizeof wishes[0]; w++) {
		for (int d = 0; d < 2; d++)
			assert_ok(encoder_run(encoder[d], &wishes[w], texts, TEXTS, &answers[d]));
		for (int64_t i = 0; i < answers[0].starts[TEXTS]; i++)
			assert_near((double)answers[0].values[i], (double)answers[1].values[i], 2e-5);
	}
	for (int d = 0; d < 2; d++) {
		encoder_answers_release(&answers[d]);
		encoder_close(encoder[d]);
		session_close(&session[d]);
	}
}

static void sessions_share_a_pool(void **state)
{
	struct pool *pool;
	struct session sessions[2];
	struct encoder *encoders[2];
	struct encoder_answers answers[2] = {{0}};
	const struct session_heads heads = {.heads = &model_heads_encoder, .missing = MISSING_NOTHING};
	const struct device_options settings = {.device = DEVICE_CPU, .precision = PRECISION_FP32};
	assert_ok(pool_create(&pool, 2));
	for (int s = 0; s < 2; s++) {
		assert_ok(session_open_on(&sessions[s], pool, test_path("model"), &settings, &heads,
					  encoder_capacity(heads.heads, 64, SMALL_POSITIONS), SMALL_POSITIONS));
		assert_ok(encoder_open(&encoders[s], &sessions[s]));
	}
	for (int s = 0; s < 2; s++)
		assert_ok(encoder_run(encoders[s], &wishes[0], texts, TEXTS, &answers[s]));
	assert_memory_equal(answers[0].values, answers[1].values, (size_t)answers[0].starts[TEXTS] * sizeof(float));
	for (int s = 0; s < 2; s++) {
		encoder_answers_release(&answers[s]);
		encoder_close(encoders[s]);
		session_close(&sessions[s]);
	}
	pool_free(pool);
}

static void texts_that_do_not_fit_are_refused(void **state)
{
	struct session session;
	struct encoder *encoder;
	struct encoder_answers answers = {0};
	int32_t ids[SMALL_POSITIONS + 1] = {2, 8, 3};
	struct encoder_text pair[] = {{.ids = ids, .count = 3}, {.ids = ids, .count = SMALL_POSITIONS + 1}};
	open_session(&session, &model_heads_pretraining, "cpu", "fp32", 1000);
	assert_ok(encoder_open(&encoder, &session));
	assert_error(ERR_USAGE, "text 2 has 49 tokens, but the model takes at most 48",
		     encoder_run(encoder, &wishes[0], pair, 2, &answers));
	pair[1].count = 3;
	assert_ok(encoder_run(encoder, &wishes[0], pair, 2, &answers));
	ids[1] = SMALL_VOCAB;
	assert_error(ERR_USAGE, "text 1 has the token id 60", encoder_run(encoder, &wishes[0], pair, 2, &answers));
	assert_ok(encoder_run(encoder, &wishes[0], pair, 0, &answers));
	assert_int_equal(answers.count, 0);
	encoder_answers_release(&answers);
	encoder_close(encoder);
	session_close(&session);
}

/* Four rows of two numbers; expected values by the definitions. */
static void rows_are_pooled_as_defined(void **state)
{
	static const float rows[] = {1, -4, 3, -8, 5, -1, 7, -2};
	static const struct {
		unsigned mode;
		int left_out;
		double expected[2];
	} cases[] = {
		{POOLING_CLS, 0, {1, -4}},
		{POOLING_CLS, 2, {5, -1}},
		{POOLING_MAX, 0, {7, -1}},
		{POOLING_MAX, 3, {7, -2}},
		{POOLING_MEAN, 0, {4, -3.75}},
		{POOLING_MEAN, 1, {5, -11.0 / 3}},
		{POOLING_MEAN_SQRT, 0, {8, -7.5}},
		{POOLING_WEIGHTED_MEAN, 0, {5, -3.1}},
		{POOLING_WEIGHTED_MEAN, 2, {(15.0 + 28) / 7, (-3.0 - 8) / 7}},
		{POOLING_LAST, 1, {7, -2}},
	};
	float out[12];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		pooling_apply(cases[i].mode, rows, DTYPE_F32, 4, 2, cases[i].left_out, out);
		for (int c = 0; c < 2; c++)
			assert_near((double)out[c], cases[i].expected[c], 1e-6);
	}
	pooling_apply(POOLING_MEAN | POOLING_CLS | POOLING_LAST, rows, DTYPE_F32, 4, 2, 0, out);
	static const float together[] = {1, -4, 4, -3.75f, 7, -2};
	assert_memory_equal(out, together, sizeof together);
	float vector[] = {3, -4}, zero[] = {0, 0};
	pooling_normalize(vector, 2);
	pooling_normalize(zero, 2);
	assert_near((double)vector[0], 0.6, 1e-7);
	assert_near((double)vector[1], -0.8, 1e-7);
	assert_true(zero[0] == 0);
}

/* Row 1 of transformers' hidden_states[0] and [1] (5.24, float64) for a golden folder of ModernBERT's form, whose layers end
 * before the next one's norm. */
static void inner_layers_are_not_normed(void **state)
{
	static const float expected[2][8] = {
		{0.20307851f, -1.155572f, -1.4772443f, -0.5628782f, -0.30101203f, 1.2536627f, 0.58558801f, 2.0968318f},
		{-0.03590666f, -0.92780294f, -2.358126f, -0.68723695f, -0.015508241f, 0.36280186f, 0.36083389f, 1.690021f},
	};
	static const int32_t ids[] = {2, 7, 9, 11, 3};
	const struct encoder_text text = {.ids = ids, .count = 5};
	const struct session_heads with = {.heads = &model_heads_encoder, .missing = MISSING_HEADS};
	const struct device_options settings = {.device = DEVICE_CPU, .precision = PRECISION_FP32, .threads = 1};
	struct session session;
	struct encoder *encoder;
	struct encoder_answers rows = {0};
	static const char *const files[] = {"config.json", "model.safetensors"};
	static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\n";
	assert_ok(folder_make(test_path("inner")));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct buffer whole = {0};
		char from[PATH_BYTES], to[PATH_BYTES];
		assert_ok(path_join(from, "tests/golden/forms/modernbert-words", files[i]));
		assert_ok(path_join(to, test_path("inner"), files[i]));
		assert_ok(file_read(from, 1 << 20, &whole));
		assert_ok(file_write(to, whole.data, whole.size));
		buffer_release(&whole);
	}
	assert_ok(file_write(test_path("inner/vocab.txt"), words, sizeof words - 1));
	assert_ok(session_open_heads(&session, test_path("inner"), &settings, &with,
				     encoder_capacity(&model_heads_encoder, 64, 8), 8));
	assert_ok(encoder_open(&encoder, &session));
	for (int32_t layer = 0; layer < 2; layer++) {
		const struct encoder_wish wish = {.answer = ENCODER_ROWS, .layers = &layer, .layer_count = 1};
		assert_ok(encoder_run(encoder, &wish, &text, 1, &rows));
		for (int c = 0; c < 8; c++)
			assert_near((double)rows.values[8 + c], (double)expected[layer][c], 2e-6);
	}
	encoder_answers_release(&rows);
	encoder_close(encoder);
	session_close(&session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inner_layers_are_not_normed),
		cmocka_unit_test(unknown_precisions_are_refused),
		cmocka_unit_test(rows_are_pooled_as_defined),
		cmocka_unit_test(an_answer_does_not_depend_on_its_batch),
		cmocka_unit_test(nor_does_one_in_bf16),
		cmocka_unit_test(answers_agree_with_each_other),
		cmocka_unit_test(answers_are_those_of_the_reference),
		cmocka_unit_test(sessions_share_a_pool),
		cmocka_unit_test(texts_that_do_not_fit_are_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
