/* Connections between all ranks of many machines: two for each pair, one for messages and one for notes, so that a sign of
 * life never waits behind a message that is not wanted yet. */
#ifndef COMM_TCP_H
#define COMM_TCP_H

#include "comm/place.h"

enum { TCP_DATA, TCP_NEWS, TCP_KINDS };

/* The environment variable with the secret that all ranks of a run share: both sides of a connection prove that they know it.
 * Without one, the secret is the empty text. */
#define TCP_SECRET "BERTC_SECRET"

/* Rank 0 listens at place->address and place->port; the others find each other through it, within 10 minutes. Descriptors
 * into sockets[kind][rank] (-1 for the rank itself), not blocking. */
MUST_USE enum status tcp_connect(const struct place *place, int *const sockets[TCP_KINDS]);

#endif
