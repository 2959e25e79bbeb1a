/* BERT over the operations of backend/ops.h: parameters, forward, loss, backward. The model knows no file and no
 * rank. Post-LN encoder, pooler, MLM head with tied embeddings on masked rows, NSP head. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/ops.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "data/batch.h"
#include "model/heads.h"

/* Sizes and constants of a BERT, with Hugging Face's field names (config.json). */
struct model_config {
	int32_t vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size;
	int32_t max_position_embeddings, type_vocab_size;
	enum activation hidden_act; /* "gelu" = erf, "gelu_new" = tanh */
	double hidden_dropout_prob, attention_probs_dropout_prob;
	double initializer_range, layer_norm_eps;
	double classifier_dropout; /* of what heads read; NaN: hidden_dropout_prob */
	int32_t pad_token_id;
};

/* Sizes by name: tiny mini small medium base large. ERR_USAGE with the names for any other. vocab_size stays 0. */
MUST_USE enum status model_config_named(struct model_config *out, const char *name);
extern const char *const model_size_names; /* "tiny|mini|small|medium|base|large" */
/* From config.json or Google's bert_config.json (then hidden_act "gelu" is the tanh form: told apart by the absence
 * of "model_type"). Absent fields have Hugging Face's defaults, but an absent vocab_size stays 0: the vocabulary
 * decides. Sizes that make no BERT are ERR_DATA; other model types, activations and variants that bertc does not
 * compute are ERR_USAGE; both name the field. */
MUST_USE enum status model_config_from_json(struct model_config *out, const struct json *object, const char *name);

/* Sizes that are to be others than a configuration's; 0: as they are. */
struct model_sizes {
	int64_t num_hidden_layers, hidden_size, num_attention_heads, intermediate_size, max_position_embeddings;
};
/* Changes them. Of a new hidden_size follow a head for every 64 columns and a feed-forward part four times as wide, unless these
 * are given, too. A width that cannot be divided among the heads is ERR_USAGE. */
MUST_USE enum status model_config_resize(struct model_config *config, const struct model_sizes *sizes);
bool model_sizes_any(const struct model_sizes *sizes);

/* One tensor of the parameter slab, in the order of the slab: layer by layer, query/key/value adjacent. */
enum parameter_init { INIT_NORMAL, INIT_ZERO, INIT_ONE };
struct parameter {
	char name[96];         /* Hugging Face's name */
	int64_t rows, columns; /* (rows, columns); a vector is (1, n) and has rank 1 in files */
	int64_t offset, count; /* elements in the slab */
	enum parameter_init init;
	bool decays;   /* weight decay applies: all but biases and layer norms */
	int32_t layer; /* -1 embeddings, 0..L-1 encoder, L pooler and heads */
	bool training; /* of training alone: in checkpoints, but not in a finished model */
};

/* Rank in files: biases and layer norms are vectors, all others (which decay) matrices. */
static inline int parameter_rank(const struct parameter *parameter)
{
	return parameter->decays ? 2 : 1;
}

/* Where a parameter lies in the weights that operations take. */
struct parameter_place {
	int64_t weight; /* of model->weights */
	int64_t row;    /* of that weight: the parameter's first; of a vector the first column */
};

struct layer_weights {
	struct weight qkv, qkv_bias, attention_output, attention_output_bias, attention_gamma, attention_beta;
	struct weight intermediate, intermediate_bias, output, output_bias, output_gamma, output_beta;
};

/* A linear layer over what a head reads. */
struct head_weights {
	struct weight w, b; /* (C,kH) (1,C) */
};

struct model {
	struct model_config config;
	struct model_heads heads;
	struct backend *backend;
	struct parameter *parameters;
	int64_t parameter_count, slab_count; /* tensors; elements with alignment gaps */
	int64_t element_count;               /* elements without gaps */
	struct tensor slab, gradients;       /* (1, slab_count) master dtype, device memory */
	struct weight word, position, type, embedding_gamma, embedding_beta;
	struct layer_weights *layers; /* [num_hidden_layers] */
	struct weight pooler, pooler_bias;
	struct weight transform, transform_bias, transform_gamma, transform_beta, prediction_bias; /* of LOSS_WORDS */
	struct head_weights head_weights[BATCH_HEADS];                                             /* of the other heads */
	struct head_weights projection; /* of hidden states, if heads.projection: (projection,H) */
	struct weight **weights;        /* all of them, for weights_refresh */
	int64_t weight_count;
	void *copies;         /* device memory of the weights' compute copies */
	struct tensor mirror; /* (1, slab_count) all of them, where the back end mirrors masters; else without data */
	bool borrowed;        /* slab and gradients are not the model's own memory */
	bool forward_only;    /* slab holds what model_allocate_forward() says, not all parameters at their offsets */
	/* Called by model_forward before it reads a layer's weights (-1 embeddings, 0 … L-1, then L: pooler and heads), which
	 * may still be on their way from an update. NULL: they are there. */
	void (*before_layer)(void *context, int32_t layer);
	void *before_context;
};

/* Lays out parameters without allocating device memory: enough for plans and names. `heads` is
 * copied; `config` must have its vocab_size. */
MUST_USE enum status model_create(struct model **out, struct backend *be, const struct model_config *config,
				  const struct model_heads *heads);
/* Device memory that model_allocate takes: slab, gradients (training), compute copies. */
size_t model_bytes(const struct model *model, bool training);
MUST_USE enum status model_allocate(struct model *model, bool training);
/* The same for inference where the back end packs weights as they come (backend_functions.weight_pack): compute copies alone,
 * without masters. The weights are then packed one by one; see parameter_places(). */
MUST_USE enum status model_allocate_copies(struct model *model);
/* The same for forward passes beside a model that is trained on the same back end: masters are kept only where operations read
 * them. Those of linear layers whose products have compute copies pass through one buffer while the weights are set, so that
 * model_get_weights() and model_refresh() are not for such a model. */
MUST_USE enum status model_allocate_forward(struct model *model);
size_t model_forward_bytes(const struct model *model);
/* The same for training with slab and gradients in memory of the caller's, slab_count masters each, that outlives the
 * model: ranks may need memory of their kind. */
MUST_USE enum status model_allocate_in(struct model *model, void *slab, void *gradients);
/* Zeroes gradients of a range of the slab. */
void model_clear_gradients(struct model *model, int64_t offset, int64_t count);
void model_free(struct model *model);
/* Initial weights as BERT: truncated normal 0.02 keyed by (seed, parameter, element); biases 0, gammas 1. Host
 * array of slab_count floats is filled, then sent to the device and refreshed. */
MUST_USE enum status model_initialize(struct model *model, struct replica *replica, uint64_t seed);
/* Masters from or to a host array of slab_count floats, and refreshing the compute copies. */
MUST_USE enum status model_set_weights(struct model *model, struct replica *replica, const float *slab);
MUST_USE enum status model_get_weights(struct model *model, float *slab);
void model_refresh(struct model *model, struct replica *replica);
int64_t model_find_parameter(const struct model *model, const char *name); /* index or -1 */
/* Fills places [parameter_count]. */
void parameter_places(const struct model *model, struct parameter_place *places);

/* Everything forward saves for backward, for one replica and capacity. */
struct activations;
/* Bytes of device memory for a capacity and sequences of up to `longest` tokens; without training layers share their buffers. */
size_t activations_bytes(const struct model *model, struct batch_capacity capacity, int32_t longest, bool training);
MUST_USE enum status activations_create(struct activations **out, const struct model *model, struct batch_capacity capacity,
					int32_t longest, bool training);
void activations_free(struct activations *activations);
/* The largest shapes that operations on such a model will see: batches of up to `capacity`, sequences of up to `longest` tokens.
 */
struct shape_limits model_shape_limits(const struct model_config *config, struct batch_capacity capacity, int32_t longest,
				       bool training);

/* Calls before_layer for every layer: before work that may be recorded, since a recording calls nobody. */
void model_await(const struct model *model);
/* Encoder output of a batch, (T,H), left in activations. `dropout` off for evaluation. */
void model_forward(const struct model *model, struct activations *activations, struct replica *replica, const struct batch *batch,
		   bool dropout);
struct tensor activations_output(const struct activations *activations);

/* What else is to be learned from the outputs of layers (T,H), of which -1 is the embeddings. */
struct layer_taps {
	void *context;
	/* From model_forward, behind each layer; `y` is valid until the next one. */
	void (*forward)(void *context, int32_t layer, struct tensor y);
	/* From model_backward, with the gradient of that output as what is behind it gave it, to be added to. */
	void (*backward)(void *context, int32_t layer, struct tensor gradient);
};
/* Borrowed; NULL: nothing (again). */
void activations_tap(struct activations *activations, const struct layer_taps *taps);

/* The same in parts, in activations without training and without dropout: the embeddings, then `count` layers on what the part
 * before has left as activations_output(). */
void model_embed(const struct model *model, struct activations *activations, struct replica *replica, const struct batch *batch);
void model_layers(const struct model *model, struct activations *activations, struct replica *replica, const struct batch *batch,
		  int32_t first, int32_t count);

/* What heads add to replica->accumulators: head h the sum of its losses, and the weights of what it had right. */
static inline int sum_of_loss(int head)
{
	return 2 * head;
}
static inline int sum_of_correct(int head)
{
	return 2 * head + 1;
}
/* All heads on the last forward, and their losses. When training, also the heads' backward: gradients of their weights and of
 * the encoder output. `overwrite`: first micro-batch of a step. */
void model_losses(const struct model *model, struct activations *activations, struct replica *replica, const struct batch *batch,
		  bool training, bool overwrite);
/* What the heads learn from a teacher besides their labels: outputs of the same shapes as theirs (backend/ops.h, soft_loss). */
struct soft_targets {
	double temperature, share;
	struct tensor outputs[BATCH_HEADS];
};
/* Whether a head of this loss can learn from another's outputs. */
bool head_takes_soft_targets(const struct head *head);
static inline int sum_of_soft_loss(int head)
{
	return 2 * BATCH_HEADS + head;
}
/* model_losses() in training with a teacher. */
void model_soft_losses(const struct model *model, struct activations *activations, struct replica *replica,
		       const struct batch *batch, const struct soft_targets *soft, bool overwrite);
/* The outputs of a head on the last forward, without a loss: (N,C) for N items (of all rows: tokens), in the device's memory
 * until the next call. Not for LOSS_WORDS. */
struct tensor model_outputs(const struct model *model, struct activations *activations, struct replica *replica,
			    const struct batch *batch, int head);
/* What model_losses() has left of a head's outputs, of the same kind. */
struct tensor model_last_outputs(const struct activations *activations, int head);
/* Of a head of INPUT_POOLED_ROWS: takes the gradients of its vectors, (rows,H) in the masters' type in the host's memory, one row
 * for each sequence of the batch that the next model_backward() is for. model_vectors_backward() makes of them what
 * model_losses() leaves when training, on the last forward. */
void model_take_vector_gradients(const struct model *model, struct activations *activations, int head, const void *gradients,
				 int64_t rows);
void model_vectors_backward(const struct model *model, struct activations *activations, struct replica *replica,
			    const struct batch *batch, int head);
/* Zeroes the gradients of a pooler that no head reads, which nothing else writes. */
void model_clear_unused_gradients(const struct model *model);
/* Transformed rows of the head of LOSS_WORDS for the rows that its labels name (P,H): input of vocab_topk. */
struct tensor model_prediction_rows(const struct model *model, struct activations *activations, struct replica *replica,
				    const struct batch *batch);

/* Backward through the encoder and embeddings, after that of the heads. `layer_done(context, layer)` is called when the
 * gradients of a layer (L: pooler and heads, encoder L-1 … 0, then -1 for embeddings) are complete; may be NULL. */
void model_backward(const struct model *model, struct activations *activations, struct replica *replica,
		    const struct batch *batch, bool overwrite, void (*layer_done)(void *context, int32_t layer), void *context);

/* Forward, losses and backward of a batch, one after the other. */
void model_gradients(const struct model *model, struct activations *activations, struct replica *replica,
		     const struct batch *batch, bool overwrite, void (*layer_done)(void *context, int32_t layer), void *context);

/* After forward and backward of a batch whose loss or gradients are not finite: names the first place that is not
 * ("'bert.encoder.layer.3', attention") into `out`. False if everything is finite. Slow: all of it is looked at. */
bool model_locate_not_finite(const struct model *model, const struct activations *activations, bool loss_is_finite, char *out,
			     size_t size);

#endif
