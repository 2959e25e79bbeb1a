/* Addresses of something on a network, given where bertc wants a path. */
#include "base/address.h"
#include <string.h>
#include "base/error.h"

void hint_at_address(const char *path)
{
	if (strstr(path, "://"))
		error_hint("files are read from this machine: %s, and give the path of what it saves",
			   strncmp(path, "http", 4) == 0 ? "bertc download ADDRESS" : "copy it here with the tool of its store");
}
