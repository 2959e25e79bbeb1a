/* The layout of the ranks' shared memory, meetings by futex, and failures that wake everyone. */
#include "comm/segment.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/processor.h"

#define MAGIC 0x33676573626d6f63   /* changes with the layout */
#define SPINS 1000                 /* 20 to 60 microseconds: about the cost of sleeping and waking up */
#define LOOK_NANOSECONDS 100000000 /* ranks that wait check for failures this often */
#define HUGE_PAGE ((size_t)2 << 20)

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static size_t header_bytes(int32_t size)
{
	return round_up(sizeof(struct segment_header) + (size_t)size * sizeof(struct segment_rank), 4096);
}

static size_t total_bytes(int32_t size)
{
	return round_up(header_bytes(size) + (size_t)size * (2 * SEGMENT_SMALL_BYTES + SEGMENT_LARGE_BYTES), HUGE_PAGE);
}

int64_t segment_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum status map(struct segment *segment, int32_t size)
{
	segment->mapped = total_bytes(size);
	segment->end = (int64_t)segment->mapped;
	segment->header = mmap(NULL, segment->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, segment->file, 0);
	/* With more ranks than cores, the rank waited for may need the core of the one that waits. */
	segment->spins = size > pool_available_cores() ? 0 : SPINS;
	if (segment->header != MAP_FAILED)
		return OK;
	segment->header = NULL;
	return error_set_errno(ERR_RESOURCE, "cannot map the memory that ranks share");
}

enum status segment_create(struct segment *out, int32_t size, bool watched)
{
	*out = (struct segment){.file = memfd_create("bertc-ranks", MFD_CLOEXEC), .rank = -1};
	if (out->file < 0 || ftruncate(out->file, (off_t)total_bytes(size)) != 0) {
		enum status status = error_set_errno(ERR_RESOURCE, "cannot create the memory that %d ranks share", size);
		segment_leave(out);
		return status;
	}
	enum status status = map(out, size);
	if (status != OK) {
		segment_leave(out);
		return status;
	}
	out->header->size = size;
	out->header->watched = watched;
	out->header->magic = MAGIC;
	return OK;
}

enum status segment_join(struct segment *out, int file, int32_t rank, int32_t size)
{
	struct segment_header start;
	struct stat facts;
	*out = (struct segment){.file = file, .rank = rank};
	if (pread(file, &start, sizeof start, 0) != sizeof start || start.magic != MAGIC || fstat(file, &facts) != 0 ||
	    start.size != size || rank < 0 || rank >= size || (size_t)facts.st_size < total_bytes(size))
		return error_set(ERR_STATE, "descriptor %d is not what a launcher of this program gives to rank %d of %d", file,
				 rank, size);
	TRY(map(out, start.size));
	struct segment_rank *own = &out->header->ranks[rank];
	gethostname(own->host, sizeof own->host - 1);
	atomic_store(&own->beat, segment_now());
	atomic_store(&own->since, segment_now());
	segment_set_section(own, "start");
	int32_t other = 0;
	if (atomic_compare_exchange_strong(&own->pid, &other, (int32_t)getpid()))
		return OK;
	/* Both would count as arrived, and the meetings of the others would be complete without a rank that is missing. */
	enum status status = error_set(ERR_USAGE, "the processes %d and %d are both rank %d of %d", other, getpid(), rank, size);
	error_hint("start each rank once, with a number of its own");
	segment_fail(out, rank, error_last());
	out->rank = -1; /* this process does not leave in place of the other */
	return status;
}

const char *segment_section(const struct segment_rank *rank, char out[SECTION_BYTES])
{
	for (int i = 0; i < SECTION_BYTES / 8; i++) {
		uint64_t part = atomic_load_explicit(&rank->section[i], memory_order_relaxed);
		memcpy(out + 8 * i, &part, sizeof part);
	}
	out[SECTION_BYTES - 1] = '\0';
	return out[0] ? out : "start";
}

void segment_set_section(struct segment_rank *rank, const char *name)
{
	char text[SECTION_BYTES] = "";
	snprintf(text, sizeof text, "%s", name);
	for (int i = 0; i < SECTION_BYTES / 8; i++) {
		uint64_t part;
		memcpy(&part, text + 8 * i, sizeof part);
		atomic_store_explicit(&rank->section[i], part, memory_order_relaxed);
	}
}

static void wake_all(struct segment *segment)
{
	for (int i = 0; i < MEETING_COUNT; i++)
		syscall(SYS_futex, &segment->header->barriers[i].generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void segment_leave(struct segment *segment)
{
	if (segment->header) {
		if (segment->rank >= 0) {
			atomic_store(&segment->header->ranks[segment->rank].left, 1);
			wake_all(segment);
		}
		munmap(segment->header, segment->mapped);
	}
	if (segment->file >= 0)
		close(segment->file);
	*segment = (struct segment){.file = -1};
}

unsigned char *segment_small(const struct segment *segment, int32_t rank, int turn)
{
	return (unsigned char *)segment->header + header_bytes(segment->header->size) +
	       (size_t)(2 * rank + turn) * SEGMENT_SMALL_BYTES;
}

unsigned char *segment_large(const struct segment *segment, int32_t rank)
{
	return segment_small(segment, segment->header->size, 0) + (size_t)rank * SEGMENT_LARGE_BYTES;
}

bool segment_fail(struct segment *segment, int32_t rank, const struct error *error)
{
	struct segment_header *header = segment->header;
	uint32_t none = 0;
	if (!atomic_compare_exchange_strong(&header->failed, &none, 1))
		return false;
	header->failed_rank = rank;
	header->failure = *error;
	atomic_store(&header->failed, 2);
	wake_all(segment);
	return true;
}

enum status segment_check(const struct segment *segment)
{
	if (atomic_load_explicit(&segment->header->failed, memory_order_acquire) != 2)
		return OK;
	struct error error = segment->header->failure;
	/* In the rank that failed, it is its own error; in all others, a peer's. */
	if (segment->header->failed_rank != segment->rank)
		error.status = ERR_PEER;
	return error_restore(&error);
}

/* Fails if a rank that has not come will never come. */
static enum status check_left(struct segment *segment, int meeting)
{
	struct segment_header *header = segment->header;
	uint32_t mine = atomic_load(&header->ranks[segment->rank].arrived[meeting]);
	for (int32_t rank = 0; rank < header->size; rank++) {
		struct segment_rank *other = &header->ranks[rank];
		if (!atomic_load(&other->left) || atomic_load(&other->arrived[meeting]) == mine)
			continue;
		struct error error = {.status = ERR_PEER};
		snprintf(error.message, sizeof error.message,
			 "rank %d on %s left in '%s' of step %lld while others waited for it", rank, other->host,
			 SECTION_OF(other), (long long)atomic_load(&other->step));
		segment_fail(segment, rank, &error);
		return segment_check(segment);
	}
	return OK;
}

static enum status wait_for_others(struct segment *segment, int meeting, uint32_t generation)
{
	struct segment_barrier *barrier = &segment->header->barriers[meeting];
	for (int spins = segment->spins; spins > 0; spins--) {
		if (atomic_load_explicit(&barrier->generation, memory_order_acquire) != generation)
			return OK;
		processor_pause();
	}
	while (atomic_load(&barrier->generation) == generation) {
		enum status status = segment_check(segment);
		if (status == OK)
			status = check_left(segment, meeting);
		/* A meeting that was complete before the failure counts as complete. */
		if (status != OK)
			return atomic_load(&barrier->generation) == generation ? status : OK;
		struct timespec look = {.tv_nsec = LOOK_NANOSECONDS};
		atomic_fetch_add(&barrier->sleepers, 1);
		syscall(SYS_futex, &barrier->generation, FUTEX_WAIT, generation, &look, NULL, 0);
		atomic_fetch_sub(&barrier->sleepers, 1);
	}
	return OK;
}

enum status segment_meet(struct segment *segment, int meeting)
{
	struct segment_header *header = segment->header;
	struct segment_barrier *barrier = &header->barriers[meeting];
	struct segment_rank *own = &header->ranks[segment->rank];
	TRY(segment_check(segment));
	uint32_t generation = atomic_load(&barrier->generation);
	atomic_fetch_add(&own->arrived[meeting], 1);
	if (atomic_fetch_add(&barrier->count, 1) + 1 == (uint32_t)header->size) {
		atomic_store(&barrier->count, 0);
		atomic_store(&barrier->generation, generation + 1);
		if (atomic_load(&barrier->sleepers))
			syscall(SYS_futex, &barrier->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		return OK;
	}
	atomic_fetch_add(&own->waiting, 1);
	enum status status = wait_for_others(segment, meeting, generation);
	atomic_fetch_sub(&own->waiting, 1);
	return status;
}
