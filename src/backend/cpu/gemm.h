/* Matrix products on blocks of 32 x 32 elements: the base of the weight gradient and of attention.
 *
 * Operands are first laid into blocks, in two forms:
 *   left block   (32 m) x (32 k): row m holds 32 consecutive k
 *   right block  (32 k) x (32 n): fp32: row k holds 32 consecutive n;
 *                                 bf16: columns 0-15, then 16-31; in each, row k/2 holds 16 pairs (k, k+1),
 * as the dot-product instructions want them Either can be made from rows of a matrix or from its columns,
 * which are the four block functions below. A left operand is multiplied with a right one into plain fp32
 * rows. Blocks are 2 KiB (bf16) or 4 KiB (fp32); what a matrix lacks to full blocks is filled with zeros.
 */
#ifndef BACKEND_CPU_GEMM_H
#define BACKEND_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/tensor.h"

enum { GEMM_BLOCK = 32 };

/* out (32m, 32n) = or += left (32m, 32k) right (32k, 32n). Strides between blocks are bytes. */
struct block_product {
	int64_t m, n, k; /* in blocks */
	const void *left;
	int64_t left_m, left_k; /* to the next block along m, along k */
	const void *right;
	int64_t right_n, right_k;
	float *out;
	int64_t out_m, out_n, out_row; /* floats to the next block along m, along n; to the next row */
	bool accumulate;
};

/* Lays 32 rows of 32 elements of a matrix, `row_elements` apart, into one block. */
typedef void block_pack(const void *source, int64_t row_elements, void *block);

/* The functions for one instruction set and one type of source matrices. */
struct gemm_kernels {
	enum dtype source; /* F32 or BF16 */
	enum dtype
	        type; /* of the blocks: F32 also for BF16 sources where the processor has no bf16 products */
	block_pack *left_from_rows;     /* source (m, k) */
	block_pack *left_from_columns;  /* source (k, m) */
	block_pack *right_from_rows;    /* source (k, n) */
	block_pack *right_from_columns; /* source (n, k) */
	/* Rounds 32 rows of 32 floats, `row_elements` apart, to the sources' type: 32 dense rows. */
	void (*round)(const float *w, int64_t row_elements, void *rows);
	void (*multiply)(const struct block_product *product);
	/* Around a run of multiply() calls in one thread: AMX tiles are configured and released. */
	void (*begin)(void);
	void (*end)(void);
	/* sums[c] += source(0, c) + source(1, c) + ... over `rows`, columns c < columns. */
	void (*add_columns)(const void *source, int64_t row_elements, int64_t rows, int64_t columns,
	                    float *sums);
};

/* The kernels of this process (cpu_isa()) for matrices of type F32 or BF16. */
const struct gemm_kernels *cpu_gemm_kernels(enum dtype source);

static inline int64_t gemm_block_bytes(const struct gemm_kernels *kernels)
{
	return GEMM_BLOCK * GEMM_BLOCK * (int64_t)dtype_bytes(kernels->type);
}

static inline int64_t gemm_blocks(int64_t elements)
{
	return (elements + GEMM_BLOCK - 1) / GEMM_BLOCK;
}

/* Lays the matrix (rows, columns) at `source` into blocks: block (i, j) of 32 x 32 goes to
 * blocks + i * row_stride + j * column_stride (bytes), missing rows and columns as zeros. Nothing outside the
 * matrix is read. */
void gemm_pack(const struct gemm_kernels *kernels, block_pack *pack, const void *source, int64_t row_elements,
               int64_t rows, int64_t columns, void *blocks, int64_t row_stride, int64_t column_stride);

/* y (rows,n) fp32 = or += x (rows,k) w (k,n) with a weight that was packed once, by one thread. For linear
 * layers: on AMX in bf16 this is 1.15 to 1.25 times as fast as oneDNN 2.6's single-thread slices of 128 rows
 * (768 x 768 to 3072 x 768, weights packed by either); with vdpbf16ps and in fp32 oneDNN is 5 to 10 % ahead.
 * Tasks should keep one part of the weight of some 384 columns and let slices of 128 to 256 rows pass it. */
size_t gemm_weight_bytes(const struct gemm_kernels *kernels, int64_t k, int64_t n);
/* Rounds w (k,n), whose neighbours lie k_stride and n_stride floats apart (one of them 1), to the kernels'
 * type. */
void gemm_weight_pack(const struct gemm_kernels *kernels, const float *w, int64_t k, int64_t n,
                      int64_t k_stride, int64_t n_stride, void *packed);
/* Rows of x and y are x_row and y_row elements apart; exactly rows x k and rows x n are touched. The sums'
 * order depends on k alone. */
void gemm_rows(const struct gemm_kernels *kernels, const void *x, int64_t x_row, int64_t rows, int64_t k,
               const void *packed, int64_t n, bool accumulate, float *y, int64_t y_row);

#endif
