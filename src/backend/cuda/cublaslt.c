/* Loads cuBLASLt and finds its functions. */
#include "backend/cuda/cublaslt.h"

#include "base/shared_library.h"

/* The names of file and package contain the headers' major version. */
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#ifndef CUBLASLT_FILE /* defined for the emulated device */
#define CUBLASLT_FILE "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)
#endif

enum status cublaslt_load(struct cublaslt *out)
{
	void *handle;
	const struct shared_library library = {.name = "cuBLASLt",
					       .files = {CUBLASLT_FILE},
					       .folder = "/usr/local/cuda/lib64",
					       .package = "NVIDIA's package libcublas-" TEXT(CUBLAS_VER_MAJOR) "-0",
					       .instead = "give --device cpu"};
	const struct shared_library_function functions[] = {
		{"cublasLtCreate", &out->create},
		{"cublasLtDestroy", &out->destroy},
		{"cublasLtGetVersion", &out->version},
		{"cublasLtMatmulDescCreate", &out->operation_create},
		{"cublasLtMatmulDescSetAttribute", &out->operation_set},
		{"cublasLtMatmulDescDestroy", &out->operation_destroy},
		{"cublasLtMatrixLayoutCreate", &out->layout_create},
		{"cublasLtMatrixLayoutDestroy", &out->layout_destroy},
		{"cublasLtMatmulPreferenceCreate", &out->preference_create},
		{"cublasLtMatmulPreferenceSetAttribute", &out->preference_set},
		{"cublasLtMatmulPreferenceDestroy", &out->preference_destroy},
		{"cublasLtMatmulAlgoGetHeuristic", &out->propose},
		{"cublasLtMatmulAlgoCheck", &out->check},
		{"cublasLtMatmul", &out->multiply},
	};
	return shared_library_open(&handle, &library, functions, sizeof functions / sizeof functions[0]);
}
