/* Shows where a hanging rank is. */
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "comm/watchdog.h"

#define DEPTH 64

/* Makes only calls that are allowed in a signal handler; rank_stack_install() has already called backtrace(), whose first call
 * loads a library. */
static void write_stack(int number)
{
	static const char head[] = "stack of a rank that hangs (addr2line -e bertc names the places):\n";
	void *frames[DEPTH];
	(void)number;
	if (write(STDERR_FILENO, head, sizeof head - 1) < 0)
		return;
	backtrace_symbols_fd(frames, backtrace(frames, DEPTH), STDERR_FILENO);
}

void rank_stack_install(void)
{
	void *frames[1];
	struct sigaction action = {.sa_handler = write_stack, .sa_flags = SA_RESTART};
	backtrace(frames, 1);
	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR2, &action, NULL);
}
