/* Fits the cubic pieces of the GELU tables, once per process. */
#include "backend/cpu/gelu_table.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>

struct gelu_table gelu_tables[2][2];

static const double pi = 3.14159265358979323846;

/* gelu(x) / x, and gelu'(x). */
static void gelu_at(double x, bool tanh_form, double out[2])
{
	double slope;
	if (tanh_form) {
		double root = sqrt(2 / pi);
		out[0] = 1 / (1 + exp(-2 * root * (x + 0.044715 * x * x * x)));
		slope = out[0] * (1 - out[0]) * 2 * root * (1 + 3 * 0.044715 * x * x);
	} else {
		out[0] = erfc(-x / sqrt(2)) / 2;
		slope = exp(-x * x / 2) / sqrt(2 * pi);
	}
	out[1] = out[0] + x * slope;
}

/* The cubic polynomial through f at four Chebyshev points of the piece, by divided differences. */
static void fill_piece(struct gelu_table tables[2], bool tanh_form, int piece)
{
	enum { POINTS = 4 };
	double r[POINTS], f[2][POINTS];
	for (int i = 0; i < POINTS; i++) {
		double value[2];
		r[i] = cos((2 * i + 1) * pi / (2 * POINTS)) / 2;
		gelu_at((piece + r[i]) / (double)GELU_SCALE, tanh_form, value);
		for (int t = 0; t < 2; t++)
			f[t][i] = value[t] - 0.5;
	}
	for (int t = 0; t < 2; t++) {
		double *d = f[t], c[POINTS] = {0};
		for (int order = 1; order < POINTS; order++)
			for (int i = POINTS - 1; i >= order; i--)
				d[i] = (d[i] - d[i - 1]) / (r[i] - r[i - order]);
		/* Horner's rule on polynomials: c = c (r - r[i]) + d[i] */
		for (int i = POINTS - 1; i >= 0; i--) {
			for (int j = POINTS - 1; j > 0; j--)
				c[j] = c[j - 1] - c[j] * r[i];
			c[0] = d[i] - c[0] * r[i];
		}
		bool is_last = piece + 1 == GELU_PIECES;
		for (int j = 0; j < POINTS; j++)
			tables[t].c[j][piece] = is_last ? (j == 0 ? 0.5f : 0) : (float)c[j];
	}
}

static void fill(void)
{
	for (int form = 0; form < 2; form++)
		for (int piece = 0; piece < GELU_PIECES; piece++)
			fill_piece(gelu_tables[form], form == 1, piece);
}

void gelu_tables_fill(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, fill);
}
