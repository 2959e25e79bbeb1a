/* Writes a model as an ONNX graph: the encoder, its heads, and pooling into one vector per text. */
#ifndef WEIGHTS_ONNX_MODEL_H
#define WEIGHTS_ONNX_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "model/model.h"
#include "model/pooling.h"

struct onnx_model_content {
	const struct model *model;
	const float *slab;    /* [model->slab_count] in host memory */
	unsigned pooling;     /* a set of enum pooling_mode; 0: none */
	bool normalize;       /* scale the vector to length 1 */
	int64_t truncate_dim; /* dimensions that are kept after that; 0: all */
};

/* Writes the graph to `path`, in files of at most `limit` bytes (formats/onnx_file.h).
 *
 * Inputs: input_ids, attention_mask, and token_type_ids (int64, batch x sequence; for multiple choice, batch x choices x
 * sequence); relations also need entity_positions (batch x entities), the rows that the head joins.
 *
 * Outputs, all F32: without a head, last_hidden_state (batch x sequence x H) and pooler_output; with a head, logits, which for
 * masked words cover every row and are followed by seq_relationship_logits, or start_logits and end_logits; with pooling,
 * sentence_embedding comes last. */
MUST_USE enum status onnx_model_write(const char *path, const struct onnx_model_content *content, int64_t limit);

/* The graph's inputs and outputs in order, for descriptions of it (Triton's config.pbtxt). Dimensions of -1 are dynamic; the
 * first one is the batch. */
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
