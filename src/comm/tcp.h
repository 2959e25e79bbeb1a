/* Connections between all ranks of several machines: two for each pair, one for messages and one for notes, so that a sign of
 * life never waits behind a message that nobody has asked for yet. */
#ifndef COMM_TCP_H
#define COMM_TCP_H

#include "comm/place.h"

enum { TCP_DATA, TCP_NEWS, TCP_KINDS };

/* The environment variable with the secret that all ranks of a run share: both ends of a connection prove that they know it.
 * If it is not set, the secret is the empty string. */
#define TCP_SECRET "BERTC_SECRET"

/* Rank 0 listens at place->address and place->port; the others find each other through it, within 10 minutes. Fills
 * sockets[kind][rank] with nonblocking descriptors (-1 for the rank itself). */
MUST_USE enum status tcp_connect(const struct place *place, int *const sockets[TCP_KINDS]);

#endif
