/* libbertc: BERT models as a C library. It tokenizes texts and computes embeddings, hidden states, and predictions with a model
 * folder of bertc, transformers, or sentence-transformers, on the CPU or a GPU. docs/library.md has a tutorial.
 *
 * Errors. Every function that can fail returns a bertc_status and, unless `error` is NULL, fills *error with what went wrong and
 * what to do about it. The library prints nothing, never exits, and installs no signal handlers. (The exception is a bug in the
 * library itself, which ends the process with a message on standard error because it cannot continue safely.)
 *
 * Threads. Any number of threads may use a tokenizer or a model at once; only its close function must not run alongside other
 * calls. A model computes the batches of one call at a time and uses its own threads for each.
 *
 * fork(). A tokenizer still works in a child process, with one thread. A model does not: calls with the parent's model return
 * BERTC_ERROR_STATE, so the child must open the model itself.
 *
 * Texts are NUL-terminated UTF-8. Bytes that are not valid UTF-8 are dropped, just as control characters are.
 *
 * Options are structs that begin with their own size. Fill one with zeros, set `size`, and set what you need:
 *
 *     bertc_model_options options = {.size = sizeof options, .threads = 4};
 *
 * NULL in place of options means the defaults, and so does every member that is zero. Later versions of the library add members
 * at the end and stay compatible with programs compiled against earlier versions of the same BERTC_ABI. */
#ifndef BERTC_H
#define BERTC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BERTC_API __attribute__((visibility("default")))

/* The number in the library's name, libbertc.so.0. It changes when programs have to be recompiled. */
#define BERTC_ABI 0

/* The version of the loaded library: "0.1.0". */
BERTC_API const char *bertc_version(void);
/* The BERTC_ABI of the loaded library, for languages that load it by name. */
BERTC_API int32_t bertc_abi(void);

typedef enum bertc_status {
	BERTC_OK = 0,
	BERTC_ERROR_USAGE = 2,    /* an argument or a setting is wrong */
	BERTC_ERROR_DATA = 3,     /* a file or a text cannot be used */
	BERTC_ERROR_STATE = 4,    /* things that do not fit together: weights and vocabulary, a model and a forked process */
	BERTC_ERROR_RESOURCE = 5, /* memory, disk, permissions, device */
	BERTC_ERROR_NUMERIC = 7,  /* a result is not a number */
} bertc_status;

typedef struct bertc_error {
	bertc_status status;
	char message[1536]; /* what went wrong, as UTF-8 */
	char hint[768];     /* what to do about it; empty if there is no advice */
} bertc_error;

/* Passes every warning of the library to `take`, possibly from several threads at once. NULL, the default, discards them.
 * Warnings concern files: a vocabulary with a duplicate entry, for example. Call this before any other function. */
BERTC_API void bertc_on_warning(void (*take)(void *context, const char *message), void *context);

/* Frees memory that a function has allocated for the caller, where its comment says so. NULL is allowed, as in all close and free
 * functions. */
BERTC_API void bertc_free(void *memory);

/* ---- Tokenizer ---- */

typedef struct bertc_tokenizer bertc_tokenizer;

enum bertc_letter_case {
	BERTC_CASE_AS_IN_FOLDER = 0, /* as tokenizer_config.json says; otherwise cased if many entries contain upper case */
	BERTC_CASED = 1,
	BERTC_UNCASED = 2,
};

typedef struct bertc_tokenizer_options {
	size_t size;
	int32_t letter_case;  /* enum bertc_letter_case; one that contradicts the folder is BERTC_ERROR_STATE */
	int32_t threads;      /* for large calls; 0: all cores */
	int32_t plain_text;   /* 1: "[MASK]" in a text is text; 0: the special token, as in transformers */
	int32_t google_rules; /* 1: the rules of google-research/bert; 0: those of transformers (docs/tokenizer.md) */
} bertc_tokenizer_options;

/* `path` is a vocab.txt, a tokenizer.json, or a folder that contains one: a model folder, or a run of bertc. */
BERTC_API bertc_status bertc_tokenizer_open(const char *path, const bertc_tokenizer_options *options, bertc_tokenizer **out,
					    bertc_error *error);
BERTC_API void bertc_tokenizer_close(bertc_tokenizer *tokenizer);

BERTC_API int32_t bertc_tokenizer_vocabulary_size(const bertc_tokenizer *tokenizer);
/* The entry with this id, or NULL; valid until the tokenizer is closed. */
BERTC_API const char *bertc_tokenizer_token(const bertc_tokenizer *tokenizer, int32_t id);
/* The id of an entry, or -1. */
BERTC_API int32_t bertc_tokenizer_id(const bertc_tokenizer *tokenizer, const char *token);

enum bertc_offsets { BERTC_OFFSETS_NONE = 0, BERTC_OFFSETS_BYTES = 1, BERTC_OFFSETS_CHARACTERS = 2 };

typedef struct bertc_encode_options {
	size_t size;
	int32_t max_length;        /* maximum tokens per text or pair, including [CLS] and [SEP]; the rest is cut. 0: no limit */
	int32_t no_special_tokens; /* 1: no [CLS] and [SEP] are added */
	int32_t offsets; /* enum bertc_offsets: whether, and in which unit, to return each token's position in its text */
} bertc_encode_options;

/* The tokens of several texts, one text after another, without padding. */
typedef struct bertc_tokens bertc_tokens;

/* Tokenizes `count` texts, or, if `pairs` is not NULL, texts[i] and pairs[i] together: [CLS] text [SEP] pair [SEP]. A pair that
 * is too long loses tokens from the longer of its texts. */
BERTC_API bertc_status bertc_tokenizer_encode(const bertc_tokenizer *tokenizer, const char *const *texts,
					      const char *const *pairs, int64_t count, const bertc_encode_options *options,
					      bertc_tokens **out, bertc_error *error);
BERTC_API void bertc_tokens_free(bertc_tokens *tokens);
/* The number of texts. */
BERTC_API int64_t bertc_tokens_count(const bertc_tokens *tokens);
/* [count + 1]: the tokens of text i are those from starts[i] up to but not including starts[i + 1]. */
BERTC_API const int64_t *bertc_tokens_starts(const bertc_tokens *tokens);
/* [starts[count]] */
BERTC_API const int32_t *bertc_tokens_ids(const bertc_tokens *tokens);
/* [starts[count]]: 1 for the second text of a pair and its [SEP]; NULL without pairs. */
BERTC_API const int8_t *bertc_tokens_types(const bertc_tokens *tokens);
/* [2 * starts[count]]: where each token begins and ends in its text; 0 and 0 for added tokens. NULL if not requested. */
BERTC_API const uint32_t *bertc_tokens_offsets(const bertc_tokens *tokens);

/* Decodes ids into the text *out, to be freed with bertc_free. With `skip_special_tokens`, [CLS], [SEP], and the like are
 * omitted. What the tokenizer drops (case, accents, white space) cannot be restored. */
BERTC_API bertc_status bertc_tokenizer_decode(const bertc_tokenizer *tokenizer, const int32_t *ids, int64_t count,
					      int32_t skip_special_tokens, char **out, bertc_error *error);

/* ---- Model ---- */

typedef struct bertc_model bertc_model;

typedef struct bertc_model_options {
	size_t size;
	const char *device;    /* "cpu", "cuda"; NULL: the fastest one available */
	const char *precision; /* "fp32", "bf16", "int8", ...; NULL: the fastest on the device, or int8 for an int8 folder */
	int32_t threads;       /* 0: all cores */
	int32_t max_length;    /* maximum tokens per text; 0: as the folder says */
	int64_t batch_tokens;  /* tokens computed at a time; 0: 4,096 */
} bertc_model_options;

/* `path` is a run of bertc, a checkpoint, or a model folder of bertc, transformers, or sentence-transformers. */
BERTC_API bertc_status bertc_model_open(const char *path, const bertc_model_options *options, bertc_model **out,
					bertc_error *error);
BERTC_API void bertc_model_close(bertc_model *model);

/* The task that the model was fine-tuned for, as `bertc finetune --task` calls it: "classification", "regression", "multilabel",
 * "tagging", "relation", "squad", ...; NULL if there is none, or if the model makes embeddings. */
BERTC_API const char *bertc_model_task(const bertc_model *model);
/* Device, precision, and threads, as text for people. */
BERTC_API const char *bertc_model_description(const bertc_model *model);
/* The maximum length of a text, in tokens. */
BERTC_API int32_t bertc_model_max_length(const bertc_model *model);
/* The width of a hidden state. */
BERTC_API int32_t bertc_model_hidden_size(const bertc_model *model);
/* The number of values in an embedding; 0 if the model has the head of a task and makes no embeddings. */
BERTC_API int32_t bertc_model_embedding_size(const bertc_model *model);
/* The number of labels that the head of a task distinguishes, and their names, which are valid until the model is closed; 0 and
 * NULL if there are none. */
BERTC_API int32_t bertc_model_label_count(const bertc_model *model);
BERTC_API const char *bertc_model_label(const bertc_model *model, int32_t index);

/* The number of values that bertc_model_scores returns for a text: one for each label, or a single value; 0 if the model has no
 * task, or one that gives no scores for a whole text (tagging, squad). */
BERTC_API int32_t bertc_model_score_count(const bertc_model *model);

enum bertc_normalize { BERTC_NORMALIZE_AS_IN_FOLDER = 0, BERTC_NORMALIZE = 1, BERTC_DO_NOT_NORMALIZE = 2 };

typedef struct bertc_embed_options {
	size_t size;
	int32_t normalize;       /* enum bertc_normalize: whether the embeddings returned have length 1 */
	int32_t dimensions;      /* return only this many leading values; 0: as the folder says, otherwise all */
	const char *pooling;     /* "mean", "cls", "max", prompts included; NULL: as the folder says, otherwise the mean */
	const char *prompt;      /* put before each text */
	const char *prompt_name; /* one of the folder's prompts, by name; with neither set, the folder's default prompt is used */
	int32_t refuse_long;     /* 1: a text that is too long is BERTC_ERROR_DATA; 0: it is cut */
} bertc_embed_options;

/* Writes the embeddings of `count` texts to `out`: a row for each text, of bertc_model_embedding_size() values unless the options
 * say otherwise. `out_size` is the size of `out` in floats, which must be exactly the number of floats written. The embedding of
 * a text does not depend on the other texts. */
BERTC_API bertc_status bertc_model_embed(bertc_model *model, const char *const *texts, int64_t count,
					 const bertc_embed_options *options, float *out, size_t out_size, bertc_error *error);

typedef struct bertc_predict_options {
	size_t size;
	int32_t raw;         /* 1: scores are the model's raw outputs (logits); 0: probabilities, if the outputs are classes */
	int32_t refuse_long; /* 1: a text that is too long is BERTC_ERROR_DATA; 0: it is cut, or a passage read in windows */
} bertc_predict_options;

/* Writes the scores of all labels for each text, or for each pair (a text stands alone where pairs[i] or `pairs` is NULL), to
 * `out`: a row of bertc_model_score_count() values for each, which are probabilities of classes, or values. `out_size` is the
 * size of `out` in floats, which must be exactly the number of floats written. */
BERTC_API bertc_status bertc_model_scores(bertc_model *model, const char *const *texts, const char *const *pairs, int64_t count,
					  const bertc_predict_options *options, float *out, size_t out_size, bertc_error *error);

/* Answers as JSON, one for each text or pair. */
typedef struct bertc_answers bertc_answers;

/* Answers texts with a model for any task. Each answer is a JSON object as `bertc predict` prints it, such as {"label": ...,
 * "probabilities": {...}} or {"tags": [...], "entities": [...]}. A question-answering model takes the questions as `texts` and
 * the passages that hold the answers as `pairs`. */
BERTC_API bertc_status bertc_model_predict(bertc_model *model, const char *const *texts, const char *const *pairs, int64_t count,
					   const bertc_predict_options *options, bertc_answers **out, bertc_error *error);
BERTC_API void bertc_answers_free(bertc_answers *answers);
BERTC_API int64_t bertc_answers_count(const bertc_answers *answers);
/* The answer to text `index`, counted from 0, NUL-terminated; NULL if there is no such text. */
BERTC_API const char *bertc_answers_json(const bertc_answers *answers, int64_t index);

/* A hidden state for each token of several texts, one text after another. */
typedef struct bertc_states bertc_states;

typedef struct bertc_encode_states_options {
	size_t size;
	int32_t layer;       /* 0 or -1: the last layer; -2: the one before it, ...; 1: the first, 2, ... */
	int32_t refuse_long; /* 1: a text that is too long is BERTC_ERROR_DATA; 0: it is cut */
} bertc_encode_states_options;

/* Computes the hidden states of all tokens of `count` texts, including [CLS] and [SEP]. */
BERTC_API bertc_status bertc_model_encode(bertc_model *model, const char *const *texts, int64_t count,
					  const bertc_encode_states_options *options, bertc_states **out, bertc_error *error);
BERTC_API void bertc_states_free(bertc_states *states);
BERTC_API int64_t bertc_states_count(const bertc_states *states);
/* [count + 1]: text i has the tokens from starts[i] up to but not including starts[i + 1]. */
BERTC_API const int64_t *bertc_states_starts(const bertc_states *states);
/* [starts[count]] */
BERTC_API const int32_t *bertc_states_ids(const bertc_states *states);
/* [starts[count]][bertc_model_hidden_size()] */
BERTC_API const float *bertc_states_values(const bertc_states *states);

#ifdef __cplusplus
}
#endif

#endif
