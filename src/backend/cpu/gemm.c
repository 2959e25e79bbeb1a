/* Divides a blocked matrix product into parts that stay in the caches, and calls the kernels for each. */
#include "backend/cpu/gemm.h"

#include <string.h>
#include "backend/cpu/isa.h"
#include "base/numbers.h"

const struct gemm_kernels *cpu_gemm_kernels(enum dtype source)
{
	BUG_IF(source != DTYPE_F32 && source != DTYPE_BF16);
	return source == DTYPE_BF16 ? cpu_level()->gemm_bf16 : cpu_level()->gemm_f32;
}

void gemm_pack(const struct gemm_kernels *kernels, block_pack *pack, const void *source, int64_t row_elements, int64_t rows,
	       int64_t columns, void *blocks, int64_t row_stride, int64_t column_stride)
{
	size_t element = dtype_bytes(kernels->source);
	for (int64_t i = 0; i < rows; i += GEMM_BLOCK) {
		for (int64_t j = 0; j < columns; j += GEMM_BLOCK) {
			const char *corner = (const char *)source + (size_t)(i * row_elements + j) * element;
			char *block = (char *)blocks + i / GEMM_BLOCK * row_stride + j / GEMM_BLOCK * column_stride;
			if (rows - i >= GEMM_BLOCK && columns - j >= GEMM_BLOCK) {
				pack(corner, row_elements, block);
				continue;
			}
			/* At the edge of the matrix, a copy padded with zeros takes the source's place. */
			_Alignas(64) char full[GEMM_BLOCK * GEMM_BLOCK * sizeof(float)];
			size_t r = (size_t)smaller(GEMM_BLOCK, rows - i), row_bytes = GEMM_BLOCK * element;
			size_t used = (size_t)smaller(GEMM_BLOCK, columns - j) * element;
			for (size_t row = 0; row < r; row++) {
				memcpy(full + row * row_bytes, corner + row * (size_t)row_elements * element, used);
				memset(full + row * row_bytes + used, 0, row_bytes - used);
			}
			memset(full + r * row_bytes, 0, (GEMM_BLOCK - r) * row_bytes);
			pack(full, GEMM_BLOCK, block);
		}
	}
}

int64_t gemm_rows_best(const struct gemm_kernels *kernels, int64_t k)
{
	int64_t element = (int64_t)dtype_bytes(kernels->type);
	/* If k is longer, only a part of it is in the cache at a time, along with the sums of all columns. */
	int64_t most =
		k > GEMM_PART ? 512 / element : (int64_t)GEMM_ROWS_BYTES / (element * gemm_blocks(k) * GEMM_BLOCK) / 128 * 128;
	return smaller(most < 128 ? 128 : most, GEMM_ROWS_MOST);
}

/* A part of k, for all rows, packed into blocks. */
struct part {
	const struct row_product *p;
	int64_t first, blocks; /* in blocks of 32, along k */
	int64_t rows;          /* in blocks */
	int64_t panel_bytes;   /* of a 16-column panel */
	int64_t block_bytes;   /* of 32 of its rows */
	bool accumulate, is_last;
};

static const char *panel_at(const struct part *part, int64_t column, int64_t block)
{
	return (const char *)part->p->packed + column / 16 * part->panel_bytes + (part->first + block) * part->block_bytes;
}

/* Multiplies 32 columns for all rows, in runs along k whose panel stays in L1: short runs in general, longer ones if the whole
 * k fits into one run and sums are stored only once. */
static void multiply_columns(const struct part *part, int64_t column, float *out, int64_t out_row, bool accumulate)
{
	enum { RUN = 16, ONLY_RUN = 24 };
	const struct row_product *p = part->p;
	int64_t longest = part->rows >= 8 && part->blocks <= ONLY_RUN && !accumulate && part->is_last ? ONLY_RUN : RUN;
	int64_t runs = (part->blocks + longest - 1) / longest, run = (part->blocks + runs - 1) / runs;
	int64_t block = gemm_block_bytes(p->kernels);
	for (int64_t i = 0; i < part->blocks; i += run) {
		bool ends = i + run >= part->blocks, is_last = ends && column + GEMM_BLOCK >= p->n;
		p->kernels->multiply_panel(&(struct panel_product){
			.m = part->rows,
			.k = smaller(run, part->blocks - i),
			.left = (const char *)p->blocks + i * block,
			.left_m = part->blocks * block,
			.right = panel_at(part, column, i),
			.half = part->panel_bytes,
			.out = out,
			.out_row = out_row,
			.accumulate = accumulate || i > 0,
			.fetch = {.from = ends ? panel_at(part, column + GEMM_BLOCK, 0) : panel_at(part, column, i + run),
				  .rows = is_last ? 0 : 2,
				  .row_bytes = (ends ? run : smaller(run, part->blocks - i - run)) * part->block_bytes,
				  .stride = part->panel_bytes},
		});
	}
}

/* Multiplies columns that extend beyond y into a buffer. */
static void multiply_edge(const struct part *part, int64_t column, float *y)
{
	_Alignas(64) float out[GEMM_ROWS_MOST * GEMM_BLOCK];
	const struct row_product *p = part->p;
	multiply_columns(part, column, out, GEMM_BLOCK, false);
	for (int64_t r = 0; r < p->rows; r++)
		for (int64_t c = 0; c < p->n - column; c++) {
			float *to = y + r * p->y_row + c, sum = out[r * GEMM_BLOCK + c];
			*to = part->accumulate ? *to + sum : sum;
		}
}

static void multiply_part(const struct part *part)
{
	const struct row_product *p = part->p;
	int64_t first = part->first * GEMM_BLOCK, columns = smaller(part->blocks * GEMM_BLOCK, p->k - first);
	int64_t block = gemm_block_bytes(p->kernels);
	gemm_pack(p->kernels, p->kernels->left_from_rows, (const char *)p->x + (size_t)first * dtype_bytes(p->kernels->source),
		  p->x_row, p->rows, columns, p->blocks, part->blocks * block, block);
	if (p->has_read)
		p->has_read(p->context, first, columns);
	for (int64_t group = 0; group < p->n; group += GEMM_GROUP) {
		int64_t end = smaller(group + GEMM_GROUP, p->n);
		float *y = p->y + group / GEMM_GROUP * p->y_group;
		for (int64_t column = group; column < end; column += GEMM_BLOCK) {
			if (column + GEMM_BLOCK <= p->n)
				multiply_columns(part, column, y + column - group, p->y_row, part->accumulate);
			else
				multiply_edge(part, column, y + column - group);
		}
		if (part->is_last && p->finish)
			p->finish(p->context, group, end - group);
	}
}

void gemm_rows(const struct row_product *p)
{
	int64_t blocks = gemm_blocks(p->k), parts = (p->k + GEMM_PART - 1) / GEMM_PART, part = (blocks + parts - 1) / parts;
	int64_t block_bytes = gemm_block_bytes(p->kernels) / 2;
	BUG_IF(p->rows > gemm_rows_best(p->kernels, p->k) || (p->y_group == 0 && parts > 1));
	p->kernels->begin();
	for (int64_t i = 0; i < blocks; i += part)
		multiply_part(&(struct part){.p = p,
					     .first = i,
					     .blocks = smaller(part, blocks - i),
					     .rows = gemm_blocks(p->rows),
					     .panel_bytes = blocks * block_bytes,
					     .block_bytes = block_bytes,
					     .accumulate = p->accumulate || i > 0,
					     .is_last = i + part >= blocks});
	p->kernels->end();
}
