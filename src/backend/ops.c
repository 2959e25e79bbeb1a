/* The operations as called by the model and training code: checks shapes, types and aliasing once, notifies the observer if
 * there is one, and dispatches.
 *
 * A mismatch is a bug in bertc, never bad input, so it aborts with the operation, the field and both sizes: "linear_fwd: 'w'
 * has 2 columns where 'x' has 3". The contents of device memory (ids, labels, rows) are not checked here.
 *
 * BERTC_TRACE=1 prints one line per operation to standard error: its letters and microseconds. The lines can be used as they
 * are as test cases of tests/backend.
 */
#include "backend/ops.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

/* More than the tensors of any operation. */
#define FIELD_LIMIT 24

enum role { IN, OUT };

struct field {
	const char *of; /* "gradient of " or "" */
	const char *name;
	enum role role;
	const char *data;
	size_t bytes;
};

/* An operation being checked: every tensor that it uses, for the aliasing check. */
struct call {
	const char *operation;
	const struct replica *replica;
	struct field fields[FIELD_LIMIT];
	int count;
	double flops, bytes; /* for the observer */
	double started;
};

/* A size, and the field that it was taken from. */
struct extent {
	int64_t size;
	const char *owner;
};

__attribute__((noreturn)) PRINTF_LIKE(2, 3) static void mismatch(const struct call *c, const char *format, ...)
{
	char text[256];
	int used = snprintf(text, sizeof(text), "%s: ", c->operation);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
	va_end(arguments);
	bug_abort(text, __FILE__, __LINE__);
}

static struct call call_begin(const struct replica *r, const char *operation)
{
	return (struct call){.operation = operation, .replica = r};
}

static enum dtype activation_type(const struct call *c)
{
	return c->replica->backend->dtype;
}

static enum dtype master_type(const struct call *c)
{
	return c->replica->backend->master_dtype;
}

static void add_field(struct call *c, struct field field)
{
	BUG_IF(c->count == FIELD_LIMIT);
	c->fields[c->count++] = field;
}

static bool present(const struct tensor *tensor)
{
	return tensor->data != NULL;
}

/* Checks that the field has this type and shape. */
static void check_field(struct call *c, struct field f, const struct tensor *t, enum dtype dtype, struct extent rows,
			struct extent columns)
{
	if (t->rows != rows.size)
		mismatch(c, "%s'%s' has %" PRId64 " rows where '%s' has %" PRId64, f.of, f.name, t->rows, rows.owner, rows.size);
	if (t->columns != columns.size)
		mismatch(c, "%s'%s' has %" PRId64 " columns where '%s' has %" PRId64, f.of, f.name, t->columns, columns.owner,
			 columns.size);
	if (t->data == NULL && t->rows > 0 && t->columns > 0)
		mismatch(c, "%s'%s' is missing", f.of, f.name);
	if (t->dtype != dtype)
		mismatch(c, "%s'%s' is %s where the back end has %s", f.of, f.name, dtype_names[t->dtype], dtype_names[dtype]);
	f.data = t->data;
	f.bytes = (size_t)t->rows * (size_t)t->columns * dtype_bytes(t->dtype);
	add_field(c, f);
}

/* A required tensor. */
static void check_tensor(struct call *c, const char *name, const struct tensor *t, enum role role, enum dtype dtype,
			 struct extent rows, struct extent columns)
{
	check_field(c, (struct field){.of = "", .name = name, .role = role}, t, dtype, rows, columns);
}

static void check_activation(struct call *c, const char *name, const struct tensor *t, enum role role, struct extent rows,
			     struct extent columns)
{
	check_tensor(c, name, t, role, activation_type(c), rows, columns);
}

/* One number per row: mean, rstd. */
static void check_statistic(struct call *c, const char *name, const struct tensor *t, enum role role, struct extent rows)
{
	check_tensor(c, name, t, role, master_type(c), (struct extent){1, "a vector"}, rows);
}

/* A weight that is read. */
static void check_weight(struct call *c, const char *name, const struct weight *w, struct extent rows, struct extent columns)
{
	if (w == NULL)
		mismatch(c, "'%s' is missing", name);
	bool by_copy = w->use == WEIGHT_LINEAR || c->replica->backend->inference;
	if (w->copy != NULL && w->master.data == NULL && by_copy) { /* its master has been released */
		if (w->master.rows != rows.size || w->master.columns != columns.size)
			mismatch(c, "'%s' is (%" PRId64 ", %" PRId64 ") where '%s' has %" PRId64 " and '%s' %" PRId64, name,
				 w->master.rows, w->master.columns, rows.owner, rows.size, columns.owner, columns.size);
		return;
	}
	check_tensor(c, name, &w->master, IN, master_type(c), rows, columns);
}

/* A weight whose gradient is written or added to. */
static void check_gradient(struct call *c, const char *name, const struct weight *w, struct extent rows, struct extent columns)
{
	check_weight(c, name, w, rows, columns);
	check_field(c, (struct field){.of = "gradient of ", .name = name, .role = OUT}, &w->gradient, master_type(c), rows,
		    columns);
}

static void check_vector(struct call *c, const char *name, const struct weight *w, struct extent columns)
{
	check_weight(c, name, w, (struct extent){1, "a vector"}, columns);
}

static void check_vector_gradient(struct call *c, const char *name, const struct weight *w, struct extent columns)
{
	check_gradient(c, name, w, (struct extent){1, "a vector"}, columns);
}

/* Rows of a weight, as the reference size for other fields. */
static struct extent rows_of(struct call *c, const char *name, const struct weight *w)
{
	if (w == NULL)
		mismatch(c, "'%s' is missing", name);
	return (struct extent){w->master.rows, name};
}

static void check_batch(const struct call *c, const struct batch *batch, struct extent rows)
{
	if (batch == NULL)
		mismatch(c, "'batch' is missing");
	if (batch->token_count != rows.size)
		mismatch(c, "'batch' has %d tokens where '%s' has %" PRId64 " rows", batch->token_count, rows.owner, rows.size);
}

/* Dropout needs the batch: its rows are tokens. */
static void check_dropout(const struct call *c, const struct dropout *dropout, const struct batch *batch, struct extent rows)
{
	if (!(dropout->p >= 0 && dropout->p < 1))
		mismatch(c, "dropout of %g is not in [0, 1)", dropout->p);
	if (dropout->p > 0 || batch != NULL)
		check_batch(c, batch, rows);
}

static void check_gelu(const struct call *c, const char *name, enum activation activation)
{
	if (activation != ACTIVATION_GELU_ERF && activation != ACTIVATION_GELU_TANH)
		mismatch(c, "'%s' is not a gelu", name);
}

static bool is_pair(const char *a, const char *b, const struct field *f, const struct field *g)
{
	return (strcmp(f->name, a) == 0 && strcmp(g->name, b) == 0) || (strcmp(f->name, b) == 0 && strcmp(g->name, a) == 0);
}

/* Whatever is written must not overlap anything else. `pairs` lists pairs of names that may be the same tensor (but not merely
 * overlap); NULL ends it. */
static void check_apart(struct call *c, const char *const *pairs)
{
	for (int i = 0; i < c->count; i++) {
		for (int j = 0; j < c->count; j++) {
			const struct field *out = &c->fields[i], *other = &c->fields[j];
			if (i == j || out->role != OUT || out->bytes == 0 || other->bytes == 0 ||
			    out->data >= other->data + other->bytes || other->data >= out->data + out->bytes)
				continue;
			bool allowed = false;
			for (int k = 0; pairs != NULL && pairs[k] != NULL; k += 2)
				allowed |= is_pair(pairs[k], pairs[k + 1], out, other) && out->data == other->data &&
					   out->bytes == other->bytes;
			if (!allowed)
				mismatch(c, "%s'%s' overlaps %s'%s'", out->of, out->name, other->of, other->name);
		}
	}
}

/* Prints one line per operation: for BERTC_TRACE=1. */
static void print_line(void *context, const struct operation_done *done)
{
	(void)context;
	fprintf(stderr, "%s %s %.0f us\n", done->name, done->letters, done->seconds * 1e6);
}

static const struct operation_observer tracer = {.done = print_line, .clock = clock_seconds};

/* The observer, or NULL; every thread finds the same answer in the environment. */
static const struct operation_observer *_Atomic observer;
static _Atomic bool observer_known;

void operations_observe(const struct operation_observer *by)
{
	observer = by;
	observer_known = true;
}

static const struct operation_observer *observed(void)
{
	if (!observer_known) {
		const char *value = getenv("BERTC_TRACE");
		operations_observe(value != NULL && strcmp(value, "0") != 0 && value[0] != '\0' ? &tracer : NULL);
	}
	return observer;
}

static void trace_begin(struct call *c)
{
	const struct operation_observer *by = observed();
	if (by)
		c->started = by->clock();
}

PRINTF_LIKE(2, 3) static void trace_end(const struct call *c, const char *format, ...)
{
	const struct operation_observer *by = observed();
	if (!by)
		return;
	double seconds = by->clock() - c->started;
	char text[192];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	by->done(by->context,
		 &(struct operation_done){
			 .name = c->operation, .letters = text, .seconds = seconds, .flops = c->flops, .bytes = c->bytes});
}

/* Floating-point operations of a product (m,k) (k,n). */
static double product_flops(struct extent m, struct extent n, struct extent k)
{
	return 2.0 * (double)m.size * (double)n.size * (double)k.size;
}

/* The same for one product with the keys of every sequence, over all heads. */
static double score_flops(const struct batch *batch, struct extent width)
{
	double sum = 0;
	const int32_t *starts = batch->host_starts ? batch->host_starts : batch->starts;
	for (int32_t s = 0; s < batch->sequence_count; s++) {
		double length = starts[s + 1] - starts[s];
		sum += 2 * length * length * (double)width.size;
	}
	return sum;
}

/* Bytes of all tensors that an operation uses, each counted once. */
static double touched(const struct call *c)
{
	double bytes = 0;
	for (int i = 0; i < c->count; i++)
		bytes += (double)c->fields[i].bytes;
	return bytes;
}

static const char *const activation_names[] = {"none", "tanh", "gelu_erf", "gelu_tanh"};

void embed_fwd(struct replica *r, const struct embed_fwd *a)
{
	struct call c = call_begin(r, "embed_fwd");
	struct extent tokens = {a->y.rows, "y"}, width = {a->y.columns, "y"};
	check_batch(&c, a->batch, tokens);
	check_dropout(&c, &a->dropout, a->batch, tokens);
	check_weight(&c, "word", a->word, rows_of(&c, "word", a->word), width);
	check_weight(&c, "position", a->position, rows_of(&c, "position", a->position), width);
	check_weight(&c, "type", a->type, rows_of(&c, "type", a->type), width);
	check_vector(&c, "gamma", a->gamma, width);
	check_vector(&c, "beta", a->beta, width);
	check_activation(&c, "sum", &a->sum, OUT, tokens, width);
	check_statistic(&c, "mean", &a->mean, OUT, tokens);
	check_statistic(&c, "rstd", &a->rstd, OUT, tokens);
	check_activation(&c, "y", &a->y, OUT, tokens, width);
	if (a->batch->longest > a->position->master.rows)
		mismatch(&c, "'batch' has a sequence of %d tokens where 'position' has %" PRId64 " rows", a->batch->longest,
			 a->position->master.rows);
	check_apart(&c, NULL);
	c.bytes = (double)tokens.size * (double)width.size *
		  (double)(3 * dtype_bytes(master_type(&c)) + 2 * dtype_bytes(activation_type(&c)));
	trace_begin(&c);
	r->operations->embed_fwd(r, a);
	trace_end(&c, "T=%" PRId64 " H=%" PRId64 " V=%" PRId64 " S=%" PRId64 " B=%d longest=%d p=%g", tokens.size, width.size,
		  a->word->master.rows, a->position->master.rows, a->batch->sequence_count, a->batch->longest, a->dropout.p);
}

void embed_bwd(struct replica *r, const struct embed_bwd *a)
{
	struct call c = call_begin(r, "embed_bwd");
	struct extent tokens = {a->dy.rows, "dy"}, width = {a->dy.columns, "dy"};
	check_batch(&c, a->batch, tokens);
	check_dropout(&c, &a->dropout, a->batch, tokens);
	check_gradient(&c, "word", a->word, rows_of(&c, "word", a->word), width);
	check_gradient(&c, "position", a->position, rows_of(&c, "position", a->position), width);
	check_gradient(&c, "type", a->type, rows_of(&c, "type", a->type), width);
	check_vector_gradient(&c, "gamma", a->gamma, width);
	check_vector_gradient(&c, "beta", a->beta, width);
	check_activation(&c, "dy", &a->dy, OUT, tokens, width); /* may be used as scratch */
	check_activation(&c, "sum", &a->sum, IN, tokens, width);
	check_statistic(&c, "mean", &a->mean, IN, tokens);
	check_statistic(&c, "rstd", &a->rstd, IN, tokens);
	check_apart(&c, NULL);
	c.bytes = (double)tokens.size * (double)width.size *
		  (double)(3 * dtype_bytes(activation_type(&c)) + 6 * dtype_bytes(master_type(&c)));
	trace_begin(&c);
	r->operations->embed_bwd(r, a);
	trace_end(&c,
		  "T=%" PRId64 " H=%" PRId64 " V=%" PRId64 " S=%" PRId64 " B=%d longest=%d p=%g overwrite=%d overwrite_word=%d",
		  tokens.size, width.size, a->word->master.rows, a->position->master.rows, a->batch->sequence_count,
		  a->batch->longest, a->dropout.p, a->overwrite, a->overwrite_word);
}

void linear_fwd(struct replica *r, const struct linear_fwd *a)
{
	struct call c = call_begin(r, "linear_fwd");
	struct extent rows = {a->x.rows, "x"}, inner = {a->x.columns, "x"}, outer = rows_of(&c, "w", a->w);
	check_weight(&c, "w", a->w, outer, inner);
	if (a->b != NULL)
		check_vector(&c, "b", a->b, outer);
	if (a->activation != ACTIVATION_NONE && a->activation != ACTIVATION_TANH)
		mismatch(&c, "'activation' is neither none nor tanh");
	check_activation(&c, "x", &a->x, IN, rows, inner);
	check_activation(&c, "y", &a->y, OUT, rows, outer);
	check_apart(&c, NULL);
	c.flops = product_flops(rows, outer, inner);
	trace_begin(&c);
	r->operations->linear_fwd(r, a);
	trace_end(&c, "M=%" PRId64 " O=%" PRId64 " I=%" PRId64 " act=%s b=%d", rows.size, outer.size, inner.size,
		  activation_names[a->activation], a->b != NULL);
}

void linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a)
{
	struct call c = call_begin(r, "linear_gelu_fwd");
	struct extent rows = {a->x.rows, "x"}, inner = {a->x.columns, "x"}, outer = rows_of(&c, "w", a->w);
	check_weight(&c, "w", a->w, outer, inner);
	check_vector(&c, "b", a->b, outer);
	check_gelu(&c, "activation", a->activation);
	check_activation(&c, "x", &a->x, IN, rows, inner);
	if (present(&a->pre))
		check_activation(&c, "pre", &a->pre, OUT, rows, outer);
	check_activation(&c, "y", &a->y, OUT, rows, outer);
	check_apart(&c, NULL);
	c.flops = product_flops(rows, outer, inner);
	trace_begin(&c);
	r->operations->linear_gelu_fwd(r, a);
	trace_end(&c, "M=%" PRId64 " O=%" PRId64 " I=%" PRId64 " act=%s train=%d", rows.size, outer.size, inner.size,
		  activation_names[a->activation], present(&a->pre));
}

void linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a)
{
	struct call c = call_begin(r, "linear_norm_fwd");
	struct extent rows = {a->x.rows, "x"}, inner = {a->x.columns, "x"}, width = {a->y.columns, "y"};
	check_dropout(&c, &a->dropout, a->batch, rows);
	check_activation(&c, "x", &a->x, IN, rows, a->w != NULL ? inner : width);
	if ((a->w == NULL) != (a->b == NULL))
		mismatch(&c, "'%s' is missing", a->w == NULL ? "w" : "b");
	if (a->w != NULL) {
		check_weight(&c, "w", a->w, width, inner);
		check_vector(&c, "b", a->b, width);
	}
	check_vector(&c, "gamma", a->gamma, width);
	check_vector(&c, "beta", a->beta, width);
	if (present(&a->residual))
		check_activation(&c, "residual", &a->residual, IN, rows, width);
	if (present(&a->sum)) {
		check_activation(&c, "sum", &a->sum, OUT, rows, width);
		check_statistic(&c, "mean", &a->mean, OUT, rows);
		check_statistic(&c, "rstd", &a->rstd, OUT, rows);
	}
	check_activation(&c, "y", &a->y, OUT, rows, width);
	check_apart(&c, NULL);
	c.flops = a->w ? product_flops(rows, width, inner) : 0;
	c.bytes = a->w ? 0 : touched(&c);
	trace_begin(&c);
	r->operations->linear_norm_fwd(r, a);
	trace_end(&c, "M=%" PRId64 " H=%" PRId64 " I=%" PRId64 " w=%d residual=%d p=%g train=%d", rows.size, width.size,
		  inner.size, a->w != NULL, present(&a->residual), a->dropout.p, present(&a->sum));
}

void norm_bwd(struct replica *r, const struct norm_bwd *a)
{
	struct call c = call_begin(r, "norm_bwd");
	struct extent rows = {a->dy.rows, "dy"}, width = {a->dy.columns, "dy"};
	bool separate = present(&a->dx) && a->dx.data != a->dresidual.data;
	check_dropout(&c, &a->dropout, a->batch, rows);
	check_vector_gradient(&c, "gamma", a->gamma, width);
	check_vector_gradient(&c, "beta", a->beta, width);
	if (a->bias != NULL)
		check_vector_gradient(&c, "bias", a->bias, width);
	check_activation(&c, "dy", &a->dy, IN, rows, width);
	check_activation(&c, "sum", &a->sum, IN, rows, width);
	check_statistic(&c, "mean", &a->mean, IN, rows);
	check_statistic(&c, "rstd", &a->rstd, IN, rows);
	if (present(&a->pre)) {
		check_gelu(&c, "pre_activation", a->pre_activation);
		check_activation(&c, "pre", &a->pre, IN, rows, width);
	}
	check_activation(&c, "dresidual", &a->dresidual, OUT, rows, width);
	if (present(&a->dx))
		check_activation(&c, "dx", &a->dx, OUT, rows, width);
	if (!separate && (a->dropout.p > 0 || present(&a->pre)) && a->dresidual.rows > 0)
		mismatch(&c, "dropout or 'pre' needs a 'dx' apart from 'dresidual'");
	static const char *const two_outputs[] = {"dresidual", "dy", NULL};
	static const char *const one_output[] = {"dresidual", "dy", "dx", "dresidual", "dx", "dy", NULL};
	check_apart(&c, separate ? two_outputs : one_output);
	c.bytes = touched(&c);
	trace_begin(&c);
	r->operations->norm_bwd(r, a);
	trace_end(&c, "M=%" PRId64 " H=%" PRId64 " p=%g bias=%d pre=%s dx=%d in_place=%d overwrite=%d", rows.size, width.size,
		  a->dropout.p, a->bias != NULL, present(&a->pre) ? activation_names[a->pre_activation] : "none", separate,
		  a->dresidual.data == a->dy.data, a->overwrite);
}

void linear_bwd(struct replica *r, const struct linear_bwd *a)
{
	struct call c = call_begin(r, "linear_bwd");
	struct extent rows = {a->dy.rows, "dy"}, outer = {a->dy.columns, "dy"}, inner = {a->x.columns, "x"};
	check_gradient(&c, "w", a->w, outer, inner);
	if (a->b != NULL)
		check_vector_gradient(&c, "b", a->b, outer);
	if (a->producer_bias != NULL)
		check_vector_gradient(&c, "producer_bias", a->producer_bias, inner);
	check_activation(&c, "dy", &a->dy, present(&a->tanh_y) ? OUT : IN, rows, outer);
	check_activation(&c, "x", &a->x, IN, rows, inner);
	if (present(&a->pre)) {
		check_gelu(&c, "pre_activation", a->pre_activation);
		check_activation(&c, "pre", &a->pre, IN, rows, inner);
	}
	if (present(&a->add))
		check_activation(&c, "add", &a->add, IN, rows, inner);
	if (present(&a->tanh_y))
		check_activation(&c, "tanh_y", &a->tanh_y, IN, rows, outer);
	if (present(&a->dx))
		check_activation(&c, "dx", &a->dx, OUT, rows, inner);
	else if (present(&a->pre) || present(&a->add) || a->producer_bias != NULL)
		mismatch(&c, "'dx' is missing");
	check_apart(&c, (const char *const[]){"dx", "add", NULL});
	c.flops = (present(&a->dx) ? 2 : 1) * product_flops(rows, outer, inner);
	trace_begin(&c);
	r->operations->linear_bwd(r, a);
	trace_end(&c, "M=%" PRId64 " O=%" PRId64 " I=%" PRId64 " b=%d producer=%d pre=%s add=%d tanh=%d dx=%d overwrite=%d",
		  rows.size, outer.size, inner.size, a->b != NULL, a->producer_bias != NULL,
		  present(&a->pre) ? activation_names[a->pre_activation] : "none",
		  !present(&a->add)           ? 0
		  : a->add.data == a->dx.data ? 2
					      : 1,
		  present(&a->tanh_y), present(&a->dx), a->overwrite);
}

/* Checks the fields that both directions share. */
static void check_attention(struct call *c, const struct batch *batch, int32_t heads, const struct tensor *qkv,
			    struct extent tokens, struct extent width, const struct dropout *dropout)
{
	check_batch(c, batch, tokens);
	check_dropout(c, dropout, batch, tokens);
	if (heads <= 0 || width.size % heads != 0)
		mismatch(c, "%" PRId64 " columns of '%s' cannot be shared by %d heads", width.size, width.owner, heads);
	check_activation(c, "qkv", qkv, IN, tokens, (struct extent){3 * width.size, "three times y"});
}

void attention_fwd(struct replica *r, const struct attention_fwd *a)
{
	struct call c = call_begin(r, "attention_fwd");
	struct extent tokens = {a->y.rows, "y"}, width = {a->y.columns, "y"}, heads = {a->heads, "heads"};
	check_attention(&c, a->batch, a->heads, &a->qkv, tokens, width, &a->dropout);
	check_activation(&c, "y", &a->y, OUT, tokens, width);
	if (present(&a->lse))
		check_tensor(&c, "lse", &a->lse, OUT, master_type(&c), heads, tokens);
	check_apart(&c, NULL);
	c.flops = 2 * score_flops(a->batch, width);
	c.bytes = touched(&c);
	trace_begin(&c);
	r->operations->attention_fwd(r, a);
	trace_end(&c, "T=%" PRId64 " H=%" PRId64 " heads=%d B=%d longest=%d p=%g train=%d", tokens.size, width.size, a->heads,
		  a->batch->sequence_count, a->batch->longest, a->dropout.p, present(&a->lse));
}

void attention_bwd(struct replica *r, const struct attention_bwd *a)
{
	struct call c = call_begin(r, "attention_bwd");
	struct extent tokens = {a->dy.rows, "dy"}, width = {a->dy.columns, "dy"}, heads = {a->heads, "heads"};
	struct extent triple = {3 * width.size, "three times dy"};
	check_attention(&c, a->batch, a->heads, &a->qkv, tokens, width, &a->dropout);
	if (a->bias != NULL)
		check_vector_gradient(&c, "bias", a->bias, triple);
	check_activation(&c, "dy", &a->dy, IN, tokens, width);
	check_activation(&c, "y", &a->y, IN, tokens, width);
	check_tensor(&c, "lse", &a->lse, IN, master_type(&c), heads, tokens);
	check_activation(&c, "dqkv", &a->dqkv, OUT, tokens, triple);
	check_apart(&c, NULL);
	c.flops = 5 * score_flops(a->batch, width); /* one product more than the model counts: scores are recomputed */
	c.bytes = touched(&c);
	trace_begin(&c);
	r->operations->attention_bwd(r, a);
	trace_end(&c, "T=%" PRId64 " H=%" PRId64 " heads=%d B=%d longest=%d p=%g bias=%d overwrite=%d", tokens.size, width.size,
		  a->heads, a->batch->sequence_count, a->batch->longest, a->dropout.p, a->bias != NULL, a->overwrite);
}

void gather_fwd(struct replica *r, const struct gather_fwd *a)
{
	struct call c = call_begin(r, "gather_fwd");
	struct extent rows = {a->count, "count"}, width = {a->x.columns, "x"};
	if (a->rows == NULL && a->count > 0)
		mismatch(&c, "'rows' is missing");
	check_activation(&c, "x", &a->x, IN, (struct extent){a->x.rows, "x"}, width);
	check_activation(&c, "y", &a->y, OUT, rows, width);
	check_apart(&c, NULL);
	c.bytes = 2.0 * (double)c.fields[1].bytes;
	trace_begin(&c);
	r->operations->gather_fwd(r, a);
	trace_end(&c, "T=%" PRId64 " P=%d H=%" PRId64, a->x.rows, a->count, width.size);
}

void gather_bwd(struct replica *r, const struct gather_bwd *a)
{
	struct call c = call_begin(r, "gather_bwd");
	struct extent rows = {a->count, "count"}, width = {a->dx.columns, "dx"};
	if (a->rows == NULL && a->count > 0 && a->count != a->dx.rows)
		mismatch(&c, "'rows' is missing");
	check_activation(&c, "dy", &a->dy, IN, rows, width);
	check_activation(&c, "dx", &a->dx, OUT, (struct extent){a->dx.rows, "dx"}, width);
	check_apart(&c, NULL);
	c.bytes = (a->overwrite ? (double)c.fields[1].bytes : 0) + 3.0 * (double)c.fields[0].bytes;
	trace_begin(&c);
	r->operations->gather_bwd(r, a);
	trace_end(&c, "T=%" PRId64 " P=%d H=%" PRId64 " overwrite=%d rows=%d", a->dx.rows, a->count, width.size, a->overwrite,
		  a->rows != NULL);
}

/* Checks rows of the encoder, and one vector per sequence of the batch. */
static void check_pooling(struct call *c, const struct batch *batch, const char *const names[2], const struct tensor *rows,
			  const struct tensor *vectors)
{
	struct extent tokens = {rows->rows, names[0]}, width = {rows->columns, names[0]};
	check_batch(c, batch, tokens);
	struct extent sequences = {batch->sequence_count, "batch"};
	bool forward = strcmp(names[0], "x") == 0;
	check_activation(c, names[0], rows, forward ? IN : OUT, tokens, width);
	check_tensor(c, names[1], vectors, forward ? OUT : IN, master_type(c), sequences, width);
	check_apart(c, NULL);
	c->bytes = touched(c);
}

static void trace_pooling(const struct call *c, const struct batch *batch, bool first, int64_t width)
{
	trace_end(c, "T=%d H=%" PRId64 " B=%d longest=%d cls=%d", batch->token_count, width, batch->sequence_count,
		  batch->longest, first);
}

void pooling_fwd(struct replica *r, const struct pooling_fwd *a)
{
	struct call c = call_begin(r, "pooling_fwd");
	check_pooling(&c, a->batch, (const char *const[]){"x", "y"}, &a->x, &a->y);
	trace_begin(&c);
	r->operations->pooling_fwd(r, a);
	trace_pooling(&c, a->batch, a->first, a->x.columns);
}

void pooling_bwd(struct replica *r, const struct pooling_bwd *a)
{
	struct call c = call_begin(r, "pooling_bwd");
	check_pooling(&c, a->batch, (const char *const[]){"dx", "dy"}, &a->dx, &a->dy);
	trace_begin(&c);
	r->operations->pooling_bwd(r, a);
	trace_pooling(&c, a->batch, a->first, a->dx.columns);
}

void vocab_xent(struct replica *r, const struct vocab_xent *a)
{
	struct call c = call_begin(r, "vocab_xent");
	struct extent rows = {a->x.rows, "x"}, width = {a->x.columns, "x"}, words = rows_of(&c, "table", a->table);
	if ((a->labels == NULL || a->weights == NULL) && rows.size > 0)
		mismatch(&c, "'%s' is missing", a->labels == NULL ? "labels" : "weights");
	if (a->loss == NULL || a->correct == NULL)
		mismatch(&c, "'%s' is missing", a->loss == NULL ? "loss" : "correct");
	check_activation(&c, "x", &a->x, IN, rows, width);
	if (a->losses)
		add_field(&c, (struct field){"", "losses", OUT, (const char *)a->losses, (size_t)rows.size * sizeof(*a->losses)});
	if (a->training) {
		check_gradient(&c, "table", a->table, words, width);
		check_vector_gradient(&c, "bias", a->bias, words);
		check_activation(&c, "dx", &a->dx, OUT, rows, width);
	} else {
		check_weight(&c, "table", a->table, words, width);
		check_vector(&c, "bias", a->bias, words);
	}
	check_apart(&c, NULL);
	c.flops = (a->training ? 3 : 1) * product_flops(rows, words, width);
	trace_begin(&c);
	r->operations->vocab_xent(r, a);
	trace_end(&c, "P=%" PRId64 " V=%" PRId64 " H=%" PRId64 " train=%d overwrite=%d", rows.size, words.size, width.size,
		  a->training, a->overwrite);
}

void vocab_topk(struct replica *r, const struct vocab_topk *a)
{
	struct call c = call_begin(r, "vocab_topk");
	struct extent rows = {a->x.rows, "x"}, width = {a->x.columns, "x"}, words = rows_of(&c, "table", a->table);
	if (a->k < 1 || a->k > words.size)
		mismatch(&c, "k is %d where 'table' has %" PRId64 " rows", a->k, words.size);
	if (a->ids == NULL || a->probabilities == NULL)
		mismatch(&c, "'%s' is missing", a->ids == NULL ? "ids" : "probabilities");
	check_activation(&c, "x", &a->x, IN, rows, width);
	check_weight(&c, "table", a->table, words, width);
	check_vector(&c, "bias", a->bias, words);
	size_t entries = (size_t)(rows.size * a->k);
	add_field(&c, (struct field){"", "ids", OUT, (const char *)a->ids, entries * sizeof(*a->ids)});
	add_field(&c,
		  (struct field){"", "probabilities", OUT, (const char *)a->probabilities, entries * sizeof(*a->probabilities)});
	check_apart(&c, NULL);
	c.flops = product_flops(rows, words, width);
	trace_begin(&c);
	r->operations->vocab_topk(r, a);
	trace_end(&c, "P=%" PRId64 " V=%" PRId64 " H=%" PRId64 " k=%d", rows.size, words.size, width.size, a->k);
}

/* Checks what all losses over a head's outputs have in common. `labels` may be classes or values. */
static void check_loss(struct call *c, int head, int64_t items, const void *labels, const float *weights, const double *loss,
		       const struct tensor *outputs, const struct tensor *gradients)
{
	bool squared = strcmp(c->operation, "squared_error") == 0;
	const char *name = squared ? "outputs" : "logits", *gradient = squared ? "doutputs" : "dlogits";
	struct extent rows = {outputs->rows, name}, columns = {outputs->columns, name};
	if (head < 0 || head >= BATCH_HEADS)
		mismatch(c, "there is no head %d", head);
	if (items > 0 && (!labels || !weights))
		mismatch(c, "'%s' is missing", labels ? "weights" : "labels");
	if (!loss)
		mismatch(c, "'loss' is missing");
	check_activation(c, name, outputs, IN, rows, columns);
	if (present(gradients))
		check_activation(c, gradient, gradients, OUT, rows, columns);
	check_apart(c, NULL);
	c->bytes = touched(c);
}

static void check_correct(const struct call *c, const double *correct)
{
	if (!correct)
		mismatch(c, "'correct' is missing");
}

void xent(struct replica *r, const struct xent *a)
{
	struct call c = call_begin(r, "xent");
	check_loss(&c, a->head, a->logits.rows, a->labels, a->weights, a->loss, &a->logits, &a->dlogits);
	check_correct(&c, a->correct);
	trace_begin(&c);
	r->operations->xent(r, a);
	trace_end(&c, "N=%" PRId64 " C=%" PRId64 " train=%d", a->logits.rows, a->logits.columns, present(&a->dlogits));
}

void squared_error(struct replica *r, const struct squared_error *a)
{
	struct call c = call_begin(r, "squared_error");
	check_loss(&c, a->head, a->outputs.rows, a->values, a->weights, a->loss, &a->outputs, &a->doutputs);
	trace_begin(&c);
	r->operations->squared_error(r, a);
	trace_end(&c, "N=%" PRId64 " C=%" PRId64 " train=%d", a->outputs.rows, a->outputs.columns, present(&a->doutputs));
}

void binary_xent(struct replica *r, const struct binary_xent *a)
{
	struct call c = call_begin(r, "binary_xent");
	check_loss(&c, a->head, a->logits.rows, a->values, a->weights, a->loss, &a->logits, &a->dlogits);
	check_correct(&c, a->correct);
	trace_begin(&c);
	r->operations->binary_xent(r, a);
	trace_end(&c, "N=%" PRId64 " C=%" PRId64 " train=%d", a->logits.rows, a->logits.columns, present(&a->dlogits));
}

void group_xent(struct replica *r, const struct group_xent *a)
{
	struct call c = call_begin(r, "group_xent");
	if (!a->starts)
		mismatch(&c, "'starts' is missing");
	if (a->logits.columns != 1)
		mismatch(&c, "'logits' has %" PRId64 " columns, not one", a->logits.columns);
	check_loss(&c, a->head, a->count, a->labels, a->weights, a->loss, &a->logits, &a->dlogits);
	check_correct(&c, a->correct);
	trace_begin(&c);
	r->operations->group_xent(r, a);
	trace_end(&c, "E=%d B=%" PRId64 " train=%d", a->count, a->logits.rows, present(&a->dlogits));
}

void segment_xent(struct replica *r, const struct segment_xent *a)
{
	struct call c = call_begin(r, "segment_xent");
	check_batch(&c, a->batch, (struct extent){a->logits.rows, "logits"});
	if (a->logits.columns != 2)
		mismatch(&c, "'logits' has %" PRId64 " columns, not two", a->logits.columns);
	check_loss(&c, a->head, a->batch->sequence_count, a->labels, a->weights, a->loss, &a->logits, &a->dlogits);
	check_correct(&c, a->correct);
	trace_begin(&c);
	r->operations->segment_xent(r, a);
	trace_end(&c, "T=%" PRId64 " B=%d longest=%d train=%d", a->logits.rows, a->batch->sequence_count, a->batch->longest,
		  present(&a->dlogits));
}

void pointer_xent(struct replica *r, const struct pointer_xent *a)
{
	struct call c = call_begin(r, "pointer_xent");
	struct extent pointers = {a->pointers, "pointers"}, items = {a->count, "rows"};
	int64_t vectors = a->logits.columns - a->classes;
	check_batch(&c, a->batch, (struct extent){a->logits.rows, "logits"});
	if (a->classes < 1 || a->pointers < 1 || vectors < 2 * a->pointers || vectors % (2 * a->pointers) != 0)
		mismatch(&c, "'logits' has %" PRId64 " columns for %d classes and %d pointers", a->logits.columns, a->classes,
			 a->pointers);
	if (vectors / (2 * a->pointers) > POINTER_SIZE_MOST)
		mismatch(&c, "queries have %" PRId64 " numbers, more than %d", vectors / (2 * a->pointers), POINTER_SIZE_MOST);
	if (a->count > 0 && !a->rows)
		mismatch(&c, "'rows' is missing");
	check_tensor(&c, "lse", &a->lse, OUT, master_type(&c), pointers, items);
	check_loss(&c, a->head, a->count, a->labels, a->weights, a->loss, &a->logits, &a->dlogits);
	check_correct(&c, a->correct);
	trace_begin(&c);
	r->operations->pointer_xent(r, a);
	trace_end(&c, "T=%" PRId64 " B=%d longest=%d C=%d K=%d D=%" PRId64 " train=%d", a->logits.rows, a->batch->sequence_count,
		  a->batch->longest, a->classes, a->pointers, vectors / (2 * a->pointers), present(&a->dlogits));
}

void soft_loss(struct replica *r, const struct soft_loss *a)
{
	static const char *const names[] = {"classes", "rows", "sigmoids", "numbers"};
	struct call c = call_begin(r, "soft_loss");
	struct extent rows = {a->logits.rows, "logits"}, columns = {a->logits.columns, "logits"};
	bool groups = a->kind == SOFT_ROWS;
	if (a->head < 0 || a->head >= BATCH_HEADS)
		mismatch(&c, "there is no head %d", a->head);
	if (groups && !a->starts)
		mismatch(&c, "'starts' is missing");
	if (!groups && a->count != a->logits.rows)
		mismatch(&c, "'logits' has %" PRId64 " rows for %d items", a->logits.rows, a->count);
	if ((a->count > 0 && !a->weights) || !a->loss)
		mismatch(&c, "'%s' is missing", a->loss ? "weights" : "loss");
	if (!(a->temperature > 0) || !(a->share >= 0 && a->share <= 1))
		mismatch(&c, "the temperature is %g, the share %g", a->temperature, a->share);
	check_activation(&c, "teacher", &a->teacher, IN, rows, columns);
	check_activation(&c, "logits", &a->logits, IN, rows, columns);
	check_activation(&c, "dlogits", &a->dlogits, OUT, rows, columns);
	check_apart(&c, NULL);
	c.bytes = touched(&c);
	trace_begin(&c);
	r->operations->soft_loss(r, a);
	trace_end(&c, "M=%" PRId64 " C=%" PRId64 " N=%d kind=%s temperature=%g share=%g", rows.size, columns.size, a->count,
		  names[a->kind], a->temperature, a->share);
}

void hidden_error(struct replica *r, const struct hidden_error *a)
{
	struct call c = call_begin(r, "hidden_error");
	struct extent rows = {a->x.rows, "x"}, width = {a->x.columns, "x"};
	check_batch(&c, a->batch, rows);
	if (!a->loss)
		mismatch(&c, "'loss' is missing");
	check_activation(&c, "x", &a->x, IN, rows, width);
	check_activation(&c, "target", &a->target, IN, rows, width);
	check_activation(&c, "dx", &a->dx, OUT, rows, width);
	check_apart(&c, (const char *const[]){"dx", "x", NULL});
	c.bytes = touched(&c);
	trace_begin(&c);
	r->operations->hidden_error(r, a);
	trace_end(&c, "T=%" PRId64 " H=%" PRId64 " factor=%g", rows.size, width.size, a->factor);
}

void row_dropout(struct replica *r, const struct row_dropout *a)
{
	struct call c = call_begin(r, "row_dropout");
	struct extent rows = {a->x.rows, "x"}, width = {a->x.columns, "x"};
	if (!a->batch)
		mismatch(&c, "'batch' is missing");
	if (!a->rows && a->x.rows != a->batch->token_count)
		mismatch(&c, "'x' has %" PRId64 " rows for %d tokens", a->x.rows, a->batch->token_count);
	if (!(a->dropout.p > 0 && a->dropout.p < 1))
		mismatch(&c, "p is %g", a->dropout.p);
	check_activation(&c, "x", &a->x, IN, rows, width);
	check_activation(&c, "y", &a->y, OUT, rows, width);
	check_apart(&c, (const char *const[]){"y", "x", NULL});
	c.bytes = touched(&c);
	trace_begin(&c);
	r->operations->row_dropout(r, a);
	trace_end(&c, "N=%" PRId64 " H=%" PRId64 " T=%d p=%g rows=%d", rows.size, width.size, a->batch->token_count, a->dropout.p,
		  a->rows != NULL);
}

void sumsq_finite(struct replica *r, const struct sumsq_finite *a)
{
	struct call c = call_begin(r, "sumsq_finite");
	check_statistic(&c, "range", &a->range, IN, (struct extent){a->range.columns, "range"});
	c.bytes = touched(&c);
	trace_begin(&c);
	r->operations->sumsq_finite(r, a);
	trace_end(&c, "n=%" PRId64 " add=%d sums=%d decides=%d", a->range.columns, a->add, a->sums != NULL, a->decides);
}

/* Checks the copy that an update may write in addition to the masters. */
static void check_copy(struct call *c, const struct tensor *copy, struct extent count)
{
	if (present(copy) && !c->replica->backend->mirrors_masters)
		mismatch(c, "'copy' is there, but the back end has copies of its own kind");
	if (present(copy))
		check_activation(c, "copy", copy, OUT, (struct extent){1, "a vector"}, count);
}

void adamw(struct replica *r, const struct adamw *a)
{
	struct call c = call_begin(r, "adamw");
	struct extent count = {a->w.columns, "w"};
	check_statistic(&c, "w", &a->w, OUT, count);
	check_statistic(&c, "m", &a->m, OUT, count);
	check_statistic(&c, "v", &a->v, OUT, count);
	check_statistic(&c, "g", &a->g, IN, count);
	c.bytes = 7.0 / 4.0 * touched(&c); /* w, m and v are read and written, g is only read */
	check_copy(&c, &a->copy, count);
	for (int64_t i = 0, end = 0; i < a->range_count; end = a->ranges[i].offset + a->ranges[i].count, i++)
		if (a->ranges[i].offset < end || a->ranges[i].count < 0 || a->ranges[i].offset + a->ranges[i].count > count.size)
			mismatch(&c, "range %" PRId64 " does not follow the one before it within 'w'", i);
	check_apart(&c, NULL);
	trace_begin(&c);
	r->operations->adamw(r, a);
	trace_end(&c, "n=%" PRId64 " ranges=%" PRId64, count.size, a->range_count);
}

static void check_lamb_tensors(struct call *c, const struct lamb_tensor *tensors, int64_t count, const double *norms,
			       enum role role)
{
	if (count > 0 && (tensors == NULL || norms == NULL))
		mismatch(c, "'%s' is missing", tensors == NULL ? "tensors" : "norms");
	add_field(c, (struct field){"", "norms", role, (const char *)norms, (size_t)count * 2 * sizeof(*norms)});
}

void lamb_norms(struct replica *r, const struct lamb_norms *a)
{
	struct call c = call_begin(r, "lamb_norms");
	struct extent count = {a->w.columns, "w"};
	check_statistic(&c, "w", &a->w, IN, count);
	check_statistic(&c, "m", &a->m, OUT, count);
	check_statistic(&c, "v", &a->v, OUT, count);
	check_statistic(&c, "g", &a->g, IN, count);
	check_lamb_tensors(&c, a->tensors, a->tensor_count, a->norms, OUT);
	check_apart(&c, NULL);
	c.bytes = 6.0 / 4.0 * touched(&c); /* m and v are read and written */
	trace_begin(&c);
	r->operations->lamb_norms(r, a);
	trace_end(&c, "n=%" PRId64 " tensors=%" PRId64 " normalize=%d", count.size, a->tensor_count, a->normalize);
}

void lamb_apply(struct replica *r, const struct lamb_apply *a)
{
	struct call c = call_begin(r, "lamb_apply");
	struct extent count = {a->w.columns, "w"};
	check_statistic(&c, "w", &a->w, OUT, count);
	check_statistic(&c, "m", &a->m, IN, count);
	check_statistic(&c, "v", &a->v, IN, count);
	check_lamb_tensors(&c, a->tensors, a->tensor_count, a->norms, IN);
	c.bytes = 4.0 / 3.0 * touched(&c); /* w is read and written */
	check_copy(&c, &a->copy, count);
	check_apart(&c, NULL);
	trace_begin(&c);
	r->operations->lamb_apply(r, a);
	trace_end(&c, "n=%" PRId64 " tensors=%" PRId64 " max_trust=%g", count.size, a->tensor_count, a->max_trust_ratio);
}

struct work_key work_key(const void *owner, enum work_part part, const struct batch *batch)
{
	struct work_key key = {.owner = owner, .part = part};
	if (batch) {
		key.tokens = batch->token_count;
		key.sequences = batch->sequence_count;
		key.examples = batch->example_count;
		key.longest = batch->longest;
		for (int h = 0; h < BATCH_HEADS; h++)
			key.labels[h] = batch->labels[h].count;
	}
	return key;
}

void work_queue(struct replica *r, const struct work_key *key, void (*work)(void *context), void *context)
{
	if (r->backend->functions->queue_work && !observed())
		r->backend->functions->queue_work(r, key, work, context);
	else
		work(context);
}

void weights_refresh(struct replica *r, struct weight *const *weights, int64_t count)
{
	struct call c = call_begin(r, "weights_refresh");
	for (int64_t i = 0; i < count; i++)
		if (weights[i]->copy_bytes > 0)
			c.bytes += (double)weights[i]->copy_bytes + (double)weights[i]->master.rows *
									    (double)weights[i]->master.columns *
									    (double)dtype_bytes(master_type(&c));
	trace_begin(&c);
	r->backend->functions->weights_refresh(r, weights, count);
	trace_end(&c, "weights=%" PRId64, count);
}
