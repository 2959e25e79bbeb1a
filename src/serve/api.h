/* Requests of clients and the answers to them, as JSON. Three families of formats share what is here: OpenAI's (api_openai.h),
 * those of text-embeddings-inference (api_tei.h), and our own (api_own.h). Pure functions of bytes and plain data: they know no
 * model, no queue and no HTTP but its statuses. */
#ifndef SERVE_API_H
#define SERVE_API_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/string_store.h"
#include "infer/text_input.h"

/* Whose form an error has. */
enum api_style { API_OPENAI, API_TEI };

/* Why a request is not answered. Each has a status and names in both styles: the table is in api.c. */
enum api_fault {
	FAULT_NONE,
	FAULT_SYNTAX,     /* not JSON */
	FAULT_FIELD,      /* unknown, missing, of the wrong type, out of range */
	FAULT_EMPTY,      /* a text or a list of texts is empty */
	FAULT_INPUT,      /* too many texts, too many tokens, characters that cannot be used */
	FAULT_KEY,        /* no API key, or a wrong one */
	FAULT_PATH,       /* no such endpoint */
	FAULT_MODEL,      /* no such model */
	FAULT_KIND,       /* the model cannot do this */
	FAULT_METHOD,     /* GET where POST is meant */
	FAULT_BODY,       /* too large */
	FAULT_MEDIA_TYPE, /* not application/json */
	FAULT_BUSY,       /* too many wait already */
	FAULT_FAILED,     /* the computation failed: our fault */
	FAULT_STOPPING,   /* the service ends */
};

struct api_error {
	enum api_fault fault;
	char message[512];
	char field[64]; /* the member that is wrong; "": none */
};
/* Fills *out and returns false. */
bool api_fail(struct api_error *out, enum api_fault fault, const char *field, const char *format, ...) PRINTF_LIKE(4, 5);
/* FAULT_FAILED with the last error of the thread. */
bool api_fail_internal(struct api_error *out);
int api_status(enum api_fault fault, enum api_style style);
void api_write_error(struct buffer *out, enum api_style style, const struct api_error *error);

/* What is asked for. */
enum api_task { API_EMBED, API_PREDICT, API_RERANK, API_FILL, API_ANSWER };

/* "predict", "embed", ...: as the last part of the endpoint. */
const char *api_task_name(enum api_task task);

struct api_request {
	enum api_task task;
	enum api_style style;
	const char *model; /* NULL: not named */
	struct text_input *inputs;
	int64_t count;
	bool is_list;                      /* the answer is a list with an element for each input */
	enum { AS_SET, YES, NO } truncate; /* texts that are too long; AS_SET: as the service is set */
	bool cut_left;                     /* from their beginning */
	bool normalize, base64;            /* API_EMBED */
	int64_t dimensions;                /* API_EMBED; 0: all */
	const char *prompt_name;           /* API_EMBED; NULL: none */
	bool raw_scores, return_text;      /* API_PREDICT, API_RERANK */
	int64_t top_k;                     /* API_FILL */
	struct string_store strings;       /* owns all text */
	int32_t *ids;                      /* owns all ids */
	int64_t id_count, id_room, room;   /* private */
};

struct api_limits {
	int64_t max_texts; /* of a request */
};

/* Reads a request for `task` in the family's form. False: *error says why. The caller releases *out in either case. */
bool api_read_openai(struct api_request *out, const char *body, size_t size, const struct api_limits *limits,
		     struct api_error *error);
bool api_read_tei(struct api_request *out, enum api_task task, const char *body, size_t size, const struct api_limits *limits,
		  struct api_error *error);
bool api_read_own(struct api_request *out, enum api_task task, const char *body, size_t size, const struct api_limits *limits,
		  struct api_error *error);
void api_request_release(struct api_request *request);

/* ---- What the families share in reading ---- */

/* The body as an object whose members are all among `known` (ends with NULL). The caller releases the document where this
 * returns true. */
bool api_open(struct json_document *out, const char *body, size_t size, const char *const *known, struct api_error *error);
/* Members of an object; null is as absent, which leaves *out as it is. */
bool api_get_bool(const struct json *object, const char *key, bool *out, struct api_error *error);
bool api_get_integer(const struct json *object, const char *key, int64_t min, int64_t max, int64_t *out, struct api_error *error);
/* Copied into the request. */
bool api_get_text(struct api_request *request, const struct json *object, const char *key, const char **out,
		  struct api_error *error);
/* A string as the text of an input: neither empty nor with a NUL. `field` is for messages. */
bool api_copy_text(struct api_request *request, const struct json *value, const char *field, const char **out,
		   struct api_error *error);
/* One more input; NULL: *error says why. */
struct text_input *api_add_input(struct api_request *request, struct api_error *error);
/* Clients of huggingface_hub send "parameters": {} whatever they ask. It may hold `known` (NULL: nothing), and members that are
 * null. *out: the object, or NULL. */
bool api_read_parameters(const struct json *body, const char *known, const struct json **out, struct api_error *error);
bool api_check_count(int64_t count, const char *field, const struct api_limits *limits, struct api_error *error);
/* `value` as inputs of API_EMBED: a string, a list of ids, or a list of strings and lists of ids. */
bool api_read_inputs(struct api_request *request, const struct json *value, const char *field, const struct api_limits *limits,
		     struct api_error *error);

/* ---- Answers ---- */

/* Rows of floats. */
struct api_vectors {
	const float *values; /* [count][width] */
	int64_t count, width;
};
struct api_score {
	const char *label; /* API_PREDICT */
	double score;
	int64_t index; /* API_RERANK: of the text */
};

void openai_write_embeddings(struct buffer *out, const char *model, const struct api_vectors *vectors, bool base64,
			     int64_t tokens);
void openai_write_models(struct buffer *out, const char *const *names, int64_t count, int64_t created);
void tei_write_embeddings(struct buffer *out, const struct api_vectors *vectors);
/* Sorts `scores`, descending, and appends them as a list; of equal ones the first in the model's order is first. */
void tei_write_predictions(struct json_writer *writer, struct api_score *scores, int64_t count);
/* The same; of equal ones the text with the higher index is first. `texts` NULL: without. */
void tei_write_ranks(struct buffer *out, struct api_score *scores, int64_t count, const struct text_input *texts);
/* Appends standard Base64 with padding. */
void api_base64(struct buffer *out, const void *bytes, size_t count);

#endif
