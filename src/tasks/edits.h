/* Edits that turn one text into another: for each token whether it stays, and what is inserted before it, which is a run of
 * tokens that occur elsewhere (RaST: Hao et al. 2021, "RAST: Domain-Robust Dialogue Rewriting as Sequence Tagging"). Knows
 * nothing of files or models. */
#ifndef TASKS_EDITS_H
#define TASKS_EDITS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* The edit of a token, or at the end, after the last token. */
struct edit {
	bool deleted;
	int32_t first, last; /* the tokens inserted before it, as indices of those that can be copied; -1: none */
	bool unknown;        /* something must be inserted that occurs nowhere; first and last are meaningless */
};

/* Tokens are equal if their keys are. */
struct edit_texts {
	const int64_t *source; /* [source_count] */
	int64_t source_count;
	const int64_t *target; /* [target_count] */
	int64_t target_count;
	const int64_t *copied; /* [copied_count] what can be copied; a key of -1 ends a run */
	int32_t copied_count;
	int32_t preferred; /* of equal tokens the last one among the first `preferred` is copied, if there is one */
};

/* Finds the cheapest edits, [source_count + 1] of them: each deleted token and each inserted run costs one, and of equally cheap
 * edits those that copy the fewest tokens are chosen. Target tokens that no edit can produce are left out; *out_missing is their
 * number. */
MUST_USE enum status edits_find(const struct edit_texts *texts, struct edit *out, int64_t *out_missing);

/* A token of a text: bytes [begin, end). */
struct edit_token {
	const char *text;
	uint32_t begin, end;
};

/* Writes the edited text into an empty buffer. `edits` has one edit for each token and one for the end. Where something is
 * inserted between words that are written with spaces, it is separated from them by spaces. Source text after the last token
 * stays. ends[count] (NULL: not wanted) gets where each token ends in that text, 0 for those that are deleted. */
MUST_USE enum status edits_apply(const char *source, const struct edit_token *tokens, int64_t count, const struct edit *edits,
				 const struct edit_token *copied, struct buffer *out, size_t *ends);

#endif
