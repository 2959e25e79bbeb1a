/* The options that say where and how to compute, which commands that run a model share. */
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
	 .fallback_text = "cuda where this build and the machine have it, else cpu",                                             \
	 .help = "where to compute: cpu, cuda (an NVIDIA GPU), or ref, the slow float64 definition"},                            \
		{.name = "precision",                                                                                            \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.precision),                                                                  \
		 .range = "fp32|tf32|bf16|fp16|fp8|int8",                                                                        \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "TYPE",                                                                                           \
		 .fallback_text = "bf16 where the device has it, else fp32 (fp16 on older GPUs)",                                \
		 .help = "type of activations and matrix products; tf32 and fp16 on GPUs only; fp8: products of the encoder's "  \
			 "linear layers in FP8, all else bf16 (on CPUs a slower simulation); int8: the same layers in int8, "    \
			 "on CPUs, for using a model, not for training it; masters are always fp32"},                            \
		{.name = "attention",                                                                                            \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.attention),                                                                  \
		 .fallback = "own",                                                                                              \
		 .range = "own|cudnn",                                                                                           \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "WHOSE",                                                                                          \
		 .help = "on a GPU: our kernels, or cuDNN's (bf16 and fp16, Hopper or later); its dropout drops other elements " \
			 "than everywhere else, and a run with it cannot be repeated bit for bit"},                              \
		THREADS_OPTION(offsetof(settings, member.threads))

#endif
