/* The service: HTTP endpoints for models. Requests are received by serve/http.h, parsed by serve/api.h, encoded by
 * serve/model_work.h, and computed in batches by serve/batcher.h; answers take the same way back. */
#ifndef SERVE_SERVICE_H
#define SERVE_SERVICE_H

#include "serve/models.h"

struct service_settings {
	const char *listen;         /* address:port */
	const char *const *folders; /* [folder_count] FOLDER or NAME=FOLDER */
	int64_t folder_count;
	const char *api_key_file; /* NULL: everyone may use the service */
	struct models_settings models;
	bool auto_truncate;
	double max_wait_seconds, timeout_seconds;
	int64_t max_queue_tokens, max_concurrent_requests, max_client_batch_size, max_body_bytes, max_connections;
};

struct service;
/* Loads the models and starts listening. `settings` is copied; what it points to is borrowed. */
MUST_USE enum status service_open(struct service **out, const struct service_settings *settings);
/* Serves until a stop is requested (base/stop.h); then refuses new requests and answers those already accepted. */
MUST_USE enum status service_run(struct service *service);
void service_close(struct service *service); /* NULL is fine */

#endif
