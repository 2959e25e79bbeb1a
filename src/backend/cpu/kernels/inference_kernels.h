/* Kernels of inference's products: one table of functions for each instruction set (backend/cpu/inference.h has the whole).
 *
 * A weight (O,I) lies in panels of `panel` outputs, two vectors wide. A panel holds for each group of inputs the numbers of
 * its outputs side by side: one input at a time in fp32, pairs in bf16, and in int8 as many as the processor multiplies at
 * once: four (VNNI, AMX), or two, which are widened to 16 bits on their way into registers. Missing inputs and outputs are
 * zeros. Every element of a product is one sum over the inputs in ascending order, whatever is computed beside it. */
#ifndef BACKEND_CPU_KERNELS_INFERENCE_KERNELS_H
#define BACKEND_CPU_KERNELS_INFERENCE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/tensor.h"

enum {
	PANEL_MOST = 32,   /* outputs of a panel, on any instruction set */
	INT8_MULTIPLE = 64 /* inputs of int8 rows and panels are filled up to these with zeros */
};

/* A row of activations in int8: a header with its scale, then the numbers, filled up to INT8_MULTIPLE. In what form they
 * lie is the instruction set's business: with VNNI plus 128 as unsigned bytes, else signed and 16 bits wide. */
enum { INT8_ROW_HEADER = 64 };

/* y (rows, panel) = x w', for one panel. */
struct inference_product {
	int64_t rows, inputs;
	const void *x; /* int8: where the numbers of the first row begin */
	int64_t x_row; /* bytes from row to row */
	const void *panel;
	const float *scales; /* int8: (panel) */
	const int32_t *sums; /* int8 with VNNI: (panel) what sums begin with, -128 x the sum of the output's numbers */
	const void *next;    /* the panel that is multiplied after this one, to be brought near meanwhile; or NULL */
	float *y;
	int64_t y_row; /* floats from row to row; all columns of the panel are written */
};

/* Some outputs of one panel, from rows of a weight as a host has them. */
struct panel_pack {
	int64_t first, count; /* outputs within the panel */
	int64_t inputs;
	enum dtype from;         /* F32, F16, BF16 or S8 */
	const void *rows;        /* of the first of the outputs on */
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
	int64_t row;   /* numbers from row to row */
	float scale;   /* 1 / sqrt(size) */
	bool has_next; /* the head behind it comes next */
	void *scratch; /* ATTENTION_BYTES */
	uint16_t *y;
	int64_t y_row;
};
enum { ATTENTION_LENGTH = 512, ATTENTION_BYTES = ATTENTION_LENGTH * (2 * 64 * 2 + 4 * 6) };

struct inference_kernels {
	int64_t panel;     /* outputs of a panel */
	int64_t row_bytes; /* of a number of an int8 row: 1 or 2 */
	void (*multiply_f32)(const struct inference_product *a);
	void (*multiply_bf16)(const struct inference_product *a); /* from AVX-512 on */
	void (*multiply_s8)(const struct inference_product *a);
	void (*pack)(const struct panel_pack *a);
	void (*attend)(const struct inference_attention *a); /* NULL without vdpbf16ps */
	/* Rows of activations (F32 or BF16) become int8 rows `out_row` bytes apart. */
	void (*quantise)(const void *x, enum dtype dtype, int64_t rows, int64_t columns, void *out, int64_t out_row);
};

extern const struct inference_kernels inference_kernels_avx2, inference_kernels_avx512, inference_kernels_avx512_vnni;
extern const struct inference_kernels inference_kernels_avx512_bf16, inference_kernels_amx;

/* Bytes of a panel. */
static inline int64_t panel_bytes(const struct inference_kernels *kernels, enum dtype type, int64_t inputs)
{
	int64_t padded = type == DTYPE_S8 ? round_up(inputs, INT8_MULTIPLE) : round_up(inputs, 2);
	return round_up(kernels->panel * padded * (int64_t)dtype_bytes(type), 64);
}

/* Bytes from one int8 row to the next. */
static inline int64_t int8_row_bytes(const struct inference_kernels *kernels, int64_t columns)
{
	return INT8_ROW_HEADER + round_up(columns, INT8_MULTIPLE) * kernels->row_bytes;
}

#endif
