/* A model folder opened for whatever its head can answer, and texts in memory on their way to it: what the service and the
 * library are built on.
 *
 * Any number of threads encode texts and read scores at a time; one computes (infer/encoder.h). */
#ifndef INFER_TEXT_MODEL_H
#define INFER_TEXT_MODEL_H

#include "base/file.h"
#include "infer/encoder.h"
#include "infer/task_session.h"
#include "infer/text_input.h"
#include "weights/model_files.h"
#include "weights/sentence_folder.h"

struct text_model_settings {
	struct device_settings device;
	int64_t batch_tokens;   /* computed at a time */
	int64_t max_seq_length; /* tokens of a text at most; 0: as the folder says */
	bool no_blanks;         /* words are never predicted: an encoder is opened without that head, even where there is one */
	const char *tool;       /* what a message calls the one who asks: "the service", "the library" */
};

/* Zero-initialise; closed also after a failure. */
struct text_model {
	/* What it can do. */
	bool has_task;      /* it has the head of a task: task.state, task.heads */
	bool makes_vectors; /* ENCODER_VECTORS with `pooling` */
	bool fills_blanks;  /* ENCODER_WORDS */
	int32_t longest;    /* tokens of a text */
	int32_t hidden;     /* width of a row */
	unsigned pooling;
	struct sentence_folder sentences;
	struct task_session task;
	struct session session;
	struct encoder *encoder;
	struct model_source source;
	struct model_files files;         /* before any was read */
	struct tokenizer *plain, *blanks; /* special tokens in a text are text; are special tokens */
	/* Private from here. */
	struct task_session_settings task_settings;
	bool is_open;
};

/* Opens a run, a model folder or a sentence-transformers folder on a pool of the caller's. `folder` is borrowed. A folder that
 * answers no texts in memory (multiple choice) is ERR_USAGE. */
MUST_USE enum status text_model_open(struct text_model *out, const char *folder, struct pool *pool,
				     const struct text_model_settings *settings);
void text_model_close(struct text_model *model);
/* The name of a class; `room` is for one that the folder does not name. */
const char *text_model_label(const struct text_model *model, int64_t index, char room[24]);
/* Is a text that is longer than the model takes computed in several sequences? */
bool text_model_takes_windows(const struct text_model *model);
/* Numbers of a vector before any is cut off. */
int64_t text_model_width(const struct text_model *model);

/* Texts as the encoder takes them. Zero-initialise; released also after a failure. */
struct encoded_inputs {
	struct encoder_text *texts; /* [count] */
	int64_t count;              /* of a task there may be several for an input, or none */
	struct task_set set;        /* of a task; its encoded texts belong to it */
	int32_t *ids, *rows;        /* what the texts point to otherwise */
};

struct encoding_rules {
	bool truncates;     /* a text that is too long is cut; otherwise it is ERR_DATA */
	bool cuts_left;     /* at its beginning. Vectors */
	const char *prompt; /* vectors: put before each text; NULL: none */
};

/* For ENCODER_VECTORS, for ENCODER_WORDS (nothing is cut, and each text has a blank) and for ENCODER_HEAD of the model's task.
 * What is wrong with an input is ERR_DATA that names it by its number from 1. */
MUST_USE enum status text_model_encode_vectors(const struct text_model *model, const struct text_input *inputs, int64_t count,
					       const struct encoding_rules *rules, struct encoded_inputs *out);
MUST_USE enum status text_model_encode_blanks(const struct text_model *model, const struct text_input *inputs, int64_t count,
					      struct encoded_inputs *out);
MUST_USE enum status text_model_encode_task(struct text_model *model, const struct text_input *inputs, int64_t count,
					    const struct encoding_rules *rules, struct encoded_inputs *out);
void encoded_inputs_release(const struct text_model *model, struct encoded_inputs *inputs);

/* The prompt of this name, or (NULL) the folder's own, if it has one: *out may be NULL. ERR_USAGE: there is none of that name. */
MUST_USE enum status text_model_prompt(const struct text_model *model, const char *name, const char **out);

/* Scores of all outputs for the logits of one input: probabilities (of a cross-encoder the sigmoid), or, where the outputs are
 * numbers or `raw` is asked for, the logits as they are. */
void text_model_scores(const struct text_model *model, const float *logits, bool raw, double *out);

#endif
