/* The table of operations: what each field of an operation's struct is, and the rules that rows cannot say. The order of
 * fields is the order of checks; the first with a letter owns it. */
#include <inttypes.h>
#include <math.h>
#include "backend/operation.h"

static const char *const activation_names[] = {"none", "tanh", "gelu_erf", "gelu_tanh", "relu", "silu", NULL};
static const char *const list_names[] = {"shares", "margins", NULL};
static const char *const soft_names[] = {"classes", "rows", "sigmoids", "numbers", NULL};

/* ---- Rules: checks of several fields, and what an operation costs ---- */

/* Floating-point operations of a product (m,k) (k,n). */
static double product_flops(const struct operation_call *c, char m, char n, char k)
{
	return 2.0 * (double)operation_size(c, m) * (double)operation_size(c, n) * (double)operation_size(c, k);
}

/* The same for one product with the keys that a token sees, over all heads. */
static double score_flops(const struct operation_call *c, int32_t window)
{
	double sum = 0;
	const int32_t *starts = c->batch->host_starts ? c->batch->host_starts : c->batch->starts;
	for (int32_t s = 0; s < c->batch->sequence_count; s++) {
		double length = starts[s + 1] - starts[s];
		double outside = window > 0 && length > window + 1 ? length - window - 1 : 0; /* pairs: twice a triangle */
		sum += 2 * (length * length - outside * (outside + 1)) * (double)operation_size(c, 'H');
	}
	return sum;
}

static bool is_present(const struct tensor *tensor)
{
	return tensor->data != NULL;
}

static void check_gelu(const struct operation_call *c, const char *name, enum activation activation)
{
	if (!activation_is_gelu(activation))
		operation_mismatch(c, "'%s' is not a gelu", name);
}

static void touches_all(struct operation_call *c, const void *arguments)
{
	(void)arguments;
	c->bytes = operation_bytes(c, NULL);
}

/* Bytes of so many matrices of activations, and of so many in the master type, of one row per token. */
static double token_bytes(const struct operation_call *c, size_t activations, size_t masters)
{
	const struct backend *be = c->replica->backend;
	return (double)operation_size(c, 'T') * (double)operation_size(c, 'H') *
	       (double)(activations * dtype_bytes(be->dtype) + masters * dtype_bytes(be->master_dtype));
}

static void embed_fwd_rule(struct operation_call *c, const void *arguments)
{
	const struct embed_fwd *a = arguments;
	if (a->position && c->batch->longest > operation_size(c, 'S'))
		operation_mismatch(c, "'batch' has a sequence of %d tokens where 'position' has %" PRId64 " rows",
				   c->batch->longest, operation_size(c, 'S'));
	c->bytes = token_bytes(c, 2, 3);
}

static void embed_bwd_rule(struct operation_call *c, const void *arguments)
{
	(void)arguments;
	c->bytes = token_bytes(c, 3, 6);
}

static void linear_fwd_rule(struct operation_call *c, const void *arguments)
{
	const struct linear_fwd *a = arguments;
	if (a->activation != ACTIVATION_NONE && a->activation != ACTIVATION_TANH)
		operation_mismatch(c, "'activation' is neither none nor tanh");
	c->flops = product_flops(c, 'M', 'O', 'I');
}

static void linear_gelu_fwd_rule(struct operation_call *c, const void *arguments)
{
	const struct linear_gelu_fwd *a = arguments;
	check_gelu(c, "activation", a->activation);
	c->flops = product_flops(c, 'M', 'O', 'I');
}

static void gated_rule(struct operation_call *c, enum activation activation)
{
	check_gelu(c, "activation", activation);
	c->bytes = operation_bytes(c, NULL);
}

static void gated_fwd_rule(struct operation_call *c, const void *arguments)
{
	gated_rule(c, ((const struct gated_fwd *)arguments)->activation);
}

static void gated_bwd_rule(struct operation_call *c, const void *arguments)
{
	gated_rule(c, ((const struct gated_bwd *)arguments)->activation);
}

static void linear_norm_fwd_rule(struct operation_call *c, const void *arguments)
{
	const struct linear_norm_fwd *a = arguments;
	if (!a->w && a->b)
		operation_mismatch(c, "'w' is missing");
	if (!a->w && a->x.columns != a->y.columns)
		operation_mismatch(c, "'x' has %" PRId64 " columns where 'y' has %" PRId64, a->x.columns, a->y.columns);
	if (is_present(&a->sum) && (!is_present(&a->mean) || !is_present(&a->rstd)))
		operation_mismatch(c, "'%s' is missing", is_present(&a->mean) ? "rstd" : "mean");
	c->flops = a->w ? product_flops(c, 'M', 'H', 'I') : 0;
	c->bytes = a->w ? 0 : operation_bytes(c, NULL);
}

static void norm_bwd_rule(struct operation_call *c, const void *arguments)
{
	const struct norm_bwd *a = arguments;
	bool separate = is_present(&a->dx) && a->dx.data != a->dresidual.data;
	if (is_present(&a->pre))
		check_gelu(c, "pre_activation", a->pre_activation);
	if (!separate && (a->dropout.p > 0 || is_present(&a->pre)) && a->dresidual.rows > 0)
		operation_mismatch(c, "dropout or 'pre' needs a 'dx' apart from 'dresidual'");
	if (separate && (a->dx.data == a->dy.data || a->dx.data == a->add.data) && a->dresidual.rows > 0)
		operation_mismatch(c, "'dx' overlaps '%s'", a->dx.data == a->dy.data ? "dy" : "add");
	operation_derive(c, "dx", separate);
	operation_derive(c, "in_place", a->dresidual.data == a->dy.data);
	operation_derive(c, "add", !is_present(&a->add) ? 0 : a->add.data == a->dresidual.data ? 2 : 1);
	c->bytes = operation_bytes(c, NULL);
}

static void linear_bwd_rule(struct operation_call *c, const void *arguments)
{
	const struct linear_bwd *a = arguments;
	if (is_present(&a->pre))
		check_gelu(c, "pre_activation", a->pre_activation);
	if (!is_present(&a->dx) && (is_present(&a->pre) || is_present(&a->add) || a->producer_bias))
		operation_mismatch(c, "'dx' is missing");
	if (is_present(&a->tanh_y))
		operation_mark_written(c, "dy");
	operation_derive(c, "add", !is_present(&a->add) ? 0 : a->add.data == a->dx.data ? 2 : 1);
	if (is_present(&a->w->gradient))
		operation_check_gradient(c, "w", a->w, "O", "I");
	c->flops = (is_present(&a->dx) + is_present(&a->w->gradient)) * product_flops(c, 'M', 'O', 'I');
}

void rotary_frequencies(double base, int32_t size, float *frequencies)
{
	for (int32_t i = 0; i < size / 2; i++)
		frequencies[i] = 1 / powf((float)base, (float)(2 * i) / (float)size);
}

static void check_heads(const struct operation_call *c, int32_t heads)
{
	if (heads <= 0 || operation_size(c, 'H') % heads != 0)
		operation_mismatch(c, "%" PRId64 " columns of '%s' cannot be shared by %d heads", operation_size(c, 'H'),
				   c->letters['H' - 'A'].owner, heads);
}

static void rotary_rule(struct operation_call *c, const void *arguments)
{
	const struct rotary *a = arguments;
	check_heads(c, a->heads);
	int64_t size = operation_size(c, 'H') / a->heads;
	if (size % 2 != 0 || size > ROTARY_LIMIT || !(a->base > 0))
		operation_mismatch(c, "heads of %" PRId64 " columns cannot be turned with base %g", size, a->base);
	c->bytes = 4 * operation_bytes(c, "qkv") / 3;
}

static void attention_rule(struct operation_call *c, int32_t heads, int32_t window, int products)
{
	check_heads(c, heads);
	if (window < 0)
		operation_mismatch(c, "the window is %d", window);
	c->flops = products * score_flops(c, window);
	c->bytes = operation_bytes(c, NULL);
}

static void attention_fwd_rule(struct operation_call *c, const void *arguments)
{
	const struct attention_fwd *a = arguments;
	attention_rule(c, a->heads, a->window, 2);
}

/* One product more than the model counts: scores are recomputed. */
static void attention_bwd_rule(struct operation_call *c, const void *arguments)
{
	const struct attention_bwd *a = arguments;
	attention_rule(c, a->heads, a->window, 5);
}

static void gather_fwd_rule(struct operation_call *c, const void *arguments)
{
	(void)arguments;
	c->bytes = 2 * operation_bytes(c, "y");
}

static void gather_bwd_rule(struct operation_call *c, const void *arguments)
{
	const struct gather_bwd *a = arguments;
	if (!a->rows && a->count > 0 && a->count != a->dx.rows)
		operation_mismatch(c, "'rows' is missing");
	c->bytes = (a->overwrite ? operation_bytes(c, "dx") : 0) + 3 * operation_bytes(c, "dy");
}

static void vocab_xent_rule(struct operation_call *c, const void *arguments)
{
	const struct vocab_xent *a = arguments;
	if (a->training) {
		operation_check_gradient(c, "table", a->table, "V", "H");
		operation_check_gradient(c, "bias", a->bias, "1", "V");
		if (!is_present(&a->dx) && a->x.rows > 0)
			operation_mismatch(c, "'dx' is missing");
	}
	c->flops = (a->training ? 3 : 1) * product_flops(c, 'P', 'V', 'H');
}

static void vocab_topk_rule(struct operation_call *c, const void *arguments)
{
	const struct vocab_topk *a = arguments;
	if (a->k < 1 || a->k > operation_size(c, 'V'))
		operation_mismatch(c, "k is %d where 'table' has %" PRId64 " rows", a->k, operation_size(c, 'V'));
	c->flops = product_flops(c, 'P', 'V', 'H');
}

static void vocab_max_rule(struct operation_call *c, const void *arguments)
{
	(void)arguments;
	c->flops = product_flops(c, 'T', 'V', 'H');
}

static void pointer_xent_rule(struct operation_call *c, const void *arguments)
{
	const struct pointer_xent *a = arguments;
	int64_t vectors = a->logits.columns - a->classes;
	if (a->classes < 1 || a->pointers < 1 || vectors < 2 * a->pointers || vectors % (2 * a->pointers) != 0)
		operation_mismatch(c, "'logits' has %" PRId64 " columns for %d classes and %d pointers", a->logits.columns,
				   a->classes, a->pointers);
	int64_t numbers = vectors / (2 * a->pointers);
	if (numbers > POINTER_SIZE_MOST)
		operation_mismatch(c, "queries have %" PRId64 " numbers, more than %d", numbers, POINTER_SIZE_MOST);
	operation_derive(c, "D", numbers);
	c->bytes = operation_bytes(c, NULL);
}

static void soft_loss_rule(struct operation_call *c, const void *arguments)
{
	const struct soft_loss *a = arguments;
	bool groups = a->kind == SOFT_ROWS;
	if (groups && !a->starts)
		operation_mismatch(c, "'starts' is missing");
	if (!groups && a->count != a->logits.rows)
		operation_mismatch(c, "'logits' has %" PRId64 " rows for %d items", a->logits.rows, a->count);
	if (!(a->temperature > 0) || !(a->share >= 0 && a->share <= 1))
		operation_mismatch(c, "the temperature is %g, the share %g", a->temperature, a->share);
	c->bytes = operation_bytes(c, NULL);
}

static void row_dropout_rule(struct operation_call *c, const void *arguments)
{
	const struct row_dropout *a = arguments;
	if (!a->rows && a->x.rows != c->batch->token_count)
		operation_mismatch(c, "'x' has %" PRId64 " rows for %d tokens", a->x.rows, c->batch->token_count);
	if (!(a->dropout.p > 0))
		operation_mismatch(c, "p is %g", a->dropout.p);
	c->bytes = operation_bytes(c, NULL);
}

/* The copy that an update may write in addition to the masters. */
static void check_copy(const struct operation_call *c, const struct tensor *copy)
{
	if (is_present(copy) && !c->replica->backend->mirrors_masters)
		operation_mismatch(c, "'copy' is there, but the back end has copies of its own kind");
}

static void adamw_rule(struct operation_call *c, const void *arguments)
{
	const struct adamw *a = arguments;
	int64_t count = operation_size(c, 'n');
	for (int64_t i = 0, end = 0; i < a->range_count; end = a->ranges[i].offset + a->ranges[i].count, i++)
		if (a->ranges[i].offset < end || a->ranges[i].count < 0 || a->ranges[i].offset + a->ranges[i].count > count)
			operation_mismatch(c, "range %" PRId64 " does not follow the one before it within 'w'", i);
	check_copy(c, &a->copy);
	c->bytes = 7 * operation_bytes(c, "w") + operation_bytes(c, "copy"); /* w, m and v are read and written, g is only read */
}

static void check_lamb_tensors(const struct operation_call *c, const struct lamb_tensor *tensors, int64_t count)
{
	if (count > 0 && !tensors)
		operation_mismatch(c, "'tensors' is missing");
}

static void lamb_norms_rule(struct operation_call *c, const void *arguments)
{
	const struct lamb_norms *a = arguments;
	check_lamb_tensors(c, a->tensors, a->tensor_count);
	c->bytes = 6 * operation_bytes(c, "w"); /* m and v are read and written */
}

static void lamb_apply_rule(struct operation_call *c, const void *arguments)
{
	const struct lamb_apply *a = arguments;
	check_lamb_tensors(c, a->tensors, a->tensor_count);
	check_copy(c, &a->copy);
	c->bytes = 4 * operation_bytes(c, "w") + operation_bytes(c, "copy"); /* w is read and written */
}

/* ---- The functions of ops.h ---- */

/* name() as declared in ops.h, and run_name() for the table. */
#define OPERATION(name)                                                                                                          \
	void name(struct replica *r, const struct name *a)                                                                       \
	{                                                                                                                        \
		struct operation_call c;                                                                                         \
		operation_begin(&c, r, &operation_table[offsetof(struct operations, name) / sizeof(void (*)(void))], a);         \
		r->operations->name(r, a);                                                                                       \
		operation_end(&c);                                                                                               \
	}                                                                                                                        \
	static void run_##name(struct replica *r, const void *a)                                                                 \
	{                                                                                                                        \
		name(r, a);                                                                                                      \
	}

OPERATION(embed_fwd)
OPERATION(embed_bwd)
OPERATION(linear_fwd)
OPERATION(linear_gelu_fwd)
OPERATION(gated_fwd)
OPERATION(gated_bwd)
OPERATION(linear_norm_fwd)
OPERATION(norm_bwd)
OPERATION(linear_bwd)
OPERATION(rotary)
OPERATION(attention_fwd)
OPERATION(attention_bwd)
OPERATION(gather_fwd)
OPERATION(gather_bwd)
OPERATION(pooling_fwd)
OPERATION(pooling_bwd)
OPERATION(vocab_xent)
OPERATION(vocab_topk)
OPERATION(vocab_max_fwd)
OPERATION(vocab_max_bwd)
OPERATION(xent)
OPERATION(squared_error)
OPERATION(binary_xent)
OPERATION(group_xent)
OPERATION(list_loss)
OPERATION(segment_xent)
OPERATION(pointer_xent)
OPERATION(soft_loss)
OPERATION(hidden_error)
OPERATION(row_dropout)
OPERATION(sumsq_finite)
OPERATION(adamw)
OPERATION(lamb_norms)
OPERATION(lamb_apply)

/* ---- The table ---- */

#define ROW(name) #name, sizeof(struct name), run_##name
#define AT(operation, member) .name = #member, .offset = offsetof(struct operation, member)
enum { IN = FIELD_IN, OUT = FIELD_OUT, OPTIONAL = FIELD_OPTIONAL };
#define ACTIVATIONS FIELD_ACTIVATIONS
#define STATISTICS FIELD_STATISTICS
#define WEIGHT FIELD_WEIGHT
#define GRADIENT FIELD_GRADIENT

/* clang-format off */
const struct operation operation_table[OPERATION_COUNT] = {
	{ROW(embed_fwd), "T H V S B longest p position type beta", NULL, embed_fwd_rule, {
		{AT(embed_fwd, y), ACTIVATIONS, OUT, "T", "H"}, {AT(embed_fwd, batch), FIELD_BATCH, IN, "T"},
		{AT(embed_fwd, dropout), FIELD_DROPOUT, .key = "p"}, {AT(embed_fwd, word), WEIGHT, IN, "V", "H"},
		{AT(embed_fwd, position), WEIGHT, OPTIONAL, "S", "H", "position"},
		{AT(embed_fwd, type), WEIGHT, OPTIONAL, "Y", "H", "type"}, {AT(embed_fwd, gamma), WEIGHT, IN, "1", "H"},
		{AT(embed_fwd, beta), WEIGHT, OPTIONAL, "1", "H", "beta"},
		{AT(embed_fwd, epsilon), FIELD_NUMBER, .key = "eps"}, {AT(embed_fwd, sum), ACTIVATIONS, OUT, "T", "H"},
		{AT(embed_fwd, mean), STATISTICS, OUT, "1", "T"}, {AT(embed_fwd, rstd), STATISTICS, OUT, "1", "T"}}},
	{ROW(embed_bwd), "T H V S B longest p position type beta overwrite overwrite_word", NULL, embed_bwd_rule, {
		{AT(embed_bwd, dy), ACTIVATIONS, OUT, "T", "H"}, /* may be used as scratch */
		{AT(embed_bwd, batch), FIELD_BATCH, IN, "T"}, {AT(embed_bwd, dropout), FIELD_DROPOUT, .key = "p"},
		{AT(embed_bwd, overwrite), FIELD_FLAG, .key = "overwrite"},
		{AT(embed_bwd, overwrite_word), FIELD_FLAG, .key = "overwrite_word"},
		{AT(embed_bwd, word), GRADIENT, IN, "V", "H"},
		{AT(embed_bwd, position), GRADIENT, OPTIONAL, "S", "H", "position"},
		{AT(embed_bwd, type), GRADIENT, OPTIONAL, "Y", "H", "type"}, {AT(embed_bwd, gamma), GRADIENT, IN, "1", "H"},
		{AT(embed_bwd, beta), GRADIENT, OPTIONAL, "1", "H", "beta"}, {AT(embed_bwd, sum), ACTIVATIONS, IN, "T", "H"},
		{AT(embed_bwd, mean), STATISTICS, IN, "1", "T"}, {AT(embed_bwd, rstd), STATISTICS, IN, "1", "T"}}},
	{ROW(linear_fwd), "M O I act b", NULL, linear_fwd_rule, {
		{AT(linear_fwd, x), ACTIVATIONS, IN, "M", "I"}, {AT(linear_fwd, w), WEIGHT, IN, "O", "I"},
		{AT(linear_fwd, b), WEIGHT, OPTIONAL, "1", "O", "b"},
		{AT(linear_fwd, activation), FIELD_WORD, .key = "act", .words = activation_names},
		{AT(linear_fwd, y), ACTIVATIONS, OUT, "M", "O"}}},
	{ROW(linear_gelu_fwd), "M O I act b train", NULL, linear_gelu_fwd_rule, {
		{AT(linear_gelu_fwd, x), ACTIVATIONS, IN, "M", "I"}, {AT(linear_gelu_fwd, w), WEIGHT, IN, "O", "I"},
		{AT(linear_gelu_fwd, b), WEIGHT, OPTIONAL, "1", "O", "b"},
		{AT(linear_gelu_fwd, activation), FIELD_WORD, .key = "act", .words = activation_names},
		{AT(linear_gelu_fwd, pre), ACTIVATIONS, OUT | OPTIONAL, "M", "O", "train"},
		{AT(linear_gelu_fwd, y), ACTIVATIONS, OUT, "M", "O"}}},
	{ROW(gated_fwd), "M F act p", NULL, gated_fwd_rule, {
		{AT(gated_fwd, y), ACTIVATIONS, OUT, "M", "F"}, {AT(gated_fwd, batch), FIELD_BATCH, OPTIONAL, "M"},
		{AT(gated_fwd, dropout), FIELD_DROPOUT, .key = "p"},
		{AT(gated_fwd, activation), FIELD_WORD, .key = "act", .words = activation_names},
		{AT(gated_fwd, pre), ACTIVATIONS, IN, "M", "2F"}}},
	{ROW(gated_bwd), "M F act p", NULL, gated_bwd_rule, {
		{AT(gated_bwd, dy), ACTIVATIONS, IN, "M", "F"}, {AT(gated_bwd, batch), FIELD_BATCH, OPTIONAL, "M"},
		{AT(gated_bwd, dropout), FIELD_DROPOUT, .key = "p"},
		{AT(gated_bwd, activation), FIELD_WORD, .key = "act", .words = activation_names},
		{AT(gated_bwd, pre), ACTIVATIONS, IN, "M", "2F"}, {AT(gated_bwd, dpre), ACTIVATIONS, OUT, "M", "2F"}}},
	{ROW(linear_norm_fwd), "M H I w b beta residual p train", NULL, linear_norm_fwd_rule, {
		{AT(linear_norm_fwd, y), ACTIVATIONS, OUT, "M", "H"},
		{AT(linear_norm_fwd, batch), FIELD_BATCH, OPTIONAL, "M"},
		{AT(linear_norm_fwd, dropout), FIELD_DROPOUT, .key = "p"},
		{AT(linear_norm_fwd, x), ACTIVATIONS, IN, "M", "I"},
		{AT(linear_norm_fwd, w), WEIGHT, OPTIONAL, "H", "I", "w"},
		{AT(linear_norm_fwd, b), WEIGHT, OPTIONAL, "1", "H", "b"},
		{AT(linear_norm_fwd, gamma), WEIGHT, IN, "1", "H"},
		{AT(linear_norm_fwd, beta), WEIGHT, OPTIONAL, "1", "H", "beta"},
		{AT(linear_norm_fwd, epsilon), FIELD_NUMBER, .key = "eps"},
		{AT(linear_norm_fwd, residual), ACTIVATIONS, OPTIONAL, "M", "H", "residual"},
		{AT(linear_norm_fwd, sum), ACTIVATIONS, OUT | OPTIONAL, "M", "H", "train"},
		{AT(linear_norm_fwd, mean), STATISTICS, OUT | OPTIONAL, "1", "M"},
		{AT(linear_norm_fwd, rstd), STATISTICS, OUT | OPTIONAL, "1", "M"}}},
	{ROW(norm_bwd), "M H p beta bias pre add dx in_place overwrite",
	 "dresidual dy dresidual add dx dresidual dx dy dx add", norm_bwd_rule, {
		{AT(norm_bwd, dy), ACTIVATIONS, IN, "M", "H"}, {AT(norm_bwd, batch), FIELD_BATCH, OPTIONAL, "M"},
		{AT(norm_bwd, dropout), FIELD_DROPOUT, .key = "p"},
		{AT(norm_bwd, overwrite), FIELD_FLAG, .key = "overwrite"},
		{AT(norm_bwd, gamma), GRADIENT, IN, "1", "H"}, {AT(norm_bwd, beta), GRADIENT, OPTIONAL, "1", "H", "beta"},
		{AT(norm_bwd, bias), GRADIENT, OPTIONAL, "1", "H", "bias"},
		{AT(norm_bwd, sum), ACTIVATIONS, IN, "M", "H"}, {AT(norm_bwd, mean), STATISTICS, IN, "1", "M"},
		{AT(norm_bwd, rstd), STATISTICS, IN, "1", "M"},
		{AT(norm_bwd, pre_activation), FIELD_WORD, .key = "pre", .words = activation_names},
		{AT(norm_bwd, pre), ACTIVATIONS, OPTIONAL, "M", "H"},
		{AT(norm_bwd, add), ACTIVATIONS, OPTIONAL, "M", "H"},
		{AT(norm_bwd, dresidual), ACTIVATIONS, OUT, "M", "H"},
		{AT(norm_bwd, dx), ACTIVATIONS, OUT | OPTIONAL, "M", "H"}}},
	{ROW(linear_bwd), "M O I b producer pre add tanh dx overwrite", "dx add", linear_bwd_rule, {
		{AT(linear_bwd, dy), ACTIVATIONS, IN, "M", "O"}, {AT(linear_bwd, x), ACTIVATIONS, IN, "M", "I"},
		{AT(linear_bwd, overwrite), FIELD_FLAG, .key = "overwrite"},
		{AT(linear_bwd, w), FIELD_WEIGHT, IN, "O", "I"}, {AT(linear_bwd, b), GRADIENT, OPTIONAL, "1", "O", "b"},
		{AT(linear_bwd, producer_bias), GRADIENT, OPTIONAL, "1", "I", "producer"},
		{AT(linear_bwd, pre_activation), FIELD_WORD, .key = "pre", .words = activation_names},
		{AT(linear_bwd, pre), ACTIVATIONS, OPTIONAL, "M", "I"},
		{AT(linear_bwd, add), ACTIVATIONS, OPTIONAL, "M", "I"},
		{AT(linear_bwd, tanh_y), ACTIVATIONS, OPTIONAL, "M", "O", "tanh"},
		{AT(linear_bwd, dx), ACTIVATIONS, OUT | OPTIONAL, "M", "I", "dx"}}},
	{ROW(rotary), "T H heads base back B longest", NULL, rotary_rule, {
		{AT(rotary, qkv), ACTIVATIONS, OUT, "T", "3H"}, {AT(rotary, batch), FIELD_BATCH, IN, "T"},
		{AT(rotary, heads), FIELD_SIZE, IN, "A", .key = "heads"}, {AT(rotary, base), FIELD_NUMBER, .key = "base"},
		{AT(rotary, back), FIELD_FLAG, .key = "back"}}},
	{ROW(attention_fwd), "T H heads window B longest p train", NULL, attention_fwd_rule, {
		{AT(attention_fwd, y), ACTIVATIONS, OUT, "T", "H"}, {AT(attention_fwd, batch), FIELD_BATCH, IN, "T"},
		{AT(attention_fwd, dropout), FIELD_DROPOUT, .key = "p"},
		{AT(attention_fwd, heads), FIELD_SIZE, IN, "A", .key = "heads"},
		{AT(attention_fwd, window), FIELD_SIZE, .key = "window"},
		{AT(attention_fwd, qkv), ACTIVATIONS, IN, "T", "3H"},
		{AT(attention_fwd, lse), STATISTICS, OUT | OPTIONAL, "A", "T", "train"}}},
	{ROW(attention_bwd), "T H heads window B longest p bias overwrite", NULL, attention_bwd_rule, {
		{AT(attention_bwd, dy), ACTIVATIONS, IN, "T", "H"}, {AT(attention_bwd, batch), FIELD_BATCH, IN, "T"},
		{AT(attention_bwd, dropout), FIELD_DROPOUT, .key = "p"},
		{AT(attention_bwd, overwrite), FIELD_FLAG, .key = "overwrite"},
		{AT(attention_bwd, heads), FIELD_SIZE, IN, "A", .key = "heads"},
		{AT(attention_bwd, window), FIELD_SIZE, .key = "window"},
		{AT(attention_bwd, qkv), ACTIVATIONS, IN, "T", "3H"},
		{AT(attention_bwd, bias), GRADIENT, OPTIONAL, "1", "3H", "bias"},
		{AT(attention_bwd, y), ACTIVATIONS, IN, "T", "H"}, {AT(attention_bwd, lse), STATISTICS, IN, "A", "T"},
		{AT(attention_bwd, dqkv), ACTIVATIONS, OUT, "T", "3H"}}},
	{ROW(gather_fwd), "T P H", NULL, gather_fwd_rule, {
		{AT(gather_fwd, count), FIELD_SIZE, IN, "P"}, {AT(gather_fwd, rows), FIELD_INTEGERS, IN, "P", "1"},
		{AT(gather_fwd, x), ACTIVATIONS, IN, "T", "H"}, {AT(gather_fwd, y), ACTIVATIONS, OUT, "P", "H"}}},
	{ROW(gather_bwd), "T P H overwrite rows", NULL, gather_bwd_rule, {
		{AT(gather_bwd, dx), ACTIVATIONS, OUT, "T", "H"}, {AT(gather_bwd, count), FIELD_SIZE, IN, "P"},
		{AT(gather_bwd, rows), FIELD_INTEGERS, OPTIONAL, "P", "1", "rows"},
		{AT(gather_bwd, overwrite), FIELD_FLAG, .key = "overwrite"},
		{AT(gather_bwd, dy), ACTIVATIONS, IN, "P", "H"}}},
	{ROW(pooling_fwd), "T H B longest cls rows", NULL, touches_all, {
		{AT(pooling_fwd, x), ACTIVATIONS, IN, "T", "H"}, {AT(pooling_fwd, batch), FIELD_BATCH, IN, "T"},
		{AT(pooling_fwd, first), FIELD_FLAG, .key = "cls"}, 
		{AT(pooling_fwd, y), STATISTICS, OUT | OPTIONAL, "B", "H"},
		{AT(pooling_fwd, rows), ACTIVATIONS, OUT | OPTIONAL, "B", "H", "rows"}}},
	{ROW(pooling_bwd), "T H B longest cls rows", NULL, touches_all, {
		{AT(pooling_bwd, dx), ACTIVATIONS, OUT, "T", "H"}, {AT(pooling_bwd, batch), FIELD_BATCH, IN, "T"},
		{AT(pooling_bwd, first), FIELD_FLAG, .key = "cls"}, 
		{AT(pooling_bwd, dy), STATISTICS, OPTIONAL, "B", "H"},
		{AT(pooling_bwd, drows), ACTIVATIONS, OPTIONAL, "B", "H", "rows"}}},
	{ROW(vocab_xent), "P V H train overwrite", NULL, vocab_xent_rule, {
		{AT(vocab_xent, x), ACTIVATIONS, IN, "P", "H"}, {AT(vocab_xent, head), FIELD_HEAD},
		{AT(vocab_xent, table), WEIGHT, IN, "V", "H"}, {AT(vocab_xent, bias), WEIGHT, IN, "1", "V"},
		{AT(vocab_xent, labels), FIELD_INTEGERS, IN, "P", "1"},
		{AT(vocab_xent, weights), FIELD_FLOATS, IN, "P", "1"},
		{AT(vocab_xent, training), FIELD_FLAG, .key = "train"},
		{AT(vocab_xent, overwrite), FIELD_FLAG, .key = "overwrite"},
		{AT(vocab_xent, loss), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(vocab_xent, correct), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(vocab_xent, losses), FIELD_DOUBLES, OUT | OPTIONAL, "P", "1"},
		{AT(vocab_xent, dx), ACTIVATIONS, OUT | OPTIONAL, "P", "H"}}},
	{ROW(vocab_topk), "P V H k", NULL, vocab_topk_rule, {
		{AT(vocab_topk, x), ACTIVATIONS, IN, "P", "H"}, {AT(vocab_topk, table), WEIGHT, IN, "V", "H"},
		{AT(vocab_topk, bias), WEIGHT, IN, "1", "V"}, {AT(vocab_topk, k), FIELD_SIZE, IN, "K", .key = "k"},
		{AT(vocab_topk, ids), FIELD_INTEGERS, OUT, "P", "K"},
		{AT(vocab_topk, probabilities), FIELD_DOUBLES, OUT, "P", "K"}}},
	{ROW(vocab_max_fwd), "T V H B longest", NULL, vocab_max_rule, {
		{AT(vocab_max_fwd, x), ACTIVATIONS, IN, "T", "H"}, {AT(vocab_max_fwd, batch), FIELD_BATCH, IN, "T"},
		{AT(vocab_max_fwd, table), WEIGHT, IN, "V", "H"}, {AT(vocab_max_fwd, bias), WEIGHT, IN, "1", "V"},
		{AT(vocab_max_fwd, y), STATISTICS, OUT, "B", "V"},
		{AT(vocab_max_fwd, rows), FIELD_INTEGERS, OUT | OPTIONAL, "B", "V"}}},
	{ROW(vocab_max_bwd), "T V H B longest overwrite", NULL, touches_all, {
		{AT(vocab_max_bwd, x), ACTIVATIONS, IN, "T", "H"}, {AT(vocab_max_bwd, batch), FIELD_BATCH, IN, "T"},
		{AT(vocab_max_bwd, table), GRADIENT, IN, "V", "H"}, {AT(vocab_max_bwd, bias), GRADIENT, IN, "1", "V"},
		{AT(vocab_max_bwd, overwrite), FIELD_FLAG, .key = "overwrite"},
		{AT(vocab_max_bwd, rows), FIELD_INTEGERS, IN, "B", "V"}, {AT(vocab_max_bwd, y), STATISTICS, IN, "B", "V"},
		{AT(vocab_max_bwd, dy), STATISTICS, IN, "B", "V"}, {AT(vocab_max_bwd, dx), ACTIVATIONS, OUT, "T", "H"}}},
	{ROW(xent), "N C train", NULL, touches_all, {
		{AT(xent, head), FIELD_HEAD}, {AT(xent, label_smoothing), FIELD_NUMBER, .key = "smoothing"},
		{AT(xent, logits), ACTIVATIONS, IN, "N", "C"},
		{AT(xent, labels), FIELD_INTEGERS, IN, "N", "1"}, {AT(xent, weights), FIELD_FLOATS, IN, "N", "1"},
		{AT(xent, loss), FIELD_DOUBLES, OUT, "1", "1"}, {AT(xent, correct), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(xent, dlogits), ACTIVATIONS, OUT | OPTIONAL, "N", "C", "train"}}},
	{ROW(squared_error), "N C train", NULL, touches_all, {
		{AT(squared_error, head), FIELD_HEAD}, {AT(squared_error, outputs), ACTIVATIONS, IN, "N", "C"},
		{AT(squared_error, values), FIELD_FLOATS, IN, "N", "C"},
		{AT(squared_error, weights), FIELD_FLOATS, IN, "N", "1"},
		{AT(squared_error, loss), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(squared_error, doutputs), ACTIVATIONS, OUT | OPTIONAL, "N", "C", "train"}}},
	{ROW(binary_xent), "N C train", NULL, touches_all, {
		{AT(binary_xent, head), FIELD_HEAD}, {AT(binary_xent, logits), ACTIVATIONS, IN, "N", "C"},
		{AT(binary_xent, values), FIELD_FLOATS, IN, "N", "C"},
		{AT(binary_xent, weights), FIELD_FLOATS, IN, "N", "1"},
		{AT(binary_xent, positive_weights), FIELD_FLOATS, OPTIONAL, "C", "1"},
		{AT(binary_xent, loss), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(binary_xent, correct), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(binary_xent, dlogits), ACTIVATIONS, OUT | OPTIONAL, "N", "C", "train"}}},
	{ROW(group_xent), "E B train", NULL, touches_all, {
		{AT(group_xent, head), FIELD_HEAD}, {AT(group_xent, count), FIELD_SIZE, IN, "E"},
		{AT(group_xent, logits), ACTIVATIONS, IN, "B", "1"},
		{AT(group_xent, starts), FIELD_INTEGERS, IN, "E", "1"}, /* one more than that */
		{AT(group_xent, labels), FIELD_INTEGERS, IN, "E", "1"},
		{AT(group_xent, weights), FIELD_FLOATS, IN, "E", "1"},
		{AT(group_xent, loss), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(group_xent, correct), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(group_xent, dlogits), ACTIVATIONS, OUT | OPTIONAL, "B", "1", "train"}}},
	{ROW(list_loss), "E B kind train", NULL, touches_all, {
		{AT(list_loss, head), FIELD_HEAD}, {AT(list_loss, kind), FIELD_WORD, .key = "kind", .words = list_names},
		{AT(list_loss, count), FIELD_SIZE, IN, "E"}, {AT(list_loss, logits), ACTIVATIONS, IN, "B", "1"},
		{AT(list_loss, starts), FIELD_INTEGERS, IN, "E", "1"}, /* one more than that */
		{AT(list_loss, targets), FIELD_FLOATS, IN, "B", "1"},
		{AT(list_loss, weights), FIELD_FLOATS, IN, "B", "1"},
		{AT(list_loss, loss), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(list_loss, dlogits), ACTIVATIONS, OUT | OPTIONAL, "B", "1", "train"}}},
	{ROW(segment_xent), "T B longest train", NULL, touches_all, {
		{AT(segment_xent, head), FIELD_HEAD}, {AT(segment_xent, logits), ACTIVATIONS, IN, "T", "2"},
		{AT(segment_xent, batch), FIELD_BATCH, IN, "T"},
		{AT(segment_xent, labels), FIELD_INTEGERS, IN, "B", "2"},
		{AT(segment_xent, weights), FIELD_FLOATS, IN, "B", "1"},
		{AT(segment_xent, loss), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(segment_xent, correct), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(segment_xent, dlogits), ACTIVATIONS, OUT | OPTIONAL, "T", "2", "train"}}},
	{ROW(pointer_xent), "T B longest C K D train", NULL, pointer_xent_rule, {
		{AT(pointer_xent, head), FIELD_HEAD}, {AT(pointer_xent, logits), ACTIVATIONS, IN, "T", "L"},
		{AT(pointer_xent, batch), FIELD_BATCH, IN, "T"}, {AT(pointer_xent, count), FIELD_SIZE, IN, "N"},
		{AT(pointer_xent, classes), FIELD_SIZE, IN, "C"}, {AT(pointer_xent, pointers), FIELD_SIZE, IN, "K"},
		{AT(pointer_xent, rows), FIELD_INTEGERS, IN, "N", "1"},
		{AT(pointer_xent, labels), FIELD_INTEGERS, IN, "N", "1"}, /* and one column more for each pointer */
		{AT(pointer_xent, weights), FIELD_FLOATS, IN, "N", "1"},
		{AT(pointer_xent, loss), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(pointer_xent, correct), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(pointer_xent, lse), STATISTICS, OUT, "K", "N"},
		{AT(pointer_xent, dlogits), ACTIVATIONS, OUT | OPTIONAL, "T", "L", "train"}}},
	{ROW(soft_loss), "M C N kind temperature share", NULL, soft_loss_rule, {
		{AT(soft_loss, head), FIELD_HEAD},
		{AT(soft_loss, kind), FIELD_WORD, .key = "kind", .words = soft_names},
		{AT(soft_loss, count), FIELD_SIZE, IN, "N"},
		{AT(soft_loss, starts), FIELD_INTEGERS, OPTIONAL, "N", "1"}, /* one more than that */
		{AT(soft_loss, weights), FIELD_FLOATS, IN, "N", "1"},
		{AT(soft_loss, temperature), FIELD_NUMBER, .key = "temperature"},
		{AT(soft_loss, share), FIELD_NUMBER, .key = "share"},
		{AT(soft_loss, loss), FIELD_DOUBLES, OUT, "1", "1"}, {AT(soft_loss, logits), ACTIVATIONS, IN, "M", "C"},
		{AT(soft_loss, teacher), ACTIVATIONS, IN, "M", "C"},
		{AT(soft_loss, dlogits), ACTIVATIONS, OUT, "M", "C"}}},
	{ROW(hidden_error), "T H factor", "dx x", touches_all, {
		{AT(hidden_error, x), ACTIVATIONS, IN, "T", "H"}, {AT(hidden_error, batch), FIELD_BATCH, IN, "T"},
		{AT(hidden_error, factor), FIELD_NUMBER, .key = "factor"},
		{AT(hidden_error, loss), FIELD_DOUBLES, OUT, "1", "1"},
		{AT(hidden_error, target), ACTIVATIONS, IN, "T", "H"},
		{AT(hidden_error, dx), ACTIVATIONS, OUT, "T", "H"}}},
	{ROW(row_dropout), "N H T p rows", "y x", row_dropout_rule, {
		{AT(row_dropout, x), ACTIVATIONS, IN, "N", "H"}, {AT(row_dropout, batch), FIELD_BATCH, IN, "T"},
		{AT(row_dropout, rows), FIELD_INTEGERS, OPTIONAL, "N", "1", "rows"},
		{AT(row_dropout, dropout), FIELD_DROPOUT, .key = "p"},
		{AT(row_dropout, y), ACTIVATIONS, OUT, "N", "H"}}},
	{ROW(sumsq_finite), "n add sums decides", NULL, touches_all, {
		{AT(sumsq_finite, range), STATISTICS, IN, "1", "n"}, {AT(sumsq_finite, add), FIELD_FLAG, .key = "add"},
		{AT(sumsq_finite, sums), FIELD_POINTER, OPTIONAL, .key = "sums"},
		{AT(sumsq_finite, decides), FIELD_FLAG, .key = "decides"}}},
	{ROW(adamw), "n ranges", NULL, adamw_rule, {
		{AT(adamw, epsilon), FIELD_NUMBER}, {AT(adamw, range_count), FIELD_LONG_SIZE, .key = "ranges"},
		{AT(adamw, w), STATISTICS, OUT, "1", "n"}, {AT(adamw, m), STATISTICS, OUT, "1", "n"},
		{AT(adamw, v), STATISTICS, OUT, "1", "n"}, {AT(adamw, g), STATISTICS, IN, "1", "n"},
		{AT(adamw, copy), ACTIVATIONS, OUT | OPTIONAL, "1", "n"}}},
	{ROW(lamb_norms), "n tensors normalize", NULL, lamb_norms_rule, {
		{AT(lamb_norms, normalize), FIELD_FLAG, .key = "normalize"},
		{AT(lamb_norms, tensor_count), FIELD_LONG_SIZE, IN, "K", .key = "tensors"},
		{AT(lamb_norms, w), STATISTICS, IN, "1", "n"}, {AT(lamb_norms, m), STATISTICS, OUT, "1", "n"},
		{AT(lamb_norms, v), STATISTICS, OUT, "1", "n"}, {AT(lamb_norms, g), STATISTICS, IN, "1", "n"},
		{AT(lamb_norms, norms), FIELD_DOUBLES, OUT, "K", "2"}}},
	{ROW(lamb_apply), "n tensors max_trust", NULL, lamb_apply_rule, {
		{AT(lamb_apply, max_trust_ratio), FIELD_NUMBER, .key = "max_trust"},
		{AT(lamb_apply, tensor_count), FIELD_LONG_SIZE, IN, "K", .key = "tensors"},
		{AT(lamb_apply, w), STATISTICS, OUT, "1", "n"}, {AT(lamb_apply, m), STATISTICS, IN, "1", "n"},
		{AT(lamb_apply, v), STATISTICS, IN, "1", "n"}, {AT(lamb_apply, norms), FIELD_DOUBLES, IN, "K", "2"},
		{AT(lamb_apply, copy), ACTIVATIONS, OUT | OPTIONAL, "1", "n"}}},
};
/* clang-format on */
