/* Tests docs/migrating.md: every command on the page is run in a folder that contains the files it names, the foreign ones
 * with bertc's command in place of their script, as the page's table says. Those that train run with --plan. */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "cmd/small_run.h"

static char bertc[PATH_MAX];
static struct buffer page;

static int shell(const char *command)
{
	struct buffer line = {0};
	buffer_format(&line, "cd %s && { %s; } >>setup.log 2>&1", test_folder, command);
	int status = system(buffer_string(&line));
	buffer_release(&line);
	return status;
}

/* ---- The files that the commands name ---- */

#define MRPC_HEADER "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
#define MRPC_ROWS "1\t1\t2\tthe cat sees a river .\tthe cat sees it .\n0\t3\t4\tthe cat sees a river .\ta dog likes it .\n"
#define PAIRS "sentence1,sentence2,label\nthe cat sees it,a cat sees it,1\nthe cat sees it,nobody likes it,0\n"
#define SQUAD_FILE                                                                                                               \
	"{\"data\": [{\"paragraphs\": [{\"context\": \"the cat sees the red boat.\", \"qas\": [{\"id\": \"q1\", \"question\": "  \
	"\"the cat sees?\", \"answers\": [{\"text\": \"the red boat\", \"answer_start\": 13}]}]}]}]}"
#define TAGGED "{\"tokens\": [\"the\", \"cat\", \"sees\"], \"ner_tags\": [\"O\", \"B-WHO\", \"O\"]}\n"
#define SWAG                                                                                                                     \
	",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"                         \
	"0,v,1,the cat sees,the cat sees,it,gold,a river.,a dog.,the moon.,bread.,0\n"                                           \
	"1,v,2,a dog likes,a dog likes,it,gold,a river.,a dog.,the moon.,bread.,3\n"

static int setup(void **state)
{
	static const char model[] = "{\"model_type\": \"bert\", \"hidden_size\": 16, \"num_hidden_layers\": 4, "
				    "\"num_attention_heads\": 1, \"intermediate_size\": 16, \"hidden_act\": \"gelu\", "
				    "\"max_position_embeddings\": 512, \"type_vocab_size\": 2}";
	const char *given = getenv("BERTC");
	if (small_run_make(state, 5) != 0 || !realpath(given ? given : "build/bertc", bertc))
		return -1;
	assert_ok(file_read("docs/migrating.md", 1 << 20, &page));
	put_file("model.json", model);
	put_file("input.txt", "the cat sees a river ||| nobody likes it\nthe moon\n");
	put_file("train.csv", PAIRS);
	put_file("dev.csv", PAIRS);
	put_file("ner_train.json", TAGGED TAGGED);
	put_file("ner_dev.json", TAGGED);
	assert_int_equal(shell("mkdir -p glue/MRPC squad swag data/phase1 checkpoints google-bert recipes"), 0);
	put_file("glue/MRPC/train.tsv", MRPC_HEADER MRPC_ROWS);
	put_file("glue/MRPC/dev.tsv", MRPC_HEADER MRPC_ROWS);
	put_file("glue/MRPC/test.tsv", "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n7\t1\t2\ta cat\tthe cat\n");
	put_file("squad/train-v1.1.json", SQUAD_FILE);
	put_file("squad/dev-v1.1.json", SQUAD_FILE);
	put_file("swag/train.csv", SWAG);
	put_file("swag/val.csv", SWAG);
	/* A model in Google's format and one in transformers' format, Megatron-LM's data, and a folder of instances. */
	struct buffer made = {0};
	char here[PATH_MAX];
	if (!getcwd(here, sizeof here))
		return -1;
	buffer_format(
		&made,
		"cp corpus.txt sample_text.txt && cp corpus.txt validation.txt && cp %s/recipes/*.conf recipes/ && "
		"%s pretrain -q --corpus corpus.txt --model model.json --out run --vocab_size 90 --num_train_steps 1 "
		"--train_batch_size 4 --max_seq_length 32 --precision fp32 --threads 1 && "
		"%s export -q --model run --to tensorflow --out bert_base && cp -r run/final google-bert/bert-base-cased && "
		"cp run/final/model.safetensors checkpoints/bert_large.pt && "
		"%s prepare -q --corpus corpus.txt --vocab_file bert_base/vocab.txt --out data/my-bert_text_sentence && "
		"%s instances -q --corpus corpus.txt --vocab_file bert_base/vocab.txt --max_seq_length 32 --out "
		"data/phase1/part_0.tfrecord",
		here, bertc, bertc, bertc, bertc);
	int status = shell(buffer_string(&made));
	buffer_release(&made);
	return status;
}

static int teardown(void **state)
{
	buffer_release(&page);
	return program_teardown(state);
}

/* ---- The page ---- */

/* The bertc command that the page's table puts in place of a script. */
static void find_command(const char *script, char out[32])
{
	char name[128];
	snprintf(name, sizeof name, "`%s`", script);
	for (const char *line = page.data; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t length = strcspn(line, "\n");
		const char *found = strstr(line, name), *command = strstr(line, "`bertc ");
		if (*line == '|' && found && found < line + length && command && command < line + length) {
			sscanf(command, "`bertc %31[a-z]", out);
			return;
		}
	}
	fail_msg("the table has no command for %s", script);
}

/* The next block of indented lines at or after *at, joined into one command without its backslashes; and the paragraph
 * that follows it. False if there is none. */
static bool next_command(const char **at, struct buffer *command, char *after, size_t size)
{
	const char *line = *at;
	while (line && strncmp(line, "    ", 4) != 0)
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	if (!line)
		return false;
	buffer_clear(command);
	while (strncmp(line, "    ", 4) == 0) {
		size_t length = strcspn(line, "\n");
		bool goes_on = line[length - 1] == '\\';
		buffer_append(command, line + 4, length - 4 - goes_on);
		buffer_char(command, ' ');
		line += length + 1;
	}
	*at = line;
	while (*line == '\n')
		line++;
	const char *end = strstr(line, "\n\n");
	snprintf(after, size, "%.*s", end ? (int)(end - line) : (int)strlen(line), line);
	return true;
}

/* Removes GPUs and launchers, which this machine may lack. */
static void leave_out_machines(char *command)
{
	static const char *const names[] = {"--n_gpus=", "--n_gpus "};
	for (size_t i = 0; i < 2; i++) {
		char *at = strstr(command, names[i]);
		size_t length = at ? strlen(names[i]) + strcspn(at + strlen(names[i]), " ") : 0;
		if (at)
			memmove(at, at + length, strlen(at + length) + 1);
	}
}

/* "bertc COMMAND arguments" for a line that begins with another program. */
static void translate(const char *line, char *out, size_t size)
{
	char script[128] = "", command[32] = "";
	const char *end = strstr(line, ".py "), *start = end;
	if (strncmp(line, "bertc ", 6) == 0) {
		snprintf(out, size, "%s", line);
		return;
	}
	if (!end)
		fail_msg("no script in: %s", line);
	while (start > line && start[-1] != ' ' && start[-1] != '/')
		start--;
	snprintf(script, sizeof script, "%.*s", (int)(end + 3 - start), start);
	find_command(script, command);
	snprintf(out, size, "bertc %s %s", command, end + 4);
}

/* Each option that the paragraph names before its first full stop must be among the problems. */
static void check_refusals(const char *command, const char *paragraph)
{
	char text[2048], *save;
	int checked = 0;
	paragraph += strlen("Refused");
	snprintf(text, sizeof text, " %s", paragraph + (*paragraph == ':'));
	size_t stop = strcspn(text, ".:");
	text[stop] = '\0';
	strtok_r(text, "`", &save);
	for (char *name; (name = strtok_r(NULL, "`", &save)); strtok_r(NULL, "`", &save)) {
		const char *found = strstr(program_errors.data, name);
		if (!found || strchr("_-", found[strlen(name)]))
			fail_msg("%s\ndoes not refuse %s:\n%s", command, name, buffer_string(&program_errors));
		checked++;
	}
	if (checked == 0)
		fail_msg("%s\nis refused, but the page does not say why", command);
}

static void every_command_of_the_page(void **state)
{
	const char *at = page.data;
	struct buffer line = {0}, whole = {0};
	char after[2048], command[4096];
	int foreign = 0, own = 0;
	while (next_command(&at, &line, after, sizeof after)) {
		translate(buffer_string(&line), command, sizeof command);
		leave_out_machines(command);
		bool trains = strncmp(command, "bertc pretrain", 14) == 0 || strncmp(command, "bertc finetune", 14) == 0;
		bool refused = strncmp(after, "Refused", 7) == 0;
		buffer_clear(&whole);
		buffer_format(
			&whole,
			"cd %s && export BERT_BASE_DIR=bert_base GLUE_DIR=glue SQUAD_DIR=squad && %s %s%s </dev/null >%s/output "
			"2>%s/errors",
			test_folder, bertc, command + 6, trains ? " --plan --threads 1" : " --threads 1", test_folder,
			test_folder);
		int status = WEXITSTATUS(system(buffer_string(&whole)));
		buffer_clear(&program_errors);
		assert_ok(file_read(test_path("errors"), 1 << 24, &program_errors));
		if (status != (refused ? ERR_USAGE : OK))
			fail_msg("exit status %d of: %s\n%s", status, command, buffer_string(&program_errors));
		if (trains && !refused)
			assert_said("memory plan");
		if (refused)
			check_refusals(command, after);
		*(strncmp(line.data, "bertc ", 6) == 0 ? &own : &foreign) += 1;
	}
	buffer_release(&whole);
	buffer_release(&line);
	/* A page that has lost its commands must not pass. */
	assert_true(foreign >= 15 && own >= 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_command_of_the_page)};
	return cmocka_run_group_tests_name("commands of docs/migrating.md", tests, setup, teardown);
}
