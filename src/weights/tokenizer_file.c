#include "weights/tokenizer_file.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "weights/manifest.h"

enum status vocab_file_read(struct vocab *out, const char *path)
{
	*out = (struct vocab){.count = 0};
	TRY(manifest_verify_file(path));
	return vocab_read(out, path);
}

void vocab_warn_of_added(const struct vocab *vocab, const char *path)
{
	if (vocab->added_count > 0)
		log_warning("'%s' has added tokens, such as '%.100s': where they occur in texts, transformers takes them as they "
			    "stand, and bertc splits them like other words",
			    path, vocab->text[vocab->added[0]]);
}

void vocab_warn_of_lower_case(const struct vocab *vocab, const char *path)
{
	if (vocab_looks_cased(vocab))
		log_warning("'%s' has many entries in upper case, but text is made lower case: give --cased if it belongs to a "
			    "cased model",
			    path);
}

enum status tokenizer_file_settings(const char *vocab_path, struct tokenizer_settings *settings, bool *out_found)
{
	static const char *const names[] = {"tokenizer_config.json", "tokenizer.json"};
	const char *slash = strrchr(vocab_path, '/');
	struct buffer path = {0};
	enum status status = OK;
	for (int i = 0; i < 2; i++) {
		buffer_clear(&path);
		buffer_append(&path, vocab_path, slash ? (size_t)(slash + 1 - vocab_path) : 0);
		buffer_text(&path, names[i]);
		TRY_GOTO(buffer_status(&path), done);
		TRY_GOTO(manifest_verify_file(buffer_string(&path)), done);
	}
	status = tokenizer_settings_read(vocab_path, settings, out_found);
done:
	buffer_release(&path);
	return status;
}
