/* Sets of texts for embeddings: reads their files, chooses how training sets are learned, and encodes them. */
#include "tasks/embedding_sets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/string_index.h"
#include "tasks/labels.h"

static struct embedding_settings *own_of(const struct task_state *state)
{
	return state->own;
}

/* Numbers of examples are labels, and so floats. */
#define NUMBERED_MOST (1 << 24)

static struct embedding_set *set_of(const struct task_set *set)
{
	return set->own;
}

/* The part that an example belongs to. */
static struct embedding_part *part_of(const struct embedding_set *own, int64_t example)
{
	struct embedding_part *part = own->parts;
	while (part < own->parts + own->part_count - 1 && example >= part->end)
		part++;
	return part;
}

static enum status make_parts(struct task_set *set, int64_t count)
{
	struct embedding_set *own;
	TRY(memory_new(&own, 1, sizeof *own, "a set of texts"));
	set->own = own;
	own->part_count = count;
	return memory_new(&own->parts, count, sizeof *own->parts, "a set of texts");
}

enum status embedding_set_form(struct task_set *set, enum ranking_form form)
{
	TRY(make_parts(set, 1));
	*set_of(set)->parts = (struct embedding_part){
		.name = "", .form = form, .kind = form == RANKING_SCORED ? CONTRASTIVE_COSENT : CONTRASTIVE_IN_BATCH};
	return OK;
}

void embedding_close_set(struct task_set *set)
{
	struct embedding_set *own = set->own;
	if (own) {
		npy_file_close(&own->teacher);
		set_list_release(&own->files);
		free(own->guides);
		free(own->parts);
		free(own->marks);
		free(own->mark_starts);
	}
	free(set->own);
	set->own = NULL;
}

/* ---- Reading ---- */

/* Logs how many texts occur more than once: in one batch, they would otherwise be negatives of each other. */
static enum status log_repeated(const struct example_set *set, int64_t begin, const struct embedding_part *part)
{
	struct string_index index = {0};
	enum ranking_form form = part->form;
	int64_t repeated = 0, first;
	enum status status = OK;
	for (int64_t i = begin; i < part->end && status == OK; i++) {
		const char *text = form == RANKING_TEXTS ? set->examples[i].text : set->examples[i].pair;
		status = string_index_add(&index, text, i, &first);
		repeated += first != i;
	}
	string_index_release(&index);
	if (repeated > 0)
		log_note("%lld of %lld %s occur more than once; equal texts in a batch are not taken as negatives of each other",
			 (long long)repeated, (long long)(part->end - begin), form == RANKING_TEXTS ? "texts" : "second texts");
	return status;
}

/* Logs what the losses of all parts have in common. */
static void log_losses(const struct task_state *state)
{
	if (own_of(state)->matryoshka_dims)
		log_note("vectors may be cut to %s numbers: the loss is summed over these widths",
			 own_of(state)->matryoshka_dims);
	if (embedding_is_sparse(state))
		log_note(
			"weights of words, compared by dot products; added to the loss: FLOPS of first texts times %g, of others "
			"times %g",
			own_of(state)->query_regularizer_weight, own_of(state)->document_regularizer_weight);
}

/* Logs the loss used for a part. */
static void log_loss(const struct task_state *state, const struct embedding_part *part)
{
	char of[80] = "";
	if (part->name[0])
		snprintf(of, sizeof of, " of %.63s", part->name);
	double temperature = embedding_temperature(state);
	if (part->kind == CONTRASTIVE_TARGET)
		log_note("loss%s: squared difference from the vectors of '%s'", of, own_of(state)->teacher_vectors);
	else if (part->kind == CONTRASTIVE_MARGIN)
		log_note("loss%s: squared difference of margins between cosines and between scores", of);
	else if (part->kind == CONTRASTIVE_IN_BATCH)
		log_note("loss%s: %s at temperature %g, over the whole batch", of,
			 part->form == RANKING_TEXTS
				 ? "each text paired with itself under another dropout mask (SimCSE), in-batch negatives"
			 : part->form == RANKING_PAIRS ? "in-batch negatives"
						       : "in-batch negatives and those of the files",
			 temperature);
	else if (part->kind == CONTRASTIVE_COSINE)
		log_note("loss%s: squared difference of cosine and score", of);
	else
		log_note("loss%s: CoSENT at temperature %g, over the whole batch: cosines should have the same order as the "
			 "scores",
			 of, temperature);
}

static enum status open_teacher(const struct task_state *state, struct task_set *set)
{
	struct embedding_set *own = set_of(set);
	const char *path = own_of(state)->teacher_vectors;
	TRY(npy_file_open(&own->teacher, path));
	if (own->teacher.rows != set->examples.count)
		return error_hinted(error_set(ERR_DATA, "'%s' has %lld vectors, and there are %lld training examples", path,
					      (long long)own->teacher.rows, (long long)set->examples.count),
				    "make them of the same file: bertc embed --model TEACHER FILE --out vectors.npy");
	if (own->teacher.columns != state->settings.hidden_size)
		return error_set(ERR_DATA, "the vectors of '%s' have %lld numbers, those of the model %d", path,
				 (long long)own->teacher.columns, state->settings.hidden_size);
	return npy_file_check(&own->teacher, path);
}

/* The value that a list such as "a:2,b:1" gives a part, and its size; NULL: none. */
static const char *named_value(const char *list, const struct embedding_part *part, size_t *size)
{
	size_t name = strlen(part->name);
	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
		if (strncmp(at, part->name, name) != 0 || at[name] != ':')
			continue;
		*size = strcspn(at + name + 1, ",");
		return at + name + 1;
	}
	return NULL;
}

/* Does every item of such a list name a part, and no two the same? */
static enum status check_names(const struct embedding_set *own, const char *option, const char *list)
{
	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
		int64_t p = 0;
		size_t length = strcspn(at, ","), name = strcspn(at, ":,");
		while (p < own->part_count && (strlen(own->parts[p].name) != name || strncmp(at, own->parts[p].name, name) != 0))
			p++;
		if (p == own->part_count || name == 0 || at[name] != ':')
			return error_hinted(error_set(ERR_USAGE, "--%s: '%.*s' is not the name of a training set and a value",
						      option, (int)length, at),
					    "name the sets, --train NAME=FILE OTHER=FILE, and write NAME:VALUE,OTHER:VALUE");
		if (named_value(list, &own->parts[p], &length) != at + name + 1)
			return error_set(ERR_USAGE, "--%s: the set '%s' is named twice", option, own->parts[p].name);
	}
	return OK;
}

static const struct {
	const char *name;
	enum contrastive_kind kind;
} losses[] = {{"in_batch", CONTRASTIVE_IN_BATCH},
	      {"cosent", CONTRASTIVE_COSENT},
	      {"cosine", CONTRASTIVE_COSINE},
	      {"margin_mse", CONTRASTIVE_MARGIN}};

/* Takes the weight and the loss that options give a part by its name. */
static enum status take_given(const struct embedding_settings *settings, struct embedding_part *part)
{
	size_t size, loss = 0;
	const char *weight = named_value(settings->train_weights, part, &size), *name;
	char *end;
	if (weight)
		part->weight = strtod(weight, &end);
	if (settings->train_weights && (!weight || end != weight + size || !(part->weight > 0) || !isfinite(part->weight)))
		return error_set(ERR_USAGE, "--train_weights %.80s: the set '%s' has no weight above 0", settings->train_weights,
				 part->name);
	name = named_value(settings->train_losses, part, &size);
	while (name && loss < 4 && (strlen(losses[loss].name) != size || strncmp(name, losses[loss].name, size) != 0))
		loss++;
	if (loss == 4)
		return error_set(ERR_USAGE, "--train_losses %s:%.*s: losses are in_batch, cosent, cosine, and margin_mse",
				 part->name, (int)size, name);
	if (name)
		part->kind = losses[loss].kind;
	bool by_score = part->kind == CONTRASTIVE_COSENT || part->kind == CONTRASTIVE_COSINE;
	if (name && by_score != (part->form == RANKING_SCORED))
		return error_set(ERR_USAGE, "--train_losses %s:%s is not for %s", part->name, losses[loss].name,
				 ranking_form_names[part->form]);
	return OK;
}

/* The loss of a form by itself, which is also that of dev sets. */
static enum contrastive_kind usual_kind(const struct embedding_settings *settings, enum ranking_form form)
{
	return form != RANKING_SCORED                     ? CONTRASTIVE_IN_BATCH
	       : settings->score_loss == EMBEDDING_COSINE ? CONTRASTIVE_COSINE
							  : CONTRASTIVE_COSENT;
}

/* Chooses the loss of a part of the training set. */
static enum status choose_kind(const struct task_state *state, const struct task_set *set, struct embedding_part *part)
{
	const struct embedding_settings *settings = own_of(state);
	bool with_target = settings->teacher_vectors, margin = settings->triplet_loss == EMBEDDING_MARGIN;
	bool several = set_of(set)->part_count > 1;
	part->kind = with_target                                              ? CONTRASTIVE_TARGET
		     : margin && (!several || part->form == RANKING_TRIPLETS) ? CONTRASTIVE_MARGIN
									      : usual_kind(settings, part->form);
	if (with_target && (margin || several || settings->train_losses))
		return error_set(ERR_USAGE, "--teacher_vectors and %s do not go together",
				 margin ? "--triplet_loss margin_mse" : "several training sets");
	if (with_target && part->form != RANKING_TEXTS && part->form != RANKING_PAIRS)
		return error_set(ERR_USAGE,
				 "--teacher_vectors needs texts alone, or pairs of texts with the same meaning, not %s",
				 ranking_form_names[part->form]);
	TRY(take_given(settings, part));
	if (settings->guide && part->kind != CONTRASTIVE_IN_BATCH && !several)
		return error_set(ERR_USAGE, "--guide is for in-batch negatives, which this file and these options do not use");
	if (part->kind == CONTRASTIVE_MARGIN && part->form != RANKING_TRIPLETS)
		return error_set(ERR_USAGE, "--triplet_loss margin_mse needs triplets, not %s", ranking_form_names[part->form]);
	if ((with_target || settings->guide || part->kind == CONTRASTIVE_MARGIN) && set->examples.count > NUMBERED_MOST)
		return error_set(ERR_USAGE, "more than %d training examples", NUMBERED_MOST);
	return OK;
}

static enum status read_part(struct task_state *state, struct task_set *set, struct embedding_part *part,
			     const char *const *paths, int64_t count)
{
	const struct task_settings *settings = &state->settings;
	struct ranking_options options = {.given = settings->columns,
					  .trained = settings->trained,
					  .layout = settings->layout,
					  .negatives = settings->negative_columns,
					  .first = set->examples.count,
					  .allows_texts = set->use == TASK_TRAIN,
					  .needs_scores = set->use != TASK_PREDICT,
					  .allows_empty = set->use == TASK_PREDICT,
					  .bad = settings->bad};
	for (int64_t i = 0; i < count; i++)
		TRY(ranking_file_read(&set->examples, paths[i], &options, &part->form));
	part->end = set->examples.count;
	part->kind = usual_kind(own_of(state), part->form);
	if (set->use != TASK_TRAIN)
		return OK;
	TRY(choose_kind(state, set, part));
	if (part->kind == CONTRASTIVE_IN_BATCH)
		TRY(log_repeated(&set->examples, options.first, part));
	log_loss(state, part);
	return OK;
}

/* Reads the files of a training set, which may be several sets with names. */
static enum status read_training(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	const struct embedding_settings *settings = own_of(state);
	struct set_list files = {0};
	enum status status = set_list_parse(&files, &(struct option_list){.values = (const char **)paths, .count = count});
	if (status == OK)
		status = make_parts(set, files.count);
	if (status != OK) {
		set_list_release(&files);
		return status;
	}
	struct embedding_set *own = set_of(set);
	own->files = files;
	for (int64_t p = 0; p < files.count; p++)
		own->parts[p].name = files.sets[p].name;
	TRY(check_names(own, "train_weights", settings->train_weights));
	TRY(check_names(own, "train_losses", settings->train_losses));
	log_losses(state);
	for (int64_t p = 0; p < files.count; p++)
		TRY(read_part(state, set, &own->parts[p], files.sets[p].paths, files.sets[p].count));
	state->settings.trained = set->examples.columns;
	return settings->teacher_vectors ? open_teacher(state, set) : OK;
}

enum status embedding_read(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	set->has_labels = set->use != TASK_PREDICT;
	if (set->use == TASK_TRAIN)
		return read_training(state, set, paths, count);
	TRY(embedding_set_form(set, RANKING_PAIRS));
	TRY(read_part(state, set, set_of(set)->parts, paths, count));
	if (set->use == TASK_SCORE && !state->decides)
		state->decides = set_of(set)->parts[0].form == RANKING_SCORED ? "spearmanr" : "ndcg@10";
	return OK;
}

/* Keeps the first examples of each part, and logs that of several. */
int64_t embedding_keep(struct task_set *set, int64_t most)
{
	struct embedding_set *own = set_of(set);
	struct example_set *examples = &set->examples;
	int64_t all = examples->count, begin = 0;
	examples->count = 0;
	for (int64_t p = 0; p < own->part_count; p++) {
		for (int64_t i = begin; i < own->parts[p].end && i < begin + most; i++)
			examples->examples[examples->count++] = examples->examples[i];
		begin = own->parts[p].end;
		own->parts[p].end = examples->count;
	}
	if (own->part_count == 1)
		return all;
	if (examples->count < all)
		log_note("only the first %lld of each training set are used: %lld of %lld examples", (long long)most,
			 (long long)examples->count, (long long)all);
	return 0;
}

/* ---- Encoding ---- */

struct encoding {
	struct task_state *state;
	struct task_set *set;
	struct tokens scratch[2];
	struct buffer joined; /* a prompt followed by a text */
	int32_t *ids;
	struct embedding_part *part; /* of the example */
	int32_t cut;                 /* number of tokens cut off the example so far */
};

/* The prompt of an example's first text or of its others; NULL: none. */
static const char *prompt_of(const struct encoding *e, bool is_first)
{
	const struct embedding_settings *settings = own_of(e->state);
	enum ranking_form form = e->part->form;
	const char *prompt = is_first ? settings->query_prompt : settings->document_prompt;
	if (settings->prompts_of_folder && form != RANKING_PAIRS && form != RANKING_TRIPLETS)
		return NULL;
	return prompt && prompt[0] ? prompt : NULL;
}

static enum status add_text(struct encoding *e, const char *text, bool is_first)
{
	const struct task_settings *settings = &e->state->settings;
	const char *prompt = prompt_of(e, is_first);
	struct encoded_text encoded;
	if (prompt) {
		e->joined.size = 0;
		buffer_text(&e->joined, prompt);
		buffer_text(&e->joined, text);
		TRY(buffer_status(&e->joined));
		text = buffer_string(&e->joined);
	}
	TRY(task_encode_text(settings->tokenizer, e->scratch, text, NULL, settings->max_seq_length, e->ids, &encoded));
	TRY(labeled_sequence(&e->set->encoded, e->ids, encoded.count, encoded.second));
	e->cut += encoded.cut;
	return OK;
}

/* Reads the score of a pair, which must be in the range of a cosine if cosines are to match it. */
static enum status read_score(const struct encoding *e, const struct example_text *example, float *out)
{
	double score;
	TRY(label_number(example->label, example->file, example->line, &score));
	*out = (float)score;
	bool compared = e->set->use != TASK_PREDICT && e->part->kind == CONTRASTIVE_COSINE;
	if (!compared || (score >= -1 && score <= 1))
		return OK;
	return error_hinted(error_set(ERR_DATA, "'%s', line %lld: the score %g is not between -1 and 1", example->file,
				      (long long)example->line, score),
			    "divide the scores by the largest, or use --score_loss cosent, which depends only on their order");
}

/* Reads the list of scores of a row's positive and negatives. */
static enum status read_marks(const struct encoding *e, int64_t number)
{
	const struct example_text *example = &e->set->examples.examples[number];
	const char *cell = example_field(&e->set->examples, number, "scores");
	struct embedding_set *own = set_of(e->set);
	struct json_document list = {0};
	int64_t count = 0, place = e->set->encoded.example_count;
	if (cell)
		TRY(json_parse(&list, example->file, cell, strlen(cell)));
	TRY(memory_grow(&own->marks, &own->mark_capacity, own->mark_count + example->choice_count + 1, sizeof *own->marks,
			"scores"));
	own->mark_starts[place] = own->mark_count;
	enum status status = OK;
	bool fits = cell && list.root->kind == JSON_ARRAY && list.root->child_count == example->choice_count + 1;
	for (const struct json *item = fits ? list.root->first_child : NULL; item && status == OK; item = item->next) {
		double score = 0;
		fits = fits && item->text;
		if (item->text)
			status = label_number(item->text, example->file, example->line, &score);
		own->marks[own->mark_count + count++] = (float)score;
	}
	json_release(&list);
	TRY(status);
	if (!fits || example->choice_count == 0)
		return error_hinted(
			error_set(ERR_DATA,
				  "'%s', line %lld: \"scores\" is not a list with a score for the positive and each of "
				  "the %d negatives",
				  example->file, (long long)example->line, example->choice_count),
			"bertc mine --output_scores writes such rows");
	own->mark_count += count;
	return OK;
}

static enum status add_example(void *context, int64_t number)
{
	struct encoding *e = context;
	const struct example_text *example = &e->set->examples.examples[number];
	e->part = part_of(set_of(e->set), number);
	enum ranking_form form = e->part->form;
	bool trains = e->set->use == TASK_TRAIN, with_target = trains && e->part->kind == CONTRASTIVE_TARGET;
	bool margin = trains && e->part->kind == CONTRASTIVE_MARGIN;
	bool guided = trains && e->part->kind == CONTRASTIVE_IN_BATCH && own_of(e->state)->guide;
	float score = 0;
	if (form == RANKING_SCORED && example->label)
		TRY(read_score(e, example, &score));
	if (margin)
		TRY(read_marks(e, number));
	if (with_target || margin || guided)
		score = (float)e->set->encoded.example_count;
	if (!e->part->used)
		TRY(labeled_part(&e->set->encoded, e->part->name, e->part->weight));
	e->part->used = true;
	TRY(labeled_begin(&e->set->encoded));
	e->cut = 0;
	TRY(add_text(e, example->text, true));
	if (form != RANKING_TEXTS || !with_target)
		TRY(add_text(e, form == RANKING_TEXTS ? example->text : example->pair, false));
	for (int32_t k = 0; k < example->choice_count; k++)
		TRY(add_text(e, e->set->examples.choices[example->first_choice + k], false));
	e->set->cut_count += e->cut > 0;
	e->set->cut_tokens += e->cut;
	return labeled_item(&e->set->encoded, 0, NULL, NULL, &score, 1);
}

/* Of what other models say about the examples. */
static uint64_t beside_hash(const struct embedding_set *own)
{
	const struct npy_file *teacher = &own->teacher;
	if (teacher->values)
		return hash64(teacher->values, (size_t)(teacher->rows * teacher->columns) * sizeof *teacher->values);
	return own->mark_count > 0 ? hash64(own->marks, (size_t)own->mark_count * sizeof *own->marks) : 0;
}

/* A row with a bad score adds nothing, since the score is read first. */
enum status embedding_encode(struct task_state *state, struct task_set *set)
{
	struct encoding e = {.state = state, .set = set};
	enum status status;
	TRY_GOTO(memory_new(&e.ids, state->settings.max_seq_length, sizeof *e.ids, "a text's tokens"), done);
	if (embedding_learns(set_of(set), CONTRASTIVE_MARGIN))
		TRY_GOTO(memory_new(&set_of(set)->mark_starts, set->examples.count, sizeof *set_of(set)->mark_starts, "scores"),
			 done);
	labeled_form(&set->encoded, 0, 1, 0, true);
	TRY_GOTO(task_add_examples(state, set, add_example, &e), done);
	for (int64_t p = 0; set->encoded.part_count < set_of(set)->part_count && p < set_of(set)->part_count; p++)
		if (!set_of(set)->parts[p].used)
			status = error_set(ERR_DATA, "none of the rows of the training set '%s' can be used",
					   set_of(set)->parts[p].name);
	set->encoded.beside_hash = beside_hash(set_of(set));
done:
	tokens_release(&e.scratch[0]);
	tokens_release(&e.scratch[1]);
	buffer_release(&e.joined);
	free(e.ids);
	return status;
}

/* ---- The guide, and words alone ---- */

/* The texts of a set's sequences; of an example that has but one, it is both. Those of other losses are not needed, but keep
 * their places. */
static void find_texts(const struct task_set *set, const char **out)
{
	const int64_t *starts = set->encoded.examples;
	for (int64_t e = 0; e < set->encoded.example_count; e++) {
		const char **texts = out + starts[e];
		int64_t count = example_texts(&set->examples, e, texts);
		if (count == 1)
			texts[count++] = texts[0];
		BUG_IF(count != starts[e + 1] - starts[e]);
	}
}

enum status embedding_words(const struct task_set *set, struct word_vectors *out)
{
	const char **texts;
	TRY(memory_new(&texts, set->encoded.sequence_count, sizeof *texts, "texts"));
	find_texts(set, texts);
	enum status status = word_vectors_make(out, texts, set->encoded.sequence_count);
	free(texts);
	return status;
}

enum status embedding_guide(const struct task_state *state, struct task_set *train, task_vector_maker *make, void *context)
{
	const struct labeled_set *encoded = &train->encoded;
	struct embedding_set *own = set_of(train);
	const char **texts = NULL;
	bool *are_first = NULL;
	enum status status;
	if (!own_of(state)->guide)
		return OK;
	TRY(memory_new(&texts, encoded->sequence_count, sizeof *texts, "texts"));
	TRY_GOTO(memory_new(&are_first, encoded->sequence_count, sizeof *are_first, "texts"), done);
	find_texts(train, texts);
	for (int64_t e = 0; e < encoded->example_count; e++)
		are_first[encoded->examples[e]] = true;
	status = make(context, own_of(state)->guide, texts, are_first, encoded->sequence_count, &own->guides, &own->guide_width);
done:
	free(texts);
	free(are_first);
	return status;
}
