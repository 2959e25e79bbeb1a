/* Limits that a container or service manager puts on this process (control groups version 1 and 2). */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdint.h>

/* Cores' worth of processor time ("1.5"), or 0 without a limit. */
double cgroup_cpu_quota(void);

/* Bytes that may still be taken, page cache that can be dropped included; -1 without a limit. */
int64_t cgroup_memory_left(void);

#endif
