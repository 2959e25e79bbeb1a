/* Loads NCCL and finds its functions. */
#include "comm/nccl_library.h"

#include "base/shared_library.h"

#ifndef NCCL_FILE /* set for the emulated device */
#define NCCL_FILE "libnccl.so.2"
#endif

enum status nccl_load(struct nccl_library *out)
{
	void *handle;
	const struct shared_library library = {.name = "NCCL",
					       .files = {NCCL_FILE},
					       .folder = "/usr/local/cuda/lib64",
					       .package = "NVIDIA's package libnccl2",
					       .instead = "give --n_gpus 1"};
	const struct shared_library_function functions[] = {
		{"ncclGetVersion", &out->version},
		{"ncclGetErrorString", &out->error_string},
		{"ncclGetLastError", &out->last_error},
		{"ncclGetUniqueId", &out->unique_id},
		{"ncclCommInitRankConfig", &out->connect},
		{"ncclCommGetAsyncError", &out->async_error},
		{"ncclCommAbort", &out->abort},
		{"ncclCommDestroy", &out->destroy},
		{"ncclMemAlloc", &out->allocate},
		{"ncclMemFree", &out->free},
		{"ncclCommRegister", &out->enrol},
		{"ncclCommDeregister", &out->withdraw},
		{"ncclGroupStart", &out->group_start},
		{"ncclGroupEnd", &out->group_end},
		{"ncclAllReduce", &out->all_reduce},
		{"ncclReduce", &out->reduce},
		{"ncclReduceScatter", &out->reduce_scatter},
		{"ncclAllGather", &out->all_gather},
		{"ncclBroadcast", &out->broadcast},
	};
	return shared_library_open(&handle, &library, functions, sizeof functions / sizeof functions[0]);
}
