/* Makes one MPI call fail, in one rank, before it has done anything. Loaded with LD_PRELOAD (tests/long/mpi_faults.sh).
 *   MPI_FAULT=function:number:rank   the rank's call number `number` of MPI_<function> returns MPI_ERR_OTHER
 *   MPI_FAULT_HIT=path               a file that is created when the fault has happened */
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long calls;

static bool fails(const char *function)
{
	const char *fault = getenv("MPI_FAULT"), *rank = getenv("OMPI_COMM_WORLD_RANK"), *hit = getenv("MPI_FAULT_HIT");
	size_t size = strlen(function);
	char *end;
	if (!fault || !rank || !hit || strncmp(fault, function, size) != 0 || fault[size] != ':')
		return false;
	long number = strtol(fault + size + 1, &end, 10);
	if (*end != ':' || strcmp(end + 1, rank) != 0 || atomic_fetch_add(&calls, 1) + 1 != number)
		return false;
	int file = open(hit, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (file >= 0)
		close(file);
	return true;
}

#define FAULT(name, parameters, arguments)                                                                                       \
	int MPI_##name parameters                                                                                                \
	{                                                                                                                        \
		return fails(#name) ? MPI_ERR_OTHER : PMPI_##name arguments;                                                     \
	}

FAULT(Init_thread, (int *count, char ***values, int wanted, int *given), (count, values, wanted, given))
FAULT(Comm_dup, (MPI_Comm comm, MPI_Comm *out), (comm, out))
FAULT(Comm_rank, (MPI_Comm comm, int *out), (comm, out))
FAULT(Comm_size, (MPI_Comm comm, int *out), (comm, out))
FAULT(Isend, (const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *out),
      (data, count, type, to, tag, comm, out))
FAULT(Irecv, (void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *out),
      (data, count, type, from, tag, comm, out))
FAULT(Recv, (void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status),
      (data, count, type, from, tag, comm, status))
FAULT(Iprobe, (int from, int tag, MPI_Comm comm, int *found, MPI_Status *status), (from, tag, comm, found, status))
FAULT(Test, (MPI_Request * request, int *done, MPI_Status *status), (request, done, status))
FAULT(Testall, (int count, MPI_Request *requests, int *done, MPI_Status *statuses), (count, requests, done, statuses))
FAULT(Waitall, (int count, MPI_Request *requests, MPI_Status *statuses), (count, requests, statuses))
FAULT(Cancel, (MPI_Request * request), (request))
FAULT(Ibarrier, (MPI_Comm comm, MPI_Request *out), (comm, out))
FAULT(Finalize, (void), ())
