/* Initial weights with which attention heads begin by looking at a neighboring token. With BERT's draw, scores are all but equal
 * and every head averages over the whole text, from which there is next to nothing to learn: that is the long plateau at the
 * start of pre-training. That attention with suitable weights is a convolution: Cordonnier, Loukas, and Jaggi 2020, "On the
 * relationship between self-attention and convolutional layers"; as initial weights: d'Ascoli et al. 2021 (ConViT), Trockman and
 * Kolter 2023, "Mimetic initialization of self-attention layers". The form of the model is unchanged. */
#ifndef MODEL_NEIGHBOR_ATTENTION_H
#define MODEL_NEIGHBOR_ATTENTION_H

#include "model/model.h"

/* The position, relative to its own, at which a head begins to look: -1, 1, -2, 2, ...; with one such head per layer, -1 and 1 in
 * alternation. The second half of a layer's heads has none, 0: they begin as BERT's, looking everywhere alike, without which
 * [CLS] would see nothing but the beginning of its text. */
int32_t neighbor_offset(int32_t layer, int32_t head, int32_t heads);

/* Changes initial weights, slab [slab_count] as model_initialize() draws them: positions become sinusoids, and the query and key
 * weights of heads with an offset pick them out again, those of the query shifted by the offset. */
void neighbor_attention_set(const struct model *model, float *slab);

#endif
