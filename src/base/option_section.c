/* The part of option.h about sections: parts of a run that differ in some settings. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/option_internal.h"

/* More sections than anyone needs; a typo must not use up the memory. */
#define SECTIONS_MAX 100

bool option_in_scope(const struct option *row, enum option_scope scope)
{
	return !row->name || scope == SCOPE_ALL || (scope == SCOPE_SECTION) == (row->section != NULL);
}

bool option_section_name(const struct options *options, const char *word, size_t length, int64_t *out_section,
			 const char **out_name)
{
	size_t prefix = options->section_name ? strlen(options->section_name) : 0, at = prefix;
	if (prefix == 0 || length <= prefix || strncmp(word, options->section_name, prefix) != 0)
		return false;
	int64_t number = 0;
	for (; at < length && isdigit((unsigned char)word[at]); at++)
		number = number > SECTIONS_MAX ? number : number * 10 + (word[at] - '0');
	if (at == prefix || at + 1 >= length || word[at] != '.')
		return false;
	*out_section = number > 0 ? number - 1 : SECTIONS_MAX; /* there is no section 0 */
	*out_name = word + at + 1;
	return true;
}

static enum status add_setting(struct options *options, struct option_section *section, int index, const char *value,
			       enum option_origin origin)
{
	TRY(option_check(&options->table[index], value));
	TRY(memory_grow(&section->settings, &section->capacity, section->count + 1, sizeof *section->settings, "the options"));
	struct option_setting *setting = &section->settings[section->count];
	*setting = (struct option_setting){.index = index, .origin = origin};
	TRY(option_copy_text(options, value, &setting->text));
	section->count++;
	return OK;
}

enum status options_set_section(struct options *options, int64_t section, const char *name, const char *value,
				enum option_origin origin)
{
	int index = options_find(options, name);
	if (index < 0) {
		enum status status = error_set(ERR_USAGE, "unknown option '%s'", name);
		option_hint_nearest(options, name, "");
		return status;
	}
	const struct option *row = &options->table[index];
	if (!row->section)
		return error_hinted(error_set(ERR_USAGE, "'%s' applies to the whole run and cannot be set for one %s", row->name,
					      options->section_name),
				    "set it before the first %s", options->section_name);
	if (section < 0 || section >= SECTIONS_MAX)
		return error_set(ERR_USAGE, "the number of a %s is between 1 and %d", options->section_name, SECTIONS_MAX);
	TRY(memory_grow(&options->sections, &options->section_capacity, section + 1, sizeof *options->sections, "the options"));
	while (options->section_count <= section)
		options->sections[options->section_count++] = (struct option_section){0};
	struct name_list parts = {0};
	enum status status = row->commas ? name_list_add_parts(&parts, value) : name_list_add(&parts, value);
	for (int64_t i = 0; i < parts.count && status == OK; i++)
		status = add_setting(options, &options->sections[section], index, parts.names[i], origin);
	name_list_release(&parts);
	return status;
}

void option_sections_forget_file(struct options *options)
{
	for (int64_t i = 0; i < options->section_count; i++) {
		struct option_section *section = &options->sections[i];
		int64_t kept = 0;
		for (int64_t k = 0; k < section->count; k++) {
			if (section->settings[k].origin != ORIGIN_FILE)
				section->settings[kept++] = section->settings[k];
		}
		section->count = kept;
	}
	while (options->section_count > 0 && options->sections[options->section_count - 1].count == 0)
		free(options->sections[--options->section_count].settings);
}

/* Copies the value or values of one row from `from`, with their origin. */
static enum status copy_row(struct options *to, const struct options *from, int index)
{
	if (!from->table[index].name || !from->text[index])
		return OK;
	enum option_origin origin = from->origin[index];
	if (from->table[index].type != OPTION_LIST)
		return option_set_at(to, index, from->text[index], origin);
	const struct option_list *list = option_field(from, index);
	option_list_clear(to, index);
	for (int64_t i = 0; i < list->count; i++)
		TRY(option_set_at(to, index, list->values[i], origin));
	return OK;
}

/* Applies a section's own values of one origin; called with the lower precedence first. Its own list replaces the general one. */
static enum status apply_section(struct options *out, const struct option_section *section, enum option_origin origin)
{
	for (int64_t k = 0; k < section->count; k++) {
		const struct option_setting *setting = &section->settings[k];
		bool first = true;
		if (setting->origin != origin)
			continue;
		for (int64_t before = 0; before < k; before++)
			first = first &&
				(section->settings[before].index != setting->index || section->settings[before].origin != origin);
		if (first && out->table[setting->index].type == OPTION_LIST && out->origin[setting->index] == origin)
			option_list_clear(out, setting->index);
		TRY(option_set_at(out, setting->index, setting->text, origin));
	}
	return OK;
}

enum status options_derive(struct options *out, const struct options *base, int64_t section, void *settings)
{
	enum status status;
	TRY(options_init_as(out, base, settings));
	for (int i = 0; i < base->count; i++) {
		TRY_GOTO(copy_row(out, base, i), failed);
		out->unset[i] = base->unset[i];
	}
	out->foreign_program = base->foreign_program;
	out->foreign_name = base->foreign_name; /* lives as long as `base` */
	out->finished = base->finished;
	out->from_record = base->from_record;
	if (section < base->section_count) {
		TRY_GOTO(apply_section(out, &base->sections[section], ORIGIN_FILE), failed);
		TRY_GOTO(apply_section(out, &base->sections[section], ORIGIN_COMMAND), failed);
	}
	return OK;
failed:
	options_release(out);
	return status;
}

enum status options_join_section(struct options *options)
{
	if (options->section_count != 1)
		return OK;
	struct option_section only = options->sections[0];
	options->section_count = 0;
	enum status status = apply_section(options, &only, ORIGIN_FILE);
	if (status == OK)
		status = apply_section(options, &only, ORIGIN_COMMAND);
	free(only.settings);
	return status;
}

/* Columns needed by the values of all rows in all sections. */
static int widest_value(const struct options *const *sections, int64_t count, struct buffer *scratch)
{
	int widest = (int)strlen(sections[0]->section_name) + 2;
	for (int i = 0; i < sections[0]->count; i++) {
		for (int64_t k = 0; k < count && sections[0]->table[i].section; k++) {
			int width = (int)strlen(option_value_at(sections[k], i, scratch));
			widest = width > widest && width <= 24 ? width : widest;
		}
	}
	return widest;
}

void options_section_table(const struct options *const *sections, int64_t count, bool all, bool color, struct buffer *out)
{
	struct buffer scratch = {0};
	int names = 0, values = widest_value(sections, count, &scratch);
	const struct option *table = sections[0]->table;
	for (int i = 0; i < sections[0]->count; i++) {
		if (table[i].section && (int)strlen(table[i].name) > names)
			names = (int)strlen(table[i].name);
	}
	buffer_format(out, "%s%-*s", color ? "\033[1m" : "", names + 2, "");
	for (int64_t k = 0; k < count; k++)
		buffer_format(out, "  %s %-*lld", sections[0]->section_name, values - (int)strlen(sections[0]->section_name) - 1,
			      (long long)k + 1);
	buffer_format(out, "%s\n", color ? "\033[0m" : "");
	for (int i = 0; i < sections[0]->count; i++) {
		bool set = false;
		for (int64_t k = 0; k < count; k++)
			set = set || (sections[k]->text[i] && (all || sections[k]->origin[i] != ORIGIN_DEFAULT));
		if (!table[i].section || !set)
			continue;
		buffer_format(out, "  %-*s", names, table[i].name);
		for (int64_t k = 0; k < count; k++) {
			const char *value = sections[k]->text[i] ? option_value_at(sections[k], i, &scratch) : "-";
			buffer_format(out, "  %-*s", values, value);
		}
		buffer_char(out, '\n');
	}
	buffer_release(&scratch);
}
