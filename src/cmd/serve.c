/* bertc serve: answers requests to models over HTTP. */
#include <string.h>

#include "base/stop.h"
#include "cmd/command.h"
#include "infer/device_options.h"
#include "cmd/foreign_rows.h"
#include "cmd/saved_models.h"
#include "serve/service.h"

#define ROW(member, role, value) OPTION_ROW(struct service_options, member, role, value)

/* clang-format off */
static const struct option serve_options[] = {
	{.help = "What is served"},
	{ROW(model, ROLE_PLACE, "[NAME=]FOLDER..."), .alias = "model_id",
	 .help = "one or more models: fine-tuned models, embedding models (including sentence-transformers folders), models with "
	 "a masked-word head; without NAME= a model is named after its folder"},
	{ROW(listen, ROLE_RUN, "ADDRESS:PORT"), .fallback = "127.0.0.1:8080",
	 .help = "address to listen on; 0.0.0.0 or [::] accepts connections from other machines, port 0 chooses a free port and "
	 "reports it"},
	{ROW(api_key_file, ROLE_RUN, "FILE"), .fallback_text = "no key is needed",
	 .help = "file of API keys, one per line; requests without one of them are refused"},
	{ROW(allowed_hosts, ROLE_RUN, "NAME..."), .fallback_text = "names of this machine, if no key is needed",
	 .help = "names under which the service is asked (Host), besides localhost, 127.0.0.1 and [::1]; requests for others are "
	 "refused"},
	{ROW(cors_origin, ROLE_RUN, "ORIGIN..."), .alias = "cors_allow_origin", .fallback_text = "none",
	 .help = "origins (https://example.org) whose pages may use the service from a browser; * allows all"},
	{ROW(auto_truncate, ROLE_RUN, NULL), .fallback = "true",
	 .help = "truncate texts that are too long, unless a request says otherwise; false: refuse them"},
	{ROW(max_seq_length, ROLE_RUN, "N"), .range = "8..65536", .fallback_text = "as each folder says",
	 .help = "longest text in tokens"},
	{ROW(min_score, ROLE_RUN, "P"), .range = "0..1", .fallback_text = "as each folder says",
	 .help = "give no class or label whose probability is below this"},
	{.help = "Batches"},
	{ROW(max_batch_tokens, ROLE_RUN, "N"), .fallback = "4096", .range = "64..1048576", .alias = "micro_batch_tokens",
	 .help = "tokens computed at a time, from all clients together"},
	{ROW(max_wait_ms, ROLE_RUN, "MS"), .range = "0..10000", .fallback = "0",
	 .help = "how long a batch that is not full waits for more texts; while one batch is computed, texts for the next one "
	 "gather in any case"},
	{.help = "Limits"},
	{ROW(max_concurrent_requests, ROLE_RUN, "N"), .fallback = "512", .range = "1..1000000",
	 .help = "maximum number of requests waiting or being computed; further ones get status 429"},
	{ROW(max_queue_tokens, ROLE_RUN, "N"), .fallback = "1048576", .range = "64..1073741824",
	 .help = "tokens waiting; while there are this many, requests get status 429; a request with more than that gets "
	 	 "422"},
	{ROW(max_client_batch_size, ROLE_RUN, "N"), .fallback = "2048", .range = "1..1000000",
	 .help = "maximum number of texts in one request; more get status 422"},
	{ROW(max_body_bytes, ROLE_RUN, "N"), .fallback = "2000000", .range = "1024..1073741824", .alias = "payload_limit",
	 .help = "maximum size of one request; larger ones get status 413"},
	{ROW(max_connections, ROLE_RUN, "N"), .fallback = "1024", .range = "1..100000",
	 .help = "maximum number of connections at a time; further ones wait until one is closed"},
	{ROW(request_timeout, ROLE_RUN, "SECONDS"), .range = "0.1..86400", .fallback = "60",
	 .help = "time a client has to send a complete request, and to receive an answer, before its connection is closed; idle "
	 "connections are closed after the same time"},
	{.help = "Machine"},
	{.group = device_rows, .field = offsetof(struct service_options, device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text serve_text = {
	.name = "serve",
	.synopsis = "--model [NAME=]FOLDER... [options]",
	.summary = "answer requests over HTTP: embeddings, predictions, rankings",
	.description =
		"Loads models and answers requests until it is stopped (Ctrl-C, SIGTERM); it then finishes the requests it has "
		"accepted and exits. Texts of all clients are computed together, in batches without padding; an answer does not "
		"depend on the other texts of its batch.\n\n"
		"POST /v1/embeddings and GET /v1/models follow OpenAI's API, /v1/rerank and /v2/rerank Cohere's and Jina AI's; "
		"/embed, /embed_all, /embed_sparse, /similarity, /predict, /rerank, /tokenize, /decode, /info, /health and "
		"/metrics follow "
		"text-embeddings-inference; /fill fills in blanks, and /answer answers questions about a paragraph. The page at "
		"/ lets you try every model in a browser, and /docs lists the endpoints.\n\n"
		"The server speaks plain HTTP; for HTTPS, put a reverse proxy in front of it. With -v it logs one line per "
		"request.",
	.examples =
		"bertc serve --model runs/task\tserve a model at http://127.0.0.1:8080\n"
		"bertc serve --model mail=runs/mail search=models/minilm --listen 0.0.0.0:8080 --api_key_file keys\tserve two "
		"models to other machines\n",
};

/* A port is allowed, and ignored: a browser leaves out the usual one. */
static bool can_be_host(const char *name)
{
	static const char bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:[]";
	bool is_address = *name == '[', has_colons = strchr(name, ':') != strrchr(name, ':');
	return *name && *name != '.' && !name[strspn(name, bytes)] && (is_address || !has_colons);
}

static enum status check_serve(struct options *options)
{
	const struct service_options *settings = options->settings;
	TRY(options_require(options, "model", "for instance: bertc serve --model FOLDER"));
	for (int64_t i = 0; i < settings->cors_origin.count; i++) {
		const char *origin = settings->cors_origin.values[i], *host = strstr(origin, "://");
		if (strcmp(origin, "*") != 0 && (!host || strchr(host + 3, '/')))
			return error_set(ERR_USAGE, "--cors_origin %.200s: an origin has the form https://example.org", origin);
	}
	for (int64_t i = 0; i < settings->allowed_hosts.count; i++)
		if (!can_be_host(settings->allowed_hosts.values[i]))
			return error_hinted(
				error_set(ERR_USAGE, "--allowed_hosts %.200s: no Host header is written like this",
					  settings->allowed_hosts.values[i]),
				"give whole names, separated by spaces: bert.example.org [fe80::1]; to be asked under any "
				"name, use --api_key_file");
	for (int64_t i = 0; i < settings->model.count; i++)
		TRY(saved_model_check(options, model_folder_of(settings->model.values[i])));
	return OK;
}

static enum status run_serve(struct options *options)
{
	struct service_options settings = *(const struct service_options *)options->settings;
	struct service *service;
	settings.min_score_given = options_given(options, "min_score");
	stop_install();
	TRY(service_open(&service, &settings));
	enum status status = service_run(service);
	service_close(service);
	return status;
}

/* Options of other servers. */
/* clang-format off */
static const struct option_foreign foreign[] = {
	VALUE_REFUSED("port p", "--listen 127.0.0.1:8080 sets address and port; 0.0.0.0:8080 lets other machines in"),
	VALUE_REFUSED("host hostname bind address", "--listen 127.0.0.1:8080 sets address and port"),
	VALUE_REFUSED("workers", "one process answers all requests; --threads sets how many threads compute"),
	{0},
};
/* clang-format on */

const struct command command_serve = {
	.text = &serve_text,
	.options = serve_options,
	.foreign = foreign,
	.settings_bytes = sizeof(struct service_options),
	.check = check_serve,
	.run = run_serve,
};
