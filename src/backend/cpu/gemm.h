/* Matrix products on blocks of 32 x 32 elements, used for the weight gradient and attention.
 *
 * Operands are first packed into blocks, in two layouts:
 *   left block   (32 m) x (32 k): row m holds 32 consecutive k
 *   right block  (32 k) x (32 n): fp32: row k holds 32 consecutive n;
 *                                 bf16: columns 0-15, then 16-31; in each, row k/2 holds 16 pairs (k, k+1),
 * as the dot-product instructions expect. In bf16 on arm64, whose instructions multiply 2 x 4 by 4 x 2 numbers, both hold such
 * units of 16 bytes, two rows or columns of four k: all of k 0-3, then of k 4-7, and so on. Either layout can be made from the
 * rows of a matrix or from its columns, by the four block functions below. A left operand is multiplied by a right one into plain
 * fp32 rows. Blocks are 2 KiB (bf16) or 4 KiB (fp32); partial blocks are padded with zeros.
 */
#ifndef BACKEND_CPU_GEMM_H
#define BACKEND_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/tensor.h"

enum { GEMM_BLOCK = 32 };

/* Memory that a kernel prefetches into L2 meanwhile, one part per step; rows 0: nothing. Only AMX products do so. */
struct gemm_fetch {
	const void *from;
	int64_t rows, row_bytes, stride; /* bytes */
};

/* out (32m, 32n) = or += left (32m, 32k) right (32k, 32n). Strides between blocks are bytes. */
struct block_product {
	int64_t m, n, k; /* in blocks */
	const void *left;
	int64_t left_m, left_k; /* bytes to the next block along m, along k */
	const void *right;
	int64_t right_n, right_k;
	float *out;
	int64_t out_m, out_n, out_row; /* floats to the next block along m, along n; to the next row */
	bool accumulate;
	struct gemm_fetch fetch[2];
};

/* out (32m, 32) = or += left (32m, 32k) times 32 columns of a packed weight. Blocks of the left operand are contiguous along
 * k. */
struct panel_product {
	int64_t m, k; /* in blocks */
	const void *left;
	int64_t left_m;    /* bytes to the next block along m */
	const void *right; /* 16 columns as kernels/pack.c packs them; the other 16 columns are `half` bytes further on */
	int64_t half;
	float *out;
	int64_t out_row; /* floats to the next row */
	bool accumulate;
	struct gemm_fetch fetch; /* the next panel */
};

/* Packs 32 rows of 32 elements of a matrix, `row_elements` apart, into one block. */
typedef void block_pack(const void *source, int64_t row_elements, void *block);

/* The functions for one instruction set and one type of source matrices. */
struct gemm_kernels {
	enum dtype source;          /* F32 or BF16 */
	enum dtype type;            /* type of the blocks: F32 even for BF16 sources where the processor has no bf16 products */
	block_pack *left_from_rows; /* source (m, k) */
	block_pack *left_from_columns;  /* source (k, m) */
	block_pack *right_from_rows;    /* source (k, n) */
	block_pack *right_from_columns; /* source (n, k) */
	void (*multiply)(const struct block_product *product);
	/* NULL where oneDNN's products with packed weights are used: on x86-64, everywhere except bf16 on AMX. */
	void (*multiply_panel)(const struct panel_product *product);
	/* Called around a series of multiply() calls in one thread: configures and releases AMX tiles. */
	void (*begin)(void);
	void (*end)(void);
	/* Stores or adds the first `rows` rows and `columns` columns (32 or fewer) of a plain fp32 block to rows `out_row`
	 * floats apart. Whole rows that are stored rather than added bypass the caches; a thread's last call must be followed
	 * by end(). */
	void (*store_block)(const float *block, float *out, int64_t out_row, int64_t rows, int64_t columns, bool accumulate);
	/* sums[c] += source(0, c) + source(1, c) + ... over `rows`, columns c < columns. */
	void (*add_columns)(const void *source, int64_t row_elements, int64_t rows, int64_t columns, float *sums);
};

/* The kernels for the process's instruction set (cpu_isa()), for matrices of type F32 or BF16. */
const struct gemm_kernels *cpu_gemm_kernels(enum dtype source);

static inline int64_t gemm_block_bytes(const struct gemm_kernels *kernels)
{
	return GEMM_BLOCK * GEMM_BLOCK * (int64_t)dtype_bytes(kernels->type);
}

static inline int64_t gemm_blocks(int64_t elements)
{
	return (elements + GEMM_BLOCK - 1) / GEMM_BLOCK;
}

/* Packs the matrix (rows, columns) at `source` into blocks: block (i, j) of 32 x 32 goes to blocks + i * row_stride + j *
 * column_stride (bytes), with zeros for missing rows and columns. Nothing outside the matrix is read. */
void gemm_pack(const struct gemm_kernels *kernels, block_pack *pack, const void *source, int64_t row_elements, int64_t rows,
	       int64_t columns, void *blocks, int64_t row_stride, int64_t column_stride);

/* y (rows,n) fp32 = or += x (rows,k) w (k,n), by one thread, with a weight that was packed beforehand: in panels of 16
 * columns, k rounded up to 32 (kernels/pack.c with panel 16), and an even number of panels. Only if kernels->multiply_panel is
 * not NULL.
 *
 * The rows, packed into blocks, stay in the second-level cache while the weight streams through the first-level cache, one
 * panel of 32 columns at a time (Goto and van de Geijn 2008). A task should therefore have many rows, up to gemm_rows_best(),
 * and the weight may be larger than any cache of the core. */
struct row_product {
	const struct gemm_kernels *kernels;
	const void *x;
	int64_t x_row; /* elements to the next row; exactly rows x k are read */
	int64_t rows, k, n;
	const void *packed;
	void *blocks; /* scratch: GEMM_ROWS_BYTES */
	bool accumulate;
	float *y; /* groups of GEMM_GROUP columns: row r of group g at y + g * y_group + r * y_row. Rows up to the next multiple
		     of 32 are written, too */
	int64_t y_row, y_group;
	/* Optional: called for each group when it is complete. With y_group 0 all groups may share the same memory, if k <=
	 * GEMM_PART. */
	void (*finish)(void *context, int64_t column, int64_t columns);
	/* Optional: called for each part of k just after x's rows have passed through L2, for other users of them. */
	void (*has_read)(void *context, int64_t column, int64_t columns);
	void *context;
};
enum { GEMM_GROUP = 64, GEMM_PART = 1024, GEMM_ROWS_MOST = 512 };
#define GEMM_ROWS_BYTES ((size_t)768 << 10)

void gemm_rows(const struct row_product *product);
/* The maximum, and recommended, number of rows of a product: a multiple of 128. */
int64_t gemm_rows_best(const struct gemm_kernels *kernels, int64_t k);

#endif
