/* How ranks come together: over the transport of their meeting place, and only if they all run the same program. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/device.h"
#include "comm/messages.h"
#include "comm/rendezvous.h"
#include "comm/transport.h"

/* Version and contents of the program: ranks running two different builds would not compute the same. */
static void describe_program(char *out, size_t size)
{
	struct buffer program = {0};
	uint64_t hash = 0;
	if (file_read("/proc/self/exe", (size_t)1 << 30, &program) == OK)
		hash = hash64(program.data, program.size);
	buffer_release(&program);
	snprintf(out, size, "bertc " VERSION ", build %016llx", (unsigned long long)hash);
}

enum status comm_open(struct comm **out, const struct comm_settings *settings)
{
	static const struct place alone = {.ranks = {.size = 1, .local_size = 1}};
	const struct place *place = settings->place ? settings->place : &alone;
	char program[64];
	struct comm *comm;
	enum status status = OK;
	TRY(memory_new(&comm, 1, sizeof *comm, "the ranks' communication"));
	comm->place = place->ranks;
	double limit = settings->watchdog_seconds;
	if (comm->place.size == 1)
		alone_open(comm);
	else if (place->meeting == MEETING_MPI)
		status = mpi_open(comm, place, limit);
	else if (place->meeting == MEETING_ADDRESS)
		status = tcp_open(comm, place, limit);
	else
		status = shared_open(comm, place, limit);
	*out = comm;
	if (status != OK)
		goto fail;
	if (comm->place.size == 1)
		return OK;
	if (!comm->queue.started)
		TRY_GOTO(queue_open(comm), fail);
	describe_program(program, sizeof program);
	TRY_GOTO(comm_agree(comm, "the program", program), fail);
	if (place->meeting == MEETING_NAME)
		rendezvous_end(place);
	return OK;
fail:;
	struct error error = *error_last();
	if (place->meeting == MEETING_NAME)
		rendezvous_end(place);
	comm_close(comm);
	*out = NULL;
	return error_restore(&error);
}

void comm_libraries(struct library_list *list)
{
	char name[96];
	enum status status = mpi_describe(name, sizeof name);
	library_list_add_loaded(list, status == OK ? "MPI:" : "MPI", status, name);
	nccl_libraries(list);
}
