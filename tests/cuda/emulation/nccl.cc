/* Collectives between processes of one machine. Every rank has an area of memory that all map; in each operation it copies
 * its contribution there, waits until all have done so, and takes what it needs. An operation does nothing before its
 * stream reaches it, and a dead rank is waited for indefinitely, as on GPUs. Sums go around the ring, rounded at each
 * rank. With EMULATED_NCCL_REFUSES=rank:number in the environment, that call of a collective fails in that rank (1: its
 * first). */
#include "nccl.h"

#include <atomic>
#include <memory>
#include <vector>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "emulation.h"

namespace
{

constexpr size_t HEADER_BYTES = (size_t)1 << 20, AREA_BYTES = (size_t)1 << 30, GRANULARITY = (size_t)2 << 20;
constexpr int MOST_RANKS = 64;

enum kind { ALL_REDUCE = 1, ALL_LEAST, REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST };

/* The description of an operation, which must be the same in all ranks. */
struct description {
	int kind, type, root;
	size_t count;
};

struct rank_facts {
	std::atomic<uint64_t> posted, read; /* operations whose data lie in the area; up to which all areas were read */
	std::atomic<int> joined;
	description now;
};

struct header {
	rank_facts ranks[MOST_RANKS];
};

/* An id tells where to find the shared memory. */
struct where {
	int pid, file;
};

size_t bytes_of(ncclDataType_t type)
{
	return type == ncclFloat64 || type == ncclInt64 ? 8 : type == ncclFloat32 ? 4 : 2;
}

double get(const void *at, ncclDataType_t type, size_t i)
{
	switch (type) {
	case ncclInt64: return (double)static_cast<const int64_t *>(at)[i];
	case ncclFloat64: return static_cast<const double *>(at)[i];
	case ncclFloat32: return static_cast<const float *>(at)[i];
	case ncclFloat16: return (double)static_cast<const _Float16 *>(at)[i];
	default: {
		uint32_t bits = (uint32_t) static_cast<const uint16_t *>(at)[i] << 16;
		float x;
		memcpy(&x, &bits, sizeof(x));
		return x;
	}
	}
}

uint16_t to_bf16(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	if (x != x)
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void put(void *at, ncclDataType_t type, size_t i, double x)
{
	switch (type) {
	case ncclInt64: static_cast<int64_t *>(at)[i] = (int64_t)x; break;
	case ncclFloat64: static_cast<double *>(at)[i] = x; break;
	case ncclFloat32: static_cast<float *>(at)[i] = (float)x; break;
	case ncclFloat16: static_cast<_Float16 *>(at)[i] = (_Float16)(float)x; break;
	default: static_cast<uint16_t *>(at)[i] = to_bf16((float)x);
	}
}

double rounded(double x, ncclDataType_t type)
{
	double out;
	put(&out, type, 0, x);
	return get(&out, type, 0);
}

} // namespace

struct ncclComm {
	int rank = 0, size = 1, file = -1;
	bool blocking = true, aborted = false;
	int registered = 0;
	unsigned char *base = nullptr;
	uint64_t posted = 0; /* operations begun by this rank's stream */
	size_t mapped = 0;

	header *all() const
	{
		return reinterpret_cast<header *>(base);
	}
	unsigned char *area(int of) const
	{
		return base + HEADER_BYTES + (size_t)of * AREA_BYTES;
	}
	bool everyone(std::atomic<uint64_t> rank_facts::*what, uint64_t number) const
	{
		for (int i = 0; i < size; i++)
			if ((all()->ranks[i].*what).load() < number)
				return false;
		return true;
	}
	bool all_joined() const
	{
		for (int i = 0; i < size; i++)
			if (all()->ranks[i].joined.load() == 0)
				return false;
		return true;
	}
	~ncclComm()
	{
		if (base != nullptr)
			munmap(base, mapped);
		if (file >= 0)
			close(file);
	}
};

namespace
{

/* Aborted communicators are kept: queued operations check whether they are still valid. */
struct operation {
	std::shared_ptr<ncclComm> comm;
	description what;
	ncclDataType_t type;
	const void *from;
	void *to;
	uint64_t number; /* 0: not posted */
	cudaStream_t stream;
};

std::vector<std::shared_ptr<ncclComm>> communicators;
std::vector<operation *> grouped;
int group_depth;
int64_t calls; /* of collectives */

std::shared_ptr<ncclComm> find(ncclComm_t comm)
{
	for (const auto &c : communicators)
		if (c.get() == comm)
			return c;
	emulation_fault("NCCL: %p is no communicator, or one that has been destroyed", (void *)comm);
}

/* The number of elements that each rank contributes. */
size_t brought(const operation *o)
{
	return o->what.kind == REDUCE_SCATTER ? o->what.count * (size_t)o->comm->size : o->what.count;
}

size_t taken(const operation *o)
{
	if (o->what.kind == REDUCE && o->what.root != o->comm->rank)
		return 0;
	return o->what.kind == ALL_GATHER ? o->what.count * (size_t)o->comm->size : o->what.count;
}

/* Copies this rank's contribution once all ranks have read its previous one. */
bool post(operation *o)
{
	ncclComm *comm = o->comm.get();
	rank_facts &own = comm->all()->ranks[comm->rank];
	if (o->number != 0)
		return true;
	if (!comm->everyone(&rank_facts::read, comm->posted))
		return false;
	if (o->what.kind != BROADCAST || o->what.root == comm->rank)
		memcpy(comm->area(comm->rank), o->from, brought(o) * bytes_of(o->type));
	own.now = o->what;
	o->number = ++comm->posted;
	own.posted.store(o->number);
	return true;
}

/* The sum of element i, for which the ring ends at rank `last`. */
double ring_sum(const operation *o, size_t i, int last)
{
	int size = o->comm->size;
	double sum = get(o->comm->area((last + 1) % size), o->type, i);
	for (int hop = 2; hop <= size; hop++)
		sum = rounded(sum + get(o->comm->area((last + hop) % size), o->type, i), o->type);
	return sum;
}

void take(const operation *o)
{
	const ncclComm *comm = o->comm.get();
	size_t count = o->what.count, bytes = count * bytes_of(o->type);
	switch (o->what.kind) {
	case ALL_REDUCE:
		for (size_t i = 0; i < count; i++)
			put(o->to, o->type, i, ring_sum(o, i, (int)(i * (size_t)comm->size / count)));
		break;
	case ALL_LEAST:
		for (size_t i = 0; i < count; i++) {
			double least = get(comm->area(0), o->type, i);
			for (int rank = 1; rank < comm->size; rank++)
				least = std::min(least, get(comm->area(rank), o->type, i));
			put(o->to, o->type, i, least);
		}
		break;
	case REDUCE:
		for (size_t i = 0; i < count && o->what.root == comm->rank; i++)
			put(o->to, o->type, i, ring_sum(o, i, comm->rank));
		break;
	case REDUCE_SCATTER:
		for (size_t i = 0; i < count; i++)
			put(o->to, o->type, i, ring_sum(o, (size_t)comm->rank * count + i, comm->rank));
		break;
	case ALL_GATHER:
		for (int rank = 0; rank < comm->size; rank++)
			memcpy(static_cast<char *>(o->to) + (size_t)rank * bytes, comm->area(rank), bytes);
		break;
	case BROADCAST: memcpy(o->to, comm->area(o->what.root), bytes); break;
	}
}

bool is_ready(void *context)
{
	operation *o = static_cast<operation *>(context);
	return o->comm->aborted || (post(o) && o->comm->everyone(&rank_facts::posted, o->number));
}

void run(void *context)
{
	operation *o = static_cast<operation *>(context);
	ncclComm *comm = o->comm.get();
	while (!is_ready(o))
		usleep(50);
	if (comm->aborted)
		return;
	for (int rank = 0; rank < comm->size; rank++) {
		const description &other = comm->all()->ranks[rank].now;
		if (other.kind != o->what.kind || other.type != o->what.type || other.root != o->what.root ||
		    other.count != o->what.count)
			emulation_fault("NCCL: rank %d is at operation %d of %zu numbers, rank %d at operation %d of %zu",
					comm->rank, o->what.kind, o->what.count, rank, other.kind, other.count);
	}
	take(o);
	comm->all()->ranks[comm->rank].read.store(o->number);
	o->number = 0; /* a graph may run it again */
}

void drop(void *context)
{
	delete static_cast<operation *>(context);
}

ncclResult_t enqueue(operation *o)
{
	return emulation_enqueue_when(o->stream, is_ready, run, o, drop) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t begin(ncclComm_t handle, kind kind, const void *from, void *to, size_t count, ncclDataType_t type, int root,
		   cudaStream_t stream)
{
	std::shared_ptr<ncclComm> comm = find(handle);
	if (!comm->all_joined())
		emulation_fault("NCCL: an operation of a communicator that is still being made");
	const char *refused = getenv("EMULATED_NCCL_REFUSES");
	long long refusing, number;
	if (root < 0 || root >= comm->size)
		return ncclInvalidArgument;
	if (refused != nullptr && sscanf(refused, "%lld:%lld", &refusing, &number) == 2 && refusing == comm->rank &&
	    ++calls == number)
		return ncclInternalError;
	operation *o = new operation{comm, {kind, type, root, count}, type, from, to, 0, stream};
	if (brought(o) * bytes_of(type) > AREA_BYTES)
		emulation_fault("NCCL: %zu numbers are more than the emulation takes", brought(o));
	if (!emulation_is_device(from, brought(o) * bytes_of(type)))
		emulation_fault("NCCL: reads %zu numbers at %p: %s", brought(o), from, emulation_describe(from));
	if (!emulation_is_device(to, taken(o) * bytes_of(type)))
		emulation_fault("NCCL: writes %zu numbers at %p: %s", taken(o), to, emulation_describe(to));
	if (group_depth == 0)
		return enqueue(o);
	grouped.push_back(o);
	return ncclSuccess;
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version)
{
	*version = 23007;
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	return result == ncclSuccess           ? "no error"
	       : result == ncclInvalidArgument ? "invalid argument"
					       : "an error of the emulation";
}

const char *ncclGetLastError(ncclComm_t)
{
	return "";
}

/* Whole pages of the device, as in NCCL. */
ncclResult_t ncclMemAlloc(void **memory, size_t bytes)
{
	size_t whole = (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
	return cudaMalloc(memory, whole) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void *memory)
{
	return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
	*handle = memory;
	if (!emulation_is_device(memory, bytes))
		return ncclInvalidArgument;
	find(comm)->registered++;
	return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	if (handle == nullptr || find(comm)->registered-- == 0)
		return ncclInvalidArgument;
	return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	where w = {getpid(), memfd_create("emulated-nccl", MFD_CLOEXEC)};
	if (w.file < 0 || ftruncate(w.file, (off_t)(HEADER_BYTES + MOST_RANKS * AREA_BYTES)) != 0)
		return ncclSystemError;
	memset(id, 0, sizeof(*id));
	memcpy(id->internal, &w, sizeof(w));
	return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	where w;
	char path[64];
	memcpy(&w, id.internal, sizeof(w));
	if (size < 1 || size > MOST_RANKS || rank < 0 || rank >= size)
		return ncclInvalidArgument;
	auto comm = std::make_shared<ncclComm>();
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", w.pid, w.file);
	comm->file = w.pid == getpid() ? w.file : open(path, O_RDWR | O_CLOEXEC);
	comm->mapped = HEADER_BYTES + (size_t)size * AREA_BYTES;
	void *base = comm->file < 0
			     ? MAP_FAILED
			     : mmap(nullptr, comm->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, comm->file, 0);
	if (base == MAP_FAILED)
		return ncclSystemError;
	comm->base = static_cast<unsigned char *>(base);
	comm->rank = rank;
	comm->size = size;
	comm->blocking = config->blocking != 0;
	comm->all()->ranks[rank].joined.store(1);
	communicators.push_back(comm);
	*out = comm.get();
	while (comm->blocking && !comm->all_joined())
		usleep(100);
	return comm->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId id, int rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	return ncclCommInitRankConfig(out, size, id, rank, &config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	*error = find(comm)->all_joined() ? ncclSuccess : ncclInProgress;
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle)
{
	std::shared_ptr<ncclComm> comm = find(handle);
	if (group_depth > 0)
		emulation_fault("NCCL: a communicator is ended within a group: nothing would be");
	comm->aborted = true;
	for (size_t i = 0; i < communicators.size(); i++)
		if (communicators[i] == comm)
			communicators.erase(communicators.begin() + (ptrdiff_t)i--);
	return ncclSuccess;
}

/* Waits for pending operations. */
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	if (find(comm)->registered > 0)
		emulation_fault("NCCL: memory is still registered with a communicator that is destroyed");
	cudaDeviceSynchronize();
	return ncclCommAbort(comm);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
			   cudaStream_t stream)
{
	return begin(comm, op == ncclMin ? ALL_LEAST : ALL_REDUCE, from, to, count, type, 0, stream);
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t, int root, ncclComm_t comm,
			cudaStream_t stream)
{
	return begin(comm, REDUCE, from, to, count, type, root, stream);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
			       cudaStream_t stream)
{
	return begin(comm, REDUCE_SCATTER, from, to, count, type, 0, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
	return begin(comm, ALL_GATHER, from, to, count, type, 0, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
			   cudaStream_t stream)
{
	return begin(comm, BROADCAST, from, to, count, type, root, stream);
}

ncclResult_t ncclGroupStart(void)
{
	group_depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	if (group_depth == 0)
		return ncclInvalidUsage;
	if (--group_depth > 0)
		return ncclSuccess;
	std::vector<operation *> all;
	all.swap(grouped);
	ncclResult_t result = ncclSuccess;
	for (operation *o : all) {
		ncclResult_t one = enqueue(o);
		result = one != ncclSuccess ? one : result;
	}
	return result;
}

} /* extern "C" */
