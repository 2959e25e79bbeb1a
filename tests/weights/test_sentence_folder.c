/* sentence-transformers folders: the formats written by its versions are read; ours is the old one, and can be read back. */
#include "base/json.h"
#include "test.h"
#include "weights/manifest.h"
#include "weights/sentence_folder.h"

/* The folders as written by versions 2 and 6.2 of sentence-transformers. */
#define OLD "sentence_transformers.models."
#define OLD_MODULES                                                                                                              \
	"[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": \"" OLD "Transformer\"}, {\"idx\": 1, \"name\": \"1\", "       \
	"\"path\": \"1_Pooling\", \"type\": \"" OLD "Pooling\"}, {\"idx\": 2, \"name\": \"2\", \"path\": \"2_Normalize\", "      \
	"\"type\": \"" OLD "Normalize\"}]"
#define OLD_POOLING                                                                                                              \
	"{\"word_embedding_dimension\": 384, \"pooling_mode_cls_token\": false, \"pooling_mode_mean_tokens\": true, "            \
	"\"pooling_mode_max_tokens\": false, \"pooling_mode_mean_sqrt_len_tokens\": false}"
#define NEW_MODULES                                                                                                              \
	"[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": \"sentence_transformers.base.modules.transformer."             \
	"Transformer\"}, {\"idx\": 1, \"name\": \"1\", \"path\": \"1_Pooling\", \"type\": "                                      \
	"\"sentence_transformers.sentence_transformer.modules.pooling.Pooling\"}, {\"idx\": 2, \"name\": \"2\", \"path\": "      \
	"\"2_Normalize\", \"type\": \"sentence_transformers.base.modules.normalize.Normalize\"}]"
#define NEW_LENGTH                                                                                                               \
	"{\"transformer_task\": \"feature-extraction\", \"modality_config\": {\"text\": {\"method\": \"forward\", "              \
	"\"method_output_name\": \"last_hidden_state\"}}, \"module_output_name\": \"token_embeddings\"}"
#define NEW_ABOUT                                                                                                                \
	"{\"__version__\": {\"pytorch\": \"2\", \"sentence_transformers\": \"6.2.0\", \"transformers\": \"5\"}, "                \
	"\"default_prompt_name\": null, \"model_type\": \"SentenceTransformer\", \"prompts\": {\"query\": \"query: \", "         \
	"\"document\": \"\"}, \"similarity_fn_name\": \"cosine\", \"truncate_dim\": 64}"

/* A folder of its own for each case. */
static const char *fresh(const char *name)
{
	char inner[128];
	const char *path = test_path(name);
	snprintf(inner, sizeof inner, "%s/1_Pooling", name);
	assert_ok(folder_make(test_path(inner)));
	return path;
}

static void the_old_form_is_read(void **state)
{
	struct sentence_folder folder;
	const char *path = fresh("old");
	put_file("old/modules.json", OLD_MODULES);
	put_file("old/1_Pooling/config.json", OLD_POOLING);
	put_file("old/sentence_bert_config.json", "{\"max_seq_length\": 256, \"do_lower_case\": true}");
	assert_ok(sentence_folder_read(&folder, path));
	assert_true(folder.found && folder.normalize && folder.lowercase && !folder.leaves_out_prompt);
	assert_string_equal(folder.transformer, path);
	assert_int_equal(folder.pooling, POOLING_MEAN);
	assert_int_equal(folder.max_seq_length, 256);
	assert_int_equal(folder.prompt_count, 0);
	assert_int_equal(folder.default_prompt, -1);
	sentence_folder_release(&folder);
}

static void the_new_form_is_read(void **state)
{
	struct sentence_folder folder;
	const char *path = fresh("new");
	put_file("new/modules.json", NEW_MODULES);
	put_file("new/1_Pooling/config.json",
		 "{\"embedding_dimension\": 384, \"pooling_mode\": [\"cls\", \"mean\"], \"include_prompt\": false}");
	put_file("new/sentence_bert_config.json", NEW_LENGTH);
	put_file("new/config_sentence_transformers.json", NEW_ABOUT);
	assert_ok(sentence_folder_read(&folder, path));
	assert_true(folder.found && folder.normalize && !folder.lowercase && folder.leaves_out_prompt);
	assert_int_equal(folder.pooling, POOLING_CLS | POOLING_MEAN);
	assert_int_equal(folder.max_seq_length, 0);
	assert_int_equal(folder.truncate_dim, 64);
	assert_int_equal(folder.prompt_count, 2);
	assert_int_equal(sentence_folder_prompt(&folder, "document"), 1);
	assert_int_equal(sentence_folder_prompt(&folder, "passage"), -1);
	assert_string_equal(folder.prompts[0].text, "query: ");
	assert_string_equal(folder.similarity, "cosine");
	sentence_folder_release(&folder);
}

/* SparseEncoder's, as version 6.2 writes it and we do; sums in place of maxima are refused. */
static void sparse_encoders_are_read(void **state)
{
	struct sentence_folder folder, about = {.pooling = POOLING_SPLADE, .default_prompt = -1};
	struct folder_files files = {0};
	const char *path = fresh("sparse");
	put_file("sparse/modules.json",
		 "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": "
		 "\"sentence_transformers.base.modules.transformer.Transformer\"}, {\"idx\": 1, \"name\": \"1\", \"path\": "
		 "\"1_Pooling\", \"type\": \"sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling\"}]");
	put_file("sparse/1_Pooling/config.json",
		 "{\"pooling_strategy\": \"max\", \"activation_function\": \"relu\", \"embedding_dimension\": null}");
	assert_ok(sentence_folder_read(&folder, path));
	assert_true(folder.found && folder.pooling == POOLING_SPLADE && !folder.normalize);
	sentence_folder_release(&folder);
	put_file("sparse/1_Pooling/config.json", "{\"pooling_strategy\": \"sum\"}");
	assert_int_equal(sentence_folder_read(&folder, path), ERR_USAGE);
	assert_non_null(strstr(error_last()->message, "cannot obey \"pooling_strategy\"; it must be max"));
	sentence_folder_release(&folder);
	path = fresh("ours");
	assert_ok(sentence_folder_write(path, &about, 384, &files));
	free(files.files);
	assert_ok(sentence_folder_read(&folder, path));
	assert_true(folder.found && folder.pooling == POOLING_SPLADE);
	assert_string_equal(folder.similarity, "dot");
	sentence_folder_release(&folder);
}

/* The BERT model in a folder of its own, as the first versions wrote it; and a cross-encoder, which pools nothing. */
static void other_layouts_are_read(void **state)
{
	struct sentence_folder folder;
	const char *path = fresh("early");
	assert_ok(folder_make(test_path("early/0_BERT")));
	put_file("early/modules.json",
		 "[{\"idx\": 0, \"name\": \"0\", \"path\": \"0_BERT\", \"type\": \"" OLD "BERT\"}, {\"idx\": 1, "
		 "\"name\": \"1\", \"path\": \"1_Pooling\", \"type\": \"" OLD "Pooling\"}]");
	put_file("early/0_BERT/sentence_bert_config.json", "{\"max_seq_length\": 128}");
	put_file("early/1_Pooling/config.json", "{\"pooling_mode\": \"lasttoken\"}");
	assert_ok(sentence_folder_read(&folder, path));
	assert_string_equal(folder.transformer, test_path("early/0_BERT"));
	assert_int_equal(folder.max_seq_length, 128);
	assert_int_equal(folder.pooling, POOLING_LAST);
	assert_false(folder.normalize);
	sentence_folder_release(&folder);

	path = fresh("cross");
	put_file("cross/modules.json", "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": \"" OLD "Transformer\"}]");
	assert_ok(sentence_folder_read(&folder, path));
	assert_true(folder.found && folder.pooling == 0);
	sentence_folder_release(&folder);

	assert_ok(sentence_folder_read(&folder, fresh("plain")));
	assert_false(folder.found);
	assert_ok(sentence_folder_read(&folder, test_path("nothing there")));
	assert_false(folder.found);
}

static void bad_folders_are_refused(void **state)
{
	static const struct {
		enum status status;
		const char *part, *file, *text;
	} cases[] = {
		{ERR_USAGE, "does not compute module 1, '" OLD "Dense'", "modules.json",
		 "[{\"path\": \"\", \"type\": \"" OLD "Transformer\"}, {\"path\": \"2_Dense\", \"type\": \"" OLD "Dense\"}]"},
		{ERR_USAGE, "module 0 is '" OLD "Pooling'", "modules.json",
		 "[{\"path\": \"1_Pooling\", \"type\": \"" OLD "Pooling\"}]"},
		{ERR_DATA, "leads out of the folder", "modules.json", "[{\"path\": \"../x\", \"type\": \"" OLD "Transformer\"}]"},
		{ERR_DATA, "not a list of modules", "modules.json", "{}"},
		{ERR_USAGE, "pooling mode 'median'", "1_Pooling/config.json", "{\"pooling_mode\": \"median\"}"},
		{ERR_USAGE, "in another", "1_Pooling/config.json", "{\"pooling_mode\": [\"mean\", \"cls\"]}"},
		{ERR_DATA, "names no pooling mode", "1_Pooling/config.json", "{\"pooling_mode_cls_token\": false}"},
		{ERR_DATA, "max_seq_length", "sentence_bert_config.json", "{\"max_seq_length\": -1}"},
		{ERR_DATA, "max_seq_length", "sentence_bert_config.json", "{\"max_seq_length\": 2}"},
		{ERR_USAGE, "cannot obey \"query_length\"", "sentence_bert_config.json", "{\"query_length\": 32}"},
		{ERR_USAGE, "cannot obey \"processing_kwargs\"", "sentence_bert_config.json",
		 "{\"query_length\": null, \"processing_kwargs\": {\"text\": {\"max_length\": 64}}}"},
		{ERR_USAGE, "cannot obey \"module_input_name\"", "2_Normalize/config.json",
		 "{\"module_output_name\": \"sentence_embedding\", \"module_input_name\": \"token_embeddings\"}"},
		{ERR_DATA, "\"prompts\" is not an object", "config_sentence_transformers.json", "{\"prompts\": []}"},
		{ERR_DATA, "default_prompt_name", "config_sentence_transformers.json", "{\"default_prompt_name\": \"query\"}"},
	};
	struct sentence_folder folder;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char name[32], file[64];
		snprintf(name, sizeof name, "bad%zu", i);
		const char *path = fresh(name);
		snprintf(file, sizeof file, "%s/2_Normalize", name);
		assert_ok(folder_make(test_path(file)));
		snprintf(file, sizeof file, "%s/modules.json", name);
		put_file(file, OLD_MODULES);
		snprintf(file, sizeof file, "%s/1_Pooling/config.json", name);
		put_file(file, OLD_POOLING);
		snprintf(file, sizeof file, "%s/%s", name, cases[i].file);
		put_file(file, cases[i].text);
		assert_error(cases[i].status, cases[i].part, sentence_folder_read(&folder, path));
		sentence_folder_release(&folder);
	}
}

static void what_is_written_comes_back(void **state)
{
	struct sentence_prompt prompts[] = {{(char *)(uintptr_t) "query", (char *)(uintptr_t) "Query: "},
					    {(char *)(uintptr_t) "passage", (char *)(uintptr_t) ""}};
	struct sentence_folder folder, about = {.pooling = POOLING_MAX | POOLING_CLS,
						.leaves_out_prompt = true,
						.normalize = true,
						.max_seq_length = 200,
						.prompts = prompts,
						.prompt_count = 2,
						.default_prompt = 1,
						.similarity = "dot"};
	struct folder_files files = {0};
	struct json_document document;
	bool is_on = false;
	assert_ok(folder_make(test_path("ours")));
	assert_ok(sentence_folder_write(test_path("ours"), &about, 384, &files));
	assert_int_equal(files.count, 4);
	assert_ok(manifest_write(test_path("ours"), 0, &files));
	assert_ok(manifest_verify(test_path("ours"), NULL));
	assert_ok(sentence_folder_read(&folder, test_path("ours")));
	assert_true(folder.found && folder.normalize && folder.leaves_out_prompt && !folder.lowercase);
	assert_int_equal(folder.pooling, about.pooling);
	assert_int_equal(folder.max_seq_length, 200);
	assert_int_equal(folder.prompt_count, 2);
	assert_int_equal(folder.default_prompt, 1);
	assert_string_equal(folder.prompts[0].text, "Query: ");
	assert_string_equal(folder.similarity, "dot");
	/* Readers of the old format insist on these. */
	assert_ok(json_read(&document, test_path("ours/1_Pooling/config.json"), 1 << 20));
	assert_non_null(json_member(document.root, "pooling_mode_mean_tokens"));
	assert_ok(json_get_bool(document.root, "", "pooling_mode_cls_token", &is_on));
	assert_true(is_on);
	json_release(&document);
	sentence_folder_release(&folder);
	free(files.files);
	/* The file in the inner folder is verified, too. */
	assert_ok(file_write(test_path("ours/1_Pooling/config.json"), "{}", 2));
	assert_error(ERR_DATA, "'1_Pooling/config.json' has 2 bytes", manifest_verify(test_path("ours"), NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_old_form_is_read),     cmocka_unit_test(the_new_form_is_read),
		cmocka_unit_test(sparse_encoders_are_read), cmocka_unit_test(other_layouts_are_read),
		cmocka_unit_test(bad_folders_are_refused),  cmocka_unit_test(what_is_written_comes_back),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
