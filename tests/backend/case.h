/* A test case for an operation: one line of text ("linear_fwd M=5 O=3 I=7 act=tanh", as BERTC_TRACE=1 prints it), the
 * arrays it needs in float64, and the same case laid out on a back end with guards around everything that is written. What
 * each operation needs is in operations.h. */
#ifndef TESTS_BACKEND_CASE_H
#define TESTS_BACKEND_CASE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/dropout.h"
#include "backend/operation.h"
#include "base/rng.h"
#include "data/pretraining/instances.h"
#include "limits.h"

enum role {
	INPUT,       /* not changed by the operation */
	OUTPUT,      /* overwritten: pre-filled with NaN */
	ACCUMULATED, /* a gradient: overwritten (pre-filled with NaN) or added to, as the case says */
	UPDATED,     /* read and written */
	SCRATCH,     /* an input that the operation may destroy */
};

enum kind {
	ACTIVATION, /* the back end's dtype */
	MASTER,     /* its master_dtype: weights, gradients, statistics */
	DOUBLE,     /* double on every back end */
	INTEGER,    /* int32_t */
	FLOAT,      /* float on every back end */
};

#define ARRAY_LIMIT 24

struct array {
	char name[24];
	enum role role;
	enum kind kind;
	enum limit_class class;
	enum weight_use use; /* use of a weight, in its master array */
	bool is_weight;
	bool rounds; /* a weight that back ends copy to the activations' type: rounded to that type beforehand */
	int64_t rows, columns;
	double *value;    /* before the operation, rounded to what the back end can represent */
	double *expected; /* after the operation on the reference; NULL for inputs */
};

struct test_case {
	char line[256];
	const struct operation_test *operation;
	enum dtype dtype; /* of the back end under test: inputs are rounded to it */
	struct array arrays[ARRAY_LIMIT];
	int count;
	struct batch batch;
	bool has_batch;
	struct dropout dropout;
	struct scalars scalars, expected_scalars;
	struct shape_limits limits;
};

/* The arrays of a case on a back end. */
struct bound {
	struct backend *backend;
	struct replica *replica;
	const struct test_case *c;
	unsigned char *block[ARRAY_LIMIT]; /* guard, data, guard */
	size_t bytes[ARRAY_LIMIT];         /* of the data, including tail rows */
	struct tensor tensor[ARRAY_LIMIT]; /* what the operation is given */
	struct weight weight[ARRAY_LIMIT]; /* indexed by the array of the master */
	struct batch batch;
	void *table; /* of LAMB's tensors, or NULL */
	void *kept;  /* lse's twin (backend_functions.kept_bytes), or NULL */
	size_t kept_bytes;
};

/* What the tests know of an operation besides its row of the table. */
struct operation_test {
	const char *keys; /* allowed in its lines in addition to those of the row */
	void (*declare)(struct test_case *c);
	void (*derive)(struct test_case *c, struct replica *ref); /* fills inputs that follow from others; may be NULL */
	void (*adjust)(struct bound *b, void *arguments);         /* completes the arguments; may be NULL */
	/* The result of the forward operation for these inputs, multiplied by the incoming gradient: what a backward
	 * operation differentiates (test_ref.c). NULL for other operations. */
	double (*objective)(struct test_case *c, struct replica *ref);
	const struct operation *row;
};

/* operations.h */
static const struct operation_test *find_operation(const char *name, size_t length);
static void bound_call(struct bound *b);

/* ---- The line ---- */

/* The text after "key=" up to a blank, or NULL. */
static inline const char *case_value(const struct test_case *c, const char *key)
{
	size_t length = strlen(key);
	for (const char *at = strchr(c->line, ' '); at != NULL; at = strchr(at + 1, ' '))
		if (strncmp(at + 1, key, length) == 0 && at[1 + length] == '=')
			return at + 2 + length;
	return NULL;
}

static inline double case_number(const struct test_case *c, const char *key, double fallback)
{
	const char *value = case_value(c, key);
	return value != NULL ? strtod(value, NULL) : fallback;
}

static inline int64_t case_integer(const struct test_case *c, const char *key, int64_t fallback)
{
	return (int64_t)case_number(c, key, (double)fallback);
}

static inline bool case_is(const struct test_case *c, const char *key, const char *word)
{
	const char *value = case_value(c, key);
	size_t length = strlen(word);
	return value != NULL && strncmp(value, word, length) == 0 && (value[length] == ' ' || value[length] == '\0');
}

static inline enum activation case_activation(const struct test_case *c, const char *key)
{
	return case_is(c, key, "tanh")        ? ACTIVATION_TANH
	       : case_is(c, key, "gelu_erf")  ? ACTIVATION_GELU_ERF
	       : case_is(c, key, "gelu_tanh") ? ACTIVATION_GELU_TANH
	       : case_is(c, key, "relu")      ? ACTIVATION_RELU
	       : case_is(c, key, "silu")      ? ACTIVATION_SILU
					      : ACTIVATION_NONE;
}

/* True if no size exceeds 300. */
static inline bool is_small(const char *line)
{
	struct test_case c = {0};
	snprintf(c.line, sizeof c.line, "%s", line);
	static const char *const keys[] = {"O", "I", "H", "T", "V", "M", "P"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (case_integer(&c, keys[i], 0) > 300)
			return false;
	return true;
}

/* Aborts on a key that the operation does not know: a misspelled key would silently test something else. */
static inline void check_keys(const struct test_case *c)
{
	for (const char *at = strchr(c->line, ' '); at != NULL; at = strchr(at + 1, ' ')) {
		const char *equals = strchr(at + 1, '=');
		if (equals == NULL) /* the time at the end of a trace line */
			break;
		char word[32];
		snprintf(word, sizeof word, " %.*s ", (int)(equals - at - 1), at + 1);
		char known[256];
		snprintf(known, sizeof known, " %s %s scale ", c->operation->row->keys, c->operation->keys);
		if (strstr(known, word) == NULL) {
			fprintf(stderr, "unknown key%sin '%s'\n", word, c->line);
			abort();
		}
	}
}

/* ---- Arrays ---- */

static inline int64_t array_size(const struct array *a)
{
	return a->rows * a->columns;
}

static inline double *new_doubles(int64_t count)
{
	double *out = calloc((size_t)count + 1, sizeof *out);
	if (out == NULL)
		abort();
	return out;
}

static inline int find_array(const struct test_case *c, const char *name)
{
	for (int i = 0; i < c->count; i++)
		if (strcmp(c->arrays[i].name, name) == 0)
			return i;
	return -1;
}

static inline struct array *get_array(struct test_case *c, const char *name)
{
	int i = find_array(c, name);
	if (i < 0) {
		fprintf(stderr, "'%s': no array '%s'\n", c->line, name);
		abort();
	}
	return &c->arrays[i];
}

static inline struct array *add_array(struct test_case *c, const char *name, enum role role, enum kind kind, int64_t rows,
				      int64_t columns)
{
	if (c->count == ARRAY_LIMIT)
		abort();
	struct array *a = &c->arrays[c->count++];
	*a = (struct array){.role = role, .kind = kind, .rows = rows, .columns = columns};
	snprintf(a->name, sizeof a->name, "%s", name);
	a->value = new_doubles(array_size(a));
	return a;
}

/* The generator for one array; the stream depends only on the line and the array. */
static inline struct rng array_rng(const struct test_case *c, const char *name)
{
	uint64_t hash = 1469598103934665603u;
	for (const char *p = c->line; *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	for (const char *p = name; *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	return rng_start(20180, RNG_TEST, hash);
}

static inline void fill_normal(const struct test_case *c, struct array *a, double mean, double deviation)
{
	struct rng rng = array_rng(c, a->name);
	for (int64_t i = 0; i < array_size(a); i++)
		a->value[i] = mean + deviation * rng_truncated_normal(&rng);
}

/* An input activation with the given standard deviation (times the line's scale=). */
static inline struct array *add_input(struct test_case *c, const char *name, int64_t rows, int64_t columns, double deviation)
{
	struct array *a = add_array(c, name, INPUT, ACTIVATION, rows, columns);
	fill_normal(c, a, 0, deviation * case_number(c, "scale", 1));
	return a;
}

static inline struct array *add_output(struct test_case *c, const char *name, enum kind kind, int64_t rows, int64_t columns,
				       enum limit_class class)
{
	struct array *a = add_array(c, name, OUTPUT, kind, rows, columns);
	a->class = class;
	return a;
}

/* A sum in double that the operation adds to (loss, correct). */
static inline void add_sum(struct test_case *c, const char *name, enum limit_class class)
{
	struct array *a = add_array(c, name, UPDATED, DOUBLE, 1, 1);
	a->value[0] = 0.25;
	a->class = class;
}

static inline struct array *add_weight(struct test_case *c, const char *name, enum weight_use use, int64_t rows, int64_t columns,
				       double mean, double deviation)
{
	struct array *a = add_array(c, name, INPUT, MASTER, rows, columns);
	a->is_weight = true;
	a->use = use;
	a->rounds = use != WEIGHT_VECTOR;
	fill_normal(c, a, mean, deviation);
	return a;
}

/* The gradient of weight `name`; its array is called "<name>.gradient". `deviation` is that of its contents before the
 * operation. */
static inline void add_gradient(struct test_case *c, const char *name, bool overwrite, double deviation, enum limit_class class)
{
	struct array *w = get_array(c, name);
	char full[24];
	snprintf(full, sizeof full, "%.14s.gradient", name);
	struct array *a = add_array(c, full, ACCUMULATED, MASTER, w->rows, w->columns);
	a->class = class;
	if (overwrite)
		for (int64_t i = 0; i < array_size(a); i++)
			a->value[i] = NAN;
	else
		fill_normal(c, a, 0, deviation);
}

/* ---- Batches ---- */

static inline int32_t *new_integers(int64_t count)
{
	int32_t *out = calloc((size_t)round_up(count + 1, ROW_MULTIPLE), sizeof *out);
	if (out == NULL)
		abort();
	return out;
}

static const int32_t *sort_ids;

static inline int compare_ids(const void *a, const void *b)
{
	int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
	return sort_ids[i] != sort_ids[j] ? (sort_ids[i] < sort_ids[j] ? -1 : 1) : (i > j) - (i < j);
}

/* T tokens in B sequences (default: about 37 tokens each). The first has `longest` tokens (default: as many as possible),
 * the others have mixed lengths. Ids are below `vocab` and repeat often, since repeated ids are what the embedding's
 * gradient has to get right. */
static inline void make_batch(struct test_case *c, int64_t tokens, int64_t vocab)
{
	int64_t sequences = case_integer(c, "B", tokens / 37 + 1);
	int64_t longest = tokens - sequences + 1, positions = case_integer(c, "S", 512);
	longest = case_integer(c, "longest", longest < positions ? longest : positions);
	struct rng rng = array_rng(c, "batch");
	struct batch *b = &c->batch;
	*b = (struct batch){.token_count = (int32_t)tokens, .sequence_count = (int32_t)sequences};
	b->ids = new_integers(tokens);
	b->types = new_integers(tokens);
	b->positions = new_integers(tokens);
	b->token_samples = (uint32_t *)new_integers(tokens);
	b->starts = new_integers(sequences + 1);
	b->samples = (uint32_t *)new_integers(sequences);
	b->id_order = new_integers(tokens);
	int32_t next = 0;
	for (int64_t s = 0; s < sequences; s++) {
		int64_t left = tokens - next, others = sequences - s - 1, length = longest;
		if (s > 0) { /* what the others cannot hold, or cannot do without */
			int64_t least = left - others * longest, most = left - others;
			least = least > 1 ? least : 1;
			most = most < longest ? most : longest;
			length = least + rng_below(&rng, (uint32_t)(most - least + 1));
		}
		if (length < 1 || length > left || (others == 0 && length != left)) {
			fprintf(stderr, "'%s': %d tokens do not make these sequences\n", c->line, b->token_count);
			abort();
		}
		b->starts[s] = next;
		b->samples[s] = rng_u32(&rng);
		b->longest = length > b->longest ? (int32_t)length : b->longest;
		for (int64_t i = 0; i < length; i++, next++) {
			b->ids[next] = (int32_t)(rng_below(&rng, 4) == 0 ? vocab / 2 : rng_below(&rng, (uint32_t)vocab));
			b->types[next] = i > length / 2;
			b->positions[next] = (int32_t)i;
			b->token_samples[next] = b->samples[s];
			b->id_order[next] = next;
		}
	}
	b->starts[sequences] = next;
	sort_ids = b->ids;
	qsort(b->id_order, (size_t)tokens, sizeof *b->id_order, compare_ids);
	c->has_batch = true;
	c->dropout = (struct dropout){.p = case_number(c, "p", 0), .site = 7};
}

/* ---- Rounding ---- */

static inline double round_to(enum dtype dtype, double x)
{
	if (dtype == DTYPE_F64)
		return x;
	if (dtype == DTYPE_F32)
		return (double)(float)x;
	return dtype == DTYPE_F16 ? (double)f16_to_float(float_to_f16((float)x)) : (double)bf16_to_float(float_to_bf16((float)x));
}

static inline enum dtype array_dtype(enum dtype activations, const struct array *a)
{
	if (a->kind == ACTIVATION)
		return activations;
	if (a->kind == MASTER)
		return activations == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
	return a->kind == FLOAT ? DTYPE_F32 : DTYPE_F64;
}

static inline void round_array(const struct test_case *c, struct array *a)
{
	enum dtype dtype = a->rounds ? c->dtype : array_dtype(c->dtype, a);
	for (int64_t i = 0; i < array_size(a); i++)
		a->value[i] = round_to(dtype, a->value[i]);
}

/* ---- Creating and freeing ---- */

/* Reads the line and draws all inputs for a back end with activations of `dtype`; `ref` is a replica of the reference that
 * is large enough for any case. */
static inline void case_create(struct test_case *c, const char *line, enum dtype dtype, struct replica *ref)
{
	*c = (struct test_case){.dtype = dtype};
	snprintf(c->line, sizeof c->line, "%s", line);
	c->operation = find_operation(line, strcspn(line, " "));
	if (c->operation == NULL) {
		fprintf(stderr, "'%s': no such operation\n", line);
		abort();
	}
	check_keys(c);
	c->scalars = (struct scalars){.seed = 0x123456789abcdefu,
				      .learning_rate = 1e-3,
				      .inverse_weight[HEAD_MASKED_WORDS] = 1.0 / 37,
				      .inverse_weight[HEAD_NEXT_SENTENCE] = 1.0 / 11,
				      .inverse_tokens = 1.0 / 53,
				      .loss_scale = 8,
				      .gradient_scale = 8,
				      .max_grad_norm = 1,
				      .bias_correction1 = 0.19, /* 1 - beta^2: the second step */
				      .bias_correction2 = 0.001999,
				      .gradient_square_sum = 20,
				      .finite = 1};
	c->operation->declare(c);
	for (int i = 0; i < c->count; i++)
		round_array(c, &c->arrays[i]);
	if (c->operation->derive != NULL) {
		*ref->scalars = c->scalars;
		c->operation->derive(c, ref);
		for (int i = 0; i < c->count; i++)
			round_array(c, &c->arrays[i]);
	}
	/* Limits that make the workspace just large enough for these shapes. */
	struct shape_limits *l = &c->limits;
	*l = (struct shape_limits){.longest = c->has_batch ? c->batch.longest : 1, .training = true, .exact = true};
	int64_t rows = c->batch.token_count > 0 ? c->batch.token_count : 1, wide = 1, vocab = 2;
	for (int i = 0; i < c->count; i++) {
		const struct array *a = &c->arrays[i];
		if (a->kind == ACTIVATION && a->rows > rows)
			rows = a->rows;
		if (a->is_weight && (a->use == WEIGHT_TABLE || a->use == WEIGHT_TIED))
			vocab = a->rows > vocab ? a->rows : vocab;
		if ((a->kind == ACTIVATION || a->is_weight) && a->columns > wide)
			wide = a->columns;
	}
	l->batch = (struct batch_capacity)INSTANCE_CAPACITY((int32_t)rows, (int32_t)rows, (int32_t)rows);
	l->vocab = (int32_t)vocab;
	l->hidden = (int32_t)case_integer(c, "H", wide < 2048 ? wide : 2048); /* of norms; linears may be wider */
	l->heads = (int32_t)case_integer(c, "heads", (l->hidden + 63) / 64);
	l->intermediate = (int32_t)wide;
}

static inline void case_release(struct test_case *c)
{
	for (int i = 0; i < c->count; i++) {
		free(c->arrays[i].value);
		free(c->arrays[i].expected);
	}
	free(c->batch.ids);
	free(c->batch.types);
	free(c->batch.positions);
	free(c->batch.token_samples);
	free(c->batch.starts);
	free(c->batch.samples);
	free(c->batch.id_order);
	*c = (struct test_case){0};
}

/* ---- On a back end ---- */

#define GUARD_BYTES 256
#define GUARD_FILL 0xA5

/* Bytes of an array: activations have rows up to the next multiple, and operations may write to them. */
static inline size_t array_bytes(enum dtype activations, const struct array *a)
{
	size_t element = a->kind == INTEGER ? sizeof(int32_t) : dtype_bytes(array_dtype(activations, a));
	int64_t rows = a->kind == ACTIVATION ? round_up(a->rows > 0 ? a->rows : 1, ROW_MULTIPLE) : a->rows;
	return (size_t)(rows * a->columns) * element;
}

static inline void store(unsigned char *out, enum kind kind, enum dtype dtype, int64_t i, double x)
{
	if (kind == INTEGER)
		((int32_t *)(void *)out)[i] = (int32_t)x;
	else if (dtype == DTYPE_F64)
		((double *)(void *)out)[i] = x;
	else if (dtype == DTYPE_F32)
		((float *)(void *)out)[i] = (float)x;
	else
		((uint16_t *)(void *)out)[i] = dtype == DTYPE_F16 ? float_to_f16((float)x) : float_to_bf16((float)x);
}

static inline double load(const unsigned char *in, enum kind kind, enum dtype dtype, int64_t i)
{
	if (kind == INTEGER)
		return ((const int32_t *)(const void *)in)[i];
	if (dtype == DTYPE_F64)
		return ((const double *)(const void *)in)[i];
	if (dtype == DTYPE_F32)
		return ((const float *)(const void *)in)[i];
	uint16_t bits = ((const uint16_t *)(const void *)in)[i];
	return dtype == DTYPE_F16 ? f16_to_float(bits) : bf16_to_float(bits);
}

static inline void or_abort(enum status status)
{
	if (status != OK) {
		fprintf(stderr, "%s\n%s\n", error_last()->message, error_last()->hint);
		abort();
	}
}

/* The bytes that an array is sent to the device with: its values, and NaN in outputs and in tail rows, whose content must
 * not influence anything. */
static inline unsigned char *host_image(const struct bound *b, int i)
{
	const struct array *a = &b->c->arrays[i];
	enum dtype dtype = array_dtype(b->backend->dtype, a);
	unsigned char *image = calloc(1, b->bytes[i] + 1);
	if (image == NULL)
		abort();
	int64_t stored = (int64_t)(b->bytes[i] / (a->kind == INTEGER ? sizeof(int32_t) : dtype_bytes(dtype)));
	for (int64_t j = 0; j < stored; j++)
		store(image, a->kind, dtype, j, j < array_size(a) && a->role != OUTPUT ? a->value[j] : NAN);
	return image;
}

/* The bits of attention's dropout mask as forward leaves them; bits for queries and keys that do not exist, or do
 * not see each other, are copied from `others`. The caller frees the result. */
static inline uint16_t *kept_image(const struct bound *b, const uint16_t *others)
{
	const struct batch *batch = &b->c->batch;
	int64_t heads = b->c->limits.heads, words = attention_kept_words(batch->longest),
		stride = attention_kept_place(batch->token_count, batch->sequence_count);
	int32_t window = (int32_t)case_integer(b->c, "window", 0);
	uint32_t threshold = dropout_threshold(b->c->dropout.p);
	uint16_t *image = malloc(b->kept_bytes + 1), u[8];
	if (image == NULL)
		abort();
	memcpy(image, others, b->kept_bytes);
	for (int32_t s = 0; s < batch->sequence_count; s++)
		for (int64_t head = 0; head < heads; head++)
			for (int32_t query = 0; query < batch->starts[s + 1] - batch->starts[s]; query++)
				for (int32_t key = 0; key < batch->starts[s + 1] - batch->starts[s]; key++) {
					uint16_t *word = image + (head * words + key / KEPT_KEYS) * stride +
							 attention_kept_place(batch->starts[s], s) + query;
					if (key % 8 == 0)
						dropout_block(b->c->scalars.seed,
							      dropout_attention_counter((uint32_t)head, (uint32_t)key),
							      (uint32_t)query, b->c->dropout.site, batch->samples[s], u);
					if (window > 0 && abs(query - key) > window)
						continue;
					int bit = attention_kept_bit(key);
					*word = (uint16_t)(*word & ~(1u << bit));
					*word |= (uint16_t)((u[key % 8] < threshold) << bit);
				}
	return image;
}

/* Gives lse its twin; for backward it holds what forward leaves there. */
static inline void bound_create_kept(struct bound *b)
{
	const struct test_case *c = b->c;
	int lse = find_array(c, "lse");
	if (strncmp(c->line, "attention_", strlen("attention_")) != 0 || lse < 0 || b->backend->functions->kept_bytes == NULL)
		return;
	struct batch_capacity exact = {.tokens = c->batch.token_count, .sequences = c->batch.sequence_count};
	b->kept_bytes = b->backend->functions->kept_bytes(b->backend, c->limits.heads, c->limits.hidden / c->limits.heads,
							  c->batch.longest, &exact);
	if (b->kept_bytes == 0)
		return;
	or_abort(b->backend->functions->allocate(b->backend, &b->kept, b->kept_bytes, "what dropout keeps"));
	b->tensor[lse].twin = b->kept;
	uint16_t *zeros = calloc(1, b->kept_bytes), *image = kept_image(b, zeros);
	bool backward = c->arrays[lse].role == INPUT;
	b->backend->functions->to_device(b->backend, b->kept, backward ? image : zeros, b->kept_bytes);
	free(zeros);
	free(image);
}

/* True if forward left the right bits there. */
static inline bool bound_kept_is_right(const struct bound *b)
{
	if (b->kept == NULL || dropout_threshold(b->c->dropout.p) == 0)
		return true;
	uint16_t *actual = malloc(b->kept_bytes);
	if (actual == NULL)
		abort();
	b->backend->functions->to_host(b->backend, actual, b->kept, b->kept_bytes);
	uint16_t *expected = kept_image(b, actual);
	bool right = memcmp(actual, expected, b->kept_bytes) == 0;
	free(actual);
	free(expected);
	return right;
}

/* Writes the inputs, and NaN into everything else: the state before the operation. */
static inline void bound_reset(struct bound *b)
{
	for (int i = 0; i < b->c->count; i++) {
		unsigned char *image = host_image(b, i);
		b->backend->functions->to_device(b->backend, b->block[i] + GUARD_BYTES, image, b->bytes[i]);
		free(image);
	}
	b->backend->functions->to_device(b->backend, b->replica->scalars, &b->c->scalars, sizeof(struct scalars));
}

static inline void bound_create(struct bound *b, const struct test_case *c, struct backend *be, struct replica *replica)
{
	*b = (struct bound){.backend = be, .replica = replica, .c = c};
	unsigned char guard[GUARD_BYTES];
	memset(guard, GUARD_FILL, sizeof guard);
	for (int i = 0; i < c->count; i++) {
		b->bytes[i] = array_bytes(be->dtype, &c->arrays[i]);
		void *block;
		or_abort(be->functions->allocate(be, &block, b->bytes[i] + 2 * GUARD_BYTES, "a test array"));
		b->block[i] = block;
		b->tensor[i] = (struct tensor){.data = b->block[i] + GUARD_BYTES,
					       .dtype = array_dtype(be->dtype, &c->arrays[i]),
					       .rows = c->arrays[i].rows,
					       .columns = c->arrays[i].columns};
		be->functions->to_device(be, b->block[i], guard, GUARD_BYTES);
		be->functions->to_device(be, b->block[i] + GUARD_BYTES + b->bytes[i], guard, GUARD_BYTES);
	}
	bound_reset(b);
	struct weight *weights[ARRAY_LIMIT];
	int64_t weight_count = 0;
	for (int i = 0; i < c->count; i++) {
		if (!c->arrays[i].is_weight)
			continue;
		struct weight *w = &b->weight[i];
		*w = (struct weight){.use = c->arrays[i].use, .master = b->tensor[i]};
		char gradient[24];
		snprintf(gradient, sizeof gradient, "%.14s.gradient", c->arrays[i].name);
		int g = find_array(c, gradient);
		w->gradient = g >= 0 ? b->tensor[g] : w->master;
		w->gradient.data = g >= 0 ? b->tensor[g].data : NULL;
		w->copy_bytes = (int64_t)be->functions->weight_copy_bytes(be, w);
		if (w->copy_bytes > 0)
			or_abort(be->functions->allocate(be, &w->copy, (size_t)w->copy_bytes, "a weight's copy"));
		weights[weight_count++] = w;
	}
	be->functions->weights_refresh(replica, weights, weight_count);
	bound_create_kept(b);
	if (c->has_batch)
		be->functions->upload(replica, &c->batch, &b->batch);
	or_abort(be->functions->synchronize(replica));
}

static inline void bound_release(struct bound *b)
{
	if (b->table != NULL)
		b->backend->functions->release(b->backend, b->table);
	if (b->kept != NULL)
		b->backend->functions->release(b->backend, b->kept);
	for (int i = 0; i < b->c->count; i++) {
		b->backend->functions->release(b->backend, b->block[i]);
		if (b->weight[i].copy != NULL)
			b->backend->functions->release(b->backend, b->weight[i].copy);
	}
	*b = (struct bound){0};
}

/* Runs the operation and waits for it to finish. */
static inline void bound_run(struct bound *b)
{
	bound_call(b);
	or_abort(b->backend->functions->synchronize(b->replica));
}

/* All bytes of array i including its guards; the caller frees them. */
static inline unsigned char *bound_bytes(struct bound *b, int i)
{
	size_t bytes = b->bytes[i] + 2 * GUARD_BYTES;
	unsigned char *out = malloc(bytes);
	if (out == NULL)
		abort();
	b->backend->functions->to_host(b->backend, out, b->block[i], bytes);
	return out;
}

static inline void bound_scalars(struct bound *b, struct scalars *out)
{
	b->backend->functions->to_host(b->backend, out, b->replica->scalars, sizeof *out);
}

/* Runs the case on the reference and keeps the results. */
static inline void case_expect(struct test_case *c, struct backend *ref)
{
	struct replica replica;
	or_abort(ref->functions->replica_create(ref, &replica, &c->limits));
	struct bound b;
	bound_create(&b, c, ref, &replica);
	bound_run(&b);
	for (int i = 0; i < c->count; i++) {
		struct array *a = &c->arrays[i];
		unsigned char *bytes = bound_bytes(&b, i);
		if (a->role != INPUT && a->role != SCRATCH) {
			a->expected = new_doubles(array_size(a));
			for (int64_t j = 0; j < array_size(a); j++)
				a->expected[j] = load(bytes + GUARD_BYTES, a->kind, DTYPE_F64, j);
		}
		free(bytes);
	}
	bound_scalars(&b, &c->expected_scalars);
	bound_release(&b);
	ref->functions->replica_release(&replica);
}

#endif
