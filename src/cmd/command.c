/* From the command line to a command, and back to an exit code. */
#include "cmd/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "backend/open.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/pool.h"
#include "base/stop.h"
#include "base/text.h"
#include "cmd/foreign_rows.h"
#include "cmd/hub_models.h"
#include "comm/comm.h"
#include "comm/place.h"
#include "formats/libraries.h"
#include "serve/http.h"
#include "text/libraries.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"

/* In the order in which users encounter them. */
const struct command *const commands[] = {
	&command_download, &command_extract,
	&command_vocab,    &command_tokenize,
	&command_prepare,  &command_instances,
	&command_pretrain, &command_finetune,
	&command_predict,  &command_embed,
	&command_score,    &command_evaluate,
	&command_export,   &command_fill,
	&command_serve,    &command_inspect,
	&command_verify,   &command_compare,
	&command_bench,    &command_plan,
	&command_mine,     NULL,
};

/* Words that bertc itself answers; completion and `bertc help` know them, too. */
static const struct {
	const char *name, *summary;
} built_in[] = {
	{"help", "show this list, or the help of a command"},
	{"man", "print the man page of a command, or of bertc itself"},
	{"completion", "print the completion script for bash or zsh"},
	{"version", "print the version and what this machine offers"},
};
#define BUILT_IN_COUNT (sizeof built_in / sizeof *built_in)

const struct command *command_find(const char *name)
{
	for (int i = 0; commands[i]; i++) {
		if (!strcmp(commands[i]->text->name, name))
			return commands[i];
	}
	return NULL;
}

/* The summary of a word that bertc itself answers; NULL: it is none. */
static const char *built_in_summary(const char *name)
{
	for (size_t i = 0; i < BUILT_IN_COUNT; i++)
		if (!strcmp(name, built_in[i].name))
			return built_in[i].summary;
	return NULL;
}

static enum status unknown_command(const char *name)
{
	const char *names[64];
	int64_t count = 0;
	for (int i = 0; commands[i] && count < 32; i++)
		names[count++] = commands[i]->text->name;
	for (size_t i = 0; i < BUILT_IN_COUNT; i++)
		names[count++] = built_in[i].name;
	enum status status = error_set(ERR_USAGE, "unknown command '%s'", name);
	const char *nearest = nearest_name(name, names, count);
	if (nearest)
		error_hint("did you mean %s?", nearest);
	else
		error_hint("`bertc help` lists all commands");
	return status;
}

static int output_columns(void)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 80;
}

enum status command_print(struct buffer *text)
{
	enum status status = buffer_status(text);
	if (status == OK)
		fwrite(buffer_string(text), 1, text->size, stdout);
	buffer_release(text);
	return status;
}

void command_list_help(bool all, struct buffer *out)
{
	buffer_text(out, "bertc: from raw text to a BERT model you can ship\n\nUsage: bertc COMMAND [options]\n\n"
			 "The main job, from text to a trained model:\n"
			 "    bertc pretrain --corpus 'text/*' --time 3h --out runs/mine\n\nCommands\n");
	for (int i = 0; commands[i]; i++)
		if (all || !commands[i]->rare)
			buffer_format(out, "  %-12s %s\n", commands[i]->text->name, commands[i]->text->summary);
	buffer_text(out, "\nAbout bertc\n");
	for (size_t i = 0; i < BUILT_IN_COUNT; i++)
		buffer_format(out, "  %-12s %s\n", built_in[i].name, built_in[i].summary);
	buffer_text(out, "\nRun `bertc help COMMAND` or `bertc COMMAND --help` for details, `bertc help\n"
			 "COMMAND short` for what most people need, and `bertc help all` for the commands\n"
			 "that serve other programs, too.\n");
}

void command_list_man(struct buffer *out)
{
	buffer_text(out, ".Dd $Mdocdate$\n.Dt BERTC 1\n.Os\n.Sh NAME\n.Nm bertc\n"
			 ".Nd from raw text to a BERT model you can ship\n"
			 ".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar options\n"
			 ".Sh DESCRIPTION\n"
			 ".Nm\ntakes a person from raw text to a BERT model: vocabulary, tokens, pre\\-training,\n"
			 "evaluation, and a model folder that other programs load.\n"
			 "Each command has a page of its own:\n.Bl -tag -width Ds\n");
	for (int i = 0; commands[i]; i++)
		buffer_format(out, ".It Cm %s\n%s\n", commands[i]->text->name, commands[i]->text->summary);
	for (size_t i = 0; i < BUILT_IN_COUNT; i++)
		buffer_format(out, ".It Cm %s\n%s\n", built_in[i].name, built_in[i].summary);
	buffer_text(out, ".El\n.Sh EXAMPLES\nFrom text to a trained model, in one command:\n"
			 ".Dl \"bertc pretrain \\-\\-corpus \\(aqtext/*\\(aq \\-\\-out runs/mine\"\n");
}

static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

/* Leaves only the options that most people need. */
static void keep_common(struct option *table, const char *common)
{
	struct option *kept = table;
	for (const struct option *row = table; row->name || row->help; row++)
		if (row->name && is_listed(common, row->name))
			*kept++ = *row;
	*kept = (struct option){0};
}

static enum status run_help(int argc, char **argv)
{
	struct buffer text = {0};
	if (argc == 0 || !strcmp(argv[0], "all")) {
		command_list_help(argc > 0, &text);
		return command_print(&text);
	}
	const char *summary = built_in_summary(argv[0]);
	if (summary) {
		buffer_format(&text, "bertc %s: %s\n", argv[0], summary);
		return command_print(&text);
	}
	const struct command *command = command_find(argv[0]);
	if (!command)
		return unknown_command(argv[0]);
	struct option *table;
	TRY(options_flatten(command->options, &table));
	if (argc > 1 && !strcmp(argv[1], "short") && command->text->common)
		keep_common(table, command->text->common);
	options_help(table, command->text, argc > 1 && !strcmp(argv[1], "all"), output_columns(), &text);
	free(table);
	return command_print(&text);
}

static enum status run_man(int argc, char **argv)
{
	struct buffer text = {0};
	const struct command *command = argc ? command_find(argv[0]) : NULL;
	if (argc && !command && !built_in_summary(argv[0])) /* bertc(1) lists those */
		return unknown_command(argv[0]);
	if (command) {
		struct option *table;
		TRY(options_flatten(command->options, &table));
		options_man(table, command->text, &text);
		free(table);
	} else {
		command_list_man(&text);
	}
	return command_print(&text);
}

static enum status run_completion(int argc, char **argv)
{
	struct buffer text = {0};
	if (argc == 1 && !strcmp(argv[0], "bash")) {
		TRY(completion_bash(&text));
	} else if (argc == 1 && !strcmp(argv[0], "zsh")) {
		TRY(completion_zsh(&text));
	} else if (argc == 1 && !strcmp(argv[0], "commands")) { /* for the script that makes the man pages */
		completion_commands(&text);
	} else {
		return error_hinted(error_set(ERR_USAGE, "completion needs the name of a shell: bash or zsh"),
				    "add this line to ~/.bashrc: source <(bertc completion bash)");
	}
	return command_print(&text);
}

static void version_libraries(struct buffer *out)
{
	struct library_list libraries = {0};
	base_libraries(&libraries);
	formats_libraries(&libraries);
	text_libraries(&libraries);
	backend_libraries(&libraries);
	comm_libraries(&libraries);
	http_libraries(&libraries);
	buffer_format(out, "libraries: %s\n", buffer_string(&libraries.linked));
	buffer_format(out, "libraries loaded when needed:\n%s", buffer_string(&libraries.loaded));
	library_list_release(&libraries);
}

static enum status run_version(void)
{
	struct cpu_description cpu;
	struct buffer text = {0};
	char memory[FORMAT_BYTES];
	buffer_format(&text, "bertc %s\n", VERSION);
#ifdef __clang__
	buffer_text(&text, "compiler: " __VERSION__ "\n");
#else
	buffer_text(&text, "compiler: gcc " __VERSION__ "\n");
#endif
	bool usable = backend_describe_cpu(&cpu) == OK;
	buffer_format(&text, "kernels: %s\n", usable ? cpu.kernels : error_last()->message);
	if (usable && cpu.products[0])
		buffer_format(&text, "matrix products: %s\n", cpu.products);
	buffer_format(&text, "instruction sets with kernels: %s\n", cpu.built);
	buffer_format(&text, "devices: cpu%s\n", backend_has_cuda() ? ", cuda" : "");
	buffer_format(&text, "cores: %d\n", pool_available_cores());
	buffer_format(&text, "memory available: %s\n", format_size(memory, (double)memory_available()));
	version_libraries(&text);
	return command_print(&text);
}

/* What an argument that a command does not take was probably meant to be. transformers' scripts take their options from a single
 * JSON file. */
static void hint_stray(const struct command *command, const struct options *options, const char *argument)
{
	const char *input = options_find(options, "corpus") >= 0  ? "corpus"
			    : options_find(options, "train") >= 0 ? "train"
								  : NULL;
	if (command->foreign && text_ends_with(argument, ".json") && file_exists(argument))
		error_hint("to read the options from this file, give --config %s", argument);
	else if (input && file_exists(argument))
		error_hint("did you mean --%s %s%s?", input, argument,
			   options_find(options, "corpus") >= 0 && options_find(options, "test") >= 0
				   ? " or, for a fine-tuned model, --test"
				   : "");
	else
		error_hint("`bertc help %s` shows the usage", command->text->name);
}

static enum status check_stray(const struct command *command, struct options *options)
{
	for (int64_t i = 0; i < options->positional.count && !command->takes_arguments; i++) {
		enum status status = error_set(ERR_USAGE, "unexpected argument '%s'", options->positional.values[i]);
		hint_stray(command, options, options->positional.values[i]);
		TRY(options_blame(options, status));
	}
	return OK;
}

/* Options that name a file with a vocabulary also take the folder that has one, as transformers' users expect. */
static enum status enter_vocab_folders(struct options *options)
{
	static const char *const names[] = {"vocab_file", "init_vocab", "extend"};
	char path[PATH_BYTES];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int index = options_find(options, names[i]);
		if (index < 0 || !options->text[index] || !file_is_folder(options->text[index]))
			continue;
		enum status status = model_folder_vocab(options->text[index], path);
		if (status == OK)
			status = options_set(options, names[i], path, options->origin[index]);
		TRY(options_blame(options, status));
	}
	return OK;
}

/* A single problem is the error of the command. Several are printed here, one per line, and the error's message is left empty. */
static enum status report_problems(const struct options *options)
{
	enum status status = options_problem_status(options);
	if (options->problem_count < 2)
		return status;
	const char *bold = log_has_color() ? "\033[1m" : "", *plain = log_has_color() ? "\033[0m" : "";
	fprintf(stderr, "%sbertc:%s %lld problems:\n", bold, plain, (long long)options->problem_count);
	for (int64_t i = 0; i < options->problem_count; i++) {
		const struct option_problem *problem = &options->problems[i];
		fprintf(stderr, "  %s%s%s\n", problem->message, problem->hint ? "; " : "", problem->hint ? problem->hint : "");
	}
	return error_set(status, "%s", "");
}

/* A file to be written, by the value of an option. */
struct target {
	const char *option, *path;
	struct file_stamp stamp;
};

/* Is `path` the file to be written, by whatever name? Its contents would be lost. */
static enum status check_input(const char *path, const char *name, const struct target *out)
{
	struct file_stamp read = path ? file_stamp_at(path) : (struct file_stamp){0};
	if (!file_stamp_is_same_file(&read, &out->stamp))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--%s '%s' is the same file as %s'%s', which is read: it would be overwritten",
				      out->option, out->path, name, path),
			    "choose another --%s; nothing was changed", out->option);
}

enum status command_check_input(const char *path, const char *option, const char *target)
{
	const struct target out = {option, target, target ? file_stamp_at(target) : (struct file_stamp){0}};
	return check_input(path, "", &out);
}

/* The same for the files of the model. */
static enum status check_model(const struct options *options, const struct target *out)
{
	struct model_files files = {0};
	int index = options_find(options, "model");
	const char *model = index >= 0 && options->table[index].type == OPTION_TEXT ? options->text[index] : NULL;
	enum status status = OK;
	if (model && model_files_look(&files, model) == OK)
		for (int64_t i = 0; i < files.paths.count && status == OK; i++)
			status = check_input(files.paths.names[i], "--model's ", out);
	model_files_release(&files);
	return status;
}

/* Is one of the files that the command reads, other than those of option `index`, the file `path`? */
static enum status check_one_output(const struct options *options, int index, const char *path)
{
	const struct option *table = options->table;
	const char *fields = options->settings;
	const struct target target = {table[index].name, path, path ? file_stamp_at(path) : (struct file_stamp){0}},
			    *out = &target;
	char name[80];
	if (out->stamp.inode == 0)
		return OK;
	for (int64_t i = 0; i < options->positional.count; i++)
		TRY(check_input(options->positional.values[i], "", out));
	for (int i = 0; i < options->count; i++) {
		const struct option_list *list = (const void *)(fields + table[i].field);
		snprintf(name, sizeof name, "--%.70s ", table[i].name ? table[i].name : "");
		if (!table[i].name || i == index)
			continue;
		if (table[i].type == OPTION_TEXT)
			TRY(check_input(options->text[i], name, out));
		for (int64_t k = 0; table[i].type == OPTION_LIST && k < list->count; k++)
			TRY(check_input(list->values[k], name, out));
	}
	return check_model(options, out);
}

static enum status check_output(const struct options *options, const char *name, bool prints)
{
	int index = options_find(options, name);
	if (index < 0)
		return OK;
	if (options->text[index] && strcmp(options->text[index], "-") == 0 && !prints)
		return error_hinted(error_set(ERR_USAGE, "--%s -: this is not written to standard output", name),
				    "give a name; a file called - is ./-");
	if (options->table[index].type == OPTION_TEXT)
		return check_one_output(options, index, options->text[index]);
	const struct option_list *list = (const void *)((const char *)options->settings + options->table[index].field);
	for (int64_t i = 0; options->table[index].type == OPTION_LIST && i < list->count; i++)
		TRY(check_one_output(options, index, list->values[i]));
	return OK;
}

/* What every command does the same way: parsing, --help, unexpected arguments, --print-config; then runs the command itself. */
static enum status run_parsed(const struct command *command, struct options *options, int argc, char **argv)
{
	struct buffer text = {0};
	enum status status = options_parse(options, argc, argv);
	if (status == OK && options->help)
		return run_help(1 + options->help_all, (char *[]){(char *)(uintptr_t)command->text->name, (char[]){"all"}});
	TRY(check_stray(command, options));
	if (hub_models_are_named(options)) {
		TRY(report_problems(options)); /* before anything is downloaded */
		TRY(hub_models_enter(options));
	}
	if (command->complete)
		TRY(options_blame(options, command->complete(options)));
	TRY(enter_vocab_folders(options));
	if (command->check && !options->print_config)
		TRY(command->check(options));
	TRY(report_problems(options));
	if (options->print_config) {
		options_print_config(options, &text);
		return command_print(&text);
	}
	TRY(check_output(options, "out", command->prints_out));
	TRY(check_output(options, "run_out", false));
	return command->run(options);
}

/* Only one process of a run comments on its command line: the one that launches the ranks, or else the first rank. */
static bool is_silent(void)
{
	struct place place;
	return place_find(&place) == OK && (place.launched || place.ranks.rank > 0);
}

/* Options of earlier versions. */
/* clang-format off */
static const struct option_foreign removed[] = {
	VALUE_LEFT_OUT("attention", "it was removed; attention is always computed by bertc's own kernels"),
	{0},
};
/* clang-format on */

static enum status run_command(const struct command *command, int argc, char **argv)
{
	struct options options;
	struct option *aside = NULL;
	void *settings;
	TRY(memory_new(&settings, 1, command->settings_bytes, "the settings"));
	enum status status = options_init(&options, command->options, settings);
	if (status == OK && command->aside)
		status = options_flatten(command->aside, &aside);
	if (status == OK) {
		options.foreign = command->foreign;
		options.removed = options_find(&options, "device") >= 0 || aside ? removed : NULL;
		options.aside = aside;
		options.settings_bytes = command->settings_bytes;
		options.silent = command->foreign && is_silent();
		status = run_parsed(command, &options, argc, argv);
	}
	options_release(&options);
	free(aside);
	free(settings);
	return status;
}

static enum status dispatch(int argc, char **argv)
{
	if (argc == 0)
		return error_hinted(error_set(ERR_USAGE, "no command given"),
				    "`bertc help` lists all commands; the main one: bertc pretrain --corpus 'text/*' "
				    "--out runs/mine");
	if (!strcmp(argv[0], "help") || !strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))
		return run_help(argc - 1, argv + 1);
	if (!strcmp(argv[0], "version") || !strcmp(argv[0], "--version"))
		return argc > 1 ? error_set(ERR_USAGE, "'%s' takes no '%s'", argv[0], argv[1]) : run_version();
	if (!strcmp(argv[0], "man"))
		return run_man(argc - 1, argv + 1);
	if (!strcmp(argv[0], "completion"))
		return run_completion(argc - 1, argv + 1);
	const struct command *command = command_find(argv[0]);
	if (!command)
		return unknown_command(argv[0]);
	return run_command(command, argc - 1, argv + 1);
}

enum status command_output_failed(void)
{
	if (errno == EPIPE) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	return errno ? error_set_errno(ERR_RESOURCE, "cannot write to standard output")
		     : error_set(ERR_RESOURCE, "cannot write to standard output"); /* an earlier write had failed */
}

int command_main(int argc, char **argv)
{
	log_results_to(stdout);
	enum status status = dispatch(argc, argv);
	if (status == OK && error_has_stopped()) /* whoever was stopped has lost the status on its way here */
		status = stop_error();
	errno = 0;
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == OK)
		status = command_output_failed();
	if (status == OK)
		return OK;
	struct error error = *error_last();
	if (error.status == status && !error.message[0])
		return (int)status; /* already reported: above, or by another process */
	if (error.status != status)
		error = (struct error){.message = "failed without a message"};
	const char *bold = log_has_color() ? "\033[1m" : "", *plain = log_has_color() ? "\033[0m" : "";
	log_fold(error.message, (int)strlen("bertc: "));
	log_fold(error.hint, (int)strlen("hint: "));
	fprintf(stderr, "%sbertc:%s %s\n", bold, plain, error.message);
	if (error.hint[0])
		fprintf(stderr, "hint: %s\n", error.hint);
	return (int)status;
}
