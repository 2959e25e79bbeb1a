/* Options completed with what a run chose where they left something open, for the table of settings and for the record. The
 * original options stay as they were given. */
#ifndef CMD_SETTLED_OPTIONS_H
#define CMD_SETTLED_OPTIONS_H

#include "base/option.h"
#include "run/choices.h"

/* Zero-initialize. */
struct settled_options {
	struct options options;
	void *settings; /* the command's settings struct, which holds the values */
};

/* Replaces what an earlier call made. `base` is borrowed and must outlive the result. */
MUST_USE enum status settled_options_make(struct settled_options *out, const struct options *base, size_t settings_bytes,
					  const struct choices *choices);
/* Adds further choices. */
MUST_USE enum status settled_options_add(struct settled_options *settled, const struct choices *choices);
/* Appends the table shown at the start of a run to `out`: values that are not defaults, or with --verbose all. */
void settings_show(const struct options *settled, enum option_scope scope, struct buffer *out);
void settled_options_release(struct settled_options *settled);

#endif
