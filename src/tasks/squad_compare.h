/* An answer beside a gold answer: what the official scripts count. */
#ifndef TASKS_SQUAD_COMPARE_H
#define TASKS_SQUAD_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

struct squad_score {
	double exact, f1;
};

/* Words of a normalised text, or segments of a Chinese one. */
struct answer_words {
	struct buffer text;
	struct answer_word {
		size_t begin, size; /* in text */
	} * words;
	int64_t count, capacity;
};

/* Room that is reused from answer to answer. Zero-initialise. */
struct squad_comparer {
	struct answer_words predicted, gold;
	struct answer_words sorted; /* the prediction's words sorted; its text is not used */
	struct buffer scratch;
	int32_t *row; /* of the longest common run */
	int64_t row_capacity;
};
void squad_comparer_release(struct squad_comparer *comparer);

/* SQuAD: lower case, without ASCII punctuation and the words a, an, the; F1 of the bags of words. */
MUST_USE enum status squad_comparer_set(struct squad_comparer *comparer, const char *predicted);
/* Two texts without words: F1 1 by version 2's rules, 0 by version 1's. *out_has_words: has the gold answer any? */
MUST_USE enum status squad_compare(struct squad_comparer *comparer, const char *gold, bool version_2, struct squad_score *out,
				   bool *out_has_words);

/* CMRC 2018: F1 of the longest common run of segments, which are ideographs and, between them, English words. */
MUST_USE enum status squad_compare_chinese(struct squad_comparer *comparer, const char *gold, const char *predicted,
					   struct squad_score *out);

#endif
