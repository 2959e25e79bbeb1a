/* One vector per sequence, and its gradient distributed over the sequence's rows. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 128;

/* A thread handles eight columns of a sequence, and loops over its rows. */
struct place {
	int64_t sequence;
	int column;               /* first column */
	int first, count, pooled; /* in rows */
};

DEVICE bool find_place(const struct kernel_pooling &a, place &p)
{
	int blocks = (a.columns + BLOCK - 1) / BLOCK;
	int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
	if (i >= (int64_t)a.sequences * blocks)
		return false;
	p.sequence = i / blocks;
	p.column = (int)(i % blocks) * BLOCK;
	p.first = a.starts[p.sequence];
	p.count = a.starts[p.sequence + 1] - p.first;
	p.pooled = a.first && p.count > 1 ? 1 : p.count;
	return true;
}

template <typename T, typename V, bool ALIGNED> __global__ void __launch_bounds__(THREADS) pool_rows(struct kernel_pooling a)
{
	place p;
	if (!find_place(a, p))
		return;
	const T *rows = static_cast<const T *>(a.rows) + (int64_t)p.first * a.columns;
	float sum[BLOCK] = {0}, row[BLOCK];
	for (int t = 0; t < p.pooled; t++) {
		load_block<ALIGNED>(rows + (int64_t)t * a.columns, p.column, a.columns, row);
#pragma unroll
		for (int c = 0; c < BLOCK; c++)
			sum[c] += row[c];
	}
#pragma unroll
	for (int c = 0; c < BLOCK; c++)
		sum[c] = p.pooled > 1 ? sum[c] / (float)p.pooled : sum[c];
	store_block<ALIGNED>(static_cast<V *>(a.vectors) + p.sequence * a.columns, p.column, a.columns, sum);
}

template <typename T, typename V, bool ALIGNED> __global__ void __launch_bounds__(THREADS) spread_vectors(struct kernel_pooling a)
{
	place p;
	if (!find_place(a, p))
		return;
	T *rows = static_cast<T *>(a.rows) + (int64_t)p.first * a.columns;
	float share[BLOCK], zeros[BLOCK] = {0}, scale = a.scaled ? 1.f : (float)a.scalars->loss_scale;
	load_block<ALIGNED>(static_cast<const V *>(a.vectors) + p.sequence * a.columns, p.column, a.columns, share);
#pragma unroll
	for (int c = 0; c < BLOCK; c++)
		share[c] = share[c] * scale / (float)(p.pooled > 0 ? p.pooled : 1);
	for (int t = 0; t < p.count; t++)
		store_block<ALIGNED>(rows + (int64_t)t * a.columns, p.column, a.columns, t < p.pooled ? share : zeros);
}

unsigned grid(const struct kernel_pooling *a)
{
	return blocks_of((int64_t)a->sequences * ((a->columns + BLOCK - 1) / BLOCK), THREADS);
}

} // namespace

extern "C" cudaError_t kernel_pooling_fwd(cudaStream_t stream, const struct kernel_pooling *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		bool aligned = a->columns % BLOCK == 0;
		auto kernel = a->vectors_dtype == a->dtype ? (aligned ? pool_rows<T, T, true> : pool_rows<T, T, false>)
							   : (aligned ? pool_rows<T, float, true> : pool_rows<T, float, false>);
		return launch(kernel, grid(a), THREADS, 0, stream, *a);
	});
}

extern "C" cudaError_t kernel_pooling_bwd(cudaStream_t stream, const struct kernel_pooling *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		bool aligned = a->columns % BLOCK == 0;
		auto kernel = a->vectors_dtype == a->dtype
				      ? (aligned ? spread_vectors<T, T, true> : spread_vectors<T, T, false>)
				      : (aligned ? spread_vectors<T, float, true> : spread_vectors<T, float, false>);
		return launch(kernel, grid(a), THREADS, 0, stream, *a);
	});
}
