/* A run of several ranks in which one fails: shared by the tests of such failures. */
#ifndef TESTS_CMD_RANK_FAULTS_H
#define TESTS_CMD_RANK_FAULTS_H

#include <signal.h>
#include <unistd.h>
#include "base/log.h"
#include "cmd/small_run.h"

/* Eight steps, saved after every second: a fault in step 5 leaves checkpoint-4. */
#define FAULT_RUN                                                                                                                \
	"pretrain --corpus %s --model %s --out %s/%s --vocab_size 80 --precision fp32 --threads 1 --max_seq_length 24 "          \
	"--micro_batch_tokens 128 --train_batch_size 12 --num_train_steps 8 --log_steps 1 --eval_steps 2 "                       \
	"--save_checkpoints_steps 2 --learning_rate 5e-3 --no_progress --ranks %d %s"

static inline int rank_faults_setup(void **state)
{
	return small_run_make(state, 6);
}

static inline int rank_faults_teardown(void **state)
{
	unsetenv("BERTC_RANK_FAULT");
	return program_teardown(state);
}

/* Runs with a fault (NULL: none); returns the exit code, and the time in *out_seconds if it is not NULL. */
static inline int fault_run(const char *name, int ranks, const char *fault, const char *more, double *out_seconds)
{
	double started = clock_seconds();
	if (fault)
		setenv("BERTC_RANK_FAULT", fault, 1);
	int status = program(FAULT_RUN, corpus, config, test_folder, name, ranks, more);
	unsetenv("BERTC_RANK_FAULT");
	if (out_seconds)
		*out_seconds = clock_seconds() - started;
	return status;
}

/* The run `name` must have ended with the weights of `straight`. */
static inline void assert_same_end(const char *straight, const char *name)
{
	char a[128], b[128];
	snprintf(a, sizeof a, "%s/final/model.safetensors", straight);
	snprintf(b, sizeof b, "%s/final/model.safetensors", name);
	assert_same_file(test_path(a), test_path(b));
}

#endif
