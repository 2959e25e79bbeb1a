/* Ranks of one machine that no launcher of ours started find their shared memory by a name that all know. */
#ifndef COMM_RENDEZVOUS_H
#define COMM_RENDEZVOUS_H

#include "comm/place.h"

/* Local rank 0 makes the memory and says in /dev/shm where it is (process and descriptor); the others wait for that, for
 * 10 minutes at most. What an earlier run left under the name is recognized by its process. */
MUST_USE enum status rendezvous_find(const struct place *place, int *out_file);
/* Once all have come: local rank 0 removes the name. */
void rendezvous_end(const struct place *place);

#endif
