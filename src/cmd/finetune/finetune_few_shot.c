/* Learning from few examples, as SetFit does (Tunstall et al. 2022): an embedding model is trained on pairs of the examples, so
 * that vectors of the same label come near each other, and a linear head is fitted to the vectors of all examples. */
#include "cmd/finetune/finetune_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/temporary.h"
#include "infer/encoder.h"
#include "model/forms.h"
#include "tasks/logistic.h"
#include "weights/checkpoint_folder.h"
#include "weights/manifest.h"

/* Pairs of each kind for an example, as in SetFit's paper; with many examples, fewer, so that there are not many more pairs in
 * all. */
enum { PAIRS_PER_EXAMPLE = 20, PAIRS = 10000 };

struct few_shot {
	struct options *options; /* the command's */
	struct machine *machine;
	/* The file of pairs, the run on them, and its finished model. */
	char pairs[PATH_BYTES], folder[PATH_BYTES], model[PATH_BYTES];
	char epochs[16];   /* of that run */
	uint64_t examples; /* hash of those that the pairs were made of */
};

/* ---- Options ---- */

static enum status refuse(const char *what, const char *advice)
{
	return error_hinted(error_set(ERR_USAGE, "--few_shot %s", what), "%s", advice);
}

/* Options that learning from few examples does not obey. */
static const struct {
	const char *option, *why, *advice; /* advice NULL: leave it out */
} refused[] = {
	{"sweep", "is a single run", NULL},
	{"folds", "is a single run", NULL},
	{"teacher", "has no teacher", NULL},
	{"adapter", "trains the whole encoder", NULL},
	{"long_texts", "cuts long texts", NULL},
	{"calibrate", "does not calibrate", "bertc evaluate does it for the finished model"},
	{"thresholds", "does not calibrate", "bertc evaluate does it for the finished model"},
	{"min_score", "does not calibrate", "bertc evaluate does it for the finished model"},
	{"classifier_pooling", "pools as the embedding model does", NULL},
	{"class_weights", "weighs all examples alike", NULL},
	{"label_smoothing", "fits its head to the labels as they are", NULL},
	{"metric", "chooses no checkpoint", NULL},
	{"best_by", "chooses no checkpoint", NULL},
	{"save_best", "chooses no checkpoint", NULL},
	{"early_stopping_patience", "chooses no checkpoint", NULL},
};

/* The head reads vectors. */
static enum status check_vectors(const struct few_shot *self)
{
	const struct finetune_settings *settings = self->options->settings;
	struct sentence_folder folder = {0};
	struct buffer scratch = {0};
	enum status status = sentence_folder_read(&folder, settings->labeled.model);
	bool weighs_words =
		folder.pooling == POOLING_SPLADE || strcmp(options_value(self->options, "pooling", &scratch), "splade") == 0;
	sentence_folder_release(&folder);
	buffer_release(&scratch);
	if (status == OK && weighs_words)
		return refuse("needs vectors, and SPLADE weighs words", "give an embedding model, and no --pooling splade");
	return status;
}

static enum status check(const struct few_shot *self)
{
	char advice[64];
	const struct finetune_settings *settings = self->options->settings;
	if (!settings->training.folder.out)
		return error_hinted(error_set(ERR_USAGE, "--out is missing"), "give a run folder");
	if (!settings->labeled.model)
		return error_hinted(error_set(ERR_USAGE, "--model is missing"), "give an embedding model");
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		snprintf(advice, sizeof advice, "leave --%s out", refused[i].option);
		if (options_said(self->options, refused[i].option))
			return refuse(refused[i].why, refused[i].advice ? refused[i].advice : advice);
	}
	return check_vectors(self);
}

/* The model is now this folder, which has its own vocabulary and configuration. */
static enum status use_model(struct options *options, const char *folder)
{
	static const char *const of_model[] = {"model", "config_file", "vocab_file", "init_layers"};
	for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++)
		options_forget(options, of_model[i]);
	return options_set(options, "model", folder, ORIGIN_COMMAND);
}

/* What a run is opened for: to read the examples, to train on pairs of them, or to read them again and fit the head. */
enum few_shot_part { PART_READ, PART_PAIRS, PART_FIT };

static enum status derive(const struct few_shot *self, enum few_shot_part part, struct finetune_settings *settings,
			  struct options *out)
{
	static const char *const of_task[] = {"task",           "few_shot",         "train",       "dev",
					      "test",           "labels",           "text_column", "label_column",
					      "negative_label", "max_train_samples"};
	/* As in SetFit. */
	const char *const usual[][2] = {{"score_loss", "cosine"},
					{"train_batch_size", "16"},
					{"learning_rate", "2e-5"},
					{"num_train_epochs", self->epochs}};
	const struct finetune_settings *given = self->options->settings;
	size_t usual_count = sizeof usual / sizeof *usual;
	TRY(options_derive(out, self->options, self->options->section_count, settings));
	if (part == PART_READ)
		return OK;
	if (part == PART_FIT) {
		options_forget(out, "fresh");
		struct sentence_folder folder = {0};
		enum status status = sentence_folder_read(&folder, self->model);
		if (status == OK)
			status = options_set(out, "classifier_pooling", folder.pooling == POOLING_CLS ? "cls" : "mean",
					     ORIGIN_COMMAND);
		sentence_folder_release(&folder);
		TRY(status);
		return use_model(out, self->model);
	}
	for (size_t i = 0; i < sizeof of_task / sizeof *of_task; i++)
		options_forget(out, of_task[i]);
	usual_count -= options_given(self->options, "num_train_steps");
	for (size_t i = 0; i < usual_count; i++)
		if (!options_given(self->options, usual[i][0]))
			TRY(options_set(out, usual[i][0], usual[i][1], ORIGIN_COMMAND));
	TRY(options_set(out, "task", "embedding", ORIGIN_COMMAND));
	options_forget(out, "do_eval");
	TRY(options_set(out, "do_eval", "false", ORIGIN_COMMAND)); /* its dev set scores the classifier */
	TRY(options_set(out, "train", self->pairs, ORIGIN_COMMAND));
	options_forget(out, "model");
	TRY(options_set(out, "model", given->labeled.model, ORIGIN_COMMAND));
	options_forget(out, "out");
	TRY(options_set(out, "out", self->folder, ORIGIN_COMMAND));
	return training_settle(out);
}

/* ---- Pairs ---- */

/* Have two examples a label in common? */
static bool agree(const struct labeled_set *set, int64_t a, int64_t b, int64_t labels)
{
	const struct labeled_items *items = &set->items[0];
	if (items->classes)
		return items->classes[a] == items->classes[b];
	for (int64_t k = 0; k < labels; k++)
		if (items->numbers[a * labels + k] > 0.5f && items->numbers[b * labels + k] > 0.5f)
			return true;
	return false;
}

/* Up to `most` different partners of example `a`, from a random one on. Returns their number. */
static int64_t put_pairs(struct json_writer *writer, const struct labeled_run *labeled, struct rng *rng, int64_t a, bool same,
			 int64_t most)
{
	const struct example_text *examples = labeled->train.examples.examples;
	const struct labeled_set *set = &labeled->train.encoded;
	int64_t count = set->example_count, first = (int64_t)rng_below(rng, (uint64_t)count), done = 0;
	for (int64_t i = 0; i < count && done < most; i++) {
		int64_t b = (first + i) % count;
		if (b == a || agree(set, a, b, labeled->state.labels.count) != same)
			continue;
		json_open(writer, NULL, '{');
		json_put_string(writer, "sentence1", examples[a].text);
		json_put_string(writer, "sentence2", examples[b].text);
		json_put_integer(writer, "score", same);
		json_close(writer);
		buffer_char(writer->out, '\n');
		done++;
	}
	return done;
}

/* The pairs of a run stay as they were when it began. */
static enum status put_pairs_file(const struct few_shot *self, const struct buffer *text)
{
	const struct folder_options *folder = &((const struct finetune_settings *)self->options->settings)->training.folder;
	struct buffer before = {0};
	bool begun = !folder->plan && !folder->fresh && file_exists(self->folder) && file_exists(self->pairs);
	if (begun)
		TRY(file_read(self->pairs, SIZE_MAX, &before));
	bool same = strcmp(buffer_string(&before), buffer_string(text)) == 0;
	buffer_release(&before);
	if (begun && !same)
		return error_hinted(error_set(ERR_STATE, "the training examples have changed since '%s'", self->folder),
				    "give --fresh to start over with the new ones, or choose another --out");
	if (!folder->plan)
		TRY(folder_make(folder->out));
	return file_write(self->pairs, text->data, text->size);
}

/* With very few examples, the different pairs are fewer than SetFit draws: then they are read several times. */
static enum status write_pairs(struct few_shot *self, const struct labeled_run *labeled)
{
	const struct finetune_settings *settings = self->options->settings;
	int64_t count = labeled->train.encoded.example_count, each = PAIRS / 2 / count, pairs = 0;
	struct rng rng = rng_start((uint64_t)settings->training.seed, RNG_SHUFFLE, 0);
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	each = each < 1 ? 1 : each > PAIRS_PER_EXAMPLE ? PAIRS_PER_EXAMPLE : each;
	for (int64_t a = 0; a < count; a++)
		for (int same = 0; same < 2; same++)
			pairs += put_pairs(&writer, labeled, &rng, a, same, each);
	snprintf(self->epochs, sizeof self->epochs, "%.3g", pairs > 0 ? (double)(2 * each * count) / (double)pairs : 1.0);
	enum status status = buffer_status(&text);
	if (status == OK)
		status = put_pairs_file(self, &text);
	buffer_release(&text);
	return status;
}

/* ---- The head ---- */

static float *parameter_of(const struct model *model, const char *name, float *slab)
{
	for (int64_t p = 0; p < model->parameter_count; p++)
		if (strcmp(model->parameters[p].name, name) == 0)
			return slab + model->parameters[p].offset;
	BUG_IF(true);
	return NULL;
}

/* Fits the head to vectors whose mean length is 1, so that the penalty of large weights means the same for every model. */
static enum status fit(const struct labeled_run *labeled, float *vectors, int64_t width, float *weights, float *biases)
{
	const struct labeled_set *set = &labeled->train.encoded;
	int64_t all = set->example_count * width;
	double sum = 0;
	for (int64_t e = 0; e < set->example_count; e++) {
		double squares = 0;
		for (int64_t i = 0; i < width; i++)
			squares += (double)vectors[e * width + i] * vectors[e * width + i];
		sum += sqrt(squares);
	}
	float scale = (float)((double)set->example_count / sum);
	for (int64_t i = 0; i < all; i++)
		vectors[i] *= scale;
	TRY(logistic_fit(&(struct logistic_examples){.count = set->example_count,
						     .width = width,
						     .outputs = labeled->state.labels.count,
						     .vectors = vectors,
						     .classes = set->items[0].classes,
						     .values = set->items[0].numbers},
			 weights, biases));
	for (int64_t i = 0; i < labeled->state.labels.count * width; i++)
		weights[i] *= scale;
	return OK;
}

static enum status compute_vectors(const struct few_shot *self, const struct finetune *finetune, struct encoder_answers *out)
{
	const struct finetune_settings *settings = self->options->settings;
	const struct labeled_run *labeled = &finetune->labeled;
	const struct labeled_set *set = &labeled->train.encoded;
	const struct session_heads heads = {.heads = &model_heads_encoder, .missing = MISSING_HEADS};
	bool mean = model_head_pools_mean(&finetune->run.config, &labeled->heads.head[0]);
	const struct encoder_wish wish = {.answer = ENCODER_VECTORS, .pooling = mean ? POOLING_MEAN : POOLING_CLS};
	struct session session = {0};
	struct encoder *encoder = NULL;
	struct encoder_text *texts = NULL;
	int32_t longest = (int32_t)labeled->state.settings.max_seq_length;
	enum status status;
	TRY(memory_new(&texts, set->sequence_count, sizeof *texts, "texts"));
	encoder_texts_of(set, texts);
	TRY_GOTO(session_open_on(&session, self->machine->pool, self->model, &settings->training.device, &heads,
				 encoder_capacity(&model_heads_encoder, SESSION_TOKENS, longest), longest),
		 done);
	TRY_GOTO(encoder_open(&encoder, &session), done);
	status = encoder_run(encoder, &wish, texts, set->sequence_count, out);
done:
	encoder_close(encoder);
	session_close(&session);
	free(texts);
	return status;
}

static enum status save(const struct labeled_run *labeled, const struct model *model, const float *slab, const char *out)
{
	static const char temporary[] = ".tmp-final";
	char path[PATH_BYTES];
	struct folder_files files = {0};
	struct tokenizer_settings tokenizer = labeled->tokenizer.settings;
	const struct model_folder_content content = {.model = model,
						     .slab = slab,
						     .task = &labeled->config,
						     .vocab = &labeled->tokenizer.vocab,
						     .tokenizer = &tokenizer,
						     .max_length = labeled->state.settings.max_seq_length};
	enum status status;
	tokenizer.special_tokens = true;
	TRY(path_join(path, out, temporary));
	TRY(folder_make(path));
	TRY_GOTO(model_folder_save(path, &content, &files), done);
	TRY_GOTO(manifest_write(path, 0, &files), done);
	status = checkpoint_folder_publish(out, path, "final");
done:
	free(files.files);
	return status;
}

/* Makes OUT/final: the encoder that was trained on pairs, and the head. */
static enum status make_model(const struct few_shot *self, const struct finetune *finetune)
{
	const struct labeled_run *labeled = &finetune->labeled;
	const struct finetune_settings *settings = self->options->settings;
	struct backend names = {.name = "names", .dtype = DTYPE_F32, .master_dtype = DTYPE_F32};
	struct model_folder_report report = {0};
	struct encoder_answers answers = {0};
	struct model *model = NULL;
	float *slab = NULL;
	enum status status;
	TRY(compute_vectors(self, finetune, &answers));
	TRY_GOTO(model_create(&model, &names, &finetune->run.config, &labeled->heads), done);
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof *slab, "weights"), done);
	TRY_GOTO(model_folder_load(labeled->source.weights, model, MISSING_HEADS, slab, &report), done);
	TRY_GOTO(fit(labeled, answers.values, finetune->run.config.hidden_size, parameter_of(model, "classifier.weight", slab),
		     parameter_of(model, "classifier.bias", slab)),
		 done);
	TRY_GOTO(run_folder_remove_results(settings->training.folder.out), done);
	status = save(labeled, model, slab, settings->training.folder.out);
done:
	model_folder_report_release(&report);
	encoder_answers_release(&answers);
	model_free(model);
	free(slab);
	return status;
}

/* ---- The two runs ---- */

/* Of texts and labels. */
static uint64_t examples_hash(const struct labeled_run *labeled)
{
	const struct example_set *set = &labeled->train.examples;
	const struct labeled_items *items = &labeled->train.encoded.items[0];
	uint64_t hash =
		hash64(items->numbers, items->numbers ? (size_t)(items->count * items->width) * sizeof *items->numbers : 0);
	for (int64_t i = 0; i < set->count; i++) {
		const char *text = set->examples[i].text, *label = set->examples[i].label;
		hash = hash64_combine(hash, hash64(text, strlen(text)));
		hash = hash64_combine(hash, label ? hash64(label, strlen(label)) : 0);
	}
	return hash;
}

/* The file is read twice. */
static enum status check_examples(struct few_shot *self, enum few_shot_part part, const struct labeled_run *labeled)
{
	uint64_t hash = examples_hash(labeled);
	if (part == PART_READ)
		self->examples = hash;
	else if (hash != self->examples)
		return error_hinted(error_set(ERR_STATE, "the training examples have changed while the pairs were trained on"),
				    "give --fresh to start over with the new ones");
	return OK;
}

static enum status check_texts(const struct finetune *finetune)
{
	if (finetune->run.start.resumed)
		return error_hinted(error_set(ERR_STATE, "'%s' holds a run that did not begin with --few_shot",
					      finetune->run.values->folder.out),
				    "choose another --out, or start over with --fresh");
	if (finetune->labeled.state.pairs)
		return refuse("is for texts, not for pairs of texts", "leave it out");
	if (model_head_transforms(&finetune->run.config, &finetune->labeled.heads.head[0]))
		return refuse("needs a form of model whose heads are linear layers",
			      "BERT, RoBERTa, and DistilBERT have such heads");
	return ranks_count(finetune->machine->comm) > 1 ? refuse("takes one rank", "leave --ranks out") : OK;
}

/* Reads model and files, and writes the pairs, or makes the finished model. */
static enum status with_examples(struct few_shot *self, enum few_shot_part part)
{
	struct finetune_settings settings = {0};
	struct options options;
	TRY(derive(self, part, &settings, &options));
	struct finetune finetune = {.options = &options, .machine = self->machine, .in_sweep = true, .brief = true};
	enum log_level level = log_level;
	if (part == PART_FIT) /* notes would repeat what was said before */
		log_level = LOG_QUIET;
	enum status status = finetune_prepare(&finetune);
	if (status == OK)
		status = check_texts(&finetune);
	if (status == OK)
		status = check_examples(self, part, &finetune.labeled);
	if (status == OK)
		status = part == PART_FIT ? make_model(self, &finetune) : write_pairs(self, &finetune.labeled);
	log_level = level;
	status = finetune_close(&finetune, status);
	options_release(&options);
	return status;
}

static enum status train_on_pairs(struct few_shot *self)
{
	struct finetune_settings settings = {0};
	struct options options;
	TRY(derive(self, PART_PAIRS, &settings, &options));
	struct finetune finetune = {.options = &options, .machine = self->machine, .in_sweep = true};
	enum status status = finetune_prepare(&finetune);
	if (status == OK)
		status = finetune_train(&finetune);
	status = finetune_close(&finetune, status);
	options_release(&options);
	return status;
}

/* With `scratch`, the file of pairs is there: a plan leaves nothing behind. */
static enum status run(struct few_shot *self, const struct temporary_folder *scratch)
{
	const struct finetune_settings *settings = self->options->settings;
	const char *out = settings->training.folder.out;
	char final[PATH_BYTES];
	bool there = file_exists(out);
	TRY(path_join(self->pairs, scratch ? scratch->path : out, "pairs.jsonl"));
	TRY(path_join(self->folder, out, "pairs"));
	TRY(path_join(self->model, self->folder, "final"));
	TRY(path_join(final, out, "final"));
	TRY(with_examples(self, PART_READ));
	TRY(train_on_pairs(self));
	if (scratch) {
		if (!there)
			rmdir(out); /* in which the run on pairs has removed its own */
		return OK;
	}
	TRY(with_examples(self, PART_FIT));
	log_note("the model is in %s", final);
	if (settings->labeled.dev.count == 0 && settings->labeled.test.count == 0)
		return OK;
	TRY(use_model(self->options, final));
	return finetune_score(self->options);
}

enum status finetune_few_shot(struct options *options, struct machine *machine)
{
	struct few_shot self = {.options = options, .machine = machine};
	struct temporary_folder scratch;
	bool plan = ((const struct finetune_settings *)options->settings)->training.folder.plan;
	enum status status = check(&self);
	if (status == OK && plan)
		status = temporary_folder_make(&scratch, "few-shot");
	if (status == OK) {
		status = run(&self, plan ? &scratch : NULL);
		if (plan)
			temporary_folder_remove(&scratch);
	}
	comm_fail(machine->comm, status);
	return status;
}
