/* metrics.jsonl, read back by a resumed run and by `bertc compare`. */
#include "fuzz.h"
#include "report/history.h"

FUZZ_SEEDS(FUZZ_SEED("{\"step\":1,\"tokens\":10,\"seconds\":0.5,\"loss\":9.5,\"mlm_loss\":8.5,\"learning_rate\":1e-4}\n"
		     "{\"step\":2,\"loss\":9,\"eval_loss\":8,\"eval_mlm_loss\":7}\n"),
	   FUZZ_SEED("{\"step\":3,\"event\":\"spike\",\"text\":\"t\",\"advice\":\"a\",\"over\":true}\nno JSON\n{\"step\":4,"),
	   FUZZ_SEED("{\"step\":5,\"eval_set\":\"b\",\"eval_b_loss\":1}\n{\"step\":5,\"eval_set\":\"b\",\"eval_b_loss\":2}\n"
		     "{\"step\":6,\"eval_set\":\"\",\"eval_loss\":1}\n"),
	   FUZZ_SEED("{\"step\":-1}\n{\"step\":1e300,\"loss\":null}\n{\"step\":9223372036854775807,\"event\":1}\n[]\n"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct history history = {0};
	BUG_IF(history_read(&history, fuzz_file("metrics.jsonl", bytes, count)) != OK);
	BUG_IF(history.set_count > HISTORY_SETS || history_main_set(&history) < 0);
	BUG_IF(history.column_count > HISTORY_COLUMNS);
	for (int64_t i = 0; i < history.steps.count; i++)
		BUG_IF(!(history_value(&history.steps, i, HISTORY_STEP) >= 0));
	for (int64_t i = 0; i < history.evaluations.count; i++) {
		BUG_IF(history.evaluation_sets[i] < 0 || history.evaluation_sets[i] >= history.set_count);
		BUG_IF(history_last_evaluation(&history, history.evaluation_sets[i]) < 0);
	}
	for (int64_t i = 0; i < history.event_count; i++)
		BUG_IF(history.events[i].step < 0);
	history_release(&history);
	return 0;
}
