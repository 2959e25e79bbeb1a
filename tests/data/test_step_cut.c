/* A step cut among ranks: every instance is used once however it is cut, shares have equal work, and every rank knows the
 * whole step. */
#include "data/pretraining/instances.h"
#include "data/step_cut.h"
#include "steps_test.h"

#define MOST 400

static int32_t random_length(struct rng *rng, int kind, int32_t longest)
{
	if (kind == 0)
		return longest;
	if (kind == 1)
		return 5 + (int32_t)rng_below(rng, (uint32_t)longest - 4);
	return rng_below(rng, 10) == 0 ? 5 + (int32_t)rng_below(rng, (uint32_t)longest - 4) : longest;
}

/* The heaviest and the mean share, measured in the plans' own work. */
static void measure(const struct step_settings *settings, const struct example_plan *plans, const int32_t *order,
		    const int64_t *ends, int32_t parts, double *heaviest, double *mean, double *largest)
{
	double sum = 0;
	*heaviest = *largest = 0;
	for (int32_t part = 0; part < parts; part++) {
		double work = 0;
		for (int64_t i = part > 0 ? ends[part - 1] : 0; i < ends[part]; i++) {
			double length = plans[order[i]].tokens, one = length * ((double)settings->linear_work + length);
			work += one;
			*largest = one > *largest ? one : *largest;
		}
		*heaviest = work > *heaviest ? work : *heaviest;
		sum += work;
	}
	*mean = sum / parts;
}

static void every_instance_has_one_part(void **state)
{
	static struct example_plan plans[MOST];
	int32_t order[MOST];
	int64_t ends[64];
	struct rng rng = rng_start(5, RNG_TEST, 0);
	for (int trial = 0; trial < 400; trial++) {
		int32_t ranks = 1 + (int32_t)rng_below(&rng, 16), replicas = 1 + (int32_t)rng_below(&rng, 4);
		int32_t parts = ranks * replicas, longest = 16 + (int32_t)rng_below(&rng, 500);
		int64_t batch = 1 + rng_below(&rng, MOST), count = 1 + rng_below(&rng, (uint32_t)batch);
		struct step_settings settings = {
			.batch_size = batch, .ranks = ranks, .replicas = replicas, .linear_work = rng_below(&rng, 5000)};
		struct step_cut cut;
		for (int64_t i = 0; i < count; i++)
			plan_single(&plans[i], random_length(&rng, trial % 3, longest));
		assert_ok(step_cut_open(&cut, &settings, longest));
		step_cut_parts(&cut, plans, count, order, ends);
		bool used[MOST] = {false};
		int64_t begin = 0;
		for (int32_t part = 0; part < parts; part++) {
			assert_true(ends[part] - begin <= (batch + parts - 1) / parts);
			for (int64_t i = begin; i < ends[part]; i++) {
				assert_false(used[order[i]]);
				used[order[i]] = true;
				assert_true(i == begin || order[i] > order[i - 1]);
			}
			begin = ends[part];
		}
		assert_int_equal(begin, count);
		/* Longest first, to the lightest share: no share exceeds the mean by more than one instance. */
		double heaviest, mean, largest;
		measure(&settings, plans, order, ends, parts, &heaviest, &mean, &largest);
		assert_true(heaviest <= mean + largest);
		step_cut_release(&cut);
	}
}

/* With realistic lengths, shares are nearly equal. */
static void shares_are_balanced(void **state)
{
	static struct example_plan plans[MOST];
	int32_t order[MOST];
	int64_t ends[8];
	struct rng rng = rng_start(6, RNG_TEST, 0);
	for (int kind = 1; kind < 3; kind++) {
		struct step_settings settings = {.batch_size = 256, .ranks = 8, .linear_work = 4608};
		struct step_cut cut;
		double heaviest, mean, largest;
		for (int64_t i = 0; i < 256; i++)
			plan_single(&plans[i], random_length(&rng, kind, 512));
		assert_ok(step_cut_open(&cut, &settings, 512));
		step_cut_parts(&cut, plans, 256, order, ends);
		measure(&settings, plans, order, ends, 8, &heaviest, &mean, &largest);
		assert_true(heaviest < 1.005 * mean);
		step_cut_release(&cut);
	}
}

static struct step_settings settings_of(int64_t batch, int32_t rank, int32_t ranks, int32_t replicas, int32_t accumulation,
					int64_t token_limit)
{
	struct instance_settings own = usual_settings();
	struct example_bounds bounds = instance_bounds(&own);
	struct step_settings settings = {.batch_size = batch,
					 .rank = rank,
					 .ranks = ranks,
					 .replicas = replicas,
					 .linear_work = 100,
					 .accumulation_steps = accumulation,
					 .first_step = 1};
	settings.capacity = batch_capacity_for(&bounds, step_part_examples(&settings), accumulation, token_limit);
	return settings;
}

/* Random ranks, batch sizes and capacities: over all ranks, a step consists of its instances, each once; all ranks agree
 * on the step. */
static void ranks_read_one_step(void **state)
{
	struct rng rng = rng_start(7, RNG_TEST, 0);
	for (int trial = 0; trial < 60; trial++) {
		int32_t ranks = 1 + (int32_t)rng_below(&rng, 9), replicas = 1 + (int32_t)rng_below(&rng, 3);
		int64_t batch = 1 + rng_below(&rng, 40);
		int32_t accumulation = rng_below(&rng, 2) ? 1 + (int32_t)rng_below(&rng, 4) : 0;
		int64_t limit = accumulation ? 0 : 64 + rng_below(&rng, 512), used[64] = {0};
		int64_t tokens = 0, instances_seen = 0, all_tokens = -1;
		int32_t most = -1, busiest = 0;
		for (int32_t rank = 0; rank < ranks; rank++) {
			struct step_settings settings = settings_of(batch, rank, ranks, replicas, accumulation, limit);
			struct step_reader *reader;
			const struct step *step;
			assert_ok(step_reader_open(&reader, instances, &settings));
			for (int i = 0; i < 3; i++)
				assert_ok(step_reader_next(reader, &step));
			assert_int_equal(step->example_count, batch);
			int64_t predictions = 0, labeled = 0;
			for (int32_t m = 0; m < step->batch_count; m++) {
				const struct batch *one;
				assert_ok(step_batch(step, m, &one));
				assert_true(one->sequence_count > 0);
				for (int32_t b = 0; b < one->sequence_count; b++) {
					int64_t at = (int64_t)one->samples[b] - step->first_sample;
					assert_true(at >= 0 && at < batch);
					used[at]++;
					assert_int_equal(one->starts[b + 1] - one->starts[b], step->lengths[at]);
				}
				tokens += one->token_count;
				instances_seen += one->sequence_count;
				predictions += one->labels[HEAD_MASKED_WORDS].count;
				labeled += one->sequence_count;
			}
			assert_int_equal(step->labeled[HEAD_MASKED_WORDS], predictions);
			assert_int_equal(step->labeled[HEAD_NEXT_SENTENCE], labeled);
			assert_true(all_tokens < 0 || step->token_count == all_tokens);
			assert_true(most < 0 || step->most_batches == most);
			all_tokens = step->token_count;
			most = step->most_batches;
			busiest = step->batch_count > busiest ? step->batch_count : busiest;
			step_reader_close(reader);
		}
		assert_int_equal(tokens, all_tokens);
		assert_int_equal(instances_seen, batch);
		assert_int_equal(most, busiest);
		for (int64_t i = 0; i < batch; i++)
			assert_int_equal(used[i], 1);
	}
}

/* Two replicas on each of two ranks compute the same as four ranks. */
static void replicas_are_ranks(void **state)
{
	for (int32_t rank = 0; rank < 2; rank++) {
		struct step_settings together = settings_of(30, rank, 2, 2, 0, 128);
		struct step_reader *readers[3];
		const struct step *steps[3];
		assert_ok(step_reader_open(&readers[0], instances, &together));
		assert_ok(step_reader_next(readers[0], &steps[0]));
		int32_t at = 0;
		for (int32_t replica = 0; replica < 2; replica++) {
			struct step_settings alone = settings_of(30, 2 * rank + replica, 4, 1, 0, 128);
			assert_ok(step_reader_open(&readers[1 + replica], instances, &alone));
			assert_ok(step_reader_next(readers[1 + replica], &steps[1 + replica]));
			for (int32_t m = 0; m < steps[1 + replica]->batch_count; m++, at++) {
				const struct batch *a = &steps[0]->batches[at], *b = &steps[1 + replica]->batches[m];
				assert_true(at < steps[0]->batch_count);
				assert_int_equal(a->token_count, b->token_count);
				assert_memory_equal(a->ids, b->ids, (size_t)a->token_count * sizeof *a->ids);
				assert_memory_equal(a->samples, b->samples, (size_t)a->sequence_count * sizeof *a->samples);
			}
		}
		assert_int_equal(at, steps[0]->batch_count);
		for (int i = 0; i < 3; i++)
			step_reader_close(readers[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instance_has_one_part),
		cmocka_unit_test(shares_are_balanced),
		cmocka_unit_test(ranks_read_one_step),
		cmocka_unit_test(replicas_are_ranks),
	};
	return cmocka_run_group_tests_name("data/step_cut", tests, open_all, close_all);
}
