/* Labeled examples as a source of steps: each example occurs once per epoch, in an order determined by (seed, epoch); an
 * example of several sequences stays whole however a step is cut; labels arrive with their own example; the hash changes
 * with any change. */
#include "base/rng.h"
#include "data/labeled.h"
#include "data/step_reader.h"
#include "test.h"

enum { EXAMPLES = 53, VOCAB = 1 << 15, ROW_WIDTH = 2, WIDTH = 3 };

/* What the set was made from, kept separately. Ids are all distinct and ascending, so that a token identifies its example. */
struct truth {
	int sequences, tokens;
	int lengths[4], seconds[4], first_id;
	int class_id, items;
	float weight;
	int32_t rows[3][ROW_WIDTH];
	float values[3][WIDTH];
};
static struct truth truths[EXAMPLES];
static int example_of[VOCAB];
static struct labeled_set set;

static void add_items(struct rng *rng, struct truth *truth)
{
	truth->items = (int)rng_below(rng, 4);
	for (int i = 0; i < truth->items; i++) {
		for (int k = 0; k < ROW_WIDTH; k++)
			truth->rows[i][k] = (int32_t)(rng_below(rng, (uint32_t)truth->tokens));
		for (int k = 0; k < WIDTH; k++)
			truth->values[i][k] = (float)rng_double(rng);
		assert_ok(labeled_item(&set, 1, truth->rows[i], NULL, truth->values[i], 2.0f));
	}
}

static int setup(void **state)
{
	struct rng rng = rng_start(5, RNG_TEST, 0);
	int32_t next = 1, ids[16];
	labeled_form(&set, 0, 1, 0, false);
	labeled_form(&set, 1, WIDTH, ROW_WIDTH, true);
	for (int e = 0; e < EXAMPLES; e++) {
		struct truth *truth = &truths[e];
		*truth = (struct truth){.sequences = 1 + (int)rng_below(&rng, 4), .first_id = next};
		truth->class_id = (int)rng_below(&rng, 5);
		truth->weight = e % 7 == 3 ? 0.0f : 0.5f;
		assert_ok(labeled_begin(&set));
		for (int s = 0; s < truth->sequences; s++) {
			int length = 1 + (int)rng_below(&rng, 16);
			truth->lengths[s] = length;
			truth->seconds[s] = (int)rng_below(&rng, (uint32_t)length + 1);
			truth->tokens += length;
			for (int i = 0; i < length; i++) {
				example_of[next] = e;
				ids[i] = next++;
			}
			assert_ok(labeled_sequence(&set, ids, length, truth->seconds[s]));
		}
		assert_ok(labeled_item(&set, 0, NULL, &truth->class_id, NULL, truth->weight));
		add_items(&rng, truth);
	}
	return 0;
}

static int teardown(void **state)
{
	labeled_release(&set);
	return 0;
}

static struct instances *open_source(uint64_t seed, bool shuffle)
{
	struct labeled_source source = {.seed = seed, .shuffle = shuffle, .vocab_size = VOCAB};
	struct instances *instances;
	assert_ok(instances_open_labeled(&instances, &set, &source));
	return instances;
}

/* Reads the examples of an epoch in their order. */
static void read_epoch(struct instances *instances, int64_t number, int64_t *order)
{
	for (int64_t i = 0; i < EXAMPLES; i++) {
		struct example_plan plan;
		int64_t epoch, first;
		assert_ok(instances_plan(instances, number * EXAMPLES + i, &plan, &epoch, &first));
		assert_int_equal(epoch, number);
		assert_int_equal(first, number * EXAMPLES);
		assert_int_equal(plan.sequences, truths[plan.index].sequences);
		assert_int_equal(plan.tokens, truths[plan.index].tokens);
		order[i] = plan.index;
	}
}

static void an_epoch_has_each_once(void **state)
{
	int64_t orders[4][EXAMPLES];
	struct instances *instances = open_source(9, true), *same = open_source(9, true), *other = open_source(10, true);
	assert_int_equal(instances_per_epoch(instances), EXAMPLES);
	for (int epoch = 0; epoch < 3; epoch++) {
		bool seen[EXAMPLES] = {false};
		read_epoch(instances, epoch, orders[epoch]);
		for (int i = 0; i < EXAMPLES; i++) {
			assert_in_range(orders[epoch][i], 0, EXAMPLES - 1);
			assert_false(seen[orders[epoch][i]]);
			seen[orders[epoch][i]] = true;
		}
		read_epoch(same, epoch, orders[3]);
		assert_memory_equal(orders[epoch], orders[3], sizeof orders[3]);
		read_epoch(other, epoch, orders[3]);
		assert_memory_not_equal(orders[epoch], orders[3], sizeof orders[3]);
	}
	assert_memory_not_equal(orders[0], orders[1], sizeof orders[0]);
	assert_memory_not_equal(orders[1], orders[2], sizeof orders[0]);
	instances_close(instances);
	instances_close(same);
	instances_close(other);
}

static void without_shuffling_the_order_is_the_files(void **state)
{
	struct instances *instances = open_source(9, false);
	for (int64_t epoch = 0; epoch < 2; epoch++) {
		int64_t order[EXAMPLES];
		read_epoch(instances, epoch, order);
		for (int i = 0; i < EXAMPLES; i++)
			assert_int_equal(order[i], i);
	}
	instances_close(instances);
}

static void a_hint_says_where_an_epoch_begins(void **state)
{
	struct instances *instances = open_source(9, true), *hinted = open_source(9, true);
	int64_t epoch, first;
	/* As after a resume: the hint is right, so nothing changes, before or after it. */
	assert_ok(instances_hint(hinted, 2, 2 * EXAMPLES));
	for (int64_t sample = 4 * EXAMPLES - 1; sample >= 0; sample -= 5) {
		struct example_plan a, b;
		assert_ok(instances_plan(instances, sample, &a, NULL, NULL));
		assert_ok(instances_plan(hinted, sample, &b, NULL, NULL));
		assert_int_equal(a.index, b.index);
	}
	assert_ok(instances_locate(hinted, 3 * EXAMPLES + 4, &epoch, &first));
	assert_int_equal(epoch, 3);
	assert_int_equal(first, 3 * EXAMPLES);
	assert_error(ERR_STATE, "epoch -1", instances_hint(hinted, -1, 0));
	instances_close(instances);
	instances_close(hinted);
}

/* Example number `at` of a batch is the same as when it was added; returns which example it is. `items`: those of head 1
 * so far. */
static int check_example(const struct batch *batch, int32_t at, int32_t *items)
{
	int32_t b = batch->example_starts[at], token = batch->starts[b], start = token;
	int e = example_of[batch->ids[token]];
	const struct truth *truth = &truths[e];
	assert_int_equal(batch->ids[token], truth->first_id);
	assert_int_equal(batch->example_starts[at + 1] - b, truth->sequences);
	for (int s = 0; s < truth->sequences; s++, b++) {
		assert_int_equal(batch->starts[b], token);
		assert_int_equal(batch->starts[b + 1] - token, truth->lengths[s]);
		for (int i = 0; i < truth->lengths[s]; i++, token++) {
			assert_int_equal(batch->ids[token], truth->first_id + (token - start));
			assert_int_equal(batch->types[token], i >= truth->seconds[s]);
			assert_int_equal(batch->positions[token], i);
		}
	}
	assert_int_equal(batch->labels[0].classes[at], truth->class_id);
	assert_true(batch->labels[0].weights[at] == truth->weight);
	for (int i = 0; i < truth->items; i++, ++*items) {
		const struct batch_labels *labels = &batch->labels[1];
		assert_true(*items < labels->count);
		for (int k = 0; k < ROW_WIDTH; k++)
			assert_int_equal(labels->rows[*items * ROW_WIDTH + k], start + truth->rows[i][k]);
		for (int k = 0; k < WIDTH; k++)
			assert_true(labels->values[*items * WIDTH + k] == truth->values[i][k]);
		assert_true(labels->weights[*items] == 2.0f);
	}
	return e;
}

/* Checks the part of a step that one rank gets; adds to `counts` how often each example occurred. */
static void check_share(const struct step *step, const struct step_settings *settings, int *counts, double *weights)
{
	for (int32_t m = 0; m < step->batch_count; m++) {
		const struct batch *batch;
		int32_t items = 0;
		assert_ok(step_batch(step, m, &batch));
		assert_true(batch->token_count <= settings->capacity.tokens);
		assert_int_equal(batch->example_starts[batch->example_count], batch->sequence_count);
		assert_int_equal(batch->labels[0].count, batch->example_count);
		for (int32_t at = 0; at < batch->example_count; at++) {
			int e = check_example(batch, at, &items);
			counts[e]++;
			weights[0] += truths[e].weight;
			weights[1] += 2.0 * truths[e].items;
		}
		assert_int_equal(items, batch->labels[1].count);
	}
}

/* Two epochs in steps of 7, over all ranks: each example occurs twice, however the steps are cut. */
static void check_cut(int32_t ranks, int32_t replicas, int32_t accumulation_steps, int64_t token_limit)
{
	struct instances *instances = open_source(9, true);
	int counts[EXAMPLES] = {0};
	int64_t all = 0;
	for (int32_t rank = 0; rank < ranks; rank++) {
		struct step_settings settings = {.batch_size = 7,
						 .rank = rank,
						 .ranks = ranks,
						 .replicas = replicas,
						 .linear_work = 100,
						 .accumulation_steps = accumulation_steps,
						 .first_step = 1,
						 .sample_count = 2 * EXAMPLES};
		struct step_reader *reader;
		const struct step *step;
		settings.capacity = batch_capacity_for(instances_bounds(instances), step_part_examples(&settings),
						       accumulation_steps, token_limit);
		assert_ok(step_reader_open(&reader, instances, &settings));
		for (;;) {
			double weights[2] = {0};
			assert_ok(step_reader_next(reader, &step));
			if (!step)
				break;
			check_share(step, &settings, counts, weights);
			assert_near(step->weights[0], weights[0], 1e-9);
			assert_near(step->weights[1], weights[1], 1e-9);
			all += rank == 0 ? step->example_count : 0;
		}
		step_reader_close(reader);
	}
	assert_int_equal(all, 2 * EXAMPLES);
	for (int e = 0; e < EXAMPLES; e++)
		assert_int_equal(counts[e], 2);
	instances_close(instances);
}

static void examples_stay_whole_in_every_cut(void **state)
{
	for (int32_t ranks = 1; ranks <= 4; ranks++) {
		check_cut(ranks, 1, 0, 0);
		check_cut(ranks, 1, 0, 64); /* one full example at a time */
		check_cut(ranks, 2, 0, 100);
		if (ranks == 1)
			check_cut(ranks, 1, 3, 0);
	}
}

/* Flips one bit in each word of an array, one after another; each flip must change the hash. */
static void check_bits(void *array, int64_t bytes, uint64_t hash)
{
	unsigned char *at = array;
	for (int64_t i = 0; i < bytes; i += 1 + i % 3) {
		at[i] ^= (unsigned char)(1u << (i % 8));
		assert_true(labeled_hash(&set) != hash);
		at[i] ^= (unsigned char)(1u << (i % 8));
	}
	assert_true(labeled_hash(&set) == hash);
}

static void the_hash_notices_any_change(void **state)
{
	uint64_t hash = labeled_hash(&set);
	const struct labeled_items *items = set.items;
	check_bits(set.examples, (EXAMPLES + 1) * 8, hash);
	check_bits(set.sequences, (set.sequence_count + 1) * 8, hash);
	check_bits(set.seconds, set.sequence_count * 4, hash);
	check_bits(set.ids, set.token_count * 4, hash);
	check_bits(items[0].classes, EXAMPLES * 4, hash);
	check_bits(items[0].weights, EXAMPLES * 4, hash);
	check_bits(items[1].starts, (EXAMPLES + 1) * 8, hash);
	check_bits(items[1].rows, items[1].count * ROW_WIDTH * 4, hash);
	check_bits(items[1].numbers, items[1].count * WIDTH * 4, hash);
	check_bits(items[1].weights, items[1].count * 4, hash);
}

/* Labels of another head or kind are other data, even if they have the same bits. */
static void the_hash_knows_heads_and_kinds(void **state)
{
	uint64_t hashes[3];
	for (int i = 0; i < 3; i++) {
		struct labeled_set one = {0};
		int32_t id = 4, class_id = 0;
		float value = 0;
		labeled_form(&one, i == 1, 1, 0, i == 2);
		assert_ok(labeled_begin(&one));
		assert_ok(labeled_sequence(&one, &id, 1, 1));
		assert_ok(labeled_item(&one, i == 1, NULL, i == 2 ? NULL : &class_id, i == 2 ? &value : NULL, 1));
		hashes[i] = labeled_hash(&one);
		labeled_release(&one);
	}
	assert_true(hashes[0] != hashes[1]);
	assert_true(hashes[0] != hashes[2]);
}

static void nothing_is_no_source(void **state)
{
	struct labeled_set none = {0};
	struct labeled_source source = {.vocab_size = VOCAB};
	struct instances *instances;
	assert_error(ERR_DATA, "no examples", instances_open_labeled(&instances, &none, &source));
	assert_null(instances);
}

/* Every batch is of one part; an epoch has each part's examples at least once, and as many of its batches as they fill or as its
 * weight says; a late sample is found without those before it. */
static void batches_are_of_one_part(void **state)
{
	enum { SIZE = 4, BATCHES = 5 + 7 + 2, EPOCHS = 3 };
	struct labeled_part parts[] = {{0, 0}, {20, 0}, {45, 0}};
	static const int fills[] = {5, 7, 2}, weighed[] = {1, 3, 10};
	struct labeled_source source = {.seed = 9, .shuffle = true, .vocab_size = VOCAB, .batch_size = SIZE};
	struct labeled_set parted = set;
	parted.parts = parts;
	parted.part_count = 3;
	assert_int_equal(labeled_batches(&parted, SIZE), BATCHES);
	assert_int_equal(labeled_batches(&set, SIZE), 14);
	assert_true(labeled_hash(&parted) != labeled_hash(&set));
	for (int weights = 0; weights < 2; weights++) {
		struct instances *instances, *late;
		int64_t orders[EPOCHS][BATCHES];
		for (int p = 0; p < 3; p++)
			parts[p].weight = weights ? weighed[p] : 0;
		assert_ok(instances_open_labeled(&instances, &parted, &source));
		assert_ok(instances_open_labeled(&late, &parted, &source));
		for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
			bool seen[EXAMPLES] = {false};
			int batches[3] = {0};
			for (int64_t i = 0; i < BATCHES * SIZE; i++) {
				struct example_plan plan, same;
				assert_ok(instances_plan(instances, epoch * BATCHES * SIZE + i, &plan, NULL, NULL));
				int64_t part = plan.index < 20 ? 0 : plan.index < 45 ? 1 : 2;
				assert_int_equal(plan.member, part);
				if (i % SIZE == 0)
					orders[epoch][i / SIZE] = part;
				assert_int_equal(part, orders[epoch][i / SIZE]);
				batches[part] += i % SIZE == 0;
				seen[plan.index] = true;
				if (epoch < EPOCHS - 1 || i < BATCHES * SIZE - 1)
					continue;
				assert_ok(instances_plan(late, epoch * BATCHES * SIZE + i, &same, NULL, NULL));
				assert_int_equal(same.index, plan.index);
			}
			assert_memory_equal(batches, weights ? weighed : fills, sizeof batches);
			for (int e = 0; e < EXAMPLES && !weights && epoch == 0; e++)
				assert_true(seen[e]);
		}
		assert_memory_not_equal(orders[0], orders[1], sizeof orders[0]);
		instances_close(instances);
		instances_close(late);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_epoch_has_each_once),
		cmocka_unit_test(batches_are_of_one_part),
		cmocka_unit_test(without_shuffling_the_order_is_the_files),
		cmocka_unit_test(a_hint_says_where_an_epoch_begins),
		cmocka_unit_test(examples_stay_whole_in_every_cut),
		cmocka_unit_test(the_hash_notices_any_change),
		cmocka_unit_test(the_hash_knows_heads_and_kinds),
		cmocka_unit_test(nothing_is_no_source),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
