/* Instances can be traced back to the text they came from, whatever the settings; epochs are complete; a sample is the
 * same instance however it is reached. */
#include "instances_test.h"
#include "data/pretraining/instance_options.h"
#include "data/source.h"

static struct corpus_map map;
static bool continuation[TRACED_VOCAB];

/* Puts the labels back and returns the original ids of an instance. */
static void restore(const struct instance *instance, int32_t *ids)
{
	memcpy(ids, instance->ids, (size_t)instance->length * sizeof *ids);
	for (int32_t i = 0; i < instance->prediction_count; i++)
		ids[instance->prediction_positions[i]] = instance->prediction_labels[i];
}

/* The ids increase by one from begin to end, within one document. */
static void check_run(const int32_t *ids, int32_t begin, int32_t end)
{
	assert_true(end > begin);
	for (int32_t i = begin; i < end; i++) {
		assert_true(ids[i] >= FIRST_ID && ids[i] < map.end);
		assert_int_equal(ids[i], ids[begin] + i - begin);
		assert_int_equal(map.document[ids[i]], map.document[ids[begin]]);
	}
}

static void check_predictions(const struct instance_settings *settings, const struct instance *instance, const int32_t *original)
{
	int32_t wanted = instance_predictions(settings, instance->length), special = 0;
	for (int32_t i = 0; i < instance->length; i++)
		special += original[i] == CLS || original[i] == SEP;
	if (settings->whole_word_mask)
		assert_true(instance->prediction_count <= wanted);
	else
		assert_int_equal(instance->prediction_count,
				 wanted < instance->length - special ? wanted : instance->length - special);
	int32_t before = 0;
	for (int32_t i = 0; i < instance->prediction_count; i++) {
		int32_t at = instance->prediction_positions[i];
		assert_true(at > before && at < instance->length - 1);
		assert_int_not_equal(original[at], SEP);
		assert_true(instance->ids[at] >= 0 && instance->ids[at] < settings->vocab_size);
		before = at;
	}
	/* Whole words: a piece is chosen together with the piece before it; for the first piece of B, that is the end of
	 * A. */
	for (int32_t i = 2; settings->whole_word_mask && i < instance->length; i++) {
		int32_t joined = original[i - 1] == SEP ? i - 2 : i - 1;
		bool here = false, left = false;
		for (int32_t j = 0; j < instance->prediction_count; j++) {
			here |= instance->prediction_positions[j] == i;
			left |= instance->prediction_positions[j] == joined;
		}
		if (continuation[original[i]])
			assert_int_equal(here, left);
	}
}

static void check_instance(const struct instance_settings *settings, const struct instance *instance, bool one_document)
{
	int32_t original[512], middle = 0;
	bool pairs = settings->next_sentence == NEXT_SENTENCE_PAIRS;
	assert_true(instance->length >= (pairs ? 5 : 3) && instance->length <= settings->max_seq_length);
	restore(instance, original);
	check_predictions(settings, instance, original);
	assert_int_equal(original[0], CLS);
	assert_int_equal(original[instance->length - 1], SEP);
	for (int32_t i = 1; i < instance->length && middle == 0; i++)
		if (original[i] == SEP)
			middle = i;
	check_run(original, 1, middle);
	for (int32_t i = 0; i < instance->length; i++)
		assert_int_equal(instance->types[i], i > middle);
	if (!pairs) {
		assert_int_equal(middle, instance->length - 1);
		assert_int_equal(instance->next_label, -1);
		return;
	}
	check_run(original, middle + 1, instance->length - 1);
	int32_t a_last = original[middle - 1], b_first = original[middle + 1];
	if (instance->next_label == 0) {
		/* B comes later in the same document, and follows A directly unless tokens were cut. */
		assert_true(b_first > a_last);
		assert_int_equal(map.document[b_first], map.document[a_last]);
		if (instance->length < settings->max_seq_length)
			assert_int_equal(b_first, a_last + 1);
	} else {
		assert_int_equal(instance->next_label, 1);
		if (!one_document)
			assert_int_not_equal(map.document[b_first], map.document[a_last]);
	}
	if (instance->length < settings->max_seq_length) {
		assert_true(map.sentence_begins[original[1]]);
		assert_true(map.sentence_begins[b_first]);
	}
}

static void test_any_settings(void **state)
{
	struct rng rng = rng_start(5, RNG_TEST, 2);
	struct instance_room room;
	for (int round = 0; round < 60; round++) {
		int documents = 1 + (int)rng_below(&rng, round % 3 == 0 ? 2 : 40);
		int sentences = 1 + (int)rng_below(&rng, 20), longest = 1 + (int)rng_below(&rng, 60);
		struct instance_settings settings = usual_settings();
		settings.seed = rng_u32(&rng);
		settings.max_seq_length = 5 + (int32_t)rng_below(&rng, round % 2 ? 20 : 200);
		settings.masked_lm_prob = rng_double(&rng);
		settings.max_predictions_per_seq = (int32_t)rng_below(&rng, 30);
		settings.short_seq_prob = rng_double(&rng);
		settings.whole_word_mask = rng_below(&rng, 2) == 0;
		settings.is_continuation = continuation;
		settings.next_sentence = rng_below(&rng, 3) == 0 ? NEXT_SENTENCE_NONE : NEXT_SENTENCE_PAIRS;
		settings.shuffle = rng_below(&rng, 2) == 0;
		for (int i = FIRST_ID; i < TRACED_VOCAB; i++)
			continuation[i] = rng_below(&rng, 3) == 0;
		struct shard shard;
		struct instances *instances;
		write_traced_shard(test_path("any"), settings.seed, documents, sentences, longest, 0, documents, &map);
		assert_ok(shard_open(&shard, test_path("any")));
		assert_ok(instances_open(&instances, &shard, 1, &settings));
		int64_t count = instances_per_epoch(instances);
		for (int64_t sample = 0; sample < 2 * count && sample < 400; sample++) {
			assert_ok(instances_get(instances, sample, room_for(&room)));
			/* With few documents, all ten draws may give the current one. */
			check_instance(&settings, &room.instance, documents <= 4);
		}
		instances_close(instances);
		shard_close(&shard);
	}
}

/* A folder's template says what stands around two segments, and of which type they are: <s> A </s></s> B </s>. */
static void test_template(void **state)
{
	static const struct vocab vocab = {
		.count = TRACED_VOCAB,
		.cls = CLS,
		.sep = SEP,
		.mask = MASK,
		.pair = {.ids = {CLS, SEP, SEP, SEP}, .before = 1, .between = 2, .after = 1},
	};
	struct instance_settings settings = usual_settings(), other = settings;
	struct instances *instances, *others;
	struct instance_room room;
	struct shard shard;
	int32_t ids[512], other_ids[512];
	other.max_seq_length++;
	instance_settings_take_vocab(&other, &vocab);
	assert_int_equal(other.single.ids[0], CLS); /* the vocabulary has no template for one text */
	assert_int_equal(other.single.after, 1);
	write_traced_shard(test_path("template"), 7, 20, 12, 25, 0, 20, &map);
	assert_ok(shard_open(&shard, test_path("template")));
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	assert_ok(instances_open(&others, &shard, 1, &other));
	for (int64_t sample = 0; sample < instances_per_epoch(instances); sample++) {
		const struct instance *instance = &room.instance;
		int32_t middle = 1;
		assert_ok(instances_get(instances, sample, room_for(&room)));
		restore(instance, ids);
		int32_t length = instance->length;
		while (ids[middle] != SEP)
			middle++;
		memmove(ids + middle + 1, ids + middle, (size_t)(length - middle) * sizeof *ids); /* the separator twice */
		assert_ok(instances_get(others, sample, room_for(&room)));
		restore(instance, other_ids);
		assert_int_equal(instance->length, length + 1);
		assert_memory_equal(other_ids, ids, (size_t)(length + 1) * sizeof *ids);
		for (int32_t i = 0; i <= length; i++)
			assert_int_equal(instance->types[i], 0);
		for (int32_t i = 0; i < instance->prediction_count; i++)
			assert_true(instance->prediction_labels[i] >= FIRST_ID);
	}
	instances_close(instances);
	instances_close(others);
	shard_close(&shard);
}

static void open_usual(struct shard *shard, struct instances **instances, const struct instance_settings *settings)
{
	write_traced_shard(test_path("usual"), 3, 50, 12, 25, 0, 50, &map);
	assert_ok(shard_open(shard, test_path("usual")));
	assert_ok(instances_open(instances, shard, 1, settings));
}

static int compare_plans(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct example_plan));
}

/* Every plan of the walk occurs once per epoch, in another order in each epoch; without shuffling, in the order of the
 * walk. */
static void test_epochs_are_complete(void **state)
{
	struct instance_settings settings = usual_settings();
	struct shard shard;
	struct instances *shuffled, *plain;
	open_usual(&shard, &shuffled, &settings);
	settings.shuffle = false;
	assert_ok(instances_open(&plain, &shard, 1, &settings));
	int64_t first = 0;
	for (int64_t epoch = 0; epoch < 5; epoch++) {
		struct example_plan a[2000], b[2000];
		int64_t found, begin, next = first;
		for (;; next++) {
			assert_ok(instances_locate(shuffled, next, &found, &begin));
			if (found > epoch)
				break;
			assert_int_equal(found, epoch);
			assert_int_equal(begin, first);
			assert_ok(instances_plan(shuffled, next, &a[next - first], NULL, NULL));
			assert_ok(instances_plan(plain, next, &b[next - first], NULL, NULL));
			a[next - first].sample = b[next - first].sample = 0;
			assert_true(next - first < 1999);
		}
		size_t count = (size_t)(next - first);
		assert_true(count > 100);
		if (epoch == 0)
			assert_int_equal(instances_per_epoch(shuffled), count);
		for (size_t i = 1; i < count; i++)
			assert_true(b[i].a_first > b[i - 1].a_first);
		assert_memory_not_equal(a, b, count * sizeof a[0]);
		qsort(a, count, sizeof a[0], compare_plans);
		qsort(b, count, sizeof b[0], compare_plans);
		assert_memory_equal(a, b, count * sizeof a[0]);
		first = next;
	}
	instances_close(plain);
	instances_close(shuffled);
	shard_close(&shard);
}

/* Without pairs every token of the text is in exactly one instance of an epoch. */
static void test_text_is_complete(void **state)
{
	struct instance_settings settings = usual_settings();
	settings.next_sentence = NEXT_SENTENCE_NONE;
	settings.max_seq_length = 17; /* shorter than many sentences */
	struct shard shard;
	struct instances *instances;
	struct instance_room room;
	open_usual(&shard, &instances, &settings);
	int64_t sample = 0, epoch = 0, first;
	for (int64_t wanted = 0; wanted < 3; wanted++) {
		int seen[TRACED_VOCAB] = {0};
		for (;; sample++) {
			int32_t ids[512];
			assert_ok(instances_locate(instances, sample, &epoch, &first));
			if (epoch > wanted)
				break;
			assert_ok(instances_get(instances, sample, room_for(&room)));
			restore(&room.instance, ids);
			for (int32_t i = 1; i < room.instance.length - 1; i++)
				seen[ids[i]]++;
		}
		for (int32_t id = FIRST_ID; id < map.end; id++)
			assert_int_equal(seen[id], 1);
	}
	instances_close(instances);
	shard_close(&shard);
}

static void check_same(const struct instance *a, const struct instance *b)
{
	assert_int_equal(a->length, b->length);
	assert_int_equal(a->next_label, b->next_label);
	assert_int_equal(a->prediction_count, b->prediction_count);
	size_t tokens = (size_t)a->length * sizeof(int32_t);
	size_t predictions = (size_t)a->prediction_count * sizeof(int32_t);
	assert_memory_equal(a->ids, b->ids, tokens);
	assert_memory_equal(a->types, b->types, tokens);
	assert_memory_equal(a->prediction_positions, b->prediction_positions, predictions);
	assert_memory_equal(a->prediction_labels, b->prediction_labels, predictions);
}

/* A sample is the same when read forward, backward, after a hint, and from shards split differently. */
static void test_same_sample(void **state)
{
	struct instance_settings settings = usual_settings();
	struct shard shard, parts[4];
	struct instances *instances, *others[3];
	struct instance_room a, b;
	open_usual(&shard, &instances, &settings);
	static const int cuts[] = {0, 7, 7, 30, 50};
	for (int i = 0; i < 4; i++) {
		const char *prefix = test_path((const char *[]){"p0", "p1", "p2", "p3"}[i]);
		write_traced_shard(prefix, 3, 50, 12, 25, cuts[i], cuts[i + 1], &map);
		assert_ok(shard_open(&parts[i], prefix));
	}
	assert_ok(instances_open(&others[0], &shard, 1, &settings));
	assert_ok(instances_open(&others[1], parts, 4, &settings));
	assert_ok(instances_open(&others[2], &shard, 1, &settings));
	int64_t last = 4 * instances_per_epoch(instances), epoch, first, told_epoch, told_first;
	assert_ok(instances_locate(instances, last, &epoch, &first));
	assert_true(epoch >= 3);
	assert_ok(instances_hint(others[2], epoch, first));
	assert_ok(instances_locate(others[2], last, &told_epoch, &told_first));
	assert_int_equal(told_epoch, epoch);
	assert_int_equal(told_first, first);
	for (int64_t sample = last; sample >= 0; sample -= 13) {
		assert_ok(instances_get(others[0], sample, room_for(&a)));
		for (int i = 1; i < 3; i++) {
			assert_ok(instances_get(others[i], sample, room_for(&b)));
			check_same(&a.instance, &b.instance);
		}
	}
	/* A false hint is refused if it can be recognized. */
	assert_error(ERR_STATE, "does not begin with sample", instances_hint(instances, epoch, first + 1));
	assert_error(ERR_STATE, "epoch 0", instances_hint(others[1], 0, 5));
	assert_error(ERR_STATE, "epoch -1", instances_hint(others[1], -1, 0));
	instances_close(others[2]);
	assert_ok(instances_open(&others[2], &shard, 1, &settings));
	assert_ok(instances_hint(others[2], 1, 1)); /* not yet known to be false */
	assert_ok(instances_get(others[2], 1, room_for(&a)));
	for (int i = 0; i < 3; i++)
		instances_close(others[i]);
	instances_close(instances);
	for (int i = 0; i < 4; i++)
		shard_close(&parts[i]);
	shard_close(&shard);
}

/* Another seed, epoch or sample gives other masks. */
static void test_draws_differ(void **state)
{
	struct instance_settings settings = usual_settings();
	settings.short_seq_prob = 0;
	settings.next_sentence = NEXT_SENTENCE_NONE;
	settings.shuffle = false;
	struct shard shard;
	struct instances *instances, *other;
	struct instance_room a, b, c;
	open_usual(&shard, &instances, &settings);
	settings.seed++;
	assert_ok(instances_open(&other, &shard, 1, &settings));
	int64_t count = instances_per_epoch(instances);
	int same_text = 0, same_mask = 0;
	for (int64_t sample = 0; sample < count; sample++) {
		assert_ok(instances_get(instances, sample, room_for(&a)));
		assert_ok(instances_get(instances, sample + count, room_for(&b)));
		assert_ok(instances_get(other, sample, room_for(&c)));
		struct instance *compared[] = {&b.instance, &c.instance};
		for (int i = 0; i < 2; i++) {
			int32_t left[512], right[512];
			restore(&a.instance, left);
			restore(compared[i], right);
			same_text += memcmp(left, right, (size_t)a.instance.length * 4) == 0;
			same_mask += memcmp(a.ids, compared[i]->ids, (size_t)a.instance.length * 4) == 0;
		}
	}
	assert_int_equal(same_text, 2 * count); /* without pairs and short sequences, the text is always cut in the same way */
	assert_true(same_mask < count / 10);
	instances_close(instances);
	instances_close(other);
	shard_close(&shard);
}

/* As in BERT: a single document, and even a single sentence, gives pairs with itself. */
static void test_one_document(void **state)
{
	struct instance_settings settings = usual_settings();
	struct shard shard;
	struct instances *instances;
	struct instance_room room;
	write_traced_shard(test_path("one"), 9, 1, 1, 8, 0, 1, &map);
	assert_ok(shard_open(&shard, test_path("one")));
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	assert_int_equal(instances_per_epoch(instances), 1);
	for (int64_t sample = 0; sample < 20; sample++) {
		assert_ok(instances_get(instances, sample, room_for(&room)));
		check_instance(&settings, &room.instance, true);
		assert_int_equal(room.instance.next_label, 1);
		assert_int_equal(room.instance.length, 3 + 2 * shard.token_count);
	}
	instances_close(instances);
	shard_close(&shard);
}

/* Sentences of any length are cut to fit. */
static void test_long_sentence(void **state)
{
	enum { LONG = 300000 };
	static int32_t ids[LONG];
	struct shard_writer *writer;
	struct shard_description description = {0};
	struct instance_settings settings = usual_settings();
	struct shard shard;
	struct instances *instances;
	struct instance_room room;
	for (int i = 0; i < LONG; i++)
		ids[i] = FIRST_ID + i % 50000;
	assert_ok(shard_writer_open(&writer, test_path("long"), TRACED_VOCAB));
	for (int d = 0; d < 2; d++) {
		assert_ok(shard_writer_sentence(writer, ids, LONG));
		assert_ok(shard_writer_end_document(writer));
	}
	assert_ok(shard_writer_commit(writer, &description));
	assert_ok(shard_open(&shard, test_path("long")));
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	for (int64_t sample = 0; sample < 40; sample++) {
		int32_t original[512];
		assert_ok(instances_get(instances, sample, room_for(&room)));
		assert_int_equal(room.instance.length, 64);
		restore(&room.instance, original);
		/* About half of the 299,970 cut tokens were cut at the front. */
		double place = original[1] - FIRST_ID;
		assert_true(place > 48000 || place < 2000);
	}
	instances_close(instances);
	settings.next_sentence = NEXT_SENTENCE_NONE;
	settings.short_seq_prob = 0;
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	assert_int_equal(instances_per_epoch(instances), 2 * ((LONG + 61) / 62));
	instances_close(instances);
	shard_close(&shard);
}

static void test_refusals(void **state)
{
	struct instance_settings settings = usual_settings(), wrong;
	struct shard shard;
	struct instances *instances;
	struct instance_room room;
	open_usual(&shard, &instances, &settings);
	instances_close(instances);
	wrong = settings;
	wrong.max_seq_length = 4;
	assert_error(ERR_USAGE, "max_seq_length 4", instances_open(&instances, &shard, 1, &wrong));
	wrong = settings;
	wrong.masked_lm_prob = 1.5;
	assert_error(ERR_USAGE, "masked_lm_prob", instances_open(&instances, &shard, 1, &wrong));
	/* Ids that are not in the vocabulary are noticed in the instance that contains them. */
	wrong = settings;
	wrong.vocab_size = 100;
	assert_ok(instances_open(&instances, &shard, 1, &wrong));
	enum status status = OK;
	for (int64_t sample = 0; sample < 50 && status == OK; sample++)
		status = instances_get(instances, sample, room_for(&room));
	assert_int_equal(status, ERR_DATA);
	assert_non_null(strstr(error_last()->message, "usual.bin': sentence"));
	assert_non_null(strstr(error_last()->message, "has 100 entries"));
	instances_close(instances);
	shard_close(&shard);

	struct shard_writer *writer;
	struct shard_description description = {0};
	assert_ok(shard_writer_open(&writer, test_path("empty"), 100));
	assert_ok(shard_writer_end_document(writer));
	assert_ok(shard_writer_commit(writer, &description));
	assert_ok(shard_open(&shard, test_path("empty")));
	assert_error(ERR_DATA, "no document with text", instances_open(&instances, &shard, 1, &settings));
	shard_close(&shard);
}

/* Empty documents in other programs' files are never chosen. */
static void test_empty_documents(void **state)
{
	struct shard_writer *writer;
	struct shard_description description = {0};
	struct shard shard;
	struct instances *instances;
	struct instance_room room;
	struct instance_settings settings = usual_settings();
	assert_ok(shard_writer_open(&writer, test_path("gaps"), TRACED_VOCAB));
	for (int d = 0; d < 12; d++) {
		for (int s = 0; s < (d % 3 == 1 ? 4 : 0); s++)
			assert_ok(shard_writer_sentence(writer, (int32_t[]){10 + d, 10 + d}, 2));
		assert_ok(shard_writer_end_document(writer));
	}
	assert_ok(shard_writer_commit(writer, &description));
	assert_ok(shard_open(&shard, test_path("gaps")));
	assert_int_equal(shard.document_count, 12);
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	for (int64_t sample = 0; sample < 100; sample++)
		assert_ok(instances_get(instances, sample, room_for(&room)));
	instances_close(instances);
	shard_close(&shard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_settings),     cmocka_unit_test(test_epochs_are_complete),
		cmocka_unit_test(test_text_is_complete), cmocka_unit_test(test_same_sample),
		cmocka_unit_test(test_draws_differ),     cmocka_unit_test(test_one_document),
		cmocka_unit_test(test_long_sentence),    cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_empty_documents),  cmocka_unit_test(test_template),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
