/* Messages through MPI. All calls come from one thread, which also begins and ends MPI. */
#include "comm/messages.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

#define YIELDS 200 /* before it sleeps between looks: a core may be shared with the rank that is waited for */
#define PAUSE_NANOSECONDS 20000
#define NOTES 64 /* on their way at a time */

struct mpi {
	MPI_Comm data, news;
	MPI_Request *requests; /* [2 * size] */
	int count, looks;
	struct note notes[NOTES];
	MPI_Request told[NOTES];
};

bool mpi_is_there(void)
{
	return true;
}

static enum status check(int code, const char *what)
{
	char text[MPI_MAX_ERROR_STRING + 1] = "";
	int length;
	if (code == MPI_SUCCESS)
		return OK;
	MPI_Error_string(code, text, &length);
	return error_set(ERR_PEER, "MPI: %s: %s", what, text);
}

static enum status mpi_begin(struct messages *messages)
{
	struct mpi *mpi;
	struct comm *comm = messages->comm;
	int level, rank, size, length;
	char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	TRY(memory_new(&mpi, 1, sizeof(*mpi), "messages through MPI"));
	messages->own = mpi;
	TRY(memory_new(&mpi->requests, 2 * comm->place.size, sizeof(MPI_Request), "messages through MPI"));
	for (int i = 0; i < NOTES; i++)
		mpi->told[i] = MPI_REQUEST_NULL;
	TRY(check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "cannot begin"));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank != comm->place.rank || size != comm->place.size)
		return error_set(ERR_STATE, "MPI says rank %d of %d, the environment rank %d of %d", rank, size, comm->place.rank,
				 comm->place.size);
	TRY(check(MPI_Comm_dup(MPI_COMM_WORLD, &mpi->data), "cannot begin"));
	TRY(check(MPI_Comm_dup(MPI_COMM_WORLD, &mpi->news), "cannot begin"));
	MPI_Comm_set_errhandler(mpi->data, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(mpi->news, MPI_ERRORS_RETURN);
	/* "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..." */
	MPI_Get_library_version(library, &length);
	library[strcspn(library, ",\n")] = '\0';
	snprintf(comm->description, sizeof(comm->description), "MPI (%.80s)", library);
	return OK;
}

static enum status mpi_start(struct messages *messages, const struct message *sends, const struct message *receives)
{
	struct mpi *mpi = messages->own;
	mpi->count = 0;
	mpi->looks = 0;
	for (int32_t rank = 0; rank < messages->comm->place.size; rank++)
		if (receives[rank].bytes > 0)
			TRY(check(MPI_Irecv(receives[rank].data, (int)receives[rank].bytes, MPI_BYTE, rank, 0, mpi->data,
					    &mpi->requests[mpi->count++]),
				  "cannot receive"));
	for (int32_t rank = 0; rank < messages->comm->place.size; rank++)
		if (sends[rank].bytes > 0)
			TRY(check(MPI_Isend(sends[rank].data, (int)sends[rank].bytes, MPI_BYTE, rank, 0, mpi->data,
					    &mpi->requests[mpi->count++]),
				  "cannot send"));
	return OK;
}

static enum status mpi_progress(struct messages *messages, bool *done)
{
	struct mpi *mpi = messages->own;
	int all = 0;
	TRY(check(MPI_Testall(mpi->count, mpi->requests, &all, MPI_STATUSES_IGNORE), "a message did not arrive"));
	*done = all != 0;
	if (*done)
		return OK;
	if (mpi->looks++ < YIELDS)
		sched_yield();
	else
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
	return OK;
}

static void mpi_abandon(struct messages *messages)
{
	struct mpi *mpi = messages->own;
	for (int i = 0; i < mpi->count; i++)
		if (mpi->requests[i] != MPI_REQUEST_NULL)
			MPI_Cancel(&mpi->requests[i]);
}

static void mpi_tell(struct messages *messages, int32_t rank, const struct note *note)
{
	struct mpi *mpi = messages->own;
	for (int i = 0; i < NOTES; i++) {
		int free_again = 1;
		if (mpi->told[i] != MPI_REQUEST_NULL)
			MPI_Test(&mpi->told[i], &free_again, MPI_STATUS_IGNORE);
		if (!free_again)
			continue;
		mpi->notes[i] = *note;
		MPI_Isend(&mpi->notes[i], sizeof(*note), MPI_BYTE, rank, 0, mpi->news, &mpi->told[i]);
		return;
	}
}

static bool mpi_hear(struct messages *messages, int32_t *from, struct note *note)
{
	struct mpi *mpi = messages->own;
	MPI_Status status;
	int there = 0;
	if (MPI_Iprobe(MPI_ANY_SOURCE, 0, mpi->news, &there, &status) != MPI_SUCCESS || !there)
		return false;
	*from = status.MPI_SOURCE;
	return MPI_Recv(note, sizeof(*note), MPI_BYTE, status.MPI_SOURCE, 0, mpi->news, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static void mpi_end(struct messages *messages, bool orderly)
{
	struct mpi *mpi = messages->own;
	int begun = 0;
	MPI_Initialized(&begun);
	/* After a failure the others do not come to the end: this would wait for them. mpirun sees how the process
	 * ends. */
	if (begun && orderly) {
		struct note note;
		int32_t from;
		MPI_Request all;
		int there = 0;
		bool failed = false;
		/* Until all leave: notes on their way are taken. */
		MPI_Ibarrier(mpi->news, &all);
		while (!there && MPI_Test(&all, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
			while (mpi_hear(messages, &from, &note))
				failed |= note.kind == NOTE_FAILURE;
			if (failed)
				goto release;
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
		}
		while (mpi_hear(messages, &from, &note))
			continue;
		MPI_Waitall(NOTES, mpi->told, MPI_STATUSES_IGNORE);
		MPI_Finalize();
	}
release:
	if (mpi)
		free(mpi->requests);
	free(mpi);
	messages->own = NULL;
}

enum status mpi_open(struct comm *comm, const struct place *place, double watchdog_seconds)
{
	static const struct messenger messenger = {
		.open = mpi_begin,
		.start = mpi_start,
		.progress = mpi_progress,
		.abandon = mpi_abandon,
		.tell = mpi_tell,
		.hear = mpi_hear,
		.close = mpi_end,
	};
	return messages_open(comm, place, watchdog_seconds, &messenger);
}
