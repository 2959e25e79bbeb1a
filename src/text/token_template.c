/* Puts texts and special tokens together. */
#include "text/token_template.h"

#include <string.h>

int32_t template_type_0(const struct token_template *template, int64_t a, int64_t b)
{
	int64_t count = template->first_type == 0 ? a : 0;
	if (template->second_type == 0)
		count += b;
	for (int i = 0; i < template_size(template); i++)
		count += template->types[i] == 0;
	return (int32_t)count;
}

bool template_types_ascend(const struct token_template *template, bool is_pair)
{
	uint8_t types[TEMPLATE_TOKENS + 2];
	int count = 0, token = 0;
	while (token < template->before)
		types[count++] = template->types[token++];
	types[count++] = template->first_type;
	while (token < template->before + template->between)
		types[count++] = template->types[token++];
	if (is_pair)
		types[count++] = template->second_type;
	while (token < template_size(template))
		types[count++] = template->types[token++];
	for (int i = 0; i < count; i++)
		if (types[i] > 1 || (i > 0 && types[i] < types[i - 1]))
			return false;
	return true;
}

bool template_has(const struct token_template *template, int32_t id)
{
	for (int i = 0; i < template_size(template); i++)
		if (template->ids[i] == id)
			return true;
	return false;
}

static void put(int32_t *out, int32_t *at, const int32_t *ids, int64_t count)
{
	if (count > 0)
		memcpy(out + *at, ids, (size_t)count * sizeof *ids);
	*at += (int32_t)count;
}

int32_t template_join(const struct token_template *template, const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count,
		      int32_t *out)
{
	const int32_t *ids = template->ids;
	int32_t at = 0;
	put(out, &at, ids, template->before);
	put(out, &at, a, a_count);
	put(out, &at, ids + template->before, template->between);
	put(out, &at, b, b_count);
	put(out, &at, ids + template->before + template->between, template->after);
	if (at == 0)
		out[at++] = template->filler;
	return at;
}
