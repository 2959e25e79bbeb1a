/* Lists utf8proc, for `bertc version`. */
#include "text/libraries.h"

#include <utf8proc.h>

void text_libraries(struct library_list *list)
{
	library_list_add(list, "utf8proc", utf8proc_version());
}
