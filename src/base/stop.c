#include "base/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/log.h"

static atomic_int stop_signal, stop_orders; /* the first signal; SIGINTs and SIGTERMs so far */
static double deadline, reserve;            /* of the thread that asks */

static void stop_handler(int number)
{
	/* A terminal that closes may send SIGHUP more than once. */
	if (number != SIGUSR1 && number != SIGHUP && atomic_fetch_add(&stop_orders, 1) > 0) {
		/* Asked twice: leave as if there were no handler, so that the parent sees the signal. It is
		 * held back until this function returns. */
		signal(number, SIG_DFL);
		raise(number);
	}
	int none = 0;
	atomic_compare_exchange_strong(&stop_signal, &none, number);
}

void stop_install(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
	/* SA_RESTART: the step that is being finished must not see interrupted system calls. */
	struct sigaction action = {.sa_handler = stop_handler, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		struct sigaction old;
		/* A signal that the parent wants ignored (nohup, background jobs) stays ignored. */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(numbers[i], &action, NULL);
	}
	/* A run outlives whoever reads its log. */
	signal(SIGPIPE, SIG_IGN);
}

void stop_deadline(double time)
{
	deadline = time;
}

void stop_reserve(double seconds)
{
	reserve = seconds;
}

static bool is_late(void)
{
	return deadline > 0 && clock_seconds() + reserve >= deadline;
}

bool stop_requested(void)
{
	return atomic_load_explicit(&stop_signal, memory_order_relaxed) != 0 || is_late();
}

const char *stop_reason(void)
{
	switch (atomic_load(&stop_signal)) {
	case 0: return is_late() ? "the time limit" : NULL;
	case SIGINT: return "SIGINT";
	case SIGTERM: return "SIGTERM";
	case SIGHUP: return "SIGHUP";
	default: return "SIGUSR1";
	}
}
