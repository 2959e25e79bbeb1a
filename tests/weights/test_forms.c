/* The forms of the encoder (model/forms.c): folders that transformers wrote are read, compute the same loss and gradients, and
 * get the same names in the files and in config.json when they are written. tests/golden/forms is from dev/forms_golden.py. */
#include "test.h"
#include "model/forms.h"
#include "model/golden.h"
#include "weights/model_folder.h"

#define TOKENS 6
#define FOLDER "tests/golden/forms/"

static const struct model_heads class_head = {
	.architecture = "BertForSequenceClassification",
	.pooler = true,
	.count = 1,
	.head = {{.input = INPUT_FIRST_ROW,
		  .pooled = true,
		  .drops = true,
		  .outputs = 3,
		  .loss = LOSS_CLASSES,
		  .coefficient = 1,
		  .name = "classifier"}},
};

static const struct model_heads choice_head = {
	.architecture = "BertForMultipleChoice",
	.pooler = true,
	.count = 1,
	.head = {{.input = INPUT_FIRST_ROW,
		  .pooled = true,
		  .drops = true,
		  .outputs = 1,
		  .loss = LOSS_GROUP,
		  .coefficient = 1,
		  .name = "classifier"}},
};

static const struct model_heads tags_head = {
	.architecture = "BertForTokenClassification",
	.count = 1,
	.head = {{.input = INPUT_CHOSEN_ROWS,
		  .drops = true,
		  .outputs = 3,
		  .loss = LOSS_CLASSES,
		  .coefficient = 1,
		  .name = "classifier"}},
};

static const struct model_heads answers_head = {
	.architecture = "BertForQuestionAnswering",
	.count = 1,
	.head = {{.input = INPUT_ALL_ROWS,
		  .drops = true,
		  .outputs = 2,
		  .loss = LOSS_SEGMENT,
		  .coefficient = 1,
		  .name = "qa_outputs"}},
};

static const struct {
	const char *name, *classes;
	const struct model_heads *heads;
	int32_t positions;
} cases[] = {
	{"roberta-words", "Roberta", &model_heads_words, 9},
	{"roberta-untied", "Roberta", &model_heads_words, 9},
	{"roberta-class", "Roberta", &class_head, 9},
	{"roberta-choice", "Roberta", &choice_head, 9},
	{"xlm-roberta-class", "XLMRoberta", &class_head, 9},
	{"camembert-words", "Camembert", &model_heads_words, 10},
	{"electra-words", "Electra", &model_heads_words, 12},
	{"electra-class", "Electra", &class_head, 12},
	{"electra-choice", "Electra", &choice_head, 12},
	{"modernbert-words", "ModernBert", &model_heads_words, 12},
	{"modernbert-untied", "ModernBert", &model_heads_words, 12},
	{"modernbert-class", "ModernBert", &class_head, 12},
	{"modernbert-choice", "ModernBert", &choice_head, 12},
	{"modernbert-tags", "ModernBert", &tags_head, 12},
	{"modernbert-answers", "ModernBert", &answers_head, 12},
	{"distilbert-words", "DistilBert", &model_heads_words, 12},
	{"distilbert-class", "DistilBert", &class_head, 12},
	{"distilbert-choice", "DistilBert", &choice_head, 12},
	{"distilbert-tags", "DistilBert", &tags_head, 12},
	{"distilbert-answers", "DistilBert", &answers_head, 12},
	{"nomic-words", "NomicBert", &model_heads_words, 12},
	{"nomic-class", "NomicBert", &class_head, 12},
	{"nomic-tags", "NomicBert", &tags_head, 12},
};

/* The script's batch. Arrays have room for whole slices of rows. */
static struct batch batch_for(const struct model_heads *heads)
{
	static int32_t ids[128] = {4, 7, 19, 5, 11, 6, 4, 13, 5, 8, 8, 6}, types[128] = {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1};
	static int32_t positions[128], starts[128] = {0, TOKENS, 2 * TOKENS}, rows[128] = {1, 4, 8}, predicted[128] = {9, 3, 17};
	static int32_t classes[128] = {2, 0}, right[128] = {1}, each[128] = {0, 1, 2}, both[128] = {0, 2};
	static int32_t tags[128] = {0, 0, 2}, spans[128] = {2, 4, 1, 3};
	static uint32_t samples[128], token_samples[128];
	static float weights[128] = {1, 1, 1};
	bool choice = heads->head[0].loss == LOSS_GROUP, words = heads->head[0].loss == LOSS_WORDS;
	bool chosen = heads->head[0].input == INPUT_CHOSEN_ROWS, answers = heads->head[0].loss == LOSS_SEGMENT;
	for (int i = 0; i < 2 * TOKENS; i++)
		positions[i] = i % TOKENS;
	struct batch batch = {.token_count = 2 * TOKENS,
			      .sequence_count = 2,
			      .longest = TOKENS,
			      .ids = ids,
			      .types = types,
			      .positions = positions,
			      .token_samples = token_samples,
			      .starts = starts,
			      .samples = samples,
			      .example_count = choice ? 1 : 2,
			      .example_starts = choice ? both : each,
			      .id_order = sorted_by_id(ids, 2 * TOKENS)};
	batch.labels[0] = (struct batch_labels){.width = answers ? 2 : 1, .weights = weights};
	if (chosen)
		batch.labels[0].row_width = 1, batch.labels[0].rows = rows;
	batch.labels[0].classes = choice ? right : answers ? spans : words ? predicted : chosen ? tags : classes;
	batch.labels[0].count = choice ? 1 : chosen ? 3 : 2;
	return batch;
}

static void folder_of(const char *name, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, FOLDER "%s", name);
}

/* Every tensor of the file but the reference values is in the model, and the model's names are the file's. */
static void check_names(const struct model *model, const struct safetensors *file, const struct model_folder_report *report)
{
	for (int64_t i = 0; i < report->unused.count; i++)
		if (strncmp(report->unused.names[i], "golden.", 7) != 0)
			fail_msg("'%s' is not used", report->unused.names[i]);
	assert_int_equal(report->loaded, model->parameter_count);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		char name[TENSOR_NAME_BYTES];
		tensor_name_to_form(model, model->parameters[i].name, name);
		if (!safetensors_find(file, name))
			fail_msg("'%s' would be written as '%s', which is not in the file", model->parameters[i].name, name);
	}
}

static void compare(const struct run *run, const struct safetensors *file, const char *prefix, const char *path, double limit)
{
	double *gradients = run_gradients((struct run *)run);
	for (int64_t i = 0; i < run->model->parameter_count; i++) {
		const struct parameter *p = &run->model->parameters[i];
		char name[TENSOR_NAME_BYTES], golden[TENSOR_NAME_BYTES + 32];
		double wanted[2048], square = 0, error = 0;
		/* transformers has the bias twice, and computes with the decoder's if that is untied */
		bool is_decoders = run->model->config.untied && strcmp(p->name, PREDICTION_BIAS) == 0;
		tensor_name_to_form(run->model, is_decoders ? DECODER_BIAS : p->name, name);
		snprintf(golden, sizeof golden, "%s.%s", prefix, name);
		const struct safetensors_entry *entry = safetensors_find(file, golden);
		if (!entry || entry->count != p->count || p->count > 2048)
			fail_msg("%s: no '%s' of %lld numbers", path, golden, (long long)p->count);
		assert_ok(safetensors_to_double(entry, path, wanted));
		for (int64_t k = 0; k < p->count; k++) {
			double difference = gradients[p->offset + k] - wanted[k];
			square += wanted[k] * wanted[k];
			error += difference * difference;
		}
		if (!(sqrt(error) <= limit * (sqrt(square) + 1e-2)))
			fail_msg("%s: the gradient of '%s' is %g off, of %g", path, name, sqrt(error), sqrt(square));
	}
	free(gradients);
}

static void check_case(size_t number, const char *device, enum dtype dtype, double limit)
{
	const struct model_heads *heads = cases[number].heads;
	char folder[PATH_BYTES], path[PATH_BYTES];
	struct model_config config;
	struct task_config task;
	struct safetensors file;
	struct model_folder_report report = {0};
	struct run run;
	folder_of(cases[number].name, folder);
	assert_ok(path_join(path, folder, "model.safetensors"));
	assert_ok(model_folder_config(folder, &config));
	assert_ok(model_folder_task(folder, &task));
	assert_string_equal(task.architecture, heads->architecture);
	assert_string_equal(model_form_of(&config)->classes, cases[number].classes);
	assert_int_equal(model_positions(&config), cases[number].positions);
	assert_ok(safetensors_open(&file, path));
	/* transformers turns queries and keys in single precision, even in a model in double precision */
	if (model_form_of(&config)->positions == POSITIONS_ROTARY)
		limit = fmax(limit, 1e-6);

	struct batch batch = batch_for(heads);
	run_open_heads(&run, device, dtype, 2, &config, heads, &batch, true);
	float *slab = calloc((size_t)run.model->slab_count, sizeof *slab);
	assert_non_null(slab);
	assert_ok(model_folder_load(path, run.model, MISSING_NOTHING, slab, &report));
	check_names(run.model, &file, &report);
	assert_ok(model_set_weights(run.model, &run.replica, slab));
	run_begin(&run, &batch);
	run_batch(&run, &batch, false, true, true);
	double wanted, loss = run_sums(&run).value[sum_of_loss(0)] * run.scalars.inverse_weight[0];
	assert_ok(safetensors_to_double(safetensors_find(&file, "golden.loss"), path, &wanted));
	if (!(fabs(loss - wanted) <= limit * wanted))
		fail_msg("%s: loss %.12g instead of %.12g", folder, loss, wanted);
	compare(&run, &file, "golden", path, limit);
	model_folder_report_release(&report);
	task_config_release(&task);
	safetensors_close(&file);
	free(batch.id_order);
	free(slab);
	run_close(&run);
}

static void ref_equals_transformers(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check_case(i, "ref", DTYPE_F64, 1e-9);
}

static void cpu_equals_transformers(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check_case(i, "cpu", DTYPE_F32, 1e-5);
}

/* Numbers of tests/golden/splade.safetensors, which the caller frees. */
static double *splade_numbers(const struct safetensors *file, const char *form, const char *name, int64_t count)
{
	char full[64];
	snprintf(full, sizeof full, "%s.%s", form, name);
	const struct safetensors_entry *entry = safetensors_find(file, full);
	double *out = calloc((size_t)count, sizeof *out);
	assert_non_null(entry);
	assert_non_null(out);
	assert_int_equal(entry->count, count);
	assert_ok(safetensors_to_double(entry, full, out));
	return out;
}

static void check_splade(const struct safetensors *file, const char *form, const char *device, enum dtype dtype, double limit)
{
	char folder[PATH_BYTES];
	struct model_config config;
	struct run run;
	struct batch batch = batch_for(&model_heads_splade), on_device;
	float *slab;
	folder_of(form, folder);
	assert_ok(model_folder_config(folder, &config));
	run_open_heads(&run, device, dtype, 2, &config, &model_heads_splade, &batch, true);
	slab = calloc((size_t)run.model->slab_count, sizeof *slab);
	assert_non_null(slab);
	assert_ok(model_folder_load(folder, run.model, MISSING_NOTHING, slab, NULL));
	assert_ok(model_set_weights(run.model, &run.replica, slab));
	run_begin(&run, &batch);
	run.backend->functions->upload(&run.replica, &batch, &on_device);
	model_forward(run.model, run.activations, &run.replica, &on_device, false);
	struct tensor y = model_outputs(run.model, run.activations, &run.replica, &on_device, 0);
	int64_t count = y.rows * y.columns;
	double *wanted = splade_numbers(file, form, "y", count), *dy = splade_numbers(file, form, "dy", count);
	float narrow[512];
	assert_true(count <= 512);
	for (int64_t i = 0; i < count; i++) {
		double got = dtype == DTYPE_F64 ? ((double *)y.data)[i] : (double)((float *)y.data)[i];
		if (!(fabs(got - wanted[i]) <= limit * 10))
			fail_msg("%s: weight %d is %.12g instead of %.12g", form, (int)i, got, wanted[i]);
		narrow[i] = (float)dy[i];
	}
	model_take_vector_gradients(run.model, run.activations, 0, dtype == DTYPE_F64 ? (void *)dy : (void *)narrow, y.rows);
	model_vectors_backward(run.model, run.activations, &run.replica, &on_device, 0, true);
	model_backward(run.model, run.activations, &run.replica, &on_device, true, NULL, NULL);
	assert_ok(run.backend->functions->synchronize(&run.replica));
	compare(&run, file, form, form, limit);
	free(wanted);
	free(dy);
	free(batch.id_order);
	free(slab);
	run_close(&run);
}

static void weights_of_words_equal_sentence_transformers(void **state)
{
	static const char *const forms[] = {"roberta-words", "modernbert-untied", "electra-words", "distilbert-words"};
	struct safetensors file;
	assert_ok(safetensors_open(&file, "tests/golden/splade.safetensors"));
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		check_splade(&file, forms[i], "ref", DTYPE_F64, strncmp(forms[i], "modern", 6) == 0 ? 1e-6 : 1e-9);
		check_splade(&file, forms[i], "cpu", DTYPE_F32, 5e-5);
	}
	safetensors_close(&file);
}

/* With dropout, forward and backward draw the same masks: the loss falls along the gradient by what its square says. */
static void dropout_has_the_same_masks_in_backward(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char folder[PATH_BYTES];
		struct model_config config;
		struct run run;
		folder_of(cases[i].name, folder);
		assert_ok(model_folder_config(folder, &config));
		config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.choice_dropout = 0.3;
		config.embedding_dropout = config.classifier_dropout = 0.3;
		struct batch batch = batch_for(cases[i].heads);
		run_open_heads(&run, "ref", DTYPE_F64, 2, &config, cases[i].heads, &batch, true);
		float *slab = calloc((size_t)run.model->slab_count, sizeof *slab);
		assert_non_null(slab);
		assert_ok(model_folder_load(folder, run.model, MISSING_NOTHING, slab, NULL));
		assert_ok(model_set_weights(run.model, &run.replica, slab));
		run_begin(&run, &batch);
		run_batch(&run, &batch, true, true, true);
		double *gradients = run_gradients(&run), *master = run.model->slab.data, square = 0, loss[2], h = 1e-6;
		for (int64_t k = 0; k < run.model->slab_count; k++)
			square += gradients[k] * gradients[k];
		for (int side = 0; side < 2; side++) {
			for (int64_t k = 0; k < run.model->slab_count; k++)
				master[k] += (side == 0 ? h : -2 * h) * gradients[k];
			run_begin(&run, &batch);
			run_batch(&run, &batch, true, false, true);
			loss[side] = run_sums(&run).value[sum_of_loss(0)] * run.scalars.inverse_weight[0];
		}
		double slope = (loss[0] - loss[1]) / (2 * h);
		if (!(fabs(slope - square) <= 1e-4 * (square + 1e-3)))
			fail_msg("%s: slope %.8g, square of the gradient %.8g", folder, slope, square);
		free(gradients);
		free(batch.id_order);
		free(slab);
		run_close(&run);
	}
}

/* A step's loss and gradients, with dropout. */
static double *gradients_of(size_t number, const char *device, enum dtype dtype, struct run *run, double *loss)
{
	char folder[PATH_BYTES];
	struct model_config config;
	folder_of(cases[number].name, folder);
	assert_ok(model_folder_config(folder, &config));
	config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.choice_dropout = 0.3;
	config.embedding_dropout = config.classifier_dropout = 0.3;
	struct batch batch = batch_for(cases[number].heads);
	run_open_heads(run, device, dtype, 2, &config, cases[number].heads, &batch, true);
	float *slab = calloc((size_t)run->model->slab_count, sizeof *slab);
	assert_non_null(slab);
	assert_ok(model_folder_load(folder, run->model, MISSING_NOTHING, slab, NULL));
	assert_ok(model_set_weights(run->model, &run->replica, slab));
	run_begin(run, &batch);
	run_batch(run, &batch, true, true, true);
	*loss = run_sums(run).value[sum_of_loss(0)];
	free(batch.id_order);
	free(slab);
	return run_gradients(run);
}

/* Does transformers' name of a parameter belong to the embeddings, or to layer 0 or 1? The others always learn. */
static int frozen_from(const struct model *model, int64_t parameter)
{
	char name[TENSOR_NAME_BYTES];
	tensor_name_to_form(model, model->parameters[parameter].name, name);
	return strstr(name, "emb")                                     ? 0
	       : strstr(name, "layer.0.") || strstr(name, "layers.0.") ? 1
	       : strstr(name, "layer.1.") || strstr(name, "layers.1.") ? 2
								       : 3;
}

/* What learns above frozen layers gets the same bits as without them, whatever the form, and nothing else gets a gradient. */
static void frozen_layers_change_no_other_gradient(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct run whole;
		double loss;
		const char *device = i % 2 ? "ref" : "cpu";
		enum dtype dtype = i % 2 ? DTYPE_F64 : DTYPE_F32;
		if (cases[i].heads->head[0].loss == LOSS_WORDS) /* they are not fine-tuned */
			continue;
		double *wanted = gradients_of(i, device, dtype, &whole, &loss);
		for (run_frozen = 0; run_frozen <= whole.model->config.num_hidden_layers; run_frozen++) {
			struct run run;
			double own;
			double *gradients = gradients_of(i, device, dtype, &run, &own);
			const struct model *model = run.model;
			assert_true(own == loss);
			for (int64_t p = 0; p < model->parameter_count; p++) {
				const struct parameter *parameter = &model->parameters[p];
				bool learns = frozen_from(model, p) > run_frozen;
				if (learns != (p >= model->frozen_count) || learns != (parameter->rate == 1))
					fail_msg("%s, %d frozen layers: '%s'", cases[i].name, run_frozen, parameter->name);
				int64_t place = parameter->offset - model->frozen_elements;
				if (learns && memcmp(gradients + place, wanted + parameter->offset,
						     (size_t)parameter->count * sizeof *wanted) != 0)
					fail_msg("%s, %d frozen layers: the gradient of '%s'", cases[i].name, run_frozen,
						 parameter->name);
			}
			free(gradients);
			run_close(&run);
		}
		run_frozen = -1;
		free(wanted);
		run_close(&whole);
	}
}

/* What is written says the same as what was read. */
static void configurations_return(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char folder[PATH_BYTES];
		struct model_config config, again;
		struct task_config task, task_again;
		struct buffer text = {0};
		struct json_document document;
		folder_of(cases[i].name, folder);
		assert_ok(model_folder_config(folder, &config));
		assert_ok(model_folder_task(folder, &task));
		config_file_put(&(struct json_writer){.out = &text}, &config, &task);
		assert_non_null(strstr(buffer_string(&text), cases[i].classes));
		assert_ok(json_parse(&document, "again", text.data, text.size));
		assert_ok(model_config_from_json(&again, document.root, "again"));
		assert_ok(task_config_from_json(&task_again, document.root, "again"));
		assert_string_equal(task_again.architecture, task.architecture);
		assert_memory_equal(&again, &config, offsetof(struct model_config, saved_dropout));
		assert_true(again.pad_token_id == config.pad_token_id && again.eos_token_id == config.eos_token_id &&
			    again.embedding_size == config.embedding_size && again.choice_dropout == config.choice_dropout &&
			    again.layer_norm_eps == config.layer_norm_eps);
		json_release(&document);
		buffer_release(&text);
		task_config_release(&task);
		task_config_release(&task_again);
	}
}

/* Writes every second tensor of a file, from `first` on, as bf16, which cuts the last 16 bits off. */
static void write_shard(const struct safetensors *file, int64_t first, const char *path)
{
	struct safetensors_entry entries[64];
	static uint16_t values[64][2048];
	int64_t count = 0;
	for (int64_t i = first; i < file->count; i += 2) {
		struct safetensors_entry *entry = &entries[count];
		*entry = file->entries[i];
		if (strncmp(entry->name, "golden.", 7) == 0)
			continue;
		for (int64_t k = 0; k < entry->count; k++)
			memcpy(&values[count][k], (const char *)entry->data + 4 * k + 2, 2);
		entry->dtype = ST_BF16;
		entry->data = values[count++];
		entry->bytes = 2 * (uint64_t)entry->count;
	}
	assert_ok(safetensors_write(path, entries, count, NULL, NULL, NULL));
}

/* Weights in several files of half precision; a missing file, and a table of positions that is too short, are named. */
static void parts_are_joined_and_faults_named(void **state)
{
	static const char *const parts[] = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
	char source[PATH_BYTES], path[PATH_BYTES];
	struct model_config config;
	struct safetensors file;
	struct buffer index = {0};
	struct run run;
	folder_of("distilbert-class", source);
	assert_ok(model_folder_config(source, &config));
	assert_ok(path_join(path, source, "model.safetensors"));
	assert_ok(safetensors_open(&file, path));
	buffer_format(&index, "{\"weight_map\": {");
	for (int64_t i = 0, n = 0; i < file.count; i++)
		if (strncmp(file.entries[i].name, "golden.", 7) != 0)
			buffer_format(&index, "%s\"%s\": \"%s\"", n++ ? ", " : "", file.entries[i].name, parts[i % 2]);
	buffer_format(&index, "}}");
	assert_ok(file_write(test_path("model.safetensors.index.json"), index.data, index.size));
	for (int64_t part = 0; part < 2; part++)
		write_shard(&file, part, test_path(parts[part]));

	struct batch batch = batch_for(&class_head);
	run_open_heads(&run, "ref", DTYPE_F64, 2, &config, &class_head, &batch, false);
	float *whole = calloc((size_t)run.model->slab_count, sizeof *whole);
	float *joined = calloc((size_t)run.model->slab_count, sizeof *joined);
	assert_true(whole && joined);
	assert_ok(model_folder_load(source, run.model, MISSING_NOTHING, whole, NULL));
	assert_ok(model_folder_load(test_folder, run.model, MISSING_NOTHING, joined, NULL));
	for (int64_t k = 0; k < run.model->slab_count; k++)
		assert_true(fabsf(joined[k] - whole[k]) <= fabsf(whole[k]) / 128);
	assert_int_equal(remove(test_path(parts[1])), 0);
	assert_int_not_equal(model_folder_load(test_folder, run.model, MISSING_NOTHING, joined, NULL), OK);
	assert_non_null(strstr(error_last()->message, parts[1]));
	run_close(&run);

	config.max_position_embeddings = 99;
	run_open_heads(&run, "ref", DTYPE_F64, 2, &config, &class_head, &batch, false);
	joined = realloc(joined, (size_t)run.model->slab_count * sizeof *joined);
	assert_non_null(joined);
	assert_int_equal(model_folder_load(source, run.model, MISSING_NOTHING, joined, NULL), ERR_STATE);
	if (!strstr(error_last()->message, "position_embeddings.weight' needs (99, 8)"))
		fail_msg("%s", error_last()->message);
	run_close(&run);
	free(whole);
	free(joined);
	free(batch.id_order);
	buffer_release(&index);
	safetensors_close(&file);
}

/* A model with an untied output layer is written as one, with the bias under both names; as a tied one it is refused. */
static void untied_decoders_are_written(void **state)
{
	static const char *const names[] = {"lm_head.decoder.weight", "lm_head.decoder.bias", "lm_head.bias"};
	char source[PATH_BYTES];
	struct model_config config;
	struct safetensors file;
	struct folder_files files = {0};
	struct vocab vocab;
	struct run run;
	folder_of("roberta-untied", source);
	assert_ok(model_folder_config(source, &config));
	struct batch batch = batch_for(&model_heads_words);
	run_open_heads(&run, "ref", DTYPE_F64, 2, &config, &model_heads_words, &batch, false);
	size_t bytes = (size_t)run.model->slab_count * sizeof(float);
	float *slab = calloc(1, bytes), *again = calloc(1, bytes);
	assert_true(slab && again);
	assert_ok(model_folder_load(source, run.model, MISSING_NOTHING, slab, NULL));
	assert_ok(vocab_from_entries(&vocab, (const char *const[]){"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, 5));
	struct tokenizer_settings tokenizer = tokenizer_defaults(false);
	struct model_folder_content content = {.model = run.model, .slab = slab, .vocab = &vocab, .tokenizer = &tokenizer};
	assert_ok(folder_make(test_path("untied")));
	assert_ok(model_folder_save(test_path("untied"), &content, &files));
	assert_ok(safetensors_open(&file, test_path("untied/model.safetensors")));
	for (int i = 0; i < 3; i++)
		assert_non_null(safetensors_find(&file, names[i]));
	safetensors_close(&file);
	assert_ok(model_folder_config(test_path("untied"), &config));
	assert_true(config.untied);
	assert_ok(model_folder_load(test_path("untied"), run.model, MISSING_NOTHING, again, NULL));
	assert_memory_equal(again, slab, bytes);
	run_close(&run);

	config.untied = false;
	run_open_heads(&run, "ref", DTYPE_F64, 2, &config, &model_heads_words, &batch, false);
	assert_int_equal(model_folder_load(source, run.model, MISSING_NOTHING, slab, NULL), ERR_STATE);
	assert_non_null(strstr(error_last()->hint, "tie_word_embeddings"));
	run_close(&run);
	free(files.files);
	vocab_release(&vocab);
	free(batch.id_order);
	free(slab);
	free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ref_equals_transformers),
		cmocka_unit_test(cpu_equals_transformers),
		cmocka_unit_test(weights_of_words_equal_sentence_transformers),
		cmocka_unit_test(dropout_has_the_same_masks_in_backward),
		cmocka_unit_test(frozen_layers_change_no_other_gradient),
		cmocka_unit_test(configurations_return),
		cmocka_unit_test(parts_are_joined_and_faults_named),
		cmocka_unit_test(untied_decoders_are_written),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
