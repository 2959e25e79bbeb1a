/* Settles how a command splits text: by its own option, by the files beside the vocabulary, or by the default. */
#include "cmd/vocab_tokenizer.h"

#include "weights/tokenizer_file.h"

#define ROW(member, role, value) OPTION_ROW(struct vocab_choice, member, role, value)
/* clang-format off */
const struct option vocab_choice_rows[] = {
	{ROW(vocab_file, ROLE_PLACE, "FILE"),
	 .help = "vocabulary: vocab.txt or tokenizer.json, or a folder with one; `bertc vocab` learns one"},
	{ROW(cased, ROLE_RESULT, NULL), .fallback_text = "from the tokenizer_config.json beside the vocabulary, else false",
	 .help = "keep case and accents"},
	{0},
};
/* clang-format on */

enum status vocab_tokenizer_settings(const struct options *options, const struct vocab *vocab, const struct vocab_choice *choice,
				     struct tokenizer_settings *out)
{
	bool found;
	*out = tokenizer_defaults(choice->cased);
	TRY(tokenizer_file_settings(choice->vocab_file, out, &found));
	bool given = options_given(options, "cased");
	if (!found && !given && out->lowercase)
		vocab_warn_of_lower_case(vocab, choice->vocab_file);
	if (!found || !given || choice->cased != out->lowercase)
		return OK;
	return error_hinted(error_set(ERR_STATE, "--cased %s contradicts the settings of the tokenizer beside '%s'",
				      choice->cased ? "true" : "false", choice->vocab_file),
			    "leave the option out, or copy the vocabulary to a separate folder");
}
