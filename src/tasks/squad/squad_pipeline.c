/* Answers as in transformers' pipeline. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "tasks/squad/squad_answers.h"
#include "text/python_text.h"

/* Twice the number of answers asked for, which is one, plus 10. */
#define STRETCHES 12

void squad_pipeline_begin(struct squad_pipeline *pipeline, const struct squad_features *features, int64_t question,
			  int32_t max_answer_length)
{
	pipeline->features = features;
	pipeline->paragraph = features->set->questions[question].paragraph;
	pipeline->max_answer_length = max_answer_length;
	pipeline->count = 0;
	pipeline->null_score = 1;
}

void squad_pipeline_release(struct squad_pipeline *pipeline)
{
	free(pipeline->answers);
	buffer_release(&pipeline->lower);
	buffer_release(&pipeline->other);
	*pipeline = (struct squad_pipeline){.count = 0};
}

/* Softmax, exp(logit - largest) / sum, over [CLS] and rows first to first + count - 1. */
struct softmax {
	double largest, sum;
};

static struct softmax softmax_over(const double *logits, int32_t first, int32_t count)
{
	struct softmax s = {logits[0], 0};
	for (int32_t row = first; row < first + count; row++)
		s.largest = fmax(s.largest, logits[row]);
	s.sum = exp(logits[0] - s.largest);
	for (int32_t row = first; row < first + count; row++)
		s.sum += exp(logits[row] - s.largest);
	return s;
}

static double probability(struct softmax s, double logit)
{
	return exp(logit - s.largest) / s.sum;
}

/* A range of rows of a window. */
struct stretch_of_rows {
	double score;
	int32_t start, end;
};

/* Adds to the list of the best ones, in descending order. */
static void keep(struct stretch_of_rows *best, int *count, struct stretch_of_rows stretch)
{
	int place = *count < STRETCHES ? *count : STRETCHES - 1;
	if (*count == STRETCHES && !(stretch.score > best[place].score))
		return;
	for (; place > 0 && stretch.score > best[place - 1].score; place--)
		best[place] = best[place - 1];
	best[place] = stretch;
	*count += *count < STRETCHES;
}

/* The bytes of a span after widening it to whole words, in the tokenizer's sense and as far as the window contains them. */
static struct squad_pipeline_answer widen(const struct squad_pipeline *pipeline, const struct squad_window *window,
					  const struct stretch_of_rows *stretch, int32_t first_row)
{
	const struct squad_features *f = pipeline->features;
	const struct vocab *vocab = tokenizer_vocab(f->tokenizer);
	int64_t begin = f->token_starts[pipeline->paragraph] + window->first, end = begin + window->length;
	int64_t first = begin + stretch->start - first_row, last = begin + stretch->end - first_row;
	while (first > begin && vocab->is_continuation[f->token_ids[first]])
		first--;
	while (last + 1 < end && vocab->is_continuation[f->token_ids[last + 1]])
		last++;
	return (struct squad_pipeline_answer){stretch->score, f->token_begins[first], f->token_ends[last]};
}

/* Adds the score to that of an equal answer, or adds a new answer. */
static enum status add_answer(struct squad_pipeline *p, struct squad_pipeline_answer answer)
{
	const char *text = p->features->set->paragraphs[p->paragraph].text;
	buffer_clear(&p->lower);
	python_lower(&p->lower, text + answer.begin, (size_t)(answer.end - answer.begin));
	TRY(buffer_status(&p->lower));
	for (int64_t i = 0; i < p->count; i++) {
		struct squad_pipeline_answer *other = &p->answers[i];
		buffer_clear(&p->other);
		python_lower(&p->other, text + other->begin, (size_t)(other->end - other->begin));
		TRY(buffer_status(&p->other));
		if (p->other.size == p->lower.size && memcmp(p->other.data, p->lower.data, p->lower.size) == 0) {
			other->score += answer.score;
			return OK;
		}
	}
	TRY(memory_grow(&p->answers, &p->capacity, p->count + 1, sizeof *p->answers, "answers"));
	p->answers[p->count++] = answer;
	return OK;
}

enum status squad_pipeline_window(struct squad_pipeline *pipeline, int64_t window, const double *start, const double *end)
{
	const struct squad_window *w = &pipeline->features->windows[window];
	int32_t first = squad_window_size(pipeline->features, window) - 1 - w->length, limit = first + w->length;
	struct softmax starts = softmax_over(start, first, w->length), ends = softmax_over(end, first, w->length);
	struct stretch_of_rows best[STRETCHES];
	int count = 0;
	pipeline->null_score = fmin(pipeline->null_score, probability(starts, start[0]) * probability(ends, end[0]));
	for (int32_t i = first; i < limit; i++) {
		double p = probability(starts, start[i]);
		for (int32_t j = i; j < limit && j < i + pipeline->max_answer_length; j++)
			keep(best, &count, (struct stretch_of_rows){p * probability(ends, end[j]), i, j});
	}
	for (int i = 0; i < count; i++)
		TRY(add_answer(pipeline, widen(pipeline, w, &best[i], first)));
	return OK;
}

struct squad_pipeline_answer squad_pipeline_best(const struct squad_pipeline *pipeline, bool handle_impossible)
{
	struct squad_pipeline_answer best = {0};
	for (int64_t i = 0; i < pipeline->count; i++)
		if (i == 0 || pipeline->answers[i].score > best.score)
			best = pipeline->answers[i];
	if (handle_impossible && (pipeline->count == 0 || pipeline->null_score > best.score))
		best = (struct squad_pipeline_answer){.score = pipeline->null_score};
	return best;
}
