#include "infer/device.h"
#include "backend/open.h"

#include <string.h>

enum status device_open_on(const struct device_settings *settings, struct pool *pool, struct backend **be)
{
	const char *precision = settings->precision;
	struct backend_settings backend = {.device = settings->device ? settings->device : backend_best_device(), .pool = pool};
	backend.inference = settings->inference;
	backend.int8 = precision && strcmp(precision, "int8") == 0;
	if (!precision || backend.int8)
		backend.dtype = backend_best_dtype(backend.device);
	else
		backend.dtype = strcmp(precision, "bf16") == 0 || strcmp(precision, "fp8") == 0 ? DTYPE_BF16
				: strcmp(precision, "fp16") == 0                                ? DTYPE_F16
												: DTYPE_F32;
	backend.tf32 = precision && strcmp(precision, "tf32") == 0;
	backend.fp8 = precision && strcmp(precision, "fp8") == 0;
	return backend_open(be, &backend);
}

enum status device_open(const struct device_settings *settings, struct pool **pool, struct backend **be)
{
	*be = NULL;
	*pool = NULL;
	TRY(pool_create(pool, (int)settings->threads));
	enum status status = device_open_on(settings, *pool, be);
	if (status != OK) {
		pool_free(*pool);
		*pool = NULL;
	}
	return status;
}
