/* Limits that a container or service manager puts on this process (control groups version 1 and 2). */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdint.h>

/* Processor time as a number of cores (such as 1.5), or 0 if there is no limit. */
double cgroup_cpu_quota(void);

/* Bytes that may still be allocated, including page cache that can be dropped; -1 if there is no limit. */
int64_t cgroup_memory_left(void);

#endif
