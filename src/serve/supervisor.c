/* Tells systemd that the service is ready or stopping. */
#include "serve/supervisor.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

void supervisor_tell(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t size = path ? strlen(path) : 0;
	if (size < 2 || size >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, size);
	if (path[0] == '@') /* an abstract name begins with a NUL and has no end but its length */
		address.sun_path[0] = 0;
	int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (path[0] == '/'));
	if (descriptor < 0 || sendto(descriptor, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, length) < 0)
		log_detail("the supervisor at '%s' cannot be told '%s'", path, state);
	if (descriptor >= 0)
		(void)close(descriptor);
}
