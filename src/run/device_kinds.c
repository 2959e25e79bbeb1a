/* The table of devices that `bertc plan` knows, with their published rates. */
#include "run/device_kinds.h"

#include <string.h>

const char *const device_precision_names[] = {"fp32", "tf32", "fp16", "bf16", "fp8", NULL};

#define GiB (1024.0 * 1024 * 1024)
#define TFLOPS 1e12
#define GBS 1e9

/* H200: products and copies were measured on one (bf16 and FP8, on random numbers, which take more power and run slower than
 * zeros); attention is from the benchmarks of cuDNN and FlashAttention-3 for Hopper. The others: from data sheets,
 * scaled by the shares that the H200 reaches (80 % of peak in products, 90 % in memory bandwidth). */
/* clang-format off */
const struct device_kind device_kinds[] = {
	{"b200", "NVIDIA B200, 180 GB", 180 * GiB, {60 * TFLOPS, 800 * TFLOPS, 1600 * TFLOPS, 1600 * TFLOPS, 2900 * TFLOPS},
	 FIGURE_ESTIMATE, 7000 * GBS, FIGURE_ESTIMATE, 600 * TFLOPS, 480 * TFLOPS, 148, "nvlink5", "ndr", 8, 8, 50 * GBS},
	{"h200", "NVIDIA H200 SXM, 141 GB", 139 * GiB, {52 * TFLOPS, 390 * TFLOPS, 780 * TFLOPS, 780 * TFLOPS, 1540 * TFLOPS},
	 FIGURE_MEASURED, 4170 * GBS, FIGURE_MEASURED, 335 * TFLOPS, 270 * TFLOPS, 132, "nvlink4", "ndr", 8, 8, 50 * GBS},
	{"h100", "NVIDIA H100 SXM, 80 GB", 79 * GiB, {52 * TFLOPS, 390 * TFLOPS, 750 * TFLOPS, 750 * TFLOPS, 1350 * TFLOPS},
	 FIGURE_ESTIMATE, 3000 * GBS, FIGURE_ESTIMATE, 335 * TFLOPS, 270 * TFLOPS, 132, "nvlink4", "ndr", 8, 8, 50 * GBS},
	{"a100", "NVIDIA A100 SXM, 80 GB", 79 * GiB, {17.5 * TFLOPS, 125 * TFLOPS, 255 * TFLOPS, 255 * TFLOPS, 0},
	 FIGURE_ESTIMATE, 1800 * GBS, FIGURE_ESTIMATE, 170 * TFLOPS, 130 * TFLOPS, 108, "nvlink3", "hdr", 8, 8, 25 * GBS},
	{"a100_40", "NVIDIA A100 SXM, 40 GB", 39 * GiB, {17.5 * TFLOPS, 125 * TFLOPS, 255 * TFLOPS, 255 * TFLOPS, 0},
	 FIGURE_ESTIMATE, 1380 * GBS, FIGURE_ESTIMATE, 170 * TFLOPS, 130 * TFLOPS, 108, "nvlink3", "hdr", 8, 8, 25 * GBS},
	{"a30", "NVIDIA A30, 24 GB", 23.5 * GiB, {9 * TFLOPS, 66 * TFLOPS, 130 * TFLOPS, 130 * TFLOPS, 0}, FIGURE_ESTIMATE,
	 840 * GBS, FIGURE_ESTIMATE, 90 * TFLOPS, 70 * TFLOPS, 56, "pcie4", "100gbe", 1, 4, 22 * GBS},
	{"rtx4090", "NVIDIA RTX 4090, 24 GB", 23.5 * GiB, {66 * TFLOPS, 66 * TFLOPS, 140 * TFLOPS, 140 * TFLOPS, 270 * TFLOPS},
	 FIGURE_ESTIMATE, 900 * GBS, FIGURE_ESTIMATE, 120 * TFLOPS, 90 * TFLOPS, 128, "pcie4", "10gbe", 1, 4, 22 * GBS},
	{"t4", "NVIDIA T4, 16 GB", 15 * GiB, {6.5 * TFLOPS, 0, 26 * TFLOPS, 0, 0}, FIGURE_ESTIMATE, 260 * GBS, FIGURE_ESTIMATE,
	 15 * TFLOPS, 12 * TFLOPS, 40, "pcie3", "10gbe", 1, 4, 11 * GBS},
	{0},
};
/* clang-format on */

const struct device_kind *device_kind_find(const char *name)
{
	for (const struct device_kind *kind = device_kinds; kind->name; kind++)
		if (strcmp(kind->name, name) == 0)
			return kind;
	return NULL;
}

struct device_rates device_kind_rates(const struct device_kind *kind, enum device_precision precision)
{
	struct device_rates rates = {0};
	/* With fp8, heads, attention and everything between products stay in 16 bits. */
	enum device_precision rest = precision == DEVICE_FP8 ? DEVICE_BF16 : precision;
	double products = kind->products[precision], narrow = precision == DEVICE_FP32 || precision == DEVICE_TF32 ? 0.5 : 1;
	if (products <= 0)
		return rates;
	rates.products_forward = products * (precision == DEVICE_FP8 ? SHARE_OF_PRODUCTS_FP8 : SHARE_OF_PRODUCTS);
	rates.products_backward = rates.products_forward;
	rates.head = kind->products[rest] * SHARE_OF_PRODUCTS;
	rates.attention_forward = kind->attention_forward * narrow * SHARE_OF_ATTENTION_FORWARD;
	rates.attention_backward = kind->attention_backward * narrow * SHARE_OF_ATTENTION_BACKWARD;
	rates.attention_memory = kind->bandwidth * SHARE_OF_BANDWIDTH;
	rates.elements_forward = rates.elements_backward = rates.attention_memory;
	rates.embeddings = rates.update = rates.attention_memory;
	rates.multiprocessors = kind->multiprocessors;
	rates.gap = DEVICE_GAP;
	rates.overhead = DEVICE_OVERHEAD;
	rates.slowed = DEVICE_SLOWED;
	rates.uneven = HOSTS_UNEVEN;
	rates.element_bytes = precision == DEVICE_FP32 || precision == DEVICE_TF32 ? 4 : 2;
	return rates;
}
