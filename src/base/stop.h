/* Stopping on request: SIGINT, SIGTERM, SIGHUP, and SIGUSR1 request "finish the step, save, exit 75"; a second SIGINT or SIGTERM
 * ends the process at once. A time limit makes the same request. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdbool.h>
#include "base/error.h"

/* Installs the handlers; called by commands that can save. Also ignores SIGPIPE, so that a closed pipe is an error and does not
 * end the process. */
void stop_install(void);
/* Another handler for the same signals, where the process can end at once. Signals that the parent ignores stay ignored. */
void stop_on_signals(void (*handler)(int), int flags);
/* From now on, the signal handler acknowledges requests to stop on standard error at once: the first with `first` (for SIGINT,
 * with how to quit at once), the second with what is lost, as set by stop_loss(). `first` must stay valid. */
void stop_announce(const char *first);
/* Sets what is lost if the process ends now: "what was trained since checkpoint-100 is lost". Only one thread may call it at a
 * time. */
void stop_loss(const char *format, ...) PRINTF_LIKE(1, 2);
/* The clock_seconds() time by which to have stopped; 0 = none. */
void stop_deadline(double time);
/* How long stopping will take, in seconds: the request comes this much before the deadline. */
void stop_reserve(double seconds);
bool stop_requested(void);
/* The name of the signal ("SIGTERM"), "the time limit", or NULL. */
const char *stop_reason(void);
/* OK, or STOPPED with a message if a stop was requested. */
MUST_USE enum status stop_check(void);
/* Sets and returns STOPPED with its message, whether this process was asked or another rank. */
MUST_USE enum status stop_error(void);

#endif
