/* Whole training steps, for comparison with a peer on the same shapes or the same batches.
 *
 *   step CONFIG.json|SIZE PRECISION THREADS SEQUENCES LENGTH [mixed]   sequences of LENGTH random words, or with the mixed
 *                                                                      lengths of Wikipedia's instances up to LENGTH
 *   step CONFIG.json|SIZE PRECISION THREADS BATCHES.safetensors        batches of real text (dev/dump_batches), cycled through
 *
 * PRECISION is fp32 or bf16; on a GPU (BERTC_DEVICE=cuda) tf32, fp16 and fp8 too.
 *
 * Reads numbers from standard input; for each number N, runs N steps (forward, loss, backward, clipping, AdamW, dropout
 * 0.1) and prints the seconds that each step took on one line.
 * Build: make build/bench/step */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/pretraining/instances.h"
#include "formats/safetensors.h"
#include "run/benchmark.h"
#include "weights/model_folder.h"
#include "backend/open.h"

/* Looks up a tensor such as "step7.ids"; *count receives its number of elements. */
static enum status field(const struct safetensors *file, int64_t step, const char *name, const int32_t **out, int32_t *count)
{
	char full[64];
	snprintf(full, sizeof full, "step%lld.%s", (long long)step, name);
	const struct safetensors_entry *entry = safetensors_find(file, full);
	if (!entry || entry->dtype != ST_I32)
		return error_set(ERR_DATA, "the batches have no '%s' of int32", full);
	*out = entry->data;
	*count = (int32_t)entry->count;
	return OK;
}

static enum status batch_read(const struct safetensors *file, int64_t step, struct batch *out)
{
	const int32_t *ids = NULL, *types = NULL, *positions = NULL, *starts = NULL, *rows = NULL, *labels = NULL, *next = NULL;
	int32_t tokens = 0, predictions = 0, sequences = 0, ignored;
	TRY(field(file, step, "ids", &ids, &tokens));
	TRY(field(file, step, "types", &types, &ignored));
	TRY(field(file, step, "positions", &positions, &ignored));
	TRY(field(file, step, "starts", &starts, &ignored));
	TRY(field(file, step, "rows", &rows, &predictions));
	TRY(field(file, step, "labels", &labels, &ignored));
	TRY(field(file, step, "next", &next, &sequences));
	struct batch_capacity capacity = instance_capacity(tokens, sequences, predictions);
	TRY(batch_create(out, &capacity));
	struct batch_labels *words = &out->labels[HEAD_MASKED_WORDS], *following = &out->labels[HEAD_NEXT_SENTENCE];
	out->token_count = tokens;
	out->sequence_count = out->example_count = following->count = sequences;
	words->count = predictions;
	memcpy(out->ids, ids, (size_t)tokens * sizeof *ids);
	memcpy(out->types, types, (size_t)tokens * sizeof *ids);
	memcpy(out->positions, positions, (size_t)tokens * sizeof *ids);
	memcpy(out->starts, starts, (size_t)(sequences + 1) * sizeof *ids);
	memcpy(words->rows, rows, (size_t)predictions * sizeof *ids);
	memcpy(words->classes, labels, (size_t)predictions * sizeof *ids);
	memcpy(following->classes, next, (size_t)sequences * sizeof *ids);
	for (int32_t p = 0; p < predictions; p++)
		words->weights[p] = 1;
	out->example_starts[sequences] = sequences;
	for (int32_t s = 0; s < sequences; s++) {
		out->samples[s] = (uint32_t)s;
		out->example_starts[s] = s;
		following->weights[s] = 1;
		for (int32_t t = starts[s]; t < starts[s + 1]; t++)
			out->token_samples[t] = (uint32_t)s;
		if (starts[s + 1] - starts[s] > out->longest)
			out->longest = starts[s + 1] - starts[s];
	}
	return benchmark_order(out);
}

static enum status batches_read(const char *path, struct batch **out, int64_t *out_count)
{
	struct safetensors file;
	TRY(safetensors_open(&file, path));
	int64_t first = INT64_MAX, count = 0;
	for (int64_t i = 0; i < file.count; i++) {
		const char *dot = strchr(file.entries[i].name, '.');
		int64_t step = atoll(file.entries[i].name + strlen("step"));
		if (!dot || strcmp(dot, ".ids") != 0)
			continue;
		first = step < first ? step : first;
		count++;
	}
	enum status status;
	TRY_GOTO(memory_new(out, count, sizeof **out, "batches"), done);
	for (int64_t i = 0; i < count; i++)
		TRY_GOTO(batch_read(&file, first + i, &(*out)[i]), done);
	*out_count = count;
done:
	safetensors_close(&file);
	return status;
}

static void widen(struct batch_capacity *capacity, int32_t *longest, const struct batch *batch)
{
	struct batch_capacity own = batch_capacity_of(batch);
	batch_capacity_grow(capacity, &own);
	if (batch->longest > *longest)
		*longest = batch->longest;
}

static enum status bench(int argc, char **argv)
{
	struct model_config config;
	struct pool *pool;
	struct backend *be;
	struct benchmark benchmark;
	struct batch one = {0}, *batches = &one;
	struct batch_capacity capacity = {0};
	int32_t longest = 0;
	int64_t count = 1, next = 0, tokens = 0;
	TRY(model_size_or_folder_config(argv[1], &config));
	if (config.vocab_size == 0)
		config.vocab_size = 30522;
	TRY(pool_create(&pool, atoi(argv[3])));
	bool fp8 = strcmp(argv[2], "fp8") == 0;
	enum dtype dtype = fp8 || strcmp(argv[2], "bf16") == 0 ? DTYPE_BF16
			   : strcmp(argv[2], "fp16") == 0      ? DTYPE_F16
							       : DTYPE_F32;
	const char *device = getenv("BERTC_DEVICE");
	TRY(backend_open(&be, &(struct backend_settings){.device = device ? device : "cpu",
							 .dtype = dtype,
							 .tf32 = strcmp(argv[2], "tf32") == 0,
							 .fp8 = fp8,
							 .pool = pool}));
	if (argc > 5)
		TRY(benchmark_batch(&one, &config, atoi(argv[4]), atoi(argv[5]), argc > 6 ? LENGTHS_WIKIPEDIA : LENGTHS_FULL));
	else
		TRY(batches_read(argv[4], &batches, &count));
	for (int64_t i = 0; i < count; i++) {
		widen(&capacity, &longest, &batches[i]);
		tokens += batches[i].token_count;
	}
	TRY(benchmark_open(&benchmark, be, &config, capacity, longest, true));
	fprintf(stderr, "%s, %s, %lld batches, %lld tokens\n", be->description, argv[2], (long long)count, (long long)tokens);
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		for (int steps = atoi(line); steps > 0; steps--) {
			double started = clock_seconds();
			TRY(benchmark_step(&benchmark, &batches[next++ % count], 1, NULL));
			printf("%.6f ", clock_seconds() - started);
		}
		printf("\n");
		fflush(stdout);
	}
	return OK;
}

int main(int argc, char **argv)
{
	if (argc < 5 || argc > 7) {
		fprintf(stderr, "usage: step CONFIG|SIZE fp32|bf16 THREADS (SEQUENCES LENGTH [mixed] | BATCHES.safetensors)\n");
		return 2;
	}
	enum status status = bench(argc, argv);
	if (status != OK)
		fprintf(stderr, "step: %s\n", error_last()->message);
	return (int)status;
}
