/* bertc bench: how fast this machine trains and runs a model, operation by operation. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"
#include "cmd/command.h"
#include "model/forms.h"
#include "model/model_size_options.h"
#include "infer/device.h"
#include "data/pretraining/instances.h"
#include "model/flops.h"
#include "run/benchmark.h"
#include "weights/model_folder.h"
#include "backend/open.h"

struct bench_settings {
	const char *model;
	enum { MODE_TRAINING, MODE_INFERENCE, MODE_BOTH } mode;
	enum { HEADS_NONE, HEADS_POOLER, HEADS_PRETRAINING } heads;
	enum { CLOCK_WALL, CLOCK_CPU } clock;
	struct model_sizes sizes;
	int64_t vocab_size, max_seq_length, train_batch_size, steps;
	bool mixed_lengths, sentence_lengths, library, json;
	struct device_options device;
};

#define FIELD(name) offsetof(struct bench_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct bench_settings, member, role, value)
enum { STEP_LIMIT = 1000, ROW_LIMIT = 64, PRODUCT_LIMIT = 5 };

/* clang-format off */
static const struct option bench_options[] = {
	{.help = "What is run"},
	{ROW(model, ROLE_RUN, "SIZE|PATH"), .fallback = "base", .help = MODEL_SIZES(", ") ", a config.json, or a model folder"},
	{.group = model_size_rows, .field = FIELD(sizes)},
	{ROW(vocab_size, ROLE_RUN, "N"), .range = "8..10000000", .fallback = "30522",
	 .help = "entries of the vocabulary, if the model does not say"},
	{ROW(max_seq_length, ROLE_RUN, "N"), .range = "8..65536", .fallback = "128", .help = "tokens of a sequence"},
	{ROW(mixed_lengths, ROLE_RUN, NULL), .fallback = "false",
	 .help = "sequence lengths as MLPerf's BERT-large finds them in Wikipedia: a quarter of the sequences are full, "
	 	 "and the mean is half the full length"},
	{ROW(sentence_lengths, ROLE_RUN, NULL), .fallback = "false",
	 .help = "the lengths of English sentences, 29 tokens on average, with a maximum of --max_seq_length"},
	{ROW(train_batch_size, ROLE_RUN, "N"), .range = "1..100000", .fallback = "32", .help = "sequences of a step"},
	{ROW(mode, ROLE_RUN, "WHAT"), .range = "training|inference|both", .fallback = "both",
	 .help = "whole training steps, the model's answers alone (forward, with inference's kernels), or both"},
	{ROW(heads, ROLE_RUN, "WHICH"), .range = "none|pooler|pretraining", .fallback = "pretraining",
	 .help = "inference: the encoder alone, with the pooler, or with the heads of pre-training as well"},
	{.help = "How it is measured"},
	{ROW(steps, ROLE_RUN, "N"), .range = "1..1000", .fallback = "5",
	 .help = "number of rounds, after one to warm up; figures are medians"},
	{ROW(clock, ROLE_RUN, "WHICH"), .range = "wall|cpu", .fallback = "wall",
	 .help = "cpu: processor time divided by threads, which is how long it would take if no other program used the "
	 	 "processors"},
	{ROW(library, ROLE_RUN, NULL), .fallback = "false",
	 .help = "also measure the same matrix products alone, made by the library's own calls, in alternation"},
	{ROW(json, ROLE_RUN, NULL), .fallback = "false", .help = "print one JSON object"},
	{.help = "Device"},
	{.group = device_rows, .field = FIELD(device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text bench_text = {
	.name = "bench",
	.synopsis = "[--model SIZE|PATH] [--max_seq_length N] [--train_batch_size N] [options]",
	.summary = "measure training and inference on this machine, operation by operation",
	.description = "Runs a model with random weights on random text and prints each operation's share of a step. For "
		       "matrix products it shows the rate in operations per second, for all others the memory throughput, "
		       "and for both how close they come to what this machine can do: the time of plain matrix products (on "
		       "a GPU also of copies within its memory), measured in the same minutes. Only real tokens are counted "
		       "as work, forward and backward, without recomputation.",
	.examples =
		"bertc bench\ta training step and a forward pass of BERT-base, 32 sequences of 128 tokens\nbertc bench --model "
		"large --max_seq_length 512 --train_batch_size 4\tanother shape\nbertc bench --model runs/mine/final --mode "
		"inference --mixed_lengths\tyour own model\nbertc bench --mode inference --heads pooler --precision int8 "
		"--train_batch_size 1 --max_seq_length 20 --steps 200\tthe time for one short text\nOMP_WAIT_POLICY=passive "
		"bertc bench --library --clock cpu\ton a busy machine, beside the library's own products",
};

/* ---- Time ---- */

static int clock_threads;

static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / clock_threads;
}

/* For a device with a queue: the time when everything in it is done. */
static struct replica *clocked;

static double device_seconds(void)
{
	/* A failure persists, so the step returns it. */
	return clocked->backend->functions->synchronize(clocked) == OK ? clock_seconds() : 0;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const double *values, int64_t count)
{
	double sorted[STEP_LIMIT];
	memcpy(sorted, values, (size_t)count * sizeof *values);
	qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static int64_t memory_peak(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (int64_t)usage.ru_maxrss * 1024;
}

/* ---- One kind of step ---- */

/* An operation; products are distinguished by their shapes. */
struct row {
	char name[64];
	int64_t calls;       /* per step */
	double flops, bytes; /* per step */
	double seconds[STEP_LIMIT];
};

/* Training steps or forward passes, and everything measured of them. */
struct run {
	const char *title;
	struct benchmark benchmark;
	struct operation_observer observer;
	int64_t round; /* -1: warming up */
	struct row rows[ROW_LIMIT];
	int row_count;
	struct backend *backend;
	struct batch batch;
	double seconds[STEP_LIMIT], flops;
	double gemm_rate[STEP_LIMIT], read_rate[STEP_LIMIT];
	double weight_bytes; /* inference: size of the linear layers, which every pass must read */
};

/* A product of the model's linear layers, as the library computes it. */
struct product {
	int64_t rows, outputs, inputs, count;
	double seconds[3][STEP_LIMIT]; /* per step; by enum whole_product */
};

struct bench {
	const struct bench_settings *settings;
	struct model_config config;
	struct backend *backend, *inference; /* `inference`: a second one with --mode both, else NULL */
	struct batch batch;
	double (*clock)(void);
	double copy_rate[STEP_LIMIT];
	char *large; /* what is read to measure memory: LARGE_BYTES bytes */
	struct run *runs[2];
	int run_count;
	struct product *products; /* [PRODUCT_LIMIT] with --library */
	int product_count;
};

/* "linear_fwd M=4096 O=768 I=768": only the letters of the shape. */
static void row_name(char out[64], const struct operation_done *done)
{
	const char *end = done->letters;
	int letters = done->flops > 0 ? 3 : 0;
	while (letters > 0 && *end)
		letters -= *end++ == ' ';
	int64_t length = end - done->letters;
	snprintf(out, 64, "%s%s%.*s", done->name, length ? " " : "", (int)(length && end[-1] == ' ' ? length - 1 : length),
		 done->letters);
}

static void record(void *context, const struct operation_done *done)
{
	struct run *run = context;
	char name[64];
	row_name(name, done);
	int i = 0;
	while (i < run->row_count && strcmp(run->rows[i].name, name) != 0)
		i++;
	if (i == run->row_count) {
		BUG_IF(run->row_count == ROW_LIMIT);
		snprintf(run->rows[run->row_count++].name, sizeof name, "%s", name);
	}
	struct row *row = &run->rows[i];
	if (run->round < 0) {
		row->calls++;
		row->flops += done->flops;
		row->bytes += done->bytes;
	} else {
		row->seconds[run->round] += done->seconds;
	}
}

static enum status run_step(struct bench *bench, struct run *run, int64_t round)
{
	double loss;
	run->round = round;
	operations_observe(&run->observer);
	enum status status = OK;
	if (run->backend->queues) {
		/* Waiting for each operation would add to the step's time, so another step is timed. */
		clocked = &run->benchmark.replica;
		status = benchmark_step(&run->benchmark, &run->batch, 1, NULL);
		operations_observe(NULL);
		/* As in training, other steps precede the timed one. Measuring the rates released memory, which drops recorded
		 * graphs: the first of these two steps is launched kernel by kernel, and the second records its graph. */
		for (int i = 0; i < 2 && status == OK; i++)
			status = benchmark_step(&run->benchmark, &run->batch, 1, NULL);
	} else if (!run->benchmark.training) {
		/* Observing costs as much as the operations of a short text, so another step is timed. */
		status = benchmark_step(&run->benchmark, &run->batch, 1, NULL);
		operations_observe(NULL);
	}
	double started = bench->clock();
	if (status == OK)
		status = benchmark_step(&run->benchmark, &run->batch, 1, &loss);
	double seconds = bench->clock() - started;
	operations_observe(NULL);
	TRY(status);
	if (round >= 0)
		run->seconds[round] = seconds;
	log_detail("%s, round %" PRId64 ": %.4f s, loss %.4f", run->title, round, seconds, loss);
	return OK;
}

static struct backend *backend_of(const struct bench *bench, bool training)
{
	return training || !bench->inference ? bench->backend : bench->inference;
}

/* Size of the encoder's linear layers in the type in which they are multiplied. */
static double linear_bytes(const struct model_config *config, const struct backend *be)
{
	double hidden = config->hidden_size, wide = config->intermediate_size;
	return config->num_hidden_layers * (4 * hidden * hidden + 2 * hidden * wide) *
	       (be->int8 ? 1 : (double)dtype_bytes(be->dtype));
}

/* More memory than any cache holds. */
#define LARGE_BYTES ((int64_t)256 << 20)
#define LARGE_PARTS 64

struct reading {
	const char *large;
	uint64_t sums[LARGE_PARTS];
};

static void read_part(void *context, int64_t part, int worker)
{
	(void)worker;
	struct reading *reading = context;
	const uint64_t *at = (const uint64_t *)(const void *)(reading->large + part * (LARGE_BYTES / LARGE_PARTS));
	uint64_t sum = 0;
	for (int64_t i = 0; i < LARGE_BYTES / LARGE_PARTS / 8; i++)
		sum += at[i];
	reading->sums[part] = sum;
}

/* Bytes per second that all threads together read from memory. */
static double read_rate(const struct bench *bench, struct pool *pool)
{
	struct reading reading = {.large = bench->large};
	double best = 0;
	for (int i = 0; i < 3; i++) {
		double started = bench->clock();
		pool_run(pool, LARGE_PARTS, read_part, &reading);
		double rate = (double)LARGE_BYTES / (bench->clock() - started);
		best = rate > best ? rate : best;
	}
	return best;
}

static enum status run_open(struct bench *bench, bool training)
{
	struct run *run;
	struct batch batch = bench->batch;
	if (!training && bench->settings->heads != HEADS_PRETRAINING)
		batch.labels[HEAD_MASKED_WORDS].count = 0;
	struct batch_capacity capacity = batch_capacity_of(&batch);
	TRY(memory_new(&run, 1, sizeof *run, "measurements"));
	bench->runs[bench->run_count++] = run;
	run->backend = backend_of(bench, training);
	run->batch = batch;
	run->title = training ? "training" : "inference";
	run->observer = (struct operation_observer){
		.done = record, .clock = run->backend->queues ? device_seconds : bench->clock, .context = run};
	if (!training && run->backend->inference && strcmp(run->backend->name, "cpu") == 0) {
		run->weight_bytes = linear_bytes(&bench->config, run->backend);
		TRY(memory_new(&bench->large, LARGE_BYTES, 1, "measuring memory"));
		memset(bench->large, 1, LARGE_BYTES);
	}
	TRY(benchmark_open(&run->benchmark, run->backend, &bench->config, capacity, batch.longest, training));
	run->flops = model_training_flops(run->benchmark.model, &batch) / (training ? 1 : 3);
	run->benchmark.encoder_only = !training && bench->settings->heads == HEADS_NONE;
	return OK;
}

/* ---- The library ---- */

static enum status products_open(struct bench *bench)
{
	int64_t tokens = bench->batch.token_count, hidden = bench->config.hidden_size, wide = bench->config.intermediate_size;
	int64_t layers = bench->config.num_hidden_layers;
	if (!bench->backend->functions->whole_product)
		return error_set(ERR_USAGE, "the device '%s' uses no library for its products", bench->backend->name);
	TRY(memory_new(&bench->products, PRODUCT_LIMIT, sizeof *bench->products, "measurements"));
	bench->products[bench->product_count++] = (struct product){tokens, 3 * hidden, hidden, layers, {{0}}};
	bench->products[bench->product_count++] = (struct product){tokens, hidden, hidden, layers, {{0}}};
	bench->products[bench->product_count++] = (struct product){tokens, wide, hidden, layers, {{0}}};
	bench->products[bench->product_count++] = (struct product){tokens, hidden, wide, layers, {{0}}};
	bench->products[bench->product_count++] =
		(struct product){bench->batch.labels[HEAD_MASKED_WORDS].count, bench->config.vocab_size, hidden, 1, {{0}}};
	return OK;
}

static enum status products_run(struct bench *bench, int64_t round)
{
	for (int i = 0; i < bench->product_count; i++) {
		struct product *p = &bench->products[i];
		for (int kind = 0; kind < 3; kind++) {
			double *seconds = &p->seconds[kind][round];
			TRY(bench->backend->functions->whole_product(bench->backend, (enum whole_product)kind, p->rows,
								     p->outputs, p->inputs, bench->clock, seconds));
			*seconds *= (double)p->count;
		}
	}
	/* The library's threads keep looking for work for a while, and would compete with ours for the processors. */
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	return OK;
}

/* Measures the rates of products and of memory for each run, in about 20 of the rounds, since this takes longer than a short
 * text. */
static void measure_rates(struct bench *bench, int64_t round)
{
	int64_t every = (bench->settings->steps + 19) / 20;
	for (int i = 0; i < bench->run_count; i++) {
		struct run *run = bench->runs[i];
		if (round % every != 0) {
			run->gemm_rate[round] = run->gemm_rate[round - 1];
			run->read_rate[round] = run->read_rate[round - 1];
			continue;
		}
		if (run->backend->functions->gemm_rate)
			run->gemm_rate[round] = run->backend->functions->gemm_rate(run->backend);
		if (run->weight_bytes > 0)
			run->read_rate[round] = read_rate(bench, run->backend->pool);
	}
}

/* Measures what the machine itself and the library reach in this round. A device that has failed has no rates. */
static enum status measure_machine(struct bench *bench, int64_t round)
{
	const struct backend_functions *functions = bench->backend->functions;
	struct replica *replica = &bench->runs[0]->benchmark.replica;
	measure_rates(bench, round);
	if (functions->copy_rate)
		bench->copy_rate[round] = functions->copy_rate(bench->backend);
	TRY(products_run(bench, round));
	return functions->synchronize(replica);
}

static double product_flops(const struct product *p)
{
	return 2.0 * (double)p->rows * (double)p->outputs * (double)p->inputs * (double)p->count;
}

/* A step's products as the library computes them: medians over the rounds of the seconds, and of their ratio to the step of the
 * same round. */
struct comparison {
	double seconds, of_step, flops;
};

static struct comparison compare_products(const struct bench *bench, const struct run *run)
{
	struct comparison c = {0};
	double seconds[STEP_LIMIT], parts[STEP_LIMIT];
	int64_t rounds = bench->settings->steps;
	/* The last product is that of the vocabulary, which only the heads of pre-training compute. */
	bool without_words = !run->benchmark.training && bench->settings->heads != HEADS_PRETRAINING;
	int products = bench->product_count - without_words;
	for (int64_t round = 0; round < rounds; round++) {
		seconds[round] = c.flops = 0;
		for (int i = 0; i < products; i++) {
			for (int kind = 0; kind < (run->benchmark.training ? 3 : 1); kind++) {
				seconds[round] += bench->products[i].seconds[kind][round];
				c.flops += product_flops(&bench->products[i]);
			}
		}
		parts[round] = seconds[round] / run->seconds[round];
	}
	c.seconds = median(seconds, rounds);
	c.of_step = median(parts, rounds);
	return c;
}

/* What the machine itself reaches, as medians; 0: not measured. */
struct rates {
	double gemm; /* FLOP/s of plain products */
	double copy; /* bytes/s of copies */
	double read; /* bytes/s of reading, in inference */
};

static struct rates rates_of(const struct bench *bench, const struct run *run)
{
	int64_t steps = bench->settings->steps;
	const struct backend_functions *functions = run->backend->functions;
	return (struct rates){.gemm = functions->gemm_rate ? median(run->gemm_rate, steps) : 0,
			      .copy = functions->copy_rate ? median(bench->copy_rate, steps) : 0,
			      .read = run->weight_bytes > 0 ? median(run->read_rate, steps) : 0};
}

/* The least time that a pass of inference can take: its products at 0.8 of the rate of plain ones, or reading the weights. */
static double inference_floor(const struct run *run, const struct rates *rates)
{
	double products = rates->gemm > 0 ? run->flops / (0.8 * rates->gemm) : 0;
	double memory = rates->read > 0 ? run->weight_bytes / rates->read : 0;
	return products > memory ? products : memory;
}

/* The time that `percent` % of the rounds do not exceed; 0: the shortest. */
static double percentile(const double *values, int64_t count, int percent)
{
	double sorted[STEP_LIMIT];
	int64_t place = (count * percent + 99) / 100;
	memcpy(sorted, values, (size_t)count * sizeof *sorted);
	qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
	return sorted[place > 0 ? place - 1 : 0];
}

/* The least time per step that a row can take at these rates; 0: not known. */
static double floor_seconds(const struct row *row, const struct rates *rates)
{
	double products = rates->gemm > 0 ? row->flops / rates->gemm : 0;
	double memory = rates->copy > 0 ? row->bytes / rates->copy : 0;
	return products > memory ? products : memory;
}

/* ---- Output ---- */

static const char *const product_names[] = {"forward", "dgrad", "wgrad"};

static void number(double value, int decimals, int width)
{
	if (value > 0)
		printf(" %*.*f", width, decimals, value);
	else
		printf(" %*s", width, "");
}

static void print_run(const struct bench *bench, const struct run *run)
{
	const struct rates known = rates_of(bench, run), *rates = &known;
	int64_t steps = bench->settings->steps;
	double step = median(run->seconds, steps), rest = step;
	printf("\n%s: %.4f s per step, %.2f sequences/s, %.0f tokens/s; %.3f TFLOP/s of the model's work", run->title, step,
	       bench->batch.sequence_count / step, bench->batch.token_count / step, run->flops / step * 1e-12);
	if (rates->gemm > 0)
		printf(", %.0f %% of the speed of matrix products", 100 * run->flops / step / rates->gemm);
	if (run->weight_bytes > 0)
		printf("\n%.2f ms, at least %.2f ms, in 99 of 100 rounds at most %.2f ms; %.2f x the floor: %.0f MB of weights "
		       "at %.1f GB/s, or products "
		       "at 0.8 of %.0f GOP/s",
		       1e3 * step, 1e3 * percentile(run->seconds, steps, 0), 1e3 * percentile(run->seconds, steps, 99),
		       step / inference_floor(run, rates), run->weight_bytes * 1e-6, rates->read * 1e-9, rates->gemm * 1e-9);
	printf("\n\n%-38s %6s %9s %9s %6s %9s %8s %6s\n", "operation", "calls", "ms/call", "ms/step", "share", "of floor",
	       "GFLOP/s", "GB/s");
	for (int i = 0; i < run->row_count; i++) {
		const struct row *row = &run->rows[i];
		double seconds = median(row->seconds, steps);
		rest -= seconds;
		printf("%-38s %6" PRId64 " %9.3f %9.2f %5.1f%%", row->name, row->calls, 1e3 * seconds / (double)row->calls,
		       1e3 * seconds, 100 * seconds / step);
		double least = floor_seconds(row, rates);
		if (least > 0)
			printf(" %8.0f%%", 100 * least / seconds);
		else
			printf(" %9s", "");
		number(row->flops / seconds * 1e-9, 0, 8);
		number(row->bytes / seconds * 1e-9, 1, 6);
		printf("\n");
	}
	printf("%-38s %6s %9s %9.2f %5.1f%%\n", "(between operations)", "", "", 1e3 * rest, 100 * rest / step);
	if (!bench->products)
		return;
	struct comparison library = compare_products(bench, run);
	printf("\nits large products alone by the library: %.4f s (%.0f GFLOP/s), %.2f of the step's time in the same round\n",
	       library.seconds, library.flops / library.seconds * 1e-9, library.of_step);
}

static void print_products(const struct bench *bench)
{
	printf("\n%-38s %6s %9s %9s %6s %8s\n", "the library's own calls", "calls", "ms/call", "ms/step", "", "GFLOP/s");
	for (int i = 0; i < bench->product_count; i++) {
		const struct product *p = &bench->products[i];
		for (int kind = 0; kind < 3; kind++) {
			char name[96];
			double seconds = median(p->seconds[kind], bench->settings->steps);
			snprintf(name, sizeof name, "%s M=%" PRId64 " O=%" PRId64 " I=%" PRId64, product_names[kind], p->rows,
				 p->outputs, p->inputs);
			printf("%-38s %6" PRId64 " %9.3f %9.2f %6s %8.0f\n", name, p->count, 1e3 * seconds / (double)p->count,
			       1e3 * seconds, "", product_flops(p) / seconds * 1e-9);
		}
	}
}

static void print_table(const struct bench *bench, const struct rates *rates)
{
	char count[FORMAT_BYTES], size[FORMAT_BYTES], layers[FORMAT_BYTES];
	const struct batch *b = &bench->batch;
	printf("model      %s: %s, %d wide, %s parameters\n", bench->settings->model,
	       format_counted(layers, bench->config.num_hidden_layers, "layer", "layers"), bench->config.hidden_size,
	       format_count(count, bench->runs[0]->benchmark.model->element_count));
	printf("device     %s\n", bench->backend->description);
	printf("a step     %d sequences of up to %d tokens, %d tokens, %d predictions\n", b->sequence_count, b->longest,
	       b->token_count, b->labels[HEAD_MASKED_WORDS].count);
	printf("clock      %s, medians of %" PRId64 " rounds\n",
	       bench->settings->clock == CLOCK_CPU ? "processor time over threads" : "wall", bench->settings->steps);
	printf("memory     %s at most\n", format_size(size, (double)memory_peak()));
	if (bench->backend->functions->memory_used)
		printf("           %s of the device in use\n",
		       format_size(size, (double)bench->backend->functions->memory_used(bench->backend)));
	if (rates->gemm > 0)
		printf("products   %.0f GFLOP/s, measured between the rounds\n", rates->gemm * 1e-9);
	if (rates->copy > 0)
		printf("copies     %.0f GB/s, read and written, measured between the rounds\n", rates->copy * 1e-9);
	for (int i = 0; i < bench->run_count; i++)
		print_run(bench, bench->runs[i]);
	if (bench->products)
		print_products(bench);
}

static void run_to_json(const struct bench *bench, const struct run *run, struct json_writer *writer)
{
	const struct rates known = rates_of(bench, run), *rates = &known;
	int64_t steps = bench->settings->steps;
	double step = median(run->seconds, steps);
	json_open(writer, run->title, '{');
	json_put_double(writer, "seconds", step);
	json_put_double(writer, "seconds_per_step", step);
	if (run->weight_bytes > 0) {
		json_put_double(writer, "seconds_p99", percentile(run->seconds, steps, 99));
		json_put_double(writer, "seconds_least", percentile(run->seconds, steps, 0));
		json_put_double(writer, "floor_seconds", inference_floor(run, rates));
		json_put_double(writer, "weight_bytes", run->weight_bytes);
		json_put_double(writer, "read_bytes_per_second", rates->read);
		json_put_double(writer, "gemm_flops_per_second", rates->gemm);
	}
	json_put_double(writer, "sequences_per_second", bench->batch.sequence_count / step);
	json_put_double(writer, "tokens_per_second", bench->batch.token_count / step);
	json_put_double(writer, "model_flops_per_second", run->flops / step);
	if (rates->gemm > 0)
		json_put_double(writer, "share_of_gemm_rate", run->flops / step / rates->gemm);
	json_open(writer, "operations", '[');
	for (int i = 0; i < run->row_count; i++) {
		const struct row *row = &run->rows[i];
		double seconds = median(row->seconds, steps);
		json_open(writer, NULL, '{');
		json_put_string(writer, "operation", row->name);
		json_put_integer(writer, "calls", row->calls);
		json_put_double(writer, "seconds", seconds);
		if (row->flops > 0)
			json_put_double(writer, "flops_per_second", row->flops / seconds);
		if (rates->gemm > 0 && row->flops > 0)
			json_put_double(writer, "share_of_gemm_rate", row->flops / seconds / rates->gemm);
		if (floor_seconds(row, rates) > 0)
			json_put_double(writer, "floor_seconds", floor_seconds(row, rates));
		if (row->bytes > 0)
			json_put_double(writer, "bytes_per_second", row->bytes / seconds);
		json_close(writer);
	}
	json_close(writer);
	if (bench->products) {
		struct comparison library = compare_products(bench, run);
		json_put_double(writer, "library_seconds", library.seconds);
		json_put_double(writer, "library_of_step", library.of_step);
		json_put_double(writer, "library_flops_per_second", library.flops / library.seconds);
	}
	json_close(writer);
}

static void products_to_json(const struct bench *bench, struct json_writer *writer)
{
	json_open(writer, "library", '[');
	for (int i = 0; i < bench->product_count; i++) {
		const struct product *p = &bench->products[i];
		for (int kind = 0; kind < 3; kind++) {
			double seconds = median(p->seconds[kind], bench->settings->steps);
			json_open(writer, NULL, '{');
			json_put_string(writer, "product", product_names[kind]);
			json_put_integer(writer, "rows", p->rows);
			json_put_integer(writer, "outputs", p->outputs);
			json_put_integer(writer, "inputs", p->inputs);
			json_put_integer(writer, "calls", p->count);
			json_put_double(writer, "seconds", seconds);
			json_put_double(writer, "flops_per_second", product_flops(p) / seconds);
			json_close(writer);
		}
	}
	json_close(writer);
}

/* The quantity to which attention's work is proportional. */
static double squared_lengths(const struct batch *batch)
{
	double sum = 0;
	for (int32_t s = 0; s < batch->sequence_count; s++) {
		double length = batch->starts[s + 1] - batch->starts[s];
		sum += length * length;
	}
	return sum;
}

static void print_json(const struct bench *bench, const struct rates *rates)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "model", bench->settings->model);
	json_put_string(&writer, "device", bench->backend->description);
	json_put_integer(&writer, "threads", pool_threads(bench->backend->pool));
	json_put_string(&writer, "precision",
			bench->backend->fp8    ? "fp8"
			: bench->backend->int8 ? "int8"
					       : dtype_names[bench->backend->dtype]);
	json_put_string(&writer, "clock", bench->settings->clock == CLOCK_CPU ? "cpu" : "wall");
	json_put_integer(&writer, "rounds", bench->settings->steps);
	json_put_integer(&writer, "sequences", bench->batch.sequence_count);
	json_put_integer(&writer, "tokens", bench->batch.token_count);
	json_put_integer(&writer, "predictions", bench->batch.labels[HEAD_MASKED_WORDS].count);
	json_put_double(&writer, "squared_lengths", squared_lengths(&bench->batch));
	json_put_integer(&writer, "layers", bench->config.num_hidden_layers);
	json_put_integer(&writer, "hidden_size", bench->config.hidden_size);
	json_put_integer(&writer, "intermediate_size", bench->config.intermediate_size);
	json_put_integer(&writer, "vocab_size", bench->config.vocab_size);
	if (rates->gemm > 0)
		json_put_double(&writer, "gemm_flops_per_second", rates->gemm);
	if (rates->copy > 0)
		json_put_double(&writer, "copy_bytes_per_second", rates->copy);
	json_open(&writer, "lengths", '[');
	for (int32_t s = 0; s < bench->batch.sequence_count; s++)
		json_put_integer(&writer, NULL, bench->batch.starts[s + 1] - bench->batch.starts[s]);
	json_close(&writer);
	json_put_integer(&writer, "peak_memory_bytes", memory_peak());
	if (bench->backend->functions->memory_used)
		json_put_integer(&writer, "device_memory_bytes", (int64_t)bench->backend->functions->memory_used(bench->backend));
	for (int i = 0; i < bench->run_count; i++)
		run_to_json(bench, bench->runs[i], &writer);
	if (bench->products)
		products_to_json(bench, &writer);
	json_close(&writer);
	printf("%s\n", buffer_string(&text));
	buffer_release(&text);
}

/* ---- The command ---- */

static enum status measure(struct bench *bench)
{
	const struct bench_settings *settings = bench->settings;
	struct rates rates;
	TRY(benchmark_batch(&bench->batch, &bench->config, (int32_t)settings->train_batch_size, (int32_t)settings->max_seq_length,
			    settings->sentence_lengths ? LENGTHS_SENTENCES
			    : settings->mixed_lengths  ? LENGTHS_WIKIPEDIA
						       : LENGTHS_FULL));
	if (settings->mode != MODE_INFERENCE)
		TRY(run_open(bench, true));
	if (settings->mode != MODE_TRAINING)
		TRY(run_open(bench, false));
	if (settings->library)
		TRY(products_open(bench));
	struct progress progress;
	progress_start(&progress, "measuring", 0, settings->steps + 1, "rounds");
	for (int64_t round = -1; round < settings->steps; round++) {
		enum status status = OK;
		for (int i = 0; i < bench->run_count && status == OK; i++)
			status = run_step(bench, bench->runs[i], round);
		if (round >= 0 && status == OK)
			status = measure_machine(bench, round);
		if (status != OK) {
			progress_finish(&progress);
			return status;
		}
		progress_update(&progress, round + 2, "%s", "");
	}
	progress_finish(&progress);
	rates = rates_of(bench, bench->runs[0]);
	if (settings->json)
		print_json(bench, &rates);
	else
		print_table(bench, &rates);
	return OK;
}

static enum status run_bench(struct options *options)
{
	const struct bench_settings *settings = options->settings;
	struct bench bench = {.settings = settings, .clock = clock_seconds};
	struct pool *pool;
	if (settings->mixed_lengths && settings->sentence_lengths)
		return error_set(ERR_USAGE, "--mixed_lengths and --sentence_lengths: give one of them");
	TRY(model_shaped_config(settings->model, &settings->sizes, &bench.config));
	if (bench.config.vocab_size == 0)
		bench.config.vocab_size = (int32_t)settings->vocab_size;
	if (settings->max_seq_length > model_positions(&bench.config))
		return error_set(ERR_USAGE, "--max_seq_length %" PRId64 " is beyond the model's %d positions",
				 settings->max_seq_length, model_positions(&bench.config));
	if (settings->train_batch_size > INT32_MAX / settings->max_seq_length)
		return error_set(ERR_USAGE, "%" PRId64 " sequences of %" PRId64 " tokens are too many for one step",
				 settings->train_batch_size, settings->max_seq_length);
	const struct device_options *device = &settings->device;
	TRY(device_open(device, settings->mode == MODE_INFERENCE, &pool, &bench.backend));
	enum status status = OK;
	if (settings->mode == MODE_BOTH)
		status = device_open_on(device, true, pool, &bench.inference);
	if (settings->library && settings->clock == CLOCK_CPU && !getenv("OMP_WAIT_POLICY"))
		log_warning("the library's threads use processor time while they wait: set OMP_WAIT_POLICY=passive");
	if (settings->clock == CLOCK_CPU) {
		clock_threads = pool_threads(pool);
		bench.clock = processor_seconds;
	}
	if (status == OK)
		status = measure(&bench);
	for (int i = 0; i < bench.run_count; i++) {
		if (bench.runs[i])
			benchmark_close(&bench.runs[i]->benchmark);
		free(bench.runs[i]);
	}
	batch_release(&bench.batch);
	free(bench.products);
	free(bench.large);
	backend_close(bench.inference);
	backend_close(bench.backend);
	pool_free(pool);
	return status;
}

const struct command command_bench = {
	.text = &bench_text,
	.options = bench_options,
	.settings_bytes = sizeof(struct bench_settings),
	.run = run_bench,
};
