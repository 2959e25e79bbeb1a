/* Stopping on request: SIGINT, SIGTERM and SIGUSR1 ask for "finish the step, save, exit 75"; a second SIGINT or
 * SIGTERM leaves at once. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdbool.h>

/* Installs the handlers; called by commands that can save. Also makes a closed pipe an error instead of the end. */
void stop_install(void);
bool stop_requested(void);
/* The signal's name ("SIGTERM"), or NULL. */
const char *stop_reason(void);

#endif
