/* Runs a case on a back end and checks everything it did against the reference: values within the limits, nothing written
 * outside the outputs, inputs unchanged, and the same bits when run again and with another number of threads. */
#ifndef TESTS_BACKEND_CHECK_H
#define TESTS_BACKEND_CHECK_H

#include <stdarg.h>
#include "case.h"
#include "backend/open.h"

/* The largest errors seen, as a basis for choosing limits. */
struct margin {
	struct limit seen;
	char largest_line[288], rms_line[288];
};

struct checker {
	struct backend *backend;    /* under test */
	struct backend *other;      /* the same with another number of threads, or NULL */
	bool quiet;                 /* count failures, but print none */
	bool tf32;                  /* products of fp32 are computed in TF32 */
	bool tensor_fp8;            /* products are computed in FP8 by tensor cores */
	void (*before_again)(void); /* called before each case is run a second time; may be NULL */
	int failures;
	struct margin margins[LIMIT_CLASS_COUNT];
};

PRINTF_LIKE(3, 4)
static inline void complain(struct checker *k, const struct test_case *c, const char *format, ...)
{
	k->failures++;
	if (k->quiet)
		return;
	fprintf(stderr, "%s %s: %s: ", k->backend->name, k->backend->fp8 ? "fp8" : dtype_names[k->backend->dtype], c->line);
	va_list arguments;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static inline struct limit limit_of(const struct checker *k, enum limit_class class)
{
	enum dtype dtype = k->backend->dtype;
	const struct limits_row *row = &limits_table[class];
	static const struct limit f64 = {1e-12, 1e-13}; /* the reference against itself and against PyTorch */
	return class == EXACT       ? (struct limit){0, 0}
	       : dtype == DTYPE_F64 ? f64
	       : k->tf32            ? row->tf32
	       : k->tensor_fp8      ? row->fp8
	       : dtype == DTYPE_F32 ? row->f32
	       : dtype == DTYPE_F16 ? row->f16
				    : row->bf16;
}

/* Over the nonzero elements only: most rows of an embedding's gradient are zero. */
static inline double root_mean_square(const double *x, int64_t count)
{
	double sum = 0;
	int64_t used = 0;
	for (int64_t i = 0; i < count; i++) {
		sum += x[i] * x[i];
		used += x[i] != 0;
	}
	return used > 0 ? sqrt(sum / (double)used) : 0;
}

/* Checks an output against the reference (limits.h says what the errors are relative to). */
static inline void check_values(struct checker *k, const struct test_case *c, const struct array *a, const double *actual)
{
	struct limit limit = limit_of(k, a->class);
	double least = root_mean_square(a->expected, array_size(a)) / 16, worst = 0, squares = 0;
	int64_t worst_at = -1;
	for (int64_t i = 0; i < a->rows; i++) {
		double scale = fmax(least, root_mean_square(a->expected + i * a->columns, a->columns));
		for (int64_t at = i * a->columns; at < (i + 1) * a->columns; at++) {
			double error = fabs(actual[at] - a->expected[at]);
			if (error > 0)
				error /= fmax(scale, fabs(a->expected[at]));
			if (isnan(error))
				error = INFINITY;
			squares += error * error;
			if (error > worst) {
				worst = error;
				worst_at = at;
			}
		}
	}
	double rms = array_size(a) >= RMS_ELEMENTS ? sqrt(squares / (double)array_size(a)) : 0;
	struct margin *margin = &k->margins[a->class];
	if (worst > margin->seen.largest) {
		margin->seen.largest = worst;
		snprintf(margin->largest_line, sizeof margin->largest_line, "%s: %s", a->name, c->line);
	}
	if (rms > margin->seen.rms) {
		margin->seen.rms = rms;
		snprintf(margin->rms_line, sizeof margin->rms_line, "%s: %s", a->name, c->line);
	}
	if (worst > limit.largest)
		complain(k, c, "'%s'[%lld][%lld] is %.9g, expected %.9g: error %.3g, limit %.3g", a->name,
			 (long long)(worst_at / a->columns), (long long)(worst_at % a->columns), actual[worst_at],
			 a->expected[worst_at], worst, limit.largest);
	else if (rms > limit.rms)
		complain(k, c, "'%s': root mean square error %.3g, limit %.3g", a->name, rms, limit.rms);
}

/* Bytes that are compared: without tail rows. */
static inline size_t valid_bytes(const struct bound *b, int i)
{
	const struct array *a = &b->c->arrays[i];
	return a->kind == ACTIVATION ? (size_t)array_size(a) * dtype_bytes(b->backend->dtype) : b->bytes[i];
}

static inline void check_array(struct checker *k, struct bound *b, int i, const unsigned char *bytes)
{
	const struct test_case *c = b->c;
	const struct array *a = &c->arrays[i];
	for (int g = 0; g < GUARD_BYTES; g++) {
		if (bytes[g] != GUARD_FILL || bytes[GUARD_BYTES + b->bytes[i] + (size_t)g] != GUARD_FILL) {
			complain(k, c, "'%s': bytes %s it were overwritten", a->name,
				 bytes[g] != GUARD_FILL ? "before" : "behind");
			break;
		}
	}
	if (a->role == SCRATCH)
		return;
	if (a->role == INPUT) {
		unsigned char *before = host_image(b, i);
		if (memcmp(before, bytes + GUARD_BYTES, valid_bytes(b, i)) != 0)
			complain(k, c, "input '%s' was changed", a->name);
		free(before);
		return;
	}
	double *actual = new_doubles(array_size(a));
	for (int64_t j = 0; j < array_size(a); j++)
		actual[j] = load(bytes + GUARD_BYTES, a->kind, array_dtype(b->backend->dtype, a), j);
	check_values(k, c, a, actual);
	free(actual);
}

static inline void check_scalars(struct checker *k, struct bound *b)
{
	const struct test_case *c = b->c;
	struct scalars actual, expected = c->expected_scalars;
	bound_scalars(b, &actual);
	if (actual.finite != expected.finite)
		complain(k, c, "'finite' is %lld, expected %lld", (long long)actual.finite, (long long)expected.finite);
	if (actual.losses_finite != expected.losses_finite)
		complain(k, c, "'losses_finite' is %lld, expected %lld", (long long)actual.losses_finite,
			 (long long)expected.losses_finite);
	if (actual.loss_scale != expected.loss_scale || actual.gradient_scale != expected.gradient_scale ||
	    actual.clean_steps != expected.clean_steps)
		complain(k, c, "the loss scale moves from %g to %g (%lld clean steps), expected %g to %g (%lld)",
			 actual.gradient_scale, actual.loss_scale, (long long)actual.clean_steps, expected.gradient_scale,
			 expected.loss_scale, (long long)expected.clean_steps);
	double error = fabs(actual.gradient_square_sum - expected.gradient_square_sum) / expected.gradient_square_sum;
	if (expected.finite && !(error <= 1e-6))
		complain(k, c, "'gradient_square_sum' is %.9g, expected %.9g", actual.gradient_square_sum,
			 expected.gradient_square_sum);
	actual.finite = expected.finite;
	actual.gradient_square_sum = expected.gradient_square_sum;
	if (memcmp(&actual, &expected, sizeof actual) != 0)
		complain(k, c, "a scalar of the step was changed");
}

/* Runs again from the same state and compares the bits with `first`. */
static inline void check_again(struct checker *k, struct bound *b, unsigned char **first, const char *how)
{
	bound_reset(b);
	bound_run(b);
	for (int i = 0; i < b->c->count; i++) {
		const struct array *a = &b->c->arrays[i];
		if (a->role == INPUT || a->role == SCRATCH)
			continue;
		unsigned char *bytes = bound_bytes(b, i);
		if (memcmp(bytes + GUARD_BYTES, first[i] + GUARD_BYTES, valid_bytes(b, i)) != 0)
			complain(k, b->c, "'%s' has other bits %s", a->name, how);
		free(bytes);
	}
}

/* Returns true if everything was right. */
static inline bool check_case(struct checker *k, struct test_case *c)
{
	int before = k->failures;
	struct replica replica;
	struct bound b;
	or_abort(k->backend->functions->replica_create(k->backend, &replica, &c->limits));
	bound_create(&b, c, k->backend, &replica);
	bound_run(&b);
	unsigned char *bytes[ARRAY_LIMIT];
	for (int i = 0; i < c->count; i++) {
		bytes[i] = bound_bytes(&b, i);
		check_array(k, &b, i, bytes[i]);
	}
	check_scalars(k, &b);
	if (!bound_kept_is_right(&b))
		complain(k, c, "what dropout kept is not what forward left for backward");
	if (k->before_again)
		k->before_again();
	check_again(k, &b, bytes, "when it is run again");
	bound_release(&b);
	k->backend->functions->replica_release(&replica);
	if (k->other != NULL) {
		or_abort(k->other->functions->replica_create(k->other, &replica, &c->limits));
		bound_create(&b, c, k->other, &replica);
		check_again(k, &b, bytes, "with another number of threads");
		bound_release(&b);
		k->other->functions->replica_release(&replica);
	}
	for (int i = 0; i < c->count; i++)
		free(bytes[i]);
	return k->failures == before;
}

/* With BERTC_TEST_MARGINS=1, prints the largest error of each class beside its limit. */
static inline void print_margins(const struct checker *k, const char *title)
{
	if (getenv("BERTC_TEST_MARGINS") == NULL)
		return;
	for (int i = 0; i < LIMIT_CLASS_COUNT; i++) {
		const struct margin *m = &k->margins[i];
		struct limit limit = limit_of(k, (enum limit_class)i);
		fprintf(stderr, "%-24s %-18s largest %8.2e of %8.2e (%s)\n%-43s rms     %8.2e of %8.2e (%s)\n", title,
			limits_table[i].name, m->seen.largest, limit.largest, m->largest_line, "", m->seen.rms, limit.rms,
			m->rms_line);
	}
}

/* A back end with `threads` threads; aborts if it cannot be opened. */
static inline struct backend *open_backend_as(struct backend_settings settings, int threads, struct pool **pool)
{
	struct backend *be;
	or_abort(pool_create(pool, threads));
	settings.pool = *pool;
	or_abort(backend_open(&be, &settings));
	return be;
}

static inline struct backend *open_backend(const char *device, enum dtype dtype, int threads, struct pool **pool)
{
	return open_backend_as((struct backend_settings){.device = device, .dtype = dtype}, threads, pool);
}

/* A replica of the reference that is large enough to derive any case's inputs. */
static inline void open_reference_replica(struct backend *ref, struct replica *out)
{
	struct shape_limits limits = {.batch = INSTANCE_CAPACITY(4096, 4096, 4096),
				      .longest = 1024,
				      .hidden = 1024,
				      .heads = 16,
				      .intermediate = 4096,
				      .vocab = 32768,
				      .training = true};
	or_abort(ref->functions->replica_create(ref, out, &limits));
}

#endif
