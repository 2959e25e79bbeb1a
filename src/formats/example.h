/* tf.Example, the protocol buffer that TFRecord files of training data hold:
 *   Example{features = 1: Features{feature = 1: map<string, Feature>}}, Feature one of
 *   BytesList = 1, FloatList = 2, Int64List = 3, each with its values in field 1, packed or one by one. */
#ifndef FORMATS_EXAMPLE_H
#define FORMATS_EXAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Maximum number of features in an example; a message with more is rejected. */
#define EXAMPLE_FEATURES_MAX 64
#define EXAMPLE_NAME_BYTES 128

enum feature_kind { FEATURE_EMPTY, FEATURE_BYTES, FEATURE_FLOATS, FEATURE_INTEGERS };

struct example_feature {
	char name[EXAMPLE_NAME_BYTES]; /* longer ones are truncated */
	enum feature_kind kind;
	const unsigned char *list; /* the encoded list, within the message */
	size_t list_size;
};

struct tf_example {
	int count;
	struct example_feature features[EXAMPLE_FEATURES_MAX];
};

/* Parses a message, which is borrowed. Anything that is not a well-formed Example is ERR_DATA with the offset within the
 * message. */
MUST_USE enum status example_parse(struct tf_example *out, const unsigned char *message, size_t size);
/* The feature with that name (the last one, as in protocol buffers), or NULL. */
const struct example_feature *example_find(const struct tf_example *example, const char *name);
/* The values of a feature, at most `capacity`; *out_count = how many there are. A different kind, integers outside [-2^31, 2^31),
 * or more than `capacity` values are ERR_DATA. */
MUST_USE enum status feature_integers(const struct example_feature *feature, int32_t *out, int64_t capacity, int64_t *out_count);
MUST_USE enum status feature_floats(const struct example_feature *feature, float *out, int64_t capacity, int64_t *out_count);
/* Number of values of a feature (also of a BytesList). */
MUST_USE enum status feature_count(const struct example_feature *feature, int64_t *out_count);

/* Writing: one feature to encode. Lists are packed. */
struct example_value {
	const char *name;
	const int32_t *integers; /* [count], >= 0; used if `floats` is NULL */
	const float *floats;
	int64_t count;
};
/* Writes the message, with features in the order given, and returns its size: at most 5 bytes per integer, 4 per float, and 32
 * plus the name per feature. */
size_t example_encode(const struct example_value *values, int count, unsigned char *out);

#endif
