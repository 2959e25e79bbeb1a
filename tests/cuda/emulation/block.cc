/* Runs blocks of threads on the host: every thread is a fiber that runs until it waits for others. Blocks run one after
 * another, the warps of a block in turns, both in an order that tests can shuffle. */
#include "cuda_runtime.h"

#include <vector>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "access.h"

void copies_check_done(void);   /* copies.cc */
void products_check_done(void); /* wgmma.cc */

#ifndef __x86_64__
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

__constant__ uint3 threadIdx, blockIdx;
__constant__ dim3 blockDim, gridDim;
uint64_t emulated_order;

namespace
{

constexpr size_t STACK_BYTES = 256 << 10;
constexpr int THREAD_LIMIT = 1024, WARP = 32, WARPGROUP = 128, BARRIERS = 16;

enum state { READY, AT_BARRIER, AT_WARP, AT_WARPGROUP, DONE };

struct fiber {
#ifdef __x86_64__
	void *stack_pointer;
#else
	ucontext_t context;
#endif
	enum state state;
	int barrier;
	void *brought; /* passed to a warp-level operation */
	const char *site;
	uint3 index;
	void *sanitizer;
};

struct meeting {
	unsigned mask, arrived;
	const char *site;
};

struct barrier {
	int wanted, arrived;
	const char *site;
};

fiber fibers[THREAD_LIMIT], scheduler;
meeting meetings[THREAD_LIMIT / WARP];
int gathered[THREAD_LIMIT / WARPGROUP]; /* threads that have come to a meeting of their warpgroup */
barrier barriers[BARRIERS];
unsigned char *stacks;
unsigned char *shared_region;
int thread_count, live_count, current = -1;
const emulated_launch *running;

#ifdef __x86_64__
/* Saves the callee-saved registers, switches stacks, restores what the other fiber had saved. */
extern "C" void emulation_switch(void **save, void *load);
asm(".text\n.globl emulation_switch\n.type emulation_switch,@function\nemulation_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size emulation_switch,.-emulation_switch\n");
#endif

#ifdef __SANITIZE_ADDRESS__
const void *scheduler_bottom; /* NULL until the first thread of a launch starts, which comes from the scheduler */
size_t scheduler_size;
#endif

unsigned char *stack_of(int thread)
{
	return stacks + (size_t)thread * STACK_BYTES;
}

fiber *fiber_of(int thread)
{
	return thread >= 0 ? &fibers[thread] : &scheduler;
}

#ifdef __SANITIZE_ADDRESS__
void finish_switch(void *saved)
{
	bool first = scheduler_bottom == nullptr;
	__sanitizer_finish_switch_fiber(saved, first ? &scheduler_bottom : nullptr, first ? &scheduler_size : nullptr);
}
#endif

/* Saves the thread that runs, or the scheduler, and goes on with another thread, or the scheduler (-1). */
void switch_to(int next, bool for_good = false)
{
	fiber *from = fiber_of(current), *to = fiber_of(next);
	current = next;
	if (next >= 0)
		threadIdx = to->index;
	access_thread(next, next >= 0 ? stack_of(next) : nullptr, next >= 0 ? STACK_BYTES : 0);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(for_good ? nullptr : &from->sanitizer, next >= 0 ? stack_of(next) : scheduler_bottom,
				       next >= 0 ? STACK_BYTES : scheduler_size);
#else
	(void)for_good;
#endif
#ifdef __x86_64__
	emulation_switch(&from->stack_pointer, to->stack_pointer);
#else
	swapcontext(&from->context, &to->context);
#endif
#ifdef __SANITIZE_ADDRESS__
	finish_switch(from->sanitizer);
#endif
}

/* The next lane of the warp that can run, in turns; -1: all wait for others or have finished. */
int next_of_warp(int after)
{
	int first = after / WARP * WARP;
	for (int i = 1; i <= WARP; i++) {
		int thread = first + (after + i) % WARP;
		if (thread < thread_count && fibers[thread].state == READY)
			return thread;
	}
	return -1;
}

/* Ends a thread's turn: directly to the next lane, because kernels exchange values between lanes all the time. */
void give_way(bool for_good)
{
	switch_to(next_of_warp(current), for_good);
}

void release_barrier(int id)
{
	barrier *b = &barriers[id];
	for (int i = 0; i < thread_count; i++)
		if (fibers[i].state == AT_BARRIER && fibers[i].barrier == id)
			fibers[i].state = READY;
	*b = {};
	access_block_epoch();
}

void thread_main()
{
#ifdef __SANITIZE_ADDRESS__
	finish_switch(nullptr);
#endif
	running->invoke(running->parameters);
	copies_check_done();
	products_check_done();
	access_end();
	fibers[current].state = DONE;
	live_count--;
	/* Threads that have exited count as arrived at the barrier of the whole block. */
	if (barriers[0].arrived > 0 && barriers[0].arrived == live_count)
		release_barrier(0);
	give_way(true);
	abort();
}

void start(int thread)
{
	fiber *f = &fibers[thread];
	*f = fiber();
	f->index = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / (blockDim.x * blockDim.y)};
#ifdef __x86_64__
	void **top = reinterpret_cast<void **>(stack_of(thread) + STACK_BYTES);
	*--top = nullptr; /* as if thread_main had been called: the stack is eight bytes off a multiple of 16 */
	*--top = reinterpret_cast<void *>(thread_main);
	top -= 6;
	f->stack_pointer = top;
#else
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = stack_of(thread);
	f->context.uc_stack.ss_size = STACK_BYTES;
	f->context.uc_link = nullptr;
	makecontext(&f->context, thread_main, 0);
#endif
}

/* Runs a warp until all of its threads wait for others or have finished. */
bool run_warp(int warp)
{
	int first = next_of_warp(warp * WARP + WARP - 1);
	if (first >= 0)
		switch_to(first);
	return first >= 0;
}

uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
	x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
	return x ^ (x >> 33);
}

void shuffle(std::vector<unsigned> &order, uint64_t seed)
{
	for (size_t i = order.size(); i > 1; i--)
		std::swap(order[i - 1], order[(seed = mix(seed + i)) % i]);
}

std::vector<unsigned> ordered(size_t count, uint64_t seed)
{
	std::vector<unsigned> order(count);
	for (size_t i = 0; i < count; i++)
		order[i] = (unsigned)i;
	if (emulated_order != 0)
		shuffle(order, mix(emulated_order + seed));
	return order;
}

__attribute__((noreturn)) void deadlock()
{
	fprintf(stderr, "threads of a block wait for each other for ever:\n");
	for (int i = 0; i < thread_count; i++)
		if (fibers[i].state != READY && fibers[i].state != DONE)
			if (i == 0 || fibers[i - 1].state != fibers[i].state || fibers[i - 1].site != fibers[i].site)
				fprintf(stderr, "  thread %d on at %s %s\n", i,
					fibers[i].state == AT_BARRIER ? "the barrier"
					: fibers[i].state == AT_WARP  ? "a meeting of its warp"
								      : "a meeting of its warpgroup",
					fibers[i].site);
	emulation_fault("divergent barrier");
}

void run_block(unsigned block)
{
	blockIdx = {block % gridDim.x, block / gridDim.x % gridDim.y, block / (gridDim.x * gridDim.y)};
	thread_count = live_count = (int)(blockDim.x * blockDim.y * blockDim.z);
	memset(meetings, 0, sizeof(meetings));
	memset(barriers, 0, sizeof(barriers));
	memset(gathered, 0, sizeof(gathered));
	memset(shared_region, 0xff, running->shared); /* NaN: reading before writing shows up */
	access_block(block, shared_region, running->shared);
	for (int i = 0; i < thread_count; i++)
		start(i);
	int warps = (thread_count + WARP - 1) / WARP;
	for (uint64_t pass = 0; live_count > 0; pass++) {
		bool any = false;
		for (unsigned warp : ordered((size_t)warps, block * 1000003u + pass))
			any |= run_warp((int)warp);
		if (!any)
			deadlock();
	}
}

} // namespace

void emulation_fault(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fprintf(stderr, "emulated device: ");
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	if (current >= 0) {
		fiber *f = &fibers[current];
		fprintf(stderr, "\n  in kernel %s, block (%u, %u, %u) of (%u, %u, %u), thread (%u, %u, %u)",
			access_kernel_name(running->kernel), blockIdx.x, blockIdx.y, blockIdx.z, gridDim.x, gridDim.y, gridDim.z,
			f->index.x, f->index.y, f->index.z);
	}
	fputc('\n', stderr);
	fflush(nullptr);
	abort();
}

void emulation_run_grid(const struct emulated_launch *launch)
{
	constexpr size_t SHARED_BYTES = 256 << 10;
	if (stacks == nullptr) {
		void *block = mmap(nullptr, (size_t)THREAD_LIMIT * STACK_BYTES + SHARED_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (block == MAP_FAILED)
			emulation_fault("no memory for stacks");
		stacks = static_cast<unsigned char *>(block);
		shared_region = stacks + (size_t)THREAD_LIMIT * STACK_BYTES;
		const char *races = getenv("EMULATED_RACES");
		if (races != nullptr && strcmp(races, "0") == 0)
			emulated_race_check = false;
	}
	running = launch;
#ifdef __SANITIZE_ADDRESS__
	scheduler_bottom = nullptr;
#endif
	gridDim = dim3(launch->grid[0], launch->grid[1], launch->grid[2]);
	blockDim = dim3(launch->block[0], launch->block[1], launch->block[2]);
	access_launch(launch->parameters, launch->parameter_bytes, launch->early);
	size_t blocks = (size_t)gridDim.x * gridDim.y * gridDim.z;
	if (emulated_order == 0) {
		for (size_t block = 0; block < blocks; block++)
			run_block((unsigned)block);
	} else {
		for (unsigned block : ordered(blocks, (uint64_t)emulated_launches))
			run_block(block);
	}
	running = nullptr;
}

void emulation_barrier(int id, int threads, const char *site)
{
	if (current < 0)
		emulation_fault("a barrier outside a kernel");
	barrier *b = &barriers[id];
	int wanted = threads > 0 ? threads : live_count;
	if (b->arrived > 0 && b->site != site && strcmp(b->site, site) != 0)
		emulation_fault("barrier at %s while other threads wait at %s", site, b->site);
	b->site = site;
	b->wanted = wanted;
	fiber *f = &fibers[current];
	f->state = AT_BARRIER;
	f->barrier = id;
	f->site = site;
	if (++b->arrived == wanted)
		release_barrier(id);
	give_way(false);
}

void emulation_warp(unsigned mask, void *mine, void (*run)(void *const lanes[32], unsigned mask, const void *context),
		    const void *context, const char *site)
{
	if (current < 0)
		emulation_fault("a meeting of a warp outside a kernel");
	int warp = current / WARP, lane = current % WARP;
	meeting *m = &meetings[warp];
	if ((mask >> lane & 1) == 0)
		emulation_fault("%s: lane %d is not in its own mask %08x", site, lane, mask);
	if (m->arrived == 0)
		*m = {mask, 0, site};
	else if (m->mask != mask || (m->site != site && strcmp(m->site, site) != 0))
		emulation_fault("lanes of a warp meet at %s (mask %08x) and %s (mask %08x)", site, mask, m->site, m->mask);
	fiber *f = &fibers[current];
	f->brought = mine;
	f->site = site;
	m->arrived |= 1u << lane;
	if (m->arrived != mask) {
		f->state = AT_WARP;
		give_way(false);
		return;
	}
	void *lanes[WARP];
	for (int i = 0; i < WARP; i++) {
		fiber *other = &fibers[warp * WARP + i];
		lanes[i] = (mask >> i & 1) != 0 ? other->brought : nullptr;
		if ((mask >> i & 1) != 0)
			other->state = READY;
	}
	m->arrived = 0;
	access_pause(true); /* looks at other threads' variables */
	if (run != nullptr)
		run(lanes, mask, context);
	access_pause(false);
	access_warp_epoch(warp);
}

void emulation_warpgroup(void *mine, void (*run)(void *const threads[WARPGROUP]), const char *site)
{
	int group = current / WARPGROUP;
	void *threads[WARPGROUP];
	fiber *f = &fibers[current];
	if ((group + 1) * WARPGROUP > thread_count)
		emulation_fault("%s: a warpgroup of less than four warps", site);
	f->brought = mine;
	f->site = site;
	if (++gathered[group] < WARPGROUP) {
		f->state = AT_WARPGROUP;
		give_way(false);
		return;
	}
	for (int i = 0; i < WARPGROUP; i++) {
		fiber *other = &fibers[group * WARPGROUP + i];
		if (strcmp(other->site, site) != 0)
			emulation_fault("threads of a warpgroup meet at %s and %s", site, other->site);
		threads[i] = other->brought;
		other->state = READY;
	}
	gathered[group] = 0;
	access_pause(true);
	run(threads);
	access_pause(false);
}

void *emulation_shared(size_t *out_bytes)
{
	if (out_bytes != nullptr)
		*out_bytes = running->shared;
	return shared_region;
}

unsigned emulation_lane(void)
{
	return (unsigned)current % WARP;
}
