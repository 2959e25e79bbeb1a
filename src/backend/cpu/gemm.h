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

/* Memory that a kernel brings into L2 meanwhile, a part at each step; rows 0: nothing. Of products only AMX ones do. */
struct gemm_fetch {
	const void *from;
	int64_t rows, row_bytes, stride; /* bytes */
};

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
	struct gemm_fetch fetch[2];
};

/* out (32m, 32) = or += left (32m, 32k) times 32 columns of a packed weight. Blocks of the left operand follow each
 * other along k. */
struct panel_product {
	int64_t m, k; /* in blocks */
	const void *left;
	int64_t left_m;    /* bytes to the next block along m */
	const void *right; /* pairs of k, 16 columns; the other 16 are `half` bytes further */
	int64_t half;
	float *out;
	int64_t out_row; /* floats to the next row */
	bool accumulate;
	struct gemm_fetch fetch; /* the panel to come */
};

/* Lays 32 rows of 32 elements of a matrix, `row_elements` apart, into one block. */
typedef void block_pack(const void *source, int64_t row_elements, void *block);

/* The functions for one instruction set and one type of source matrices. */
struct gemm_kernels {
	enum dtype source;              /* F32 or BF16 */
	enum dtype type;                /* of the blocks: F32 also for BF16 sources where the processor has no bf16 products */
	block_pack *left_from_rows;     /* source (m, k) */
	block_pack *left_from_columns;  /* source (k, m) */
	block_pack *right_from_rows;    /* source (k, n) */
	block_pack *right_from_columns; /* source (n, k) */
	void (*multiply)(const struct block_product *product);
	/* NULL where oneDNN's products with packed weights are faster: everywhere but in bf16 on AMX. */
	void (*multiply_panel)(const struct panel_product *product);
	/* Around a run of multiply() calls in one thread: AMX tiles are configured and released. */
	void (*begin)(void);
	void (*end)(void);
	/* Rows and columns [0, 32 or fewer) of a plain block of fp32 go to, or are added to, rows `out_row` floats apart. Whole
	   rows that are not added to go past the caches; a thread's last call must be followed by end(). */
	void (*store_block)(const float *block, float *out, int64_t out_row, int64_t rows, int64_t columns, bool accumulate);
	/* sums[c] += source(0, c) + source(1, c) + ... over `rows`, columns c < columns. */
	void (*add_columns)(const void *source, int64_t row_elements, int64_t rows, int64_t columns, float *sums);
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
void gemm_pack(const struct gemm_kernels *kernels, block_pack *pack, const void *source, int64_t row_elements, int64_t rows,
	       int64_t columns, void *blocks, int64_t row_stride, int64_t column_stride);

/* y (rows,n) fp32 = or += x (rows,k) w (k,n), by one thread, with a weight that was packed once: in panels of 16 columns,
 * k rounded up to 32 (kernels/pack.c with panel 16), and an even number of panels. Only where kernels->multiply_panel.
 *
 * The rows, laid into blocks, stay in the second-level cache while the weight streams past, a panel of 32 columns in
 * the first-level cache at a time (Goto and van de Geijn 2008): so a task should have many rows, up to
 * gemm_rows_best(k), and the weight may be larger than any cache of the core. */
struct row_product {
	const struct gemm_kernels *kernels;
	const void *x;
	int64_t x_row; /* elements to the next row; exactly rows x k are read */
	int64_t rows, k, n;
	const void *packed;
	void *blocks; /* scratch: GEMM_ROWS_BYTES */
	bool accumulate;
	float *y; /* groups of GEMM_GROUP columns: row r of group g at y + g * y_group + r * y_row. The rows up to
		     the next multiple of 32 are written too */
	int64_t y_row, y_group;
	/* Optional: called for each group, when it is complete. With y_group 0 all groups may use the same memory, if
	 * k <= GEMM_PART. */
	void (*finish)(void *context, int64_t column, int64_t columns);
	/* Optional: called for each piece of k when x's rows have just passed through L2, for whoever needs them, too. */
	void (*has_read)(void *context, int64_t column, int64_t columns);
	void *context;
};
enum { GEMM_GROUP = 64, GEMM_PART = 1024, GEMM_ROWS_MOST = 512 };
#define GEMM_ROWS_BYTES ((size_t)768 << 10)

void gemm_rows(const struct row_product *product);
/* The most rows that a product may have, and should: a multiple of 128. */
int64_t gemm_rows_best(int64_t k);

#endif
