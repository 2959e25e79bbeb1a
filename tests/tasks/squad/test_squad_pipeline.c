/* Answers compared with transformers' pipeline (dev/squad_pipeline_golden.py), with its overlapping windows. */
#include <math.h>
#include "base/json.h"
#include "tasks/squad/squad_answers.h"
#include "test.h"

static const char golden_path[] = "tests/golden/squad_pipeline.json";

static int64_t integer_of(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	assert_non_null(member);
	return member->integer;
}

/* The logits by the formula of the script. */
static double logit(int64_t window, int64_t row, int64_t side)
{
	return (double)((window * 7919 + row * row * 31 + row * 104729 + side * 1299709) % 97) / 8 - 6 +
	       (double)(row * row) * 0.000731 + (double)(row * side) * 0.00917;
}

static void make_set(const struct json *row, struct squad_set *out)
{
	static struct bad_records bad;
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	const char *path = test_path("set.json");
	json_open(&writer, NULL, '{');
	json_open(&writer, "data", '[');
	json_open(&writer, NULL, '{');
	json_open(&writer, "paragraphs", '[');
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "context", json_member(row, "context")->text);
	json_open(&writer, "qas", '[');
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "id", "x");
	json_put_string(&writer, "question", json_member(row, "question")->text);
	while (writer.depth > 0)
		json_close(&writer);
	assert_ok(file_write(path, text.data, text.size));
	assert_ok(squad_read(out, path, &(struct squad_options){.use = SQUAD_PREDICT, .bad = &bad}));
	buffer_release(&text);
}

static void expect_window(const struct squad_features *f, int64_t window, const struct json *expected)
{
	int32_t ids[64], segments[64], i = 0, size = squad_window_size(f, window);
	assert_in_range(size, 4, 64);
	assert_int_equal(size, expected->child_count);
	squad_window_fill(f, window, ids, segments);
	for (const struct json *id = expected->first_child; id; id = id->next, i++)
		assert_int_equal(ids[i], id->integer);
}

static void expect_answer(const struct json *expected, const struct squad_paragraph *paragraph,
			  struct squad_pipeline_answer answer)
{
	int64_t begin, end;
	squad_code_points(paragraph, answer.begin, answer.end, &begin, &end);
	assert_int_equal(begin, integer_of(expected, "start"));
	assert_int_equal(end, integer_of(expected, "end"));
	assert_near(answer.score, json_member(expected, "score")->number, 1e-12);
}

static void check_case(const struct json *row, const struct tokenizer *tokenizer, struct squad_pipeline *pipeline)
{
	struct squad_set set;
	struct squad_features f;
	double scale = json_member(row, "scale")->number, start[64], end[64];
	make_set(row, &set);
	assert_ok(
		squad_features_make(&f, &set, tokenizer,
				    &(struct squad_feature_settings){.max_seq_length = (int32_t)integer_of(row, "max_seq_length"),
								     .max_query_length = 64,
								     .doc_stride = (int32_t)integer_of(row, "overlap"),
								     .stride_is_overlap = true}));
	const struct json *expected = json_member(row, "windows");
	assert_int_equal(f.window_starts[1], expected->child_count);
	squad_pipeline_begin(pipeline, &f, 0, (int32_t)integer_of(row, "max_answer_length"));
	int64_t w = 0;
	for (const struct json *window = expected->first_child; window; window = window->next, w++) {
		expect_window(&f, w, window);
		for (int64_t i = 0; i < squad_window_size(&f, w); i++) {
			start[i] = logit(w, i, 0) * scale;
			end[i] = logit(w, i, 1) * scale;
		}
		assert_ok(squad_pipeline_window(pipeline, w, start, end));
	}
	expect_answer(json_member(row, "answer"), &set.paragraphs[0], squad_pipeline_best(pipeline, false));
	expect_answer(json_member(row, "or_none"), &set.paragraphs[0], squad_pipeline_best(pipeline, true));
	squad_features_release(&f);
	squad_release(&set);
}

static void equal_to_transformers(void **state)
{
	struct json_document document;
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct squad_pipeline pipeline = {0};
	const char *entries[100];
	int32_t count = 0;
	int64_t cases = 0;
	assert_ok(json_read(&document, golden_path, 1 << 20));
	for (const struct json *entry = json_member(document.root, "vocab")->first_child; entry && count < 100;
	     entry = entry->next)
		entries[count++] = entry->text;
	assert_ok(vocab_from_entries(&vocab, entries, count));
	struct tokenizer_settings settings = tokenizer_defaults(false);
	assert_ok(tokenizer_open(&tokenizer, &vocab, &settings));
	for (const struct json *row = json_member(document.root, "cases")->first_child; row; row = row->next, cases++)
		check_case(row, tokenizer, &pipeline);
	assert_true(cases >= 40);
	squad_pipeline_release(&pipeline);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	json_release(&document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(equal_to_transformers)};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
