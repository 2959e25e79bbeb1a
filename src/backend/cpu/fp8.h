/* FP8 simulated: no CPU multiplies in FP8, but bf16 holds every rounded (scaled) number exactly. So operands are rounded to
 * FP8 and multiplied in bf16 (in fp32 where the processor has no bf16: activations are then fp32, too). Only the order and
 * precision of sums differ from a GPU. */
#ifndef BACKEND_CPU_FP8_H
#define BACKEND_CPU_FP8_H

#include "backend/cpu/state.h"

/* Bytes of workspace for one operand of the largest shape; 0 without FP8. */
size_t cpu_fp8_operand_bytes(const struct backend *be, const struct shape_limits *limits);
/* The x that products with `weight` multiply: x itself, or its rounded copy in the workspace area for that format (E4M3, or
 * E5M2 for gradients), valid until the next call with the same format. */
struct tensor cpu_operand(struct replica *r, const struct weight *weight, enum dtype format, const struct tensor *x);
/* master rounded to E4M3, into `out` (same shape). */
void cpu_fp8_round_master(struct replica *r, const struct tensor *master, float *out);
/* gradient = or += column sums of x, unrounded. */
void cpu_fp8_column_sums(struct replica *r, const struct tensor *x, float *gradient, bool overwrite);

#endif
