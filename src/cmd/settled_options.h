/* Options with what a run chose where they left something open: for the table of settings and for the record, which show both.
 * The options themselves stay as they were given. */
#ifndef CMD_SETTLED_OPTIONS_H
#define CMD_SETTLED_OPTIONS_H

#include "base/option.h"
#include "run/choices.h"

/* Zero-initialise. */
struct settled_options {
	struct options options;
	void *settings; /* a struct of the command's, that holds the values */
};

/* Made anew if it was made before. `base` is borrowed and outlives it. */
MUST_USE enum status settled_options_make(struct settled_options *out, const struct options *base, size_t settings_bytes,
					  const struct choices *choices);
/* Further ones. */
MUST_USE enum status settled_options_add(struct settled_options *settled, const struct choices *choices);
/* The table at the start of a run, into `out`: what is not as its default says, and with --verbose everything. */
void settings_show(const struct options *settled, enum option_scope scope, struct buffer *out);
void settled_options_release(struct settled_options *settled);

#endif
