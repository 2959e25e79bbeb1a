/* What the program knows of MPI. MPI fixes names, not what they compile to: a program that is compiled with Open MPI's mpi.h
 * does not run with MPICH's library. So everything that includes mpi.h is one small file, comm/modules/mpi.c, which is compiled
 * into a module for each MPI that is there, and which comm/mpi.c loads when ranks are to meet through MPI. A module calls nothing
 * of the program's: it gives it this table of plain C functions. */
#ifndef COMM_MPI_MODULE_H
#define COMM_MPI_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mpi_world; /* the ranks, as the module has them */

/* What goes to one rank, or comes from it; nothing if `bytes` is 0. */
struct message {
	void *data;
	size_t bytes;
};

/* Functions that return int return 0, or MPI's code for what went wrong. All are called by one thread. */
struct mpi_module {
	const char *program; /* MPI_MODULE_PROGRAM of the program it belongs to, or the rest may look otherwise */
	/* "Open MPI v4.1.4, package: ..."; also before begin(). */
	void (*describe)(char *out, size_t size);
	void (*explain)(int code, char *out, size_t size);
	/* Starts MPI. end() frees what it made, also where it failed. */
	int (*begin)(struct mpi_world **out, int32_t *out_rank, int32_t *out_size);
	void (*end)(struct mpi_world *world);
	/* Messages with all ranks, [size] each: start() begins to send and receive, progress() says whether all is done. */
	int (*start)(struct mpi_world *world, const struct message *sends, const struct message *receives);
	int (*progress)(struct mpi_world *world, bool *done);
	void (*abandon)(struct mpi_world *world);
	/* Short notes in addition to the messages, MPI_NOTE_BYTES at most. tell() copies it; it is lost if too many are on their
	 * way. */
	void (*tell)(struct mpi_world *world, int32_t rank, const void *note, size_t bytes);
	bool (*hear)(struct mpi_world *world, int32_t *from, void *note, size_t bytes);
	/* All ranks leave: leave() once, then left() until it is true or fails, then finish(), which ends MPI. */
	int (*leave)(struct mpi_world *world);
	int (*left)(struct mpi_world *world, bool *all);
	void (*finish)(struct mpi_world *world);
};

#define MPI_NOTE_BYTES 4096
#define MPI_MODULE_PROGRAM "bertc " VERSION
#define MPI_MODULE_SYMBOL "bertc_mpi_module" /* a struct mpi_module */

#endif
