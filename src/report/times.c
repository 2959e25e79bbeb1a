/* Logs the ranks' times to metrics.jsonl and finds the rank that keeps the others waiting. */
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "report/report.h"

/* Ranks above this multiple of the median are reported: two ranks on one core are at 2, one with a busy neighbor at 1.1. */
#define STRAGGLING 1.2

int32_t report_straggler(const struct rank_times *all, int32_t count, double *ratio)
{
	int32_t slowest = 0, below = 0;
	double median = 0;
	for (int32_t i = 0; i < count; i++)
		slowest = all[i].computed > all[slowest].computed ? i : slowest;
	/* The lower median: with two ranks, the faster one. */
	for (int32_t i = 0; i < count; i++) {
		below = 0;
		for (int32_t k = 0; k < count; k++)
			below += all[k].computed < all[i].computed || (all[k].computed == all[i].computed && k < i);
		if (below == (count - 1) / 2)
			median = all[i].computed;
	}
	*ratio = median > 0 ? all[slowest].computed / median : 1;
	return count > 1 && *ratio > STRAGGLING ? slowest : -1;
}

/* Mean seconds per step, over all ranks. */
static struct rank_times mean_times(const struct rank_times *all, int32_t ranks)
{
	struct rank_times mean = {0};
	double steps = (double)all[0].steps * ranks;
	for (int32_t i = 0; i < ranks; i++) {
		mean.waited += all[i].waited / steps;
		mean.computed += all[i].computed / steps;
		mean.communicated += all[i].communicated / steps;
		mean.exposed += all[i].exposed / steps;
	}
	return mean;
}

static enum status put_times(struct report *report, const struct report_progress *state, const struct rank_times *all,
			     int32_t ranks)
{
	struct rank_times mean = mean_times(all, ranks);
	struct buffer line = {0};
	struct json_writer writer = {.out = &line};
	int32_t slowest = 0;
	for (int32_t i = 0; i < ranks; i++)
		slowest = all[i].computed > all[slowest].computed ? i : slowest;
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "step", state->step);
	json_put_integer(&writer, "ranks", ranks);
	json_put_double(&writer, "step_data_seconds", mean.waited);
	json_put_double(&writer, "step_compute_seconds", mean.computed);
	json_put_double(&writer, "step_communication_seconds", mean.communicated);
	json_put_double(&writer, "step_exposed_communication_seconds", mean.exposed);
	json_put_integer(&writer, "slowest_rank", slowest);
	json_put_double(&writer, "slowest_step_compute_seconds", all[slowest].computed / (double)all[slowest].steps);
	json_put_integer(&writer, "tokens", state->tokens);
	json_put_double(&writer, "seconds", state->seconds);
	json_close(&writer);
	log_detail("step %lld, a step of %d ranks: data %.4f s, compute %.4f s (rank %d %.4f s), communication %.4f s, of which "
		   "%.4f s were not hidden",
		   (long long)state->step, ranks, mean.waited, mean.computed, slowest,
		   all[slowest].computed / (double)all[slowest].steps, mean.communicated, mean.exposed);
	return report_append_line(report, &line);
}

/* Reports that a rank falls behind, or no longer does (`rank` < 0). */
static enum status put_straggler(struct report *report, const struct report_progress *state, int32_t rank, const char *text)
{
	(rank < 0 ? log_note : log_warning)("step %lld: %s", (long long)state->step, text);
	return report_append_event(report, state, "straggler", rank < 0, text, "");
}

enum status report_times(struct report *report, const struct report_progress *state, const struct rank_times *all, int32_t ranks)
{
	double ratio;
	char text[256];
	int32_t rank = report_straggler(all, ranks, &ratio), before = report->straggler - 1;
	if (report->silent)
		return OK;
	TRY(put_times(report, state, all, ranks));
	report->straggler = rank + 1;
	if (rank == before)
		return OK;
	if (rank < 0)
		snprintf(text, sizeof text, "rank %d (%s) is no longer slower than the others", before, all[before].host);
	else
		snprintf(text, sizeof text,
			 "rank %d (%s) computes %.2f times as long as the median of the ranks, which wait for it", rank,
			 all[rank].host, ratio);
	return put_straggler(report, state, rank, text);
}
