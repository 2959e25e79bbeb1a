/* The factor that gelu multiplies its argument by, and gelu's derivative, as tables of cubic polynomials, for results that
 * will be rounded to bf16. Both are 1/2 plus an odd function f of x; f(|x|) is split into pieces of width 1 / GELU_SCALE, with
 * coefficients that fit into two registers each. The error is at most 2.1e-7, and 1.1e-6 for the derivative, at half the
 * operations of an exponential. */
#ifndef BACKEND_CPU_GELU_TABLE_H
#define BACKEND_CPU_GELU_TABLE_H

#define GELU_PIECES 32
#define GELU_SCALE 5.5f

/* f(|x|) = c[0][i] + c[1][i] r + c[2][i] r^2 + c[3][i] r^3, where i is the integer nearest to GELU_SCALE |x| and r the
 * remainder; from the last i on f is 1/2. */
struct gelu_table {
	_Alignas(64) float c[4][GELU_PIECES];
};

/* [erf, tanh form][factor, derivative] */
extern struct gelu_table gelu_tables[2][2];

/* Fills the tables, once per process. */
void gelu_tables_fill(void);

#endif
