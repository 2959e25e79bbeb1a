/* Writes the batches of a run to a safetensors file, so that another program can train on exactly the same ones.
 *
 *   dump_batches PREFIX VOCAB SEED MAX_SEQ_LENGTH BATCH_SIZE FIRST_STEP STEPS OUT.safetensors [alone]
 *
 * With "alone", instances are one segment each, as for forms without a next-sentence head.
 *
 * Tensors (I32): step<N>.ids .types .positions .starts .rows .labels .next, packed as in struct batch.
 * Build: make build/dev/dump_batches */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/pretraining/instances.h"
#include "data/step_reader.h"
#include "formats/safetensors.h"
#include "text/vocab.h"

#define FIELDS 7

static enum status add(struct safetensors_entry *entry, int64_t step, const char *field, const int32_t *values, int64_t count)
{
	char name[64];
	int32_t *copy;
	snprintf(name, sizeof name, "step%lld.%s", (long long)step, field);
	TRY(memory_new(&copy, count, sizeof *copy, "batch"));
	memcpy(copy, values, (size_t)count * sizeof *copy);
	*entry = (struct safetensors_entry){.name = strdup(name),
					    .dtype = ST_I32,
					    .rank = 1,
					    .shape = {count},
					    .count = count,
					    .data = copy,
					    .bytes = (uint64_t)count * sizeof *copy};
	return OK;
}

static enum status dump(char **argv)
{
	struct shard shard;
	struct vocab vocab;
	struct instances *instances;
	struct step_reader *reader;
	int64_t first = atoll(argv[6]), steps = atoll(argv[7]), count = 0;
	bool pairs = !argv[9];
	TRY(vocab_read(&vocab, argv[2]));
	TRY(shard_open(&shard, argv[1]));
	struct instance_settings settings = {
		.seed = strtoull(argv[3], NULL, 10),
		.max_seq_length = atoi(argv[4]),
		.masked_lm_prob = 0.15,
		.short_seq_prob = 0.1,
		.shuffle = true,
		.vocab_size = vocab.count,
		.next_sentence = pairs ? NEXT_SENTENCE_PAIRS : NEXT_SENTENCE_NONE,
		.mask = vocab.mask,
		.single = vocab.single,
		.pair = vocab.pair,
		.is_continuation = vocab.is_continuation,
	};
	TRY(instances_open(&instances, &shard, 1, &settings));
	struct step_settings step_settings = {
		.batch_size = atoll(argv[5]),
		.accumulation_steps = 1,
		.capacity = batch_capacity_for(instances_bounds(instances), atoll(argv[5]), 1, 0),
		.first_step = first,
		.last_step = first + steps - 1,
	};
	TRY(step_reader_open(&reader, instances, &step_settings));
	struct safetensors_entry *entries;
	TRY(memory_new(&entries, steps * FIELDS, sizeof *entries, "entries"));
	for (;;) {
		const struct step *step;
		TRY(step_reader_next(reader, &step));
		if (!step)
			break;
		const struct batch *b = &step->batches[0];
		TRY(add(&entries[count++], step->number, "ids", b->ids, b->token_count));
		TRY(add(&entries[count++], step->number, "types", b->types, b->token_count));
		TRY(add(&entries[count++], step->number, "positions", b->positions, b->token_count));
		TRY(add(&entries[count++], step->number, "starts", b->starts, b->sequence_count + 1));
		TRY(add(&entries[count++], step->number, "rows", b->labels[HEAD_MASKED_WORDS].rows,
			b->labels[HEAD_MASKED_WORDS].count));
		TRY(add(&entries[count++], step->number, "labels", b->labels[HEAD_MASKED_WORDS].classes,
			b->labels[HEAD_MASKED_WORDS].count));
		if (pairs)
			TRY(add(&entries[count++], step->number, "next", b->labels[HEAD_NEXT_SENTENCE].classes,
				b->sequence_count));
	}
	return safetensors_write(argv[8], entries, count, NULL, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc != 9 && argc != 10) {
		fprintf(stderr, "usage: dump_batches PREFIX VOCAB SEED MAX_SEQ_LENGTH BATCH_SIZE FIRST_STEP STEPS OUT [alone]\n");
		return 2;
	}
	enum status status = dump(argv);
	if (status != OK)
		fprintf(stderr, "dump_batches: %s\n", error_last()->message);
	return (int)status;
}
