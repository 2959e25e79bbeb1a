/* Reads tokenizer_config.json and special_tokens_map.json. */
#include "text/tokenizer/token_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

const char *const special_members[VOCAB_SPECIAL_TOKENS] = {"pad_token", "unk_token", "cls_token", "sep_token", "mask_token"};

/* Members of tokenizer_config.json that are read here and elsewhere. */
static const char *const obeyed[] = {"added_tokens_decoder",
				     "do_lower_case",
				     "strip_accents",
				     "tokenize_chinese_chars",
				     "tokenizer_class",
				     "word_tokenizer_type",
				     "subword_tokenizer_type",
				     "model_max_length",
				     "model_input_names",
				     "add_prefix_space",
				     "truncation_side",
				     "do_basic_tokenize",
				     "never_split",
				     "max_length",
				     "additional_special_tokens",
				     "extra_special_tokens",
				     NULL};
/* Members that change neither ids nor offsets nor answers. */
static const char *const ignored[] = {"auto_map",
				      "backend",
				      "chat_template",
				      "clean_up_tokenization_spaces",
				      "errors",
				      "fix_mistral_regex",
				      "from_slow",
				      "full_tokenizer_file",
				      "is_local",
				      "keep_accents",
				      "legacy",
				      "local_files_only",
				      "name_or_path",
				      "pad_to_multiple_of",
				      "pad_token_type_id",
				      "padding_side",
				      "processor_class",
				      "return_tensors",
				      "sp_model_kwargs",
				      "special_tokens_map_file",
				      "stride",
				      "tokenizer_file",
				      "trim_offsets",
				      "truncation_strategy",
				      "unk_id",
				      "use_fast",
				      "vocab_file",
				      "vocab_size",
				      NULL};

static bool is_listed(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

/* ---- Reading ---- */

static enum status read_file(const char *beside, const char *name, char path[PATH_BYTES], struct json_document *document,
			     struct buffer *text)
{
	TRY(path_beside(path, beside, name));
	if (!file_exists(path))
		return OK;
	TRY(file_read(path, TOKENIZER_FILE_LIMIT, text));
	TRY(json_parse(document, path, buffer_string(text), text->size));
	return document->root->kind == JSON_OBJECT ? OK : error_set(ERR_DATA, "'%s': not a JSON object", path);
}

static enum status refuse(const struct token_files *files, const char *member, const char *why)
{
	return error_set(ERR_DATA, "'%s': \"%s\" is %s, which bertc does not have", files->config_path, member, why);
}

/* Members such as "bos_token" name a special token. */
static bool names_token(const char *member)
{
	static const char end[] = "_token";
	size_t size = strlen(member);
	return size >= sizeof end && strcmp(member + size - (sizeof end - 1), end) == 0;
}

/* Names members of a file that are neither read nor known to change nothing. */
static void warn_of_unknown(const struct json *root, const char *path)
{
	struct buffer unknown = {0};
	for (const struct json *member = root ? root->first_child : NULL; member; member = member->next)
		if (!is_listed(obeyed, member->key) && !is_listed(ignored, member->key) && !names_token(member->key))
			buffer_format(&unknown, "%s\"%.60s\"", unknown.size > 0 ? ", " : "", member->key);
	if (unknown.size > 0)
		log_warning_once("'%s': bertc does not know %s, and ignores it", path, buffer_string(&unknown));
	buffer_release(&unknown);
}

/* Refuses values of members that would change answers, and names unknown members. */
static enum status check_members(const struct token_files *files)
{
	const struct json *config = files->config.root, *side = json_member(config, "truncation_side");
	const struct json *basic = json_member(config, "do_basic_tokenize"), *never = json_member(config, "never_split");
	if (side && side->kind == JSON_STRING && strcmp(side->text, "right") != 0)
		return refuse(files, "truncation_side", side->text);
	if (basic && basic->kind == JSON_BOOL && !basic->boolean)
		return refuse(files, "do_basic_tokenize", "false");
	if (never && never->child_count > 0)
		return refuse(files, "never_split", "a list of words");
	warn_of_unknown(config, files->config_path);
	warn_of_unknown(files->map.root, files->map_path);
	return OK;
}

enum status token_files_read(struct token_files *out, const char *path)
{
	*out = (struct token_files){.config_path = ""};
	enum status status = read_file(path, "tokenizer_config.json", out->config_path, &out->config, &out->config_text);
	if (status == OK)
		status = read_file(path, "special_tokens_map.json", out->map_path, &out->map, &out->map_text);
	if (status == OK)
		status = read_file(path, "added_tokens.json", out->added_path, &out->added, &out->added_text);
	if (status == OK)
		status = check_members(out);
	if (status != OK)
		token_files_release(out);
	return status;
}

void token_files_release(struct token_files *files)
{
	json_release(&files->config);
	json_release(&files->map);
	json_release(&files->added);
	buffer_release(&files->config_text);
	buffer_release(&files->added_text);
	buffer_release(&files->map_text);
}

/* ---- Special tokens ---- */

/* A token is a string, or an object with its attributes. */
static const char *content_of(const struct json *token)
{
	const struct json *content = token && token->kind == JSON_OBJECT ? json_member(token, "content") : token;
	return content && content->kind == JSON_STRING ? content->text : NULL;
}

/* As in transformers: special_tokens_map.json is of the time before "added_tokens_decoder", and wins where that is missing. */
static bool map_decides(const struct token_files *files)
{
	return !json_member(files->config.root, "added_tokens_decoder");
}

const struct json *token_files_special(const struct token_files *files, int which)
{
	const struct json *config = files->config.root, *map = files->map.root;
	const struct json *token = json_member(map_decides(files) ? map : config, special_members[which]);
	return content_of(token) ? token : json_member(map_decides(files) ? config : map, special_members[which]);
}

const char *token_files_name(const struct token_files *files, int which)
{
	return content_of(token_files_special(files, which));
}

static bool flag_of(const struct json *token, const char *name, bool otherwise)
{
	const struct json *flag = json_member(token, name);
	return flag && flag->kind == JSON_BOOL ? flag->boolean : otherwise;
}

struct added_token added_token_read(const struct json *object, int32_t id)
{
	bool special = flag_of(object, "special", false);
	return (struct added_token){
		.id = id,
		.normalized = flag_of(object, "normalized", !special),
		.single_word = flag_of(object, "single_word", false),
		.lstrip = flag_of(object, "lstrip", false),
		.rstrip = flag_of(object, "rstrip", false),
		.special = special,
	};
}

static struct added_token *find_added(struct vocab *vocab, int32_t id)
{
	for (int32_t i = 0; i < vocab->added_count; i++)
		if (vocab->added[i].id == id)
			return &vocab->added[i];
	return NULL;
}

/* As in transformers, the attributes in tokenizer_config.json win. */
static enum status list_one(struct vocab *vocab, struct added_token token)
{
	struct added_token *listed = find_added(vocab, token.id);
	if (!listed)
		return vocab_list_added(vocab, &token);
	*listed = token;
	return OK;
}

static enum status list_special(const struct token_files *files, struct vocab *vocab, const struct json *token)
{
	const char *content = content_of(token);
	int32_t id = content ? vocab_find(vocab, content, strlen(content)) : -1;
	if (content && id < 0)
		log_warning_once("'%s': the special token '%.60s' is not in the vocabulary, and is ignored",
				 files->config_path[0] ? files->config_path : files->map_path, content);
	if (id < 0 || find_added(vocab, id))
		return OK;
	struct added_token added = added_token_read(token, id);
	added.special = true;
	added.normalized = flag_of(token, "normalized", false);
	return vocab_list_added(vocab, &added);
}

/* transformers looks in texts for every token that is called special: those of lists, and members such as "bos_token". */
static enum status list_further(const struct token_files *files, struct vocab *vocab, const struct json *root)
{
	const struct json *winner = root == files->config.root && map_decides(files) ? files->map.root : NULL;
	for (const struct json *member = root ? root->first_child : NULL; member; member = member->next) {
		if (json_member(winner, member->key))
			continue;
		bool is_list =
			strcmp(member->key, "additional_special_tokens") == 0 || strcmp(member->key, "extra_special_tokens") == 0;
		for (const struct json *token = is_list ? member->first_child : NULL; token; token = token->next)
			TRY(list_special(files, vocab, token));
		if (names_token(member->key))
			TRY(list_special(files, vocab, member));
	}
	return OK;
}

static enum status refuse_absent(const char *where, const char *token, const char *id)
{
	return error_hinted(error_set(ERR_DATA,
				      "'%s' has the token '%.100s' with the id %.20s, which the vocabulary does not have", where,
				      token, id),
			    "save the folder's tokenizer again with transformers' AutoTokenizer");
}

/* added_tokens.json is of the time before "added_tokens_decoder". */
static enum status list_old(const struct token_files *files, struct vocab *vocab)
{
	const struct json *root = map_decides(files) ? files->added.root : NULL;
	for (const struct json *token = root ? root->first_child : NULL; token; token = token->next) {
		int32_t id = vocab_find(vocab, token->key, strlen(token->key));
		if (id < 0 || token->kind != JSON_NUMBER || id != token->integer)
			return refuse_absent(files->added_path, token->key, token->kind == JSON_NUMBER ? token->text : "?");
		if (!find_added(vocab, id))
			TRY(vocab_list_added(vocab, &(struct added_token){.id = id, .normalized = true}));
	}
	return OK;
}

enum status token_files_list_added(const struct token_files *files, struct vocab *vocab)
{
	const struct json *decoder = json_member(files->config.root, "added_tokens_decoder");
	if (decoder && decoder->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': \"added_tokens_decoder\" is not an object", files->config_path);
	for (const struct json *token = decoder ? decoder->first_child : NULL; token; token = token->next) {
		const char *content = content_of(token);
		int32_t id = content ? vocab_find(vocab, content, strlen(content)) : -1;
		if (id < 0 || id != strtoll(token->key, NULL, 10))
			return refuse_absent(files->config_path, content ? content : "", token->key);
		TRY(list_one(vocab, added_token_read(token, id)));
	}
	TRY(list_further(files, vocab, files->config.root));
	if (map_decides(files))
		TRY(list_further(files, vocab, files->map.root));
	int32_t special[VOCAB_SPECIAL_TOKENS];
	vocab_special_ids(vocab, special);
	for (int i = 0; i < VOCAB_SPECIAL_TOKENS; i++)
		if (special[i] >= 0 && !find_added(vocab, special[i]))
			TRY(vocab_list_added(vocab, &(struct added_token){.id = special[i], .special = true}));
	return list_old(files, vocab);
}

/* ERR_DATA: a setting is not that of tokenizer.json. */
static enum status compare(const struct token_files *files, const char *member, bool given, bool own)
{
	if (given == own)
		return OK;
	return error_hinted(
		error_set(ERR_DATA, "'%s': \"%s\" is %s, but in tokenizer.json beside it, it is %s", files->config_path, member,
			  given ? "true" : "false", own ? "true" : "false"),
		"transformers changes the latter as it reads the folder: correct the one that does not apply to this model");
}

enum status token_files_check_spaces(const struct token_files *files, const struct json *pre_tokenizer)
{
	const struct json *given = json_member(files->config.root, "add_prefix_space"),
			  *parts = json_member(pre_tokenizer, "pretokenizers");
	const struct json *type = json_member(pre_tokenizer, "type"), *own = json_member(pre_tokenizer, "add_prefix_space");
	for (const struct json *part = parts ? parts->first_child : NULL; part; part = part->next)
		TRY(token_files_check_spaces(files, part));
	if (!given || given->kind != JSON_BOOL || !type || type->kind != JSON_STRING || strcmp(type->text, "ByteLevel") != 0)
		return OK;
	return compare(files, "add_prefix_space", given->boolean, !own || own->kind != JSON_BOOL || own->boolean);
}

enum status token_files_check_case(const struct token_files *files, const struct json *normalizer)
{
	const struct json *config = files->config.root, *parts = json_member(normalizer, "normalizers");
	const struct json *type = json_member(normalizer, "type");
	for (const struct json *part = parts ? parts->first_child : NULL; part; part = part->next)
		TRY(token_files_check_case(files, part));
	if (!type || type->kind != JSON_STRING || strcmp(type->text, "BertNormalizer") != 0 ||
	    !json_member(config, "do_lower_case") || !token_files_class_decides(config))
		return OK;
	bool lowercase = flag_of(config, "do_lower_case", true), own = flag_of(normalizer, "lowercase", true);
	TRY(compare(files, "do_lower_case", lowercase, own));
	TRY(compare(files, "strip_accents", flag_of(config, "strip_accents", lowercase),
		    flag_of(normalizer, "strip_accents", own)));
	return compare(files, "tokenize_chinese_chars", flag_of(config, "tokenize_chinese_chars", true),
		       flag_of(normalizer, "handle_chinese_chars", true));
}

/* ---- Inputs ---- */

void token_files_apply_inputs(const struct token_files *files, struct vocab *vocab)
{
	const struct json *names = json_member(files->config.root, "model_input_names");
	if (!names || names->kind != JSON_ARRAY)
		return;
	for (const struct json *name = names->first_child; name; name = name->next)
		if (name->kind == JSON_STRING && strcmp(name->text, "token_type_ids") == 0)
			return;
	struct token_template *const templates[] = {&vocab->single, &vocab->pair};
	for (int i = 0; i < 2; i++) {
		memset(templates[i]->types, 0, sizeof templates[i]->types);
		templates[i]->first_type = templates[i]->second_type = 0;
	}
}

bool token_files_class_decides(const struct json *config)
{
	static const char *const others[] = {"PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"};
	const struct json *name = json_member(config, "tokenizer_class");
	for (size_t i = 0; name && name->kind == JSON_STRING && i < sizeof others / sizeof *others; i++)
		if (strcmp(name->text, others[i]) == 0)
			return false;
	return true;
}
