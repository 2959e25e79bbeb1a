/* Every operation as the tests see it: the arrays of a case, the call, and the function whose gradient a backward
 * operation computes. A new operation needs only a row of `operation_tests` and its functions here; its cases are lines in
 * cases.h. An objective is the scalar that a backward operation differentiates, computed by the forward operation on the
 * reference. Its variables are displacements from the case's inputs and lie in the arrays of the gradients: adding h to
 * "dx"[3] moves x[3] by h, adding it to "w.gradient"[3] moves w[3]. */
#ifndef TESTS_BACKEND_OPERATIONS_H
#define TESTS_BACKEND_OPERATIONS_H

#include "backend/ref/ref.h"
#include "case.h"

/* ---- Calling the reference on a case's own arrays ---- */

static double *temporaries[64];
static int temporary_count;

static inline double *temporary(int64_t count)
{
	if (temporary_count == 64)
		abort();
	return temporaries[temporary_count++] = new_doubles(count);
}

static inline void free_temporaries(void)
{
	while (temporary_count > 0)
		free(temporaries[--temporary_count]);
}

static inline struct tensor f64_tensor(double *data, int64_t rows, int64_t columns)
{
	return (struct tensor){.data = data, .dtype = DTYPE_F64, .rows = rows, .columns = columns};
}

static inline struct tensor temporary_tensor(int64_t rows, int64_t columns)
{
	return f64_tensor(temporary(rows * columns), rows, columns);
}

/* The array's own values. */
static inline struct tensor host_tensor(struct test_case *c, const char *name)
{
	struct array *a = get_array(c, name);
	return f64_tensor(a->value, a->rows, a->columns);
}

/* A copy of `name`, moved by the displacement if there is one: an array of the same shape, or a single row that moves all
 * rows. */
static inline struct tensor displaced(struct test_case *c, const char *name, const char *displacement)
{
	struct array *a = get_array(c, name);
	struct tensor out = temporary_tensor(a->rows, a->columns);
	int d = find_array(c, displacement);
	for (int64_t i = 0; i < array_size(a); i++) {
		double move = 0;
		if (d >= 0)
			move = c->arrays[d].value[c->arrays[d].rows == a->rows ? i : i % a->columns];
		((double *)out.data)[i] = a->value[i] + move;
	}
	return out;
}

static inline struct weight displaced_weight(struct test_case *c, const char *name)
{
	char gradient[24];
	snprintf(gradient, sizeof gradient, "%.14s.gradient", name);
	return (struct weight){.master = displaced(c, name, gradient)};
}

/* The same for a weight that a case may lack; NULL if it does. */
static inline struct weight *optional_weight(struct test_case *c, const char *name, struct weight *out)
{
	if (find_array(c, name) < 0)
		return NULL;
	*out = displaced_weight(c, name);
	return out;
}

static inline double inner_product(const struct tensor *a, const struct tensor *b)
{
	double sum = 0;
	for (int64_t i = 0; i < a->rows * a->columns; i++)
		sum += ((double *)a->data)[i] * ((double *)b->data)[i];
	return sum;
}

/* ---- embed ---- */

static inline void declare_norm_weights(struct test_case *c, int64_t width)
{
	add_weight(c, "gamma", WEIGHT_VECTOR, 1, width, 1, 0.2);
	if (case_integer(c, "beta", 1))
		add_weight(c, "beta", WEIGHT_VECTOR, 1, width, 0, 0.2);
}

static inline void declare_embedding(struct test_case *c, int64_t *tokens, int64_t *width)
{
	*tokens = case_integer(c, "T", 8);
	*width = case_integer(c, "H", 8);
	double scale = case_number(c, "scale", 1);
	make_batch(c, *tokens, case_integer(c, "V", 50));
	int64_t positions = case_integer(c, "S", c->batch.longest);
	add_weight(c, "word", WEIGHT_TIED, case_integer(c, "V", 50), *width, 0, scale);
	if (case_integer(c, "position", 1))
		add_weight(c, "position", WEIGHT_TABLE, positions, *width, 0, scale);
	if (case_integer(c, "type", 1))
		add_weight(c, "type", WEIGHT_TABLE, 2, *width, 0, scale);
	declare_norm_weights(c, *width);
}

static inline double epsilon_of(const struct test_case *c)
{
	return case_number(c, "eps", 1e-12);
}

static void declare_embed_fwd(struct test_case *c)
{
	int64_t tokens, width;
	declare_embedding(c, &tokens, &width);
	add_output(c, "sum", ACTIVATION, tokens, width, NORM);
	add_output(c, "mean", MASTER, 1, tokens, STATISTIC);
	add_output(c, "rstd", MASTER, 1, tokens, STATISTIC);
	add_output(c, "y", ACTIVATION, tokens, width, NORM);
}

/* Runs embed_fwd on the reference with displaced weights; returns y. */
static inline struct tensor embed_on_reference(struct test_case *c, struct replica *ref, struct tensor sum, struct tensor mean,
					       struct tensor rstd)
{
	struct weight word = displaced_weight(c, "word"), gamma = displaced_weight(c, "gamma"), position, type, beta;
	struct tensor y = temporary_tensor(sum.rows, sum.columns);
	embed_fwd(ref, &(struct embed_fwd){.batch = &c->batch,
					   .word = &word,
					   .position = optional_weight(c, "position", &position),
					   .type = optional_weight(c, "type", &type),
					   .gamma = &gamma,
					   .beta = optional_weight(c, "beta", &beta),
					   .epsilon = epsilon_of(c),
					   .dropout = c->dropout,
					   .sum = sum,
					   .mean = mean,
					   .rstd = rstd,
					   .y = y});
	return y;
}

static void declare_embed_bwd(struct test_case *c)
{
	int64_t tokens, width;
	declare_embedding(c, &tokens, &width);
	bool overwrite = case_integer(c, "overwrite", 1);
	add_gradient(c, "word", case_integer(c, "overwrite_word", overwrite), 1, GRADIENT);
	for (int i = 1, weights = c->count - 1; i < weights; i++) {
		const char *name = c->arrays[i].name;
		add_gradient(c, name, overwrite, name[0] == 'g' || name[0] == 'b' ? sqrt((double)tokens) : 1, GRADIENT);
	}
	add_input(c, "dy", tokens, width, 1)->role = SCRATCH;
	add_input(c, "sum", tokens, width, 1);
	add_array(c, "mean", INPUT, MASTER, 1, tokens);
	add_array(c, "rstd", INPUT, MASTER, 1, tokens);
}

/* sum, mean and rstd are what forward computes. Displacements are not set yet: their arrays hold NaN, or the values to be
 * added to. */
static void derive_embed_bwd(struct test_case *c, struct replica *ref)
{
	struct test_case plain = *c; /* without the gradients' arrays, so that nothing is displaced */
	plain.count = find_array(c, "word.gradient");
	embed_on_reference(&plain, ref, host_tensor(c, "sum"), host_tensor(c, "mean"), host_tensor(c, "rstd"));
	free_temporaries();
}

static double objective_embed_bwd(struct test_case *c, struct replica *ref)
{
	struct tensor dy = host_tensor(c, "dy");
	struct tensor y = embed_on_reference(c, ref, temporary_tensor(dy.rows, dy.columns), temporary_tensor(1, dy.rows),
					     temporary_tensor(1, dy.rows));
	return inner_product(&dy, &y);
}

/* ---- linear ---- */

static inline void declare_product(struct test_case *c)
{
	int64_t rows = case_integer(c, "M", 8), outer = case_integer(c, "O", 8), inner = case_integer(c, "I", 8);
	add_input(c, "x", rows, inner, 1);
	/* Only heads have tanh. */
	bool is_head = case_integer(c, "tanh", 0) || case_activation(c, "act") == ACTIVATION_TANH;
	add_weight(c, "w", is_head ? WEIGHT_HEAD : WEIGHT_LINEAR, outer, inner, 0, 1 / sqrt((double)inner));
	if (case_integer(c, "b", 1))
		add_weight(c, "b", WEIGHT_VECTOR, 1, outer, 0, 0.5);
}

static void declare_linear_fwd(struct test_case *c)
{
	declare_product(c);
	add_output(c, "y", ACTIVATION, case_integer(c, "M", 8), case_integer(c, "O", 8), PRODUCT);
}

static void declare_linear_gelu_fwd(struct test_case *c)
{
	declare_product(c);
	if (case_integer(c, "train", 1))
		add_output(c, "pre", ACTIVATION, case_integer(c, "M", 8), case_integer(c, "O", 8), PRODUCT);
	add_output(c, "y", ACTIVATION, case_integer(c, "M", 8), case_integer(c, "O", 8), PRODUCT);
}

static void declare_linear_bwd(struct test_case *c)
{
	int64_t rows = case_integer(c, "M", 8), outer = case_integer(c, "O", 8), inner = case_integer(c, "I", 8);
	bool overwrite = case_integer(c, "overwrite", 1);
	double spread = sqrt((double)rows + 1);
	declare_product(c);
	enum limit_class of_dy = case_integer(c, "tanh", 0) ? GRADIENT : SUM; /* tanh makes a new dy */
	bool frozen = case_integer(c, "frozen", 0);
	if (!frozen)
		add_gradient(c, "w", overwrite, spread, of_dy);
	if (!frozen && case_integer(c, "b", 1))
		add_gradient(c, "b", overwrite, spread, of_dy);
	if (case_integer(c, "producer", 0)) {
		add_weight(c, "producer", WEIGHT_VECTOR, 1, inner, 0, 0.5);
		add_gradient(c, "producer", overwrite, spread, GRADIENT);
	}
	add_input(c, "dy", rows, outer, 1);
	if (case_activation(c, "pre") != ACTIVATION_NONE)
		add_input(c, "pre", rows, inner, 1);
	if (case_integer(c, "tanh", 0)) {
		add_input(c, "tanh_y", rows, outer, 1);
		get_array(c, "dy")->role = SCRATCH;
	}
	int64_t add = case_integer(c, "add", 0); /* 2: the sum is computed in place */
	if (add == 1)
		add_input(c, "add", rows, inner, 1);
	if (add == 2) {
		add_input(c, "dx", rows, inner, 1)->role = UPDATED;
		get_array(c, "dx")->class = PRODUCT;
	} else if (case_integer(c, "dx", 1)) {
		add_output(c, "dx", ACTIVATION, rows, inner, PRODUCT);
	}
}

/* x = gelu(pre), tanh_y = tanh(x w' + b). */
static void derive_linear_bwd(struct test_case *c, struct replica *ref)
{
	struct array *x = get_array(c, "x");
	if (find_array(c, "pre") >= 0)
		for (int64_t i = 0; i < array_size(x); i++)
			x->value[i] = ref_gelu(case_activation(c, "pre"), get_array(c, "pre")->value[i]);
	if (find_array(c, "tanh_y") < 0)
		return;
	struct weight w = {.master = host_tensor(c, "w")}, b = {0};
	if (find_array(c, "b") >= 0)
		b.master = host_tensor(c, "b");
	linear_fwd(ref, &(struct linear_fwd){.w = &w,
					     .b = b.master.data != NULL ? &b : NULL,
					     .activation = ACTIVATION_TANH,
					     .x = host_tensor(c, "x"),
					     .y = host_tensor(c, "tanh_y")});
}

/* sum(dy act(x w' + b)) + sum(add z), where z = x, or pre if x = gelu(pre); the bias of the preceding layer moves z. */
static double objective_linear_bwd(struct test_case *c, struct replica *ref)
{
	const char *name = find_array(c, "pre") >= 0 ? "pre" : "x";
	struct tensor z = displaced(c, name, "dx"), dy = host_tensor(c, "dy");
	for (int64_t i = 0; find_array(c, "producer") >= 0 && i < z.rows * z.columns; i++)
		((double *)z.data)[i] += get_array(c, "producer.gradient")->value[i % z.columns];
	struct tensor x = temporary_tensor(z.rows, z.columns), y = temporary_tensor(dy.rows, dy.columns);
	for (int64_t i = 0; i < z.rows * z.columns; i++) {
		double value = ((double *)z.data)[i];
		((double *)x.data)[i] = name[0] == 'p' ? ref_gelu(case_activation(c, "pre"), value) : value;
	}
	struct weight w = displaced_weight(c, "w"), b = {0};
	if (find_array(c, "b") >= 0)
		b = displaced_weight(c, "b");
	linear_fwd(ref, &(struct linear_fwd){.w = &w,
					     .b = b.master.data != NULL ? &b : NULL,
					     .activation = case_integer(c, "tanh", 0) ? ACTIVATION_TANH : ACTIVATION_NONE,
					     .x = x,
					     .y = y});
	double sum = inner_product(&dy, &y);
	if (find_array(c, "add") >= 0) {
		struct tensor add = host_tensor(c, "add");
		sum += inner_product(&add, &z);
	}
	return sum;
}

/* ---- norm ---- */

/* The batch, where rows are tokens: always with dropout, otherwise on request, since it may be absent. */
static inline void declare_norm(struct test_case *c, int64_t rows, int64_t width)
{
	if (case_number(c, "p", 0) > 0)
		make_batch(c, rows, 50);
	declare_norm_weights(c, width);
}

static void declare_linear_norm_fwd(struct test_case *c)
{
	int64_t rows = case_integer(c, "M", 8), width = case_integer(c, "H", 8);
	bool product = case_integer(c, "w", 1);
	int64_t inner = product ? case_integer(c, "I", width) : width;
	declare_norm(c, rows, width);
	add_input(c, "x", rows, inner, 1);
	if (product) {
		add_weight(c, "w", WEIGHT_LINEAR, width, inner, 0, 1 / sqrt((double)inner));
		if (case_integer(c, "b", 1))
			add_weight(c, "b", WEIGHT_VECTOR, 1, width, 0, 0.5 * case_number(c, "scale", 1));
	}
	if (case_integer(c, "residual", 1))
		add_input(c, "residual", rows, width, 1);
	if (case_integer(c, "train", 1)) {
		add_output(c, "sum", ACTIVATION, rows, width, PRODUCT);
		add_output(c, "mean", MASTER, 1, rows, STATISTIC);
		add_output(c, "rstd", MASTER, 1, rows, STATISTIC);
	}
	add_output(c, "y", ACTIVATION, rows, width, NORM);
}

/* in_place=1: dresidual is dy; add=2: it is add. dx=0: one output; dx=2: one output, given twice. */
static void declare_norm_bwd(struct test_case *c)
{
	int64_t rows = case_integer(c, "M", 8), width = case_integer(c, "H", 8);
	bool overwrite = case_integer(c, "overwrite", 1);
	double spread = sqrt((double)rows + 1);
	declare_norm(c, rows, width);
	add_gradient(c, "gamma", overwrite, spread, SUM);
	if (case_integer(c, "beta", 1))
		add_gradient(c, "beta", overwrite, spread, SUM);
	if (case_integer(c, "bias", 0)) {
		add_weight(c, "bias", WEIGHT_VECTOR, 1, width, 0, 1);
		add_gradient(c, "bias", overwrite, spread, GRADIENT);
	}
	struct array *dy = add_input(c, "dy", rows, width, 1);
	add_input(c, "sum", rows, width, 1);
	add_array(c, "mean", INPUT, MASTER, 1, rows);
	add_array(c, "rstd", INPUT, MASTER, 1, rows);
	if (case_activation(c, "pre") != ACTIVATION_NONE)
		add_input(c, "pre", rows, width, 1);
	if (case_integer(c, "add", 0) == 1)
		add_input(c, "add", rows, width, 1);
	if (case_integer(c, "in_place", 0)) {
		dy->role = UPDATED;
		dy->class = NORM;
	} else if (case_integer(c, "add", 0) == 2) {
		add_input(c, "dresidual", rows, width, 1)->role = UPDATED;
		get_array(c, "dresidual")->class = NORM;
	} else {
		add_output(c, "dresidual", ACTIVATION, rows, width, NORM);
	}
	if (case_integer(c, "dx", 1) == 1)
		add_output(c, "dx", ACTIVATION, rows, width, NORM);
}

static void derive_norm_bwd(struct test_case *c, struct replica *ref)
{
	struct array *sum = get_array(c, "sum");
	struct weight gamma = {.master = host_tensor(c, "gamma")};
	linear_norm_fwd(ref, &(struct linear_norm_fwd){.gamma = &gamma,
						       .epsilon = epsilon_of(c),
						       .x = host_tensor(c, "sum"),
						       .sum = temporary_tensor(sum->rows, sum->columns),
						       .mean = host_tensor(c, "mean"),
						       .rstd = host_tensor(c, "rstd"),
						       .y = temporary_tensor(sum->rows, sum->columns)});
	free_temporaries();
}

/* sum(dy LN(r + dropout(x))) [+ sum(add (r + dropout(x)))], where x = gelu(pre) or a plain x; r is moved by dresidual, x (or pre)
 * by dx and by the bias. Without displacements, r + dropout(x) is the case's sum. */
static double objective_norm_bwd(struct test_case *c, struct replica *ref)
{
	struct tensor dy = host_tensor(c, "dy");
	struct tensor x = temporary_tensor(dy.rows, dy.columns), r = displaced(c, "sum", "dresidual");
	enum activation activation = case_activation(c, "pre");
	for (int64_t i = 0; i < dy.rows * dy.columns; i++) {
		double move = 0;
		if (find_array(c, "dx") >= 0)
			move += get_array(c, "dx")->value[i];
		if (find_array(c, "bias") >= 0)
			move += get_array(c, "bias.gradient")->value[i % dy.columns];
		if (activation == ACTIVATION_NONE) {
			((double *)x.data)[i] = move;
		} else {
			double pre = get_array(c, "pre")->value[i];
			((double *)x.data)[i] = ref_gelu(activation, pre + move);
			((double *)r.data)[i] -= ref_gelu(activation, pre);
		}
	}
	struct weight gamma = displaced_weight(c, "gamma"), beta;
	struct tensor y = temporary_tensor(dy.rows, dy.columns), sum = temporary_tensor(dy.rows, dy.columns);
	linear_norm_fwd(ref, &(struct linear_norm_fwd){.batch = c->has_batch ? &c->batch : NULL,
						       .gamma = &gamma,
						       .beta = optional_weight(c, "beta", &beta),
						       .epsilon = epsilon_of(c),
						       .dropout = c->dropout,
						       .x = x,
						       .residual = r,
						       .sum = sum,
						       .mean = temporary_tensor(1, dy.rows),
						       .rstd = temporary_tensor(1, dy.rows),
						       .y = y});
	if (find_array(c, "add") < 0)
		return inner_product(&dy, &y);
	struct tensor add = host_tensor(c, "add");
	return inner_product(&dy, &y) + inner_product(&add, &sum);
}

#include "attention_operations.h"

/* ---- gather ---- */

/* `count` of the rows, ascending and distinct. */
static inline void declare_rows(struct test_case *c, int64_t count, int64_t from)
{
	struct array *rows = add_array(c, "rows", INPUT, INTEGER, 1, count);
	struct rng rng = array_rng(c, "rows");
	for (int64_t i = 0, row = 0; i < count; i++) { /* choose so that enough rows are left for the rest */
		int64_t spare = from - row - (count - i);
		row += rng_below(&rng, (uint32_t)(2 * spare / (count - i) + 1));
		row = row <= from - (count - i) ? row : from - (count - i);
		rows->value[i] = (double)row++;
	}
}

static void declare_gather_fwd(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 8), count = case_integer(c, "P", 3), width = case_integer(c, "H", 8);
	declare_rows(c, count, tokens);
	add_input(c, "x", tokens, width, 1);
	add_output(c, "y", ACTIVATION, count, width, EXACT);
}

/* The number of rows gathered; all of them with rows=0. */
static int32_t gather_count(const struct test_case *c)
{
	return (int32_t)(case_integer(c, "rows", 1) ? case_integer(c, "P", 3) : case_integer(c, "T", 8));
}

static void declare_gather_bwd(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 8), count = gather_count(c), width = case_integer(c, "H", 8);
	if (case_integer(c, "rows", 1))
		declare_rows(c, count, tokens);
	add_input(c, "dy", count, width, 1);
	if (case_integer(c, "overwrite", 1)) {
		add_output(c, "dx", ACTIVATION, tokens, width, EXACT);
	} else {
		add_input(c, "dx", tokens, width, 1)->role = UPDATED;
		get_array(c, "dx")->class = PRODUCT;
	}
}

static double objective_gather_bwd(struct test_case *c, struct replica *ref)
{
	struct tensor dy = host_tensor(c, "dy"), y = temporary_tensor(dy.rows, dy.columns);
	int32_t *rows = new_integers(dy.rows);
	for (int64_t i = 0; i < dy.rows; i++)
		rows[i] = (int32_t)get_array(c, "rows")->value[i];
	gather_fwd(ref, &(struct gather_fwd){.rows = rows, .count = (int32_t)dy.rows, .x = host_tensor(c, "dx"), .y = y});
	free(rows);
	return inner_product(&dy, &y);
}

/* ---- pooling ---- */

static void declare_pooling_fwd(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 12), width = case_integer(c, "H", 8);
	make_batch(c, tokens, 50);
	add_input(c, "x", tokens, width, 1);
	if (case_integer(c, "rows", 0))
		add_output(c, "rows", ACTIVATION, c->batch.sequence_count, width, PRODUCT);
	else
		add_output(c, "y", MASTER, c->batch.sequence_count, width, SUM);
}

static void declare_pooling_bwd(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 12), width = case_integer(c, "H", 8);
	make_batch(c, tokens, 50);
	bool rows = case_integer(c, "rows", 0);
	struct array *dy = add_array(c, rows ? "drows" : "dy", INPUT, rows ? ACTIVATION : MASTER, c->batch.sequence_count, width);
	fill_normal(c, dy, 0, case_number(c, "scale", 1));
	add_output(c, "dx", ACTIVATION, tokens, width, PRODUCT);
}

static double objective_pooling_bwd(struct test_case *c, struct replica *ref)
{
	struct tensor dy = host_tensor(c, "dy"), y = temporary_tensor(dy.rows, dy.columns);
	pooling_fwd(ref, &(struct pooling_fwd){
				 .batch = &c->batch, .first = case_integer(c, "cls", 0), .x = host_tensor(c, "dx"), .y = y});
	return inner_product(&dy, &y) * c->scalars.loss_scale;
}

#include "vocabulary_operations.h"

/* ---- classes ---- */

/* Every fifth item has weight 0, others a half. */
static void declare_weights(struct test_case *c, int64_t items)
{
	struct array *weights = add_array(c, "weights", INPUT, FLOAT, 1, items);
	for (int64_t i = 0; i < items; i++)
		weights->value[i] = i % 5 == 3 ? 0 : i % 5 == 2 ? 0.5 : 1;
}

static void declare_loss(struct test_case *c, bool correct, int64_t rows, int64_t columns)
{
	add_sum(c, "loss", LOSS);
	if (correct)
		add_sum(c, "correct", EXACT);
	if (case_integer(c, "train", 1))
		add_output(c, "dlogits", ACTIVATION, rows, columns, SOFTMAX);
}

static void declare_xent(struct test_case *c)
{
	int64_t rows = case_integer(c, "N", 8), classes = case_integer(c, "C", 2);
	add_input(c, "logits", rows, classes, 2);
	declare_labels(c, rows, classes, case_integer(c, "unlabeled", 3));
	declare_weights(c, rows);
	declare_loss(c, true, rows, classes);
}

/* Values from 0 to 1, or of any size for a regression. */
static void declare_values(struct test_case *c, double low, double high)
{
	int64_t rows = case_integer(c, "N", 8), columns = case_integer(c, "C", 2);
	add_input(c, "logits", rows, columns, 2);
	struct array *values = add_array(c, "values", INPUT, FLOAT, rows, columns);
	struct rng rng = array_rng(c, "values");
	for (int64_t i = 0; i < rows * columns; i++)
		values->value[i] = low + (high - low) * rng_below(&rng, 5) / 4.0;
	declare_weights(c, rows);
}

static void declare_squared_error(struct test_case *c)
{
	declare_values(c, -2, 5);
	declare_loss(c, false, case_integer(c, "N", 8), case_integer(c, "C", 2));
}

static void declare_binary_xent(struct test_case *c)
{
	declare_values(c, 0, 1);
	if (case_integer(c, "positive", 0)) {
		struct array *positive = add_array(c, "positive_weights", INPUT, FLOAT, 1, case_integer(c, "C", 2));
		struct rng rng = array_rng(c, "positive_weights");
		for (int64_t i = 0; i < positive->columns; i++)
			positive->value[i] = rng_below(&rng, 13) / 4.0;
	}
	declare_loss(c, true, case_integer(c, "N", 8), case_integer(c, "C", 2));
}

/* E groups with B rows in total; the first takes the rows that the others leave. Every `unlabeled`-th has no label. */
static void declare_group_xent(struct test_case *c)
{
	int64_t groups = case_integer(c, "E", 3), rows = case_integer(c, "B", 10), unlabeled = case_integer(c, "unlabeled", 4);
	add_input(c, "logits", rows, 1, 2);
	struct array *starts = add_array(c, "starts", INPUT, INTEGER, 1, groups + 1);
	struct array *labels = add_array(c, "labels", INPUT, INTEGER, 1, groups);
	struct rng rng = array_rng(c, "labels");
	int64_t each = groups > 0 ? rows / groups : 0;
	for (int64_t i = 0; i < groups; i++) {
		starts->value[i + 1] = (double)(rows - (groups - i - 1) * each);
		int64_t count = (int64_t)(starts->value[i + 1] - starts->value[i]);
		labels->value[i] = i % unlabeled == unlabeled - 1 ? -1.0 : (double)rng_below(&rng, (uint32_t)count);
	}
	declare_weights(c, groups);
	declare_loss(c, true, rows, 1);
}

/* E lists with B rows in total; the first takes the rows that the others leave. */
static void declare_list_loss(struct test_case *c)
{
	int64_t lists = case_integer(c, "E", 3), rows = case_integer(c, "B", 10), each = lists > 0 ? rows / lists : 0;
	add_input(c, "logits", rows, 1, 2);
	struct array *starts = add_array(c, "starts", INPUT, INTEGER, 1, lists + 1);
	struct array *targets = add_array(c, "targets", INPUT, FLOAT, 1, rows);
	struct rng rng = array_rng(c, "targets");
	for (int64_t i = 0; i < lists; i++)
		starts->value[i + 1] = (double)(rows - (lists - i - 1) * each);
	for (int64_t i = 0; i < rows; i++)
		targets->value[i] = rng_below(&rng, 5) / 4.0;
	declare_weights(c, rows);
	declare_loss(c, false, rows, 1);
}

static void declare_segment_xent(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 12);
	make_batch(c, tokens, 50);
	int64_t sequences = c->batch.sequence_count;
	add_input(c, "logits", tokens, 2, 2);
	struct array *labels = add_array(c, "labels", INPUT, INTEGER, sequences, 2);
	struct rng rng = array_rng(c, "labels");
	for (int64_t i = 0; i < 2 * sequences; i++) {
		int32_t length = c->batch.starts[i / 2 + 1] - c->batch.starts[i / 2];
		labels->value[i] = i % 7 == 6 ? -1.0 : (double)rng_below(&rng, (uint32_t)length);
	}
	declare_weights(c, sequences);
	declare_loss(c, true, tokens, 2);
}

/* Every third row is queried, and every seventh label is missing. */
static void declare_pointer_xent(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 12), classes = case_integer(c, "C", 2), pointers = case_integer(c, "K", 2);
	int64_t columns = classes + 2 * pointers * case_integer(c, "D", 4), count = (tokens + 2) / 3;
	make_batch(c, tokens, 50);
	add_input(c, "logits", tokens, columns, 1);
	struct array *rows = add_array(c, "rows", INPUT, INTEGER, 1, count);
	struct array *labels = add_array(c, "labels", INPUT, INTEGER, count, 1 + pointers);
	struct rng rng = array_rng(c, "labels");
	for (int64_t i = 0, s = 0; i < count; i++) {
		rows->value[i] = (double)(3 * i);
		while (3 * i >= c->batch.starts[s + 1])
			s++;
		for (int64_t k = 0; k <= pointers; k++) {
			int64_t choices = k == 0 ? classes : c->batch.starts[s + 1] - c->batch.starts[s];
			int64_t at = i * (1 + pointers) + k;
			labels->value[at] = at % 7 == 6 ? -1.0 : (double)rng_below(&rng, (uint32_t)choices);
		}
	}
	declare_weights(c, count);
	declare_loss(c, true, tokens, columns);
	add_output(c, "lse", MASTER, pointers, count, STATISTIC);
}

static enum soft_kind soft_kind_of(const struct test_case *c)
{
	return case_is(c, "kind", "rows")       ? SOFT_ROWS
	       : case_is(c, "kind", "sigmoids") ? SOFT_SIGMOIDS
	       : case_is(c, "kind", "numbers")  ? SOFT_NUMBERS
						: SOFT_CLASSES;
}

static int64_t soft_items(const struct test_case *c)
{
	return soft_kind_of(c) == SOFT_ROWS ? case_integer(c, "N", 3) : case_integer(c, "M", 8);
}

/* M rows in N groups of kind=rows; the first takes the rows that the others leave. With share=1 nothing that dlogits held
 * is kept. */
static void declare_soft_loss(struct test_case *c)
{
	int64_t rows = case_integer(c, "M", 8), columns = case_integer(c, "C", 2), items = soft_items(c);
	add_input(c, "teacher", rows, columns, 2);
	add_input(c, "logits", rows, columns, 2);
	if (soft_kind_of(c) == SOFT_ROWS) {
		struct array *starts = add_array(c, "starts", INPUT, INTEGER, 1, items + 1);
		for (int64_t i = 0; i < items; i++)
			starts->value[i + 1] = (double)(rows - (items - i - 1) * (rows / items));
	}
	declare_weights(c, items);
	add_sum(c, "loss", LOSS);
	bool mixed = case_number(c, "share", 1) < 1;
	struct array *gradients = add_input(c, "dlogits", rows, columns, mixed ? 0.5 : 0);
	gradients->role = mixed ? UPDATED : ACCUMULATED;
	gradients->class = SOFTMAX;
}

static void declare_hidden_error(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 12), width = case_integer(c, "H", 8);
	make_batch(c, tokens, 50);
	add_input(c, "target", tokens, width, 1);
	add_sum(c, "loss", LOSS);
	if (case_integer(c, "in_place", 0)) {
		add_input(c, "x", tokens, width, 1)->role = UPDATED;
		get_array(c, "x")->class = PRODUCT;
		return;
	}
	add_input(c, "x", tokens, width, 1);
	add_output(c, "dx", ACTIVATION, tokens, width, PRODUCT);
}

/* N of the rows of T tokens, or all of them with rows=0. */
static void declare_row_dropout(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 12), width = case_integer(c, "H", 8), rows = case_integer(c, "N", tokens);
	make_batch(c, tokens, 50);
	add_input(c, "x", rows, width, 1);
	if (case_integer(c, "rows", 1)) {
		struct array *picked = add_array(c, "rows", INPUT, INTEGER, 1, rows);
		for (int64_t i = 0; i < rows; i++)
			picked->value[i] = (double)(i * tokens / rows);
	}
	add_output(c, "y", ACTIVATION, rows, width, PRODUCT);
}

/* ---- optimizer ---- */

/* bad=1: one element is infinite; bad=2: NaN. sums=1: the losses are checked as well; 2: one of them is infinite; 3: NaN.
 * decides=1: the loss scale is updated, if it is dynamic. */
static void declare_sumsq_finite(struct test_case *c)
{
	int64_t count = case_integer(c, "n", 8), bad = case_integer(c, "bad", 0);
	struct array *range = add_array(c, "range", INPUT, MASTER, 1, count);
	fill_normal(c, range, 0, case_number(c, "scale", 1));
	if (bad != 0)
		range->value[count - 1 - count / 3] = bad == 1 ? -INFINITY : NAN;
	struct scalars *s = &c->scalars;
	s->finite = s->losses_finite = case_integer(c, "finite", 1);
	s->loss_scale = case_number(c, "loss_scale", 1024);
	s->dynamic_scale = case_integer(c, "dynamic", 0);
	s->clean_steps = case_integer(c, "clean", 0);
}

/* google=1: no bias correction; clip=0: no clipping; finite=0: a step that must be skipped. */
static inline void declare_moments(struct test_case *c)
{
	int64_t count = case_integer(c, "n", 8);
	static const char *const names[] = {"w", "m", "v"};
	for (int i = 0; i < 3; i++) {
		struct array *a = add_array(c, names[i], UPDATED, MASTER, 1, count);
		a->class = OPTIMIZER;
		fill_normal(c, a, 0, i == 0 ? 1 : 0.1);
		for (int64_t j = 0; i == 2 && j < count; j++)
			a->value[j] = a->value[j] * a->value[j];
	}
	struct scalars *s = &c->scalars;
	s->learning_rate = 0.05;
	s->max_grad_norm = case_number(c, "clip", 1);
	s->finite = case_integer(c, "finite", 1);
	s->gradient_scale = case_number(c, "gradient_scale", 1);
	s->gradient_square_sum = case_number(c, "square_sum", 20);
	if (case_integer(c, "google", 0))
		s->bias_correction1 = s->bias_correction2 = 1;
}

static void declare_adamw(struct test_case *c)
{
	declare_moments(c);
	fill_normal(c, add_array(c, "g", INPUT, MASTER, 1, case_integer(c, "n", 8)), 0, 3);
}

/* `tensors` pieces of n elements, some followed by a gap; every third without decay; every second one adapts, or all of
 * them (all=1), or none (plain=1). zero=1: the weights of the first tensor are 0, so it has no trust ratio. */
static inline void declare_lamb(struct test_case *c)
{
	declare_moments(c);
	if (case_integer(c, "zero", 0))
		for (int64_t i = 0; i < case_integer(c, "n", 8) / case_integer(c, "tensors", 1); i++)
			get_array(c, "w")->value[i] = 0;
}

static void declare_lamb_norms(struct test_case *c)
{
	declare_lamb(c);
	get_array(c, "w")->role = INPUT;
	fill_normal(c, add_array(c, "g", INPUT, MASTER, 1, case_integer(c, "n", 8)), 0, 3);
	add_output(c, "norms", DOUBLE, case_integer(c, "tensors", 1), 2, OPTIMIZER);
}

static void declare_lamb_apply(struct test_case *c)
{
	declare_lamb(c);
	get_array(c, "m")->role = get_array(c, "v")->role = INPUT;
	struct array *norms = add_array(c, "norms", INPUT, DOUBLE, case_integer(c, "tensors", 1), 2);
	for (int64_t i = 0; i < array_size(norms); i++)
		norms->value[i] = i % 2 ? 5 + (double)i : 3;
	if (case_integer(c, "zero", 0))
		norms->value[0] = 0;
}

/* ---- The call: the operation's struct, filled in by the table's rows ---- */

/* The array of a field, or -1. Some have other names in the lines and goldens. */
static inline int field_array(const struct test_case *c, const char *field)
{
	static const char *const names[][2] = {{"producer_bias", "producer"}, {"outputs", "logits"}, {"doutputs", "dlogits"}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(names[i][0], field) == 0)
			field = names[i][1];
	return find_array(c, field);
}

/* The size of a letter: from an array that has it, or from the line. */
static inline int64_t letter_size(const struct test_case *c, const struct operation_field *of)
{
	for (const struct operation_field *f = c->operation->row->fields; f->name != NULL && of->rows != NULL; f++) {
		int i = f->kind == FIELD_INTEGERS || f->columns == NULL ? -1 : field_array(c, f->name);
		if (i >= 0 && f->kind == FIELD_FLOATS && strcmp(f->rows, of->rows) == 0)
			return array_size(&c->arrays[i]);
		if (i >= 0 && strcmp(f->rows, of->rows) == 0)
			return c->arrays[i].rows;
		if (i >= 0 && strcmp(f->columns, of->rows) == 0)
			return c->arrays[i].columns;
	}
	return case_integer(c, of->key != NULL ? of->key : of->rows, of->rows != NULL); /* without a letter: optional */
}

static inline double number_of(const struct test_case *c, const struct operation_field *f)
{
	bool epsilon = strcmp(f->name, "epsilon") == 0;
	bool no_limit = strcmp(f->name, "max_trust_ratio") == 0 || strcmp(f->name, "label_smoothing") == 0;
	return case_number(c, f->key != NULL ? f->key : "eps", epsilon ? (f->key != NULL ? 1e-12 : 1e-6) : no_limit ? 0 : 1);
}

static inline bool flag_of(const struct test_case *c, const char *key)
{
	if (strcmp(key, "overwrite_word") == 0)
		return case_integer(c, key, flag_of(c, "overwrite"));
	return case_integer(c, key, strcmp(key, "train") == 0 || strcmp(key, "overwrite") == 0);
}

static inline int word_of(const struct test_case *c, const struct operation_field *f)
{
	for (int i = 0; f->words[i] != NULL; i++)
		if (case_is(c, f->key, f->words[i]))
			return i;
	return 0;
}

/* Heads other than the first have this number. */
enum { TESTED_HEAD = 1 };

/* Fills in what is not an array. */
static inline void fill_values(const struct test_case *c, void *arguments)
{
	for (const struct operation_field *f = c->operation->row->fields; f->name != NULL; f++) {
		void *member = (char *)arguments + f->offset;
		if (f->kind == FIELD_DROPOUT)
			*(struct dropout *)member = c->dropout;
		else if (f->kind == FIELD_HEAD)
			*(int *)member = strncmp(c->line, "vocab", 5) == 0 ? HEAD_MASKED_WORDS : TESTED_HEAD;
		else if (f->kind == FIELD_SIZE)
			*(int32_t *)member = (int32_t)letter_size(c, f);
		else if (f->kind == FIELD_LONG_SIZE)
			*(int64_t *)member = case_integer(c, f->key, 1);
		else if (f->kind == FIELD_FLAG)
			*(bool *)member = flag_of(c, f->key);
		else if (f->kind == FIELD_NUMBER)
			*(double *)member = number_of(c, f);
		else if (f->kind == FIELD_WORD)
			*(int *)member = word_of(c, f);
	}
}

/* Room for the struct of any operation. */
union arguments {
	max_align_t aligned;
	unsigned char bytes[1024];
};

static void bound_call(struct bound *b)
{
	const struct test_case *c = b->c;
	union arguments arguments = {0};
	if (c->operation->row->bytes > sizeof arguments)
		abort();
	fill_values(c, &arguments);
	for (const struct operation_field *f = c->operation->row->fields; f->name != NULL; f++) {
		void *member = arguments.bytes + f->offset;
		int i = field_array(c, f->name);
		if (f->kind == FIELD_BATCH)
			*(const struct batch **)member = c->has_batch ? &b->batch : NULL;
		else if (i >= 0 && (f->kind == FIELD_ACTIVATIONS || f->kind == FIELD_STATISTICS))
			*(struct tensor *)member = b->tensor[i];
		else if (i >= 0 && (f->kind == FIELD_WEIGHT || f->kind == FIELD_GRADIENT))
			*(const struct weight **)member = b->weight[i].master.data != NULL ? &b->weight[i] : NULL;
		else if (i >= 0 && f->kind < FIELD_POINTER)
			*(void **)member = b->tensor[i].data;
	}
	if (c->operation->adjust != NULL)
		c->operation->adjust(b, &arguments);
	c->operation->row->run(b->replica, &arguments);
}

/* The loss that the operation adds up on the reference, with inputs moved by the displacements in their gradients' arrays. */
static inline double reference_loss(struct test_case *c, struct replica *ref)
{
	union arguments arguments = {0};
	double *loss = NULL;
	struct weight weights[4];
	int weight_count = 0;
	fill_values(c, &arguments);
	for (const struct operation_field *f = c->operation->row->fields; f->name != NULL; f++) {
		void *member = arguments.bytes + f->offset;
		int i = field_array(c, f->name);
		char gradient[24];
		snprintf(gradient, sizeof gradient, "d%.14s", i >= 0 ? c->arrays[i].name : "");
		if (f->kind == FIELD_BATCH) {
			*(const struct batch **)member = &c->batch;
		} else if (strcmp(f->name, "training") == 0) {
			*(bool *)member = false;
		} else if (f->kind == FIELD_WEIGHT) {
			weights[weight_count] = displaced_weight(c, f->name);
			*(const struct weight **)member = &weights[weight_count++];
		} else if (f->kind == FIELD_ACTIVATIONS && !(f->role & FIELD_OUT)) {
			*(struct tensor *)member = displaced(c, c->arrays[i].name, gradient);
		} else if (f->kind < FIELD_INTEGERS && f->role == FIELD_OUT) {
			*(struct tensor *)member = temporary_tensor(c->arrays[i].rows, c->arrays[i].columns);
		} else if (f->kind == FIELD_DOUBLES && f->role == FIELD_OUT) {
			*(double **)member = temporary(1);
			loss = strcmp(f->name, "loss") == 0 ? *(double **)member : loss;
		} else if (i >= 0 && (f->kind == FIELD_INTEGERS || f->kind == FIELD_FLOATS)) {
			void *values = temporary(array_size(&c->arrays[i]));
			for (int64_t j = 0; j < array_size(&c->arrays[i]); j++)
				store(values, f->kind == FIELD_INTEGERS ? INTEGER : FLOAT, DTYPE_F32, j, c->arrays[i].value[j]);
			*(void **)member = values;
		}
	}
	struct bound b = {.c = c, .replica = ref};
	if (c->operation->adjust != NULL)
		c->operation->adjust(&b, &arguments);
	c->operation->row->run(ref, &arguments);
	return *loss;
}

static double objective_loss(struct test_case *c, struct replica *ref)
{
	int head = strncmp(c->line, "vocab", 5) == 0 ? HEAD_MASKED_WORDS : TESTED_HEAD;
	return reference_loss(c, ref) * c->scalars.inverse_weight[head] * c->scalars.loss_scale;
}

static double objective_hidden_error(struct test_case *c, struct replica *ref)
{
	return reference_loss(c, ref) * case_number(c, "factor", 1) * c->scalars.inverse_tokens * c->scalars.loss_scale;
}

/* ---- What a row cannot say ---- */

static void adjust_norm_bwd(struct bound *b, void *arguments)
{
	struct norm_bwd *a = arguments;
	if (case_integer(b->c, "in_place", 0))
		a->dresidual = a->dy;
	if (case_integer(b->c, "add", 0) == 2)
		a->add = a->dresidual;
	if (case_integer(b->c, "dx", 1) == 2)
		a->dx = a->dresidual;
}

static void adjust_linear_bwd(struct bound *b, void *arguments)
{
	struct linear_bwd *a = arguments;
	if (case_integer(b->c, "add", 0) == 2)
		a->add = a->dx;
}

static void adjust_pointer_xent(struct bound *b, void *arguments)
{
	((struct pointer_xent *)arguments)->classes = (int32_t)case_integer(b->c, "C", 2);
}

static void adjust_hidden_error(struct bound *b, void *arguments)
{
	struct hidden_error *a = arguments;
	if (case_integer(b->c, "in_place", 0))
		a->dx = a->x;
}

static void adjust_sumsq_finite(struct bound *b, void *arguments)
{
	struct replica *replica = b->replica;
	int64_t kind = case_integer(b->c, "sums", 0);
	struct accumulators sums = {{1, 2, 3}};
	sums.value[ACCUMULATOR_COUNT - 1] = kind == 2 ? INFINITY : kind == 3 ? NAN : 0;
	replica->backend->functions->to_device(replica->backend, replica->accumulators, &sums, sizeof sums);
	((struct sumsq_finite *)arguments)->sums = kind > 0 ? replica->accumulators : NULL;
}

/* ranges=k: k ranges, every second one without decay, some with a rate of their own, with a gap after every third. */
static void adjust_adamw(struct bound *b, void *arguments)
{
	static struct decay_range ranges[256];
	struct adamw *a = arguments;
	int64_t n = case_integer(b->c, "n", 8);
	assert_true(a->range_count <= (int64_t)(sizeof ranges / sizeof ranges[0]));
	for (int64_t i = 0; i < a->range_count; i++) {
		int64_t begin = n * i / a->range_count, end = n * (i + 1) / a->range_count;
		ranges[i] = (struct decay_range){.offset = begin,
						 .count = end - begin - (i % 3 == 2),
						 .weight_decay = i % 2 ? 0 : case_number(b->c, "decay", 0.01),
						 .rate = i % 3 == 1 ? 0.25 : 1};
	}
	a->beta1 = 0.9;
	a->beta2 = 0.999;
	a->ranges = ranges;
}

/* LAMB's table on the device, which bound_release() frees. */
static const struct lamb_tensor *bound_lamb_tensors(struct bound *b)
{
	int64_t count = case_integer(b->c, "tensors", 1), n = case_integer(b->c, "n", 8);
	struct lamb_tensor *host = calloc((size_t)count, sizeof *host);
	if (host == NULL)
		abort();
	for (int64_t i = 0; i < count; i++) {
		int64_t first = i * n / count, size = (i + 1) * n / count - first;
		host[i] = (struct lamb_tensor){.offset = first,
					       .count = size > 4 ? size - i % 3 : size,
					       .weight_decay = i % 3 == 1 ? 0 : case_number(b->c, "decay", 0.01),
					       .rate = case_number(b->c, "rate", 1),
					       .adapts = i % 2 == 0 || case_integer(b->c, "all", 0)};
		if (case_integer(b->c, "plain", 0))
			host[i].adapts = false;
	}
	if (b->table == NULL)
		or_abort(b->backend->functions->allocate(b->backend, &b->table, (size_t)count * sizeof *host, "tensors"));
	b->backend->functions->to_device(b->backend, b->table, host, (size_t)count * sizeof *host);
	free(host);
	return b->table;
}

static void adjust_lamb_norms(struct bound *b, void *arguments)
{
	struct lamb_norms *a = arguments;
	a->beta1 = 0.9;
	a->beta2 = 0.999;
	a->beta3 = case_integer(b->c, "averages", 1) ? 0.1 : 1;
	a->epsilon = 1e-6;
	a->tensors = bound_lamb_tensors(b);
}

static void adjust_lamb_apply(struct bound *b, void *arguments)
{
	struct lamb_apply *a = arguments;
	a->epsilon = 1e-6;
	a->tensors = bound_lamb_tensors(b);
}

/* In the order of the table. */
static struct operation_test operation_tests[] = {
	{"eps", .declare = declare_embed_fwd},
	{"eps", .declare = declare_embed_bwd, derive_embed_bwd, .objective = objective_embed_bwd},
	{"", .declare = declare_linear_fwd},
	{"", .declare = declare_linear_gelu_fwd},
	{"B longest", .declare = declare_gated_fwd},
	{"B longest", .declare = declare_gated_bwd, .objective = objective_gated_bwd},
	{"eps B longest", .declare = declare_linear_norm_fwd},
	{"eps B longest", .declare = declare_norm_bwd, derive_norm_bwd, adjust_norm_bwd, objective_norm_bwd},
	{"frozen", .declare = declare_linear_bwd, derive_linear_bwd, adjust_linear_bwd, objective_linear_bwd},
	{"", .declare = declare_rotary},
	{"", .declare = declare_attention_fwd},
	{"", .declare = declare_attention_bwd, derive_attention_bwd, .objective = objective_attention_bwd},
	{"", .declare = declare_gather_fwd},
	{"", .declare = declare_gather_bwd, .objective = objective_gather_bwd},
	{"", .declare = declare_pooling_fwd},
	{"", .declare = declare_pooling_bwd, .objective = objective_pooling_bwd},
	{"ties", .declare = declare_vocab_xent, .objective = objective_loss},
	{"ties", .declare = declare_vocab_topk},
	{"rows", .declare = declare_vocab_max_fwd},
	{"", .declare = declare_vocab_max_bwd, derive_vocab_max_bwd, .objective = objective_vocab_max_bwd},
	{"unlabeled smoothing", .declare = declare_xent, .objective = objective_loss},
	{"", .declare = declare_squared_error, .objective = objective_loss},
	{"positive", .declare = declare_binary_xent, .objective = objective_loss},
	{"unlabeled", .declare = declare_group_xent, .objective = objective_loss},
	{"", .declare = declare_list_loss, .objective = objective_loss},
	{"", .declare = declare_segment_xent, .objective = objective_loss},
	{"", .declare = declare_pointer_xent, .adjust = adjust_pointer_xent, .objective = objective_loss},
	{"", .declare = declare_soft_loss, .objective = objective_loss},
	{"in_place B longest", .declare = declare_hidden_error, .adjust = adjust_hidden_error,
	 .objective = objective_hidden_error},
	{"B longest", .declare = declare_row_dropout},
	{"bad finite scale dynamic clean loss_scale", .declare = declare_sumsq_finite, .adjust = adjust_sumsq_finite},
	{"decay clip google finite gradient_scale square_sum", .declare = declare_adamw, .adjust = adjust_adamw},
	{"decay clip google finite gradient_scale square_sum averages all plain zero", .declare = declare_lamb_norms,
	 .adjust = adjust_lamb_norms},
	{"decay google finite all plain zero rate", .declare = declare_lamb_apply, .adjust = adjust_lamb_apply},
};
_Static_assert(OPERATION_COUNT == sizeof operation_tests / sizeof operation_tests[0], "a row for every operation");

static const struct operation_test *find_operation(const char *name, size_t length)
{
	for (size_t i = 0; i < OPERATION_COUNT; i++) {
		operation_tests[i].row = &operation_table[i];
		if (strlen(operation_table[i].name) == length && strncmp(operation_table[i].name, name, length) == 0)
			return &operation_tests[i];
	}
	return NULL;
}

#endif
