/* The fitted rule that says which model, batch, and number of tokens suit a given time. */
#include "run/budget.h"

#include <math.h>

/* FLOP/s of plain loops, assumed where a back end cannot tell its rate. */
#define UNKNOWN_RATE 1e9
/* With fewer updates, a model stays on the plateau where it has learned little more than word frequencies. */
#define FEWEST_UPDATES 4000
#define SMALLEST_BATCH 16

/* Processors: fitted to two cores of a Zen 4 in bf16 on an otherwise idle machine: 0.48 to 0.51 for 128 columns, 0.61 to 0.64
 * for 256, and 0.76 for 512. GPUs: to an H200 in bf16, 0.61 for 768 columns and 0.70 for 1,024. An error makes --time choose a
 * somewhat too large or too small model or batch; the schedule still follows the clock. */
double budget_share(int32_t hidden_size, bool on_gpu)
{
	return on_gpu ? 1.26 * hidden_size / (hidden_size + 818.0) : 0.88 * hidden_size / (hidden_size + 100.0);
}

enum status budget_flops(struct machine *machine, double seconds, double *out)
{
	TRY(machine_measure_rate(machine));
	*out = seconds * (machine->gemm_rate > 0 ? machine->gemm_rate : UNKNOWN_RATE);
	return OK;
}

/* Only the encoder's matrices count, as they do the work. */
static double encoder_parameters(const struct model_config *config)
{
	double hidden = config->hidden_size, inner = config->intermediate_size;
	return config->num_hidden_layers * (4 * hidden * hidden + 2 * hidden * inner);
}

const char *budget_model(double flops, bool on_gpu)
{
	double least = INFINITY;
	const char *nearest = NULL, *name;
	for (int i = 0; (name = model_size_name(i)); i++) {
		struct model_config config;
		BUG_IF(model_config_named(&config, name) != OK);
		double wanted = sqrt(flops * budget_share(config.hidden_size, on_gpu) / 120);
		double distance = fabs(log(encoder_parameters(&config) / wanted));
		if (!nearest || distance < least) {
			least = distance;
			nearest = name;
		}
	}
	return nearest;
}

double budget_tokens(double flops, bool on_gpu, const struct model_config *config, const struct model_heads *heads, double length,
		     double masked)
{
	struct model_work sequence = {
		.tokens = length,
		.sequences = 1,
		.predictions = masked * length,
		.squares = length * length,
	};
	return flops * budget_share(config->hidden_size, on_gpu) / model_flops_of(config, heads, &sequence) * length;
}

int64_t budget_batch(double tokens, double length, int64_t usual)
{
	while (usual / 2 >= SMALLEST_BATCH && tokens / length / (double)usual < FEWEST_UPDATES)
		usual /= 2;
	return usual;
}
