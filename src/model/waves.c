/* Computes what a micro-batch of a given size costs in waves of tiles, and chooses the best size. */
#include "model/waves.h"

#include <math.h>
#include <stdbool.h>

#define TILE_ROWS 128
#define TILE_COLUMNS 256
/* FLOPs of matrix products that an H100 or H200 does in the time its memory transfers one byte: 700 TFLOP/s and 4.3 TB/s. */
#define FLOPS_A_BYTE 160.0
/* A gradient in fp32, read and written. */
#define GRADIENT_BYTES 8.0
/* Capacities considered are multiples of this. */
#define CAPACITY_STEP 32

static int64_t pieces(int64_t count, int64_t each)
{
	return (count + each - 1) / each;
}

/* Columns of a product's output, and number of terms summed for each of its elements. */
struct wide {
	int64_t columns, terms;
};

#define PRODUCTS 8

/* The forward product and the one for the gradient of x, of these layers: query, key and value; attention output; the two of the
 * feed-forward network. */
static void products_of(const struct wave_model *m, struct wide out[PRODUCTS])
{
	const struct wide layers[] = {
		{3 * m->hidden, m->hidden}, {m->hidden, m->hidden}, {m->intermediate, m->hidden}, {m->hidden, m->intermediate}};
	for (int i = 0; i < PRODUCTS / 2; i++) {
		out[2 * i] = layers[i];
		out[2 * i + 1] = (struct wide){.columns = layers[i].terms, .terms = layers[i].columns};
	}
}

/* FLOPs that the waves of the products with one row per token could do, and those that their tiles contain. */
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

int64_t waves_fullest(const struct wave_model *model, int64_t least)
{
	int64_t best = pieces(least, TILE_ROWS) * TILE_ROWS;
	for (int64_t tokens = best; tokens <= 2 * least; tokens += TILE_ROWS)
		best = waves_filled(model, tokens) > waves_filled(model, best) ? tokens : best;
	return best;
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
	/* A full micro-batch may need no padding, while one with a token less is padded further. */
	int32_t whole = filled(work, (double)capacity), less = filled(work, (double)capacity - 1);
	return whole > less ? whole : less;
}

/* Cost of a step of `tokens`. Instances are taken in order until the next one does not fit. If lengths vary, that leaves half of
 * the longest length empty on average; otherwise, the remainder of the division by the length. */
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
	/* The largest standard deviation of the total that lengths up to the longest can have. */
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
