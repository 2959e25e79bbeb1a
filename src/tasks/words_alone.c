/* Logistic and ridge regression on TF-IDF: how well words alone answer. */
#include "tasks/words_alone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "tasks/logistic.h"

/* Limits of time and memory. */
#define MOST_BYTES 2048     /* of a text */
#define MOST_TEXT (1 << 25) /* bytes of all texts, times outputs */
#define MOST_WEIGHTS (1 << 20)
#define MOST_OUTPUTS 256
#define BUCKETS (1 << 22) /* hashes of words and pairs of words: so many that few words of a new text hit one by chance */

void word_vectors_release(struct word_vectors *vectors)
{
	free(vectors->starts);
	free(vectors->columns);
	free(vectors->values);
	*vectors = (struct word_vectors){.starts = NULL};
}

static enum status put(struct word_vectors *rows, int32_t column, float value)
{
	TRY(memory_grow(&rows->columns, &rows->column_room, rows->size + 1, sizeof *rows->columns, "words"));
	TRY(memory_grow(&rows->values, &rows->value_room, rows->size + 1, sizeof *rows->values, "words"));
	rows->columns[rows->size] = column;
	rows->values[rows->size++] = value;
	return OK;
}

static enum status end_row(struct word_vectors *rows)
{
	TRY(memory_grow(&rows->starts, &rows->start_room, rows->count + 2, sizeof *rows->starts, "texts"));
	rows->starts[0] = 0;
	rows->starts[++rows->count] = rows->size;
	return OK;
}

/* ---- Words ---- */

struct reader {
	struct word_vectors *out;
	struct tokens scratch;
	uint64_t last; /* the word before; 0: none */
};

static enum status put_word(void *context, const char *word, size_t bytes)
{
	struct reader *reader = context;
	uint64_t hash = hash64(word, bytes);
	TRY(put(reader->out, (int32_t)(hash % BUCKETS), 1));
	if (reader->last)
		TRY(put(reader->out, (int32_t)(hash64_combine(reader->last, hash) % BUCKETS), 1));
	reader->last = hash;
	return OK;
}

static int by_column(const void *a, const void *b)
{
	return *(const int32_t *)a - *(const int32_t *)b;
}

/* Appends how often a text has each word and each pair of neighbors. */
static enum status count_words(struct reader *reader, const char *text)
{
	struct word_vectors *out = reader->out;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	int64_t begin = out->size, end = begin;
	reader->last = 0;
	TRY(tokenizer_words(&settings, text, strnlen(text, MOST_BYTES), &reader->scratch, put_word, reader));
	if (out->size > begin)
		qsort(out->columns + begin, (size_t)(out->size - begin), sizeof *out->columns, by_column);
	for (int64_t i = begin; i < out->size; i++) {
		bool same = end > begin && out->columns[end - 1] == out->columns[i];
		end += !same;
		out->columns[end - 1] = out->columns[i];
		out->values[end - 1] = same ? out->values[end - 1] + 1 : 1;
	}
	out->size = end;
	return end_row(out);
}

/* The texts of every `step`-th example, two of each if they are pairs. */
static enum status read_texts(const struct example_set *examples, int64_t step, bool pairs, struct word_vectors *out)
{
	struct reader reader = {.out = out};
	enum status status = OK;
	for (int64_t i = 0; i < examples->count && status == OK; i += step) {
		const struct example_text *example = &examples->examples[i];
		status = count_words(&reader, example->text);
		if (status == OK && pairs)
			status = count_words(&reader, example->pair ? example->pair : "");
	}
	tokens_release(&reader.scratch);
	return status;
}

/* ---- TF-IDF ---- */

struct lexicon {
	int32_t *columns; /* [BUCKETS] -1: unknown */
	int32_t *uses;    /* [BUCKETS] number of texts */
	int64_t width, texts;
};

static void lexicon_release(struct lexicon *lexicon)
{
	free(lexicon->columns);
	free(lexicon->uses);
}

/* The `most` words that most texts have. */
static enum status make_lexicon(const struct word_vectors *texts, int64_t most, struct lexicon *out)
{
	int32_t least = 0;
	TRY(memory_new(&out->columns, BUCKETS, sizeof *out->columns, "words"));
	TRY(memory_new(&out->uses, BUCKETS, sizeof *out->uses, "words"));
	out->texts = texts->count;
	for (int64_t i = 0; i < texts->size; i++)
		out->uses[texts->columns[i]]++;
	do {
		out->width = 0;
		least++;
		for (int32_t i = 0; i < BUCKETS; i++)
			out->columns[i] = out->uses[i] >= least ? (int32_t)out->width++ : -1;
	} while (out->width > most);
	return OK;
}

/* Turns counts into vectors of length 1. */
static void weigh(const struct lexicon *lexicon, struct word_vectors *texts)
{
	int64_t to = 0, from = 0;
	for (int64_t t = 0; t < texts->count; t++) {
		double sum = 0;
		int64_t begin = to;
		for (; from < texts->starts[t + 1]; from++) {
			int32_t bucket = texts->columns[from];
			if (lexicon->columns[bucket] < 0)
				continue;
			texts->columns[to] = lexicon->columns[bucket];
			double weight = log((1 + (double)lexicon->texts) / (1 + lexicon->uses[bucket])) + 1;
			texts->values[to] = texts->values[from] * (float)weight;
			sum += (double)texts->values[to] * texts->values[to];
			to++;
		}
		for (int64_t i = begin; i < to; i++)
			texts->values[i] /= (float)sqrt(sum);
		texts->starts[t + 1] = to;
	}
	texts->size = to;
}

enum status word_vectors_make(struct word_vectors *out, const char *const *texts, int64_t count)
{
	struct reader reader = {.out = out};
	struct lexicon lexicon = {0};
	enum status status = OK;
	for (int64_t i = 0; i < count && status == OK; i++)
		status = count_words(&reader, texts[i]);
	if (status == OK)
		status = make_lexicon(out, BUCKETS, &lexicon);
	if (status == OK)
		weigh(&lexicon, out);
	tokens_release(&reader.scratch);
	lexicon_release(&lexicon);
	return status;
}

double word_vectors_dot(const struct word_vectors *vectors, int64_t a, int64_t b)
{
	const int64_t *starts = vectors->starts;
	double sum = 0;
	for (int64_t i = starts[a], k = starts[b]; i < starts[a + 1] && k < starts[b + 1];) {
		int32_t left = vectors->columns[i], right = vectors->columns[k];
		if (left == right)
			sum += (double)vectors->values[i] * vectors->values[k];
		i += left <= right;
		k += right <= left;
	}
	return sum;
}

enum status words_alone_cosines(const struct task_state *state, const struct task_set *set, struct measures *out)
{
	const struct example_set *examples = &set->examples;
	struct task_outputs answers = {.count = examples->count};
	struct word_vectors vectors = {0};
	const char **texts = NULL;
	int64_t count = 0, most = 2 * examples->count + examples->choice_count;
	enum status status;
	TRY_GOTO(memory_new(&texts, most, sizeof *texts, "texts"), done);
	TRY_GOTO(memory_new(&answers.starts, answers.count + 1, sizeof *answers.starts, "answers"), done);
	TRY_GOTO(memory_new(&answers.values, most, sizeof *answers.values, "answers"), done);
	for (int64_t n = 0; n < answers.count; n++)
		count += example_texts(examples, n, texts + count);
	TRY_GOTO(word_vectors_make(&vectors, texts, count), done);
	for (int64_t n = 0, first = 0; n < answers.count; n++) {
		int64_t others = example_texts(examples, n, texts) - 1;
		answers.starts[n + 1] = answers.starts[n] + others;
		for (int64_t k = 0; k < others; k++)
			answers.values[answers.starts[n] + k] = (float)word_vectors_dot(&vectors, first, first + 1 + k);
		first += 1 + others;
	}
	status = state->task->score(state, set, &answers, out);
done:
	word_vectors_release(&vectors);
	free(texts);
	free(answers.starts);
	free(answers.values);
	return status;
}

/* |a - b|, a * b, and the cosine. */
static enum status put_pair(const struct word_vectors *texts, int64_t first, int64_t width, struct word_vectors *out)
{
	const int64_t *ends = texts->starts + first + 1;
	int64_t a = ends[-1], b = ends[0];
	double cosine = 0;
	while (a < ends[0] || b < ends[1]) {
		int32_t of_a = a < ends[0] ? texts->columns[a] : INT32_MAX, of_b = b < ends[1] ? texts->columns[b] : INT32_MAX;
		float value = (of_a <= of_b ? texts->values[a] : 0) - (of_b <= of_a ? texts->values[b] : 0);
		TRY(put(out, of_a < of_b ? of_a : of_b, fabsf(value)));
		if (of_a == of_b) {
			float product = texts->values[a] * texts->values[b];
			TRY(put(out, (int32_t)width + of_a, product));
			cosine += product;
		}
		a += of_a <= of_b;
		b += of_b <= of_a;
	}
	TRY(put(out, (int32_t)(2 * width), (float)cosine));
	return end_row(out);
}

static enum status pair_up(struct word_vectors *texts, int64_t width)
{
	struct word_vectors pairs = {0};
	enum status status = OK;
	for (int64_t i = 0; i < texts->count && status == OK; i += 2)
		status = put_pair(texts, i, width, &pairs);
	word_vectors_release(texts);
	*texts = pairs;
	return status;
}

/* ---- Regression ---- */

struct regression {
	const struct task_state *state;
	const struct task_set *train, *set;
	struct lexicon lexicon;
	int64_t outputs, width;
	bool pairs;
	float *weights, *biases; /* [outputs * width], [outputs] */
};

/* The features of every `step`-th example of a set. The lexicon is made from the first set. */
static enum status make_features(struct regression *regression, const struct task_set *set, int64_t step,
				 struct word_vectors *out)
{
	struct lexicon *lexicon = &regression->lexicon;
	int64_t most = MOST_WEIGHTS / regression->outputs / (regression->pairs ? 2 : 1);
	TRY(read_texts(&set->examples, step, regression->pairs, out));
	if (!lexicon->columns)
		TRY(make_lexicon(out, most, lexicon));
	regression->width = regression->pairs ? 2 * lexicon->width + 1 : lexicon->width;
	weigh(lexicon, out);
	return regression->pairs ? pair_up(out, lexicon->width) : OK;
}

/* One in how many examples is used. */
static int64_t find_step(const struct regression *regression)
{
	const struct example_set *examples = &regression->train->examples;
	int64_t bytes = 0;
	for (int64_t i = 0; i < examples->count; i++) {
		const struct example_text *example = &examples->examples[i];
		bytes += (int64_t)(strnlen(example->text, MOST_BYTES) + (example->pair ? strnlen(example->pair, MOST_BYTES) : 0));
	}
	return bytes * regression->outputs / MOST_TEXT + 1;
}

static enum status fit(struct regression *regression)
{
	const struct task_set *train = regression->train;
	const struct labeled_items *items = &train->encoded.items[0];
	int64_t outputs = regression->outputs, step = find_step(regression), used = (train->examples.count + step - 1) / step;
	struct word_vectors rows = {0};
	int32_t *classes = NULL;
	float *values = NULL;
	enum status status;
	TRY_GOTO(make_features(regression, train, step, &rows), done);
	TRY_GOTO(memory_new(&classes, used, sizeof *classes, "labels"), done);
	TRY_GOTO(memory_new(&values, used * outputs, sizeof *values, "labels"), done);
	for (int64_t i = 0; i < used; i++) {
		int64_t example = task_example_of(train, i * step);
		if (items->values)
			memcpy(values + i * outputs, items->numbers + example * outputs, (size_t)outputs * sizeof *values);
		else
			classes[i] = items->classes[example];
	}
	TRY_GOTO(memory_new(&regression->weights, outputs * regression->width, sizeof *values, "weights of words"), done);
	TRY_GOTO(memory_new(&regression->biases, outputs, sizeof *values, "weights of words"), done);
	status = logistic_fit(&(struct logistic_examples){.count = used,
							  .width = regression->width,
							  .outputs = outputs,
							  .vectors = rows.values,
							  .starts = rows.starts,
							  .columns = rows.columns,
							  .classes = items->values ? NULL : classes,
							  .values = values,
							  .squared = regression->state->task->target == TARGET_NUMBER,
							  .tolerance = 1e-4},
			      regression->weights, regression->biases);
done:
	word_vectors_release(&rows);
	free(classes);
	free(values);
	return status;
}

static enum status score(struct regression *regression, struct measures *out)
{
	const struct task_set *set = regression->set;
	int64_t outputs = regression->outputs;
	struct word_vectors rows = {0};
	struct task_outputs answers = {.count = set->examples.count};
	enum status status;
	TRY_GOTO(make_features(regression, set, 1, &rows), done);
	TRY_GOTO(memory_new(&answers.starts, answers.count + 1, sizeof *answers.starts, "answers"), done);
	TRY_GOTO(memory_new(&answers.values, answers.count * outputs, sizeof *answers.values, "answers"), done);
	for (int64_t n = 0; n <= answers.count; n++)
		answers.starts[n] = n * outputs;
	for (int64_t n = 0; n < answers.count; n++)
		for (int64_t k = 0; k < outputs; k++) {
			double z = regression->biases[k];
			for (int64_t i = rows.starts[n]; i < rows.starts[n + 1]; i++)
				z += (double)regression->weights[k * regression->width + rows.columns[i]] * rows.values[i];
			answers.values[n * outputs + k] = (float)z;
		}
	status = regression->state->task->score(regression->state, set, &answers, out);
done:
	word_vectors_release(&rows);
	free(answers.starts);
	free(answers.values);
	return status;
}

enum status words_alone(const struct task_state *state, const struct task_set *train, const struct task_set *set,
			struct measures *out)
{
	int64_t outputs = state->task->target == TARGET_NUMBER ? 1 : state->labels.count;
	struct regression regression = {.state = state, .train = train, .set = set, .outputs = outputs, .pairs = state->pairs};
	if (outputs < 1 || outputs > MOST_OUTPUTS || train->examples.count < 1 || set->examples.count < 1)
		return OK;
	enum status status = fit(&regression);
	if (status == OK)
		status = score(&regression, out);
	lexicon_release(&regression.lexicon);
	free(regression.weights);
	free(regression.biases);
	return status;
}
