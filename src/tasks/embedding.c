/* Embeddings: a vector for each text, so that texts that belong together have a high cosine. Training uses pairs, triplets, pairs
 * with a score, or texts alone, each of which is paired with itself under another dropout mask (SimCSE, Gao et al. 2021). The
 * head is just the pooling; the loss is over all texts of a step (tasks/contrastive.h). */
#include "tasks/embedding_sets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/labels.h"
#include "tasks/measures.h"
#include "tasks/results.h"

/* ---- Settings ---- */

#define ROW(member, value) OPTION_ROW(struct embedding_settings, member, ROLE_RESULT, value)

/* clang-format off */
const struct option embedding_rows[] = {
	{.help = "Embeddings"},
	{ROW(query_prompt, "TEXT"),
	 .help = "for embeddings: prefix of the first text of each example, such as 'query: '; default: the prompt of the "
	 "model's folder"},
	{ROW(document_prompt, "TEXT"), .alias = "passage_prompt",
	 .help = "for embeddings: prefix of the other texts, such as 'passage: '; default: the prompt of "
	 	 "the model's folder"},
	{ROW(temperature, "T"), .range = "0.001..10", .fallback_text = "0.05, with --pooling splade 1",
	 .help = "divide cosines by this in the losses for embeddings (a scale of 1/T)"},
	{ROW(pooling, "HOW"), .range = "auto|mean|cls|splade", .fallback = "auto",
	 .help = "use the mean of a text's rows as its vector, or the row of [CLS]; splade: weights for the words of the "
	 "vocabulary, from the masked-word head, compared by dot products; auto: as the model's folder says, else the mean"},
	{ROW(query_regularizer_weight, "W"), .range = "0..", .fallback = "5e-5",
	 .help = "with --pooling splade: factor of the FLOPS of first texts (squares of the batch's mean weights) in the loss, "
	 "reached after a third of training"},
	{ROW(document_regularizer_weight, "W"), .range = "0..", .fallback = "3e-5", .help = "the same for the other texts"},
	{ROW(score_loss, "NAME"), .range = "cosent|cosine", .fallback = "cosent",
	 .help = "loss for embeddings learned from scores: cosent, which uses the order of the scores; cosine, the squared "
	 "difference of cosine and score"},
	{ROW(triplet_loss, "NAME"), .range = "in_batch|margin_mse", .fallback = "in_batch",
	 .help = "loss for embeddings learned from triplets: in_batch; margin_mse, the squared difference of margins between "
	 "cosines and between \"scores\" (of the positive and each negative, as mine --output_scores writes them)"},
	{ROW(train_weights, "NAME:W,..."), .fallback_text = "as many batches as each set fills",
	 .help = "for embeddings learned from several sets (--train NAME=FILE...): how often a batch comes from each, relative "
	 "to the others"},
	{ROW(train_losses, "NAME:LOSS,..."), .fallback_text = "as --score_loss and --triplet_loss say",
	 .help = "losses of such sets: in_batch, cosent, cosine, or margin_mse"},
	{ROW(false_negative_gap, "G"), .range = "-2..2", .fallback = "2",
	 .help = "for in-batch negatives of embeddings: a text whose cosine with a first text is more than G above that of its "
	 "own second text is not one of its negatives, since it probably belongs to it, too (GISTEmbed); 0: no nearer text is; "
	 "2: all are, or, with --guide, as 0"},
	{.name = "guide", .type = OPTION_TEXT, .field = offsetof(struct embedding_settings, guide), .role = ROLE_SOURCE,
	 .value_name = "FOLDER", .alias = "guide_model",
	 .help = "for in-batch negatives of embeddings: an embedding model by whose cosines --false_negative_gap leaves texts "
	 "out; its vectors of all training texts are computed first, and kept in memory"},
	{ROW(matryoshka_dims, "LIST"),
	 .help = "for embeddings: widths such as 384,128,64, to which vectors may be cut later; the loss is the sum of the "
	 "losses at each width"},
	{ROW(matryoshka_weights, "LIST"), .fallback_text = "1 for each", .help = "weights of the losses at these widths"},
	{.name = "teacher_vectors", .type = OPTION_TEXT, .field = offsetof(struct embedding_settings, teacher_vectors),
	 .role = ROLE_SOURCE, .value_name = "FILE.npy",
	 .help = "for embeddings: vectors of another model, one for each row of --train, as embed --format npy writes them; "
	 "the row's texts learn to have this vector"},
	{0},
};
/* clang-format on */

static struct embedding_settings *own_of(const struct task_state *state)
{
	return state->own;
}

/* As in sentence-transformers and SimCSE: a scale of 20. */
#define USUAL_TEMPERATURE 0.05

bool embedding_is_sparse(const struct task_state *state)
{
	return own_of(state)->pooling == EMBEDDING_SPLADE;
}

double embedding_temperature(const struct task_state *state)
{
	return own_of(state)->temperature > 0 ? own_of(state)->temperature : embedding_is_sparse(state) ? 1 : USUAL_TEMPERATURE;
}

/* How pooling is called in options, folders, and the record. */
static const struct {
	const char *name;
	unsigned mode;
} poolings[] = {[EMBEDDING_MEAN] = {"mean", POOLING_MEAN},
		[EMBEDDING_CLS] = {"cls", POOLING_CLS},
		[EMBEDDING_SPLADE] = {"splade", POOLING_SPLADE}};

/* EMBEDDING_POOLING_OPEN: it is none of these. */
static enum embedding_pooling pooling_of_folder(const struct sentence_folder *folder)
{
	enum embedding_pooling pooling = EMBEDDING_SPLADE;
	while (pooling > EMBEDDING_POOLING_OPEN && poolings[pooling].mode != folder->pooling)
		pooling--;
	return pooling;
}

static void note_prompt(const char *prompt, const char *texts)
{
	if (prompt && prompt[0])
		log_note("prompt: '%s' is put before %s", prompt, texts);
}

/* Prompts that are not given come from the model's folder. */
static void take_prompts(struct embedding_settings *own, const struct sentence_folder *folder)
{
	bool given = own->query_prompt || own->document_prompt;
	if (!own->query_prompt)
		own->query_prompt = sentence_folder_query_prompt(folder);
	if (!own->document_prompt)
		own->document_prompt = sentence_folder_document_prompt(folder);
	own->prompts_of_folder = !given && (own->query_prompt || own->document_prompt);
}

/* The folder that is written contains the prompts. */
static enum status settle_prompts(struct embedding_settings *own, const struct task_beginning *beginning)
{
	struct sentence_folder *folder = beginning->folder;
	TRY(sentence_folder_set_prompts(folder, own->query_prompt, own->document_prompt));
	take_prompts(own, folder);
	bool any = (own->query_prompt && own->query_prompt[0]) || (own->document_prompt && own->document_prompt[0]);
	if (any && folder->leaves_out_prompt)
		return error_hinted(
			error_set(ERR_USAGE,
				  "'%s' leaves the tokens of a prompt out of the mean (include_prompt is false), which "
				  "cannot be trained",
				  beginning->model),
			"train without prompts: --query_prompt '' --document_prompt ''");
	if (own->prompts_of_folder)
		log_note("'%s' has prompts, which are used with pairs and triplets", beginning->model);
	note_prompt(own->query_prompt, "the first text of each example");
	note_prompt(own->document_prompt, "its other texts");
	return OK;
}

/* Reads as many numbers, between commas, as there is room for; returns how many, or -1. */
static int64_t read_numbers(const char *text, double out[NESTED_MOST])
{
	int64_t count = 0;
	for (char *end; count < NESTED_MOST; text = end + 1) {
		out[count++] = strtod(text, &end);
		if (end == text || !(out[count - 1] > 0) || !isfinite(out[count - 1]))
			return -1;
		if (*end == '\0')
			return count;
		if (*end != ',')
			return -1;
	}
	return -1;
}

/* Reads the widths to which vectors may be cut. */
static enum status settle_nested(const struct task_state *state, struct embedding_settings *own)
{
	double widths[NESTED_MOST];
	struct nested_widths *nested = &own->nested;
	bool bad = false;
	*nested = (struct nested_widths){.count = 0};
	if (!own->matryoshka_dims)
		return own->matryoshka_weights ? error_set(ERR_USAGE, "--matryoshka_weights needs --matryoshka_dims") : OK;
	if (own->teacher_vectors)
		return error_set(ERR_USAGE, "--matryoshka_dims and --teacher_vectors do not go together");
	nested->count = read_numbers(own->matryoshka_dims, widths);
	for (int64_t i = 0; i < nested->count; i++) {
		nested->widths[i] = (int64_t)widths[i];
		nested->weights[i] = 1;
		for (int64_t k = 0; k < i; k++)
			bad = bad || widths[k] == widths[i];
		bad = bad || widths[i] != floor(widths[i]) || widths[i] > state->settings.hidden_size;
	}
	if (bad || nested->count < 0)
		return error_hinted(error_set(ERR_USAGE,
					      "--matryoshka_dims %.80s: widths of vectors are different whole numbers from 1 "
					      "to %d, with commas between them",
					      own->matryoshka_dims, state->settings.hidden_size),
				    "name the whole width, too, unless vectors are always cut");
	if (own->matryoshka_weights && read_numbers(own->matryoshka_weights, nested->weights) != nested->count)
		return error_set(ERR_USAGE,
				 "--matryoshka_weights %.80s: there must be a number above 0 for each of the widths %.80s",
				 own->matryoshka_weights, own->matryoshka_dims);
	return OK;
}

/* Pooling: as given, else that of the model's folder, else the mean. The folder that is written records it. */
static enum status settle(struct task_state *state, const struct task_beginning *beginning)
{
	struct embedding_settings *own = own_of(state);
	struct sentence_folder *folder = beginning->folder;
	if (!own->pooling && folder->found && !pooling_of_folder(folder))
		return error_hinted(error_set(ERR_USAGE, "'%s' pools neither by the mean nor by [CLS]", beginning->model),
				    "choose one of the two: --pooling mean or --pooling cls");
	if (!own->pooling) {
		own->pooling = folder->found ? pooling_of_folder(folder) : EMBEDDING_MEAN;
		TRY(beginning->chose(beginning->context, "pooling", poolings[own->pooling].name));
	}
	if (embedding_is_sparse(state) && (own->matryoshka_dims || own->teacher_vectors))
		return error_set(ERR_USAGE,
				 "--pooling splade gives weights of words: --matryoshka_dims and --teacher_vectors are "
				 "for vectors");
	TRY(settle_prompts(own, beginning));
	TRY(settle_nested(state, own));
	folder->pooling = poolings[own->pooling].mode;
	folder->normalize = !embedding_is_sparse(state);
	folder->lowercase = false; /* the tokenizer's files say that */
	folder->truncate_dim = 0;
	folder->max_seq_length = state->settings.max_seq_length;
	return OK;
}

/* A finished model has the prompts and the pooling of its training; other models, those of their folder. */
static void take_folder(struct task_state *state, const struct sentence_folder *folder)
{
	struct embedding_settings *own = own_of(state);
	if (!own->pooling)
		own->pooling = pooling_of_folder(folder);
	if (!own->query_prompt && !own->document_prompt && !folder->leaves_out_prompt) {
		take_prompts(own, folder);
		own->prompts_of_folder = true;
	}
}

static const struct embedding_set *set_of(const struct task_set *set)
{
	return set->own;
}

static enum ranking_form form_of(const struct task_set *set)
{
	return set_of(set)->parts[0].form;
}

/* In a batch of one, there is nothing to tell an anchor from, and no second example to rank against. */
static enum status check_batch(const struct task_state *state, const struct task_set *train, int64_t batch_size)
{
	int64_t examples = train->encoded.example_count;
	const struct embedding_set *own = set_of(train);
	bool has_negatives = train->encoded.most_sequences > 2;
	bool alone = !embedding_learns(own, CONTRASTIVE_IN_BATCH) && !embedding_learns(own, CONTRASTIVE_COSENT);
	(void)state;
	if (has_negatives || alone || (batch_size > 1 && examples > 1))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "%s: embeddings are learned by comparing the examples of a batch",
				      examples > 1 ? "--train_batch_size is 1" : "there is one training example"),
			    "a batch needs at least two examples, and larger ones teach more: 32, 64 or hundreds");
}

/* ---- The head and the loss ---- */

static void heads(const struct task_state *state, struct model_heads *out)
{
	if (embedding_is_sparse(state)) {
		*out = model_heads_splade;
		out->head[0].outputs = state->settings.vocab_size;
		return;
	}
	*out = (struct model_heads){.architecture = "BertModel", .pooler = true, .count = 1};
	out->head[0] = (struct head){
		.input = INPUT_POOLED_ROWS,
		.pooling = own_of(state)->pooling == EMBEDDING_CLS ? POOLING_CLS : POOLING_MEAN,
		.outputs = state->settings.hidden_size,
		.loss = LOSS_VECTORS,
		.coefficient = 1,
		.name = "pooling",
	};
}

/* Over the first third of training, the weights rise with the square of the step's number, as with sentence-transformers'
 * SpladeRegularizerWeightSchedulerCallback. */
static enum status add_flops(const struct task_state *state, const struct contrastive_step *step,
			     struct contrastive_scratch *scratch, double *out, float *gradients)
{
	const struct embedding_settings *own = own_of(state);
	double rise = fmax(1, (double)(step->last / 3));
	double share = step->last > 0 ? fmin(1, (double)(step->number - 1) / rise) : 1;
	return contrastive_flops(step, share * share * own->query_regularizer_weight,
				 share * share * own->document_regularizer_weight, scratch, out, gradients);
}

static enum status loss(const struct task_state *state, const struct task_set *set, const struct contrastive_step *step,
			struct pool *pool, struct contrastive_scratch *scratch, double *out, float *gradients)
{
	const struct embedding_set *own = set_of(set);
	struct contrastive_step with = *step;
	with.marks = own->marks;
	with.mark_starts = own->mark_starts;
	with.targets = own->teacher.values;
	with.by_dot = embedding_is_sparse(state);
	with.guides = own->parts[step->part].kind == CONTRASTIVE_IN_BATCH ? own->guides : NULL;
	with.guide_starts = set->encoded.examples;
	with.guide_width = own->guide_width;
	with.has_gap = own_of(state)->false_negative_gap < 2 || with.guides;
	with.gap = own_of(state)->false_negative_gap < 2 ? own_of(state)->false_negative_gap : 0;
	TRY(contrastive_nested_loss(own->parts[step->part].kind, embedding_temperature(state), &own_of(state)->nested, &with,
				    pool, scratch, out, gradients));
	return embedding_is_sparse(state) ? add_flops(state, &with, scratch, out, gradients) : OK;
}

/* ---- Vectors of a set ---- */

enum status vector_set_make(struct vector_set *out, const struct task_set *set, const struct task_outputs *outputs)
{
	const struct labeled_set *encoded = &set->encoded;
	int64_t texts = encoded->sequence_count, examples = encoded->example_count;
	enum status status;
	*out = (struct vector_set){.all = {.example_count = examples, .count = texts}};
	TRY_GOTO(memory_new(&out->starts, examples + 1, sizeof *out->starts, "vectors"), failed);
	TRY_GOTO(memory_new(&out->part, examples + 1, sizeof *out->part, "vectors"), failed);
	TRY_GOTO(memory_new(&out->texts, texts, sizeof *out->texts, "vectors"), failed);
	memcpy(out->starts, encoded->examples, (size_t)(examples + 1) * sizeof *out->starts);
	for (int64_t s = 0; s < texts; s++)
		out->texts[s] =
			contrastive_text(encoded->ids + encoded->sequences[s], encoded->sequences[s + 1] - encoded->sequences[s]);
	out->all.width = outputs && texts > 0 ? outputs->starts[outputs->count] / texts : 0;
	out->all.starts = out->starts;
	out->all.vectors = outputs ? outputs->values : NULL;
	out->all.texts = out->texts;
	out->all.scores = encoded->items[0].numbers;
	return OK;
failed:
	vector_set_release(out);
	return status;
}

struct contrastive_step vector_set_part(struct vector_set *set, int64_t first, int64_t count)
{
	struct contrastive_step part = set->all;
	int64_t begin = set->starts[first];
	for (int64_t e = 0; e <= count; e++)
		set->part[e] = set->starts[first + e] - begin;
	part.example_count = count;
	part.count = set->part[count];
	part.starts = set->part;
	part.vectors += begin * part.width;
	part.texts += begin;
	part.scores += first;
	return part;
}

void vector_set_release(struct vector_set *set)
{
	free(set->starts);
	free(set->part);
	free(set->texts);
	*set = (struct vector_set){.starts = NULL};
}

/* ---- Scores ---- */

static double pair_cosine(const struct contrastive_step *all, int64_t a, int64_t b)
{
	if (all->words)
		return word_vectors_dot(all->words, a, b);
	if (all->by_dot)
		return vectors_dot(all->vectors + a * all->width, all->vectors + b * all->width, all->width);
	return vectors_cosine(all->vectors + a * all->width, all->vectors + b * all->width, all->width);
}

static enum status score_pairs(const struct contrastive_step *all, struct measures *out)
{
	double *gold = NULL, *cosines = NULL;
	enum status status;
	TRY_GOTO(memory_new(&gold, all->example_count, sizeof *gold, "scores"), done);
	TRY_GOTO(memory_new(&cosines, all->example_count, sizeof *cosines, "scores"), done);
	for (int64_t e = 0; e < all->example_count; e++) {
		gold[e] = all->scores[e];
		cosines[e] = pair_cosine(all, all->starts[e], all->starts[e] + 1);
	}
	status = measure_correlations(gold, cosines, all->example_count, out);
done:
	free(gold);
	free(cosines);
	return status;
}

/* The share of triplets (anchor, positive, negative) in which the positive is nearer. */
static void score_triplets(const struct contrastive_step *all, struct measures *out)
{
	int64_t right = 0, count = 0;
	for (int64_t e = 0; e < all->example_count; e++) {
		int64_t anchor = all->starts[e];
		for (int64_t t = anchor + 2; t < all->starts[e + 1]; t++) {
			right += pair_cosine(all, anchor, anchor + 1) > pair_cosine(all, anchor, t);
			count++;
		}
	}
	measures_add(out, &(struct measure){.name = "accuracy",
					    .unit = UNIT_SHARE,
					    .direction = DIRECTION_HIGHER,
					    .value = count > 0 ? (double)right / (double)count : NAN});
}

/* Retrieval: every distinct anchor is a query, every distinct other text a candidate. */
struct known_text {
	uint64_t text;
	int64_t place; /* index of the first vector of this text */
};

struct retrieval {
	const struct contrastive_step *all;
	struct known_text *queries, *candidates;
	int64_t query_count, candidate_count;
	double *relevance; /* [workers][candidates], like `cosines` */
	double *cosines;
	double *ndcg, *mrr; /* [queries] */
	enum status *statuses;
};

static int compare_texts(const void *left, const void *right)
{
	const struct known_text *a = left, *b = right;
	if (a->text != b->text)
		return a->text < b->text ? -1 : 1;
	return a->place < b->place ? -1 : 1;
}

/* Sorts, and keeps only the first of equal texts. */
static int64_t unique(struct known_text *texts, int64_t count)
{
	int64_t kept = 0;
	qsort(texts, (size_t)count, sizeof *texts, compare_texts);
	for (int64_t i = 0; i < count; i++)
		if (i == 0 || texts[i].text != texts[i - 1].text)
			texts[kept++] = texts[i];
	return kept;
}

static int by_text(const void *key, const void *element)
{
	const struct known_text *a = key, *b = element;
	return a->text < b->text ? -1 : a->text > b->text;
}

static void rank_query(void *context, int64_t number, int worker)
{
	struct retrieval *r = context;
	const struct contrastive_step *all = r->all;
	double *relevance = r->relevance + worker * r->candidate_count, *cosines = r->cosines + worker * r->candidate_count;
	const struct known_text *query = &r->queries[number];
	memset(relevance, 0, (size_t)r->candidate_count * sizeof *relevance);
	for (int64_t e = 0; e < all->example_count; e++) {
		if (all->texts[all->starts[e]] != query->text)
			continue;
		struct known_text positive = {.text = all->texts[all->starts[e] + 1]};
		struct known_text *found =
			bsearch(&positive, r->candidates, (size_t)r->candidate_count, sizeof positive, by_text);
		relevance[found - r->candidates] = 1;
	}
	for (int64_t c = 0; c < r->candidate_count; c++)
		cosines[c] = pair_cosine(all, query->place, r->candidates[c].place);
	r->statuses[number] = ranking_of_query(cosines, relevance, r->candidate_count, &r->ndcg[number], &r->mrr[number]);
}

static void collect_texts(struct retrieval *r)
{
	const struct contrastive_step *all = r->all;
	for (int64_t e = 0; e < all->example_count; e++) {
		int64_t anchor = all->starts[e];
		r->queries[r->query_count++] = (struct known_text){all->texts[anchor], anchor};
		for (int64_t t = anchor + 1; t < all->starts[e + 1]; t++)
			r->candidates[r->candidate_count++] = (struct known_text){all->texts[t], t};
	}
	r->query_count = unique(r->queries, r->query_count);
	r->candidate_count = unique(r->candidates, r->candidate_count);
}

static enum status score_retrieval(const struct contrastive_step *all, struct pool *pool, struct measures *out)
{
	static const char what[] = "a ranking";
	struct retrieval r = {.all = all};
	int64_t workers = pool ? pool_threads(pool) : 1;
	double ndcg = 0, mrr = 0;
	enum status status;
	TRY_GOTO(memory_new(&r.queries, all->example_count, sizeof *r.queries, what), done);
	TRY_GOTO(memory_new(&r.candidates, all->count, sizeof *r.candidates, what), done);
	collect_texts(&r);
	TRY_GOTO(memory_new(&r.relevance, workers * r.candidate_count, sizeof *r.relevance, what), done);
	TRY_GOTO(memory_new(&r.cosines, workers * r.candidate_count, sizeof *r.cosines, what), done);
	TRY_GOTO(memory_new(&r.ndcg, r.query_count, sizeof *r.ndcg, what), done);
	TRY_GOTO(memory_new(&r.mrr, r.query_count, sizeof *r.mrr, what), done);
	TRY_GOTO(memory_new(&r.statuses, r.query_count, sizeof *r.statuses, what), done);
	if (pool)
		pool_run(pool, r.query_count, rank_query, &r);
	for (int64_t q = 0; !pool && q < r.query_count; q++)
		rank_query(&r, q, 0);
	for (int64_t q = 0; q < r.query_count && status == OK; q++) {
		ndcg += r.ndcg[q];
		mrr += r.mrr[q];
		if (r.statuses[q] != OK)
			status = error_set(r.statuses[q], "not enough memory for a ranking of %lld texts",
					   (long long)r.candidate_count);
	}
	measure_add_ranking(ndcg / (double)r.query_count, mrr / (double)r.query_count, out);
done:
	free(r.queries);
	free(r.candidates);
	free(r.relevance);
	free(r.cosines);
	free(r.ndcg);
	free(r.mrr);
	free(r.statuses);
	return status;
}

/* Of a model's outputs, or of words. */
static enum status measure(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			   const struct word_vectors *words, struct measures *out)
{
	struct vector_set vectors;
	TRY(vector_set_make(&vectors, set, outputs));
	vectors.all.by_dot = embedding_is_sparse(state);
	vectors.all.words = words;
	enum status status;
	if (form_of(set) == RANKING_SCORED) {
		status = score_pairs(&vectors.all, out);
	} else {
		status = score_retrieval(&vectors.all, state->pool, out);
		if (form_of(set) == RANKING_TRIPLETS)
			score_triplets(&vectors.all, out);
	}
	vector_set_release(&vectors);
	return status;
}

static enum status score(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			 struct measures *out)
{
	return measure(state, set, outputs, NULL, out);
}

static enum status baseline(const struct task_state *state, const struct task_set *train, const struct task_set *set,
			    struct measures *out)
{
	struct word_vectors words = {0};
	(void)train;
	if (form_of(set) == RANKING_TEXTS)
		return OK;
	enum status status = embedding_words(set, &words);
	if (status == OK)
		status = measure(state, set, NULL, &words, out);
	word_vectors_release(&words);
	return status;
}

/* ---- Results ---- */

/* The cosine of a row's two texts. */
static float cosine_of(const struct contrastive_step *all, int64_t example)
{
	return (float)pair_cosine(all, all->starts[example], all->starts[example] + 1);
}

static enum status write_results(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 const char *folder)
{
	char path[PATH_BYTES];
	struct vector_set vectors;
	float *cosines = NULL;
	enum status status;
	TRY(vector_set_make(&vectors, set, outputs));
	vectors.all.by_dot = embedding_is_sparse(state);
	TRY_GOTO(memory_new(&cosines, outputs->count, sizeof *cosines, "results"), done);
	for (int64_t e = 0; e < outputs->count; e++)
		cosines[e] = cosine_of(&vectors.all, e);
	TRY_GOTO(path_join(path, folder, "test_results.tsv"), done);
	status = results_write_values(path, cosines, outputs->count, 1);
done:
	free(cosines);
	vector_set_release(&vectors);
	return status;
}

/* ---- Its record ---- */

static void put_record(const void *own, struct json_writer *writer)
{
	const struct embedding_settings *embedding = own;
	json_put_string(writer, "pooling", poolings[embedding->pooling ? embedding->pooling : EMBEDDING_MEAN].name);
	if (embedding->prompts_of_folder) /* they are in config_sentence_transformers.json */
		return;
	if (embedding->query_prompt)
		json_put_string(writer, "query_prompt", embedding->query_prompt);
	if (embedding->document_prompt)
		json_put_string(writer, "document_prompt", embedding->document_prompt);
}

static enum status read_record(const struct json *record, const char *name, void *own)
{
	struct embedding_settings *out = own;
	const char *pooling = NULL;
	TRY(json_get_string(record, name, "pooling", &pooling));
	if (pooling) {
		out->pooling = EMBEDDING_SPLADE;
		while (out->pooling > EMBEDDING_POOLING_OPEN && strcmp(pooling, poolings[out->pooling].name) != 0)
			out->pooling--;
		if (!out->pooling)
			return error_set(ERR_DATA, "'%s': \"pooling\" is '%.40s', not 'mean', 'cls', or 'splade'", name, pooling);
	}
	TRY(json_get_string(record, name, "query_prompt", &out->query_prompt));
	return json_get_string(record, name, "document_prompt", &out->document_prompt);
}

const struct task task_embedding = {
	.name = "embedding",
	.other_names = (const char *const[]){"sentence-similarity", NULL},
	.summary = "a vector for each text, near those of texts that belong to it",
	.architecture = "BertModel",
	.input = TASK_INPUT_TEXT,
	.target = TARGET_NUMBER,
	.decides = "ndcg@10",
	.view = VIEW_VECTORS,
	.streams = true,
	.makes_vectors = true,
	.read = embedding_read,
	.keep = embedding_keep,
	.encode = embedding_encode,
	.heads = heads,
	.score = score,
	.baseline = baseline,
	.write = write_results,
	.guide = embedding_guide,
	.loss = loss,
	.close_set = embedding_close_set,
	.exclusive = (const char *const[]){"query_prompt", "document_prompt", "temperature", "pooling",
					   "query_regularizer_weight", "document_regularizer_weight", "score_loss",
					   "triplet_loss", "train_weights", "train_losses", "false_negative_gap", "guide",
					   "matryoshka_dims", "matryoshka_weights", "teacher_vectors", NULL},
	.settings_bytes = sizeof(struct embedding_settings),
	.options = embedding_rows,
	.settle = settle,
	.check_batch = check_batch,
	.take_folder = take_folder,
	.put_record = put_record,
	.read_record = read_record,
};
