/* Large operations of GPU ranks, with NCCL on a separate stream. An operation starts after the work that the back end's stream
 * has been given so far; comm_wait makes that stream wait for the operation, not the host. Small messages, and the state of
 * the ranks, stay with the transport through which the ranks met.
 *
 * If a rank dies, the other ranks' devices wait for it forever. So the host waits for the device in nccl_settle(), watches the
 * other ranks meanwhile, and aborts NCCL's operations if one of them has failed. The communicator is a blocking one: a
 * nonblocking one starts a thread for every group and must be polled, which takes ten times as long. Its calls wait for other
 * ranks only while ranks connect (in the first operations); if one of them dies then, the watchdog ends this process. */
#include "comm/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "comm/nccl_library.h"
#include "comm/watchdog.h"
#include "comm/wire.h"

#define TIMES 256           /* number of operations whose times are kept until they are read */
#define EAGER_SECONDS 0.002 /* the host polls without pausing for this long, then at intervals of ... */
#define PAUSE_SECONDS 0.00005

/* When an operation began and ended on its stream; when the back end's stream began to wait for it, and when it continued. */
enum { BEGUN, ENDED, WAITING, GOING_ON, MARKS };

struct times {
	cudaEvent_t marks[MARKS];
	bool ran, waited; /* recorded and not yet read */
};

struct nccl {
	struct nccl_library library;
	ncclComm_t ranks;
	struct comm_device device;
	cudaStream_t stream;
	cudaEvent_t ready; /* everything before it on the back end's stream is done */
	struct times times[TIMES];
	comm_ticket begun;
	void *room; /* for numbers in their wire type */
	size_t room_bytes;
	double busy, exposed; /* seconds */
	struct error error;   /* the first error */
	struct allocation {
		void *memory, *handle;
	} * allocations;
	int64_t count, capacity;
};

/* Turns an error of the device into the back end's. */
static enum status check_cuda(const struct nccl *nccl, cudaError_t code, const char *what)
{
	return code == cudaSuccess ? OK : nccl->device.explain(code, what);
}

/* Another rank's failure, if this rank knows of one. */
static enum status check_others(struct comm *comm)
{
	TRY(queue_check(comm));
	return comm->segment ? segment_check(comm->segment) : OK;
}

static enum status check_nccl(const struct comm *comm, ncclResult_t code, const char *what)
{
	struct nccl *nccl = comm->device_own;
	if (code == ncclSuccess)
		return OK;
	/* If this rank's own device has failed, NCCL only says that something has. */
	cudaError_t own = cudaStreamQuery(nccl->stream);
	if (own != cudaSuccess && own != cudaErrorNotReady)
		return check_cuda(nccl, own, "an operation between ranks");
	return error_hinted(error_set(ERR_PEER, "NCCL: %s: %s: %s", what, nccl->library.error_string(code),
				      nccl->library.last_error(nccl->ranks)),
			    "set NCCL_DEBUG=INFO to get more detail from NCCL");
}

/* Whether an operation under way has failed. */
static enum status check_running(const struct comm *comm)
{
	struct nccl *nccl = comm->device_own;
	ncclResult_t now = ncclSuccess, code = nccl->library.async_error(nccl->ranks, &now);
	return check_nccl(comm, code == ncclSuccess ? now : code, "an operation failed");
}

static ncclDataType_t type_of(enum comm_type type)
{
	return type == COMM_F64 ? ncclFloat64 : type == COMM_F32 ? ncclFloat32 : type == COMM_BF16 ? ncclBfloat16 : ncclFloat16;
}

/* A range's equal shares in bytes, and the remainder behind them, which belongs to the last rank, too. */
struct shares {
	char *own, *rest; /* this rank's share; the remainder */
	size_t count, rest_count;
	int32_t last; /* the last rank */
};

static struct shares shares_of(const struct comm *comm, void *data, int64_t count, enum comm_type type)
{
	int64_t share = comm_share(comm, count, 1), size = comm->place.size;
	size_t bytes = comm_type_bytes(type);
	share = size == 1 ? count : share;
	return (struct shares){
		.own = (char *)data + (size_t)(share * comm->place.rank) * bytes,
		.rest = (char *)data + (size_t)(share * size) * bytes,
		.count = (size_t)share,
		.rest_count = (size_t)(count - share * size),
		.last = comm->place.size - 1,
	};
}

/* Sums each share in its rank. A group that was begun is ended even after an error: an open one would swallow all later calls,
 * and ncclCommAbort, too. */
static enum status sum(struct comm *comm, void *data, int64_t count, enum comm_type type)
{
	struct nccl *nccl = comm->device_own;
	const struct nccl_library *library = &nccl->library;
	struct shares shares = shares_of(comm, data, count, type);
	ncclResult_t code = ncclSuccess;
	TRY(check_nccl(comm, library->group_start(), "cannot sum"));
	if (shares.count > 0)
		code = library->reduce_scatter(data, shares.own, shares.count, type_of(type), ncclSum, nccl->ranks, nccl->stream);
	if (code == ncclSuccess && shares.rest_count > 0)
		code = library->reduce(shares.rest, shares.rest, shares.rest_count, type_of(type), ncclSum, shares.last,
				       nccl->ranks, nccl->stream);
	ncclResult_t ended = library->group_end();
	return check_nccl(comm, code == ncclSuccess ? ended : code, "cannot sum");
}

static enum status gather(struct comm *comm, const struct operation *operation)
{
	struct nccl *nccl = comm->device_own;
	const struct nccl_library *library = &nccl->library;
	struct shares shares = shares_of(comm, operation->data, operation->count, operation->type);
	ncclDataType_t type = type_of(operation->type);
	ncclResult_t code = ncclSuccess;
	TRY(check_nccl(comm, library->group_start(), "cannot gather"));
	if (shares.count > 0)
		code = library->all_gather(shares.own, operation->data, shares.count, type, nccl->ranks, nccl->stream);
	if (code == ncclSuccess && shares.rest_count > 0)
		code = library->broadcast(shares.rest, shares.rest, shares.rest_count, type, shares.last, nccl->ranks,
					  nccl->stream);
	for (int64_t i = 0; i < operation->piece_count && code == ncclSuccess; i++) {
		const struct comm_piece *piece = &operation->pieces[i];
		code = library->broadcast(piece->data, piece->data, (size_t)piece->count, ncclFloat32, piece->rank, nccl->ranks,
					  nccl->stream);
	}
	ncclResult_t ended = library->group_end();
	return check_nccl(comm, code == ncclSuccess ? ended : code, "cannot gather");
}

static enum status all_reduce(struct comm *comm, const struct operation *operation)
{
	struct nccl *nccl = comm->device_own;
	const struct nccl_library *library = &nccl->library;
	int64_t *flags = operation->flags;
	TRY(check_nccl(comm, library->group_start(), "cannot sum"));
	ncclResult_t code =
		library->all_reduce(operation->data, operation->data, 1, ncclFloat64, ncclSum, nccl->ranks, nccl->stream);
	if (code == ncclSuccess)
		code = library->all_reduce(flags, flags, (size_t)operation->count, ncclInt64, ncclMin, nccl->ranks, nccl->stream);
	ncclResult_t ended = library->group_end();
	return check_nccl(comm, code == ncclSuccess ? ended : code, "cannot sum");
}

/* Sums 16-bit numbers: they are rounded, summed by NCCL, which rounds again as the sum passes from rank to rank, and widened
 * again. */
static enum status sum_narrow(struct comm *comm, const struct operation *operation)
{
	struct nccl *nccl = comm->device_own;
	BUG_IF((size_t)operation->count * comm_type_bytes(operation->wire) > nccl->room_bytes);
	TRY(nccl->device.convert(nccl->device.context, nccl->stream, nccl->room, operation->wire, operation->data,
				 operation->type, operation->count));
	TRY(sum(comm, nccl->room, operation->count, operation->wire));
	int64_t first = comm_share(comm, operation->count, comm->place.rank);
	int64_t count = comm_share(comm, operation->count, comm->place.rank + 1) - first;
	return nccl->device.convert(
		nccl->device.context, nccl->stream, (char *)operation->data + (size_t)first * comm_type_bytes(operation->type),
		operation->type, (char *)nccl->room + (size_t)first * comm_type_bytes(operation->wire), operation->wire, count);
}

/* Adds up the times of an entry if all its marks have passed; false if they have not. */
static bool read_times(struct nccl *nccl, struct times *times)
{
	float milliseconds;
	if (times->ran && cudaEventQuery(times->marks[ENDED]) != cudaSuccess)
		return false;
	if (times->waited && cudaEventQuery(times->marks[GOING_ON]) != cudaSuccess)
		return false;
	if (times->ran && cudaEventElapsedTime(&milliseconds, times->marks[BEGUN], times->marks[ENDED]) == cudaSuccess)
		nccl->busy += 1e-3 * (double)milliseconds;
	if (times->waited && cudaEventElapsedTime(&milliseconds, times->marks[WAITING], times->marks[GOING_ON]) == cudaSuccess)
		nccl->exposed += 1e-3 * (double)milliseconds;
	times->ran = times->waited = false;
	return true;
}

static enum status start(struct comm *comm, const struct operation *operation, struct times *times)
{
	struct nccl *nccl = comm->device_own;
	TRY(check_cuda(nccl, cudaEventRecord(nccl->ready, nccl->device.stream), "an operation between ranks"));
	TRY(check_cuda(nccl, cudaStreamWaitEvent(nccl->stream, nccl->ready, 0), "an operation between ranks"));
	TRY(check_cuda(nccl, cudaEventRecord(times->marks[BEGUN], nccl->stream), "an operation between ranks"));
	if (operation->kind == OPERATION_ALL_GATHER)
		TRY(gather(comm, operation));
	else if (operation->kind == OPERATION_ALL_REDUCE)
		TRY(all_reduce(comm, operation));
	else if (operation->wire != operation->type)
		TRY(sum_narrow(comm, operation));
	else
		TRY(sum(comm, operation->data, operation->count, operation->type));
	rank_fault(comm->place.rank, "reduction", comm->step);
	return check_cuda(nccl, cudaEventRecord(times->marks[ENDED], nccl->stream), "an operation between ranks");
}

static comm_ticket nccl_begin(struct comm *comm, const struct operation *operation)
{
	struct nccl *nccl = comm->device_own;
	comm_ticket ticket = ++nccl->begun;
	struct times *times = &nccl->times[ticket % TIMES];
	/* The slot's previous entry: its times are lost if nobody has waited for it. */
	read_times(nccl, times);
	times->ran = times->waited = false;
	if (nccl->error.status == OK && start(comm, operation, times) != OK)
		nccl->error = *error_last();
	times->ran = nccl->error.status == OK;
	return ticket;
}

static enum status nccl_wait(struct comm *comm, comm_ticket ticket)
{
	struct nccl *nccl = comm->device_own;
	struct times *times = &nccl->times[ticket % TIMES];
	if (nccl->error.status != OK)
		return error_restore(&nccl->error);
	TRY(check_running(comm));
	/* Slots are reused in order: an older operation ended before the one that took its slot began. */
	bool is_timed = times->ran && !times->waited && nccl->begun - ticket < TIMES;
	cudaStream_t stream = nccl->device.stream;
	if (is_timed)
		TRY(check_cuda(nccl, cudaEventRecord(times->marks[WAITING], stream), "the wait for an operation between ranks"));
	TRY(check_cuda(nccl, cudaStreamWaitEvent(stream, times->marks[ENDED], 0), "the wait for an operation between ranks"));
	if (is_timed)
		TRY(check_cuda(nccl, cudaEventRecord(times->marks[GOING_ON], stream), "the wait for an operation between ranks"));
	times->waited = is_timed;
	return OK;
}

/* Makes the host wait. If the device itself failed, the back end reports it. */
static enum status nccl_settle(struct comm *comm, comm_ticket ticket)
{
	struct nccl *nccl = comm->device_own;
	if (nccl->error.status != OK)
		return error_restore(&nccl->error);
	if (nccl->begun == 0)
		return OK;
	cudaEvent_t last = nccl->times[(ticket ? ticket : nccl->begun) % TIMES].marks[ENDED];
	_Atomic uint32_t *waiting = comm->segment ? &comm->segment->header->ranks[comm->place.rank].waiting : NULL;
	double started = clock_seconds();
	enum status status = OK;
	if (waiting)
		atomic_fetch_add(waiting, 1);
	while (status == OK && cudaEventQuery(last) == cudaErrorNotReady) {
		cudaGetLastError(); /* not ready is not an error */
		status = check_running(comm);
		if (status == OK)
			status = check_others(comm);
		if (clock_seconds() - started > EAGER_SECONDS)
			clock_pause(PAUSE_SECONDS);
	}
	if (waiting)
		atomic_fetch_sub(waiting, 1);
	if (status != OK)
		nccl->error = *error_last();
	return status;
}

/* Returns when NCCL's kernels have ended. Work that waits for them on the device continues, with numbers that nobody will use. */
static void nccl_abandon(struct comm *comm)
{
	struct nccl *nccl = comm->device_own;
	if (nccl->error.status == OK)
		nccl->error = *error_last();
	if (nccl->ranks)
		nccl->library.abort(nccl->ranks);
	nccl->ranks = NULL;
}

static enum status out_of_memory(const char *what, size_t bytes)
{
	size_t available = 0, total = 0;
	char needed[FORMAT_BYTES], left[FORMAT_BYTES], all[FORMAT_BYTES];
	cudaMemGetInfo(&available, &total);
	return error_hinted(error_set(ERR_RESOURCE, "not enough GPU memory for %s: %s needed, %s of %s left", what,
				      format_size(needed, (double)bytes), format_size(left, (double)available),
				      format_size(all, (double)total)),
			    "stop other programs on the GPU (see nvidia-smi), or train a smaller model");
}

/* Memory registered with NCCL, so that switches and network cards can access it without a copy. */
static enum status nccl_allocate(struct comm *comm, void **out, size_t bytes, const char *what)
{
	struct nccl *nccl = comm->device_own;
	void *memory = NULL;
	TRY(memory_grow(&nccl->allocations, &nccl->capacity, nccl->count + 1, sizeof *nccl->allocations,
			"a list of allocations"));
	enum status status = OK;
	if (nccl->library.allocate(&memory, bytes ? bytes : 1) != ncclSuccess)
		status = out_of_memory(what, bytes);
	status = comm_agree_status(comm, status);
	if (status != OK) {
		if (memory)
			nccl->library.free(memory);
		return status;
	}
	struct allocation allocation = {.memory = memory};
	/* Registration only makes it faster; everything works without it. */
	if (nccl->library.enrol(nccl->ranks, memory, bytes, &allocation.handle) != ncclSuccess)
		allocation.handle = NULL;
	nccl->allocations[nccl->count++] = allocation;
	*out = memory;
	TRY(check_cuda(nccl, cudaMemsetAsync(memory, 0, bytes, nccl->device.stream), "cudaMemset"));
	return check_cuda(nccl, cudaStreamSynchronize(nccl->device.stream), "cudaMemset");
}

static void nccl_release(struct comm *comm, void *memory)
{
	struct nccl *nccl = comm->device_own;
	cudaStreamSynchronize(nccl->stream);
	for (int64_t i = 0; i < nccl->count; i++) {
		if (nccl->allocations[i].memory != memory)
			continue;
		if (nccl->allocations[i].handle && nccl->ranks)
			nccl->library.withdraw(nccl->ranks, nccl->allocations[i].handle);
		nccl->library.free(memory);
		nccl->allocations[i] = nccl->allocations[--nccl->count];
		return;
	}
}

static enum status nccl_reserve(struct comm *comm, size_t bytes)
{
	struct nccl *nccl = comm->device_own;
	if (bytes <= nccl->room_bytes)
		return OK;
	TRY(nccl_settle(comm, 0));
	cudaFree(nccl->room);
	nccl->room = NULL;
	nccl->room_bytes = 0;
	if (cudaMalloc(&nccl->room, bytes) != cudaSuccess) {
		cudaGetLastError();
		return out_of_memory("numbers between ranks", bytes);
	}
	nccl->room_bytes = bytes;
	return OK;
}

static void nccl_seconds(const struct comm *comm, double *out_busy, double *out_exposed)
{
	struct nccl *nccl = comm->device_own;
	for (int i = 0; i < TIMES; i++)
		read_times(nccl, &nccl->times[i]);
	*out_busy = nccl->busy;
	*out_exposed = nccl->exposed;
}

static void nccl_close(struct comm *comm)
{
	struct nccl *nccl = comm->device_own;
	/* Some operations under way may never end. */
	bool idle = nccl->error.status == OK &&
		    (nccl->begun == 0 || cudaEventQuery(nccl->times[nccl->begun % TIMES].marks[ENDED]) == cudaSuccess);
	if (nccl->ranks && !idle) {
		nccl->library.abort(nccl->ranks); /* and forgets the memory registered with it */
		nccl->ranks = NULL;
	}
	while (nccl->count > 0)
		nccl_release(comm, nccl->allocations[0].memory);
	if (nccl->ranks)
		nccl->library.destroy(nccl->ranks);
	cudaFree(nccl->room);
	for (int i = 0; i < TIMES; i++)
		for (int mark = 0; mark < MARKS; mark++)
			if (nccl->times[i].marks[mark])
				cudaEventDestroy(nccl->times[i].marks[mark]);
	if (nccl->ready)
		cudaEventDestroy(nccl->ready);
	if (nccl->stream)
		cudaStreamDestroy(nccl->stream);
	free(nccl->allocations);
	free(nccl);
	comm->device = NULL;
	comm->device_own = NULL;
}

static enum status connect_ranks(struct comm *comm)
{
	struct nccl *nccl = comm->device_own;
	ncclUniqueId id;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	enum status status = OK;
	memset(&id, 0, sizeof id);
	if (comm->place.rank == 0)
		status = check_nccl(comm, nccl->library.unique_id(&id), "cannot begin");
	TRY(comm_agree_status(comm, status));
	TRY(comm_broadcast(comm, &id, sizeof id, 0));
	return check_nccl(comm, nccl->library.connect(&nccl->ranks, comm->place.size, id, comm->place.rank, &config),
			  "cannot begin");
}

static enum status prepare(struct nccl *nccl)
{
	int low, high;
	TRY(nccl_load(&nccl->library));
	TRY(check_cuda(nccl, cudaDeviceGetStreamPriorityRange(&low, &high), "the stream of NCCL"));
	/* Highest priority: waiting for a sum costs more than delaying the work that runs beside it. */
	TRY(check_cuda(nccl, cudaStreamCreateWithPriority(&nccl->stream, cudaStreamNonBlocking, high), "the stream of NCCL"));
	TRY(check_cuda(nccl, cudaEventCreateWithFlags(&nccl->ready, cudaEventDisableTiming), "the stream of NCCL"));
	for (int i = 0; i < TIMES; i++)
		for (int mark = 0; mark < MARKS; mark++)
			TRY(check_cuda(nccl, cudaEventCreate(&nccl->times[i].marks[mark]), "the stream of NCCL"));
	return OK;
}

void nccl_libraries(struct library_list *list)
{
	struct nccl_library library;
	char version[32] = "";
	int number = 0; /* 22803 */
	enum status status = nccl_load(&library);
	if (status == OK) {
		library.version(&number);
		snprintf(version, sizeof version, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
	}
	library_list_add_loaded(list, "NCCL", status, version);
}

enum status nccl_use(struct comm *comm, const struct comm_device *device)
{
	static const struct device_transport transport = {
		.begin = nccl_begin,
		.wait = nccl_wait,
		.allocate = nccl_allocate,
		.release = nccl_release,
		.reserve = nccl_reserve,
		.settle = nccl_settle,
		.abandon = nccl_abandon,
		.seconds = nccl_seconds,
		.close = nccl_close,
	};
	struct nccl *nccl;
	int version = 0;
	TRY(memory_new(&nccl, 1, sizeof *nccl, "NCCL"));
	nccl->device = *device;
	comm->device_own = nccl;
	enum status status = comm_agree_status(comm, prepare(nccl));
	if (status == OK)
		status = connect_ranks(comm);
	if (status != OK) {
		struct error error = *error_last();
		nccl_close(comm);
		return error_restore(&error);
	}
	comm->device = &transport;
	nccl->library.version(&version);
	size_t used = strlen(comm->description);
	snprintf(comm->description + used, sizeof comm->description - used, ", NCCL %d.%d.%d", version / 10000,
		 version / 100 % 100, version % 100);
	return OK;
}
