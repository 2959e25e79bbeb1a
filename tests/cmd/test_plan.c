/* bertc plan: figures that add up, the option names and files of pretrain, and what cannot be planned. */
#include "cmd/small_run.h"

static struct json_document document;

/* Runs it with --json; returns the phase's object. */
static const struct json *plan(const char *arguments, int64_t phase)
{
	json_release(&document);
	if (program("plan %s --json", arguments) != 0)
		fail_msg("plan %s: %s", arguments, buffer_string(&program_errors));
	assert_ok(json_parse(&document, "plan", buffer_string(&program_output), program_output.size));
	const struct json *found = json_member(document.root, "phases")->first_child;
	for (; phase > 0; phase--)
		found = found->next;
	return found;
}

static double number(const struct json *object, const char *name)
{
	double value = NAN;
	assert_non_null(json_member(object, name));
	assert_ok(json_get_number(object, "plan", name, &value));
	return value;
}

static void test_recipe(void **state)
{
	const struct json *first = plan("--config recipes/nvidia_lamb.conf --gpus 256 --gpu a100", 0);
	assert_true(number(first, "steps") == 7038 && number(first, "train_batch_size") == 65536);
	assert_true(number(first, "gradient_accumulation_steps") * number(first, "micro_batch_tokens") >= 256 * 128);
	const struct json *second = first->next;
	assert_true(number(second, "steps") == 1563 && number(second, "max_seq_length") == 512);
	assert_null(second->next);
	double seconds = 0;
	for (const struct json *phase = first; phase; phase = phase->next) {
		double step = number(phase, "step_seconds");
		assert_near(number(phase, "sequences_per_second") * step, number(phase, "train_batch_size"), 1e-3);
		assert_near(number(phase, "training_seconds"), number(phase, "steps") * step, 1e-6);
		assert_near(number(phase, "exposed_seconds") + number(phase, "uneven_seconds") +
				    number(phase, "computing_seconds"),
			    step, 1e-9);
		seconds +=
			number(phase, "training_seconds") + number(phase, "evaluation_seconds") + number(phase, "saving_seconds");
		const struct json *memory = json_member(phase, "memory");
		assert_near(number(memory, "device"),
			    number(memory, "weights") + number(memory, "moments") + number(memory, "activations") +
				    number(memory, "workspace") + number(memory, "communication"),
			    2);
		assert_true(number(memory, "device") < 0.94 * 79 * 1073741824.0);
	}
	assert_near(number(document.root, "seconds"), seconds, 1e-3);
	/* The optimizer's moments are divided among the devices: 2 x 4 bytes for 336 million parameters over 256 devices.
	 * The last rank also has the remainders of the 26 buckets, fewer than 64 * 256 numbers each. */
	double share = 8 * 336226108.0 / 256, moments = number(json_member(first, "memory"), "moments");
	assert_true(moments > share && moments < share + 8.0 * 26 * 64 * 256 + 100000);
	bool published = false;
	for (const struct json *row = json_member(document.root, "assumptions")->first_child; row; row = row->next)
		published |= strcmp(json_member(row, "provenance")->text, "published") == 0;
	assert_true(published);
}

/* A known rate of one device is then the rate of that device, and the base of the efficiency. */
static void test_device_rate(void **state)
{
	const char *arguments = "--model large --gpu a100 --optimizer lamb --train_batch_size 65536 --device_rate 580";
	char all[256];
	assert_near(number(plan(arguments, 0), "sequences_per_second"), 580, 0.01);
	snprintf(all, sizeof all, "%s --gpus 8 --allreduce_post_accumulation_fp16", arguments);
	const struct json *eight = plan(all, 0);
	assert_near(number(eight, "sequences_per_second"), 8 * 580 * number(eight, "efficiency"), 50);
	/* Memory limits split the step of one device and that of eight into micro-batches of slightly different sizes. */
	assert_true(number(eight, "efficiency") > 0.97 && number(eight, "efficiency") <= 1.005);
	double exposed = number(eight, "exposed_seconds");
	snprintf(all, sizeof all, "%s --gpus 8 --local_link 1", arguments);
	assert_true(number(plan(all, 0), "exposed_seconds") > exposed + 0.1);
}

/* Batch sizes per device, and per replica. */
static void test_batch_of_each(void **state)
{
	const struct json *phase = plan("--gpus 8 --train_batch_size_per_gpu 32 --num_train_samples 512000", 0);
	assert_true(number(phase, "train_batch_size") == 256 && number(phase, "steps") == 2000);
	phase = plan("--gpus 8 --train_batch_size_per_gpu 32 --replicas_per_gpu 4 --num_train_samples 512000", 0);
	assert_true(number(phase, "train_batch_size") == 1024 && number(phase, "steps") == 500);
	assert_true(number(phase, "gradient_accumulation_steps") == 4);
}

static void test_within(void **state)
{
	const char *run = "--model large --gpu h200 --num_train_tokens 137000000000 --train_batch_size 8192 ";
	char all[256];
	snprintf(all, sizeof all, "%s --within 1d", run);
	const struct json *phase = plan(all, 0);
	double devices = number(document.root, "ranks_within");
	assert_true(devices > 1 && number(document.root, "ranks") == devices);
	assert_true(number(document.root, "seconds") <= 86400);
	assert_true(number(phase, "steps") == ceil(137e9 / (8192 * 128)));
	snprintf(all, sizeof all, "%s --gpus %.0f", run, devices > 8 ? devices - 8 : devices / 2);
	plan(all, 0);
	assert_true(number(document.root, "seconds") > 86400); /* with fewer it takes longer */
	snprintf(all, sizeof all, "%s --within 1s", run);
	plan(all, 0);
	assert_true(number(document.root, "ranks_within") == 0);
	assert_program(2, "how long", "plan --model base --gpu h200 --within 1d");
	/* No more devices than each phase's batch occupies. */
	plan("--model large --gpu h200 --num_train_steps 100000 --train_batch_size 65536 --phase1.num_train_steps 100000 "
	     "--phase2.train_batch_size 256 --phase2.num_train_steps 10 --within 10d",
	     0);
	assert_true(number(document.root, "ranks_within") <= 256);
}

/* Reads a row such as "weights  3.4 GB ..." of a plan in text form. */
static void size_of_row(const char *text, const char *name, char out[32])
{
	char value[16], unit[16];
	const char *row = strstr(text, name);
	if (!row || sscanf(row + strlen(name), "%15s %15s", value, unit) != 2)
		fail_msg("no row '%s' in %s", name, text);
	else
		snprintf(out, 32, "%s %s", value, unit);
}

/* Both commands use the same code to add up memory. */
static void test_memory_of_pretrain(void **state)
{
	static const char *const rows[] = {"weights ", "moments ", "activations ", "workspace ", "checkpoint "};
	char before[5][32], size[32];
	const char *run = test_path("run");
	assert_int_equal(program("pretrain --corpus %s --model %s --vocab_size 90 --max_seq_length 64 --train_batch_size 48 "
				 "--num_train_steps 10 --micro_batch_tokens 1024 --threads 1 --out %s --plan",
				 corpus, config, run),
			 0);
	const char *said = strstr(buffer_string(&program_errors), "memory plan");
	assert_non_null(said);
	for (int i = 0; i < 5; i++)
		size_of_row(said, rows[i], before[i]);
	int64_t vocab = 0;
	const char *number_of = strstr(buffer_string(&program_errors), "vocab_size");
	if (!number_of || sscanf(number_of, "vocab_size %ld", &vocab) != 1)
		fail_msg("no vocab_size in %s", buffer_string(&program_errors));
	assert_int_equal(program("plan --model %s --vocab_size %ld --max_seq_length 64 --train_batch_size 48 "
				 "--micro_batch_tokens 1024 --threads 1",
				 config, vocab),
			 0);
	const char *planned = strstr(buffer_string(&program_output), "memory");
	for (int i = 0; i < 5; i++) {
		size_of_row(planned, rows[i], size);
		assert_string_equal(size, before[i]);
	}
}

/* Rates of CPUs are measured. */
static void test_measured(void **state)
{
	plan("--model tiny --vocab_size 300 --max_seq_length 16 --train_batch_size 8 --threads 1", 0);
	bool measured = false;
	for (const struct json *row = json_member(document.root, "assumptions")->first_child; row; row = row->next)
		measured |= strcmp(json_member(row, "name")->text, "the step measured") == 0 &&
			    strcmp(json_member(row, "provenance")->text, "measured") == 0;
	assert_true(measured);
}

/* What earlier versions had is ignored, with a line. */
static void test_removed(void **state)
{
	static const char *const removed[] = {"--scheme all_reduce", "--profile bench.json", "--measure", "--disk_rate 0.5"};
	for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
		assert_program(0, "is ignored: it was removed", "plan --gpus 8 %s", removed[i]);
		assert_program(2, "unknown option", "vocab %s", removed[i]);
	}
	assert_ok(file_write(test_path("plan.conf"), "gpus = 8\nscheme = hierarchical\n", 31));
	assert_program(0, "--scheme is ignored: it was removed", "plan --config %s", test_path("plan.conf"));
	assert_program(0, "--attention is ignored: it was removed", "plan --gpus 8 --attention cudnn");
}

static void test_refused(void **state)
{
	assert_program(2, "unknown kind", "plan --gpus 8 --device_kind abacus");
	assert_program(2, "no link", "plan --gpus 16 --link token_ring");
	assert_program(2, "no link within", "plan --gpus 8 --local_link ndr");
	assert_program(2, "give one of them", "plan --gpus 8 --train_batch_size 5 --train_batch_size_per_gpu 10");
	assert_program(2, "nothing to do", "plan --gpus 64 --replicas_per_gpu 8 --train_batch_size 256");
	assert_program(2, "nothing to do", "plan --gpus 512 --train_batch_size 256");
	assert_program(2, "give one of them", "plan --gpus 8 --num_train_steps 5 --num_train_samples 10");
	assert_program(2, "no matrix products in bf16", "plan --gpus 8 --gpu t4 --precision bf16");
	assert_program(2, "unknown kind", "plan --gpus 8 --gpu v100");
	assert_program(2, "give a number of GB/s", "plan --gpus 16 --link edr");
	assert_program(2, "beyond the model's", "plan --gpus 8 --max_seq_length 1024");
	assert_program(2, "beyond the model's", "plan --model tiny --max_seq_length 65536");
	assert_program(2, "above", "plan --gpus 8 --mean_seq_length 200");
	assert_program(2, "did you mean", "plan --train_batchsize 8");
	/* pretrain's options are accepted, and their values are checked. */
	assert_int_equal(program("plan --gpus 8 --learning_rate 1e-4 --corpus a b --no_shuffle --no-save_best"), 0);
	assert_int_equal(program("plan --gpus 8 --learning_rate 1e-4 --corpus a b --shuffle false --weight_decay 0.01"), 0);
	assert_program(2, "learning_rate", "plan --gpus 8 --learning_rate much");
}

static int setup(void **state)
{
	return small_run_make(state, 5);
}

static int teardown(void **state)
{
	json_release(&document);
	return program_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recipe),
		cmocka_unit_test(test_device_rate),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_batch_of_each),
		cmocka_unit_test(test_memory_of_pretrain),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
