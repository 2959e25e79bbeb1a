/* Finds a fine-tuned model's task, reads files as in training, and computes the outputs. */
#include "infer/task_session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "data/step_reader.h"
#include "data/unknown.h"
#include "model/forms.h"
#include "tasks/layouts.h"
#include "tasks/record.h"
#include "weights/checkpoint_folder.h"
#include "weights/sentence_folder.h"

#define TASK_RECORD_LIMIT ((size_t)1 << 20)

/* If bertc trained the model, the task's record is beside the weights. */
static enum status read_record(struct task_session *session)
{
	char path[PATH_BYTES];
	bool found;
	TRY(model_source_beside(&session->source, TASK_RECORD_FILE, path, &found));
	return found ? json_read(&session->record, path, TASK_RECORD_LIMIT) : OK;
}

static enum status no_task(const struct task_session *session)
{
	const char *architecture = session->config.architecture;
	enum status status = error_set(ERR_USAGE, "'%s' is not a model for a task: its architecture is %s",
				       session->settings->model, architecture ? architecture : "not known");
	if (architecture)
		error_hint("train one from it with bertc finetune; bertc fill and bertc evaluate --corpus work with this model "
			   "directly");
	else
		error_hint("if another program has fine-tuned it, add the class of its head to the configuration, such as "
			   "\"architectures\": [\"BertForSequenceClassification\"], and \"id2label\"; otherwise train one from "
			   "it with bertc finetune");
	return status;
}

/* The task comes from the record, otherwise from the architecture; a sentence-transformers folder is a model for vectors. */
static enum status find_task(struct task_session *session)
{
	struct task_state *state = &session->state;
	const struct sentence_folder *folder = &session->sentences;
	const struct task *task;
	if (session->record.root) {
		TRY(task_record_find(session->record.root, TASK_RECORD_FILE, &task, &state->settings.layout));
		return task_state_open(state, task, NULL);
	}
	task = task_of_architecture(session->config.architecture, session->config.problem_type, session->config.label_count);
	if (!task) {
		TRY(sentence_folder_read(&session->sentences, session->settings->model));
		if (folder->pooling == POOLING_MEAN || folder->pooling == POOLING_CLS || folder->pooling == POOLING_SPLADE)
			task = task_of_vectors();
	}
	return task ? task_state_open(state, task, NULL) : no_task(session);
}

static enum status take_folder(struct task_session *session)
{
	if (!session->state.task->take_folder)
		return OK;
	if (!session->sentences.found)
		TRY(sentence_folder_read(&session->sentences, session->settings->model));
	session->state.task->take_folder(&session->state, &session->sentences);
	return OK;
}

static enum status settle(struct task_session *session)
{
	const struct task_session_settings *settings = session->settings;
	struct task_settings *own = &session->state.settings;
	struct model_config config;
	TRY(model_folder_config(settings->model, &config));
	if (session->record.root)
		TRY(task_record_read(session->record.root, TASK_RECORD_FILE, &session->state));
	TRY(take_folder(session));
	if (settings->max_seq_length > 0)
		own->max_seq_length = (int32_t)settings->max_seq_length;
	if (own->max_seq_length == 0)
		own->max_seq_length = model_positions(&config);
	if (own->max_seq_length > model_positions(&config))
		return error_hinted(error_set(ERR_USAGE, "--max_seq_length %d is beyond the model's %d positions",
					      own->max_seq_length, model_positions(&config)),
				    "lower it");
	own->hidden_size = config.hidden_size;
	own->vocab_size = config.vocab_size;
	session->bad.skip = settings->on_bad_record == SKIP_BAD_RECORD;
	own->tokenizer = session->tokenizer;
	if (settings->columns)
		own->columns = *settings->columns;
	own->bad = &session->bad;
	if (task_options_of(settings->own, session->state.task))
		options_copy_given(settings->options, task_options_of(settings->own, session->state.task),
				   session->state.task->settings_bytes, session->state.own);
	/* As in transformers, unnamed classes are called LABEL_0, LABEL_1, ...; other tasks have labels only if the folder names
	 * them. */
	if (!session->config.labels &&
	    (session->state.task->target == TARGET_CLASS || session->state.task->target == TARGET_CLASSES ||
	     strcmp(session->state.task->architecture, "BertForTokenClassification") == 0))
		TRY(task_config_name_labels(&session->config));
	if (!session->record.root && session->state.task->target == TARGET_NUMBER && session->config.labels &&
	    session->config.label_count > 1)
		return error_set(ERR_USAGE, "'%s' predicts %d numbers for each text; bertc has regression of one number",
				 settings->model, session->config.label_count);
	if (session->config.labels && session->state.task->target != TARGET_NUMBER)
		TRY(task_state_labels(&session->state, (const char *const *)session->config.labels, session->config.label_count));
	/* Tags that are numbers count the model's labels. */
	own->given = (struct label_list){(const char *const *)session->config.labels,
					 session->config.labels ? session->config.label_count : 0};
	own->given_by_model = true;
	if (settings->windows && settings->windows->long_texts != WINDOWS_OPEN)
		own->long_texts = settings->windows->long_texts;
	if (settings->own && settings->own->squad.doc_stride > 0)
		own->doc_stride = settings->own->squad.doc_stride;
	TRY(windows_check(own->long_texts, &session->state));
	TRY(calibration_fits(&session->state));
	if (settings->calibration) {
		TRY(calibration_check(settings->calibration, &session->state));
		own->calibration = settings->calibration;
		if (options_given(settings->options, "min_score"))
			session->state.calibration.min_score = settings->calibration->min_score;
	}
	session->state.scores_are_outputs = session->config.scores_are_outputs;
	session->state.task->heads(&session->state, &session->heads);
	return OK;
}

/* Is the model made for the task that was named? If so, the files are those of this task, whatever the model was trained on. A
 * model for vectors takes the files of any published task on pairs, whose labels are scores then. */
static enum status take_task(struct task_session *session, const char *name)
{
	struct task_settings *own = &session->state.settings;
	const struct task *task, *made_for = session->state.task;
	const struct layout *layout;
	TRY(task_find(name, &task, &layout));
	if (task != made_for && !(made_for->makes_vectors && layout && layout->input == TASK_INPUT_PAIR))
		return error_hinted(
			error_set(ERR_USAGE, "--task %s: '%s' is a model for %s", name, session->settings->model, made_for->name),
			"bertc finetune trains it for another task (with --do_eval or --do_predict: add --do_train)");
	if (layout && layout != own->layout)
		own->trained = (struct column_choice){.text = NULL}; /* of another kind of file */
	own->layout = layout ? layout : own->layout;
	own->needs_pairs = task_needs_pairs(name, own->layout);
	return OK;
}

enum status task_session_open(struct task_session *session, const struct task_session_settings *settings)
{
	*session = (struct task_session){.settings = settings};
	TRY(model_files_look(&session->files, settings->model));
	TRY(model_source_find(settings->model, &session->source));
	TRY(model_folder_task(settings->model, &session->config));
	TRY(read_record(session));
	TRY(find_task(session));
	TRY(folder_tokenizer_read(&session->folder_tokenizer, &session->source));
	session->folder_tokenizer.settings.special_tokens = false;
	TRY(tokenizer_open(&session->tokenizer, &session->folder_tokenizer.vocab, &session->folder_tokenizer.settings));
	TRY(settle(session));
	return settings->task ? take_task(session, settings->task) : OK;
}

/* Maximum examples in a batch. */
#define BATCH_EXAMPLES 256

/* Opens the model with room for batches of this set. */
static enum status open_model(struct task_session *session, const struct instances *instances, struct batch_capacity *capacity)
{
	const struct example_bounds *bounds = instances_bounds(instances);
	const struct session_heads heads = {.heads = &session->heads, .missing = MISSING_NOTHING};
	int64_t tokens = session->settings->micro_batch_tokens;
	*capacity = batch_capacity_for(bounds, BATCH_EXAMPLES, 0, tokens > 0 ? tokens : SESSION_TOKENS);
	if (session->is_open && batch_capacity_holds(&session->session.capacity, capacity))
		return OK;
	if (session->is_open)
		session_close(&session->session);
	session->is_open = false;
	/* A later set of the same capacity may have longer sequences. */
	TRY(session_open_heads(&session->session, session->settings->model, session->settings->device, &heads, *capacity,
			       session->state.settings.max_seq_length));
	session->is_open = true;
	return model_files_check(&session->files, session->settings->model);
}

enum status task_session_run(struct task_session *session, const char *const *paths, int64_t count, enum task_use use,
			     struct task_set *out, struct task_outputs *outputs, double *out_loss)
{
	struct task_state *state = &session->state;
	struct labeled_source source = {.vocab_size = session->folder_tokenizer.vocab.count};
	struct instances *instances = NULL;
	struct batch_capacity capacity;
	int64_t unknown = 0, tokens = 0;
	enum status status;
	*out = (struct task_set){.name = "", .use = use};
	*outputs = (struct task_outputs){0};
	session->bad.count = 0;
	if (out_loss)
		*out_loss = NAN;
	TRY(state->task->read(state, out, paths, count));
	task_keep_first(state, out, paths, count);
	TRY(state->task->encode(state, out));
	bad_records_log(&session->bad, count > 0 ? paths[0] : "");
	labeled_count_unknown(&out->encoded, &session->folder_tokenizer.vocab, &unknown, &tokens);
	unknown_warn(count > 0 ? paths[0] : "the examples", unknown, tokens);
	TRY(task_outputs_create(outputs, &out->encoded, &session->heads.head[0]));
	if (out->encoded.example_count == 0)
		return OK;
	if (use == TASK_SCORE)
		TRY(task_warn_of_trained(&state->trained_rows, out, count > 0 ? paths[0] : "the set"));
	TRY_GOTO(instances_open_labeled(&instances, &out->encoded, &source), done);
	TRY_GOTO(open_model(session, instances, &capacity), done);
	if (labeled_has_pairs(&out->encoded))
		TRY_GOTO(model_config_check_pairs(&session->session.model->config, count > 0 ? paths[0] : "the examples"), done);
	state->pool = session->session.pool;
	struct output_pass pass = {.model = session->session.model,
				   .activations = session->session.activations,
				   .replica = &session->session.replica,
				   .capacity = capacity};
	status = outputs_compute(&pass, instances, outputs, out_loss);
	if (status == OK)
		windows_pool(state, out, outputs);
done:
	instances_close(instances);
	return status;
}

enum status task_session_save_record(struct task_session *session)
{
	char path[PATH_BYTES];
	bool found;
	struct buffer text = {0};
	struct task_state *state = &session->state;
	struct calibration calibration = state->calibration;
	/* The rest stays as it was, whatever the options of this command say. */
	state->calibration = (struct calibration){0};
	state->settings.max_seq_length = 0;
	state->settings.long_texts = WINDOWS_OPEN;
	state->settings.doc_stride = 0;
	if (session->record.root) {
		TRY(task_record_find(session->record.root, TASK_RECORD_FILE, &state->task, &state->settings.layout));
		TRY(task_record_read(session->record.root, TASK_RECORD_FILE, state));
	}
	calibration_release(&state->calibration);
	state->calibration = calibration;
	TRY(model_source_beside(&session->source, TASK_RECORD_FILE, path, &found));
	enum status status = task_record_write(&session->state, &text);
	if (status == OK)
		status = checkpoint_folder_put_file(path, buffer_string(&text), text.size);
	if (status == OK)
		log_note("recorded in '%s'", path);
	buffer_release(&text);
	return status;
}

void task_session_close(struct task_session *session)
{
	if (session->is_open)
		session_close(&session->session);
	task_state_release(&session->state);
	task_config_release(&session->config);
	tokenizer_close(session->tokenizer);
	folder_tokenizer_release(&session->folder_tokenizer);
	json_release(&session->record);
	model_files_release(&session->files);
	sentence_folder_release(&session->sentences);
	*session = (struct task_session){0};
}
