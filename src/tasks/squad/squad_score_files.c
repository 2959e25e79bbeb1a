/* Reads answers and null scores from JSON files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/string_index.h"
#include "formats/text_file.h"
#include "tasks/squad/squad_score.h"

/* Reads a file that must hold one object. */
static enum status read_object(const char *path, const char *form, struct json_document *out, const char **out_name)
{
	struct text_file file;
	TRY(text_file_read(&file, path, TEXT_FILE_LIMIT));
	enum status status = json_parse(out, file.name, buffer_string(&file.text), file.text.size);
	*out_name = file.name; /* borrowed from the path */
	if (status == OK && out->root->kind != JSON_OBJECT) {
		json_release(out);
		status = error_set(ERR_DATA, "'%s': it is JSON, but not an object: the form is %s", file.name, form);
	}
	text_file_release(&file);
	return status;
}

static enum status index_questions(const struct squad_set *set, struct string_index *out)
{
	int64_t value;
	*out = (struct string_index){0};
	for (int64_t q = 0; q < set->question_count; q++)
		TRY(string_index_add(out, set->questions[q].id, q, &value));
	return OK;
}

/* ---- Answers ---- */

static enum status take_text(const char *name, const char *id, const struct json *value, const char **out)
{
	if (!value || value->kind != JSON_STRING || strlen(value->text) != value->text_size)
		return error_set(ERR_DATA, "'%s': the answer to '%.100s' must be a string", name, id);
	*out = value->text;
	return OK;
}

/* The first text of an n-best list that is not "", or "". */
static enum status take_best(const char *name, const char *id, const struct json *list, const char **out)
{
	*out = "";
	for (const struct json *entry = list->first_child; entry && !**out; entry = entry->next)
		TRY(take_text(name, id, json_member(entry, "text"), out));
	return OK;
}

static enum status take_predictions(struct squad_predictions *out, const char *name, const struct string_index *ids)
{
	for (const struct json *value = out->document.root->first_child; value; value = value->next) {
		int64_t q = string_index_find(ids, value->key);
		const char *text = "";
		if (value->kind == JSON_ARRAY)
			TRY(take_best(name, value->key, value, &text));
		else
			TRY(take_text(name, value->key, value, &text));
		out->list_count += value->kind == JSON_ARRAY;
		if (q < 0) {
			out->unknown_count++;
			continue;
		}
		out->texts[q] = text;
		out->missing_count--;
	}
	return OK;
}

enum status squad_predictions_read(struct squad_predictions *out, const char *path, const struct squad_set *set)
{
	struct string_index ids = {0};
	const char *name;
	enum status status;
	*out = (struct squad_predictions){.missing_count = set->question_count};
	TRY(read_object(path, "{\"question id\": \"answer\", ...}", &out->document, &name));
	TRY_GOTO(memory_new(&out->texts, set->question_count, sizeof *out->texts, "answers"), out);
	TRY_GOTO(index_questions(set, &ids), out);
	TRY_GOTO(take_predictions(out, name, &ids), out);
out:
	string_index_release(&ids);
	if (status != OK)
		squad_predictions_release(out);
	return status;
}

void squad_predictions_release(struct squad_predictions *predictions)
{
	free(predictions->texts);
	json_release(&predictions->document);
	*predictions = (struct squad_predictions){.texts = NULL};
}

/* ---- Null scores ---- */

static enum status room_for_scores(struct squad_null_scores *out, int64_t count, int64_t questions)
{
	*out = (struct squad_null_scores){0};
	TRY(memory_new(&out->questions, count, sizeof *out->questions, "null scores"));
	TRY(memory_new(&out->scores, count, sizeof *out->scores, "null scores"));
	TRY(memory_new(&out->by_question, questions, sizeof *out->by_question, "null scores"));
	for (int64_t q = 0; q < questions; q++)
		out->by_question[q] = NAN;
	return OK;
}

static void add_score(struct squad_null_scores *out, int64_t question, double score)
{
	out->questions[out->count] = question;
	out->scores[out->count++] = score;
	out->by_question[question] = score;
}

static enum status take_scores(struct squad_null_scores *out, const char *name, const struct json *root,
			       const struct squad_set *set)
{
	struct string_index ids = {0};
	enum status status;
	TRY_GOTO(index_questions(set, &ids), out);
	for (const struct json *value = root->first_child; value; value = value->next) {
		int64_t q = string_index_find(&ids, value->key);
		if (value->kind != JSON_NUMBER) {
			status = error_set(ERR_DATA, "'%s': the score of '%.100s' must be a number", name, value->key);
			goto out;
		}
		if (q >= 0)
			add_score(out, q, value->number);
	}
	for (int64_t q = 0; q < set->question_count && status == OK; q++)
		if (isnan(out->by_question[q])) {
			status =
				error_set(ERR_DATA, "'%s': it has scores for %lld of %lld questions; the first without: '%.100s'",
					  name, (long long)out->count, (long long)set->question_count, set->questions[q].id);
			error_hint("the file must have a score for every question of the test set");
		}
out:
	string_index_release(&ids);
	return status;
}

enum status squad_null_scores_read(struct squad_null_scores *out, const char *path, const struct squad_set *set)
{
	struct json_document document;
	const char *name;
	TRY(read_object(path, "{\"question id\": number, ...}", &document, &name));
	enum status status = room_for_scores(out, document.root->child_count, set->question_count);
	if (status == OK)
		status = take_scores(out, name, document.root, set);
	json_release(&document);
	if (status != OK)
		squad_null_scores_release(out);
	return status;
}

enum status squad_null_scores_make(struct squad_null_scores *out, const double *scores, int64_t questions)
{
	enum status status = room_for_scores(out, questions, questions);
	for (int64_t q = 0; q < questions && status == OK; q++)
		add_score(out, q, scores[q]);
	if (status != OK)
		squad_null_scores_release(out);
	return status;
}

void squad_null_scores_release(struct squad_null_scores *scores)
{
	free(scores->questions);
	free(scores->scores);
	free(scores->by_question);
	*scores = (struct squad_null_scores){.count = 0};
}
