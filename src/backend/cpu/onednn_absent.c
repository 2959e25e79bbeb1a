/* In place of onednn.c and library.c on arm64: all products are our own there. */
#include "backend/cpu/onednn.h"

#include "backend/cpu/state.h"

enum status onednn_open(struct onednn **out, struct pool *pool, enum cpu_isa isa, bool restore)
{
	(void)pool, (void)isa, (void)restore;
	*out = NULL;
	return OK;
}

void onednn_close(struct onednn *dnnl)
{
	(void)dnnl;
}

const char *onednn_version(const struct onednn *dnnl)
{
	(void)dnnl;
	return "";
}

const struct product *onednn_product(struct onednn *dnnl, const struct product_shape *shape)
{
	(void)dnnl, (void)shape;
	BUG_IF(true);
	return NULL;
}

size_t product_packed_bytes(const struct product *product)
{
	(void)product;
	BUG_IF(true);
	return 0;
}

struct product_layout product_layout(const struct product *product)
{
	(void)product;
	BUG_IF(true);
	return (struct product_layout){0};
}

void product_pack(const struct product *product, const float *master, void *packed, int worker)
{
	(void)product, (void)master, (void)packed, (void)worker;
	BUG_IF(true);
}

void product_run(const struct product *product, bool accumulate, const void *x, const void *packed, float *y, int worker)
{
	(void)product, (void)accumulate, (void)x, (void)packed, (void)y, (void)worker;
	BUG_IF(true);
}

enum status cpu_whole_product(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs, int64_t inputs,
			      double (*clock)(void), double *out_seconds)
{
	(void)be, (void)product, (void)rows, (void)outputs, (void)inputs, (void)clock, (void)out_seconds;
	return error_set(ERR_USAGE, "on arm64 there is no library to compare with: all products are bertc's own");
}
