/* Packed rows: capacities and the arrays of a micro-batch. */
#include "data/batch.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

#define ROUNDING 128
/* A capacity given in tokens is shared by sequences of at least this many tokens on average; shorter ones
 * fill the sequence capacity first. */
#define TOKENS_PER_SEQUENCE 16

static int64_t round_up(int64_t count)
{
	return (count + ROUNDING - 1) / ROUNDING * ROUNDING;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

struct batch_capacity batch_capacity_for(const struct instance_settings *settings, int64_t batch_size, int32_t accumulation_steps,
					 int64_t token_limit)
{
	int64_t full = settings->max_seq_length, micro = batch_size;
	if (accumulation_steps > 0)
		micro = (batch_size + accumulation_steps - 1) / accumulation_steps;
	int64_t tokens = smaller(micro, INT32_MAX / 2 / full) * full;
	int64_t sequences = tokens / full;
	if (token_limit > 0 && tokens > token_limit) {
		tokens = token_limit > full ? token_limit : full;
		int64_t spread = tokens / TOKENS_PER_SEQUENCE;
		sequences = smaller(micro, spread > 0 ? spread : 1);
	}
	/* An instance of n tokens has at most n * p + 1 predictions. */
	int64_t most = sequences * instance_predictions(settings, settings->max_seq_length);
	int64_t usual = (int64_t)ceil((double)tokens * settings->masked_lm_prob) + sequences;
	return (struct batch_capacity){
		.tokens = (int32_t)tokens, .sequences = (int32_t)sequences, .predictions = (int32_t)smaller(most, usual)};
}

size_t batch_bytes(struct batch_capacity capacity)
{
	int64_t tokens = round_up(capacity.tokens), sequences = round_up((int64_t)capacity.sequences + 1);
	return (size_t)(5 * tokens + 3 * sequences + 3 * round_up(capacity.predictions)) * sizeof(int32_t);
}

enum status batch_create(struct batch *out, struct batch_capacity capacity)
{
	int64_t tokens = round_up(capacity.tokens), sequences = round_up((int64_t)capacity.sequences + 1);
	int64_t predictions = round_up(capacity.predictions);
	int32_t *next = NULL;
	memset(out, 0, sizeof(*out));
	TRY(memory_new(&next, (int64_t)(batch_bytes(capacity) / sizeof(*next)), sizeof(*next), "micro-batch"));
	out->ids = next;
	out->types = next += tokens;
	out->positions = next += tokens;
	out->id_order = next += tokens;
	out->token_samples = (uint32_t *)(next += tokens);
	out->starts = next += tokens;
	out->samples = (uint32_t *)(next += sequences);
	out->next_labels = next += sequences;
	out->prediction_rows = next += sequences;
	out->prediction_labels = next += predictions;
	out->prediction_weights = (float *)(void *)(next += predictions);
	return OK;
}

void batch_release(struct batch *batch)
{
	free(batch->ids);
	memset(batch, 0, sizeof(*batch));
}
