/* Losses over the vectors of a step, and the measures of embeddings, compared with sentence-transformers
 * (dev/contrastive_golden.py). */
#include <math.h>
#include <stdlib.h>
#include "base/json.h"
#include "base/memory.h"
#include "tasks/embedding.h"
#include "test.h"

static struct json_document golden;

static int setup(void **state)
{
	return json_read(&golden, "tests/golden/contrastive.json", 1 << 24) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	json_release(&golden);
	return 0;
}

static double number(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	assert_non_null(member);
	return member->number;
}

/* Reads a list of numbers; the caller frees it. */
static double *list(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	double *out;
	int64_t i = 0;
	assert_non_null(member);
	assert_ok(memory_new(&out, member->child_count, sizeof *out, key));
	for (const struct json *item = member->first_child; item; item = item->next)
		out[i++] = item->number;
	return out;
}

struct golden_step {
	struct contrastive_step step;
	struct nested_widths nested;
	int64_t *starts, *mark_starts;
	float *vectors, *scores, *marks, *targets, *guides;
	int64_t *guide_starts;
	uint64_t *texts;
};

/* The same as floats; NULL if there is no such list. */
static float *floats(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	double *values = member ? list(object, key) : NULL;
	float *out = NULL;
	if (member)
		assert_ok(memory_new(&out, member->child_count, sizeof *out, key));
	for (int64_t i = 0; member && i < member->child_count; i++)
		out[i] = (float)values[i];
	free(values);
	return out;
}

static void read_nested(const struct json *row, struct nested_widths *out)
{
	if (!json_member(row, "widths"))
		return;
	double *widths = list(row, "widths"), *weights = list(row, "weights");
	out->count = json_member(row, "widths")->child_count;
	for (int64_t i = 0; i < out->count; i++) {
		out->widths[i] = (int64_t)widths[i];
		out->weights[i] = weights[i];
	}
	free(widths);
	free(weights);
}

static struct golden_step open_step(const struct json *row)
{
	struct golden_step s = {.starts = NULL};
	int64_t examples = json_member(row, "starts")->child_count - 1, width = json_member(row, "width")->integer;
	double *starts = list(row, "starts"), *vectors = list(row, "vectors"), *scores = list(row, "scores"),
	       *texts = list(row, "texts");
	int64_t count = (int64_t)starts[examples];
	assert_ok(memory_new(&s.starts, examples + 1, sizeof *s.starts, "starts"));
	assert_ok(memory_new(&s.vectors, count * width, sizeof *s.vectors, "vectors"));
	assert_ok(memory_new(&s.scores, examples, sizeof *s.scores, "scores"));
	assert_ok(memory_new(&s.texts, count, sizeof *s.texts, "texts"));
	for (int64_t i = 0; i <= examples; i++)
		s.starts[i] = (int64_t)starts[i];
	for (int64_t i = 0; i < count * width; i++)
		s.vectors[i] = (float)vectors[i];
	for (int64_t i = 0; i < examples; i++)
		s.scores[i] = (float)scores[i];
	for (int64_t i = 0; i < count; i++)
		s.texts[i] = (uint64_t)texts[i];
	s.step = (struct contrastive_step){.example_count = examples,
					   .count = count,
					   .width = width,
					   .starts = s.starts,
					   .vectors = s.vectors,
					   .texts = s.texts,
					   .scores = s.scores};
	read_nested(row, &s.nested);
	s.marks = floats(row, "marks");
	s.targets = floats(row, "targets");
	s.guides = floats(row, "guides");
	assert_ok(memory_new(&s.mark_starts, examples, sizeof *s.mark_starts, "marks"));
	for (int64_t e = 0; e < examples; e++)
		s.mark_starts[e] = s.starts[e] - e; /* one score fewer than there are texts */
	assert_ok(memory_new(&s.guide_starts, examples, sizeof *s.guide_starts, "guides"));
	for (int64_t e = 0; e < examples; e++)
		s.guide_starts[e] = s.starts[e];
	s.step.guides = s.guides;
	s.step.guide_starts = s.guide_starts;
	s.step.guide_width = s.guides ? (int64_t)number(row, "guide_width") : 0;
	s.step.by_dot = json_member(row, "flops") != NULL;
	s.step.has_gap = json_member(row, "gap") != NULL;
	s.step.gap = s.step.has_gap ? number(row, "gap") : 0;
	s.step.marks = s.marks;
	s.step.mark_starts = s.mark_starts;
	s.step.targets = s.targets;
	free(starts);
	free(vectors);
	free(scores);
	free(texts);
	return s;
}

static void close_step(struct golden_step *s)
{
	free(s->starts);
	free(s->mark_starts);
	free(s->marks);
	free(s->targets);
	free(s->guides);
	free(s->guide_starts);
	free(s->vectors);
	free(s->scores);
	free(s->texts);
}

static enum contrastive_kind kind_of(const struct json *row)
{
	const char *name = json_member(row, "kind")->text;
	return strcmp(name, "cosent") == 0   ? CONTRASTIVE_COSENT
	       : strcmp(name, "cosine") == 0 ? CONTRASTIVE_COSINE
	       : strcmp(name, "margin") == 0 ? CONTRASTIVE_MARGIN
	       : strcmp(name, "target") == 0 ? CONTRASTIVE_TARGET
					     : CONTRASTIVE_IN_BATCH;
}

/* Vectors are float32, and so are sums of products of unit vectors: an error of about 1e-7, times 1 / temperature. */
static void losses_are_those_of_sentence_transformers(void **state)
{
	struct contrastive_scratch scratch = {0};
	for (const struct json *row = json_member(golden.root, "steps")->first_child; row; row = row->next) {
		struct golden_step s = open_step(row);
		double *expected = list(row, "gradients"), temperature = number(row, "temperature"), loss, alone;
		double squares = 0, off = 0;
		int64_t count = s.step.count * s.step.width;
		float *gradients;
		assert_ok(memory_new(&gradients, count, sizeof *gradients, "gradients"));
		assert_ok(
			contrastive_nested_loss(kind_of(row), temperature, &s.nested, &s.step, NULL, &scratch, &loss, gradients));
		if (s.step.by_dot) {
			double *factors = list(row, "flops");
			assert_ok(contrastive_flops(&s.step, factors[0], factors[1], &scratch, &loss, gradients));
			free(factors);
		}
		assert_near(loss, number(row, "loss"), 1e-5);
		for (int64_t i = 0; i < count; i++) {
			squares += expected[i] * expected[i];
			off += (gradients[i] - expected[i]) * (gradients[i] - expected[i]);
		}
		assert_true(squares > 0 && sqrt(off / squares) < 1e-5);
		assert_ok(contrastive_nested_loss(kind_of(row), temperature, &s.nested, &s.step, NULL, &scratch, &alone, NULL));
		assert_true(s.step.by_dot || alone == loss);
		free(gradients);
		free(expected);
		close_step(&s);
	}
	contrastive_scratch_release(&scratch);
}

/* Any number of threads gives the same bits. */
static void threads_change_nothing(void **state)
{
	struct pool *pool;
	assert_ok(pool_create(&pool, 3));
	for (const struct json *row = json_member(golden.root, "steps")->first_child; row; row = row->next) {
		struct contrastive_scratch scratch = {0};
		struct golden_step s = open_step(row);
		size_t bytes = (size_t)(s.step.count * s.step.width) * sizeof(float);
		float *one, *three;
		double loss[2], temperature = s.step.by_dot ? 1 : 0.05;
		assert_ok(memory_new(&one, (int64_t)bytes, 1, "gradients"));
		assert_ok(memory_new(&three, (int64_t)bytes, 1, "gradients"));
		assert_ok(contrastive_loss(kind_of(row), temperature, &s.step, NULL, &scratch, &loss[0], one));
		assert_ok(contrastive_loss(kind_of(row), temperature, &s.step, pool, &scratch, &loss[1], three));
		assert_true(loss[0] == loss[1]);
		assert_memory_equal(one, three, bytes);
		free(one);
		free(three);
		close_step(&s);
		contrastive_scratch_release(&scratch);
	}
	pool_free(pool);
}

/* Two anchors with the same positive: neither is pushed away from it. */
static void equal_texts_are_no_negatives(void **state)
{
	const float vectors[] = {1, 0, 0.5F, 0.5F, 0, 1, 0.5F, 0.5F};
	const int64_t starts[] = {0, 2, 4};
	const uint64_t texts[] = {1, 9, 2, 9}, others[] = {1, 8, 2, 9};
	struct contrastive_step step = {
		.example_count = 2, .count = 4, .width = 2, .starts = starts, .vectors = vectors, .texts = texts};
	struct contrastive_scratch scratch = {0};
	double loss;
	assert_ok(contrastive_loss(CONTRASTIVE_IN_BATCH, 0.05, &step, NULL, &scratch, &loss, NULL));
	assert_near(loss, 0.0, 1e-12);
	step.texts = others;
	assert_ok(contrastive_loss(CONTRASTIVE_IN_BATCH, 0.05, &step, NULL, &scratch, &loss, NULL));
	assert_near(loss, log(2), 1e-6);
	contrastive_scratch_release(&scratch);
}

/* A NaN stays a NaN, and is not taken for a good loss. */
static void nan_is_kept(void **state)
{
	float vectors[8] = {1, 0, 0.5F, 0.5F, 0, 1, 0.5F, NAN}, gradients[8];
	const int64_t starts[] = {0, 2, 4};
	const uint64_t texts[] = {1, 2, 3, 4};
	const float scores[] = {0, 1};
	struct contrastive_step step = {.example_count = 2,
					.count = 4,
					.width = 2,
					.starts = starts,
					.vectors = vectors,
					.texts = texts,
					.scores = scores};
	struct contrastive_scratch scratch = {0};
	for (enum contrastive_kind kind = CONTRASTIVE_IN_BATCH; kind <= CONTRASTIVE_COSINE; kind++) {
		double loss;
		assert_ok(contrastive_loss(kind, 0.05, &step, NULL, &scratch, &loss, gradients));
		assert_true(isnan(loss));
	}
	contrastive_scratch_release(&scratch);
}

/* ---- Measures ---- */

/* A set whose texts are numbers, with the vectors as outputs. */
struct measured {
	struct task_set set;
	struct task_outputs outputs;
	struct measures out;
};

static void measure(const struct golden_step *s, bool scored, int32_t texts_each, struct measured *m)
{
	struct embedding_settings own = {.temperature = 0};
	struct task_state state = {.task = &task_embedding, .own = &own, .settings = {.hidden_size = (int32_t)s->step.width}};
	struct model_heads heads;
	*m = (struct measured){.out = {.count = 0}};
	labeled_form(&m->set.encoded, 0, 1, 0, true);
	for (int64_t e = 0; e < s->step.example_count; e++) {
		assert_ok(labeled_begin(&m->set.encoded));
		for (int64_t t = s->starts[e]; t < s->starts[e + 1]; t++)
			assert_ok(labeled_sequence(&m->set.encoded, &(int32_t){(int32_t)s->texts[t]}, 1, 1));
		assert_ok(labeled_item(&m->set.encoded, 0, NULL, NULL, &s->scores[e], 1));
	}
	assert_ok(embedding_set_form(&m->set, scored ? RANKING_SCORED : texts_each > 2 ? RANKING_TRIPLETS : RANKING_PAIRS));
	state.task->heads(&state, &heads);
	assert_ok(task_outputs_create(&m->outputs, &m->set.encoded, &heads.head[0]));
	memcpy(m->outputs.values, s->vectors, (size_t)(s->step.count * s->step.width) * sizeof(float));
	assert_ok(state.task->score(&state, &m->set, &m->outputs, &m->out));
	task_outputs_release(&m->outputs);
	task_set_release(&state, &m->set);
}

static void measures_are_those_of_the_evaluators(void **state)
{
	for (const struct json *row = json_member(golden.root, "sets")->first_child; row; row = row->next) {
		struct golden_step s = open_step(row);
		int32_t texts_each = (int32_t)(s.starts[1] - s.starts[0]);
		struct measured m;
		measure(&s, false, texts_each, &m);
		assert_near(measures_get(&m.out, "ndcg@10"), number(row, "ndcg"), 1e-9);
		assert_near(measures_get(&m.out, "mrr@10"), number(row, "mrr"), 1e-9);
		if (texts_each > 2)
			assert_near(measures_get(&m.out, "accuracy"), number(row, "accuracy"), 1e-9);
		if (texts_each == 2) {
			measure(&s, true, texts_each, &m);
			assert_near(measures_get(&m.out, "spearmanr"), number(row, "spearmanr"), 1e-9);
			assert_near(measures_get(&m.out, "pearson"), number(row, "pearson"), 1e-9);
			assert_null(measures_find(&m.out, "ndcg@10"));
		}
		close_step(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_are_those_of_sentence_transformers),
		cmocka_unit_test(threads_change_nothing),
		cmocka_unit_test(equal_texts_are_no_negatives),
		cmocka_unit_test(nan_is_kept),
		cmocka_unit_test(measures_are_those_of_the_evaluators),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
