/* Initial weights with which attention heads start by looking at a neighboring token. With BERT's random weights, all scores
 * are nearly equal and every head averages over the whole text, from which there is next to nothing to learn: this causes the
 * long plateau at the start of pre-training. For attention as a convolution with suitable weights, see Cordonnier, Loukas, and
 * Jaggi 2020, "On the relationship between self-attention and convolutional layers"; for such initial weights, d'Ascoli et al.
 * 2021 (ConViT), and Trockman and Kolter 2023, "Mimetic initialization of self-attention layers". The form of the model is
 * unchanged. */
#ifndef MODEL_NEIGHBOR_ATTENTION_H
#define MODEL_NEIGHBOR_ATTENTION_H

#include "model/model.h"

/* The relative position at which a head starts to look: -1, 1, -2, 2, ...; if there is only one such head per layer, -1 and 1
 * alternate from layer to layer. The second half of a layer's heads have no offset (0): they start like BERT's, looking
 * everywhere equally. Without them, [CLS] would see nothing but the beginning of its text. */
int32_t neighbor_offset(int32_t layer, int32_t head, int32_t heads);

/* Whether it can be done with a model's form. */
bool neighbor_attention_fits(const struct model_config *config);
/* Changes the initial weights, slab [slab_count] as drawn by model_initialize(). Learned positions become sinusoids, which the
 * query and key weights of heads with an offset extract again, the query's being shifted by the offset. With rotary positions,
 * all word embeddings get the same number in their first column, from which these weights make a query and a key. */
void neighbor_attention_set(const struct model *model, float *slab);

#endif
