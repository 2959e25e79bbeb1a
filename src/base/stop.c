/* Signal handlers that ask a run to stop, and the deadline that asks the same. */
#include "base/stop.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file_operations.h"
#include "base/log.h"

static atomic_int stop_signal, stop_orders; /* the first signal; number of SIGINTs and SIGTERMs so far */
static double deadline, reserve;            /* used only by the thread that queries them */

/* Read by the signal handler. */
static _Atomic(const char *) announced, lost;
static bool wipes_bar; /* standard error is a terminal, which may show a progress bar */

/* Makes only calls that are allowed in a signal handler. */
static void write_text(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* there is no way to report it */
}

static const char *signal_name(int number)
{
	return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : number == SIGHUP ? "SIGHUP" : "SIGUSR1";
}

static void acknowledge(int number)
{
	if (!announced)
		return;
	if (wipes_bar)
		write_text("\r\033[K");
	if (number != SIGINT) {
		write_text(signal_name(number));
		write_text(": ");
	}
	write_text(announced);
	write_text(number == SIGINT ? "; press Ctrl-C again to quit now\n" : "\n");
}

static void say_loss(void)
{
	if (!announced || !lost)
		return;
	write_text(wipes_bar ? "\r\033[K" : "");
	write_text("quitting now: ");
	write_text(lost);
	write_text("\n");
}

static void stop_handler(int number)
{
	/* A terminal that closes may send SIGHUP more than once. */
	if (number != SIGUSR1 && number != SIGHUP && atomic_fetch_add(&stop_orders, 1) > 0) {
		/* Second request: end as if there were no handler, so that the parent sees the signal. It stays blocked until
		 * this function returns. */
		say_loss();
		signal(number, SIG_DFL);
		raise(number);
	}
	int none = 0;
	if (atomic_compare_exchange_strong(&stop_signal, &none, number))
		acknowledge(number);
}

void stop_on_signals(void (*handler)(int), int flags)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		struct sigaction old;
		/* A signal that the parent has set to be ignored (nohup, background jobs) stays ignored. */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaction(numbers[i], &action, NULL);
	}
}

void stop_install(void)
{
	/* SA_RESTART: the step that is being finished must not see interrupted system calls. */
	stop_on_signals(stop_handler, SA_RESTART);
	/* A run continues even if the reader of its log goes away. */
	signal(SIGPIPE, SIG_IGN);
}

void stop_announce(const char *first)
{
	wipes_bar = log_is_terminal();
	announced = first;
}

void stop_loss(const char *format, ...)
{
	static char texts[2][256]; /* the handler may be reading the previous one */
	static int next;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(texts[next], sizeof texts[next], format, arguments);
	va_end(arguments);
	lost = texts[next];
	next = !next;
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
	file_fault_stop();
	return atomic_load_explicit(&stop_signal, memory_order_relaxed) != 0 || is_late();
}

const char *stop_reason(void)
{
	int number = atomic_load(&stop_signal);
	if (number == 0)
		return is_late() ? "the time limit" : NULL;
	return signal_name(number);
}

enum status stop_check(void)
{
	return stop_requested() ? stop_error() : OK;
}

enum status stop_error(void)
{
	const char *reason = stop_reason();
	return error_set(STOPPED, "stopped by %s", reason ? reason : "a request to another rank");
}
