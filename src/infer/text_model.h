/* A model folder opened for whatever its head can answer, and the encoding of texts in memory for it. The service and the library
 * are built on this.
 *
 * Any number of threads may encode texts and read scores at the same time, but only one may compute (infer/encoder.h). */
#ifndef INFER_TEXT_MODEL_H
#define INFER_TEXT_MODEL_H

#include "base/file.h"
#include "infer/encoder.h"
#include "infer/task_session.h"
#include "infer/text_input.h"
#include "weights/model_files.h"
#include "weights/sentence_folder.h"

struct text_model_settings {
	struct device_options device;
	int64_t batch_tokens;    /* tokens computed at a time */
	int64_t max_seq_length;  /* maximum tokens of a text; 0: as the folder says */
	const double *min_score; /* a class or label with a lower probability is not an answer; NULL: as the folder says */
	bool no_blanks;          /* never predict words: open an encoder without the masked-word head, even if it has one */
	/* Models that stay open longer, whose weights are used where they are the same. */
	const struct text_model *const *lenders;
	int64_t lender_count;
	const char *tool; /* the caller's name in messages: "the service", "the library" */
};

/* Zero-initialize; close even after a failure. */
struct text_model {
	/* What it can do. */
	bool has_task;      /* it has a task's head: task.state, task.heads */
	bool makes_vectors; /* ENCODER_VECTORS with `pooling` */
	bool weighs_words;  /* ENCODER_HEAD: a text's weights over the vocabulary (SPLADE) */
	bool fills_blanks;  /* ENCODER_WORDS */
	int32_t longest;    /* maximum tokens of a text */
	int32_t hidden;     /* width of a row */
	unsigned pooling;
	struct sentence_folder sentences;
	struct task_session task;
	struct session session;
	struct encoder *encoder;
	struct model_source source;
	struct model_files files;         /* state before anything was read */
	struct tokenizer *plain, *blanks; /* "[MASK]" and the like in a text are: plain text; special tokens */
	/* Private from here. */
	struct task_session_settings task_settings;
	bool is_open;
};

/* Opens a run, a model folder, or a sentence-transformers folder on the caller's pool. `folder` is borrowed. Returns ERR_USAGE
 * for a model that cannot answer texts in memory (multiple choice). */
MUST_USE enum status text_model_open(struct text_model *out, const char *folder, struct pool *pool,
				     const struct text_model_settings *settings);
void text_model_close(struct text_model *model);
/* The name of a class. `room` holds the name of a class that the folder does not name. */
const char *text_model_label(const struct text_model *model, int64_t index, char room[24]);
/* Whether texts longer than the model takes are split into several sequences. */
bool text_model_takes_windows(const struct text_model *model);
/* The number of dimensions of a vector, before any truncation; of weights, the size of the vocabulary. */
int64_t text_model_width(const struct text_model *model);

/* Texts as the encoder takes them. Zero-initialize; release even after a failure. */
struct encoded_inputs {
	struct encoder_text *texts; /* [count] */
	int64_t count;              /* for a task, an input may have several or none */
	struct task_set set;        /* for a task; owns the encoded texts */
	int32_t *ids, *rows;        /* otherwise: what the texts point into */
};

struct encoding_rules {
	bool truncates;     /* cut texts that are too long; otherwise they give ERR_DATA */
	bool cuts_left;     /* vectors: cut at the beginning of the text */
	const char *prompt; /* vectors: prepended to each text; NULL: none */
	bool pools_prompt;  /* vectors: it is pooled, too, even if the folder leaves it out */
};

/* Encode inputs for ENCODER_VECTORS, for ENCODER_WORDS (nothing is cut, and each text must have a blank), and for ENCODER_HEAD
 * with the model's task. An invalid input gives ERR_DATA; most messages name it by its number, counted from 1. */
MUST_USE enum status text_model_encode_vectors(const struct text_model *model, const struct text_input *inputs, int64_t count,
					       const struct encoding_rules *rules, struct encoded_inputs *out);
MUST_USE enum status text_model_encode_blanks(const struct text_model *model, const struct text_input *inputs, int64_t count,
					      struct encoded_inputs *out);
MUST_USE enum status text_model_encode_task(struct text_model *model, const struct text_input *inputs, int64_t count,
					    const struct encoding_rules *rules, struct encoded_inputs *out);
void encoded_inputs_release(const struct text_model *model, struct encoded_inputs *inputs);

/* Gets the prompt of this name or, if `name` is NULL, the folder's default prompt; *out is NULL if there is none. Returns
 * ERR_USAGE if no prompt has that name. */
MUST_USE enum status text_model_prompt(const struct text_model *model, const char *name, const char **out);

/* Turns the logits of one input into scores for all outputs: probabilities (for a cross-encoder, the sigmoid), or the logits
 * themselves if the task predicts numbers or `raw` is set. */
void text_model_scores(const struct text_model *model, const float *logits, bool raw, double *out);

#endif
