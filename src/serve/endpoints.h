/* The endpoints of the service: the table from which requests are routed and openapi.json is made. */
#ifndef SERVE_ENDPOINTS_H
#define SERVE_ENDPOINTS_H

#include "serve/api.h"

enum endpoint_kind { GET_PAGE, GET_DOCS, GET_OPENAPI, GET_HEALTH, GET_MODELS, GET_INFO, GET_METRICS, POST_TASK, POST_ANY };

struct endpoint {
	const char *path;
	enum endpoint_kind kind;
	bool is_public;              /* needs no API key */
	const struct api_form *form; /* POST_TASK */
	const char *help;            /* what GET answers */
};

/* NULL: there is none with this path and method; *allow then lists the methods of the path, NULL if it has no endpoint. */
const struct endpoint *endpoint_find(const char *path, const char *method, const char **allow);
/* The style of errors on this path. */
enum api_style endpoint_style(const char *path);
/* Appends the table as a document of OpenAPI 3.1. */
void endpoints_write_openapi(struct buffer *out);

#endif
