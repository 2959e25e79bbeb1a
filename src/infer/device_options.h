/* Where and how to compute: options of the commands that run a model. */
#ifndef INFER_DEVICE_OPTIONS_H
#define INFER_DEVICE_OPTIONS_H

#include "base/option.h"

/* The words of --device and --precision, in their order; without a word, the machine decides. */
#define DEVICE_WORDS "|cpu|cuda|ref"
#define PRECISION_WORDS "|fp32|tf32|bf16|fp16|fp8|int8"
enum device_name { DEVICE_FASTEST, DEVICE_CPU, DEVICE_CUDA, DEVICE_REF };
enum precision {
	PRECISION_FASTEST,
	PRECISION_FP32,
	PRECISION_TF32,
	PRECISION_BF16,
	PRECISION_FP16,
	PRECISION_FP8,
	PRECISION_INT8, /* for inference only */
};

struct device_options {
	enum device_name device;
	enum precision precision;
	int64_t threads; /* 0 = all cores */
};
extern const struct option device_rows[];

#endif
