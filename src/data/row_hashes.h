/* Hashes of examples' texts, which show texts that occur in two sets, or twice in one. A text is what the model sees of it: token
 * ids, up to its length. */
#ifndef DATA_ROW_HASHES_H
#define DATA_ROW_HASHES_H

#include "data/labeled.h"

/* A finished model's record keeps this many hashes, the smallest ones, so that two sets keep those of the same texts. */
#define ROW_HASHES_KEPT 1024

/* Zero-initialize. */
struct row_hashes {
	uint64_t *hashes; /* [count] ascending, each once */
	int64_t count;
	uint64_t limit; /* hashes beyond it were left out */
};
/* The hashes of all texts, or only the `most` smallest; 0: all. */
MUST_USE enum status row_hashes_make(struct row_hashes *out, const struct labeled_set *set, int64_t most);
void row_hashes_release(struct row_hashes *hashes);
/* How many examples of a set have a text whose hash is known, among those that were not left out (*out_examined). */
int64_t row_hashes_count(const struct row_hashes *hashes, const struct labeled_set *set, int64_t *out_examined);

/* Examples that repeat an earlier one, text and labels; those whose text has other labels elsewhere. */
struct row_repeats {
	int64_t repeated, contradicted;
};
MUST_USE enum status row_repeats_count(struct row_repeats *out, const struct labeled_set *set);

#endif
