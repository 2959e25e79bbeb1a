/* cuBLASLt on the emulated device: only the documented combinations of types; operands must lie in device memory, aligned
 * to 16 bytes, and so must their rows; two "algorithms" that differ in their order of summation. */
#include "cublasLt.h"
#include "emulation.h"

#include <algorithm>
#include <array>
#include <vector>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "backend/tensor.h"
#include "tensor_core.h"

struct emulated_matmul {
	cublasComputeType_t compute;
	cublasOperation_t transposed[2];
	cublasLtEpilogue_t epilogue;
	const void *bias;
	cudaDataType_t bias_type;
	const float *scale[2];
	void *aux;
	int64_t aux_stride;
	int8_t fast;
};

struct emulated_layout {
	cudaDataType_t type;
	uint64_t rows, columns;
	int64_t stride;
};

struct emulated_preference {
	uint64_t workspace;
	uint32_t alignments[4]; /* promised by the caller for A, B, C and D */
};

namespace
{

constexpr int ALGORITHMS = 2;
constexpr int GELU = 32, AUX = 128; /* bits of the epilogue; AUX without GELU is DGELU */

/* The only GELU form that the library has. */
float gelu(float x)
{
	return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}
float gelu_derivative(float x)
{
	float t = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
	return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}
constexpr uint64_t MARK = 0x656d756c61746564u;

size_t bytes_of(cudaDataType_t type)
{
	return type == CUDA_R_32F ? 4 : type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2 ? 1 : 2;
}

/* The 8-bit floats defined by OCP. */
float fp8_value(uint8_t bits, int exponent_bits, int mantissa_bits)
{
	int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = bits & ((1 << mantissa_bits) - 1);
	int bias = (1 << (exponent_bits - 1)) - 1;
	float sign = (bits & 0x80) != 0 ? -1 : 1;
	if (exponent_bits == 5 && exponent == 31)
		return mantissa != 0 ? __builtin_nanf("") : sign * __builtin_inff();
	if (exponent_bits == 4 && exponent == 15 && mantissa == 7)
		return __builtin_nanf("");
	float value = (float)mantissa / (float)(1 << mantissa_bits);
	return exponent == 0 ? sign * __builtin_ldexpf(value, 1 - bias) : sign * __builtin_ldexpf(1 + value, exponent - bias);
}

float element(const void *at, cudaDataType_t type, size_t i)
{
	switch (type) {
	case CUDA_R_32F: return static_cast<const float *>(at)[i];
	case CUDA_R_16BF: return bf16_to_float(static_cast<const uint16_t *>(at)[i]);
	case CUDA_R_16F: return f16_to_float(static_cast<const uint16_t *>(at)[i]);
	case CUDA_R_8F_E4M3: return fp8_value(static_cast<const uint8_t *>(at)[i], 4, 3);
	default: return fp8_value(static_cast<const uint8_t *>(at)[i], 5, 2);
	}
}

void put_element(void *at, cudaDataType_t type, size_t i, float x)
{
	if (type == CUDA_R_32F)
		static_cast<float *>(at)[i] = x;
	else
		static_cast<uint16_t *>(at)[i] = type == CUDA_R_16BF ? float_to_bf16(x) : float_to_f16(x);
}

/* fp32 without its low 13 bits: tensor cores ignore them, and no manual says that the library rounds before that. */
float to_tf32(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, 4);
	bits &= 0xffffe000u;
	memcpy(&x, &bits, 4);
	return x;
}

bool is_fp8(cudaDataType_t type)
{
	return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/* The table of cublasLtMatmul's manual, for fp32 sums. */
bool supported(const emulated_matmul *m, const emulated_layout *a, const emulated_layout *b, const emulated_layout *d)
{
	if (is_fp8(a->type) || is_fp8(b->type)) {
		if (!is_fp8(a->type) || !is_fp8(b->type) || (a->type == CUDA_R_8F_E5M2 && b->type == CUDA_R_8F_E5M2))
			return false;
		if (m->transposed[0] != CUBLAS_OP_T || m->transposed[1] != CUBLAS_OP_N) /* Hopper's kernels */
			return false;
		if (a->rows % 16 != 0 || a->columns % 16 != 0 || b->rows % 16 != 0 || b->columns % 16 != 0)
			return false;
		if (is_fp8(d->type)) /* the manual allows it with a C of another type, which is not emulated */
			return false;
		if (m->scale[0] == nullptr || m->scale[1] == nullptr) /* allowed, but never intended */
			emulation_fault("cublasLtMatmul: FP8 without scales");
	} else if (a->type != b->type || m->scale[0] != nullptr || m->scale[1] != nullptr) {
		return false;
	} else if (d->type != a->type && d->type != CUDA_R_32F) {
		return false;
	}
	return m->compute != CUBLAS_COMPUTE_32F_FAST_TF32 || a->type == CUDA_R_32F;
}

bool fits(const emulated_matmul *m, const emulated_layout *a, const emulated_layout *b, const emulated_layout *d, uint64_t *depth)
{
	uint64_t rows = m->transposed[0] == CUBLAS_OP_N ? a->rows : a->columns;
	uint64_t columns = m->transposed[1] == CUBLAS_OP_N ? b->columns : b->rows;
	uint64_t other = m->transposed[1] == CUBLAS_OP_N ? b->rows : b->columns;
	*depth = m->transposed[0] == CUBLAS_OP_N ? a->columns : a->rows;
	return rows == d->rows && columns == d->columns && *depth == other && *depth > 0 && rows > 0 && columns > 0 &&
	       a->stride >= (int64_t)a->rows && b->stride >= (int64_t)b->rows && d->stride >= (int64_t)d->rows;
}

/* `promised`: the low 16 bits are the alignment that the algorithm was proposed for; 0: none. */
void check_operand(const char *name, const void *at, const emulated_layout *l, uint64_t promised)
{
	size_t bytes = ((size_t)l->stride * (l->columns - 1) + l->rows) * bytes_of(l->type);
	if (!emulation_is_device(at, bytes))
		emulation_fault("cublasLtMatmul: operand %s (%zu bytes): %s", name, bytes, emulation_describe(at));
	if ((uintptr_t)at % 16 != 0 || (size_t)l->stride * bytes_of(l->type) % 16 != 0)
		emulation_fault("cublasLtMatmul: operand %s is not aligned to 16 bytes", name);
	if ((promised & 0xffff) != 0 && (uintptr_t)at % (promised & 0xffff) != 0)
		emulation_fault("cublasLtMatmul: operand %s is not aligned to the %u bytes that the algorithm was chosen for",
				name, (unsigned)(promised & 0xffff));
}

struct job {
	emulated_matmul m;
	emulated_layout a, b, d;
	const void *pa, *pb, *pc;
	void *pd;
	float alpha, beta;
	uint64_t depth, algorithm;
};

/* op(x) with the depth contiguous: row i of the result is column or row i of x. */
std::vector<float> gather(const void *at, const emulated_layout &l, bool depth_is_rows, uint64_t count, uint64_t depth, bool tf32)
{
	std::vector<float> out(count * depth);
	for (uint64_t i = 0; i < count; i++)
		for (uint64_t k = 0; k < depth; k++) {
			float x = element(at, l.type, depth_is_rows ? i * (uint64_t)l.stride + k : k * (uint64_t)l.stride + i);
			out[i * depth + k] = tf32 ? to_tf32(x) : x;
		}
	return out;
}

float dot(const float *a, const float *b, uint64_t depth, uint64_t algorithm)
{
	float total = 0;
	uint64_t chunk = 64u << algorithm;
	for (uint64_t first = 0; first < depth; first += chunk) {
		uint64_t end = first + chunk < depth ? first + chunk : depth;
		float sum = 0;
#pragma omp simd reduction(+ : sum) simdlen(8)
		for (uint64_t k = first; k < end; k++)
			sum += a[k] * b[k];
		total += sum;
	}
	return total;
}

/* 16-bit types and TF32, added as tensor cores do, for eight columns b: one running sum, or (in the other algorithm) one sum per
 * 128 products, added up in fp32. */
void dot_tensor(float *out, const float *a, const float (*b)[TENSOR_LANES], uint64_t depth, uint64_t algorithm)
{
	float total[TENSOR_LANES] = {0}, sum[TENSOR_LANES] = {0};
	uint64_t first = 0;
	for (; first + TENSOR_PRODUCTS <= depth; first += TENSOR_PRODUCTS) {
		tensor_core_add(sum, a + first, b + first, TENSOR_PRODUCTS);
		if (algorithm == 0 || first % 128 != 128 - TENSOR_PRODUCTS)
			continue;
		for (int i = 0; i < TENSOR_LANES; i++) {
			total[i] += sum[i];
			sum[i] = 0;
		}
	}
	if (first < depth)
		tensor_core_add(sum, a + first, b + first, (int)(depth - first));
	for (int i = 0; i < TENSOR_LANES; i++)
		out[i] = total[i] + sum[i];
}

/* FP8 as an H100 adds it (tensor_core.h): 32 products at a time, 13 binary places. With fast accumulation the running sum
 * takes part in every addition; otherwise partial sums, here of 128 products, are added in fp32. */
float dot_fp8(const float *a, const float *b, uint64_t depth, bool fast)
{
	float total = 0, sum = 0, products[32];
	for (uint64_t first = 0; first < depth; first += 32) {
		int count = depth - first < 32 ? (int)(depth - first) : 32;
		for (int k = 0; k < count; k++)
			products[k] = a[first + (uint64_t)k] * b[first + (uint64_t)k];
		sum = tensor_core_sum(sum, products, count, 13);
		if (!fast && first % 128 == 96) {
			total += sum;
			sum = 0;
		}
	}
	return total + sum;
}

/* Writes one element of d: the product x with what the epilogue makes of it. */
void put_result(const job *j, uint64_t row, uint64_t column, float x)
{
	size_t at = column * (size_t)j->d.stride + row;
	if (j->beta != 0)
		x += j->beta * element(j->pc, j->d.type, at);
	if ((j->m.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
		x += element(j->m.bias, j->m.bias_type, row);
	size_t aux = column * (size_t)j->m.aux_stride + row;
	if ((j->m.epilogue & AUX) != 0 && (j->m.epilogue & GELU) != 0)
		put_element(j->m.aux, j->d.type, aux, x);
	if ((j->m.epilogue & GELU) != 0)
		x = gelu(x);
	else if ((j->m.epilogue & AUX) != 0)
		x *= gelu_derivative(element(j->m.aux, j->d.type, aux));
	put_element(j->pd, j->d.type, at, x);
}

void run(void *context)
{
	const job *j = static_cast<const job *>(context);
	bool tf32 = j->m.compute == CUBLAS_COMPUTE_32F_FAST_TF32, fp8 = is_fp8(j->a.type);
	bool tensor = tf32 || j->a.type != CUDA_R_32F;
	float scale =
		j->alpha * (j->m.scale[0] != nullptr ? *j->m.scale[0] : 1) * (j->m.scale[1] != nullptr ? *j->m.scale[1] : 1);
	std::vector<float> a = gather(j->pa, j->a, j->m.transposed[0] == CUBLAS_OP_T, j->d.rows, j->depth, tf32);
	std::vector<float> b = gather(j->pb, j->b, j->m.transposed[1] == CUBLAS_OP_N, j->d.columns, j->depth, tf32);
	std::vector<std::array<float, TENSOR_LANES>> lanes(j->depth);
	float sums[TENSOR_LANES];
	for (uint64_t first = 0; first < j->d.columns; first += TENSOR_LANES) {
		uint64_t columns = std::min<uint64_t>(TENSOR_LANES, j->d.columns - first);
		for (uint64_t i = 0; i < TENSOR_LANES * j->depth; i++) {
			uint64_t column = i / j->depth, k = i % j->depth;
			lanes[k][column] = column < columns ? b[(first + column) * j->depth + k] : 0;
		}
		for (uint64_t row = 0; row < j->d.rows; row++) {
			const float *x_row = &a[row * j->depth], *x_column = &b[first * j->depth];
			if (tensor && !fp8)
				dot_tensor(sums, x_row, reinterpret_cast<const float(*)[TENSOR_LANES]>(lanes.data()), j->depth,
					   j->algorithm);
			for (uint64_t i = 0; i < columns && !tensor; i++)
				sums[i] = dot(x_row, x_column + i * j->depth, j->depth, j->algorithm);
			for (uint64_t i = 0; i < columns && fp8; i++)
				sums[i] = dot_fp8(x_row, x_column + i * j->depth, j->depth, j->m.fast);
			for (uint64_t i = 0; i < columns; i++)
				put_result(j, row, first + i, scale * sums[i]);
		}
	}
}

void wait(void *)
{
}

void drop(void *context)
{
	delete static_cast<job *>(context);
}

} // namespace

extern "C" {

int64_t emulated_cool_products = INT64_MAX;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
	*out = reinterpret_cast<cublasLtHandle_t>(new int(1));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	delete reinterpret_cast<int *>(handle);
	return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
	return 130100;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale)
{
	if (scale != CUDA_R_32F)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	*out = new emulated_matmul{compute,
				   {CUBLAS_OP_N, CUBLAS_OP_N},
				   CUBLASLT_EPILOGUE_DEFAULT,
				   nullptr,
				   CUDA_R_32F,
				   {nullptr, nullptr},
				   nullptr,
				   0,
				   0};
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t m, cublasLtMatmulDescAttributes_t attribute, const void *value,
					      size_t bytes)
{
	const struct {
		cublasLtMatmulDescAttributes_t attribute;
		void *to;
		size_t bytes;
	} table[] = {
		{CUBLASLT_MATMUL_DESC_TRANSA, &m->transposed[0], sizeof(m->transposed[0])},
		{CUBLASLT_MATMUL_DESC_TRANSB, &m->transposed[1], sizeof(m->transposed[1])},
		{CUBLASLT_MATMUL_DESC_EPILOGUE, &m->epilogue, sizeof(m->epilogue)},
		{CUBLASLT_MATMUL_DESC_BIAS_POINTER, &m->bias, sizeof(m->bias)},
		{CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &m->bias_type, sizeof(m->bias_type)},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &m->aux, sizeof(m->aux)},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &m->aux_stride, sizeof(m->aux_stride)},
		{CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &m->scale[0], sizeof(m->scale[0])},
		{CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &m->scale[1], sizeof(m->scale[1])},
		{CUBLASLT_MATMUL_DESC_FAST_ACCUM, &m->fast, sizeof(m->fast)},
	};
	for (const auto &row : table) {
		if (row.attribute != attribute)
			continue;
		if (row.bytes != bytes)
			return CUBLAS_STATUS_INVALID_VALUE;
		memcpy(row.to, value, bytes);
		return CUBLAS_STATUS_SUCCESS;
	}
	return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t m)
{
	delete m;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type, uint64_t rows, uint64_t columns,
					  int64_t stride)
{
	*out = new emulated_layout{type, rows, columns, stride};
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
	delete layout;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
	*out = new emulated_preference{};
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
						    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
						    size_t bytes)
{
	size_t wanted = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? sizeof(uint64_t) : sizeof(uint32_t);
	if (bytes != wanted)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
		memcpy(&preference->workspace, value, bytes);
	else if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
		memcpy(&preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
	delete preference;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t m, cublasLtMatrixLayout_t a,
					      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
					      cublasLtMatmulPreference_t preference, int wanted,
					      cublasLtMatmulHeuristicResult_t *out, int *out_count)
{
	uint64_t depth;
	*out_count = 0;
	if (!fits(m, a, b, d, &depth) || c->type != d->type || !supported(m, a, b, d) || getenv("EMULATED_REFUSAL") != nullptr)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	for (int i = 0; i < ALGORITHMS && i < wanted; i++) {
		size_t workspace = (size_t)i << 20;
		if (workspace > preference->workspace)
			break;
		const uint32_t *aligned = preference->alignments;
		uint64_t promised =
			aligned[0] | (uint64_t)aligned[1] << 16 | (uint64_t)aligned[2] << 32 | (uint64_t)aligned[3] << 48;
		out[i] = {{{MARK, (uint64_t)i, promised}}, workspace, CUBLAS_STATUS_SUCCESS, 1, {}};
		++*out_count;
	}
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t m, cublasLtMatrixLayout_t a,
				       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
				       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *out)
{
	uint64_t depth;
	if (!fits(m, a, b, d, &depth) || !supported(m, a, b, d) || algo->data[0] != MARK || algo->data[1] >= ALGORITHMS)
		return CUBLAS_STATUS_INVALID_VALUE;
	*out = {*algo, (size_t)algo->data[1] << 20, CUBLAS_STATUS_SUCCESS, 1, {}};
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t m, const void *alpha, const void *a,
			      cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
			      const void *c, cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
			      const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
	uint64_t depth;
	if (algo == nullptr || algo->data[0] != MARK || !fits(m, a_layout, b_layout, d_layout, &depth) ||
	    !supported(m, a_layout, b_layout, d_layout) || c_layout->stride != d_layout->stride)
		return CUBLAS_STATUS_INVALID_VALUE;
	size_t needed = (size_t)algo->data[1] << 20;
	if (needed > workspace_bytes || (uintptr_t)workspace % 256 != 0 ||
	    (needed > 0 && !emulation_is_device(workspace, needed)))
		return CUBLAS_STATUS_INVALID_VALUE;
	uint64_t promised = algo->data[2];
	check_operand("A", a, a_layout, promised);
	check_operand("B", b, b_layout, promised >> 16);
	check_operand("D", d, d_layout, promised >> 48);
	float beta_value = *static_cast<const float *>(beta);
	if (beta_value != 0)
		check_operand("C", c, c_layout, promised >> 32);
	if ((m->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
		bool type = is_fp8(a_layout->type) ? m->bias_type == CUDA_R_16BF : m->bias_type == d_layout->type;
		if (!type || !emulation_is_device(m->bias, d_layout->rows * bytes_of(m->bias_type)))
			return CUBLAS_STATUS_NOT_SUPPORTED;
	}
	if ((m->epilogue & AUX) != 0) {
		emulated_layout aux = *d_layout;
		aux.stride = m->aux_stride;
		if (m->aux_stride < (int64_t)d_layout->rows || m->aux_stride % 8 != 0)
			return CUBLAS_STATUS_INVALID_VALUE;
		check_operand("aux", m->aux, &aux, 16);
	}
	for (const float *scale : m->scale)
		if (scale != nullptr && !emulation_is_device(scale, sizeof(float)))
			emulation_fault("cublasLtMatmul: a scale that is not in device memory");
		else if ((uintptr_t)scale % 16 != 0) /* cuBLASLt 13.1 on an H200: CUBLAS_STATUS_NOT_SUPPORTED */
			emulation_fault("cublasLtMatmul: a scale at an address that is not a multiple of 16");
	emulated_cool_products -= emulated_cool_products > 0;
	for (int i = 0; i < 100 && emulated_cool_products == 0 && algo->data[1] == 0; i++)
		if (emulation_enqueue(stream, wait, nullptr, nullptr) != cudaSuccess)
			return CUBLAS_STATUS_EXECUTION_FAILED;
	job *j = new job{*m,         *a_layout, *b_layout,    *d_layout, a, b, c, d, *static_cast<const float *>(alpha),
			 beta_value, depth,     algo->data[1]};
	return emulation_enqueue(stream, run, j, drop) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

} /* extern "C" */
