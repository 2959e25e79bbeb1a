/* The emulated runtime: device memory, streams whose work runs only when something waits for it, events, graphs. Work
 * stays queued for as long as CUDA would allow, so that reusing a host buffer too early, or reading a result without
 * waiting, shows up. High-priority streams are the opposite: their work runs as soon as everything that it waits for has
 * run, so that work on them that should have waited for another stream shows up, too. Querying an event makes some
 * progress; so does the passage of time where other processes wait for the device. All calls are serialized by one lock. */
#include "cuda_runtime.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include "access.h"

struct emulated_device emulated_device = {1, 13000, 9, 0, 4, (size_t)4 << 30};
int64_t emulated_launches;
int64_t emulated_graphs_left = INT64_MAX;

namespace
{

std::recursive_mutex lock;
#define LOCKED std::lock_guard<std::recursive_mutex> guard(lock)

/* ---- Errors ---- */

cudaError_t sticky = cudaSuccess; /* once a device has failed, every call fails */
cudaError_t last = cudaSuccess;
cudaError_t failing_error = cudaSuccess;
int64_t failing_launch = -1;

cudaError_t result(cudaError_t error)
{
	if (sticky != cudaSuccess)
		error = sticky;
	if (error != cudaSuccess)
		last = error;
	return error;
}

/* ---- Memory ---- */

constexpr size_t ARENA_BYTES = (size_t)160 << 30, GUARD = 512;

struct memory {
	unsigned char *base = nullptr, *next = nullptr;
	std::map<const unsigned char *, size_t> blocks; /* on the device */
	std::map<const unsigned char *, size_t> pinned;
	size_t used = 0, most = 0;
	size_t pinned_used = 0, pinned_most = 0;
} memory;

const unsigned char *bytes_of(const void *p)
{
	return static_cast<const unsigned char *>(p);
}

bool inside(const std::map<const unsigned char *, size_t> &blocks, const void *at, size_t bytes)
{
	const unsigned char *p = bytes_of(at);
	auto next = blocks.upper_bound(p);
	if (next == blocks.begin())
		return false;
	--next;
	return p + bytes <= next->first + next->second;
}

bool in_arena(const void *at)
{
	return memory.base != nullptr && bytes_of(at) >= memory.base && bytes_of(at) < memory.base + ARENA_BYTES;
}

/* ---- Streams ---- */

/* The data of a queued piece of work; graphs share it. */
struct work {
	void (*run)(void *);
	void *context;
	void (*drop)(void *);
	bool (*ready)(void *); /* may be NULL: always ready */
	work(void (*run)(void *), void *context, void (*drop)(void *), bool (*ready)(void *))
	    : run(run), context(context), drop(drop), ready(ready)
	{
	}
	work(const work &) = delete;
	~work()
	{
		if (drop != nullptr)
			drop(context);
	}
};

} // namespace

struct emulated_graph {
	std::vector<std::shared_ptr<work>> nodes;
	std::set<emulated_stream *> streams; /* that have joined the capture */
	bool broken = false;
	cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
	std::thread::id thread = std::this_thread::get_id(); /* the thread that began it */
};

struct emulated_graph_exec {
	std::vector<std::shared_ptr<work>> nodes;
};

struct emulated_stream {
	std::deque<std::shared_ptr<work>> queue;
	bool eager = false; /* has high priority */
	emulated_graph *capture = nullptr;
	emulated_stream *origin = nullptr; /* of the capture */
	bool joined = true;                /* the origin has waited for an event recorded after its last captured work */
};

struct emulated_event {
	uint64_t recorded = 0, reached = 0; /* numbers of records, queued and executed */
	emulated_stream *stream = nullptr;
	emulated_stream *captured = nullptr;
	double time = 0;
};

namespace
{

std::set<emulated_stream *> streams;
emulated_stream *default_stream()
{
	static emulated_stream stream;
	return &stream;
}

emulated_stream *real(cudaStream_t stream)
{
	return stream != nullptr ? stream : default_stream();
}

double emulated_now;

void run_one(emulated_stream *stream)
{
	emulated_now += 1e-6; /* device work takes time, always the same amount */
	std::shared_ptr<work> first = stream->queue.front();
	stream->queue.pop_front();
	first->run(first->context);
}

void run_all(emulated_stream *stream)
{
	while (!stream->queue.empty())
		run_one(stream);
}

struct wait_for {
	emulated_event *event;
	uint64_t number;
};

void drop_wait(void *context)
{
	delete static_cast<wait_for *>(context);
}

void run_wait(void *context)
{
	wait_for *w = static_cast<wait_for *>(context);
	while (w->event->reached < w->number && w->event->stream != nullptr && !w->event->stream->queue.empty())
		run_one(w->event->stream);
	if (w->event->reached < w->number)
		emulation_fault("a stream waits for an event that nothing will record");
}

void run_record(void *context)
{
	wait_for *w = static_cast<wait_for *>(context);
	w->event->reached = w->number;
	w->event->time = emulated_now += 0.001;
}

/* Runs the first piece of a stream's work if it need not wait; or, if allowed to help, a piece of what it waits for. */
bool run_ready(emulated_stream *stream, bool helps)
{
	if (stream->queue.empty())
		return false;
	const work *first = stream->queue.front().get();
	if (first->run == run_wait) {
		const wait_for *w = static_cast<const wait_for *>(first->context);
		if (w->event->reached < w->number)
			return helps && w->event->stream != nullptr && run_ready(w->event->stream, true);
	}
	if (first->ready != nullptr && !first->ready(first->context))
		return false;
	run_one(stream);
	return true;
}

void run_eager()
{
	for (emulated_stream *s : streams)
		while (s->eager && run_ready(s, false))
			;
}

/* If the host makes no calls for this long, the device runs by itself: other processes may wait for its part of a common
 * operation. */
constexpr unsigned IDLE_MICROSECONDS = 3000;
uint64_t calls; /* calls that queued work */
std::thread own_time;
bool quit;

bool waits_for_others(const emulated_stream *stream)
{
	for (const auto &w : stream->queue)
		if (w->ready != nullptr)
			return true;
	return false;
}

void run_while_idle()
{
	for (uint64_t before = 0;;) {
		usleep(IDLE_MICROSECONDS);
		LOCKED;
		if (quit)
			return;
		for (emulated_stream *s : streams)
			while (before == calls && waits_for_others(s) && run_ready(s, true))
				;
		before = calls;
	}
}

void stop_own_time()
{
	{
		LOCKED;
		quit = true;
	}
	own_time.join();
}

cudaError_t put(emulated_stream *stream, void (*run)(void *), void *context, void (*drop)(void *),
		bool (*ready)(void *) = nullptr)
{
	calls++;
	if (ready != nullptr && !own_time.joinable()) {
		own_time = std::thread(run_while_idle);
		atexit(stop_own_time);
	}
	auto w = std::make_shared<work>(run, context, drop, ready);
	if (stream->capture != nullptr) {
		stream->capture->nodes.push_back(w);
		stream->joined = stream->origin == stream;
	} else {
		stream->queue.push_back(w);
		run_eager();
	}
	return result(cudaSuccess);
}

/* During a capture nothing may wait or allocate, either in any thread or in the capturing thread: this invalidates the
 * capture, as on the device. */
bool spoils_capture()
{
	bool any = false;
	for (emulated_stream *s : streams) {
		emulated_graph *graph = s->capture;
		if (graph == nullptr || graph->mode == cudaStreamCaptureModeRelaxed ||
		    (graph->mode == cudaStreamCaptureModeThreadLocal && graph->thread != std::this_thread::get_id()))
			continue;
		graph->broken = true;
		any = true;
	}
	return any;
}

/* Calls that are not allowed on a stream while it captures. */
cudaError_t refuse(emulated_stream *stream, cudaError_t error)
{
	stream->capture->broken = true;
	return result(error);
}

/* ---- Copies ---- */

struct copy {
	void *to;
	const void *from; /* NULL: the memory is set to a value */
	size_t bytes;
	int value;
};

/* A graph may be launched after memory that it refers to has been freed. */
void check_place(const void *at, size_t bytes)
{
	if (bytes > 0 && !(in_arena(at) ? inside(memory.blocks, at, bytes) : inside(memory.pinned, at, bytes)))
		emulation_fault("a recorded copy or fill of %zu bytes names %p (%s): released meanwhile", bytes, at,
				emulation_describe(at));
}

void drop_copy(void *context)
{
	delete static_cast<copy *>(context);
}

void run_copy(void *context)
{
	copy *c = static_cast<copy *>(context);
	check_place(c->to, c->bytes);
	check_place(c->from, c->bytes);
	if (sticky == cudaSuccess)
		memmove(c->to, c->from, c->bytes);
}

/* Whole pages become zero by being given back: most of a large block is never touched. */
void fill(void *at, int value, size_t bytes)
{
	uintptr_t begin = (uintptr_t)at, end = begin + bytes, first = (begin + 4095) / 4096 * 4096, last = end / 4096 * 4096;
	if (value != 0 || bytes < 64 << 10 || !in_arena(at) ||
	    madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED) != 0)
		first = last = end;
	memset(at, value, first - begin);
	memset(reinterpret_cast<void *>(last), value, end - last);
}

void run_set(void *context)
{
	copy *c = static_cast<copy *>(context);
	check_place(c->to, c->bytes);
	if (sticky == cudaSuccess)
		fill(c->to, c->value, c->bytes);
}

void check_device(const void *at, size_t bytes, const char *what)
{
	if (bytes > 0 && !inside(memory.blocks, at, bytes))
		emulation_fault("%s of %zu bytes at %p (%s): not inside one block of device memory", what, bytes, at,
				emulation_describe(at));
}

void check_host(const void *at, const char *what)
{
	if (in_arena(at))
		emulation_fault("%s: %p is device memory where host memory is wanted", what, at);
}

void check_copy(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice)
		check_device(to, bytes, "copy to the device");
	else
		check_host(to, "copy to the host");
	if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)
		check_device(from, bytes, "copy from the device");
	else
		check_host(from, "copy from the host");
}

/* Whether this is the process whose device has the faults set in the environment. */
bool is_faulty()
{
	const char *faulty = getenv("EMULATED_FAULTY"), *visible = getenv("CUDA_VISIBLE_DEVICES");
	return faulty == nullptr || (visible != nullptr && strcmp(faulty, visible) == 0);
}

/* ---- Free memory ---- */

int64_t allocations, taken_after = INT64_MAX;
size_t taken_bytes;

size_t memory_free()
{
	size_t taken = allocations > taken_after && is_faulty() ? taken_bytes : 0, used = memory.used + taken;
	return used < emulated_device.memory ? emulated_device.memory - used : 0;
}

/* ---- Kernels ---- */

std::map<const void *, size_t> shared_limits;

size_t shared_limit(const void *kernel)
{
	auto limit = shared_limits.find(kernel);
	return limit != shared_limits.end() ? limit->second : 48 << 10;
}

struct queued_launch {
	emulated_launch launch;
};

void drop_launch(void *context)
{
	queued_launch *q = static_cast<queued_launch *>(context);
	q->launch.drop(q->launch.parameters);
	delete q;
}

void run_launch(void *context)
{
	queued_launch *q = static_cast<queued_launch *>(context);
	emulated_launches++;
	if (failing_launch >= 0 && is_faulty() && failing_launch-- == 0)
		sticky = failing_error;
	if (sticky == cudaSuccess)
		emulation_run_grid(&q->launch);
}

void report()
{
	FILE *file = memory.most > 0 ? fopen(getenv("EMULATED_REPORT"), "w") : nullptr;
	if (file == nullptr)
		return;
	fprintf(file, "%zu %zu %" PRId64 " %" PRId64 "\n", memory.most, memory.pinned_most, emulated_launches, allocations);
	fclose(file);
}

/* The settings of the device in the environment. */
struct environment {
	environment()
	{
		const char *device = getenv("EMULATED_DEVICE"), *fail = getenv("EMULATED_FAIL"),
			   *taken = getenv("EMULATED_TAKEN");
		int capability = 90, error = 0;
		if (device != nullptr && sscanf(device, "%d,%d,%d,%zu", &emulated_device.count, &emulated_device.driver_version,
						&capability, &emulated_device.memory) != 4)
			emulation_fault("EMULATED_DEVICE: '%s'", device);
		emulated_device.major = capability / 10;
		emulated_device.minor = capability % 10;
		if (fail != nullptr && sscanf(fail, "%" SCNd64 ":%d", &failing_launch, &error) != 2)
			emulation_fault("EMULATED_FAIL: '%s'", fail);
		failing_error = (cudaError_t)error;
		if (taken != nullptr && sscanf(taken, "%" SCNd64 ":%zu", &taken_after, &taken_bytes) != 2)
			emulation_fault("EMULATED_TAKEN: '%s'", taken);
		if (getenv("EMULATED_REPORT") != nullptr)
			atexit(report);
	}
} environment;

cudaError_t ready()
{
	if (emulated_device.driver_version / 1000 < CUDART_VERSION / 1000)
		return cudaErrorInsufficientDriver;
	if (emulated_device.count == 0)
		return cudaErrorNoDevice;
	return cudaSuccess;
}

} // namespace

bool emulation_is_device(const void *at, size_t bytes)
{
	return inside(memory.blocks, at, bytes);
}

const unsigned char *emulation_arena(size_t *out_bytes)
{
	*out_bytes = ARENA_BYTES;
	return memory.base;
}

void emulation_block(const void *at, const unsigned char **out_first, const unsigned char **out_end)
{
	auto block = std::prev(memory.blocks.upper_bound(bytes_of(at)));
	*out_first = block->first;
	*out_end = block->first + block->second;
}

bool emulation_is_pinned(const void *at, size_t bytes)
{
	return inside(memory.pinned, at, bytes);
}

const char *emulation_describe(const void *at)
{
	static char text[128];
	if (!in_arena(at))
		return emulation_is_pinned(at, 1) ? "pinned host memory" : "host memory";
	auto next = memory.blocks.upper_bound(bytes_of(at));
	if (next == memory.blocks.begin())
		return "before all device memory";
	--next;
	snprintf(text, sizeof(text), "byte %zu of a block of %zu bytes", (size_t)(bytes_of(at) - next->first), next->second);
	return text;
}

size_t emulated_memory_used(void)
{
	return memory.used;
}

int64_t emulated_blocks(void)
{
	return (int64_t)memory.blocks.size();
}

void emulated_fail_after(int64_t launches, cudaError_t error)
{
	LOCKED;
	failing_launch = launches;
	failing_error = error;
	if (launches < 0)
		sticky = last = cudaSuccess;
}

cudaError_t emulation_enqueue(cudaStream_t stream, void (*run)(void *context), void *context, void (*drop)(void *context))
{
	LOCKED;
	return put(real(stream), run, context, drop);
}

cudaError_t emulation_enqueue_when(cudaStream_t stream, bool (*ready)(void *context), void (*run)(void *context), void *context,
				   void (*drop)(void *context))
{
	LOCKED;
	return put(real(stream), run, context, drop, ready);
}

cudaError_t emulation_launch(const struct emulated_launch *launch)
{
	LOCKED;
	const unsigned *g = launch->grid, *b = launch->block;
	size_t most = shared_limit(launch->kernel);
	cudaError_t error = cudaSuccess;
	if (g[0] == 0 || g[1] == 0 || g[2] == 0 || b[0] == 0 || b[1] == 0 || b[2] == 0 || g[0] > 2147483647u || g[1] > 65535u ||
	    g[2] > 65535u || b[0] * b[1] * b[2] > 1024 || b[2] > 64)
		error = cudaErrorInvalidConfiguration;
	else if (launch->shared > most || launch->parameter_bytes > 4096 + 64)
		error = cudaErrorInvalidValue;
	if (error != cudaSuccess) {
		launch->drop(launch->parameters);
		return result(error);
	}
	return put(real(launch->stream), run_launch, new queued_launch{*launch}, drop_launch);
}

extern "C" {

const char *cudaGetErrorName(cudaError_t error)
{
	switch (error) {
	case cudaSuccess: return "cudaSuccess";
	case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
	case cudaErrorNoDevice: return "cudaErrorNoDevice";
	case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
	case cudaErrorECCUncorrectable: return "cudaErrorECCUncorrectable";
	case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
	default: return "cudaErrorOfTheEmulation";
	}
}

const char *emulated_library(const char *file)
{
	static char nowhere[64];
	const char *lacks = getenv("EMULATED_LACKS");
	if (lacks == nullptr || strcmp(lacks, file) != 0 || !is_faulty())
		return nullptr;
	snprintf(nowhere, sizeof(nowhere), "/nowhere/%s", file);
	return nowhere;
}

const char *cudaGetErrorString(cudaError_t error)
{
	switch (error) {
	case cudaSuccess: return "no error";
	case cudaErrorMemoryAllocation: return "out of memory";
	case cudaErrorNoDevice: return "no CUDA-capable device is detected";
	case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
	case cudaErrorECCUncorrectable: return "uncorrectable ECC error encountered";
	case cudaErrorInvalidConfiguration: return "invalid configuration argument";
	case cudaErrorInvalidValue: return "invalid argument";
	case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
	case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
	case cudaErrorLaunchFailure: return "unspecified launch failure";
	default: return "an error of the emulation";
	}
}

cudaError_t cudaPeekAtLastError(void)
{
	return last;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last;
	last = sticky;
	return error;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = emulated_device.driver_version;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t error = ready();
	*count = error == cudaSuccess ? emulated_device.count : 0;
	return result(error);
}

cudaError_t cudaSetDevice(int device)
{
	return result(ready() != cudaSuccess ? ready() : device < emulated_device.count ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return result(ready());
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
	(void)device;
	memset(out, 0, sizeof(*out));
	const char *name = getenv("EMULATED_NAME");
	snprintf(out->name, sizeof(out->name), "%s", name != nullptr ? name : "emulated device");
	out->totalGlobalMem = emulated_device.memory;
	out->major = emulated_device.major;
	out->minor = emulated_device.minor;
	out->multiProcessorCount = emulated_device.processors;
	int capability = 10 * emulated_device.major + emulated_device.minor;
	bool desktop = capability == 86 || capability == 89 || capability >= 120;
	out->sharedMemPerBlockOptin = (desktop ? 99 : capability >= 90 ? 227 : capability >= 80 ? 163 : 64) << 10;
	return result(ready());
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int device)
{
	struct cudaDeviceProp properties;
	cudaError_t error = cudaGetDeviceProperties(&properties, device);
	*out = attribute == cudaDevAttrMultiProcessorCount      ? properties.multiProcessorCount
	       : attribute == cudaDevAttrComputeCapabilityMajor ? properties.major
	       : attribute == cudaDevAttrComputeCapabilityMinor ? properties.minor
								: (int)properties.sharedMemPerBlockOptin;
	return error;
}

cudaError_t cudaDeviceSynchronize(void)
{
	LOCKED;
	if (spoils_capture())
		return result(cudaErrorStreamCaptureUnsupported);
	run_all(default_stream());
	for (emulated_stream *s : streams)
		run_all(s);
	return result(cudaSuccess);
}

cudaError_t cudaDeviceReset(void)
{
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
	*total = emulated_device.memory;
	*available = memory_free();
	return result(ready());
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
	LOCKED;
	*out = nullptr;
	if (spoils_capture())
		return result(cudaErrorStreamCaptureUnsupported);
	if (ready() != cudaSuccess || sticky != cudaSuccess)
		return result(ready());
	allocations++;
	if (bytes > memory_free())
		return result(cudaErrorMemoryAllocation);
	if (memory.base == nullptr) {
		void *base =
			mmap(nullptr, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (base == MAP_FAILED)
			return result(cudaErrorMemoryAllocation);
		memory.base = memory.next = static_cast<unsigned char *>(base);
	}
	/* Addresses are never reused, so that a use after free shows up. */
	size_t step = (bytes + GUARD + 511) / 512 * 512;
	if (memory.next + step > memory.base + ARENA_BYTES)
		return result(cudaErrorMemoryAllocation);
	*out = memory.next;
	/* NaN in every type: reading before writing shows up. The middle of a large block starts as zero. */
	constexpr size_t FILLED = 256 << 10;
	memset(*out, 0xff, bytes < FILLED ? bytes : FILLED);
	if (bytes > FILLED)
		memset(memory.next + bytes - FILLED, 0xff, FILLED);
	memory.blocks[memory.next] = bytes;
	memory.next += step;
	memory.used += bytes;
	memory.most = memory.used > memory.most ? memory.used : memory.most;
	return result(cudaSuccess);
}

cudaError_t cudaFree(void *at)
{
	LOCKED;
	if (at == nullptr)
		return result(cudaSuccess);
	if (spoils_capture())
		return result(cudaErrorStreamCaptureUnsupported);
	auto block = memory.blocks.find(bytes_of(at));
	if (block == memory.blocks.end())
		emulation_fault("cudaFree of %p, which is no block of device memory", at);
	cudaDeviceSynchronize();
	memory.used -= block->second;
	size_t whole = block->second / 4096 * 4096;
	unsigned char *page = (unsigned char *)(((uintptr_t)at + 4095) / 4096 * 4096);
	if (whole > 4096)
		madvise(page, whole - 4096, MADV_DONTNEED);
	access_forget(at, block->second);
	memory.blocks.erase(block);
	return result(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
	LOCKED;
	(void)flags;
	if (spoils_capture())
		return result(cudaErrorStreamCaptureUnsupported);
	*out = malloc(bytes > 0 ? bytes : 1);
	if (*out == nullptr)
		return result(cudaErrorMemoryAllocation);
	memset(*out, 0xff, bytes);
	memory.pinned[bytes_of(*out)] = bytes;
	memory.pinned_used += bytes;
	memory.pinned_most = memory.pinned_used > memory.pinned_most ? memory.pinned_used : memory.pinned_most;
	return result(ready());
}

cudaError_t cudaFreeHost(void *at)
{
	LOCKED;
	if (at == nullptr)
		return result(cudaSuccess);
	cudaDeviceSynchronize();
	auto block = memory.pinned.find(bytes_of(at));
	if (block == memory.pinned.end())
		emulation_fault("cudaFreeHost of %p, which is no pinned memory", at);
	memory.pinned_used -= block->second;
	memory.pinned.erase(block);
	free(at);
	return result(cudaSuccess);
}

/* On the default stream, which does not wait for non-blocking streams: neither does this call. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	LOCKED;
	if (spoils_capture())
		return result(cudaErrorStreamCaptureUnsupported);
	check_copy(to, from, bytes, kind);
	run_all(default_stream());
	if (sticky == cudaSuccess)
		memmove(to, from, bytes);
	return result(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	LOCKED;
	check_copy(to, from, bytes, kind);
	if (kind == cudaMemcpyHostToDevice && bytes > 0 && !emulation_is_pinned(from, bytes))
		emulation_fault("asynchronous copy from memory that is not pinned");
	if (kind == cudaMemcpyDeviceToHost && bytes > 0 && !emulation_is_pinned(to, bytes))
		emulation_fault("asynchronous copy to memory that is not pinned");
	return put(real(stream), run_copy, new copy{to, from, bytes, 0}, drop_copy);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
	LOCKED;
	check_device(at, bytes, "cudaMemset");
	if (spoils_capture())
		return result(cudaErrorStreamCaptureUnsupported);
	run_all(default_stream());
	memset(at, value, bytes);
	return result(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
	LOCKED;
	check_device(at, bytes, "cudaMemsetAsync");
	return put(real(stream), run_set, new copy{at, nullptr, bytes, value}, drop_copy);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
	LOCKED;
	(void)flags;
	*out = new emulated_stream;
	streams.insert(*out);
	return result(ready());
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
	cudaError_t error = cudaStreamCreateWithFlags(out, flags);
	(*out)->eager = priority < 0;
	return error;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return result(ready());
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	LOCKED;
	run_all(stream);
	streams.erase(stream);
	delete stream;
	return result(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	LOCKED;
	if (real(stream)->capture != nullptr)
		return refuse(real(stream), cudaErrorStreamCaptureUnsupported);
	run_all(real(stream));
	return result(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	LOCKED;
	if (real(stream)->capture != nullptr)
		return refuse(real(stream), cudaErrorStreamCaptureUnsupported);
	if (sticky != cudaSuccess)
		return sticky;
	return real(stream)->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	LOCKED;
	(void)flags;
	emulated_stream *s = real(stream);
	if (event->captured != nullptr) {
		emulated_stream *from = event->captured;
		if (from->capture == nullptr)
			emulation_fault("a stream waits for an event of a capture that has ended");
		if (s->capture == nullptr) { /* joins the capture */
			s->capture = from->capture;
			s->origin = from->origin;
			s->capture->streams.insert(s);
		}
		if (s == s->origin)
			from->joined = true;
		return result(cudaSuccess);
	}
	if (event->recorded == 0)
		return result(cudaSuccess);
	if (s->capture != nullptr) /* a graph cannot wait for work that was queued before it */
		return refuse(s, cudaErrorStreamCaptureIsolation);
	return put(s, run_wait, new wait_for{event, event->recorded}, drop_wait);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	LOCKED;
	if (stream == nullptr || stream->capture != nullptr)
		return result(cudaErrorStreamCaptureUnsupported);
	stream->capture = new emulated_graph;
	stream->capture->mode = mode;
	stream->capture->streams.insert(stream);
	stream->origin = stream;
	stream->joined = true;
	return result(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
	LOCKED;
	*out = nullptr;
	emulated_graph *graph = stream->capture;
	if (graph == nullptr || stream->origin != stream)
		return result(cudaErrorStreamCaptureInvalidated);
	if (graph->mode != cudaStreamCaptureModeRelaxed && graph->thread != std::this_thread::get_id())
		return refuse(stream, cudaErrorStreamCaptureWrongThread);
	bool joined = true;
	for (emulated_stream *s : graph->streams) {
		joined &= s->joined;
		s->capture = nullptr;
		s->origin = nullptr;
		s->joined = true;
	}
	if (graph->broken || !joined) {
		cudaError_t error = graph->broken ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
		delete graph;
		return result(error);
	}
	*out = graph;
	return result(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out)
{
	LOCKED;
	*out = real(stream)->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
	return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
	(void)flags;
	*out = new emulated_event;
	return result(ready());
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	LOCKED;
	if (event == nullptr)
		return cudaSuccess;
	cudaDeviceSynchronize();
	delete event;
	return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	LOCKED;
	emulated_stream *s = real(stream);
	if (s->capture != nullptr) {
		event->captured = s;
		return result(cudaSuccess);
	}
	event->captured = nullptr;
	event->stream = s;
	return put(s, run_record, new wait_for{event, ++event->recorded}, drop_wait);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	LOCKED;
	if (event->captured != nullptr && event->captured->capture != nullptr)
		return refuse(event->captured, cudaErrorCapturedEvent);
	if (spoils_capture())
		return result(cudaErrorStreamCaptureUnsupported);
	if (event->recorded > 0) {
		wait_for w = {event, event->recorded};
		run_wait(&w);
	}
	return result(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	LOCKED;
	if (event->captured != nullptr && event->captured->capture != nullptr)
		return refuse(event->captured, cudaErrorCapturedEvent);
	if (sticky != cudaSuccess)
		return sticky;
	if (event->reached < event->recorded && event->stream != nullptr)
		run_ready(event->stream, true);
	return result(event->reached == event->recorded ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t start, cudaEvent_t end)
{
	*out = (float)(1000 * (end->time - start->time));
	return result(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
	LOCKED;
	(void)flags;
	*out = nullptr;
	if (emulated_graphs_left <= 0)
		return result(cudaErrorMemoryAllocation);
	emulated_graphs_left--;
	*out = new emulated_graph_exec{graph->nodes};
	return result(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
	LOCKED;
	if (real(stream)->capture != nullptr)
		return refuse(real(stream), cudaErrorStreamCaptureUnsupported);
	for (const auto &node : graph->nodes) {
		const queued_launch *q = static_cast<const queued_launch *>(node->context);
		if (node->run == run_launch && q->launch.shared > shared_limit(q->launch.kernel))
			return result(cudaErrorInvalidValue); /* the limit was lowered after recording */
	}
	for (const auto &node : graph->nodes)
		real(stream)->queue.push_back(node);
	return result(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
	LOCKED;
	cudaDeviceSynchronize();
	delete graph;
	return result(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	delete graph;
	return result(cudaSuccess);
}

/* The non-template function; the overload for any kernel is in cuda_runtime.h. */
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
	LOCKED;
	struct cudaDeviceProp properties;
	cudaGetDeviceProperties(&properties, 0);
	if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
		return result(cudaSuccess);
	if ((size_t)value > properties.sharedMemPerBlockOptin)
		return result(cudaErrorInvalidValue);
	shared_limits[function] = (size_t)value > (size_t)(48 << 10) ? (size_t)value : 48 << 10;
	return result(cudaSuccess);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *function)
{
	LOCKED;
	out->maxDynamicSharedSizeBytes = (int)shared_limit(function);
	return result(cudaSuccess);
}

} /* extern "C" */
