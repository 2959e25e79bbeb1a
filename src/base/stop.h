/* Stopping on request: SIGINT, SIGTERM, SIGHUP and SIGUSR1 ask for "finish the step, save, exit 75"; a second SIGINT or
 * SIGTERM leaves at once. A time limit asks for the same. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdbool.h>
#include "base/error.h"

/* Installs the handlers; called by commands that can save. Also makes a closed pipe an error instead of the end. */
void stop_install(void);
/* From now on requests to stop are acknowledged on standard error at once, from the signal handler: the first with `first` (for
 * SIGINT with how to quit at once), the second with what is lost, as stop_loss() has said it. `first` is borrowed for good. */
void stop_announce(const char *first);
/* What is lost if the process ends now, "what was trained since checkpoint-100 is lost". One thread at a time may call it. */
void stop_loss(const char *format, ...) PRINTF_LIKE(1, 2);
/* A time of clock_seconds() by which to have stopped; 0 = none. */
void stop_deadline(double time);
/* What stopping will take, in seconds: it is asked for so much before the deadline. */
void stop_reserve(double seconds);
bool stop_requested(void);
/* The signal's name ("SIGTERM"), "the time limit", or NULL. */
const char *stop_reason(void);

#endif
