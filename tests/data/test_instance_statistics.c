/* Statistics of our instances over many epochs against those of BERT's algorithm as run by dev/instance_statistics.py: the
 * same documents, other random numbers. The golden file holds means and standard deviations of one pass over the
 * documents. */
#include "instances_test.h"
#include <math.h>
#include "base/json.h"

#define GOLDEN "tests/golden/instance_statistics.json"
/* About 80 comparisons: by chance one in 3,500 runs would have a z beyond this, but our random numbers are always the
 * same. */
#define Z_LIMIT 4.5
#define EPOCHS 1500

enum {
	INSTANCES,
	TOKENS,
	RANDOM,
	A_TOKENS,
	B_TOKENS,
	A_OF_RANDOM,
	PREDICTIONS,
	SHORT,
	TINY,
	HALF,
	THREE_QUARTERS,
	MASKED,
	KEPT,
	REPLACED,
	RATE,
	PLACE,
	A_BEGINS,
	A_ENDS,
	B_BEGINS,
	B_ENDS,
	SAME_DOCUMENT,
	STATISTICS
};
static const char *const names[STATISTICS] = {
	"instances", "tokens", "random",   "a_tokens",       "b_tokens", "a_of_random", "predictions",
	"short",     "tiny",   "half",     "three_quarters", "masked",   "kept",        "replaced",
	"rate",      "place",  "a_begins", "a_ends",         "b_begins", "b_ends",      "same_document"};

static struct corpus_map map;
static bool continuation[TRACED_VOCAB];

/* Sums over the instances of one epoch, turned into statistics at its end. */
struct sums {
	double value[STATISTICS];
};

static void add_instance(struct sums *sums, const struct instance *instance, int32_t full)
{
	int32_t original[512], length = instance->length, middle = 1;
	double *value = sums->value;
	memcpy(original, instance->ids, (size_t)length * sizeof *original);
	for (int32_t i = 0; i < instance->prediction_count; i++) {
		int32_t at = instance->prediction_positions[i], label = instance->prediction_labels[i];
		value[MASKED] += instance->ids[at] == MASK;
		value[KEPT] += instance->ids[at] == label;
		value[PLACE] += (double)at / length;
		original[at] = label;
	}
	while (original[middle] != SEP)
		middle++;
	value[INSTANCES]++;
	value[TOKENS] += length;
	value[RANDOM] += instance->next_label;
	value[A_TOKENS] += middle - 1;
	value[B_TOKENS] += length - middle - 2;
	value[A_OF_RANDOM] += instance->next_label ? middle - 1 : 0;
	value[PREDICTIONS] += instance->prediction_count;
	value[SHORT] += length < full;
	value[TINY] += length <= full / 4;
	value[HALF] += length <= full / 2;
	value[THREE_QUARTERS] += length <= full * 3 / 4;
	/* map.sentence_begins is valid for one id past the last, too. */
	value[A_BEGINS] += map.sentence_begins[original[1]];
	value[A_ENDS] += map.sentence_begins[original[middle - 1] + 1];
	value[B_BEGINS] += map.sentence_begins[original[middle + 1]];
	value[B_ENDS] += map.sentence_begins[original[length - 2] + 1];
	value[SAME_DOCUMENT] += map.document[original[1]] == map.document[original[middle + 1]];
}

static void finish_epoch(struct sums *sums)
{
	double *value = sums->value, count = value[INSTANCES], pairs = value[PREDICTIONS];
	value[REPLACED] = (pairs - value[MASKED] - value[KEPT]) / pairs;
	value[MASKED] /= pairs;
	value[KEPT] /= pairs;
	value[PLACE] /= pairs;
	value[RATE] = pairs / (value[TOKENS] - 3 * count);
	value[A_OF_RANDOM] /= value[RANDOM] > 0 ? value[RANDOM] : 1;
	static const int shares[] = {RANDOM,         A_TOKENS, B_TOKENS, PREDICTIONS, SHORT,  TINY,         HALF,
				     THREE_QUARTERS, A_BEGINS, A_ENDS,   B_BEGINS,    B_ENDS, SAME_DOCUMENT};
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
		value[shares[i]] /= count;
}

static double number(const struct json *object, const char *key)
{
	double value = NAN;
	assert_ok(json_get_number(object, GOLDEN, key, &value));
	assert_false(isnan(value));
	return value;
}

/* Writes the documents, given as lists of sentence lengths; every token has its own id. */
static int32_t write_documents(const struct json *documents)
{
	struct shard_writer *writer;
	struct shard_description description = {0};
	int32_t next = FIRST_ID, ids[512];
	int index = 0;
	memset(&map, 0, sizeof map);
	assert_ok(shard_writer_open(&writer, test_path("golden"), TRACED_VOCAB));
	for (const struct json *document = documents->first_child; document; document = document->next, index++) {
		for (const struct json *length = document->first_child; length; length = length->next) {
			map.sentence_begins[next] = true;
			for (int64_t i = 0; i < length->integer; i++) {
				map.document[next] = index;
				ids[i] = next++;
			}
			assert_ok(shard_writer_sentence(writer, ids, length->integer));
		}
		assert_ok(shard_writer_end_document(writer));
	}
	map.sentence_begins[next] = true;
	assert_ok(shard_writer_commit(writer, &description));
	return next;
}

static void compare_case(const struct json *golden)
{
	const char *name = "";
	bool whole_words = false;
	struct instance_settings settings = usual_settings();
	assert_ok(json_get_string(golden, GOLDEN, "name", &name));
	assert_ok(json_get_bool(golden, GOLDEN, "do_whole_word_mask", &whole_words));
	for (int i = 0; i < TRACED_VOCAB; i++)
		continuation[i] = i % 3 == 0;
	settings.vocab_size = write_documents(json_member(golden, "documents"));
	settings.max_seq_length = (int32_t)number(golden, "max_seq_length");
	settings.max_predictions_per_seq = (int32_t)number(golden, "max_predictions_per_seq");
	settings.masked_lm_prob = number(golden, "masked_lm_prob");
	settings.short_seq_prob = number(golden, "short_seq_prob");
	settings.whole_word_mask = whole_words;
	settings.is_continuation = continuation;
	struct shard shard;
	struct instances *instances;
	struct instance_room room;
	double mean[STATISTICS] = {0}, square[STATISTICS] = {0};
	assert_ok(shard_open(&shard, test_path("golden")));
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	int64_t sample = 0, found, first;
	for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
		struct sums sums = {0};
		for (;; sample++) {
			assert_ok(instances_locate(instances, sample, &found, &first));
			if (found > epoch)
				break;
			assert_ok(instances_get(instances, sample, room_for(&room)));
			add_instance(&sums, &room.instance, settings.max_seq_length);
		}
		finish_epoch(&sums);
		for (int i = 0; i < STATISTICS; i++) {
			mean[i] += sums.value[i] / EPOCHS;
			square[i] += sums.value[i] * sums.value[i] / EPOCHS;
		}
	}
	instances_close(instances);
	shard_close(&shard);
	double worst = 0;
	for (int i = 0; i < STATISTICS; i++) {
		const struct json *expected = json_member(json_member(golden, "statistics"), names[i]);
		double deviation = number(expected, "deviation"), variance = fmax(square[i] - mean[i] * mean[i], 0);
		double error = sqrt(variance / EPOCHS + deviation * deviation / number(golden, "runs"));
		double difference = mean[i] - number(expected, "mean");
		/* Quantities that never vary must agree up to rounding. */
		double z = fabs(difference) < 1e-9 ? 0 : difference / error;
		if (!(fabs(z) <= Z_LIMIT))
			fail_msg("%s: %s is %.5f, BERT's %.5f: z = %.1f", name, names[i], mean[i], number(expected, "mean"), z);
		worst = fmax(worst, fabs(z));
	}
	print_message("%s: largest |z| of %d statistics: %.2f\n", name, STATISTICS, worst);
}

static void test_against_golden(void **state)
{
	struct json_document document;
	int cases = 0;
	assert_ok(json_read(&document, GOLDEN, 1 << 20));
	for (const struct json *c = json_member(document.root, "cases")->first_child; c; c = c->next, cases++)
		compare_case(c);
	assert_int_equal(cases, 4);
	json_release(&document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_golden)};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
