/* FP8 simulated: no CPU multiplies in it, but bf16 holds every rounded number, divided by its scale, exactly. So the operands
 * are rounded to FP8, and the products are those of bf16 (of fp32 where the processor has no bf16: then activations are fp32,
 * too). What is left to differ from a GPU is the order, and the precision, of sums. */
#ifndef BACKEND_CPU_FP8_H
#define BACKEND_CPU_FP8_H

#include "backend/cpu/state.h"

/* Bytes of workspace for an operand of the largest shape; 0 without FP8. */
size_t cpu_fp8_operand_bytes(const struct backend *be, const struct shape_limits *limits);
/* What products with `weight` take for x: x itself, or its rounded copy in the workspace's place for that format (E4M3, E5M2
 * for gradients), which stands until the next one. */
struct tensor cpu_operand(struct replica *r, const struct weight *weight, enum dtype format, const struct tensor *x);
/* master rounded to E4M3, into `out` (same shape). */
void cpu_fp8_round_master(struct replica *r, const struct tensor *master, float *out);
/* gradient = or += column sums of x: of what was not rounded. */
void cpu_fp8_column_sums(struct replica *r, const struct tensor *x, float *gradient, bool overwrite);

#endif
