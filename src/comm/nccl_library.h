/* The NCCL functions that we call: the library is loaded when ranks meet on GPUs, not at program start. */
#ifndef COMM_NCCL_LIBRARY_H
#define COMM_NCCL_LIBRARY_H

#include <nccl.h>
#include "base/error.h"

/* Types as nccl.h declares them. */
struct nccl_library {
	__typeof__(ncclGetVersion) *version;
	__typeof__(ncclGetErrorString) *error_string;
	__typeof__(ncclGetLastError) *last_error;
	__typeof__(ncclGetUniqueId) *unique_id;
	__typeof__(ncclCommInitRankConfig) *connect;
	__typeof__(ncclCommGetAsyncError) *async_error;
	__typeof__(ncclCommAbort) *abort;
	__typeof__(ncclCommDestroy) *destroy;
	__typeof__(ncclMemAlloc) *allocate;
	__typeof__(ncclMemFree) *free;
	__typeof__(ncclCommRegister) *enrol;
	__typeof__(ncclCommDeregister) *withdraw;
	__typeof__(ncclGroupStart) *group_start;
	__typeof__(ncclGroupEnd) *group_end;
	__typeof__(ncclAllReduce) *all_reduce;
	__typeof__(ncclReduce) *reduce;
	__typeof__(ncclReduceScatter) *reduce_scatter;
	__typeof__(ncclAllGather) *all_gather;
	__typeof__(ncclBroadcast) *broadcast;
};

/* Loads NCCL for the lifetime of the process, since it has threads of its own. ERR_RESOURCE if it is not installed. */
MUST_USE enum status nccl_load(struct nccl_library *out);

#endif
