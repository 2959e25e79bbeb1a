/* Routes requests to endpoints, and connects HTTP, requests, batches, and metrics. */
#include "serve/service.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "serve/api_keys.h"
#include "serve/endpoints.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/model_work.h"
#include "serve/page.h"
#include "serve/supervisor.h"

#define JSON_TYPE "application/json"
#define HTML_TYPE "text/html; charset=utf-8"

struct service {
	struct service_options settings;
	struct models models;
	bool has_models;
	struct api_keys keys;
	struct batcher *batcher;
	struct metrics *metrics;
	struct http_server *http;
	struct buffer page, docs, openapi, openai_models, info; /* constant answers */
	atomic_llong waiting;                                   /* requests queued or being computed */
	atomic_bool stopping;
	bool checks_host; /* only names of this machine and those allowed are answered under */
};

/* The service's data for an exchange while a model computes its answer. */
struct pending {
	struct model_work work; /* first member: a pointer to its job is cast to the pending */
	struct api_request request;
	struct service *service;
	struct http_exchange *exchange;
	double arrived;
};

/* ---- Endpoints ---- */

static void answer_error(struct service *service, struct http_exchange *exchange, enum api_style style,
			 const struct api_error *error)
{
	static const enum metric_counter counters[] = {
		[FAULT_SYNTAX] = FAILURE_VALIDATION,
		[FAULT_HEADERS] = FAILURE_VALIDATION,
		[FAULT_HOST] = FAILURE_KEY,
		[FAULT_FIELD] = FAILURE_VALIDATION,
		[FAULT_EMPTY] = FAILURE_VALIDATION,
		[FAULT_INPUT] = FAILURE_VALIDATION,
		[FAULT_KEY] = FAILURE_KEY,
		[FAULT_PATH] = FAILURE_VALIDATION,
		[FAULT_MODEL] = FAILURE_VALIDATION,
		[FAULT_KIND] = FAILURE_BACKEND,
		[FAULT_METHOD] = FAILURE_VALIDATION,
		[FAULT_BODY] = FAILURE_VALIDATION,
		[FAULT_MEDIA_TYPE] = FAILURE_VALIDATION,
		[FAULT_BUSY] = FAILURE_OVERLOADED,
		[FAULT_FAILED] = FAILURE_BACKEND,
		[FAULT_STOPPING] = FAILURE_UNHEALTHY,
	};
	struct http_answer *answer = &exchange->answer;
	buffer_clear(&answer->body);
	answer->status = api_status(error->fault, style);
	answer->content_type = JSON_TYPE;
	api_write_error(&answer->body, style, error);
	metrics_count(service->metrics, counters[error->fault]);
}

static void answer_with(struct http_exchange *exchange, const char *type, const struct buffer *body)
{
	exchange->answer.status = 200;
	exchange->answer.content_type = type;
	buffer_append(&exchange->answer.body, body->data, body->size);
}

/* NULL: *error says that the path or the method does not exist; for a wrong method, the answer's `allow` lists the valid ones. */
static const struct endpoint *find_endpoint(struct http_exchange *exchange, struct api_error *error)
{
	const char *allow;
	const struct endpoint *found = endpoint_find(exchange->path, exchange->method, &allow);
	exchange->answer.allow = found ? NULL : allow;
	if (!found && allow)
		api_fail(error, FAULT_METHOD, NULL, "%.100s takes %s, not %.20s", exchange->path, allow, exchange->method);
	else if (!found)
		api_fail(error, FAULT_PATH, NULL, "there is nothing at %.200s", exchange->path);
	return found;
}

static void answer_get(struct service *service, struct http_exchange *exchange, const struct endpoint *endpoint)
{
	struct api_error error;
	switch (endpoint->kind) {
	case GET_PAGE: answer_with(exchange, HTML_TYPE, &service->page); return;
	case GET_DOCS: answer_with(exchange, HTML_TYPE, &service->docs); return;
	case GET_OPENAPI: answer_with(exchange, JSON_TYPE, &service->openapi); return;
	case GET_INFO: answer_with(exchange, JSON_TYPE, &service->info); return;
	case GET_MODELS: answer_with(exchange, JSON_TYPE, &service->openai_models); return;
	case GET_METRICS:
		exchange->answer.status = 200;
		exchange->answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
		metrics_write(service->metrics, batcher_waiting(service->batcher), &exchange->answer.body);
		return;
	default: break;
	}
	exchange->answer.status = 200;
	if (!atomic_load(&service->stopping))
		return;
	api_fail(&error, FAULT_STOPPING, NULL, "the service is stopping");
	answer_error(service, exchange, endpoint_style(endpoint->path), &error);
}

/* ---- Tasks ---- */

static enum metric_counter counter_of(const struct api_request *request, bool success)
{
	int offset = success ? SUCCESS_EMBED - COUNT_EMBED : 0;
	return (enum metric_counter)(COUNT_EMBED + (request->task <= API_ANSWER ? (int)request->task : 0) + offset);
}

static void count_request(struct service *service, const struct api_request *request, bool success)
{
	bool many = request->count > 1;
	if (request->task == API_TOKENIZE || request->task == API_DECODE)
		return;
	metrics_count(service->metrics, success ? (many ? SUCCESS_BATCH : SUCCESS_SINGLE) : many ? COUNT_BATCH : COUNT_SINGLE);
	metrics_count(service->metrics, counter_of(request, success));
}

static void release_pending(struct pending *pending)
{
	if (!pending)
		return;
	model_work_release(&pending->work);
	api_request_release(&pending->request);
	free(pending);
}

/* Called in the batcher's thread. */
static void on_computed(struct batch_job *job)
{
	struct pending *pending = (struct pending *)job;
	atomic_fetch_sub(&pending->service->waiting, 1);
	http_resume(pending->exchange);
}

/* Seconds until it is worth trying again. */
static int retry_after(struct service *service)
{
	double delay = ceil(batcher_delay(service->batcher));
	return delay < 1 ? 1 : delay > 60 ? 60 : (int)delay;
}

/* Browsers let any page send a body without a type, so only other clients may leave it out; those send no Origin. */
static bool is_json(const struct http_exchange *exchange)
{
	const char *type = exchange->content_type;
	size_t size = strlen(JSON_TYPE);
	if (!*type)
		return !*exchange->origin;
	return strncasecmp(type, JSON_TYPE, size) == 0 && (type[size] == '\0' || type[size] == ';' || type[size] == ' ');
}

static bool check_body(const struct service *service, const struct http_exchange *exchange, struct api_error *error)
{
	if (exchange->body_too_large)
		return api_fail(error, FAULT_BODY, NULL, "the body is larger than %lld bytes",
				(long long)service->settings.max_body_bytes);
	if (!is_json(exchange))
		return api_fail(error, FAULT_MEDIA_TYPE, NULL,
				"the body is %.100s, and must be " JSON_TYPE ": send the header Content-Type: " JSON_TYPE,
				*exchange->content_type ? exchange->content_type : "of no type");
	if (atomic_load(&service->stopping))
		return api_fail(error, FAULT_STOPPING, NULL, "the service is stopping");
	return true;
}

/* POST / asks the only model for its task, as clients of single-model services do. NULL: *error says why. */
static const struct api_form *find_form(const struct service *service, const struct endpoint *endpoint, struct api_error *error)
{
	static const struct api_form *const order[] = {&tei_embed, &tei_predict, &own_answer, &own_fill};
	const struct served_model *model = &service->models.models[0];
	if (endpoint->form)
		return endpoint->form;
	if (service->models.count > 1) {
		api_fail(error, FAULT_PATH, NULL, "several models are served here: ask /embed, /predict, /rerank, ...");
		return NULL;
	}
	int i = 0;
	while (!model_can(model, order[i]->task))
		i++;
	return model_is_reranker(model) ? &tei_rerank : order[i];
}

static bool read_request(const struct service *service, const struct http_exchange *exchange, const struct endpoint *endpoint,
			 struct api_request *out, struct api_error *error)
{
	const struct api_limits limits = {.max_texts = service->settings.max_client_batch_size};
	const struct api_form *form = find_form(service, endpoint, error);
	return form && api_read(out, form, buffer_string(&exchange->body), exchange->body.size, &limits, error);
}

static bool refuse_busy(struct service *service, struct http_exchange *exchange, struct api_error *error)
{
	exchange->answer.retry_after = retry_after(service);
	return api_fail(error, FAULT_BUSY, NULL, "too many requests wait already: try again in %d s",
			exchange->answer.retry_after);
}

/* Limit on the text of a request, as a multiple of the limit on its body: a query is read again with each of its texts. */
#define BYTES_OF_BODY 4

/* Encodes the request and queues it, if there is anything to compute. False: *error says why. */
static bool queue_request(struct service *service, struct http_exchange *exchange, const struct endpoint *endpoint,
			  struct pending *pending, struct api_error *error)
{
	double began = clock_seconds();
	const struct work_limits limits = {.tokens = service->settings.max_queue_tokens,
					   .bytes = BYTES_OF_BODY * service->settings.max_body_bytes};
	/* Check before doing any work. Requests that arrive meanwhile are taken into account below. */
	if (atomic_load(&service->waiting) >= service->settings.max_concurrent_requests || batcher_is_full(service->batcher))
		return refuse_busy(service, exchange, error);
	if (!read_request(service, exchange, endpoint, &pending->request, error))
		return false;
	count_request(service, &pending->request, false);
	buffer_release(&exchange->body);
	if (!model_work_make(&pending->work, &service->models, &pending->request, service->settings.auto_truncate, &limits,
			     error))
		return false;
	if (pending->work.job.count == 0)
		return true;
	metrics_observe(service->metrics, SECONDS_TOKENIZATION, clock_seconds() - began);
	for (int64_t i = 0; i < pending->work.job.count; i++)
		metrics_observe(service->metrics, INPUT_LENGTH, pending->work.tokens[i]);
	pending->work.job.done = on_computed;
	bool taken = atomic_fetch_add(&service->waiting, 1) < service->settings.max_concurrent_requests;
	if (taken && batcher_add(service->batcher, &pending->work.job))
		return true;
	atomic_fetch_sub(&service->waiting, 1);
	return refuse_busy(service, exchange, error);
}

static bool begin_task(struct service *service, struct http_exchange *exchange, const struct endpoint *endpoint)
{
	struct api_error error;
	struct pending *pending = NULL;
	bool fine = check_body(service, exchange, &error);
	if (fine && memory_new(&pending, 1, sizeof *pending, "a request") != OK)
		fine = api_fail(&error, FAULT_FAILED, NULL, "%s", error_last()->message);
	if (fine) {
		pending->service = service;
		pending->exchange = exchange;
		pending->arrived = clock_seconds();
		/* Set before queuing: the answer may come at any time after that. */
		exchange->own = pending;
		fine = queue_request(service, exchange, endpoint, pending, &error);
	}
	if (fine && pending->work.job.count > 0)
		return false;
	fine = fine && model_work_write(&pending->work, &exchange->answer.body, &error);
	exchange->answer.status = 200;
	exchange->answer.content_type = JSON_TYPE;
	if (!fine)
		answer_error(service, exchange, endpoint_style(endpoint->path), &error);
	exchange->own = NULL;
	release_pending(pending);
	return true;
}

/* The part of a Host header without the port; all of it if something else follows. */
static size_t host_size(const char *host)
{
	const char *end = *host == '[' ? strchr(host, ']') : NULL, *port = end ? end + 1 : host + strcspn(host, ":");
	size_t digits = *port == ':' ? 1 + strspn(port + 1, "0123456789") : 0;
	return port[digits] ? strlen(host) : (size_t)(port - host);
}

static bool is_same_host(const char *host, const char *allowed)
{
	size_t size = host_size(host);
	return size == host_size(allowed) && strncasecmp(host, allowed, size) == 0;
}

/* A page in a browser on this machine can have its own name resolve to 127.0.0.1 (DNS rebinding) and then ask a service that
 * trusts whoever reaches it; but the browser sends the page's name as Host. */
static bool allows_host(const struct service *service, const char *host)
{
	static const char *const local[] = {"localhost", "127.0.0.1", "[::1]"};
	const struct service_options *settings = &service->settings;
	if (!service->checks_host)
		return true;
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		if (is_same_host(host, local[i]))
			return true;
	for (int64_t i = 0; i < settings->allowed_hosts.count; i++)
		if (is_same_host(host, settings->allowed_hosts.values[i]))
			return true;
	return is_same_host(host, http_address(service->http));
}

/* What stands in the way of any answer at all. */
static bool check_request(struct service *service, const struct http_exchange *exchange, struct api_error *error)
{
	if (exchange->malformed)
		return api_fail(error, FAULT_HEADERS, NULL, "the request has %s", exchange->malformed);
	if (!allows_host(service, exchange->host))
		return api_fail(
			error, FAULT_HOST, NULL,
			"Host '%.100s' is not a name of this machine: start the service with --allowed_hosts %.100s, or with "
			"--api_key_file, if it is meant to be asked under that name",
			exchange->host, *exchange->host ? exchange->host : "NAME");
	return true;
}

/* The bodies of requests without a valid key, or for unknown endpoints, are not kept in memory. */
static bool wants_body(void *context, const struct http_exchange *exchange)
{
	const struct service *service = context;
	if (!allows_host(service, exchange->host))
		return false;
	const char *allow;
	const struct endpoint *endpoint = endpoint_find(exchange->path, exchange->method, &allow);
	return endpoint && endpoint->kind >= POST_TASK &&
	       (endpoint->is_public || api_keys_allow(&service->keys, exchange->authorization));
}

/* NULL: pages of this origin may not read answers. */
static const char *shared_with(const struct service *service, const char *origin)
{
	const struct option_list *allowed = &service->settings.cors_origin;
	for (int64_t i = 0; i < allowed->count && *origin; i++)
		if (strcmp(allowed->values[i], "*") == 0 || strcasecmp(allowed->values[i], origin) == 0)
			return allowed->values[i];
	return NULL;
}

static bool on_begin(void *context, struct http_exchange *exchange)
{
	struct service *service = context;
	struct api_error error;
	exchange->answer.shared_with = shared_with(service, exchange->origin);
	if (!check_request(service, exchange, &error)) {
		answer_error(service, exchange, endpoint_style(exchange->path), &error);
		return true;
	}
	if (exchange->answer.shared_with && strcmp(exchange->method, "OPTIONS") == 0) {
		exchange->answer.is_preflight = true;
		exchange->answer.status = 204;
		return true;
	}
	const struct endpoint *endpoint = find_endpoint(exchange, &error);
	if (endpoint && !endpoint->is_public && !api_keys_allow(&service->keys, exchange->authorization)) {
		api_fail(&error, FAULT_KEY, NULL, "%s",
			 *exchange->authorization ? "this API key is not known here"
						  : "an API key is needed: Authorization: Bearer KEY");
		answer_error(service, exchange, endpoint_style(endpoint->path), &error);
		return true;
	}
	if (!endpoint)
		answer_error(service, exchange, endpoint_style(exchange->path), &error);
	else if (endpoint->kind >= POST_TASK)
		return begin_task(service, exchange, endpoint);
	else
		answer_get(service, exchange, endpoint);
	return true;
}

static void on_finish(void *context, struct http_exchange *exchange)
{
	struct service *service = context;
	struct pending *pending = exchange->own;
	const struct batch_job *job = &pending->work.job;
	enum api_style style = pending->request.style;
	struct api_error error;
	bool fine = job->error.status == OK;
	if (!fine) {
		log_warning("a batch could not be computed: %s", job->error.message);
		api_fail(&error, FAULT_FAILED, NULL, "the model could not compute this: %.300s", job->error.message);
	}
	fine = fine && model_work_write(&pending->work, &exchange->answer.body, &error);
	exchange->answer.status = 200;
	exchange->answer.content_type = JSON_TYPE;
	if (!fine)
		answer_error(service, exchange, style, &error);
	else
		count_request(service, &pending->request, true);
	metrics_observe(service->metrics, SECONDS_QUEUE, job->begun - job->added);
	metrics_observe(service->metrics, SECONDS_INFERENCE, job->ended - job->begun);
	metrics_observe(service->metrics, SECONDS_REQUEST, clock_seconds() - pending->arrived);
	/* The answer is complete, so its inputs need not wait for the client to receive it. */
	exchange->own = NULL;
	release_pending(pending);
}

static void on_end(void *context, struct http_exchange *exchange, bool delivered)
{
	(void)context;
	(void)delivered;
	release_pending(exchange->own);
}

static enum status on_batch(void *context, int lane, const struct batch_part *parts, int64_t part_count)
{
	struct service *service = context;
	int64_t texts = 0, tokens = 0;
	for (int64_t p = 0; p < part_count; p++) {
		texts += parts[p].count;
		for (int64_t i = 0; i < parts[p].count; i++)
			tokens += parts[p].job->tokens[parts[p].first + i];
	}
	metrics_observe(service->metrics, BATCH_SIZE, (double)texts);
	metrics_observe(service->metrics, BATCH_TOKENS, (double)tokens);
	return models_compute(&service->models, lane, parts, part_count);
}

/* ---- Constant answers ---- */

static void write_info(struct service *service)
{
	const struct service_options *settings = &service->settings;
	struct json_writer writer = {.out = &service->info};
	json_open(&writer, NULL, '{');
	if (service->models.count == 1)
		model_put_info(&service->models.models[0], &writer);
	json_open(&writer, "models", '[');
	for (int i = 0; i < service->models.count; i++) {
		json_open(&writer, NULL, '{');
		model_put_info(&service->models.models[i], &writer);
		json_close(&writer);
	}
	json_close(&writer);
	json_put_integer(&writer, "max_concurrent_requests", settings->max_concurrent_requests);
	json_put_integer(&writer, "max_batch_tokens", settings->max_batch_tokens);
	json_put_null(&writer, "max_batch_requests");
	json_put_integer(&writer, "max_client_batch_size", settings->max_client_batch_size);
	json_put_bool(&writer, "auto_truncate", settings->auto_truncate);
	json_put_string(&writer, "server", "bertc");
	json_put_string(&writer, "version", VERSION);
	json_close(&writer);
}

static enum status write_answers(struct service *service)
{
	const char **names;
	TRY(memory_new(&names, service->models.count, sizeof *names, "names of models"));
	for (int i = 0; i < service->models.count; i++)
		names[i] = service->models.models[i].name;
	openai_write_models(&service->openai_models, names, service->models.count, (int64_t)time(NULL));
	free(names);
	write_info(service);
	page_write(&service->page);
	docs_page_write(&service->docs);
	endpoints_write_openapi(&service->openapi);
	TRY(buffer_status(&service->docs));
	TRY(buffer_status(&service->openapi));
	TRY(buffer_status(&service->openai_models));
	TRY(buffer_status(&service->info));
	return buffer_status(&service->page);
}

/* ---- Opening and running ---- */

/* How long the service waits, once it is to stop, for requests of which only a part has arrived. */
#define LAST_REQUESTS 2.0

static bool is_local(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0;
}

static enum status start(struct service *service)
{
	const struct service_options *settings = &service->settings;
	const struct batcher_settings batcher = {.models = service->models.count * MODEL_LANES,
						 .max_batch_tokens = settings->max_batch_tokens,
						 .max_batch_items = settings->max_batch_tokens,
						 .max_queue_tokens = settings->max_queue_tokens,
						 .max_wait_seconds = settings->max_wait_ms / 1000,
						 .compute = on_batch,
						 .context = service};
	const struct http_settings http = {.listen = settings->listen,
					   .max_body_bytes = settings->max_body_bytes,
					   .max_connections = settings->max_connections,
					   .timeout_seconds = settings->request_timeout,
					   .wants_body = wants_body,
					   .begin = on_begin,
					   .finish = on_finish,
					   .end = on_end,
					   .context = service};
	TRY(batcher_open(&service->batcher, &batcher));
	TRY(http_open(&service->http, &http));
	service->checks_host =
		settings->allowed_hosts.count > 0 || (is_local(http_address(service->http)) && service->keys.count == 0);
	return http_start(service->http);
}

enum status service_open(struct service **out, const struct service_options *settings)
{
	const struct models_settings of_models = {.device = settings->device,
						  .max_batch_tokens = settings->max_batch_tokens,
						  .max_seq_length = settings->max_seq_length,
						  .min_score = settings->min_score_given ? &settings->min_score : NULL};
	struct service *service;
	enum status status;
	*out = NULL;
	TRY(memory_new(&service, 1, sizeof *service, "the service"));
	service->settings = *settings;
	if (settings->api_key_file)
		TRY_GOTO(api_keys_read(&service->keys, settings->api_key_file), failed);
	TRY_GOTO(metrics_open(&service->metrics), failed);
	service->has_models = true;
	TRY_GOTO(models_open(&service->models, settings->model.values, settings->model.count, &of_models), failed);
	TRY_GOTO(write_answers(service), failed);
	TRY_GOTO(start(service), failed);
	log_note("serving at http://%s", http_address(service->http));
	if (!is_local(http_address(service->http)) && service->keys.count == 0)
		log_warning("anyone who can reach this machine can use the service; restrict it with --api_key_file FILE");
	supervisor_tell("READY=1");
	*out = service;
	return OK;
failed:
	service_close(service);
	return status;
}

enum status service_run(struct service *service)
{
	while (!stop_requested())
		clock_pause(0.1);
	int64_t open_requests = http_open_requests(service->http);
	char number[FORMAT_BYTES];
	supervisor_tell("STOPPING=1");
	atomic_store(&service->stopping, true);
	http_close_after_answers(service->http);
	log_note("%s: %s; no new requests are taken", stop_reason(),
		 open_requests > 0
			 ? format_counted(number, open_requests, "request is being answered", "requests are being answered")
			 : "nothing is being answered");
	/* New requests are answered, too, with 503; one that has begun to arrive may take a moment. */
	double began = clock_seconds();
	while (http_open_requests(service->http) > 0 || (!http_is_idle(service->http) && clock_seconds() - began < LAST_REQUESTS))
		clock_pause(0.01);
	http_quiesce(service->http);
	while (http_open_requests(service->http) > 0)
		clock_pause(0.01);
	return OK;
}

void service_close(struct service *service)
{
	if (!service)
		return;
	http_close(service->http);
	batcher_close(service->batcher);
	if (service->has_models)
		models_close(&service->models);
	metrics_close(service->metrics);
	api_keys_release(&service->keys);
	buffer_release(&service->page);
	buffer_release(&service->docs);
	buffer_release(&service->openapi);
	buffer_release(&service->openai_models);
	buffer_release(&service->info);
	free(service);
}
