/* Runs of several phases as users run them: from one config file, or one command after another; interrupted anywhere. */
#include <math.h>
#include "base/json.h"
#include "base/rng.h"
#include "cmd/small_run.h"
#include "formats/safetensors.h"

/* Two phases; the corpus, the model and the output folder are given on the command line. */
static const char two_phases[] = "vocab_size = 80\n"
				 "precision = fp32\n"
				 "log_steps = 1\n"
				 "save_checkpoints_steps = 20\n"
				 "save_best = false\n"
				 "[phase]\n"
				 "max_seq_length = 16\n"
				 "train_batch_size = 8\n"
				 "num_train_steps = 6\n"
				 "learning_rate = 1e-2\n"
				 "num_warmup_steps = 2\n"
				 "eval_steps = 3\n"
				 "[phase]\n"
				 "max_seq_length = 48\n"
				 "train_batch_size = 4\n"
				 "gradient_accumulation_steps = 2\n"
				 "num_train_steps = 5\n"
				 "learning_rate = 5e-3\n"
				 "warmup_proportion = 0.4\n"
				 "eval_steps = 2\n";

/* The same as two separate invocations. */
#define FIRST                                                                                                                    \
	"--vocab_size 80 --precision fp32 --log_steps 1 --save_checkpoints_steps 20 --no_save_best --max_seq_length 16 "         \
	"--train_batch_size 8 --num_train_steps 6 --learning_rate 1e-2 --num_warmup_steps 2 --eval_steps 3"
#define SECOND                                                                                                                   \
	"--precision fp32 --log_steps 1 --save_checkpoints_steps 20 --no_save_best --max_seq_length 48 --train_batch_size 4 "    \
	"--gradient_accumulation_steps 2 --num_train_steps 5 --learning_rate 5e-3 --warmup_proportion 0.4 "                      \
	"--eval_steps 2"

static char phases[128];

static int setup(void **state)
{
	if (small_run_make(state, 4) != 0)
		return -1;
	snprintf(phases, sizeof phases, "%s/phases.conf", test_folder);
	assert_ok(file_write(phases, two_phases, strlen(two_phases)));
	return 0;
}

/* A run of the listed phases into test_folder/<out>. */
#define LISTED(out, more)                                                                                                        \
	"pretrain --config %s --corpus %s --model %s --out %s/" out " " more, phases, corpus, config, test_folder

/* A member of the metrics line of a step, or of its evaluation if the name begins with "eval_". Counts such lines. */
static double metric(const char *run, int64_t step, const char *name, int *out_count)
{
	struct buffer text = {0};
	double found = NAN;
	char *save, path[64];
	snprintf(path, sizeof path, "%s/metrics.jsonl", run);
	assert_ok(file_read(test_path(path), 1 << 24, &text));
	if (out_count)
		*out_count = 0;
	for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct json_document document;
		int64_t number = -1;
		assert_ok(json_parse(&document, path, line, strlen(line)));
		assert_ok(json_get_integer(document.root, path, "step", 0, INT64_MAX, &number));
		bool evaluation = json_member(document.root, "eval_seconds") != NULL;
		if (number == step && evaluation == !strncmp(name, "eval_", 5)) {
			assert_ok(json_get_number(document.root, path, name, &found));
			if (out_count)
				++*out_count;
		}
		json_release(&document);
	}
	buffer_release(&text);
	return found;
}

static void assert_same_checkpoint(const char *a, const char *b)
{
	static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
	for (int i = 0; i < 2; i++) {
		char left[128], right[128];
		snprintf(left, sizeof left, "%s/%s", a, files[i]);
		snprintf(right, sizeof right, "%s/%s", b, files[i]);
		assert_same_file(test_path(left), test_path(right));
	}
}

static void one_command(void **state)
{
	assert_program(0, "phase 1 ended at step 6: all its steps are done", LISTED("whole", ""));
	assert_non_null(strstr(buffer_string(&program_errors), "phase 1  phase 2")); /* the settings of both */
	assert_non_null(strstr(buffer_string(&program_errors), "steps of 4 x 48 tokens"));
	for (int step = 1; step <= 11; step++) {
		int lines;
		bool second = step > 6;
		assert_near(metric("whole", step, "phase", &lines), second ? 2 : 1, 0);
		assert_int_equal(lines, 1);
		assert_near(metric("whole", step, "samples", NULL), second ? 48 + 4 * (step - 6) : 8 * step, 0);
	}
	/* Each schedule starts from its own beginning; the token count continues. */
	assert_near(metric("whole", 1, "learning_rate", NULL), 5e-3, 1e-12);
	assert_near(metric("whole", 2, "learning_rate", NULL), 1e-2, 1e-12);
	assert_near(metric("whole", 7, "learning_rate", NULL), 2.5e-3, 1e-12);
	assert_near(metric("whole", 8, "learning_rate", NULL), 5e-3, 1e-12);
	assert_near(metric("whole", 11, "learning_rate", NULL), 5e-3 / 4, 1e-12);
	assert_true(metric("whole", 7, "tokens", NULL) > metric("whole", 6, "tokens", NULL));
	assert_near(metric("whole", 6, "eval_mlm_loss", NULL), metric("whole", 6, "eval_mlm_loss", NULL), 0);
	assert_near(metric("whole", 8, "phase", NULL), 2, 0);
	assert_true(isfinite(metric("whole", 8, "eval_loss", NULL)) && isfinite(metric("whole", 11, "eval_loss", NULL)));
	assert_program(0, "finished", LISTED("whole", "")); /* nothing left to do */
}

static void interrupted_anywhere_the_same_bits(void **state)
{
	/* In both phases, at evaluations, at the boundary, and just after it. */
	static const int steps[] = {3, 6, 7, 9};
	for (int k = 0; k < 4; k++) {
		int step = steps[k];
		char out[32], left[64];
		int lines;
		snprintf(out, sizeof out, "parts%d", step);
		snprintf(left, sizeof left, "%s/checkpoint-11", out);
		assert_program(75, "run the same command again",
			       "pretrain --config %s --corpus %s --model %s --out %s/%s --stop_at_step %d", phases, corpus,
			       config, test_folder, out, step);
		assert_program(0, "finished", "pretrain --out %s/%s", test_folder, out); /* the folder has everything */
		assert_same_checkpoint("whole/checkpoint-11", left);
		static const int evaluated[] = {3, 6, 8, 10, 11};
		for (int i = 0; i < 5; i++) {
			assert_near(metric(out, evaluated[i], "eval_loss", &lines),
				    metric("whole", evaluated[i], "eval_loss", NULL), 0);
			assert_int_equal(lines, 1);
		}
	}
}

static void two_invocations_are_the_list(void **state)
{
	/* In the same folder. */
	assert_program(0, "finished", "pretrain --corpus %s --model %s --out %s/same " FIRST, corpus, config, test_folder);
	assert_program(0, "finished", "pretrain --corpus %s --model %s --out %s/first " FIRST, corpus, config, test_folder);
	assert_program(75, "saved", "pretrain --out %s/same " SECOND " --phase2 --phase1_end_step 6 --stop_at_step 9",
		       test_folder);
	assert_program(0, "finished", "pretrain --out %s/same " SECOND " --phase2 --phase1_end_step 6", test_folder);
	assert_same_checkpoint("whole/checkpoint-11", "same/checkpoint-11");
	/* In a folder of its own; its second part resumes by itself. */
	assert_program(75, "saved",
		       "pretrain --corpus %s --out %s/other " SECOND
		       " --phase2 --init_checkpoint %s/first/checkpoint-6 --steps_this_run 2",
		       corpus, test_folder, test_folder);
	assert_program(0, "finished", "pretrain --out %s/other --resume_phase2", test_folder);
	assert_same_checkpoint("whole/checkpoint-11", "other/checkpoint-11");
	assert_program(0, "finished",
		       "pretrain --corpus %s --out %s/third " SECOND " --phase2 --resume_from %s/first/checkpoint-6", corpus,
		       test_folder, test_folder);
	assert_same_checkpoint("whole/checkpoint-11", "third/checkpoint-11");
}

static void a_list_grows_at_its_end(void **state)
{
	assert_program(0, "finished", "pretrain --corpus %s --model %s --out %s/grown " FIRST, corpus, config, test_folder);
	assert_program(0, "finished", LISTED("grown", ""));
	assert_same_checkpoint("whole/checkpoint-11", "grown/checkpoint-11");
	/* The list may not become shorter or change unnoticed. */
	assert_program(4, "1 phases are listed", "pretrain --phase1.max_seq_length 16 --out %s/whole", test_folder);
	assert_program(75, "saved", LISTED("changed", "--stop_at_step 8"));
	assert_program(4, "--num_train_steps is '9'", LISTED("changed", "--phase2.num_train_steps 9"));
	assert_program(0, "finished", LISTED("changed", "--phase1.num_train_steps 9")); /* phase 1 is over */
}

static void what_does_not_fit(void **state)
{
	assert_program(2, "no checkpoint of a first phase", "pretrain --corpus %s --model %s --out %s/new --phase2", corpus,
		       config, test_folder);
	assert_program(75, "saved", "pretrain --corpus %s --model %s --out %s/early " FIRST " --stop_at_step 4", corpus, config,
		       test_folder);
	assert_program(4, "is at step 4 of 6", "pretrain --out %s/early " SECOND " --phase2", test_folder);
	assert_program(4, "--phase1_end_step is 6, but", "pretrain --out %s/early " SECOND " --phase2 --phase1_end_step 6",
		       test_folder);
	assert_program(4, "not started its second phase", "pretrain --out %s/early --resume_phase2", test_folder);
	assert_program(0, "finished", "pretrain --out %s/early " SECOND " --phase2 --phase1_end_step 4", test_folder);
	assert_program(4, "the phase began at step 4", "pretrain --out %s/early --phase2 --phase1_end_step 6", test_folder);
	assert_program(2, "follow each other automatically", LISTED("new", "--phase2"));
	assert_program(2, "is not a checkpoint of bertc",
		       "pretrain --corpus %s --out %s/new --phase2 --init_checkpoint %s/whole/final", corpus, test_folder,
		       test_folder);
	/* Steps are those of the run, also in the second phase of a list; a run of another command has no first phase. */
	assert_program(75, "saved", LISTED("within", "--stop_at_step 8"));
	assert_program(4, "is at step 8 of 11",
		       "pretrain --corpus %s --out %s/new " SECOND " --phase2 --init_checkpoint %s/within", corpus, test_folder,
		       test_folder);
	assert_ok(file_write(test_path("train.tsv"), "text\tlabel\na cat\t1\na dog\t0\n", 27));
	assert_program(0, "",
		       "finetune --task classification --model %s/whole --train %s/train.tsv --num_train_steps 1 --out %s/tuned",
		       test_folder, test_folder, test_folder);
	assert_program(4, "tuned' is a run of `bertc finetune`",
		       "pretrain --corpus %s --out %s/new --phase2 --init_checkpoint %s/tuned", corpus, test_folder, test_folder);
	assert_program(2, "phase 2 of 3 has no setting",
		       "pretrain --corpus %s --model %s --out %s/new --phase1.num_train_steps 2 "
		       "--phase3.num_train_steps 2",
		       corpus, config, test_folder);
	assert_program(2, "beyond the model's 64 positions", LISTED("new", "--phase2.max_seq_length 128"));
	/* A setting of the second phase by itself makes two. */
	assert_program(0, "  phase 2 ", "pretrain --corpus %s --model %s --out %s/new --plan --phase2.learning_rate 1e-4 " FIRST,
		       corpus, config, test_folder);
	assert_program(4, "the vocabulary is not that of",
		       "pretrain --corpus %s --out %s/new2 " SECOND
		       " --vocab_file %s/vocab.txt --phase2 --init_checkpoint %s/first/checkpoint-6",
		       corpus, test_folder, test_folder, test_folder);
}

/* Rows of the position table, as floats. */
/* A list of one phase is a run with that phase's settings. */
static void a_list_of_one(void **state)
{
	size_t size = (size_t)(strstr(two_phases, "[phase]\nmax_seq_length = 48") - two_phases);
	char file[160];
	snprintf(file, sizeof file, "%s/one.conf", test_folder);
	assert_ok(file_write(file, two_phases, size));
	assert_program(0, "finished", "pretrain --corpus %s --model %s --out %s/single " FIRST, corpus, config, test_folder);
	assert_program(75, "", "pretrain --config %s --corpus %s --model %s --out %s/of_one --stop_at_step 4", file, corpus,
		       config, test_folder);
	assert_program(0, "finished", "pretrain --config %s --out %s/of_one", file, test_folder);
	assert_same_file(test_path("single/final/model.safetensors"), test_path("of_one/final/model.safetensors"));
}

static void positions(const char *path, float out[64 * 32])
{
	struct safetensors file;
	assert_ok(safetensors_open(&file, test_path(path)));
	const struct safetensors_entry *entry = safetensors_find(&file, "bert.embeddings.position_embeddings.weight");
	assert_non_null(entry);
	assert_int_equal(entry->count, 64 * 32);
	assert_ok(safetensors_to_float(entry, path, out));
	safetensors_close(&file);
}

/* Positions that only the second phase uses are drawn, decay during the first, and are trained in the second. */
static void later_positions_are_trained(void **state)
{
	static float after_first[64 * 32], after_second[64 * 32], start[64 * 32];
	positions("first/checkpoint-6/model.safetensors", after_first);
	positions("whole/checkpoint-11/model.safetensors", after_second);
	assert_program(75, "saved", LISTED("start", "--stop_at_step 1 --weight_decay 0"));
	positions("start/checkpoint-1/model.safetensors", start);
	double first = 0, second = 0, beyond = 0;
	for (int i = 20 * 32; i < 40 * 32; i++) {
		first += fabs(after_first[i] - start[i] * (after_first[20 * 32] / start[20 * 32]));
		second += fabs(after_second[i] - after_first[i]);
	}
	for (int i = 50 * 32; i < 64 * 32; i++)
		beyond += fabs(after_second[i] - after_first[i]) / fabs(after_first[i]);
	assert_near(first / (20 * 32), 0, 1e-6);
	assert_true(second / (20 * 32) > 1e-3);
	assert_true(beyond / (14 * 32) < 1e-3);
}

static void ends_by_tokens(void **state)
{
	assert_program(0, "all its tokens are done",
		       LISTED("tokens", "--phase1.num_train_tokens 300 --phase2.num_train_tokens 250"));
	int last = 0;
	for (int step = 1; step <= 6; step++) {
		double phase = metric("tokens", step, "phase", NULL);
		if (phase == 1)
			last = step;
	}
	assert_true(last > 0 && last < 6);
	assert_true(metric("tokens", last, "tokens", NULL) >= 300);
	assert_true(last == 1 || metric("tokens", last - 1, "tokens", NULL) < 300);
	/* With tokens alone, the message gives the approximate number of steps. */
	assert_program(0, "finished",
		       "pretrain --corpus %s --model %s --vocab_size 80 --out %s/tokens2 --max_seq_length 32 "
		       "--num_train_tokens 2000 --train_batch_size 8 --precision fp32 --log_steps 1",
		       corpus, config, test_folder);
	int step = 1;
	while (isfinite(metric("tokens2", step, "tokens", NULL)) && metric("tokens2", step, "tokens", NULL) < 2000)
		step++;
	assert_true(metric("tokens2", step, "tokens", NULL) >= 2000);
	assert_true(isnan(metric("tokens2", step + 1, "tokens", NULL)));
	/* The rate is almost 0 by then. */
	assert_true(metric("tokens2", step, "learning_rate", NULL) < 0.2 * metric("tokens2", 2, "learning_rate", NULL));
}

static void ends_when_it_no_longer_gains(void **state)
{
	/* The loss cannot fall by 100 nats: the first evaluation is the best one, and two more end the phase. */
	assert_program(75, "saved",
		       LISTED("stalled",
			      "--phase1.num_train_steps 100 --phase1.eval_steps 2 "
			      "--phase1.early_stopping_patience 2 --phase1.early_stopping_threshold 100 --stop_at_step 5 "
			      "--phase1.average_weights 0.1 --phase2.early_stopping_patience 1 --phase2.eval_steps 0"));
	assert_said("--early_stopping_patience has no effect: --eval_steps 0");
	assert_program(0, "phase 1 ended at step 6: its held-out loss no longer improves", "pretrain --out %s/stalled",
		       test_folder);
	assert_said("its weights are those of its last step, not a mean");
	assert_near(metric("stalled", 6, "phase", NULL), 1, 0);
	assert_near(metric("stalled", 7, "phase", NULL), 2, 0);
	assert_near(metric("stalled", 7, "learning_rate", NULL), 2.5e-3, 1e-12);
	assert_true(isfinite(metric("stalled", 11, "loss", NULL)) && isnan(metric("stalled", 12, "loss", NULL)));
	/* A run of one phase ends the same way. */
	assert_program(0, "finished",
		       "pretrain --corpus %s --model %s --out %s/alone " FIRST
		       " --stop_when_eval_stalls 1 --early_stopping_threshold 100 --num_train_steps 50",
		       corpus, config, test_folder);
	assert_true(isfinite(metric("alone", 6, "loss", NULL)) && isnan(metric("alone", 7, "loss", NULL)));
	assert_program(0, "finished", "pretrain --out %s/alone", test_folder);
}

static void named_evaluation_sets(void **state)
{
	assert_ok(file_write(test_path("easy.txt"), "the cat sees the house.\nthe cat sees the house.\n", 48));
	assert_ok(file_write(test_path("hard.txt"), "xylem qua zebra.\nmoon house boat dog.\n", 38));
	assert_program(
		75, "saved",
		LISTED("named", "--eval_corpus easy=%s/easy.txt hard=%s/hard.txt --best_by hard --save_best --stop_at_step 3"),
		test_folder, test_folder);
	assert_program(0, "finished", "pretrain --out %s/named", test_folder);
	double easy = metric("named", 11, "eval_easy_mlm_loss", NULL), hard = metric("named", 11, "eval_hard_mlm_loss", NULL);
	assert_true(isfinite(easy) && isfinite(hard) && easy != hard);
	/* The best model is chosen by the named set. */
	struct json_document best;
	double loss = NAN;
	int64_t step = 0;
	assert_ok(json_read(&best, test_path("named/best.json"), 1 << 16));
	assert_ok(json_get_integer(best.root, "best.json", "step", 0, 100, &step));
	assert_ok(json_get_number(best.root, "best.json", "loss", &loss));
	assert_near(loss, metric("named", step, "eval_hard_loss", NULL), 1e-12);
	json_release(&best);
	/* Shards as a set, beside text; an invalid name; a name used twice. */
	assert_program(0, "finished",
		       LISTED("shards", "--eval_data held=%s/whole/data/train.held_out --eval_corpus easy=%s/easy.txt"),
		       test_folder, test_folder);
	assert_near(metric("shards", 11, "eval_held_mlm_loss", NULL), metric("whole", 11, "eval_mlm_loss", NULL), 0.5);
	assert_program(2, "no evaluation set of this name", LISTED("nameless", "--best_by hard"));
	assert_program(2, "given by two options",
		       LISTED("twice", "--eval_data easy=%s/whole/data/train.held_out --eval_corpus easy=%s/easy.txt"),
		       test_folder, test_folder);
}

/* --out alone resumes a run on shards, from another working directory. */
static void the_folder_knows_its_text(void **state)
{
	static char line[8192];
	const char *bertc = getenv("BERTC");
	snprintf(line, sizeof line,
		 "cd %s && %s%s/%s pretrain --data whole/data/train --vocab_file whole/data/vocab.txt "
		 "--eval_data whole/data/train.held_out --model config.json --out shard_run " FIRST
		 " --stop_at_step 2 2>/dev/null",
		 test_folder, bertc && bertc[0] == '/' ? "" : getenv("PWD"), bertc && bertc[0] == '/' ? "" : "",
		 bertc ? bertc : "build/bertc");
	assert_int_equal(WEXITSTATUS(system(line)), 75);
	assert_program(0, "finished", "pretrain --out %s/shard_run", test_folder);
	assert_true(isfinite(metric("shard_run", 6, "eval_loss", NULL)));
	/* The text of a run may move: its shards are in the run's folder. */
	char moved[160], back[160];
	snprintf(moved, sizeof moved, "%s.moved", corpus);
	snprintf(back, sizeof back, "%s", corpus);
	assert_program(75, "saved", LISTED("mobile", "--stop_at_step 2"));
	assert_int_equal(rename(corpus, moved), 0);
	int status = program("pretrain --out %s/mobile", test_folder);
	assert_int_equal(rename(moved, back), 0);
	assert_int_equal(status, 0);
	/* If the shards are gone, they are made again from the recorded text. */
	assert_program(75, "saved", LISTED("remade", "--stop_at_step 2"));
	assert_ok(folder_remove(test_path("remade/data")));
	assert_program(0, "finished", "pretrain --out %s/remade", test_folder);
	assert_same_checkpoint("whole/checkpoint-11", "remade/checkpoint-11");
}

/* Static instances have a length: each phase has files of its own, in a list or as two commands. */
static void static_instances_of_each_phase(void **state)
{
	static const int lengths[] = {16, 48};
	for (int i = 0; i < 2; i++)
		assert_program(0, "",
			       "instances --corpus %s --vocab_file %s/whole/data/vocab.txt --max_seq_length %d "
			       "--max_predictions_per_seq %d --dupe_factor 2 --out %s/static%d.tfrecord",
			       corpus, test_folder, lengths[i], lengths[i] / 6, test_folder, lengths[i]);
	static const char first[] = "pretrain --vocab_file %s/whole/data/vocab.txt --model %s --out %s/%s " FIRST
				    " --vocab_size 0 --input_file %s/static16.tfrecord";
	assert_program(0, "finished", first, test_folder, config, test_folder, "static", test_folder);
	assert_program(0, "finished", "pretrain --out %s/static " SECOND " --phase2 --input_file %s/static48.tfrecord",
		       test_folder, test_folder);
	/* The list; and when the run resumes, the files are known. */
	static const char list[] = "pretrain --config %s --vocab_file %s/whole/data/vocab.txt --vocab_size 0 --model %s "
				   "--out %s/listed --phase1.input_file %s/static16.tfrecord --phase2.input_file "
				   "%s/static48.tfrecord --stop_at_step %d";
	assert_program(75, "saved", list, phases, test_folder, config, test_folder, test_folder, test_folder, 4);
	assert_program(75, "saved", "pretrain --out %s/listed --stop_at_step 8", test_folder);
	assert_program(0, "finished", "pretrain --out %s/listed", test_folder);
	assert_same_checkpoint("static/checkpoint-11", "listed/checkpoint-11");
	assert_program(2, "phase 1 has --input_file, but phase 2 does not",
		       "pretrain --config %s --vocab_file %s/whole/data/vocab.txt --vocab_size 0 --model %s --out %s/half "
		       "--phase1.input_file %s/static16.tfrecord",
		       phases, test_folder, config, test_folder, test_folder);
	/* Instances longer than the phase has room for. */
	assert_program(2, "static instance has 48 tokens",
		       "pretrain --config %s --vocab_file %s/whole/data/vocab.txt --vocab_size 0 --model %s --out %s/long "
		       "--input_file %s/static48.tfrecord",
		       phases, test_folder, config, test_folder, test_folder);
}

/* Adds a vocabulary that covers every word of the small corpus, letter by letter. */
static int add_vocabulary(void **state)
{
	char vocab[1024];
	int size = snprintf(vocab, sizeof vocab, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n,\n");
	for (int c = 'a'; c <= 'z'; c++)
		size += snprintf(vocab + size, sizeof vocab - (size_t)size, "%c\n##%c\n", c, c);
	for (int c = '0'; c <= '9'; c++)
		size += snprintf(vocab + size, sizeof vocab - (size_t)size, "%c\n##%c\n", c, c);
	return file_write(test_path("vocab.txt"), vocab, (size_t)size) == OK ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_command),
		cmocka_unit_test(interrupted_anywhere_the_same_bits),
		cmocka_unit_test(two_invocations_are_the_list),
		cmocka_unit_test(a_list_grows_at_its_end),
		cmocka_unit_test(a_list_of_one),
		cmocka_unit_test_setup(what_does_not_fit, add_vocabulary),
		cmocka_unit_test(later_positions_are_trained),
		cmocka_unit_test(ends_by_tokens),
		cmocka_unit_test(ends_when_it_no_longer_gains),
		cmocka_unit_test(named_evaluation_sets),
		cmocka_unit_test(the_folder_knows_its_text),
		cmocka_unit_test(static_instances_of_each_phase),
	};
	return cmocka_run_group_tests_name("phases", tests, setup, program_teardown);
}
