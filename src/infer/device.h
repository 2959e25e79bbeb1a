/* Opens the device that a model runs on. */
#ifndef INFER_DEVICE_H
#define INFER_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/backend.h"
#include "base/error.h"
#include "base/pool.h"

/* The values of --device, --precision, and --threads. */
struct device_settings {
	const char *device, *precision; /* NULL: the machine's fastest device, the device's fastest precision */
	int64_t threads;                /* 0 = all cores */
	bool inference; /* not an option; set by the caller: backend_settings.inference. --precision int8 needs it */
};

/* Opens the back end on an existing pool. */
MUST_USE enum status device_open_on(const struct device_settings *settings, struct pool *pool, struct backend **be);

/* Starts a pool and opens the back end on it. The caller closes both, the back end first. After a failure, both are NULL. */
MUST_USE enum status device_open(const struct device_settings *settings, struct pool **pool, struct backend **be);

#endif
