/* The main job as a user runs it: train, stop, resume, evaluate, predict; and bad input. */
#include <math.h>
#include <signal.h>
#include <unistd.h>
#include "base/json.h"
#include "base/rng.h"
#include "cmd/small_run.h"

static int setup(void **state)
{
	return small_run_make(state, 3);
}

/* A small run into test_folder/<out>; `more` are further options. */
#define RUN(out, more)                                                                                                           \
	"pretrain --corpus %s --model %s --out %s/" out " --vocab_size 80 --train_batch_size 8 "                                 \
	"--max_seq_length 32 --num_train_steps 8 --learning_rate 1e-2 --num_warmup_steps 2 --log_steps 1 "                       \
	"--eval_steps 4 --save_checkpoints_steps 4 --precision fp32 " more,                                                      \
		corpus, config, test_folder

static void test_run_leaves_a_model(void **state)
{
	assert_program(0, "finished", RUN("whole", ""));
	assert_true(file_exists(test_path("whole/checkpoint-4/MANIFEST.json")));
	static const char *const names[] = {"config.json", "model.safetensors", "vocab.txt", "tokenizer.json",
					    "tokenizer_config.json"};
	for (int i = 0; i < 5; i++) {
		char name[64];
		snprintf(name, sizeof name, "whole/final/%s", names[i]);
		assert_true(file_exists(test_path(name)));
	}
	assert_false(file_exists(test_path("whole/final/optimizer.safetensors")));
	assert_holds("whole/final/README.md", "## Results\n\n| set | measure | value |\n|---|---|---|\n| held out | loss | ");
	assert_holds("whole/final/README.md", "| held out | mlm\\_loss | ");
	/* What a person sees: the complete page with this run's end, and TensorBoard's file. */
	struct buffer html = {0};
	struct name_list names_found = {0};
	assert_ok(file_read(test_path("whole/report.html"), 1 << 24, &html));
	assert_non_null(strstr(buffer_string(&html), "Written at the end"));
	assert_non_null(strstr(buffer_string(&html), "</html>"));
	buffer_release(&html);
	assert_ok(path_expand(test_path("whole/events.out.tfevents.*"), &names_found));
	assert_int_equal(names_found.count, 1);
	name_list_release(&names_found);
	double first = metric_at(test_path("whole/metrics.jsonl"), 1, "loss");
	double last = metric_at(test_path("whole/metrics.jsonl"), 8, "loss");
	assert_true(last < first);
	assert_true(isfinite(metric_at(test_path("whole/metrics.jsonl"), 4, "eval_mlm_accuracy")));
	/* Again: nothing is left to do. */
	struct buffer page[2] = {{0}, {0}};
	assert_ok(file_read(test_path("whole/report.html"), 1 << 24, &page[0]));
	assert_program(0, "nothing was left to train", RUN("whole", ""));
	assert_said("nothing was left to train");
	assert_ok(file_read(test_path("whole/report.html"), 1 << 24, &page[1]));
	assert_string_equal(buffer_string(&page[0]), buffer_string(&page[1]));
	buffer_release(&page[0]);
	buffer_release(&page[1]);
	assert_int_equal(unlink(test_path("whole/report.html")), 0);
	assert_program(0, "finished", RUN("whole", ""));
	assert_true(file_exists(test_path("whole/report.html")));
}

static void test_resume_is_exact(void **state)
{
	assert_program(75, "run the same command again", RUN("parts", "--stop_at_step 3"));
	assert_program(2, "--stop_at_step 3: the run is at step 3 already", RUN("parts", "--stop_at_step 3"));
	assert_program(2, "--stop_at_step 2: the run is at step 3 already", RUN("parts", "--stop_at_step 2"));
	assert_true(file_exists(test_path("parts/checkpoint-3/MANIFEST.json")));
	assert_program(0, "resuming from", RUN("parts", "--threads 1"));
	assert_same_file(test_path("whole/checkpoint-8/model.safetensors"), test_path("parts/checkpoint-8/model.safetensors"));
	assert_same_file(test_path("whole/checkpoint-8/optimizer.safetensors"),
			 test_path("parts/checkpoint-8/optimizer.safetensors"));
	assert_near(metric_at(test_path("whole/metrics.jsonl"), 7, "loss"),
		    metric_at(test_path("parts/metrics.jsonl"), 7, "loss"), 0.0);
}

static void test_threads_do_not_matter(void **state)
{
	assert_program(0, "finished", RUN("threads", "--threads 3"));
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("threads/final/model.safetensors"));
}

static void test_accumulation_is_a_large_batch(void **state)
{
	assert_program(0, "finished", RUN("accumulated", "--gradient_accumulation_steps 4"));
	for (int step = 1; step <= 8; step++)
		assert_near(metric_at(test_path("whole/metrics.jsonl"), step, "loss"),
			    metric_at(test_path("accumulated/metrics.jsonl"), step, "loss"), 2e-5);
}

static void test_reference_agrees(void **state)
{
	assert_program(0, "finished", RUN("reference", "--device ref"));
	for (int step = 1; step <= 8; step++)
		assert_near(metric_at(test_path("whole/metrics.jsonl"), step, "loss"),
			    metric_at(test_path("reference/metrics.jsonl"), step, "loss"), 2e-4);
	/* float64 masters are restored exactly, too. */
	assert_program(75, "", RUN("reference2", "--device ref --stop_at_step 5"));
	assert_program(0, "finished", RUN("reference2", "--device ref"));
	assert_same_file(test_path("reference/checkpoint-8/optimizer.safetensors"),
			 test_path("reference2/checkpoint-8/optimizer.safetensors"));
}

static void test_signal_saves(void **state)
{
	static char command[4096];
	/* The program replaces the shell's child, so that only the program receives the signal. */
	snprintf(command, sizeof command, RUN("signal", "--num_train_steps 100000 --log_steps 1 --eval_steps 0"));
	const char *bertc = getenv("BERTC");
	static char line[8192];
	snprintf(line, sizeof line,
		 "%s %s >/dev/null 2>%s/errors & pid=$!; n=0; "
		 "while [ ! -s %s/signal/metrics.jsonl ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; "
		 "kill -TERM $pid; wait $pid",
		 bertc ? bertc : "build/bertc", command, test_folder, test_folder);
	int status = system(line);
	assert_int_equal(WEXITSTATUS(status), 75);
	assert_program(4, "num_train_steps", RUN("signal", ""));
}

static void test_failed_save_keeps_the_older(void **state)
{
	assert_program(75, "", RUN("full", "--stop_at_step 4"));
	/* Every write in turn meets a full disk, until a run needs fewer writes than that. */
	int failures = 0;
	for (int k = 1;; k++) {
		char fault[32];
		snprintf(fault, sizeof fault, "write:%d:ENOSPC", k);
		setenv("BERTC_FAULT", fault, 1);
		int status = program(RUN("full", ""));
		unsetenv("BERTC_FAULT");
		/* Failing to write the pictures of a run does not end it. */
		bool without = strstr(buffer_string(&program_errors), "training continues without") != NULL;
		if (status == 0 && !without)
			break;
		failures++;
		if (!without)
			assert_int_equal(status, ERR_RESOURCE);
		assert_true(file_exists(test_path("full/checkpoint-4/MANIFEST.json")));
		/* A failure after the training, as in an evaluation, keeps the checkpoint: removed here, so that the next
		 * run starts as before. */
		if (file_exists(test_path("full/checkpoint-8")))
			assert_ok(folder_remove(test_path("full/checkpoint-8")));
	}
	assert_true(failures > 10);
	assert_program(0, "finished", RUN("full", ""));
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("full/final/model.safetensors"));
}

static void damage(const char *path)
{
	struct buffer bytes = {0};
	assert_ok(file_read(path, 1 << 28, &bytes));
	bytes.data[bytes.size / 2] ^= 1;
	assert_ok(file_write(path, bytes.data, bytes.size));
	buffer_release(&bytes);
}

static void test_damaged_checkpoint(void **state)
{
	assert_program(0, "finished", RUN("damaged", ""));
	damage(test_path("damaged/checkpoint-8/model.safetensors"));
	/* The checkpoint before it is used, and the run ends where it did. */
	assert_program(0, "wrong checksum", RUN("damaged", ""));
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("damaged/final/model.safetensors"));
	damage(test_path("damaged/checkpoint-8/optimizer.safetensors"));
	damage(test_path("damaged/checkpoint-4/training_state.json"));
	assert_program(3, "--fresh", RUN("damaged", ""));
	assert_program(0, "finished", RUN("damaged", "--fresh"));
}

static void test_what_does_not_fit(void **state)
{
	assert_program(4, "seed", RUN("whole", "--seed 1"));
	assert_program(2, "learning_rat", RUN("new1", "--learning_rat 1"));
	assert_program(2, "0..1", RUN("new2", "--learning_rate 7"));
	assert_program(2, "positions", RUN("new3", "--max_seq_length 128"));
	assert_null(strstr(buffer_string(&program_errors), "preparing")); /* before the text is read */
	assert_program(2, "positions", "pretrain --corpus %s --out %s/new3 --max_seq_length 1024", corpus, test_folder);
	assert_null(strstr(buffer_string(&program_errors), "preparing"));
	assert_program(2, "give --ranks 2; for GPUs ", RUN("new3", "--n_gpus 2"));
	assert_program(2, "--out", "pretrain --corpus %s", corpus);
	assert_program(2, "only one of", "pretrain --corpus %s --data x --out %s/new6", corpus, test_folder);
	assert_false(file_exists(test_path("new6")));
	assert_program(2, "tiny", "pretrain --corpus %s --model huge --out %s/new4", corpus, test_folder);
	/* Without a checkpoint, data made for other settings are made again, not silently used. */
	assert_program(0, "memory plan", RUN("planned", "--plan"));
	assert_said("nothing was trained; the prepared text stays in");
	assert_program(0, "making it again", RUN("planned", "--plan --held_out_fraction 0"));
	assert_false(file_exists(test_path("planned/data/train.held_out.bin")));
	/* The text changes between two starts of a run. */
	static char changed[128];
	snprintf(changed, sizeof changed, "%s/changed.txt", test_folder);
	assert_ok(file_write(changed, "one line.\nanother line.\n\nmore.\nand more of it.\n", 47));
	assert_program(75, "",
		       "pretrain --corpus %s --model %s --out %s/moved --max_seq_length 32 --num_train_steps 2 --stop_at_step 1",
		       changed, config, test_folder);
	assert_ok(file_write(changed, "one line.\nanother line!!\n\nmore.\nand more of it.\n", 48));
	assert_program(4, "changed", "pretrain --corpus %s --model %s --out %s/moved --max_seq_length 32 --num_train_steps 2",
		       changed, config, test_folder);
	/* Shards of another vocabulary. */
	const char *entries = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
	assert_ok(file_write(test_path("other.txt"), entries, strlen(entries)));
	assert_program(
		4, "vocabulary",
		"pretrain --data %s/whole/data/train --vocab_file %s/other.txt --model %s --max_seq_length 32 --out %s/new5",
		test_folder, test_folder, config, test_folder);
}

/* Files that are not the run's own are never removed, whatever their names. */
static void test_files_of_the_user_stay(void **state)
{
	assert_ok(folder_make(test_path("mine/data")));
	assert_ok(folder_make(test_path("mine/.tmp-notes")));
	assert_ok(file_write(test_path("mine/data/notes.txt"), "x", 1));
	assert_program(2, "not made by bertc", RUN("mine", ""));
	assert_program(2, "not made by bertc", RUN("mine", "--fresh"));
	assert_true(file_exists(test_path("mine/data/notes.txt")));
	assert_true(file_exists(test_path("mine/.tmp-notes")));
	assert_program(2, "cannot be combined", RUN("whole", "--fresh --plan"));
	assert_program(2, "or inside it", RUN("whole", "--fresh --vocab_file %s/whole/data/vocab.txt"), test_folder);
	assert_true(file_exists(test_path("whole/final/model.safetensors")));
	assert_true(file_exists(test_path("whole/data/train.bin")));
}

/* A damaged checkpoint of a later step does not displace the one that was just saved. */
static void test_pruning_keeps_a_whole_one(void **state)
{
	assert_program(75, "", RUN("pruned", "--save_checkpoints_steps 2 --stop_at_step 4"));
	damage(test_path("pruned/checkpoint-4/model.safetensors"));
	assert_program(75, "", RUN("pruned", "--keep_checkpoints 1 --stop_at_step 3"));
	assert_true(file_exists(test_path("pruned/checkpoint-3/MANIFEST.json")));
	assert_program(0, "finished", RUN("pruned", "--keep_checkpoints 1"));
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("pruned/final/model.safetensors"));
}

static void test_bad_text(void **state)
{
	assert_ok(file_write(test_path("empty.txt"), "", 0));
	assert_program(3, "", "pretrain --corpus %s/empty.txt --out %s/bad1", test_folder, test_folder);
	assert_program(2, "nowhere", "pretrain --corpus %s/nowhere.txt --out %s/bad2", test_folder, test_folder);
	char binary[4096];
	for (int i = 0; i < 4096; i++)
		binary[i] = (char)(i * 37 % 251);
	assert_ok(file_write(test_path("binary.txt"), binary, sizeof binary));
	assert_program(3, "binary", "pretrain --corpus %s/binary.txt --out %s/bad3", test_folder, test_folder);
	assert_ok(file_write(test_path("file"), "x", 1));
	assert_program(2, "is not a folder", "pretrain --corpus %s --out %s/file/below", corpus, test_folder);
	/* A folder that was made in vain is removed again; one that existed before stays. */
	assert_false(file_exists(test_path("bad2")));
	assert_false(file_exists(test_path("bad3")));
	assert_ok(folder_make(test_path("there")));
	assert_program(2, "nowhere", "pretrain --corpus %s/nowhere.txt --out %s/there", test_folder, test_folder);
	assert_true(file_is_folder(test_path("there")));
	/* Errors are reported before the text is prepared, so that nothing of it is left. */
	assert_program(2, "nowhere", "pretrain --corpus %s --eval_corpus %s/nowhere.txt --out %s/bad5", corpus, test_folder,
		       test_folder);
	assert_program(2, "nowhere", "pretrain --corpus %s --model %s/nowhere.json --out %s/bad5", corpus, test_folder,
		       test_folder);
	assert_program(2, "no token shards", "pretrain --data %s/nowhere --out %s/bad5", test_folder, test_folder);
	assert_program(2, "--corpus is missing", "pretrain --out %s/bad5", test_folder);
	assert_false(file_exists(test_path("bad5")));
	/* A single line is not text to train on, whatever was meant. */
	assert_ok(file_write(test_path("line.txt"), "corpus/part-1.txt\n", 18));
	assert_program(3, "less than one sequence of 128", "pretrain --corpus %s/line.txt --out %s/bad4", test_folder,
		       test_folder);
	/* Training works with a single document, and the message says what is missing. */
	assert_ok(file_write(test_path("one.txt"), "the only text.\nit is short.\nit is here.\n", 40));
	assert_program(0, "held-out",
		       "pretrain --corpus %s/one.txt --model %s --out %s/one --max_seq_length 32 "
		       "--num_train_steps 2",
		       test_folder, config, test_folder);
	assert_non_null(strstr(buffer_string(&program_errors), "only one document to train on"));
	/* With a blank line after every sentence, each of them is a document. */
	struct buffer text = {0};
	for (int i = 0; i < 200; i++)
		buffer_format(&text, "text number %d is short.\n\n", i);
	assert_ok(file_write(test_path("apart.txt"), text.data, text.size));
	buffer_release(&text);
	assert_program(0, "the documents are single sentences",
		       "pretrain --corpus %s/apart.txt --model %s --out %s/apart --max_seq_length 32 --num_train_steps 2",
		       test_folder, config, test_folder);
	/* The run folder may lie in the folder of the text: its contents are not taken for text, now or when the run
	 * resumes. */
	assert_ok(folder_make(test_path("project")));
	assert_int_equal(rename(test_path("one.txt"), test_path("project/one.txt")), 0);
	for (int i = 0; i < 2; i++)
		assert_program(i ? 0 : 75, i ? "finished" : "saved",
			       "pretrain --corpus %s/project --model %s --out %s/project/runs/mine --max_seq_length 32 "
			       "--num_train_steps 2 %s",
			       test_folder, config, test_folder, i ? "" : "--stop_at_step 1");
	assert_int_equal(rename(test_path("project/one.txt"), test_path("one.txt")), 0);
	/* Standard input can be read only once. */
	assert_program(2, "read only once", "pretrain --corpus - --model %s --out %s/piped --max_seq_length 32 <%s", config,
		       test_folder, corpus);
	assert_program(0, "finished",
		       "pretrain --corpus - --vocab_file %s/whole/data/vocab.txt --model %s --out %s/piped "
		       "--max_seq_length 32 --num_train_steps 2 <%s",
		       test_folder, config, test_folder, corpus);
	assert_program(2, "the run would take",
		       "pretrain --corpus %s --model %s --out %s/endless --max_seq_length 32 "
		       "--num_train_epochs 1e300",
		       corpus, config, test_folder);
	/* A single document for evaluation is no reason for a warning. */
	assert_program(0, "finished", RUN("one_held_out", "--eval_corpus %s/one.txt --num_train_steps 2"), test_folder);
	assert_null(strstr(buffer_string(&program_errors), "only one document"));
}

static void test_two_runs_one_folder(void **state)
{
	int lock;
	assert_ok(folder_make(test_path("locked")));
	assert_ok(folder_lock(test_path("locked"), &lock));
	assert_program(8, "locked", RUN("locked", ""));
	folder_unlock(lock);
}

/* Many lines of standard input are answered in chunks, each line as if it were alone; a line that cannot be answered is
 * named. */
static void fill_answers_lines_as_they_come(void)
{
	struct buffer text = {0}, alone = {0};
	assert_int_equal(program("fill --model %s/whole --json 'the cat [MASK] the house.'", test_folder), 0);
	const char *answer = strstr(buffer_string(&program_output), "{\"text\"");
	assert_non_null(answer);
	buffer_append(&alone, answer, strcspn(answer, "\n") - strlen("]}"));
	for (int i = 0; i < 700; i++)
		buffer_text(&text, i % 7 == 3 ? "a [MASK] sees the [MASK].\n" : "the cat [MASK] the house.\n");
	assert_ok(file_write(test_path("lines.txt"), text.data, text.size));
	assert_int_equal(program("fill --model %s/whole --json - <%s", test_folder, test_path("lines.txt")), 0);
	int found = 0;
	for (const char *at = buffer_string(&program_output); (at = strstr(at, buffer_string(&alone))); at++)
		found++;
	assert_int_equal(found, 600);
	buffer_text(&text, "\nno blank\n");
	assert_ok(file_write(test_path("lines.txt"), text.data, text.size));
	assert_program(ERR_DATA, "line 702 of standard input, 'no blank', has no [MASK]", "fill --model %s/whole --json - <%s",
		       test_folder, test_path("lines.txt"));
	assert_program(ERR_USAGE, "no text to fill in", "fill --model %s/whole - </dev/null", test_folder);
	buffer_release(&text);
	buffer_release(&alone);
}

static void test_evaluate_fill_inspect(void **state)
{
	struct json_document document;
	assert_int_equal(program("evaluate --model %s/whole --data %s/whole/data/train.held_out --max_seq_length 32 --json",
				 test_folder, test_folder),
			 0);
	assert_ok(json_parse(&document, "evaluate", buffer_string(&program_output), program_output.size));
	static const char *const keys[] = {"loss",         "mlm_loss",    "mlm_accuracy", "nsp_loss",
					   "nsp_accuracy", "predictions", "instances"};
	for (int i = 0; i < 7; i++)
		assert_non_null(json_member(document.root, keys[i]));
	json_release(&document);

	assert_int_equal(
		program("fill --model %s/whole/final --top_k 3 --json 'the cat [MASK] the [MASK].' 'a [MASK]'", test_folder), 0);
	assert_ok(json_parse(&document, "fill", buffer_string(&program_output), program_output.size));
	const struct json *results = json_member(document.root, "results");
	assert_int_equal(results->child_count, 2);
	const struct json *blanks = json_member(results->first_child, "blanks");
	assert_int_equal(blanks->child_count, 2);
	assert_int_equal(blanks->first_child->child_count, 3);
	json_release(&document);
	assert_program(2, "[MASK]", "fill --model %s/whole 'no blank here'", test_folder);
	/* Texts from a file with Windows line ends, an empty line, and no line end at the end. */
	assert_ok(file_write(test_path("blanks.txt"), "a [MASK].\r\n\r\nthe [MASK] sees", 28));
	assert_int_equal(program("fill --model %s/whole --top_k 1 - <%s", test_folder, test_path("blanks.txt")), 0);
	assert_null(strchr(buffer_string(&program_output), '\r'));
	fill_answers_lines_as_they_come();

	static const char *const paths[] = {"whole",
					    "whole/checkpoint-8",
					    "whole/final",
					    "whole/final/model.safetensors",
					    "whole/data/train",
					    "whole/data/train.idx",
					    "whole/data/vocab.txt",
					    "whole/metrics.jsonl",
					    "whole/settings.json"};
	for (int i = 0; i < 9; i++) {
		assert_program(0, "", "inspect --json %s/%s", test_folder, paths[i]);
		assert_ok(json_parse(&document, "inspect", buffer_string(&program_output), program_output.size));
		assert_non_null(json_member(document.root, "kind"));
		json_release(&document);
		assert_int_equal(program("inspect %s/%s", test_folder, paths[i]), 0);
		assert_true(program_output.size > 0);
	}
	assert_ok(file_write(test_path("unknown"), "\0\1\2\0\0\0\0\0", 8));
	assert_program(3, "bertc does not recognize", "inspect %s/unknown", test_folder);
}

/* Instances of two segments would read a row that the table of segment types does not have. */
static void test_one_segment_type(void **state)
{
	struct buffer text = {0};
	assert_ok(file_read(config, 4096, &text));
	buffer_char(&text, '\0');
	char *place = strstr((char *)text.data, "\"type_vocab_size\": 2");
	assert_non_null(place);
	place[strlen("\"type_vocab_size\": ")] = '1';
	assert_ok(file_write(test_path("one.json"), text.data, text.size - 1));
	buffer_release(&text);
#define ONE(out, more)                                                                                                           \
	"pretrain --corpus %s --model %s/one.json --out %s/" out " --vocab_size 80 --train_batch_size 4 --max_seq_length 32 "    \
	"--num_train_steps 1 --precision fp32 --threads 1 " more,                                                                \
		corpus, test_folder, test_folder
	assert_program(2, "the model has one segment type", ONE("pairs", ""));
	assert_program(0, "finished", ONE("single", "--next_sentence single"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_leaves_a_model),
		cmocka_unit_test(test_one_segment_type),
		cmocka_unit_test(test_resume_is_exact),
		cmocka_unit_test(test_threads_do_not_matter),
		cmocka_unit_test(test_accumulation_is_a_large_batch),
		cmocka_unit_test(test_reference_agrees),
		cmocka_unit_test(test_signal_saves),
		cmocka_unit_test(test_failed_save_keeps_the_older),
		cmocka_unit_test(test_damaged_checkpoint),
		cmocka_unit_test(test_what_does_not_fit),
		cmocka_unit_test(test_files_of_the_user_stay),
		cmocka_unit_test(test_pruning_keeps_a_whole_one),
		cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_two_runs_one_folder),
		cmocka_unit_test(test_evaluate_fill_inspect),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
