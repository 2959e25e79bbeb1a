/* How many tokens a micro-batch should have on a GPU. A matrix product's output is divided into tiles of 128 x 256, each computed
 * by one multiprocessor; as many tiles as there are multiprocessors make a wave, and the last wave takes as long as a full one
 * however few tiles it has. Where a step needs several micro-batches, we are free to choose their size. */
#ifndef MODEL_WAVES_H
#define MODEL_WAVES_H

#include <stdint.h>

struct wave_model {
	int32_t processors;           /* of the device */
	int64_t hidden, intermediate; /* widths of the model */
};

/* The cost of a micro-batch of `tokens` in an encoder layer, as the FLOPs that the device could have done in that time: whole
 * waves of the products with one row per token (the four forward products and their four gradients of x), the products for weight
 * gradients (whose tiles are divided along the tokens), and what each micro-batch costs besides (gradients are read and written
 * once more). */
double waves_cost(const struct wave_model *model, int64_t tokens);
/* The share of the waves of products with one row per token that is filled with tiles. */
double waves_filled(const struct wave_model *model, int64_t tokens);

/* The number of tokens, from `least` to twice as many, with which that share is largest; the smallest of several. */
int64_t waves_fullest(const struct wave_model *model, int64_t least);

/* What a rank has to do in a step, micro-batch by micro-batch. */
struct wave_work {
	int64_t instances; /* at most */
	int32_t longest;   /* tokens in an instance */
	double mean;
	int64_t most; /* tokens per micro-batch for which there is memory; at least `longest` */
	/* Number of tokens that a micro-batch is padded to (backend_functions.filled). NULL: no padding. */
	int32_t (*filled)(int32_t tokens, int32_t sequences, int32_t longest);
};
/* Number of tokens of the largest micro-batch of this capacity, including padding. */
int32_t waves_shape(const struct wave_work *work, int64_t capacity);
/* The capacity in tokens, up to `most`, with which the step's micro-batches cost least; the smallest of several. Lengths vary
 * from step to step: totals one standard deviation above and below the mean are considered, too. */
int64_t waves_choose(const struct wave_model *model, const struct wave_work *work);

#endif
