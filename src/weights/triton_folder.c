/* Writes config.pbtxt and the files around a graph for Triton. */
#include "weights/triton_folder.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "weights/model_folder.h"

#define LABELS_FILE "labels.txt"
/* Maximum texts in a batch, and how long Triton may delay requests to form one of the same shape. */
#define BATCH_MOST 64
#define QUEUE_MICROSECONDS 1000

/* A quoted string in protobuf's text format. */
static void put_quoted(struct buffer *out, const char *text)
{
	buffer_char(out, '"');
	for (const char *p = text; *p; p++) {
		if (*p == '"' || *p == '\\')
			buffer_format(out, "\\%c", *p);
		else if ((unsigned char)*p < 0x20 || *p == 0x7f)
			buffer_format(out, "\\%03o", (unsigned)(unsigned char)*p);
		else
			buffer_char(out, *p);
	}
	buffer_char(out, '"');
}

/* Inputs or outputs. The batch dimension is left out. */
static void put_tensors(struct buffer *out, const char *which, const struct onnx_tensor_facts *tensors, int count,
			bool has_labels)
{
	buffer_format(out, "%s [\n", which);
	for (int i = 0; i < count; i++) {
		buffer_text(out, "  {\n    name: ");
		put_quoted(out, tensors[i].name);
		buffer_format(out, "\n    data_type: %s\n    dims: [ ", tensors[i].is_integer ? "TYPE_INT64" : "TYPE_FP32");
		for (int k = 1; k < tensors[i].rank; k++)
			buffer_format(out, "%s%lld", k > 1 ? ", " : "", (long long)tensors[i].shape[k]);
		buffer_text(out, " ]\n");
		if (has_labels && i == 0)
			buffer_text(out, "    label_filename: \"" LABELS_FILE "\"\n");
		buffer_format(out, "  }%s\n", i + 1 < count ? "," : "");
	}
	buffer_text(out, "]\n");
}

void triton_config_put(struct buffer *out, const char *name, const struct onnx_model_facts *facts, bool has_labels)
{
	buffer_text(out, "name: ");
	put_quoted(out, name);
	buffer_format(out, "\nplatform: \"onnxruntime_onnx\"\nmax_batch_size: %d\n", BATCH_MOST);
	put_tensors(out, "input", facts->inputs, facts->input_count, false);
	put_tensors(out, "output", facts->outputs, facts->output_count, has_labels);
	buffer_format(out, "dynamic_batching {\n  max_queue_delay_microseconds: %d\n}\n", QUEUE_MICROSECONDS);
}

static enum status save_buffer(const char *folder, const char *name, struct buffer *text)
{
	char path[PATH_BYTES];
	enum status status = path_join(path, folder, name);
	if (status == OK)
		status = buffer_status(text);
	if (status == OK)
		status = file_write(path, buffer_string(text), text->size);
	buffer_release(text);
	return status;
}

/* Writes one label per line, in the order of the classes. */
static enum status save_labels(const char *folder, const struct task_config *task)
{
	struct buffer text = {0};
	for (int32_t i = 0; i < task->label_count; i++) {
		for (const char *p = task->labels[i]; *p; p++)
			buffer_char(&text, *p == '\n' || *p == '\r' ? ' ' : *p);
		buffer_char(&text, '\n');
	}
	return save_buffer(folder, LABELS_FILE, &text);
}

/* Whether the logits are one row per text with a number for each class, as Triton's labels require. */
static bool has_class_scores(const struct onnx_model_content *content, const struct task_config *task)
{
	const struct model_heads *heads = &content->model->heads;
	return task && task->labels && heads->count == 1 && heads->head[0].outputs == task->label_count &&
	       (heads->head[0].loss == LOSS_CLASSES || heads->head[0].loss == LOSS_BINARY) &&
	       (heads->head[0].input == INPUT_FIRST_ROW || heads->head[0].joined > 1);
}

enum status triton_folder_save(const char *folder, const char *name, const struct onnx_model_content *content,
			       const struct task_config *task, int64_t limit)
{
	char version[PATH_BYTES], graph[PATH_BYTES];
	struct onnx_model_facts facts;
	struct buffer text = {0};
	bool has_labels = has_class_scores(content, task);
	TRY(path_join(version, folder, "1"));
	TRY(folder_make(version));
	TRY(path_join(graph, version, "model.onnx"));
	/* The graph without its weights takes a few hundred kilobytes. */
	if (content->model->element_count * (int64_t)sizeof(float) + (1 << 22) > limit) {
		TRY(folder_make(graph));
		memcpy(version, graph, sizeof version);
		TRY(path_join(graph, version, "model.onnx"));
	}
	TRY(onnx_model_write(graph, content, limit));
	if (has_labels)
		TRY(save_labels(folder, task));
	onnx_model_describe(content, &facts);
	triton_config_put(&text, name, &facts, has_labels);
	return save_buffer(folder, "config.pbtxt", &text);
}
