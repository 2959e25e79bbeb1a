/* Reads corpora, queries, and qrels. */
#include "tasks/retrieval_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/stream.h"

/* ---- Texts ---- */

static const char *const text_names[] = {"text",     "passage", "document", "content", "contents",
					 "sentence", "query",   "question", NULL};
static const char *const id_names[] = {"_id", "id", "docid", "pid", "qid", NULL};
static const char *const known_names[] = {"text", "passage", "document", "content", "contents", "sentence", "query", "question",
					  "_id",  "id",      "docid",    "pid",     "qid",      "title",    NULL};

static int64_t find(const struct table *table, const char *const *names)
{
	for (; *names; names++) {
		int64_t column = table_find_column(table, *names);
		if (column >= 0)
			return column;
	}
	return -1;
}

enum status text_list_add(struct text_list *list, const char *text, const char *id)
{
	TRY(memory_grow(&list->texts, &list->capacity, list->count + 1, sizeof *list->texts, "texts"));
	TRY(memory_grow(&list->ids, &list->id_capacity, list->count + 1, sizeof *list->ids, "texts"));
	list->texts[list->count] = text;
	list->ids[list->count++] = id;
	return OK;
}

/* As BEIR joins them. */
static enum status join_title(struct text_list *list, const char *title, const char **text)
{
	struct buffer joined = {0};
	buffer_format(&joined, "%s %s", title, *text);
	enum status status = buffer_status(&joined);
	if (status == OK)
		status = string_store_copy(&list->strings, joined.data, joined.size, text);
	buffer_release(&joined);
	return status;
}

static enum status take_rows(struct text_list *list, const struct table *table, const char *column)
{
	int64_t text = -1, title = -1, id = find(table, id_names);
	if (column) {
		TRY(table_choose_column(table, column, &text));
	} else {
		text = find(table, text_names);
		title = text < 0 ? -1 : table_find_column(table, "title");
		if (text < 0 && table->column_count == 1)
			text = 0;
	}
	if (text < 0) {
		struct buffer names = {0};
		table_list_columns(table, &names);
		enum status status = error_set(ERR_DATA, "'%s': none of its columns is named \"text\"; they are %.800s",
					       table->name, buffer_string(&names));
		error_hint("name the one that holds the texts: --corpus_column NAME");
		buffer_release(&names);
		return status;
	}
	for (int64_t row = 0; row < table->row_count; row++) {
		const char *field = table_field(table, row, text), *head = title < 0 ? NULL : table_field(table, row, title);
		field = field ? field : "";
		if (head && *head)
			TRY(join_title(list, head, &field));
		TRY(text_list_add(list, field, id < 0 ? NULL : table_field(table, row, id)));
	}
	return OK;
}

enum status text_list_read(struct text_list *list, const char *path, const char *column)
{
	struct bad_records bad = {0};
	const char *const given[] = {column, NULL};
	struct table *table;
	TRY(memory_grow(&list->tables, &list->table_capacity, list->table_count + 1, sizeof *list->tables, "tables"));
	TRY(memory_new(&table, 1, sizeof *table, "a table"));
	list->tables[list->table_count++] = table;
	TRY(table_read(table, path, &(struct table_options){.known_names = known_names, .given_names = given, .bad = &bad}));
	return take_rows(list, table, column);
}

void text_list_release(struct text_list *list)
{
	for (int64_t i = 0; i < list->table_count; i++) {
		table_release(list->tables[i]);
		free(list->tables[i]);
	}
	free(list->tables);
	free(list->texts);
	free(list->ids);
	string_store_release(&list->strings);
	*list = (struct text_list){.count = 0};
}

/* ---- Judgments ---- */

static enum status index_ids(const struct text_list *list, struct string_index *index, const char *what)
{
	for (int64_t i = 0; i < list->count; i++) {
		int64_t first;
		if (!list->ids[i])
			return error_set(ERR_DATA, "%s %lld has no \"_id\", by which qrels name it", what, (long long)i + 1);
		TRY(string_index_add(index, list->ids[i], i, &first));
		if (first != i)
			return error_set(ERR_DATA, "%s %lld and %lld have the same id '%.80s'", what, (long long)first + 1,
					 (long long)i + 1, list->ids[i]);
	}
	return OK;
}

struct judging {
	struct judgments *out;
	struct string_index queries, documents; /* the latter grows by those that the corpus does not have */
	struct string_store unknown;            /* their ids */
	const char *path;
};

static enum status find_document(struct judging *j, const char *id, int64_t *out)
{
	*out = string_index_find(&j->documents, id);
	if (*out >= 0)
		return OK;
	TRY(string_store_copy(&j->unknown, id, strlen(id), &id));
	return string_index_add(&j->documents, id, j->documents.count, out);
}

/* A line of three fields (BEIR) or four (TREC, whose second one means nothing), which are cut apart. */
static enum status take_line(struct judging *j, char *line, int64_t number)
{
	char *fields[5], *rest = line, *end;
	int count = 0;
	for (char *field; count < 5 && (field = strtok_r(rest, " \t\r", &rest));)
		fields[count++] = field;
	if (count == 0 || (number == 1 && strcmp(fields[0], "query-id") == 0))
		return OK;
	if (count != 3 && count != 4)
		return error_set(ERR_DATA,
				 "'%s', line %lld: a judgment has three fields (query, document, grade), or TREC's four", j->path,
				 (long long)number);
	errno = 0;
	long long grade = strtoll(fields[count - 1], &end, 10);
	if (*end || errno)
		return error_set(ERR_DATA, "'%s', line %lld: the grade '%.40s' is not a whole number", j->path, (long long)number,
				 fields[count - 1]);
	struct judgment item = {.query = string_index_find(&j->queries, fields[0]), .grade = grade};
	if (item.query < 0) {
		j->out->unknown_queries++;
		return OK;
	}
	TRY(find_document(j, fields[count - 2], &item.document));
	TRY(memory_grow(&j->out->items, &j->out->capacity, j->out->count + 1, sizeof *j->out->items, "judgments"));
	j->out->items[j->out->count++] = item;
	return OK;
}

static enum status take_lines(struct judging *j)
{
	struct line_reader *reader;
	struct buffer line = {0};
	TRY(line_reader_open(&reader, j->path, 1 << 16));
	enum status status = OK;
	for (int64_t number = 1; status == OK; number++) {
		const char *bytes;
		size_t size;
		bool continues, end;
		status = line_reader_next(reader, &bytes, &size, &continues, &end);
		if (status != OK || end)
			break;
		buffer_clear(&line);
		buffer_append(&line, bytes, size);
		status = buffer_status(&line);
		if (status == OK)
			status = take_line(j, (char *)(uintptr_t)buffer_string(&line), number);
	}
	buffer_release(&line);
	line_reader_close(reader);
	return status;
}

static int compare_queries(const void *left, const void *right)
{
	const struct judgment *a = left, *b = right;
	if (a->query != b->query)
		return a->query < b->query ? -1 : 1;
	return a->document < b->document ? -1 : a->document > b->document;
}

/* Sorts the judgments, and leaves out those that are given twice: a document can be relevant to a query only once. */
static enum status sort_judgments(struct judging *j, const struct text_list *queries, const struct text_list *documents)
{
	struct judgments *out = j->out;
	int64_t kept = 0;
	qsort(out->items, (size_t)out->count, sizeof *out->items, compare_queries);
	for (int64_t i = 0; i < out->count; i++) {
		const struct judgment *item = &out->items[i], *last = kept > 0 ? &out->items[kept - 1] : NULL;
		if (last && compare_queries(last, item) == 0) {
			if (last->grade != item->grade)
				return error_set(ERR_DATA,
						 "'%s' gives query '%.80s' and document '%.80s' two grades, %lld and %lld",
						 j->path, queries->ids[item->query],
						 item->document < documents->count ? documents->ids[item->document]
										   : "(not in the corpus)",
						 (long long)last->grade, (long long)item->grade);
			out->repeated++;
			continue;
		}
		out->unknown_documents += item->document >= documents->count;
		out->items[kept++] = *item;
	}
	out->count = kept;
	return OK;
}

enum status judgments_read(struct judgments *out, const char *path, const struct text_list *queries,
			   const struct text_list *documents)
{
	struct judging j = {.out = out, .path = path};
	enum status status;
	TRY_GOTO(index_ids(queries, &j.queries, "query"), done);
	TRY_GOTO(index_ids(documents, &j.documents, "document"), done);
	TRY_GOTO(take_lines(&j), done);
	if (out->count == 0)
		status = error_set(ERR_DATA, "'%s' judges none of the queries", path);
	else
		status = sort_judgments(&j, queries, documents);
done:
	string_store_release(&j.unknown);
	string_index_release(&j.queries);
	string_index_release(&j.documents);
	return status;
}

void judgments_release(struct judgments *judgments)
{
	free(judgments->items);
	*judgments = (struct judgments){.items = NULL};
}
