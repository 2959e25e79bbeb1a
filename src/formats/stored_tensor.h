/* A named tensor in a file of weights, whatever program wrote the file. */
#ifndef FORMATS_STORED_TENSOR_H
#define FORMATS_STORED_TENSOR_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "formats/safetensors.h"

enum stored_checksum { CHECKSUM_NONE, CHECKSUM_CRC32, CHECKSUM_MASKED_CRC32C };

#define STORED_RANK_LIMIT 8
struct stored_tensor {
	const char *name;
	enum safetensors_dtype dtype;
	int rank;
	int64_t shape[STORED_RANK_LIMIT], strides[STORED_RANK_LIMIT]; /* strides in elements */
	int64_t count;
	const unsigned char *data; /* the first element, in a mapped file; may be unaligned */
	const char *path;          /* the file that contains the data */
	uint64_t offset;           /* of the first element in the file */
	int64_t part;              /* number of the file if there are several */
	/* For an I8 matrix: an F32 for each row (may be unaligned), by which its numbers are multiplied; NULL: they are plain
	 * numbers. */
	const unsigned char *row_scales;
	/* The checksum that the file gives for the bytes that contain `data`. */
	enum stored_checksum checksum;
	const unsigned char *checked;
	uint64_t checked_bytes;
	uint32_t expected;
};

/* Sets the strides and count of a tensor whose elements are contiguous. False on overflow. */
bool stored_tensor_pack(struct stored_tensor *tensor);
/* Size of one element in bytes. */
int64_t dtype_element_bytes(enum safetensors_dtype dtype);
/* Whether the elements represent real numbers: F64, F32, F16, BF16, and I8 with scales. */
bool stored_tensor_is_real(const struct stored_tensor *tensor);
/* Whether elements are contiguous in row-major order. */
bool stored_tensor_is_packed(const struct stored_tensor *tensor);

/* Verifies the checksum: damaged bytes are ERR_DATA with file, offset, and name. Call it before the values are used. */
MUST_USE enum status stored_tensor_verify(const struct stored_tensor *tensor);
/* Reads values first to first + count - 1, in row-major order, as floats; a type that is not real is ERR_DATA. */
MUST_USE enum status stored_tensor_read(const struct stored_tensor *tensor, int64_t first, int64_t count, float *out);

/* Writes "(30522, 768)" to `out`, which it returns. */
#define SHAPE_TEXT_BYTES 256
const char *shape_text(char out[SHAPE_TEXT_BYTES], int rank, const int64_t *shape);

#endif
