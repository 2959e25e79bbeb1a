/* The part of oneDNN that we use: products of 128 rows with a packed weight. On arm64, where all products are our own
 * (onednn_absent.c), there are none. */
#ifndef BACKEND_CPU_ONEDNN_H
#define BACKEND_CPU_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/cpu/isa.h"
#include "backend/tensor.h"
#include "base/error.h"
#include "base/pool.h"

/* y (128,n) fp32 = or += x (128,k) w (k,n), all rows dense, by one thread. */
struct product_shape {
	int64_t n, k;
	enum dtype dtype;           /* of x and the packed w: F32 or BF16 */
	int64_t k_stride, n_stride; /* distance in elements between adjacent elements of the fp32 master that w is packed from */
	bool accumulates;           /* += will be requested, too */
};

struct onednn;  /* the engine, and every product made so far */
struct product; /* lives as long as its onednn */

/* Makes oneDNN single-threaded in every worker of the pool and checks that it works here; `isa` limits the instruction sets it
 * may use. `restore`: leaves the calling thread's OpenMP setting as it was. */
MUST_USE enum status onednn_open(struct onednn **out, struct pool *pool, enum cpu_isa isa, bool restore);
void onednn_close(struct onednn *dnnl);
const char *onednn_version(const struct onednn *dnnl); /* "oneDNN 2.6.3"; "" without it */

/* Finds or creates (a few milliseconds) the product for a shape. Must not be called from within a pool task. Aborts if oneDNN
 * cannot create it: every version supports all shapes that we need. */
const struct product *onednn_product(struct onednn *dnnl, const struct product_shape *shape);
size_t product_packed_bytes(const struct product *product);

/* The packed layout, if it is the one that kernels/pack.c implements; panel 0: another one, which only product_pack() can
 * make. */
struct product_layout {
	int64_t panel, k_padded;
};
struct product_layout product_layout(const struct product *product);

/* Callable from any worker: */
void product_pack(const struct product *product, const float *master, void *packed, int worker);
void product_run(const struct product *product, bool accumulate, const void *x, const void *packed, float *y, int worker);

#endif
