/* Opens the back end that the options name, on the caller's pool of threads or a new one. */
#include "infer/device.h"
#include "backend/open.h"

const char *device_name(enum device_name device)
{
	static const char *const names[] = {[DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda", [DEVICE_REF] = "ref"};
	return device == DEVICE_FASTEST ? backend_best_device() : names[device];
}

enum status device_open_on(const struct device_options *options, bool inference, struct pool *pool, struct backend **be)
{
	static const enum dtype types[] = {
		[PRECISION_FP32] = DTYPE_F32, [PRECISION_TF32] = DTYPE_F32, [PRECISION_BF16] = DTYPE_BF16,
		[PRECISION_FP16] = DTYPE_F16, [PRECISION_FP8] = DTYPE_BF16,
	};
	enum precision precision = options->precision;
	bool own_type = precision != PRECISION_FASTEST && precision != PRECISION_INT8;
	const char *device = device_name(options->device);
	return backend_open(be, &(struct backend_settings){
					.device = device,
					.dtype = own_type ? types[precision] : backend_best_dtype(device),
					.tf32 = precision == PRECISION_TF32,
					.fp8 = precision == PRECISION_FP8,
					.inference = inference,
					.int8 = precision == PRECISION_INT8,
					.pool = pool,
				});
}

enum status device_open(const struct device_options *options, bool inference, struct pool **pool, struct backend **be)
{
	*be = NULL;
	*pool = NULL;
	TRY(pool_create(pool, (int)options->threads));
	enum status status = device_open_on(options, inference, *pool, be);
	if (status != OK) {
		pool_free(*pool);
		*pool = NULL;
	}
	return status;
}
