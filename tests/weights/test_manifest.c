/* The manifest of our own folders decides: whoever reads one of their files, under whatever name, is told of every flipped
 * bit; folders without a manifest are read as they are. */
#include "test.h"
#include "base/hash.h"
#include "formats/safetensors.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"
#include "weights/tokenizer_file.h"

static struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32}; /* names and shapes need no device */
static struct model *model;
static float *slab, *loaded;
static struct vocab vocab;
static struct tokenizer_settings tokenizer;

static int set_up(void **state)
{
	static const char *const words[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##a", "##b", "ab", "."};
	struct model_config config;
	if (test_folder_make(state) != 0 || model_config_named(&config, "tiny") != OK)
		return -1;
	config.vocab_size = 12;
	config.hidden_size = 8;
	config.num_attention_heads = 2;
	config.intermediate_size = 24;
	config.max_position_embeddings = 10;
	tokenizer = tokenizer_defaults(false);
	if (model_create(&model, &be, &config, &model_heads_pretraining) != OK || vocab_from_entries(&vocab, words, 12) != OK)
		return -1;
	slab = calloc((size_t)model->slab_count, sizeof *slab);
	loaded = calloc((size_t)model->slab_count, sizeof *loaded);
	for (int64_t i = 0; slab && i < model->slab_count; i++)
		slab[i] = (float)(i % 997) / 512 - 1;
	return slab && loaded ? 0 : -1;
}

static int tear_down(void **state)
{
	free(slab);
	free(loaded);
	vocab_release(&vocab);
	model_free(model);
	return test_folder_drop(state);
}

/* A model folder as written by the program, with or without its manifest. */
static void make_folder(const char *name, bool manifest)
{
	struct folder_files files = {0};
	struct model_folder_content content = {
		.model = model, .slab = slab, .vocab = &vocab, .tokenizer = &tokenizer, .max_length = 10};
	assert_ok(folder_make(test_path(name)));
	assert_ok(model_folder_save(test_path(name), &content, &files));
	if (manifest)
		assert_ok(manifest_write(test_path(name), 7, &files));
	free(files.files);
}

/* Changes one bit of a file in place. */
static void flip(const char *path, int64_t byte, int bit)
{
	FILE *file = fopen(path, "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, (long)byte, SEEK_SET), 0);
	int value = fgetc(file);
	assert_int_equal(fseek(file, (long)byte, SEEK_SET), 0);
	assert_int_not_equal(fputc(value ^ 1 << bit, file), EOF);
	assert_int_equal(fclose(file), 0);
}

static enum status load(const char *path)
{
	return model_folder_load(path, model, MISSING_NOTHING, loaded, NULL);
}

static enum status read_config(const char *path)
{
	struct model_config config;
	return model_folder_config(path, &config);
}

static enum status read_vocab(const char *path)
{
	struct vocab found;
	enum status status = vocab_file_read(&found, path);
	vocab_release(&found);
	return status;
}

static enum status read_settings(const char *path)
{
	bool found;
	struct tokenizer_settings settings = tokenizer;
	return tokenizer_file_settings(path, &settings, &found);
}

/* The ways in which the files of a folder are read, each by its own path. */
static const struct {
	const char *file, *read; /* the file, and what the reader is given */
	enum status (*reader)(const char *path);
} readers[] = {
	{"ours/model.safetensors", "ours/model.safetensors", load},
	{"ours/model.safetensors", "ours", load},
	{"ours/config.json", "ours", read_config},
	{"ours/config.json", "ours/config.json", read_config},
	{"ours/config.json", "ours/model.safetensors", read_config},
	{"ours/vocab.txt", "ours/vocab.txt", read_vocab},
	{"ours/tokenizer.json", "ours/tokenizer.json", read_vocab},
	{"ours/tokenizer_config.json", "ours/vocab.txt", read_settings},
	{"ours/tokenizer.json", "ours/vocab.txt", read_settings},
};
#define READERS ((int)(sizeof readers / sizeof *readers))

/* About every sixth bit of every file, including the header of the weights. */
static void flipped_bits_are_found(void **state)
{
	make_folder("ours", true);
	for (int r = 0; r < READERS; r++) {
		char path[PATH_BYTES];
		snprintf(path, sizeof path, "%s", test_path(readers[r].file));
		int64_t bytes = file_size(path), step = bytes / 150 + 1;
		assert_ok(readers[r].reader(test_path(readers[r].read)));
		for (int64_t byte = 0; byte < bytes; byte += step) {
			flip(path, byte, (int)(byte % 8));
			enum status status = readers[r].reader(test_path(readers[r].read));
			if (status != ERR_DATA || !strstr(error_last()->message, "damaged"))
				fail_msg("%s, byte %d: status %d, %s", readers[r].file, (int)byte, status, error_last()->message);
			assert_non_null(strstr(error_last()->hint, "MANIFEST.json"));
			flip(path, byte, (int)(byte % 8));
		}
		assert_ok(readers[r].reader(test_path(readers[r].read)));
	}
	assert_memory_equal(loaded, slab, sizeof(float) * (size_t)model->parameters[0].count);
}

/* A bit of the manifest, and files that are longer or missing. */
static void a_damaged_manifest_is_found(void **state)
{
	struct manifest_facts facts;
	int64_t bytes = file_size(test_path("ours/MANIFEST.json"));
	assert_ok(manifest_verify(test_path("ours"), &facts));
	assert_int_equal(facts.step, 7);
	assert_int_equal(facts.files, 6);
	for (int64_t byte = 0; byte < bytes; byte++) {
		flip(test_path("ours/MANIFEST.json"), byte, (int)(byte % 8));
		assert_error(ERR_DATA, "damaged", load(test_path("ours")));
		assert_error(ERR_DATA, "damaged", manifest_verify(test_path("ours"), NULL));
		flip(test_path("ours/MANIFEST.json"), byte, (int)(byte % 8));
	}
	assert_ok(load(test_path("ours")));
	assert_ok(file_append_line(test_path("ours/model.safetensors"), "x\n"));
	assert_error(ERR_DATA, "bytes, not", load(test_path("ours")));
	assert_error(ERR_DATA, "bytes, not", manifest_verify(test_path("ours"), NULL));
}

/* Two entries of the vocabulary swapped: another tokenizer for the same weights. */
static void swapped_entries_are_found(void **state)
{
	static const char swapped[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nb\na\nc\n##a\n##b\nab\n.\n";
	struct model_source source;
	struct folder_tokenizer found;
	make_folder("swapped", true);
	assert_ok(file_write(test_path("swapped/vocab.txt"), swapped, strlen(swapped)));
	assert_ok(model_source_find(test_path("swapped/model.safetensors"), &source));
	assert_error(ERR_DATA, "damaged", folder_tokenizer_read(&found, &source));
	/* Removed on purpose, as the hint says. */
	assert_int_equal(remove(test_path("swapped/MANIFEST.json")), 0);
	assert_ok(folder_tokenizer_read(&found, &source));
	assert_string_equal(found.vocab.text[5], "b");
	folder_tokenizer_release(&found);
}

/* The folder of another program, and files that were added to one of ours. */
static void what_has_no_manifest_is_read(void **state)
{
	make_folder("theirs", false);
	flip(test_path("theirs/model.safetensors"), file_size(test_path("theirs/model.safetensors")) - 4, 0);
	assert_ok(load(test_path("theirs/model.safetensors")));
	assert_ok(read_config(test_path("theirs")));
	assert_ok(read_vocab(test_path("theirs/vocab.txt")));
	make_folder("added", true);
	assert_ok(file_write(test_path("added/other.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", 31));
	assert_ok(read_vocab(test_path("added/other.txt")));
}

/* An error in a file that is unchanged is reported as before. */
static void other_errors_stay(void **state)
{
	struct model *larger;
	struct model_config config = model->config;
	config.max_position_embeddings = 20;
	assert_ok(model_create(&larger, &be, &config, &model_heads_pretraining));
	float *room = calloc((size_t)larger->slab_count, sizeof *room);
	assert_non_null(room);
	make_folder("misfit", true);
	assert_error(ERR_STATE, "position_embeddings",
		     model_folder_load(test_path("misfit"), larger, MISSING_NOTHING, room, NULL));
	flip(test_path("misfit/model.safetensors"), file_size(test_path("misfit/model.safetensors")) - 1, 3);
	assert_error(ERR_DATA, "damaged", model_folder_load(test_path("misfit"), larger, MISSING_NOTHING, room, NULL));
	free(room);
	model_free(larger);
}

/* Writes the manifest with another format, and the right checksum for it. */
static void write_format(const char *format)
{
	struct buffer text = {0};
	buffer_format(&text,
		      "{\n  \"format\": %s,\n  \"step\": 1,\n  \"files\": [\n    {\n      \"name\": \"config.json\"\n    }\n  ]",
		      format);
	uint32_t crc = crc32c(0, text.data, text.size);
	buffer_format(&text, ",\n  \"manifest_crc32c\": %u\n}\n", crc);
	assert_ok(buffer_status(&text));
	assert_ok(file_write(test_path("format/MANIFEST.json"), text.data, text.size));
	buffer_release(&text);
}

static void a_newer_format_is_refused(void **state)
{
	make_folder("format", true);
	write_format("3");
	assert_error(ERR_STATE, "format 3", load(test_path("format")));
	assert_non_null(strstr(error_last()->hint, "newer bertc"));
	assert_error(ERR_STATE, "format 3", manifest_verify(test_path("format"), NULL));
	write_format("1");
	assert_error(ERR_DATA, "an unknown format", load(test_path("format")));
	write_format("2");
	assert_error(ERR_DATA, "incomplete row", load(test_path("format")));
}

/* A name that leads out of the folder is not one of its files. */
static void names_stay_in_the_folder(void **state)
{
	static const char *const names[] = {"..", "../x", "/x", "a/../../x", "a//x", "a/", ""};
	assert_ok(folder_make(test_path("outward")));
	assert_ok(file_write(test_path("x"), "x", 1));
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct folder_files files = {0};
		assert_ok(folder_files_add(&files, names[i], 1, crc32c(0, "x", 1)));
		assert_ok(manifest_write(test_path("outward"), 0, &files));
		assert_error(ERR_DATA, "incomplete row", manifest_verify(test_path("outward"), NULL));
		free(files.files);
	}
}

/* A file put into a finished folder is listed, even when it replaces another one; and a full disk at any write leaves a
 * folder that verifies. */
static void files_are_put(void **state)
{
	struct manifest_facts before, after;
	make_folder("put", true);
	const char *folder = test_path("put"), *card = test_path("put/README.md");
	assert_ok(manifest_verify(folder, &before));
	assert_ok(manifest_put_file(folder, "README.md", "one", 3));
	assert_ok(manifest_verify(folder, &after));
	assert_int_equal(after.files, before.files + 1);
	assert_int_equal(after.step, 7);
	flip(card, 1, 0);
	assert_error(ERR_DATA, "README.md", manifest_verify(folder, NULL));
	assert_ok(manifest_put_file(folder, "README.md", "two words", 9));
	assert_ok(manifest_verify(folder, &after));
	assert_int_equal(after.files, before.files + 1);
	assert_int_equal(file_size(card), 9);
	int failures = 0;
	for (int write = 1; write <= 3; write++) {
		char fault[32];
		assert_ok(manifest_put_file(folder, "README.md", "two words", 9));
		snprintf(fault, sizeof fault, "write:%d:ENOSPC", write);
		assert_ok(file_fault_set(fault));
		failures += manifest_put_file(folder, "README.md", "three", 5) == ERR_RESOURCE;
		assert_ok(file_fault_set(NULL));
		assert_ok(manifest_verify(folder, &after));
	}
	assert_int_equal(failures, 3);
	make_folder("bare", false);
	assert_error(ERR_DATA, "has no MANIFEST.json", manifest_put_file(test_path("bare"), "README.md", "x", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_put),
		cmocka_unit_test(flipped_bits_are_found),
		cmocka_unit_test(a_damaged_manifest_is_found),
		cmocka_unit_test(swapped_entries_are_found),
		cmocka_unit_test(what_has_no_manifest_is_read),
		cmocka_unit_test(other_errors_stay),
		cmocka_unit_test(a_newer_format_is_refused),
		cmocka_unit_test(names_stay_in_the_folder),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
