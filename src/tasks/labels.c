/* Collects the labels of a task, orders them, and parses cells of files as labels. */
#include "tasks/labels.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/json.h"
#include "base/json_internal.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/list_cell.h"
#include "text/look_alike.h"

/* So many different whole numbers may be amounts: scores, ages, years. */
#define MANY_NUMBERS 20

/* Sums of squares of larger numbers may be beyond single precision, and with them losses and gradients. */
#define LABEL_MOST 1e15

enum status label_set_add(struct label_set *set, const char *name, const char *file, int64_t line)
{
	const char *copy;
	int64_t id;

	if (!*name)
		return error_hinted(error_set(ERR_DATA, "'%s', line %lld: the label is empty", file, (long long)line),
				    "give the row a label, or --on_bad_record skip to leave such rows out and count them");
	id = string_index_find(&set->ids, name);
	if (id < 0) {
		TRY(string_store_copy(&set->names, name, strlen(name), &copy));
		TRY(memory_grow(&set->labels, &set->capacity, set->count + 1, sizeof *set->labels, "labels"));
		TRY(string_index_add(&set->ids, copy, set->count, &id));
		set->labels[set->count++] = (struct label){.name = copy, .file = file, .line = line};
	}
	set->labels[id].count++;
	return OK;
}

void label_set_drop_use(struct label_set *set, const char *name)
{
	int64_t id = label_set_find(set, name);
	BUG_IF(id < 0);
	set->labels[id].count--;
}

int64_t label_set_find(const struct label_set *set, const char *name)
{
	return string_index_find(&set->ids, name);
}

/* "a, b, c", truncated if there are many. */
static void list_names(const struct label_set *set, struct buffer *out)
{
	for (int64_t i = 0; i < set->count && i < 20; i++)
		buffer_format(out, "%s%.60s", i ? ", " : "", set->labels[i].name);
	if (set->count > 20)
		buffer_format(out, " and %lld more", (long long)set->count - 20);
}

/* The first label that looks like a name which is none; NULL: there is none. */
static const char *find_alike(const struct label_set *set, const char *name)
{
	struct buffer form = {0}, other = {0};
	const char *found = NULL;
	look_alike_form(name, &form);
	for (int64_t i = 0; i < set->count && !found; i++) {
		buffer_clear(&other);
		look_alike_form(set->labels[i].name, &other);
		if (strcmp(buffer_string(&form), buffer_string(&other)) == 0)
			found = set->labels[i].name;
	}
	buffer_release(&form);
	buffer_release(&other);
	return found;
}

enum status label_set_id(const struct label_set *set, const char *name, const char *file, int64_t line, int64_t *out)
{
	struct buffer names = {0};
	*out = label_set_find(set, name);
	if (*out >= 0)
		return OK;
	list_names(set, &names);
	enum status status =
		error_set(ERR_DATA, "'%s', line %lld: the label '%.100s' does not occur in training, whose labels are %s", file,
			  (long long)line, name, buffer_string(&names));
	const char *alike = find_alike(set, name);
	buffer_clear(&names);
	if (alike) {
		look_alike_difference(name, alike, &names);
		buffer_text(&names, " in place of ");
		look_alike_difference(alike, name, &names);
		error_hint("it looks like '%.100s', but has %s: write the label in one way", alike, buffer_string(&names));
	} else {
		error_hint("did you mean another column (--label_column)? A class without examples in training can be named with "
			   "--labels");
	}
	buffer_release(&names);
	return status;
}

static const char *trimmed(const char *text, size_t *size)
{
	*size = strlen(text);
	while (*size > 0 && isspace((unsigned char)text[*size - 1]))
		--*size;
	while (*size > 0 && isspace((unsigned char)*text)) {
		text++;
		--*size;
	}
	return text;
}

/* Strict: digits with a decimal point and an exponent; not "inf", "nan", "0x1". */
static bool parse_number(const char *text, double *out)
{
	size_t size;
	char *end;
	text = trimmed(text, &size);
	if (size == 0 || size > 400 || strspn(text, "0123456789+-.eE") < size)
		return false;
	errno = 0;
	*out = strtod_l(text, &end, json_locale());
	return end == text + size && *out - *out == 0;
}

static bool parse_integer(const char *text, long long *out)
{
	char *end;
	errno = 0;
	*out = strtoll(text, &end, 10);
	return errno == 0 && end > text && *end == '\0' && !isspace((unsigned char)*text);
}

static int by_code_point(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static int by_integer(const void *a, const void *b)
{
	long long x = 0, y = 0;
	(void)parse_integer(((const struct label *)a)->name, &x);
	(void)parse_integer(((const struct label *)b)->name, &y);
	return x < y ? -1 : x > y ? 1 : by_code_point(a, b);
}

static int by_number(const void *a, const void *b)
{
	double x = 0, y = 0;
	(void)parse_number((*(const struct label *const *)a)->name, &x);
	(void)parse_number((*(const struct label *const *)b)->name, &y);
	return x < y ? -1 : x > y;
}

static int by_letters(const void *a, const void *b)
{
	const char *x = (*(const struct label *const *)a)->name, *y = (*(const struct label *const *)b)->name;
	size_t x_size, y_size;
	x = trimmed(x, &x_size);
	y = trimmed(y, &y_size);
	int order = strncasecmp(x, y, x_size < y_size ? x_size : y_size);
	return order ? order : x_size < y_size ? -1 : x_size > y_size;
}

/* Labels with their common form, to be sorted by it. */
struct labeled_form {
	const struct label *label;
	struct buffer form;
};

static int by_form(const void *a, const void *b)
{
	return strcmp(buffer_string(&((const struct labeled_form *)a)->form),
		      buffer_string(&((const struct labeled_form *)b)->form));
}

/* Warns of labels that look alike but differ in code points, which become two classes. */
static enum status warn_of_look_alikes(const struct label_set *set)
{
	struct labeled_form *sorted;
	struct buffer points = {0}, other_points = {0};
	TRY(memory_new(&sorted, set->count, sizeof *sorted, "labels"));
	enum status status = OK;
	for (int64_t i = 0; i < set->count && status == OK; i++) {
		sorted[i].label = &set->labels[i];
		look_alike_form(set->labels[i].name, &sorted[i].form);
		status = buffer_status(&sorted[i].form);
	}
	if (status == OK)
		qsort(sorted, (size_t)set->count, sizeof *sorted, by_form);
	for (int64_t i = 1; i < set->count && status == OK; i++) {
		const char *a = sorted[i - 1].label->name, *b = sorted[i].label->name;
		if (by_form(&sorted[i - 1], &sorted[i]) != 0)
			continue;
		buffer_clear(&points);
		buffer_clear(&other_points);
		look_alike_difference(a, b, &points);
		look_alike_difference(b, a, &other_points);
		log_warning("the labels '%s' ('%s', line %lld) and '%s' ('%s', line %lld) look alike, but differ in code points: "
			    "%s, and %s; they are taken as two classes",
			    a, sorted[i - 1].label->file, (long long)sorted[i - 1].label->line, b, sorted[i].label->file,
			    (long long)sorted[i].label->line, buffer_string(&points), buffer_string(&other_points));
	}
	for (int64_t i = 0; i < set->count; i++)
		buffer_release(&sorted[i].form);
	buffer_release(&points);
	buffer_release(&other_points);
	free(sorted);
	return status;
}

static enum status refuse_twins(const struct label *a, const struct label *b, const char *sameness)
{
	if (a->line > b->line) {
		const struct label *later = a;
		a = b;
		b = later;
	}
	return error_hinted(error_set(ERR_DATA, "the labels '%.100s' ('%s', line %lld) and '%.100s' ('%s', line %lld) %s",
				      a->name, a->file, (long long)a->line, b->name, b->file, (long long)b->line, sameness),
			    "write the label in one way");
}

/* Refuses labels that mean the same, since they would be learned as two. */
static enum status refuse_doubles(const struct label_set *set)
{
	const struct label **sorted;
	int64_t numbers = 0;
	enum status status = OK;

	TRY(memory_new(&sorted, set->count, sizeof *sorted, "labels"));
	for (int64_t i = 0; i < set->count; i++) {
		double value;
		if (parse_number(set->labels[i].name, &value))
			sorted[numbers++] = &set->labels[i];
	}
	qsort(sorted, (size_t)numbers, sizeof *sorted, by_number);
	for (int64_t i = 1; i < numbers && status == OK; i++)
		if (by_number(&sorted[i - 1], &sorted[i]) == 0)
			status = refuse_twins(sorted[i - 1], sorted[i], "are the same number");
	for (int64_t i = 0; i < set->count; i++)
		sorted[i] = &set->labels[i];
	qsort(sorted, (size_t)set->count, sizeof *sorted, by_letters);
	for (int64_t i = 1; i < set->count && status == OK; i++) {
		if (by_letters(&sorted[i - 1], &sorted[i]) != 0)
			continue;
		size_t size;
		const char *name = trimmed(sorted[i]->name, &size), *other = trimmed(sorted[i - 1]->name, &(size_t){0});
		if (strncmp(name, other, size) == 0)
			status = refuse_twins(sorted[i - 1], sorted[i], "differ in white space alone");
		else
			log_warning("the labels '%s' and '%s' differ in the case of letters alone; they are taken as two classes",
				    sorted[i - 1]->name, sorted[i]->name);
	}
	free(sorted);
	return status;
}

/* The first label of the set that the list lacks; NULL: it has all of them. */
static enum status find_missing(const struct label_list *list, const struct label_set *set, const struct label **out)
{
	bool *listed;
	*out = NULL;
	TRY(memory_new(&listed, set->count, sizeof *listed, "labels"));
	for (int64_t i = 0; i < list->count; i++) {
		int64_t id = label_set_find(set, list->names[i]);
		if (id >= 0)
			listed[id] = true;
	}
	for (int64_t id = 0; id < set->count && !*out; id++)
		*out = listed[id] ? NULL : &set->labels[id];
	free(listed);
	return OK;
}

/* Puts the set's labels into the order of the list; labels that are only in the list are added without examples. */
static enum status take_order(struct label_set *set, const struct label_list *list)
{
	struct label *ordered;
	TRY(memory_new(&ordered, list->count, sizeof *ordered, "labels"));
	for (int64_t i = 0; i < list->count; i++) {
		int64_t id = label_set_find(set, list->names[i]);
		if (id >= 0) {
			ordered[i] = set->labels[id];
			continue;
		}
		ordered[i] = (struct label){.file = ""};
		enum status status = string_store_copy(&set->names, list->names[i], strlen(list->names[i]), &ordered[i].name);
		if (status != OK) {
			free(ordered);
			return status;
		}
	}
	free(set->labels);
	set->labels = ordered;
	set->count = set->capacity = list->count;
	return OK;
}

static enum status index_anew(struct label_set *set)
{
	int64_t id;
	string_index_release(&set->ids);
	for (int64_t i = 0; i < set->count; i++)
		TRY(string_index_add(&set->ids, set->labels[i].name, i, &id));
	return OK;
}

static enum status refuse_foreign(const struct label *label, const char *whose, const struct label_list *list, const char *hint)
{
	struct buffer names = {0};
	for (int64_t i = 0; i < list->count && i < 20; i++)
		buffer_format(&names, "%s%.60s", i ? ", " : "", list->names[i]);
	enum status status = error_set(ERR_DATA, "'%s', line %lld: the label '%.100s' is not one of %s (%s)", label->file,
				       (long long)label->line, label->name, whose, buffer_string(&names));
	error_hint("%s", hint);
	buffer_release(&names);
	return status;
}

/* Chooses an existing order: that of --labels, the folder, or the task; LABELS_SORTED if none of them fits. */
static enum status choose_list(const struct label_set *set, const struct label_rules *rules, enum label_order *out,
			       const struct label_list **out_list)
{
	const struct label *missing = NULL;
	char task[128];

	*out = LABELS_SORTED;
	*out_list = NULL;
	if (rules->given.count > 0) {
		TRY(find_missing(&rules->given, set, &missing));
		if (missing)
			return refuse_foreign(missing, "those of --labels", &rules->given,
					      "add it to --labels, or correct the row");
		*out = LABELS_GIVEN;
		*out_list = &rules->given;
		return OK;
	}
	bool fits = rules->folder.count == set->count;
	if (fits)
		TRY(find_missing(&rules->folder, set, &missing));
	if (fits && !missing) {
		*out = LABELS_OF_FOLDER;
		*out_list = &rules->folder;
	} else if (rules->task.count > 0) {
		snprintf(task, sizeof task, "the labels of %s", rules->task_name);
		TRY(find_missing(&rules->task, set, &missing));
		if (missing)
			return refuse_foreign(missing, task, &rules->task,
					      "did you mean another column (--label_column)? Labels of your own: "
					      "--labels, or --task classification or pair");
		*out = LABELS_OF_TASK;
		*out_list = &rules->task;
	}
	return OK;
}

static bool are_integers(const struct label_set *set)
{
	long long value;
	for (int64_t i = 0; i < set->count; i++)
		if (!parse_integer(set->labels[i].name, &value))
			return false;
	return true;
}

bool label_set_has_amounts(const struct label_set *set)
{
	double value;
	bool whole = true;
	for (int64_t i = 0; i < set->count; i++) {
		if (!parse_number(set->labels[i].name, &value))
			return false;
		whole = whole && floor(value) == value;
	}
	return !whole;
}

bool label_set_has_many_numbers(const struct label_set *set)
{
	return set->count >= MANY_NUMBERS && are_integers(set);
}

bool label_set_has_flags(const struct label_set *set)
{
	size_t size = set->count > 0 ? strlen(set->labels[0].name) : 0;
	bool begins_with_0 = false;
	for (int64_t i = 0; i < set->count; i++) {
		const char *name = set->labels[i].name;
		if (strspn(name, "01 ") != size || name[size])
			return false;
		begins_with_0 = begins_with_0 || name[0] == '0';
	}
	return begins_with_0 && size > 1;
}

/* What str() makes of a missing value. */
static void warn_of_missing(const struct label_set *set)
{
	static const char *const missing[] = {"nan", "NaN", "<NA>", "NA", "N/A", "n/a", "#N/A", "NULL", "null"};
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
		int64_t id = label_set_find(set, missing[i]);
		if (id >= 0)
			log_warning(
				"the label '%s' ('%s', line %lld) is what programs print where a label is missing; it is taken "
				"as a class",
				missing[i], set->labels[id].file, (long long)set->labels[id].line);
	}
}

static void warn_of_unseen(const struct label_set *set)
{
	for (int64_t i = 0; i < set->count; i++)
		if (set->labels[i].count == 0)
			log_warning("the class '%s' has no example in training: it will hardly ever be predicted",
				    set->labels[i].name);
}

enum status label_set_order(struct label_set *set, const struct label_rules *rules)
{
	const struct label_list *list;

	if (set->count == 0)
		return error_set(ERR_DATA, "there are no labels in the training data");
	if (set->count == 1 && !rules->allow_one)
		return error_hinted(error_set(ERR_DATA, "every training example has the label '%.100s' (from '%s', line %lld on)",
					      set->labels[0].name, set->labels[0].file, (long long)set->labels[0].line),
				    "there is nothing to tell apart: did you mean another column (--label_column)?");
	TRY(refuse_doubles(set));
	TRY(warn_of_look_alikes(set));
	if (rules->given.count == 0)
		warn_of_missing(set);
	TRY(choose_list(set, rules, &set->order, &list));
	if (list) {
		TRY(take_order(set, list));
	} else {
		set->order = are_integers(set) ? LABELS_ASCENDING : LABELS_SORTED;
		qsort(set->labels, (size_t)set->count, sizeof *set->labels,
		      set->order == LABELS_ASCENDING ? by_integer : by_code_point);
	}
	if (!rules->no_warnings)
		warn_of_unseen(set);
	return index_anew(set);
}

void label_set_describe(const struct label_set *set, struct buffer *out)
{
	static const char *const orders[] = {"as given by --labels", "in the order of the model folder",
					     "in the order of the task", "ascending", "sorted"};
	char count[FORMAT_BYTES];
	buffer_format(out, "%s: ", format_counted(count, set->count, "label", "labels"));
	for (int64_t i = 0; i < set->count && i < 20; i++)
		buffer_format(out, "%s%.60s %s", i ? ", " : "", set->labels[i].name, format_count(count, set->labels[i].count));
	buffer_format(out, "%s (%s)", set->count > 20 ? ", ..." : "", orders[set->order]);
}

void label_set_release(struct label_set *set)
{
	free(set->labels);
	string_index_release(&set->ids);
	string_store_release(&set->names);
	*set = (struct label_set){0};
}

enum status label_number(const char *text, const char *file, int64_t line, double *out)
{
	if (parse_number(text, out) && fabs(*out) <= LABEL_MOST)
		return OK;
	if (parse_number(text, out))
		return error_set(
			ERR_DATA,
			"'%s', line %lld: the label '%.100s' is too large to be learned in single precision: at most 1e15", file,
			(long long)line, text);
	return error_hinted(
		error_set(ERR_DATA, "'%s', line %lld: the label '%.100s' is not a number", file, (long long)line, text),
		strchr(text, ',') ? "decimals are written with a point: replace the commas of this column"
				  : "did you mean another column (--label_column)? Classes are for --task "
				    "classification or pair");
}

static bool is_empty(const char *cell)
{
	return cell[strspn(cell, " \t")] == '\0';
}

bool label_flag(const char *text, bool *out)
{
	double value;
	bool number = parse_number(text, &value) && (value == 0 || value == 1);
	*out = number ? value == 1 : strcasecmp(text, "true") == 0;
	return number || *out || strcasecmp(text, "false") == 0;
}

/* Lists of one length that consist of 0 and 1 say for each label whether it applies. */
static enum status are_flags(const char *const *cells, int64_t count, bool *out)
{
	int64_t length = -1;
	enum status status = OK;
	*out = true;
	for (int64_t i = 0; i < count && *out && status == OK; i++) {
		struct string_store store = {0};
		struct list_cell list;
		enum list_cell_kind kind;
		bool flag;
		if (is_empty(cells[i]))
			continue;
		status = list_cell_read(&list, cells[i], &store, &kind);
		*out = list.count > 1 && (length < 0 || list.count == length);
		for (int64_t k = 0; k < list.count && *out; k++)
			*out = label_flag(list.items[k], &flag);
		length = list.count;
		list_cell_release(&list);
		string_store_release(&store);
	}
	return status;
}

enum status label_cells_detect(const char *const *cells, int64_t count, enum label_cells *out)
{
	int64_t bars = 0, semicolons = 0, lists = 0, filled = 0;
	bool flags = false;
	for (int64_t i = 0; i < count; i++) {
		if (is_empty(cells[i]))
			continue;
		enum list_cell_kind kind = list_cell_kind(cells[i]);
		filled++;
		lists += kind == CELL_LIST || kind == CELL_PLAIN_LIST;
		bars += kind != CELL_LIST && strchr(cells[i], '|') != NULL;
		semicolons += kind != CELL_LIST && strchr(cells[i], ';') != NULL;
	}
	if (filled > 0 && lists == filled)
		TRY(are_flags(cells, count, &flags));
	*out = flags                           ? CELLS_FLAGS
	       : filled > 0 && lists == filled ? CELLS_LIST
	       : bars > 0                      ? CELLS_BAR
	       : semicolons > 0                ? CELLS_SEMICOLON
					       : CELLS_COMMA;
	return OK;
}

struct name_array {
	const char **names;
	int64_t count, capacity;
	struct string_store *store;
};

/* Adds a name, which must be a new one. */
static enum status add_name(struct name_array *array, const char *text, size_t size, const char *file, int64_t line)
{
	if (size == 0)
		return error_set(ERR_DATA, "'%s', line %lld: one of the labels is empty", file, (long long)line);
	for (int64_t i = 0; i < array->count; i++)
		if (strlen(array->names[i]) == size && memcmp(array->names[i], text, size) == 0)
			return error_set(ERR_DATA, "'%s', line %lld: the label '%.*s' is given twice", file, (long long)line,
					 (int)(size < 100 ? size : 100), text);
	TRY(memory_grow(&array->names, &array->capacity, array->count + 1, sizeof *array->names, "labels"));
	TRY(string_store_copy(array->store, text, size, &array->names[array->count]));
	array->count++;
	return OK;
}

static enum status refuse_list(const char *cell, const char *file, int64_t line, const char *why)
{
	return error_hinted(
		error_set(ERR_DATA, "'%s', line %lld: '%.100s' %s", file, (long long)line, cell, why),
		"write lists as JSON, [\"a\", \"b\"], or as Python prints them; several labels may also stand between '|'");
}

/* The labels of a list of 0 and 1: those of the names, in their order, that have a 1. */
static enum status take_flags(struct name_array *array, const struct list_cell *list, const struct label_list *names,
			      const char *file, int64_t line)
{
	if (list->count != names->count)
		return error_hinted(error_set(ERR_DATA,
					      "'%s', line %lld: a list of %lld times 0 or 1, but the names of %lld labels", file,
					      (long long)line, (long long)list->count, (long long)names->count),
				    "each place stands for a label: name them in this order with --labels a,b,c");
	for (int64_t i = 0; i < list->count; i++) {
		bool flag;
		if (!label_flag(list->items[i], &flag))
			return error_set(ERR_DATA, "'%s', line %lld: '%.40s' in the list is neither 0 nor 1", file,
					 (long long)line, list->items[i]);
		if (flag)
			TRY(add_name(array, names->names[i], strlen(names->names[i]), file, line));
	}
	return OK;
}

static enum status split_text(struct name_array *array, const char *cell, char separator, const char *file, int64_t line)
{
	for (const char *at = cell, *end; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, separator);
		const char *last = end;
		while (at < last && isspace((unsigned char)*at))
			at++;
		while (last > at && isspace((unsigned char)last[-1]))
			last--;
		TRY(add_name(array, at, (size_t)(last - at), file, line));
	}
	return OK;
}

/* A list is one whatever the other cells are; only [a, b] takes its meaning from them. */
static enum status split_cell(struct name_array *array, const char *cell, enum label_cells form, const struct label_list *names,
			      const char *file, int64_t line)
{
	static const char separators[] = {[CELLS_COMMA] = ',', [CELLS_BAR] = '|', [CELLS_SEMICOLON] = ';'};
	struct list_cell list;
	enum list_cell_kind kind;
	enum status status = list_cell_read(&list, cell, array->store, &kind);
	bool in_lists = form == CELLS_LIST || form == CELLS_FLAGS;
	bool is_list = kind == CELL_LIST || (in_lists && kind == CELL_PLAIN_LIST);
	if (status == OK && kind == CELL_BROKEN_LIST)
		status = refuse_list(cell, file, line, "begins like a list of labels but is not one");
	else if (status == OK && in_lists && !is_list)
		status = refuse_list(cell, file, line, "is not a list of labels, unlike in other rows");
	else if (status == OK && is_list && list.missing)
		status = error_hinted(
			error_set(ERR_DATA, "'%s', line %lld: a label is missing in '%.100s'", file, (long long)line, cell),
			"write [] where no label applies; if it is the name of a label, put it between quotes");
	else if (status == OK && form == CELLS_FLAGS)
		status = take_flags(array, &list, names, file, line);
	else if (status == OK && !is_list)
		status = split_text(array, cell, separators[form], file, line);
	for (int64_t i = 0; i < list.count && is_list && form != CELLS_FLAGS && status == OK; i++)
		status = add_name(array, list.items[i], strlen(list.items[i]), file, line);
	list_cell_release(&list);
	return status;
}

enum status label_cell_split(const char *cell, enum label_cells form, const struct label_list *names, const char *file,
			     int64_t line, struct string_store *store, const char ***out_names, int64_t *out_count)
{
	struct name_array array = {.store = store};
	enum status status = is_empty(cell) ? OK : split_cell(&array, cell, form, names, file, line);
	if (status != OK) {
		free(array.names);
		array = (struct name_array){0};
	}
	*out_names = array.names;
	*out_count = array.count;
	return status;
}

enum status labels_parse_option(const char *text, struct string_store *store, const char ***out_names, int64_t *out_count)
{
	struct name_array array = {.store = store};
	enum status status = split_text(&array, text, ',', "--labels", 1);
	if (status == ERR_DATA)
		status = error_set(ERR_USAGE, "--labels '%.200s': one of the labels is empty, or given twice", text);
	if (status != OK) {
		free(array.names);
		array = (struct name_array){0};
	}
	*out_names = array.names;
	*out_count = array.count;
	return status;
}
