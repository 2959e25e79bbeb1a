/* Sample sentences: chosen from the shards alone, predicted at each evaluation, truncated on a resume. */
#include "base/rng.h"
#include "test.h"
#include "report/samples.h"
#include "backend/open.h"

enum { VOCAB = 40 };
static struct vocab vocab;
static struct shard held_out;
static struct pool *pool;
static struct backend *backend;
static struct model *model;
static struct replica replica;

static int setup(void **state)
{
	static const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "##ing", "7"};
	static char words[VOCAB][8];
	const char *entries[VOCAB];
	if (test_folder_make(state) != 0)
		return -1;
	for (int i = 0; i < VOCAB; i++) {
		snprintf(words[i], sizeof words[i], "word%c%c", 'a' + i / 26, 'a' + i % 26);
		entries[i] = i < 8 ? special[i] : words[i];
	}
	assert_ok(vocab_from_entries(&vocab, entries, VOCAB));
	struct shard_writer *writer;
	struct shard_description description = {.vocab_hash = vocab.hash};
	assert_ok(shard_writer_open(&writer, test_path("held_out"), VOCAB));
	for (int s = 0; s < 200; s++) {
		struct rng rng = rng_start(9, RNG_TEST, (uint64_t)s);
		int32_t ids[40], count = 1 + (int32_t)rng_below(&rng, 39);
		for (int i = 0; i < count; i++)
			ids[i] = (int32_t)(5 + rng_below(&rng, VOCAB - 5));
		if (s % 3 == 0)
			ids[0] = vocab.unk;
		assert_ok(shard_writer_sentence(writer, ids, count));
	}
	assert_ok(shard_writer_end_document(writer));
	assert_ok(shard_writer_commit(writer, &description));
	assert_ok(shard_open(&held_out, test_path("held_out")));

	struct model_config config = {
		.vocab_size = VOCAB,
		.hidden_size = 16,
		.num_hidden_layers = 1,
		.num_attention_heads = 2,
		.intermediate_size = 32,
		.max_position_embeddings = 64,
		.type_vocab_size = 2,
		.hidden_act = ACTIVATION_GELU_ERF,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.02,
	};
	struct shape_limits limits = {
		.batch = {64, 1, 64},
		.longest = 64,
		.hidden = 16,
		.heads = 2,
		.intermediate = 32,
		.vocab = VOCAB,
	};
	assert_ok(pool_create(&pool, 1));
	assert_ok(backend_open(&backend, &(struct backend_settings){.device = "ref", .dtype = DTYPE_F64, .pool = pool}));
	assert_ok(model_create(&model, backend, &config, &model_heads_pretraining));
	assert_ok(model_allocate(model, false));
	assert_ok(backend->functions->replica_create(backend, &replica, &limits));
	return model_initialize(model, &replica, 1) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	backend->functions->replica_release(&replica);
	model_free(model);
	backend_close(backend);
	pool_free(pool);
	shard_close(&held_out);
	vocab_release(&vocab);
	return test_folder_drop(state);
}

static struct samples *open_samples(const char *folder, int64_t evaluated_step)
{
	struct samples *samples = calloc(1, sizeof *samples);
	struct report_progress progress = {.step = evaluated_step, .evaluated_step = evaluated_step};
	assert_ok(folder_make(folder));
	assert_ok(samples_open(samples, folder, &held_out, 1, model, &replica, &vocab, &progress));
	return samples;
}

static void close_samples(struct samples *samples)
{
	samples_release(samples);
	free(samples);
}

static void test_choice(void **state)
{
	struct samples *a = open_samples(test_path("a"), 0), *b = open_samples(test_path("b"), 0);
	assert_int_equal(a->count, SAMPLE_SENTENCES);
	assert_memory_equal(a->sentences, b->sentences, sizeof a->sentences);
	for (int s = 0; s < a->count; s++) {
		const struct sample_sentence *sentence = &a->sentences[s];
		int masks = 0;
		assert_true(sentence->count >= 8 && sentence->count <= SAMPLE_TOKENS);
		for (int32_t i = 0; i < sentence->count; i++) {
			assert_int_not_equal(sentence->ids[i], vocab.unk);
			masks += sentence->ids[i] == vocab.mask;
		}
		assert_true(masks > 0);
		assert_int_equal(masks, sentence->blanks);
		for (int32_t k = 0; k < sentence->blanks; k++)
			assert_true(sentence->answers[k] >= 8); /* a word, not a punctuation mark, piece or number */
		for (int other = 0; other < s; other++)
			assert_memory_not_equal(sentence->ids, a->sentences[other].ids, sizeof sentence->ids);
	}
	close_samples(a);
	close_samples(b);
}

static void test_evaluations_and_resume(void **state)
{
	struct buffer before = {0}, after = {0};
	struct samples *samples = open_samples(test_path("run"), 0);
	for (int64_t step = 10; step <= 30; step += 10)
		assert_ok(samples_evaluate(samples, &(struct report_progress){.step = step, .tokens = 100 * step}));
	assert_int_equal(samples->evaluation_count, 3);
	struct sample_evaluation second = samples->evaluations[1];
	for (int s = 0; s < samples->count; s++)
		for (int b = 0; b < samples->sentences[s].blanks; b++) {
			const struct sample_blank *blank = &second.blanks[s][b];
			/* With 40 entries, every place is within the known ones; probabilities descend. */
			assert_true(blank->place >= 1 && blank->place <= VOCAB);
			assert_true(blank->probability > 0);
			assert_true(blank->probabilities[0] >= blank->probabilities[1]);
			assert_int_equal(blank->place == 1, blank->ids[0] == samples->sentences[s].answers[b]);
		}
	close_samples(samples);
	assert_ok(file_read(test_path("run/samples.jsonl"), 1 << 20, &before));

	/* Killed after the second evaluation's checkpoint, with a torn line. */
	assert_ok(file_append_line(test_path("run/samples.jsonl"), "{\"step\":40,\"sen"));
	samples = open_samples(test_path("run"), 20);
	assert_int_equal(samples->evaluation_count, 2);
	assert_memory_equal(&samples->evaluations[1], &second, sizeof second);
	assert_ok(samples_evaluate(samples, &(struct report_progress){.step = 30, .tokens = 3000}));
	close_samples(samples);
	assert_ok(file_read(test_path("run/samples.jsonl"), 1 << 20, &after));
	assert_string_equal(buffer_string(&before), buffer_string(&after));
	buffer_release(&before);
	buffer_release(&after);
}

static void test_many_special_tokens(void **state)
{
	struct token_template usual = vocab.single;
	vocab.single = (struct token_template){.ids = {2, 2, 2, 2, 3, 3, 3, 3}, .before = 4, .after = 4};
	struct samples *samples = open_samples(test_path("special"), 0);
	struct sample_sentence *sentence = &samples->sentences[0];
	while (sentence->count < SAMPLE_TOKENS)
		sentence->ids[sentence->count++] = 9;
	assert_ok(samples_evaluate(samples, &(struct report_progress){.step = 10, .tokens = 1000}));
	close_samples(samples);
	vocab.single = usual;
}

static void test_without_sentences(void **state)
{
	struct samples samples = {0};
	struct report_progress progress = {0};
	assert_ok(samples_open(&samples, test_folder, NULL, 0, model, &replica, &vocab, &progress));
	assert_int_equal(samples.count, 0);
	assert_ok(samples_evaluate(&samples, &progress));
	assert_false(file_exists(test_path("samples.jsonl")));
	samples_release(&samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_evaluations_and_resume),
		cmocka_unit_test(test_many_special_tokens),
		cmocka_unit_test(test_without_sentences),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
