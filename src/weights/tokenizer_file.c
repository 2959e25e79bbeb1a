/* Reads a model's vocabulary and tokenizer settings, verifying the files by their manifest. */
#include "weights/tokenizer_file.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/missing_path.h"
#include "text/vocab_json.h"
#include "weights/manifest.h"

enum status vocab_file_find(const char *folder, char out[PATH_BYTES])
{
	static const char *const names[] = {"vocab.txt", "tokenizer.json", "vocab.json", "sentencepiece.bpe.model",
					    "spiece.model"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		TRY(path_join(out, folder, names[i]));
		if (file_exists(out))
			return OK;
	}
	out[0] = 0;
	return OK;
}

/* Verifies what vocab_read() may read beside the vocabulary. */
static enum status verify_beside(const char *path)
{
	static const char *const names[] = {"merges.txt", "special_tokens_map.json"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char beside[PATH_BYTES];
		TRY(path_beside(beside, path, names[i]));
		TRY(manifest_verify_file(beside));
	}
	return OK;
}

/* Takes the special tokens of a folder without a tokenizer.json. Added tokens that only Hugging Face's Python tokenizer has
 * written are in a file that is not read. */
static enum status take_special(struct vocab *vocab, const char *path)
{
	char added[PATH_BYTES];
	bool refused;
	enum status status = vocab_add_special(vocab, path, &refused);
	if (status == ERR_DATA && !refused)
		log_warning_once("%s", error_last()->message);
	else
		TRY(status);
	TRY(path_beside(added, path, "added_tokens.json"));
	if (file_exists(added))
		log_warning_once(
			"'%s' is not read: for its tokens, save the folder's tokenizer again with transformers' AutoTokenizer, "
			"which writes a tokenizer.json",
			added);
	return OK;
}

/* Takes the added tokens of the tokenizer.json beside `path`. transformers reads that file, and vocab.txt often lacks them. */
static enum status take_added(struct vocab *vocab, const char *path)
{
	char json[PATH_BYTES];
	TRY(path_beside(json, path, "tokenizer.json"));
	if (!file_exists(json))
		return take_special(vocab, path);
	TRY(manifest_verify_file(json));
	bool refused;
	enum status status = vocab_add_json(vocab, json, &refused);
	if (refused)
		return status;
	if (status == ERR_STATE) {
		log_warning_once("'%s' and '%s' differ: %s; the first is used, transformers would use the second", path, json,
				 error_last()->message);
		return OK;
	}
	if (status == ERR_DATA) {
		log_warning_once("'%s' is used without the added tokens that '%s' may have: %s", path, json,
				 error_last()->message);
		return OK;
	}
	return status;
}

/* Many published folders have no vocab.txt, but a tokenizer.json. */
static enum status vocab_missing(const char *path)
{
	char folder[PATH_BYTES], other[PATH_BYTES] = "";
	path_folder(folder, path);
	TRY(vocab_file_find(folder, other));
	enum status status = error_set(ERR_USAGE, "'%s': there is no such vocabulary", path);
	if (other[0])
		error_hint("there is '%s': name that file, or its folder", other);
	else {
		error_hint("give a vocab.txt, a tokenizer.json, or a folder with one of them; `bertc vocab` makes a vocabulary "
			   "from text");
		hint_at_missing(path);
	}
	return status;
}

enum status vocab_file_read(struct vocab *out, const char *path)
{
	*out = (struct vocab){.count = 0};
	if (!file_exists(path))
		return vocab_missing(path);
	TRY(manifest_verify_file(path));
	TRY(verify_beside(path));
	TRY(vocab_read(out, path));
	if (strcmp(path_name(path), "vocab.txt") != 0)
		return OK;
	enum status status = take_added(out, path);
	if (status != OK)
		vocab_release(out);
	return status;
}

void vocab_warn_of_lower_case(const struct vocab *vocab, const char *path)
{
	if (!vocab->chain && vocab_looks_cased(vocab))
		log_warning_once("'%s' has many entries in upper case, but text is lower-cased: give --cased if it belongs to a "
				 "cased model",
				 path);
}

enum status tokenizer_file_settings(const char *vocab_path, struct tokenizer_settings *settings, bool *out_found)
{
	static const char *const names[] = {"tokenizer_config.json", "tokenizer.json"};
	for (int i = 0; i < 2; i++) {
		char path[PATH_BYTES];
		TRY(path_beside(path, vocab_path, names[i]));
		TRY(manifest_verify_file(path));
	}
	return tokenizer_settings_read(vocab_path, settings, out_found);
}
