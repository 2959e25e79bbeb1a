/* The less common sources of instances: static files, mixtures, sentence order, single sentences, n-grams, segmented
 * words, a length band, pairs for rewriting. Also the walk of an epoch on several threads. */
#include "data/pretraining/instances.h"
#include <math.h>
#include "instances_test.h"
#include "data/pretraining/instance_files.h"
#include "data/pretraining/rewriting.h"
#include "data/pretraining/walk.h"

static struct corpus_map map;
static struct shard shard;

static int open_shard(void **state)
{
	(void)test_folder_make(state);
	log_level = LOG_QUIET;
	write_traced_shard(test_path("shard"), 5, 60, 30, 40, 0, 60, &map);
	return shard_open(&shard, test_path("shard")) == OK ? 0 : -1;
}

static int close_shard(void **state)
{
	shard_close(&shard);
	return test_folder_drop(state);
}

/* The ids of an instance before masking. */
static void unmask(struct instance *instance)
{
	for (int32_t i = 0; i < instance->prediction_count; i++)
		instance->ids[instance->prediction_positions[i]] = instance->prediction_labels[i];
}

/* Any number of threads finds the same instances, and a position in the middle is found as the walk passes it. */
static void test_walk(void **state)
{
	static const enum next_sentence kinds[] = {NEXT_SENTENCE_PAIRS, NEXT_SENTENCE_ORDER, NEXT_SENTENCE_NONE,
						   NEXT_SENTENCE_SINGLE, NEXT_SENTENCE_OVERLAP};
	for (int kind = 0; kind < 5; kind++) {
		struct instance_settings settings = usual_settings();
		struct text_set set;
		struct epoch_map whole, cut;
		struct example_plan a, b;
		settings.next_sentence = kinds[kind];
		settings.running_text_share = 0.5;
		assert_ok(text_set_open(&set, &shard, 1, &settings));
		assert_ok(epoch_map_open(&whole, &set));
		assert_int_equal(whole.range_count, 1);
		/* The same with one range per ten documents, on three threads. */
		assert_ok(epoch_map_open(&cut, &set));
		free(cut.ranges);
		cut.range_count = 6;
		cut.ranges = calloc(6, sizeof *cut.ranges);
		assert_non_null(cut.ranges);
		for (int i = 0; i < 6; i++)
			cut.ranges[i] = (struct epoch_range){.document = 10 * i, .end = 10 * i + 10};
		for (int64_t epoch = 0; epoch < 2; epoch++) {
			struct walker walker = walk_from(&set, epoch, 0, 60);
			assert_ok(epoch_map_walk(&whole, &set, epoch, 1));
			assert_ok(epoch_map_walk(&cut, &set, epoch, 3));
			assert_int_equal(whole.count, cut.count);
			assert_true(whole.count > 3 * MARK_INSTANCES);
			for (int64_t i = 0; i < whole.count; i++) {
				struct example_plan walked;
				assert_true(walk_next(&walker, &walked));
				epoch_map_find(&whole, &set, i, &a);
				epoch_map_find(&cut, &set, i, &b);
				assert_memory_equal(&a, &walked, sizeof a);
				assert_memory_equal(&b, &walked, sizeof b);
			}
			assert_false(walk_next(&walker, &a));
		}
		epoch_map_close(&whole);
		epoch_map_close(&cut);
		text_set_close(&set);
	}
}

/* Both parts are adjacent in one document, and swapped half of the time; the label says so. */
static void test_order(void **state)
{
	struct instance_settings settings = usual_settings();
	struct instances *instances;
	struct instance_room room;
	settings.next_sentence = NEXT_SENTENCE_ORDER;
	settings.max_seq_length = 500; /* instances shorter than this were not cut */
	settings.max_predictions_per_seq = 0;
	settings.short_seq_prob = 0.5;
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	int64_t count = instances_per_epoch(instances), swapped = 0, whole = 0;
	assert_true(count > 60);
	for (int64_t i = 0; i < 4 * count; i++) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(instances, i, instance));
		unmask(instance);
		swapped += instance->next_label;
		if (instance->length == 500)
			continue;
		int32_t first_b = 0;
		while (instance->types[first_b] == 0)
			first_b++;
		int32_t a = instance->ids[1], a_end = instance->ids[first_b - 2], b = instance->ids[first_b],
			b_end = instance->ids[instance->length - 2];
		assert_int_equal(map.document[a], map.document[b]);
		assert_true(map.sentence_begins[a] && map.sentence_begins[b]);
		if (instance->next_label == 1)
			assert_int_equal(b_end + 1, a);
		else
			assert_int_equal(a_end + 1, b);
		whole++;
	}
	assert_true(whole > count);
	assert_true(swapped > 2 * count - 60 && swapped < 2 * count + 60);
	instances_close(instances);
}

/* Each sentence once per epoch, cut to fit, without a label. */
static void test_single(void **state)
{
	struct instance_settings settings = usual_settings();
	struct instances *instances;
	struct instance_room room;
	settings.next_sentence = NEXT_SENTENCE_SINGLE;
	settings.max_seq_length = 20;
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	int64_t count = instances_per_epoch(instances);
	assert_int_equal(count, shard.sentence_count);
	bool *seen = calloc(TRACED_VOCAB, sizeof(bool));
	assert_non_null(seen);
	for (int64_t i = 0; i < count; i++) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(instances, i, instance));
		unmask(instance);
		int32_t first = instance->ids[1], last = instance->ids[instance->length - 2];
		assert_true(map.sentence_begins[first] && !seen[first]);
		seen[first] = true;
		assert_true(instance->length == 20 || last + 1 == map.end || map.sentence_begins[last + 1]);
		assert_int_equal(instance->next_label, -1);
	}
	free(seen);
	instances_close(instances);
}

/* In this corpus every token occurs once, so all weigh the same. `continues`: ids that continue a word. Checks that the text b is
 * a mixture of whole words of the text a and of the beginning of another one, and returns the number of tokens from a. */
static int32_t check_mixture(const int32_t *a, int32_t count_a, const int32_t *b, int32_t count_b, const bool *continues)
{
	int32_t shared = 0, next_own = 0;
	for (int32_t i = 0; i < count_b; i++) {
		bool from_a = b[i] >= a[0] && b[i] < a[0] + count_a;
		if (continues[b[i]])
			assert_true(i > 0 && b[i - 1] == b[i] - 1);
		if (!from_a) {
			assert_true(next_own > 0 ? b[i] == next_own : map.sentence_begins[b[i]]);
			next_own = b[i] + 1;
		}
		shared += from_a;
	}
	return shared;
}

/* Half of the documents are running text without a label. The others give pairs of a sentence and a mixture of its words with
 * another text: only words of the sentence are masked, and as many labels are 0 as the similarities say. */
static void test_overlap(void **state)
{
	struct instance_settings settings = usual_settings();
	struct instances *instances;
	struct instance_room room;
	bool *continues = calloc(TRACED_VOCAB, sizeof(bool));
	double similar = 0, variance = 0;
	int64_t alone = 0, pairs = 0, apart = 0, alike = 0, orders = 0, labeled_0 = 0;
	assert_non_null(continues);
	for (int32_t id = FIRST_ID; id < map.end; id++)
		continues[id] = id % 3 == 0 && !map.sentence_begins[id];
	settings.next_sentence = NEXT_SENTENCE_OVERLAP;
	settings.running_text_share = 0.5;
	settings.short_seq_prob = 0;
	settings.is_continuation = continues;
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	int64_t count = instances_per_epoch(instances);
	for (int64_t i = 0; i < 8 * count; i++) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(instances, i, instance));
		int32_t last_masked = instance->prediction_positions[instance->prediction_count - 1], first_b = 0;
		unmask(instance);
		if (instance->next_label == -1) {
			for (int32_t t = 1; t < instance->length - 1; t++)
				assert_true(instance->types[t] == 0 && instance->ids[t] == instance->ids[1] + t - 1);
			alone++;
			continue;
		}
		while (instance->types[first_b] == 0)
			first_b++;
		int32_t count_a = first_b - 2, count_b = instance->length - first_b - 1;
		const int32_t *a = instance->ids + 1;
		assert_true(map.sentence_begins[a[0]] && last_masked <= count_a);
		for (int32_t t = 1; t < count_a; t++)
			assert_int_equal(a[t], a[0] + t);
		int32_t shared = check_mixture(a, count_a, instance->ids + first_b, count_b, continues);
		double similarity = shared / sqrt((double)count_a * count_b);
		similar += similarity;
		variance += similarity * (1 - similarity);
		labeled_0 += instance->next_label == 0;
		apart += shared == 0;
		alike += shared == count_b && count_b > 3;
		for (int32_t t = 1; t < count_b; t++)
			orders +=
				a[0] <= instance->ids[first_b + t] && instance->ids[first_b + t] < instance->ids[first_b + t - 1];
		pairs++;
	}
	assert_true(alone > count && pairs > count);
	assert_true(apart > pairs / 5 && apart < pairs / 2 && alike > pairs / 50 && orders > pairs / 4);
	assert_true(fabs((double)labeled_0 - similar) < 4 * sqrt(variance) && similar > 0.25 * (double)pairs);
	free(continues);
	instances_close(instances);
}

static void test_length_band(void **state)
{
	struct instance_settings settings = usual_settings();
	struct instances *all, *band;
	struct instance_room room;
	int64_t long_enough = 0;
	settings.short_seq_prob = 0.4;
	assert_ok(instances_open(&all, &shard, 1, &settings));
	settings.min_seq_length = 40;
	assert_ok(instances_open(&band, &shard, 1, &settings));
	for (int64_t i = 0; i < instances_per_epoch(all); i++) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(all, i, instance));
		long_enough += instance->length >= 40;
	}
	assert_int_equal(instances_per_epoch(band), long_enough);
	assert_true(long_enough < instances_per_epoch(all));
	for (int64_t i = 0; i < long_enough; i++) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(band, i, instance));
		assert_true(instance->length >= 40);
	}
	settings.min_seq_length = 65;
	struct instances *none;
	assert_error(ERR_USAGE, "min_seq_length 65", instances_open(&none, &shard, 1, &settings));
	instances_close(all);
	instances_close(band);
}

/* Runs of masked words: as many of each length as the weights 1, 1/2, 1/3 and the room allow; never more than wanted. */
static void test_ngrams(void **state)
{
	struct instance_settings settings = usual_settings();
	struct instances *instances;
	struct instance_room room;
	int64_t runs[4] = {0}, predictions = 0, wanted = 0;
	settings.max_ngram = 3;
	settings.masked_lm_prob = 0.06; /* then adjacent runs are rare */
	settings.next_sentence = NEXT_SENTENCE_NONE;
	settings.max_seq_length = 256;
	settings.max_predictions_per_seq = 0;
	settings.short_seq_prob = 0;
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	for (int64_t i = 0; i < 1000; i++) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(instances, i, instance));
		int32_t most = instance_predictions(&settings, instance->length), run = 1;
		assert_true(instance->prediction_count <= most);
		wanted += most;
		predictions += instance->prediction_count;
		for (int32_t k = 1; k <= instance->prediction_count; k++) {
			bool goes_on = k < instance->prediction_count &&
				       instance->prediction_positions[k] == instance->prediction_positions[k - 1] + 1;
			if (goes_on) {
				run++;
				continue;
			}
			runs[run > 3 ? 0 : run]++;
			run = 1;
		}
	}
	assert_int_equal(predictions, wanted); /* single words fill the remainder */
	double all = (double)(runs[0] + runs[1] + runs[2] + runs[3]);
	assert_true((double)runs[2] / all > 0.2 && (double)runs[2] / all < 0.3);
	assert_true((double)runs[3] / all > 0.12 && (double)runs[3] / all < 0.2);
	assert_true((double)runs[0] / all < 0.03);
	instances_close(instances);
}

/* Marked tokens continue the word before them: they are masked with it, and the marks are removed afterwards. */
static void test_segmented(void **state)
{
	enum { SIZE = 500 };
	static bool never[SIZE];
	struct shard_writer *writer;
	struct shard_description description = {0};
	struct shard words;
	struct instances *instances;
	struct instance_room room;
	struct instance_settings settings = usual_settings();
	assert_ok(shard_writer_open(&writer, test_path("words"), 2 * SIZE));
	for (int32_t s = 0; s < 40; s++) /* words of three tokens: 10 k, 10 k + 1, 10 k + 2 */
		assert_ok(shard_writer_sentence(writer, (int32_t[]){10 + 10 * s, 11 + 10 * s + SIZE, 12 + 10 * s + SIZE}, 3));
	assert_ok(shard_writer_commit(writer, &description));
	assert_ok(shard_open(&words, test_path("words")));
	settings.vocab_size = SIZE;
	settings.segmented_words = settings.whole_word_mask = true;
	settings.is_continuation = never;
	settings.next_sentence = NEXT_SENTENCE_NONE;
	settings.short_seq_prob = 0;
	assert_ok(instances_open(&instances, &words, 1, &settings));
	int64_t masked = 0;
	for (int64_t i = 0; i < 200; i++) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(instances, i, instance));
		for (int32_t k = 0; k < instance->length; k++)
			assert_true(instance->ids[k] < SIZE);
		assert_int_equal(instance->prediction_count % 3, 0);
		for (int32_t k = 0; k < instance->prediction_count; k += 3) {
			assert_int_equal(instance->prediction_labels[k] % 10, 0);
			for (int32_t n = 1; n < 3; n++) {
				assert_int_equal(instance->prediction_labels[k + n], instance->prediction_labels[k] + n);
				assert_int_equal(instance->prediction_positions[k + n], instance->prediction_positions[k] + n);
			}
			masked++;
		}
	}
	assert_true(masked > 300);
	instances_close(instances);
	shard_close(&words);
}

/* ---- Static files ---- */

/* Instance `number`, identified by its id. */
static void write_static(const char *name, int32_t first, int32_t count)
{
	struct static_writer *writer;
	struct instance_room room;
	struct instance *instance = room_for(&room);
	float weight = 0.5f;
	assert_ok(static_writer_open(&writer, test_path(name)));
	for (int32_t i = first; i < first + count; i++) {
		instance->length = 3 + i % 5;
		for (int32_t k = 0; k < instance->length; k++) {
			instance->ids[k] = 100 + i;
			instance->types[k] = 0;
		}
		instance->prediction_count = 1;
		instance->prediction_positions[0] = 1;
		instance->prediction_labels[0] = i;
		instance->prediction_weights = &weight;
		instance->next_label = i % 2;
		assert_ok(static_writer_add(writer, instance));
	}
	assert_ok(static_writer_commit(writer, 0));
}

static void test_static(void **state)
{
	struct static_file files[2];
	struct instances *instances;
	struct instance_settings settings = usual_settings();
	struct instance_room room;
	float weights[512];
	write_static("a", 0, 13);
	write_static("b", 13, 10);
	assert_ok(static_file_open(&files[0], test_path("a")));
	assert_ok(static_file_open(&files[1], test_path("b")));
	for (int shuffle = 0; shuffle < 2; shuffle++) {
		settings.shuffle = shuffle;
		assert_ok(instances_open_static(&instances, files, 2, &settings));
		assert_int_equal(instances_per_epoch(instances), 23);
		assert_int_equal(instances_bounds(instances)->max_seq_length, 7);
		int64_t moved = 0;
		for (int64_t epoch = 0; epoch < 3; epoch++) {
			bool seen[23] = {false};
			for (int64_t i = 0; i < 23; i++) {
				struct instance *instance = room_for(&room);
				instance->prediction_weights = weights;
				assert_ok(instances_get(instances, 23 * epoch + i, instance));
				int32_t number = instance->prediction_labels[0];
				assert_int_equal(instance->ids[0], 100 + number);
				assert_int_equal(instance->next_label, number % 2);
				assert_true(weights[0] == 0.5f);
				assert_false(seen[number]);
				seen[number] = true;
				moved += number != i;
			}
		}
		assert_true(shuffle ? moved > 50 : moved == 0);
		int64_t epoch, first;
		assert_ok(instances_locate(instances, 50, &epoch, &first));
		assert_int_equal(epoch, 2);
		assert_int_equal(first, 46);
		assert_ok(instances_hint(instances, 3, 60)); /* a phase that begins there */
		assert_ok(instances_locate(instances, 84, &epoch, &first));
		assert_int_equal(epoch, 4);
		assert_int_equal(first, 83);
		instances_close(instances);
	}
	/* Through the step reader: in file order, batch after batch, with summed weights. */
	struct step_reader *reader;
	const struct step *step;
	settings.shuffle = false;
	assert_ok(instances_open_static(&instances, files, 2, &settings));
	struct step_settings steps = {.batch_size = 5, .first_step = 1, .sample_count = 23};
	steps.capacity = batch_capacity_for(instances_bounds(instances), 5, 0, 0);
	assert_ok(step_reader_open(&reader, instances, &steps));
	int32_t next = 0;
	for (;;) {
		assert_ok(step_reader_next(reader, &step));
		if (step == NULL)
			break;
		assert_true(step->weights[HEAD_MASKED_WORDS] == 0.5 * (double)step->example_count);
		assert_int_equal(step->labeled[HEAD_NEXT_SENTENCE], step->example_count);
		for (int32_t b = 0; b < step->batch_count; b++)
			for (int32_t k = 0; k < step->batches[b].sequence_count; k++)
				assert_int_equal(step->batches[b].ids[step->batches[b].starts[k]], 100 + next++);
	}
	assert_int_equal(next, 23);
	step_reader_close(reader);
	instances_close(instances);
	static_file_close(&files[0]);
	static_file_close(&files[1]);
}

static struct instances *mixture_of_shards(struct shard shards[2], struct instances *sources[2])
{
	const double weights[] = {0.6, 0.4};
	struct instance_settings settings = usual_settings();
	struct instances *mixture;
	for (int i = 0; i < 2; i++) {
		settings.seed = (uint64_t)i;
		assert_ok(instances_open(&sources[i], &shards[i], 1, &settings));
	}
	assert_ok(instances_open_mixture(&mixture, sources, weights, 2, 3));
	return mixture;
}

/* A late sample is the same whether all or none of the samples before it were read, and is found without walking through
 * millions of epochs. An epoch still yields nearly everything it contains. */
static void test_mixture_of_shards(void **state)
{
	struct shard shards[2];
	struct instances *sources[2], *mixture;
	struct instance_room room, late_room;
	struct instance *instance = room_for(&room), *late = room_for(&late_room);
	write_traced_shard(test_path("one"), 5, 60, 12, 40, 0, 60, &map);
	write_traced_shard(test_path("two"), 6, 25, 12, 40, 0, 25, &map);
	assert_ok(shard_open(&shards[0], test_path("one")));
	assert_ok(shard_open(&shards[1], test_path("two")));

	/* A weight that would have to be raised is refused; one that is merely rounded is not. */
	struct instance_settings settings = usual_settings();
	for (int i = 0; i < 2; i++)
		assert_ok(instances_open(&sources[i], &shards[i], 1, &settings));
	assert_error(ERR_USAGE, "source 2 of the mixture has 0.0001 of the total weight",
		     instances_open_mixture(&mixture, sources, (double[]){0.9999, 0.0001}, 2, 3));
	assert_ok(instances_open_mixture(&mixture, sources, (double[]){0.9998, 0.0002}, 2, 3));
	instances_close(mixture);

	mixture = mixture_of_shards(shards, sources);
	int64_t own = instances_per_epoch(sources[1]), epoch, first, last = 6 * instances_per_epoch(mixture);
	for (int64_t i = 0; i < last; i++)
		assert_ok(instances_get(mixture, i, instance));
	assert_ok(instances_locate(sources[1], 7 * own + 3, &epoch, &first));
	assert_int_equal(epoch, 7);
	assert_int_equal(first, 7 * own);
	instances_close(mixture);

	mixture = mixture_of_shards(shards, sources);
	assert_ok(instances_get(mixture, last - 1, late));
	assert_int_equal(late->length, instance->length);
	assert_memory_equal(late->ids, instance->ids, (size_t)late->length * sizeof(int32_t));
	assert_ok(instances_get(mixture, (int64_t)1 << 36, late));
	instances_close(mixture);

	shard_close(&shards[0]);
	shard_close(&shards[1]);
}

/* Shares by weight, with each source's samples in order and without gaps, whatever was read before. */
static void test_mixture(void **state)
{
	struct static_file files[2];
	struct instances *sources[2], *mixture;
	struct instance_settings settings = usual_settings();
	struct instance_room room;
	const double weights[] = {0.7, 0.3};
	write_static("large", 0, 5000);
	write_static("small", 10000, 300);
	settings.shuffle = false;
	for (int i = 0; i < 2; i++) {
		assert_ok(static_file_open(&files[i], test_path(i == 0 ? "large" : "small")));
		assert_ok(instances_open_static(&sources[i], &files[i], 1, &settings));
	}
	assert_ok(instances_open_mixture(&mixture, sources, weights, 2, 3));
	assert_int_equal(instances_per_epoch(mixture), 5300);
	int64_t next[2] = {0, 0}, given[20000];
	for (int64_t i = 0; i < 20000; i++) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(mixture, i, instance));
		int32_t number = instance->prediction_labels[0];
		int source = number >= 10000;
		assert_int_equal(number, source ? 10000 + next[1] % 300 : next[0] % 5000);
		next[source]++;
		given[i] = number;
		if (i % 100 == 99) /* no runs: the counts follow the shares throughout */
			assert_true(next[0] > i * 7 / 10 - 120 && next[0] < i * 7 / 10 + 120);
	}
	assert_near((double)next[0] / 20000, 0.7, 0.002);
	for (int64_t i = 19999; i >= 0; i -= 977) {
		struct instance *instance = room_for(&room);
		assert_ok(instances_get(mixture, i, instance));
		assert_int_equal(instance->prediction_labels[0], given[i]);
	}
	/* A phase that begins at sample 5000 starts every source from its beginning there. */
	assert_ok(instances_hint(mixture, 1, 5000));
	struct instance *instance = room_for(&room);
	int64_t epoch, first;
	bool begun[2] = {false, false};
	for (int64_t i = 5000; i < 5050; i++) {
		assert_ok(instances_get(mixture, i, instance));
		int source = instance->prediction_labels[0] >= 10000;
		if (!begun[source])
			assert_int_equal(instance->prediction_labels[0], source ? 10000 : 0);
		begun[source] = true;
	}
	assert_true(begun[0] && begun[1]);
	assert_ok(instances_locate(mixture, 9000, &epoch, &first));
	assert_int_equal(epoch, 1);
	assert_int_equal(first, 5000);
	instances_close(mixture); /* including the sources */
	static_file_close(&files[0]);
	static_file_close(&files[1]);
}

/* ---- Pairs for rewriting ---- */

/* The same pairs as a training source: a sample always has the same run, another sample of the pair has another one. */
static void pairs_are_masked_as_they_are_used(const char *path, const struct tokenizer *tokenizer)
{
	static const int32_t b_of_first[] = {7, 8, 9, 10}; /* cut to the room */
	const struct vocab *vocab = tokenizer_vocab(tokenizer);
	struct instance_demands demands = {.vocab_size = vocab->count, .tokenizer = tokenizer, .pair_length = 9};
	struct instance_settings settings = {.seed = 9, .shuffle = true, .vocab_size = vocab->count, .mask = vocab->mask};
	struct instance_counts counts;
	struct static_file file;
	struct instances *source;
	struct instance_room room, again;
	char own[PATH_BYTES];
	enum instance_format format;
	snprintf(own, sizeof own, "%s", test_path("pairs.instances"));
	assert_ok(instance_file_format(path, &format));
	assert_int_equal(format, INSTANCE_PAIRS);
	assert_error(ERR_DATA, "line 4 does not have the form label, id, text_a, text_b",
		     instance_file_convert(path, &demands, own, &counts));
	demands.skip_bad = true;
	assert_ok(instance_file_convert(path, &demands, own, &counts));
	assert_int_equal(counts.instances, 2);
	assert_int_equal(counts.bad, 2);
	assert_ok(static_file_verify(own));
	assert_ok(static_file_open(&file, own));
	assert_true(file.summary.has_pairs);
	assert_int_equal(file.summary.max_predictions, 2);
	assert_ok(instances_open_static(&source, &file, 1, &settings));
	assert_int_equal(instances_per_epoch(source), 2);
	int64_t starts[16] = {0}, masked = 0, kept = 0, first = 0;
	for (int64_t sample = 0; sample < 2000; sample++) {
		struct instance *one = room_for(&room), *two = room_for(&again);
		assert_ok(instances_get(source, sample, one));
		assert_ok(instances_get(source, sample, two));
		assert_memory_equal(one->ids, two->ids, (size_t)one->length * sizeof *one->ids);
		assert_int_equal(one->prediction_positions[0], two->prediction_positions[0]);
		assert_int_equal(one->prediction_count, 2);
		int32_t start = one->prediction_positions[0];
		assert_int_equal(one->prediction_positions[1], start + 1);
		assert_true(start >= 4 && start + 1 <= one->length - 2);
		masked += one->ids[start] == 4;
		kept += one->ids[start] == one->prediction_labels[0];
		if (one->next_label == 0)
			continue;
		first++;
		starts[start]++;
		assert_int_equal(one->length, 9);
		assert_int_equal(one->prediction_labels[0], b_of_first[start - 4]);
		assert_int_equal(one->prediction_labels[1], b_of_first[start - 3]);
	}
	assert_int_equal(first, 1000);
	for (int i = 4; i <= 6; i++) /* three places, alike */
		assert_true(starts[i] > 280 && starts[i] < 390);
	assert_true(masked > 1520 && masked < 1680);
	assert_true(kept > 150 && kept < 280); /* a tenth, and some that were drawn from the vocabulary */
	instances_close(source);
	static_file_close(&file);
	demands.tokenizer = NULL;
	assert_error(ERR_USAGE, "a text with tabs, not a file of instances", instance_file_convert(path, &demands, own, &counts));
}

static void test_rewriting(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e", "f", "g"};
	static const char lines[] = "1\t17\ta b\tc d e f g\n"
				    "0\t18\ta b c\td e\n" /* B is not longer */
				    "0\t19\ta\tc d e\n"   /* A has one token */
				    "no label\t20\ta b\tc d e\n"
				    "1\t21\ta b\n"
				    "\n"
				    "0\t22\tg f\te d c\tb\n"; /* the fourth field extends to the end of the line */
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct rewriting *rewriting;
	struct rewriting_counts counts;
	struct instance_room room;
	const char *path = test_path("pairs.tsv");
	assert_ok(vocab_from_entries(&vocab, entries, 12));
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	assert_ok(file_write(path, lines, sizeof lines - 1));
	struct rewriting_settings of_pairs = {.paths = &path,
					      .path_count = 1,
					      .tokenizer = tokenizer,
					      .prefix = test_path("pairs"),
					      .seed = 4,
					      .max_seq_length = 10,
					      .max_predictions_per_seq = 20};
	assert_ok(rewriting_open(&rewriting, &of_pairs, &counts));
	assert_int_equal(counts.pairs, 2);
	assert_int_equal(counts.malformed, 2);
	assert_int_equal(counts.unfit, 2);
	int64_t starts[16] = {0}, masked = 0;
	for (int64_t round = 0; round < 1000; round++) {
		struct instance *instance = room_for(&room);
		bool both[2] = {false, false};
		for (int64_t i = 0; i < 2; i++) {
			assert_ok(rewriting_get(rewriting, round, i, instance));
			both[instance->next_label] = true;
			assert_int_equal(instance->prediction_count, 2);
			assert_int_equal(instance->prediction_positions[1], instance->prediction_positions[0] + 1);
			assert_true(instance->prediction_positions[0] >= 4);
			assert_true(instance->prediction_positions[1] <= instance->length - 2);
			masked += instance->ids[instance->prediction_positions[0]] == 4;
			if (instance->next_label == 1) {
				assert_int_equal(instance->length, 10);
				starts[instance->prediction_positions[0]]++;
			}
		}
		assert_true(both[0] && both[1]);
	}
	for (int i = 4; i <= 7; i++) /* four places, alike */
		assert_true(starts[i] > 200 && starts[i] < 300);
	assert_true(masked > 1520 && masked < 1680);
	rewriting_close(rewriting);
	pairs_are_masked_as_they_are_used(path, tokenizer);
	assert_ok(file_write(path, "x\n", 2));
	assert_error(ERR_DATA, "no usable pair in 1 lines", rewriting_open(&rewriting, &of_pairs, &counts));
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),        cmocka_unit_test(test_order),
		cmocka_unit_test(test_single),      cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_length_band), cmocka_unit_test(test_ngrams),
		cmocka_unit_test(test_segmented),   cmocka_unit_test(test_static),
		cmocka_unit_test(test_mixture),     cmocka_unit_test(test_mixture_of_shards),
		cmocka_unit_test(test_rewriting),
	};
	return cmocka_run_group_tests(tests, open_shard, close_shard);
}
