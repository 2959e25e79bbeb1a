/* Knowledge distillation: a student being fine-tuned learns from a teacher's outputs (Hinton et al. 2015) and hidden states
 * (Jiao et al. 2020, TinyBERT; NVIDIA's DeepLearningExamples) for the same batch, besides its labels. This is an objective
 * wrapped around another one. The loss of a step is
 *
 *   (1 - alpha) * label loss + alpha * soft loss + hidden_weight * sum over layer pairs of the mean squared error
 *
 * where the soft loss is that of backend/ops.h, at a temperature. If the student's width differs from the teacher's, the
 * student also learns a linear layer, shared by all pairs, that takes its hidden states to the teacher's width. */
#ifndef TRAIN_DISTILLATION_H
#define TRAIN_DISTILLATION_H

#include "model/flops.h"
#include "train/objective.h"

/* Layers are numbered from 0; -1: the embeddings. */
struct layer_pair {
	int32_t student, teacher;
};

struct distillation_settings {
	double alpha;                    /* weight of the soft loss, from 0 to 1 */
	double temperature;              /* of the soft loss */
	double hidden_weight;            /* weight of the hidden states' error */
	const struct layer_pair *layers; /* [layer_count] ascending on both sides; borrowed */
	int32_t layer_count;
};

/* The teacher and the memory that a student needs to learn from it, on the student's device and in its precision. */
struct teacher;
/* Creates its tables, without device memory. `heads` has the student's head. */
MUST_USE enum status teacher_create(struct teacher **out, struct backend *be, const struct model_config *config,
				    const struct model_heads *heads);
struct model *teacher_model(struct teacher *teacher);
/* Bytes of device memory for a student whose batches have these limits: forward-only weights, mostly without masters,
 * activations without gradients, and gradients of the student's hidden states. */
size_t teacher_bytes(const struct teacher *teacher, const struct shape_limits *student,
		     const struct distillation_settings *settings);
/* FLOPs that learning from the teacher adds to a student's own, for batches of this work: the forward pass of the layers that
 * are needed, and the projection of hidden states. */
double teacher_flops(const struct teacher *teacher, const struct model_config *student,
		     const struct distillation_settings *settings, const struct model_work *work);
/* Allocates that device memory; frees it again, after which it can be allocated anew. */
MUST_USE enum status teacher_allocate(struct teacher *teacher, const struct shape_limits *student,
				      const struct distillation_settings *settings);
MUST_USE enum status teacher_give_back(struct teacher *teacher);
/* Sets the weights from a host array with the model's slab_count floats. After teacher_allocate(). */
MUST_USE enum status teacher_set_weights(struct teacher *teacher, const float *slab);
void teacher_free(struct teacher *teacher);

/* The new objective owns `inner`, the student's own objective: its close() closes it, as does a failure of this function.
 * Everything else is borrowed. Metrics: "loss", then "label_loss", "soft_loss", and "hidden_loss" (with layers); in an
 * evaluation, "loss" is the label loss, which is repeated as "label_loss". */
MUST_USE enum status distillation_objective_create(struct objective **out, struct objective *inner, struct teacher *teacher,
						   const struct distillation_settings *settings, const struct model *student,
						   struct activations *activations);

#endif
