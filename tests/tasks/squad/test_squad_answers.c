/* SQuAD's windows and answers compared with Google's code (dev/squad_golden.py), and input that makes that code fail or
 * that it never saw. */
#include "tasks/squad/squad_answers.h"
#include <math.h>
#include <time.h>
#include "base/json.h"
#include "base/memory.h"
#include "test.h"

/* Another, larger file of the same format can be named in the environment. */
static const char *golden_path(void)
{
	const char *named = getenv("SQUAD_GOLDEN");
	return named ? named : "tests/golden/squad.json";
}

static int64_t integer_of(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	assert_non_null(member);
	return member->kind == JSON_BOOL ? member->boolean : member->integer;
}

static double number_of(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	assert_non_null(member);
	return member->number;
}

static void make_vocab(const struct json *entries, struct vocab *out)
{
	const char **texts = calloc((size_t)entries->child_count, sizeof *texts);
	int32_t count = 0;
	assert_non_null(texts);
	for (const struct json *entry = entries->first_child; entry; entry = entry->next)
		texts[count++] = entry->text;
	assert_ok(vocab_from_entries(out, texts, count));
	free(texts);
}

static struct tokenizer *open_tokenizer(const struct vocab *vocab, bool lowercase)
{
	struct tokenizer *tokenizer;
	struct tokenizer_settings settings = tokenizer_defaults(!lowercase);
	if (!vocab->chain)
		settings.compat = COMPAT_GOOGLE;
	settings.max_word_characters = 200;
	assert_ok(tokenizer_open(&tokenizer, vocab, &settings));
	return tokenizer;
}

static void read_set(const char *text, size_t size, enum squad_use use, struct squad_set *out)
{
	static struct bad_records bad;
	const char *path = test_path("dataset.json");
	bad = (struct bad_records){.skip = true};
	assert_ok(file_write(path, text, size));
	assert_ok(squad_read(out, path, &(struct squad_options){.use = use, .allow_impossible = true, .bad = &bad}));
}

/* The logits by the formula of the script. */
static double logit(int64_t window, int64_t row, int64_t side)
{
	return (double)((window * 7919 + row * row * 31 + row * 104729 + side * 1299709) % 97) / 8 - 6;
}

static void expect_window(const struct squad_features *f, int64_t w, const struct json *row)
{
	static int32_t ids[4096], segments[4096];
	int32_t size = squad_window_size(f, w), query = (int32_t)integer_of(row, "query"), i = 0;
	const struct json *expected = json_member(row, "ids"), *words = json_member(row, "words");
	const char *max_context = json_member(row, "max_context")->text;
	int64_t tokens = f->token_starts[f->set->questions[f->windows[w].question].paragraph];
	assert_int_equal(f->windows[w].question, integer_of(row, "id"));
	assert_int_equal(size, expected->child_count);
	assert_in_range(size, 1, 4096);
	squad_window_fill(f, w, ids, segments);
	for (const struct json *id = expected->first_child; id; id = id->next, i++) {
		int32_t token = squad_row_token(f, w, i);
		assert_int_equal(ids[i], id->integer);
		assert_int_equal(segments[i], i >= query);
		assert_int_equal(token >= 0, i >= query && i < size - 1);
	}
	i = query;
	for (const struct json *word = words->first_child; word; word = word->next, i++) {
		int32_t token = squad_row_token(f, w, i);
		assert_int_equal(f->token_words[tokens + token], word->integer);
		assert_int_equal(squad_is_max_context(f, w, token), max_context[i - query] == '1');
	}
}

/* Answers with a no-break space are equal to their text and are kept; Google's code first turns it into a space and then
 * cannot find the answer. */
static void expect_targets(const struct json *row, const struct squad_set *set, const struct tokenizer *tokenizer,
			   struct squad_feature_settings settings)
{
	struct squad_features f;
	const struct json *id = json_member(row, "train_ids")->first_child, *next = json_member(row, "train")->first_child;
	int64_t left_out = 0;
	settings.find_targets = true;
	assert_ok(squad_features_make(&f, set, tokenizer, &settings));
	for (int64_t q = 0; q < set->question_count; q++) {
		if (!id || strcmp(id->text, set->questions[q].id) != 0) { /* Google's code leaves it out */
			assert_true(strstr(set->answers[set->questions[q].first_answer].text, "\xC2\xA0"));
			left_out++;
			continue;
		}
		id = id->next;
		for (int64_t w = f.window_starts[q]; w < f.window_starts[q + 1]; w++, next = next->next) {
			const struct json *target = json_member(next, "target");
			assert_int_equal(f.windows[w].question, integer_of(next, "id") + left_out);
			if (f.windows[w].start_row != target->first_child->integer ||
			    f.windows[w].end_row != target->first_child->next->integer)
				fail_msg("question %s: window %lld", set->questions[q].id, (long long)(w - f.window_starts[q]));
		}
	}
	assert_true(!id && !next);
	squad_features_release(&f);
}

static void decode_all(const struct squad_features *f, const struct squad_answer_settings *settings, struct squad_files *files)
{
	static double start[4096], end[4096];
	struct squad_decoder *decoder;
	struct squad_result result;
	assert_ok(squad_decoder_open(&decoder, f, settings));
	for (int64_t q = 0; q < f->set->question_count; q++) {
		assert_ok(squad_decoder_begin(decoder, q));
		for (int64_t w = f->window_starts[q]; w < f->window_starts[q + 1]; w++) {
			int32_t size = squad_window_size(f, w);
			for (int32_t row = 0; row < size; row++) {
				start[row] = logit(w, row, 0);
				end[row] = logit(w, row, 1);
			}
			assert_ok(squad_decoder_window(decoder, w, start, end, size));
		}
		assert_ok(squad_decoder_end(decoder, &result));
		squad_files_add(files, f->set->questions[q].id, &result, settings->version_2);
	}
	squad_decoder_close(decoder);
}

/* The file is the text, except for the last digit of a probability: another C library may round exp() differently. */
static void expect_file(const char *name, const struct json *expected)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path(name), 1 << 30, &text));
	const char *a = buffer_string(&text), *b = expected->text;
	while (*a && *b) {
		if (strncmp(a, "\"probability\": ", 15) == 0 && strncmp(b, "\"probability\": ", 15) == 0) {
			char *a_end, *b_end;
			double left = strtod(a + 15, &a_end), right = strtod(b + 15, &b_end);
			assert_near(left, right, 1e-15);
			a = a_end;
			b = b_end;
			continue;
		}
		if (*a++ != *b++)
			fail_msg("%s differs: %.60s, expected %.60s", name, a - 1, b - 1);
	}
	assert_int_equal(*a, *b);
	buffer_release(&text);
}

static void check_case(const struct json *row, const struct vocab *vocab)
{
	struct squad_features f;
	struct squad_set set;
	const struct json *settings = json_member(row, "settings"), *dataset = json_member(row, "dataset");
	struct tokenizer *tokenizer = open_tokenizer(vocab, json_member(settings, "lowercase")->boolean);
	struct squad_feature_settings windows = {.max_seq_length = (int32_t)integer_of(settings, "max_seq_length"),
						 .max_query_length = (int32_t)integer_of(settings, "max_query_length"),
						 .doc_stride = (int32_t)integer_of(settings, "doc_stride"),
						 .whole_words = true};
	struct squad_answer_settings answers = {.n_best_size = (int32_t)integer_of(settings, "n_best_size"),
						.max_answer_length = (int32_t)integer_of(settings, "max_answer_length"),
						.version_2 = integer_of(settings, "version_2"),
						.null_threshold = number_of(settings, "null_threshold")};
	read_set(dataset->text, dataset->text_size, SQUAD_TRAIN, &set);
	expect_targets(row, &set, tokenizer, windows);
	squad_release(&set);

	read_set(dataset->text, dataset->text_size, SQUAD_PREDICT, &set);
	assert_ok(squad_features_make(&f, &set, tokenizer, &windows));
	int64_t w = 0;
	for (const struct json *expected = json_member(row, "features")->first_child; expected; expected = expected->next)
		expect_window(&f, w++, expected);
	assert_int_equal(w, f.window_starts[set.question_count]);

	struct squad_files files = {0};
	decode_all(&f, &answers, &files);
	assert_ok(squad_files_write(&files, test_folder, "", answers.version_2));
	expect_file("predictions.json", json_member(row, "predictions"));
	expect_file("nbest_predictions.json", json_member(row, "n_best"));
	if (answers.version_2)
		expect_file("null_odds.json", json_member(row, "null_odds"));
	print_message("%lld questions, %lld windows\n", (long long)set.question_count, (long long)w);
	squad_files_release(&files);
	squad_features_release(&f);
	squad_release(&set);
	tokenizer_close(tokenizer);
}

static void equal_to_google(void **state)
{
	struct json_document document;
	struct vocab vocab;
	assert_ok(json_read(&document, golden_path(), 1 << 30));
	make_vocab(json_member(document.root, "vocab"), &vocab);
	for (const struct json *row = json_member(document.root, "cases")->first_child; row; row = row->next)
		check_case(row, &vocab);
	vocab_release(&vocab);
	json_release(&document);
}

/* ---- Input that makes Google's code fail, or that it never saw ---- */

struct world {
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct squad_set set;
	struct squad_features f;
};

#define ONE_QUESTION(context, answer, start)                                                                                     \
	"{\"data\": [{\"paragraphs\": [{\"context\": \"" context                                                                 \
	"\", \"qas\": [{\"id\": \"x\", \"question\": \"who\", \"answers\": [{\"text\": \"" answer "\", \"answer_start\": " start \
	"}]}]}]}]}"

/* With the world's vocabulary. */
static void world_open(struct world *world, const char *dataset, struct squad_feature_settings settings)
{
	world->tokenizer = open_tokenizer(&world->vocab, true);
	read_set(dataset, strlen(dataset), settings.find_targets ? SQUAD_TRAIN : SQUAD_PREDICT, &world->set);
	assert_ok(squad_features_make(&world->f, &world->set, world->tokenizer, &settings));
}

static void world_make(struct world *world, const char *dataset, struct squad_feature_settings settings)
{
	static const char *const entries[] = {"[PAD]",        "[UNK]", "[CLS]", "[SEP]", "[MASK]",
					      "who",          "ann",   "bob",   "##s",   "\xE6\x88\x91",
					      "\xE4\xBD\xA0", "cat",   "##ty",  "and",   "\xE7\x88\xB1"};
	assert_ok(vocab_from_entries(&world->vocab, entries, sizeof entries / sizeof *entries));
	world_open(world, dataset, settings);
}

static void world_release(struct world *world)
{
	squad_features_release(&world->f);
	squad_release(&world->set);
	tokenizer_close(world->tokenizer);
	vocab_release(&world->vocab);
}

static const struct squad_feature_settings windows_of_16 = {.max_seq_length = 16, .max_query_length = 4, .doc_stride = 4};

static struct squad_result decode_one(struct world *world, struct squad_decoder **out_decoder, bool version_2,
				      const double *start, const double *end)
{
	struct squad_result result;
	struct squad_answer_settings settings = {.n_best_size = 20, .max_answer_length = 30, .version_2 = version_2};
	assert_ok(squad_decoder_open(out_decoder, &world->f, &settings));
	assert_ok(squad_decoder_begin(*out_decoder, 0));
	for (int64_t w = 0; w < world->f.window_starts[1]; w++)
		assert_ok(squad_decoder_window(*out_decoder, w, start, end, squad_window_size(&world->f, w)));
	assert_ok(squad_decoder_end(*out_decoder, &result));
	return result;
}

/* A paragraph without tokens: no window, so nothing to choose from. */
static void nothing_to_choose_from(void **state)
{
	struct world world;
	struct squad_decoder *decoder;
	world_make(&world, ONE_QUESTION(" ", "", "0"), windows_of_16);
	assert_int_equal(world.f.empty_paragraphs, 1);
	assert_int_equal(world.f.window_starts[1], 0);
	struct squad_result result = decode_one(&world, &decoder, false, NULL, NULL);
	assert_int_equal(result.count, 1);
	assert_string_equal(result.prediction, "empty");
	assert_null(result.best);
	squad_decoder_close(decoder);
	result = decode_one(&world, &decoder, true, NULL, NULL);
	assert_int_equal(result.count, 1);
	assert_string_equal(result.prediction, "");
	assert_null(result.best);
	squad_decoder_close(decoder);
	world_release(&world);
}

/* All of the best rows lie in the question: only "no answer" is left, for which version 1 uses Google's word. */
static void only_the_question_scores(void **state)
{
	struct world world;
	struct squad_decoder *decoder;
	double start[16] = {-5, 9, 9}, end[16] = {-5, 9, 9};
	struct squad_result result;
	struct squad_answer_settings settings = {.n_best_size = 2, .max_answer_length = 30, .version_2 = true};
	world_make(&world, ONE_QUESTION("Ann and Bob", "Bob", "8"), windows_of_16);
	assert_ok(squad_decoder_open(&decoder, &world.f, &settings));
	assert_ok(squad_decoder_begin(decoder, 0));
	assert_ok(squad_decoder_window(decoder, 0, start, end, squad_window_size(&world.f, 0)));
	assert_ok(squad_decoder_end(decoder, &result));
	assert_int_equal(result.count, 1);
	assert_string_equal(result.prediction, "");
	assert_near(result.null_odds, -10, 0);
	start[3] = NAN;
	assert_ok(squad_decoder_begin(decoder, 0));
	assert_error(ERR_NUMERIC, "question 'x'", squad_decoder_window(decoder, 0, start, end, squad_window_size(&world.f, 0)));
	squad_decoder_close(decoder);
	world_release(&world);
}

/* Without spaces between words, Google's code takes the first position with equal text; with ideographs as words, the
 * right position is taken, in training and in answers. */
static void chinese_answers_stay_in_their_place(void **state)
{
	struct world world;
	struct squad_decoder *decoder;
	/* I love you you love me */
	const char *dataset =
		ONE_QUESTION("\xE6\x88\x91\xE7\x88\xB1\xE4\xBD\xA0\xE4\xBD\xA0\xE7\x88\xB1\xE6\x88\x91", "\xE7\x88\xB1", "4");
	struct squad_feature_settings settings = windows_of_16;
	settings.find_targets = settings.whole_words = true;
	world_make(&world, dataset, settings);
	assert_int_equal(world.f.word_starts[1], 1);
	assert_int_equal(world.f.windows[0].start_row, 3 + 1);
	world_release(&world);
	settings.whole_words = false;
	world_make(&world, dataset, settings);
	assert_int_equal(world.f.word_starts[1], 6);
	assert_int_equal(world.f.windows[0].start_row, 3 + 4);
	assert_int_equal(world.f.windows[0].end_row, 3 + 4);
	double start[16] = {0}, end[16] = {0};
	start[3 + 3] = end[3 + 4] = 5;
	struct squad_result result = decode_one(&world, &decoder, false, start, end);
	assert_string_equal(result.prediction, "\xE4\xBD\xA0\xE7\x88\xB1"); /* no space where there was none */
	assert_int_equal(result.best->begin, 9);
	assert_int_equal(result.best->end, 15);
	int64_t begin_character, end_character;
	squad_code_points(&world.set.paragraphs[0], result.best->begin, result.best->end, &begin_character, &end_character);
	assert_int_equal(begin_character, 3);
	assert_int_equal(end_character, 5);
	squad_decoder_close(decoder);
	world_release(&world);
}

/* A tokenizer of bytes whose tokens include the space before a word; `prefix`: it puts one before every text. */
static void open_spaced(struct world *world, bool prefix, const char *dataset)
{
	static const char special[] = "{\"pad_token\": \"<pad>\", \"unk_token\": \"<unk>\", \"cls_token\": \"<s>\", "
				      "\"sep_token\": \"</s>\", \"mask_token\": \"<mask>\"}";
	struct squad_feature_settings settings = windows_of_16;
	struct buffer tokenizer = {0};
	settings.find_targets = true;
	buffer_format(
		&tokenizer,
		"{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": %s, \"trim_offsets\": true}, "
		"\"decoder\": "
		"{\"type\": \"ByteLevel\"}, \"post_processor\": {\"type\": \"RobertaProcessing\", \"sep\": [\"</s>\", 3], "
		"\"cls\": [\"<s>\", 2], \"trim_offsets\": true, \"add_prefix_space\": false}, \"model\": {\"type\": \"BPE\", "
		"\"merges\": [\"a b\", \"\\u0120 ab\", \"\\u0120 (\"], "
		"\"vocab\": {\"<pad>\": 0, \"<unk>\": 1, \"<s>\": 2, \"</s>\": 3, \"<mask>\": 4, \"a\": 5, \"b\": 6, "
		"\"\\u0120\": 7, "
		"\"(\": 8, \"ab\": 9, \"\\u0120ab\": 10, \"\\u0120(\": 11}}}",
		prefix ? "true" : "false");
	assert_ok(file_write(test_path("tokenizer.json"), tokenizer.data, tokenizer.size));
	assert_ok(file_write(test_path("special_tokens_map.json"), special, strlen(special)));
	assert_ok(vocab_read(&world->vocab, test_path("tokenizer.json")));
	world_open(world, dataset, settings);
	buffer_release(&tokenizer);
}

/* Such a tokenizer sees the space between the words of a paragraph, as in a whole text. */
static void words_have_the_space_before_them(void **state)
{
	static const int32_t ids[] = {9, 10, 11, 9}, begins[] = {0, 3, 6, 7};
	struct world world;
	open_spaced(&world, false, ONE_QUESTION("ab ab (ab", "ab", "3"));
	assert_int_equal(world.f.token_starts[1], 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(world.f.token_ids[i], ids[i]);
		assert_int_equal(world.f.token_begins[i], begins[i]);
	}
	int32_t first = world.f.windows[0].start_row; /* the second word, whose token is not that of the answer alone */
	assert_int_equal(squad_row_token(&world.f, 0, first), 1);
	assert_int_equal(world.f.windows[0].end_row, first);
	world_release(&world);
}

/* Its tokens are part of a word as well: "ab" of "(abb". */
static void answers_within_words_of_bytes(void **state)
{
	for (int prefix = 0; prefix < 2; prefix++) {
		struct world world;
		struct squad_decoder *decoder;
		double start[16] = {0}, end[16] = {0};
		open_spaced(&world, prefix, ONE_QUESTION("ab ab  (abb", "ab", "8"));
		int32_t row = world.f.windows[0].start_row;
		assert_int_equal(squad_row_token(&world.f, 0, row), 3);
		assert_int_equal(world.f.windows[0].end_row, row);
		start[row] = end[row] = 5;
		struct squad_result result = decode_one(&world, &decoder, false, start, end);
		assert_string_equal(result.prediction, "ab");
		assert_int_equal(result.best->begin, 8);
		assert_int_equal(result.best->end, 10);
		squad_decoder_close(decoder);
		start[row] = 0;
		start[row - 2] = 5; /* from the word before */
		result = decode_one(&world, &decoder, false, start, end);
		assert_string_equal(result.prediction, "ab (ab");
		assert_int_equal(result.best->begin, 3);
		assert_int_equal(result.best->end, 10);
		squad_decoder_close(decoder);
		world_release(&world);
	}
}

/* Where there is no white space, every candidate may have the whole paragraph as its text: the number of those tried is limited.
 */
static void a_paragraph_without_white_space_is_soon_done(void **state)
{
	enum { CHARACTERS = 12000 };
	struct world world;
	struct squad_decoder *decoder;
	struct buffer dataset = {0};
	double start[16], end[16];
	buffer_text(&dataset, "{\"data\": [{\"paragraphs\": [{\"context\": \"");
	for (int i = 0; i < CHARACTERS; i++)
		buffer_char(&dataset, '.');
	buffer_text(&dataset, "\", \"qas\": [{\"id\": \"x\", \"question\": \"who\", \"answers\": []}]}]}]}");
	world_make(&world, buffer_string(&dataset), windows_of_16);
	for (int i = 0; i < 16; i++) {
		start[i] = logit(3, i, 0);
		end[i] = logit(3, i, 1);
	}
	clock_t began = clock(); /* of the processor, which others may be using too */
	struct squad_result result = decode_one(&world, &decoder, false, start, end);
	assert_true(clock() - began < 2 * CLOCKS_PER_SEC); /* ten times as long if all are tried */
	assert_int_equal(result.count, 1); /* no piece is in the vocabulary, so every text is the whole paragraph */
	assert_int_equal(result.best->end - result.best->begin, CHARACTERS);
	squad_decoder_close(decoder);
	world_release(&world);
	buffer_release(&dataset);
}

/* The bytes of each choice are its text, up to white space. */
static void places_are_those_of_the_text(void **state)
{
	struct world world;
	struct squad_decoder *decoder;
	double start[16], end[16];
	world_make(&world, ONE_QUESTION("  Ann's \\t (cats)  and\\nBob", "Bob", "21"), windows_of_16);
	for (int i = 0; i < 16; i++) {
		start[i] = logit(3, i, 0);
		end[i] = logit(3, i, 1);
	}
	struct squad_result result = decode_one(&world, &decoder, false, start, end);
	assert_true(result.count > 5);
	for (int32_t i = 0; i < result.count; i++) {
		const struct squad_choice *choice = &result.choices[i];
		const char *at = world.set.paragraphs[0].text + choice->begin, *text = choice->text;
		for (; *text; text++) {
			assert_true(at < world.set.paragraphs[0].text + choice->end);
			if (*text == ' ')
				at += strspn(at, " \t\n");
			else
				assert_int_equal(*at++, *text);
		}
		assert_ptr_equal(at, world.set.paragraphs[0].text + choice->end);
	}
	squad_decoder_close(decoder);
	world_release(&world);
}

/* Questions that have no words, the first and the only ones of their file among them, are answered from the paragraph alone. */
static void questions_without_words(void **state)
{
	struct world world;
	int32_t ids[16], types[16];
	world_make(&world,
		   "{\"data\": [{\"paragraphs\": [{\"context\": \"ann bob\", \"qas\": ["
		   "{\"id\": \"x\", \"question\": \" \"}, {\"id\": \"y\", \"question\": \"\"}]}]}]}",
		   (struct squad_feature_settings){.max_seq_length = 16, .max_query_length = 4, .doc_stride = 4});
	assert_int_equal(world.f.window_starts[2], 2);
	assert_non_null(world.f.query_ids); /* windows add to it, which nobody may do to a null pointer */
	for (int64_t window = 0; window < 2; window++) {
		assert_int_equal(squad_window_size(&world.f, window), 5);
		squad_window_fill(&world.f, window, ids, types);
		assert_memory_equal(ids, ((int32_t[]){2, 3, 6, 7, 3}), 5 * sizeof *ids);
		assert_memory_equal(types, ((int32_t[]){0, 0, 1, 1, 1}), 5 * sizeof *types);
	}
	world_release(&world);
}

static void overlap_and_cut_questions(void **state)
{
	struct world world;
	struct squad_feature_settings settings = {
		.max_seq_length = 8, .max_query_length = 2, .doc_stride = 1, .stride_is_overlap = true, .find_targets = true};
	/* Room for 4 tokens beside one of a question; steps of 3 */
	world_make(
		&world,
		"{\"data\": [{\"paragraphs\": [{\"context\": \"ann bob ann bob ann bob ann bob\", \"qas\": ["
		"{\"id\": \"x\", \"question\": \"who\", \"answers\": [{\"text\": \"bob ann\", \"answer_start\": 12}]},"
		"{\"id\": \"y\", \"question\": \"who who and\", \"answers\": [{\"text\": \"bob ann bob ann\", \"answer_start\": "
		"4}]}]}]}]}",
		settings);
	const struct squad_features *f = &world.f;
	assert_int_equal(f->window_starts[1], 3);
	assert_int_equal(f->windows[1].first, 3);
	assert_int_equal(f->windows[2].first, 6);
	assert_int_equal(f->windows[2].length, 2);
	assert_int_equal(f->windows[0].start_row, 0);
	assert_int_equal(f->windows[1].start_row, 3);
	assert_int_equal(f->windows[1].end_row, 4);
	assert_int_equal(f->cut_questions, 1);
	assert_int_equal(squad_window_size(f, f->window_starts[1]), 8);
	assert_int_equal(f->outside_answers, 1); /* four tokens, room for three */
	world_release(&world);

	struct squad_features none;
	settings.max_seq_length = 4;
	world_make(&world, ONE_QUESTION("ann", "ann", "0"), windows_of_16);
	assert_error(ERR_USAGE, "question 'x' has 1 tokens: --max_seq_length 4 leaves no room",
		     squad_features_make(&none, &world.set, world.tokenizer, &settings));
	world_release(&world);
}

/* Numbers and text as Python writes them. */
static void files_as_python_writes_them(void **state)
{
	struct squad_files files = {0};
	struct squad_choice choice = {.text = "\"\\\x01\x7F\xC3\xA9\xF0\x9F\x98\x80\t"};
	struct squad_result result = {.choices = &choice, .count = 1, .prediction = choice.text};
	result.null_odds = 1000000;
	squad_files_add(&files, "a", &result, true);
	assert_string_equal(buffer_string(&files.null_odds), "{\n    \"a\": 1000000.0");
	result.null_odds = NAN;
	squad_files_add(&files, "b", &result, true);
	assert_string_equal(buffer_string(&files.null_odds), "{\n    \"a\": 1000000.0,\n    \"b\": null");
	buffer_clear(&files.predictions);
	squad_files_add(&files, "b", &result, false);
	assert_string_equal(buffer_string(&files.predictions), "{\n    \"b\": \"\\\"\\\\\\u0001\x7F\\u00e9\\ud83d\\ude00\\t\"");
	squad_files_release(&files);

	struct buffer text = {0};
	assert_ok(squad_files_write(&files, test_folder, "eval_", true));
	assert_ok(file_read(test_path("eval_null_odds.json"), 100, &text));
	assert_string_equal(buffer_string(&text), "{}\n");
	buffer_release(&text);
	squad_files_release(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_to_google),
		cmocka_unit_test(nothing_to_choose_from),
		cmocka_unit_test(only_the_question_scores),
		cmocka_unit_test(chinese_answers_stay_in_their_place),
		cmocka_unit_test(words_have_the_space_before_them),
		cmocka_unit_test(answers_within_words_of_bytes),
		cmocka_unit_test(a_paragraph_without_white_space_is_soon_done),
		cmocka_unit_test(places_are_those_of_the_text),
		cmocka_unit_test(questions_without_words),
		cmocka_unit_test(overlap_and_cut_questions),
		cmocka_unit_test(files_as_python_writes_them),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
