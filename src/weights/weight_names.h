/* What tensors are called in the files of Hugging Face, Google and NVIDIA: the tables of weight_names.c. Ours are Hugging
 * Face's present names (parameters.c). */
#ifndef WEIGHTS_WEIGHT_NAMES_H
#define WEIGHTS_WEIGHT_NAMES_H

#include <stdbool.h>

/* Names of parameters whose rows depend on vocabulary and positions. */
#define WORD_EMBEDDINGS "bert.embeddings.word_embeddings.weight"
#define POSITION_EMBEDDINGS "bert.embeddings.position_embeddings.weight"
#define PREDICTION_BIAS "cls.predictions.bias"
/* Those whose rows are the classes of a task. */
#define CLASSIFIER_WEIGHT "classifier.weight"
#define CLASSIFIER_BIAS "classifier.bias"
/* The matrix whose two rows score the beginning and the end of an answer. */
#define SPAN_WEIGHT "qa_outputs.weight"
#define SPAN_BIAS "qa_outputs.bias"

enum tensor_meaning {
	MEANS_PARAMETER,   /* perhaps of a BERT: `name` is what we would call it */
	MEANS_BUFFER,      /* constants that PyTorch modules carry along */
	MEANS_OPTIMIZER,   /* moments and other state of an optimiser */
	MEANS_BOOKKEEPING, /* counters of a training run */
};

struct tensor_name {
	enum tensor_meaning meaning;
	char name[256];
	bool transposed; /* a matrix stored as (inputs, outputs) */
};

struct tensor_name tensor_name_from(const char *stored);
/* The other way round: what Google's code calls a parameter of ours. False: nothing. */
bool tensor_name_to_google(const char *ours, struct tensor_name *out);

#endif
