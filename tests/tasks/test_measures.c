/* Scores against those of scikit-learn, seqeval, and other programs (tests/golden/measures.json). */
#include "base/json.h"
#include "base/memory.h"
#include "tasks/measures.h"
#include "test.h"
#include <math.h>

/* Another, larger file of the same format can be named in the environment. */
static const char *golden_path(void)
{
	const char *named = getenv("MEASURES_GOLDEN");
	return named ? named : "tests/golden/measures.json";
}

/* An array member as numbers; the caller frees them. */
static double *numbers_of(const struct json *row, const char *key, int64_t *out_count)
{
	const struct json *array = json_member(row, key);
	double *out;
	assert_non_null(array);
	assert_ok(memory_new(&out, array->child_count, sizeof *out, key));
	*out_count = 0;
	for (const struct json *child = array->first_child; child; child = child->next)
		out[(*out_count)++] = child->number;
	return out;
}

static int32_t *integers_of(const struct json *row, const char *key, int64_t *out_count)
{
	double *numbers = numbers_of(row, key, out_count);
	int32_t *out;
	assert_ok(memory_new(&out, *out_count, sizeof *out, key));
	for (int64_t i = 0; i < *out_count; i++)
		out[i] = (int32_t)numbers[i];
	free(numbers);
	return out;
}

static uint8_t *bits_of(const struct json *row, const char *key, int64_t *out_count)
{
	double *numbers = numbers_of(row, key, out_count);
	uint8_t *out;
	assert_ok(memory_new(&out, *out_count, sizeof *out, key));
	for (int64_t i = 0; i < *out_count; i++)
		out[i] = (uint8_t)numbers[i];
	free(numbers);
	return out;
}

static const char **strings_of(const struct json *row, const char *key, int64_t *out_count)
{
	const struct json *array = json_member(row, key);
	const char **out;
	assert_non_null(array);
	assert_ok(memory_new(&out, array->child_count, sizeof *out, key));
	*out_count = 0;
	for (const struct json *child = array->first_child; child; child = child->next)
		out[(*out_count)++] = child->text;
	return out;
}

static int64_t integer_of(const struct json *row, const char *key)
{
	const struct json *member = json_member(row, key);
	assert_non_null(member);
	return member->integer;
}

/* The starts of groups, from their lengths. */
static int64_t *starts_of(const struct json *row, const char *key, int64_t *out_groups)
{
	double *lengths = numbers_of(row, key, out_groups);
	int64_t *starts;
	assert_ok(memory_new(&starts, *out_groups + 1, sizeof *starts, key));
	for (int64_t i = 0; i < *out_groups; i++)
		starts[i + 1] = starts[i] + (int64_t)lengths[i];
	free(lengths);
	return starts;
}

static void expect_near(const char *name, double got, double expected, int64_t number)
{
	bool equal = isnan(expected) ? isnan(got) : fabs(got - expected) <= 1e-9 * fmax(1, fabs(expected));
	if (!equal)
		fail_msg("case %lld: %s is %.17g, expected %.17g", (long long)number, name, got, expected);
}

/* Every expected measure is there and equal; none is listed twice. */
static void expect_measures(const struct json *row, const struct measures *measures, int64_t number)
{
	const struct json *expected = json_member(row, "expected");
	assert_int_equal(measures->count, expected->child_count);
	for (const struct json *child = expected->first_child; child; child = child->next) {
		const struct measure *measure = measures_find(measures, child->key);
		if (!measure)
			fail_msg("case %lld: no measure '%s'", (long long)number, child->key);
		else
			expect_near(child->key, measure->value, child->kind == JSON_NULL ? NAN : child->number, number);
	}
}

/* Precision, recall, F1 and support as listed by scikit-learn and seqeval. */
static void expect_score(const struct json *row, const struct class_score *score, int64_t number)
{
	const double got[] = {score->precision, score->recall, score->f1, (double)score->support};
	static const char *const names[] = {"precision", "recall", "f1", "support"};
	const struct json *child = row->first_child;
	for (int i = 0; i < 4; i++, child = child->next)
		expect_near(names[i], got[i], child->number, number);
}

static void check_classes(const struct json *row, int64_t number)
{
	struct confusion confusion;
	struct measures measures = {0};
	int64_t count, cells;
	int32_t classes = (int32_t)integer_of(row, "classes");
	int32_t *gold = integers_of(row, "gold", &count), *predicted = integers_of(row, "predicted", &count);
	double *table = numbers_of(row, "confusion", &cells);
	assert_ok(confusion_make(&confusion, classes, gold, predicted, count));
	for (int64_t i = 0; i < cells; i++)
		assert_int_equal(confusion.counts[i], (int64_t)table[i]);
	measure_classes(&confusion, (int32_t)integer_of(row, "negative"), &measures);
	expect_measures(row, &measures, number);
	const struct json *of_class = json_member(row, "per_class")->first_child;
	for (int32_t i = 0; i < classes; i++, of_class = of_class->next) {
		struct class_score score = confusion_class(&confusion, i);
		expect_score(of_class, &score, number);
	}
	confusion_release(&confusion);
	free(gold);
	free(predicted);
	free(table);
}

static void check_auc(const struct json *row, int64_t number)
{
	struct measures measures = {0};
	int64_t count;
	int32_t *gold = integers_of(row, "gold", &count);
	double *scores = numbers_of(row, "scores", &count);
	assert_ok(measure_auc(scores, gold, count, &measures));
	expect_measures(row, &measures, number);
	free(gold);
	free(scores);
}

static void check_values(const struct json *row, int64_t number)
{
	struct measures measures = {0};
	int64_t count;
	double *gold = numbers_of(row, "gold", &count), *predicted = numbers_of(row, "predicted", &count);
	assert_ok(measure_values(gold, predicted, count, &measures));
	expect_measures(row, &measures, number);
	free(gold);
	free(predicted);
}

static void check_multilabel(const struct json *row, int64_t number)
{
	struct measures measures = {0};
	struct class_score scores[16];
	int64_t count;
	int32_t labels = (int32_t)integer_of(row, "labels");
	uint8_t *gold = bits_of(row, "gold", &count), *predicted = bits_of(row, "predicted", &count);
	assert_ok(measure_multilabel(gold, predicted, count / labels, labels, number % 2 ? scores : NULL, &measures));
	expect_measures(row, &measures, number);
	const struct json *of_label = json_member(row, "per_class")->first_child;
	for (int32_t i = 0; number % 2 && i < labels; i++, of_label = of_label->next)
		expect_score(of_label, &scores[i], number);
	free(gold);
	free(predicted);
}

static void check_entities(const struct json *row, int64_t number)
{
	struct measures measures = {0};
	struct class_scores scores;
	struct tagged tagged;
	int64_t words, tags;
	int32_t *gold = integers_of(row, "gold", &words), *predicted = integers_of(row, "predicted", &words);
	const char **names = strings_of(row, "names", &tags);
	int64_t *starts = starts_of(row, "lengths", &tagged.sentences);
	tagged.gold = gold;
	tagged.predicted = predicted;
	tagged.names = names;
	tagged.starts = starts;
	tagged.tags = (int32_t)tags;
	assert_ok(measure_entities(&tagged, &scores, &measures));
	expect_measures(row, &measures, number);
	const struct json *types = json_member(row, "types");
	assert_int_equal(scores.count, types->child_count);
	for (int32_t i = 0; i < scores.count; i++) {
		const struct json *type = json_member(types, scores.names[i]);
		if (!type)
			fail_msg("case %lld: type '%s'", (long long)number, scores.names[i]);
		else
			expect_score(type, &scores.scores[i], number);
	}
	class_scores_release(&scores);
	free(gold);
	free(predicted);
	free(names);
	free(starts);
}

static void check_rankings(const struct json *row, int64_t number)
{
	struct measures measures = {0};
	int64_t count, queries;
	double *scores = numbers_of(row, "scores", &count), *relevance = numbers_of(row, "relevance", &count);
	int64_t *starts = starts_of(row, "lengths", &queries);
	assert_ok(measure_rankings(scores, relevance, starts, queries, &measures));
	expect_measures(row, &measures, number);
	free(scores);
	free(relevance);
	free(starts);
}

static void check_texts(const struct json *row, int64_t number)
{
	struct measures measures = {0};
	int64_t count;
	const char **texts = strings_of(row, "texts", &count), **references = strings_of(row, "references", &count);
	enum text_units units = json_member(row, "characters")->boolean ? UNITS_CHARACTERS : UNITS_WORDS;
	assert_ok(measure_texts(texts, references, count, units, TEXTS_PREDICTED, &measures));
	expect_measures(row, &measures, number);
	free(texts);
	free(references);
}

static const struct {
	const char *kind;
	void (*check)(const struct json *row, int64_t number);
} kinds[] = {
	{"classes", check_classes},   {"auc", check_auc},           {"values", check_values}, {"multilabel", check_multilabel},
	{"entities", check_entities}, {"rankings", check_rankings}, {"texts", check_texts},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Every measure of every case, as computed by other people's code (dev/measures_golden.py). */
static void test_golden(void **state)
{
	struct json_document document;
	int64_t number = 0, seen[KINDS] = {0};
	assert_ok(json_read(&document, golden_path(), 1 << 28));
	for (const struct json *row = document.root->first_child; row; row = row->next, number++) {
		const char *kind = json_member(row, "kind")->text;
		int i = 0;
		while (i < KINDS && strcmp(kinds[i].kind, kind) != 0)
			i++;
		assert_true(i < KINDS);
		kinds[i].check(row, number);
		seen[i]++;
	}
	for (int i = 0; i < KINDS; i++) {
		assert_true(seen[i] > 0);
		print_message("%lld cases of %s\n", (long long)seen[i], kinds[i].kind);
	}
	json_release(&document);
}

/* Where other programs stop or warn: nothing to score, unlabeled examples, NaN and infinity. */
static void test_edges(void **state)
{
	const int32_t gold[] = {-1, 1, -1, 0}, predicted[] = {0, 1, 1, 1}, ones[] = {1, 1};
	const double bad[] = {0.5, NAN}, good[] = {0.5, 0.25};
	const int64_t starts[] = {0, 0, 2};
	struct confusion confusion;
	struct measures measures = {0}, empty = {0};
	double value;
	assert_ok(confusion_make(&confusion, 2, gold, predicted, 4));
	measure_classes(&confusion, -1, &measures);
	assert_near(measures_get(&measures, "accuracy"), 0.5, 0);
	assert_near(measures_get(&measures, "precision"), 0.5, 0);
	assert_near(measures_get(&measures, "recall"), 1, 0);
	confusion_release(&confusion);

	assert_ok(confusion_make(&confusion, 3, gold, predicted, 1));
	measure_classes(&confusion, -1, &empty);
	confusion_release(&confusion);
	assert_ok(measure_multilabel(NULL, NULL, 0, 3, NULL, &empty));
	assert_ok(measure_auc(NULL, NULL, 0, &empty));
	assert_ok(measure_values(NULL, NULL, 0, &empty));
	assert_ok(measure_entities(&(struct tagged){0}, NULL, &empty));
	assert_ok(measure_rankings(NULL, NULL, starts, 1, &empty));
	assert_ok(measure_texts(NULL, NULL, 0, UNITS_WORDS, TEXTS_PREDICTED, &empty));
	assert_int_equal(empty.count, 6 + 5 + 1 + 3 + 4 + 2 + 9);
	for (int i = 0; i < empty.count; i++)
		if (!isnan(empty.item[i].value))
			fail_msg("%s of nothing is %g", empty.item[i].name, empty.item[i].value);

	assert_ok(area_under_roc(bad, ones, 2, &value));
	assert_true(isnan(value));
	assert_ok(spearman_correlation(bad, good, 2, &value));
	assert_true(isnan(value) && isnan(pearson_correlation(good, bad, 2)));
	measures = (struct measures){0};
	assert_ok(measure_rankings(bad, good, starts, 2, &measures));
	assert_true(isnan(measures_get(&measures, "ndcg@10")) && isnan(measures_get(&measures, "mrr@10")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
