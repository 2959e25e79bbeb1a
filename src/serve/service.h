/* The service: endpoints over models. Requests come from serve/http.h, are read by serve/api.h, encoded by serve/models.h,
 * computed by serve/batcher.h, and go back the same way. */
#ifndef SERVE_SERVICE_H
#define SERVE_SERVICE_H

#include "serve/models.h"

struct service_settings {
	const char *listen;         /* address:port */
	const char *const *folders; /* [folder_count] FOLDER or NAME=FOLDER */
	int64_t folder_count;
	const char *api_key_file; /* NULL: everybody may ask */
	struct models_settings models;
	bool auto_truncate;
	double max_wait_seconds, timeout_seconds;
	int64_t max_queue_tokens, max_concurrent_requests, max_client_batch_size, max_body_bytes, max_connections;
};

struct service;
/* Loads the models and listens. `settings` is copied, what it points to borrowed. */
MUST_USE enum status service_open(struct service **out, const struct service_settings *settings);
/* Serves until base/stop.h says so; then no new requests are taken, and those that were are answered. */
MUST_USE enum status service_run(struct service *service);
void service_close(struct service *service); /* NULL is fine */

#endif
