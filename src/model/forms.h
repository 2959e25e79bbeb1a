/* The forms of the encoder: what distinguishes the models that people call BERT. forms.c has a row for each "model_type" of
 * config.json. Code reads the row's fields and never asks which form it is, so that adding a form means adding a row. */
#ifndef MODEL_FORMS_H
#define MODEL_FORMS_H

#include "model/model.h"

enum position_kind {
	POSITIONS_LEARNED, /* a table of embeddings */
	POSITIONS_ROTARY,  /* query and key are rotated (Su et al. 2021); no table */
};

/* Whose probability applies at a place with dropout. */
enum dropout_kind {
	DROPS_HIDDEN,     /* hidden_dropout_prob */
	DROPS_ATTENTION,  /* attention_probs_dropout_prob */
	DROPS_EMBEDDINGS, /* embedding_dropout */
	DROPS_NOTHING,
};

/* What precedes the last linear layer of a task's head: dropout, a square linear layer, an activation, a norm, dropout. */
struct head_form {
	bool shared;                /* the linear layer is the encoder's pooler, otherwise the head's own */
	bool drops;                 /* dropout on the linear layer's input, too */
	bool has_norm;              /* a layer norm follows the activation: all of it is the masked-word head's transform */
	bool own_dropout;           /* the dropout after it is choice_dropout, not classifier_dropout */
	bool hidden_dropout;        /* or hidden_dropout_prob */
	enum activation activation; /* ACTIVATION_NONE: the linear layer is missing, too */
	/* What files call the head's own layer ("classifier.dense" in the model) and the last layer ("classifier"); NULL: the
	 * same. */
	const char *dense, *linear;
};

/* A part of a tensor's name, with the dot that ends it, or a whole name: in the model and in files. */
struct form_name {
	const char *ours, *theirs;
};

/* The names of fields in config.json; NULL: the form has no such field, and the value is always that of its defaults. */
struct config_keys {
	const char *hidden_size, *layers, *heads, *intermediate_size, *activation;
	const char *hidden_dropout, *attention_dropout, *classifier_dropout, *embedding_dropout, *span_dropout, *choice_dropout;
	const char *layer_norm_eps, *types, *embedding_size;
	const char *begin_id, *end_id;
};

struct model_form {
	const char *model_type;
	const char *classes;           /* how the names of transformers' classes begin where BERT's begin with "Bert" */
	const struct form_name *names; /* applied in this order; ended by a row of NULLs. NULL: the names are the model's */
	/* The encoder. */
	bool fused;            /* query, key, and value are one tensor in files */
	bool pre_norm;         /* norms precede the sub-layers, and a final one the heads; the first layer's attention has none */
	bool gated;            /* feed-forward: act(first half) * second half */
	bool gate_apart;       /* the halves are two tensors in files */
	bool has_types;        /* a table of segment types */
	bool pairs_need_types; /* the segments of a pair must have different types */
	enum position_kind positions;
	bool positions_after_pad; /* position 0 is row pad_token_id + 1 of the table */
	enum dropout_kind embedding_dropout, attention_output_dropout, inner_dropout, output_dropout;
	/* The heads. */
	bool has_pooler;                          /* of the encoder */
	bool has_next_sentence;                   /* pre-trained models have a next-sentence head */
	bool has_words;                           /* pre-trained models have a masked-word head */
	enum activation words_activation;         /* of the masked-word head; ACTIVATION_NONE: hidden_act */
	struct head_form first_row, choice, rows; /* of a head for texts, for multiple choice, for each token */
	const char *span_layer;                   /* the layer of a head for answers in a text; NULL: "qa_outputs" */
	bool byte_pairs;                          /* published models have a byte-level BPE */
	bool is_googles;                          /* Google's code, and thus TensorFlow's checkpoints, have this form */
	/* config.json. */
	const struct config_keys *keys;
	const struct model_config *defaults; /* of absent fields */
	/* Fields that only this form has; NULL: none. `members`: their names, each between spaces. */
	const char *members;
	enum status (*read)(struct model_config *config, const struct json *object, const char *name);
	void (*write)(const struct model_config *config, struct json_writer *writer);
};

const struct model_form *model_form_of(const struct model_config *config);
/* The rows, from 0; NULL: there are no more. The first is BERT. */
const struct model_form *model_form_at(int32_t index);
/* The number of the row with this model_type, or ERR_USAGE with a list of the known ones. `name` is the file's. */
MUST_USE enum status model_form_find(const char *model_type, const char *name, int32_t *out);

/* What precedes the last linear layer of a head. */
const struct head_form *model_head_form(const struct model_config *config, const struct head *head);
/* Whether a head reads rows through the transform of the masked-word head (linear layer, activation, norm). */
bool model_head_transforms(const struct model_config *config, const struct head *head);
/* Whether the head reads the mean of a sequence's rows instead of the first. */
bool model_head_pools_mean(const struct model_config *config, const struct head *head);
/* Outputs of the first linear layer of the feed-forward part: twice as many as inputs of the second if it is gated. */
int32_t model_wide_size(const struct model_config *config);
/* The usual number of inputs of the second, for new models: four times the hidden size, or as many as cost the same if it is
 * gated. */
int32_t model_usual_intermediate(const struct model_config *config);
/* Whether a layer's attention sees everything, whatever the window. */
bool model_layer_is_global(const struct model_config *config, int32_t layer);
/* The heads of a model that predicts words: with next sentences if the form has them. */
const struct model_heads *model_heads_of_words(const struct model_config *config);
enum activation model_words_activation(const struct model_config *config);
/* Whether the model takes two texts in one sequence. */
bool model_takes_pairs(const struct model_config *config);

/* The row of the table of positions that belongs to a text's first token. */
int32_t model_first_position(const struct model_config *config);
/* How many tokens a sequence may have. */
int32_t model_positions(const struct model_config *config);
/* Columns of the embeddings, from which a linear layer leads to hidden_size if that is different. */
int32_t model_embedding_size(const struct model_config *config);

#endif
