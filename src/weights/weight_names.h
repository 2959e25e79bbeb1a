/* The names of tensors in the files of Hugging Face, Google, and NVIDIA, from the tables in weight_names.c. Our names are Hugging
 * Face's current ones for BERT (model/parameters.c), whatever the form; model/forms.c has those of the other forms. */
#ifndef WEIGHTS_WEIGHT_NAMES_H
#define WEIGHTS_WEIGHT_NAMES_H

#include <stdbool.h>
#include "model/model.h"

/* Parameters whose rows are vocabulary entries or positions. */
#define WORD_EMBEDDINGS "bert.embeddings.word_embeddings.weight"
#define POSITION_EMBEDDINGS "bert.embeddings.position_embeddings.weight"
#define PREDICTION_BIAS "cls.predictions.bias"
/* The output layer of masked words, which in most models is the two above. */
#define DECODER_WEIGHT "cls.predictions.decoder.weight"
#define DECODER_BIAS "cls.predictions.decoder.bias"
/* A layer of a head's own in the pooler's place. */
#define CLASSIFIER_DENSE "classifier.dense"
/* Parameters whose rows are the classes of a task. */
#define CLASSIFIER_WEIGHT "classifier.weight"
#define CLASSIFIER_BIAS "classifier.bias"
/* Parameters whose two rows score the beginning and the end of an answer. */
#define SPAN_WEIGHT "qa_outputs.weight"
#define SPAN_BIAS "qa_outputs.bias"

enum tensor_meaning {
	MEANS_PARAMETER,   /* possibly of a BERT: `name` is our name for it */
	MEANS_BUFFER,      /* constants that PyTorch modules carry along */
	MEANS_OPTIMIZER,   /* moments and other optimizer state */
	MEANS_BOOKKEEPING, /* counters of a training run */
};

struct tensor_name {
	enum tensor_meaning meaning;
	char name[256];
	bool transposed; /* a matrix stored as (inputs, outputs) */
};

/* What a tensor stored under this name is. */
struct tensor_name tensor_name_from(const char *stored);
#define TENSOR_NAME_BYTES 160
/* The reverse: what transformers' class for the model's form and heads calls one of its parameters. */
void tensor_name_to_form(const struct model *model, const char *ours, char out[TENSOR_NAME_BYTES]);
/* What Google's code calls one of our parameters. False: it has no name for it. */
bool tensor_name_to_google(const char *ours, struct tensor_name *out);

#endif
