/* This process's place among the ranks, as given by whatever started it: our launcher, mpirun, srun, or the variables RANK,
 * WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, and MASTER_PORT. */
#ifndef COMM_PLACE_H
#define COMM_PLACE_H

#include "comm/comm.h"

/* How the ranks of a run find each other. */
enum meeting {
	MEETING_ALONE,
	MEETING_SEGMENT, /* our launcher created the shared memory: an inherited descriptor */
	MEETING_NAME,    /* ranks of one machine find the shared memory by name */
	MEETING_MPI,
	MEETING_ADDRESS, /* ranks of several machines, over TCP */
};

struct place {
	struct comm_place ranks;
	enum meeting meeting;
	int segment;       /* MEETING_SEGMENT */
	char name[96];     /* MEETING_NAME: common to all ranks of the run, and to no other process on this machine */
	char address[256]; /* MEETING_ADDRESS: of rank 0, with its port */
	int32_t port;
	bool launched;    /* by our launcher, which holds the run folder's lock and watches the ranks */
	int32_t cores;    /* for this rank's threads; 0: all that the process may use */
	int32_t restarts; /* how many times the launcher has restarted the ranks */
};

/* Ranks of one machine share memory. Others meet at MASTER_ADDR if that is set, and through MPI otherwise; BERTC_TRANSPORT
 * (shared, tcp, mpi) overrides this. A process started by none of these is rank 0 of 1. Variables that contradict each other
 * are ERR_USAGE. */
MUST_USE enum status place_find(struct place *out);

/* The variables that our launcher sets in a rank's environment. */
#define PLACE_RANK "BERTC_RANK"
#define PLACE_SIZE "BERTC_RANKS"
#define PLACE_SEGMENT "BERTC_SEGMENT" /* the file descriptor */
#define PLACE_CORES "BERTC_RANK_CORES"
#define PLACE_RESTARTS "BERTC_RESTARTS"

#endif
