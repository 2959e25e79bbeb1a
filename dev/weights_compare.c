/* Runs weights of any form that bertc reads on a batch, for dev/weights_compare.py:
 *
 *     weights_compare MODEL BATCH.safetensors OUT.safetensors
 *
 * MODEL is anything that --init_checkpoint accepts, with its configuration beside it; the batch comes from
 * dev/model_golden.py. Prints the masked-word and next-sentence losses (fp32) and writes the encoder's output. Heads that
 * MODEL lacks are zero. */
#include "../tests/model/golden.h"
#include "weights/model_folder.h"

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: weights_compare MODEL BATCH OUT\n");
		return 2;
	}
	struct golden golden;
	struct model_source source;
	struct model_folder_report report = {0};
	struct run run;
	golden_open(&golden, argv[2]);
	REQUIRE(model_source_find(argv[1], &source));
	REQUIRE(model_size_or_folder_config(argv[1], &golden.config));
	run_open(&run, "cpu", DTYPE_F32, 1, &golden.config, &golden.batch, true);
	float *slab = calloc((size_t)run.model->slab_count, sizeof *slab);
	REQUIRE(model_folder_load(source.weights, run.model, MISSING_HEADS, slab, &report));
	REQUIRE(model_set_weights(run.model, &run.replica, slab));
	run_begin(&run, &golden.batch);
	run_batch(&run, &golden.batch, false, false, true);
	struct accumulators sums = run_sums(&run);
	printf("%.12g %.12g %lld %lld\n",
	       sums.value[sum_of_loss(HEAD_MASKED_WORDS)] * run.scalars.inverse_weight[HEAD_MASKED_WORDS],
	       sums.value[sum_of_loss(HEAD_NEXT_SENTENCE)] * run.scalars.inverse_weight[HEAD_NEXT_SENTENCE],
	       (long long)report.loaded, (long long)report.missing.count);

	struct tensor hidden = activations_output(run.activations);
	int64_t count = golden.batch.token_count * hidden.columns;
	float *values = calloc((size_t)count, sizeof *values);
	run.backend->functions->to_host(run.backend, values, hidden.data, (size_t)count * sizeof *values);
	struct safetensors_entry entry = {
		.name = "hidden",
		.dtype = ST_F32,
		.rank = 2,
		.shape = {golden.batch.token_count, hidden.columns},
		.count = count,
		.data = values,
		.bytes = (uint64_t)count * sizeof *values,
	};
	REQUIRE(safetensors_write(argv[3], &entry, 1, NULL, NULL, NULL));
	model_folder_report_release(&report);
	free(values);
	free(slab);
	run_close(&run);
	golden_close(&golden);
	return 0;
}
