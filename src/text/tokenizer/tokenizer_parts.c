/* The parts of a tokenizer.json that bertc knows, and how a chain is read from them. */
#include "text/tokenizer/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/unigram.h"
#include "text/tokenizer_wordpiece.h"

static const struct stage_kind *const normalizers[] = {
	&stage_bert_normalizer, &stage_lowercase, &stage_nfc,     &stage_nfd,   &stage_nfkc,          &stage_nfkd,
	&stage_precompiled,     &stage_prepend,   &stage_replace, &stage_strip, &stage_strip_accents,
};

static const struct stage_kind *const pre_tokenizers[] = {
	&stage_bert_pre_tokenizer, &stage_byte_level, &stage_digits,     &stage_metaspace,
	&stage_punctuation,        &stage_split,      &stage_whitespace, &stage_whitespace_split,
};

static const struct token_model *const models[] = {
	&unigram_model,
	&wordpiece_model,
	&bpe_model,
};

/* A role of parts: its kinds, and what a Sequence calls its members. */
struct role {
	const char *name, *members;
	const struct stage_kind *const *kinds;
	size_t count;
};
static const struct role roles[] = {
	{"normalizer", "normalizers", normalizers, sizeof normalizers / sizeof *normalizers},
	{"pre_tokenizer", "pretokenizers", pre_tokenizers, sizeof pre_tokenizers / sizeof *pre_tokenizers},
};

static const char *type_of(const struct part *part)
{
	const struct json *type = json_member(part->object, "type");
	return type && type->kind == JSON_STRING ? type->text : "";
}

enum status part_refuse(const struct part *part, const char *member)
{
	return part_refuse_value(part, member, json_member(part->object, member));
}

enum status part_refuse_value(const struct part *part, const char *member, const struct json *value)
{
	struct buffer text = {0};
	if (value && (value->kind == JSON_STRING || value->kind == JSON_NUMBER))
		buffer_format(&text, " of \"%.300s\"", value->text);
	else if (value && value->kind == JSON_BOOL)
		buffer_text(&text, value->boolean ? " of true" : " of false");
	enum status status = error_set(ERR_DATA, "'%s': \"%s\" of the type \"%.60s\" has a \"%s\"%s, which bertc does not have",
				       part->path, part->role, type_of(part), member, buffer_string(&text));
	buffer_release(&text);
	error_hint("texts would be split into other tokens than those the model was trained with");
	return status;
}

static bool is_listed(const char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

void part_warn_unknown(const struct part *part, const char *const *known, const char *const *ignored)
{
	for (const struct json *member = part->object->first_child; member; member = member->next)
		if (strcmp(member->key, "type") != 0 && !is_listed(known, member->key) && !is_listed(ignored, member->key))
			log_warning_once("'%s': bertc does not know \"%.60s\" of \"%s\", and ignores it", part->path, member->key,
					 part->role);
}

enum status part_refuse_type(const struct part *part)
{
	return error_hinted(error_set(ERR_DATA, "'%s': \"%s\" is of the type \"%.60s\", which bertc does not have", part->path,
				      part->role, type_of(part)),
			    "texts would be split into other tokens than those the model was trained with");
}

enum status chain_add(struct chain *chain, const struct stage_kind *kind, const struct part *part)
{
	if (chain->count == CHAIN_STAGES)
		return error_set(ERR_DATA, "'%s': more than %d normalizers and pre-tokenizers", part->path, CHAIN_STAGES);
	struct stage *stage = &chain->stages[chain->count];
	*stage = (struct stage){.kind = kind, .index = chain->count++}; /* released with the chain, even if it cannot be opened */
	part_warn_unknown(part, kind->members, NULL);
	return kind->open ? kind->open(stage, part) : OK;
}

/* Adds the stage that a part describes or, of a Sequence, those of its members. */
static enum status add_part(struct chain *chain, const struct role *role, const struct part *part)
{
	if (!part->object || part->object->kind == JSON_NULL)
		return OK;
	if (part->object->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': \"%s\" is not an object", part->path, part->role);
	const char *type = type_of(part);
	if (strcmp(type, "Sequence") == 0) {
		const struct json *members = json_member(part->object, role->members);
		if (!members || members->kind != JSON_ARRAY)
			return error_set(ERR_DATA, "'%s': \"%s\" is a Sequence without \"%s\"", part->path, part->role,
					 role->members);
		for (const struct json *member = members->first_child; member; member = member->next)
			TRY(add_part(chain, role, &(struct part){member, part->path, part->role}));
		return OK;
	}
	for (size_t i = 0; i < role->count; i++)
		if (strcmp(role->kinds[i]->type, type) == 0)
			return chain_add(chain, role->kinds[i], part);
	return part_refuse_type(part);
}

/* The model behind a ByteLevel stage receives bytes, so nothing may come between. */
static enum status find_byte_level(struct chain *chain, const char *path)
{
	for (int i = 0; i < chain->count; i++) {
		chain->bytes = chain->stages[i].kind == &stage_byte_level;
		if (chain->bytes && i + 1 < chain->count)
			return error_set(ERR_DATA,
					 "'%s': there is a pre-tokenizer behind \"ByteLevel\", which bertc does not have", path);
	}
	if (chain->bytes && byte_level_is_idle(&chain->stages[chain->count - 1]))
		free(chain->stages[--chain->count].own);
	return OK;
}

static enum status read_model(struct chain *chain, const struct vocab *vocab, const struct part *part)
{
	static const char *const read_by_vocab[] = {"vocab", NULL};
	const char *type = type_of(part);
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		if (strcmp(models[i]->type, type) != 0)
			continue;
		if (chain->bytes && !models[i]->takes_bytes)
			return error_set(ERR_DATA,
					 "'%s': a %s model behind a \"ByteLevel\" pre-tokenizer, which bertc does not have",
					 part->path, type);
		part_warn_unknown(part, models[i]->members, read_by_vocab);
		TRY(models[i]->open(&chain->model_own, &(struct model_source){vocab, *part, chain->bytes}));
		chain->model = models[i];
		return OK;
	}
	return part_refuse_type(part);
}

enum status chain_read(struct chain *out, const struct vocab *vocab, const struct json *root, const char *path)
{
	enum status status = OK;
	*out = (struct chain){.count = 0};
	for (size_t i = 0; i < sizeof roles / sizeof *roles && status == OK; i++) {
		status = add_part(out, &roles[i], &(struct part){json_member(root, roles[i].name), path, roles[i].name});
		if (i == 0)
			out->normalizer_count = out->count;
	}
	if (status == OK)
		status = find_byte_level(out, path);
	if (status == OK)
		status = read_model(out, vocab, &(struct part){json_member(root, "model"), path, "model"});
	if (status != OK)
		chain_release(out);
	return status;
}
