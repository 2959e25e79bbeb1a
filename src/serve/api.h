/* Client requests and their answers, as JSON. Five families of formats share this code: OpenAI's (api_openai.c), those of
 * text-embeddings-inference (api_tei.c, and api_tokens.c for its tokenizer), Cohere's (api_cohere.c), those of transformers'
 * pipelines, and our own (api_own.c). These are pure functions of bytes and plain data; they know nothing of models, queues, or
 * HTTP, apart from status codes. */
#ifndef SERVE_API_H
#define SERVE_API_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/string_store.h"
#include "infer/text_input.h"

/* Whose error format is used. */
enum api_style { API_OPENAI, API_TEI, API_COHERE };

/* Why a request is not answered. The table in api.c gives each fault its status and names in each style. */
enum api_fault {
	FAULT_NONE,
	FAULT_SYNTAX,     /* not JSON */
	FAULT_HEADERS,    /* of the request: where it ends is in doubt */
	FAULT_HOST,       /* the Host header is not a name of the service */
	FAULT_FIELD,      /* unknown, missing, of the wrong type, out of range */
	FAULT_EMPTY,      /* a text or a list of texts is empty */
	FAULT_INPUT,      /* too many texts, too many tokens, characters that cannot be used */
	FAULT_KEY,        /* no API key, or a wrong one */
	FAULT_PATH,       /* no such endpoint */
	FAULT_MODEL,      /* no such model */
	FAULT_KIND,       /* the model cannot do this task */
	FAULT_METHOD,     /* such as GET where POST is needed */
	FAULT_BODY,       /* the body is too large */
	FAULT_MEDIA_TYPE, /* not application/json */
	FAULT_BUSY,       /* too many requests are waiting */
	FAULT_FAILED,     /* the computation failed: our fault */
	FAULT_STOPPING,   /* the service is stopping */
};

struct api_error {
	enum api_fault fault;
	char message[512];
	char field[64]; /* the offending member; "": none */
};
/* Fills *out and returns false. */
bool api_fail(struct api_error *out, enum api_fault fault, const char *field, const char *format, ...) PRINTF_LIKE(4, 5);
/* The same with FAULT_FAILED and the thread's last error. */
bool api_fail_internal(struct api_error *out);
int api_status(enum api_fault fault, enum api_style style);
void api_write_error(struct buffer *out, enum api_style style, const struct api_error *error);

/* What a request asks for. */
enum api_task {
	API_EMBED,
	API_PREDICT,
	API_RERANK,
	API_FILL,
	API_ANSWER, /* up to here, what a model is made for; any model that embeds, or any at all, can do what follows */
	API_SIMILARITY,
	API_EMBED_ALL,
	API_EMBED_SPARSE,
	API_TOKENIZE,
	API_DECODE,
};

/* "predict", "embed", ...: what the model must be able to do. */
const char *api_task_name(enum api_task task);

struct api_request {
	enum api_task task;
	enum api_style style;
	const char *model; /* NULL: not named */
	struct text_input *inputs;
	int64_t count;
	bool is_list;                      /* the answer is a list with one element per input */
	enum { AS_SET, YES, NO } truncate; /* whether to cut texts that are too long; AS_SET: the service's default */
	bool cut_left;                     /* cut them at their beginning */
	bool in_pipeline;                  /* the answer is as transformers' pipelines give it */
	bool special;                      /* API_TOKENIZE: add special tokens; API_DECODE: keep them */
	bool normalize, base64;            /* API_EMBED */
	int64_t dimensions;                /* API_EMBED; 0: all */
	const char *prompt_name;           /* API_EMBED; NULL: none */
	bool raw_scores, return_text;      /* API_PREDICT, API_RERANK */
	int64_t top_k;                     /* API_FILL; API_RERANK: how many of the best, 0: all */
	struct string_store strings;       /* owns all strings */
	int32_t *ids;                      /* owns all ids */
	int64_t id_count, id_room, room;   /* private */
};

struct api_limits {
	int64_t max_texts; /* per request */
};

/* A member that a request may have. */
struct api_field {
	const char *name;
	const char *schema; /* the members of its JSON Schema */
	const char *help;
};

/* A form of requests: what a body may contain, and what reads it. */
struct api_form {
	enum api_style style;
	enum api_task task;
	bool (*read)(struct api_request *request, const struct json *body, const struct api_limits *limits,
		     struct api_error *error);
	const struct api_field *fields; /* the last one has no name */
	const char *help;               /* what it does, for openapi.json */
	const char *answer;             /* an example of an answer, as JSON */
};
extern const struct api_form openai_embed, tei_embed, tei_embed_all, tei_embed_sparse, tei_similarity, tei_predict, tei_rerank,
	tei_tokenize, tei_decode, cohere_rerank, own_fill, own_answer;

/* Reads a request. False: *error says why. The caller releases *out in either case. */
bool api_read(struct api_request *out, const struct api_form *form, const char *body, size_t size,
	      const struct api_limits *limits, struct api_error *error);
void api_request_release(struct api_request *request);

/* ---- Reading, shared by the families ---- */

#define TYPE_BOOL "\"type\":\"boolean\""
#define TYPE_INTEGER "\"type\":\"integer\",\"minimum\":1"
#define TYPE_TEXT "\"type\":\"string\""
#define TYPE_LIST "\"type\":\"array\",\"items\":{\"type\":\"string\"}"
#define TYPE_TEXTS "\"oneOf\":[{" TYPE_TEXT "},{" TYPE_LIST "}]"
#define TYPE_IDS "\"type\":\"array\",\"items\":{\"type\":\"integer\"}"
#define TYPE_INPUTS "\"oneOf\":[{" TYPE_TEXT "},{" TYPE_LIST "},{" TYPE_IDS "},{\"type\":\"array\",\"items\":{" TYPE_IDS "}}]"
#define TYPE_OBJECT "\"type\":\"object\""
/* Members of many forms. */
#define FIELD_MODEL                                                                                                              \
	{                                                                                                                        \
		"model", TYPE_TEXT, "Who answers; may be left out if only one model can."                                        \
	}
#define FIELD_PARAMETERS(help)                                                                                                   \
	{                                                                                                                        \
		"parameters", TYPE_OBJECT, help                                                                                  \
	}
#define FIELD_TRUNCATE                                                                                                           \
	{                                                                                                                        \
		"truncate", TYPE_BOOL, "Whether to cut texts that are too long for the model; otherwise as --auto_truncate."     \
	}
#define FIELD_DIRECTION                                                                                                          \
	{                                                                                                                        \
		"truncation_direction", TYPE_TEXT ",\"enum\":[\"left\",\"right\"]", "The end at which texts are cut."            \
	}

/* Get a member of an object. If it is absent or null, *out stays unchanged. */
bool api_get_bool(const struct json *object, const char *key, bool *out, struct api_error *error);
bool api_get_integer(const struct json *object, const char *key, int64_t min, int64_t max, int64_t *out, struct api_error *error);
/* The text is copied into the request. */
bool api_get_text(struct api_request *request, const struct json *object, const char *key, const char **out,
		  struct api_error *error);
/* Copies a string that is an input's text, which must not be empty or contain a NUL. `field` is for messages. */
bool api_copy_text(struct api_request *request, const struct json *value, const char *field, const char **out,
		   struct api_error *error);
/* Adds an input. NULL: *error says why. */
struct text_input *api_add_input(struct api_request *request, struct api_error *error);
/* Reads "parameters", which clients of huggingface_hub always send, even if empty: they expect answers like those of
 * transformers' pipelines. It may contain the member `known` (NULL: none) and members that are null. *out becomes the object, or
 * NULL. */
bool api_read_parameters(struct api_request *request, const struct json *body, const char *known, const struct json **out,
			 struct api_error *error);
/* Reads `value`, a text or a list of texts, as inputs; is_list says which. */
bool api_read_texts(struct api_request *request, const struct json *value, const char *field, const struct api_limits *limits,
		    struct api_error *error);
/* Reads the list `value` as inputs that are pairs of `query` and each of its texts. */
bool api_read_ranking(struct api_request *request, const struct json *query, const struct json *value, const char *field,
		      const struct api_limits *limits, struct api_error *error);
/* Checks the number of texts in the list `field`: at least one, and within the limits. */
bool api_check_count(int64_t count, const char *field, const struct api_limits *limits, struct api_error *error);
/* Reads `value` as inputs of API_EMBED: a string, a list of ids, or a list of strings and lists of ids. */
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
	int64_t index; /* API_RERANK: index of the text */
};

void openai_write_embeddings(struct buffer *out, const char *model, const struct api_vectors *vectors, bool base64,
			     int64_t tokens);
void openai_write_models(struct buffer *out, const char *const *names, int64_t count, int64_t created);
void tei_write_embeddings(struct buffer *out, const struct api_vectors *vectors);
/* The numbers that are not zero, as {"index", "value"}. */
void tei_write_sparse(struct buffer *out, const struct api_vectors *vectors);
/* Sorts `scores` in descending order and appends them as a list; ties keep the model's order. */
void tei_write_predictions(struct json_writer *writer, struct api_score *scores, int64_t count);
/* The same, but in a tie the text with the higher index comes first. `texts` NULL: leave out the texts. */
void tei_write_ranks(struct buffer *out, struct api_score *scores, int64_t count, const struct text_input *texts);
/* The `top` best (0: all), as Cohere and Jina AI answer; in a tie the text with the lower index comes first. */
void cohere_write_ranks(struct buffer *out, const char *model, struct api_score *scores, int64_t count, int64_t top,
			const struct text_input *texts, int64_t tokens);
/* Appends standard Base64 with padding. */
void api_base64(struct buffer *out, const void *bytes, size_t count);

#endif
