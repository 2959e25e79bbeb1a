/* Reads templates of special tokens. */
#include "text/tokenizer/post_processor.h"

#include <string.h>

void post_processor_usual(struct vocab *vocab)
{
	vocab->single = vocab->pair = (struct token_template){.second_type = 1, .filler = vocab->unk >= 0 ? vocab->unk : 0};
	vocab->single.second_type = 0;
	if (vocab->cls < 0 || vocab->sep < 0)
		return;
	vocab->single = template_usual(vocab->cls, vocab->sep, false);
	vocab->pair = template_usual(vocab->cls, vocab->sep, true);
}

static enum status malformed(const struct part *part)
{
	return error_set(ERR_DATA, "'%s': \"%s\" is not a template of special tokens and texts", part->path, part->role);
}

/* ---- TemplateProcessing ---- */

static enum status add_token(struct token_template *template, const struct part *part, int32_t id, int64_t type, int8_t *count)
{
	int size = template_size(template);
	if (size == TEMPLATE_TOKENS)
		return error_set(ERR_DATA, "'%s': \"%s\" has more than %d special tokens", part->path, part->role,
				 TEMPLATE_TOKENS);
	template->ids[size] = id;
	template->types[size] = (uint8_t)type;
	++*count;
	return OK;
}

/* The ids that a special token of a template stands for: usually one, that of the entry of its name. */
static enum status add_special(struct token_template *template, const struct part *part, const struct vocab *vocab,
			       const char *name, int64_t type, int8_t *count)
{
	const struct json *special = json_member(json_member(part->object, "special_tokens"), name);
	const struct json *ids = json_member(special, "ids"), *tokens = json_member(special, "tokens");
	if (!ids || ids->kind != JSON_ARRAY || !tokens || tokens->kind != JSON_ARRAY || ids->child_count != tokens->child_count)
		return error_set(ERR_DATA, "'%s': \"%s\" names the special token '%.100s', but does not say what it is",
				 part->path, part->role, name);
	const struct json *token = tokens->first_child;
	for (const struct json *id = ids->first_child; id; id = id->next, token = token->next) {
		int32_t known = token->kind == JSON_STRING ? vocab_find(vocab, token->text, token->text_size) : -1;
		if (known < 0 || !id->is_integer || id->integer != known)
			return error_set(ERR_DATA,
					 "'%s': \"%s\" has the special token '%.100s' with the id %.20s, which the "
					 "vocabulary does not have",
					 part->path, part->role, token->kind == JSON_STRING ? token->text : name,
					 id->kind == JSON_NUMBER ? id->text : "?");
		TRY(add_token(template, part, known, type, count));
	}
	return OK;
}

/* Reads "single" or "pair": special tokens and the texts A and B, in this order. */
static enum status read_template(struct token_template *template, const struct part *part, const struct vocab *vocab,
				 const char *member, bool is_pair)
{
	const struct json *items = json_member(part->object, member);
	int texts = 0;
	*template = (struct token_template){.before = 0};
	if (!items || items->kind != JSON_ARRAY)
		return malformed(part);
	for (const struct json *item = items->first_child; item; item = item->next) {
		const struct json *special = json_member(item, "SpecialToken"), *text = json_member(item, "Sequence");
		const struct json *object = special ? special : text, *id = json_member(object, "id");
		int64_t type = 0;
		if (!id || id->kind != JSON_STRING)
			return malformed(part);
		TRY(json_get_integer(object, part->path, "type_id", 0, UINT8_MAX, &type));
		if (special) {
			int8_t *const counts[] = {&template->before, is_pair ? &template->between : &template->after,
						  &template->after};
			TRY(add_special(template, part, vocab, id->text, type, counts[texts]));
			continue;
		}
		if (strcmp(id->text, texts == 0 ? "A" : "B") != 0 || texts > is_pair)
			return error_set(ERR_DATA, "'%s': the \"%s\" of \"%s\" has other texts than A%s, in this order",
					 part->path, member, part->role, is_pair ? " and B" : "");
		*(texts == 0 ? &template->first_type : &template->second_type) = (uint8_t)type;
		texts++;
	}
	return texts == 1 + is_pair ? OK : malformed(part);
}

/* ---- RobertaProcessing and BertProcessing ---- */

/* ["</s>", 2] */
static enum status read_token(const struct part *part, const struct vocab *vocab, const char *member, int32_t *out)
{
	const struct json *pair = json_member(part->object, member), *text = pair ? pair->first_child : NULL;
	if (!text || text->kind != JSON_STRING || !text->next || !text->next->is_integer)
		return malformed(part);
	*out = vocab_find(vocab, text->text, text->text_size);
	if (*out < 0 || *out != text->next->integer)
		return error_set(
			ERR_DATA,
			"'%s': \"%s\" has the special token '%.100s' with the id %lld, which the vocabulary does not have",
			part->path, part->role, text->text, (long long)text->next->integer);
	return OK;
}

static enum status read_fixed(struct vocab *vocab, const struct part *part, bool is_roberta)
{
	int32_t sep = -1, cls = -1;
	TRY(read_token(part, vocab, "sep", &sep));
	TRY(read_token(part, vocab, "cls", &cls));
	vocab->single = template_usual(cls, sep, false);
	vocab->pair = template_usual(cls, sep, true);
	if (is_roberta)
		vocab->pair = (struct token_template){.ids = {cls, sep, sep, sep}, .before = 1, .between = 2, .after = 1};
	return OK;
}

static enum status read_trimming(const struct part *part, struct offset_trimming *trims)
{
	bool trim = true;
	trims->add_prefix_space = true;
	TRY(json_get_bool(part->object, part->path, "trim_offsets", &trim));
	TRY(json_get_bool(part->object, part->path, "add_prefix_space", &trims->add_prefix_space));
	trims->is_on = trims->is_on || trim;
	return OK;
}

/* ---- Any of them ---- */

static enum status read_processor(struct vocab *vocab, const struct part *part, struct offset_trimming *trims)
{
	static const char *const members[] = {"single", "pair",         "special_tokens",   "sep",
					      "cls",    "trim_offsets", "add_prefix_space", NULL};
	static const char *const ignored[] = {"use_regex", NULL};
	const char *type = "";
	if (part->object->kind != JSON_OBJECT)
		return malformed(part);
	TRY(json_get_string(part->object, part->path, "type", &type));
	if (strcmp(type, "Sequence") == 0) {
		const struct json *processors = json_member(part->object, "processors");
		if (!processors || processors->kind != JSON_ARRAY)
			return malformed(part);
		for (const struct json *one = processors->first_child; one; one = one->next)
			TRY(read_processor(vocab, &(struct part){one, part->path, part->role}, trims));
		return OK;
	}
	part_warn_unknown(part, members, ignored);
	if (template_size(&vocab->single) + template_size(&vocab->pair) > 0 && strcmp(type, "ByteLevel") != 0)
		return error_set(ERR_DATA, "'%s': \"%s\" adds special tokens twice, which bertc does not do", part->path,
				 part->role);
	if (strcmp(type, "TemplateProcessing") == 0) {
		TRY(read_template(&vocab->single, part, vocab, "single", false));
		return read_template(&vocab->pair, part, vocab, "pair", true);
	}
	if (strcmp(type, "BertProcessing") == 0)
		return read_fixed(vocab, part, false);
	bool is_roberta = strcmp(type, "RobertaProcessing") == 0;
	if (!is_roberta && strcmp(type, "ByteLevel") != 0)
		return part_refuse_type(part);
	TRY(read_trimming(part, trims));
	return is_roberta ? read_fixed(vocab, part, true) : OK;
}

enum status post_processor_read(struct vocab *vocab, const struct json *root, const char *path, struct offset_trimming *trims)
{
	const struct json *object = json_member(root, "post_processor");
	*trims = (struct offset_trimming){.is_on = false};
	vocab->single = (struct token_template){.filler = vocab->unk >= 0 ? vocab->unk : 0};
	vocab->pair = vocab->single;
	vocab->pair.second_type = 1;
	if (!object || object->kind == JSON_NULL)
		return OK;
	TRY(read_processor(vocab, &(struct part){object, path, "post_processor"}, trims));
	if (!template_types_ascend(&vocab->single, false) || !template_types_ascend(&vocab->pair, true))
		return error_set(ERR_DATA,
				 "'%s': the types of \"post_processor\" are not 0 up to some token and then 1, as bertc has them",
				 path);
	return OK;
}
