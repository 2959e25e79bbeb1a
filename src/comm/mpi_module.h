/* The program's interface to MPI. MPI standardizes an API but no ABI: a program compiled with Open MPI's mpi.h does not run
 * with MPICH's library. So everything that includes mpi.h is in one small file, comm/modules/mpi.c, which is compiled into one
 * module per available MPI; comm/mpi.c loads the right one when ranks are to meet through MPI. A module calls no function of
 * the program; it only provides this table of plain C functions. */
#ifndef COMM_MPI_MODULE_H
#define COMM_MPI_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mpi_world; /* the ranks, as the module sees them */

/* Data sent to one rank or received from it; nothing if `bytes` is 0. */
struct message {
	void *data;
	size_t bytes;
};

/* Functions that return int return 0 or an MPI error code. All are called by the same thread. */
struct mpi_module {
	const char *program; /* MPI_MODULE_PROGRAM of its program; if it differs, so may the layout of the rest */
	/* "Open MPI v4.1.4, package: ..."; may be called before begin(). */
	void (*describe)(char *out, size_t size);
	void (*explain)(int code, char *out, size_t size);
	/* Starts MPI. end() frees what begin() allocated, even if it failed. */
	int (*begin)(struct mpi_world **out, int32_t *out_rank, int32_t *out_size);
	void (*end)(struct mpi_world *world);
	/* Exchanges messages with all ranks, [size] each: start() begins to send and receive, progress() reports whether
	 * everything is done. */
	int (*start)(struct mpi_world *world, const struct message *sends, const struct message *receives);
	int (*progress)(struct mpi_world *world, bool *done);
	void (*abandon)(struct mpi_world *world);
	/* Short notes besides the messages, of at most MPI_NOTE_BYTES. tell() copies the note; it is lost if too many are
	 * already under way. */
	void (*tell)(struct mpi_world *world, int32_t rank, const void *note, size_t bytes);
	bool (*hear)(struct mpi_world *world, int32_t *from, void *note, size_t bytes);
	/* All ranks leave together: leave() once, then left() until it reports that all have left or fails, then finish(),
	 * which ends MPI. */
	int (*leave)(struct mpi_world *world);
	int (*left)(struct mpi_world *world, bool *all);
	void (*finish)(struct mpi_world *world);
};

#define MPI_NOTE_BYTES 4096
#define MPI_MODULE_PROGRAM "bertc " VERSION
#define MPI_MODULE_SYMBOL "bertc_mpi_module" /* a struct mpi_module */

#endif
