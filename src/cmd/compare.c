/* bertc compare: where two models, or two runs, differ. */
#include "cmd/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "cmd/command.h"

#define FIELD(name) offsetof(struct compare_settings, name)

static const struct option compare_options[] = {
	{.name = "by",
	 .type = OPTION_CHOICE,
	 .field = FIELD(by),
	 .fallback = "steps",
	 .range = "steps|tokens|time",
	 .role = ROLE_RUN,
	 .value_name = "WHAT",
	 .help = "runs: compare where they have had equal steps, tokens or time of training"},
	{.name = "points",
	 .type = OPTION_INTEGER,
	 .field = FIELD(points),
	 .fallback = "10",
	 .range = "1..1000",
	 .role = ROLE_RUN,
	 .value_name = "N",
	 .help = "runs: lines of the table"},
	{.name = "out",
	 .letter = 'o',
	 .type = OPTION_TEXT,
	 .field = FIELD(out),
	 .role = ROLE_PLACE,
	 .value_name = "FILE",
	 .help = "runs: also write a page with the curves of both (HTML, opens without a network)"},
	{.name = "weights",
	 .type = OPTION_FLAG,
	 .field = FIELD(weights),
	 .fallback = "false",
	 .role = ROLE_RUN,
	 .help = "of two run folders compare the models, not the curves"},
	{.name = "json",
	 .type = OPTION_FLAG,
	 .field = FIELD(json),
	 .fallback = "false",
	 .role = ROLE_RUN,
	 .help = "print one JSON object"},
	{.name = NULL},
};

static const struct command_text compare_text = {
	.name = "compare",
	.synopsis = "A B [options]",
	.summary = "show where two models or two runs differ",
	.description =
		"Two model folders, checkpoints or files of weights (also of PyTorch and TensorFlow): the first tensor and "
		"element that differ, in the order of "
		"the data flow, the largest and the root-mean-square difference of every tensor, and the settings that are not "
		"the "
		"same.\n\n"
		"Two run folders or metrics.jsonl files: losses and accuracies of both where they have had the same number of "
		"steps, tokens or seconds, and the settings that are not the same. Training figures are means around the "
		"place, held-out ones lie on a straight line between evaluations.\n\n"
		"Exit status: 0 if the two are equal, 1 if they differ (for runs: any logged figure but those of speed and "
		"time), 2 and above for errors.",
	.examples = "bertc compare runs/a/checkpoint-500 runs/b/checkpoint-500\tthe first difference of two models\n"
		    "bertc compare runs/a runs/b --by tokens --out both.html\ttheir curves, in the terminal and as a page\n"
		    "bertc compare runs/a runs/b --weights\ttheir finished models",
};

/* A value as text; objects and lists as "...". */
static void value_text(char *out, size_t size, const struct json *value)
{
	if (!value)
		snprintf(out, size, "-");
	else if (value->kind == JSON_STRING || value->kind == JSON_NUMBER)
		snprintf(out, size, "%s", value->text);
	else
		snprintf(out, size, "%s",
			 value->kind == JSON_BOOL   ? (value->boolean ? "true" : "false")
			 : value->kind == JSON_NULL ? "null"
						    : "...");
}

static bool same_value(const struct json *a, const struct json *b)
{
	char left[4096], right[4096], *left_end, *right_end;
	if (!a || !b)
		return a == b;
	if ((a->kind == JSON_ARRAY || a->kind == JSON_OBJECT) && a->kind == b->kind) {
		const struct json *x = a->first_child, *y = b->first_child;
		for (; x && y; x = x->next, y = y->next)
			if ((x->key && (!y->key || strcmp(x->key, y->key) != 0)) || !same_value(x, y))
				return false;
		return x == y;
	}
	value_text(left, sizeof left, a);
	value_text(right, sizeof right, b);
	if (strcmp(left, right) == 0)
		return true;
	/* 1e-3 and 0.001 are the same. */
	double x = strtod(left, &left_end), y = strtod(right, &right_end);
	return *left && *right && !*left_end && !*right_end && x == y;
}

static enum status add_difference(struct compare_differences *out, const char *name, const struct json *a, const struct json *b)
{
	struct compare_setting setting;
	snprintf(setting.name, sizeof setting.name, "%s", name);
	value_text(setting.a, sizeof setting.a, a);
	value_text(setting.b, sizeof setting.b, b);
	TRY(memory_grow(&out->items, &out->capacity, out->count + 1, sizeof setting, "differences"));
	out->items[out->count++] = setting;
	return OK;
}

enum status compare_objects(const struct json *a, const struct json *b, struct compare_differences *out)
{
	for (const struct json *member = a ? a->first_child : NULL; member; member = member->next) {
		const struct json *other = json_member(b, member->key);
		if (member->key && !same_value(member, other))
			TRY(add_difference(out, member->key, member, other));
	}
	for (const struct json *member = b ? b->first_child : NULL; member; member = member->next)
		if (member->key && !json_member(a, member->key))
			TRY(add_difference(out, member->key, NULL, member));
	return OK;
}

#define JSON_LIMIT ((size_t)64 << 20)

enum status compare_json_files(const char *a, const char *b, const char *member, struct compare_differences *out)
{
	struct json_document left = {0}, right = {0};
	enum status status = OK;
	if (file_exists(a))
		TRY_GOTO(json_read(&left, a, JSON_LIMIT), done);
	if (file_exists(b))
		TRY_GOTO(json_read(&right, b, JSON_LIMIT), done);
	const struct json *x = left.root, *y = right.root;
	status = compare_objects(member && x ? json_member(x, member) : x, member && y ? json_member(y, member) : y, out);
done:
	if (left.root)
		json_release(&left);
	if (right.root)
		json_release(&right);
	return status;
}

void compare_print_settings(const struct compare_differences *differences)
{
	if (differences->count == 0)
		return;
	printf("\nsettings that differ\n");
	for (int64_t i = 0; i < differences->count; i++)
		printf("  %-28s  %-24s  %s\n", differences->items[i].name, differences->items[i].a, differences->items[i].b);
}

void compare_put_settings(const struct compare_differences *differences, struct json_writer *writer)
{
	json_open(writer, "settings", '[');
	for (int64_t i = 0; i < differences->count; i++) {
		json_open(writer, NULL, '{');
		json_put_string(writer, "name", differences->items[i].name);
		json_put_string(writer, "a", differences->items[i].a);
		json_put_string(writer, "b", differences->items[i].b);
		json_close(writer);
	}
	json_close(writer);
}

/* A run: a folder with metrics.jsonl, or such a file. */
static enum status is_run(const char *path, bool *out)
{
	char metrics[PATH_BYTES];
	if (!file_exists(path))
		return error_set(ERR_USAGE, "'%s': no such file or folder", path);
	TRY(path_join(metrics, path, "metrics.jsonl"));
	*out = text_ends_with(path, ".jsonl") || (file_is_folder(path) && file_exists(metrics));
	return OK;
}

static enum status run_compare(struct options *options)
{
	const struct compare_settings *settings = options->settings;
	bool run_a, run_b, same;
	if (options->positional.count != 2) {
		enum status status = error_set(ERR_USAGE, "compare takes two paths");
		error_hint("bertc compare runs/a runs/b");
		return status;
	}
	const char *a = options->positional.values[0], *b = options->positional.values[1];
	TRY(is_run(a, &run_a));
	TRY(is_run(b, &run_b));
	bool runs = run_a && run_b && !settings->weights;
	if (settings->out && !runs) {
		enum status status = error_set(ERR_USAGE, "--out is for two runs");
		error_hint("give two run folders or metrics.jsonl files");
		return status;
	}
	TRY(runs ? compare_runs(settings, a, b, &same) : compare_models(settings, a, b, &same));
	return same ? OK : error_set(DIFFERENT, "'%s' and '%s' differ", a, b);
}

const struct command command_compare = {
	.text = &compare_text,
	.options = compare_options,
	.settings_bytes = sizeof(struct compare_settings),
	.run = run_compare,
	.takes_arguments = true,
};
