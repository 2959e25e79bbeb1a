/* Knowledge distillation: a student that is fine-tuned learns from a teacher's outputs (Hinton et al. 2015) and hidden states
 * (Jiao et al. 2020, TinyBERT; NVIDIA's DeepLearningExamples) for the same batch, besides its labels. An objective around
 * another one. The loss of a step is
 *
 *   (1 - alpha) loss of the labels + alpha soft loss + hidden_weight * sum over layer pairs of the mean squared error
 *
 * where the soft loss is that of backend/ops.h, at a temperature, and a student narrower or wider than its teacher learns a
 * linear layer along that takes its hidden states, of all pairs, to the teacher's width. */
#ifndef TRAIN_DISTILLATION_H
#define TRAIN_DISTILLATION_H

#include "model/flops.h"
#include "train/objective.h"

/* Layers from 0; -1: the embeddings. */
struct layer_pair {
	int32_t student, teacher;
};

struct distillation_settings {
	double alpha;                    /* share of the soft loss, from 0 to 1 */
	double temperature;              /* of the soft loss */
	double hidden_weight;            /* of the hidden states' error */
	const struct layer_pair *layers; /* [layer_count] ascending on both sides; borrowed */
	int32_t layer_count;
};

/* The teacher and what a student learns from it with, on the student's device and in its precision. */
struct teacher;
/* Its tables: no memory of the device yet. `heads` has the student's head. */
MUST_USE enum status teacher_create(struct teacher **out, struct backend *be, const struct model_config *config,
				    const struct model_heads *heads);
struct model *teacher_model(struct teacher *teacher);
/* Device memory for a student whose batches have these limits: weights without masters that nobody reads, activations without
 * gradients, and gradients of the student's hidden states. */
size_t teacher_bytes(const struct teacher *teacher, const struct shape_limits *student,
		     const struct distillation_settings *settings);
/* FLOPs that learning from it adds to a student's own for batches of this work: the forward pass of the layers that are asked,
 * and the projection of hidden states. */
double teacher_flops(const struct teacher *teacher, const struct model_config *student,
		     const struct distillation_settings *settings, const struct model_work *work);
/* Takes it, and gives it back, to be taken anew. */
MUST_USE enum status teacher_allocate(struct teacher *teacher, const struct shape_limits *student,
				      const struct distillation_settings *settings);
MUST_USE enum status teacher_give_back(struct teacher *teacher);
/* Weights from a host array of the model's slab_count floats. After teacher_allocate(). */
MUST_USE enum status teacher_set_weights(struct teacher *teacher, const float *slab);
void teacher_free(struct teacher *teacher);

/* `inner` is the student's own objective, which the new one owns: closed by its close(), and also if this fails. Everything else
 * is borrowed. Metrics: "loss", then "label_loss", "soft_loss", "hidden_loss" (with layers); an evaluation's "loss" is that of
 * labels, and comes as "label_loss" once more. */
MUST_USE enum status distillation_objective_create(struct objective **out, struct objective *inner, struct teacher *teacher,
						   const struct distillation_settings *settings, const struct model *student,
						   struct activations *activations);

#endif
