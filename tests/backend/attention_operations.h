/* The arrays and objectives of rotary positions, attention, and the gated feed-forward part: a piece of operations.h. */
#ifndef TESTS_BACKEND_ATTENTION_OPERATIONS_H
#define TESTS_BACKEND_ATTENTION_OPERATIONS_H

/* ---- gated feed-forward ---- */

static inline void declare_gated(struct test_case *c)
{
	int64_t rows = case_integer(c, "M", 8), width = case_integer(c, "F", 8);
	if (case_number(c, "p", 0) > 0)
		make_batch(c, rows, 50);
	add_input(c, "pre", rows, 2 * width, 1);
}

static void declare_gated_fwd(struct test_case *c)
{
	declare_gated(c);
	add_output(c, "y", ACTIVATION, case_integer(c, "M", 8), case_integer(c, "F", 8), PRODUCT);
}

static void declare_gated_bwd(struct test_case *c)
{
	int64_t rows = case_integer(c, "M", 8), width = case_integer(c, "F", 8);
	declare_gated(c);
	add_input(c, "dy", rows, width, 1);
	add_output(c, "dpre", ACTIVATION, rows, 2 * width, PRODUCT);
}

static double objective_gated_bwd(struct test_case *c, struct replica *ref)
{
	struct tensor dy = host_tensor(c, "dy"), y = temporary_tensor(dy.rows, dy.columns);
	gated_fwd(ref, &(struct gated_fwd){.batch = c->has_batch ? &c->batch : NULL,
					   .activation = case_activation(c, "act"),
					   .dropout = c->dropout,
					   .pre = displaced(c, "pre", "dpre"),
					   .y = y});
	return inner_product(&dy, &y);
}

/* ---- attention ---- */

static void declare_rotary(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 8), width = case_integer(c, "H", 8);
	make_batch(c, tokens, 50);
	add_input(c, "qkv", tokens, 3 * width, 1)->role = UPDATED;
	get_array(c, "qkv")->class = PRODUCT;
}

static void declare_attention_fwd(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 8), width = case_integer(c, "H", 8);
	make_batch(c, tokens, 50);
	add_input(c, "qkv", tokens, 3 * width, 1);
	add_output(c, "y", ACTIVATION, tokens, width, ATTENTION);
	if (case_integer(c, "train", 1))
		add_output(c, "lse", MASTER, case_integer(c, "heads", 1), tokens, LOSS);
}

static void declare_attention_bwd(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 8), width = case_integer(c, "H", 8);
	make_batch(c, tokens, 50);
	add_input(c, "qkv", tokens, 3 * width, 1);
	if (case_integer(c, "bias", 0)) {
		add_weight(c, "bias", WEIGHT_VECTOR, 1, 3 * width, 0, 1);
		add_gradient(c, "bias", case_integer(c, "overwrite", 1), 1, ATTENTION_GRADIENT);
	}
	add_input(c, "dy", tokens, width, 1);
	add_input(c, "y", tokens, width, 1);
	add_array(c, "lse", INPUT, MASTER, case_integer(c, "heads", 1), tokens);
	add_output(c, "dqkv", ACTIVATION, tokens, 3 * width, ATTENTION_GRADIENT);
}

static void derive_attention_bwd(struct test_case *c, struct replica *ref)
{
	attention_fwd(ref, &(struct attention_fwd){.batch = &c->batch,
						   .heads = (int32_t)case_integer(c, "heads", 1),
						   .window = (int32_t)case_integer(c, "window", 0),
						   .dropout = c->dropout,
						   .qkv = host_tensor(c, "qkv"),
						   .y = host_tensor(c, "y"),
						   .lse = host_tensor(c, "lse")});
}

/* sum(dy attention(qkv + bias)) */
static double objective_attention_bwd(struct test_case *c, struct replica *ref)
{
	struct tensor dy = host_tensor(c, "dy"), qkv = displaced(c, "qkv", "dqkv");
	for (int64_t i = 0; find_array(c, "bias") >= 0 && i < qkv.rows * qkv.columns; i++)
		((double *)qkv.data)[i] += get_array(c, "bias.gradient")->value[i % qkv.columns];
	struct tensor y = temporary_tensor(dy.rows, dy.columns);
	attention_fwd(ref, &(struct attention_fwd){.batch = &c->batch,
						   .heads = (int32_t)case_integer(c, "heads", 1),
						   .window = (int32_t)case_integer(c, "window", 0),
						   .dropout = c->dropout,
						   .qkv = qkv,
						   .y = y});
	return inner_product(&dy, &y);
}

#endif
