/* What --task embedding gives: vectors of texts, compared by their cosines. */
#ifndef TASKS_EMBEDDING_H
#define TASKS_EMBEDDING_H

#include "tasks/contrastive.h"
#include "tasks/ranking_file.h"
#include "tasks/task.h"

/* The vectors of a set's texts, as losses and measures take them. Zero-initialise. */
struct vector_set {
	struct contrastive_step all; /* vectors are borrowed from the outputs, scores from the set */
	int64_t *starts, *part;
	uint64_t *texts;
};
/* From the outputs of a model for every example of a set. */
MUST_USE enum status vector_set_make(struct vector_set *out, const struct task_set *set, const struct task_outputs *outputs);
/* Some examples of it, one behind the other; valid until the next call. */
struct contrastive_step vector_set_part(struct vector_set *set, int64_t first, int64_t count);
void vector_set_release(struct vector_set *set);

/* Says which form a set's examples have, which its reading does otherwise: for sets that come from no file. */
MUST_USE enum status embedding_set_form(struct task_set *set, enum ranking_form form);

#endif
