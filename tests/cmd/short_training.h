/* Short trainings of a small model, and evaluations, by the program, for tests of what it says about files. */
#ifndef TESTS_CMD_SHORT_TRAINING_H
#define TESTS_CMD_SHORT_TRAINING_H

#include "cmd/program.h"
#include "infer/small_model.h"
#include "tasks/task.h"

/* The group's setup: makes the model, "base" in the test folder. */
static int setup(void **state)
{
	struct task_state task = {.task = &task_classification};
	static const char *const classes[] = {"0", "1"};
	struct model_heads heads;
	struct task_config config;
	if (test_folder_make(state) != 0)
		return -1;
	assert_ok(task_state_labels(&task, classes, 2));
	task_classification.heads(&task, &heads);
	assert_ok(task_config_make(&config, task_classification.architecture, task_classification.problem_type, classes, 2));
	small_model_write(test_path("base"), &heads, &config, NULL, NULL);
	task_config_release(&config);
	task_state_release(&task);
	return 0;
}

#define CPU "--device cpu --precision fp32 --threads 1 "
/* A training on a file. */
#define TRAIN(out, task, file, more)                                                                                             \
	"finetune --no_progress " CPU "--task " task " --max_seq_length 32 --num_train_steps 1 --train_batch_size 2 --model "    \
	"%s/base --out %s/" out " --train %s/" file " " more,                                                                    \
		test_folder, test_folder, test_folder
#define EVALUATE(out, file) "evaluate --json " CPU "--model %s/" out "/final --test %s/" file, test_folder, test_folder

#endif
