/* Weights of other programs: files written by PyTorch and TensorFlow (dev/torch_checkpoints.py, dev/tf_checkpoint.py) give
 * the same numbers as the safetensors file of the same model; rows move to other vocabularies and positions; what does not
 * fit is named. */
#include "test.h"
#include "formats/safetensors.h"
#include "weights/weight_names.h"
#include "weights/model_folder.h"

#define GOLDEN "tests/golden/"

static struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32}; /* names and shapes need no device */
static const struct weight_adaptation as_it_is = {.missing = MISSING_NOTHING};

static struct model_config golden_config(void)
{
	struct model_config config;
	assert_ok(model_config_named(&config, "tiny"));
	config.vocab_size = 13;
	config.hidden_size = 8;
	config.num_hidden_layers = 1;
	config.num_attention_heads = 2;
	config.intermediate_size = 12;
	config.max_position_embeddings = 10;
	return config;
}

/* A model and what is loaded into it from `path`; every number starts as -7. */
struct loaded {
	struct model *model;
	float *slab;
	struct model_folder_report report;
	enum status status;
};

static struct loaded load(const char *path, const struct model_config *config, const struct weight_adaptation *how)
{
	struct loaded out = {0};
	assert_ok(model_create(&out.model, &be, config, &model_heads_pretraining));
	out.slab = malloc((size_t)out.model->slab_count * sizeof *out.slab);
	assert_non_null(out.slab);
	for (int64_t i = 0; i < out.model->slab_count; i++)
		out.slab[i] = -7;
	out.status = model_weights_load(path, out.model, how, out.slab, &out.report);
	return out;
}

static void drop(struct loaded *loaded)
{
	model_folder_report_release(&loaded->report);
	model_free(loaded->model);
	free(loaded->slab);
}

static const float *values(const struct loaded *loaded, const char *name)
{
	int64_t number = model_find_parameter(loaded->model, name);
	assert_true(number >= 0);
	return loaded->slab + loaded->model->parameters[number].offset;
}

static struct loaded load_reference(void)
{
	struct model_config config = golden_config();
	struct loaded reference = load(GOLDEN "bert_tiny.safetensors", &config, &as_it_is);
	assert_ok(reference.status);
	assert_int_equal(reference.report.loaded, reference.model->parameter_count);
	return reference;
}

static void files_of_other_programs(void **state)
{
	static const struct {
		const char *path;
		enum weights_format format;
		int64_t padding, optimizer;
	} files[] = {
		{GOLDEN "bert_tiny.bin", WEIGHTS_TORCH, 0, 0},
		{GOLDEN "bert_tiny_old.bin", WEIGHTS_TORCH, 0, 0},
		{GOLDEN "bert_tiny_nvidia.pt", WEIGHTS_TORCH, 3, 0},
		{GOLDEN "bert_tiny.ckpt", WEIGHTS_TENSORFLOW, 0, 60},
		{GOLDEN "bert_tiny.ckpt.index", WEIGHTS_TENSORFLOW, 0, 60},
		{GOLDEN "bert_tiny.ckpt.data-00000-of-00001", WEIGHTS_TENSORFLOW, 0, 60},
	};
	struct model_config config = golden_config();
	struct loaded reference = load_reference();
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct loaded loaded = load(files[i].path, &config, &as_it_is);
		assert_ok(loaded.status);
		assert_int_equal(loaded.report.format, files[i].format);
		assert_int_equal(loaded.report.loaded, loaded.model->parameter_count);
		assert_int_equal(loaded.report.missing.count, 0);
		assert_int_equal(loaded.report.unused.count, 0);
		assert_int_equal(loaded.report.padding_rows, files[i].padding);
		assert_int_equal(loaded.report.optimizer.count, files[i].optimizer);
		assert_memory_equal(loaded.slab, reference.slab, (size_t)loaded.model->slab_count * sizeof(float));
		drop(&loaded);
	}
	drop(&reference);
}

/* Makes a vocabulary of words, with the five special tokens first. */
static void make_vocab(struct vocab *out, const char *const *words, int count)
{
	const char *entries[32] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
	memcpy(entries + 5, words, (size_t)count * sizeof *words);
	assert_ok(vocab_from_entries(out, entries, count + 5));
}

/* The embedding and output bias of a new word start as the mean over the pieces that it used to be split into. */
static void new_words_begin_as_their_pieces(void **state)
{
	static const char *const theirs[] = {"a", "b", "##b", "##c", "e", "f", "##g", "##h"};
	static const char *const ours[] = {"f", "abc", "##gh", "axb", "[unused0]"};
	/* Rows of the file: [PAD] ... [MASK], f unchanged; "abc" = a ##b ##c, "##gh" = ##g ##h; the others are drawn. */
	static const int rows[10][3] = {{0}, {1}, {2}, {3}, {4}, {10}, {5, 7, 8}, {11, 12}, {-1}, {-1}};
	static const int counts[10] = {1, 1, 1, 1, 1, 1, 3, 2, 0, 0};
	struct vocab source, vocab;
	make_vocab(&source, theirs, 8);
	make_vocab(&vocab, ours, 5);
	struct model_config config = golden_config();
	struct weight_adaptation how = {.source_vocab = &source, .vocab = &vocab, .tokens = TOKENS_MEAN};
	struct loaded reference = load_reference();
	config.vocab_size = 10;
	struct loaded loaded = load(GOLDEN "bert_tiny.safetensors", &config, &how);
	assert_ok(loaded.status);
	assert_int_equal(loaded.report.carried_tokens, 6);
	assert_int_equal(loaded.report.composed_tokens, 2);
	assert_int_equal(loaded.report.drawn_tokens, 2);
	const float *from = values(&reference, WORD_EMBEDDINGS), *to = values(&loaded, WORD_EMBEDDINGS);
	const float *from_bias = values(&reference, PREDICTION_BIAS), *to_bias = values(&loaded, PREDICTION_BIAS);
	for (int i = 0; i < 10; i++) {
		for (int j = 0; j < 8; j++) {
			double sum = 0;
			for (int k = 0; k < counts[i]; k++)
				sum += from[rows[i][k] * 8 + j];
			assert_true(to[i * 8 + j] == (counts[i] == 0 ? -7 : (float)(sum / counts[i])));
		}
		double sum = 0;
		for (int k = 0; k < counts[i]; k++)
			sum += from_bias[rows[i][k]];
		assert_true(counts[i] == 0 || to_bias[i] == (float)(sum / counts[i]));
	}
	drop(&loaded);
	drop(&reference);
	vocab_release(&source);
	vocab_release(&vocab);
}

static void rows_go_to_another_vocabulary(void **state)
{
	static const char *const theirs[] = {"a", "b", "c", "d", "e", "f", "g", "##h"};
	static const char *const ours[] = {"g", "new", "b"};
	struct vocab source, vocab;
	make_vocab(&source, theirs, 8);
	make_vocab(&vocab, ours, 3);
	struct model_config config = golden_config();
	struct weight_adaptation how = {.source_vocab = &source, .vocab = &vocab};
	struct loaded reference = load_reference();
	config.vocab_size = 8;
	static const char *const paths[] = {GOLDEN "bert_tiny.safetensors", GOLDEN "bert_tiny_nvidia.pt"};
	for (int k = 0; k < 2; k++) {
		struct loaded loaded = load(paths[k], &config, &how);
		assert_ok(loaded.status);
		assert_int_equal(loaded.report.carried_tokens, 7);
		assert_int_equal(loaded.report.drawn_tokens, 1);
		const float *from = values(&reference, WORD_EMBEDDINGS), *to = values(&loaded, WORD_EMBEDDINGS);
		const float *from_bias = values(&reference, PREDICTION_BIAS), *to_bias = values(&loaded, PREDICTION_BIAS);
		static const int rows[] = {0, 1, 2, 3, 4, 11, -1, 6};
		float sum = 0;
		for (int i = 0; i < 8; i++) {
			for (int j = 0; j < 8; j++)
				assert_true(to[i * 8 + j] == (rows[i] < 0 ? -7 : from[rows[i] * 8 + j]));
			assert_true(rows[i] < 0 || to_bias[i] == from_bias[rows[i]]);
			sum += rows[i] < 0 ? 0 : from_bias[rows[i]];
		}
		assert_true(to_bias[6] == (float)((double)sum / 7));
		drop(&loaded);
	}
	drop(&reference);

	/* Fewer rows than the vocabulary claimed for them. */
	static const char *const many[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
	vocab_release(&source);
	make_vocab(&source, many, 9);
	struct loaded loaded = load(paths[0], &config, &how);
	assert_error(ERR_STATE, "(13, 8)", loaded.status);
	drop(&loaded);
	vocab_release(&source);
	vocab_release(&vocab);
}

static void positions_grow_on_request(void **state)
{
	struct model_config config = golden_config();
	config.max_position_embeddings = 25;
	struct loaded reference = load_reference(), loaded = load(GOLDEN "bert_tiny.bin", &config, &as_it_is);
	assert_error(ERR_STATE, "(10, 8)", loaded.status);
	assert_non_null(strstr(error_last()->message, "(25, 8)"));
	assert_non_null(strstr(error_last()->hint, "init_positions"));
	drop(&loaded);
	for (int tile = 0; tile < 2; tile++) {
		struct weight_adaptation how = {.positions = tile ? POSITIONS_TILE : POSITIONS_DRAW};
		loaded = load(GOLDEN "bert_tiny.bin", &config, &how);
		assert_ok(loaded.status);
		assert_int_equal(loaded.report.positions_source, 10);
		const float *from = values(&reference, POSITION_EMBEDDINGS), *to = values(&loaded, POSITION_EMBEDDINGS);
		for (int i = 0; i < 25 * 8; i++)
			assert_true(to[i] == (i < 80 || tile ? from[i % 80] : -7));
		drop(&loaded);
	}
	drop(&reference);
}

static void wrong_sizes_are_named(void **state)
{
	struct model_config config = golden_config();
	config.vocab_size = 12; /* 13 rows cannot be a padding of 12, 16 can */
	struct loaded loaded = load(GOLDEN "bert_tiny.ckpt", &config, &as_it_is);
	assert_error(ERR_STATE, "bert/embeddings/word_embeddings", loaded.status);
	assert_non_null(strstr(error_last()->message, "(13, 8)"));
	assert_non_null(strstr(error_last()->message, "(12, 8)"));
	assert_non_null(strstr(error_last()->hint, "remap_vocab"));
	drop(&loaded);
	loaded = load(GOLDEN "bert_tiny_nvidia.pt", &config, &as_it_is);
	assert_ok(loaded.status);
	assert_int_equal(loaded.report.padding_rows, 4);
	drop(&loaded);
	config = golden_config();
	config.intermediate_size = 16; /* kernels are stored transposed */
	loaded = load(GOLDEN "bert_tiny.ckpt", &config, &as_it_is);
	assert_error(ERR_STATE, "intermediate", loaded.status);
	drop(&loaded);
	config = golden_config();
	config.num_hidden_layers = 2;
	loaded = load(GOLDEN "bert_tiny.bin", &config, &as_it_is);
	assert_error(ERR_STATE, "16 of the model's", loaded.status);
	drop(&loaded);
}

/* Without the fsync of file_write(), which would take too long for a thousand files. */
static void put_bytes(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* The golden checkpoints of TensorFlow and PyTorch, changed at one byte and truncated, at one place after another. */
static void damage_is_found(void **state)
{
	static const struct {
		const char *golden, *name, *load;
	} files[] = {
		{GOLDEN "bert_tiny.bin", "w.bin", "w.bin"},
		{GOLDEN "bert_tiny.ckpt.index", "m.index", "m"},
		{GOLDEN "bert_tiny.ckpt.data-00000-of-00001", "m.data-00000-of-00001", "m"},
	};
	struct model_config config = golden_config();
	struct loaded reference = load_reference();
	struct buffer good = {0};
	for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
		assert_ok(file_read(files[k].golden, 1 << 20, &good));
		put_bytes(test_path(files[k].name), good.data, good.size);
	}
	for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
		assert_ok(file_read(files[k].golden, 1 << 20, &good));
		int64_t refused = 0, harmless = 0;
		for (size_t at = 0; at < good.size; at += 1 + good.size / 150) {
			good.data[at] ^= 0x10;
			put_bytes(test_path(files[k].name), good.data, good.size);
			good.data[at] ^= 0x10;
			struct loaded loaded = load(test_path(files[k].load), &config, &as_it_is);
			size_t bytes = (size_t)loaded.model->slab_count * sizeof(float);
			refused += loaded.status != OK;
			harmless += loaded.status == OK && memcmp(loaded.slab, reference.slab, bytes) == 0;
			drop(&loaded);
			put_bytes(test_path(files[k].name), good.data, at);
			loaded = load(test_path(files[k].load), &config, &as_it_is);
			assert_int_not_equal(loaded.status, OK);
			drop(&loaded);
		}
		/* No change affected the weights unnoticed. Padding, Adam's slots and dates are not read. */
		int64_t all = (int64_t)((good.size + good.size / 150) / (1 + good.size / 150));
		assert_int_equal(refused + harmless, all);
		assert_true(refused > all / 4);
		put_bytes(test_path(files[k].name), good.data, good.size);
	}
	buffer_release(&good);
	struct loaded loaded = load(test_path("m"), &config, &as_it_is);
	assert_ok(loaded.status);
	drop(&loaded);
	drop(&reference);
}

static void missing_files_are_named(void **state)
{
	struct model_config config = golden_config();
	struct buffer index = {0};
	assert_ok(file_read(GOLDEN "bert_tiny.ckpt.index", 1 << 20, &index));
	assert_ok(file_write(test_path("alone.index"), index.data, index.size));
	buffer_release(&index);
	static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 438000000\n";
	struct loaded loaded;
	for (int i = 0; i < 2; i++) {
		const char *name = test_path(i ? "pointer.safetensors" : "pointer.bin");
		assert_ok(file_write(name, pointer, strlen(pointer)));
		loaded = load(name, &config, &as_it_is);
		assert_error(ERR_DATA, "a pointer of Git LFS", loaded.status);
		drop(&loaded);
	}
	loaded = load(test_path("alone"), &config, &as_it_is);
	assert_error(ERR_USAGE, "alone.data-00000-of-00001", loaded.status);
	drop(&loaded);
	static const struct {
		const char *json, *part;
	} cases[] = {
		{"{\"weight_map\": {\"a\": \"gone.safetensors\"}}", "gone.safetensors"},
		{"{\"weight_map\": {\"a\": \"../x.safetensors\"}}", "not the name of a file"},
		{"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "not the name of a file"},
		{"{\"weight_map\": {\"a\": 3}}", "not the name of a file"},
		{"{\"weight_map\": {}}", "weight_map"},
		{"[]", "weight_map"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_ok(file_write(test_path("s.safetensors.index.json"), cases[i].json, strlen(cases[i].json)));
		loaded = load(test_path("s.safetensors.index.json"), &config, &as_it_is);
		assert_error(i ? ERR_DATA : ERR_USAGE, cases[i].part, loaded.status);
		drop(&loaded);
	}
}

static void folders_are_searched(void **state)
{
	static const char config[] = "{\"vocab_size\": 13, \"hidden_act\": \"gelu\", \"hidden_size\": 8, "
				     "\"num_attention_heads\": 2}";
	char found[PATH_BYTES];
	struct buffer bytes = {0};
	struct model_config read;
	struct model_source source;
	assert_ok(folder_make(test_path("google")));
	assert_ok(file_read(GOLDEN "bert_tiny.ckpt.index", 1 << 20, &bytes));
	assert_ok(file_write(test_path("google/model.ckpt-20.index"), bytes.data, bytes.size));
	assert_ok(file_write(test_path("google/model.ckpt-10.index"), bytes.data, bytes.size));
	assert_error(ERR_USAGE, "several", weights_file_find(test_path("google"), found));
	static const char newest[] = "model_checkpoint_path: \"/home/me/run/model.ckpt-20\"\nall_model_checkpoint_paths: \"x\"\n";
	assert_ok(file_write(test_path("google/checkpoint"), newest, strlen(newest)));
	assert_ok(weights_file_find(test_path("google"), found));
	assert_non_null(strstr(found, "/model.ckpt-20.index"));
	/* A folder's name may look like that of a data file. */
	assert_ok(folder_make(test_path("run.data-1")));
	assert_ok(file_write(test_path("run.data-1/m.index"), bytes.data, bytes.size));
	assert_ok(weights_file_find(test_path("run.data-1/m"), found));
	assert_non_null(strstr(found, "/run.data-1/m.index"));
	/* Together with TensorFlow's weights, Google's "gelu" is the tanh form; with PyTorch's, the erf form. */
	assert_ok(file_write(test_path("google/bert_config.json"), config, strlen(config)));
	assert_ok(file_write(test_path("google/vocab.txt"), "x\n", 2));
	assert_ok(model_folder_config(test_path("google"), &read));
	assert_int_equal(read.hidden_act, ACTIVATION_GELU_TANH);
	assert_ok(model_source_find(test_path("google/model.ckpt-20"), &source));
	assert_non_null(strstr(source.vocab, "google/vocab.txt"));
	assert_non_null(strstr(source.config, "google/bert_config.json"));
	assert_ok(folder_make(test_path("nvidia")));
	assert_ok(file_write(test_path("nvidia/bert_config.json"), config, strlen(config)));
	assert_ok(file_read(GOLDEN "bert_tiny_nvidia.pt", 1 << 20, &bytes));
	assert_ok(file_write(test_path("nvidia/ckpt_7038.pt"), bytes.data, bytes.size));
	assert_ok(file_write(test_path("nvidia/optimizer.pt"), "", 0));
	assert_ok(weights_file_find(test_path("nvidia"), found));
	assert_non_null(strstr(found, "ckpt_7038.pt"));
	assert_ok(model_folder_config(test_path("nvidia"), &read));
	assert_int_equal(read.hidden_act, ACTIVATION_GELU_ERF);
	buffer_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_other_programs),       cmocka_unit_test(new_words_begin_as_their_pieces),
		cmocka_unit_test(rows_go_to_another_vocabulary), cmocka_unit_test(positions_grow_on_request),
		cmocka_unit_test(wrong_sizes_are_named),         cmocka_unit_test(damage_is_found),
		cmocka_unit_test(missing_files_are_named),       cmocka_unit_test(folders_are_searched),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
