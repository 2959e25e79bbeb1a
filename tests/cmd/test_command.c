/* Requirements for every command, by a loop over the table; and the program's own behavior, by running it. */
#include "test.h"
#include <ctype.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/command.h"

/* Runs a shell command in which $B is the program; keeps its outputs, and its exit code. */
static struct buffer out, err;

static int run(const char *command)
{
	char script[8192];
	const char *program = getenv("BERTC");
	snprintf(script, sizeof script, "B='%s'; T='%s'; (%s) >'%s' 2>'%s'", program ? program : "build/bertc", test_folder,
		 command, test_path("out"), test_path("err"));
	int result = system(script);
	assert_ok(file_read(test_path("out"), 16 << 20, &out));
	assert_ok(file_read(test_path("err"), 16 << 20, &err));
	buffer_append(&out, "", 0);
	buffer_append(&err, "", 0);
	assert_true(WIFEXITED(result));
	return WEXITSTATUS(result);
}

static int run_for(const char *format, const struct command *command)
{
	char line[1024];
	snprintf(line, sizeof line, "N=%s; %s", command->text->name, format);
	return run(line);
}

static bool is_name(const char *name)
{
	for (const char *p = name; *p; p++) {
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '_')
			return false;
	}
	return *name != '\0';
}

/* The rows of a command's table, until the next call. */
static const struct option *rows_of(const struct command *command)
{
	static struct option *rows;
	free(rows);
	assert_ok(options_flatten(command->options, &rows));
	return rows;
}

static void tables_are_in_order(void **state)
{
	for (int c = 0; commands[c]; c++) {
		const struct command *command = commands[c];
		const struct command_text *text = command->text;
		assert_true(is_name(text->name));
		assert_ptr_equal(command_find(text->name), command);
		assert_true(text->summary && text->synopsis && text->description && text->examples);
		assert_true(islower((unsigned char)text->summary[0]) && text->summary[strlen(text->summary) - 1] != '.');
		/* The longest tables start with what most people need. */
		int count = 0, rows = 0;
		const struct option *table = rows_of(command);
		for (const char *p = text->common; p && *p; p += strcspn(p, " "), p += strspn(p, " "))
			count++;
		for (const struct option *row = table; row->name || row->help; row++)
			rows += row->name != NULL;
		if (count != (rows > 70 ? 20 : 0))
			fail_msg("%s: %d of %d options are said to be common", text->name, count, rows);
		for (const struct option *row = table; row->name || row->help; row++) {
			if (!row->name)
				continue;
			const char *last = row->help + strlen(row->help) - 1;
			if (!is_name(row->name) || *last == '.' || *last == '\n')
				fail_msg("%s --%s: '%s'", text->name, row->name, row->help);
			if ((row->type == OPTION_FLAG) != (row->value_name == NULL))
				fail_msg("%s --%s: value_name", text->name, row->name);
			if (row->type == OPTION_CHOICE && !row->range)
				fail_msg("%s --%s: no choices", text->name, row->name);
			if (row->field >= command->settings_bytes)
				fail_msg("%s --%s: outside the settings", text->name, row->name);
			for (const struct option *other = table; other < row; other++) {
				if (other->name && (!strcmp(other->name, row->name) ||
						    (row->letter && row->letter == other->letter) || other->field == row->field))
					fail_msg("%s --%s and --%s share a name, letter or field", text->name, row->name,
						 other->name);
			}
		}
		/* Every default is accepted by its own row. */
		void *settings = calloc(1, command->settings_bytes);
		struct options options;
		assert_ok(options_init(&options, command->options, settings));
		options_release(&options);
		free(settings);
	}
}

static void every_command_helps(void **state)
{
	for (int c = 0; commands[c]; c++) {
		assert_int_equal(run_for("$B help $N all", commands[c]), 0);
		assert_int_equal(err.size, 0);
		for (const struct option *row = rows_of(commands[c]); row->name || row->help; row++)
			assert_non_null(strstr(out.data, row->name ? row->name : row->help));
		assert_int_equal(run_for("$B help $N >$T/a; $B $N --help >$T/b; $B $N -h "
					 "--nothing-wrong-before-help >&2; cmp $T/a $T/b && $B help $N all >$T/a; "
					 "$B $N --help all >$T/b; cmp $T/a $T/b",
					 commands[c]),
				 0);
		assert_int_equal(run_for("$B help all", commands[c]), 0);
		assert_non_null(strstr(out.data, commands[c]->text->summary));
	}
}

static void every_man_page_passes_lint(void **state)
{
	if (run("mandoc -T lint </dev/null >/dev/null 2>&1; test $? -ne 127") != 0)
		fail_msg("mandoc is missing: run 'make deps'");
	assert_int_equal(run("$B man >$T/page && mandoc -T lint $T/page"), 0);
	for (int c = 0; commands[c]; c++) {
		if (run_for("$B man $N >$T/page && mandoc -T lint $T/page", commands[c]) != 0)
			fail_msg("%s: %s%s", commands[c]->text->name, out.data, err.data);
		assert_int_equal(run_for("mandoc -T utf8 $T/page", commands[c]), 0);
	}
}

static void every_command_refuses_what_it_does_not_know(void **state)
{
	for (int c = 0; commands[c]; c++) {
		assert_int_equal(run_for("$B $N --xyzzy", commands[c]), ERR_USAGE);
		assert_int_equal(out.size, 0);
		if (!strstr(err.data, "unknown option '--xyzzy'") || !strstr(err.data, "--help lists all options"))
			fail_msg("%s", err.data);
		if (!commands[c]->takes_arguments) {
			assert_int_equal(run_for("$B $N xyzzy", commands[c]), ERR_USAGE);
			assert_non_null(strstr(err.data, "unexpected argument 'xyzzy'"));
		}
		assert_int_equal(run_for("$B $N --config $T/absent", commands[c]), ERR_USAGE);
	}
}

/* The output of --print-config is a config file with the same meaning. */
static void every_config_is_read_back(void **state)
{
	for (int c = 0; commands[c]; c++) {
		assert_int_equal(run_for("$B $N --print-config | sed 's/  # .*//' >$T/a && $B $N --config "
					 "$T/a --print-config | "
					 "sed 's/  # .*//' >$T/b && cmp $T/a $T/b && test -s $T/a",
					 commands[c]),
				 0);
	}
}

static void completions_work_in_bash(void **state)
{
	assert_int_equal(run("$B completion bash >$T/completion && bash -n $T/completion"), 0);
	/* What bash does when TAB is pressed: the words, then the suggestions. */
	static const char *const complete = "bash -c '. $0/completion; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
					    "_bertc; echo \"${COMPREPLY[*]}\"' $T bertc";
	char line[1024];
	snprintf(line, sizeof line, "%s ''", complete);
	assert_int_equal(run(line), 0);
	for (int c = 0; commands[c]; c++)
		assert_non_null(strstr(out.data, commands[c]->text->name));
	assert_non_null(strstr(out.data, "completion"));
	for (int c = 0; commands[c]; c++) {
		const char *name = commands[c]->text->name;
		snprintf(line, sizeof line, "%s %s --", complete, name);
		assert_int_equal(run(line), 0);
		struct buffer offered = {0};
		buffer_text(&offered, out.data);
		for (const struct option *row = rows_of(commands[c]); row->name || row->help; row++) {
			char word[80], choices[512];
			if (!row->name)
				continue;
			snprintf(word, sizeof word, "--%s", row->name);
			assert_non_null(strstr(offered.data, word));
			if (row->type != OPTION_CHOICE)
				continue;
			snprintf(line, sizeof line, "%s %s --%s ''", complete, name, row->name);
			assert_int_equal(run(line), 0);
			snprintf(choices, sizeof choices, "%s\n", row->range + (row->range[0] == '|'));
			for (char *p = choices; *p; p++)
				*p = *p == '|' ? ' ' : *p;
			assert_string_equal(out.data, choices);
		}
		buffer_release(&offered);
	}
	/* Everything that has a name: sizes, our own and published tasks, downloads and groups of them. */
	static const char *const named[][2] = {{"pretrain --model ta", ""},        {"pretrain --model ti", "tiny\n"},
					       {"plan --model b", "base\n"},       {"finetune --task tagg", "tagging\n"},
					       {"finetune --task sst", "sst-2\n"}, {"download squa", "squad\n"},
					       {"download glue/MR", "glue/MRPC\n"}};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		snprintf(line, sizeof line, "%s %s", complete, named[i][0]);
		assert_int_equal(run(line), 0);
		assert_string_equal(out.data, named[i][1][0] ? named[i][1] : "\n");
	}
	snprintf(line, sizeof line, "%s download glu", complete);
	assert_int_equal(run(line), 0);
	assert_memory_equal(out.data, "glue glue/CoLA ", 15);
	snprintf(line, sizeof line, "%s completion b", complete);
	assert_int_equal(run(line), 0);
	assert_string_equal(out.data, "bash\n");
	assert_int_equal(run("$B completion zsh"), 0);
	assert_memory_equal(out.data, "#compdef bertc\n", 15);
	assert_int_equal(run("$B completion fish"), ERR_USAGE);
}

static void the_program_itself(void **state)
{
	assert_int_equal(run("$B"), ERR_USAGE);
	assert_int_equal(out.size, 0);
	assert_non_null(strstr(err.data, "bertc: no command given\nhint: "));
	assert_int_equal(run("$B version --json"), ERR_USAGE);
	assert_int_equal(run("$B --version"), 0);
	assert_memory_equal(out.data, "bertc ", 6);
	static const char *const named[] = {"\nkernels: ",      "\ninstruction sets with kernels: ",
					    "\ndevices: cpu",   "\nlibraries: xxHash ",
					    ", zlib ",          ", utf8proc ",
					    ", libmicrohttpd ", "\n  HDF5",
					    "\n  libcurl",      "\n  MPI"};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (!strstr(out.data, named[i]))
			fail_msg("no '%s' in:\n%s", named[i], out.data);
	/* The newest entry of the change log gives the version, "## 0.1.0 (2026-11-22)". */
	assert_int_equal(run("$B version | sed -n 's/^bertc //p' >$T/version; grep -m 1 '^## ' CHANGELOG.md | "
			     "grep -qE \"^## $(cat $T/version) \\([0-9]{4}-[0-9]{2}-[0-9]{2}\\)$\""),
			 0);
	/* It needs no files beside it. */
	assert_int_equal(run("cp $B $T/alone && $T/alone pretrain --recipe fast --print_config"), 0);
	assert_non_null(strstr(out.data, "next_sentence = none  # recipe\n"));
	assert_int_equal(run("$B --help"), 0);
	assert_int_equal(run("$B hlep"), ERR_USAGE);
	assert_string_equal(err.data, "bertc: unknown command 'hlep'\nhint: did you mean help?\n");
	assert_int_equal(run("$B help nothing"), ERR_USAGE);
	assert_int_equal(run("$B help version"), 0);
	assert_int_equal(run("$B help finetune short"), 0);
	assert_non_null(strstr(out.data, "--train "));
	assert_null(strstr(out.data, "--weight_decay"));
	assert_int_equal(run("$B pretrain --corpus https://example.org/text --model tiny --out $T/run"), ERR_USAGE);
	assert_non_null(strstr(err.data, "bertc download ADDRESS, and give the path"));
	assert_int_equal(run("$B man nothing"), ERR_USAGE);
	assert_int_equal(run("LC_ALL=tr_TR.UTF-8 $B help"), 0);
}

/* Libraries that only some people need are loaded when they are needed: the program starts without them. */
static void libraries_that_a_machine_may_lack_are_not_linked(void **state)
{
	assert_int_equal(run("LD_TRACE_LOADED_OBJECTS=1 $B"), 0);
	assert_non_null(strstr(out.data, "libc.so"));
	static const char *const absent[] = {"libmpi", "libhdf5", "libcurl", "libcublas", "libnccl", "libcudart", "libcuda."};
	for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
		if (strstr(out.data, absent[i]))
			fail_msg("linked with %s:\n%s", absent[i], out.data);
}

/* Standard streams that are closed, full, or gone. */
static void streams_may_be_missing(void **state)
{
	assert_int_equal(run("$B help >/dev/full"), ERR_RESOURCE);
	assert_string_equal(err.data, "bertc: cannot write to standard output: No space left on device\n");
	assert_int_equal(run("$B help >&-"), ERR_RESOURCE);
	assert_int_equal(run("$B help <&- 2>&-"), 0);
	assert_int_equal(run("$B hlep 2>&-"), ERR_USAGE);
	assert_int_equal(run("$B hlep >&- 2>&- <&-"), ERR_USAGE);
	assert_int_equal(run("$B help | :"), 0);
	assert_int_equal(err.size, 0);
}

static int drop(void **state)
{
	buffer_release(&out);
	buffer_release(&err);
	return test_folder_drop(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_in_order),
		cmocka_unit_test(every_command_helps),
		cmocka_unit_test(every_man_page_passes_lint),
		cmocka_unit_test(every_command_refuses_what_it_does_not_know),
		cmocka_unit_test(libraries_that_a_machine_may_lack_are_not_linked),
		cmocka_unit_test(every_config_is_read_back),
		cmocka_unit_test(completions_work_in_bash),
		cmocka_unit_test(the_program_itself),
		cmocka_unit_test(streams_may_be_missing),
	};
	return cmocka_run_group_tests(tests, test_folder_make, drop);
}
