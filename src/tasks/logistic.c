/* Logistic and ridge regression by L-BFGS (Nocedal 1980) in double precision. */
#include "tasks/logistic.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { KEPT = 10, STEPS = 1000, HALVINGS = 50 };
#define TOLERANCE 1e-8 /* where none is given */

struct fit {
	const struct logistic_examples *examples;
	int64_t outputs, size; /* sets of weights; all weights and biases: outputs rows of width + 1 */
	double *x, *g;         /* [size] the point and its gradient */
	double *next, *next_g, *direction;
	double *moves, *changes; /* [KEPT * size] of the last points and gradients */
	double *logits;          /* [outputs] of an example */
};

static double dot(const double *a, const double *b, int64_t count)
{
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Turns an example's logits into the loss's derivatives, and returns its loss. */
static double example_loss(const struct fit *fit, int64_t number)
{
	const struct logistic_examples *all = fit->examples;
	double *z = fit->logits, loss = 0, largest = z[0], sum = 0;
	bool alone = !all->classes || fit->outputs < all->outputs; /* sigmoids */
	for (int64_t k = 0; k < fit->outputs; k++) {
		if (all->squared) {
			z[k] -= all->values[number * all->outputs + k];
			loss += z[k] * z[k] / 2;
		} else if (alone) {
			double target = all->classes ? all->classes[number] : all->values[number * all->outputs + k];
			loss += (z[k] > 0 ? z[k] : 0) - target * z[k] + log1p(exp(-fabs(z[k])));
			z[k] = 1 / (1 + exp(-z[k])) - target;
		}
		largest = z[k] > largest ? z[k] : largest;
	}
	if (alone)
		return loss;
	int32_t right = all->classes[number];
	loss = largest - z[right];
	for (int64_t k = 0; k < fit->outputs; k++)
		sum += z[k] = exp(z[k] - largest);
	for (int64_t k = 0; k < fit->outputs; k++)
		z[k] = z[k] / sum - (k == right);
	return loss + log(sum);
}

static double objective(const struct fit *fit, const double *x, double *g)
{
	const struct logistic_examples *all = fit->examples;
	int64_t width = all->width, row = width + 1;
	double loss = 0;
	for (int64_t k = 0; k < fit->outputs; k++) {
		loss += dot(x + k * row, x + k * row, width) / 2;
		memcpy(g + k * row, x + k * row, (size_t)width * sizeof *g);
		g[k * row + width] = 0;
	}
	for (int64_t n = 0; n < all->count; n++) {
		int64_t begin = all->starts ? all->starts[n] : n * width;
		int64_t count = all->starts ? all->starts[n + 1] - begin : width;
		const int32_t *columns = all->starts ? all->columns + begin : NULL;
		const float *vector = all->vectors + begin;
		for (int64_t k = 0; k < fit->outputs; k++) {
			double z = x[k * row + width];
			for (int64_t i = 0; i < count; i++)
				z += x[k * row + (columns ? columns[i] : i)] * vector[i];
			fit->logits[k] = z;
		}
		loss += example_loss(fit, n);
		for (int64_t k = 0; k < fit->outputs; k++) {
			double d = fit->logits[k];
			for (int64_t i = 0; i < count; i++)
				g[k * row + (columns ? columns[i] : i)] += d * vector[i];
			g[k * row + width] += d;
		}
	}
	return loss;
}

/* The direction of descent after `done` steps: the gradient times the inverse of the Hessian that the last steps suggest. */
static void find_direction(struct fit *fit, int64_t done)
{
	double *d = fit->direction, shares[KEPT];
	int64_t size = fit->size, first = done > KEPT ? done - KEPT : 0;
	for (int64_t i = 0; i < size; i++)
		d[i] = -fit->g[i];
	for (int64_t s = done - 1; s >= first; s--) {
		const double *move = fit->moves + s % KEPT * size, *change = fit->changes + s % KEPT * size;
		shares[s % KEPT] = dot(move, d, size) / dot(move, change, size);
		for (int64_t i = 0; i < size; i++)
			d[i] -= shares[s % KEPT] * change[i];
	}
	if (done > 0) {
		const double *move = fit->moves + (done - 1) % KEPT * size, *change = fit->changes + (done - 1) % KEPT * size;
		double scale = dot(move, change, size) / dot(change, change, size);
		for (int64_t i = 0; i < size; i++)
			d[i] *= scale;
	}
	for (int64_t s = first; s < done; s++) {
		const double *move = fit->moves + s % KEPT * size, *change = fit->changes + s % KEPT * size;
		double back = shares[s % KEPT] - dot(change, d, size) / dot(move, change, size);
		for (int64_t i = 0; i < size; i++)
			d[i] += back * move[i];
	}
}

static double largest(const double *values, int64_t count)
{
	double most = 0;
	for (int64_t i = 0; i < count; i++)
		most = fmax(most, fabs(values[i]));
	return most;
}

static void minimize(struct fit *fit)
{
	int64_t size = fit->size, done = 0;
	double tolerance = fit->examples->tolerance > 0 ? fit->examples->tolerance : TOLERANCE;
	double loss = objective(fit, fit->x, fit->g);
	for (int step = 0; step < STEPS && largest(fit->g, size) > tolerance * (double)fit->examples->count; step++) {
		find_direction(fit, done);
		double slope = dot(fit->g, fit->direction, size), length = done > 0 ? 1 : 1 / sqrt(-slope), new_loss = INFINITY;
		for (int halving = 0; halving < HALVINGS; halving++, length /= 2) {
			for (int64_t i = 0; i < size; i++)
				fit->next[i] = fit->x[i] + length * fit->direction[i];
			new_loss = objective(fit, fit->next, fit->next_g);
			if (new_loss <= loss + 1e-4 * length * slope)
				break;
		}
		if (!(new_loss < loss)) /* as near as the numbers allow */
			return;
		double *move = fit->moves + done % KEPT * size, *change = fit->changes + done % KEPT * size;
		for (int64_t i = 0; i < size; i++) {
			move[i] = fit->next[i] - fit->x[i];
			change[i] = fit->next_g[i] - fit->g[i];
		}
		done += dot(move, change, size) > 0;
		memcpy(fit->x, fit->next, (size_t)size * sizeof *fit->x);
		memcpy(fit->g, fit->next_g, (size_t)size * sizeof *fit->g);
		loss = new_loss;
	}
}

enum status logistic_fit(const struct logistic_examples *examples, float *weights, float *biases)
{
	static const char what[] = "logistic regression";
	int64_t width = examples->width, rows = examples->classes && examples->outputs == 2 ? 1 : examples->outputs;
	struct fit fit = {.examples = examples, .outputs = rows, .size = rows * (width + 1)};
	double **const parts[] = {&fit.x, &fit.g, &fit.next, &fit.next_g, &fit.direction};
	enum status status = OK;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		TRY_GOTO(memory_new(parts[i], fit.size, sizeof **parts[i], what), done);
	TRY_GOTO(memory_new(&fit.moves, KEPT * fit.size, sizeof *fit.moves, what), done);
	TRY_GOTO(memory_new(&fit.changes, KEPT * fit.size, sizeof *fit.changes, what), done);
	TRY_GOTO(memory_new(&fit.logits, rows, sizeof *fit.logits, what), done);
	minimize(&fit);
	memset(weights, 0, (size_t)(examples->outputs * width) * sizeof *weights);
	memset(biases, 0, (size_t)examples->outputs * sizeof *biases);
	for (int64_t k = 0, to = examples->outputs - rows; k < rows; k++, to++) {
		for (int64_t i = 0; i < width; i++)
			weights[to * width + i] = (float)fit.x[k * (width + 1) + i];
		biases[to] = (float)fit.x[k * (width + 1) + width];
	}
done:
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		free(*parts[i]);
	free(fit.moves);
	free(fit.changes);
	free(fit.logits);
	return status;
}
