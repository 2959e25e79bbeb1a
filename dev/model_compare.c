/* Compares a model of any size with transformers:
 *
 *     python dev/model_golden.py base /tmp/base.safetensors
 *     make build/dev/model_compare
 *     build/dev/model_compare /tmp/base.safetensors gelu cpu f32 [tensors | save FOLDER]
 *
 * Prints losses, the largest gradient error in units of the limit, and, with "tensors", a line for each tensor; with
 * "save", writes a model folder. In bf16 the limits of fp32 do not apply; the errors are only printed. */
#include "model/golden.h"
#include "weights/model_folder.h"

static void print_totals(const struct golden *golden, const char *act, const struct model *model, const double *gradients)
{
	double error = 0, size = 0, worst = 0;
	const char *worst_name = "";
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		char name[160];
		snprintf(name, sizeof name, "%s.gradient.%s", act, parameter->name);
		double *wanted = golden_doubles(golden, name, parameter->count), part = norm_of(wanted, parameter->count);
		for (int64_t k = 0; k < parameter->count; k++)
			wanted[k] -= gradients[parameter->offset + k];
		double difference = norm_of(wanted, parameter->count);
		error = hypot(error, difference);
		size = hypot(size, part);
		/* The key bias has an analytic gradient of zero. */
		if (!strstr(parameter->name, "key.bias") && difference / part > worst) {
			worst = difference / part;
			worst_name = parameter->name;
		}
		free(wanted);
	}
	printf("all gradients: |G - G64| / |G64| = %.2e; largest of one tensor %.2e (%s)\n", error / size, worst, worst_name);
}

static void save(struct run *run, const char *folder)
{
	int32_t count = run->model->config.vocab_size;
	float *slab = calloc((size_t)run->model->slab_count, sizeof *slab);
	char(*text)[16] = calloc((size_t)count, sizeof *text);
	const char **entries = calloc((size_t)count, sizeof *entries);
	if (!slab || !text || !entries)
		exit(1);
	static const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
	for (int32_t i = 0; i < count; i++) {
		snprintf(text[i], sizeof text[i], "w%d", i);
		entries[i] = i < 5 ? special[i] : text[i];
	}
	struct vocab vocab;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct folder_files files = {0};
	REQUIRE(vocab_from_entries(&vocab, entries, count));
	REQUIRE(folder_make(folder));
	REQUIRE(model_get_weights(run->model, slab));
	struct model_folder_content content = {
		.model = run->model,
		.slab = slab,
		.vocab = &vocab,
		.tokenizer = &settings,
		.max_length = run->model->config.max_position_embeddings,
	};
	REQUIRE(model_folder_save(folder, &content, &files));
	vocab_release(&vocab);
	free(files.files);
	free(entries);
	free(text);
	free(slab);
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: model_compare FILE gelu|gelu_new DEVICE f64|f32|bf16 [tensors | save "
				"FOLDER]\n");
		return 2;
	}
	const char *act = argv[2];
	bool tensors = argc > 5 && strcmp(argv[5], "tensors") == 0;
	enum dtype dtype = DTYPE_F64;
	while (dtype < DTYPE_COUNT && strcmp(dtype_names[dtype], argv[4]) != 0)
		dtype++;
	struct golden golden;
	golden_open(&golden, argv[1]);
	golden.config.hidden_act = strcmp(act, "gelu_new") == 0 ? ACTIVATION_GELU_TANH : ACTIVATION_GELU_ERF;
	golden.config.hidden_dropout_prob = golden.config.attention_probs_dropout_prob = 0;
	struct run run;
	run_open(&run, argv[3], dtype, 0, &golden.config, &golden.batch, true);
	run_load(&run, &golden);
	run_begin(&run, &golden.batch);
	run_batch(&run, &golden.batch, false, true, true);

	char name[160];
	snprintf(name, sizeof name, "%s.loss", act);
	double *wanted = golden_doubles(&golden, name, 4), loss = run_loss(&run);
	struct accumulators sums = run_sums(&run);
	printf("%s %s %s, %s: loss %.9f, float64 %.9f, relative error %.2e\n", argv[1], argv[3], argv[4], act, loss,
	       wanted[0] + wanted[1], fabs(loss / (wanted[0] + wanted[1]) - 1));
	printf("correct: MLM %g of %d (float64 %g), NSP %g of %d (float64 %g)\n", sums.value[sum_of_correct(HEAD_MASKED_WORDS)],
	       golden.batch.labels[HEAD_MASKED_WORDS].count, wanted[2], sums.value[sum_of_correct(HEAD_NEXT_SENTENCE)],
	       golden.batch.sequence_count, wanted[3]);
	double *gradients = run_gradients(&run);
	double worst = golden_compare(&golden, act, run.model, gradients, (struct limit){1e-5, 1e-6, 3}, tensors ? stdout : NULL);
	printf("largest error: %.3f of the limit for fp32\n", worst);
	print_totals(&golden, act, run.model, gradients);
	if (argc > 6 && strcmp(argv[5], "save") == 0)
		save(&run, argv[6]);
	free(wanted);
	free(gradients);
	run_close(&run);
	golden_close(&golden);
	return 0;
}
