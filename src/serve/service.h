/* The service: HTTP endpoints for models. Requests are received by serve/http.h, parsed by serve/api.h, encoded by
 * serve/model_work.h, and computed in batches by serve/batcher.h; answers take the same way back. */
#ifndef SERVE_SERVICE_H
#define SERVE_SERVICE_H

#include "serve/models.h"

/* The options of `bertc serve`. */
struct service_options {
	struct option_list model; /* FOLDER or NAME=FOLDER */
	/* Further values of Host, with or without a port. Without keys, a service that only this machine can reach answers only
	 * under names of this machine and these; elsewhere Host counts only if there are any. */
	struct option_list allowed_hosts;
	struct option_list cors_origin;    /* origins whose pages may use the service from a browser; "*": all */
	const char *listen, *api_key_file; /* address:port; NULL: everyone may use the service */
	bool auto_truncate;
	int64_t max_seq_length, max_batch_tokens, max_queue_tokens, max_concurrent_requests, max_client_batch_size,
		max_body_bytes, max_connections;
	double max_wait_ms, request_timeout, min_score;
	bool min_score_given; /* otherwise as each folder says */
	struct device_options device;
};

struct service;
/* Loads the models and starts listening. `settings` is copied; what it points to is borrowed. */
MUST_USE enum status service_open(struct service **out, const struct service_options *settings);
/* Serves until a stop is requested (base/stop.h); then refuses new requests and answers those already accepted. */
MUST_USE enum status service_run(struct service *service);
void service_close(struct service *service); /* NULL is fine */

#endif
