/* Results replace only results of ours, and are not there before they are complete. */
#include "run/run_results.h"

#include <stdio.h>

#include "base/file.h"
#include "run/run_folder.h"
#include "tasks/results.h"
#include "train/ranks.h"

static enum status check(const char *folder, const struct task_set *tests, int64_t count)
{
	char own[PATH_BYTES];
	TRY(run_folder_check_results(folder));
	for (int64_t i = 0; i < count; i++) {
		TRY(path_join(own, folder, tests[i].name));
		TRY(run_folder_check_results(own));
	}
	return OK;
}

enum status run_results_check(const struct run *run, const struct task_set *tests, int64_t count)
{
	bool checks = is_first_rank(run->machine->comm) && !run->values->folder.plan;
	return ranks_agree(run->machine->comm, checks ? check(run->folder.path, tests, count) : OK);
}

static enum status clear(const char *folder, bool evaluated, const struct task_set *tests, int64_t count)
{
	char own[PATH_BYTES];
	TRY(check(folder, tests, count));
	if (evaluated)
		TRY(results_remove_evaluation(folder, "eval"));
	for (int64_t i = 0; i < count; i++) {
		TRY(path_join(own, folder, tests[i].name));
		TRY(results_remove_test(tests[i].name[0] ? own : folder));
	}
	return OK;
}

enum status run_results_clear(const struct run *run, bool evaluated, const struct task_set *tests, int64_t count)
{
	struct comm *comm = run->machine->comm;
	return ranks_agree(comm, is_first_rank(comm) ? clear(run->folder.path, evaluated, tests, count) : OK);
}

enum status run_results_stopped(enum status status)
{
	if (status != STOPPED)
		return status;
	char why[64];
	snprintf(why, sizeof why, "%.60s", error_last()->message);
	return error_hinted(error_set(STOPPED, "%s before the results were complete; the model itself is saved", why),
			    "run the same command again: it computes the results, and nothing is trained again");
}
