/* The recipes that we ship: each has the published settings, and each, as it is, trains both of its phases, scaled down on
 * the command line. */
#include <glob.h>
#include <math.h>
#include "base/json.h"
#include "base/rng.h"
#include "cmd/program.h"

/* 512 positions, for the lengths in the recipes. */
#define CONFIG                                                                                                                   \
	"{\"model_type\": \"bert\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "                                             \
	"\"num_attention_heads\": 2, \"intermediate_size\": 64, \"hidden_act\": \"gelu\", "                                      \
	"\"max_position_embeddings\": 512, \"type_vocab_size\": 2}"
#define STEPS 20

static char corpus[128], config[128];

/* Long documents, so that there are instances of 512 tokens. */
static int setup(void **state)
{
	static const char *const words[] = {"cell", "model", "protein", "the", "of", "in", "growth", "measured", "we", "show"};
	if (test_folder_make(state) != 0)
		return -1;
	struct buffer text = {0};
	struct rng rng = rng_start(5, RNG_TEST, 0);
	for (int document = 0; document < 40; document++) {
		for (int sentence = 0; sentence < 80; sentence++) {
			for (int word = 0; word < 12; word++)
				buffer_format(&text, "%s ", words[rng_below(&rng, 10)]);
			buffer_text(&text, ".\n");
		}
		buffer_char(&text, '\n');
	}
	snprintf(corpus, sizeof corpus, "%s/corpus.txt", test_folder);
	snprintf(config, sizeof config, "%s/config.json", test_folder);
	assert_ok(file_write(corpus, text.data, text.size));
	assert_ok(file_write(config, CONFIG, strlen(CONFIG)));
	buffer_release(&text);
	return 0;
}

/* The published settings of the run, and of each phase. */
static const struct {
	const char *recipe, *section, *line;
} published[] = {
	{"bert_base", NULL, "model = base"},
	{"bert_base", NULL, "optimizer = google_adamw"},
	{"bert_base", "[phase 1]", "train_batch_size = 256"},
	{"bert_base", "[phase 1]", "max_seq_length = 128"},
	{"bert_base", "[phase 1]", "num_train_steps = 900000"},
	{"bert_base", "[phase 1]", "num_warmup_steps = 10000"},
	{"bert_base", "[phase 1]", "learning_rate = 1e-4"},
	{"bert_base", "[phase 2]", "max_seq_length = 512"},
	{"bert_base", "[phase 2]", "num_train_steps = 100000"},
	{"bert_base", "[phase 2]", "train_batch_size = 256"},
	{"bert_large", NULL, "model = large"},
	{"bert_large", "[phase 1]", "learning_rate = 1e-4"},
	{"bert_large", "[phase 2]", "num_train_steps = 100000"},
	{"scibert", NULL, "vocab_size = 31090"},
	{"scibert", "[phase 1]", "train_batch_size = 256"},
	{"scibert", "[phase 1]", "max_predictions_per_seq = 20"},
	{"scibert", "[phase 1]", "num_train_steps = 500000"},
	{"scibert", "[phase 1]", "num_warmup_steps = 1000"},
	{"scibert", "[phase 1]", "learning_rate = 1e-4"},
	{"scibert", "[phase 2]", "train_batch_size = 64"},
	{"scibert", "[phase 2]", "max_seq_length = 512"},
	{"scibert", "[phase 2]", "max_predictions_per_seq = 75"},
	{"scibert", "[phase 2]", "num_train_steps = 300000"},
	{"scibert", "[phase 2]", "num_warmup_steps = 100"},
	{"scibert", "[phase 2]", "learning_rate = 1e-5"},
	{"nvidia_lamb", NULL, "optimizer = lamb"},
	{"nvidia_lamb", NULL, "schedule = nvidia_poly"},
	{"nvidia_lamb", NULL, "poly_degree = 0.5"},
	{"nvidia_lamb", "[phase 1]", "train_batch_size = 65536"},
	{"nvidia_lamb", "[phase 1]", "max_seq_length = 128"},
	{"nvidia_lamb", "[phase 1]", "learning_rate = 6e-3"},
	{"nvidia_lamb", "[phase 1]", "num_train_steps = 7038"},
	{"nvidia_lamb", "[phase 1]", "warmup_proportion = 0.2843"},
	{"nvidia_lamb", "[phase 2]", "train_batch_size = 32768"},
	{"nvidia_lamb", "[phase 2]", "max_seq_length = 512"},
	{"nvidia_lamb", "[phase 2]", "learning_rate = 4e-3"},
	{"nvidia_lamb", "[phase 2]", "num_train_steps = 1563"},
	{"nvidia_lamb", "[phase 2]", "warmup_proportion = 0.128"},
};

static void settings_are_the_published_ones(void **state)
{
	for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
		assert_program(0, "", "pretrain --config recipes/%s.conf --print_config", published[i].recipe);
		char *text = program_output.data, line[128];
		if (published[i].section) {
			text = strstr(text, published[i].section);
			assert_non_null(text);
			char *next = strstr(text + 1, "\n[");
			if (next)
				*next = '\0';
		}
		snprintf(line, sizeof line, "\n%s  #", published[i].line);
		if (!strstr(text, line))
			fail_msg("%s %s: no '%s'", published[i].recipe, published[i].section ? published[i].section : "",
				 published[i].line);
	}
}

/* The number of lines in metrics.jsonl that are steps of a phase; all their numbers must be finite. */
static int steps_of_phase(const char *run, int64_t phase)
{
	struct buffer text = {0};
	char *save, path[PATH_BYTES];
	int count = 0;
	snprintf(path, sizeof path, "%s/metrics.jsonl", run);
	assert_ok(file_read(path, 1 << 24, &text));
	for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct json_document document;
		int64_t number = 0;
		double loss = NAN, norm = NAN;
		assert_ok(json_parse(&document, path, line, strlen(line)));
		if (json_member(document.root, "learning_rate")) {
			assert_ok(json_get_integer(document.root, path, "phase", 1, 2, &number));
			assert_ok(json_get_number(document.root, path, "loss", &loss));
			assert_ok(json_get_number(document.root, path, "grad_norm", &norm));
			assert_true(isfinite(loss) && isfinite(norm) && norm > 0);
			count += number == phase;
		}
		json_release(&document);
	}
	buffer_release(&text);
	return count;
}

static void each_trains_both_phases(void **state)
{
	glob_t files;
	/* The recipes of finetune are tested in tests/cmd/test_finetune_recipes.c, those of --recipe in
	 * tests/cmd/test_recipes.c. */
	assert_int_equal(glob("recipes/[!fo]*.conf", 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 4);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		char run[128];
		snprintf(run, sizeof run, "%s/run%zu", test_folder, i);
		print_message("%s\n", files.gl_pathv[i]);
		const char *command =
			"pretrain --config %s --corpus %s --model %s --vocab_size 100 --out %s --train_batch_size 8 "
			"--num_train_steps 20 --warmup_proportion 0.1 --log_steps 1 --eval_steps 10 --eval_instances 16 "
			"--save_checkpoints_steps 20 %s";
		assert_program(75, "saved", command, files.gl_pathv[i], corpus, config, run, "--stop_at_step 25");
		assert_program(0, "finished", command, files.gl_pathv[i], corpus, config, run, "");
		for (int phase = 1; phase <= 2; phase++)
			assert_int_equal(steps_of_phase(run, phase), STEPS);
		assert_program(0, "", "evaluate --model %s --corpus %s --max_seq_length 512", run, corpus);
	}
	globfree(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_the_published_ones),
		cmocka_unit_test(each_trains_both_phases),
	};
	return cmocka_run_group_tests_name("recipes", tests, setup, program_teardown);
}
