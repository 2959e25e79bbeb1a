/* The option rows for the device and its precision. */
#include "infer/device_options.h"

#define ROW(member, role, value) OPTION_ROW(struct device_options, member, role, value)

/* clang-format off */
const struct option device_rows[] = {
	{ROW(device, ROLE_RUN, "NAME"), .range = DEVICE_WORDS,
	 .fallback_text = "cuda if this build and the machine support it, else cpu",
	 .brief = "device to compute on: cpu or cuda (an NVIDIA GPU)",
	 .help = "device to compute on: cpu, cuda (an NVIDIA GPU), or ref, the slow float64 reference"},
	{ROW(precision, ROLE_RUN, "TYPE"), .range = PRECISION_WORDS,
	 .fallback_text = "bf16 if the device supports it, else fp32 (fp16 on older GPUs)",
	 .brief = "data type of activations and matrix products: fp32, bf16; on GPUs also fp8, fp16 and tf32, on CPUs int8 for "
	 "inference",
	 .help = "data type of activations and matrix products; tf32 and fp16 need a GPU; fp8: the encoder's linear layers in "
	 "FP8, everything else in bf16 (on CPUs a slow simulation); int8: the same layers in int8, for inference on CPUs only; "
	 "master weights are always fp32"},
	{ROW(threads, ROLE_RUN, "N"), .range = "0..1024", .fallback = "0", .alias = "num_threads",
	 .help = "number of worker threads; 0 = one per core; the result does not depend on it"},
	{0},
};
