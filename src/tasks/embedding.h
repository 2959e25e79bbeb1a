/* The task embedding: vectors of texts, compared by their cosines. */
#ifndef TASKS_EMBEDDING_H
#define TASKS_EMBEDDING_H

#include "base/option.h"
#include "tasks/contrastive.h"
#include "tasks/ranking_file.h"
#include "tasks/task.h"

enum embedding_pooling { EMBEDDING_POOLING_OPEN, EMBEDDING_MEAN, EMBEDDING_CLS, EMBEDDING_SPLADE };
enum embedding_loss { EMBEDDING_COSENT, EMBEDDING_COSINE }; /* for pairs with scores */
enum embedding_triplet_loss { EMBEDDING_IN_BATCH, EMBEDDING_MARGIN };

/* The task's own settings. */
struct embedding_settings {
	/* Put verbatim before the first text of an example, and before its other texts; NULL or "": nothing. */
	const char *query_prompt, *document_prompt;
	double temperature;        /* 0: the default (0.05; with EMBEDDING_SPLADE 1) */
	double false_negative_gap; /* 2: no text is taken for a false negative; with a guide as 0 */
	const char *guide;         /* folder of a model whose vectors decide on that; NULL: the model itself does */
	enum embedding_pooling pooling;
	enum embedding_loss score_loss;
	enum embedding_triplet_loss triplet_loss;
	const char *train_losses, *train_weights; /* of training sets, by their names: "a:cosine,b:in_batch"; "a:2,b:1" */
	double query_regularizer_weight, document_regularizer_weight; /* of FLOPS, with EMBEDDING_SPLADE */
	const char *matryoshka_dims, *matryoshka_weights;             /* numbers separated by commas */
	const char *teacher_vectors; /* an array file: a vector for each row of the training set */
	/* No option: the prompts come from a model's folder that does not say what they apply to, so that they are used for files
	 * of pairs and triplets, whose texts are queries and documents. Otherwise they are used for all files. */
	bool prompts_of_folder;
	struct nested_widths nested; /* no option: what matryoshka_dims and matryoshka_weights say */
};

extern const struct option embedding_rows[];

/* The vectors of a set's texts, in the form that losses and measures take. Zero-initialize. */
struct vector_set {
	struct contrastive_step all; /* vectors are borrowed from the outputs, scores from the set */
	int64_t *starts, *part;
	uint64_t *texts;
};
/* Makes it from a model's outputs for all examples of a set. */
MUST_USE enum status vector_set_make(struct vector_set *out, const struct task_set *set, const struct task_outputs *outputs);
/* Consecutive examples of it; valid until the next call. */
struct contrastive_step vector_set_part(struct vector_set *set, int64_t first, int64_t count);
void vector_set_release(struct vector_set *set);

/* Sets the form of a set's examples, for sets that do not come from a file; otherwise reading does that. */
MUST_USE enum status embedding_set_form(struct task_set *set, enum ranking_form form);

#endif
