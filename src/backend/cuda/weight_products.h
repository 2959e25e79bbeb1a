/* The products of a linear layer, for any type that its weight is multiplied in. */
#ifndef BACKEND_CUDA_WEIGHT_PRODUCTS_H
#define BACKEND_CUDA_WEIGHT_PRODUCTS_H

#include "backend/cuda/gemm.h"

/* y (rows, O) = x w' [+ b]; dx (rows, I) = dy w [+ add]; gradient of w (O, I) = or += dy' x. The last two (call wgrad after
 * dgrad) multiply the dy that was last given to cuda_product_backward(). */
void cuda_product_backward(const struct replica *r, const char *operation, const struct weight *w, const struct tensor *dy);
void cuda_product_forward(const struct replica *r, const char *operation, const struct tensor *x, const struct weight *w,
			  const struct weight *b, void *y);
/* y = gelu(pre), pre = x w' [+ b] (NULL: not wanted); dx = (dy w) gelu'(pre). cuda_product_dgelu() returns false if it did
 * nothing and the caller must compute dx. Uses the library's epilogue where that is correct (16 bits, tanh) and faster. */
void cuda_product_gelu(const struct replica *r, const char *operation, enum activation activation, const struct tensor *x,
		       const struct weight *w, const struct weight *b, void *pre, const struct tensor *y);
bool cuda_product_dgelu(const struct replica *r, const char *operation, enum activation activation, const struct tensor *dy,
			const struct weight *w, void *pre, void *dx);
void cuda_product_dgrad(const struct replica *r, const char *operation, const struct tensor *dy, const struct weight *w,
			const void *add, void *dx);
void cuda_product_wgrad(const struct replica *r, const char *operation, const struct tensor *dy, const struct tensor *x,
			const struct weight *w, bool overwrite);

/* fp8.c: the same for weights in FP8 (weight_in_fp8), and their copies. Forward and dgrad queue what the product reads and
 * return the product, which the caller must queue. */
size_t cuda_fp8_copy_bytes(const struct weight *weight);
const struct fp8_sizes *cuda_fp8_sizes(const struct weight *weight);
/* For the kernel that writes a tensor with a twin, and rounds it for the product that is queued next; the caller adds the
 * bound. */
struct kernel_fp8_output cuda_fp8_output(const struct replica *r, const struct tensor *tensor, enum dtype format);
void cuda_fp8_refresh(const struct replica *r, struct weight *const *weights, int64_t count);
struct product cuda_fp8_forward(const struct replica *r, const char *operation, const struct tensor *x, const struct weight *w,
				const void *bias, void *y);
void cuda_fp8_backward(const struct replica *r, const char *operation, const struct tensor *dy);
struct product cuda_fp8_dgrad(const struct replica *r, const char *operation, const struct tensor *dy, const struct weight *w,
			      const void *add, void *dx);
/* What rounds dx = dx gelu'(pre), with its bound. */
struct kernel_fp8_output cuda_fp8_dx(const struct replica *r, const struct linear_bwd *a);
/* Fills in a, b and the fields that belong to them, for dgrad by the plain kernel. */
void cuda_fp8_plain_dgrad(const struct replica *r, const struct tensor *dy, const struct weight *w, struct kernel_product *p);
void cuda_fp8_wgrad(const struct replica *r, const char *operation, const struct tensor *dy, const struct tensor *x,
		    const struct weight *w, bool overwrite);

#endif
