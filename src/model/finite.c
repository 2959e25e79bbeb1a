/* Finds where numbers first become non-finite: in the weights, then in the forward pass in its order, then in the gradients in
 * the order in which backward computes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/activations.h"

/* Bytes examined on the host at a time. */
#define PIECE ((size_t)1 << 20)

/* A floating-point number is not finite if all bits of its exponent are set. */
static bool is_finite(const unsigned char *at, enum dtype dtype)
{
	static const uint64_t exponents[DTYPE_COUNT] = {
		[DTYPE_F64] = 0x7ff0000000000000,
		[DTYPE_F32] = 0x7f800000,
		[DTYPE_BF16] = 0x7f80,
		[DTYPE_F16] = 0x7c00,
	};
	uint64_t bits = 0;
	memcpy(&bits, at, dtype_bytes(dtype)); /* little-endian, like all of bertc */
	return (bits & exponents[dtype]) != exponents[dtype];
}

/* Index of the first of `count` elements on the device that is not finite, or -1. */
static int64_t first_not_finite(struct backend *be, const void *device, enum dtype dtype, int64_t count, unsigned char *piece)
{
	size_t element = dtype_bytes(dtype);
	int64_t at_a_time = (int64_t)(PIECE / element);
	for (int64_t done = 0; done < count; done += at_a_time) {
		int64_t part = count - done < at_a_time ? count - done : at_a_time;
		be->functions->to_host(be, piece, (const char *)device + (size_t)done * element, (size_t)part * element);
		for (int64_t i = 0; i < part; i++) {
			if (!is_finite(piece + (size_t)i * element, dtype))
				return done + i;
		}
	}
	return -1;
}

struct search {
	const struct model *model;
	unsigned char *piece;
	char *out;
	size_t size;
};

static bool bad_tensor(const struct search *search, struct tensor tensor)
{
	return tensor.data && first_not_finite(search->model->backend, tensor.data, tensor.dtype, tensor.rows * tensor.columns,
					       search->piece) >= 0;
}

/* `offset`: of the parameter in `slab`, the weights' or the gradients'. */
static bool bad_parameter(const struct search *search, const struct tensor *slab, const struct parameter *parameter,
			  int64_t offset)
{
	const char *at = (const char *)slab->data + (size_t)offset * dtype_bytes(slab->dtype);
	return first_not_finite(search->model->backend, at, slab->dtype, parameter->count, search->piece) >= 0;
}

static bool search_weights(const struct search *search)
{
	for (int64_t i = 0; i < search->model->parameter_count; i++) {
		const struct parameter *parameter = &search->model->parameters[i];
		if (bad_parameter(search, &search->model->slab, parameter, parameter->offset)) {
			snprintf(search->out, search->size, "the weights of '%s'", parameter->name);
			return true;
		}
	}
	return false;
}

/* Without data if a later layer has written to the same place: there is nothing left to examine, and non-finite numbers show
 * up where they went next. */
static struct tensor kept(struct tensor tensor, struct tensor later)
{
	if (tensor.data == later.data)
		tensor.data = NULL;
	return tensor;
}

static bool search_layer(const struct search *search, const struct layer_activations *layer, const struct layer_activations *next,
			 int32_t number)
{
	const struct {
		const char *name;
		struct tensor tensor;
	} places[] = {
		{"query, key and value", kept(layer->qkv, next->qkv)},
		{"attention", kept(layer->attention, next->attention)},
		{"the norm after attention", kept(layer->attention_norm, next->attention_norm)},
		{"feed-forward", kept(layer->pre, next->pre)},
		{"gelu", kept(layer->gelu, next->gelu)},
		{"the norm after feed-forward", kept(layer->y, next->y)},
	};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (bad_tensor(search, places[i].tensor)) {
			snprintf(search->out, search->size, "'bert.encoder.layer.%d', %s", number, places[i].name);
			return true;
		}
	}
	return false;
}

static bool search_forward(const struct search *search, const struct activations *a)
{
	static const struct layer_activations none;
	int32_t layers = search->model->config.num_hidden_layers;
	if (bad_tensor(search, kept(a->embedded, a->layers[0].y))) {
		snprintf(search->out, search->size, "'bert.embeddings'");
		return true;
	}
	for (int32_t i = 0; i < layers; i++) {
		if (search_layer(search, &a->layers[i], i + 1 < layers ? &a->layers[i + 1] : &none, i))
			return true;
	}
	const struct model_heads *heads = &search->model->heads;
	for (int h = heads->count - 1; h >= 0; h--) {
		bool words = heads->head[h].loss == LOSS_WORDS, pooled = heads->head[h].pooled;
		if (pooled && bad_tensor(search, a->heads[h].pooled)) {
			snprintf(search->out, search->size, "'bert.pooler'");
			return true;
		}
		if (bad_tensor(search, words ? a->transformed : a->heads[h].logits)) {
			const char *name = heads->head[h].loss == LOSS_VECTORS ? "pooling" : heads->head[h].name;
			snprintf(search->out, search->size, "'%s%s'", name, words ? ".transform" : "");
			return true;
		}
	}
	return false;
}

/* The slab is in the order of the forward pass, so this goes backward through it. */
static bool search_gradients(const struct search *search)
{
	for (int64_t i = search->model->parameter_count - 1; i >= search->model->frozen_count; i--) {
		const struct parameter *parameter = &search->model->parameters[i];
		if (bad_parameter(search, &search->model->gradients, parameter,
				  parameter->offset - search->model->frozen_elements)) {
			snprintf(search->out, search->size, "the gradient of '%s'", parameter->name);
			return true;
		}
	}
	return false;
}

bool model_locate_not_finite(const struct model *model, const struct activations *activations, bool loss_is_finite, char *out,
			     size_t size)
{
	struct search search = {.model = model, .piece = malloc(PIECE), .out = out, .size = size};
	bool found = search.piece && (search_weights(&search) || search_forward(&search, activations));
	if (search.piece && !found && !loss_is_finite) {
		snprintf(out, size, "the output layer, or the loss");
		found = true;
	}
	found = found || (search.piece && search_gradients(&search));
	free(search.piece);
	return found;
}
