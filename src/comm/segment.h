/* The memory that the ranks of one machine share: who is there and what each rank is doing, meetings (barriers), small
 * messages, the first failure, and behind these all large ranges that the ranks allocate. All ranks map the same file, a
 * memfd, which disappears with the last process that uses it, however that process ends. */
#ifndef COMM_SEGMENT_H
#define COMM_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Two independent meetings: one for the callers of small operations, one for the threads that carry out large ones. */
enum { MEETING_SMALL, MEETING_LARGE, MEETING_COUNT };

#define SEGMENT_SMALL_BYTES 16384   /* maximum size of one rank's small message */
#define SEGMENT_LARGE_BYTES 1048576 /* one rank's room for copies of ranges that are not in shared memory */
#define SECTION_BYTES 32

/* Identifies a large operation: all ranks must be at the same one. */
struct segment_operation {
	int64_t count, offset;            /* where the data lies in the file; -1: not in shared memory */
	int32_t kind, type, wire, unused; /* no padding: they are compared as bytes */
};

/* One rank's entry, written by that rank only. */
struct segment_rank {
	_Alignas(64) _Atomic int32_t pid;        /* 0: it has not joined yet */
	_Atomic uint32_t left;                   /* it has left, in good order or not */
	_Atomic uint32_t arrived[MEETING_COUNT]; /* number of meetings it has come to */
	_Atomic uint32_t waiting;                /* number of its threads that wait for other ranks */
	_Atomic int64_t beat;                    /* last sign of life, start of its section (ns, CLOCK_MONOTONIC) */
	_Atomic int64_t since;
	_Atomic int64_t limit; /* time limit of the section (ns); 0: unlimited */
	_Atomic int64_t step;
	_Atomic uint64_t section[SECTION_BYTES / 8]; /* a string: see segment_section() */
	char host[64];
	struct segment_operation operation;
	size_t small[2]; /* the length of its small message, in each buffer: all ranks must be at the same one */
};

struct segment_barrier {
	_Alignas(64) _Atomic uint32_t count;
	_Alignas(64) _Atomic uint32_t generation, sleepers;
};

struct segment_header {
	uint64_t magic;
	int32_t size;
	bool watched;            /* by a launcher or through messages, so the ranks' watchdogs need not watch each other */
	bool reported;           /* the launcher tells the user what failed */
	_Atomic uint32_t failed; /* 0: no; 1: the failure is being written; 2: it is complete */
	int32_t failed_rank;
	struct error failure;
	struct segment_barrier barriers[MEETING_COUNT];
	struct segment_rank ranks[];
};

/* One process's view. */
struct segment {
	struct segment_header *header;
	int file;
	int32_t rank; /* -1: the launcher's view */
	int spins;
	size_t mapped; /* size of the header, small messages, and room for copies */
	int64_t end;   /* file offset of the next allocation; the same in all ranks */
};

/* Creates a segment for `size` ranks; the descriptor is close-on-exec. */
MUST_USE enum status segment_create(struct segment *out, int32_t size, bool watched);
/* Joins as rank `rank` of `size`; takes ownership of the descriptor. A descriptor of anything else is ERR_STATE; if another
 * process is this rank, that is ERR_USAGE, and a failure of all ranks. */
MUST_USE enum status segment_join(struct segment *out, int file, int32_t rank, int32_t size);
/* Unmaps and closes. If it is a rank's view, the rank is marked as having left. */
void segment_leave(struct segment *segment);

/* Waits until all ranks have come. Fails with another rank's failure, or if a rank that it waits for has left. */
MUST_USE enum status segment_meet(struct segment *segment, int meeting);
/* A rank's buffers for small messages: two, which are used in turn. */
unsigned char *segment_small(const struct segment *segment, int32_t rank, int turn);
/* A rank's room for copies. */
unsigned char *segment_large(const struct segment *segment, int32_t rank);

/* Records a failure for all ranks and wakes everyone who waits. Only the first one counts; later ones are not recorded
 * (false). `rank` is -1 if no rank in particular is to blame. */
bool segment_fail(struct segment *segment, int32_t rank, const struct error *error);
/* Returns OK, or the recorded failure as this thread's error. */
MUST_USE enum status segment_check(const struct segment *segment);

/* Copies the name of a rank's section, which that rank may be changing, into `out` and returns it; "start" if it has none yet. */
const char *segment_section(const struct segment_rank *rank, char out[SECTION_BYTES]);
#define SECTION_OF(rank) segment_section(rank, (char[SECTION_BYTES]){0})
void segment_set_section(struct segment_rank *rank, const char *name);

int64_t segment_now(void); /* ns, CLOCK_MONOTONIC: the same clock in all processes */

#endif
