/* Texts as vectors, as a user asks for them: formats that agree with each other, order, long and odd texts, pairs,
 * prompts, resuming after an interruption, and bad input. */
#include <fcntl.h>
#include <sys/stat.h>
#include <math.h>
#include "base/json.h"
#include "base/memory.h"
#include "cmd/program.h"
#include "infer/small_model.h"
#include "weights/sentence_folder.h"

enum { TEXTS = 3000, WIDTH = SMALL_HIDDEN };

static int setup(void **state)
{
	struct buffer text = {0};
	if (test_folder_make(state) != 0)
		return -1;
	small_model_make(test_path("model"), &model_heads_pretraining, NULL, NULL);
	for (int i = 0; i < TEXTS; i++) {
		struct rng rng = rng_start(3, RNG_TEST, (uint64_t)i);
		for (int w = (int)rng_below(&rng, 12); w >= 0; w--)
			buffer_format(&text, "wa%c%s", 'i' + (int)rng_below(&rng, 18), w > 0 ? " " : "");
		buffer_char(&text, '\n');
	}
	assert_ok(file_write(test_path("texts.txt"), text.data, text.size));
	buffer_release(&text);
	return 0;
}

#define EMBED "embed --model %s/model --precision fp32 --threads 2 --no_progress "

/* The vectors of a JSON lines file, concatenated; the caller frees them. */
static double *read_vectors(const char *path, int64_t *out_rows, int64_t *out_columns)
{
	struct buffer text = {0};
	double *values = NULL;
	int64_t count = 0, capacity = 0;
	assert_ok(file_read(path, 1 << 26, &text));
	*out_rows = *out_columns = 0;
	for (char *rest = text.data, *line; (line = strtok_r(rest, "\n", &rest)); (*out_rows)++) {
		struct json_document document;
		assert_ok(json_parse(&document, path, line, strlen(line)));
		const struct json *vector = json_member(document.root, "embedding");
		assert_non_null(vector);
		assert_true(*out_rows == 0 || *out_columns == vector->child_count);
		*out_columns = vector->child_count;
		for (const struct json *x = vector->first_child; x; x = x->next) {
			assert_ok(memory_grow(&values, &capacity, count + 1, sizeof *values, "test"));
			values[count++] = x->number;
		}
		json_release(&document);
	}
	buffer_release(&text);
	return values;
}

/* The vectors that the last program printed. */
static double *printed_vectors(int64_t *out_rows, int64_t *out_columns)
{
	return read_vectors(test_path("output"), out_rows, out_columns);
}

static void formats_agree(void **state)
{
	int64_t rows, columns;
	struct buffer npy = {0};
	assert_program(0, "", EMBED "%s/texts.txt --out %s/v.jsonl", test_folder, test_folder, test_folder);
	assert_program(0, "", EMBED "%s/texts.txt --out %s/v.npy", test_folder, test_folder, test_folder); /* by the name */
	assert_program(0, "", EMBED "- --format tsv <%s/texts.txt", test_folder, test_folder);
	double *values = read_vectors(test_path("v.jsonl"), &rows, &columns);
	assert_int_equal(rows, TEXTS);
	assert_int_equal(columns, WIDTH);
	assert_ok(file_read(test_path("v.npy"), 1 << 26, &npy));
	assert_int_equal(npy.size, 128 + rows * columns * 4);
	assert_memory_equal(npy.data, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3000, 32), }",
			    66);
	assert_true(npy.data[127] == '\n');
	const char *tsv = buffer_string(&program_output);
	for (int64_t i = 0; i < rows * columns; i++) {
		float stored;
		char *end;
		memcpy(&stored, npy.data + 128 + i * 4, 4);
		assert_true((float)values[i] == stored);
		assert_true(strtof(tsv, &end) == stored);
		assert_true(*end == ((i + 1) % columns == 0 ? '\n' : '\t'));
		tsv = end + 1;
	}
	assert_true(*tsv == '\0');
	assert_false(file_exists(test_path("v.npy.part")));
	assert_false(file_exists(test_path("v.npy.progress")));
	free(values);
	buffer_clear(&npy);
	assert_program(0, "", EMBED "%s/texts.txt --out %s/b.npy --vector_type binary", test_folder, test_folder, test_folder);
	assert_ok(file_read(test_path("b.npy"), 1 << 26, &npy));
	assert_int_equal(npy.size, 128 + rows * 4);
	assert_memory_equal(npy.data + 10, "{'descr': '|i1', 'fortran_order': False, 'shape': (3000, 4), }", 61);
	assert_program(0, "", EMBED "%s/texts.txt --vector_type uint8 --calibration_vectors %s/v.npy --format tsv", test_folder,
		       test_folder, test_folder);
	assert_program(ERR_USAGE, "need --calibration_vectors", EMBED "%s/texts.txt --vector_type int8", test_folder,
		       test_folder);
	assert_program(ERR_DATA, "not float32", EMBED "%s/texts.txt --vector_type int8 --calibration_vectors %s/b.npy",
		       test_folder, test_folder, test_folder);
	buffer_release(&npy);
}

static void answers_do_not_depend_on_how_they_are_computed(void **state)
{
	assert_program(0, "", EMBED "%s/texts.txt --format npy --out %s/a.npy", test_folder, test_folder, test_folder);
	assert_program(0, "",
		       "embed --model %s/model --precision fp32 --threads 1 --micro_batch_tokens 64 -q %s/texts.txt "
		       "--format npy --out %s/b.npy",
		       test_folder, test_folder, test_folder);
	assert_true(files_are_same(test_path("a.npy"), test_path("b.npy")));
}

static void odd_texts_are_defined_and_said(void **state)
{
	int64_t rows, columns;
	struct buffer text = {0};
	/* Empty; a NUL and an invalid byte, which are dropped; 100 words; 9 MB; a Windows line end; no line end at the
	 * end. */
	buffer_text(&text, "\n");
	buffer_append(&text, "wai\0 \xff waj\n", 11);
	for (int i = 0; i < 100; i++)
		buffer_text(&text, "wai ");
	buffer_text(&text, "\n");
	for (int i = 0; i < 2250000; i++)
		buffer_text(&text, "wai ");
	buffer_text(&text, "\nwai waj\r\nwai waj");
	assert_ok(file_write(test_path("odd.txt"), text.data, text.size));
	assert_program(0, "2 texts were longer than 48 tokens and cut: ", EMBED "%s/odd.txt", test_folder, test_folder);
	assert_said("1 text was empty");
	assert_said("1 byte was not UTF-8");
	assert_said("1 line was too long");
	double *values = printed_vectors(&rows, &columns);
	assert_int_equal(rows, 6);
	for (int64_t c = 0; c < columns; c++) {
		assert_true(values[4 * columns + c] == values[5 * columns + c]);
		assert_true(values[1 * columns + c] == values[4 * columns + c]);
		assert_true(values[2 * columns + c] == values[3 * columns + c]);
	}
	free(values);
	assert_program(3, "line 3: a text of 102 tokens, but a sequence can have at most 48",
		       EMBED "%s/odd.txt --long_texts stop", test_folder, test_folder);
	buffer_release(&text);
}

/* 100 words in windows of 46: two full ones and one of 8; the mean weights them by their number of tokens. */
static void windows_are_averaged(void **state)
{
	int64_t rows, columns;
	struct buffer text = {0};
	for (int part = 0; part < 4; part++) {
		for (int i = part == 0 ? 0 : (part - 1) * 46; i < (part == 0 || part == 3 ? 100 : part * 46); i++)
			buffer_format(&text, "wa%c ", 'i' + i * 7 % 18);
		buffer_char(&text, '\n');
	}
	assert_ok(file_write(test_path("long.txt"), text.data, text.size));
	assert_program(0, "1 text was longer than 48 tokens and taken in windows", EMBED "--long_texts windows %s/long.txt",
		       test_folder, test_folder);
	double *values = printed_vectors(&rows, &columns);
	assert_int_equal(rows, 4);
	for (int64_t c = 0; c < columns; c++) {
		double mean = (48 * values[columns + c] + 48 * values[2 * columns + c] + 10 * values[3 * columns + c]) / 106;
		assert_near(values[c], mean, 1e-6);
	}
	free(values);
	buffer_release(&text);
}

static void json_lines_and_pairs_are_read(void **state)
{
	int64_t rows, columns;
	put_file("texts.jsonl",
		 "{\"text\": \"wai waj\", \"id\": \"a\\\"b\"}\n\n{\"id\": 7, \"text\": \"wai\", \"text_pair\": \"wak\"}\n"
		 "{\"text\": \"wai\", \"pair\": null}\n");
	put_file("pairs.txt", "wai waj\nwai ||| wak\nwai\n");
	assert_program(0, "", EMBED "%s/texts.jsonl --layers -1,0", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "{\"id\":\"a\\\"b\",\"embedding\":["));
	assert_non_null(strstr(buffer_string(&program_output), "{\"id\":7,\"embedding\":["));
	double *json = printed_vectors(&rows, &columns);
	assert_int_equal(columns, 2 * WIDTH);
	assert_int_equal(rows, 3);
	assert_program(0, "", EMBED "%s/pairs.txt --layers 2,-3 --pair_separator ' ||| '", test_folder, test_folder);
	double *plain = printed_vectors(&rows, &columns);
	assert_memory_equal(json, plain, (size_t)(rows * columns) * sizeof *json);
	free(json);
	free(plain);
	put_file("wrong.jsonl", "{\"text\": \"wai\"}\n{\"sentence\": \"wai\", \"x\": 1}\n");
	assert_program(3, "line 2: the object has no \"text\", but: sentence, x", EMBED "%s/wrong.jsonl", test_folder,
		       test_folder);
	assert_program(0, "", EMBED "%s/wrong.jsonl --input text", test_folder, test_folder);
}

/* A column of a table gives the same vectors as its texts in JSON lines, with fields over several lines and many chunks. */
static void columns_of_tables_are_read(void **state)
{
	char command[1024];
	int64_t rows, columns;
	struct buffer csv = {0}, json = {0};
	buffer_text(&csv, "id,sentence,second,n\n");
	for (int i = 0; i < TEXTS; i++) {
		const char first = (char)('i' + i % 18), second = (char)('i' + i % 17);
		buffer_format(&csv, "r%d,\"wa%c, \"\"wai\"\"%sok\",wa%c,%d\n", i, first, i % 9 ? " " : "\n", second, i);
		buffer_format(&json, "{\"id\":\"r%d\",\"text\":\"wa%c, \\\"wai\\\"%sok\",\"pair\":\"wa%c\"}\n", i, first,
			      i % 9 ? " " : "\\n", second);
	}
	assert_ok(file_write(test_path("t.csv"), csv.data, csv.size));
	assert_ok(file_write(test_path("t.jsonl"), json.data, json.size));
	assert_program(0, "", EMBED "%s/t.jsonl --out %s/json.out", test_folder, test_folder, test_folder);
	assert_program(0, "", EMBED "%s/t.csv --text_column sentence --pair_column second --out %s/csv.out", test_folder,
		       test_folder, test_folder);
	assert_true(files_are_same(test_path("json.out"), test_path("csv.out")));
	/* By number, and from a pipe in which the header comes first. */
	assert_program(0, "", EMBED "--text_column 2 --pair_column 3 <%s/t.csv --out %s/csv.out", test_folder, test_folder,
		       test_folder);
	assert_true(files_are_same(test_path("json.out"), test_path("csv.out")));
	static const struct {
		const char *first, *then;
		int64_t rows;
	} pauses[] = {
		{"text\\tn\\n", "wai\\t1\\nwaj\\t2\\n", 2},
		{"\\n", "{\"text\": \"wai\"}\\n", 1},
	};
	assert_int_equal(mkfifo(test_path("pipe"), 0600), 0);
	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
		snprintf(command, sizeof command, "(printf '%s'; sleep 0.2; printf '%s') > %s/pipe &", pauses[i].first,
			 pauses[i].then, test_folder);
		assert_int_equal(system(command), 0);
		assert_program(0, "", EMBED "--text_column text < %s/pipe", test_folder, test_folder);
		free(printed_vectors(&rows, &columns));
		assert_int_equal(rows, pauses[i].rows);
	}
	put_file("header", "n,text\n");
	assert_program(0, "", EMBED "--text_column text < %s/header", test_folder, test_folder);
	assert_int_equal(program_output.size, 0);
	buffer_release(&csv);
	buffer_release(&json);
}

/* Files whose lines are not texts are not read without a word. */
static void lines_that_are_no_texts_are_noticed(void **state)
{
	static const char looks[] = "looks like a table";
	int64_t rows, columns;
	put_file("d.csv", "id,text\n1,wai\n2,waj\n3,wak\n");
	put_file("prose.txt", "wai, waj.\nwai, waj, wak.\nwai\twaj\n[wai]\n");
	put_file("pairs.txt", "wai\twaj\nwak\twal\nwam\twan\n");
	put_file("list.json", "[{\"text\": \"wai\"},\n{\"text\": \"waj\"}]\n");
	put_file("indented.json", "{\n  \"text\": \"wai\"\n}\n");
	assert_program(0, "(CSV, columns 1 id, 2 text)", EMBED "%s/d.csv", test_folder, test_folder);
	assert_said("--text_column");
	free(printed_vectors(&rows, &columns));
	assert_int_equal(rows, 4);
	assert_program(0, "", EMBED "%s/d.csv --input text", test_folder, test_folder);
	assert_null(strstr(buffer_string(&program_errors), looks));
	assert_program(0, "", EMBED "%s/prose.txt", test_folder, test_folder);
	assert_null(strstr(buffer_string(&program_errors), looks));
	assert_program(0, looks, EMBED "%s/pairs.txt", test_folder, test_folder);
	assert_program(0, "", EMBED "%s/pairs.txt --pair_separator '\t'", test_folder, test_folder);
	assert_null(strstr(buffer_string(&program_errors), looks));
	assert_program(2, "JSON objects in a list", EMBED "%s/list.json", test_folder, test_folder);
	assert_said("jq -c '.[]'");
	assert_program(2, "over several lines", EMBED "%s/indented.json --text_column text", test_folder, test_folder);
	assert_program(0, "", EMBED "%s/list.json --input text", test_folder, test_folder);
	assert_program(2, "has no column 'sentence'; its columns are 1 id, 2 text", EMBED "%s/d.csv --text_column sentence",
		       test_folder, test_folder);
	assert_program(2, "neither JSON lines nor a table", EMBED "%s/texts.txt --text_column text", test_folder, test_folder);
	put_file("short.csv", "id,text\n1,wai\n2\n3,wak\n");
	assert_program(3, "line 3: 1 field where the other rows have 2", EMBED "%s/short.csv --text_column text", test_folder,
		       test_folder);
	assert_null(strstr(buffer_string(&program_errors), "--on_bad_record"));
}

/* The folder decides pooling, normalization, prompt and length; options override it. */
static void sentence_folders_decide(void **state)
{
	int64_t rows, columns;
	struct sentence_prompt prompts[] = {{(char *)(uintptr_t) "query", (char *)(uintptr_t) "waz "}};
	struct sentence_folder about = {.pooling = POOLING_CLS,
					.normalize = true,
					.max_seq_length = 10,
					.prompts = prompts,
					.prompt_count = 1,
					.default_prompt = 0};
	struct folder_files files = {0};
	small_model_make(test_path("sentences"), &model_heads_encoder, NULL, NULL);
	assert_ok(sentence_folder_write(test_path("sentences"), &about, WIDTH, &files));
	free(files.files);
	put_file("few.txt", "wai waj\nwai waj wak wal wam wan wao wap waq\n");
	put_file("prompted.txt", "waz wai waj\nwaz wai waj wak wal wam wan wao wap\n");
	assert_program(0, "1 text was longer than 10 tokens and cut: 2 tokens",
		       "embed --model %s/sentences --precision fp32 -- %s/few.txt", test_folder, test_folder);
	double *folder = printed_vectors(&rows, &columns);
	double length = 0;
	for (int64_t c = 0; c < columns; c++)
		length += folder[c] * folder[c];
	assert_near(length, 1, 1e-6);
	assert_program(0, "",
		       "embed --model %s/model --precision fp32 --pooling cls --normalize --max_seq_length 10 %s/prompted.txt",
		       test_folder, test_folder);
	double *options = printed_vectors(&rows, &columns);
	assert_memory_equal(folder, options, (size_t)(rows * columns) * sizeof *folder);
	free(folder);
	assert_program(0, "",
		       "embed --model %s/sentences --precision fp32 --pooling max --no_normalize --prompt '' --truncate_dim 5 "
		       "%s/few.txt",
		       test_folder, test_folder);
	folder = printed_vectors(&rows, &columns);
	assert_int_equal(columns, 5);
	assert_program(0, "", "embed --model %s/model --precision fp32 --pooling max --max_seq_length 10 %s/few.txt", test_folder,
		       test_folder);
	free(options);
	options = printed_vectors(&rows, &columns);
	for (int64_t c = 0; c < 5; c++)
		assert_true(folder[5 + c] == options[columns + c]);
	free(folder);
	free(options);
	/* What is kept has a length of 1 if that is asked for. */
	assert_program(0, "", "embed --model %s/model --precision fp32 --pooling cls --normalize --truncate_dim 5 %s/few.txt",
		       test_folder, test_folder);
	folder = printed_vectors(&rows, &columns);
	length = 0;
	for (int64_t c = 0; c < columns; c++)
		length += folder[c] * folder[c];
	assert_near(length, 1, 1e-6);
	free(folder);
	assert_program(2, "no prompt of that name", "embed --model %s/sentences --prompt_name passage %s/few.txt", test_folder,
		       test_folder);
	assert_said("it has: query");
}

/* The weights of the words of each text, the largest first, from the masked-word head or as the folder says. */
static void words_are_weighed(void **state)
{
	struct sentence_folder about = {.pooling = POOLING_SPLADE, .default_prompt = -1};
	struct folder_files files = {0};
	struct buffer all = {0};
	small_model_make(test_path("sparse"), &model_heads_words, NULL, NULL);
	assert_ok(sentence_folder_write(test_path("sparse"), &about, WIDTH, &files));
	free(files.files);
	put_file("some.txt", "wai waj wak\n\nwam\n");
	assert_program(0, "1 text was empty", "embed --model %s/sparse --precision fp32 --pooling splade %s/some.txt",
		       test_folder, test_folder);
	buffer_append(&all, program_output.data, program_output.size);
	assert_program(0, "", "embed --model %s/sparse --precision fp32 --no_progress --max_active_dims 2 %s/some.txt",
		       test_folder, test_folder);
	char *rest = (char *)(uintptr_t)buffer_string(&program_output), *others = (char *)(uintptr_t)buffer_string(&all);
	for (int i = 0; i < 3; i++) {
		struct json_document few, every;
		const char *line = strtok_r(rest, "\n", &rest), *other = strtok_r(others, "\n", &others);
		assert_ok(json_parse(&few, "few", line, strlen(line)));
		assert_ok(json_parse(&every, "every", other, strlen(other)));
		const struct json *a = json_member(few.root, "embedding"), *b = json_member(every.root, "embedding");
		assert_int_equal(a->child_count, 2);
		assert_true(b->child_count > 2);
		const struct json *x = a->first_child, *y = b->first_child;
		for (; x; x = x->next, y = y->next) {
			assert_string_equal(x->key, y->key);
			assert_true(x->number == y->number && x->number > 0 && (!y->next || y->number >= y->next->number));
		}
		json_release(&few);
		json_release(&every);
	}
	buffer_release(&all);
	small_model_make(test_path("headless"), &model_heads_encoder, NULL, NULL);
	assert_program(ERR_STATE, "the first is 'cls.predictions.transform.dense.weight'",
		       "embed --model %s/headless --pooling splade %s/some.txt", test_folder, test_folder);
	assert_program(2, "--pooling splade gives weights of words", EMBED "--pooling splade --normalize %s/some.txt",
		       test_folder, test_folder);
	assert_program(2, "--max_active_dims is for weights of words", EMBED "--max_active_dims 2 %s/some.txt", test_folder,
		       test_folder);
}

/* A prompt that is excluded from pooling is in the first window only, and is not pooled there, either. */
static void prompts_are_left_out_of_windows(void **state)
{
	int64_t rows, columns;
	struct sentence_prompt prompts[] = {{(char *)(uintptr_t) "query", (char *)(uintptr_t) "waz way "}};
	struct sentence_folder about = {.pooling = POOLING_MEAN,
					.leaves_out_prompt = true,
					.max_seq_length = 10,
					.prompts = prompts,
					.prompt_count = 1,
					.default_prompt = 0};
	struct folder_files files = {0};
	small_model_make(test_path("asked"), &model_heads_encoder, NULL, NULL);
	assert_ok(sentence_folder_write(test_path("asked"), &about, WIDTH, &files));
	free(files.files);
	put_file("first.txt", "wai waj wak wal wam wan\n");
	put_file("second.txt", "wao wap waq\n");
	put_file("both.txt", "wai waj wak wal wam wan wao wap waq\n");
	assert_program(0, "", "embed --model %s/asked --precision fp32 %s/first.txt", test_folder, test_folder);
	double *first = printed_vectors(&rows, &columns);
	assert_program(0, "", "embed --model %s/asked --precision fp32 --prompt '' %s/second.txt", test_folder, test_folder);
	double *second = printed_vectors(&rows, &columns);
	assert_program(0, "", "embed --model %s/asked --precision fp32 --long_texts windows %s/both.txt", test_folder,
		       test_folder);
	double *both = printed_vectors(&rows, &columns);
	for (int64_t c = 0; c < columns; c++)
		assert_near(both[c], (10 * first[c] + 5 * second[c]) / 15, 1e-6);
	free(first);
	free(second);
	free(both);
}

/* The same form as the output of extract_features.py; the numbers are those of --format jsonl before pooling. */
static void google_features_have_their_form(void **state)
{
	put_file("google.txt", "  wai wbz ||| w\xc3\xa4 \n\n");
	assert_program(0, "", EMBED "%s/google.txt --format google --layers -1,-2", test_folder, test_folder);
	const char *out = buffer_string(&program_output);
	static const char *const parts[] = {
		"{\"linex_index\": 0, \"features\": [{\"token\": \"[CLS]\", \"layers\": [{\"index\": -1, \"values\": [",
		"]}, {\"index\": -2, \"values\": [", "}]}, {\"token\": \"wai\", \"layers\": [", "{\"token\": \"[UNK]\", ",
		"\n{\"linex_index\": 1, \"features\": [{\"token\": \"[CLS]\", "};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (!strstr(out, parts[i]))
			fail_msg("'%s' is not in:\n%.3000s", parts[i], out);
	/* [CLS] wai [UNK] [SEP] [UNK] [SEP], then [CLS] [SEP] */
	int tokens = 0;
	for (const char *at = out; (at = strstr(at, "\"token\"")); at++)
		tokens++;
	assert_int_equal(tokens, 8);
	assert_program(2, "nothing is pooled", EMBED "%s/google.txt --format google --pooling cls", test_folder, test_folder);
}

/* The number of answered texts according to a note. */
static int64_t noted_texts(const char *name)
{
	struct json_document document;
	int64_t texts = -1;
	assert_ok(json_read(&document, test_path(name), 1 << 20));
	assert_ok(json_get_integer(document.root, name, "texts", 0, INT64_MAX, &texts));
	json_release(&document);
	return texts;
}

#define INTERRUPTED EMBED "%s/texts.txt --format %s --out %s/cut "

/* A file of the model that was written again, even the smallest one. */
static void refuse_changed_model(const char *format)
{
	const char *path = test_path("model/tokenizer_config.json");
	struct buffer text = {0};
	struct stat before;
	assert_int_equal(stat(path, &before), 0);
	assert_ok(file_read(path, 1 << 16, &text));
	assert_ok(file_write(path, text.data, text.size));
	buffer_release(&text);
	assert_program(4, "other settings: 'model: ", INTERRUPTED, test_folder, test_folder, format, test_folder);
	assert_said("/tokenizer_config.json, ");
	const struct timespec times[] = {before.st_atim, before.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void turn_byte(const char *name)
{
	FILE *file = fopen(test_path(name), "r+b");
	assert_non_null(file);
	int byte = fgetc(file);
	rewind(file);
	assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
	assert_int_equal(fclose(file), 0);
}

/* Other texts of the same size and time, as in two archives whose files have no times of their own. */
static void refuse_other_texts(const char *format)
{
	const char *path = test_path("texts.txt");
	struct stat before;
	assert_int_equal(stat(path, &before), 0);
	const struct timespec times[] = {before.st_atim, before.st_mtim};
	turn_byte("texts.txt");
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_program(4, "other settings: 'input 1: ", INTERRUPTED, test_folder, test_folder, format, test_folder);
	turn_byte("texts.txt");
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Answers that were changed after they had been written. */
static void refuse_changed_part(const char *format)
{
	turn_byte("cut.part");
	assert_program(3, "cut.part' has changed since it was written", INTERRUPTED, test_folder, test_folder, format,
		       test_folder);
	turn_byte("cut.part");
}

static void an_interrupted_command_goes_on(void **state)
{
	static const char *const formats[] = {"npy", "jsonl"}, *const faults[] = {"write:3:ENOSPC", "write:3:kill"};
	for (int f = 0; f < 2; f++) {
		assert_program(0, "", EMBED "%s/texts.txt --format %s --out %s/whole", test_folder, test_folder, formats[f],
			       test_folder);
		setenv("BERTC_FAULT", faults[f], 1);
		int status = program(INTERRUPTED, test_folder, test_folder, formats[f], test_folder);
		unsetenv("BERTC_FAULT");
		assert_int_equal(status, f == 0 ? 5 : 128 + 9);
		assert_false(file_exists(test_path("cut")));
		int64_t done = noted_texts("cut.progress");
		assert_true(done > 0 && done < TEXTS);
		/* Not with other options, nor for another file. */
		assert_program(4, "other settings: '--pooling: ' then, '--pooling: cls' now", INTERRUPTED "--pooling cls",
			       test_folder, test_folder, formats[f], test_folder);
		refuse_changed_model(formats[f]);
		refuse_other_texts(formats[f]);
		refuse_changed_part(formats[f]);
		assert_program(0, "resuming after ", INTERRUPTED, test_folder, test_folder, formats[f], test_folder);
		assert_true(files_are_same(test_path("whole"), test_path("cut")));
		assert_false(file_exists(test_path("cut.progress")));
		assert_int_equal(remove(test_path("cut")), 0);
	}
}

/* The answers are written where the link points, which may be another disk. */
static void a_link_to_the_answers_is_kept(void **state)
{
	struct stat facts;
	assert_int_equal(symlink("elsewhere", test_path("link")), 0);
	assert_program(0, "", EMBED "%s/texts.txt --format npy --out %s/link", test_folder, test_folder, test_folder);
	assert_program(0, "", EMBED "%s/texts.txt --format npy --out %s/whole", test_folder, test_folder, test_folder);
	assert_int_equal(lstat(test_path("link"), &facts), 0);
	assert_true(S_ISLNK(facts.st_mode));
	assert_same_file(test_path("elsewhere"), test_path("whole"));
}

/* Codes of bytes depend on the vectors that show their ranges. */
static void other_ranges_are_refused(void **state)
{
	assert_program(0, "", EMBED "%s/texts.txt --format npy --out %s/a.npy", test_folder, test_folder, test_folder);
	assert_program(0, "", EMBED "%s/texts.txt --format npy --normalize --out %s/b.npy", test_folder, test_folder,
		       test_folder);
	setenv("BERTC_FAULT", "write:3:kill", 1);
	assert_int_equal(program(INTERRUPTED "--vector_type int8 --calibration_vectors %s/a.npy", test_folder, test_folder, "npy",
				 test_folder, test_folder),
			 128 + 9);
	unsetenv("BERTC_FAULT");
	assert_program(4,
		       "other settings: 'calibration_vectors: ", INTERRUPTED "--vector_type int8 --calibration_vectors %s/b.npy",
		       test_folder, test_folder, "npy", test_folder, test_folder);
	assert_program(0, "resuming after ", INTERRUPTED "--vector_type int8 --calibration_vectors %s/a.npy", test_folder,
		       test_folder, "npy", test_folder, test_folder);
	assert_int_equal(remove(test_path("cut")), 0);
}

/* At the end, the number of rows is written over the beginning of the file; after a failure there, the command can still
 * be resumed. */
static void a_failure_at_the_end_can_be_gone_on_with(void **state)
{
	int ended = 0;
	for (int i = 1; i <= 8; i++) {
		char fault[32];
		snprintf(fault, sizeof fault, "fsync:%d:EIO", i);
		setenv("BERTC_FAULT", fault, 1);
		int status = program(INTERRUPTED, test_folder, test_folder, "npy", test_folder);
		unsetenv("BERTC_FAULT");
		ended += status == 5;
		assert_true(status == 0 || status == 5);
		assert_program(0, "", INTERRUPTED, test_folder, test_folder, "npy", test_folder);
		assert_program(0, "", EMBED "%s/texts.txt --format npy --out %s/whole", test_folder, test_folder, test_folder);
		assert_true(files_are_same(test_path("whole"), test_path("cut")));
		assert_int_equal(remove(test_path("cut")), 0);
	}
	assert_true(ended >= 3);
}

/* The note is JSON, and so UTF-8; a path need not be. */
static void a_path_in_another_encoding(void **state)
{
	assert_ok(file_copy(test_path("texts.txt"), test_path("caf\xe9.txt")));
	setenv("BERTC_FAULT", "write:3:kill", 1);
	assert_int_equal(program(EMBED "%s/caf\xe9.txt --format npy --out %s/cut", test_folder, test_folder, test_folder),
			 128 + 9);
	unsetenv("BERTC_FAULT");
	assert_program(0, "resuming after ", EMBED "%s/caf\xe9.txt --format npy --out %s/cut", test_folder, test_folder,
		       test_folder);
	assert_int_equal(remove(test_path("cut")), 0);
}

static void an_interrupted_command_can_begin_anew(void **state)
{
	setenv("BERTC_FAULT", "write:3:kill", 1);
	assert_int_equal(program(INTERRUPTED, test_folder, test_folder, "npy", test_folder), 128 + 9);
	unsetenv("BERTC_FAULT");
	assert_program(0, "", INTERRUPTED "--pooling cls --fresh", test_folder, test_folder, "npy", test_folder);
	assert_program(0, "", EMBED "%s/texts.txt --pooling cls --format npy --out %s/whole", test_folder, test_folder,
		       test_folder);
	assert_true(files_are_same(test_path("whole"), test_path("cut")));
}

static void bad_commands_are_refused(void **state)
{
	assert_program(2, "--model is missing", "embed %s/texts.txt", test_folder);
	assert_ok(file_write(test_path("utf16"), "\0w\0a\0i\0 \0w\0a\0j\0 \0w\0a\0i\0\n", 24));
	assert_program(3, "utf16': not UTF-8 text", EMBED "%s/utf16", test_folder, test_folder);
	assert_said("iconv -f UTF-16");
	assert_program(2, "needs --out", EMBED "%s/texts.txt --format npy", test_folder, test_folder);
	assert_program(2, "needs --out", EMBED "%s/texts.txt --format npy --out -", test_folder, test_folder);
	assert_program(0, "", EMBED "%s/texts.txt --out -", test_folder, test_folder);
	assert_true(program_output.size > 0);
	assert_program(2, "texts.txt', which is read: it would be overwritten", EMBED "%s/texts.txt --out %s/texts.txt",
		       test_folder, test_folder, test_folder);
	assert_ok(file_copy(test_path("texts.txt"), test_path("own.part")));
	assert_program(2, "own.part', which is read: it would be overwritten", EMBED "%s/own.part --out %s/own --fresh",
		       test_folder, test_folder, test_folder);
	assert_same_file(test_path("texts.txt"), test_path("own.part"));
	assert_program(2, "which have no --pair_column", EMBED "%s/texts.txt --input text --pair_column x", test_folder,
		       test_folder);
	assert_program(2, "only applies to --vector_type int8", EMBED "%s/texts.txt --calibration_vectors x.npy", test_folder,
		       test_folder);
	assert_program(2, "no effect without --long_texts windows", EMBED "%s/texts.txt --doc_stride 8", test_folder,
		       test_folder);
	assert_program(2, "'-9' is not a layer", EMBED "%s/texts.txt --layers -1,-9", test_folder, test_folder);
	assert_program(2, "beyond the model's 48 positions", EMBED "%s/texts.txt --max_seq_length 49", test_folder, test_folder);
	assert_program(2, "a window has room for 46 tokens", EMBED "%s/texts.txt --long_texts windows --doc_stride 47",
		       test_folder, test_folder);
	assert_program(2, "cannot open", EMBED "%s/nothing.txt", test_folder, test_folder);
	assert_program(2, "is a folder", EMBED "%s/model", test_folder, test_folder);
	assert_program(2, "is not a seekable file", EMBED "%s/texts.txt --format npy --out /dev/null", test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_agree),
		cmocka_unit_test(answers_do_not_depend_on_how_they_are_computed),
		cmocka_unit_test(odd_texts_are_defined_and_said),
		cmocka_unit_test(windows_are_averaged),
		cmocka_unit_test(json_lines_and_pairs_are_read),
		cmocka_unit_test(columns_of_tables_are_read),
		cmocka_unit_test(lines_that_are_no_texts_are_noticed),
		cmocka_unit_test(sentence_folders_decide),
		cmocka_unit_test(words_are_weighed),
		cmocka_unit_test(prompts_are_left_out_of_windows),
		cmocka_unit_test(google_features_have_their_form),
		cmocka_unit_test(an_interrupted_command_goes_on),
		cmocka_unit_test(a_link_to_the_answers_is_kept),
		cmocka_unit_test(other_ranges_are_refused),
		cmocka_unit_test(a_failure_at_the_end_can_be_gone_on_with),
		cmocka_unit_test(an_interrupted_command_can_begin_anew),
		cmocka_unit_test(a_path_in_another_encoding),
		cmocka_unit_test(bad_commands_are_refused),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
