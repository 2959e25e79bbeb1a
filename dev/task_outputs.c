/* Writes the raw outputs of a fine-tuned model's head, so that every number can be compared with another program's
 * (dev/finetune_check.py):
 *
 *     make build/dev/task_outputs
 *     build/dev/task_outputs FOLDER FILE OUT [MAX_SEQ_LENGTH]
 *
 * FILE may or may not have labels. OUT receives, in the machine's byte order: the number of examples (int64), the offset
 * of each example in the values (int64, one more than there are examples), and the values (float32), which are the head's
 * numbers for each item of each example. Computes in fp32 on the CPU. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "infer/task_session.h"

static enum status put_outputs(const struct task_outputs *outputs, const char *path)
{
	struct buffer bytes = {0};
	buffer_append(&bytes, &outputs->count, sizeof outputs->count);
	buffer_append(&bytes, outputs->starts, (size_t)(outputs->count + 1) * sizeof *outputs->starts);
	buffer_append(&bytes, outputs->values, (size_t)outputs->starts[outputs->count] * sizeof *outputs->values);
	enum status status = buffer_status(&bytes);
	if (status == OK)
		status = file_write(path, bytes.data, bytes.size);
	buffer_release(&bytes);
	return status;
}

int main(int argc, char **argv)
{
	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: %s FOLDER FILE OUT [MAX_SEQ_LENGTH]\n", argv[0]);
		return ERR_USAGE;
	}
	const struct device_options device = {.device = DEVICE_CPU, .precision = PRECISION_FP32, .threads = 1};
	struct task_session_settings settings = {
		.model = argv[1],
		.max_seq_length = argc > 4 ? atoi(argv[4]) : 0,
		.micro_batch_tokens = 4096,
		.device = &device,
	};
	struct task_session session = {0};
	struct task_set set = {0};
	struct task_outputs outputs = {0};
	const char *const files[] = {argv[2]};
	enum status status;
	TRY_GOTO(task_session_open(&session, &settings), done);
	TRY_GOTO(task_session_run(&session, files, 1, TASK_SCORE, &set, &outputs, NULL), done);
	status = put_outputs(&outputs, argv[3]);
done:
	if (status != OK)
		fprintf(stderr, "%s\n", error_last()->message);
	task_outputs_release(&outputs);
	if (session.state.task)
		task_set_release(&session.state, &set);
	task_session_close(&session);
	return status;
}
