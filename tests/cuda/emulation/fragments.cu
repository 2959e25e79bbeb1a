#include "fragments.h"

#include "backend/cuda/kernels/device.cuh"

namespace
{

__global__ void one_mma(int type, const uint32_t *a, const uint32_t *b, float *c)
{
	int lane = lane_index();
	uint32_t fa[4], fb[2];
	float fc[4];
	for (int i = 0; i < 4; i++)
		fa[i] = a[4 * lane + i];
	for (int i = 0; i < 2; i++)
		fb[i] = b[2 * lane + i];
	for (int i = 0; i < 4; i++)
		fc[i] = c[4 * lane + i];
	if (type == FRAGMENT_BF16)
		mma16<bf16>(fc, fa, fb);
	else if (type == FRAGMENT_F16)
		mma16<f16>(fc, fa, fb);
	else
		mma8_tf32(fc, fa, fb);
	for (int i = 0; i < 4; i++)
		c[4 * lane + i] = fc[i];
}

__global__ void one_load(int count, int transposed, const uint16_t *matrices, uint32_t *out)
{
	uint16_t *shared = reinterpret_cast<uint16_t *>(shared_start());
	int lane = lane_index();
	uint32_t registers[4];
	for (int i = lane; i < count * 64; i += WARP)
		shared[i] = matrices[i];
	__syncwarp();
	const uint16_t *row = shared + lane % (8 * count) * 8;
	if (count == 4 && transposed)
		load_matrices4_transposed(registers, row);
	else if (count == 4)
		load_matrices4(registers, row);
	else if (transposed)
		load_matrices2_transposed(registers, row);
	else
		load_matrices2(registers, row);
	for (int i = 0; i < count; i++)
		out[count * lane + i] = registers[i];
}

} // namespace

extern "C" cudaError_t fragment_mma(cudaStream_t stream, enum fragment_type type, const uint32_t *a, const uint32_t *b, float *c)
{
	return launch(one_mma, 1, WARP, 0, stream, (int)type, a, b, c);
}

extern "C" cudaError_t fragment_load(cudaStream_t stream, int count, int transposed, const uint16_t *matrices, uint32_t *out)
{
	return launch(one_load, 1, WARP, (size_t)count * 64 * sizeof(uint16_t), stream, count, transposed, matrices, out);
}
