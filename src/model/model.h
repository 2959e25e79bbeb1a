/* BERT, built from the operations of backend/ops.h: parameters, forward, loss, backward. The model knows nothing of files and
 * ranks. Post-LN encoder, pooler, MLM head with tied embeddings on masked rows, NSP head, and the heads of tasks. */
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

/* Sizes and constants of a model, with the names that config.json has for BERT. */
struct model_config {
	int32_t form; /* row of model/forms.c; 0: BERT */
	int32_t vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size;
	int32_t max_position_embeddings, type_vocab_size;
	enum activation hidden_act; /* "gelu" = erf, "gelu_new" = tanh, "relu", "silu" */
	double hidden_dropout_prob, attention_probs_dropout_prob;
	/* If `set`, config.json gets these instead: pre-training may use less dropout than fine-tuning should. */
	struct {
		bool set;
		double hidden, attention_probs;
	} saved_dropout;
	double initializer_range, layer_norm_eps;
	double classifier_dropout; /* dropout on the heads' inputs; NaN: hidden_dropout_prob */
	int32_t pad_token_id, bos_token_id, eos_token_id;
	/* What not all forms have (model/forms.h). */
	int32_t embedding_size;   /* 0: hidden_size */
	double embedding_dropout; /* DROPS_EMBEDDINGS */
	double span_dropout;      /* dropout on the input of a head for answers in a text */
	double choice_dropout;    /* of a multiple-choice head, if the form has one of its own */
	struct {
		double global_base, local_base; /* of rotary positions, for layers that see everything, and for others */
		int32_t window; /* tokens that a layer sees to each side; 0: everything, as every `period`th layer always does,
				   beginning with the first */
		int32_t period;
	} attention;
	bool untied;            /* the output layer of masked words has a matrix of its own, not the word embeddings' */
	bool mean_pooling;      /* heads for texts read the mean of a text's rows instead of its first */
	char next_sentence[16]; /* what it was trained on, as --next_sentence names it; "": unknown */
	struct {
		bool attention, feed_forward, norm, decoder, classifier;
	} no_bias;
};

/* The value of "hidden_act" for an activation. */
const char *model_activation_name(enum activation activation);
/* What config.json says about dropout. */
double model_config_saved_dropout(const struct model_config *config, bool attention_probs);

/* Sets the sizes by name: tiny mini small medium base large. Any other name is ERR_USAGE, with a list of the names. vocab_size
 * stays 0. */
MUST_USE enum status model_config_named(struct model_config *out, const char *name);
/* The names of Google's published sizes, from the smallest, with a string literal between them. */
#define MODEL_SIZES(between) "tiny" between "mini" between "small" between "medium" between "base" between "large"
const char *model_size_name(int index); /* from 0; NULL: there are no more */
/* Reads config.json or Google's bert_config.json (in which hidden_act "gelu" is the tanh form; it is recognized by the absence
 * of "model_type"). Absent fields have Hugging Face's defaults, except that an absent vocab_size stays 0: the vocabulary
 * decides. Sizes that do not make a BERT model are ERR_DATA; other model types, activations, and variants that bertc does not
 * compute are ERR_USAGE; both name the field. */
MUST_USE enum status model_config_from_json(struct model_config *out, const struct json *object, const char *name);

/* Makes it a configuration of another form (model/forms.h) for a vocabulary with this padding: sizes stay, except that of a
 * gated feed-forward part, and so does the number of tokens that a sequence may have. Forms without a masked-word head are
 * ERR_USAGE. */
MUST_USE enum status model_config_take_form(struct model_config *config, const char *model_type, int32_t pad_token_id);

/* Sizes that replace those of a configuration; 0: unchanged. */
struct model_sizes {
	const char *form; /* model_type of a new model of a named size; NULL: BERT */
	int64_t num_hidden_layers, hidden_size, num_attention_heads, intermediate_size, max_position_embeddings;
};
/* Applies them. A new hidden_size brings one head per 64 columns (if it is a multiple of 64) and a feed-forward part four
 * times as wide, unless these sizes are given, too. A width that cannot be divided among the heads is ERR_USAGE. */
MUST_USE enum status model_config_resize(struct model_config *config, const struct model_sizes *sizes);
/* ERR_USAGE if the model has a single segment type, so that it cannot take `what`, which consist of two segments. */
MUST_USE enum status model_config_check_pairs(const struct model_config *config, const char *what);
bool model_sizes_any(const struct model_sizes *sizes);

/* One tensor of the parameter slab, in slab order: layer by layer, with query, key, and value adjacent. */
enum parameter_init { INIT_NORMAL, INIT_ZERO, INIT_ONE, INIT_UNIFORM /* within 1 / sqrt(columns) */ };
struct parameter {
	char name[96];         /* its name in Hugging Face's files */
	int64_t rows, columns; /* a vector is (1, n) here and has rank 1 in files */
	int64_t offset, count; /* elements in the slab */
	enum parameter_init init;
	bool decays;   /* weight decay applies: all but biases and layer norms */
	double rate;   /* factor of the learning rate; 0: frozen (see model_set_rates) */
	int32_t layer; /* -1: embeddings, 0..L-1: encoder, L: pooler and heads */
	int32_t depth; /* the layer to which its name belongs: `layer`, but with pre-norm the layer whose input a norm is, or L */
	bool training; /* used only in training: in checkpoints, but not in a finished model */
};

/* The tensor's rank in files: biases and layer norms are vectors, all others (those that decay) matrices. */
static inline int parameter_rank(const struct parameter *parameter)
{
	return parameter->decays ? 2 : 1;
}

/* Where a parameter lies in the weights that operations use. */
struct parameter_place {
	int64_t weight; /* index into model->weights */
	int64_t row;    /* the parameter's first row in that weight; for a vector, its first column */
};

struct layer_weights {
	struct weight qkv, qkv_bias, attention_output, attention_output_bias, attention_gamma, attention_beta;
	struct weight intermediate, intermediate_bias, output, output_bias, output_gamma, output_beta;
};

/* A weight of a model, or NULL if its form lacks it. */
static inline const struct weight *weight_of(const struct weight *weight)
{
	return weight->master.columns > 0 ? weight : NULL;
}

/* The same, or NULL if it is frozen. */
static inline const struct weight *learning(const struct weight *weight)
{
	return weight->gradient.columns > 0 ? weight : NULL;
}

/* The linear layer of a head. */
struct head_weights {
	struct weight w, b; /* (C,kH) (1,C) */
};

/* A matrix of the encoder to which a product of small matrices is added (model/low_rank.h). */
struct adapted {
	int64_t base, a;                  /* parameters: the matrix, A; B is the next */
	struct weight *weight;            /* what operations use: the sum, whose gradient serves those of A and B */
	int64_t row;                      /* the matrix's first row in it */
	struct weight a_weight, b_weight; /* no operation reads them */
};

struct model {
	struct model_config config;
	struct model_heads heads;
	struct backend *backend;
	struct parameter *parameters;
	int64_t parameter_count, slab_count;  /* number of tensors; of elements, including alignment gaps */
	int64_t element_count;                /* number of elements without gaps */
	int64_t frozen_count, frozen_weights; /* parameters and weights before the first one that learns */
	int64_t frozen_elements;              /* elements of the slab before it */
	int32_t lowest_layer;                 /* where backward ends, as parameter.layer: below it nothing learns */
	struct tensor slab;                   /* (1, slab_count) master dtype, device memory, like the next one */
	struct tensor gradients;              /* (1, slab_count - frozen_elements) */
	struct weight word, position, type, embedding_gamma, embedding_beta;
	struct weight embedding_projection, embedding_projection_bias; /* (H,E) (1,H) if embeddings are narrower than H */
	struct layer_weights *layers;                                  /* [num_hidden_layers] */
	struct weight pooler, pooler_bias;                             /* the encoder's, or a head's own layer in its place */
	struct weight transform, transform_bias, transform_gamma, transform_beta, prediction_bias; /* of LOSS_WORDS */
	struct weight decoder;                         /* (V,E) its output layer, if config.untied */
	struct head_weights head_weights[BATCH_HEADS]; /* of the other heads */
	struct head_weights projection;                /* of hidden states, if heads.projection > 0: (projection,H) */
	/* [weight_count] for inference: the weight of another model whose compute copy is used, or NULL. NULL: there is none. */
	const struct weight **shared;
	struct adapted *adapted; /* [adapted_count] in the order of the parameters */
	int64_t adapted_count;
	void *sums, *frozen_gradients; /* device memory for the sums, and for the gradients of a layer's frozen weights */
	double *low_rank_numbers;      /* room on the host */
	struct weight **weights;       /* all weights, for weights_refresh */
	int64_t weight_count;
	void *copies;         /* device memory of the weights' compute copies */
	struct tensor mirror; /* (1, slab_count) all compute copies, if the back end mirrors masters; otherwise without data */
	bool borrowed;        /* slab and gradients are in the caller's memory */
	bool forward_only;    /* slab holds what model_allocate_forward() describes, not all parameters at their offsets */
	/* Called by model_forward before it reads a layer's weights (-1: embeddings, 0 … L-1: encoder, L: pooler and heads),
	 * which may still be arriving after an update. NULL: they are always there. */
	void (*before_layer)(void *context, int32_t layer);
	void *before_context;
};

/* The matrix (V,E) of the output layer of masked words. */
static inline const struct weight *model_output_table(const struct model *model)
{
	return model->config.untied ? &model->decoder : &model->word;
}

/* Lays out the parameters without allocating device memory: enough for plans and names. `heads` is copied; `config` must have
 * its vocab_size. */
MUST_USE enum status model_create(struct model **out, struct backend *be, const struct model_config *config,
				  const struct model_heads *heads);
/* Sets the factor of the learning rate of every parameter, rates [parameter_count], before memory is allocated. A parameter whose
 * factor is 0 is frozen: it has no gradient and no moments, its weight's `gradient` is empty, and layers in and below which
 * nothing learns have no backward pass. Frozen parameters must come before all others, and be whole weights. */
void model_set_rates(struct model *model, const double *rates);
/* Bytes of device memory that model_allocate takes: slab, gradients (training), compute copies. */
size_t model_bytes(const struct model *model, bool training);
MUST_USE enum status model_allocate(struct model *model, bool training);
/* The same for inference if the back end packs weights as they arrive (backend_functions.weight_pack): only compute copies,
 * without masters. The weights are then packed one by one; see parameter_places(). */
MUST_USE enum status model_allocate_copies(struct model *model);
/* The same for forward passes beside a model that is being trained on the same back end: masters are kept only if operations
 * read them. The masters of linear layers whose products use compute copies pass through one buffer while the weights are set,
 * so model_get_weights() and model_refresh() must not be called for such a model. */
MUST_USE enum status model_allocate_forward(struct model *model);
size_t model_forward_bytes(const struct model *model);
/* The same for training with slab and gradients in the caller's memory, as many masters as they have columns, which must outlive
 * the model: ranks may need memory of a particular kind. */
MUST_USE enum status model_allocate_in(struct model *model, void *slab, void *gradients);
/* Zeroes the gradients in a range of the slab, in which nothing is frozen. */
void model_clear_gradients(const struct model *model, int64_t offset, int64_t count);
void model_free(struct model *model);
/* Sets initial weights as in BERT: truncated normal with initializer_range, keyed by (seed, parameter, element); biases 0,
 * gammas 1. They are drawn into a host array of slab_count floats, sent to the device, and the compute copies are refreshed. */
MUST_USE enum status model_initialize(struct model *model, struct replica *replica, uint64_t seed);
/* Copies the masters from or to a host array of slab_count floats, and refreshes the compute copies. */
MUST_USE enum status model_set_weights(struct model *model, struct replica *replica, const float *slab);
MUST_USE enum status model_get_weights(struct model *model, float *slab);
void model_refresh(struct model *model, struct replica *replica);
int64_t model_find_parameter(const struct model *model, const char *name); /* returns the index or -1 */
/* Fills places [parameter_count]. */
void parameter_places(const struct model *model, struct parameter_place *places);

/* Everything that forward saves for backward, for one replica and capacity. */
struct activations;
/* Bytes of device memory for a capacity and sequences of up to `longest` tokens; outside of training, the layers share their
 * buffers. */
size_t activations_bytes(const struct model *model, struct batch_capacity capacity, int32_t longest, bool training);
MUST_USE enum status activations_create(struct activations **out, const struct model *model, struct batch_capacity capacity,
					int32_t longest, bool training);
void activations_free(struct activations *activations);
/* The largest shapes that operations on such a model will see: batches of up to `capacity`, sequences of up to `longest`
 * tokens. */
struct shape_limits model_shape_limits(const struct model_config *config, struct batch_capacity capacity, int32_t longest,
				       bool training);

/* Calls before_layer for every layer: needed before work that may be recorded, since replaying a recording calls nothing. */
void model_await(const struct model *model);
/* Computes the encoder's output of a batch, (T,H), and leaves it in the activations. `dropout` is off for evaluation. */
void model_forward(const struct model *model, struct activations *activations, struct replica *replica, const struct batch *batch,
		   bool dropout);
struct tensor activations_output(const struct activations *activations);
/* A layer's hidden states as transformers gives them, (T,H): with pre-norm, those of all but the last are not normed. Layer -1 is
 * the embeddings. Outside of training, only of the last layer that was computed. */
struct tensor activations_hidden(const struct activations *activations, int32_t layer);

/* Additional learning from the outputs of layers (T,H); layer -1 is the embeddings. */
struct layer_taps {
	void *context;
	/* Called by model_forward after each layer; `y` is valid until the next call. */
	void (*forward)(void *context, int32_t layer, struct tensor y);
	/* Called by model_backward with the gradient of that output as it comes from the layers above, to be added to. */
	void (*backward)(void *context, int32_t layer, struct tensor gradient);
};
/* `taps` is borrowed; NULL removes them. */
void activations_tap(struct activations *activations, const struct layer_taps *taps);

/* model_forward() in parts, in activations without training and without dropout: the embeddings, then `count` layers on what
 * the previous part has left as activations_output(). */
void model_embed(const struct model *model, struct activations *activations, struct replica *replica, const struct batch *batch);
void model_layers(const struct model *model, struct activations *activations, struct replica *replica, const struct batch *batch,
		  int32_t first, int32_t count);

/* What heads add to replica->accumulators: head h adds the sum of its losses, and the weights of the items that it had right. */
static inline int sum_of_loss(int head)
{
	return 2 * head;
}
static inline int sum_of_correct(int head)
{
	return 2 * head + 1;
}
/* Runs all heads on the last forward and computes their losses. When training, also runs the heads' backward: gradients of
 * their weights and of the encoder's output. `overwrite`: first micro-batch of a step. */
void model_losses(const struct model *model, struct activations *activations, struct replica *replica, const struct batch *batch,
		  bool training, bool overwrite);
/* What the heads learn from a teacher besides their labels: outputs of the same shapes as their own (backend/ops.h,
 * soft_loss). */
struct soft_targets {
	double temperature, share;
	struct tensor outputs[BATCH_HEADS];
};
/* Whether a head can learn from another model's outputs. */
bool head_takes_soft_targets(const struct head *head);
static inline int sum_of_soft_loss(int head)
{
	return 2 * BATCH_HEADS + head;
}
/* model_losses() for training with a teacher. */
void model_soft_losses(const struct model *model, struct activations *activations, struct replica *replica,
		       const struct batch *batch, const struct soft_targets *soft, bool overwrite);
/* Computes a head's outputs on the last forward, without a loss: (N,C) for N items (all rows: tokens), in device memory until
 * the next call. Not for LOSS_WORDS. */
struct tensor model_outputs(const struct model *model, struct activations *activations, struct replica *replica,
			    const struct batch *batch, int head);
/* The same outputs of a head, as model_losses() left them. */
struct tensor model_last_outputs(const struct activations *activations, int head);
/* For a head with INPUT_POOLED_ROWS. model_take_vector_gradients() takes the gradients of its vectors, (rows,C) in the
 * masters' type in host memory, one row for each sequence of the batch that the next model_backward() is for. From these,
 * model_vectors_backward() computes what model_losses() leaves in training, for the last forward. */
void model_take_vector_gradients(const struct model *model, struct activations *activations, int head, const void *gradients,
				 int64_t rows);
void model_vectors_backward(const struct model *model, struct activations *activations, struct replica *replica,
			    const struct batch *batch, int head, bool overwrite);
/* Zeroes the gradients of a pooler that no head reads, since nothing else writes them. */
void model_clear_unused_gradients(const struct model *model);
/* The transformed rows of the head with LOSS_WORDS, for the rows that its labels refer to (P,H): the input of vocab_topk. */
struct tensor model_prediction_rows(const struct model *model, struct activations *activations, struct replica *replica,
				    const struct batch *batch);

/* Backward through the encoder and embeddings, after that of the heads, down to the lowest layer that learns.
 * `layer_done(context, layer)` is called when a layer's gradients are complete (L: pooler and heads, then encoder L-1 … 0, then
 * -1: embeddings); may be NULL. */
void model_backward(const struct model *model, struct activations *activations, struct replica *replica,
		    const struct batch *batch, bool overwrite, void (*layer_done)(void *context, int32_t layer), void *context);

/* Forward, losses, and backward of a batch, in sequence. */
void model_gradients(const struct model *model, struct activations *activations, struct replica *replica,
		     const struct batch *batch, bool overwrite, void (*layer_done)(void *context, int32_t layer), void *context);

/* After forward and backward of a batch whose loss or gradients are not finite: writes the first place that is not finite
 * ("'bert.encoder.layer.3', attention") to `out`. False if everything is finite. Slow, since it examines everything. */
bool model_locate_not_finite(const struct model *model, const struct activations *activations, bool loss_is_finite, char *out,
			     size_t size);

#endif
