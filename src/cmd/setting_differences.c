/* Compares JSON objects of settings member by member, and shows what differs. */
#include "cmd/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

static void value_text(char *out, size_t size, const struct json *value);

/* "a, b": the items of a list. */
static void list_text(char *out, size_t size, const struct json *list)
{
	size_t length = 0;
	snprintf(out, size, "%s", list->first_child ? "" : "(none)");
	for (const struct json *item = list->first_child; item && length + 2 < size; item = item->next) {
		value_text(out + length, size - length, item);
		length += strlen(out + length);
		if (item->next)
			length += (size_t)snprintf(out + length, size - length, ", ");
	}
}

/* A value as text; a list as its items, an object as "...". */
static void value_text(char *out, size_t size, const struct json *value)
{
	if (!value)
		snprintf(out, size, "-");
	else if (value->kind == JSON_STRING || value->kind == JSON_NUMBER)
		snprintf(out, size, "%s", value->text);
	else if (value->kind == JSON_ARRAY)
		list_text(out, size, value);
	else
		snprintf(out, size, "%s",
			 value->kind == JSON_BOOL   ? (value->boolean ? "true" : "false")
			 : value->kind == JSON_NULL ? "null"
						    : "...");
}

static bool has_text(const struct json *value)
{
	return value->kind == JSON_NUMBER || value->kind == JSON_STRING;
}

/* Are two members equal? 1e-3 and 0.001 are, and so are the same members in another order. Numbers in texts count as numbers only
 * in settings, which are recorded as texts: two labels "1" and "1.0" differ. */
static bool same_value(const struct json *a, const struct json *b, bool settings)
{
	char *left_end, *right_end;
	int64_t members = 0;
	if (!a || !b)
		return a == b;
	if (!settings && a->kind != b->kind)
		return false;
	if (has_text(a) && has_text(b)) {
		if (strcmp(a->text, b->text) == 0)
			return true;
		if (!settings && a->kind == JSON_STRING)
			return false;
		double x = strtod(a->text, &left_end), y = strtod(b->text, &right_end);
		return *a->text && *b->text && !*left_end && !*right_end && x == y;
	}
	if (a->kind != b->kind)
		return false;
	const struct json *x = a->first_child, *y = b->first_child;
	switch (a->kind) {
	case JSON_BOOL: return a->boolean == b->boolean;
	case JSON_ARRAY:
		for (; x && y; x = x->next, y = y->next)
			if (!same_value(x, y, settings))
				return false;
		return x == y;
	case JSON_OBJECT:
		for (; x; x = x->next, members++)
			if (!same_value(x, json_member(b, x->key), settings))
				return false;
		for (; y; y = y->next)
			members--;
		return members == 0;
	default: return true;
	}
}

enum status compare_note(const char *name, const char *a, const char *b, struct compare_differences *out)
{
	struct compare_setting setting;
	snprintf(setting.name, sizeof setting.name, "%s", name);
	snprintf(setting.a, sizeof setting.a, "%s", a);
	snprintf(setting.b, sizeof setting.b, "%s", b);
	TRY(memory_grow(&out->items, &out->capacity, out->count + 1, sizeof setting, "differences"));
	out->items[out->count++] = setting;
	return OK;
}

static enum status add_difference(struct compare_differences *out, const char *prefix, const char *name, const struct json *a,
				  const struct json *b)
{
	char left[sizeof out->items->a], right[sizeof out->items->b], whole[sizeof out->items->name];
	value_text(left, sizeof left, a);
	value_text(right, sizeof right, b);
	snprintf(whole, sizeof whole, "%s%s", prefix, name);
	return compare_note(whole, left, right, out);
}

/* Adds the members that differ between two objects, by name: first those of `a` in its order, then those only in `b`. Numbers are
 * compared by value. */
static enum status compare_objects(const char *prefix, const struct json *a, const struct json *b, bool settings,
				   struct compare_differences *out)
{
	for (const struct json *member = a ? a->first_child : NULL; member; member = member->next) {
		const struct json *other = json_member(b, member->key);
		if (!member->key || same_value(member, other, settings))
			continue;
		bool phases = settings && strcmp(member->key, "phases") == 0;
		if (!phases || member->kind != JSON_ARRAY || !other || other->kind != JSON_ARRAY) {
			TRY(add_difference(out, prefix, member->key, member, other));
			continue;
		}
		const struct json *x = member->first_child, *y = other->first_child;
		for (int phase = 1; x || y; phase++, x = x ? x->next : NULL, y = y ? y->next : NULL) {
			char of_phase[24];
			snprintf(of_phase, sizeof of_phase, "phase %d: ", phase);
			TRY(compare_objects(of_phase, x, y, settings, out));
		}
	}
	for (const struct json *member = b ? b->first_child : NULL; member; member = member->next)
		if (member->key && !json_member(a, member->key))
			TRY(add_difference(out, prefix, member->key, NULL, member));
	return OK;
}

#define JSON_LIMIT ((size_t)64 << 20)

enum status compare_json_files(const char *a, const char *b, const char *member, bool settings, struct compare_differences *out)
{
	struct json_document left = {0}, right = {0};
	enum status status = OK;
	if (file_exists(a))
		TRY_GOTO(json_read(&left, a, JSON_LIMIT), done);
	if (file_exists(b))
		TRY_GOTO(json_read(&right, b, JSON_LIMIT), done);
	const struct json *x = left.root, *y = right.root;
	if (x && y && (x->kind != JSON_OBJECT || y->kind != JSON_OBJECT))
		status = same_value(x, y, settings) ? OK : compare_note(path_name(a), "its own", "another", out);
	else
		status = compare_objects("", member && x ? json_member(x, member) : x, member && y ? json_member(y, member) : y,
					 settings, out);
done:
	if (left.root)
		json_release(&left);
	if (right.root)
		json_release(&right);
	return status;
}

void compare_print_settings(const struct compare_differences *differences)
{
	if (differences->count == 0)
		return;
	printf("\nsettings that differ\n");
	for (int64_t i = 0; i < differences->count; i++)
		printf("  %-28s  %-24s  %s\n", TEXT_SHOWN(differences->items[i].name), TEXT_SHOWN(differences->items[i].a),
		       TEXT_SHOWN(differences->items[i].b));
}

void compare_put_settings(const struct compare_differences *differences, struct json_writer *writer)
{
	json_open(writer, "settings", '[');
	for (int64_t i = 0; i < differences->count; i++) {
		json_open(writer, NULL, '{');
		json_put_string(writer, "name", differences->items[i].name);
		json_put_string(writer, "a", differences->items[i].a);
		json_put_string(writer, "b", differences->items[i].b);
		json_close(writer);
	}
	json_close(writer);
}
