/* Students and teachers for the tasks of labeled_files.h: the teachers are wider and deeper than the model in the folder
 * base. */
#ifndef TESTS_CMD_DISTILLED_RUN_H
#define TESTS_CMD_DISTILLED_RUN_H

#include "cmd/labeled_files.h"

/* Tasks that can be distilled: all except rewriting, whose pointers have no soft loss. */
static const char *const distilled_tasks[] = {"classification", "tagging", "squad", "multiple_choice", "multilabel"};
enum { DISTILLED_TASKS = 5 };

/* Makes base, the files, a larger model with base's vocabulary in the folder large, and a teacher for each task:
 * TASK-teacher. */
static inline int distilled_run_make(const char *device)
{
	static const char large[] = "{\"model_type\": \"bert\", \"hidden_size\": 48, \"num_hidden_layers\": 3, "
				    "\"num_attention_heads\": 3, \"intermediate_size\": 96, \"hidden_act\": \"gelu\", "
				    "\"max_position_embeddings\": 64, \"type_vocab_size\": 2}";
	if (labeled_files_make(device) != 0)
		return -1;
	assert_ok(file_write(test_path("large.json"), large, strlen(large)));
	if (program("pretrain -q --corpus %s --model %s/large.json --vocab_file %s/base/final/vocab.txt --out %s/large "
		    "--train_batch_size 16 --max_seq_length 32 --num_train_steps 10 --learning_rate 1e-2 --precision fp32 "
		    "--threads 1 "
		    "--device %s",
		    corpus, test_folder, test_folder, test_folder, device) != 0)
		return -1;
	for (int i = 0; i < DISTILLED_TASKS; i++) {
		const char *task = distilled_tasks[i];
		if (program("finetune -q --task %s --model %s/large --train %s/%s.train --out %s/%s-teacher --max_seq_length 24 "
			    "--train_batch_size 16 --learning_rate 2e-3 --num_train_steps 6 --precision fp32 --threads 1 "
			    "--device %s",
			    task, test_folder, test_folder, task, test_folder, task, device) != 0)
			return -1;
	}
	return 0;
}

/* Like finetune(), but distilled from all layers of the task's teacher. */
static inline int distil(const char *task, const char *name, const char *options)
{
	char all[512];
	snprintf(all, sizeof all, "--teacher %s/%s-teacher --distill_layers uniform %s", test_folder, task, options);
	return finetune(task, name, all);
}

static const char *const distilled_measures[] = {"loss", "label_loss", "soft_loss", "hidden_loss", "grad_norm"};
enum { DISTILLED_MEASURES = 5 };

#endif
