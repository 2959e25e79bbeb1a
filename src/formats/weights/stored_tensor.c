/* Reads the elements of a tensor in a mapped file, whatever their type, order, and scale. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include "base/hash.h"
#include "formats/stored_tensor.h"

bool stored_tensor_pack(struct stored_tensor *tensor)
{
	int64_t count = 1;
	bool overflow = false;
	for (int i = tensor->rank - 1; i >= 0; i--) {
		tensor->strides[i] = count;
		overflow |= __builtin_mul_overflow(count, tensor->shape[i], &count);
	}
	tensor->count = count;
	return !overflow;
}

int64_t dtype_element_bytes(enum safetensors_dtype dtype)
{
	switch (dtype) {
	case ST_BOOL:
	case ST_U8:
	case ST_I8:
	case ST_F8_E5M2:
	case ST_F8_E4M3: return 1;
	case ST_I16:
	case ST_U16:
	case ST_F16:
	case ST_BF16: return 2;
	case ST_I32:
	case ST_U32:
	case ST_F32: return 4;
	case ST_F64:
	case ST_I64:
	case ST_U64: break;
	}
	return 8;
}

bool stored_tensor_is_real(const struct stored_tensor *tensor)
{
	enum safetensors_dtype dtype = tensor->dtype;
	return dtype == ST_F64 || dtype == ST_F32 || dtype == ST_BF16 || dtype == ST_F16 || tensor->row_scales;
}

enum status stored_tensor_verify(const struct stored_tensor *tensor)
{
	uint32_t found = tensor->expected;
	if (tensor->checksum == CHECKSUM_MASKED_CRC32C)
		found = crc32c_masked(crc32c(0, tensor->checked, tensor->checked_bytes));
	else if (tensor->checksum == CHECKSUM_CRC32)
		found = (uint32_t)crc32_z(0, tensor->checked, tensor->checked_bytes);
	if (found == tensor->expected)
		return OK;
	return error_hinted(error_set(ERR_DATA,
				      "'%s': tensor '%.200s' (at byte %llu) is damaged: its checksum is %08x, the "
				      "file promises %08x",
				      tensor->path, tensor->name, (unsigned long long)tensor->offset, found, tensor->expected),
			    "copy or download the file again");
}

/* Converts `count` elements, `stride` apart, beginning at element `index` of the storage. */
static enum status read_run(const struct stored_tensor *tensor, int64_t index, int64_t stride, int64_t count, float *out)
{
	int64_t element = dtype_element_bytes(tensor->dtype);
	struct safetensors_entry entry = {.name = tensor->name, .dtype = tensor->dtype};
	if (stride == 1) {
		entry.data = tensor->data + index * element;
		entry.count = count;
		entry.bytes = (uint64_t)(count * element);
		return safetensors_to_float(&entry, tensor->path, out);
	}
	for (int64_t i = 0; i < count; i++) {
		entry.data = tensor->data + (index + i * stride) * element;
		entry.count = 1;
		entry.bytes = (uint64_t)element;
		TRY(safetensors_to_float(&entry, tensor->path, out + i));
	}
	return OK;
}

bool stored_tensor_is_packed(const struct stored_tensor *tensor)
{
	int64_t stride = 1;
	for (int i = tensor->rank - 1; i >= 0; i--) {
		if (tensor->shape[i] != 1 && tensor->strides[i] != stride)
			return false;
		stride *= tensor->shape[i];
	}
	return true;
}

/* Reads from an int8 matrix with a scale for each row. */
static void read_scaled(const struct stored_tensor *tensor, int64_t first, int64_t count, float *out)
{
	const int8_t *bytes = (const int8_t *)tensor->data;
	for (int64_t i = 0; i < count; i++) {
		int64_t row = (first + i) / tensor->shape[1];
		float scale;
		memcpy(&scale, tensor->row_scales + row * (int64_t)sizeof scale, sizeof scale);
		out[i] = (float)bytes[first + i] * scale;
	}
}

enum status stored_tensor_read(const struct stored_tensor *tensor, int64_t first, int64_t count, float *out)
{
	BUG_IF(first < 0 || count < 0 || count > tensor->count || first > tensor->count - count);
	if (count == 0)
		return OK;
	if (tensor->row_scales) {
		read_scaled(tensor, first, count, out);
		return OK;
	}
	if (stored_tensor_is_packed(tensor))
		return read_run(tensor, first, 1, count, out);
	/* Row by row along the last dimension. */
	int last = tensor->rank - 1;
	int64_t columns = tensor->shape[last];
	while (count > 0) {
		int64_t column = first % columns, row = first / columns, index = column * tensor->strides[last];
		for (int i = last - 1; i >= 0; row /= tensor->shape[i], i--)
			index += row % tensor->shape[i] * tensor->strides[i];
		int64_t part = columns - column < count ? columns - column : count;
		TRY(read_run(tensor, index, tensor->strides[last], part, out));
		first += part;
		count -= part;
		out += part;
	}
	return OK;
}

const char *shape_text(char out[SHAPE_TEXT_BYTES], int rank, const int64_t *shape)
{
	size_t used = (size_t)snprintf(out, SHAPE_TEXT_BYTES, "(");
	for (int i = 0; i < rank && used < SHAPE_TEXT_BYTES; i++)
		used += (size_t)snprintf(out + used, SHAPE_TEXT_BYTES - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
	if (used < SHAPE_TEXT_BYTES)
		snprintf(out + used, SHAPE_TEXT_BYTES - used, ")");
	return out;
}
