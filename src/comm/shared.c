/* Ranks of one machine. Large ranges lie in a file that all ranks map, so a rank sums its share by reading the other ranks'
 * numbers in place: it reads only what any method must read, and nothing is copied first. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "comm/rendezvous.h"
#include "comm/transport.h"
#include "comm/watchdog.h"
#include "comm/wire.h"

#define HUGE_PAGE ((int64_t)2 << 20)
#define BLOCK 4096 /* numbers summed at a time; they stay in the L1 cache */

struct allocation {
	unsigned char *base;    /* rank r's part is at r * stride */
	int64_t stride, offset; /* offset: in the file */
};

struct shared {
	struct segment segment;
	struct watchdog *watchdog;
	int small_turn;
	struct allocation *allocations;
	int64_t count, capacity;
};

/* Waits for all ranks, which must have come with a small message of the same length. */
static enum status meet_small(struct shared *shared, int turn, size_t bytes)
{
	struct segment *segment = &shared->segment;
	struct segment_rank *ranks = segment->header->ranks;
	ranks[segment->rank].small[turn] = bytes;
	TRY(segment_meet(segment, MEETING_SMALL));
	for (int32_t rank = 0; rank < segment->header->size; rank++) {
		if (ranks[rank].small[turn] == bytes)
			continue;
		struct error error = {.status = ERR_STATE};
		snprintf(error.message, sizeof error.message,
			 "ranks %d and %d are not at the same operation: a message of %zu bytes, one of %zu bytes", segment->rank,
			 rank, bytes, ranks[rank].small[turn]);
		segment_fail(segment, segment->rank, &error);
		TRY(segment_check(segment));
		return error_restore(&error); /* another rank is about to say the same */
	}
	return OK;
}

static enum status shared_gather(struct comm *comm, const void *data, size_t bytes, void *out)
{
	struct shared *shared = comm->own;
	int turn = shared->small_turn;
	/* Two buffers used in turn, so that one meeting is enough: a rank that writes this buffer's next message has been
	 * through another meeting since, to which all ranks came after reading this message. */
	shared->small_turn = !turn;
	TRY(segment_check(&shared->segment)); /* that meeting may have failed */
	if (bytes > 0)
		memcpy(segment_small(&shared->segment, comm->place.rank, turn), data, bytes);
	TRY(meet_small(shared, turn, bytes));
	for (int32_t rank = 0; bytes > 0 && rank < comm->place.size; rank++)
		memcpy((unsigned char *)out + (size_t)rank * bytes, segment_small(&shared->segment, rank, turn), bytes);
	return OK;
}

static enum status shared_broadcast(struct comm *comm, void *data, size_t bytes, int32_t root)
{
	struct shared *shared = comm->own;
	int turn = shared->small_turn;
	shared->small_turn = !turn;
	TRY(segment_check(&shared->segment));
	if (comm->place.rank == root)
		memcpy(segment_small(&shared->segment, root, turn), data, bytes);
	TRY(meet_small(shared, turn, bytes));
	if (comm->place.rank != root)
		memcpy(data, segment_small(&shared->segment, root, turn), bytes);
	return OK;
}

/* Extends the file and maps the new part. */
static enum status map_allocation(struct shared *shared, struct comm *comm, size_t bytes, const char *what)
{
	struct segment *segment = &shared->segment;
	int64_t available = memory_available(), size = comm->place.size;
	char needed[FORMAT_BYTES], left[FORMAT_BYTES];
	if (bytes > (size_t)INT64_MAX / 4 / (size_t)size || (available >= 0 && (double)bytes * (double)size > (double)available))
		return error_set(ERR_RESOURCE, "not enough memory for %s of %d ranks: %s needed, %s available", what,
				 comm->place.size, format_size(needed, (double)bytes * (double)size),
				 format_size(left, (double)available));
	int64_t stride = ((int64_t)bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	TRY(memory_grow(&shared->allocations, &shared->capacity, shared->count + 1, sizeof *shared->allocations,
			"a list of allocations"));
	if (comm->place.rank == 0 && ftruncate(segment->file, segment->end + stride * size) != 0)
		return error_set_errno(ERR_RESOURCE, "cannot make room for %s of %d ranks", what, comm->place.size);
	/* This may map the file before it is long enough: that is allowed, and no rank accesses the memory before all have
	 * agreed. */
	void *base = mmap(NULL, (size_t)(stride * size), PROT_READ | PROT_WRITE, MAP_SHARED, segment->file, segment->end);
	if (base == MAP_FAILED)
		return error_set_errno(ERR_RESOURCE, "cannot map %s of %d ranks", what, comm->place.size);
	madvise(base, (size_t)(stride * size), MADV_HUGEPAGE); /* only advice */
	shared->allocations[shared->count++] = (struct allocation){base, stride, segment->end};
	return OK;
}

static enum status shared_allocate(struct comm *comm, void **out, size_t bytes, const char *what)
{
	struct shared *shared = comm->own;
	int64_t before = shared->count;
	enum status status = comm_agree_status(comm, map_allocation(shared, comm, bytes ? bytes : 1, what));
	if (status == OK) {
		const struct allocation *allocation = &shared->allocations[before];
		*out = allocation->base + allocation->stride * comm->place.rank;
		shared->segment.end += allocation->stride * comm->place.size; /* only here is it the same in all ranks */
	} else if (shared->count > before) {
		struct allocation *allocation = &shared->allocations[--shared->count];
		munmap(allocation->base, (size_t)(allocation->stride * comm->place.size));
	}
	return status;
}

/* The allocation in which a range of this rank lies, or NULL. */
static struct allocation *find_allocation(struct shared *shared, int32_t rank, const void *data)
{
	for (int64_t i = 0; i < shared->count; i++) {
		struct allocation *allocation = &shared->allocations[i];
		uintptr_t start = (uintptr_t)allocation->base + (uintptr_t)(allocation->stride * rank), at = (uintptr_t)data;
		if (at >= start && at - start < (uintptr_t)allocation->stride)
			return allocation;
	}
	return NULL;
}

static void shared_release(struct comm *comm, void *memory)
{
	struct shared *shared = comm->own;
	struct allocation *allocation = find_allocation(shared, comm->place.rank, memory);
	BUG_IF(!allocation);
	/* The system gets back this rank's pages at once, and the other ranks' when they release theirs. */
	fallocate(shared->segment.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  allocation->offset + allocation->stride * comm->place.rank, allocation->stride);
	munmap(allocation->base, (size_t)(allocation->stride * comm->place.size));
	*allocation = shared->allocations[--shared->count];
}

/* Waits for all ranks, which must have come for the same operation. */
static enum status meet_for(struct comm *comm, const struct operation *operation, int64_t offset)
{
	struct shared *shared = comm->own;
	struct segment *segment = &shared->segment;
	struct segment_operation own = {.count = operation->count,
					.offset = offset,
					.kind = operation->kind,
					.type = (int32_t)operation->type,
					.wire = (int32_t)operation->wire};
	segment->header->ranks[comm->place.rank].operation = own;
	TRY(segment_meet(segment, MEETING_LARGE));
	rank_fault(comm->place.rank, "reduction", atomic_load(&segment->header->ranks[comm->place.rank].step));
	for (int32_t rank = 0; rank < comm->place.size; rank++) {
		const struct segment_operation *other = &segment->header->ranks[rank].operation;
		if (memcmp(other, &own, sizeof own) == 0)
			continue;
		struct error error = {.status = ERR_STATE};
		snprintf(error.message, sizeof error.message,
			 "ranks %d and %d are not at the same operation: kind %d of %lld numbers, kind %d of %lld numbers",
			 comm->place.rank, rank, own.kind, (long long)own.count, other->kind, (long long)other->count);
		segment_fail(segment, comm->place.rank, &error);
		TRY(segment_check(segment));
		return error_restore(&error);
	}
	return OK;
}

/* Sums `count` numbers of all ranks, which lie `stride` bytes apart from rank to rank, into `out`. */
static void sum_ranks(const struct comm *comm, void *out, const unsigned char *from, int64_t stride, int64_t count,
		      const struct operation *operation)
{
	double sum[BLOCK];
	int64_t size = (int64_t)comm_type_bytes(operation->type);
	for (int64_t done = 0; done < count; done += BLOCK) {
		int64_t now = count - done < BLOCK ? count - done : BLOCK;
		for (int32_t rank = 0; rank < comm->place.size; rank++)
			wire_add(sum, from + stride * rank + done * size, now, operation->type, operation->wire, rank == 0);
		memcpy((unsigned char *)out + done * size, sum, (size_t)(now * size));
	}
}

static enum status run_in_place(struct comm *comm, const struct operation *operation, struct allocation *allocation)
{
	struct shared *shared = comm->own;
	int64_t size = (int64_t)comm_type_bytes(operation->type);
	int64_t inside = (unsigned char *)operation->data - allocation->base - allocation->stride * comm->place.rank;
	TRY(meet_for(comm, operation, allocation->offset + inside));
	for (int32_t rank = 0; rank < comm->place.size; rank++) {
		int64_t first = comm_share(comm, operation->count, rank);
		int64_t count = comm_share(comm, operation->count, rank + 1) - first;
		unsigned char *mine = (unsigned char *)operation->data + first * size;
		if (operation->kind == OPERATION_REDUCE_SCATTER && rank == comm->place.rank)
			sum_ranks(comm, mine, allocation->base + inside + first * size, allocation->stride, count, operation);
		if (operation->kind == OPERATION_ALL_GATHER && rank != comm->place.rank)
			memcpy(mine, allocation->base + allocation->stride * rank + inside + first * size,
			       (size_t)(count * size));
	}
	return segment_meet(&shared->segment, MEETING_LARGE);
}

/* For data elsewhere: goes through the ranks' room for copies, one piece of every share at a time. */
static enum status run_copied(struct comm *comm, const struct operation *operation)
{
	struct shared *shared = comm->own;
	int64_t size = (int64_t)comm_type_bytes(operation->type), ranks = comm->place.size, longest = 0;
	bool reduces = operation->kind == OPERATION_REDUCE_SCATTER;
	int64_t piece = SEGMENT_LARGE_BYTES / size / (reduces ? ranks : 1) / 64 * 64;
	unsigned char *data = operation->data, *room = segment_large(&shared->segment, comm->place.rank);
	TRY(meet_for(comm, operation, -1));
	for (int32_t rank = 0; rank < ranks; rank++) {
		int64_t count = comm_share(comm, operation->count, rank + 1) - comm_share(comm, operation->count, rank);
		longest = count > longest ? count : longest;
	}
	for (int64_t done = 0; done < longest; done += piece) {
		for (int pass = 0; pass < 2; pass++) {
			for (int32_t rank = 0; rank < ranks; rank++) {
				int64_t first = comm_share(comm, operation->count, rank) + done;
				int64_t count = comm_share(comm, operation->count, rank + 1) - first;
				count = count > piece ? piece : count;
				if (count <= 0)
					continue;
				bool own = rank == comm->place.rank;
				unsigned char *mine = data + first * size;
				if (pass == 0 && reduces)
					memcpy(room + rank * piece * size, mine, (size_t)(count * size));
				else if (pass == 0 && own)
					memcpy(room, mine, (size_t)(count * size));
				else if (pass == 1 && reduces && own)
					sum_ranks(comm, mine, segment_large(&shared->segment, 0) + rank * piece * size,
						  SEGMENT_LARGE_BYTES, count, operation);
				else if (pass == 1 && !reduces && !own)
					memcpy(mine, segment_large(&shared->segment, rank), (size_t)(count * size));
			}
			TRY(segment_meet(&shared->segment, MEETING_LARGE));
		}
	}
	return OK;
}

static enum status shared_run(struct comm *comm, const struct operation *operation)
{
	struct allocation *allocation = find_allocation(comm->own, comm->place.rank, operation->data);
	return allocation ? run_in_place(comm, operation, allocation) : run_copied(comm, operation);
}

static void shared_fail(struct comm *comm, const struct error *error)
{
	struct shared *shared = comm->own;
	struct error reported = *error;
	snprintf(reported.message, sizeof reported.message, "rank %d on %s: %.1400s", comm->place.rank, comm->place.host,
		 error->message);
	segment_fail(&shared->segment, comm->place.rank, &reported);
}

static void shared_section(struct comm *comm, const char *section, int64_t step)
{
	struct shared *shared = comm->own;
	watchdog_section(shared->watchdog, section, step);
}

static void shared_alive(struct comm *comm)
{
	struct shared *shared = comm->own;
	watchdog_alive(shared->watchdog);
}

static void shared_close(struct comm *comm)
{
	struct shared *shared = comm->own;
	watchdog_close(shared->watchdog);
	for (int64_t i = 0; i < shared->count; i++)
		munmap(shared->allocations[i].base, (size_t)(shared->allocations[i].stride * comm->place.size));
	free(shared->allocations);
	segment_leave(&shared->segment);
	free(shared);
}

enum status shared_open(struct comm *comm, const struct place *place, double watchdog_seconds)
{
	static const struct transport transport = {
		.gather = shared_gather,
		.broadcast = shared_broadcast,
		.allocate = shared_allocate,
		.release = shared_release,
		.perform = shared_run,
		.fail = shared_fail,
		.section = shared_section,
		.alive = shared_alive,
		.close = shared_close,
	};
	struct shared *shared;
	TRY(memory_new(&shared, 1, sizeof *shared, "the memory that ranks share"));
	int file = place->segment;
	enum status status = OK;
	shared->segment.file = -1;
	if (place->meeting == MEETING_NAME)
		status = rendezvous_find(place, &file);
	if (status == OK)
		status = segment_join(&shared->segment, file, place->ranks.rank, place->ranks.size);
	comm->own = shared;
	comm->transport = &transport;
	if (status == OK)
		status = watchdog_open(&shared->watchdog, &shared->segment, watchdog_seconds);
	if (status != OK) {
		shared_close(comm);
		comm->transport = NULL;
		return status;
	}
	comm->segment = &shared->segment;
	snprintf(comm->description, sizeof comm->description, "shared memory");
	return OK;
}
