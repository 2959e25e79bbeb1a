/* A run's settings hold from its beginning: a run that is killed before its first checkpoint begins again as it began, and
 * options that are given later and would change the result are refused. Scores on another evaluation text are not compared
 * with earlier ones. */
#include <unistd.h>
#include "cmd/small_run.h"

static char folder[128]; /* the test folder, short for command lines */

static int setup(void **state)
{
	if (small_run_make(state, 6) != 0)
		return -1;
	snprintf(folder, sizeof folder, "%.120s", test_folder);
	return 0;
}

#define COMMON "--train_batch_size 4 --max_seq_length 16 --precision fp32 --threads 1 --no_progress "
#define OPTIONS                                                                                                                  \
	COMMON "--vocab_size 80 --num_train_steps 6 --save_checkpoints_steps 100 --eval_steps 100 --learning_rate 3e-3 --seed "  \
	       "7 "
#define RUN(out, more) "pretrain --corpus %s --model %s --out %s/" out " " OPTIONS more, corpus, config, folder

/* The command is killed as it makes its third folder, after its own and `data`: the folder of its first checkpoint. */
#define assert_killed(...)                                                                                                       \
	do {                                                                                                                     \
		setenv("BERTC_FAULT", "mkdir:3:kill", 1);                                                                        \
		int got_ = program(__VA_ARGS__);                                                                                 \
		unsetenv("BERTC_FAULT");                                                                                         \
		if (got_ != 137)                                                                                                 \
			fail_msg("exit status %d:\n%s", got_, buffer_string(&program_errors));                                   \
	} while (0)

static void assert_same_weights(const char *a, const char *b)
{
	char left[256], right[256];
	snprintf(left, sizeof left, "%s/%s/final/model.safetensors", folder, a);
	snprintf(right, sizeof right, "%s/%s/final/model.safetensors", folder, b);
	assert_same_file(left, right);
}

static void killed_before_the_first_checkpoint(void **state)
{
	assert_program(0, "finished", RUN("whole", ""));
	assert_killed(RUN("killed", ""));
	assert_true(file_exists(test_path("killed/settings.json")));
	assert_false(file_exists(test_path("killed/checkpoint-6")));
	assert_program(4, "--learning_rate is '1e-3', but", "pretrain --out %s/killed --learning_rate 1e-3", folder);
	assert_said("was made with '3e-3'");
	assert_program(4, "--vocab_size is '60', but", "pretrain --out %s/killed --vocab_size 60", folder);
	assert_program(4, "--text_form is 'documents', but", "pretrain --out %s/killed --text_form documents", folder);
	assert_program(4, "--init_checkpoint is '", "pretrain --out %s/killed --init_checkpoint %s/whole/final", folder, folder);
	assert_said("was made without it");
	assert_true(file_exists(test_path("killed/data/train.bin")));
	assert_program(0, "starting over", "pretrain --out %s/killed --threads 1", folder);
	assert_same_weights("whole", "killed");
	assert_program(4, "--vocab_size is '60', but", RUN("whole", "--vocab_size 60"));
	assert_program(0, "finished", RUN("whole", ""));
	/* Nobody says the size of a vocabulary that is given, only the record does. */
	assert_killed("pretrain --out %s/given --vocab_file %s/whole/data/vocab.txt --corpus %s --model %s " COMMON
		      "--num_train_steps 6 --save_checkpoints_steps 100",
		      folder, folder, corpus, config);
	assert_program(0, "starting over", "pretrain --out %s/given", folder);
	assert_null(strstr(buffer_string(&program_errors), "has no effect"));
}

/* Evaluating on training texts says nothing about other texts, and a warning says so. */
static void evaluated_on_what_is_trained_on(void **state)
{
	struct buffer text = {0};
	buffer_text(&text, "sentence\tlabel\n");
	for (int i = 0; i < 12; i++)
		buffer_format(&text, "the cat number %d.\t%d\n", i, i % 2);
	assert_ok(file_write(test_path("both.tsv"), text.data, text.size));
	buffer_release(&text);
	assert_int_equal(symlink("both.tsv", test_path("link.tsv")), 0);
	assert_program(0, "--eval_corpus '", RUN("shared", "--eval_corpus own=%s"), corpus);
	assert_said("is also one of the files of --corpus: scores on it say nothing about other texts");
	/* A copy under another name, in part. */
	struct buffer part = {0};
	assert_ok(file_read(corpus, 1 << 20, &text));
	buffer_append(&part, text.data, text.size / 2);
	buffer_text(&part, "\n\nthis is a sentence of its own.\n");
	assert_ok(file_write(test_path("part.txt"), part.data, part.size));
	buffer_release(&part);
	buffer_release(&text);
	assert_program(0, "documents of the evaluation text own are in the training text as well",
		       RUN("part", "--eval_corpus own=%s/part.txt"), folder);
	assert_program(
		0, "link.tsv' is also one of the files of --train",
		"finetune --task classification --model %s/shared --train %s/both.tsv --dev %s/link.tsv --out %s/same " COMMON
		"--num_train_steps 1",
		folder, folder, folder, folder);
}

static void rewrite(const char *name, const char *from, const char *to)
{
	struct buffer text = {0}, out = {0};
	assert_ok(file_read(test_path(name), 1 << 20, &text));
	const char *at = strstr(buffer_string(&text), from);
	assert_non_null(at);
	buffer_append(&out, text.data, (size_t)(at - text.data));
	buffer_text(&out, to);
	buffer_text(&out, at + strlen(from));
	assert_ok(file_write(test_path(name), out.data, out.size));
	buffer_release(&text);
	buffer_release(&out);
}

/* settings.json of a run with checkpoints is a copy for people: changes there have no effect, and a message says so. */
static void edited_settings(void **state)
{
	assert_program(STOPPED, "", RUN("edited", "--stop_at_step 3"));
	rewrite("edited/settings.json", "\"learning_rate\": \"3e-3\"", "\"learning_rate\": 0.5");
	rewrite("edited/settings.json", "\"seed\": \"7\"", "\"seed\": \"007\""); /* the same number */
	assert_program(STOPPED, "--learning_rate stays '3e-3'", "pretrain --out %s/edited --stop_at_step 4", folder);
	assert_null(strstr(buffer_string(&program_errors), "another seed"));
	assert_program(STOPPED, "", "pretrain --out %s/edited --stop_at_step 5", folder);
	assert_null(strstr(buffer_string(&program_errors), "settings.json"));
	assert_ok(file_write(test_path("edited/settings.json"), "{", 1));
	assert_program(0, "it is now written again", "pretrain --out %s/edited", folder);
	assert_program(0, "finished", RUN("unedited", ""));
	assert_same_weights("edited", "unedited");
}

/* What only the beginning of a run needs: initial weights, given from another folder. */
static void killed_with_initial_weights(void **state)
{
#define FURTHER(out, from)                                                                                                       \
	"pretrain --corpus %s --out %s/" out " " from " whole/final " COMMON                                                     \
	"--num_train_steps 4 --save_checkpoints_steps 100 --eval_steps 100",                                                     \
		corpus, folder
	char before[512], bertc[600];
	const char *own = getenv("BERTC");
	assert_non_null(getcwd(before, sizeof before));
	snprintf(bertc, sizeof bertc, "%s/%s", before, own ? own : "build/bertc");
	if (!own || own[0] != '/')
		setenv("BERTC", bertc, 1);
	assert_int_equal(chdir(folder), 0);
	assert_program(0, "finished", FURTHER("further", "--init_checkpoint"));
	assert_killed(FURTHER("broken", "--init_checkpoint"));
	assert_killed(FURTHER("model", "--model"));
	assert_int_equal(chdir(before), 0);
	assert_program(0, "starting over", "pretrain --out %s/broken --threads 1", folder);
	assert_program(0, "starting over", "pretrain --out %s/model --threads 1", folder);
	assert_same_weights("further", "broken");
	assert_same_weights("further", "model");
	if (own)
		setenv("BERTC", own, 1);
	else
		unsetenv("BERTC");
}

static void killed_fine_tuning(void **state)
{
	struct buffer table = {0};
	buffer_text(&table, "sentence\tlabel\n");
	for (int i = 0; i < 24; i++)
		buffer_format(&table, "the cat %s the moon.\t%s\n", i % 2 ? "sees" : "likes", i % 2 ? "see" : "like");
	assert_ok(file_write(test_path("table.tsv"), table.data, table.size));
	buffer_release(&table);
#define TUNE(out)                                                                                                                \
	"finetune --task classification --model %s/whole --train %s/table.tsv --out %s/" out " " COMMON                          \
	"--num_train_epochs 1 --learning_rate 1e-3 --seed 3",                                                                    \
		folder, folder, folder
	assert_program(0, "finished", TUNE("tuned"));
	setenv("BERTC_FAULT", "mkdir:2:kill", 1); /* no folder of data here */
	assert_int_equal(program(TUNE("untuned")), 137);
	unsetenv("BERTC_FAULT");
	assert_program(4, "--seed is '4', but", "finetune --out %s/untuned --task classification --seed 4", folder);
	assert_program(0, "starting over", "finetune --out %s/untuned --task classification --threads 1", folder);
	assert_same_weights("tuned", "untuned");
}

/* The model that a fine-tuning run began with: another one is refused, whether there is a checkpoint or not, and files
 * given separately from the model's folder are used again. */
static void fine_tuning_keeps_to_its_model(void **state)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path("whole/final/config.json"), 1 << 16, &text));
	char *heads = strstr(buffer_string(&text), "\"num_attention_heads\": 2");
	assert_non_null(heads);
	heads[strlen("\"num_attention_heads\": ")] = '1';
	assert_ok(file_write(test_path("heads.json"), text.data, text.size));
	buffer_release(&text);
#define KEPT(model, more)                                                                                                        \
	"finetune --task classification --model %s/" model " --train %s/table.tsv --out %s/kept " COMMON                         \
	"--num_train_steps 4 --save_checkpoints_steps 2 " more,                                                                  \
		folder, folder, folder
	setenv("BERTC_FAULT", "mkdir:2:kill", 1);
	assert_int_equal(program(KEPT("whole", "--config_file %s/heads.json"), folder), 137);
	unsetenv("BERTC_FAULT");
	assert_program(4, "tuned', but", KEPT("tuned", ""));
	assert_program(75, "starting over", KEPT("whole/../whole", "--stop_at_step 2"));
	assert_ok(file_read(test_path("kept/checkpoint-2/config.json"), 1 << 16, &text));
	assert_non_null(strstr(buffer_string(&text), "\"num_attention_heads\": 1"));
	buffer_release(&text);
	assert_program(4, "--model is '", KEPT("tuned", ""));
	assert_program(4, "--vocab_file is '", KEPT("whole", "--vocab_file %s/whole/final/vocab.txt"), folder);
	assert_program(0, "finished", KEPT("./whole", ""));
	assert_program(4, "--model is '", KEPT("tuned", ""));
}

/* Examples that change between two starts: changed training examples are refused, changed dev examples start a new score
 * history. */
static void changed_examples(void **state)
{
	struct buffer table = {0};
	assert_ok(file_read(test_path("table.tsv"), 1 << 16, &table));
	assert_ok(file_write(test_path("trained.tsv"), table.data, table.size));
	assert_ok(file_write(test_path("scored.tsv"), table.data, table.size));
#define WATCHED(more)                                                                                                            \
	"finetune --task classification --model %s/whole --train %s/trained.tsv --dev %s/scored.tsv --out %s/watched " COMMON    \
	"--num_train_steps 6 --eval_steps 2 --save_checkpoints_steps 2 " more,                                                   \
		folder, folder, folder, folder
	assert_program(75, "", WATCHED("--stop_at_step 2"));
	char *label = strstr(buffer_string(&table), "\tsee\n");
	assert_non_null(label);
	memcpy(label, "\tlike\n", 6);
	table.size = (size_t)(label - table.data) + 6;
	assert_ok(file_write(test_path("scored.tsv"), table.data, table.size));
	assert_program(75, "the evaluation data have changed", WATCHED("--stop_at_step 4"));
	assert_program(75, "", WATCHED("--stop_at_step 5"));
	assert_null(strstr(buffer_string(&program_errors), "the evaluation data have changed"));
	assert_ok(file_read(test_path("table.tsv"), 1 << 16, &table));
	const char *last = memrchr(table.data, '\n', table.size - 1); /* of the last row but one */
	assert_ok(file_write(test_path("trained.tsv"), table.data, (size_t)(last - table.data) + 1));
	assert_program(4, "the training examples have changed", WATCHED(""));
	buffer_release(&table);
}

/* The settings of a run that failed before it began are not binding. */
static void failed_before_the_first_step(void **state)
{
	/* Weights of another width are noticed before the text is prepared. */
	static char wider[160];
	static const char model[] = "{\"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
				    "\"intermediate_size\": 64, \"max_position_embeddings\": 64}";
	snprintf(wider, sizeof wider, "%s/wider.json", folder);
	assert_ok(file_write(wider, model, sizeof model - 1));
	assert_program(4, "", "pretrain --corpus %s --init_checkpoint %s/whole/final --model %s --out %s/failed " OPTIONS, corpus,
		       folder, wider, folder);
	assert_false(file_exists(test_path("failed/data/train.bin")));
	assert_false(file_exists(test_path("failed/settings.json")));
	/* No disk holds so many checkpoints. */
	assert_program(5, "but the disk has",
		       RUN("failed", "--num_train_steps 99999999 --keep_checkpoints 99999999 --save_checkpoints_steps 1"));
	assert_false(file_exists(test_path("failed/settings.json")));
	assert_program(0, "finished", RUN("failed", "--num_train_steps 3"));
}

/* Nothing is removed before it is certain that it can be made again. */
static void prepared_data_stay(void **state)
{
	assert_program(0, "memory plan", RUN("planned", "--plan"));
	assert_program(2, "no text to train on", "pretrain --out %s/planned --vocab_size 60 --model %s " COMMON, folder, config);
	assert_program(2, "nowhere.txt", "pretrain --corpus %s/nowhere.txt --out %s/planned --vocab_size 60 --model %s " COMMON,
		       folder, folder, config);
	assert_true(file_exists(test_path("planned/data/train.bin")));
	assert_true(file_exists(test_path("planned/data/vocab.txt")));
}

/* What a plan has prepared is not a run: another text, and another evaluation text, may follow. A plan that prepares
 * nothing leaves nothing. */
static void plans_bind_nobody(void **state)
{
	static const char one[] = "the cat sees a river.\nnobody likes the moon.\n\n", two[] = "a river.\na moon.\n\n";
	struct buffer text = {0};
	for (int i = 0; i < 30; i++)
		buffer_text(&text, one);
	assert_ok(file_write(test_path("grows.txt"), text.data, text.size));
#define GROWN(more)                                                                                                              \
	"pretrain --corpus %s/grows.txt --eval_corpus %s/grows.txt --model %s --out %s/grown " COMMON                            \
	"--vocab_size 40 --num_train_steps 2 " more,                                                                             \
		folder, folder, config, folder
	assert_program(0, "time: less than a minute for 2 steps", GROWN("--plan"));
	for (int i = 0; i < 30; i++)
		buffer_text(&text, two);
	assert_ok(file_write(test_path("grows.txt"), text.data, text.size));
	assert_program(0, "from other text: making it again", GROWN(""));
	assert_said("finished");
	/* A finished run that is started again says so, and prints no plan. */
	assert_program(0, "finished", GROWN(""));
	assert_null(strstr(buffer_string(&program_errors), "memory plan"));
	assert_null(strstr(buffer_string(&program_errors), "settings"));
	buffer_clear(&text);
	buffer_text(&text, "sentence\tlabel\nthe cat\ta\na river\tb\n");
	assert_ok(file_write(test_path("few.tsv"), text.data, text.size));
	assert_program(0, "memory plan", "finetune --task classification --model %s/grown --train %s/few.tsv --out %s/few --plan",
		       folder, folder, folder);
	assert_false(file_exists(test_path("few")));
	buffer_release(&text);
}

/* The held-out text is a different one after the interruption. */
static void another_evaluation_text(void **state)
{
	struct buffer text = {0}, best = {0};
	for (int i = 0; i < 30; i++)
		buffer_text(&text, "the cat sees a river.\nnobody likes the moon.\n\n");
	assert_ok(file_write(test_path("easy.txt"), text.data, text.size));
	buffer_clear(&text);
	for (int i = 0; i < 30; i++)
		buffer_text(&text, "river moon paints the old.\nbread bread red my man.\n\n");
	assert_ok(file_write(test_path("hard.txt"), text.data, text.size));
	buffer_release(&text);
#define JUDGED(name, more)                                                                                                       \
	"pretrain --corpus %s --eval_corpus %s/" name " --model %s --out %s/judged " COMMON                                      \
	"--vocab_size 80 --num_train_steps 8 --eval_steps 2 --save_checkpoints_steps 2 --learning_rate 1e-2 --seed 7 " more,     \
		corpus, folder, config, folder
	assert_program(75, "", JUDGED("easy.txt", "--stop_at_step 4"));
	assert_program(75, "", JUDGED("easy.txt", "--stop_at_step 6"));
	assert_null(strstr(buffer_string(&program_errors), "the evaluation data have changed"));
	assert_program(0, "the evaluation data have changed", JUDGED("hard.txt", ""));
	assert_ok(file_read(test_path("judged/best.json"), 1000, &best));
	assert_non_null(strstr(buffer_string(&best), "\"step\": 8")); /* the only one that was evaluated on this text */
	buffer_release(&best);
}

/* Text in which the vocabulary knows no word looks as if it were learned at once. */
static void unknown_words(void **state)
{
	struct buffer table = {0};
	buffer_text(&table, "sentence\tlabel\n");
	for (int i = 0; i < 24; i++)
		buffer_format(&table, "\xe4\xbb\x8a\xe5\xa4\xa9 \xe5\xbe\x88 \xe5\xa5\xbd\t%s\n", i % 2 ? "see" : "like");
	assert_ok(file_write(test_path("chinese.tsv"), table.data, table.size));
	buffer_release(&table);
	assert_program(4, "/chinese.tsv' are [UNK]: there is nothing to learn",
		       "finetune --task classification --model %s/whole --train %s/chinese.tsv --out %s/chinese " COMMON, folder,
		       folder, folder);
	assert_said("100.0 % of the tokens");
	/* An existing model answers anyway, and the oddity is reported. */
	assert_program(0, "",
		       "finetune --task classification --model %s/whole --train %s/few.tsv --out %s/asked --num_train_steps 1 "
		       "--train_batch_size 2 --max_seq_length 32 --precision fp32",
		       folder, folder, folder);
	static const char strange[] = "sentence\tlabel\n\xe4\xbb\x8a\xe5\xa4\xa9\ta\n\xe5\xa5\xbd\tb\n";
	assert_ok(file_write(test_path("strange.tsv"), strange, sizeof strange - 1));
	assert_program(0, "100.0 % of the tokens of the texts are [UNK]", "predict --model %s/asked %s/strange.tsv", folder,
		       folder);
	assert_program(0, "strange.tsv are [UNK]", "evaluate --model %s/asked --test %s/strange.tsv", folder, folder);
	/* Several sets make one JSON object; rows that cannot be used can be skipped here, too. */
	assert_program(0, "", "evaluate --json --model %s/asked --test a=%s/strange.tsv b=%s/strange.tsv", folder, folder,
		       folder);
	assert_int_equal(strncmp(buffer_string(&program_output), "{\"a\":{", 6), 0);
	assert_non_null(strstr(buffer_string(&program_output), "},\"b\":{"));
	static const char unlabeled[] = "sentence\tlabel\nthe cat\ta\na river\tnowhere\n";
	assert_ok(file_write(test_path("unlabeled.tsv"), unlabeled, sizeof unlabeled - 1));
	assert_program(3, "nowhere", "evaluate --model %s/asked --test %s/unlabeled.tsv", folder, folder);
	assert_program(0, "1 bad record left out", "evaluate --model %s/asked --test %s/unlabeled.tsv --on_bad_record skip",
		       folder, folder);
	assert_program(0, "of the tokens of the texts are [UNK]", "embed --model %s/asked %s/chinese.tsv", folder, folder);
}

/* Wherever a corpus is read, oddities in it are reported. */
static void bytes_that_are_no_text(void **state)
{
	struct buffer text = {0};
	for (int i = 0; i < 400; i++)
		buffer_text(&text, "the cat sees a river.\nnobody likes the moon.\n\n");
	buffer_text(&text, "the cat \xff\xfe sees.\nnobody likes it.\n");
	assert_ok(file_write(test_path("odd.txt"), text.data, text.size));
	for (int i = 0; i < 400; i++)
		buffer_text(&text, "der Fl\xc3\xbcgel und der Fl\xc3\xbcgel.\n");
	buffer_text(&text, "der Fl\xfcgel, der Fl\xfcgel, der Fl\xfcgel, der Fl\xfcgel.\n");
	assert_ok(file_write(test_path("mixed.txt"), text.data, text.size));
	buffer_clear(&text);
	for (int i = 0; i < 40; i++)
		buffer_text(&text, "der Fl\xfcgel und die Fl\xf6te.\n");
	assert_ok(file_write(test_path("latin1.txt"), text.data, text.size));
	buffer_release(&text);
	assert_program(0, "in the text: 2 bytes that are not UTF-8 (tokenizers leave them out)",
		       "pretrain --corpus %s/odd.txt --model %s --out %s/odd " OPTIONS "--num_train_steps 1", folder, config,
		       folder);
	assert_program(0, "in the text: 2 bytes that are not UTF-8 (tokenizers leave them out)",
		       "evaluate --model %s/odd/final --corpus %s/odd.txt --max_seq_length 64", folder, folder);
	assert_program(0, "in the text: 2 bytes that are not UTF-8 (tokenizers leave them out)",
		       "instances --corpus %s/odd.txt --vocab_file %s/odd/final/vocab.txt --out %s/odd.tfrecord", folder, folder,
		       folder);
	static const char warning[] = "of the bytes of the text are not UTF-8";
	assert_null(strstr(buffer_string(&program_errors), warning));
	assert_program(0, "6 bytes that are not UTF-8", "vocab --corpus %s/mixed.txt --vocab_size 200 --out %s/mixed.vocab",
		       folder, folder);
	assert_said(warning);
	assert_program(0, warning, "embed --model %s/odd/final %s/mixed.txt", folder, folder);
	static const char refused[] = "latin1.txt': not UTF-8 text: 80 of its first ";
	assert_program(3, refused, "vocab --corpus %s/latin1.txt --vocab_size 200 --out %s/latin1.vocab", folder, folder);
	assert_said("iconv -f LATIN1 -t UTF-8 FILE");
	assert_program(
		3, refused,
		"instances --compat google --corpus %s/latin1.txt --vocab_file %s/odd/final/vocab.txt --out %s/latin1.tfrecord",
		folder, folder, folder);
	assert_program(0, warning, "tokenize --vocab_file %s/odd/final/vocab.txt %s/latin1.txt", folder, folder);
}

/* Standard input cannot be compared with what was read before. */
static void standard_input_is_not_read_again(void **state)
{
#define PIPED(input, more)                                                                                                       \
	"pretrain --corpus - --vocab_file %s/whole/final/vocab.txt --model %s --out %s/piped " OPTIONS more " <%s", folder,      \
		config, folder, input
	assert_program(75, "", PIPED(corpus, "--stop_at_step 2"));
	assert_program(0, "not reading standard input", PIPED("/dev/null", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_before_the_first_checkpoint),
		cmocka_unit_test(edited_settings),
		cmocka_unit_test(evaluated_on_what_is_trained_on),
		cmocka_unit_test(killed_with_initial_weights),
		cmocka_unit_test(killed_fine_tuning),
		cmocka_unit_test(fine_tuning_keeps_to_its_model),
		cmocka_unit_test(changed_examples),
		cmocka_unit_test(failed_before_the_first_step),
		cmocka_unit_test(prepared_data_stay),
		cmocka_unit_test(plans_bind_nobody),
		cmocka_unit_test(another_evaluation_text),
		cmocka_unit_test(unknown_words),
		cmocka_unit_test(bytes_that_are_no_text),
		cmocka_unit_test(standard_input_is_not_read_again),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
