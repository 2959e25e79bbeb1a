/* Prints instances of a shard as JSON lines, for dev/instance_statistics.py:
 *
 *     make build/dev/dump_instances
 *     build/dev/dump_instances PREFIX VOCAB EPOCHS seed max_seq_length max_predictions masked_lm_prob \
 *             short_seq_prob whole_word_mask
 */
#include <stdio.h>
#include <stdlib.h>
#include "data/pretraining/instances.h"
#include "text/vocab.h"

static void must(enum status status)
{
	if (status == OK)
		return;
	fprintf(stderr, "%s\n", error_last()->message);
	exit(status);
}

static void print_list(const char *name, const int32_t *values, int32_t count)
{
	printf("\"%s\": [", name);
	for (int32_t i = 0; i < count; i++)
		printf("%s%d", i ? ", " : "", values[i]);
	printf("], ");
}

int main(int argc, char **argv)
{
	struct vocab vocab;
	struct shard shard;
	struct instances *instances;
	if (argc != 10)
		return ERR_USAGE;
	must(vocab_read(&vocab, argv[2]));
	must(shard_open(&shard, argv[1]));
	must(shard_check_vocab(&shard, vocab.hash, vocab.count));
	struct instance_settings settings = {.seed = strtoull(argv[4], NULL, 10),
					     .max_seq_length = atoi(argv[5]),
					     .max_predictions_per_seq = atoi(argv[6]),
					     .masked_lm_prob = atof(argv[7]),
					     .short_seq_prob = atof(argv[8]),
					     .whole_word_mask = atoi(argv[9]) != 0,
					     .shuffle = true,
					     .vocab_size = vocab.count,
					     .cls = vocab.cls,
					     .sep = vocab.sep,
					     .mask = vocab.mask,
					     .is_continuation = vocab.is_continuation};
	must(instances_open(&instances, &shard, 1, &settings));
	int32_t *room = malloc(4 * (size_t)settings.max_seq_length * sizeof *room);
	for (int64_t sample = 0;; sample++) {
		int64_t epoch, first;
		struct instance instance = {.ids = room,
					    .types = room + settings.max_seq_length,
					    .prediction_positions = room + 2 * settings.max_seq_length,
					    .prediction_labels = room + 3 * settings.max_seq_length};
		must(instances_locate(instances, sample, &epoch, &first));
		if (epoch >= atoi(argv[3]))
			break;
		must(instances_get(instances, sample, &instance));
		printf("{\"epoch\": %lld, ", (long long)epoch);
		print_list("ids", instance.ids, instance.length);
		print_list("types", instance.types, instance.length);
		print_list("positions", instance.prediction_positions, instance.prediction_count);
		print_list("labels", instance.prediction_labels, instance.prediction_count);
		printf("\"next\": %d}\n", instance.next_label);
	}
	free(room);
	instances_close(instances);
	shard_close(&shard);
	vocab_release(&vocab);
	return 0;
}
