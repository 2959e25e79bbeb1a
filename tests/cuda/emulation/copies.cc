/* cp.async: the data that a thread has requested arrive in shared memory when the thread waits for its group. */
#include "device_emulated.h"

#include <deque>
#include <vector>

namespace
{

struct pending {
	void *to;
	const void *from;
	size_t valid, bytes;
};

struct thread_copies {
	std::vector<pending> open;
	std::deque<std::vector<pending>> groups;
};

thread_copies copies[1024];

thread_copies *mine()
{
	return &copies[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)];
}

void arrive(const std::vector<pending> &group)
{
	for (const pending &p : group) {
		emulation_access(p.to, p.bytes, true);
		memcpy(p.to, p.from, p.valid);
		memset(static_cast<char *>(p.to) + p.valid, 0, p.bytes - p.valid);
	}
}

} // namespace

void emulation_copy_async(void *shared, const void *global, size_t valid, size_t bytes)
{
	if ((bytes != 4 && bytes != 8 && bytes != 16) || valid > bytes)
		emulation_fault("an asynchronous copy of %zu of %zu bytes", valid, bytes);
	emulation_access_aligned(shared, bytes, true, bytes);
	if (valid > 0)
		emulation_access_aligned(global, valid, false, bytes == valid ? bytes : 1);
	memset(shared, 0xff, bytes);
	mine()->open.push_back({shared, global, valid, bytes});
}

void emulation_copy_commit(void)
{
	mine()->groups.push_back(mine()->open);
	mine()->open.clear();
}

void emulation_copy_wait(int groups_left)
{
	while ((int)mine()->groups.size() > groups_left) {
		arrive(mine()->groups.front());
		mine()->groups.pop_front();
	}
}

/* At the end of a thread no copy may be pending, or it would land in the shared memory of another block. */
void copies_check_done(void)
{
	if (!mine()->open.empty())
		emulation_fault("a thread ends before its asynchronous copies are committed");
	for (const auto &group : mine()->groups)
		if (!group.empty())
			emulation_fault("a thread ends before its asynchronous copies have arrived");
	mine()->groups.clear();
}
