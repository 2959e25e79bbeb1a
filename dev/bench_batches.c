/* The rate at which one core makes batches: tokens per second over whole steps, as training reads them.
 *
 *     make build/dev/bench_batches && taskset -c 0 build/dev/bench_batches PREFIX|FILE.instances VOCAB [STEPS]
 *
 * For a shard, measures sentence pairs with whole-word masking and next-sentence labels, then n-gram masking; for a file,
 * its instances. Measures processor time (including the reader's thread), so that other load on the machine changes
 * little. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "data/pretraining/instance_files.h"
#include "data/pretraining/instances.h"
#include "data/step_reader.h"
#include "text/vocab.h"

static void must(enum status status)
{
	if (status == OK)
		return;
	fprintf(stderr, "%s\n", error_last()->message);
	exit(status);
}

static double processor_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void run(const char *what, struct instances *instances, int64_t steps)
{
	struct step_reader *reader;
	const struct step *step;
	struct step_settings settings = {.batch_size = 256, .first_step = 1, .last_step = steps};
	settings.capacity = batch_capacity_for(instances_bounds(instances), 256, 0, 0);
	must(step_reader_open(&reader, instances, &settings));
	double begin = processor_seconds();
	int64_t tokens = 0, count = 0;
	for (;;) {
		must(step_reader_next(reader, &step));
		if (step == NULL)
			break;
		tokens += step->token_count;
		count += step->example_count;
	}
	double seconds = processor_seconds() - begin;
	printf("%-28s %8.2f million tokens a second, %8.0f instances a second\n", what, 1e-6 * (double)tokens / seconds,
	       (double)count / seconds);
	step_reader_close(reader);
}

int main(int argc, char **argv)
{
	struct vocab vocab;
	struct shard shard;
	struct static_file file;
	struct instances *instances;
	if (argc < 3) {
		fprintf(stderr, "bench_batches PREFIX|FILE.instances VOCAB [STEPS]\n");
		return 2;
	}
	int64_t steps = argc > 3 ? atoll(argv[3]) : 400;
	must(vocab_read(&vocab, argv[2]));
	struct instance_settings settings = {.seed = 1,
					     .max_seq_length = 128,
					     .masked_lm_prob = 0.15,
					     .short_seq_prob = 0.1,
					     .shuffle = true,
					     .vocab_size = vocab.count,
					     .cls = vocab.cls,
					     .sep = vocab.sep,
					     .mask = vocab.mask,
					     .is_continuation = vocab.is_continuation};
	if (static_file_is(argv[1])) {
		must(static_file_open(&file, argv[1]));
		must(instances_open_static(&instances, &file, 1, &settings));
		run("static instances", instances, steps);
		instances_close(instances);
		return 0;
	}
	must(shard_open(&shard, argv[1]));
	for (int kind = 0; kind < 4; kind++) {
		static const char *const names[] = {"pairs", "pairs, whole words", "order, n-grams of 3",
						    "running text, length 512"};
		settings.whole_word_mask = kind > 0;
		settings.max_ngram = kind == 2 ? 3 : 1;
		settings.next_sentence = kind == 2 ? NEXT_SENTENCE_ORDER : kind == 3 ? NEXT_SENTENCE_NONE : NEXT_SENTENCE_PAIRS;
		settings.max_seq_length = kind == 3 ? 512 : 128;
		double begin = processor_seconds();
		must(instances_open(&instances, &shard, 1, &settings));
		double seconds = processor_seconds() - begin;
		printf("%-28s %8.2f million tokens a second walked\n", names[kind], 1e-6 * (double)shard.token_count / seconds);
		run(names[kind], instances, steps);
		instances_close(instances);
	}
	return 0;
}
