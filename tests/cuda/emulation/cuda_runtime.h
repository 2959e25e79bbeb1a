/* The C++ side of the emulated runtime: qualifiers, vector types, built-in variables and kernel launches. */
#ifndef EMULATION_CUDA_RUNTIME_H
#define EMULATION_CUDA_RUNTIME_H

#include <math.h>
#include <string.h>
#include "cuda_runtime_api.h"
#include "emulation.h"

#ifdef __cplusplus
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
/* Memory that kernels may read without a pointer: placed where the emulation finds it. */
#define __constant__ __attribute__((section("emulated_constant")))

struct alignas(8) float2 {
	float x, y;
};
struct alignas(16) float4 {
	float x, y, z, w;
};
struct alignas(8) uint2 {
	unsigned x, y;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};
struct alignas(16) int4 {
	int x, y, z, w;
};
struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
	{
	}
};
struct uint3 {
	unsigned x, y, z;
};

/* Of the current thread. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
	cudaLaunchAttributeID id;
	struct {
		int programmaticStreamSerializationAllowed;
	} val;
};
struct cudaLaunchConfig_t {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	cudaLaunchAttribute *attrs;
	unsigned numAttrs;
};

namespace emulation
{
template <typename... P> struct call {
	void (*kernel)(P...);
	std::tuple<P...> parameters;
	static void invoke(const void *self)
	{
		const call *c = static_cast<const call *>(self);
		std::apply(c->kernel, c->parameters);
	}
	static void drop(void *self)
	{
		delete static_cast<call *>(self);
	}
};
} // namespace emulation

template <typename... P, typename... A>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...arguments)
{
	using call = emulation::call<P...>;
	call *c = new call{kernel, std::tuple<P...>(static_cast<P>(arguments)...)};
	emulated_launch launch = {reinterpret_cast<const void *>(kernel),
				  {config->gridDim.x, config->gridDim.y, config->gridDim.z},
				  {config->blockDim.x, config->blockDim.y, config->blockDim.z},
				  config->dynamicSmemBytes,
				  config->numAttrs > 0 && config->attrs->val.programmaticStreamSerializationAllowed != 0,
				  config->stream,
				  call::invoke,
				  call::drop,
				  c,
				  sizeof *c};
	return emulation_launch(&launch);
}

template <typename F> inline cudaError_t cudaFuncSetAttribute(F *function, cudaFuncAttribute attribute, int value)
{
	return cudaFuncSetAttribute(reinterpret_cast<const void *>(function), attribute, value);
}

template <typename F> inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, F *function)
{
	return cudaFuncGetAttributes(out, reinterpret_cast<const void *>(function));
}
#endif

#endif
