/* Layer normalization with the steps before it (bias, dropout, residual), and its backward. */
#include "backend/cuda/kernels/fp8_tile.cuh"
#include "backend/cuda/kernels/norm_row.cuh"

namespace
{

constexpr int WARPS = 4; /* per block, each with its own row */

/* With up to FEW_ROWS rows, a multiprocessor has nothing else to do while a warp waits for memory, so a warp loads bias, gamma,
 * and beta along with its row instead of block by block; with more, the registers are worth more. */
constexpr int FEW_ROWS = 512, FEW_BLOCKS = 4;

/* A warp's row; y stays in v. */
template <typename T, int BLOCKS, bool ALIGNED, bool FEW>
DEVICE void norm_row(const struct kernel_norm_fwd &a, int64_t row, float (&v)[BLOCKS][BLOCK])
{
	int columns = (int)a.columns;
	const T *x = static_cast<const T *>(a.x) + row * columns, *residual = static_cast<const T *>(a.residual) + row * columns;
	T *sums = static_cast<T *>(a.sum) + row * columns, *y = static_cast<T *>(a.y) + row * columns;
	uint64_t seed = a.dropout.threshold > 0 ? a.dropout.scalars->seed : 0;
	float mean, rstd;

	/* Issue all loads of the row before waiting for any of them. */
	raw_block<T> own[BLOCKS] = {}, other[BLOCKS] = {};
#pragma unroll
	for (int b = 0; b < BLOCKS; b++)
		if (norm_first(b) < columns)
			own[b] = load_raw<ALIGNED>(x, norm_first(b), columns);
	if (a.residual != nullptr) {
#pragma unroll
		for (int b = 0; b < BLOCKS; b++)
			if (norm_first(b) < columns)
				other[b] = load_raw<ALIGNED>(residual, norm_first(b), columns);
	}
	constexpr int EARLY = FEW ? BLOCKS : 1;
	float bias[EARLY][BLOCK] = {}, gamma[EARLY][BLOCK] = {}, beta[EARLY][BLOCK] = {};
#pragma unroll
	for (int b = 0; FEW && b < BLOCKS; b++) {
		int first = norm_first(b);
		if (first >= columns)
			continue;
		if (a.bias != nullptr)
			load_block<ALIGNED>(a.bias, first, columns, bias[b]);
		load_block<ALIGNED>(a.gamma, first, columns, gamma[b]);
		if (a.beta != nullptr)
			load_block<ALIGNED>(a.beta, first, columns, beta[b]);
	}
	int position = 0;
	uint32_t sample = 0;
	if (a.dropout.threshold > 0) {
		position = a.dropout.positions[row];
		sample = a.dropout.samples[row];
	}
#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		int first = norm_first(b), early = FEW ? b : 0;
		float term[BLOCK];
		unpack_block(own[b], v[b]);
		if (first >= columns)
			continue;
		if (a.bias != nullptr) {
			if (!FEW)
				load_block<ALIGNED>(a.bias, first, columns, bias[0]);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[b][i] += bias[early][i];
		}
		if (a.dropout.threshold > 0)
			drop_block(a.dropout, seed, first, position, sample, v[b]);
		unpack_block(other[b], term);
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			v[b][i] += term[i];
		own[b] = pack_block<T>(v[b]);
		if (a.sum != nullptr)
			store_raw<ALIGNED>(sums, first, columns, own[b]);
		unpack_block(own[b], v[b]); /* backward sees only the rounded value */
	}
	norm_statistics<BLOCKS, ALIGNED>(v, columns, a.epsilon, &mean, &rstd);
#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		int first = norm_first(b);
		if (first >= columns)
			continue;
		if (FEW)
			norm_scale(v[b], mean, rstd, gamma[FEW ? b : 0], beta[FEW ? b : 0]);
		else
			norm_scale<ALIGNED>(v[b], first, columns, mean, rstd, a.gamma, a.beta);
		store_block<ALIGNED>(y, first, columns, v[b]);
	}
	if (lane_index() == 0 && a.mean != nullptr) {
		a.mean[row] = mean;
		a.rstd[row] = rstd;
	}
}

template <typename T, int BLOCKS, bool ALIGNED, bool FEW>
__global__ void __launch_bounds__(WARPS *WARP) norm_fwd(struct kernel_norm_fwd a)
{
	int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	float v[BLOCKS][BLOCK];
	if (row < a.rows)
		norm_row<T, BLOCKS, ALIGNED, FEW>(a, row, v);
}

/* y in FP8 as well: a block has a tile of whole rows. */
constexpr int FP8_WARPS = 8, FP8_ROWS = 2 * FP8_CHUNK;

template <int BLOCKS> __global__ void __launch_bounds__(FP8_WARPS *WARP) norm_fwd_fp8(struct kernel_norm_fwd a)
{
	unsigned char *tile = shared_start();
	int columns = (int)a.columns, pitch = columns + FP8_PAD;
	int64_t first_row = (int64_t)blockIdx.x * FP8_ROWS, padded = fp8_padded(a.rows);
	float scale = fp8_output_scale(a.fp8), v[BLOCKS][BLOCK];
#pragma unroll 1
	for (int i = (int)threadIdx.x / WARP; i < FP8_ROWS && first_row + i < padded; i += FP8_WARPS) {
		bool here = first_row + i < a.rows;
		if (here)
			norm_row<bf16, BLOCKS, true, false>(a, first_row + i, v);
#pragma unroll
		for (int b = 0; b < BLOCKS; b++) {
			float own[BLOCK] = {};
			int first = norm_first(b);
			if (first >= columns)
				continue;
			if (here)
				unpack_block(pack_block<bf16>(v[b]), own);
			fp8_put_row(a.fp8.format, scale, own, tile + i * pitch + first,
				    a.fp8.rows + (first_row + i) * columns + first);
		}
	}
	__syncthreads();
	/* Adjacent threads have the chunks of a column. */
	for (int i = (int)threadIdx.x; i < columns * (FP8_ROWS / FP8_CHUNK); i += FP8_WARPS * WARP) {
		int column = i / (FP8_ROWS / FP8_CHUNK), chunk = i % (FP8_ROWS / FP8_CHUNK) * FP8_CHUNK;
		if (first_row + chunk < padded)
			fp8_put_column(tile + chunk * pitch + column, pitch, a.fp8.columns + column * padded + first_row + chunk);
	}
}

/* ---- Backward ---- */

/* A row is spread over the warps of a group, 16 columns per lane (fp32: 8): with more, the sums would take the registers
 * needed for rows being loaded; with fewer, more warps would repeat the work done once per row. The groups of a block take the
 * rows of its part in turn. */
constexpr int BACKWARD_WARPS = 8;  /* per block, at most */
constexpr int BACKWARD_BLOCKS = 2; /* per multiprocessor: with 132 multiprocessors all ROW_PARTS run at once */
/* Blocks of eight columns per lane. */
template <typename T> constexpr int OWN = 4 / (int)sizeof(T);

/* A lane's input for one row. */
template <typename T> struct norm_input {
	raw_block<T> dy[OWN<T>], sum[OWN<T>];
	float mean, rstd;
	int position;
	uint32_t sample;
};
/* `offset`: of the row's first element; first[i]: first column of block i. */
template <typename T, bool ALIGNED>
DEVICE norm_input<T> norm_load(const struct kernel_norm_bwd &a, int row, int64_t offset, const int (&first)[OWN<T>])
{
	norm_input<T> in = {};
	int columns = (int)a.columns;
#pragma unroll
	for (int b = 0; b < OWN<T>; b++) {
		if (first[b] < columns) {
			in.dy[b] = load_raw<ALIGNED>(static_cast<const T *>(a.dy) + offset, first[b], columns);
			in.sum[b] = load_raw<ALIGNED>(static_cast<const T *>(a.sum) + offset, first[b], columns);
		}
	}
	in.mean = a.mean[row];
	in.rstd = a.rstd[row];
	if (a.dropout.threshold > 0) {
		in.position = a.dropout.positions[row];
		in.sample = a.dropout.samples[row];
	}
	return in;
}

/* Sums of a and b over the warp, stored in *out: each half of the warp reduces one of them. */
DEVICE void warp_sum2(float a, float b, float2 *out)
{
	bool upper = lane_index() >= WARP / 2;
	float x = (upper ? b : a) + __shfl_xor_sync(ALL_LANES, upper ? a : b, WARP / 2);
#pragma unroll
	for (int bits = WARP / 4; bits > 0; bits /= 2)
		x += __shfl_xor_sync(ALL_LANES, x, bits);
	if (lane_index() % (WARP / 2) == 0)
		(upper ? out->y : out->x) = x;
}

/* Adds up the groups' column sums, in group order. `shared` has one row per group. */
template <bool ALIGNED, int COUNT>
DEVICE void store_part(const float (&sums)[COUNT][BLOCK], int group, int groups, const int (&first)[COUNT], int columns,
		       float *shared, float *part)
{
	__syncthreads(); /* the previous quantity has been read */
#pragma unroll
	for (int b = 0; b < COUNT; b++)
		if (first[b] < columns)
			store_block<ALIGNED>(shared + group * columns, first[b], columns, sums[b]);
	__syncthreads();
	for (int j = (int)threadIdx.x; j < columns; j += (int)blockDim.x) {
		float sum = 0;
		for (int g = 0; g < groups; g++)
			sum += shared[g * columns + j];
		part[j] = sum;
	}
}

/* Special treatment of rows: none; dropout applies to dy, not dx; x is the output of gelu. */
enum norm_kind { PLAIN, DROPS_DY, BEHIND_GELU };

/* A block handles one part of the rows. `warps`: warps per group. */
template <typename T, bool ALIGNED, norm_kind KIND>
__global__ void __launch_bounds__(BACKWARD_WARPS *WARP, BACKWARD_BLOCKS) norm_bwd(struct kernel_norm_bwd a, int warps)
{
	int columns = (int)a.columns, warp = (int)threadIdx.x / WARP, groups = (int)blockDim.x / WARP / warps,
	    group = warp / warps;
	int lane = (warp - group * warps) * WARP + lane_index(); /* within the group */
	int first[OWN<T>];
#pragma unroll
	for (int b = 0; b < OWN<T>; b++)
		first[b] = (lane + b * warps * WARP) * BLOCK;
	int row = (int)part_begin(a.rows, gridDim.x, blockIdx.x) + group,
	    end = (int)part_begin(a.rows, gridDim.x, (int64_t)blockIdx.x + 1);
	int64_t offset = (int64_t)row * columns, step = (int64_t)groups * columns;
	bool drops = a.dropout.threshold > 0;
	uint64_t seed = drops ? a.dropout.scalars->seed : 0;
	float *shared = reinterpret_cast<float *>(shared_start());
	/* (2, warps): sums of the group's warps for this row, and for the next. */
	float2 *exchange = reinterpret_cast<float2 *>(shared + groups * warps * WARP * OWN<T> * BLOCK) + group * 2 * warps;
	float dgamma[OWN<T>][BLOCK] = {}, dbeta[OWN<T>][BLOCK] = {}, dbias[OWN<T>][BLOCK] = {}, inverse = 1 / (float)columns;

	uint32_t most = 0;
	norm_input<T> next = {};
	if (row < end)
		next = norm_load<T, ALIGNED>(a, row, offset, first);
	for (int side = 0; row < end; row += groups, offset += step, side = warps - side) {
		norm_input<T> in = next;
		/* Load the next row while this one is processed. */
		if (row + groups < end)
			next = norm_load<T, ALIGNED>(a, row + groups, offset + step, first);
		float g[OWN<T>][BLOCK] = {}, n[BLOCK], other[BLOCK], sum_g = 0, sum_gn = 0;
#pragma unroll
		for (int b = 0; b < OWN<T>; b++) {
			if (first[b] >= columns)
				continue;
			unpack_block(in.dy[b], g[b]);
			unpack_block(in.sum[b], n);
			if (KIND == DROPS_DY && drops)
				drop_block(a.dropout, seed, first[b], in.position, in.sample, g[b]);
			load_block<ALIGNED>(a.gamma, first[b], columns, other);
#pragma unroll
			for (int i = 0; i < BLOCK; i++) {
				n[i] = (n[i] - in.mean) * in.rstd; /* the normalized row */
				dgamma[b][i] += g[b][i] * n[i];
				dbeta[b][i] += g[b][i];
				g[b][i] *= other[i];
				sum_g += g[b][i];
				sum_gn += g[b][i] * n[i];
			}
		}
		warp_sum2(sum_g, sum_gn, &exchange[side + warp - group * warps]);
		barrier_sync(1 + group, warps * WARP);
		sum_g = sum_gn = 0;
#pragma unroll 1
		for (int w = 0; w < warps; w++) {
			sum_g += exchange[side + w].x;
			sum_gn += exchange[side + w].y;
		}
		float mean_g = sum_g * inverse, mean_gn = sum_gn * inverse;
#pragma unroll
		for (int b = 0; b < OWN<T>; b++) {
			if (first[b] >= columns)
				continue;
			unpack_block(in.sum[b], n);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				g[b][i] = in.rstd * (g[b][i] - mean_g - (n[i] - in.mean) * in.rstd * mean_gn);
			if (a.add != nullptr) {
				load_block<ALIGNED>(static_cast<const T *>(a.add) + offset, first[b], columns, other);
#pragma unroll
				for (int i = 0; i < BLOCK; i++)
					g[b][i] += other[i];
			}
			store_block<ALIGNED>(static_cast<T *>(a.dresidual) + offset, first[b], columns, g[b]);
			if (a.dx != nullptr) {
				if (KIND != DROPS_DY && drops)
					drop_block(a.dropout, seed, first[b], in.position, in.sample, g[b]);
				if (KIND == BEHIND_GELU) {
					load_block<ALIGNED>(static_cast<const T *>(a.pre) + offset, first[b], columns, other);
#pragma unroll
					for (int i = 0; i < BLOCK; i++)
						g[b][i] *= gelu_derivative<T>(a.pre_activation, other[i]);
				}
				store_block<ALIGNED>(static_cast<T *>(a.dx) + offset, first[b], columns, g[b]);
			}
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				dbias[b][i] += g[b][i];
			if (has_largest<T> && a.largest != nullptr)
				most = larger_pairs(most, pack_block<T>(g[b]));
		}
	}
	if (has_largest<T> && a.largest != nullptr)
		note_pairs(a.largest, blockIdx.x * BACKWARD_WARPS + (unsigned)warp, most);
	/* A group with one row less than others passes one barrier more, so that all pass equally many: compute-sanitizer's
	 * racecheck orders accesses by that number. */
	if (row - end < group)
		barrier_sync(1 + group, warps * WARP);

	float *part = a.parts + (int64_t)blockIdx.x * 3 * columns;
	store_part<ALIGNED>(dgamma, group, groups, first, columns, shared, part);
	store_part<ALIGNED>(dbeta, group, groups, first, columns, shared, part + columns);
	if (a.sums_bias)
		store_part<ALIGNED>(dbias, group, groups, first, columns, shared, part + 2 * columns);
}

} // namespace

extern "C" cudaError_t kernel_norm_fwd(cudaStream_t stream, const struct kernel_norm_fwd *a)
{
	if (a->fp8.rows != nullptr)
		return for_width(a->columns, [&](auto blocks, auto aligned) {
			(void)aligned; /* as FP8 requires */
			size_t shared = FP8_ROWS * (size_t)(a->columns + FP8_PAD);
			cudaError_t error = allow_shared(norm_fwd_fp8<blocks.value>, shared);
			return error != cudaSuccess ? error
						    : launch(norm_fwd_fp8<blocks.value>, blocks_of(a->rows, FP8_ROWS),
							     FP8_WARPS * WARP, shared, stream, *a);
		});
	return for_dtype(a->dtype, [&](auto type) {
		return for_width(a->columns, [&](auto blocks, auto aligned) {
			constexpr int count = decltype(blocks)::value;
			constexpr bool whole = decltype(aligned)::value != 0;
			auto kernel = a->rows <= FEW_ROWS ? norm_fwd<decltype(type), count, whole, count <= FEW_BLOCKS>
							  : norm_fwd<decltype(type), count, whole, false>;
			return launch(kernel, blocks_of(a->rows, WARPS), WARPS * WARP, 0, stream, *a);
		});
	});
}

extern "C" cudaError_t kernel_norm_bwd(cudaStream_t stream, const struct kernel_norm_bwd *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		int warps = (int)blocks_of(a->columns, WARP * OWN<T> * BLOCK), groups = BACKWARD_WARPS / warps;
		unsigned threads = (unsigned)(groups * warps * WARP);
		size_t shared = threads * OWN<T> * BLOCK * sizeof(float) + (size_t)(2 * groups * warps) * sizeof(float2);
		bool aligned = a->columns % BLOCK == 0;
		auto kernel = a->pre != nullptr ? (aligned ? norm_bwd<T, true, BEHIND_GELU> : norm_bwd<T, false, BEHIND_GELU>)
			      : a->drops_dy     ? (aligned ? norm_bwd<T, true, DROPS_DY> : norm_bwd<T, false, DROPS_DY>)
						: (aligned ? norm_bwd<T, true, PLAIN> : norm_bwd<T, false, PLAIN>);
		return launch(kernel, (unsigned)row_parts(a->rows), threads, shared, stream, *a, warps);
	});
}
static_assert(NORM_WIDTH_LIMIT <= BACKWARD_WARPS * WARP * BLOCK, "a block has a row");
