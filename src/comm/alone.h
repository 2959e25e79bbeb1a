/* Memory for ranges, not mapped by any other process. */
#ifndef COMM_ALONE_H
#define COMM_ALONE_H

#include "comm/comm.h"

MUST_USE enum status alone_allocate(struct comm *comm, void **out, size_t bytes, const char *what);
void alone_release(struct comm *comm, void *memory);

#endif
