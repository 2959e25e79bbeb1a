/* Temperatures and thresholds against SciPy's and scikit-learn's (tests/golden/calibration.json), the answers that follow from
 * them, and their record. */
#include "tasks/calibration.h"
#include <math.h>
#include "base/memory.h"
#include "tasks/record.h"
#include "test.h"

/* Another, larger file of the same format can be named in the environment. */
static const char *golden_path(void)
{
	const char *named = getenv("CALIBRATION_GOLDEN");
	return named ? named : "tests/golden/calibration.json";
}

/* A set of examples with what a model says about them. */
struct world {
	struct calibration_options options;
	struct task_state state;
	struct task_set set;
	struct task_outputs outputs;
	float *logits, *numbers;
	int32_t *classes;
	int64_t *starts;
};

static void world_make(struct world *out, bool labels, int64_t width, int64_t count)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
	*out = (struct world){.options = {.calibrate = true}};
	out->state.settings.calibration = &out->options;
	assert_ok(task_state_open(&out->state, labels ? &task_multilabel : &task_classification, NULL));
	assert_ok(task_state_labels(&out->state, names, width));
	assert_ok(memory_new(&out->logits, count * width, sizeof *out->logits, "test"));
	assert_ok(memory_new(&out->numbers, count * width, sizeof *out->numbers, "test"));
	assert_ok(memory_new(&out->classes, count, sizeof *out->classes, "test"));
	assert_ok(memory_new(&out->starts, count + 1, sizeof *out->starts, "test"));
	for (int64_t i = 0; i <= count; i++)
		out->starts[i] = i * width;
	out->set.has_labels = true;
	out->set.encoded.items[0].classes = out->classes;
	out->set.encoded.items[0].numbers = out->numbers;
	out->outputs = (struct task_outputs){count, out->starts, out->logits};
}

static void world_drop(struct world *world)
{
	task_state_release(&world->state);
	free(world->logits);
	free(world->numbers);
	free(world->classes);
	free(world->starts);
}

static double number_of(const struct json *row, const char *key)
{
	assert_non_null(json_member(row, key));
	return json_member(row, key)->number;
}

static void world_read(struct world *out, const struct json *row)
{
	bool labels = json_member(row, "labels")->boolean;
	const struct json *logits = json_member(row, "logits"), *gold = json_member(row, "gold");
	int64_t width = (int64_t)number_of(row, "width"), i = 0;
	world_make(out, labels, width, logits->child_count / width);
	for (const struct json *child = logits->first_child; child; child = child->next)
		out->logits[i++] = (float)child->number;
	i = 0;
	for (const struct json *child = gold->first_child; child; child = child->next, i++) {
		if (labels)
			out->numbers[i] = (float)child->number;
		else
			out->classes[i] = (int32_t)child->integer;
	}
}

/* The measure of the set with the calibration that was found. */
static double measure_of(const struct world *world, const char *name)
{
	struct measures measures = {0};
	assert_ok(calibration_measures(&world->state, &world->set, &world->outputs, &measures));
	assert_non_null(measures_find(&measures, name));
	return measures_get(&measures, name);
}

static struct class_score score_of(const struct world *world, int64_t label)
{
	struct class_scores scores;
	assert_ok(world->state.task->score_classes(&world->state, &world->set, &world->outputs, &scores));
	struct class_score score = scores.scores[label];
	class_scores_release(&scores);
	return score;
}

static void check_temperature(struct world *world, const struct json *row)
{
	assert_ok(calibration_tune(&world->state, &world->set, &world->outputs));
	assert_near(world->state.calibration.temperature, number_of(row, "temperature"), 1e-6 * number_of(row, "temperature"));
	assert_near(measure_of(world, "calibrated_loss"), number_of(row, "loss"), 1e-9);
	world->state.calibration.temperature = 1;
	assert_near(measure_of(world, "calibrated_loss"), number_of(row, "loss_before"), 1e-9);
	assert_near(measure_of(world, "calibration_error"), number_of(row, "error"), 1e-9);
}

static void check_thresholds(struct world *world, const struct json *row, const char *aim)
{
	bool labels = json_member(row, "labels")->boolean, f1 = strcmp(aim, "f1") == 0;
	int64_t k = 0;
	world->options = (struct calibration_options){.thresholds = aim};
	if (f1 && !labels && world->state.labels.count > 2) {
		assert_error(ERR_USAGE, "two classes", calibration_tune(&world->state, &world->set, &world->outputs));
		return;
	}
	assert_ok(calibration_tune(&world->state, &world->set, &world->outputs));
	for (const struct json *child = json_member(row, "per_label")->first_child; child; child = child->next, k++) {
		struct class_score score = score_of(world, k);
		double recall = number_of(child, "recall");
		if (f1 && (labels || k == 1))
			assert_near(score.f1, number_of(child, "f1"), 1e-12);
		if (!f1)
			assert_near(recall < 0 ? score.recall : score.recall - recall, 0, 1e-12);
		if (!f1 && recall >= 0)
			assert_true(score.precision >= 0.8);
	}
}

static void test_golden(void **state)
{
	struct json_document document;
	assert_ok(json_read(&document, golden_path(), 1 << 26));
	for (const struct json *row = json_member(document.root, "cases")->first_child; row; row = row->next) {
		struct world world;
		world_read(&world, row);
		check_temperature(&world, row);
		check_thresholds(&world, row, "f1");
		check_thresholds(&world, row, "0.8");
		world_drop(&world);
	}
	json_release(&document);
}

/* 14 of 25 is a precision of 0.56, although 0.56 * 25 is more than 14 in floating point. */
static void test_a_precision_is_reached_exactly(void **state)
{
	struct world world;
	world_make(&world, true, 1, 25);
	for (int i = 0; i < 25; i++) {
		world.logits[i] = (float)(25 - i);
		world.numbers[i] = i >= 11;
	}
	world.options = (struct calibration_options){.thresholds = "0.56"};
	assert_ok(calibration_tune(&world.state, &world.set, &world.outputs));
	assert_true(task_has_label(&world.state, &world.logits[24], 0));
	world_drop(&world);
}

/* Without a lowest loss there is no temperature, and precision that is never reached means that a label is never an answer. */
static void test_what_sets_do_not_tell(void **state)
{
	static const float logits[][2] = {{2, -1}, {-1, 3}, {0.5f, 0}, {0, 1}};
	struct world world;
	world_make(&world, false, 2, 4);
	memcpy(world.logits, logits, sizeof logits);
	memcpy(world.classes, (const int32_t[]){0, 1, 0, 1}, 4 * sizeof(int32_t));
	assert_ok(calibration_tune(&world.state, &world.set, &world.outputs));
	assert_true(world.state.calibration.temperature == 0);
	memcpy(world.classes, (const int32_t[]){0, 0, 0, 0}, 4 * sizeof(int32_t));
	world.options = (struct calibration_options){.thresholds = "0.9"};
	assert_ok(calibration_tune(&world.state, &world.set, &world.outputs));
	assert_true(isinf(world.state.calibration.thresholds[1]));
	assert_int_equal(task_class(&world.state, logits[0]), 0);
	assert_int_equal(task_class(&world.state, logits[1]), -1);
	world_drop(&world);
}

static void expect_answer(const struct world *world, int64_t example, const char *json, const char *pipeline)
{
	struct buffer out = {0};
	assert_ok(world->state.task->put(&world->state, &world->set, &world->outputs, example, &out));
	assert_non_null(strstr(buffer_string(&out), json));
	buffer_clear(&out);
	assert_ok(world->state.task->put_pipeline(&world->state, &world->set, &world->outputs, example, &out));
	assert_string_equal(buffer_string(&out), pipeline);
	buffer_release(&out);
}

/* Answers that are too uncertain are none. */
static void test_answers(void **state)
{
	static const float logits[][3] = {{4, 0, 0}, {1, 0.5f, 0}};
	struct example_text texts[2] = {{.text = "x"}, {.text = "y"}};
	struct world world;
	world_make(&world, false, 3, 2);
	memcpy(world.logits, logits, sizeof logits);
	world.set.examples = (struct example_set){.examples = texts, .count = 2};
	world.state.calibration = (struct calibration){.temperature = 2, .min_score = 0.5};
	expect_answer(&world, 0, "{\"label\":\"a\",\"probabilities\":{\"a\":0.78698604",
		      "[{\"label\":\"a\",\"score\":0.7869860421615984}]");
	expect_answer(&world, 1, "{\"label\":null,\"probabilities\":{\"a\":0.4192", "[]");
	assert_near(measure_of(&world, "coverage"), 0.5, 0);
	assert_near(measure_of(&world, "answered_accuracy"), 1, 0);
	world_drop(&world);
	world_make(&world, true, 3, 2);
	memcpy(world.logits, logits, sizeof logits);
	world.set.examples = (struct example_set){.examples = texts, .count = 2};
	world.state.calibration.min_score = 0.6;
	expect_answer(&world, 1, "{\"labels\":[\"a\",\"b\"],",
		      "[{\"label\":\"a\",\"score\":0.7310585786300049},"
		      "{\"label\":\"b\",\"score\":0.6224593312018546}]");
	world.state.calibration.min_score = 0.7;
	expect_answer(&world, 1, "{\"labels\":[\"a\"],", "[{\"label\":\"a\",\"score\":0.7310585786300049}]");
	world_drop(&world);
}

/* What is written is read again, and what is not a calibration is refused. */
static void test_record(void **state)
{
	struct world world;
	struct buffer text = {0}, again = {0};
	struct json_document document;
	world_make(&world, true, 3, 0);
	assert_ok(task_record_write(&world.state, &text));
	assert_null(strstr(buffer_string(&text), "calibration"));
	buffer_clear(&text);
	double *thresholds;
	assert_ok(memory_new(&thresholds, 3, sizeof *thresholds, "test"));
	memcpy(thresholds, (const double[]){0.25, INFINITY, 1}, 3 * sizeof *thresholds);
	world.state.calibration = (struct calibration){1.5, 0.125, thresholds, 3, false};
	assert_ok(task_record_write(&world.state, &text));
	calibration_release(&world.state.calibration);
	assert_ok(json_parse(&document, "record", text.data, text.size));
	assert_ok(task_record_read(document.root, "record", &world.state));
	assert_ok(calibration_fits(&world.state));
	assert_ok(task_record_write(&world.state, &again));
	assert_string_equal(buffer_string(&again), buffer_string(&text));
	world.state.calibration.count = 2;
	assert_error(ERR_DATA, "for 2 labels, and the model has 3", calibration_fits(&world.state));
	json_release(&document);
	static const char *const bad[] = {"{\"temperature\": -1}", "{\"min_score\": 2}", "{\"thresholds\": [0.5, \"x\"]}",
					  "{\"thresholds\": [1.5]}", "{\"temperature\": \"hot\"}"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		buffer_clear(&text);
		buffer_format(&text, "{\"task\": \"multilabel\", \"calibration\": %s}", bad[i]);
		assert_ok(json_parse(&document, "record", text.data, text.size));
		assert_error(ERR_DATA, "'record'", task_record_read(document.root, "record", &world.state));
		json_release(&document);
	}
	buffer_release(&text);
	buffer_release(&again);
	world_drop(&world);
}

static void test_options(void **state)
{
	struct world world;
	world_make(&world, false, 3, 0);
	static const char *const bad[] = {"F2", "0", "1.5", "", "0.9x", "nan"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		world.options.thresholds = bad[i];
		assert_error(ERR_USAGE, "neither f1 nor a precision", calibration_check(&world.options, &world.state));
	}
	world.options.thresholds = "0.95";
	assert_ok(calibration_check(&world.options, &world.state));
	world.state.task = &task_regression;
	assert_error(ERR_USAGE, "--calibrate is for tasks that answer with classes or labels, not for regression",
		     calibration_check(&world.options, &world.state));
	world_drop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_a_precision_is_reached_exactly),
		cmocka_unit_test(test_what_sets_do_not_tell),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
