/* Edits that make one text of another: of each token whether it stays, and what is put before it, which is a run of tokens that
 * stand elsewhere (RaST: Hao et al. 2021, "RAST: Domain-Robust Dialogue Rewriting as Sequence Tagging"). Knows no file and no
 * model. */
#ifndef TASKS_EDITS_H
#define TASKS_EDITS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* Of a token, or of the place behind the last one. */
struct edit {
	bool deleted;
	int32_t first, last; /* the tokens put before it, of those that can be copied; -1: none are */
	bool unknown;        /* something must be put before it that stands nowhere; first and last say nothing */
};

/* Tokens are the same where their keys are. */
struct edit_texts {
	const int64_t *source; /* [source_count] */
	int64_t source_count;
	const int64_t *target; /* [target_count] */
	int64_t target_count;
	const int64_t *copied; /* [copied_count] what can be copied, in runs that end where a key is -1 */
	int32_t copied_count;
	int32_t preferred; /* what stands twice is copied from the last place among the first so many, if it is there */
};

/* The cheapest edits, [source_count + 1] of them: one for each token deleted and each run inserted, and of those the ones that
 * copy least. Tokens of the target that no edit can make are left out, and *out_missing is their number. */
MUST_USE enum status edits_find(const struct edit_texts *texts, struct edit *out, int64_t *out_missing);

/* A token of a text, as bytes [begin, end). */
struct edit_token {
	const char *text;
	uint32_t begin, end;
};

/* Writes the edited text into an empty buffer: `edits` are those of the tokens and of the place behind them. Where something is
 * inserted between words that are written with spaces, spaces part it from them. What of the source lies behind its last token
 * stays. */
MUST_USE enum status edits_apply(const char *source, const struct edit_token *tokens, int64_t count, const struct edit *edits,
				 const struct edit_token *copied, struct buffer *out);

#endif
