/* The module that connects the program to one MPI: see comm/mpi_module.h. It is not linked with MPI's library, which has
 * different names on different systems: the program loads the library first. */
#include "comm/mpi_module.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTES 64 /* under way at a time */

struct mpi_world {
	MPI_Comm data, news;
	int size;
	bool opened;           /* both communicators exist, so notes can be sent */
	MPI_Request *requests; /* [2 * size] */
	int count;
	unsigned char notes[NOTES][MPI_NOTE_BYTES];
	MPI_Request told[NOTES], leaving;
};

static void describe(char *out, size_t size)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length;
	MPI_Get_library_version(text, &length);
	snprintf(out, size, "%s", text);
}

static void explain(int code, char *out, size_t size)
{
	char text[MPI_MAX_ERROR_STRING + 1] = "";
	int length, begun = 0;
	snprintf(out, size, "error %d", code);
	/* Before MPI has been started, asking would end the process. */
	if (MPI_Initialized(&begun) == MPI_SUCCESS && begun && MPI_Error_string(code, text, &length) == MPI_SUCCESS)
		snprintf(out, size, "%s", text);
}

static int open_worlds(struct mpi_world *world)
{
	int code = MPI_Comm_dup(MPI_COMM_WORLD, &world->data);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_dup(MPI_COMM_WORLD, &world->news);
	if (code != MPI_SUCCESS)
		return code;
	MPI_Comm_set_errhandler(world->data, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(world->news, MPI_ERRORS_RETURN);
	world->opened = true;
	return MPI_SUCCESS;
}

static int begin(struct mpi_world **out, int32_t *out_rank, int32_t *out_size)
{
	int level, rank;
	struct mpi_world *world = *out = calloc(1, sizeof *world);
	if (!world)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < NOTES; i++)
		world->told[i] = MPI_REQUEST_NULL;
	int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
	if (code != MPI_SUCCESS)
		return code;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	code = MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_size(MPI_COMM_WORLD, &world->size);
	if (code != MPI_SUCCESS)
		return code;
	*out_rank = rank;
	*out_size = world->size;
	world->requests = calloc(2 * (size_t)world->size, sizeof *world->requests);
	return world->requests ? open_worlds(world) : MPI_ERR_NO_MEM;
}

static void end(struct mpi_world *world)
{
	if (world)
		free(world->requests);
	free(world);
}

/* The next request. It starts as a null request, and stays one if the call that is to fill it in fails. */
static MPI_Request *next_request(struct mpi_world *world)
{
	MPI_Request *request = &world->requests[world->count++];
	*request = MPI_REQUEST_NULL;
	return request;
}

static int start(struct mpi_world *world, const struct message *sends, const struct message *receives)
{
	int code = MPI_SUCCESS;
	world->count = 0;
	for (int rank = 0; code == MPI_SUCCESS && rank < world->size; rank++)
		if (receives[rank].bytes > 0)
			code = MPI_Irecv(receives[rank].data, (int)receives[rank].bytes, MPI_BYTE, rank, 0, world->data,
					 next_request(world));
	for (int rank = 0; code == MPI_SUCCESS && rank < world->size; rank++)
		if (sends[rank].bytes > 0)
			code = MPI_Isend(sends[rank].data, (int)sends[rank].bytes, MPI_BYTE, rank, 0, world->data,
					 next_request(world));
	return code;
}

static int progress(struct mpi_world *world, bool *done)
{
	int all = 0, code = MPI_Testall(world->count, world->requests, &all, MPI_STATUSES_IGNORE);
	*done = all != 0;
	return code;
}

static void abandon(struct mpi_world *world)
{
	for (int i = 0; i < world->count; i++)
		if (world->requests[i] != MPI_REQUEST_NULL)
			MPI_Cancel(&world->requests[i]);
}

static void tell(struct mpi_world *world, int32_t rank, const void *note, size_t bytes)
{
	for (int i = 0; i < NOTES && bytes <= MPI_NOTE_BYTES && world->opened; i++) {
		int free_again = world->told[i] == MPI_REQUEST_NULL;
		if (!free_again && MPI_Test(&world->told[i], &free_again, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			continue;
		if (!free_again)
			continue;
		memcpy(world->notes[i], note, bytes);
		if (MPI_Isend(world->notes[i], (int)bytes, MPI_BYTE, rank, 0, world->news, &world->told[i]) != MPI_SUCCESS)
			world->told[i] = MPI_REQUEST_NULL; /* the note is lost */
		return;
	}
}

static bool hear(struct mpi_world *world, int32_t *from, void *note, size_t bytes)
{
	MPI_Status status;
	int there = 0;
	if (!world->opened || MPI_Iprobe(MPI_ANY_SOURCE, 0, world->news, &there, &status) != MPI_SUCCESS || !there)
		return false;
	*from = status.MPI_SOURCE;
	return MPI_Recv(note, (int)bytes, MPI_BYTE, status.MPI_SOURCE, 0, world->news, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static int leave(struct mpi_world *world)
{
	return world->opened ? MPI_Ibarrier(world->news, &world->leaving) : MPI_ERR_OTHER;
}

static int left(struct mpi_world *world, bool *all)
{
	int there = 0, code = MPI_Test(&world->leaving, &there, MPI_STATUS_IGNORE);
	*all = there != 0;
	return code;
}

static void finish(struct mpi_world *world)
{
	MPI_Waitall(NOTES, world->told, MPI_STATUSES_IGNORE);
	MPI_Finalize();
}

extern const struct mpi_module bertc_mpi_module;
const struct mpi_module bertc_mpi_module = {
	.program = MPI_MODULE_PROGRAM,
	.describe = describe,
	.explain = explain,
	.begin = begin,
	.end = end,
	.start = start,
	.progress = progress,
	.abandon = abandon,
	.tell = tell,
	.hear = hear,
	.leave = leave,
	.left = left,
	.finish = finish,
};
