/* Compares an answer with a gold answer as the official scripts do. */
#ifndef TASKS_SQUAD_SQUAD_COMPARE_H
#define TASKS_SQUAD_SQUAD_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

struct squad_score {
	double exact, f1;
};

/* Words of a normalized text, or segments of a Chinese one. */
struct answer_words {
	struct buffer text;
	struct answer_word {
		size_t begin, size; /* in text */
	} * words;
	int64_t count, capacity;
};

/* Scratch memory reused from answer to answer. Zero-initialize. */
struct squad_comparer {
	struct answer_words predicted, gold;
	struct answer_words sorted; /* the prediction's words, sorted; its `text` is unused */
	struct buffer scratch;
	int32_t *row; /* for the longest common run */
	int64_t row_capacity;
};
void squad_comparer_release(struct squad_comparer *comparer);

/* SQuAD: lower case, without ASCII punctuation and the words a, an, the; F1 of the bags of words. squad_comparer_set() sets the
 * prediction. */
MUST_USE enum status squad_comparer_set(struct squad_comparer *comparer, const char *predicted);
/* If neither text has words, F1 is 1 by version 2's rules and 0 by version 1's. *out_has_words: does the gold answer have any? */
MUST_USE enum status squad_compare(struct squad_comparer *comparer, const char *gold, bool version_2, struct squad_score *out,
				   bool *out_has_words);

/* CMRC 2018: F1 of the longest common run of segments, which are ideographs and the English words between them. */
MUST_USE enum status squad_compare_chinese(struct squad_comparer *comparer, const char *gold, const char *predicted,
					   struct squad_score *out);

#endif
