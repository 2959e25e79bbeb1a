/* A back end with a single error must fail: the CPU back end runs cases that have been changed behind its back (a dropout
 * site that is off by one, a forgotten term, sums overwritten that should be added to), and its outputs are changed behind
 * its back. Whatever goes unnoticed here would go unnoticed in test_operations.c. */
#include "test.h"
#include "cases.h"
#include "check.h"
#include "operations.h"
#include "backend/open.h"

/* ---- Changes of the request ---- */

/* All of these return false where the change would have no effect. */
static bool operation_is(const struct test_case *c, const char *name)
{
	return strncmp(c->operation->row->name, name, strlen(name)) == 0;
}

static void set_value(struct test_case *c, const char *key, const char *value)
{
	char before[sizeof c->line];
	memcpy(before, c->line, sizeof before);
	const char *old = case_value(c, key);
	int kept = old != NULL ? (int)(old - c->line) : (int)strlen(before);
	const char *behind = old != NULL ? before + kept + strcspn(before + kept, " ") : "";
	int length = old != NULL ? snprintf(c->line, sizeof c->line, "%.*s%s%s", kept, before, value, behind)
				 : snprintf(c->line, sizeof c->line, "%s %s=%s", before, key, value);
	if (length >= (int)sizeof c->line)
		abort();
}

static bool has_rows(const struct test_case *c)
{
	return case_integer(c, "M", 1) > 0 && case_integer(c, "P", 1) > 0;
}

static bool fill_array(struct test_case *c, const char *name, double value)
{
	int i = find_array(c, name);
	for (int64_t j = 0; i >= 0 && j < array_size(&c->arrays[i]); j++)
		c->arrays[i].value[j] = value;
	return i >= 0 && has_rows(c);
}

static bool accumulates(const struct test_case *c)
{
	for (int i = 0; i < c->count; i++)
		if (c->arrays[i].role == ACCUMULATED && !operation_is(c, "soft_loss"))
			return true;
	return operation_is(c, "gather_bwd");
}

static bool overwrites_sums(struct test_case *c)
{
	bool applies = accumulates(c) && case_integer(c, "overwrite", 1) == 0;
	set_value(c, "overwrite", "1");
	return applies;
}

static bool adds_to_old_sums(struct test_case *c)
{
	bool applies = accumulates(c) && case_integer(c, "overwrite", 1) == 1;
	set_value(c, "overwrite", "0");
	return applies;
}

static bool has_dropout(const struct test_case *c)
{
	return c->dropout.p > 0 && c->batch.longest > 1;
}

static bool forgets_dropout(struct test_case *c)
{
	if (!has_dropout(c) || operation_is(c, "row_dropout")) /* which is not called without dropout */
		return false;
	c->dropout.p = 0;
	return true;
}

static bool takes_next_site(struct test_case *c)
{
	c->dropout.site++;
	return has_dropout(c);
}

static bool forgets_seed(struct test_case *c)
{
	c->scalars.seed = 0;
	return has_dropout(c);
}

static bool takes_next_sample(struct test_case *c)
{
	for (int32_t t = 0; t < c->batch.token_count; t++)
		c->batch.token_samples[t]++;
	for (int32_t s = 0; s < c->batch.sequence_count; s++)
		c->batch.samples[s]++;
	return has_dropout(c);
}

static bool takes_next_position(struct test_case *c)
{
	bool applies = has_dropout(c) && !operation_is(c, "embed") && !operation_is(c, "attention");
	for (int32_t t = 0; applies && t < c->batch.token_count; t++)
		c->batch.positions[t]++;
	return applies;
}

static bool forgets_epsilon(struct test_case *c)
{
	bool applies = case_value(c, "scale") != NULL && (operation_is(c, "embed_fwd") || operation_is(c, "linear_norm_fwd"));
	set_value(c, "eps", "0");
	return applies;
}

static bool forgets_attention_scale(struct test_case *c)
{
	if (!operation_is(c, "attention"))
		return false;
	struct array *qkv = get_array(c, "qkv");
	double size = case_number(c, "H", 8) / case_number(c, "heads", 1);
	for (int64_t i = 0; i < array_size(qkv); i++)
		if (i % qkv->columns < qkv->columns / 3)
			qkv->value[i] *= sqrt(size);
	return c->batch.longest > 1 && size > 1;
}

static bool forgets_window(struct test_case *c)
{
	int64_t window = case_integer(c, "window", 0);
	set_value(c, "window", "0");
	return window > 0 && c->batch.longest > window + 1;
}

static bool turns_the_other_way(struct test_case *c)
{
	set_value(c, "back", case_integer(c, "back", 0) ? "0" : "1");
	return operation_is(c, "rotary") && c->batch.longest > 1;
}

static bool moves_sequence_boundary(struct test_case *c)
{
	bool applies = (operation_is(c, "attention") || (operation_is(c, "pooling") && !case_integer(c, "cls", 0))) &&
		       c->batch.sequence_count > 1 && c->batch.starts[1] > 1;
	if (applies)
		c->batch.starts[1]--;
	return applies;
}

static bool takes_the_other_pooling(struct test_case *c)
{
	bool applies = operation_is(c, "pooling") && c->batch.longest > 1;
	set_value(c, "cls", case_integer(c, "cls", 0) ? "0" : "1");
	return applies;
}

static bool forgets_bias(struct test_case *c)
{
	return fill_array(c, "b", 0) && !operation_is(c, "linear_bwd");
}

static bool forgets_beta(struct test_case *c)
{
	return fill_array(c, "beta", 0) && (operation_is(c, "embed_fwd") || operation_is(c, "linear_norm_fwd"));
}

static bool forgets_gamma(struct test_case *c)
{
	/* With a single column the gradient vanishes, and y is beta. */
	return fill_array(c, "gamma", 1) && case_integer(c, "H", 8) > 1;
}

static bool forgets_residual(struct test_case *c)
{
	return fill_array(c, "residual", 0) && case_integer(c, "H", 8) > 1;
}

static bool forgets_add(struct test_case *c)
{
	const char *in_place = operation_is(c, "norm_bwd") ? "dresidual" : "dx";
	return case_integer(c, "add", 0) && fill_array(c, case_integer(c, "add", 0) == 2 ? in_place : "add", 0);
}

static bool forgets_types(struct test_case *c)
{
	bool applies = operation_is(c, "embed") && case_integer(c, "type", 1) && c->batch.longest > 1;
	for (int32_t t = 0; t < c->batch.token_count; t++)
		c->batch.types[t] = 0;
	return applies;
}

static bool forgets_a_repeated_id(struct test_case *c)
{
	if (!operation_is(c, "embed_bwd") || c->batch.token_count < 2)
		return false;
	for (int32_t i = 1; i < c->batch.token_count; i++) {
		int32_t a = c->batch.id_order[i - 1], b = c->batch.id_order[i];
		if (c->batch.ids[a] != c->batch.ids[b])
			continue;
		c->batch.ids[b] = c->batch.ids[b] > 0 ? c->batch.ids[b] - 1 : 1;
		sort_ids = c->batch.ids;
		qsort(c->batch.id_order, (size_t)c->batch.token_count, sizeof *c->batch.id_order, compare_ids);
		return true;
	}
	return false;
}

static bool takes_next_row(struct test_case *c)
{
	int i = find_array(c, "rows");
	if (i < 0 || c->arrays[i].columns == 0 || c->arrays[i].role != INPUT)
		return false;
	struct array *rows = &c->arrays[i];
	double *last = &rows->value[rows->columns - 1];
	if (*last + 1 < case_number(c, "T", 8))
		*last += 1;
	else if (rows->columns == 1 || rows->value[rows->columns - 2] < *last - 1)
		*last -= 1;
	else
		return false;
	return *last >= 0;
}

/* The number of choices that the first label is one of; 0 for an operation without such labels. */
static int64_t choices_of_first(const struct test_case *c)
{
	if (operation_is(c, "xent") || operation_is(c, "pointer_xent"))
		return case_integer(c, "C", 2);
	if (operation_is(c, "vocab_xent"))
		return case_integer(c, "V", 50);
	if (operation_is(c, "group_xent"))
		return (int64_t)c->arrays[find_array(c, "starts")].value[1];
	if (operation_is(c, "soft_loss"))
		return case_is(c, "kind", "rows") ? case_integer(c, "M", 8) / case_integer(c, "N", 3)
		       : case_is(c, "kind", "sigmoids") || case_is(c, "kind", "numbers") ? 2
											 : case_integer(c, "C", 2);
	return operation_is(c, "segment_xent") ? c->batch.starts[1] : 0;
}

static bool takes_another_label(struct test_case *c)
{
	int i = find_array(c, "labels");
	int64_t choices = choices_of_first(c);
	if (i < 0 || choices < 2 || c->arrays[i].columns == 0 || c->arrays[i].value[0] < 0)
		return false;
	double step = choices > 3 ? 2 : 1; /* with ties, words come in pairs */
	c->arrays[i].value[0] = fmod(c->arrays[i].value[0] + step, (double)choices);
	return true;
}

static bool has_label(const struct test_case *c, int64_t item, int64_t items)
{
	int labels = find_array(c, "labels");
	if (labels < 0)
		return true;
	int64_t each = array_size(&c->arrays[labels]) / items;
	for (int64_t i = item * each; i < (item + 1) * each; i++)
		if (c->arrays[labels].value[i] >= 0)
			return true;
	return false;
}

static bool ignores_weights(struct test_case *c)
{
	int i = find_array(c, "weights");
	bool applies = false;
	for (int64_t j = 0; i >= 0 && j < array_size(&c->arrays[i]); j++)
		applies = applies || (c->arrays[i].value[j] != 1 && has_label(c, j, array_size(&c->arrays[i])));
	return fill_array(c, "weights", 1) && applies;
}

static bool labeled(const struct test_case *c)
{
	bool one_choice = choices_of_first(c) == 1;
	return has_rows(c) && case_integer(c, "train", 1) && case_integer(c, "unlabeled", 0) != 1 && !one_choice &&
	       (choices_of_first(c) > 1 || operation_is(c, "squared_error") || operation_is(c, "binary_xent"));
}

static bool forgets_loss_scale(struct test_case *c)
{
	c->scalars.loss_scale = 1;
	return labeled(c) || (operation_is(c, "pooling_bwd") && !case_integer(c, "rows", 0)) || operation_is(c, "hidden_error") ||
	       operation_is(c, "vocab_max_bwd");
}

static bool divides_by_other_count(struct test_case *c)
{
	double predictions = c->scalars.inverse_weight[HEAD_MASKED_WORDS];
	c->scalars.inverse_weight[HEAD_MASKED_WORDS] = c->scalars.inverse_weight[HEAD_NEXT_SENTENCE];
	c->scalars.inverse_weight[HEAD_NEXT_SENTENCE] = predictions;
	return labeled(c);
}

static bool counts_half_the_tokens(struct test_case *c)
{
	c->scalars.inverse_tokens *= 2;
	return operation_is(c, "hidden_error");
}

static bool forgets_temperature(struct test_case *c)
{
	bool applies = case_number(c, "temperature", 1) != 1 && !case_is(c, "kind", "numbers") && choices_of_first(c) > 1;
	set_value(c, "temperature", "1");
	return applies;
}

static bool forgets_gradients_of_labels(struct test_case *c)
{
	bool applies = operation_is(c, "soft_loss") && case_number(c, "share", 1) < 1;
	set_value(c, "share", "1");
	return applies;
}

static bool takes_other_gelu(struct test_case *c)
{
	const char *key = operation_is(c, "linear_gelu") || operation_is(c, "gated") ? "act" : "pre";
	enum activation activation = case_activation(c, key);
	if (!activation_is_gelu(activation))
		return false;
	set_value(c, key, activation == ACTIVATION_GELU_ERF ? "gelu_tanh" : "gelu_erf");
	return case_integer(c, "M", 8) * case_integer(c, "O", 8) >= RMS_ELEMENTS;
}

static bool forgets_tanh(struct test_case *c)
{
	bool applies = operation_is(c, "linear_fwd") && case_is(c, "act", "tanh");
	set_value(c, "act", "none");
	return applies;
}

static bool optimizes(const struct test_case *c)
{
	return operation_is(c, "adamw") || operation_is(c, "lamb");
}

static bool forgets_decay(struct test_case *c)
{
	bool applies = optimizes(c) && case_number(c, "decay", 0.01) > 0 && c->scalars.finite;
	set_value(c, "decay", "0");
	return applies;
}

static bool forgets_bias_correction(struct test_case *c)
{
	bool applies = optimizes(c) && !case_integer(c, "google", 0) && c->scalars.finite;
	c->scalars.bias_correction1 = c->scalars.bias_correction2 = 1;
	return applies;
}

static bool reads_gradients(const struct test_case *c)
{
	return (operation_is(c, "adamw") || operation_is(c, "lamb_norms")) && c->scalars.finite;
}

static bool clips(const struct test_case *c)
{
	return c->scalars.max_grad_norm > 0 && !case_integer(c, "normalize", 0) &&
	       sqrt(c->scalars.gradient_square_sum) / c->scalars.gradient_scale > c->scalars.max_grad_norm;
}

static bool forgets_clipping(struct test_case *c)
{
	bool applies = reads_gradients(c) && clips(c);
	c->scalars.max_grad_norm = 0;
	return applies;
}

static bool keeps_loss_scale_in_gradients(struct test_case *c)
{
	bool applies = reads_gradients(c) && !clips(c) && !case_integer(c, "normalize", 0) && c->scalars.gradient_scale != 1;
	c->scalars.gradient_scale = 1;
	return applies;
}

static bool steps_on_infinite_gradients(struct test_case *c)
{
	bool applies = optimizes(c) && !c->scalars.finite;
	c->scalars.finite = 1;
	return applies;
}

static bool forgets_to_normalize(struct test_case *c)
{
	bool applies = case_integer(c, "normalize", 0) && case_number(c, "square_sum", 20) < 1;
	set_value(c, "normalize", "0"); /* clipping to norm 1 has the same effect on large gradients */
	return applies;
}

static bool forgets_gradient_averaging(struct test_case *c)
{
	bool applies = operation_is(c, "lamb_norms") && case_integer(c, "averages", 1) && c->scalars.finite;
	set_value(c, "averages", "0");
	return applies;
}

static bool forgets_trust_ratio(struct test_case *c)
{
	bool applies = operation_is(c, "lamb_apply") && c->scalars.finite &&
		       !(case_integer(c, "zero", 0) && case_integer(c, "tensors", 1) == 1);
	set_value(c, "plain", "1");
	return applies;
}

static bool adapts_all_tensors(struct test_case *c)
{
	bool applies = operation_is(c, "lamb_apply") && c->scalars.finite && !case_integer(c, "all", 0) &&
		       case_integer(c, "tensors", 1) > 1;
	set_value(c, "all", "1");
	return applies;
}

static bool forgets_largest_trust_ratio(struct test_case *c)
{
	bool applies = case_number(c, "max_trust", 0) > 0;
	set_value(c, "max_trust", "0");
	return applies;
}

static bool takes_norm_of_two_tensors(struct test_case *c)
{
	bool applies = operation_is(c, "lamb") && case_integer(c, "tensors", 1) == 2 && c->scalars.finite;
	int i = find_array(c, "norms");
	for (int64_t j = 0; applies && c->arrays[i].role == INPUT && j < 2; j++)
		c->arrays[i].value[j] += c->arrays[i].value[j + 2] * (j ? 0.5 : 1);
	return applies && c->arrays[i].role == INPUT;
}

static bool forgets_earlier_squares(struct test_case *c)
{
	bool applies = operation_is(c, "sumsq_finite") && case_integer(c, "add", 0);
	set_value(c, "add", "0");
	return applies && (c->expected_scalars.finite || !c->scalars.finite);
}

static bool misses_what_is_not_finite(struct test_case *c)
{
	return case_integer(c, "bad", 0) && case_integer(c, "sums", 0) < 2 && fill_array(c, "range", 1);
}

static bool keeps_the_loss_scale(struct test_case *c)
{
	c->scalars.dynamic_scale = 0;
	return c->expected_scalars.loss_scale != c->expected_scalars.gradient_scale && case_integer(c, "decides", 0);
}

static const struct change {
	const char *what;
	bool (*apply)(struct test_case *c);
	bool f32_only; /* too small to show in bf16 */
} changes[] = {
	{"overwrites sums instead of adding", overwrites_sums, false},
	{"adds to sums instead of overwriting", adds_to_old_sums, false},
	{"forgets dropout", forgets_dropout, false},
	{"takes the next dropout site", takes_next_site, false},
	{"forgets the seed", forgets_seed, false},
	{"takes the next sample", takes_next_sample, false},
	{"takes the next position", takes_next_position, false},
	{"forgets epsilon", forgets_epsilon, false},
	{"forgets attention's scale", forgets_attention_scale, false},
	{"forgets the window", forgets_window, false},
	{"turns the other way", turns_the_other_way, false},
	{"moves the boundary of two sequences", moves_sequence_boundary, false},
	{"takes the other pooling", takes_the_other_pooling, false},
	{"forgets the bias", forgets_bias, false},
	{"forgets beta", forgets_beta, false},
	{"forgets gamma", forgets_gamma, false},
	{"forgets the residual", forgets_residual, false},
	{"forgets the summand of dx", forgets_add, false},
	{"forgets types", forgets_types, false},
	{"forgets a repeated id", forgets_a_repeated_id, false},
	{"takes the next row", takes_next_row, false},
	{"takes another label", takes_another_label, false},
	{"ignores the weights of predictions", ignores_weights, false},
	{"forgets the loss scale", forgets_loss_scale, false},
	{"divides by the other count", divides_by_other_count, false},
	{"counts half the tokens", counts_half_the_tokens, false},
	{"forgets the temperature", forgets_temperature, false},
	{"forgets the gradients of labels", forgets_gradients_of_labels, false},
	{"takes the other gelu", takes_other_gelu, true},
	{"forgets tanh", forgets_tanh, false},
	{"forgets decay", forgets_decay, false},
	{"forgets bias correction", forgets_bias_correction, false},
	{"forgets clipping", forgets_clipping, false},
	{"keeps the loss scale in gradients", keeps_loss_scale_in_gradients, false},
	{"steps on infinite gradients", steps_on_infinite_gradients, false},
	{"forgets to normalize gradients", forgets_to_normalize, false},
	{"forgets gradient averaging", forgets_gradient_averaging, false},
	{"forgets the trust ratio", forgets_trust_ratio, false},
	{"adapts tensors that it should not", adapts_all_tensors, false},
	{"forgets the largest trust ratio", forgets_largest_trust_ratio, false},
	{"takes the norm of two tensors", takes_norm_of_two_tensors, false},
	{"forgets earlier squares", forgets_earlier_squares, false},
	{"misses what is not finite", misses_what_is_not_finite, false},
	{"keeps the loss scale", keeps_the_loss_scale, false},
};
#define CHANGE_COUNT (sizeof changes / sizeof changes[0])

/* ---- Changes of the results ---- */

static bool last_element_off(const struct array *a, double *actual)
{
	double rms = root_mean_square(a->expected, array_size(a));
	double *last = &actual[array_size(a) - 1];
	*last += a->kind == INTEGER || rms == 0 ? 1 : 0.15 * (rms + fabs(*last));
	return true;
}

static bool last_row_is_row_before(const struct array *a, double *actual)
{
	if (a->rows < 2)
		return false;
	double difference = 0, *last = actual + (a->rows - 1) * a->columns;
	for (int64_t j = 0; j < a->columns; j++) {
		difference = fmax(difference, fabs(last[j] - last[j - a->columns]));
		last[j] = last[j - a->columns];
	}
	return difference > 0.3 * root_mean_square(a->expected, array_size(a));
}

static bool last_column_is_column_before(const struct array *a, double *actual)
{
	if (a->columns < 2)
		return false;
	double difference = 0;
	for (int64_t i = 0; i < a->rows; i++) {
		double *last = actual + (i + 1) * a->columns - 1;
		difference = fmax(difference, fabs(last[0] - last[-1]));
		last[0] = last[-1];
	}
	return difference > 0.3 * root_mean_square(a->expected, array_size(a));
}

static bool slightly_too_large(const struct array *a, double *actual)
{
	for (int64_t i = 0; i < array_size(a); i++)
		actual[i] *= array_size(a) >= RMS_ELEMENTS ? 1.02 : 1.1;
	return a->kind != INTEGER && root_mean_square(a->expected, array_size(a)) > 0;
}

static bool first_is_nan(const struct array *a, double *actual)
{
	actual[0] = NAN;
	return a->kind != INTEGER;
}

static bool rounded_to_bf16(const struct array *a, double *actual)
{
	double difference = 0;
	for (int64_t i = 0; i < array_size(a); i++) {
		double rounded = bf16_to_float(float_to_bf16((float)actual[i]));
		difference += fabs(rounded - actual[i]);
		actual[i] = rounded;
	}
	return a->kind != INTEGER && array_size(a) >= RMS_ELEMENTS && difference > 0;
}

static const struct output_change {
	const char *what;
	bool (*apply)(const struct array *a, double *actual);
	bool f32_only;
} output_changes[] = {
	{"the last element is off", last_element_off, false},
	{"the last row is the row before", last_row_is_row_before, false},
	{"the last column is the column before", last_column_is_column_before, false},
	{"all is 2 % too large", slightly_too_large, false},
	{"the first element is NaN", first_is_nan, false},
	{"all is rounded to bf16", rounded_to_bf16, true},
};
#define OUTPUT_CHANGE_COUNT (sizeof output_changes / sizeof output_changes[0])

/* ---- The test ---- */

static struct pool *pool;
static struct backend *ref;
static struct replica reference;

static int set_up(void **state)
{
	ref = open_backend("ref", DTYPE_F64, 1, &pool);
	open_reference_replica(ref, &reference);
	return 0;
}

static int tear_down(void **state)
{
	ref->functions->replica_release(&reference);
	backend_close(ref);
	pool_free(pool);
	return 0;
}

struct tally {
	int noticed, missed;
	int by_change[CHANGE_COUNT], by_output_change[OUTPUT_CHANGE_COUNT];
};

static void count(struct tally *tally, int *by, bool noticed, const struct checker *k, const struct test_case *c,
		  const char *array, const char *what)
{
	++*by;
	tally->noticed += noticed;
	tally->missed += !noticed;
	if (!noticed)
		fprintf(stderr, "not noticed in %s: %s: %s%s\n", dtype_names[k->backend->dtype], c->line, array, what);
}

/* Counts failures of the outputs only: the inputs were changed on purpose. */
static void check_outputs(struct checker *k, struct bound *b)
{
	for (int i = 0; i < b->c->count; i++) {
		if (b->c->arrays[i].role == INPUT || b->c->arrays[i].role == SCRATCH)
			continue;
		unsigned char *bytes = bound_bytes(b, i);
		check_array(k, b, i, bytes);
		free(bytes);
	}
	struct scalars actual;
	bound_scalars(b, &actual);
	const struct scalars *expected = &b->c->expected_scalars;
	k->failures += actual.finite != expected->finite && operation_is(b->c, "sumsq_finite");
	k->failures += actual.loss_scale != expected->loss_scale;
	double off = actual.gradient_square_sum - expected->gradient_square_sum;
	k->failures += expected->finite && !(fabs(off) <= 1e-6 * expected->gradient_square_sum);
}

/* The reference results are copied from `good`, the original case. */
static void spoil_case(struct checker *k, struct tally *tally, const struct test_case *good)
{
	for (size_t i = 0; i < CHANGE_COUNT; i++) {
		struct test_case c;
		case_create(&c, good->line, k->backend->dtype, &reference);
		c.expected_scalars = good->expected_scalars;
		for (int j = 0; j < c.count; j++)
			c.arrays[j].expected = good->arrays[j].expected;
		if (changes[i].apply(&c) && !(changes[i].f32_only && k->backend->dtype != DTYPE_F32)) {
			struct replica replica;
			struct bound b;
			or_abort(k->backend->functions->replica_create(k->backend, &replica, &c.limits));
			bound_create(&b, &c, k->backend, &replica);
			bound_run(&b);
			k->failures = 0;
			check_outputs(k, &b);
			count(tally, &tally->by_change[i], k->failures > 0, k, &c, "", changes[i].what);
			bound_release(&b);
			k->backend->functions->replica_release(&replica);
		}
		for (int j = 0; j < c.count; j++)
			c.arrays[j].expected = NULL;
		case_release(&c);
	}
}

static void spoil_array(struct checker *k, struct tally *tally, struct bound *b, int i)
{
	const struct array *a = &b->c->arrays[i];
	unsigned char *bytes = bound_bytes(b, i);
	if (a->role != INPUT && a->role != SCRATCH && array_size(a) > 0) {
		double *actual = new_doubles(array_size(a)), *spoiled = new_doubles(array_size(a));
		for (int64_t j = 0; j < array_size(a); j++)
			actual[j] = load(bytes + GUARD_BYTES, a->kind, array_dtype(b->backend->dtype, a), j);
		for (size_t o = 0; o < OUTPUT_CHANGE_COUNT; o++) {
			memcpy(spoiled, actual, (size_t)array_size(a) * sizeof *actual);
			if (!output_changes[o].apply(a, spoiled) ||
			    (output_changes[o].f32_only && k->backend->dtype != DTYPE_F32))
				continue;
			k->failures = 0;
			check_values(k, b->c, a, spoiled);
			count(tally, &tally->by_output_change[o], k->failures > 0, k, b->c, a->name, output_changes[o].what);
		}
		free(actual);
		free(spoiled);
	}
	/* One byte before and one after everything, and one of every input. */
	size_t places[] = {GUARD_BYTES - 1, GUARD_BYTES + b->bytes[i], GUARD_BYTES};
	for (int place = 0; place < 3; place++) {
		if (place == 2 && (a->role != INPUT || valid_bytes(b, i) == 0))
			continue;
		bytes[places[place]] ^= 1;
		k->failures = 0;
		check_array(k, b, i, bytes);
		bytes[places[place]] ^= 1;
		int ignored = 0;
		count(tally, &ignored, k->failures > 0, k, b->c, a->name, place == 2 ? "an input changed" : "a guard changed");
	}
	/* Different bits in another run. */
	unsigned char *all[ARRAY_LIMIT];
	if (a->role != INPUT && a->role != SCRATCH && valid_bytes(b, i) > 0) {
		for (int j = 0; j < b->c->count; j++)
			all[j] = bound_bytes(b, j);
		all[i][GUARD_BYTES + valid_bytes(b, i) - 1] ^= 1;
		k->failures = 0;
		check_again(k, b, all, "again");
		int ignored = 0;
		count(tally, &ignored, k->failures == 1, k, b->c, a->name, "other bits");
		for (int j = 0; j < b->c->count; j++)
			free(all[j]);
	}
	free(bytes);
}

static void spoil_outputs(struct checker *k, struct tally *tally, const struct test_case *c)
{
	struct replica replica;
	struct bound b;
	or_abort(k->backend->functions->replica_create(k->backend, &replica, &c->limits));
	bound_create(&b, c, k->backend, &replica);
	bound_run(&b);
	k->failures = 0;
	check_outputs(k, &b);
	assert_int_equal(k->failures, 0); /* unspoiled, it passes */
	for (int i = 0; i < c->count; i++)
		spoil_array(k, tally, &b, i);
	bound_release(&b);
	k->backend->functions->replica_release(&replica);
}

static void test_dtype(enum dtype dtype)
{
	struct checker k = {.quiet = true};
	struct backend_settings settings = {.device = "cpu", .dtype = dtype, .pool = pool};
	if (backend_open(&k.backend, &settings) != OK) {
		fprintf(stderr, "%s: not on this machine\n", dtype_names[dtype]);
		skip();
	}
	struct tally tally = {0};
	for (int line = 0; line < CASE_COUNT; line++) {
		if (!is_small(case_lines[line]))
			continue; /* large cases would only take more time here */
		struct test_case c;
		case_create(&c, case_lines[line], dtype, &reference);
		case_expect(&c, ref);
		spoil_case(&k, &tally, &c);
		spoil_outputs(&k, &tally, &c);
		case_release(&c);
	}
	backend_close(k.backend);
	if (getenv("BERTC_TEST_MARGINS") != NULL)
		fprintf(stderr, "%s: %d spoiled, %d not noticed\n", dtype_names[dtype], tally.noticed + tally.missed,
			tally.missed);
	assert_int_equal(tally.missed, 0);
	for (size_t i = 0; i < CHANGE_COUNT; i++) /* each change has been tried */
		if (tally.by_change[i] == 0 && !(changes[i].f32_only && dtype != DTYPE_F32))
			fail_msg("no case for: %s", changes[i].what);
	for (size_t i = 0; i < OUTPUT_CHANGE_COUNT; i++)
		if (tally.by_output_change[i] == 0 && !(output_changes[i].f32_only && dtype != DTYPE_F32))
			fail_msg("no case for: %s", output_changes[i].what);
}

static void test_f32(void **state)
{
	test_dtype(DTYPE_F32);
}

static void test_bf16(void **state)
{
	test_dtype(DTYPE_BF16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_f32),
		cmocka_unit_test(test_bf16),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
