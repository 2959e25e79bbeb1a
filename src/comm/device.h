/* Large operations in GPU memory: functions that replace those of the transport and the queue. */
#ifndef COMM_DEVICE_H
#define COMM_DEVICE_H

#include "base/library_list.h"
#include "comm/transport.h"

struct device_transport {
	comm_ticket (*begin)(struct comm *comm, const struct operation *operation);
	enum status (*wait)(struct comm *comm, comm_ticket ticket);
	enum status (*settle)(struct comm *comm, comm_ticket ticket);
	/* Operations under way will never end: makes the device give them up. */
	void (*abandon)(struct comm *comm);
	enum status (*allocate)(struct comm *comm, void **out, size_t bytes, const char *what);
	void (*release)(struct comm *comm, void *memory);
	enum status (*reserve)(struct comm *comm, size_t bytes); /* room for numbers in their wire type */
	void (*seconds)(const struct comm *comm, double *out_busy, double *out_exposed);
	void (*close)(struct comm *comm);
};

/* Lists NCCL, in a build with CUDA; loads it. */
void nccl_libraries(struct library_list *list);
/* Sets comm->device and comm->device_own. ERR_USAGE if the program was built without CUDA. */
MUST_USE enum status nccl_use(struct comm *comm, const struct comm_device *device);

#endif
