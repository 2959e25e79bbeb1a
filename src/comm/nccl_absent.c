/* Stands in for NCCL in a build without CUDA: ranks on GPUs cannot meet. */
#include "comm/device.h"

void nccl_libraries(struct library_list *list)
{
	(void)list;
}

enum status nccl_use(struct comm *comm, const struct comm_device *device)
{
	(void)comm, (void)device;
	return error_set(ERR_USAGE, "ranks on GPUs: this program was built without CUDA");
}
