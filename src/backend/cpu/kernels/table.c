/* Collects the kernels of one instruction set in a table; this file and the kernels are compiled once for each. */
#include "backend/cpu/kernels/table.h"

const struct cpu_kernels KERNEL(cpu_kernels) = {
	.linear_fwd = KERNEL(linear_fwd),
	.gelu_fwd = KERNEL(gelu_fwd),
	.linear_bwd = KERNEL(linear_bwd),
	.tanh_bwd = KERNEL(tanh_bwd),
	.gated = KERNEL(gated),
	.rotary = KERNEL(rotary),
	.norm_fwd = KERNEL(norm_fwd),
	.embed_fwd = KERNEL(embed_fwd),
	.norm_bwd = KERNEL(norm_bwd),
	.softmax_fwd = KERNEL(softmax_fwd),
	.softmax_bwd = KERNEL(softmax_bwd),
	.add_row = KERNEL(add_row),
	.add_scaled_row = KERNEL(add_scaled_row),
	.add_row_into = KERNEL(add_row_into),
	.sum_squares = KERNEL(sum_squares),
	.adamw = KERNEL(adamw),
	.lamb_norms = KERNEL(lamb_norms),
	.lamb_apply = KERNEL(lamb_apply),
	.pack = KERNEL(pack),
};
