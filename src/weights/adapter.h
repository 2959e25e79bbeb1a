/* Adapters as peft keeps them: a file of weights with small matrices that are added to weights of a base model (LoRA, Hu et al.
 * 2021: W + s B A), and whole tensors, such as a head, that take the place of the base's; and a configuration beside it, which
 * says what the base is. Loading the weights of an adapter gives the base's with the adapter merged into them. */
#ifndef WEIGHTS_ADAPTER_H
#define WEIGHTS_ADAPTER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/path.h"
#include "formats/model_file_names.h"
#include "formats/weights_file.h"

#define ADAPTER_WEIGHTS_FILE "adapter_model.safetensors"
#define ADAPTER_PREFIX "base_model.model." /* of the names of all its tensors */
#define ADAPTER_BASE_HASH "base_weights="  /* how a note in the file begins that identifies the base */

/* What the configuration says. */
struct adapter_config {
	char base[PATH_BYTES]; /* the base's file of weights; "": there is no adapter */
	char architecture[64]; /* transformers' class of the whole; "": the base's */
	double alpha;
	bool rank_stabilized; /* s is alpha / sqrt(rank) (rsLoRA), not alpha / rank */
};
/* Reads what is beside this file of weights, which need not be an adapter's, and finds the base: a folder, as the path says or
 * within the adapter's own folder, or a model in the cache of the Hub. ERR_USAGE: there is no base, or the adapter is of a kind
 * that bertc does not compute, which is named. */
MUST_USE enum status adapter_config_read(struct adapter_config *out, const char *weights);

/* peft's task type for a model of this architecture; NULL: it has none. */
const char *adapter_task_type(const char *architecture);

/* A weight to which B A is added: B (rows, rank), A (rank, columns). */
struct adapter_addition {
	char name[256]; /* of the parameter, ours */
	const struct stored_tensor *a, *b;
};

/* Zero-initialize; close even after a failure. */
struct adapter {
	struct adapter_config config; /* without a base: there is no adapter, and nothing is open */
	struct weights_file file;     /* its tensors are named as in the whole model */
	struct adapter_addition *additions;
	int64_t addition_count;
};
MUST_USE enum status adapter_open(struct adapter *out, const char *weights);
void adapter_close(struct adapter *adapter);
/* Whether a tensor of its file takes the place of the base's. */
bool adapter_replaces(const struct stored_tensor *tensor);
/* Whether the addition belongs to the weight with this name in the base's form; in an encoder without a head, names lack the
 * prefix. */
bool adapter_names(const struct adapter_addition *addition, const char *form);
/* What is added to a parameter of ours, or NULL. */
const struct adapter_addition *adapter_find(const struct adapter *adapter, const char *name);
/* Adds it to values (rows, columns). Matrices of other shapes are ERR_STATE. */
MUST_USE enum status adapter_add(const struct adapter *adapter, const struct adapter_addition *addition, int64_t rows,
				 int64_t columns, float *values);

/* What identifies a base: its tensors' names, shapes, and values. An adapter that bertc wrote records it. */
uint64_t adapter_base_hash(const struct weights_file *base);
/* ERR_STATE if the adapter was trained on another base than this. */
MUST_USE enum status adapter_check_base(const struct adapter *adapter, const struct weights_file *base);

#endif
