/* Prints what the rules of src/report/diagnosis.c say about a recorded run:
 *
 *   build/dev/diagnose metrics.jsonl ENTROPY ACCURACY VOCABULARY EPOCH_TOKENS STEPS PEAK
 *
 * A logged line stands for all steps since the previous one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "report/diagnosis.h"
#include "report/verdict.h"

static void print(const struct findings *findings, int64_t step)
{
	for (int i = 0; i < findings->count; i++)
		printf("%8" PRId64 "  %s%s: %s\n", step, finding_names[findings->item[i].kind],
		       findings->item[i].over ? " (over)" : "", findings->item[i].text);
}

int main(int argc, char **argv)
{
	struct history history = {0};
	struct diagnosis diagnosis;
	struct verdict verdict;
	if (argc != 8 || history_read(&history, argv[1]) != OK) {
		fprintf(stderr, "usage: diagnose metrics.jsonl ENTROPY ACCURACY VOCABULARY EPOCH_TOKENS STEPS PEAK\n");
		return 2;
	}
	struct report_task task = {
		.words = {.subject = "masked words",
			  .data = "text",
			  .held_out = "held-out text",
			  .prior = "word frequencies",
			  .frequent = "the most frequent word",
			  .warmup = "--num_warmup_steps",
			  .length = "--num_train_steps",
			  .usual_rates = "1e-4 to 1e-3",
			  .check_data = "",
			  .remedy = "more text"},
		.loss = "mlm_loss",
		.share = "mlm_accuracy",
		.chance_loss = log(atof(argv[4])),
		.prior_loss = atof(argv[2]),
		.prior_share = atof(argv[3]),
		.scale = 1,
		.least_tokens = 1e6,
		.spike_floor = NAN,
		.judges_repeats = true,
	};
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task, .epoch_tokens = atof(argv[5])});
	diagnosis_plan(&diagnosis, atoll(argv[6]), atof(argv[7]));
	const struct history_table *steps = &history.steps, *evaluations = &history.evaluations;
	int loss = history_column(&history, task.loss), share = history_column(&history, task.share);
	double seconds = 0;
	int64_t e = 0;
	for (int64_t i = 0; i < steps->count; i++) {
		struct findings findings = {0};
		int64_t step = (int64_t)history_value(steps, i, HISTORY_STEP);
		diagnosis_step(&diagnosis,
			       &(struct diagnosis_step){
				       .step = step,
				       .tokens = (int64_t)history_value(steps, i, HISTORY_TOKENS),
				       .loss = history_value(steps, i, loss),
				       .share = history_value(steps, i, share),
				       .grad_norm = history_value(steps, i, HISTORY_GRAD_NORM),
				       .learning_rate = history_value(steps, i, HISTORY_LEARNING_RATE),
				       .seconds = history_value(steps, i, HISTORY_SECONDS) - seconds,
				       .skipped_steps = (int64_t)history_value(steps, i, HISTORY_SKIPPED_STEPS),
			       },
			       &findings);
		seconds = history_value(steps, i, HISTORY_SECONDS);
		for (; e < evaluations->count && history_value(evaluations, e, HISTORY_STEP) <= (double)step; e++)
			diagnosis_evaluation(&diagnosis,
					     &(struct diagnosis_evaluation){
						     .set = history.evaluation_sets[e],
						     .name = history.sets[history.evaluation_sets[e]],
						     .step = (int64_t)history_value(evaluations, e, HISTORY_STEP),
						     .loss = history_value(evaluations, e, loss),
						     .score = history_value(evaluations, e, loss),
					     },
					     &findings);
		print(&findings, step);
	}
	report_verdict(&(struct verdict_facts){.diagnosis = &diagnosis,
					       .history = &history,
					       .task = &task,
					       .epoch_tokens = atof(argv[5]),
					       .finished = true},
		       &verdict);
	printf("%s. %s %s\n", verdict.headline, verdict.text, verdict.more);
	history_release(&history);
	return 0;
}
