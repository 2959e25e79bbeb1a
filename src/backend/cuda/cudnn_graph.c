#include "backend/cuda/cudnn_graph.h"

#include <stdio.h>
#include <string.h>
#include "base/shared_library.h"

/* From this version on, attention of packed rows is a single engine, both forward and backward. */
#define OLDEST_VERSION 91100

/* ---- The library ---- */

void cudnn_library_close(struct cudnn_library *library)
{
	shared_library_close(library->handle);
	*library = (struct cudnn_library){0};
}

void cudnn_library_name(const struct cudnn_library *library, char out[24])
{
	size_t version = library->version();
	snprintf(out, 24, "cuDNN %zu.%zu.%zu", version / 10000 % 100, version / 100 % 100, version % 100);
}

enum status cudnn_library_open(struct cudnn_library *out)
{
	static const struct shared_library library = {.name = "cuDNN",
						      .files = {"libcudnn.so.9"},
						      .folder = "/usr/local/cuda/lib64",
						      .package = "NVIDIA's package libcudnn9-cuda-13 (9.11 or later)",
						      .instead = "give --attention own"};
	const struct shared_library_function functions[] = {
		{"cudnnGetVersion", &out->version},
		{"cudnnGetErrorString", &out->error_string},
		{"cudnnGetLastErrorString", &out->last_error},
		{"cudnnCreate", &out->create},
		{"cudnnDestroy", &out->destroy},
		{"cudnnSetStream", &out->set_stream},
		{"cudnnBackendCreateDescriptor", &out->create_descriptor},
		{"cudnnBackendDestroyDescriptor", &out->destroy_descriptor},
		{"cudnnBackendSetAttribute", &out->set_attribute},
		{"cudnnBackendGetAttribute", &out->get_attribute},
		{"cudnnBackendFinalize", &out->finalize},
		{"cudnnBackendExecute", &out->execute},
	};
	*out = (struct cudnn_library){.handle = NULL};
	TRY(shared_library_open(&out->handle, &library, functions, sizeof(functions) / sizeof(functions[0])));
	if (out->version() < OLDEST_VERSION) {
		char name[24];
		cudnn_library_name(out, name);
		enum status status = error_set(ERR_RESOURCE, "%s is too old: 9.11 or later is needed", name);
		error_hint("install a newer one, or give --attention own");
		cudnn_library_close(out);
		return status;
	}
	return OK;
}

/* ---- Descriptors ---- */

typedef cudnnBackendDescriptor_t descriptor;

/* Records the first call that failed; subsequent calls do nothing. */
static bool check(struct cudnn_plan *plan, cudnnStatus_t status, const char *call)
{
	if (status != CUDNN_STATUS_SUCCESS && plan->failed == CUDNN_STATUS_SUCCESS) {
		plan->failed = status;
		plan->failed_at = call;
	}
	return plan->failed == CUDNN_STATUS_SUCCESS;
}

static descriptor make(struct cudnn_plan *plan, cudnnBackendDescriptorType_t type, const char *what)
{
	descriptor made = NULL;
	if (plan->failed != CUDNN_STATUS_SUCCESS)
		return NULL;
	BUG_IF(plan->made_count == CUDNN_DESCRIPTORS);
	if (check(plan, plan->library->create_descriptor(type, &made), what))
		plan->made[plan->made_count++] = made;
	return made;
}

static void set(struct cudnn_plan *plan, descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
		int64_t count, const void *values, const char *what)
{
	if (plan->failed == CUDNN_STATUS_SUCCESS)
		check(plan, plan->library->set_attribute(d, name, type, count, values), what);
}

static void set_descriptor(struct cudnn_plan *plan, descriptor d, cudnnBackendAttributeName_t name, descriptor value,
			   const char *what)
{
	set(plan, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value, what);
}

static void finish(struct cudnn_plan *plan, descriptor d, const char *what)
{
	if (plan->failed == CUDNN_STATUS_SUCCESS)
		check(plan, plan->library->finalize(d), what);
}

/* ---- Tensors ---- */

struct form {
	int64_t sizes[4], strides[4];
};

/* Contiguous rows. */
static struct form dense(int64_t a, int64_t b, int64_t c, int64_t d)
{
	return (struct form){{a, b, c, d}, {b * c * d, c * d, d, 1}};
}

static descriptor tensor(struct cudnn_plan *plan, int64_t id, cudnnDataType_t type, struct form form, bool by_value,
			 descriptor offsets)
{
	bool is_virtual = id >= CUDNN_TENSORS;
	int64_t alignment = 16;
	descriptor d = make(plan, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
	set(plan, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, "a tensor's type");
	set(plan, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, form.sizes, "a tensor's size");
	set(plan, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, form.strides, "a tensor's strides");
	set(plan, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id, "a tensor's number");
	set(plan, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment, "a tensor's alignment");
	set(plan, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual, "a virtual tensor");
	set(plan, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value, "a scalar");
	if (offsets)
		set_descriptor(plan, d, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, offsets, "a tensor's offsets");
	finish(plan, d, "a tensor");
	if (!is_virtual)
		plan->uses[id] = true;
	return d;
}

/* A virtual tensor, passed from one operation to the next and never stored in memory. */
static descriptor between(struct cudnn_plan *plan, cudnnDataType_t type, struct form form)
{
	return tensor(plan, CUDNN_TENSORS + plan->made_count, type, form, false, NULL);
}

static descriptor scalar(struct cudnn_plan *plan, enum cudnn_tensor id)
{
	return tensor(plan, id, CUDNN_DATA_FLOAT, dense(1, 1, 1, 1), true, NULL);
}

static descriptor device_number(struct cudnn_plan *plan, enum cudnn_tensor id)
{
	return tensor(plan, id, CUDNN_DATA_INT64, dense(1, 1, 1, 1), false, NULL);
}

/* ---- Operations ---- */

static void add_operation(struct cudnn_plan *plan, descriptor operation, const char *what)
{
	finish(plan, operation, what);
	BUG_IF(plan->operation_count == (int)(sizeof(plan->operations) / sizeof(plan->operations[0])));
	plan->operations[plan->operation_count++] = operation;
}

/* y = mode(x [, b [, t]]); `axis` is the counted dimension of CUDNN_POINTWISE_GEN_INDEX. */
struct pointwise {
	cudnnPointwiseMode_t mode;
	descriptor x, b, t, y;
	int64_t axis;
	const char *what;
};

static void pointwise(struct cudnn_plan *plan, const struct pointwise *p)
{
	cudnnDataType_t precision = CUDNN_DATA_FLOAT;
	descriptor mode = make(plan, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, p->what);
	set(plan, mode, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p->mode, p->what);
	set(plan, mode, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision, p->what);
	if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
		set(plan, mode, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p->axis, p->what);
	finish(plan, mode, p->what);
	descriptor operation = make(plan, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, p->what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode, p->what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x, p->what);
	if (p->b)
		set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->b, p->what);
	if (p->t)
		set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p->t, p->what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p->y, p->what);
	add_operation(plan, operation, p->what);
}

/* The same for up to two tensors, in fp32, into a new tensor of the given form. */
static descriptor combine(struct cudnn_plan *plan, cudnnPointwiseMode_t mode, descriptor x, descriptor b, struct form form,
			  const char *what)
{
	descriptor y = between(plan, CUDNN_DATA_FLOAT, form);
	pointwise(plan, &(struct pointwise){.mode = mode, .x = x, .b = b, .y = y, .what = what});
	return y;
}

static descriptor reduce(struct cudnn_plan *plan, cudnnReduceTensorOp_t mode, descriptor x, struct form form, const char *what)
{
	cudnnDataType_t precision = CUDNN_DATA_FLOAT;
	descriptor y = between(plan, CUDNN_DATA_FLOAT, form);
	descriptor reduction = make(plan, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, what);
	set(plan, reduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode, what);
	set(plan, reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision, what);
	finish(plan, reduction, what);
	descriptor operation = make(plan, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y, what);
	add_operation(plan, operation, what);
	return y;
}

/* c = a b; only the first m rows, n columns and k terms of each sequence, if these are given. */
static void product(struct cudnn_plan *plan, descriptor a, descriptor b, descriptor c, descriptor m, descriptor n, descriptor k,
		    const char *what)
{
	cudnnDataType_t precision = CUDNN_DATA_FLOAT;
	double padding = 0;
	descriptor matmul = make(plan, CUDNN_BACKEND_MATMUL_DESCRIPTOR, what);
	set(plan, matmul, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision, what);
	set(plan, matmul, CUDNN_ATTR_MATMUL_PADDING_VALUE, CUDNN_TYPE_DOUBLE, 1, &padding, what);
	finish(plan, matmul, what);
	descriptor operation = make(plan, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c, what);
	if (m)
		set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, m, what);
	if (n)
		set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, n, what);
	if (k)
		set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, k, what);
	add_operation(plan, operation, what);
}

static void reshape(struct cudnn_plan *plan, descriptor x, descriptor y, const char *what)
{
	descriptor operation = make(plan, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x, what);
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y, what);
	add_operation(plan, operation, what);
}

/* 1 with probability `kept`, else 0, from cuDNN's own random stream for the seed and offset. */
static descriptor random_mask(struct cudnn_plan *plan, double kept, struct form form)
{
	cudnnRngDistribution_t bernoulli = CUDNN_RNG_DISTRIBUTION_BERNOULLI;
	descriptor y = between(plan, CUDNN_DATA_FLOAT, form);
	descriptor random = make(plan, CUDNN_BACKEND_RNG_DESCRIPTOR, "dropout");
	set(plan, random, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1, &bernoulli, "dropout");
	set(plan, random, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, 1, &kept, "dropout");
	finish(plan, random, "dropout");
	descriptor operation = make(plan, CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, "dropout");
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_RNG_DESC, random, "dropout");
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_RNG_SEED, device_number(plan, CUDNN_SEED), "dropout's seed");
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, device_number(plan, CUDNN_OFFSET),
		       "dropout's offset");
	set_descriptor(plan, operation, CUDNN_ATTR_OPERATION_RNG_YDESC, y, "dropout");
	add_operation(plan, operation, "dropout");
	return y;
}

/* ---- Attention ---- */

/* The tensors in memory, and the forms of virtual ones. */
struct parts {
	const struct cudnn_attention *attention;
	cudnnDataType_t type;
	struct form packed, transposed, narrow, square, column; /* qkv (b,h,s,d), its (b,h,d,s), y, scores (b,h,s,s), (b,h,s,1) */
	descriptor offsets_qkv, offsets_o, offsets_lse, lengths_q, lengths_k, score_scale;
};

static struct parts begin(struct cudnn_plan *plan, const struct cudnn_attention *a)
{
	int64_t b = a->sequences, h = a->heads, s = a->longest, d = a->head_size, row = 3 * h * d;
	struct form offsets = dense(b + 1, 1, 1, 1), lengths = dense(b, 1, 1, 1);
	struct parts p = {
		.attention = a,
		.type = a->dtype == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF,
		.packed = {{b, h, s, d}, {s * row, d, row, 1}},
		.transposed = {{b, h, d, s}, {s * row, d, 1, row}},
		.narrow = {{b, h, s, d}, {s * h * d, d, h * d, 1}},
		.square = dense(b, h, s, s),
		.column = dense(b, h, s, 1),
	};
	p.offsets_qkv = tensor(plan, CUDNN_OFFSETS_QKV, CUDNN_DATA_INT32, offsets, false, NULL);
	p.offsets_o = tensor(plan, CUDNN_OFFSETS_O, CUDNN_DATA_INT32, offsets, false, NULL);
	if (a->backward || a->saves)
		p.offsets_lse = tensor(plan, CUDNN_OFFSETS_LSE, CUDNN_DATA_INT32, offsets, false, NULL);
	p.lengths_q = tensor(plan, CUDNN_LENGTHS_Q, CUDNN_DATA_INT32, lengths, false, NULL);
	p.lengths_k = tensor(plan, CUDNN_LENGTHS_K, CUDNN_DATA_INT32, lengths, false, NULL);
	p.score_scale = scalar(plan, CUDNN_SCORE_SCALE);
	return p;
}

static descriptor of_qkv(struct cudnn_plan *plan, const struct parts *p, enum cudnn_tensor id, struct form form)
{
	return tensor(plan, id, p->type, form, false, p->offsets_qkv);
}

/* One number per head and token, with the heads of a token side by side: the log-sum-exp, and row sums of dy y. */
static descriptor of_rows(struct cudnn_plan *plan, const struct parts *p, enum cudnn_tensor id)
{
	int64_t h = p->attention->heads, s = p->attention->longest;
	struct form form = {{p->attention->sequences, h, s, 1}, {h * s, 1, h, 1}};
	return tensor(plan, id, CUDNN_DATA_FLOAT, form, false, p->offsets_lse);
}

/* q k' / sqrt(d) */
static descriptor scaled_scores(struct cudnn_plan *plan, const struct parts *p, descriptor q, descriptor k)
{
	descriptor raw = between(plan, CUDNN_DATA_FLOAT, p->square);
	product(plan, q, k, raw, p->lengths_q, p->lengths_k, NULL, "q k'");
	return combine(plan, CUDNN_POINTWISE_MUL, raw, p->score_scale, p->square, "the scores' scale");
}

/* Sets scores to minus infinity outside the sequence's queries and keys. */
static descriptor mask_scores(struct cudnn_plan *plan, const struct parts *p, descriptor scores)
{
	descriptor inside[2];
	for (int i = 0; i < 2; i++) {
		descriptor index = between(plan, CUDNN_DATA_INT32, p->square);
		inside[i] = between(plan, CUDNN_DATA_BOOLEAN, p->square);
		pointwise(plan, &(struct pointwise){.mode = CUDNN_POINTWISE_GEN_INDEX,
						    .x = scores,
						    .y = index,
						    .axis = 2 + i,
						    .what = "the number of a score"});
		pointwise(plan, &(struct pointwise){.mode = CUDNN_POINTWISE_CMP_LT,
						    .x = index,
						    .b = i ? p->lengths_k : p->lengths_q,
						    .y = inside[i],
						    .what = "the end of a sequence"});
	}
	descriptor both = between(plan, CUDNN_DATA_BOOLEAN, p->square);
	pointwise(plan,
		  &(struct pointwise){
			  .mode = CUDNN_POINTWISE_LOGICAL_AND, .x = inside[0], .b = inside[1], .y = both, .what = "the mask"});
	descriptor masked = between(plan, CUDNN_DATA_FLOAT, p->square);
	pointwise(plan, &(struct pointwise){.mode = CUDNN_POINTWISE_BINARY_SELECT,
					    .x = scores,
					    .b = scalar(plan, CUDNN_MINUS_INFINITY),
					    .t = both,
					    .y = masked,
					    .what = "the mask"});
	return masked;
}

static void forward_graph(struct cudnn_plan *plan, const struct cudnn_attention *a)
{
	struct parts p = begin(plan, a);
	descriptor scores = mask_scores(
		plan, &p, scaled_scores(plan, &p, of_qkv(plan, &p, CUDNN_Q, p.packed), of_qkv(plan, &p, CUDNN_K, p.transposed)));
	descriptor most = reduce(plan, CUDNN_REDUCE_TENSOR_MAX, scores, p.column, "the largest score");
	descriptor below = combine(plan, CUDNN_POINTWISE_SUB, scores, most, p.square, "scores below the largest");
	descriptor powers = combine(plan, CUDNN_POINTWISE_EXP, below, NULL, p.square, "exp");
	descriptor sum = reduce(plan, CUDNN_REDUCE_TENSOR_ADD, powers, p.column, "the sum of exp");
	descriptor log_sum = combine(plan, CUDNN_POINTWISE_LOG, sum, NULL, p.column, "log");
	descriptor lse = a->saves ? of_rows(plan, &p, CUDNN_LSE) : between(plan, CUDNN_DATA_FLOAT, p.column);
	pointwise(plan,
		  &(struct pointwise){.mode = CUDNN_POINTWISE_ADD, .x = most, .b = log_sum, .y = lse, .what = "log-sum-exp"});
	/* The last of these tensors is the operand of the product, in 16 bits. */
	descriptor probabilities = between(plan, a->dropout > 0 ? CUDNN_DATA_FLOAT : p.type, p.square);
	pointwise(plan, &(struct pointwise){
				.mode = CUDNN_POINTWISE_DIV, .x = powers, .b = sum, .y = probabilities, .what = "probabilities"});
	if (a->dropout > 0) {
		descriptor mask = random_mask(plan, 1 - a->dropout, p.square);
		descriptor kept = combine(plan, CUDNN_POINTWISE_MUL, probabilities, mask, p.square, "dropout");
		probabilities = between(plan, p.type, p.square);
		pointwise(plan, &(struct pointwise){.mode = CUDNN_POINTWISE_MUL,
						    .x = kept,
						    .b = scalar(plan, CUDNN_DROPOUT_SCALE),
						    .y = probabilities,
						    .what = "dropout's scale"});
	}
	descriptor y = tensor(plan, CUDNN_O, p.type, p.narrow, false, p.offsets_o);
	product(plan, probabilities, of_qkv(plan, &p, CUDNN_V, p.packed), y, p.lengths_q, NULL, p.lengths_k, "p v");
}

static void backward_graph(struct cudnn_plan *plan, const struct cudnn_attention *a)
{
	struct parts p = begin(plan, a);
	int64_t b = a->sequences, h = a->heads, s = a->longest;
	struct form turned = {{b, h, s, s}, {h * s * s, s * s, 1, s}};
	descriptor q = of_qkv(plan, &p, CUDNN_Q, p.packed), k = of_qkv(plan, &p, CUDNN_K, p.transposed);
	descriptor v = of_qkv(plan, &p, CUDNN_V, p.transposed);
	descriptor y = tensor(plan, CUDNN_O, p.type, p.narrow, false, p.offsets_o);
	descriptor dy = tensor(plan, CUDNN_DO, p.type, p.narrow, false, p.offsets_o);
	bool drops = a->dropout > 0;

	/* Row sums of dy y, which softmax's gradient subtracts; without dropout's scale, which is applied later. */
	descriptor dy_y = combine(plan, CUDNN_POINTWISE_MUL, dy, y, dense(b, h, s, a->head_size), "dy y");
	descriptor rows = reduce(plan, CUDNN_REDUCE_TENSOR_ADD, dy_y, p.column, "rows of dy y");
	descriptor row_sums = of_rows(plan, &p, CUDNN_ROW_SUMS);
	pointwise(plan, &(struct pointwise){.mode = CUDNN_POINTWISE_MUL,
					    .x = rows,
					    .b = scalar(plan, CUDNN_KEPT),
					    .y = row_sums,
					    .what = "rows of dy y"});

	/* The log-sum-exp is subtracted before masking, so that the mask hides its values beyond the end of a sequence. */
	descriptor scores = scaled_scores(plan, &p, q, k);
	descriptor below =
		combine(plan, CUDNN_POINTWISE_SUB, scores, of_rows(plan, &p, CUDNN_LSE), p.square, "scores below log-sum-exp");
	descriptor masked = mask_scores(plan, &p, below);
	descriptor probabilities = combine(plan, CUDNN_POINTWISE_EXP, masked, NULL, p.square, "exp");
	descriptor mask = drops ? random_mask(plan, 1 - a->dropout, p.square) : NULL, dropped = probabilities;
	descriptor drop_scale = drops ? scalar(plan, CUDNN_DROPOUT_SCALE) : NULL;
	if (drops) {
		dropped = combine(plan, CUDNN_POINTWISE_MUL, probabilities, mask, p.square, "dropout");
		dropped = combine(plan, CUDNN_POINTWISE_MUL, dropped, drop_scale, p.square, "dropout's scale");
	}
	descriptor dropped_turned = between(plan, p.type, turned);
	reshape(plan, dropped, dropped_turned, "p'");
	product(plan, dropped_turned, dy, of_qkv(plan, &p, CUDNN_DV, p.packed), p.lengths_k, NULL, p.lengths_q, "p' dy");

	descriptor dp = between(plan, CUDNN_DATA_FLOAT, p.square);
	product(plan, dy, v, dp, p.lengths_q, p.lengths_k, NULL, "dy v'");
	if (drops)
		dp = combine(plan, CUDNN_POINTWISE_MUL, dp, mask, p.square, "dropout of dp");
	dp = combine(plan, CUDNN_POINTWISE_SUB, dp, row_sums, p.square, "dp - rows");
	descriptor ds = combine(plan, CUDNN_POINTWISE_MUL, dp, probabilities, p.square, "ds");
	if (drops)
		ds = combine(plan, CUDNN_POINTWISE_MUL, ds, drop_scale, p.square, "dropout's scale of ds");
	ds = combine(plan, CUDNN_POINTWISE_MUL, ds, p.score_scale, p.square, "the scores' scale of ds");
	descriptor ds_turned = between(plan, p.type, turned);
	reshape(plan, ds, ds_turned, "ds'");
	product(plan, ds_turned, q, of_qkv(plan, &p, CUDNN_DK, p.packed), p.lengths_k, NULL, p.lengths_q, "ds' q");

	/* The product writes dq itself: the engine then keeps ds in its workspace and adds in a fixed order. Separate fp32
	 * sums would be added in whatever order blocks finish. */
	descriptor k_turned = tensor(plan, CUDNN_TENSORS + plan->made_count, p.type, p.packed, false, p.offsets_qkv);
	reshape(plan, k, k_turned, "k''");
	product(plan, ds, k_turned, of_qkv(plan, &p, CUDNN_DQ, p.packed), p.lengths_q, NULL, p.lengths_k, "ds k");
}

/* ---- Plans ---- */

static void make_graph(struct cudnn_plan *plan, cudnnHandle_t handle)
{
	plan->graph = make(plan, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "the graph");
	set(plan, plan->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, plan->operation_count,
	    plan->operations, "the graph's operations");
	if (handle)
		set(plan, plan->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle, "the graph's device");
	finish(plan, plan->graph, "the graph");
}

static descriptor describe_device(struct cudnn_plan *plan, const char *device)
{
	descriptor d = make(plan, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a device's description");
	set(plan, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(device) + 1, device,
	    "a device's description");
	finish(plan, d, "a device's description");
	return d;
}

/* The heuristics' proposals, best first. */
#define PROPOSALS 8
static int64_t find_engines(struct cudnn_plan *plan, descriptor properties, descriptor out[PROPOSALS])
{
	cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
	int64_t count = 0;
	descriptor heuristics = make(plan, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
	set_descriptor(plan, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, plan->graph, "heuristics");
	set(plan, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode, "heuristics");
	if (properties)
		set_descriptor(plan, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties, "heuristics");
	finish(plan, heuristics, "heuristics");
	for (int i = 0; i < PROPOSALS; i++)
		out[i] = make(plan, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "an engine");
	if (plan->failed == CUDNN_STATUS_SUCCESS)
		check(plan,
		      plan->library->get_attribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
						   PROPOSALS, &count, out),
		      "heuristics");
	if (plan->failed == CUDNN_STATUS_SUCCESS && count == 0)
		check(plan, CUDNN_STATUS_NOT_SUPPORTED, "heuristics");
	return plan->failed == CUDNN_STATUS_SUCCESS ? count : 0;
}

/* Makes the plan with the first engine that supports it. */
static void make_plan(struct cudnn_plan *plan, cudnnHandle_t handle, descriptor properties, descriptor *engines, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		plan->failed = CUDNN_STATUS_SUCCESS;
		plan->plan = make(plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "the plan");
		if (handle)
			set(plan, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle,
			    "the plan's device");
		else
			set_descriptor(plan, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties, "the plan's device");
		set_descriptor(plan, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engines[i], "the plan's engine");
		finish(plan, plan->plan, "the plan");
		if (plan->failed == CUDNN_STATUS_SUCCESS)
			break;
	}
	int64_t got;
	if (plan->failed == CUDNN_STATUS_SUCCESS)
		check(plan,
		      plan->library->get_attribute(plan->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
						   &got, &plan->workspace),
		      "the plan's workspace");
}

enum status cudnn_plan_make(struct cudnn_plan *plan, const struct cudnn_library *library, const struct cudnn_attention *attention,
			    cudnnHandle_t handle, const char *device, enum cudnn_stage stage)
{
	*plan = (struct cudnn_plan){.library = library, .failed = CUDNN_STATUS_SUCCESS};
	if (attention->backward)
		backward_graph(plan, attention);
	else
		forward_graph(plan, attention);
	make_graph(plan, handle);
	if (stage > CUDNN_GRAPH_MADE && plan->failed == CUDNN_STATUS_SUCCESS) {
		descriptor engines[PROPOSALS], properties = handle ? NULL : describe_device(plan, device);
		int64_t count = find_engines(plan, properties, engines);
		if (stage > CUDNN_ENGINE_FOUND && count > 0)
			make_plan(plan, handle, properties, engines, count);
	}
	if (plan->failed == CUDNN_STATUS_SUCCESS)
		return OK;
	char name[24], detail[256] = "";
	cudnn_library_name(library, name);
	library->last_error(detail, sizeof(detail));
	enum status status = error_set(
		ERR_RESOURCE, "%s does not take attention %s with %lld heads of %lld columns: %s, at %s%s%s", name,
		attention->backward ? "backward" : "forward", (long long)attention->heads, (long long)attention->head_size,
		library->error_string(plan->failed), plan->failed_at, detail[0] ? ": " : "", detail);
	error_hint("give --attention own");
	return status;
}

void cudnn_plan_release(struct cudnn_plan *plan)
{
	while (plan->made_count > 0)
		plan->library->destroy_descriptor(plan->made[--plan->made_count]);
	*plan = (struct cudnn_plan){.plan = NULL};
}

cudnnStatus_t cudnn_plan_run(const struct cudnn_plan *plan, cudnnHandle_t handle, void *const tensors[CUDNN_TENSORS],
			     void *workspace)
{
	const struct cudnn_library *library = plan->library;
	int64_t ids[CUDNN_TENSORS], count = 0;
	void *pointers[CUDNN_TENSORS];
	for (int id = 1; id < CUDNN_TENSORS; id++) {
		if (!plan->uses[id])
			continue;
		ids[count] = id;
		pointers[count++] = tensors[id];
	}
	descriptor pack = NULL;
	cudnnStatus_t status = library->create_descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	status = library->set_attribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
	if (status == CUDNN_STATUS_SUCCESS)
		status =
			library->set_attribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers);
	if (status == CUDNN_STATUS_SUCCESS)
		status = library->set_attribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
	if (status == CUDNN_STATUS_SUCCESS)
		status = library->finalize(pack);
	if (status == CUDNN_STATUS_SUCCESS)
		status = library->execute(handle, plan->plan, pack);
	library->destroy_descriptor(pack);
	return status;
}
