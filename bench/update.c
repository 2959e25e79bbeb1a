/* The update of all weights, run on demand for bench/update.py: gradient norm, optimizer, refresh of the compute copies.
 *
 *   update MODEL bf16|fp32 THREADS [cpu]    then, on standard input, lines "adamw|lamb|norm|refresh TIMES"
 *
 * Each line is answered with a line of seconds; with "cpu" these are processor time divided by the number of threads,
 * which is less sensitive to other load. adamw and lamb are whole updates, norm and refresh the parts that both share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "data/pretraining/instances.h"
#include "train/optimizer.h"
#include "backend/open.h"

#define VOCABULARY 30522

struct bench {
	struct pool *pool;
	struct backend *be;
	struct model *model;
	struct replica replica;
	struct optimizer *adamw, *lamb;
};

static enum status bench_open(struct bench *b, char **argv)
{
	struct model_config config;
	TRY(model_config_named(&config, argv[1]));
	config.vocab_size = VOCABULARY;
	TRY(pool_create(&b->pool, atoi(argv[3])));
	TRY(backend_open(&b->be, &(struct backend_settings){.device = "cpu",
							    .dtype = strcmp(argv[2], "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32,
							    .pool = b->pool}));
	struct shape_limits limits = {.batch = instance_capacity(128, 1, 20),
				      .longest = 128,
				      .hidden = config.hidden_size,
				      .heads = config.num_attention_heads,
				      .intermediate = config.intermediate_size,
				      .vocab = config.vocab_size,
				      .training = true};
	struct optimizer_options settings = {.optimizer = OPTIMIZER_ADAMW,
					     .adam_beta1 = 0.9,
					     .adam_beta2 = 0.999,
					     .adam_epsilon = 1e-6,
					     .weight_decay = 0.01,
					     .max_grad_norm = 1.0,
					     .bias_correction = true,
					     .gradient_averaging = true};
	TRY(model_create(&b->model, b->be, &config, &model_heads_pretraining));
	TRY(model_allocate(b->model, true));
	TRY(b->be->functions->replica_create(b->be, &b->replica, &limits));
	TRY(optimizer_create(&b->adamw, b->model, NULL, &settings));
	settings.optimizer = OPTIMIZER_LAMB;
	TRY(optimizer_create(&b->lamb, b->model, NULL, &settings));
	TRY(model_initialize(b->model, &b->replica, 1));
	float *gradients = b->model->gradients.data; /* in host memory on this back end */
	for (int64_t i = 0; i < b->model->slab_count; i++)
		gradients[i] = (float)((i * 2654435761u >> 8 & 0xffff) - 32768) * 1e-9f;
	return OK;
}

static void update(struct bench *b, struct optimizer *optimizer)
{
	struct scalars scalars = {.learning_rate = 1e-6, .loss_scale = 1, .finite = 1};
	optimizer_prepare(optimizer, &scalars);
	b->be->functions->to_device(b->be, b->replica.scalars, &scalars, sizeof scalars);
	optimizer_measure(optimizer, &b->replica);
	BUG_IF(optimizer_update(optimizer, &b->replica) != OK); /* single process: no other ranks */
}

static enum status run(struct bench *b, const char *what)
{
	if (strcmp(what, "adamw") == 0)
		update(b, b->adamw);
	else if (strcmp(what, "lamb") == 0)
		update(b, b->lamb);
	else if (strcmp(what, "norm") == 0)
		sumsq_finite(&b->replica, &(struct sumsq_finite){.range = b->model->gradients});
	else
		model_refresh(b->model, &b->replica);
	return b->be->functions->synchronize(&b->replica);
}

static double now(int cpu_threads)
{
	struct timespec t;
	if (cpu_threads == 0)
		return clock_seconds();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / cpu_threads;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: update MODEL bf16|fp32 THREADS [cpu]\n");
		return 2;
	}
	struct bench b = {0};
	char line[64], what[16];
	int times, cpu_threads = argc > 4 ? atoi(argv[3]) : 0;
	enum status status = bench_open(&b, argv);
	if (status == OK)
		fprintf(stderr, "%s, %lld parameters\n", b.be->description, (long long)b.model->element_count);
	while (status == OK && fgets(line, sizeof line, stdin) && sscanf(line, "%15s %d", what, &times) == 2) {
		for (int i = 0; i < times && status == OK; i++) {
			double started = now(cpu_threads);
			status = run(&b, what);
			printf("%s%.9f", i > 0 ? " " : "", now(cpu_threads) - started);
		}
		printf("\n");
		fflush(stdout);
	}
	if (status != OK)
		fprintf(stderr, "update: %s\n", error_last()->message);
	return (int)status;
}
