#include "run/waves.h"

#include <math.h>
#include <stdbool.h>

#define TILE_ROWS 128
#define TILE_COLUMNS 256
/* FLOPs that an H100 or H200 does in its products while its memory gives a byte: 700 TFLOP/s beside 4.3 TB/s. */
#define FLOPS_A_BYTE 160.0
/* A gradient in fp32, read and written. */
#define GRADIENT_BYTES 8.0
/* Capacities that are looked at. */
#define CAPACITY_STEP 32

static int64_t pieces(int64_t count, int64_t each)
{
	return (count + each - 1) / each;
}

/* Columns of a product's output and the terms of each element's sum. */
struct wide {
	int64_t columns, terms;
};

#define PRODUCTS 8

/* Forward and the gradient of x: query, key and value; the output of attention; the two of the feed-forward network. */
static void products_of(const struct wave_model *m, struct wide out[PRODUCTS])
{
	const struct wide layers[] = {
		{3 * m->hidden, m->hidden}, {m->hidden, m->hidden}, {m->intermediate, m->hidden}, {m->hidden, m->intermediate}};
	for (int i = 0; i < PRODUCTS / 2; i++) {
		out[2 * i] = layers[i];
		out[2 * i + 1] = (struct wide){.columns = layers[i].terms, .terms = layers[i].columns};
	}
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

int64_t waves_quantum(const struct wave_model *model)
{
	struct wide products[PRODUCTS];
	int64_t rows = 1; /* of tiles */
	products_of(model, products);
	for (int i = 0; i < PRODUCTS; i++) {
		int64_t own = model->processors / common_divisor(model->processors, pieces(products[i].columns, TILE_COLUMNS));
		rows = rows / common_divisor(rows, own) * own;
	}
	return rows * TILE_ROWS;
}

/* Of the products with one row per token: the waves they take, and what their tiles are of these. */
static double waves_of(const struct wave_model *model, int64_t tokens, double *out_tiles)
{
	struct wide products[PRODUCTS];
	double waves = 0;
	*out_tiles = 0;
	products_of(model, products);
	for (int i = 0; i < PRODUCTS; i++) {
		double tile = 2.0 * TILE_ROWS * TILE_COLUMNS * (double)products[i].terms;
		int64_t tiles = pieces(tokens, TILE_ROWS) * pieces(products[i].columns, TILE_COLUMNS);
		waves += tile * (double)(pieces(tiles, model->processors) * model->processors);
		*out_tiles += tile * (double)tiles;
	}
	return waves;
}

double waves_cost(const struct wave_model *model, int64_t tokens)
{
	double weights = (double)model->hidden * (double)(4 * model->hidden + 2 * model->intermediate), tiles;
	return waves_of(model, tokens, &tiles) + 2 * weights * (double)tokens + GRADIENT_BYTES * FLOPS_A_BYTE * weights;
}

double waves_filled(const struct wave_model *model, int64_t tokens)
{
	double tiles, waves = waves_of(model, tokens, &tiles);
	return waves > 0 ? tiles / waves : 1;
}

/* Are some instances shorter than the longest? */
static bool varies(const struct wave_work *work)
{
	return work->mean < 0.999 * work->longest;
}

static int32_t filled(const struct wave_work *work, double tokens)
{
	int32_t count = (int32_t)ceil(tokens);
	return work->filled ? work->filled(count, (int32_t)ceil(tokens / work->mean), work->longest) : count;
}

int32_t waves_shape(const struct wave_work *work, int64_t capacity)
{
	if (!varies(work))
		return filled(work, (double)(capacity / work->longest * work->longest));
	/* What is filled up already stays; a token less may be filled up further. */
	int32_t whole = filled(work, (double)capacity), less = filled(work, (double)capacity - 1);
	return whole > less ? whole : less;
}

/* Of a step with so many tokens. Instances are taken in their order until the next finds no room: that leaves half of the longest
 * empty on average if their lengths vary, else what is no multiple of them. */
static double step_cost(const struct wave_model *model, const struct wave_work *work, int64_t capacity, double tokens)
{
	double full = varies(work) ? (double)capacity - work->longest / 2.0 : (double)(capacity / work->longest * work->longest);
	double count = floor(tokens / full), rest = tokens - count * full;
	double cost = count * waves_cost(model, waves_shape(work, capacity));
	return rest >= 1 ? cost + waves_cost(model, filled(work, rest)) : cost;
}

int64_t waves_choose(const struct wave_model *model, const struct wave_work *work)
{
	double tokens = (double)work->instances * work->mean, best = INFINITY;
	/* The most that lengths up to the longest can vary around their mean. */
	double spread = sqrt((double)work->instances * work->mean * (work->longest - work->mean));
	int64_t step = varies(work) ? CAPACITY_STEP : work->longest, chosen = work->most;
	int deviations = varies(work) ? 1 : 0;
	for (int64_t capacity = pieces(work->longest, step) * step; capacity <= work->most; capacity += step) {
		double cost = 0;
		for (int i = -deviations; i <= deviations; i++)
			cost += step_cost(model, work, capacity, fmax(tokens + i * spread, work->longest));
		if (cost < best) {
			best = cost;
			chosen = capacity;
		}
	}
	return chosen;
}
