/* A model as an ONNX graph: encoder, the heads it has, and pooling into one vector a text. */
#ifndef WEIGHTS_ONNX_MODEL_H
#define WEIGHTS_ONNX_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "model/model.h"
#include "model/pooling.h"

struct onnx_model_content {
	const struct model *model;
	const float *slab;      /* [model->slab_count] in host memory */
	bool has_pooler;        /* the pooler's weights are known: an encoder without heads has its output, too */
	bool has_next_sentence; /* the same of the head for the next sentence */
	unsigned pooling;       /* a set of enum pooling_mode; 0: not known */
	bool normalize;         /* the vector is made one of length 1 */
};

/* Writes the graph to `path`, in files of at most `limit` bytes (formats/onnx_file.h). Inputs are input_ids, attention_mask and
 * token_type_ids (int64, batch x sequence; of a choice batch x choices x sequence; relations also take entity_positions, batch
 * x entities: the rows that the head joins). Outputs, all F32: last_hidden_state (batch x sequence x H) and pooler_output
 * without a head; logits, for masked words of every row, with seq_relationship_logits behind them; start_logits and
 * end_logits; and with pooling sentence_embedding last. */
MUST_USE enum status onnx_model_write(const char *path, const struct onnx_model_content *content, int64_t limit);

/* What the graph takes and gives, in its order: for descriptions of it (Triton's config.pbtxt). A dimension of -1 differs from
 * call to call; the first is the batch. */
struct onnx_tensor_facts {
	char name[32];
	bool is_integer;
	int rank;
	int64_t shape[4];
};
struct onnx_model_facts {
	struct onnx_tensor_facts inputs[4], outputs[4];
	int input_count, output_count;
};
void onnx_model_describe(const struct onnx_model_content *content, struct onnx_model_facts *out);

#endif
