/* The options for where and how to compute, shared by the commands that run a model. */
#ifndef CMD_DEVICE_OPTIONS_H
#define CMD_DEVICE_OPTIONS_H

#include "base/option.h"
#include "cmd/text_options.h"
#include "infer/device.h"

/* Rows of an option table for a settings struct whose member `member` is a struct device_settings. */
#define DEVICE_OPTIONS(settings, member)                                                                                         \
	{.name = "device",                                                                                                       \
	 .type = OPTION_CHOICE,                                                                                                  \
	 .field = offsetof(settings, member.device),                                                                             \
	 .range = "cpu|cuda|ref",                                                                                                \
	 .role = ROLE_RUN,                                                                                                       \
	 .value_name = "NAME",                                                                                                   \
	 .fallback_text = "cuda if this build and the machine support it, else cpu",                                             \
	 .help = "device to compute on: cpu, cuda (an NVIDIA GPU), or ref, the slow float64 reference"},                         \
		{.name = "precision",                                                                                            \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.precision),                                                                  \
		 .range = "fp32|tf32|bf16|fp16|fp8|int8",                                                                        \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "TYPE",                                                                                           \
		 .fallback_text = "bf16 if the device supports it, else fp32 (fp16 on older GPUs)",                              \
		 .help = "data type of activations and matrix products; tf32 and fp16 need a GPU; fp8: the encoder's linear "    \
			 "layers in FP8, everything else in bf16 (on CPUs a slow simulation); int8: the same layers in int8, "   \
			 "for inference on CPUs only; master weights are always fp32"},                                          \
		THREADS_OPTION(offsetof(settings, member.threads))

#endif
