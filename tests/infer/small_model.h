/* A model folder with made-up weights and words, for tests of inference. */
#ifndef TESTS_INFER_SMALL_MODEL_H
#define TESTS_INFER_SMALL_MODEL_H

#include "base/rng.h"
#include "test.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"

enum { SMALL_VOCAB = 60, SMALL_HIDDEN = 32, SMALL_LAYERS = 2, SMALL_POSITIONS = 48 };

static int32_t small_segment_types = 2; /* of the models made from now on */

/* Random weights of a parameter: norms stay near 1, the rest is large enough for answers to differ. */
static inline void small_weights(const struct model *model, float *slab)
{
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		struct rng rng = rng_start(5, RNG_TEST, (uint64_t)i);
		for (int64_t k = 0; k < p->count; k++)
			slab[p->offset + k] =
				(p->init == INIT_ONE ? 1.0f : 0.0f) +
				((float)rng_below(&rng, 2001) - 1000) / (p->init == INIT_NORMAL ? 5000.0f : 20000.0f);
	}
}

/* Writes the folder `path` with its manifest, and stores the weights in *out_slab (may be NULL; the caller frees it), laid
 * out as in a model with these heads. `task` NULL: a pre-trained model. */
static inline void small_model_write(const char *path, const struct model_heads *heads, const struct task_config *task,
				     struct model **out_model, float **out_slab)
{
	static struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32}; /* names and shapes need no device */
	static const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "##s"};
	static char words[SMALL_VOCAB][8];
	const char *entries[SMALL_VOCAB];
	struct vocab vocab;
	struct model *model;
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct folder_files files = {0};
	struct model_config sizes = {
		.vocab_size = SMALL_VOCAB,
		.hidden_size = SMALL_HIDDEN,
		.num_hidden_layers = SMALL_LAYERS,
		.num_attention_heads = 2,
		.intermediate_size = 64,
		.max_position_embeddings = SMALL_POSITIONS,
		.type_vocab_size = small_segment_types,
		.hidden_act = ACTIVATION_GELU_ERF,
		.layer_norm_eps = 1e-12,
		.initializer_range = 0.02,
	};
	for (int i = 0; i < SMALL_VOCAB; i++) {
		snprintf(words[i], sizeof words[i], "w%c%c", 'a' + i / 26, 'a' + i % 26);
		entries[i] = i < 8 ? special[i] : words[i];
	}
	assert_ok(vocab_from_entries(&vocab, entries, SMALL_VOCAB));
	assert_ok(model_create(&model, &be, &sizes, heads));
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	assert_non_null(slab);
	small_weights(model, slab);
	assert_ok(folder_make(path));
	const struct model_folder_content content = {.model = model,
						     .slab = slab,
						     .task = task,
						     .vocab = &vocab,
						     .tokenizer = &settings,
						     .max_length = SMALL_POSITIONS};
	assert_ok(model_folder_save(path, &content, &files));
	assert_ok(manifest_write(path, 1, &files));
	free(files.files);
	vocab_release(&vocab);
	if (out_model)
		*out_model = model;
	else
		model_free(model);
	if (out_slab)
		*out_slab = slab;
	else
		free(slab);
}

static inline void small_model_make(const char *path, const struct model_heads *heads, struct model **out_model, float **out_slab)
{
	small_model_write(path, heads, NULL, out_model, out_slab);
}

#endif
