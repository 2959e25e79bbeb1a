#include "comm/messages.h"

bool mpi_is_there(void)
{
	return false;
}

enum status mpi_open(struct comm *comm, const struct place *place, double watchdog_seconds)
{
	(void)comm, (void)watchdog_seconds;
	enum status status = error_set(ERR_USAGE, "%d ranks on more machines than this one: this program was built without MPI",
				       place->ranks.size);
	error_hint("build it with `make MPI=1` (package libopenmpi-dev), or set MASTER_ADDR and MASTER_PORT to rank 0's machine "
		   "and a free port");
	return status;
}
