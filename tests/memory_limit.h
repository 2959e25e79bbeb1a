/* For tests of what happens when there is no more memory: the limit of address space stands for it. */
#ifndef TESTS_MEMORY_LIMIT_H
#define TESTS_MEMORY_LIMIT_H

#include <sys/resource.h>
#include <unistd.h>
#include "base/buffer.h"
#include "test.h"

/* Lets this process have `bytes` more than it uses now, until *before is set again by setrlimit(RLIMIT_AS). Skips the test where
 * there is no such limit: qemu ignores it, because its own memory would count. */
static inline void limit_memory(struct rlimit *before, size_t bytes)
{
	struct buffer pages = {0};
	assert_int_equal(getrlimit(RLIMIT_AS, before), 0);
	assert_ok(file_read("/proc/self/statm", 4096, &pages));
	rlim_t used = (rlim_t)strtoull(buffer_string(&pages), NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE);
	buffer_release(&pages);
	struct rlimit limit = {.rlim_cur = used + bytes, .rlim_max = before->rlim_max}, taken;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &taken), 0);
	if (taken.rlim_cur != limit.rlim_cur)
		skip();
}

#endif
