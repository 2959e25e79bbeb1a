/* bertc compare: shows where two models or two runs differ. */
#include "cmd/compare.h"

#include "base/file.h"
#include "base/text.h"
#include "cmd/command.h"
#include "weights/checkpoint_folder.h"

#define ROW(member, role, value) OPTION_ROW(struct compare_settings, member, role, value)

/* clang-format off */
static const struct option compare_options[] = {
	{ROW(by, ROLE_RUN, "WHAT"), .range = "steps|tokens|time", .fallback = "steps",
	 .help = "runs: compare them after the same number of steps, tokens, or seconds"},
	{ROW(points, ROLE_RUN, "N"), .range = "1..1000", .fallback = "10", .help = "runs: number of lines of the table"},
	{ROW(out, ROLE_PLACE, "FILE"), .letter = 'o',
	 .help = "runs: also write a page with the curves of both (HTML that needs no network)"},
	{ROW(weights, ROLE_RUN, NULL), .fallback = "false", .help = "for two run folders: compare the models, not the "
		 "curves"},
	{ROW(json, ROLE_RUN, NULL), .fallback = "false", .help = "print one JSON object"},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text compare_text = {
	.name = "compare",
	.synopsis = "A B [options]",
	.summary = "show where two models or two runs differ",
	.description =
		"For two model folders, checkpoints, or files of weights (also PyTorch's and TensorFlow's): the first "
		"tensor and element that differ, in the order of the forward pass, the largest and the "
		"root-mean-square difference of every tensor, and the settings that differ.\n\n"
		"For two run folders or metrics.jsonl files: the losses and accuracies of both after the same number "
		"of steps, tokens, or seconds, and the settings that differ. Training figures are means over nearby "
		"steps; held-out figures are interpolated linearly between evaluations. bertc warns if the runs have "
		"different vocabularies or held-out texts, which makes their losses incomparable; a pre-training run "
		"and a fine-tuning run have no figures in common.\n\n"
		"Exit code: 0 if the two are equal, 1 if they differ (for runs: in a recorded setting, or in any logged figure "
		"except speed and time), 2 and above for errors.",
	.examples = "bertc compare runs/a/checkpoint-500 runs/b/checkpoint-500\tthe first difference of two models\n"
		    "bertc compare runs/a runs/b --by tokens --out both.html\ttheir curves, in the terminal and as a page\n"
		    "bertc compare runs/a runs/b --weights\ttheir finished models",
};

/* Is it a run: a folder with metrics.jsonl, or such a file? */
static enum status is_run(const char *path, bool *out)
{
	char metrics[PATH_BYTES];
	if (!file_exists(path))
		return checkpoint_missing(path, "");
	TRY(path_join(metrics, path, "metrics.jsonl"));
	*out = text_ends_with(path, ".jsonl") || (file_is_folder(path) && file_exists(metrics));
	return OK;
}

static enum status check_compare(struct options *options)
{
	if (options->positional.count == 2)
		return OK;
	enum status status = error_set(ERR_USAGE, "compare takes two paths");
	error_hint("for instance: bertc compare runs/a runs/b");
	return options_blame(options, status);
}

static enum status run_compare(struct options *options)
{
	const struct compare_settings *settings = options->settings;
	bool run_a, run_b, same;
	const char *a = options->positional.values[0], *b = options->positional.values[1];
	TRY(is_run(a, &run_a));
	TRY(is_run(b, &run_b));
	bool runs = run_a && run_b && !settings->weights;
	if (settings->out && !runs)
		return error_hinted(error_set(ERR_USAGE, "--out is for two runs"), "give two run folders or metrics.jsonl files");
	TRY(runs ? compare_runs(settings, a, b, &same) : compare_models(settings, a, b, &same));
	return same ? OK : error_set(DIFFERENT, "'%s' and '%s' differ", a, b);
}

const struct command command_compare = {
	.text = &compare_text,
	.options = compare_options,
	.settings_bytes = sizeof(struct compare_settings),
	.check = check_compare,
	.run = run_compare,
	.takes_arguments = true,
};
