/* What the rules of src/report/diagnosis.c say of a recorded run: build/dev/diagnose metrics.jsonl ENTROPY ACCURACY
 * VOCABULARY EPOCH_TOKENS STEPS PEAK. A logged line stands for the steps since the last. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "report/diagnosis.h"
#include "report/history.h"

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
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){
					    .unigram_entropy = atof(argv[2]),
					    .frequent_accuracy = atof(argv[3]),
					    .vocab_size = atof(argv[4]),
					    .epoch_tokens = atof(argv[5]),
				    });
	diagnosis_plan(&diagnosis, atoll(argv[6]), atof(argv[7]));
	double seconds = 0;
	int64_t e = 0;
	for (int64_t i = 0; i < history.count; i++) {
		const double *value = history.rows[i].value;
		struct findings findings = {0};
		diagnosis_step(&diagnosis,
			       &(struct diagnosis_step){
				       .step = (int64_t)value[HISTORY_STEP],
				       .tokens = (int64_t)value[HISTORY_TOKENS],
				       .mlm_loss = value[HISTORY_MLM_LOSS],
				       .mlm_accuracy = value[HISTORY_MLM_ACCURACY],
				       .grad_norm = value[HISTORY_GRAD_NORM],
				       .learning_rate = value[HISTORY_LEARNING_RATE],
				       .seconds = value[HISTORY_SECONDS] - seconds,
				       .skipped_steps = (int64_t)value[HISTORY_SKIPPED_STEPS],
			       },
			       &findings);
		seconds = value[HISTORY_SECONDS];
		for (; e < history.evaluation_count && history.evaluations[e].row.value[HISTORY_STEP] <= value[HISTORY_STEP]; e++)
			diagnosis_evaluation(&diagnosis, history.evaluations[e].set, history.sets[history.evaluations[e].set],
					     (int64_t)history.evaluations[e].row.value[HISTORY_STEP],
					     history.evaluations[e].row.value[HISTORY_MLM_LOSS], &findings);
		print(&findings, (int64_t)value[HISTORY_STEP]);
	}
	diagnosis_verdict(&diagnosis, true, &verdict);
	printf("%s. %s\n", verdict.headline, verdict.text);
	history_release(&history);
	return 0;
}
