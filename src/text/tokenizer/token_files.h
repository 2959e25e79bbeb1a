/* What tokenizer_config.json, special_tokens_map.json, and added_tokens.json say about special tokens and about the inputs of the
 * model. Members that bertc obeys have these values or are refused by name; those that cannot change ids, offsets, or answers are
 * ignored; one that is in neither list is named in a warning. */
#ifndef TEXT_TOKENIZER_TOKEN_FILES_H
#define TEXT_TOKENIZER_TOKEN_FILES_H

#include "base/file.h"
#include "base/json.h"
#include "text/vocab.h"

#define TOKENIZER_FILE_LIMIT ((size_t)256 << 20) /* tokenizer.json includes the vocabulary */

struct token_files {
	char config_path[PATH_BYTES], map_path[PATH_BYTES], added_path[PATH_BYTES];
	struct json_document config, map, added; /* without a root: there is no such file */
	struct buffer config_text, map_text, added_text;
};
/* Reads the files in the folder of `path`, if there are any. */
MUST_USE enum status token_files_read(struct token_files *out, const char *path);
void token_files_release(struct token_files *files);

/* The special tokens' names, in the order of vocab_special_ids(). */
extern const char *const special_members[VOCAB_SPECIAL_TOKENS]; /* "pad_token", ... */
/* What the files say of a special token: its name, or an object with its attributes, too; NULL: nothing. */
const struct json *token_files_special(const struct token_files *files, int which);
/* What it is called; NULL: they do not say. */
const char *token_files_name(const struct token_files *files, int which);
/* Lists the added tokens of "added_tokens_decoder" and the special tokens, whatever they are for, that a tokenizer.json does not
 * list. A special token that the vocabulary lacks is named in a warning. */
MUST_USE enum status token_files_list_added(const struct token_files *files, struct vocab *vocab);
/* ERR_DATA: "add_prefix_space" is not that of the ByteLevel pre-tokenizer, which transformers changes to it. */
MUST_USE enum status token_files_check_spaces(const struct token_files *files, const struct json *pre_tokenizer);
/* The same for "do_lower_case" and its like, and a BertNormalizer. */
MUST_USE enum status token_files_check_case(const struct token_files *files, const struct json *normalizer);
/* Leaves the types of tokens at 0 if "model_input_names" has none. */
void token_files_apply_inputs(const struct token_files *files, struct vocab *vocab);
/* Whether "tokenizer_class" is one whose texts `do_lower_case` and its like decide about, whatever tokenizer.json says; true
 * without a class. */
bool token_files_class_decides(const struct json *config);
/* Reads a token's attributes. */
struct added_token added_token_read(const struct json *object, int32_t id);

#endif
