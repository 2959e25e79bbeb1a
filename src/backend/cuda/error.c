/* The meaning of CUDA errors. */
#include "backend/cuda/state.h"

enum status cuda_error(cudaError_t error, const char *call)
{
	enum status status = error_set(ERR_RESOURCE, "the GPU failed: %s (%s, in %s)", cudaGetErrorString(error),
				       cudaGetErrorName(error), call);
	switch (error) {
	case cudaErrorInsufficientDriver:
	case cudaErrorSystemDriverMismatch: {
		int driver = 0, runtime = 0;
		cudaDriverGetVersion(&driver);
		cudaRuntimeGetVersion(&runtime);
		if (driver == 0) {
			status = error_set(ERR_RESOURCE, "there is no NVIDIA driver on this machine");
			error_hint("install one, or give --device cpu");
		} else {
			status = error_set(ERR_RESOURCE,
					   "the NVIDIA driver is too old: it knows CUDA %d.%d, this program needs %d.%d",
					   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
			error_hint("install a newer NVIDIA driver%s, or give --device cpu",
				   driver >= 12000 ? ", build this program with the toolkit of CUDA 12" : "");
		}
		break;
	}
	case cudaErrorNoDevice:
		status = error_set(ERR_RESOURCE, "there is no GPU that CUDA can use");
		error_hint("see what nvidia-smi and CUDA_VISIBLE_DEVICES say, or give --device cpu");
		break;
	case cudaErrorSystemNotReady:
		error_hint(
			"on machines with NVLink switches the fabric manager must run: systemctl start nvidia-fabricmanager (its "
			"version must be the driver's), or give --device cpu");
		break;
	case cudaErrorMemoryAllocation: error_hint("stop other programs on the GPU (see nvidia-smi)"); break;
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorUnsupportedPtxVersion:
		error_hint("this program was built for other GPUs: update the driver, or build it again with make CUDA=1");
		break;
	case cudaErrorECCUncorrectable:
		error_hint("the GPU's memory is damaged; the last checkpoint is intact: reset the GPU (nvidia-smi --gpu-reset) "
			   "or use another, and run the same command again");
		break;
	default:
		error_hint("the last checkpoint is intact: run the same command again; if it fails again, see dmesg for Xid "
			   "lines and compute-sanitizer for a bug of ours");
	}
	return status;
}

enum status cuda_explain(int error, const char *call)
{
	return cuda_error((cudaError_t)error, call);
}

bool cuda_check(struct cuda_state *state, cudaError_t error, const char *call)
{
	if (error != cudaSuccess && state->failed == cudaSuccess) {
		state->failed = error;
		state->failed_call = call;
	}
	return error == cudaSuccess;
}
