/* Model folders whose files contradict each other: each is refused by name, with its exit code, whoever opens it. */
#include "cmd/program.h"

#define GOLDEN "tests/golden/forms/roberta-words/" /* 20 rows, 12 positions */

static const char tokenizer[] =
	"{\"added_tokens\": [{\"id\": 4, \"content\": \"<mask>\", \"special\": true, \"lstrip\": true, \"normalized\": false}],\n"
	"\"post_processor\": {\"type\": \"TemplateProcessing\",\n"
	" \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}},\n"
	"  {\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}],\n"
	" \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", \"type_id\": 0}}],\n"
	" \"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [0], \"tokens\": [\"<s>\"]},\n"
	"  \"</s>\": {\"id\": \"</s>\", \"ids\": [2], \"tokens\": [\"</s>\"]}}},\n"
	"\"model\": {\"type\": \"BPE\", \"merges\": [\"a b\"], \"vocab\": {\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3,\n"
	" \"<mask>\": 4, \"a\": 5, \"b\": 6, \"c\": 7, \"d\": 8, \"e\": 9, \"f\": 10, \"g\": 11, \"h\": 12, \"i\": 13, \"j\": "
	"14,\n"
	" \"k\": 15, \"l\": 16, \"m\": 17, \"n\": 18, \"ab\": 19}}}\n";
static const char unigram[] =
	"{\"added_tokens\": [{\"id\": 4, \"content\": \"<mask>\", \"special\": true}], \"model\": {\"type\": \"Unigram\",\n"
	" \"unk_id\": 3, \"vocab\": [[\"<s>\", 0], [\"<pad>\", 0], [\"</s>\", 0], [\"<unk>\", 0], [\"<mask>\", 0], [\"a\", "
	"NaN]]}}\n";

/* Copies the folder's files, then puts `with` in the place of `text` in one of them. */
static void make_folder(const char *file, const char *text, const char *with)
{
	static const char *const files[] = {"config.json", "model.safetensors"};
	struct buffer whole = {0};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char from[PATH_BYTES], to[PATH_BYTES];
		snprintf(from, sizeof from, GOLDEN "%s", files[i]);
		snprintf(to, sizeof to, "%s/bad/%s", test_folder, files[i]);
		buffer_clear(&whole);
		assert_ok(file_read(from, 1 << 20, &whole));
		assert_ok(file_write(to, whole.data, whole.size));
	}
	put_file("bad/tokenizer.json", tokenizer);
	const char *path = test_path(file);
	buffer_clear(&whole);
	assert_ok(file_read(path, 1 << 20, &whole));
	const char *begin = buffer_string(&whole), *found = strstr(begin, text);
	assert_non_null(found);
	struct buffer changed = {0};
	buffer_append(&changed, begin, (size_t)(found - begin));
	buffer_append(&changed, with, strlen(with));
	buffer_append(&changed, found + strlen(text), strlen(found + strlen(text)));
	assert_ok(file_write(path, changed.data, changed.size));
	buffer_release(&changed);
	buffer_release(&whole);
}

/* Checks what the commands say of the folder. */
static void refused(int code, const char *message)
{
	assert_program(code, message, "fill --model %s/bad 'a <mask>'", test_folder);
	assert_int_equal(program_output.size, 0);
	assert_program(code, message, "embed --model %s/bad %s/text", test_folder, test_folder);
	assert_program(code, message,
		       "pretrain --fresh --corpus %s/text --init_checkpoint %s/bad --num_train_steps 1 --max_seq_length 8 "
		       "--no_progress --threads 1 --out %s/out",
		       test_folder, test_folder, test_folder);
	assert_false(file_exists(test_path("out/checkpoints")));
}

static void files_that_contradict_each_other(void **state)
{
	static const struct {
		const char *file, *text, *with, *message;
		int code;
	} cases[] = {
		{"bad/tokenizer.json", "\"ab\": 19", "\"ab\": 19, \"x\": 20, \"y\": 21", "the vocabulary has 22 entries", 4},
		{"bad/tokenizer.json", "\"a b\"", "\"a z\"", "merge 1, 'a' and 'z': the second is not an entry", 3},
		{"bad/tokenizer.json", "\"a b\"", "\"b a\"", "merge 1, 'b' and 'a': their union is not an entry", 3},
		{"bad/tokenizer.json", "\"id\": \"<s>\", \"type_id\"", "\"id\": \"<x>\", \"type_id\"",
		 "names the special token '<x>', but does not say what it is", 3},
		{"bad/tokenizer.json", "\"ids\": [2]", "\"ids\": [99]",
		 "'</s>' with the id 99, which the vocabulary does not have", 3},
		{"bad/config.json", "\"max_position_embeddings\": 12", "\"max_position_embeddings\": 514",
		 "has shape (12, 8) where the model's 'bert.embeddings.position_embeddings.weight' needs (514, 8)", 4},
		{"bad/config.json", "\"pad_token_id\": 2", "\"pad_token_id\": 20",
		 "\"pad_token_id\" is 20, beyond the 20 entries of \"vocab_size\"", 3},
		{"bad/config.json", "\"pad_token_id\": 2", "\"pad_token_id\": 12",
		 "\"max_position_embeddings\" is 12, but positions begin after \"pad_token_id\" 12", 3},
		{"bad/config.json", "\"model_type\": \"roberta\"", "\"model_type\": \"deberta-v2\"",
		 "\"deberta-v2\"; bertc has \"bert\", \"distilbert\", \"roberta\", \"xlm-roberta\", \"camembert\", \"electra\", "
		 "\"nomic_bert\", \"modernbert\"",
		 2},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make_folder(cases[i].file, cases[i].text, cases[i].with);
		refused(cases[i].code, cases[i].message);
		/* Only the weights are read after the text was prepared. */
		assert_int_equal(file_exists(test_path("out/data/train.bin")), strstr(cases[i].message, "has shape") != NULL);
	}
	/* The folder itself is a good one. */
	make_folder("bad/config.json", "roberta", "roberta");
	assert_program(0, "", "fill --model %s/bad 'a <mask>'", test_folder);
}

/* Models of sentencepiece: a type that is not Unigram, and a score that is no number, as in a tokenizer.json. */
static void unigram_models(void **state)
{
	static const char bpe[] = "\x12\x02\x18\x02", nan[] = "\x0A\x08\x0A\x01z\x15\0\0\xC0\x7F";
	make_folder("bad/config.json", "\"model_type\": \"roberta\"", "\"model_type\": \"xlm-roberta\"");
	assert_int_equal(remove(test_path("bad/tokenizer.json")), 0);
	assert_ok(file_write(test_path("bad/sentencepiece.bpe.model"), bpe, sizeof bpe - 1));
	refused(3, "sentencepiece.bpe.model': a sentencepiece model of the type BPE; bertc has Unigram only");
	assert_ok(file_write(test_path("bad/sentencepiece.bpe.model"), nan, sizeof nan - 1));
	refused(3, "sentencepiece.bpe.model': the score of piece 0, 'z', is NaN");
	assert_int_equal(remove(test_path("bad/sentencepiece.bpe.model")), 0);
	put_file("bad/tokenizer.json", unigram);
	refused(3, "tokenizer.json': JSON: NaN is not a number of JSON at byte");
}

/* What other programs' models are called, and what to do about them, with and without a configuration beside them. */
static void models_of_other_programs(void **state)
{
	static const struct {
		const char *file, *message;
	} cases[] = {
		{"model.onnx", "/other': no weights, but an ONNX graph ('model.onnx')"},
		{"tf_model.h5", "hint: load it in transformers once (from_tf=True)"},
		{"adapter_config.json", "no weights, but the configuration of an adapter ('adapter_config.json')"},
		{"pytorch_adapter.bin", "an adapter of the library \"adapters\" ('pytorch_adapter.bin')"},
	};
	assert_ok(folder_make(test_path("other")));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[64];
		snprintf(name, sizeof name, "other/%s", cases[i].file);
		put_file(name, "{}");
		assert_program(2, cases[i].message, "embed --model %s/other %s/text", test_folder, test_folder);
		put_file("other/config.json", "{\"model_type\": \"bert\"}");
		assert_program(2, cases[i].message, "embed --model %s/other %s/text", test_folder, test_folder);
		assert_int_equal(remove(test_path("other/config.json")), 0);
		assert_int_equal(remove(test_path(name)), 0);
	}
	put_file("other/model.onnx", "");
	assert_program(2, "no weights, but an ONNX graph", "embed --model %s/other/model.onnx %s/text", test_folder, test_folder);
	assert_int_equal(remove(test_path("other/model.onnx")), 0);
	assert_program(2, "/other': neither config.json nor bert_config.json", "embed --model %s/other %s/text", test_folder,
		       test_folder);
}

/* A folder of models, not one: its models are named, those of runs as well. */
static void folders_of_models(void **state)
{
	static const char *const commands[] = {
		"embed", "predict", "fill", "serve", "export --to onnx --out x", "evaluate --test x"};
	assert_ok(folder_make(test_path("runs/one")));
	assert_ok(folder_make(test_path("runs/two/final")));
	assert_ok(folder_make(test_path("runs/notes")));
	put_file("runs/one/config.json", "{\"model_type\": \"bert\"}");
	put_file("runs/two/final/config.json", "{\"model_type\": \"bert\"}");
	put_file("runs/notes/config.txt", "{}");
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		assert_program(2, "/runs' is not a model, but has models inside\nhint: name one of them: ", "%s --model %s/runs",
			       commands[i], test_folder);
		assert_said("/runs/one, ");
		assert_said("/runs/two\n");
	}
	assert_program(2, "/runs' is not a model, but has models inside",
		       "pretrain --corpus %s/text --init_checkpoint %s/runs --out %s/x", test_folder, test_folder, test_folder);
}

/* JSON of another kind than is expected there. */
static void lists_in_place_of_objects(void **state)
{
	static const char modules[] = "[{\"type\": \"sentence_transformers.models.Transformer\", \"path\": \"\"},"
				      " {\"type\": \"sentence_transformers.models.Pooling\", \"path\": \"1_Pooling\"}]",
			  pooling[] = "{\"word_embedding_dimension\": 8, \"pooling_mode_mean_tokens\": true}";
	make_folder("bad/config.json", "roberta", "roberta");
	put_file("bad/tokenizer_config.json", "{\"added_tokens_decoder\": [{\"content\": \"<s>\"}]}");
	refused(3, "tokenizer_config.json': \"added_tokens_decoder\" is not an object");
	assert_int_equal(remove(test_path("bad/tokenizer_config.json")), 0);
	assert_ok(folder_make(test_path("bad/1_Pooling")));
	put_file("bad/modules.json", modules);
	put_file("bad/1_Pooling/config.json", "[1]");
	assert_program(3, "1_Pooling/config.json': not a JSON object", "embed --model %s/bad %s/text", test_folder, test_folder);
	put_file("bad/1_Pooling/config.json", pooling);
	put_file("bad/sentence_bert_config.json", "[\"a\"]");
	assert_program(3, "sentence_bert_config.json': not a JSON object", "embed --model %s/bad %s/text", test_folder,
		       test_folder);
	assert_int_equal(remove(test_path("bad/sentence_bert_config.json")), 0);
	assert_int_equal(remove(test_path("bad/modules.json")), 0);
	assert_ok(folder_make(test_path("pieces")));
	put_file("pieces/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
	put_file("pieces/tokenizer.json", "{\"model\": {\"type\": \"WordPiece\", \"vocab\": [1]}}");
	assert_program(0, "its vocabulary is not an object", "tokenize --vocab_file %s/pieces %s/text", test_folder, test_folder);
}

/* Two special tokens stand between the texts of a pair, and count. */
static void pairs_that_are_too_long(void **state)
{
	make_folder("bad/tokenizer.json", "\"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, ",
		    "\"pair\": [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", "
		    "\"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": "
		    "\"</s>\", \"type_id\": 0}}, ");
	put_file("pairs", "a,d\n");
	assert_program(0, "", "embed --model %s/bad --pair_separator , --long_texts stop --max_seq_length 8 %s/pairs",
		       test_folder, test_folder);
	put_file("pairs", "aaaa,dd\n");
	assert_program(3, "9 tokens", "embed --model %s/bad --pair_separator , --long_texts stop --max_seq_length 8 %s/pairs",
		       test_folder, test_folder);
}

/* A vocabulary that is not there, beside one that is. */
static void vocabularies_that_are_not_there(void **state)
{
	assert_ok(folder_make(test_path("words")));
	put_file("words/tokenizer.json", tokenizer);
	assert_program(2, "/words/vocab.txt': there is no such vocabulary\nhint: there is '",
		       "tokenize --vocab_file %s/words/vocab.txt %s/text", test_folder, test_folder);
	assert_said("/words/tokenizer.json': name that file, or its folder");
	assert_program(2, "hint: give a vocab.txt, a tokenizer.json, or a folder with one of them",
		       "vocab --extend %s/runs/vocab.txt --corpus %s/text --out %s/v", test_folder, test_folder, test_folder);
}

static int setup(void **state)
{
	if (test_folder_make(state) != 0 || folder_make(test_path("bad")) != OK)
		return -1;
	return file_write(test_path("text"), "a b\n\na b\n", 9) == OK ? 0 : -1;
}

static void windows_without_room(void **state)
{
#define FIRST "{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, "
	make_folder("bad/tokenizer.json", FIRST, FIRST FIRST FIRST FIRST FIRST FIRST FIRST);
	assert_program(2, "windows of 8 tokens have no room for text: the tokenizer adds 8 special tokens",
		       "embed --model %s/bad --long_texts windows --max_seq_length 8 %s/text", test_folder, test_folder);
	assert_program(0, "", "embed --model %s/bad --long_texts windows --max_seq_length 9 %s/text", test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_contradict_each_other), cmocka_unit_test(unigram_models),
		cmocka_unit_test(models_of_other_programs),         cmocka_unit_test(folders_of_models),
		cmocka_unit_test(vocabularies_that_are_not_there),  cmocka_unit_test(lists_in_place_of_objects),
		cmocka_unit_test(pairs_that_are_too_long),          cmocka_unit_test(windows_without_room),
	};
	return cmocka_run_group_tests_name("bad model folders", tests, setup, program_teardown);
}
