/* Fine-tuning as a user runs it: a small pre-trained model, tables whose label follows from a word, what the run leaves,
 * resuming after an interruption, ranks, and bad files and commands. */
#include <unistd.h>
#include "cmd/small_run.h"

enum { TRAIN = 160, DEV = 60, TEST = 25 };

static const char *const does[] = {"sees", "likes", "finds", "follows", "paints"};
static const char *const classes[] = {"see", "feel", "act", "act", "paint"};

/* Rows of sentences. `kind`: 'c' one class, 'r' a number, 'p' pairs that have the same verb or not, 'u' no label. */
static void put_table(const char *name, char kind, int rows, uint64_t seed)
{
	static const char *const who[] = {"the cat", "a dog", "the old man", "my sister", "nobody", "the sailor"};
	static const char *const what[] = {"the house", "a river", "the red boat", "some bread", "the moon"};
	struct buffer text = {0};
	struct rng rng = rng_start(seed, RNG_TEST, 1);
	buffer_text(&text, kind == 'p'   ? "sentence1\tsentence2\tlabel\n"
			   : kind == 'r' ? "sentence\tscore\n"
			   : kind == 'u' ? "sentence\n"
					 : "sentence\tlabel\n");
	for (int i = 0; i < rows; i++) {
		uint32_t verb = rng_below(&rng, 5), other = i % 2 ? verb : rng_below(&rng, 5);
		buffer_format(&text, "%s %s %s.", who[rng_below(&rng, 6)], does[verb], what[rng_below(&rng, 5)]);
		if (kind == 'p')
			buffer_format(&text, "\tnobody %s it.\t%s", does[other], verb == other ? "same" : "other");
		else if (kind != 'u')
			buffer_format(&text, "\t%s", kind == 'r' ? (verb == 1 ? "2.5" : "-0.5") : classes[verb]);
		buffer_char(&text, '\n');
	}
	assert_ok(file_write(test_path(name), text.data, text.size));
	buffer_release(&text);
}

static int setup(void **state)
{
	if (small_run_make(state, 3) != 0)
		return -1;
	if (program("pretrain --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		    "--num_train_steps 30 --learning_rate 1e-2 --num_warmup_steps 2 --precision fp32 --threads 1",
		    corpus, config, test_folder) != 0)
		return -1;
	put_table("train.tsv", 'c', TRAIN, 1);
	put_table("dev.tsv", 'c', DEV, 2);
	put_table("test.tsv", 'u', TEST, 3);
	return 0;
}

#define MODEL                                                                                                                    \
	"--model %s/base --max_seq_length 32 --precision fp32 --threads 1 --train_batch_size 16 --learning_rate 2e-3 "           \
	"--log_steps 1 --no_progress --save_checkpoints_steps 0 --eval_steps 0 "
#define FILES "--train %s/train.tsv --dev %s/dev.tsv --test %s/test.tsv "
/* The run that most tests compare with: 200 steps into test_folder/<out>. */
#define RUN(out, more)                                                                                                           \
	"finetune --task classification " MODEL FILES "--out %s/" out " --num_train_epochs 20 --hidden_dropout_prob 0 " more,    \
		test_folder, test_folder, test_folder, test_folder, test_folder
/* One epoch of any task on a training file. */
#define SHORT(task, train, more)                                                                                                 \
	"finetune --task " task " " MODEL "--out %s/short --num_train_epochs 1 --train %s/" train " " more, test_folder,         \
		test_folder, test_folder

static double result(const char *path, const char *name)
{
	struct buffer text = {0};
	struct json_document document;
	double value = NAN;
	assert_ok(file_read(path, 1 << 20, &text));
	assert_ok(json_parse(&document, path, text.data, text.size));
	assert_ok(json_get_number(document.root, path, name, &value));
	json_release(&document);
	buffer_release(&text);
	return value;
}

/* Removes a run's folder to make room for the next. */
static void forget(const char *name)
{
	if (file_exists(test_path(name)))
		assert_ok(folder_remove(test_path(name)));
}

/* The file must have `rows` lines of `columns` numbers each. */
static void assert_rows(const char *path, int64_t rows, int columns)
{
	struct buffer text = {0};
	int64_t lines = 0;
	assert_ok(file_read(path, 1 << 24, &text));
	for (char *rest = text.data, *line; (line = strtok_r(rest, "\n", &rest)); lines++) {
		for (int i = 0; i < columns; i++) {
			char *end;
			(void)strtod(line, &end);
			assert_true(end > line && *end == (i + 1 < columns ? '\t' : '\0'));
			line = end + (*end == '\t');
		}
	}
	assert_int_equal(lines, rows);
	buffer_release(&text);
}

static void a_class_is_learned(void **state)
{
	assert_program(0, "4 labels: act ", RUN("whole", ""));
	assert_said("see ");
	/* The most frequent class has about two fifths of the rows. */
	double accuracy = result(test_path("whole/eval_results.json"), "eval_accuracy");
	if (!(accuracy > 0.55))
		fail_msg("accuracy %g", accuracy);
	assert_int_equal(result(test_path("whole/eval_results.json"), "eval_examples"), DEV);
	assert_int_equal(result(test_path("whole/eval_results.json"), "global_step"), 200);
	assert_near(metric_at(test_path("whole/metrics.jsonl"), 200, "eval_accuracy"), accuracy, 0.0);
	assert_printed("report                 ");
	assert_printed("/whole/report.html\n");
	assert_printed("accuracy               ");
	assert_holds("whole/eval_results.txt", "eval_accuracy = ");
	assert_holds("whole/eval_results.txt", "global_step = 200\n");
	static const char *const parts[] = {"\"BertForSequenceClassification\"",
					    "\"problem_type\": \"single_label_classification\"",
					    "\"0\": \"act\"",
					    "\"1\": \"feel\"",
					    "\"2\": \"paint\"",
					    "\"3\": \"see\"",
					    "\"see\": 3"};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		assert_holds("whole/final/config.json", parts[i]);
	assert_rows(test_path("whole/test_results.tsv"), TEST, 4);
	assert_rows(test_path("whole/predict.txt"), TEST, 1);
	assert_true(file_exists(test_path("whole/report.html")));
	assert_int_equal(program("verify %s/whole", test_folder), 0);
	assert_program(0, "nothing was left to train", RUN("whole", ""));
}

static void an_interruption_changes_nothing(void **state)
{
	assert_program(75, "run the same command again", RUN("parts", "--stop_at_step 13"));
	assert_true(file_exists(test_path("parts/checkpoint-13/MANIFEST.json")));
	assert_program(0, "finished", RUN("parts", ""));
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("parts/final/model.safetensors"));
	assert_same_file(test_path("whole/checkpoint-200/optimizer.safetensors"),
			 test_path("parts/checkpoint-200/optimizer.safetensors"));
	assert_same_file(test_path("whole/test_results.tsv"), test_path("parts/test_results.tsv"));
	assert_same_file(test_path("whole/eval_results.json"), test_path("parts/eval_results.json"));
}

static void ranks_train_as_one(void **state)
{
	assert_program(0, "finished", RUN("ranks", "--ranks 2"));
	for (int step = 1; step <= 10; step++)
		assert_near(metric_at(test_path("whole/metrics.jsonl"), step, "loss"),
			    metric_at(test_path("ranks/metrics.jsonl"), step, "loss"), 1e-5);
	assert_near(result(test_path("whole/eval_results.json"), "eval_loss"),
		    result(test_path("ranks/eval_results.json"), "eval_loss"), 1e-3);
	assert_rows(test_path("ranks/test_results.tsv"), TEST, 4);
	assert_rows(test_path("ranks/predict.txt"), TEST, 1);
}

/* - */
/* Rows of a file that is read piece by piece, and the same rows as a list of JSON objects, which is read whole, get the
 * same answers. */
static void predictions_stream(void **state)
{
	struct buffer files[4] = {{0}}; /* list, TSV, JSON lines, CSV */
	static const char *const names[] = {"rows.json", "rows.tsv", "rows.jsonl", "rows.csv"};
	struct rng rng = rng_start(4, RNG_TEST, 2);
	buffer_text(&files[0], "[");
	buffer_text(&files[1], "sentence\tid\n");
	buffer_text(&files[3], "sentence,id\n");
	for (int i = 0; i < 3000; i++) {
		char text[64];
		snprintf(text, sizeof text, "nobody %s it%s.", does[rng_below(&rng, 5)],
			 rng_below(&rng, 2) ? "" : " and the moon");
		buffer_format(&files[0], "%s{\"sentence\": \"%s\", \"id\": \"%d\"}", i ? ",\n" : "", text, i);
		buffer_format(&files[1], "%s\t%d\n", text, i);
		buffer_format(&files[2], "{\"id\": \"%d\", \"sentence\": \"%s\"}\n", i, text);
		buffer_format(&files[3], "\"%s%s\",%d\n", text, i % 3 ? "" : "\n", i);
	}
	buffer_text(&files[0], "]\n");
	for (int f = 0; f < 4; f++) {
		assert_ok(file_write(test_path(names[f]), files[f].data, files[f].size));
		buffer_release(&files[f]);
		assert_int_equal(program("predict --model %s/whole --precision fp32 %s/%s --out %s/answers%d", test_folder,
					 test_folder, names[f], test_folder, f),
				 0);
		char path[32];
		snprintf(path, sizeof path, "answers%d", f);
		assert_true(f == 0 || files_are_same(test_path("answers0"), test_path(path)));
	}
	/* A bad row far into the file is reported with its line number, or skipped; a killed command resumes. */
	char command[512];
	snprintf(command, sizeof command, "{ cat %s/rows.tsv; printf 'a\\tb\\tc\\n'; } >%s/bad.tsv", test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_ok(file_write(test_path("blank"), "nobody sees it.\n\n  \nnobody likes it.\n", 37));
	assert_program(0, "2 texts were empty", "predict --model %s/whole %s/blank", test_folder, test_folder);
	assert_program(3, "line 3002: ", "predict --model %s/whole %s/bad.tsv", test_folder, test_folder);
	assert_program(0, "1 bad record", "predict --model %s/whole %s/bad.tsv --on_bad_record skip", test_folder, test_folder);
	setenv("BERTC_FAULT", "write:3:kill", 1);
	assert_int_equal(program("predict --model %s/whole --precision fp32 %s/rows.tsv --out %s/cut", test_folder, test_folder,
				 test_folder),
			 128 + 9);
	unsetenv("BERTC_FAULT");
	assert_program(0, "resuming after 10", "predict --model %s/whole --precision fp32 %s/rows.tsv --out %s/cut", test_folder,
		       test_folder, test_folder);
	assert_true(files_are_same(test_path("answers0"), test_path("cut")));
}

/* Runs a script in the test folder, with the program as $BERTC. */
static void run_script(const char *script)
{
	char command[2048], bertc[PATH_BYTES];
	const char *named = getenv("BERTC");
	assert_non_null(realpath(named ? named : "build/bertc", bertc));
	setenv("BERTC", bertc, 1);
	snprintf(command, sizeof command, "cd %s && %s", test_folder, script);
	assert_int_equal(system(command), 0);
	if (named)
		setenv("BERTC", named, 1);
	else
		unsetenv("BERTC");
}

/* A file that is there, one that appears, a bad one, one that is still being written; then SIGTERM. */
static void a_folder_is_watched(void **state)
{
	run_script(
		"mkdir in out && cp rows.tsv in/a.tsv && cp rows.tsv in/d.part && "
		"{ $BERTC predict --model whole --precision fp32 --watch in --out out --threads 1 2>watch.log & } && pid=$! && "
		"sleep 1 && cp rows.jsonl in/b && printf '{\"x\": 1}\\n' >in/c && "
		"n=0; while [ $n -lt 1200 ] && ! { [ -e out/b.jsonl ] && [ -e out/c.error ]; }; do sleep 0.25; n=$((n+1)); done; "
		"kill -TERM $pid; wait $pid");
	assert_true(files_are_same(test_path("answers0"), test_path("out/a.tsv.jsonl")));
	assert_true(files_are_same(test_path("answers0"), test_path("out/b.jsonl")));
	assert_holds("out/c.error", "in/c");
	assert_false(file_exists(test_path("out/c.jsonl")));
	assert_false(file_exists(test_path("out/d.part.jsonl")));
	assert_holds("watch.log", "stopped by SIGTERM");
	assert_program(2, "the same folder", "predict --model %s/whole --watch %s/in --out %s/in", test_folder, test_folder,
		       test_folder);
	/* Between two runs a file is replaced by another that is older than the answers. */
	run_script(
		"head -n 3 rows.tsv >older && touch -d 2020-01-01 older && mv older in/a.tsv && printf '{\"x\": 1}\\n' >in/b && "
		"{ $BERTC predict --model whole --precision fp32 --watch in --out out --threads 1 2>watch.log & } && pid=$! && "
		"n=0; while [ $n -lt 1200 ] && { [ $(wc -l <out/a.tsv.jsonl) -gt 2 ] || ! [ -e out/b.error ]; }; do sleep 0.25; "
		"n=$((n+1)); done; kill -TERM $pid; wait $pid && [ $(wc -l <out/a.tsv.jsonl) = 2 ] && ! [ -e out/b.jsonl ]");
}

/* A checkpoint knows its task like the finished model, and an altered record is refused. */
static void predictions_come_from_any_folder(void **state)
{
	static const char words[] = "\"max_seq_length\": 32";
	struct buffer text = {0};
	assert_int_equal(
		program("predict --model %s/whole %s/test.tsv --out %s/final.jsonl", test_folder, test_folder, test_folder), 0);
	assert_int_equal(program("predict --model %s/whole/checkpoint-200 %s/test.tsv --out %s/checkpoint.jsonl", test_folder,
				 test_folder, test_folder),
			 0);
	assert_same_file(test_path("final.jsonl"), test_path("checkpoint.jsonl"));
	assert_holds("whole/final/README.md", "pipeline_tag: text-classification");
	assert_holds("whole/final/README.md", "| dev | accuracy | ");
	assert_holds("whole/final/MANIFEST.json", "README.md");
	assert_ok(file_read(test_path("whole/final/bertc_task.json"), 1 << 16, &text));
	char *place = strstr(text.data, words);
	assert_non_null(place);
	place[strlen(words) - 1] = '0';
	assert_ok(file_write(test_path("whole/final/bertc_task.json"), text.data, text.size));
	assert_program(ERR_USAGE, "cannot predict words", "fill --model %s/whole/checkpoint-200 \"the [MASK]\"", test_folder);
	assert_program(ERR_USAGE, "cannot predict words", "score --model %s/whole/checkpoint-200 %s/test.tsv", test_folder,
		       test_folder);
	assert_program(ERR_DATA, "damaged", "predict --model %s/whole %s/test.tsv", test_folder, test_folder);
	place[strlen(words) - 1] = '2';
	assert_ok(file_write(test_path("whole/final/bertc_task.json"), text.data, text.size));
	assert_program(0, "", "predict --model %s/whole %s/test.tsv", test_folder, test_folder);
	buffer_release(&text);
}

static void other_data_are_not_resumed_on(void **state)
{
	assert_program(75, "", RUN("changed", "--stop_at_step 5"));
	put_table("train.tsv", 'c', TRAIN, 7);
	assert_program(ERR_STATE, "the training examples have changed", RUN("changed", ""));
	/* Other names for the same labels are other labels. */
	put_table("train.tsv", 'c', TRAIN, 1);
	run_script("for f in train dev; do cp $f.tsv $f.old && sed '2,$s/$/s/' $f.old >$f.tsv; done");
	assert_program(ERR_STATE, "the training examples have changed", RUN("changed", ""));
	run_script("mv dev.old dev.tsv");
	put_table("train.tsv", 'c', TRAIN, 7);
	put_file("changed/notes.txt", "mine");
	assert_program(75, "", RUN("changed", "--fresh --stop_at_step 3"));
	assert_holds("changed/notes.txt", "mine");
	put_table("train.tsv", 'c', TRAIN, 1);
	assert_program(ERR_STATE, "the training examples have changed", RUN("changed", ""));
	assert_program(0, "finished", RUN("changed", "--fresh"));
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("changed/final/model.safetensors"));
}

/* Everything else is in the record of the run, or of its checkpoint. */
static void a_run_is_resumed_by_its_folder_alone(void **state)
{
	assert_program(75, "", RUN("alone", "--vocab_file %s/base/data/vocab.txt --save_best --stop_at_step 5"), test_folder);
	assert_program(ERR_STATE, "--learning_rate is '1e-3'", "finetune --out %s/alone --learning_rate 1e-3", test_folder);
	assert_program(75, "resuming from", "finetune --out %s/alone --stop_at_step 8", test_folder);
	/* Without a checkpoint the run begins again from its record. */
	forget("alone/checkpoint-5");
	forget("alone/checkpoint-8");
	assert_program(0, "base/data/vocab.txt", "finetune --out %s/alone", test_folder);
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("alone/final/model.safetensors"));
	assert_same_file(test_path("whole/predict.txt"), test_path("alone/predict.txt"));
	assert_holds("alone/eval_results.json", "selected_on");
	/* There is nothing to resume. */
	forget("alone");
	assert_program(ERR_USAGE, "--task is missing", "finetune --out %s/alone", test_folder);
	assert_ok(folder_make(test_path("alone")));
	assert_program(ERR_USAGE, "nothing to resume in", "finetune --out %s/alone", test_folder);
}

static void numbers_are_learned(void **state)
{
	put_table("numbers.tsv", 'r', TRAIN, 4);
	put_table("numbers-dev.tsv", 'r', DEV, 5);
	forget("short");
	assert_program(0, "finished",
		       SHORT("regression", "numbers.tsv", "--num_train_epochs 20 --dev %s/numbers-dev.tsv --test %s/test.tsv"),
		       test_folder, test_folder);
	/* Predicting without reading the text gives the variance, 9 * 1/5 * 4/5 = 1.44. */
	double error = result(test_path("short/eval_results.json"), "eval_mse");
	if (!(error < 0.7))
		fail_msg("mean squared error %g", error);
	assert_holds("short/final/config.json", "\"problem_type\": \"regression\"");
	assert_rows(test_path("short/test_results.tsv"), TEST, 1);
	assert_false(file_exists(test_path("short/predict.txt")));
}

static void pairs_run(void **state)
{
	put_table("pairs.tsv", 'p', 64, 4);
	forget("short");
	assert_program(0, "second text: sentence2", SHORT("pair", "pairs.tsv", "--dev %s/pairs.tsv"), test_folder);
	assert_int_equal(result(test_path("short/eval_results.json"), "eval_examples"), 64);
	assert_holds("short/final/config.json", "\"0\": \"other\"");
	/* A single text is not a pair, nor the other way round. */
	forget("short");
	assert_program(ERR_DATA, "which column has the first texts", SHORT("pair", "train.tsv", ""));
	/* A published task for pairs does not accept it as one, either. */
	assert_program(ERR_DATA, "has no column of the first texts as the files of mrpc have", SHORT("mrpc", "train.tsv", ""));
	forget("short");
	assert_program(ERR_DATA, "which column has the second texts", SHORT("classification", "pairs.tsv", "--dev %s/dev.tsv"),
		       test_folder);
	forget("short");
	assert_program(ERR_DATA, "which column has the texts", SHORT("classification", "train.tsv", "--dev %s/pairs.tsv"),
		       test_folder);
}

static void bad_files_are_named(void **state)
{
	put_file("strange.tsv", "sentence\tlabel\nthe cat sees it.\tsee\na dog likes it.\tlike\n");
	forget("short");
	assert_program(ERR_DATA, "strange.tsv', line 3: the label 'like' does not occur in training",
		       SHORT("classification", "train.tsv", "--dev %s/strange.tsv"), test_folder);
	put_file("essay.tsv", "essay\tlabel\na\tx\nb\ty\n");
	forget("short");
	assert_program(ERR_DATA, "essay.tsv': which column has the texts? Its columns are 1 essay, 2 label",
		       SHORT("classification", "essay.tsv", ""));
	put_file("one.tsv", "sentence\tlabel\na\tx\nb\tx\n");
	forget("short");
	assert_program(ERR_DATA, "has the label 'x' (from ", SHORT("classification", "one.tsv", ""));
	assert_said("one.tsv', line 2");
	put_file("twins.tsv", "sentence\tlabel\na\t1\nb\t1.0\n");
	forget("short");
	assert_program(ERR_DATA, "are the same number", SHORT("classification", "twins.tsv", ""));
	assert_said("twins.tsv', line 3");
	put_file("low.tsv", "sentence\tscore\na\t1.5\nb\tlow\nc\t2\n");
	forget("short");
	assert_program(ERR_DATA, "low.tsv', line 3: the label 'low' is not a number", SHORT("regression", "low.tsv", ""));
	put_file("few.tsv", "sentence\tlabel\na\tx\nb\ty\nc\n");
	forget("short");
	assert_program(ERR_DATA, "few.tsv', line 4: 1 field where the other rows have 2", SHORT("classification", "few.tsv", ""));
	put_file("empty.tsv", "");
	forget("short");
	assert_program(ERR_DATA, "empty.tsv': there are no rows in it", SHORT("classification", "empty.tsv", ""));
	forget("short");
	assert_program(ERR_USAGE, "nowhere.tsv", SHORT("classification", "nowhere.tsv", ""));
}

static void bad_rows_are_counted(void **state)
{
	put_file("few.tsv", "sentence\tlabel\na\tx\nb\ty\nc\nd\n");
	assert_program(0, "few.tsv': 2 bad records left out; the first because: ",
		       SHORT("classification", "few.tsv", "--on_bad_record skip"));
	assert_said("few.tsv', line 4");
	put_file("low.tsv", "sentence\tscore\na\t1.5\nb\tlow\nc\t2\n");
	forget("short");
	assert_program(0, "low.tsv': 1 bad record left out", SHORT("regression", "low.tsv", "--on_bad_record skip"));
	assert_said("low.tsv', line 3: the label 'low' is not a number");
	/* For each set separately. */
	put_file("strange.tsv", "sentence\tlabel\nthe cat sees it.\tsee\na dog likes it.\tlike\na dog finds it.\tact\n");
	forget("short");
	assert_program(0, "strange.tsv': 1 bad record left out",
		       SHORT("classification", "train.tsv", "--on_bad_record skip --dev %s/strange.tsv"), test_folder);
	assert_int_equal(result(test_path("short/eval_results.json"), "eval_examples"), 2);
	/* Predictions have a row for every row of their file. */
	forget("short");
	assert_program(ERR_DATA, "few.tsv', line 4",
		       SHORT("classification", "train.tsv", "--on_bad_record skip --test %s/few.tsv"), test_folder);
	/* The same for a model that is trained already. */
	forget("short");
	assert_program(0, "", SHORT("classification", "train.tsv", ""));
	assert_program(ERR_DATA, "few.tsv', line 4",
		       "finetune --task classification --do_predict --model %s/short --test %s/few.tsv --on_bad_record skip "
		       "--out %s/scored",
		       test_folder, test_folder, test_folder);
}

static void bad_commands_are_explained(void **state)
{
	assert_program(ERR_USAGE, "--model is missing",
		       "finetune --task classification --max_seq_length 32 --train %s/train.tsv --out %s/none", test_folder,
		       test_folder);
	assert_program(ERR_USAGE, "--task is missing",
		       "finetune --max_seq_length 32 --model %s/base --train %s/train.tsv --out %s/none", test_folder,
		       test_folder, test_folder);
	assert_program(ERR_USAGE, "--train is missing",
		       "finetune --max_seq_length 32 --task classification --model %s/base --out %s/none", test_folder,
		       test_folder);
	forget("short");
	assert_program(ERR_USAGE, "--task horoscope: there is no such task", SHORT("horoscope", "train.tsv", ""));
	assert_said("tasks are: classification, ");
	assert_said(", pair; or a published task: ");
	assert_program(ERR_USAGE, "did you mean mrpc?", SHORT("mrcp", "train.tsv", ""));
	forget("short");
	assert_program(ERR_USAGE, "--max_seq_length 65 is beyond the model's 64 positions",
		       SHORT("classification", "train.tsv", "--max_seq_length 65"));
	forget("short");
	/* Folders of other kinds. */
	assert_program(ERR_STATE, "/base' is a run of `bertc pretrain`",
		       "finetune --task classification " MODEL "--train %s/train.tsv --out %s/base", test_folder, test_folder,
		       test_folder);
	assert_program(ERR_USAGE, "/base/final' is the folder of a model",
		       "finetune --task classification " MODEL "--train %s/train.tsv --out %s/base/final", test_folder,
		       test_folder, test_folder);
	assert_program(ERR_USAGE, "hf:bert-base-uncased downloads it",
		       "finetune --task classification --model bert-base-uncased --train %s/train.tsv --out %s/none", test_folder,
		       test_folder);
	/* The same for every command that trains (cmd/training_options.h). */
	assert_program(ERR_USAGE, "give either --num_train_steps or --num_train_epochs",
		       SHORT("classification", "train.tsv", "--num_train_steps 5"));
	assert_program(
		0, "batch: 8 instances per update = 1 rank x 8 = 2 replicas x 4",
		"finetune --task classification --model %s/base --max_seq_length 32 --precision fp32 --threads 1 --plan "
		"--out %s/short --train %s/train.tsv --optimizer lamb --per_device_train_batch_size 4 --replicas_per_gpu 2",
		test_folder, test_folder, test_folder);
	assert_said("poly  "); /* like LAMB's */
	forget("short");
	assert_false(file_exists(test_path("none/final")));
}

/* A folder in the working directory with the name of a size: the folder's configuration counts. */
static void a_folder_may_be_called_as_a_size(void **state)
{
	char folder[PATH_BYTES], *before = getcwd(folder, sizeof folder), program_path[PATH_BYTES + 32];
	const char *bertc = getenv("BERTC");
	assert_non_null(before);
	snprintf(program_path, sizeof program_path, "%s/%s", folder, bertc ? bertc : "build/bertc");
	if (!bertc || bertc[0] != '/')
		setenv("BERTC", program_path, 1);
	assert_int_equal(chdir(test_folder), 0);
	int status = program("finetune --task classification --model base --train train.tsv --out planned --plan "
			     "--max_seq_length 32 --precision fp32");
	assert_int_equal(chdir(folder), 0);
	if (bertc)
		setenv("BERTC", bertc, 1);
	else
		unsetenv("BERTC");
	assert_int_equal(status, 0);
	assert_said("memory plan for 23,"); /* thousand parameters, not 86 million */
}

/* The answers to a dev set are as wide as there are labels: 1,500 x 1,500 numbers take 9 MB. */
static void a_plan_has_room_for_answers(void **state)
{
	struct buffer text = {0};
	double batches = 0;
	buffer_text(&text, "text\tlabel\n");
	for (int i = 0; i < 1500; i++)
		buffer_format(&text, "the cat %d\tlabel %d\n", i, i);
	put_file("wide.tsv", buffer_string(&text));
	buffer_release(&text);
	assert_program(0, "memory plan for",
		       "finetune --task classification " MODEL "--train %s/wide.tsv --dev %s/wide.tsv --out %s/wide --plan",
		       test_folder, test_folder, test_folder, test_folder);
	const char *row = strstr(buffer_string(&program_errors), "  batches");
	assert_non_null(row);
	assert_int_equal(sscanf(row, "  batches %lf MB", &batches), 1);
	assert_true(batches >= 9 && batches < 10);
}

/* The head's input is dropped out by classifier_dropout of config.json, or without it, like the hidden layers. */
static void heads_drop(void **state)
{
	static const char key[] = "\"classifier_dropout\": null", *const values[] = {"null", "0.5", "0"};
	static const char *const files[] = {"model.safetensors", "vocab.txt"};
	struct buffer text = {0};
	double losses[3];
	char from[64], to[64];
	assert_ok(folder_make(test_path("dropping")));
	for (int i = 0; i < 2; i++) {
		snprintf(from, sizeof from, "base/final/%s", files[i]);
		snprintf(to, sizeof to, "dropping/%s", files[i]);
		assert_ok(file_copy(test_path(from), test_path(to)));
	}
	assert_ok(file_read(test_path("base/final/config.json"), 1 << 16, &text));
	const char *config_text = buffer_string(&text), *place = strstr(config_text, key);
	assert_non_null(place);
	for (int i = 0; i < 3; i++) {
		struct buffer changed = {0};
		buffer_format(&changed, "%.*s\"classifier_dropout\": %s%s", (int)(place - config_text), config_text, values[i],
			      place + strlen(key));
		assert_ok(file_write(test_path("dropping/config.json"), changed.data, changed.size));
		buffer_release(&changed);
		assert_program(0, "finished",
			       "finetune --task classification --model %s/dropping --train %s/train.tsv --out %s/short "
			       "--num_train_steps 1 --max_seq_length 32 --precision fp32 --threads 1 --train_batch_size 16 "
			       "--hidden_dropout_prob 0 --attention_probs_dropout_prob 0 --log_steps 1 --no_progress",
			       test_folder, test_folder, test_folder);
		losses[i] = metric_at(test_path("short/metrics.jsonl"), 1, "loss");
		char kept[64];
		snprintf(kept, sizeof kept, "\"classifier_dropout\": %s", values[i]);
		assert_holds("short/final/config.json", kept);
		forget("short");
	}
	buffer_release(&text);
	assert_true(losses[0] == losses[2] && losses[1] != losses[0] && isfinite(losses[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_drop),
		cmocka_unit_test(a_class_is_learned),
		cmocka_unit_test(an_interruption_changes_nothing),
		cmocka_unit_test(predictions_stream),
		cmocka_unit_test(a_folder_is_watched),
		cmocka_unit_test(predictions_come_from_any_folder),
		cmocka_unit_test(ranks_train_as_one),
		cmocka_unit_test(other_data_are_not_resumed_on),
		cmocka_unit_test(a_run_is_resumed_by_its_folder_alone),
		cmocka_unit_test(numbers_are_learned),
		cmocka_unit_test(pairs_run),
		cmocka_unit_test(bad_files_are_named),
		cmocka_unit_test(bad_rows_are_counted),
		cmocka_unit_test(bad_commands_are_explained),
		cmocka_unit_test(a_folder_may_be_called_as_a_size),
		cmocka_unit_test(a_plan_has_room_for_answers),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
