/* A sweep's report: every run with its settings and its score. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/html.h"
#include "report/preview.h"

#define CATEGORIES 40 /* most values of a setting shown in a chart */

/* Whether score `a` is better than score `b`. A missing score (NaN) is worst. */
static bool better(const struct report_sweep *sweep, double a, double b)
{
	enum measure_direction direction = sweep->measure.direction;
	return measure_is_better(direction == DIRECTION_NONE ? DIRECTION_HIGHER : direction, a, b, 0);
}

/* ---- Settings ---- */

static bool varies(const struct report_sweep *sweep, int setting)
{
	for (int64_t i = 1; i < sweep->run_count; i++)
		if (strcmp(sweep->runs[i].values[setting], sweep->runs[0].values[setting]) != 0)
			return true;
	return false;
}

bool report_sweep_repeats(const char *setting)
{
	return strcmp(setting, "seed") == 0 || strcmp(setting, "fold") == 0;
}

/* The index of the setting that repeats runs if it varies; otherwise -1. */
static int seed_of(const struct report_sweep *sweep)
{
	for (int s = 0; s < sweep->setting_count; s++)
		if (report_sweep_repeats(sweep->settings[s]) && varies(sweep, s))
			return s;
	return -1;
}

static bool same_but(const struct report_sweep *sweep, int64_t a, int64_t b, int without)
{
	for (int s = 0; s < sweep->setting_count; s++)
		if (s != without && strcmp(sweep->runs[a].values[s], sweep->runs[b].values[s]) != 0)
			return false;
	return true;
}

/* Whether a run is the first of its setting. */
static bool is_first(const struct report_sweep *sweep, int64_t run, int seed)
{
	for (int64_t i = 0; i < run && seed >= 0; i++)
		if (same_but(sweep, i, run, seed))
			return false;
	return true;
}

/* The group of the runs with the same setting as `first`, which is the first of them. */
static struct report_sweep_group group_of(const struct report_sweep *sweep, int64_t first, int seed)
{
	struct report_sweep_group group = {.first = first, .mean = NAN, .deviation = NAN};
	double sum = 0, squares = 0;
	for (int64_t i = first; i < sweep->run_count; i++) {
		const struct report_sweep_run *run = &sweep->runs[i];
		if (!(seed < 0 ? i == first : same_but(sweep, first, i, seed)))
			continue;
		group.lacks |= run->over && !isfinite(run->score);
		if (isfinite(run->score)) {
			sum += run->score;
			group.runs++;
		}
	}
	if (group.runs > 0)
		group.mean = sum / (double)group.runs;
	for (int64_t i = first; group.runs > 1 && i < sweep->run_count; i++)
		if (same_but(sweep, first, i, seed) && isfinite(sweep->runs[i].score))
			squares += (sweep->runs[i].score - group.mean) * (sweep->runs[i].score - group.mean);
	if (group.runs > 1)
		group.deviation = sqrt(squares / (double)(group.runs - 1));
	return group;
}

static bool better_group(const struct report_sweep *sweep, const struct report_sweep_group *a, const struct report_sweep_group *b)
{
	if (a->lacks != b->lacks && isfinite(a->mean) && isfinite(b->mean))
		return b->lacks;
	return better(sweep, a->mean, b->mean);
}

enum status report_sweep_groups(const struct report_sweep *sweep, struct report_sweep_group **out, int64_t *out_count)
{
	int seed = seed_of(sweep);
	struct report_sweep_group *groups = NULL;
	int64_t count = 0;
	*out = NULL;
	TRY(memory_new(&groups, sweep->run_count, sizeof *groups, "settings of a sweep"));
	for (int64_t i = 0; i < sweep->run_count; i++) {
		if (!is_first(sweep, i, seed))
			continue;
		struct report_sweep_group group = group_of(sweep, i, seed);
		int64_t k = count++;
		for (; k > 0 && better_group(sweep, &group, &groups[k - 1]); k--)
			groups[k] = groups[k - 1];
		groups[k] = group;
	}
	*out = groups;
	*out_count = count;
	return OK;
}

int64_t report_sweep_best(const struct report_sweep *sweep)
{
	int seed = seed_of(sweep);
	struct report_sweep_group best = {.first = -1, .mean = NAN};
	int64_t run = -1;
	for (int64_t i = 0; i < sweep->run_count; i++) {
		if (!is_first(sweep, i, seed))
			continue;
		struct report_sweep_group group = group_of(sweep, i, seed);
		if (group.runs > 0 && (best.first < 0 || better_group(sweep, &group, &best)))
			best = group;
	}
	for (int64_t i = best.first; i >= 0 && i < sweep->run_count; i++) {
		bool belongs = seed < 0 ? i == best.first : same_but(sweep, best.first, i, seed);
		if (belongs && isfinite(sweep->runs[i].score) &&
		    (run < 0 || better(sweep, sweep->runs[i].score, sweep->runs[run].score)))
			run = i;
	}
	return run;
}

int64_t report_sweep_ties(const struct report_sweep *sweep, int64_t best)
{
	int seed = seed_of(sweep);
	int64_t ties = 0;
	double means[2];
	for (int64_t i = 0; i < sweep->run_count; i++) {
		const int64_t runs[2] = {best, i};
		if (i == best || !(sweep->runs[i].score == sweep->runs[best].score))
			continue;
		for (int k = 0; k < 2; k++) {
			int64_t first = runs[k];
			for (int64_t other = first - 1; seed >= 0 && other >= 0; other--)
				first = same_but(sweep, other, runs[k], seed) ? other : first;
			means[k] = group_of(sweep, first, seed).mean;
		}
		ties += means[0] == means[1];
	}
	return ties;
}

/* ---- Charts and tables ---- */

/* Sorts numbers by size; values that are not numbers stay where they are, in the order of the runs. */
static void sort_categories(const char **names, int count)
{
	for (int i = 1; i < count; i++)
		for (int k = i; k > 0; k--) {
			char *end_a, *end_b;
			double a = strtod(names[k - 1], &end_a), b = strtod(names[k], &end_b);
			if (*end_a || *end_b || !(a > b))
				break;
			const char *other = names[k];
			names[k] = names[k - 1];
			names[k - 1] = other;
		}
}

static int find_category(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* A chart of the scores over the values of one setting. */
static enum status put_picture(const struct report_sweep *sweep, int setting, struct buffer *out)
{
	const char *names[CATEGORIES];
	int count = 0, *category = NULL;
	double *scores = NULL;
	int64_t points = 0, best = report_sweep_best(sweep), best_point = -1;
	char title[160];
	enum status status;
	for (int64_t i = 0; i < sweep->run_count && count < CATEGORIES; i++)
		if (find_category(names, count, sweep->runs[i].values[setting]) < 0)
			names[count++] = sweep->runs[i].values[setting];
	sort_categories(names, count);
	TRY_GOTO(memory_new(&category, sweep->run_count, sizeof *category, "points of a chart"), done);
	TRY_GOTO(memory_new(&scores, sweep->run_count, sizeof *scores, "points of a chart"), done);
	for (int64_t i = 0; i < sweep->run_count; i++) {
		int found = find_category(names, count, sweep->runs[i].values[setting]);
		if (found < 0 || !isfinite(sweep->runs[i].score))
			continue;
		best_point = i == best ? points : best_point;
		category[points] = found;
		scores[points++] = sweep->runs[i].score;
	}
	snprintf(title, sizeof title, "%.60s by %.60s", sweep->measure.heading, sweep->settings[setting]);
	buffer_text(out, "<div>");
	chart_categories_svg(
		&(struct chart_categories){
			.title = title,
			.x_label = sweep->settings[setting],
			.y = {.label = sweep->measure.axis, .number = report_axis_number(sweep->measure.unit)},
			.categories = names,
			.category_count = count,
			.category = category,
			.values = scores,
			.count = points,
			.best = best_point,
			.level = {sweep->measure.levels[0].value, sweep->measure.levels[0].label},
		},
		out);
	buffer_text(out, "</div>\n");
done:
	free(category);
	free(scores);
	return status;
}

static void put_head(const struct report_sweep *sweep, int without, const char *last, struct buffer *out)
{
	buffer_text(out, "<div class=\"scroll\"><table><tr><th></th>");
	for (int s = 0; s < sweep->setting_count; s++)
		if (s != without)
			html_element(out, "<th class=\"n\">", sweep->settings[s], "</th>");
	html_element(out, "<th class=\"n\">", sweep->measure.heading, "</th>");
	buffer_format(out, "%s</tr>\n", last);
}

static void put_values(const struct report_sweep *sweep, const struct report_sweep_run *run, int without, struct buffer *out)
{
	for (int s = 0; s < sweep->setting_count; s++)
		if (s != without) {
			buffer_text(out, "<td class=\"n\">");
			html_excerpt(out, run->values[s], 40);
			buffer_text(out, "</td>");
		}
}

/* The table of all runs, best first. */
static enum status put_runs(const struct report_sweep *sweep, struct buffer *out)
{
	int64_t *order = NULL, best = report_sweep_best(sweep);
	char number[REPORT_NUMBER_BYTES];
	TRY(memory_new(&order, sweep->run_count, sizeof *order, "runs of a sweep"));
	for (int64_t i = 0; i < sweep->run_count; i++) {
		int64_t k = i;
		for (; k > 0 && better(sweep, sweep->runs[i].score, sweep->runs[order[k - 1]].score); k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	put_head(sweep, -1, "<th>run</th><th></th>", out);
	for (int64_t i = 0; i < sweep->run_count; i++) {
		const struct report_sweep_run *run = &sweep->runs[order[i]];
		bool is_best = order[i] == best;
		buffer_format(out, "<tr%s><td>%s</td>", is_best ? " class=\"best\"" : "",
			      is_best ? "<span class=\"star\" title=\"best\">\xE2\x98\x85</span>" : "");
		put_values(sweep, run, -1, out);
		html_element(out, "<td class=\"n\">", report_number(number, run->score, sweep->measure.unit), "</td><td>");
		if (run->over)
			html_element(out, "<a href=\"", run->name, "/report.html\">");
		html_excerpt(out, run->name, 60);
		buffer_format(out, "%s</td><td>", run->over ? "</a>" : "");
		html_excerpt(out, run->status, 120);
		buffer_text(out, "</td></tr>\n");
	}
	buffer_text(out, "</table></div>\n");
	free(order);
	return OK;
}

static enum status put_means(const struct report_sweep *sweep, struct buffer *out)
{
	struct report_sweep_group *groups = NULL;
	int64_t count = 0;
	int seed = seed_of(sweep);
	char number[REPORT_NUMBER_BYTES];
	TRY(report_sweep_groups(sweep, &groups, &count));
	buffer_format(out,
		      "<h3>Means over the %ss</h3>\n<p class=\"note\">One lucky %s does not make a setting better: "
		      "compare settings by their means, and ignore differences smaller than the deviation.</p>\n",
		      sweep->settings[seed], sweep->settings[seed]);
	put_head(sweep, seed, "<th class=\"n\">deviation</th><th class=\"n\">runs</th>", out);
	for (int64_t i = 0; i < count; i++) {
		bool best = i == 0 && isfinite(groups[i].mean);
		buffer_format(out, "<tr%s><td>%s</td>", best ? " class=\"best\"" : "",
			      best ? "<span class=\"star\" title=\"best\">\xE2\x98\x85</span>" : "");
		put_values(sweep, &sweep->runs[groups[i].first], seed, out);
		html_element(out, "<td class=\"n\">", report_number(number, groups[i].mean, sweep->measure.unit), "</td>");
		html_element(out, "<td class=\"n\">", report_number(number, groups[i].deviation, sweep->measure.unit), "</td>");
		buffer_format(out, "<td class=\"n\">%lld</td></tr>\n", (long long)groups[i].runs);
	}
	buffer_text(out, "</table></div>\n");
	free(groups);
	return OK;
}

static enum status put_sweep(const struct report_sweep *sweep, struct buffer *out)
{
	int pictures = 0;
	for (int s = 0; s < sweep->setting_count; s++)
		pictures += varies(sweep, s);
	/* A single chart would be as wide as the page. */
	buffer_format(out, "<div class=\"grid\"%s>\n", pictures == 1 ? " style=\"max-width:540px\"" : "");
	for (int s = 0; s < sweep->setting_count; s++)
		if (varies(sweep, s))
			TRY(put_picture(sweep, s, out));
	buffer_text(out, "</div>\n<h3>All runs</h3>\n");
	html_element(out, "<p class=\"note\">By ", sweep->measure.heading, " on the ");
	html_element(out, "", sweep->set, ", best first.</p>\n");
	TRY(put_runs(sweep, out));
	return seed_of(sweep) >= 0 ? put_means(sweep, out) : OK;
}

static void report_sweep_html(const struct report_sweep *sweep, struct buffer *out)
{
	if (sweep->run_count > 0 && put_sweep(sweep, out) != OK)
		out->failed = true;
}

void report_sweep_page(const struct report_sweep *sweep, const char *title, struct buffer *out)
{
	char number[REPORT_NUMBER_BYTES];
	int64_t best = report_sweep_best(sweep);
	html_begin(out, title);
	html_element(out, "<h1>", title, "</h1>\n<p class=\"sub\">");
	buffer_format(out, "%lld runs. ", (long long)sweep->run_count);
	if (best >= 0) {
		html_element(out, "The best is ", sweep->runs[best].name, ": ");
		html_element(out, "", sweep->measure.heading, " ");
		html_element(out, "", report_number(number, sweep->runs[best].score, sweep->measure.unit), " on the ");
		html_element(out, "", sweep->set, seed_of(sweep) < 0 ? "." : "");
		if (seed_of(sweep) >= 0)
			buffer_format(out, ", the best %s of the setting with the best mean.", sweep->settings[seed_of(sweep)]);
	}
	buffer_text(out, "</p>\n");
	report_sweep_html(sweep, out);
	buffer_format(out, "<footer>bertc %s</footer>\n", VERSION);
	html_end(out);
}
