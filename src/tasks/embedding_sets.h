/* A set of texts that belong together, as the task embedding reads it: data of a struct task_set. */
#ifndef TASKS_EMBEDDING_SETS_H
#define TASKS_EMBEDDING_SETS_H

#include "base/set_list.h"
#include "formats/npy_file.h"
#include "tasks/embedding.h"
#include "tasks/words_alone.h"

/* Consecutive examples that are learned in batches of their own. */
struct embedding_part {
	const char *name; /* borrowed */
	int64_t end;      /* number of the example after its last */
	enum ranking_form form;
	/* For training: how it is learned. The label of an example is a score or, of the last two kinds, its number. */
	enum contrastive_kind kind;
	double weight; /* as in struct labeled_part */
	bool used;     /* has examples that can be learned */
};

struct embedding_set {
	struct embedding_part *parts; /* [part_count] only training sets have several */
	int64_t part_count;
	struct set_list files;   /* of training sets; has the names */
	struct npy_file teacher; /* CONTRASTIVE_TARGET: a vector for each example */
	float *guides;           /* CONTRASTIVE_IN_BATCH with a guide: its vectors of all texts, of length 1 */
	int64_t guide_width;
	float *marks; /* CONTRASTIVE_MARGIN, as in struct contrastive_step */
	int64_t *mark_starts, mark_count, mark_capacity;
};

/* Whether a part is learned like this. */
static inline bool embedding_learns(const struct embedding_set *own, enum contrastive_kind kind)
{
	for (int64_t p = 0; p < own->part_count; p++)
		if (own->parts[p].kind == kind)
			return true;
	return false;
}

bool embedding_is_sparse(const struct task_state *state);
double embedding_temperature(const struct task_state *state);

/* Functions of the task, as in struct task. Files of training sets may have names, NAME=FILE: each name is a part. */
MUST_USE enum status embedding_read(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count);
int64_t embedding_keep(struct task_set *set, int64_t most);
MUST_USE enum status embedding_encode(struct task_state *state, struct task_set *set);
MUST_USE enum status embedding_guide(const struct task_state *state, struct task_set *train, task_vector_maker *make,
				     void *context);
/* Of the texts of a set's sequences. */
MUST_USE enum status embedding_words(const struct task_set *set, struct word_vectors *out);
void embedding_close_set(struct task_set *set);

#endif
