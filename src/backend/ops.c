/* What happens around every operation: shapes, types and aliasing are checked against its row of the table (operation.h), an
 * observer is notified if there is one, and the back end's function is called.
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
#include "backend/operation.h"
#include "base/log.h"

__attribute__((noreturn)) PRINTF_LIKE(2, 3) void operation_mismatch(const struct operation_call *c, const char *format, ...)
{
	char text[256];
	int used = snprintf(text, sizeof text, "%s: ", c->operation->name);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
	va_end(arguments);
	bug_abort(text, __FILE__, __LINE__);
}

static const void *member(const struct operation_call *c, const struct operation_field *f)
{
	return (const char *)c->arguments + f->offset;
}

/* The member's value, where it is a pointer. */
static const void *pointer(const struct operation_call *c, const struct operation_field *f)
{
	return *(const void *const *)member(c, f);
}

static int64_t integer(const struct operation_call *c, const struct operation_field *f)
{
	const void *at = member(c, f);
	return f->kind == FIELD_LONG_SIZE ? *(const int64_t *)at
	       : f->kind == FIELD_FLAG    ? *(const bool *)at
					  : *(const int32_t *)at;
}

static bool present(const struct operation_call *c, const struct operation_field *f)
{
	if (f->kind == FIELD_ACTIVATIONS || f->kind == FIELD_STATISTICS)
		return ((const struct tensor *)member(c, f))->data != NULL;
	return pointer(c, f) != NULL;
}

/* Checks a size against a shape's expression; the first field with a letter decides what the letter is. */
static void check_extent(struct operation_call *c, const char *of, const char *name, const char *what, const char *expression,
			 int64_t size)
{
	int64_t times = 1;
	const char *letter = expression;
	if (*letter >= '0' && *letter <= '9')
		times = *letter++ - '0';
	if (*letter == '\0') {
		if (size != times)
			operation_mismatch(c, "%s'%s' has %" PRId64 " %s, not %" PRId64, of, name, size, what, times);
		return;
	}
	struct operation_extent *e = &c->letters[*letter - 'A'];
	if (!e->owner)
		*e = (struct operation_extent){size / times, name};
	if (size != times * e->size)
		operation_mismatch(c, "%s'%s' has %" PRId64 " %s where %.*s%s'%s' has %" PRId64, of, name, size, what,
				   (int)(letter - expression), expression, times > 1 ? " times " : "", e->owner, times * e->size);
}

static void add_span(struct operation_call *c, struct operation_span span)
{
	BUG_IF(c->span_count == (int)(sizeof c->spans / sizeof c->spans[0]));
	c->spans[c->span_count++] = span;
}

static void check_tensor(struct operation_call *c, struct operation_span span, const struct tensor *t, enum dtype dtype,
			 const char *rows, const char *columns)
{
	check_extent(c, span.of, span.name, "rows", rows, t->rows);
	check_extent(c, span.of, span.name, "columns", columns, t->columns);
	if (t->data == NULL && t->rows > 0 && t->columns > 0)
		operation_mismatch(c, "%s'%s' is missing", span.of, span.name);
	if (t->dtype != dtype)
		operation_mismatch(c, "%s'%s' is %s where the back end has %s", span.of, span.name, dtype_names[t->dtype],
				   dtype_names[dtype]);
	span.data = t->data;
	span.bytes = (size_t)t->rows * (size_t)t->columns * dtype_bytes(t->dtype);
	add_span(c, span);
}

static enum dtype master_type(const struct operation_call *c)
{
	return c->replica->backend->master_dtype;
}

static void check_weight(struct operation_call *c, const char *name, const struct weight *w, const char *rows,
			 const char *columns)
{
	if (w == NULL)
		operation_mismatch(c, "'%s' is missing", name);
	bool by_copy = w->use == WEIGHT_LINEAR || c->replica->backend->inference;
	if (w->copy != NULL && w->master.data == NULL && by_copy) { /* its master has been released */
		check_extent(c, "", name, "rows", rows, w->master.rows);
		check_extent(c, "", name, "columns", columns, w->master.columns);
		return;
	}
	check_tensor(c, (struct operation_span){.of = "", .name = name}, &w->master, master_type(c), rows, columns);
}

void operation_check_gradient(struct operation_call *c, const char *name, const struct weight *w, const char *rows,
			      const char *columns)
{
	check_weight(c, name, w, rows, columns);
	check_tensor(c, (struct operation_span){.of = "gradient of ", .name = name, .written = true}, &w->gradient,
		     master_type(c), rows, columns);
}

static void check_batch(struct operation_call *c, const struct operation_field *f)
{
	c->batch = pointer(c, f);
	struct operation_extent *e = &c->letters[f->rows[0] - 'A'];
	if (!e->owner)
		*e = (struct operation_extent){c->batch->token_count, f->name};
	if (c->batch->token_count != e->size)
		operation_mismatch(c, "'%s' has %d tokens where '%s' has %" PRId64 " rows", f->name, c->batch->token_count,
				   e->owner, e->size);
	c->letters['B' - 'A'] = (struct operation_extent){c->batch->sequence_count, f->name};
}

/* Dropout needs the batch, whose tokens are the rows: a row has its batch before its dropout. */
static void check_dropout(const struct operation_call *c, const struct dropout *dropout)
{
	if (!(dropout->p >= 0 && dropout->p < 1))
		operation_mismatch(c, "dropout of %g is not in [0, 1)", dropout->p);
	if (dropout->p > 0 && !c->batch)
		operation_mismatch(c, "'batch' is missing");
}

/* An array that is not a tensor: as large as its letters say. */
static void check_array(struct operation_call *c, const struct operation_field *f)
{
	int64_t count = (f->rows[0] >= 'A' ? operation_size(c, f->rows[0]) : 1) *
			(f->columns[0] >= 'A' ? operation_size(c, f->columns[0]) : f->columns[0] - '0');
	if (count > 0 && !pointer(c, f))
		operation_mismatch(c, "'%s' is missing", f->name);
	size_t each = f->kind == FIELD_DOUBLES ? sizeof(double) : sizeof(int32_t);
	add_span(c, (struct operation_span){"", f->name, f->role & FIELD_OUT, pointer(c, f), (size_t)count * each});
}

static void check_field(struct operation_call *c, const struct operation_field *f)
{
	bool can_miss = f->kind <= FIELD_POINTER && f->kind != FIELD_DROPOUT;
	if (can_miss && (f->role & FIELD_OPTIONAL) && !present(c, f))
		return;
	struct operation_span span = {.of = "", .name = f->name, .written = f->role & FIELD_OUT};
	switch (f->kind) {
	case FIELD_BATCH:
		if (!pointer(c, f))
			operation_mismatch(c, "'%s' is missing", f->name);
		check_batch(c, f);
		break;
	case FIELD_DROPOUT: check_dropout(c, member(c, f)); break;
	case FIELD_ACTIVATIONS: check_tensor(c, span, member(c, f), c->replica->backend->dtype, f->rows, f->columns); break;
	case FIELD_STATISTICS: check_tensor(c, span, member(c, f), master_type(c), f->rows, f->columns); break;
	case FIELD_WEIGHT: check_weight(c, f->name, pointer(c, f), f->rows, f->columns); break;
	case FIELD_GRADIENT: operation_check_gradient(c, f->name, pointer(c, f), f->rows, f->columns); break;
	case FIELD_INTEGERS:
	case FIELD_FLOATS:
	case FIELD_DOUBLES: check_array(c, f); break;
	case FIELD_HEAD:
		if (integer(c, f) < 0 || integer(c, f) >= BATCH_HEADS)
			operation_mismatch(c, "there is no head %" PRId64, integer(c, f));
		break;
	case FIELD_SIZE:
	case FIELD_LONG_SIZE:
		if (f->rows)
			c->letters[f->rows[0] - 'A'] = (struct operation_extent){integer(c, f), f->name};
		break;
	case FIELD_POINTER:
	case FIELD_FLAG:
	case FIELD_NUMBER:
	case FIELD_WORD: break;
	}
}

/* Does `pairs`, names separated by blanks, have these two beside each other? */
static bool is_pair(const char *pairs, const char *a, const char *b)
{
	char first[40], second[40];
	int used;
	for (; pairs && sscanf(pairs, "%39s %39s %n", first, second, &used) == 2; pairs += used)
		if ((strcmp(first, a) == 0 && strcmp(second, b) == 0) || (strcmp(first, b) == 0 && strcmp(second, a) == 0))
			return true;
	return false;
}

/* Whatever is written must not overlap anything else; aliases may be the same memory, but not merely overlap. */
static void check_apart(const struct operation_call *c)
{
	for (int i = 0; i < c->span_count; i++) {
		for (int j = 0; j < c->span_count; j++) {
			const struct operation_span *out = &c->spans[i], *other = &c->spans[j];
			if (i == j || !out->written || out->bytes == 0 || other->bytes == 0 ||
			    out->data >= other->data + other->bytes || other->data >= out->data + out->bytes)
				continue;
			bool same = out->data == other->data && out->bytes == other->bytes;
			if (!same || !is_pair(c->operation->aliases, out->name, other->name))
				operation_mismatch(c, "%s'%s' overlaps %s'%s'", out->of, out->name, other->of, other->name);
		}
	}
}

int64_t operation_size(const struct operation_call *c, char letter)
{
	return c->letters[letter - 'A'].size;
}

double operation_bytes(const struct operation_call *c, const char *field)
{
	double bytes = 0;
	for (int i = 0; i < c->span_count; i++)
		if (!field || strcmp(c->spans[i].name, field) == 0)
			bytes += (double)c->spans[i].bytes;
	return bytes;
}

void operation_derive(struct operation_call *c, const char *key, int64_t value)
{
	BUG_IF(c->derived_count == (int)(sizeof c->derived / sizeof c->derived[0]));
	c->derived[c->derived_count].key = key;
	c->derived[c->derived_count++].value = value;
}

void operation_mark_written(struct operation_call *c, const char *field)
{
	for (int i = 0; i < c->span_count; i++)
		c->spans[i].written |= strcmp(c->spans[i].name, field) == 0;
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

void operation_begin(struct operation_call *c, struct replica *r, const struct operation *operation, const void *arguments)
{
	*c = (struct operation_call){.operation = operation, .replica = r, .arguments = arguments};
	for (const struct operation_field *f = operation->fields; f < operation->fields + OPERATION_FIELDS && f->name; f++)
		check_field(c, f);
	if (operation->rule)
		operation->rule(c, arguments);
	check_apart(c);
	const struct operation_observer *by = observed();
	if (by)
		c->started = by->clock();
}

static const struct operation_field *field_of_key(const struct operation *operation, const char *key)
{
	for (const struct operation_field *f = operation->fields; f < operation->fields + OPERATION_FIELDS && f->name; f++)
		if (f->key && strcmp(f->key, key) == 0)
			return f;
	return NULL;
}

/* The value of a key of the trace. */
static void print_value(const struct operation_call *c, const char *key, char *out, size_t size)
{
	const struct operation_field *f = field_of_key(c->operation, key);
	int64_t value = 0;
	int i = 0;
	while (i < c->derived_count && strcmp(c->derived[i].key, key) != 0)
		i++;
	if (i < c->derived_count)
		value = c->derived[i].value;
	else if (f && f->kind == FIELD_WORD)
		snprintf(out, size, "%s", f->words[integer(c, f)]);
	else if (f && f->kind == FIELD_NUMBER)
		snprintf(out, size, "%g", *(const double *)member(c, f));
	else if (f && f->kind == FIELD_DROPOUT)
		snprintf(out, size, "%g", ((const struct dropout *)member(c, f))->p);
	else if (f)
		value = f->kind <= FIELD_POINTER ? present(c, f) : integer(c, f);
	else if (strcmp(key, "longest") == 0)
		value = c->batch->longest;
	else
		value = operation_size(c, key[0]);
	if (out[0] == '\0')
		snprintf(out, size, "%" PRId64, value);
}

static void report(const struct operation_call *c, const char *name, const char *letters)
{
	const struct operation_observer *by = observer;
	by->done(by->context, &(struct operation_done){.name = name,
						       .letters = letters,
						       .seconds = by->clock() - c->started,
						       .flops = c->flops,
						       .bytes = c->bytes});
}

void operation_end(struct operation_call *c)
{
	if (!observed())
		return;
	char letters[192] = "", key[24];
	size_t used = 0;
	int length;
	for (const char *at = c->operation->keys; sscanf(at, "%23s %n", key, &length) == 1; at += length) {
		char value[32] = "";
		print_value(c, key, value, sizeof value);
		used += (size_t)snprintf(letters + used, sizeof letters - used, "%s%s=%s", used > 0 ? " " : "", key, value);
		BUG_IF(used >= sizeof letters);
	}
	report(c, c->operation->name, letters);
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

void work_hook(struct backend *be, void (*call)(void *context, int32_t layer), void *context, int32_t layer)
{
	if (be->functions->hook)
		be->functions->hook(be, call, context, layer);
	else
		call(context, layer);
}

void weights_refresh(struct replica *r, struct weight *const *weights, int64_t count)
{
	const struct operation_observer *by = observed();
	struct operation_call c = {.replica = r, .started = by ? by->clock() : 0};
	r->backend->functions->weights_refresh(r, weights, count);
	if (!by)
		return;
	for (int64_t i = 0; i < count; i++)
		if (weights[i]->copy_bytes > 0)
			c.bytes += (double)weights[i]->copy_bytes + (double)weights[i]->master.rows *
									    (double)weights[i]->master.columns *
									    (double)dtype_bytes(master_type(&c));
	char letters[32];
	snprintf(letters, sizeof letters, "weights=%" PRId64, count);
	report(&c, "weights_refresh", letters);
}
