/* Reads a model folder for export: configuration, task, heads, and whatever weights there are. */
#include "infer/saved_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "infer/task_session.h"
#include "model/forms.h"
#include "weights/model_files.h"

#define RECORD_LIMIT ((size_t)1 << 20)

/* Reads bertc_task.json, which stays with the weights. */
static enum status read_record(struct saved_model *saved)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	bool found;
	TRY(model_source_beside(&saved->source, TASK_RECORD_FILE, path, &found));
	if (!found)
		return OK;
	enum status status = file_read(path, RECORD_LIMIT, &text);
	if (status == OK && !(saved->task.record = strdup(buffer_string(&text))))
		status = error_set(ERR_RESOURCE, "not enough memory for '%s'", path);
	buffer_release(&text);
	return status;
}

/* Sets *found if the head belongs to a task, and gets the head from the task. */
static enum status find_task_head(struct saved_model *saved, const char *path, bool *found)
{
	struct task_session_settings settings = {.model = path};
	struct task_session session = {0};
	enum status status = OK;
	*found = saved->task.record ||
		 task_of_architecture(saved->task.architecture, saved->task.problem_type, saved->task.label_count);
	if (*found)
		status = task_session_open(&session, &settings);
	/* Vectors come from the encoder itself, so there is no head. */
	if (*found && status == OK && session.heads.head[0].loss == LOSS_VECTORS)
		*found = false;
	if (*found && status == OK)
		saved->heads = session.heads;
	task_session_close(&session);
	return status;
}

static bool is_named(const struct saved_model *saved, const char *architecture)
{
	return saved->task.architecture && strcmp(saved->task.architecture, architecture) == 0;
}

static enum status find_heads(struct saved_model *saved, const char *path, bool with_head)
{
	bool is_task = false;
	if (with_head)
		TRY(find_task_head(saved, path, &is_task));
	if (is_task)
		return OK;
	/* Google's bert_config.json names no architecture; its checkpoints come from pre-training. */
	bool masked_words =
		!saved->task.architecture || is_named(saved, "BertForPreTraining") || is_named(saved, "BertForMaskedLM");
	saved->heads = with_head && masked_words ? *model_heads_of_words(&saved->config) : model_heads_none;
	if (with_head && (masked_words || is_named(saved, "BertModel")))
		return OK;
	if (with_head)
		return error_hinted(
			error_set(ERR_USAGE, "'%s' is a %s, whose head bertc does not know", path, saved->task.architecture),
			"--no_head takes the encoder alone");
	/* For an embedding model, the record says how it was trained; for others, it describes the head that is left out. */
	char *record = saved->sentences.found ? saved->task.record : NULL;
	if (record)
		saved->task.record = NULL;
	task_config_release(&saved->task);
	enum status status = task_config_make(&saved->task, "BertModel", NULL, NULL, 0);
	saved->task.record = record;
	return status;
}

static bool is_missing(const struct model_folder_report *report, const char *name)
{
	for (int64_t i = 0; i < report->missing.count; i++)
		if (strcmp(report->missing.names[i], name) == 0)
			return true;
	return false;
}

/* Reads the weights that `heads` ask for. If the file lacks the pooler or the next-sentence head, the heads are those that it
 * has, and *out_whole is false: what was read has zeros in place of the others. */
static enum status read_weights(struct saved_model *saved, bool *out_whole)
{
	model_free(saved->model);
	free(saved->slab);
	saved->model = NULL;
	saved->slab = NULL;
	TRY(model_create(&saved->model, &saved->names, &saved->config, &saved->heads));
	TRY(memory_new(&saved->slab, saved->model->slab_count, sizeof *saved->slab, "weights"));
	struct model_folder_report report = {0};
	enum missing_weights missing = model_heads_predict(&saved->heads) ? MISSING_NEXT_SENTENCE
				       : saved->heads.count == 0          ? MISSING_HEADS
									  : MISSING_NOTHING;
	enum status status = model_folder_load(saved->source.weights, saved->model, missing, saved->slab, &report);
	bool no_pooler = is_missing(&report, "bert.pooler.dense.weight");
	bool no_next_sentence = no_pooler || is_missing(&report, "cls.seq_relationship.weight");
	model_folder_report_release(&report);
	*out_whole = !no_next_sentence;
	if (no_next_sentence && model_heads_predict(&saved->heads))
		saved->heads = model_heads_words;
	if (no_next_sentence)
		saved->heads.pooler = !no_pooler;
	return status;
}

/* Gives the model only what the weights have: an export would otherwise contain heads that nobody trained. */
static enum status read_what_is_there(struct saved_model *saved)
{
	bool whole;
	TRY(read_weights(saved, &whole));
	return whole ? OK : read_weights(saved, &whole);
}

/* A model that predicts words keeps its architecture, unless that promises a head that the weights lack. It has no classes. */
static enum status settle_task(struct saved_model *saved)
{
	if (!model_heads_predict(&saved->heads))
		return OK;
	bool words_alone = saved->heads.count == 1 || is_named(saved, model_heads_words.architecture);
	task_config_release(&saved->task);
	return task_config_make(&saved->task, words_alone ? model_heads_words.architecture : model_heads_pretraining.architecture,
				NULL, NULL, 0);
}

/* Reads the sentence-transformers files of `path` itself or, for a run, of its model's folder. */
static enum status find_sentences(struct saved_model *saved, const char *path)
{
	struct model_source source;
	TRY(sentence_folder_read(&saved->sentences, path));
	if (saved->sentences.found)
		return OK;
	TRY(model_source_find(path, &source));
	path_folder(source.weights, source.weights);
	sentence_folder_release(&saved->sentences);
	return sentence_folder_read(&saved->sentences, source.weights);
}

static enum status read_folder(struct saved_model *saved, const char *path, bool with_head)
{
	TRY(find_sentences(saved, path));
	if (saved->sentences.found) {
		path = saved->sentences.transformer;
		with_head &= saved->sentences.pooling == 0 || saved->sentences.pooling == POOLING_SPLADE;
	}
	TRY(model_folder_config(path, &saved->config));
	TRY(model_folder_task(path, &saved->task));
	TRY(model_source_find(path, &saved->source));
	TRY(read_record(saved));
	TRY(folder_tokenizer_read(&saved->tokenizer, &saved->source));
	TRY(find_heads(saved, path, with_head));
	TRY(folder_tokenizer_fit(&saved->tokenizer, path, &saved->config.vocab_size));
	saved->names = (struct backend){.name = "names", .dtype = DTYPE_F32, .master_dtype = DTYPE_F32};
	TRY(read_what_is_there(saved));
	return settle_task(saved);
}

enum status saved_model_read(struct saved_model *saved, const char *path, bool with_head)
{
	struct model_files files = {0};
	enum status status;
	TRY_GOTO(model_files_look(&files, path), done);
	TRY_GOTO(read_folder(saved, path, with_head), done);
	status = model_files_check(&files, path);
done:
	model_files_release(&files);
	return status;
}

void saved_model_release(struct saved_model *saved)
{
	model_free(saved->model);
	free(saved->slab);
	task_config_release(&saved->task);
	folder_tokenizer_release(&saved->tokenizer);
	sentence_folder_release(&saved->sentences);
	*saved = (struct saved_model){.slab = NULL};
}
