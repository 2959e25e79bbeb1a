#include "backend/cpu/attention.h"

#include <math.h>
#include "backend/dropout.h"
#include "base/pool.h"

size_t cpu_attention_workspace_bytes(const struct shape_limits *limits, int threads)
{
	return (size_t)threads * (size_t)round_up(limits->longest, 16) * (3 + 2 * CPU_ATTENTION_MAX_HEAD) * sizeof(float);
}

static float get(struct tensor t, int64_t row, int64_t column)
{
	int64_t index = row * t.columns + column;
	return t.dtype == DTYPE_F32 ? ((const float *)t.data)[index] : bf16_to_float(((const uint16_t *)t.data)[index]);
}

static void put(struct tensor t, int64_t row, int64_t column, float value)
{
	int64_t index = row * t.columns + column;
	if (t.dtype == DTYPE_F32)
		((float *)t.data)[index] = value;
	else
		((uint16_t *)t.data)[index] = float_to_bf16(value);
}

struct run {
	struct replica *r;
	const struct attention_fwd *fwd;
	const struct attention_bwd *bwd;
	int64_t longest;
};

static void keep_scales(const struct dropout *dropout, uint64_t seed, uint32_t head, uint32_t query, uint32_t sample,
			int64_t keys, float *scales)
{
	uint32_t threshold = dropout_threshold(dropout->p);
	float scale = (float)dropout_scale(dropout->p);
	uint16_t u[8];
	for (int64_t k = 0; k < keys; k++) {
		if (threshold && k % 8 == 0)
			dropout_block(seed, dropout_attention_counter(head, (uint32_t)k), query, dropout->site, sample, u);
		scales[k] = !threshold ? 1 : u[k % 8] < threshold ? 0 : scale;
	}
}

/* Scaled scores of one query. */
static void score_row(struct tensor qkv, int64_t start, int64_t query, int64_t keys, int64_t head, int64_t size,
		      float *scores)
{
	int64_t width = qkv.columns / 3;
	float scale = 1 / sqrtf((float)size);
	for (int64_t k = 0; k < keys; k++) {
		float sum = 0;
		for (int64_t i = 0; i < size; i++)
			sum += get(qkv, start + query, head * size + i) * get(qkv, start + k, width + head * size + i);
		scores[k] = sum * scale;
	}
}

static void forward_task(void *context, int64_t index, int worker)
{
	const struct run *run = context;
	const struct attention_fwd *a = run->fwd;
	int64_t head = index % a->heads, sequence = index / a->heads, width = a->y.columns, size = width / a->heads;
	int64_t start = a->batch->starts[sequence], keys = a->batch->starts[sequence + 1] - start;
	float *scores = (float *)run->r->workspace + worker * 3 * run->longest, *scales = scores + run->longest;
	for (int64_t q = 0; q < keys; q++) {
		score_row(a->qkv, start, q, keys, head, size, scores);
		float max = scores[0], sum = 0;
		for (int64_t k = 1; k < keys; k++)
			max = fmaxf(max, scores[k]);
		for (int64_t k = 0; k < keys; k++)
			sum += scores[k] = expf(scores[k] - max);
		keep_scales(&a->dropout, run->r->scalars->seed, (uint32_t)head, (uint32_t)q,
			    a->batch->samples[sequence], keys, scales);
		for (int64_t i = 0; i < size; i++) {
			float y = 0;
			for (int64_t k = 0; k < keys; k++)
				y += scores[k] / sum * scales[k] * get(a->qkv, start + k, 2 * width + head * size + i);
			put(a->y, start + q, head * size + i, y);
		}
		if (a->lse.data)
			((float *)a->lse.data)[head * a->lse.columns + start + q] = max + logf(sum);
	}
}

static void backward_task(void *context, int64_t index, int worker)
{
	const struct run *run = context;
	const struct attention_bwd *a = run->bwd;
	int64_t head = index % a->heads, sequence = index / a->heads, width = a->y.columns, size = width / a->heads;
	int64_t start = a->batch->starts[sequence], keys = a->batch->starts[sequence + 1] - start;
	float scale = 1 / sqrtf((float)size);
	int64_t stride = 3 * run->longest + 2 * CPU_ATTENTION_MAX_HEAD * run->longest;
	float *scores = (float *)run->r->workspace + worker * stride, *scales = scores + run->longest;
	float *dk = scores + 3 * run->longest, *dv = dk + size * run->longest;
	for (int64_t i = 0; i < keys * size; i++)
		dk[i] = dv[i] = 0;
	for (int64_t q = 0; q < keys; q++) {
		float lse = ((const float *)a->lse.data)[head * a->lse.columns + start + q], delta = 0;
		score_row(a->qkv, start, q, keys, head, size, scores);
		keep_scales(&a->dropout, run->r->scalars->seed, (uint32_t)head, (uint32_t)q,
			    a->batch->samples[sequence], keys, scales);
		for (int64_t i = 0; i < size; i++)
			delta += get(a->dy, start + q, head * size + i) * get(a->y, start + q, head * size + i);
		float dq[CPU_ATTENTION_MAX_HEAD] = {0};
		for (int64_t k = 0; k < keys; k++) {
			float p = expf(scores[k] - lse), dp = 0;
			for (int64_t i = 0; i < size; i++) {
				float dy = get(a->dy, start + q, head * size + i);
				dp += dy * get(a->qkv, start + k, 2 * width + head * size + i);
				dv[k * size + i] += p * scales[k] * dy;
			}
			float ds = p * (dp * scales[k] - delta) * scale;
			for (int64_t i = 0; i < size; i++) {
				dq[i] += ds * get(a->qkv, start + k, width + head * size + i);
				dk[k * size + i] += ds * get(a->qkv, start + q, head * size + i);
			}
		}
		for (int64_t i = 0; i < size; i++)
			put(a->dqkv, start + q, head * size + i, dq[i]);
	}
	for (int64_t k = 0; k < keys; k++)
		for (int64_t i = 0; i < size; i++) {
			put(a->dqkv, start + k, width + head * size + i, dk[k * size + i]);
			put(a->dqkv, start + k, 2 * width + head * size + i, dv[k * size + i]);
		}
}

static void bias_task(void *context, int64_t column, int worker)
{
	(void)worker;
	const struct attention_bwd *a = ((const struct run *)context)->bwd;
	float sum = 0, *gradient = (float *)a->bias->gradient.data + column;
	for (int64_t t = 0; t < a->dqkv.rows; t++)
		sum += get(a->dqkv, t, column);
	*gradient = a->overwrite ? sum : *gradient + sum;
}

void cpu_attention_fwd(struct replica *r, const struct attention_fwd *a)
{
	struct run run = {.r = r, .fwd = a, .longest = round_up(a->batch->longest, 16)};
	pool_run(r->backend->pool, (int64_t)a->batch->sequence_count * a->heads, forward_task, &run);
}

void cpu_attention_bwd(struct replica *r, const struct attention_bwd *a)
{
	struct run run = {.r = r, .bwd = a, .longest = round_up(a->batch->longest, 16)};
	pool_run(r->backend->pool, (int64_t)a->batch->sequence_count * a->heads, backward_task, &run);
	if (a->bias)
		pool_run(r->backend->pool, a->dqkv.columns, bias_task, &run);
}
