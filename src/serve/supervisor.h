/* The process that supervises the service: systemd, if the unit has Type=notify. */
#ifndef SERVE_SUPERVISOR_H
#define SERVE_SUPERVISOR_H

/* Tells it the state ("READY=1", "STOPPING=1") in the protocol of sd_notify(3). Without one, and on failure, does nothing: the
 * service works all the same, and the supervisor notices by its own time limit. */
void supervisor_tell(const char *state);

#endif
