/* How ranks of one machine that our launcher did not start find their shared memory: by a name that all of them know. */
#ifndef COMM_RENDEZVOUS_H
#define COMM_RENDEZVOUS_H

#include "comm/place.h"

/* Local rank 0 creates the memory and publishes in /dev/shm where it is (process and descriptor); the others wait for that for
 * at most 10 minutes. An entry left over from an earlier run is recognized by its process. */
MUST_USE enum status rendezvous_find(const struct place *place, int *out_file);
/* To be called once all ranks have joined: local rank 0 removes the name. */
void rendezvous_end(const struct place *place);

#endif
