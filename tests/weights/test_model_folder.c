/* Model folders: what is saved is read back; the spellings of other programs are understood; what does not fit is named. */
#include "test.h"
#include "base/hash.h"
#include "base/log.h"
#include "formats/safetensors.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"
#include "weights/tensorflow_folder.h"
#include "weights/tokenizer_file.h"

#define REQUIRE(call) assert_int_equal(call, OK)

static char folder[64];
static struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32}; /* names and shapes need no device */
static struct model *model;
static float *weights; /* [model->slab_count] a different number everywhere */

static int set_up(void **state)
{
	const char *base = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%.40s/model-folder-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(folder))
		return -1;
	struct model_config config;
	if (model_config_named(&config, "tiny") != OK)
		return -1;
	config.vocab_size = 12;
	config.hidden_size = 8;
	config.num_attention_heads = 2;
	config.intermediate_size = 24;
	config.max_position_embeddings = 10;
	if (model_create(&model, &be, &config, &model_heads_pretraining) != OK)
		return -1;
	weights = calloc((size_t)model->slab_count, sizeof *weights);
	for (int64_t i = 0; weights && i < model->parameter_count; i++)
		for (int64_t k = 0; k < model->parameters[i].count; k++)
			weights[model->parameters[i].offset + k] = (float)(i + 1) + (float)k / 1024;
	return weights ? 0 : -1;
}

static int tear_down(void **state)
{
	free(weights);
	model_free(model);
	return folder_remove(folder) == OK ? 0 : -1;
}

/* The path of `name` in the test's folder, valid until the next call. */
static const char *in_folder(const char *name)
{
	static char path[PATH_BYTES];
	REQUIRE(path_join(path, folder, name));
	return path;
}

/* A file under construction: the model's weights as entries, which a test can change. */
struct draft {
	struct safetensors_entry entries[80];
	char names[80][128];
	int64_t count;
};

static struct safetensors_entry *add_entry(struct draft *draft, const char *name, int rank, int64_t rows, int64_t columns,
					   const float *data)
{
	struct safetensors_entry *entry = &draft->entries[draft->count];
	snprintf(draft->names[draft->count], sizeof draft->names[0], "%s", name);
	*entry = (struct safetensors_entry){.name = draft->names[draft->count],
					    .dtype = ST_F32,
					    .rank = rank,
					    .shape = {rank == 2 ? rows : columns, columns},
					    .data = data,
					    .bytes = (uint64_t)(rows * columns) * sizeof(float)};
	draft->count++;
	return entry;
}

static struct draft *new_draft(void)
{
	struct draft *draft = calloc(1, sizeof *draft);
	assert_non_null(draft);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		add_entry(draft, p->name, parameter_rank(p), p->rows, p->columns, weights + p->offset);
	}
	return draft;
}

/* Removes the entries whose names contain `part` from the draft; returns their number. */
static int remove_entries(struct draft *draft, const char *part)
{
	int64_t kept = 0;
	for (int64_t i = 0; i < draft->count; i++)
		if (!strstr(draft->entries[i].name, part))
			draft->entries[kept++] = draft->entries[i];
	int removed = (int)(draft->count - kept);
	draft->count = kept;
	return removed;
}

static void replace_in_names(struct draft *draft, const char *from, const char *to)
{
	for (int64_t i = 0; i < draft->count; i++) {
		char *name = draft->names[i], *at = strstr(name, from), rest[128];
		if (!at)
			continue;
		snprintf(rest, sizeof rest, "%s", at + strlen(from));
		snprintf(at, sizeof draft->names[0] - (size_t)(at - name), "%s%s", to, rest);
	}
}

/* Writes the draft as model.safetensors and loads it; `slab` is filled with -1 first. */
static enum status load_draft(const struct draft *draft, enum missing_weights missing, float *slab,
			      struct model_folder_report *report)
{
	REQUIRE(safetensors_write(in_folder("model.safetensors"), draft->entries, draft->count, NULL, NULL, NULL));
	for (int64_t i = 0; i < model->slab_count; i++)
		slab[i] = -1;
	return model_folder_load(folder, model, missing, slab, report);
}

static bool is_loaded(const float *slab, const char *name)
{
	const struct parameter *p = &model->parameters[model_find_parameter(model, name)];
	return memcmp(slab + p->offset, weights + p->offset, (size_t)p->count * sizeof(float)) == 0;
}

static void check_all_loaded(const float *slab, const struct model_folder_report *report)
{
	assert_int_equal(report->loaded, model->parameter_count);
	assert_int_equal(report->missing.count, 0);
	for (int64_t i = 0; i < model->parameter_count; i++)
		assert_true(is_loaded(slab, model->parameters[i].name));
}

static void spellings_are_understood(void **state)
{
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	static const char *const changes[][2] = {
		{"LayerNorm.weight", "LayerNorm.gamma"},
		{"LayerNorm.bias", "LayerNorm.beta"},
		{"bert.", ""},
		{"cls.predictions.bias", "cls.predictions.decoder.bias"},
		{"embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
	};
	struct draft *draft = new_draft();
	for (size_t i = 0; i <= sizeof changes / sizeof changes[0]; i++) {
		struct model_folder_report report = {0};
		REQUIRE(load_draft(draft, MISSING_NOTHING, slab, &report));
		check_all_loaded(slab, &report);
		model_folder_report_release(&report);
		if (i < sizeof changes / sizeof changes[0])
			replace_in_names(draft, changes[i][0], changes[i][1]);
	}
	assert_non_null(strstr(draft->names[0], "decoder.weight"));
	free(draft);
	free(slab);
}

static void tied_weights_must_agree(void **state)
{
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	struct draft *draft = new_draft();
	const struct parameter *word = &model->parameters[0];
	float *copy = malloc((size_t)word->count * sizeof *copy);
	assert_non_null(copy);
	memcpy(copy, weights + word->offset, (size_t)word->count * sizeof *copy);
	add_entry(draft, "cls.predictions.decoder.weight", 2, word->rows, word->columns, copy);
	int64_t ids[10] = {0};
	struct safetensors_entry *buffer = add_entry(draft, "bert.embeddings.position_ids", 2, 1, 10, NULL);
	buffer->dtype = ST_I64;
	buffer->data = ids;
	buffer->bytes = sizeof ids;
	struct model_folder_report report = {0};
	REQUIRE(load_draft(draft, MISSING_NOTHING, slab, &report));
	check_all_loaded(slab, &report);
	assert_int_equal(report.unused.count, 0);
	model_folder_report_release(&report);

	copy[word->count - 1] += 1;
	report = (struct model_folder_report){0};
	assert_int_equal(load_draft(draft, MISSING_NOTHING, slab, &report), ERR_STATE);
	assert_non_null(strstr(error_last()->message, "cls.predictions.decoder.weight"));
	assert_non_null(strstr(error_last()->message, "word_embeddings"));
	model_folder_report_release(&report);
	free(copy);
	free(draft);
	free(slab);
}

static void missing_weights_are_named(void **state)
{
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	struct draft *draft = new_draft();
	float classifier[24] = {0};
	add_entry(draft, "classifier.weight", 2, 3, 8, classifier);
	assert_int_equal(remove_entries(draft, "pooler"), 2);
	assert_int_equal(remove_entries(draft, "seq_relationship"), 2);
	struct model_folder_report report = {0};
	assert_int_equal(load_draft(draft, MISSING_NOTHING, slab, &report), ERR_STATE);
	assert_non_null(strstr(error_last()->message, "4 of"));
	assert_non_null(strstr(error_last()->message, "bert.pooler.dense.weight"));
	model_folder_report_release(&report);

	report = (struct model_folder_report){0};
	REQUIRE(load_draft(draft, MISSING_HEADS, slab, &report));
	assert_int_equal(report.loaded, model->parameter_count - 4);
	assert_int_equal(report.missing.count, 4);
	assert_string_equal(report.missing.names[0], "bert.pooler.dense.weight");
	assert_int_equal(report.unused.count, 1);
	assert_string_equal(report.unused.names[0], "classifier.weight");
	assert_true(slab[model->parameters[model_find_parameter(model, "bert.pooler.dense.bias")].offset] == -1);
	assert_true(is_loaded(slab, "cls.predictions.bias"));
	model_folder_report_release(&report);

	assert_int_equal(remove_entries(draft, "layer.1.output.dense.bias"), 1);
	report = (struct model_folder_report){0};
	assert_int_equal(load_draft(draft, MISSING_HEADS, slab, &report), ERR_STATE);
	assert_non_null(strstr(error_last()->message, "bert.encoder.layer.1.output.dense.bias"));
	model_folder_report_release(&report);
	free(draft);
	free(slab);
}

static void misfits_are_named(void **state)
{
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	struct draft *draft = new_draft();
	struct model_folder_report report = {0};
	add_entry(draft, "bert.encoder.layer.2.output.dense.bias", 1, 1, 8, weights);
	assert_int_equal(load_draft(draft, MISSING_NOTHING, slab, &report), ERR_STATE);
	assert_non_null(strstr(error_last()->message, "layer.2.output"));
	model_folder_report_release(&report);
	draft->count--;

	draft->entries[1].shape[0] = 5; /* half of the positions */
	draft->entries[1].bytes /= 2;
	report = (struct model_folder_report){0};
	assert_int_equal(load_draft(draft, MISSING_NOTHING, slab, &report), ERR_STATE);
	assert_non_null(strstr(error_last()->message, "position_embeddings"));
	assert_non_null(strstr(error_last()->message, "(5, 8)"));
	assert_non_null(strstr(error_last()->message, "(10, 8)"));
	model_folder_report_release(&report);
	free(draft);
	free(slab);
}

static void configurations_are_found(void **state)
{
	struct model_config config;
	REQUIRE(model_size_or_folder_config("small", &config));
	assert_int_equal(config.hidden_size, 512);
	assert_int_equal(model_size_or_folder_config("smal", &config), ERR_USAGE);
	assert_int_equal(model_size_or_folder_config("small|medium", &config), ERR_USAGE);
	/* "small" is also a folder's name like any other if it contains a model. */
	assert_int_equal(model_folder_config("small", &config), ERR_USAGE);
	assert_int_equal(model_folder_config(folder, &config), ERR_USAGE);
	assert_non_null(strstr(error_last()->message, "config.json"));
	static const char google[] = "{\"vocab_size\": 77, \"hidden_act\": \"gelu\"}";
	REQUIRE(file_write(in_folder("bert_config.json"), google, strlen(google)));
	REQUIRE(model_folder_config(folder, &config));
	assert_int_equal(config.vocab_size, 77);
	assert_int_equal(config.hidden_act, ACTIVATION_GELU_TANH);
	static const char broken[] = "{\"vocab_size\": }";
	REQUIRE(file_write(in_folder("broken.json"), broken, strlen(broken)));
	assert_int_equal(model_folder_config(in_folder("broken.json"), &config), ERR_DATA);
}

static void other_files_are_refused(void **state)
{
	char path[PATH_BYTES];
	REQUIRE(path_join(path, folder, "old"));
	REQUIRE(folder_make(path));
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	assert_int_equal(model_folder_load(path, model, MISSING_NOTHING, slab, NULL), ERR_USAGE);
	assert_non_null(strstr(error_last()->hint, "model.safetensors"));
	REQUIRE(file_write(in_folder("old/pytorch_model.bin"), "PK", 2));
	assert_int_equal(model_folder_load(path, model, MISSING_NOTHING, slab, NULL), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "pytorch_model.bin"));
	free(slab);
}

static void saved_comes_back(void **state)
{
	static const char *const words[12] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
					      "b",     "c",     "##a",   "##b",   "ab",     "."};
	struct vocab vocab;
	REQUIRE(vocab_from_entries(&vocab, words, 12));
	struct tokenizer_settings settings = tokenizer_defaults(false);
	char path[PATH_BYTES];
	REQUIRE(path_join(path, folder, "saved"));
	REQUIRE(folder_make(path));
	struct folder_files files = {0};
	struct model_folder_content all = {
		.model = model, .slab = weights, .vocab = &vocab, .tokenizer = &settings, .max_length = 10};
	REQUIRE(model_folder_save(path, &all, &files));

	static const char *const names[] = {
		"config.json",      "vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
		"model.safetensors"};
	assert_int_equal(files.count, 6);
	struct name_list entries = {0};
	REQUIRE(folder_list(path, &entries));
	assert_int_equal(entries.count, 6); /* nothing else, no temporary file */
	name_list_release(&entries);
	for (int i = 0; i < 6; i++) {
		char file_path[PATH_BYTES];
		struct buffer content = {0};
		assert_string_equal(files.files[i].name, names[i]);
		REQUIRE(path_join(file_path, path, names[i]));
		REQUIRE(file_read(file_path, 1 << 20, &content));
		assert_int_equal(content.size, files.files[i].bytes);
		assert_int_equal(crc32c(0, content.data, content.size), files.files[i].crc32c);
		buffer_release(&content);
	}
	struct model_config config;
	REQUIRE(model_folder_config(path, &config));
	assert_int_equal(config.vocab_size, 12);
	assert_int_equal(config.intermediate_size, 24);
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	struct model_folder_report report = {0};
	REQUIRE(model_folder_load(path, model, MISSING_NOTHING, slab, &report));
	check_all_loaded(slab, &report);
	assert_int_equal(report.unused.count, 0);
	model_folder_report_release(&report);
	free(slab);
	vocab_release(&vocab);
	/* Files that the vocabulary is read from are verified, each of them. */
	REQUIRE(manifest_write(path, 1, &files));
	free(files.files);
	char vocab_path[PATH_BYTES], map_path[PATH_BYTES];
	REQUIRE(path_join(vocab_path, path, "vocab.txt"));
	REQUIRE(path_join(map_path, path, "special_tokens_map.json"));
	REQUIRE(vocab_file_read(&vocab, vocab_path));
	vocab_release(&vocab);
	REQUIRE(file_write(map_path, "{\"mask_token\": \"a\"}", 19));
	assert_error(ERR_DATA, "special_tokens_map.json", vocab_file_read(&vocab, vocab_path));
}

/* What a tokenizer_config.json asks for and bertc does not do is refused without a tokenizer.json, too. */
static void other_tokens_are_refused(void **state)
{
	static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
	static const char *const members[] = {"\"truncation_side\": \"left\"", "\"do_basic_tokenize\": false",
					      "\"never_split\": [\"a\"]"};
	char path[PATH_BYTES], text[64];
	struct vocab vocab;
	REQUIRE(path_join(path, folder, "plain"));
	REQUIRE(folder_make(path));
	REQUIRE(file_write(in_folder("plain/vocab.txt"), words, strlen(words)));
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		snprintf(text, sizeof text, "{%s}", members[i]);
		REQUIRE(file_write(in_folder("plain/tokenizer_config.json"), text, strlen(text)));
		assert_error(ERR_DATA, "which bertc does not have", vocab_file_read(&vocab, in_folder("plain/vocab.txt")));
	}
	REQUIRE(file_write(in_folder("plain/tokenizer_config.json"), "{\"cls_token\": \"<s>\"}", 20));
	REQUIRE(vocab_file_read(&vocab, in_folder("plain/vocab.txt"))); /* an unknown token is named in a warning */
	vocab_release(&vocab);
}

/* Every weight has Google's name and the layout that Google's reader expects: what is read back is the same to the last
 * bit. */
static void tensorflow_folder_comes_back(void **state)
{
	static const char *const words[12] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
					      "b",     "c",     "##a",   "##b",   "ab",     "."};
	struct vocab vocab;
	struct model_config config;
	struct model_source source;
	struct model_folder_report report = {0};
	const enum activation before = model->config.hidden_act;
	REQUIRE(vocab_from_entries(&vocab, words, 12));
	struct model_folder_content all = {.model = model, .slab = weights, .vocab = &vocab};
	for (int tanh = 0; tanh < 2; tanh++) {
		char path[PATH_BYTES];
		REQUIRE(path_join(path, folder, tanh ? "google-tanh" : "google-erf"));
		REQUIRE(folder_make(path));
		model->config.hidden_act = tanh ? ACTIVATION_GELU_TANH : ACTIVATION_GELU_ERF;
		REQUIRE(tensorflow_folder_save(path, &all, 42));
		REQUIRE(model_source_find(path, &source));
		assert_non_null(strstr(source.vocab, "vocab.txt"));
		REQUIRE(model_folder_config(path, &config));
		assert_int_equal(config.hidden_act, model->config.hidden_act);
		assert_int_equal(config.vocab_size, 12);
		assert_int_equal(config.intermediate_size, 24);
		float *slab = calloc((size_t)model->slab_count, sizeof *slab);
		REQUIRE(model_folder_load(path, model, MISSING_NOTHING, slab, &report));
		assert_int_equal(report.format, WEIGHTS_TENSORFLOW);
		check_all_loaded(slab, &report);
		assert_int_equal(report.unused.count, 0);
		assert_int_equal(report.others.count, 1); /* global_step */
		model_folder_report_release(&report);
		report = (struct model_folder_report){0};
		free(slab);
	}
	/* Google's code would give a head that reads something else than the pooler a new one. */
	model->heads.head[1].pooled = false;
	assert_int_equal(tensorflow_folder_save(in_folder("google-tanh"), &all, 42), ERR_USAGE);
	assert_string_equal(error_last()->message, "Google's code has no head like that of a BertForPreTraining");
	model->heads.head[1].pooled = true;
	model->config.hidden_act = before;
	vocab_release(&vocab);
}

/* As transformers saves an encoder alone: without "bert." in front of the names, and it can be read back. */
static void an_encoder_is_saved_under_bare_names(void **state)
{
	static const char *const words[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##a", "##b", "ab", "."};
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct vocab vocab;
	struct model *encoder;
	struct task_config task;
	struct folder_files files = {0};
	struct safetensors file;
	struct model_folder_report report = {0};
	char path[PATH_BYTES], weights_path[PATH_BYTES];
	REQUIRE(vocab_from_entries(&vocab, words, 12));
	REQUIRE(model_create(&encoder, &be, &model->config, &model_heads_none));
	REQUIRE(task_config_make(&task, "BertModel", NULL, NULL, 0));
	REQUIRE(path_join(path, folder, "encoder"));
	REQUIRE(folder_make(path));
	struct model_folder_content content = {
		.model = encoder, .slab = weights, .task = &task, .vocab = &vocab, .tokenizer = &settings, .max_length = 10};
	REQUIRE(model_folder_save(path, &content, &files));
	REQUIRE(path_join(weights_path, path, "model.safetensors"));
	REQUIRE(safetensors_open(&file, weights_path));
	assert_non_null(safetensors_find(&file, "embeddings.word_embeddings.weight"));
	assert_non_null(safetensors_find(&file, "encoder.layer.0.attention.self.query.weight"));
	assert_non_null(safetensors_find(&file, "pooler.dense.bias"));
	assert_int_equal(file.count, encoder->parameter_count);
	safetensors_close(&file);
	float *slab = calloc((size_t)encoder->slab_count, sizeof *slab);
	REQUIRE(model_folder_load(path, encoder, MISSING_NOTHING, slab, &report));
	assert_int_equal(report.loaded, encoder->parameter_count);
	model_folder_report_release(&report);
	free(slab);
	free(files.files);
	task_config_release(&task);
	model_free(encoder);
	vocab_release(&vocab);
}

/* Transformers 5 writes only tokenizer.json and tokenizer_config.json; without any tokenizer file there is nothing to go
 * by. */
static void tokenizers_are_read(void **state)
{
	static const char tokenizer[] =
		"{\"added_tokens\": [], \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "
		"\"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": false}, \"model\": {\"type\": "
		"\"WordPiece\", \"vocab\": {\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4, \"a\": 5}}}";
	static const char bounded[] = "{\"tokenizer_class\": \"BertTokenizer\", \"model_max_length\": 512}";
	static const char tiny[] = "{\"model_max_length\": 2}";
	static const char unbounded[] = "{\"model_max_length\": 1000000000000000019884624838656}";
	struct model_source source = {.weights = "", .config = "", .vocab = ""};
	struct folder_tokenizer found;
	assert_int_equal(folder_tokenizer_read(&found, &source), ERR_USAGE);
	assert_non_null(strstr(error_last()->message, "tokenizer.json"));
	REQUIRE(path_join(source.vocab, folder, "five"));
	REQUIRE(folder_make(source.vocab));
	REQUIRE(file_write(in_folder("five/tokenizer.json"), tokenizer, strlen(tokenizer)));
	REQUIRE(path_join(source.vocab, folder, "five/tokenizer.json"));
	REQUIRE(folder_tokenizer_read(&found, &source));
	assert_int_equal(found.vocab.count, 6);
	assert_false(found.settings.lowercase);
	assert_int_equal(found.max_length, 0);
	folder_tokenizer_release(&found);
	REQUIRE(file_write(in_folder("five/tokenizer_config.json"), bounded, strlen(bounded)));
	REQUIRE(folder_tokenizer_read(&found, &source));
	assert_int_equal(found.max_length, 512);
	assert_false(found.settings.lowercase); /* from tokenizer.json, since the other file does not say */
	folder_tokenizer_release(&found);
	REQUIRE(file_write(in_folder("five/tokenizer_config.json"), unbounded, strlen(unbounded)));
	REQUIRE(folder_tokenizer_read(&found, &source));
	assert_int_equal(found.max_length, 0);
	folder_tokenizer_release(&found);
	REQUIRE(file_write(in_folder("five/tokenizer_config.json"), tiny, strlen(tiny)));
	REQUIRE(folder_tokenizer_read(&found, &source));
	assert_int_equal(found.max_length, 0);
	folder_tokenizer_release(&found);
	/* A vocab.txt beside it with other contents. */
	static const char changed[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nmine\n";
	REQUIRE(file_write(in_folder("five/vocab.txt"), changed, strlen(changed)));
	REQUIRE(path_join(source.vocab, folder, "five/vocab.txt"));
	struct buffer said = {0};
	log_to_file(in_folder("log"));
	REQUIRE(folder_tokenizer_read(&found, &source));
	log_to_file(NULL);
	REQUIRE(file_read(in_folder("log"), 1 << 16, &said));
	assert_non_null(strstr(buffer_string(&said), "entry 5 is 'mine' and 'a'"));
	buffer_release(&said);
	assert_string_equal(found.vocab.text[5], "mine");
	folder_tokenizer_release(&found);
}

static void take_warning(void *context, const char *message)
{
	snprintf(context, 512, "%s", message);
}

/* Rows beyond the vocabulary are padding, up to a limit; more than that looks like a truncated file. */
static void vocabularies_and_rows(void **state)
{
	struct folder_tokenizer tokenizer = {.vocab = {.count = 30000}};
	char said[512] = "";
	int32_t rows = 0;
	log_warnings_to(take_warning, said);
	REQUIRE(folder_tokenizer_fit(&tokenizer, "x", &rows));
	assert_int_equal(rows, 30000);
	rows = 30720;
	REQUIRE(folder_tokenizer_fit(&tokenizer, "x", &rows));
	assert_int_equal(rows, 30720);
	assert_string_equal(said, "");
	rows = 31100;
	REQUIRE(folder_tokenizer_fit(&tokenizer, "x", &rows));
	assert_string_equal(said, "'x': the vocabulary has only 30000 entries for the model's 31100 rows: is it whole?");
	rows = 29999;
	assert_int_equal(folder_tokenizer_fit(&tokenizer, "x", &rows), ERR_STATE);
	log_warnings_to(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vocabularies_and_rows),
		cmocka_unit_test(configurations_are_found),
		cmocka_unit_test(spellings_are_understood),
		cmocka_unit_test(tied_weights_must_agree),
		cmocka_unit_test(missing_weights_are_named),
		cmocka_unit_test(misfits_are_named),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(saved_comes_back),
		cmocka_unit_test(other_tokens_are_refused),
		cmocka_unit_test(tensorflow_folder_comes_back),
		cmocka_unit_test(an_encoder_is_saved_under_bare_names),
		cmocka_unit_test(tokenizers_are_read),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
