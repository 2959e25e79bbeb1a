/* Kernels for inference's products: one table of functions per instruction set (for an overview see backend/cpu/inference.h).
 *
 * A weight (O,I) is stored in panels of `panel` outputs, two vectors wide (NEON: four). For each group of inputs, a panel holds
 * the numbers of its outputs side by side: one input at a time in fp32, pairs in bf16, and in int8 as many as the processor
 * multiplies at once: four (VNNI, AMX, sdot), or two, which are widened to 16 bits when loaded into registers or, with plain
 * NEON, when multiplied. bfmmla and smmla take 8 bytes: four bf16 numbers, eight of int8. Missing inputs and outputs are zeros.
 * Every element of a product is one sum over the inputs in ascending order, regardless of what else is computed with it. */
#ifndef BACKEND_CPU_KERNELS_INFERENCE_KERNELS_H
#define BACKEND_CPU_KERNELS_INFERENCE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/tensor.h"

enum {
	PANEL_MOST = 32,   /* maximum outputs per panel, on any instruction set */
	BF16_MULTIPLE = 8, /* bf16 panels are padded with zeros to a multiple of this many inputs */
	INT8_MULTIPLE = 64 /* int8 rows and panels are padded with zeros to a multiple of this many inputs */
};

/* A row of int8 activations: a header with its scale, then the numbers, padded to INT8_MULTIPLE. Their format depends on the
 * instruction set: with VNNI, unsigned bytes offset by 128; on arm64, signed bytes; otherwise signed 16-bit numbers. */
enum { INT8_ROW_HEADER = 64 };

/* What follows a product: done to each of its rows once, some rows at a time, in ascending order, as soon as they are there. */
struct product_end {
	void (*finish)(const void *context, int64_t row, int64_t rows); /* or NULL */
	const void *context;
};

/* y (rows, panel) = x w', for one panel. */
struct inference_product {
	int64_t rows, inputs;
	const void *x; /* int8: the numbers of the first row, after its header */
	int64_t x_row; /* bytes between rows */
	const void *panel;
	const float *scales; /* int8: (panel) */
	const int32_t *sums; /* int8 with VNNI: (panel) initial values of the sums, -128 x the sum of the output's numbers */
	const void *next;    /* the panel that is multiplied after this one, to be prefetched meanwhile; or NULL */
	float *y;
	int64_t y_row; /* floats between rows; all columns of the panel are written */
	struct product_end end;
};

/* Packs some outputs of one panel, from rows of a weight as the host holds them. */
struct panel_pack {
	int64_t first, count; /* which outputs within the panel */
	int64_t inputs;
	enum dtype from;         /* F32, F16, BF16 or S8 */
	const void *rows;        /* from the first of these outputs on */
	const float *row_scales; /* S8: (count) */
	enum dtype type;         /* of the panel: F32, BF16 or S8 */
	void *panel;
	float *scales; /* S8: (panel), out */
	int32_t *sums; /* S8: (panel), out */
};

/* One head of one sequence, in bf16: y = softmax(scale q k') v. */
struct inference_attention {
	int64_t length, size; /* tokens, at most ATTENTION_LENGTH; columns, 32 or 64 */
	const uint16_t *query, *key, *value;
	int64_t row;   /* numbers between rows */
	float scale;   /* 1 / sqrt(size) */
	bool has_next; /* the next head of the same sequence is processed next */
	void *scratch; /* ATTENTION_BYTES */
	uint16_t *y;
	int64_t y_row;
};
enum {
	ATTENTION_LENGTH = 512,
	ATTENTION_QUERIES = 16, /* most queries at a time */
	ATTENTION_BYTES = ATTENTION_LENGTH * (2 * 64 * 2 + ATTENTION_QUERIES * 6)
};

/* A number of a block that is larger than its column's limit. */
struct selected {
	float value;
	int32_t row, column;
};
enum { SELECT_ROWS = 120 }; /* maximum rows of a block */

struct inference_kernels {
	int64_t panel;     /* outputs per panel */
	int64_t tile_rows; /* rows that are multiplied at a time */
	int64_t row_bytes; /* bytes per number of an int8 row: 1 or 2 */
	void (*multiply_f32)(const struct inference_product *a);
	void (*multiply_bf16)(const struct inference_product *a); /* NULL where bf16 is not offered */
	void (*multiply_s8)(const struct inference_product *a);
	void (*pack)(const struct panel_pack *a);
	void (*attend)(const struct inference_attention *a); /* NULL without vdpbf16ps */
	/* Quantizes rows of activations (F32 or BF16) to int8 rows `out_row` bytes apart. */
	void (*quantize)(const void *x, enum dtype dtype, int64_t rows, int64_t columns, void *out, int64_t out_row);
	/* Finds the numbers of a block (rows, panel) that are larger than `limits` (panel), row by row; returns how many. */
	int64_t (*select)(const float *block, int64_t rows, const float *limits, struct selected *out);
};

/* Bytes of a panel. */
static inline int64_t panel_bytes(const struct inference_kernels *kernels, enum dtype type, int64_t inputs)
{
	int64_t padded = type == DTYPE_S8 ? round_up(inputs, INT8_MULTIPLE) : round_up(inputs, BF16_MULTIPLE);
	return round_up(kernels->panel * padded * (int64_t)dtype_bytes(type), 64);
}

/* Bytes from one int8 row to the next. */
static inline int64_t int8_row_bytes(const struct inference_kernels *kernels, int64_t columns)
{
	return INT8_ROW_HEADER + round_up(columns, INT8_MULTIPLE) * kernels->row_bytes;
}

#endif
