/* Opens a teacher, checks that it fits the student, and loads it. */
#include "run/distillation_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/forms.h"
#include "train/ranks.h"
#include "weights/config_file.h"

#define ROW(member, role, value) OPTION_ROW(struct distillation_options, member, role, value)

/* clang-format off */
const struct option distillation_rows[] = {
	{ROW(teacher, ROLE_SOURCE, "FOLDER"), .alias = "teacher_model teacher_name_or_path",
	 .help = "a model fine-tuned for the same task; training uses its answers in addition to the labels"},
	{ROW(distill_alpha, ROLE_RESULT, "A"), .range = "0..1", .fallback = "0.5", .alias = "alpha_ce",
	 .help = "weight of the loss against the teacher's answers; the loss against the labels has weight 1 - A"},
	{ROW(distill_temperature, ROLE_RESULT, "T"), .range = "0.01..1000", .fallback = "2",
	 .help = "divide the logits of both models by this before the softmax; the loss is multiplied by its square"},
	{ROW(distill_layers, ROLE_RESULT, "S:T,S:T..."),
	 .help = "pairs of the model's and the teacher's layers whose outputs are matched, such as 1:3,2:6, where 0 is "
	 "the embeddings; uniform: all of the model's, spread evenly over the teacher's"},
	{ROW(distill_hidden_weight, ROLE_RESULT, "W"), .range = "0..1e6", .fallback = "1",
	 .help = "weight of the sum of the layers' mean squared errors"},
	{0},
};
/* clang-format on */

/* ---- Which layers ---- */

static enum status bad_layers(const char *layers, const char *reason)
{
	return error_hinted(
		error_set(ERR_USAGE, "--distill_layers %s: %s", layers, reason),
		"give pairs of layers, the student's first: 1:3,2:6. 0 is the embeddings, 1 the first layer; 'uniform' "
		"spreads the student's layers evenly over the teacher's");
}

/* Reads a number from 0 to `most` at *at and moves *at past it. */
static bool read_layer(const char **at, int32_t most, int32_t *out)
{
	char *end;
	errno = 0;
	long value = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : -1;
	if (value < 0 || value > most || errno)
		return false;
	*at = end;
	*out = (int32_t)value - 1;
	return true;
}

static enum status parse_layers(struct distillation_run *d, const char *layers, int32_t student, int32_t teacher)
{
	char reason[128];
	TRY(memory_new(&d->pairs, student + 1, sizeof *d->pairs, "layers to learn from"));
	struct layer_pair before = {-2, -2};
	for (const char *at = layers;; at++) {
		struct layer_pair pair;
		bool right = read_layer(&at, student, &pair.student) && *at++ == ':' && read_layer(&at, teacher, &pair.teacher);
		snprintf(reason, sizeof reason, "not pairs of the student's %d layers and the teacher's %d", student, teacher);
		if (!right || (*at && *at != ','))
			return bad_layers(layers, reason);
		if (pair.student <= before.student || pair.teacher < before.teacher)
			return bad_layers(layers, "layers must ascend");
		d->pairs[d->settings.layer_count++] = before = pair;
		if (!*at)
			return OK;
	}
}

static enum status choose_layers(struct distillation_run *d, const char *layers, int32_t student, int32_t teacher)
{
	if (!layers || !*layers)
		return OK;
	if (strcmp(layers, "uniform") != 0) {
		TRY(parse_layers(d, layers, student, teacher));
	} else {
		TRY(memory_new(&d->pairs, student + 1, sizeof *d->pairs, "layers to learn from"));
		for (int32_t i = 0; i <= student; i++)
			d->pairs[i] = (struct layer_pair){i - 1, (int32_t)lround((double)i * teacher / student) - 1};
		d->settings.layer_count = student + 1;
	}
	d->settings.layers = d->pairs;
	return OK;
}

/* ---- Is it the same task? ---- */

static enum status differs(const char *teacher, const char *what)
{
	return error_hinted(
		error_set(ERR_USAGE, "--teacher '%s': %s", teacher, what),
		"a teacher must be fine-tuned for the same task as its student, with the same vocabulary: bertc finetune "
		"makes one");
}

static enum status check_vocabulary(const char *teacher, const struct folder_tokenizer *own, const struct run *run)
{
	char what[256];
	const struct vocab *vocab = run->vocab;
	if (own->vocab.count != vocab->count) {
		snprintf(what, sizeof what, "its vocabulary has %d entries, the student's %d", own->vocab.count, vocab->count);
		return differs(teacher, what);
	}
	for (int32_t i = 0; i < vocab->count; i++) {
		if (own->vocab.size[i] == vocab->size[i] && memcmp(own->vocab.text[i], vocab->text[i], vocab->size[i]) == 0)
			continue;
		snprintf(what, sizeof what, "entry %d of its vocabulary is '%.*s', the student's is '%.*s'", i,
			 (int)(own->vocab.size[i] < 60 ? own->vocab.size[i] : 60), own->vocab.text[i],
			 (int)(vocab->size[i] < 60 ? vocab->size[i] : 60), vocab->text[i]);
		return differs(teacher, what);
	}
	const struct tokenizer_settings *mine = &own->settings, *theirs = run->tokenizer;
	if (mine->lowercase != theirs->lowercase || mine->strip_accents != theirs->strip_accents ||
	    mine->split_chinese != theirs->split_chinese || mine->max_word_characters != theirs->max_word_characters ||
	    mine->compat != theirs->compat)
		return differs(teacher, mine->lowercase != theirs->lowercase
						? "its tokenizer and the student's treat upper-case letters differently"
						: "its tokenizer's settings are not the student's");
	return OK;
}

/* Matches labels by name, in whatever order the teacher has them. */
static enum status match_labels(struct distillation_run *d, const char *teacher, const struct label_set *labels)
{
	const char **names = NULL;
	const char *missing = NULL;
	char what[256];
	TRY(memory_new(&names, labels->count, sizeof *names, "labels"));
	enum status status = memory_new(&d->class_rows, labels->count, sizeof *d->class_rows, "labels");
	for (int64_t i = 0; i < labels->count; i++)
		names[i] = labels->labels[i].name;
	d->class_count = (int32_t)labels->count;
	bool same = status == OK && task_config_rows(&d->folder, names, d->class_count, d->class_rows);
	for (int32_t i = 0; status == OK && d->folder.labels && i < d->class_count && !missing; i++)
		missing = task_config_find_label(&d->folder, names[i]) < 0 ? names[i] : NULL;
	if (status == OK && !same) {
		if (missing)
			snprintf(what, sizeof what, "it does not know the student's label '%.100s'", missing);
		else if (d->folder.labels)
			snprintf(what, sizeof what, "it has %d labels, the student %d", d->folder.label_count, d->class_count);
		else
			snprintf(what, sizeof what, "its config.json does not name its labels (id2label)");
		status = differs(teacher, what);
	}
	free(names);
	return status;
}

static enum status check_head(struct distillation_run *d, const char *teacher, const struct task_state *task,
			      const struct model_heads *heads)
{
	char what[256];
	for (int h = 0; h < heads->count; h++)
		if (!head_takes_soft_targets(&heads->head[h]))
			return error_hinted(
				error_set(ERR_USAGE, "--teacher: --task %s cannot be learned from a teacher", task->task->name),
				"tasks whose answers are classes, numbers, tags, choices or spans can");
	if (!d->folder.architecture || strcmp(d->folder.architecture, heads->architecture) != 0) {
		snprintf(what, sizeof what, "it is a %.60s, the student a %s",
			 d->folder.architecture ? d->folder.architecture : "model without a head", heads->architecture);
		return differs(teacher, what);
	}
	const char *own = d->folder.problem_type, *theirs = task->task->problem_type;
	if (own && theirs && strcmp(own, theirs) != 0) {
		snprintf(what, sizeof what, "its problem_type is %.60s, the student's %s", own, theirs);
		return differs(teacher, what);
	}
	if (task->labels.count > 0)
		return match_labels(d, teacher, &task->labels);
	int32_t outputs = task_config_outputs(&d->folder);
	if (outputs != heads->head[0].outputs) {
		snprintf(what, sizeof what, "it has %d outputs, the student %d", outputs, heads->head[0].outputs);
		return differs(teacher, what);
	}
	return OK;
}

static enum status check_sizes(const char *teacher, const struct model_config *own, const struct run *run)
{
	char what[128];
	int64_t longest = run->values->max_seq_length;
	if (model_positions(own) < longest) {
		snprintf(what, sizeof what, "it has %d positions, fewer than --max_seq_length %" PRId64, model_positions(own),
			 longest);
		return differs(teacher, what);
	}
	/* a teacher with one type, or with none, does not see the student's */
	if (own->type_vocab_size > 1 && own->type_vocab_size < run->config.type_vocab_size)
		return differs(teacher, "it has fewer segment types than the student");
	return OK;
}

static enum status check_tokenizer(struct distillation_run *d, const char *teacher, const struct run *run,
				   struct model_config *config)
{
	struct folder_tokenizer tokenizer = {0};
	TRY(folder_tokenizer_read(&tokenizer, &d->source));
	if (config->vocab_size == 0)
		config->vocab_size = tokenizer.vocab.count;
	enum status status = check_vocabulary(teacher, &tokenizer, run);
	folder_tokenizer_release(&tokenizer);
	return status;
}

enum status distillation_run_prepare(struct distillation_run *out, const struct distillation_options *options,
				     const struct run *run, const struct task_state *task, struct model_heads *heads)
{
	struct model_config config;
	const char *teacher = options->teacher;
	if (!teacher)
		return OK;
	TRY(model_source_find(teacher, &out->source));
	TRY(model_files_look(&out->files, out->source.weights));
	const char *where = out->source.config[0] ? out->source.config : teacher;
	TRY(model_folder_config(where, &config));
	TRY(model_folder_task(where, &out->folder));
	TRY(check_head(out, teacher, task, heads));
	TRY(check_tokenizer(out, teacher, run, &config));
	TRY(check_sizes(teacher, &config, run));
	out->settings = (struct distillation_settings){
		.alpha = options->distill_alpha,
		.temperature = options->distill_temperature,
		.hidden_weight = options->distill_hidden_weight,
	};
	TRY(choose_layers(out, options->distill_layers, run->config.num_hidden_layers, config.num_hidden_layers));
	if (out->settings.alpha == 0 && out->settings.layer_count == 0)
		return error_hinted(error_set(ERR_USAGE,
					      "--teacher: nothing is learned from it with --distill_alpha 0 and without "
					      "--distill_layers"),
				    "raise --distill_alpha, or name layers");
	if (out->settings.layer_count > 0 && config.hidden_size != run->config.hidden_size)
		heads->projection = config.hidden_size;
	char layers[FORMAT_BYTES];
	log_note("teacher: '%s', %s of %d; student: %d of %d", teacher,
		 format_counted(layers, config.num_hidden_layers, "layer", "layers"), config.hidden_size,
		 run->config.num_hidden_layers, run->config.hidden_size);
	return teacher_create(&out->teacher, run->machine->backend, &config, heads);
}

/* ---- Memory and weights ---- */

size_t distillation_run_bytes(const struct distillation_run *distillation, const struct shape_limits *limits)
{
	return distillation->teacher ? teacher_bytes(distillation->teacher, limits, &distillation->settings) : 0;
}

double distillation_run_flops(const struct distillation_run *distillation, const struct run *run, const struct model_work *work)
{
	return distillation->teacher ? teacher_flops(distillation->teacher, &run->config, &distillation->settings, work) : 0;
}

/* Is it the teacher that a resumed run has learned from so far? */
static enum status compare_teacher(const struct distillation_run *distillation, const struct run *run)
{
	const char *before = NULL;
	if (!run->start.resumed)
		return OK;
	TRY(json_get_string(run->start.record.root, run->start.checkpoint, "teacher_hash", &before));
	if (before && strtoull(before, NULL, 16) == distillation->hash)
		return OK;
	return error_hinted(error_set(ERR_STATE, "the teacher has changed since '%s'", run->start.checkpoint),
			    "give --fresh to start over with this one, or choose another --out");
}

/* Hashes everything that determines the teacher's answers: its weights and its configuration. */
static enum status hash_teacher(const struct model *model, const float *slab, uint64_t *out)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	config_file_put(&writer, &model->config, NULL);
	enum status status = buffer_status(&text);
	if (status == OK)
		*out = hash64_combine(hash64(slab, (size_t)model->slab_count * sizeof *slab), hash64(text.data, text.size));
	buffer_release(&text);
	return status;
}

static enum status load(struct distillation_run *distillation, struct run *run)
{
	struct model *model = teacher_model(distillation->teacher);
	struct weight_adaptation adaptation = {.class_rows = distillation->class_rows, .class_count = distillation->class_count};
	struct model_folder_report report = {0};
	float *slab = NULL;
	enum status status;
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof *slab, "weights of the teacher"), done);
	TRY_GOTO(model_weights_load(distillation->source.weights, model, &adaptation, slab, &report), done);
	TRY_GOTO(model_files_check(&distillation->files, distillation->source.weights), done);
	TRY_GOTO(hash_teacher(model, slab, &distillation->hash), done);
	run->teacher_hash = distillation->hash;
	TRY_GOTO(compare_teacher(distillation, run), done);
	status = teacher_set_weights(distillation->teacher, slab);
done:
	model_folder_report_release(&report);
	free(slab);
	return status;
}

enum status distillation_run_allocate(struct distillation_run *distillation, struct run *run, const struct shape_limits *limits)
{
	char hash[32];
	if (!distillation->teacher)
		return OK;
	TRY(ranks_agree(run->machine->comm, teacher_allocate(distillation->teacher, limits, &distillation->settings)));
	TRY(ranks_agree(run->machine->comm, load(distillation, run)));
	snprintf(hash, sizeof hash, "model %016" PRIx64, distillation->hash);
	return ranks_count(run->machine->comm) > 1 ? comm_agree(run->machine->comm, "the teacher", hash) : OK;
}

enum status distillation_run_give_back(struct distillation_run *distillation)
{
	return distillation->teacher ? teacher_give_back(distillation->teacher) : OK;
}

/* ---- The objective ---- */

enum status distillation_run_wrap(const struct distillation_run *distillation, const struct run *run,
				  struct objective **objective)
{
	struct objective *inner = *objective;
	if (!distillation->teacher)
		return OK;
	return distillation_objective_create(objective, inner, distillation->teacher, &distillation->settings, run->memory.model,
					     run->memory.activations);
}

void distillation_run_report(const struct distillation_run *distillation, struct report_task *report)
{
	if (!distillation->teacher)
		return;
	struct report_column *labels = report_task_add(report, "label_loss");
	for (int i = 0; i < report->column_count; i++) {
		struct report_column *column = &report->columns[i];
		struct report_level levels[sizeof column->levels / sizeof *column->levels];
		if (strcmp(column->name, "loss") != 0)
			continue;
		memcpy(levels, column->levels, sizeof levels);
		memcpy(column->levels, labels->levels, sizeof levels); /* there are none */
		memcpy(labels->levels, levels, sizeof levels);
	}
	if (distillation->settings.alpha > 0)
		report_task_add(report, "soft_loss");
	if (distillation->settings.layer_count > 0)
		report_task_add(report, "hidden_loss");
	report->loss = "label_loss";
}

void distillation_run_release(struct distillation_run *distillation)
{
	teacher_free(distillation->teacher);
	task_config_release(&distillation->folder);
	model_files_release(&distillation->files);
	free(distillation->pairs);
	free(distillation->class_rows);
	*distillation = (struct distillation_run){.teacher = NULL};
}
