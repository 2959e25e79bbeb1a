/* Adds entries to the list of libraries that `bertc version` shows. */
#include "base/library_list.h"

void library_list_add(struct library_list *list, const char *name, const char *version)
{
	buffer_format(&list->linked, "%s%s %s", list->linked.size > 0 ? ", " : "", name, version);
}

void library_list_add_loaded(struct library_list *list, const char *name, enum status status, const char *version)
{
	if (status == OK)
		buffer_format(&list->loaded, "  %s %s\n", name, version);
	else
		buffer_format(&list->loaded, "  %s: not usable here: %s\n", name,
			      error_last()->hint[0] ? error_last()->hint : error_last()->message);
}

void library_list_release(struct library_list *list)
{
	buffer_release(&list->linked);
	buffer_release(&list->loaded);
}
