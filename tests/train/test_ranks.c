/* Many ranks train as one: the same curve up to rounding however the batch is split, the same bits for the same split, and
 * a failure in one rank ends all of them, or a bad step is skipped in all. */
#include <signal.h>
#include "base/stop.h"
#include "train/rank_run.h"

static int open_corpus(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	rank_run_corpus();
	return 0;
}

/* float64, so that rounding errors are far smaller than any mistake. */
static const struct rank_run usual = {.name = "one",
				      .ranks = 1,
				      .device = "ref",
				      .dtype = DTYPE_F64,
				      .batch_size = 12,
				      .steps = 8,
				      .eval_steps = 4,
				      .token_limit = 64,
				      .compare_weights_steps = 3,
				      .dropout = 0.1};

/* Compares losses, norms and evaluations of two runs, and their weights. */
static void check_curves(const char *a, const char *b, int64_t steps, double tolerance)
{
	static const char *const names[] = {"loss", "mlm_accuracy", "nsp_loss", "grad_norm", "tokens", "samples"};
	for (int64_t step = 1; step <= steps; step++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			double x = rank_metric(a, step, names[i]), y = rank_metric(b, step, names[i]);
			if (!(fabs(x - y) <= tolerance * (1 + fabs(x))))
				fail_msg("%s of step %d: %.17g in %s, %.17g in %s", names[i], (int)step, x, a, y, b);
		}
	assert_near(rank_metric(a, steps, "eval_loss"), rank_metric(b, steps, "eval_loss"), 10 * tolerance);
	assert_near(rank_metric(a, steps, "eval_mlm_accuracy"), rank_metric(b, steps, "eval_mlm_accuracy"), 10 * tolerance);
	assert_true(rank_metric(a, steps, "eval_predictions") == rank_metric(b, steps, "eval_predictions"));
	int64_t count, other;
	float *x = rank_weights(a, &count), *y = rank_weights(b, &other);
	assert_int_equal(count, other);
	for (int64_t i = 0; i < count; i++)
		assert_near(x[i], y[i], 100 * tolerance + 1e-7 * fabs(x[i]));
	free(x);
	free(y);
}

static bool same_files(const char *a, const char *b)
{
	struct buffer x = {0}, y = {0};
	assert_ok(file_read(a, 1 << 24, &x));
	assert_ok(file_read(b, 1 << 24, &y));
	bool same = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
	buffer_release(&x);
	buffer_release(&y);
	return same;
}

static bool same_weights(const char *a, const char *b)
{
	char x[PATH_BYTES], y[PATH_BYTES];
	snprintf(x, sizeof x, "%s/%s/weights", test_folder, a);
	snprintf(y, sizeof y, "%s/%s/weights", test_folder, b);
	return same_files(x, y);
}

static void any_split_gives_the_same_curve(void **state)
{
	static const struct {
		const char *name;
		int32_t ranks, replicas, accumulation;
	} splits[] = {{"two", 2, 1, 0},   {"three", 3, 1, 0},    {"four", 4, 1, 2},
		      {"eight", 8, 1, 0}, {"replicas", 2, 3, 0}, {"accumulated", 1, 1, 4}};
	static const struct {
		enum optimizer_kind kind;
		bool all;
	} optimizers[] = {{OPTIMIZER_ADAMW, false}, {OPTIMIZER_LAMB, true}};
	for (size_t k = 0; k < 2; k++) {
		struct rank_run one = usual;
		char names[2][32];
		one.optimizer = optimizers[k].kind;
		one.adapts_all = optimizers[k].all;
		snprintf(names[0], sizeof names[0], "one-%d", (int)k);
		one.name = names[0];
		rank_run(&one, NULL);
		for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
			struct rank_run many = one;
			snprintf(names[1], sizeof names[1], "%s-%d", splits[i].name, (int)k);
			many.name = names[1];
			many.ranks = splits[i].ranks;
			many.replicas = splits[i].replicas;
			many.accumulation_steps = splits[i].accumulation;
			rank_run(&many, NULL);
			check_curves(one.name, many.name, one.steps, 1e-10);
		}
	}
}

/* More ranks than instances: some ranks have nothing to do, and nobody waits for them. */
static void ranks_without_data(void **state)
{
	struct rank_run one = usual, many = usual;
	one.name = "few";
	one.batch_size = 3;
	many = one;
	many.name = "few-5";
	many.ranks = 5;
	rank_run(&one, NULL);
	rank_run(&many, NULL);
	check_curves("few", "few-5", one.steps, 1e-10);
	many.name = "few-each";
	many.reduce_every_batch = true;
	rank_run(&many, NULL);
	check_curves("few", "few-each", one.steps, 1e-10);
}

static void reduced_once_or_every_batch(void **state)
{
	struct rank_run once = usual, each = usual;
	once.name = "once";
	once.ranks = each.ranks = 3;
	once.batch_size = each.batch_size = 20;
	each.name = "each";
	each.reduce_every_batch = true;
	rank_run(&once, NULL);
	rank_run(&each, NULL);
	check_curves("once", "each", once.steps, 1e-10);
	assert_false(same_weights("once", "each")); /* another order of summation, so a different computation */
}

static void gradients_travel_in_16_bits(void **state)
{
	static const enum comm_type wires[] = {COMM_BF16, COMM_F16};
	static const double tolerances[] = {2e-2, 4e-3};
	struct rank_run exact = usual;
	exact.name = "exact";
	exact.ranks = 2;
	rank_run(&exact, NULL);
	for (int i = 0; i < 2; i++) {
		struct rank_run narrow = exact;
		narrow.name = i == 0 ? "bf16" : "f16";
		narrow.wire = wires[i];
		rank_run(&narrow, NULL);
		for (int64_t step = 1; step <= exact.steps; step++)
			assert_near(rank_metric("exact", step, "grad_norm"), rank_metric(narrow.name, step, "grad_norm"),
				    tolerances[i] * rank_metric("exact", step, "grad_norm"));
		assert_false(same_weights("exact", narrow.name));
	}
}

static void the_same_split_gives_the_same_bits(void **state)
{
	struct rank_run first = usual, second;
	first.device = "cpu";
	first.dtype = DTYPE_F32;
	first.ranks = 3;
	first.name = "first";
	second = first;
	second.name = "second";
	rank_run(&first, NULL);
	rank_run(&second, NULL);
	assert_true(same_weights("first", "second"));
	/* ... when interrupted and resumed, too. */
	second.name = "interrupted";
	second.stop_at_step = 5;
	int statuses[3];
	rank_run(&second, statuses);
	for (int i = 0; i < 3; i++)
		assert_int_equal(statuses[i], STOPPED);
	assert_ok(checkpoint_verify(test_path("interrupted/checkpoint-5")));
	second.stop_at_step = 0;
	rank_run(&second, NULL);
	assert_true(same_weights("first", "interrupted"));
	assert_true(same_files(test_path("first/checkpoint-8/optimizer.safetensors"),
			       test_path("interrupted/checkpoint-8/optimizer.safetensors")));
}

static void a_run_goes_on_on_other_ranks(void **state)
{
	static const int32_t ranks[] = {4, 2, 1, 8};
	for (int k = 0; k < 2; k++) {
		struct rank_run whole = usual, parts;
		whole.name = k == 0 ? "whole" : "whole-lamb";
		whole.optimizer = k == 0 ? OPTIMIZER_ADAMW : OPTIMIZER_LAMB;
		parts = whole;
		parts.name = k == 0 ? "parts" : "parts-lamb";
		rank_run(&whole, NULL);
		for (int i = 0; i < 4; i++) {
			int statuses[8];
			parts.ranks = ranks[i];
			parts.stop_at_step = i < 3 ? 2 * (i + 1) : 0;
			rank_run(&parts, statuses);
			for (int32_t rank = 0; rank < ranks[i]; rank++)
				assert_int_equal(statuses[rank], i < 3 ? STOPPED : OK);
		}
		check_curves(whole.name, parts.name, whole.steps, 1e-10);
	}
}

/* Flips a bit in the weights of one rank in the middle of a step. */
static void flip_a_bit(struct training *training, int64_t step)
{
	static bool done;
	if (step == 5 && comm_place(training->comm)->rank == 2 && !done) {
		unsigned char *weight = (unsigned char *)training->model->layers[1].output.master.data;
		weight[3] ^= 0x10;
		done = true;
	}
}

static void a_flipped_bit_is_found(void **state)
{
	struct rank_run run = usual;
	int statuses[4];
	struct buffer text = {0};
	run.name = "flipped";
	run.ranks = 4;
	run.compare_weights_steps = 5;
	run.after_batch = flip_a_bit;
	rank_run(&run, statuses);
	for (int i = 0; i < 4; i++)
		assert_int_equal(statuses[i], ERR_PEER);
	assert_ok(file_read(test_path("flipped.log.0"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "step 5: the weights of rank 2 (here) differ from those of the 3 others"));
	buffer_release(&text);
}

/* As on machines that have different models in folders of one name. */
static void other_weights_are_found_before_the_first_step(void **state)
{
	struct rank_run run = usual;
	int statuses[3];
	struct buffer text = {0};
	run.name = "others";
	run.ranks = 3;
	run.other_weights = true;
	rank_run(&run, statuses);
	for (int i = 0; i < 3; i++)
		assert_int_equal(statuses[i], ERR_STATE);
	assert_ok(file_read(test_path("others.log.0"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "ranks disagree about the weights to begin with"));
	assert_non_null(strstr(buffer_string(&text), "rank 2 on here has 'hash "));
	buffer_release(&text);
}

static void poison(struct training *training, int64_t step)
{
	if (step == 3 && comm_place(training->comm)->rank == 1) {
		double *gradient = training->model->layers[0].output.gradient.data;
		gradient[5] = NAN;
	}
}

static void a_bad_step_of_one_rank_is_left_out_by_all(void **state)
{
	struct rank_run run = usual;
	struct buffer text = {0};
	run.name = "poisoned";
	run.ranks = 3;
	run.after_batch = poison;
	rank_run(&run, NULL);
	assert_true(rank_metric("poisoned", 2, "skipped_steps") == 0);
	assert_true(rank_metric("poisoned", 3, "skipped_steps") == 1);
	assert_true(rank_metric("poisoned", run.steps, "skipped_steps") == 1);
	assert_ok(file_read(test_path("poisoned.log.0"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "of rank 1 (here)"));
	assert_non_null(strstr(buffer_string(&text), "first in the gradient of 'bert.encoder.layer.0.output.dense.weight'"));
	assert_non_null(strstr(buffer_string(&text), "repeating it gave the same"));
	buffer_release(&text);
}

/* A scheduler's signal to one of the ranks. */
static void ask_to_stop(struct training *training, int64_t step)
{
	if (step == 4 && comm_place(training->comm)->rank == 1)
		raise(SIGUSR1);
}

static enum status stoppable_body(struct comm *comm, void *context)
{
	stop_install();
	return rank_run_body(comm, context);
}

static void all_stop_at_the_same_step(void **state)
{
	struct rank_run run = usual;
	int statuses[3];
	run.name = "stopped";
	run.ranks = 3;
	run.before_step = ask_to_stop;
	run_ranks(3, stoppable_body, &run, statuses);
	for (int i = 0; i < 3; i++)
		assert_int_equal(statuses[i], STOPPED);
	assert_ok(checkpoint_verify(test_path("stopped/checkpoint-4")));
}

/* The disk is full when the first rank, which alone reports, writes the line of an evaluation. */
static void fill_the_disk(struct training *training, int64_t step)
{
	if (step == 4 && comm_place(training->comm)->rank == 0 && file_fault_set("write:2:ENOSPC") != OK)
		abort();
}

static void a_report_that_fails_ends_all(void **state)
{
	struct rank_run run = usual;
	int statuses[2];
	struct buffer text = {0};
	run.name = "full";
	run.ranks = 2;
	run.before_step = fill_the_disk;
	rank_run(&run, statuses);
	assert_int_equal(statuses[0], ERR_RESOURCE);
	assert_int_equal(statuses[1], ERR_RESOURCE);
	assert_ok(file_read(test_path("full.log.1"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "rank 0 on here: '"));
	assert_non_null(strstr(buffer_string(&text), "metrics.jsonl': cannot write"));
	buffer_release(&text);
	/* What was trained before it is saved. */
	assert_ok(checkpoint_verify(test_path("full/checkpoint-4")));
}

static enum status (*evaluate_truly)(struct objective *objective, struct replica *replica, int64_t set, struct measures *out);

static enum status evaluate_otherwise(struct objective *objective, struct replica *replica, int64_t set, struct measures *out)
{
	TRY(evaluate_truly(objective, replica, set, out));
	for (int64_t i = 0; i < out->count; i++)
		out->item[i].value = -1;
	return OK;
}

/* The second rank finds another loss, as with another math library; it must not choose another best step for that. */
static void disagree(struct training *training, int64_t step)
{
	if (comm_place(training->comm)->rank != 1)
		return;
	if (step == 1) {
		evaluate_truly = training->objective->evaluate;
		training->objective->evaluate = evaluate_otherwise;
	}
	if (training->state.evaluated_score < 0)
		abort();
}

static void the_first_rank_decides(void **state)
{
	struct rank_run run = usual;
	run.name = "disagreeing";
	run.ranks = 2;
	run.before_step = disagree;
	rank_run(&run, NULL);
}

/* The bytes planned for moments must equal those allocated. */
static enum status measure_moments(struct comm *comm, void *context)
{
	const struct rank_run *run = context;
	struct rank_state state = {0};
	TRY(rank_open(&state, run, comm, test_path("moments"), test_path("moments/metrics.jsonl")));
	int64_t own = state.optimizer->buckets.own_elements, most = buckets_own_most(state.model, run->ranks);
	double all = (double)own, largest = (double)own;
	TRY(comm_sum(comm, &all, 1));
	TRY(comm_max(comm, &largest, 1));
	RANK_CHECK(all == (double)state.model->slab_count);
	RANK_CHECK(largest <= (double)most && (double)most <= largest + 64 * 4);
	RANK_CHECK(state.optimizer->m.columns == own);
	rank_close(&state, comm);
	return OK;
}

static void moments_are_shared_out(void **state)
{
	for (int32_t ranks = 1; ranks < 6; ranks++) {
		struct rank_run run = usual;
		run.ranks = ranks;
		run_ranks(ranks, measure_moments, &run, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_split_gives_the_same_curve),
		cmocka_unit_test(ranks_without_data),
		cmocka_unit_test(reduced_once_or_every_batch),
		cmocka_unit_test(gradients_travel_in_16_bits),
		cmocka_unit_test(the_same_split_gives_the_same_bits),
		cmocka_unit_test(a_run_goes_on_on_other_ranks),
		cmocka_unit_test(a_flipped_bit_is_found),
		cmocka_unit_test(other_weights_are_found_before_the_first_step),
		cmocka_unit_test(a_bad_step_of_one_rank_is_left_out_by_all),
		cmocka_unit_test(all_stop_at_the_same_step),
		cmocka_unit_test(a_report_that_fails_ends_all),
		cmocka_unit_test(the_first_rank_decides),
		cmocka_unit_test(moments_are_shared_out),
	};
	return cmocka_run_group_tests_name("train/ranks", tests, open_corpus, test_folder_drop);
}
