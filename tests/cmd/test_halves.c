/* --end_with_pairs, which the recipe `fast` sets: two phases of half the length, the second of which compares texts; the same run
 * however it is resumed; not where something else was decided. And times of several phases. */
#include "cmd/small_run.h"
#include "weights/checkpoint_folder.h"

#define SMALL                                                                                                                    \
	"--vocab_size 80 --train_batch_size 4 --max_seq_length 32 --eval_steps 2 --save_checkpoints_steps 2 --precision fp32 "   \
	"--threads 1 --no_progress "

static int setup(void **state)
{
	return small_run_make(state, 5);
}

/* The value of `name` in phase `index` of a run's settings; without phases, of the run. "" if there is none. */
static const char *setting(const char *run, int index, const char *name)
{
	static char value[64];
	char path[64];
	struct json_document document;
	snprintf(path, sizeof path, "%s/settings.json", run);
	assert_ok(json_read(&document, test_path(path), 1 << 20));
	const struct json *phases = json_member(document.root, "phases");
	const struct json *phase = phases ? phases->first_child : document.root;
	for (; phases && index > 0; index--)
		phase = phase->next;
	const struct json *found = json_member(phase, name);
	snprintf(value, sizeof value, "%s", found ? found->text : "");
	json_release(&document);
	return value;
}

static void assert_halves(const char *run, const char *name, const char *first, const char *second)
{
	assert_string_equal(setting(run, 0, name), first);
	assert_string_equal(setting(run, 1, name), second);
}

static void second_half_compares(void **state)
{
	static const char *const again[] = {"", "--recipe fast --num_train_steps 7 " SMALL};
	assert_program(0, "",
		       "pretrain --corpus %s --model %s --out %s/whole --recipe fast --log_steps 1 --num_train_steps 7 " SMALL,
		       corpus, config, test_folder);
	assert_halves("whole", "num_train_steps", "3", "4");
	assert_halves("whole", "next_sentence", "none", "overlap");
	assert_halves("whole", "schedule", "constant", "linear");
	assert_halves("whole", "warmup_proportion", "0.12", "0");
	assert_near(metric_at(test_path("whole/metrics.jsonl"), 3, "eval_nsp_loss"), 0, 0);
	assert_true(metric_at(test_path("whole/metrics.jsonl"), 5, "nsp_loss") > 0);
	for (int i = 0; i < 2; i++) {
		assert_program(75, "",
			       "pretrain --corpus %s --model %s --out %s/part%d --recipe fast --num_train_steps 7 "
			       "--stop_at_step %d " SMALL,
			       corpus, config, test_folder, i, i ? 2 : 5);
		assert_program(0, "", "pretrain --out %s/part%d %s", test_folder, i, again[i]);
		char part[64];
		snprintf(part, sizeof part, "part%d/final/model.safetensors", i);
		assert_same_file(test_path("whole/final/model.safetensors"), test_path(part));
	}
	assert_program(4, "--num_train_steps is '5', but", "pretrain --out %s/part0 --num_train_steps 9", test_folder);
	/* It has not learned next sentences, so they are not scored; and it is scored in as many positions as it has. */
	assert_program(0, "", "evaluate --model %s/whole --corpus %s --json --threads 1", test_folder, corpus);
	assert_non_null(strstr(buffer_string(&program_output), "\"nsp_loss\":0.0,"));
}

/* In its own folder or another one; the time that --time gave to what is over does not matter. */
static void a_phase_follows_both_halves(void **state)
{
	static const char more[] =
		"--phase2 --num_train_steps 2 --vocab_size 80 --train_batch_size 4 --max_seq_length 32 --threads 1";
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/hurried --time 2s " SMALL, corpus, config, test_folder);
	assert_program(0, "", "pretrain --corpus %s --init_checkpoint %s/hurried --out %s/apart %s", corpus, test_folder,
		       test_folder, more);
	assert_program(75, "", "pretrain --out %s/hurried --steps_this_run 1 %s", test_folder, more);
	assert_program(0, "", "pretrain --out %s/hurried %s", test_folder, more);
	assert_same_file(test_path("apart/final/model.safetensors"), test_path("hurried/final/model.safetensors"));
	assert_string_equal(setting("hurried", 2, "next_sentence"), "pairs");
	assert_string_equal(setting("hurried", 2, "schedule"), "linear");
}

static bool has_head(const char *run, const char *folder)
{
	char model[64];
	struct buffer file = {0};
	snprintf(model, sizeof model, "%s/%s/model.safetensors", run, folder);
	assert_ok(file_read(test_path(model), 1 << 24, &file));
	bool found = memmem(file.data, file.size, "cls.seq_relationship.weight", 27) != NULL;
	buffer_release(&file);
	return found;
}

/* Forms whose published models have no next-sentence head have one while they train, and in checkpoints; those that do not mark
 * segments only if asked. */
static void forms_without_a_head_compare(void **state)
{
	static const char *const forms[] = {"nomic_bert", "modernbert"};
	for (int i = 0; i < 2; i++) {
		char whole[PATH_BYTES], part[PATH_BYTES];
		const char *form = forms[i], *asked = i > 0 ? "--end_with_pairs" : "";
		assert_program(0, "",
			       "pretrain --corpus %s --model tiny --form %s --out %s/%s --recipe fast %s --log_steps 1 "
			       "--num_train_steps 7 " SMALL "--vocab_size 300",
			       corpus, form, test_folder, form, asked);
		assert_halves(form, "next_sentence", "none", "overlap");
		snprintf(whole, sizeof whole, "%s/%s/metrics.jsonl", test_folder, form);
		assert_true(metric_at(whole, 5, "nsp_loss") > 0);
		assert_program(
			75, "",
			"pretrain --corpus %s --model tiny --form %s --out %s/%s-part --recipe fast %s --num_train_steps 7 "
			"--stop_at_step 5 " SMALL "--vocab_size 300",
			corpus, form, test_folder, form, asked);
		assert_program(0, "", "pretrain --out %s/%s-part", test_folder, form);
		snprintf(whole, sizeof whole, "%s/%s/final/model.safetensors", test_folder, form);
		snprintf(part, sizeof part, "%s/%s-part/final/model.safetensors", test_folder, form);
		assert_same_file(whole, part);
		assert_false(has_head(form, "final"));
		assert_true(has_head(form, "checkpoint-7"));
		assert_program(0, "", "evaluate --model %s/%s/final --corpus %s --threads 1", test_folder, form, corpus);
	}
}

static void lengths_are_halved(void **state)
{
	static const char *const rows[][4] = {
		{"--num_train_tokens 601", "num_train_tokens", "300", "301"},
		{"--num_train_epochs 3", "num_train_epochs", "1.5", "1.5"},
		{"", "num_train_epochs", "20", "20"},
		{"--time 61s", "time", "30.5s", "30.5s"},
		{"--num_train_steps 100 --num_warmup_steps 9", "num_warmup_steps", "9", "0"},
		{"--num_train_steps 100 --warmup_proportion 0.2", "num_warmup_steps", "20", "0"}, /* a fifth of the whole */
		{"--num_train_steps 100 --schedule wsd --num_decay_steps 20", "num_decay_steps", "", "20"},
		{"--num_train_steps 100 --end_with_pairs --next_sentence pairs", "next_sentence", "pairs", "overlap"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char run[16];
		snprintf(run, sizeof run, "length%d", (int)i);
		assert_program(75, "", "pretrain --corpus %s --model %s --out %s/%s --recipe fast --stop_at_step 1 %s " SMALL,
			       corpus, config, test_folder, run, rows[i][0]);
		assert_halves(run, rows[i][1], rows[i][2], rows[i][3]);
	}
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/one --recipe fast --num_train_steps 1 " SMALL, corpus,
		       config, test_folder);
	assert_string_equal(setting("one", 0, "num_train_steps"), "1");
	assert_said("the run does not end with pairs");
	static const char *const faults[][2] = {
		{"--num_train_epochs 1 --num_warmup_steps 200", "this is half of the run: --no_end_with_pairs keeps"},
		{"--num_train_steps 20 --num_warmup_steps 15 --end_with_pairs", "half of the 20 steps is less than the warm-up"},
		{"--num_train_epochs 1 --num_train_tokens 100", "give either --num_train_epochs or --num_train_tokens"},
	};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		assert_program(2, faults[i][1], "pretrain --corpus %s --model %s --out %s/faulty --recipe fast %s " SMALL, corpus,
			       config, test_folder, faults[i][0]);
}

/* Weights that are already trained read a large text once, half of it in each half. A large text of few bytes: all sentences of a
 * shard of Megatron-LM lie at its beginning. */
static void half_a_pass(void **state)
{
	enum { SENTENCES = 1000, EACH = 600000 };
	static uint16_t ids[EACH];
	struct buffer index = {0};
	const int64_t counts[] = {SENTENCES, 2}, documents[] = {0, SENTENCES}, offset = 0;
	const int32_t length = EACH;
	for (int i = 0; i < EACH; i++)
		ids[i] = (uint16_t)(5 + i % 60);
	buffer_append(&index, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\10", 18);
	buffer_append(&index, counts, sizeof counts);
	for (int i = 0; i < SENTENCES; i++)
		buffer_append(&index, &length, sizeof length);
	for (int i = 0; i < SENTENCES; i++)
		buffer_append(&index, &offset, sizeof offset);
	buffer_append(&index, documents, sizeof documents);
	assert_ok(file_write(test_path("large.idx"), index.data, index.size));
	assert_ok(file_write(test_path("large.bin"), ids, sizeof ids));
	buffer_release(&index);
	assert_program(
		75, "",
		"pretrain --data %s/large --init_checkpoint %s/trained/final --vocab_file %s/trained/final/vocab.txt --out "
		"%s/half --end_with_pairs --stop_at_step 1 " SMALL,
		test_folder, test_folder, test_folder, test_folder);
	assert_halves("half", "num_train_epochs", "0.5", "0.5");
}

/* Somebody has decided otherwise, or the model does not mark segments. */
static void one_phase_remains(void **state)
{
	static const char *const others[] = {
		"--no_end_with_pairs",
		"--next_sentence none",
		"--next_sentence pairs",
		"--recipe original",
		"--init_checkpoint %s/trained/final",
	};
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/trained --num_train_steps 1 " SMALL, corpus, config,
		       test_folder);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		char run[16], model[PATH_BYTES], option[PATH_BYTES + 64];
		bool trained = strstr(others[i], "%s") != NULL;
		snprintf(run, sizeof run, "other%d", (int)i);
		snprintf(model, sizeof model, "--model %s", strstr(others[i], "form") ? "tiny" : config);
		snprintf(option, sizeof option, "%.*s%s%s", (int)strcspn(others[i], "%"), others[i], trained ? test_folder : "",
			 trained ? "/trained/final" : "");
		assert_program(0, "", "pretrain --corpus %s %s --out %s/%s %s --num_train_steps 2 %s " SMALL, corpus,
			       trained ? "" : model, test_folder, run, strstr(option, "recipe") ? "" : "--recipe fast", option);
		assert_string_equal(setting(run, 1, "num_train_steps"), "2");
		assert_string_not_equal(setting(run, 1, "next_sentence"), "overlap");
	}
	assert_program(2, "--end_with_pairs is for runs on text without phases",
		       "pretrain --corpus %s --out %s/none --end_with_pairs --phase2.num_train_steps 1 " SMALL, corpus,
		       test_folder);
	assert_program(0, "",
		       "pretrain --corpus %s --model %s --out %s/listed --recipe fast --num_train_steps 2 "
		       "--phase1.learning_rate 1e-3 --phase2.learning_rate 1e-4 " SMALL,
		       corpus, config, test_folder);
	assert_halves("listed", "num_train_steps", "2", "2");
	assert_halves("listed", "next_sentence", "none", "none");
}

/* Each phase ends at its time, and the rate has fallen to zero at the end of each. */
static void phases_have_times(void **state)
{
	assert_program(
		0, "phase 1 ended at step",
		"pretrain --corpus %s --model %s --out %s/timed --phase1.time 3s --phase2.time 2s --phase2.max_seq_length 16 "
		"--learning_rate 1e-3 --log_steps 1 " SMALL,
		corpus, config, test_folder);
	char folder[PATH_BYTES], path[PATH_BYTES];
	bool found = false;
	struct json_document document;
	double elapsed = 0;
	int64_t step = 0, first = 0;
	assert_ok(checkpoint_latest(test_path("timed"), folder, &found));
	assert_ok(path_join(path, folder, "training_state.json"));
	assert_ok(json_read(&document, path, 1 << 20));
	assert_ok(json_get_number(document.root, path, "elapsed", &elapsed));
	assert_ok(json_get_integer(document.root, path, "step", 0, INT64_MAX, &step));
	assert_ok(json_get_integer(json_member(document.root, "phase"), path, "first_step", 0, INT64_MAX, &first));
	json_release(&document);
	if (!(elapsed > 0.6 && elapsed < 90)) /* on a busy machine one evaluation may take longer than a phase */
		fail_msg("%g of 5 seconds", elapsed);
	assert_true(first > 0 && first < step);
	/* By its last step, a phase has lowered the rate: to nearly nothing, unless that step had to wait for the processor. */
	assert_true(metric_at(test_path("timed/metrics.jsonl"), first, "learning_rate") < 6e-4);
	assert_true(metric_at(test_path("timed/metrics.jsonl"), step, "learning_rate") < 6e-4);
	assert_program(2, "--time does not say how much of it each phase gets",
		       "pretrain --corpus %s --out %s/none --time 1h --phase2.max_seq_length 16", corpus, test_folder);
	assert_program(2, "phase 2 has no time",
		       "pretrain --corpus %s --model %s --out %s/none --phase1.time 1h "
		       "--phase2.num_train_steps 9 " SMALL,
		       corpus, config, test_folder);
	assert_program(2, "give either --time or --num_train_steps",
		       "pretrain --corpus %s --out %s/none --phase1.time 1h --phase1.num_train_steps 9", corpus, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(second_half_compares),
		cmocka_unit_test(a_phase_follows_both_halves),
		cmocka_unit_test(forms_without_a_head_compare),
		cmocka_unit_test(lengths_are_halved),
		cmocka_unit_test(one_phase_remains),
		cmocka_unit_test(half_a_pass),
		cmocka_unit_test(phases_have_times),
	};
	return cmocka_run_group_tests_name("halves", tests, setup, program_teardown);
}
