/* Describes a batch for cuDNN's attention. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256;

/* Four lists of capacity + 1: lengths, then the offset of each sequence in qkv, in y and in the log-sum-exp, in elements;
 * missing sequences are empty, at the end. */
__global__ void numbers_of(const struct kernel_cudnn_numbers a)
{
	int32_t i = (int32_t)(blockIdx.x * THREADS + threadIdx.x), each = a.capacity + 1;
	if (i >= each)
		return;
	int32_t first = a.starts[i < a.sequences ? i : a.sequences];
	a.numbers[i] = i < a.sequences ? a.starts[i + 1] - first : 0;
	a.numbers[each + i] = first * 3 * a.hidden;
	a.numbers[2 * each + i] = first * a.hidden;
	a.numbers[3 * each + i] = first * a.heads;
	if (i > 0)
		return;
	/* A different random stream for every layer and micro-batch; samples are numbered over the whole run. */
	struct philox block = philox4x32(a.scalars->seed, a.samples[0], a.site, 0x6375646eu, 0, 7);
	a.seed[0] = (int64_t)((uint64_t)block.word[1] << 32 | block.word[0]);
	a.seed[1] = 0;
}

} // namespace

extern "C" cudaError_t kernel_cudnn_numbers(cudaStream_t stream, const struct kernel_cudnn_numbers *a)
{
	return launch(numbers_of, blocks_of(a->capacity + 1, THREADS), THREADS, 0, stream, *a);
}
