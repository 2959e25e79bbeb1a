/* The arrays and objectives of the output layer over the vocabulary: a piece of operations.h. */
#ifndef TESTS_BACKEND_VOCABULARY_OPERATIONS_H
#define TESTS_BACKEND_VOCABULARY_OPERATIONS_H

/* ---- vocabulary ---- */

/* ties=1: every second word is a copy of the preceding word. */
static inline void declare_vocabulary(struct test_case *c)
{
	int64_t rows = case_integer(c, "P", 3), vocab = case_integer(c, "V", 50), width = case_integer(c, "H", 8);
	struct array *x = add_input(c, "x", rows, width, 1);
	struct array *table = add_weight(c, "table", WEIGHT_TIED, vocab, width, 0, 2 / sqrt((double)width));
	struct array *bias = add_weight(c, "bias", WEIGHT_VECTOR, 1, vocab, 0, 0.5);
	for (int64_t v = 1; case_integer(c, "ties", 0) && v < vocab; v += 2) {
		memcpy(table->value + v * width, table->value + (v - 1) * width, (size_t)width * sizeof(double));
		bias->value[v] = bias->value[v - 1];
	}
	/* A few rows predict well, so that some are correct and probabilities near 1 occur. */
	struct rng rng = array_rng(c, "hits");
	for (int64_t i = 0; i < rows; i += 3) {
		int64_t word = rng_below(&rng, (uint32_t)vocab);
		for (int64_t j = 0; j < width; j++)
			x->value[i * width + j] += table->value[word * width + j];
	}
}

/* Every `unlabeled`-th row has no label (0: all rows have one). */
static inline struct array *declare_labels(struct test_case *c, int64_t rows, int64_t classes, int64_t unlabeled)
{
	struct array *labels = add_array(c, "labels", INPUT, INTEGER, 1, rows);
	struct rng rng = array_rng(c, "labels");
	for (int64_t i = 0; i < rows; i++)
		labels->value[i] =
			unlabeled > 0 && i % unlabeled == unlabeled - 1 ? -1.0 : (double)rng_below(&rng, (uint32_t)classes);
	return labels;
}

static void declare_vocab_xent(struct test_case *c)
{
	int64_t rows = case_integer(c, "P", 3), vocab = case_integer(c, "V", 50), width = case_integer(c, "H", 8);
	declare_vocabulary(c);
	struct array *labels = declare_labels(c, rows, vocab, 0);
	struct array *weights = add_array(c, "weights", INPUT, FLOAT, 1, rows);
	for (int64_t i = 0; i < rows; i++) {
		weights->value[i] = i % 5 == 1 ? 0 : i % 5 == 2 ? 0.5 : 1;
		if (i % 4 != 0)
			continue;
		/* Every fourth row is labeled with its best word, so that `correct` counts something. */
		const double *x = get_array(c, "x")->value + i * width;
		double best = -INFINITY;
		for (int64_t v = 0; v < vocab; v++) {
			const double *word = get_array(c, "table")->value + v * width;
			double logit = get_array(c, "bias")->value[v];
			for (int64_t j = 0; j < width; j++)
				logit += x[j] * word[j];
			if (logit > best) {
				best = logit;
				labels->value[i] = (double)v;
			}
		}
	}
	add_sum(c, "loss", LOSS);
	add_sum(c, "correct", EXACT);
	add_output(c, "losses", DOUBLE, 1, rows, LOSS);
	if (case_integer(c, "train", 1)) {
		add_gradient(c, "table", case_integer(c, "overwrite", 1), 0.1, GRADIENT);
		add_gradient(c, "bias", case_integer(c, "overwrite", 1), 0.1, GRADIENT);
		add_output(c, "dx", ACTIVATION, rows, width, SOFTMAX);
	}
}

static void declare_vocab_topk(struct test_case *c)
{
	int64_t rows = case_integer(c, "P", 3), k = case_integer(c, "k", 5);
	declare_vocabulary(c);
	add_output(c, "ids", INTEGER, rows, k, EXACT);
	add_output(c, "probabilities", DOUBLE, rows, k, LOSS);
}

static inline void declare_vocab_max(struct test_case *c)
{
	int64_t tokens = case_integer(c, "T", 12), vocab = case_integer(c, "V", 50), width = case_integer(c, "H", 8);
	make_batch(c, tokens, 50);
	add_input(c, "x", tokens, width, 1);
	add_weight(c, "table", WEIGHT_TIED, vocab, width, 0, case_number(c, "scale", 1) / sqrt((double)width));
	add_weight(c, "bias", WEIGHT_VECTOR, 1, vocab, -0.5, 0.5);
}

static void declare_vocab_max_fwd(struct test_case *c)
{
	declare_vocab_max(c);
	add_output(c, "y", MASTER, c->batch.sequence_count, case_integer(c, "V", 50), NORM);
	if (case_integer(c, "rows", 0))
		add_output(c, "rows", INTEGER, c->batch.sequence_count, case_integer(c, "V", 50), EXACT);
}

static void declare_vocab_max_bwd(struct test_case *c)
{
	declare_vocab_max(c);
	int64_t sequences = c->batch.sequence_count, vocab = case_integer(c, "V", 50);
	struct array *dy = add_array(c, "dy", INPUT, MASTER, sequences, vocab);
	fill_normal(c, dy, 0, 1);
	add_array(c, "y", INPUT, MASTER, sequences, vocab);
	add_array(c, "rows", INPUT, INTEGER, sequences, vocab);
	add_gradient(c, "table", case_integer(c, "overwrite", 1), 0.1, GRADIENT);
	add_gradient(c, "bias", case_integer(c, "overwrite", 1), 0.1, GRADIENT);
	add_output(c, "dx", ACTIVATION, case_integer(c, "T", 12), case_integer(c, "H", 8), PRODUCT);
}

static void derive_vocab_max_bwd(struct test_case *c, struct replica *ref)
{
	struct array *rows = get_array(c, "rows");
	int32_t *found = new_integers(array_size(rows));
	struct weight table = {.master = host_tensor(c, "table")}, bias = {.master = host_tensor(c, "bias")};
	vocab_max_fwd(ref, &(struct vocab_max_fwd){.batch = &c->batch,
						   .table = &table,
						   .bias = &bias,
						   .x = host_tensor(c, "x"),
						   .y = host_tensor(c, "y"),
						   .rows = found});
	for (int64_t i = 0; i < array_size(rows); i++)
		rows->value[i] = found[i];
	free(found);
}

static double objective_vocab_max_bwd(struct test_case *c, struct replica *ref)
{
	struct weight table = displaced_weight(c, "table"), bias = displaced_weight(c, "bias");
	struct tensor dy = host_tensor(c, "dy"), y = temporary_tensor(dy.rows, dy.columns);
	vocab_max_fwd(ref, &(struct vocab_max_fwd){
				   .batch = &c->batch, .table = &table, .bias = &bias, .x = displaced(c, "x", "dx"), .y = y});
	return inner_product(&dy, &y) * c->scalars.loss_scale;
}

#endif
