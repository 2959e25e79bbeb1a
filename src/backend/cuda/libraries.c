/* The NVIDIA libraries on this machine, for `bertc version`. */
#include <stdio.h>
#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cuda.h"

void cuda_libraries(struct library_list *list)
{
	struct cublaslt cublaslt;
	char version[32] = "";
	enum status status = cublaslt_load(&cublaslt);
	if (status == OK) {
		size_t number = cublaslt.version(); /* 130101 */
		snprintf(version, sizeof version, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
	}
	library_list_add_loaded(list, "cuBLASLt", status, version);
}
