/* How many tokens per micro-batch had best have on a GPU. A product's output is cut into tiles of 128 x 256, each of which one
 * multiprocessor computes; as many tiles as there are multiprocessors are a wave, and the last wave takes as long as a whole one
 * however few tiles it has. Where a step needs several micro-batches, their size is ours to choose. */
#ifndef RUN_WAVES_H
#define RUN_WAVES_H

#include <stdint.h>

struct wave_model {
	int32_t processors;           /* of the device */
	int64_t hidden, intermediate; /* widths of the model */
};

/* Tokens of which all multiples fill whole waves in every product of an encoder layer that has one row per token: the four
 * forward and their four gradients of x. (Those of weights have other rows, and are cut along the tokens.) */
int64_t waves_quantum(const struct wave_model *model);
/* What an encoder layer takes for a micro-batch of so many tokens, as FLOPs that the device could have done meanwhile: whole
 * waves of those products, those of weights, and what a micro-batch costs besides (gradients are read and written once more). */
double waves_cost(const struct wave_model *model, int64_t tokens);
/* Share of the waves of those products that their tiles fill. */
double waves_filled(const struct wave_model *model, int64_t tokens);

/* What a rank has to do in a step, one micro-batch after the other. */
struct wave_work {
	int64_t instances; /* at most */
	int32_t longest;   /* tokens of an instance */
	double mean;
	int64_t most; /* tokens that there is memory for in a micro-batch; at least `longest` */
	/* Tokens that a micro-batch is filled up to (backend_functions.filled). NULL: it stays as it is. */
	int32_t (*filled)(int32_t tokens, int32_t sequences, int32_t longest);
};
/* Tokens of the largest micro-batch under this capacity, as it is filled up. */
int32_t waves_shape(const struct wave_work *work, int64_t capacity);
/* The capacity in tokens, of those up to `most`, with which the step's micro-batches cost least; of several the smallest. Lengths
 * vary from step to step: their sum is looked at a deviation above and below its mean, too. */
int64_t waves_choose(const struct wave_model *model, const struct wave_work *work);

#endif
