/* The operations that ranks carry out together: small ones here, large ones handed to the queue. */
#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "comm/device.h"
#include "comm/transport.h"
#include "comm/wire.h"

void comm_close(struct comm *comm)
{
	if (!comm)
		return;
	if (comm->device)
		comm->device->close(comm);
	if (comm->transport && comm->transport->leave && comm->queue.started)
		comm->transport->leave(comm);
	queue_close(comm);
	if (comm->transport)
		comm->transport->close(comm);
	free(comm);
}

enum status comm_use_device(struct comm *comm, const struct comm_device *device)
{
	return comm->place.size == 1 ? OK : nccl_use(comm, device);
}

enum status comm_reserve(struct comm *comm, int64_t count, enum comm_type wire)
{
	enum status status = comm->device ? comm->device->reserve(comm, (size_t)count * comm_type_bytes(wire)) : OK;
	return comm_agree_status(comm, status);
}

const struct comm_place *comm_place(const struct comm *comm)
{
	return &comm->place;
}

const char *comm_description(const struct comm *comm)
{
	return comm->description;
}

enum status comm_allocate(struct comm *comm, void **out, size_t bytes, const char *what)
{
	if (comm->device)
		return comm->device->allocate(comm, out, bytes, what);
	/* The thread for large operations reads the list of allocations. */
	TRY(queue_wait(comm, comm->queue.begun));
	return comm->transport->allocate(comm, out, bytes, what);
}

void comm_release(struct comm *comm, void *memory)
{
	if (!memory)
		return;
	if (comm->device) {
		comm->device->release(comm, memory);
		return;
	}
	enum status status = queue_wait(comm, comm->queue.begun);
	(void)status; /* the memory is released whatever went wrong */
	comm->transport->release(comm, memory);
}

void comm_alive(struct comm *comm)
{
	if (comm->transport->alive)
		comm->transport->alive(comm);
}

/* A completed operation shows that this rank makes progress: an evaluation may have thousands of parts. */
static enum status going_on(struct comm *comm, enum status status)
{
	if (status == OK)
		comm_alive(comm);
	return status;
}

static enum status gather(struct comm *comm, const void *data, size_t bytes, void *out)
{
	return going_on(comm, comm->transport->gather(comm, data, bytes, out));
}

static enum status broadcast(struct comm *comm, void *data, size_t bytes, int32_t root)
{
	return going_on(comm, comm->transport->broadcast(comm, data, bytes, root));
}

enum status comm_gather(struct comm *comm, const void *data, size_t bytes, void *out)
{
	int32_t size = comm->place.size;
	unsigned char *pieces = NULL;
	if (bytes <= SEGMENT_SMALL_BYTES)
		return gather(comm, data, bytes, out);
	TRY(memory_new(&pieces, size, SEGMENT_SMALL_BYTES, "messages of ranks"));
	for (size_t done = 0; done < bytes; done += SEGMENT_SMALL_BYTES) {
		size_t now = bytes - done < SEGMENT_SMALL_BYTES ? bytes - done : SEGMENT_SMALL_BYTES;
		enum status status = gather(comm, (const unsigned char *)data + done, now, pieces);
		if (status != OK) {
			free(pieces);
			return status;
		}
		for (int32_t rank = 0; rank < size; rank++)
			memcpy((unsigned char *)out + (size_t)rank * bytes + done, pieces + (size_t)rank * now, now);
	}
	free(pieces);
	return OK;
}

/* Takes the sum or the maximum, in rank order. */
static enum status combine(struct comm *comm, double *values, int64_t count, bool is_sum)
{
	int64_t most = SEGMENT_SMALL_BYTES / (int64_t)sizeof(double);
	int32_t size = comm->place.size;
	double *all;
	if (size == 1)
		return OK;
	TRY(memory_new(&all, size * (count < most ? count : most), sizeof *all, "messages of ranks"));
	for (int64_t done = 0; done < count; done += most) {
		int64_t now = count - done < most ? count - done : most;
		enum status status = gather(comm, values + done, (size_t)now * sizeof *all, all);
		if (status != OK) {
			free(all);
			return status;
		}
		for (int64_t i = 0; i < now; i++) {
			double result = all[i];
			for (int32_t rank = 1; rank < size; rank++) {
				double other = all[rank * now + i];
				/* NaN wins. */
				result = is_sum ? result + other : other > result || other != other ? other : result;
			}
			values[done + i] = result;
		}
	}
	free(all);
	return OK;
}

enum status comm_sum(struct comm *comm, double *values, int64_t count)
{
	return combine(comm, values, count, true);
}

enum status comm_max(struct comm *comm, double *values, int64_t count)
{
	return combine(comm, values, count, false);
}

enum status comm_broadcast(struct comm *comm, void *data, size_t bytes, int32_t root)
{
	BUG_IF(root < 0 || root >= comm->place.size);
	for (size_t done = 0; done < bytes; done += SEGMENT_SMALL_BYTES) {
		size_t now = bytes - done < SEGMENT_SMALL_BYTES ? bytes - done : SEGMENT_SMALL_BYTES;
		TRY(broadcast(comm, (unsigned char *)data + done, now, root));
	}
	return OK;
}

int64_t comm_share(const struct comm *comm, int64_t count, int32_t rank)
{
	/* NCCL's collectives need equal shares. */
	return rank == comm->place.size ? count : count / (64 * (int64_t)comm->place.size) * 64 * rank;
}

static comm_ticket push(struct comm *comm, const struct operation *operation)
{
	BUG_IF(operation->count < 0);
	if (comm->place.size == 1 || operation->count == 0)
		return 0;
	return comm->device ? comm->device->begin(comm, operation) : queue_push(comm, operation);
}

comm_ticket comm_reduce_scatter(struct comm *comm, void *data, int64_t count, enum comm_type type, enum comm_type wire)
{
	BUG_IF(type != COMM_F32 && type != COMM_F64);
	BUG_IF(wire != type && wire != COMM_BF16 && wire != COMM_F16);
	return push(comm, &(struct operation){
				  .kind = OPERATION_REDUCE_SCATTER, .type = type, .wire = wire, .data = data, .count = count});
}

comm_ticket comm_all_gather(struct comm *comm, void *data, int64_t count, enum comm_type type)
{
	return comm_all_gather_with(comm, data, count, type, NULL, 0);
}

comm_ticket comm_all_gather_with(struct comm *comm, void *data, int64_t count, enum comm_type type,
				 const struct comm_piece *pieces, int64_t piece_count)
{
	BUG_IF(piece_count > 0 && comm->place.size > 1 && !comm->device);
	return push(comm, &(struct operation){.kind = OPERATION_ALL_GATHER,
					      .type = type,
					      .wire = type,
					      .data = data,
					      .count = count,
					      .pieces = pieces,
					      .piece_count = piece_count});
}

comm_ticket comm_all_reduce(struct comm *comm, double *sum, int64_t *flags, int64_t count)
{
	BUG_IF(!comm->device);
	return push(comm, &(struct operation){.kind = OPERATION_ALL_REDUCE,
					      .type = COMM_F64,
					      .wire = COMM_F64,
					      .data = sum,
					      .count = count,
					      .flags = flags});
}

bool comm_on_device(const struct comm *comm)
{
	return comm && comm->device;
}

enum status comm_wait(struct comm *comm, comm_ticket ticket)
{
	if (ticket == 0)
		return OK;
	return going_on(comm, comm->device ? comm->device->wait(comm, ticket) : queue_wait(comm, ticket));
}

enum status comm_settle(struct comm *comm, comm_ticket ticket)
{
	if (comm->place.size == 1)
		return OK;
	return going_on(comm, comm->device ? comm->device->settle(comm, ticket)
					   : queue_wait(comm, ticket ? ticket : comm->queue.begun));
}

void comm_fail(struct comm *comm, enum status status)
{
	if (!comm || status == OK || status == STOPPED)
		return;
	struct error own = *error_last();
	comm->transport->fail(comm, &own);
	if (comm->device)
		comm->device->abandon(comm);
	/* Names the machine that lacks room or whose device is broken. */
	if (status != ERR_RESOURCE || comm->place.size == 1 || strcmp(own.message, comm->agreed.message) == 0)
		return;
	char message[sizeof own.message];
	snprintf(message, sizeof message, "rank %d on %s: %.1400s", comm->place.rank, comm->place.host, own.message);
	memcpy(own.message, message, sizeof message);
	status = error_restore(&own);
}

void comm_seconds(struct comm *comm, double *out_busy, double *out_exposed)
{
	if (comm->device)
		comm->device->seconds(comm, out_busy, out_exposed);
	else
		queue_seconds(comm, out_busy, out_exposed);
}

void comm_section(struct comm *comm, const char *section, int64_t step)
{
	comm->step = step;
	if (comm->transport->section)
		comm->transport->section(comm, section, step);
}

/* What each rank contributes when all agree on a status. */
struct rank_report {
	struct error error;
	char host[64];
};

enum status comm_agree_status(struct comm *comm, enum status own_status)
{
	struct rank_report own = {0}, *all;
	int32_t size = comm->place.size, first = -1;
	/* All ranks already know of a failing peer, and none waits here anymore. */
	if (size == 1 || own_status == ERR_PEER)
		return own_status;
	if (own_status != OK)
		own.error = *error_last();
	own.error.status = own_status;
	snprintf(own.host, sizeof own.host, "%s", comm->place.host);
	TRY(memory_new(&all, size, sizeof *all, "messages of ranks"));
	enum status status = comm_gather(comm, &own, sizeof own, all);
	for (int32_t rank = 0; status == OK && rank < size; rank++) {
		enum status other = all[rank].error.status;
		bool fails = other != OK && other != STOPPED;
		if (other != OK && (first < 0 || (fails && all[first].error.status == STOPPED)))
			first = rank;
	}
	if (first >= 0) {
		struct error error = all[first].error;
		if (first != comm->place.rank && error.status != STOPPED)
			snprintf(error.message, sizeof error.message, "rank %d on %s: %.1400s", first, all[first].host,
				 all[first].error.message);
		comm->agreed = error;
		status = error_restore(&error);
	}
	free(all);
	return status;
}
