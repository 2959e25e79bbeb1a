/* Messages over MPI: this file loads MPI's library and the module that belongs to it (mpi_module.h). One thread makes all
 * calls to them, and also starts and ends MPI. */
#include "comm/messages.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/shared_library.h"
#include "comm/mpi_module.h"

#define YIELDS 200 /* yields before it sleeps between polls: it may share a core with the rank it waits for */
#define PAUSE_NANOSECONDS 20000

_Static_assert(sizeof(struct note) <= MPI_NOTE_BYTES, "a note fits");

/* MPI implementations, one entry for each ABI. */
static const struct mpi_kind {
	const char *name;    /* its name in BERTC_MPI */
	const char *started; /* a variable that its mpirun sets */
	struct shared_library library, module;
} kinds[] = {
	{
		"openmpi",
		"OMPI_COMM_WORLD_SIZE",
		{.name = "Open MPI",
		 .files = {"libmpi.so.40"},
		 .package = "Open MPI 4 or 5 (Debian's packages libopenmpi3 and openmpi-bin)",
		 .instead = "set MASTER_ADDR and MASTER_PORT to rank 0's machine and a free port",
		 .global = true},
		{.name = "bertc's module for Open MPI",
		 .files = {"bertc-mpi-openmpi.so"},
		 .package = "a bertc that was built where Open MPI's headers are (libopenmpi-dev)",
		 .instead = "set MASTER_ADDR and MASTER_PORT to rank 0's machine and a free port"},
	},
	{
		"mpich",
		"PMI_SIZE",
		/* Intel MPI, MVAPICH, and Cray MPICH have the same ABI; Debian gives the library another name. */
		{.name = "MPICH",
		 .files = {"libmpi.so.12", "libmpich.so.12"},
		 .package = "MPICH 3.1 or later, Intel MPI or MVAPICH (Debian's packages libmpich12 and mpich)",
		 .instead = "set MASTER_ADDR and MASTER_PORT to rank 0's machine and a free port",
		 .global = true},
		{.name = "bertc's module for MPICH",
		 .files = {"bertc-mpi-mpich.so"},
		 .package = "a bertc that was built where MPICH's headers are (libmpich-dev)",
		 .instead = "set MASTER_ADDR and MASTER_PORT to rank 0's machine and a free port"},
	},
};
#define KINDS (sizeof kinds / sizeof *kinds)

struct mpi {
	const struct mpi_module *module;
	struct mpi_world *world;
	int looks;
};

/* Loaded for the lifetime of the process, since MPI's library cleans up at exit. `*chosen`: the library is loaded, and no
 * other may be loaded from then on, since modules find the functions of the one that was loaded first. */
static enum status load_kind(const struct mpi_kind *kind, const struct mpi_module **out, bool *chosen)
{
	void *library, *handle;
	const struct shared_library_function functions[] = {{MPI_MODULE_SYMBOL, out}};
	TRY(shared_library_open(&library, &kind->library, NULL, 0));
	*chosen = true;
	TRY(shared_library_open(&handle, &kind->module, functions, 1));
	if (strcmp((*out)->program, MPI_MODULE_PROGRAM) == 0)
		return OK;
	return error_hinted(error_set(ERR_RESOURCE, "%s belongs to another version: %s", kind->module.name, (*out)->program),
			    "install the program and its modules in the same version");
}

/* The MPI that started this process, otherwise the first one installed; BERTC_MPI overrides this. */
static enum status load_module(const struct mpi_module **out)
{
	const char *wish = getenv("BERTC_MPI");
	const struct mpi_kind *order[KINDS];
	size_t count = 0;
	for (int started = 1; started >= 0; started--)
		for (size_t i = 0; i < KINDS; i++)
			if (wish ? started && strcmp(wish, kinds[i].name) == 0 : (getenv(kinds[i].started) != NULL) == started)
				order[count++] = &kinds[i];
	if (count == 0)
		return error_set(ERR_USAGE, "the variable BERTC_MPI is '%s': not openmpi or mpich", wish);
	bool chosen = false;
	enum status status = load_kind(order[0], out, &chosen);
	struct error first = *error_last();
	for (size_t i = 1; !chosen && i < count; i++)
		status = load_kind(order[i], out, &chosen);
	return status == OK || chosen ? status : error_restore(&first);
}

enum status mpi_describe(char *out, size_t size)
{
	const struct mpi_module *module;
	char text[256];
	out[0] = '\0';
	TRY(load_module(&module));
	module->describe(text, sizeof text);
	/* Open MPI's is "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..."; MPICH's has lines and tabs. */
	text[strcspn(text, ",\n")] = '\0';
	for (char *at = text; *at; at++)
		*at = *at == '\t' ? ' ' : *at;
	snprintf(out, size, "%.80s", text);
	return OK;
}

/* False if opening failed. */
static bool is_open(const struct mpi *mpi)
{
	return mpi && mpi->world;
}

static enum status check(const struct mpi *mpi, int code, const char *what)
{
	char text[512];
	if (code == 0)
		return OK;
	mpi->module->explain(code, text, sizeof text);
	return error_set(ERR_PEER, "MPI: %s: %s", what, text);
}

static enum status mpi_begin(struct messages *messages)
{
	struct mpi *mpi;
	struct comm *comm = messages->comm;
	int32_t rank = 0, size = 0;
	char name[96];
	TRY(memory_new(&mpi, 1, sizeof *mpi, "messages through MPI"));
	messages->own = mpi;
	TRY(load_module(&mpi->module));
	TRY(mpi_describe(name, sizeof name));
	snprintf(comm->description, sizeof comm->description, "MPI (%.80s)", name);
	TRY(check(mpi, mpi->module->begin(&mpi->world, &rank, &size), "cannot begin"));
	if (rank == comm->place.rank && size == comm->place.size)
		return OK;
	return error_hinted(error_set(ERR_STATE, "MPI says rank %d of %d, but the environment says rank %d of %d", rank, size,
				      comm->place.rank, comm->place.size),
			    "%s was loaded: use the mpirun that belongs to it, or set BERTC_MPI to openmpi or mpich", name);
}

static enum status mpi_start(struct messages *messages, const struct message *sends, const struct message *receives)
{
	struct mpi *mpi = messages->own;
	mpi->looks = 0;
	return check(mpi, mpi->module->start(mpi->world, sends, receives), "cannot send or receive");
}

static enum status mpi_progress(struct messages *messages, bool *done)
{
	struct mpi *mpi = messages->own;
	TRY(check(mpi, mpi->module->progress(mpi->world, done), "a message did not arrive"));
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
	if (is_open(mpi))
		mpi->module->abandon(mpi->world);
}

static void mpi_tell(struct messages *messages, int32_t rank, const struct note *note)
{
	struct mpi *mpi = messages->own;
	if (is_open(mpi))
		mpi->module->tell(mpi->world, rank, note, sizeof *note);
}

static bool mpi_hear(struct messages *messages, int32_t *from, struct note *note)
{
	struct mpi *mpi = messages->own;
	return is_open(mpi) && mpi->module->hear(mpi->world, from, note, sizeof *note);
}

/* Waits until all ranks leave, receiving the notes under way. */
static void leave(struct messages *messages)
{
	struct mpi *mpi = messages->own;
	struct note note;
	int32_t from;
	bool all = false, failed = mpi->module->leave(mpi->world) != 0;
	while (!all && !failed && mpi->module->left(mpi->world, &all) == 0) {
		while (mpi_hear(messages, &from, &note))
			failed |= note.kind == NOTE_FAILURE;
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
	}
	if (failed)
		return;
	while (mpi_hear(messages, &from, &note))
		continue;
	mpi->module->finish(mpi->world);
}

static void mpi_end(struct messages *messages, bool orderly)
{
	struct mpi *mpi = messages->own;
	/* After a failure, the other ranks do not get this far, and leaving would wait for them. mpirun sees how the process
	 * ends. */
	if (is_open(mpi)) {
		if (orderly)
			leave(messages);
		mpi->module->end(mpi->world);
	}
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
