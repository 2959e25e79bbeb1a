/* A named tensor as a file of weights holds it, whatever program wrote the file. */
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
	const unsigned char *data; /* the first element, in a map, at any alignment */
	const char *path;          /* of the file that holds the data */
	uint64_t offset;           /* of the first element in it */
	int64_t part;              /* number of the file among those of a set */
	/* Of an I8 matrix: an F32 for each row, at any alignment, that its numbers are multiplied by; NULL: they are just
	 * numbers. */
	const unsigned char *row_scales;
	/* What the file promises of the bytes that `data` lies in. */
	enum stored_checksum checksum;
	const unsigned char *checked;
	uint64_t checked_bytes;
	uint32_t expected;
};

/* Fills in the strides of a tensor whose elements lie back to back, and its count. False if that overflows. */
bool stored_tensor_pack(struct stored_tensor *tensor);
/* Bytes of one element. */
int64_t dtype_element_bytes(enum safetensors_dtype dtype);
/* Whether the elements stand for real numbers: F64, F32, F16, BF16, and I8 with scales. */
bool stored_tensor_is_real(const struct stored_tensor *tensor);
/* Whether elements lie back to back in row-major order. */
bool stored_tensor_is_packed(const struct stored_tensor *tensor);

/* Damaged bytes are ERR_DATA with file, offset and name. To be asked before the values are used. */
MUST_USE enum status stored_tensor_verify(const struct stored_tensor *tensor);
/* Values first … first + count - 1, in row-major order, as floats; elements that are no real numbers are ERR_DATA. */
MUST_USE enum status stored_tensor_read(const struct stored_tensor *tensor, int64_t first, int64_t count, float *out);

/* "(30522, 768)" into `out`, which is returned. */
#define SHAPE_TEXT_BYTES 256
const char *shape_text(char out[SHAPE_TEXT_BYTES], int rank, const int64_t *shape);

#endif
