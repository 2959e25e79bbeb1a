/* Tests with several ranks: each is a process of its own, forked from the test, with an open comm. */
#ifndef TESTS_COMM_RANKS_H
#define TESTS_COMM_RANKS_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "comm/messages.h"
#include "comm/place.h"
#include "comm/segment.h"
#include "test.h"

/* Open MPI's library is not instrumented: the thread sanitizer does not see what synchronizes its threads, and the library
 * leaves memory to be freed at the end of the process. */
#ifdef __SANITIZE_THREAD__
#define MPI_CAN_BE_TESTED false
#else
#define MPI_CAN_BE_TESTED mpi_can_be_tested()
#endif
#define MPI_ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 "

static inline bool mpi_can_be_tested(void)
{
	char name[128];
	return mpi_describe(name, sizeof name) == OK;
}

/* The body of a rank; its result is the process's exit code. */
typedef enum status rank_body(struct comm *comm, void *context);

/* In a rank: checks a condition that must hold. */
#define RANK_CHECK(condition)                                                                                                    \
	do {                                                                                                                     \
		if (!(condition)) {                                                                                              \
			fprintf(stderr, "rank %d: %s:%d: %s\n", comm_place(comm)->rank, __FILE__, __LINE__, #condition);         \
			return ERR_INTERNAL;                                                                                     \
		}                                                                                                                \
	} while (0)

/* The port of rank 0; 0: shared memory. */
static int32_t ranks_port;
static double ranks_watchdog; /* seconds; 0: the default */

static inline int rank_main(int segment, int32_t rank, int32_t size, rank_body *body, void *context)
{
	struct place place = {.ranks = {rank, size, rank, size, "here"}, .meeting = MEETING_SEGMENT, .segment = segment};
	struct comm *comm = NULL;
	if (ranks_port) {
		place.meeting = MEETING_ADDRESS;
		place.port = ranks_port;
		snprintf(place.address, sizeof place.address, "127.0.0.1");
	}
	if (size == 1)
		place.meeting = MEETING_ALONE;
	enum status status = comm_open(&comm, &(struct comm_settings){.place = &place, .watchdog_seconds = ranks_watchdog});
	if (status == OK)
		status = body(comm, context);
	if (status != OK && status != ERR_INTERNAL)
		fprintf(stderr, "rank %d: %s\n", rank, error_last()->message);
	comm_close(comm);
	return (int)status;
}

/* Runs `body` in `size` ranks; stores their exit statuses (128 + signal) in `statuses` if it is not NULL; otherwise all
 * must be OK. */
static inline void run_ranks(int32_t size, rank_body *body, void *context, int *statuses)
{
	struct segment segment;
	pid_t children[64];
	assert_true(size <= 64);
	assert_ok(segment_create(&segment, size, false));
	fflush(NULL);
	for (int32_t rank = 0; rank < size; rank++) {
		children[rank] = fork();
		assert_true(children[rank] >= 0);
		if (children[rank] == 0) {
			alarm(60); /* a rank that hangs ends the test */
			_exit(rank_main(dup(segment.file), rank, size, body, context));
		}
	}
	for (int32_t rank = 0; rank < size; rank++) {
		int status;
		assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
		int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (statuses)
			statuses[rank] = code;
		else if (code != 0)
			fail_msg("rank %d of %d ended with %d", rank, size, code);
	}
	segment_leave(&segment);
}

#endif
