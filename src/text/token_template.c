/* Puts texts and special tokens together. */
#include "text/token_template.h"

#include <string.h>

struct token_template template_usual(int32_t cls, int32_t sep, bool is_pair)
{
	if (!is_pair)
		return (struct token_template){.ids = {cls, sep}, .before = 1, .after = 1};
	return (struct token_template){
		.ids = {cls, sep, sep}, .types = {0, 0, 1}, .before = 1, .between = 1, .after = 1, .second_type = 1};
}

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

int32_t template_frame(const struct token_template *template, int64_t a, int64_t b, int32_t *out)
{
	const int32_t *ids = template->ids;
	int32_t at = 0;
	for (int i = 0; i < template->before; i++)
		out[at++] = *ids++;
	at += (int32_t)a;
	for (int i = 0; i < template->between; i++)
		out[at++] = *ids++;
	at += (int32_t)b;
	for (int i = 0; i < template->after; i++)
		out[at++] = *ids++;
	return at;
}

int32_t template_join(const struct token_template *template, const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count,
		      int32_t *out)
{
	int32_t length = template_frame(template, a_count, b_count, out);
	if (a_count > 0)
		memcpy(out + template->before, a, (size_t)a_count * sizeof *a);
	if (b_count > 0)
		memcpy(out + template->before + a_count + template->between, b, (size_t)b_count * sizeof *b);
	if (length == 0)
		out[length++] = template->filler;
	return length;
}
