#include "backend/cpu/gemm.h"

#include <string.h>
#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/gemm_kernels.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

const struct gemm_kernels *cpu_gemm_kernels(enum dtype source)
{
	static const struct gemm_kernels *const tables[CPU_ISA_COUNT][2] = {
	        [CPU_ISA_AVX2] = {&gemm_kernels_f32_avx2, &gemm_kernels_bf16_avx2},
	        [CPU_ISA_AVX512] = {&gemm_kernels_f32_avx512, &gemm_kernels_bf16_avx512},
	        [CPU_ISA_AVX512_BF16] = {&gemm_kernels_f32_avx512_bf16, &gemm_kernels_bf16_avx512_bf16},
	        [CPU_ISA_AMX] = {&gemm_kernels_f32_amx, &gemm_kernels_bf16_amx},
	};
	BUG_IF(source != DTYPE_F32 && source != DTYPE_BF16);
	return tables[cpu_isa()][source == DTYPE_BF16];
}

void gemm_pack(const struct gemm_kernels *kernels, block_pack *pack, const void *source, int64_t row_elements,
               int64_t rows, int64_t columns, void *blocks, int64_t row_stride, int64_t column_stride)
{
	size_t element = dtype_bytes(kernels->source);
	for (int64_t i = 0; i < rows; i += GEMM_BLOCK) {
		for (int64_t j = 0; j < columns; j += GEMM_BLOCK) {
			const char *corner = (const char *)source + (size_t)(i * row_elements + j) * element;
			char *block =
			        (char *)blocks + i / GEMM_BLOCK * row_stride + j / GEMM_BLOCK * column_stride;
			if (rows - i >= GEMM_BLOCK && columns - j >= GEMM_BLOCK) {
				pack(corner, row_elements, block);
				continue;
			}
			/* At the matrix' edge a copy filled up with zeros takes the source's place. */
			_Alignas(64) char full[GEMM_BLOCK * GEMM_BLOCK * sizeof(float)];
			size_t r = (size_t)least(GEMM_BLOCK, rows - i), row_bytes = GEMM_BLOCK * element;
			size_t used = (size_t)least(GEMM_BLOCK, columns - j) * element;
			for (size_t row = 0; row < r; row++) {
				memcpy(full + row * row_bytes, corner + row * (size_t)row_elements * element,
				       used);
				memset(full + row * row_bytes + used, 0, row_bytes - used);
			}
			memset(full + r * row_bytes, 0, (GEMM_BLOCK - r) * row_bytes);
			pack(full, GEMM_BLOCK, block);
		}
	}
}

/* Packed weights: right blocks, panel after panel of 32 columns, each one block longer than k (panels a power
 * of two apart would share a few sets of the caches). */
static int64_t weight_panel_bytes(const struct gemm_kernels *kernels, int64_t k)
{
	return (gemm_blocks(k) + 1) * gemm_block_bytes(kernels);
}

size_t gemm_weight_bytes(const struct gemm_kernels *kernels, int64_t k, int64_t n)
{
	return (size_t)(gemm_blocks(n) * weight_panel_bytes(kernels, k));
}

void gemm_weight_pack(const struct gemm_kernels *kernels, const float *w, int64_t k, int64_t n,
                      int64_t k_stride, int64_t n_stride, void *packed)
{
	/* Either way a block's rows are contiguous in w: 32 k of one n, or 32 n of one k. */
	bool n_rows = k_stride == 1;
	block_pack *pack = n_rows ? kernels->right_from_columns : kernels->right_from_rows;
	int64_t row_stride = n_rows ? n_stride : k_stride;
	int64_t block = gemm_block_bytes(kernels), panel = weight_panel_bytes(kernels, k);
	BUG_IF(k_stride != 1 && n_stride != 1);
	for (int64_t j = 0; j < n; j += GEMM_BLOCK) {
		for (int64_t i = 0; i < k; i += GEMM_BLOCK) {
			_Alignas(64) float full[GEMM_BLOCK * GEMM_BLOCK], rounded[GEMM_BLOCK * GEMM_BLOCK];
			int64_t rows = least(GEMM_BLOCK, n_rows ? n - j : k - i);
			int64_t columns = least(GEMM_BLOCK, n_rows ? k - i : n - j),
			        row_elements = row_stride;
			const float *corner = w + i * k_stride + j * n_stride;
			if (rows < GEMM_BLOCK || columns < GEMM_BLOCK) {
				memset(full, 0, sizeof(full));
				for (int64_t r = 0; r < rows; r++)
					memcpy(full + r * GEMM_BLOCK, corner + r * row_stride,
					       (size_t)columns * sizeof(float));
				corner = full;
				row_elements = GEMM_BLOCK;
			}
			kernels->round(corner, row_elements, rounded);
			pack(rounded, GEMM_BLOCK,
			     (char *)packed + j / GEMM_BLOCK * panel + i / GEMM_BLOCK * block);
		}
	}
}

/* 32 rows (or fewer) of x, laid out along k, times all of w. */
struct row_product {
	const struct gemm_kernels *kernels;
	const void *left;
	int64_t steps;
	const char *right;
	int64_t right_n;
	bool accumulate;
};

static void multiply_rows(const struct row_product *p, int64_t rows, int64_t n, float *y, int64_t y_row)
{
	int64_t block = gemm_block_bytes(p->kernels), whole = rows < GEMM_BLOCK ? 0 : n / GEMM_BLOCK;
	struct block_product product = {.m = 1,
	                                .n = whole,
	                                .k = p->steps,
	                                .left = p->left,
	                                .left_k = block,
	                                .right = p->right,
	                                .right_n = p->right_n,
	                                .right_k = block,
	                                .out = y,
	                                .out_n = GEMM_BLOCK,
	                                .out_row = y_row,
	                                .accumulate = p->accumulate};
	p->kernels->multiply(&product);
	/* Blocks that stick out are multiplied aside. */
	for (int64_t j = whole * GEMM_BLOCK; j < n; j += GEMM_BLOCK) {
		_Alignas(64) float out[GEMM_BLOCK * GEMM_BLOCK];
		product.n = 1;
		product.right = p->right + j / GEMM_BLOCK * p->right_n;
		product.out = out;
		product.out_row = GEMM_BLOCK;
		product.accumulate = false;
		p->kernels->multiply(&product);
		for (int64_t r = 0; r < rows; r++)
			for (int64_t c = 0; c < least(GEMM_BLOCK, n - j); c++) {
				float *to = y + r * y_row + j + c, sum = out[r * GEMM_BLOCK + c];
				*to = p->accumulate ? *to + sum : sum;
			}
	}
}

void gemm_rows(const struct gemm_kernels *kernels, const void *x, int64_t x_row, int64_t rows, int64_t k,
               const void *packed, int64_t n, bool accumulate, float *y, int64_t y_row)
{
	/* Runs along k of equal length, so long that the 32 rows of x take up to 32 KiB (fp32: 16 KiB, since
	 * there the weight's blocks, too, are met several times): they stay in L1 while all of w's panels
	 * pass. */
	enum { LONGEST_BF16 = 16, LONGEST_F32 = 4, LEFT_BYTES = LONGEST_BF16 * GEMM_BLOCK * GEMM_BLOCK * 2 };
	_Alignas(64) char left[LEFT_BYTES];
	int64_t block = gemm_block_bytes(kernels), blocks = gemm_blocks(k);
	int64_t longest = kernels->type == DTYPE_BF16 ? LONGEST_BF16 : LONGEST_F32;
	int64_t runs = (blocks + longest - 1) / longest, run = (blocks + runs - 1) / runs;
	kernels->begin();
	for (int64_t i = 0; i < blocks; i += run) {
		int64_t first = i * GEMM_BLOCK, columns = least(run * GEMM_BLOCK, k - first);
		struct row_product product = {.kernels = kernels,
		                              .left = left,
		                              .steps = gemm_blocks(columns),
		                              .right = (const char *)packed + i * block,
		                              .right_n = weight_panel_bytes(kernels, k),
		                              .accumulate = accumulate || i > 0};
		for (int64_t m = 0; m < rows; m += GEMM_BLOCK) {
			const char *corner =
			        (const char *)x + (size_t)(m * x_row + first) * dtype_bytes(kernels->source);
			int64_t count = least(GEMM_BLOCK, rows - m);
			gemm_pack(kernels, kernels->left_from_rows, corner, x_row, count, columns, left, 0,
			          block);
			multiply_rows(&product, count, n, y + m * y_row, y_row);
		}
	}
	kernels->end();
}
