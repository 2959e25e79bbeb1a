#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include "cmd/command.h"

int main(int argc, char **argv)
{
	/* A closed standard stream would be reopened as the first file we open, and written into. */
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) < 0)
			return ERR_RESOURCE;
	}
	signal(SIGXFSZ, SIG_IGN); /* a file size limit shall be an error of write() */
	return command_main(argc - 1, argv + 1);
}
