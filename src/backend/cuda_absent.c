/* A build without CUDA: stubs for what src/backend/cuda provides. */
#include "backend/cuda/cuda.h"

enum status cuda_backend_open(struct backend *be, const struct backend_settings *settings)
{
	(void)be;
	return error_hinted(error_set(ERR_USAGE, "'%s': this program was built without CUDA", settings->device),
			    "build it with make CUDA=1, or give --device cpu");
}

enum dtype cuda_best_dtype(void)
{
	return DTYPE_F32;
}

bool cuda_is_built(void)
{
	return false;
}

void cuda_libraries(struct library_list *list)
{
	(void)list;
}

int cuda_count_gpus(void)
{
	return 0;
}
