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
struct row_matches {
	int64_t examined;      /* examples whose hashes were not left out */
	int64_t found;         /* of these, those whose text is known */
	int64_t swap_examined; /* pairs of texts whose hashes were not left out when their texts are swapped */
	int64_t swapped;       /* of these, those that are known, but not as they are */
};
MUST_USE enum status row_hashes_count(struct row_matches *out, const struct row_hashes *hashes, const struct labeled_set *set);

/* Examples that repeat an earlier one, text and labels; those whose text has other labels elsewhere. */
struct row_repeats {
	int64_t repeated, contradicted;
};
MUST_USE enum status row_repeats_count(struct row_repeats *out, const struct labeled_set *set);

#endif
