/* Attention as cuDNN operation graphs, through its C API: descriptors are made, linked and finalized here, and turned into
 * execution plans. Only a plan's last step needs a device, so a test can build everything else (docs/cuda.md). */
#ifndef BACKEND_CUDA_CUDNN_GRAPH_H
#define BACKEND_CUDA_CUDNN_GRAPH_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>
#include "backend/tensor.h"
#include "base/error.h"

/* The library functions that we call; the library is loaded on demand. */
struct cudnn_library {
	void *handle;
	size_t (*version)(void);
	const char *(*error_string)(cudnnStatus_t status);
	void (*last_error)(char *message, size_t size);
	cudnnStatus_t (*create)(cudnnHandle_t *out);
	cudnnStatus_t (*destroy)(cudnnHandle_t handle);
	cudnnStatus_t (*set_stream)(cudnnHandle_t handle, cudaStream_t stream);
	cudnnStatus_t (*create_descriptor)(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out);
	cudnnStatus_t (*destroy_descriptor)(cudnnBackendDescriptor_t descriptor);
	cudnnStatus_t (*set_attribute)(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t count, const void *values);
	cudnnStatus_t (*get_attribute)(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t wanted, int64_t *count, void *values);
	cudnnStatus_t (*finalize)(cudnnBackendDescriptor_t descriptor);
	cudnnStatus_t (*execute)(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack);
};

/* Loads libcudnn.so.9 from the library path. ERR_RESOURCE: it was not found, or is too old. */
MUST_USE enum status cudnn_library_open(struct cudnn_library *out);
void cudnn_library_close(struct cudnn_library *library);
/* "cuDNN 9.19.0" */
void cudnn_library_name(const struct cudnn_library *library, char out[24]);

/* Packed rows of `sequences` sequences (trailing ones may be empty) of up to `longest` tokens, every head `head_size` wide;
 * queries, keys and values interleaved in rows of 3 * heads * head_size. */
struct cudnn_attention {
	enum dtype dtype; /* BF16 or F16 */
	int64_t sequences, heads, longest, head_size;
	double dropout;
	bool backward;
	bool saves; /* forward: the log-sum-exp is stored */
};

/* The tensors of an execution, by number. Offsets are int32 (sequences + 1), in elements; lengths int32 (sequences); the
 * log-sum-exp fp32, heads side by side for each token; seed and offset int64 in device memory; scalars fp32 in host memory. */
enum cudnn_tensor {
	CUDNN_Q = 1,
	CUDNN_K,
	CUDNN_V,
	CUDNN_O,
	CUDNN_LSE,
	CUDNN_DO,
	CUDNN_DQ,
	CUDNN_DK,
	CUDNN_DV,
	CUDNN_LENGTHS_Q,
	CUDNN_LENGTHS_K,
	CUDNN_OFFSETS_QKV,
	CUDNN_OFFSETS_O,
	CUDNN_OFFSETS_LSE,
	CUDNN_SEED,
	CUDNN_OFFSET,
	CUDNN_ROW_SUMS,    /* scratch of backward, laid out like the log-sum-exp */
	CUDNN_SCORE_SCALE, /* 1 / sqrt(head_size) */
	CUDNN_MINUS_INFINITY,
	CUDNN_DROPOUT_SCALE, /* 1 / (1 - p) */
	CUDNN_KEPT,          /* 1 - p */
	CUDNN_TENSORS
};

/* A graph with all its descriptors, and its plan. */
#define CUDNN_DESCRIPTORS 192
struct cudnn_plan {
	const struct cudnn_library *library;
	cudnnBackendDescriptor_t made[CUDNN_DESCRIPTORS]; /* all of them, for release */
	int made_count, operation_count;
	cudnnBackendDescriptor_t operations[40], graph, plan;
	bool uses[CUDNN_TENSORS]; /* tensors that an execution must be given */
	int64_t workspace;
	cudnnStatus_t failed;
	const char *failed_at;
};

/* How far a plan has been made: the graph finalized, an engine found for it, ready to run. */
enum cudnn_stage { CUDNN_GRAPH_MADE, CUDNN_ENGINE_FOUND, CUDNN_READY };
/* Makes the plan up to `stage`: on the device of `handle` or, if that is NULL, for the device that the JSON object describes.
 * ERR_RESOURCE says what cuDNN refused. Call cudnn_plan_release in either case. */
MUST_USE enum status cudnn_plan_make(struct cudnn_plan *plan, const struct cudnn_library *library,
				     const struct cudnn_attention *attention, cudnnHandle_t handle, const char *device,
				     enum cudnn_stage stage);
void cudnn_plan_release(struct cudnn_plan *plan);
/* Queues the plan on the handle's stream; tensors[] is indexed by enum cudnn_tensor, scalars are passed by address. */
MUST_USE cudnnStatus_t cudnn_plan_run(const struct cudnn_plan *plan, cudnnHandle_t handle, void *const tensors[CUDNN_TENSORS],
				      void *workspace);

#endif
