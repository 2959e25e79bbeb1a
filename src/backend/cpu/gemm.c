#include "backend/cpu/gemm.h"

#include <string.h>
#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/gemm_kernels.h"

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
			_Alignas(64) char full[GEMM_BLOCK * GEMM_BLOCK * sizeof(float)] = {0};
			int64_t r = rows - i < GEMM_BLOCK ? rows - i : GEMM_BLOCK;
			int64_t c = columns - j < GEMM_BLOCK ? columns - j : GEMM_BLOCK;
			for (int64_t row = 0; row < r; row++)
				memcpy(full + (size_t)(row * GEMM_BLOCK) * element,
				       corner + (size_t)(row * row_elements) * element, (size_t)c * element);
			pack(full, GEMM_BLOCK, block);
		}
	}
}
