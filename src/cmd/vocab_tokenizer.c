/* Settles how a command splits text: by its own option, by the files beside the vocabulary, or by the default. */
#include "cmd/vocab_tokenizer.h"

#include "weights/tokenizer_file.h"

enum status vocab_tokenizer_settings(const struct options *options, const struct vocab *vocab, const char *vocab_file, bool cased,
				     struct tokenizer_settings *out)
{
	bool found;
	*out = tokenizer_defaults(cased);
	TRY(tokenizer_file_settings(vocab_file, out, &found));
	bool given = options_given(options, "cased");
	if (!found && !given && out->lowercase)
		vocab_warn_of_lower_case(vocab, vocab_file);
	if (!found || !given || cased != out->lowercase)
		return OK;
	enum status status = error_set(ERR_STATE, "--cased %s contradicts the settings of the tokenizer beside '%s'",
				       cased ? "true" : "false", vocab_file);
	error_hint("leave the option out, or copy the vocabulary to a separate folder");
	return status;
}
