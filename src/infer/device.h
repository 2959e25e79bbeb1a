/* Opens the device that a model runs on. */
#ifndef INFER_DEVICE_H
#define INFER_DEVICE_H

#include "backend/backend.h"
#include "base/error.h"
#include "base/pool.h"
#include "infer/device_options.h"

/* The name of a device, as backend_open() takes it; of DEVICE_FASTEST, that of the machine's. */
const char *device_name(enum device_name device);

/* Opens the back end on an existing pool. `inference`: only forward passes are computed (backend_settings.inference). */
MUST_USE enum status device_open_on(const struct device_options *options, bool inference, struct pool *pool, struct backend **be);

/* Starts a pool and opens the back end on it. The caller closes both, the back end first. After a failure, both are NULL. */
MUST_USE enum status device_open(const struct device_options *options, bool inference, struct pool **pool, struct backend **be);

#endif
