#include "tasks/record.h"

#include <string.h>

#include "tasks/layouts.h"

/* ---- Writing ---- */

static const char *const word_kinds[] = {"spaced", "ideographs", "characters"};

static void put_tags(struct json_writer *writer, const struct tag_form *tags, enum tag_words words)
{
	const char separator[2] = {tags->separator, '\0'};
	if (!tags->separator)
		return;
	json_open(writer, "tags", '{');
	json_put_string(writer, "scheme", tag_scheme_name(tags->scheme));
	json_put_string(writer, "separator", separator);
	json_put_string(writer, "words", word_kinds[words]);
	json_close(writer);
}

static void put_columns(struct json_writer *writer, const struct column_choice *columns)
{
	json_open(writer, "columns", '{');
	if (columns->text)
		json_put_string(writer, "text", columns->text);
	if (columns->pair)
		json_put_string(writer, "pair", columns->pair);
	if (columns->label)
		json_put_string(writer, "label", columns->label);
	json_close(writer);
}

static void put_relation(struct json_writer *writer, const struct relation_task_settings *relation)
{
	if (!relation->form.marks[0][0])
		return;
	json_open(writer, "relation", '{');
	json_open(writer, "markers", '[');
	for (int i = 0; i < MENTION_MARKS; i++)
		json_put_string(writer, NULL, relation->form.marks[i]);
	json_close(writer);
	json_put_string(writer, "marker_tokens", relation->tokens == MARKERS_VOCABULARY ? "vocabulary" : "text");
	json_put_string(writer, "head", relation->reads_markers ? "markers" : "cls");
	json_close(writer);
}

static const char *const scorers[] = {"auto", "squad", "cmrc"};

static void put_squad(struct json_writer *writer, const struct squad_task_settings *squad)
{
	json_open(writer, "squad", '{');
	json_put_bool(writer, "version_2_with_negative", squad->version_2_with_negative);
	/* 0 means the default and is not recorded. */
	if (squad->doc_stride > 0)
		json_put_integer(writer, "doc_stride", squad->doc_stride);
	if (squad->max_query_length > 0)
		json_put_integer(writer, "max_query_length", squad->max_query_length);
	if (squad->n_best_size > 0)
		json_put_integer(writer, "n_best_size", squad->n_best_size);
	if (squad->max_answer_length > 0)
		json_put_integer(writer, "max_answer_length", squad->max_answer_length);
	json_put_double(writer, "null_score_diff_threshold", squad->null_score_diff_threshold);
	json_put_string(writer, "scorer", scorers[squad->scorer]);
	json_close(writer);
}

/* How cells separate several labels. */
static const char *const label_cells[] = {
	[CELLS_COMMA] = "comma", [CELLS_BAR] = "bar", [CELLS_SEMICOLON] = "semicolon", [CELLS_JSON] = "json"};

static void put_embedding(struct json_writer *writer, const struct embedding_task_settings *embedding)
{
	json_put_string(writer, "pooling", embedding->pooling == POOLING_CLS ? "cls" : "mean");
	if (embedding->prompts_of_folder) /* they are in config_sentence_transformers.json */
		return;
	if (embedding->query_prompt)
		json_put_string(writer, "query_prompt", embedding->query_prompt);
	if (embedding->document_prompt)
		json_put_string(writer, "document_prompt", embedding->document_prompt);
}

enum status task_record_write(const struct task_state *state, struct buffer *out)
{
	const struct task_settings *settings = &state->settings;
	struct json_writer writer = {.out = out, .indent = 2};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "task", state->task->name);
	if (settings->layout)
		json_put_string(&writer, "layout", settings->layout->name);
	json_put_integer(&writer, "max_seq_length", settings->max_seq_length);
	put_tags(&writer, &settings->tags, settings->words);
	put_relation(&writer, &settings->relation);
	if (state->task == &task_squad)
		put_squad(&writer, &settings->squad);
	if (state->task == &task_multilabel)
		json_put_string(&writer, "label_cells", label_cells[settings->cells]);
	if (state->task == &task_embedding)
		put_embedding(&writer, &settings->embedding);
	if (settings->negative_label)
		json_put_string(&writer, "negative_label", settings->negative_label);
	put_columns(&writer, &settings->trained);
	json_close(&writer);
	buffer_char(out, '\n');
	return buffer_status(out);
}

/* ---- Reading ---- */

enum status task_record_find(const struct json *record, const char *name, const struct task **task, const struct layout **layout)
{
	const char *kind = NULL, *published = NULL;
	TRY(json_get_string(record, name, "task", &kind));
	TRY(json_get_string(record, name, "layout", &published));
	if (!kind)
		return error_set(ERR_DATA, "'%s': \"task\" is missing", name);
	return task_find(published ? published : kind, task, layout);
}

static enum status read_tags(const struct json *tags, const char *name, struct task_settings *settings)
{
	struct tag_form *form = &settings->tags;
	const char *scheme = "", *separator = "", *words = word_kinds[0];
	TRY(json_get_string(tags, name, "scheme", &scheme));
	TRY(json_get_string(tags, name, "separator", &separator));
	if (!tag_scheme_find(scheme, &form->scheme))
		return error_set(ERR_DATA, "'%s': unknown tag scheme '%.40s'", name, scheme);
	if (strcmp(separator, "-") != 0 && strcmp(separator, "_") != 0)
		return error_set(ERR_DATA, "'%s': the separator of tags is '%.40s', not '-' or '_'", name, separator);
	form->separator = separator[0];
	TRY(json_get_string(tags, name, "words", &words));
	for (int i = 0; i < 3; i++)
		if (strcmp(words, word_kinds[i]) == 0) {
			settings->words = (enum tag_words)i;
			return OK;
		}
	return error_set(ERR_DATA, "'%s': unknown kind of words '%.40s'", name, words);
}

static enum status read_relation(const struct json *relation, const char *name, struct relation_task_settings *out)
{
	const struct json *markers = json_member(relation, "markers"), *mark = markers ? markers->first_child : NULL;
	const char *tokens = "", *head = "";
	TRY(json_get_string(relation, name, "marker_tokens", &tokens));
	TRY(json_get_string(relation, name, "head", &head));
	bool fits = markers && markers->kind == JSON_ARRAY && markers->child_count == MENTION_MARKS &&
		    (strcmp(tokens, "text") == 0 || strcmp(tokens, "vocabulary") == 0) &&
		    (strcmp(head, "cls") == 0 || strcmp(head, "markers") == 0);
	for (int i = 0; fits && i < MENTION_MARKS; i++, mark = mark->next) {
		fits = mark->kind == JSON_STRING && mark->text_size > 0 && mark->text_size < MARK_BYTES;
		if (fits)
			memcpy(out->form.marks[i], mark->text, mark->text_size + 1);
	}
	if (!fits)
		return error_set(ERR_DATA, "'%s': \"relation\" does not say which markers, marker_tokens and head there are",
				 name);
	out->tokens = tokens[0] == 'v' ? MARKERS_VOCABULARY : MARKERS_TEXT;
	out->reads_markers = head[0] == 'm';
	return OK;
}

static enum status read_squad(const struct json *squad, const char *name, struct squad_task_settings *out)
{
	static const char *const keys[] = {"doc_stride", "max_query_length", "n_best_size", "max_answer_length"};
	int32_t *const numbers[] = {&out->doc_stride, &out->max_query_length, &out->n_best_size, &out->max_answer_length};
	const char *scorer = scorers[out->scorer];
	for (int i = 0; i < 4; i++) {
		int64_t value = *numbers[i];
		TRY(json_get_integer(squad, name, keys[i], 1, 1 << 20, &value));
		*numbers[i] = (int32_t)value;
	}
	TRY(json_get_bool(squad, name, "version_2_with_negative", &out->version_2_with_negative));
	TRY(json_get_number(squad, name, "null_score_diff_threshold", &out->null_score_diff_threshold));
	TRY(json_get_string(squad, name, "scorer", &scorer));
	for (int i = 0; i < 3; i++)
		if (strcmp(scorer, scorers[i]) == 0) {
			out->scorer = (enum squad_scorer)i;
			return OK;
		}
	return error_set(ERR_DATA, "'%s': unknown scorer '%.40s'", name, scorer);
}

static enum status read_label_cells(const struct json *record, const char *name, enum label_cells *out)
{
	const char *form = label_cells[*out];
	TRY(json_get_string(record, name, "label_cells", &form));
	for (int i = CELLS_COMMA; i <= CELLS_JSON; i++)
		if (strcmp(form, label_cells[i]) == 0) {
			*out = (enum label_cells)i;
			return OK;
		}
	return error_set(ERR_DATA, "'%s': unknown \"label_cells\" '%.40s'", name, form);
}

static enum status read_columns(const struct json *columns, const char *name, struct column_choice *out)
{
	TRY(json_get_string(columns, name, "text", &out->text));
	TRY(json_get_string(columns, name, "pair", &out->pair));
	return json_get_string(columns, name, "label", &out->label);
}

static enum status read_embedding(const struct json *record, const char *name, struct embedding_task_settings *out)
{
	const char *pooling = NULL;
	TRY(json_get_string(record, name, "pooling", &pooling));
	if (pooling && strcmp(pooling, "mean") != 0 && strcmp(pooling, "cls") != 0)
		return error_set(ERR_DATA, "'%s': \"pooling\" is '%.40s', not 'mean' or 'cls'", name, pooling);
	if (pooling)
		out->pooling = pooling[0] == 'c' ? POOLING_CLS : POOLING_MEAN;
	TRY(json_get_string(record, name, "query_prompt", &out->query_prompt));
	return json_get_string(record, name, "document_prompt", &out->document_prompt);
}

enum status task_record_read(const struct json *record, const char *name, struct task_settings *settings)
{
	const struct json *tags = json_member(record, "tags"), *columns = json_member(record, "columns");
	const struct json *relation = json_member(record, "relation"), *squad = json_member(record, "squad");
	int64_t length = settings->max_seq_length;
	TRY(json_get_integer(record, name, "max_seq_length", 0, INT32_MAX, &length));
	settings->max_seq_length = (int32_t)length;
	if (tags)
		TRY(read_tags(tags, name, settings));
	if (relation)
		TRY(read_relation(relation, name, &settings->relation));
	if (squad)
		TRY(read_squad(squad, name, &settings->squad));
	TRY(read_label_cells(record, name, &settings->cells));
	TRY(read_embedding(record, name, &settings->embedding));
	TRY(json_get_string(record, name, "negative_label", &settings->negative_label));
	return columns ? read_columns(columns, name, &settings->trained) : OK;
}
