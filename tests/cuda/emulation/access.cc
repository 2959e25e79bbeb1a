/* Checks every memory access of a kernel: kernels are compiled with the hooks of -fsanitize=thread, which are defined here
 * instead of in that sanitizer's library. An access must lie in device memory, the block's shared memory, the thread's own
 * variables, the parameters or constants; and between two accesses to the same place, at least one of them a write, there
 * must be a synchronization: a barrier for threads of a block, a warp-level one for lanes of a warp, the end of the kernel
 * for blocks. */
#include "access.h"
#include "emulation.h"

#include <utility>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <dlfcn.h>
#include <unistd.h>

bool emulated_race_check = true;

/* Absent if no kernel has constants. */
extern "C" __attribute__((weak)) unsigned char __start_emulated_constant[], __stop_emulated_constant[];

namespace
{

/* Blocks of device memory that were accessed lately: most accesses go to one of them. */
struct device_block {
	const unsigned char *first, *end;
} lately[8];
const unsigned char *parameters, *parameters_end, *shared, *shared_end, *stack;
size_t stack_bytes;
thread_local int thread = -1; /* in host threads that run no kernel, -1 */
unsigned block_number, launch_number, block_epoch;
unsigned warp_epochs[32];
bool paused;
/* A launch that is early must wait for those ahead of it, from the last one on that was not: `oldest`, which may still run. */
bool early, waited[1024];
unsigned oldest;

/* Who accessed two bytes last: launch 16 bits, block 20, thread 10, epochs of block and warp 9 each. 0: nobody. */
typedef uint64_t stamp;
struct place {
	stamp written, read;
};

stamp now; /* of an access by this thread */

void make_stamp()
{
	if (thread >= 0)
		now = (stamp)(launch_number & 0xffff) << 48 | (stamp)(block_number & 0xfffff) << 28 |
		      (stamp)(unsigned)thread << 18 | (stamp)(block_epoch & 0x1ff) << 9 | (warp_epochs[thread / 32] & 0x1ff);
}

inline bool races(stamp before, bool of_block)
{
	if (((before ^ now) >> 48) != 0 || before == now) /* another launch, or nobody: their numbers are not 0 */
		return false;
	if ((before >> 28) != (now >> 28))
		return !of_block; /* another block of the same launch; each block has its own shared memory */
	unsigned a = before >> 18 & 1023, b = now >> 18 & 1023;
	if (a == b || (before >> 9 & 0x1ff) != (now >> 9 & 0x1ff))
		return false;
	return a / 32 != b / 32 || (before & 0x1ff) == (now & 0x1ff);
}

/* The thread that wrote to 16 bytes of shared memory last, plus 1, and how many fences it had executed. */
struct last_write {
	unsigned writer, fences;
} last_writes[(256 << 10) / 16];
unsigned fences[1024];

/* Shadow memory for all addresses that are asked about, in a region of its own: its pages are allocated when they are
 * touched. */
struct shadow {
	uintptr_t first;
	place *places;
} device_shadow, shared_shadow;

place *shadow_of(struct shadow *s, const unsigned char *at, size_t bytes)
{
	if (s->places == nullptr) {
		void *region = mmap(nullptr, bytes / 2 * sizeof(place), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (region == MAP_FAILED)
			emulation_fault("no address space for the check of races");
		s->places = static_cast<place *>(region);
	}
	return s->places + ((uintptr_t)at - s->first) / 2;
}

void stamp_places(place *p, size_t bytes, bool write, const unsigned char *at)
{
	bool of_block = at >= shared && at < shared_end;
	for (size_t i = 0; i < (bytes + 1) / 2; i++, p++) {
		if (races(p->written, of_block) || (write && races(p->read, of_block))) {
			stamp other = races(p->written, of_block) ? p->written : p->read;
			emulation_fault("race: %s of %p (%s) and %s by block %u, thread %u", write ? "write" : "read",
					(const void *)(at + 2 * i), of_block ? "shared memory" : emulation_describe(at),
					other == p->written ? "a write" : "a read", (unsigned)(other >> 28 & 0xfffff),
					(unsigned)(other >> 18 & 1023));
		}
		if (write)
			p->written = now;
		else
			p->read = now;
	}
}

void check_early(const place *p, size_t bytes, bool write)
{
	for (size_t i = 0; i < (bytes + 1) / 2; i++, p++) {
		unsigned age = (launch_number - (unsigned)(p->written >> 48)) & 0xffff;
		if (write || (p->written != 0 && age > 0 && age <= launch_number - oldest))
			emulation_fault("%s of device memory before waiting for the kernels ahead", write ? "write" : "read");
	}
}

bool in_device_memory(const unsigned char *at, size_t bytes)
{
	for (device_block &block : lately)
		if (at >= block.first && at + bytes <= block.end) {
			std::swap(block, lately[0]);
			return true;
		}
	if (!emulation_is_device(at, bytes))
		return false;
	memmove(lately + 1, lately, sizeof(lately) - sizeof(lately[0]));
	emulation_block(at, &lately[0].first, &lately[0].end);
	return true;
}

} // namespace

void access_forget(const void *memory, size_t bytes)
{
	memset(lately, 0, sizeof(lately));
	if (device_shadow.places == nullptr)
		return;
	uintptr_t first = (uintptr_t)shadow_of(&device_shadow, static_cast<const unsigned char *>(memory), 0);
	uintptr_t end = first + bytes / 2 * sizeof(place);
	first = (first + 4095) / 4096 * 4096;
	if (end / 4096 * 4096 > first)
		madvise(reinterpret_cast<void *>(first), end / 4096 * 4096 - first, MADV_DONTNEED);
}

void access_launch(const void *first, size_t bytes, bool is_early)
{
	parameters = static_cast<const unsigned char *>(first);
	parameters_end = parameters + bytes;
	if ((++launch_number & 0xffff) == 0)
		launch_number++;
	early = is_early;
	if (!early)
		oldest = launch_number;
}

void access_block(unsigned block, const void *memory, size_t bytes)
{
	block_number = block;
	shared = static_cast<const unsigned char *>(memory);
	shared_end = shared + bytes;
	memset(last_writes, 0, (bytes + 15) / 16 * sizeof(last_writes[0]));
	memset(waited, 0, sizeof(waited));
	block_epoch++;
}

void access_thread(int number, const void *memory, size_t bytes)
{
	thread = number;
	stack = static_cast<const unsigned char *>(memory);
	stack_bytes = bytes;
	make_stamp();
}

void access_block_epoch(void)
{
	block_epoch++;
	make_stamp();
}

void access_warp_epoch(int warp)
{
	warp_epochs[warp]++;
	make_stamp();
}

void access_pause(bool pause)
{
	paused = pause;
}

/* The name is in the debug information; binutils can find it. */
const char *access_kernel_name(const void *kernel)
{
	static char name[512];
	char command[128];
	Dl_info info;
	if (dladdr(kernel, &info) == 0)
		return "?";
	snprintf(command, sizeof(command), "addr2line -Cfpe /proc/%d/exe %#lx", (int)getpid(),
		 (unsigned long)((const char *)kernel - (const char *)info.dli_fbase));
	FILE *pipe = popen(command, "r");
	if (pipe == nullptr || fgets(name, sizeof(name), pipe) == nullptr)
		snprintf(name, sizeof(name), "at %p", kernel);
	name[strcspn(name, "\n")] = '\0';
	if (pipe != nullptr)
		pclose(pipe);
	return name;
}

static __attribute__((noinline)) void check(const void *memory, size_t bytes, bool write)
{
	const unsigned char *at = static_cast<const unsigned char *>(memory), *end = at + bytes;
	if (thread < 0 || paused || (!write && at >= parameters && end <= parameters_end))
		return;
	if (at >= shared && end <= shared_end) {
		if (emulated_race_check) {
			shared_shadow.first = (uintptr_t)shared;
			stamp_places(shadow_of(&shared_shadow, at, 256 << 10), bytes, write, at);
			for (size_t i = (size_t)(at - shared) / 16; write && i * 16 < (size_t)(end - shared); i++)
				last_writes[i] = {(unsigned)thread + 1, fences[thread]};
		}
		return;
	}
	if (!write && __start_emulated_constant != nullptr && at >= __start_emulated_constant && end <= __stop_emulated_constant)
		return;
	if (in_device_memory(at, bytes)) {
		if (emulated_race_check) {
			size_t arena_bytes;
			device_shadow.first = (uintptr_t)emulation_arena(&arena_bytes);
			if (early && !waited[thread])
				check_early(shadow_of(&device_shadow, at, arena_bytes), bytes, write);
			stamp_places(shadow_of(&device_shadow, at, arena_bytes), bytes, write, at);
		}
		return;
	}
	emulation_fault("%s of %zu bytes at %p: %s", write ? "write" : "read", bytes, memory,
			at >= shared && at < shared + (256 << 10) ? "beyond shared memory" : emulation_describe(memory));
}

/* Most accesses are to the thread's own variables or, when nobody looks for races, to the block of device memory or the
 * shared memory that was accessed before. */
static inline void access(const void *memory, size_t bytes, bool write)
{
	const unsigned char *at = static_cast<const unsigned char *>(memory), *end = at + bytes;
	if ((at >= stack && end <= stack + stack_bytes) ||
	    (!emulated_race_check && ((at >= shared && end <= shared_end) || (at >= lately[0].first && end <= lately[0].end))))
		return;
	check(memory, bytes, write);
}

static inline void access_aligned(const void *memory, size_t bytes, bool write, size_t alignment)
{
	if (thread >= 0 && (uintptr_t)memory % alignment != 0)
		emulation_fault("%s of %zu bytes at %p: not aligned to %zu", write ? "write" : "read", bytes, memory, alignment);
	access(memory, bytes, write);
}

void emulation_access(const void *memory, size_t bytes, bool write)
{
	access(memory, bytes, write);
}

void emulation_access_aligned(const void *memory, size_t bytes, bool write, size_t alignment)
{
	access_aligned(memory, bytes, write, alignment);
}

void emulation_wait_for_previous(void)
{
	waited[thread] = true;
}

void access_end(void)
{
	if (early && !waited[thread])
		emulation_fault("a thread ends without having waited for the kernels ahead");
}

void emulation_fence_shared(void)
{
	fences[thread]++;
}

void emulation_access_by_product(const void *memory, size_t bytes)
{
	emulation_access_aligned(memory, bytes, false, bytes);
	const last_write *last = &last_writes[(size_t)(static_cast<const unsigned char *>(memory) - shared) / 16];
	if (last->writer > 0 && fences[last->writer - 1] == last->fences)
		emulation_fault("a product reads shared memory that thread %u wrote without a fence after it", last->writer - 1);
}

void emulation_access_atomic(const void *memory, size_t bytes)
{
	bool checked = emulated_race_check;
	emulated_race_check = false;
	emulation_access(memory, bytes, true);
	emulated_race_check = checked;
}

/* The functions that the compiler calls. */
extern "C" {
#define HOOKS(bytes)                                                                                                             \
	void __tsan_read##bytes(void *at)                                                                                        \
	{                                                                                                                        \
		access_aligned(at, bytes, false, bytes);                                                                         \
	}                                                                                                                        \
	void __tsan_write##bytes(void *at)                                                                                       \
	{                                                                                                                        \
		access_aligned(at, bytes, true, bytes);                                                                          \
	}                                                                                                                        \
	void __tsan_unaligned_read##bytes(void *at)                                                                              \
	{                                                                                                                        \
		access(at, bytes, false);                                                                                        \
	}                                                                                                                        \
	void __tsan_unaligned_write##bytes(void *at)                                                                             \
	{                                                                                                                        \
		access(at, bytes, true);                                                                                         \
	}
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
/* device_emulated.h has already checked the memory. */
uint32_t __tsan_atomic32_load(const uint32_t *at, int)
{
	return *at;
}
void __tsan_atomic32_store(uint32_t *at, uint32_t value, int)
{
	*at = value;
}
void __tsan_init(void)
{
}
void __tsan_func_entry(void *caller)
{
	(void)caller;
}
void __tsan_func_exit(void)
{
}
void __tsan_vptr_update(void **at, void *value)
{
	(void)at;
	(void)value;
}
void __tsan_read_range(void *at, unsigned long bytes)
{
	access(at, bytes, false);
}
void __tsan_write_range(void *at, unsigned long bytes)
{
	access(at, bytes, true);
}
}
