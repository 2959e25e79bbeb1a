/* Warns of or refuses text of which too many tokens are unknown. */
#include "data/unknown.h"

#include "base/log.h"

#define WARNING 0.05
#define LIMIT 0.9 /* nothing to learn: nearly every word is the same */

static const char advice[] = "the vocabulary does not fit this text (another language, or cased against uncased)";

void unknown_warn(const char *what, int64_t unknown, int64_t tokens)
{
	if ((double)unknown > WARNING * (double)tokens)
		log_warning("%.1f %% of the tokens of %s are [UNK]: %s", 100 * (double)unknown / (double)tokens, what, advice);
}

enum status unknown_check(const char *what, int64_t unknown, int64_t tokens)
{
	double share = tokens > 0 ? (double)unknown / (double)tokens : 0;
	if (share > LIMIT)
		return error_hinted(error_set(ERR_STATE, "%.1f %% of the tokens of %s are [UNK]: there is nothing to learn",
					      100 * share, what),
				    "%s; `bertc vocab` learns one that does", advice);
	unknown_warn(what, unknown, tokens);
	return OK;
}
