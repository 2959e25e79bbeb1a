/* The program's entry: installs signal handlers, including the one for mapped files that shrink, and runs the command. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <string.h>
#include "base/file.h"
#include "cmd/command.h"

static void say(const char *text)
{
	if (write(2, text, strlen(text)) < 0)
		return; /* there is nobody to tell */
}

/* If someone truncates a mapped file while we read it, accessing the missing page raises a signal instead of returning an error.
 * Uses only functions that are async-signal-safe. */
static void mapped_file_failed(int number, siginfo_t *facts, void *context)
{
	(void)context;
	const char *path = file_map_path(facts->si_addr);
	if (!path) { /* not one of our files: as without a handler, since the instruction is retried */
		signal(number, SIG_DFL);
		return;
	}
	say("\nbertc: '");
	say(path);
	say("': the file was truncated while bertc was reading it, or the disk cannot read it\nhint: files in use must not be "
	    "changed; checkpoints saved so far are intact: restore the file and run the same command again\n");
	_exit(ERR_DATA);
}

/* The first file we open would get the descriptor of a closed standard stream, and be written to. What takes its place can be
 * neither read nor written, under the name /dev/stdout either, so that answers that nobody gets are an error; only messages may
 * get lost. */
static bool fill_closed_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && (fd == 2 ? open("/dev/null", O_WRONLY) : open("/", O_PATH)) < 0)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = mapped_file_failed, .sa_flags = SA_SIGINFO};
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit should make write() fail instead */
	return fill_closed_streams() ? command_main(argc - 1, argv + 1) : (int)ERR_RESOURCE;
}
