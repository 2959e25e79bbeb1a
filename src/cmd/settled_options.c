#include "cmd/settled_options.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"

enum status settled_options_make(struct settled_options *out, const struct options *base, size_t settings_bytes,
				 const struct choices *choices)
{
	settled_options_release(out);
	TRY(memory_new(&out->settings, 1, (int64_t)settings_bytes, "settings"));
	enum status status = options_derive(&out->options, base, base->section_count, out->settings);
	if (status != OK) {
		free(out->settings);
		*out = (struct settled_options){0};
		return status;
	}
	return settled_options_add(out, choices);
}

enum status settled_options_add(struct settled_options *settled, const struct choices *choices)
{
	for (int64_t i = 0; i < choices->count; i++)
		TRY(options_set(&settled->options, choices->items[i].name, choices->items[i].text, ORIGIN_CHOSEN));
	return OK;
}

void settings_show(const struct options *settled, enum option_scope scope, struct buffer *out)
{
	bool all = log_level == LOG_VERBOSE;
	if (!all)
		buffer_text(out, "settings (-v also shows those left at their defaults)\n");
	options_settings_table(settled, scope, all, log_has_colour(), out);
}

void settled_options_release(struct settled_options *settled)
{
	if (settled->settings)
		options_release(&settled->options);
	free(settled->settings);
	*settled = (struct settled_options){0};
}
