/* A step holds the instances of its samples however it is cut, and is the same whenever it is read. */
#include <malloc.h>
#include <unistd.h>
#include "data/pretraining/instances.h"
#include "steps_test.h"

static struct step_settings usual_step(int64_t batch_size, int32_t accumulation_steps, int64_t token_limit)
{
	struct instance_settings settings = usual_settings();
	struct example_bounds bounds = instance_bounds(&settings);
	return (struct step_settings){.batch_size = batch_size,
				      .accumulation_steps = accumulation_steps,
				      .capacity = batch_capacity_for(&bounds, batch_size, accumulation_steps, token_limit),
				      .first_step = 1};
}

static int64_t round_up(int64_t count)
{
	return (count + 127) / 128 * 128;
}

static void check_zero(const void *array, int64_t used, int64_t size)
{
	const int32_t *words = array; /* every array has entries of four bytes, and 0 is all bits zero */
	for (int64_t i = used; i < size; i++)
		assert_int_equal(words[i], 0);
}

static void check_tails(const struct batch *batch, struct batch_capacity capacity)
{
	int64_t tokens = round_up(capacity.tokens), sequences = round_up(capacity.sequences + 1);
	int64_t predictions = round_up(capacity.labels[HEAD_MASKED_WORDS].count);
	const void *of_tokens[] = {batch->ids, batch->types, batch->positions, batch->token_samples, batch->id_order};
	const void *of_predictions[] = {batch->labels[HEAD_MASKED_WORDS].rows, batch->labels[HEAD_MASKED_WORDS].classes,
					batch->labels[HEAD_MASKED_WORDS].weights};
	for (int i = 0; i < 5; i++)
		check_zero(of_tokens[i], batch->token_count, tokens);
	for (int i = 0; i < 3; i++)
		check_zero(of_predictions[i], batch->labels[HEAD_MASKED_WORDS].count, predictions);
	check_zero(batch->starts, batch->sequence_count + 1, sequences);
	check_zero(batch->samples, batch->sequence_count, sequences);
	check_zero(batch->labels[HEAD_NEXT_SENTENCE].classes, batch->sequence_count, sequences);
}

/* Checks that the b-th sequence of a batch is the instance of this sample. Returns the index of its last prediction + 1. */
static int32_t check_sequence(const struct batch *batch, int32_t b, int64_t sample, int32_t first_prediction)
{
	struct instance_room room;
	assert_ok(instances_get(instances, sample, room_for(&room)));
	const struct instance *instance = &room.instance;
	int32_t start = batch->starts[b];
	assert_int_equal(batch->starts[b + 1] - start, instance->length);
	assert_int_equal(batch->samples[b], (uint32_t)sample);
	assert_int_equal(batch->labels[HEAD_NEXT_SENTENCE].classes[b], instance->next_label);
	assert_memory_equal(batch->ids + start, instance->ids, (size_t)instance->length * 4);
	assert_memory_equal(batch->types + start, instance->types, (size_t)instance->length * 4);
	for (int32_t i = 0; i < instance->length; i++) {
		assert_int_equal(batch->positions[start + i], i);
		assert_int_equal(batch->token_samples[start + i], (uint32_t)sample);
	}
	for (int32_t i = 0; i < instance->prediction_count; i++) {
		int32_t p = first_prediction + i;
		assert_int_equal(batch->labels[HEAD_MASKED_WORDS].rows[p], start + instance->prediction_positions[i]);
		assert_int_equal(batch->labels[HEAD_MASKED_WORDS].classes[p], instance->prediction_labels[i]);
		assert_true(batch->labels[HEAD_MASKED_WORDS].weights[p] == 1.0f);
	}
	return first_prediction + instance->prediction_count;
}

static void check_id_order(const struct batch *batch)
{
	static bool seen[1 << 16];
	memset(seen, 0, sizeof seen);
	for (int32_t i = 0; i < batch->token_count; i++) {
		int32_t at = batch->id_order[i], before = i > 0 ? batch->id_order[i - 1] : 0;
		assert_true(at >= 0 && at < batch->token_count && !seen[at]);
		seen[at] = true;
		if (i > 0)
			assert_true(batch->ids[before] < batch->ids[at] || (batch->ids[before] == batch->ids[at] && before < at));
	}
}

static void check_step(const struct step *step, const struct step_settings *settings)
{
	int64_t sample = step->first_sample, tokens = 0, predictions = 0;
	assert_int_equal(sample, (step->number - 1) * settings->batch_size);
	for (int32_t m = 0; m < step->batch_count; m++) {
		const struct batch *batch = &step->batches[m];
		int32_t prediction = 0, longest = 0;
		assert_true(batch->token_count <= settings->capacity.tokens);
		assert_true(batch->sequence_count <= settings->capacity.sequences);
		assert_true(batch->labels[HEAD_MASKED_WORDS].count <= settings->capacity.labels[HEAD_MASKED_WORDS].count);
		assert_int_equal(batch->starts[0], 0);
		for (int32_t b = 0; b < batch->sequence_count; b++) {
			prediction = check_sequence(batch, b, sample++, prediction);
			int32_t length = batch->starts[b + 1] - batch->starts[b];
			longest = length > longest ? length : longest;
		}
		assert_int_equal(batch->longest, longest);
		assert_int_equal(batch->labels[HEAD_MASKED_WORDS].count, prediction);
		assert_int_equal(batch->token_count, batch->starts[batch->sequence_count]);
		check_id_order(batch);
		check_tails(batch, settings->capacity);
		tokens += batch->token_count;
		predictions += batch->labels[HEAD_MASKED_WORDS].count;
	}
	assert_int_equal(sample - step->first_sample, step->example_count);
	assert_int_equal(step->labeled[HEAD_NEXT_SENTENCE], step->example_count);
	assert_int_equal(step->token_count, tokens);
	assert_int_equal(step->labeled[HEAD_MASKED_WORDS], predictions);
	assert_true(step->weights[HEAD_MASKED_WORDS] == (double)predictions);
	int64_t epoch, first;
	assert_ok(instances_locate(instances, step->first_sample, &epoch, &first));
	assert_int_equal(step->epoch, epoch);
	assert_int_equal(step->epoch_first, first);
}

static void check_steps(const struct step_settings *settings, int64_t steps, int32_t *batch_counts)
{
	struct step_reader *reader;
	const struct step *step;
	assert_ok(step_reader_open(&reader, instances, settings));
	for (int64_t s = 0; s < steps; s++) {
		assert_ok(step_reader_next(reader, &step));
		assert_int_equal(step->number, settings->first_step + s);
		check_step(step, settings);
		if (batch_counts != NULL)
			batch_counts[s] = step->batch_count;
	}
	assert_true(step_reader_waited(reader) >= 0);
	step_reader_close(reader);
}

/* The same 32 instances as 1 x 32, 4 x 8, 5 parts, and as the capacity allows; for several epochs. */
static void test_cuts(void **state)
{
	int32_t batches[40];
	struct step_settings settings = usual_step(32, 1, 0);
	check_steps(&settings, 40, batches);
	assert_int_equal(batches[39], 1);
	settings = usual_step(32, 4, 0);
	assert_int_equal(settings.capacity.tokens, 8 * 64);
	check_steps(&settings, 40, batches);
	assert_int_equal(batches[39], 4);
	settings = usual_step(32, 5, 0);
	check_steps(&settings, 5, batches);
	assert_int_equal(batches[0], 5);
	settings = usual_step(3, 5, 0); /* no empty micro-batch */
	check_steps(&settings, 5, batches);
	assert_int_equal(batches[0], 3);
	for (int64_t limit = 1; limit <= 4096; limit *= 2) {
		settings = usual_step(32, 0, limit);
		assert_int_equal(settings.capacity.tokens, limit < 64 ? 64 : limit > 2048 ? 2048 : limit);
		check_steps(&settings, 10, batches);
	}
	assert_int_equal(batches[0], 1);
	/* Each limit on its own. */
	settings = usual_step(32, 0, 0);
	settings.capacity.sequences = 7;
	check_steps(&settings, 10, batches);
	assert_int_equal(batches[0], 5);
	settings = usual_step(32, 0, 0);
	settings.capacity.labels[HEAD_MASKED_WORDS].count = 25;
	check_steps(&settings, 10, batches);
	assert_true(batches[0] > 5);
}

/* As few micro-batches as the capacity allows: none but the last could also hold the first sequence of the next one. */
static void test_greedy(void **state)
{
	struct step_settings settings = usual_step(64, 0, 300);
	struct instance_settings of_instances = usual_settings();
	struct step_reader *reader;
	const struct step *step;
	assert_ok(step_reader_open(&reader, instances, &settings));
	for (int s = 0; s < 20; s++) {
		assert_ok(step_reader_next(reader, &step));
		for (int32_t m = 0; m + 1 < step->batch_count; m++) {
			const struct batch *batch = &step->batches[m];
			int32_t next = step->batches[m + 1].starts[1];
			assert_true(batch->token_count + next > settings.capacity.tokens ||
				    batch->sequence_count == settings.capacity.sequences ||
				    batch->labels[HEAD_MASKED_WORDS].count + instance_predictions(&of_instances, next) >
					    settings.capacity.labels[HEAD_MASKED_WORDS].count);
		}
	}
	step_reader_close(reader);
}

static uint64_t step_hash(const struct step *step)
{
	uint64_t hash = 14695981039346656037u;
	for (int32_t m = 0; m < step->batch_count; m++) {
		const struct batch *batch = &step->batches[m];
		const int32_t *arrays[] = {batch->ids, batch->types, batch->id_order, batch->positions};
		for (int a = 0; a < 4; a++)
			for (int32_t i = 0; i < batch->token_count; i++)
				hash = (hash ^ (uint32_t)arrays[a][i]) * 1099511628211u;
		for (int32_t i = 0; i < batch->labels[HEAD_MASKED_WORDS].count; i++)
			hash = (hash ^ (uint32_t)batch->labels[HEAD_MASKED_WORDS].classes[i]) * 1099511628211u;
		hash = (hash ^ (uint32_t)batch->sequence_count) * 1099511628211u;
	}
	return hash;
}

/* Steps from k on, read from the start, by a reader that begins at k, and by one that was given the epoch as a hint. */
static void test_resume(void **state)
{
	enum { STEPS = 60 };
	uint64_t hashes[STEPS + 1];
	int64_t epochs[STEPS + 1], firsts[STEPS + 1];
	struct step_settings settings = usual_step(32, 0, 1000);
	struct instance_settings of_instances = usual_settings();
	struct step_reader *reader;
	const struct step *step;
	assert_ok(step_reader_open(&reader, instances, &settings));
	for (int s = 1; s <= STEPS; s++) {
		assert_ok(step_reader_next(reader, &step));
		hashes[s] = step_hash(step);
		epochs[s] = step->epoch;
		firsts[s] = step->epoch_first;
	}
	step_reader_close(reader);
	assert_true(epochs[STEPS] >= 2);
	for (int k = 2; k <= STEPS; k += 19) {
		for (int hinted = 0; hinted < 2; hinted++) {
			struct instances *fresh;
			assert_ok(instances_open(&fresh, &shard, 1, &of_instances));
			if (hinted)
				assert_ok(instances_hint(fresh, epochs[k], firsts[k]));
			settings.first_step = k;
			settings.last_step = STEPS;
			assert_ok(step_reader_open(&reader, fresh, &settings));
			for (int s = k; s <= STEPS; s++) {
				assert_ok(step_reader_next(reader, &step));
				assert_int_equal(step->number, s);
				assert_true(step_hash(step) == hashes[s]);
			}
			assert_ok(step_reader_next(reader, &step));
			assert_null(step);
			assert_ok(step_reader_next(reader, &step));
			assert_null(step);
			step_reader_close(reader);
			instances_close(fresh);
		}
	}
}

/* An evaluation set ends after its samples, with a short last step, and is the same each time. */
static void test_evaluation_set(void **state)
{
	int64_t count = instances_per_epoch(instances);
	uint64_t sums[2] = {0};
	struct step_settings settings = usual_step(50, 0, 0);
	settings.sample_count = count;
	for (int round = 0; round < 2; round++) {
		struct step_reader *reader;
		const struct step *step;
		int64_t seen = 0;
		assert_ok(step_reader_open(&reader, instances, &settings));
		for (;;) {
			assert_ok(step_reader_next(reader, &step));
			if (step == NULL)
				break;
			check_step(step, &settings);
			assert_int_equal(step->epoch, 0);
			seen += step->example_count;
			sums[round] = sums[round] * 31 + step_hash(step);
		}
		assert_int_equal(seen, count);
		step_reader_close(reader);
	}
	assert_true(sums[0] == sums[1]);
	settings.first_step = 1000; /* past the end */
	struct step_reader *reader;
	const struct step *step;
	assert_ok(step_reader_open(&reader, instances, &settings));
	assert_ok(step_reader_next(reader, &step));
	assert_null(step);
	step_reader_close(reader);
}

/* A step stays unchanged until the call after the next, while others are being made. */
static void test_lifetime(void **state)
{
	struct step_settings settings = usual_step(32, 0, 0);
	struct step_reader *reader;
	const struct step *step, *before = NULL;
	uint64_t hash = 0;
	assert_ok(step_reader_open(&reader, instances, &settings));
	for (int s = 0; s < 100; s++) {
		assert_ok(step_reader_next(reader, &step));
		if (s % 7 == 0)
			usleep(2000); /* let the thread run ahead as far as it may */
		if (before != NULL) {
			assert_int_equal(before->number, s);
			assert_true(step_hash(before) == hash);
		}
		hash = step_hash(step);
		before = step;
	}
	step_reader_close(reader);
	for (int i = 0; i < 50; i++) { /* closed at arbitrary moments */
		assert_ok(step_reader_open(&reader, instances, &settings));
		if (i % 2)
			assert_ok(step_reader_next(reader, &step));
		step_reader_close(reader);
	}
	step_reader_close(NULL);
}

/* Many epochs take no more memory than the first step. */
static void test_memory(void **state)
{
	struct step_settings settings = usual_step(32, 0, 1000);
	struct step_reader *reader;
	const struct step *step;
	assert_ok(step_reader_open(&reader, instances, &settings));
	assert_ok(step_reader_next(reader, &step));
	struct mallinfo2 before = mallinfo2(); /* over all threads; zeros under the sanitizers */
	for (int s = 0; s < 200; s++)
		assert_ok(step_reader_next(reader, &step));
	assert_true(step->epoch > 4);
	struct mallinfo2 after = mallinfo2();
	assert_int_equal(before.uordblks + before.hblkhd, after.uordblks + after.hblkhd);
	step_reader_close(reader);
}

/* An id that is not in the vocabulary stops the stream there, not earlier, and the error says why. */
static void test_error(void **state)
{
	struct shard_writer *writer;
	struct shard_description description = {0};
	struct instance_settings of_instances = usual_settings();
	struct step_settings settings = usual_step(4, 0, 0);
	struct shard bad;
	struct instances *from_bad;
	struct step_reader *reader;
	const struct step *step;
	assert_ok(shard_writer_open(&writer, test_path("bad"), TRACED_VOCAB));
	for (int d = 0; d < 40; d++) {
		int32_t id = d == 30 ? 50000 : 10 + d;
		for (int s = 0; s < 8; s++)
			assert_ok(shard_writer_sentence(writer, (int32_t[]){id, id, id, id, id, id}, 6));
		assert_ok(shard_writer_end_document(writer));
	}
	assert_ok(shard_writer_commit(writer, &description));
	assert_ok(shard_open(&bad, test_path("bad")));
	of_instances.vocab_size = 1000;
	of_instances.short_seq_prob = 0;
	of_instances.shuffle = false;
	of_instances.next_sentence = NEXT_SENTENCE_NONE;
	assert_ok(instances_open(&from_bad, &bad, 1, &of_instances));
	assert_ok(step_reader_open(&reader, from_bad, &settings));
	enum status status;
	int delivered = 0;
	while ((status = step_reader_next(reader, &step)) == OK && delivered < 100) {
		assert_non_null(step);
		assert_int_equal(step->labeled[HEAD_NEXT_SENTENCE], 0);
		assert_int_equal(step->batches[0].labels[HEAD_NEXT_SENTENCE].classes[0], -1);
		delivered++;
	}
	assert_int_equal(delivered, 7); /* 30 good documents with one instance each, four per step */
	for (int again = 0; again < 2; again++) {
		assert_int_equal(status, ERR_DATA);
		assert_non_null(strstr(error_last()->message, "sentence 240 holds id 50000"));
		status = step_reader_next(reader, &step);
		assert_null(step);
	}
	step_reader_close(reader);
	instances_close(from_bad);
	shard_close(&bad);
}

static void test_capacity(void **state)
{
	struct step_reader *reader;
	struct step_settings settings = usual_step(32, 0, 0);
	settings.capacity.tokens = 63;
	assert_error(ERR_USAGE, "1 example of up to 64 tokens does not fit", step_reader_open(&reader, instances, &settings));
	settings = usual_step(32, 2, 1000);
	assert_error(ERR_USAGE, "16 examples of up to 64 tokens does not fit", step_reader_open(&reader, instances, &settings));
	settings = usual_step(32, 2, 0);
	settings.capacity.labels[HEAD_MASKED_WORDS].count--;
	assert_error(ERR_USAGE, "16 examples of up to 64 tokens does not fit", step_reader_open(&reader, instances, &settings));

	struct instance_settings of_instances = usual_settings();
	struct example_bounds bounds = instance_bounds(&of_instances);
	struct batch_capacity capacity = batch_capacity_for(&bounds, 256, 0, 4096);
	assert_int_equal(capacity.tokens, 4096);
	assert_int_equal(capacity.sequences, 256);
	assert_true(capacity.labels[HEAD_MASKED_WORDS].count >= 64 * 10 &&
		    capacity.labels[HEAD_MASKED_WORDS].count <= 4096 * 0.15 + 257);
	capacity = batch_capacity_for(&bounds, 256, 8, 0);
	assert_int_equal(capacity.tokens, 32 * 64);
	assert_int_equal(capacity.sequences, 32);
	assert_int_equal(capacity.labels[HEAD_MASKED_WORDS].count, 320);
	capacity = batch_capacity_for(&bounds, INT64_MAX / 1024, 0, 0);
	assert_true(capacity.tokens > 0 && capacity.tokens <= INT32_MAX / 2);

	struct batch batch;
	assert_ok(batch_create(&batch, &(struct batch_capacity)INSTANCE_CAPACITY(100, 128, 1)));
	for (int i = 0; i < 256; i++)
		batch.starts[i] = 1; /* room for 129 entries, rounded up */
	batch_release(&batch);
	batch_release(&batch);
}

/* Bytes that malloc and mmap have handed out. */
static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

static void assert_same_batch(const struct batch *a, const struct batch *b)
{
	assert_int_equal(a->token_count, b->token_count);
	assert_int_equal(a->sequence_count, b->sequence_count);
	assert_int_equal(a->labels[HEAD_MASKED_WORDS].count, b->labels[HEAD_MASKED_WORDS].count);
	assert_int_equal(a->longest, b->longest);
	assert_memory_equal(a->ids, b->ids, (size_t)a->token_count * 4);
	assert_memory_equal(a->types, b->types, (size_t)a->token_count * 4);
	assert_memory_equal(a->positions, b->positions, (size_t)a->token_count * 4);
	assert_memory_equal(a->token_samples, b->token_samples, (size_t)a->token_count * 4);
	assert_memory_equal(a->id_order, b->id_order, (size_t)a->token_count * 4);
	assert_memory_equal(a->starts, b->starts, (size_t)a->sequence_count * 4 + 4);
	assert_memory_equal(a->samples, b->samples, (size_t)a->sequence_count * 4);
	assert_memory_equal(a->labels[HEAD_NEXT_SENTENCE].classes, b->labels[HEAD_NEXT_SENTENCE].classes,
			    (size_t)a->sequence_count * 4);
	assert_memory_equal(a->labels[HEAD_MASKED_WORDS].rows, b->labels[HEAD_MASKED_WORDS].rows,
			    (size_t)a->labels[HEAD_MASKED_WORDS].count * 4);
	assert_memory_equal(a->labels[HEAD_MASKED_WORDS].classes, b->labels[HEAD_MASKED_WORDS].classes,
			    (size_t)a->labels[HEAD_MASKED_WORDS].count * 4);
	assert_memory_equal(a->labels[HEAD_MASKED_WORDS].weights, b->labels[HEAD_MASKED_WORDS].weights,
			    (size_t)a->labels[HEAD_MASKED_WORDS].count * 4);
}

/* A step too large to be kept ready has the same micro-batches, requested in any order, and takes little memory. */
static void test_large_steps(void **state)
{
	struct step_settings small = usual_step(64, 16, 0), large = small;
	large.capacity.tokens = 1 << 20; /* room that is not needed: 16 such batches are 350 MB */
	struct step_reader *readers[2];
	const struct step *steps[2];
	const struct batch *batches[2];
	size_t before = in_use();
	assert_ok(step_reader_open(&readers[1], instances, &large));
	size_t taken = in_use() - before, planned = step_reader_bytes(instances_bounds(instances), &large);
	assert_true(taken < 64 << 20);
	assert_true(planned < 64 << 20 && planned > 40 << 20);
	assert_ok(step_reader_open(&readers[0], instances, &small));
	for (int s = 0; s < 30; s++) {
		for (int i = 0; i < 2; i++)
			assert_ok(step_reader_next(readers[i], &steps[i]));
		assert_non_null(steps[0]->batches);
		assert_null(steps[1]->batches);
		assert_int_equal(steps[0]->first_sample, steps[1]->first_sample);
		assert_int_equal(steps[0]->token_count, steps[1]->token_count);
		assert_int_equal(steps[0]->labeled[HEAD_MASKED_WORDS], steps[1]->labeled[HEAD_MASKED_WORDS]);
		assert_int_equal(steps[0]->labeled[HEAD_NEXT_SENTENCE], steps[1]->labeled[HEAD_NEXT_SENTENCE]);
		assert_true(steps[0]->weights[HEAD_MASKED_WORDS] == steps[1]->weights[HEAD_MASKED_WORDS]);
		assert_int_equal(steps[0]->batch_count, 16);
		assert_int_equal(steps[1]->batch_count, 16);
		assert_memory_equal(steps[0]->lengths, steps[1]->lengths, 64 * sizeof(int32_t));
		for (int k = 0; k < 20; k++) {
			for (int i = 0; i < 2; i++)
				assert_ok(step_batch(steps[i], k * 7 % 16, &batches[i]));
			assert_same_batch(batches[0], batches[1]);
			if (s == 29 && k == 19)
				check_tails(batches[1], large.capacity);
		}
		/* The previous one stays. */
		assert_ok(step_batch(steps[1], 3, &batches[0]));
		assert_ok(step_batch(steps[1], 4, &batches[1]));
		assert_int_equal(batches[0]->samples[0], (uint32_t)steps[1]->first_sample + 12);
	}
	for (int i = 0; i < 2; i++)
		step_reader_close(readers[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuts),           cmocka_unit_test(test_greedy),   cmocka_unit_test(test_resume),
		cmocka_unit_test(test_evaluation_set), cmocka_unit_test(test_lifetime), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_error),          cmocka_unit_test(test_capacity), cmocka_unit_test(test_large_steps),
	};
	return cmocka_run_group_tests(tests, open_all, close_all);
}
