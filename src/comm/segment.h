/* The memory that ranks of one machine share: who is there and what each is doing, meetings (barriers), small messages,
 * the first failure, and after these whatever large ranges the ranks allocate. All ranks see the same file, a memfd: it
 * goes when the last process has gone, however that ended. */
#ifndef COMM_SEGMENT_H
#define COMM_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Two meetings run independently: of the callers of small operations and of the threads of large ones. */
enum { MEETING_SMALL, MEETING_LARGE, MEETING_COUNT };

#define SEGMENT_SMALL_BYTES 16384   /* of a small message of one rank */
#define SEGMENT_LARGE_BYTES 1048576 /* of a rank, for ranges that lie in memory that is not shared */
#define SECTION_BYTES 32

/* What a large operation is: all ranks must be at the same. */
struct segment_operation {
	int64_t count, offset;            /* offset of the data in the allocation; -1: not in shared memory */
	int32_t kind, type, wire, unused; /* no bytes between: they are compared as bytes */
};

/* One rank, written by itself alone. */
struct segment_rank {
	_Alignas(64) _Atomic int32_t pid;        /* 0: not there yet */
	_Atomic uint32_t left;                   /* it has closed, in good order or not */
	_Atomic uint32_t arrived[MEETING_COUNT]; /* meetings it has come to */
	_Atomic uint32_t waiting;                /* threads of it that wait for others */
	_Atomic int64_t beat;                    /* when it last showed life, its section began (ns, CLOCK_MONOTONIC) */
	_Atomic int64_t since;
	_Atomic int64_t limit; /* how long the section may take (ns); 0: without end */
	_Atomic int64_t step;
	_Atomic uint64_t section[SECTION_BYTES / 8]; /* a text: segment_section() */
	char host[64];
	struct segment_operation operation;
};

struct segment_barrier {
	_Alignas(64) _Atomic uint32_t count;
	_Alignas(64) _Atomic uint32_t generation, sleepers;
};

struct segment_header {
	uint64_t magic;
	int32_t size;
	bool watched;            /* by a launcher, or through messages: the watchdogs of the ranks need not look at each other */
	bool reported;           /* the launcher tells the user what failed */
	_Atomic uint32_t failed; /* 0, 1 while the failure is written, 2 when it stands */
	int32_t failed_rank;
	struct error failure;
	struct segment_barrier barriers[MEETING_COUNT];
	struct segment_rank ranks[];
};

/* One process's view. */
struct segment {
	struct segment_header *header;
	int file;
	int32_t rank; /* -1: the launcher */
	int spins;
	size_t mapped; /* bytes of header, small messages and room for copies */
	int64_t end;   /* where the next allocation will lie in the file; the same in all ranks */
};

/* Makes one for `size` ranks; the descriptor is close-on-exec. */
MUST_USE enum status segment_create(struct segment *out, int32_t size, bool watched);
/* Rank `rank` of `size` comes in; the descriptor is kept. A descriptor of something else is ERR_STATE. */
MUST_USE enum status segment_join(struct segment *out, int file, int32_t rank, int32_t size);
/* Unmaps and closes. A rank is marked as gone. */
void segment_leave(struct segment *segment);

/* Waits until all ranks have come. Fails with what failed elsewhere, or if a rank has left that was waited for. */
MUST_USE enum status segment_meet(struct segment *segment, int meeting);
/* This rank's place for small messages, and others': two of each, which take turns. */
unsigned char *segment_small(const struct segment *segment, int32_t rank, int turn);
/* Room for copies of a rank. */
unsigned char *segment_large(const struct segment *segment, int32_t rank);

/* The first failure is everyone's; later ones are not recorded (false). Everyone who waits is woken. `rank` -1: of none
 * in particular. */
bool segment_fail(struct segment *segment, int32_t rank, const struct error *error);
/* OK, or the failure as an error of this thread. */
MUST_USE enum status segment_check(const struct segment *segment);

/* The name of a rank's section, which it may be changing: into `out`, which is returned. "start" where it has none yet. */
const char *segment_section(const struct segment_rank *rank, char out[SECTION_BYTES]);
#define SECTION_OF(rank) segment_section(rank, (char[SECTION_BYTES]){0})
void segment_set_section(struct segment_rank *rank, const char *name);

int64_t segment_now(void); /* ns, CLOCK_MONOTONIC: the same clock in all processes */

#endif
