/* Runs a model in training on one sequence, and ranks the words for each of its blanks. */
#include "infer/predictor.h"

#include <stdlib.h>

#include "base/memory.h"
#include "data/pretraining/instances.h"
#include "backend/open.h"

enum status predictor_open(struct predictor *predictor, const struct model *model, struct activations *activations,
			   struct replica *replica, const struct vocab *vocab, int32_t capacity, int32_t k)
{
	if (k > vocab->count)
		k = vocab->count;
	*predictor = (struct predictor){
		.model = model,
		.activations = activations,
		.replica = replica,
		.vocab = vocab,
		.k = k,
		.capacity = capacity,
	};
	struct backend *be = replica->backend;
	struct batch_capacity own = instance_capacity(capacity, 1, capacity);
	int64_t count = (int64_t)backend_room(be, own).labels[HEAD_MASKED_WORDS].count * k;
	TRY(batch_create(&predictor->host, &own));
	TRY(memory_new(&predictor->ids, count, sizeof *predictor->ids, "predictions"));
	TRY(memory_new(&predictor->probabilities, count, sizeof *predictor->probabilities, "predictions"));
	TRY(be->functions->allocate(be, &predictor->device_ids, (size_t)count * sizeof *predictor->ids, "predictions"));
	return be->functions->allocate(be, &predictor->device_probabilities, (size_t)count * sizeof *predictor->probabilities,
				       "predictions");
}

void predictor_release(struct predictor *predictor)
{
	if (!predictor->replica)
		return;
	struct backend *be = predictor->replica->backend;
	batch_release(&predictor->host);
	free(predictor->ids);
	free(predictor->probabilities);
	be->functions->release(be, predictor->device_ids);
	be->functions->release(be, predictor->device_probabilities);
	*predictor = (struct predictor){0};
}

/* Makes a text a batch of one sequence. */
static void fill_batch(struct batch *batch, const struct vocab *vocab, const int32_t *ids, int32_t count)
{
	int32_t size = template_join(&vocab->single, ids, count, NULL, 0, batch->ids);
	batch->token_count = batch->longest = size;
	batch->sequence_count = batch->example_count = 1;
	batch->starts[0] = batch->example_starts[0] = 0;
	batch->starts[1] = size;
	batch->example_starts[1] = 1;
	batch->samples[0] = 0;
	struct batch_labels *blanks = &batch->labels[HEAD_MASKED_WORDS];
	blanks->count = 0;
	for (int32_t i = 0; i < size; i++) {
		batch->types[i] = 0;
		batch->positions[i] = i;
		batch->token_samples[i] = 0;
		if (batch->ids[i] == vocab->mask)
			blanks->rows[blanks->count++] = i;
	}
}

static void queue_predictions(void *context)
{
	struct predictor *predictor = context;
	model_forward(predictor->model, predictor->activations, predictor->replica, &predictor->batch, false);
	vocab_topk(predictor->replica, &(struct vocab_topk){
					       .table = model_output_table(predictor->model),
					       .bias = &predictor->model->prediction_bias,
					       .k = predictor->k,
					       .ids = predictor->device_ids,
					       .probabilities = predictor->device_probabilities,
					       .x = model_prediction_rows(predictor->model, predictor->activations,
									  predictor->replica, &predictor->batch),
				       });
}

enum status predictor_fill(struct predictor *predictor, const int32_t *ids, int64_t count, const char *text)
{
	struct backend *be = predictor->replica->backend;
	int32_t room = predictor->capacity - template_size(&predictor->vocab->single);
	if (count > room)
		return error_hinted(error_set(ERR_USAGE, "'%.60s...' has %lld tokens, but the model takes at most %d", text,
					      (long long)count, room),
				    "shorten the text");
	fill_batch(&predictor->host, predictor->vocab, ids, (int32_t)count);
	predictor->blanks = predictor->host.labels[HEAD_MASKED_WORDS].count;
	if (predictor->blanks == 0)
		return error_hinted(error_set(ERR_USAGE, "'%.60s' has no [MASK]", text),
				    "write [MASK] where a word should be filled in");
	model_await(predictor->model);
	be->functions->upload(predictor->replica, &predictor->host, &predictor->batch);
	struct work_key key = work_key(predictor, WORK_PREDICTIONS, &predictor->batch);
	work_queue(predictor->replica, &key, queue_predictions, predictor);
	TRY(be->functions->synchronize(predictor->replica));
	size_t size = (size_t)predictor->blanks * (size_t)predictor->k;
	be->functions->to_host(be, predictor->ids, predictor->device_ids, size * sizeof *predictor->ids);
	be->functions->to_host(be, predictor->probabilities, predictor->device_probabilities,
			       size * sizeof *predictor->probabilities);
	return OK;
}
