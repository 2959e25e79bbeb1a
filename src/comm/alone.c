/* A single rank: every operation is a copy or does nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "comm/transport.h"

static enum status alone_gather(struct comm *comm, const void *data, size_t bytes, void *out)
{
	(void)comm;
	if (bytes > 0)
		memmove(out, data, bytes);
	return OK;
}

static enum status alone_broadcast(struct comm *comm, void *data, size_t bytes, int32_t root)
{
	(void)comm, (void)data, (void)bytes, (void)root;
	return OK;
}

/* A separate arena, for its alignment and huge pages; the struct arena to release is stored before the block. */
enum status alone_allocate(struct comm *comm, void **out, size_t bytes, const char *what)
{
	(void)comm;
	struct arena arena, *kept;
	TRY(arena_create(&arena, bytes + ARENA_ALIGNMENT, what));
	kept = arena_take(&arena, sizeof *kept);
	*out = arena_take(&arena, bytes);
	*kept = arena;
	return OK;
}

void alone_release(struct comm *comm, void *memory)
{
	(void)comm;
	struct arena arena = *(struct arena *)(void *)((unsigned char *)memory - ARENA_ALIGNMENT);
	arena_release(&arena);
}

static enum status alone_run(struct comm *comm, const struct operation *operation)
{
	(void)comm, (void)operation;
	return OK;
}

static void alone_fail(struct comm *comm, const struct error *error)
{
	(void)comm, (void)error;
}

static void alone_close(struct comm *comm)
{
	(void)comm;
}

void alone_open(struct comm *comm)
{
	static const struct transport transport = {
		.gather = alone_gather,
		.broadcast = alone_broadcast,
		.allocate = alone_allocate,
		.release = alone_release,
		.perform = alone_run,
		.fail = alone_fail,
		.close = alone_close,
	};
	comm->transport = &transport;
	snprintf(comm->description, sizeof comm->description, "one rank");
}
