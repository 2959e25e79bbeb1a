/* Parses and writes tf.Example messages. */
#include "formats/example.h"
#include <stdbool.h>
#include <string.h>
#include "formats/protobuf.h"

static enum status malformed(const unsigned char *message, const unsigned char *at)
{
	return error_set(ERR_DATA, "not a well-formed tf.Example (at byte %lld of it)", (long long)(at - message));
}

static enum status read_feature(const unsigned char *message, struct byte_range part, struct example_feature *feature)
{
	struct protobuf_field field;
	while (part.at < part.end) {
		const unsigned char *at = part.at;
		if (!protobuf_next(&part, &field))
			return malformed(message, at);
		if (field.number > 3)
			continue;
		if (field.kind != PROTOBUF_BYTES)
			return malformed(message, at);
		/* The last field of a oneof wins. */
		feature->kind = (enum feature_kind)field.number;
		feature->list = field.content.at;
		feature->list_size = range_left(&field.content);
	}
	return OK;
}

/* An entry of the map: key = 1, value = 2. */
static enum status read_entry(const unsigned char *message, struct byte_range part, struct tf_example *out)
{
	if (out->count == EXAMPLE_FEATURES_MAX)
		return error_set(ERR_DATA, "a tf.Example with more than %d features", EXAMPLE_FEATURES_MAX);
	struct example_feature *feature = &out->features[out->count++];
	struct protobuf_field field;
	feature->kind = FEATURE_EMPTY;
	feature->list = part.at; /* empty */
	feature->list_size = 0;
	feature->name[0] = 0;
	while (part.at < part.end) {
		const unsigned char *at = part.at;
		if (!protobuf_next(&part, &field))
			return malformed(message, at);
		if (field.number > 2)
			continue;
		if (field.kind != PROTOBUF_BYTES)
			return malformed(message, at);
		if (field.number == 1) {
			size_t size = range_left(&field.content);
			size = size < EXAMPLE_NAME_BYTES - 1 ? size : EXAMPLE_NAME_BYTES - 1;
			memcpy(feature->name, field.content.at, size);
			feature->name[size] = 0;
		} else {
			TRY(read_feature(message, field.content, feature));
		}
	}
	return OK;
}

enum status example_parse(struct tf_example *out, const unsigned char *message, size_t size)
{
	struct byte_range part = {message, message + size};
	struct protobuf_field features, entry;
	out->count = 0;
	while (part.at < part.end) {
		const unsigned char *at = part.at;
		if (!protobuf_next(&part, &features))
			return malformed(message, at);
		if (features.number != 1)
			continue;
		if (features.kind != PROTOBUF_BYTES)
			return malformed(message, at);
		while (features.content.at < features.content.end) {
			at = features.content.at;
			if (!protobuf_next(&features.content, &entry))
				return malformed(message, at);
			if (entry.number != 1)
				continue;
			if (entry.kind != PROTOBUF_BYTES)
				return malformed(message, at);
			TRY(read_entry(message, entry.content, out));
		}
	}
	return OK;
}

const struct example_feature *example_find(const struct tf_example *example, const char *name)
{
	for (int i = example->count - 1; i >= 0; i--)
		if (strcmp(example->features[i].name, name) == 0)
			return &example->features[i];
	return NULL;
}

static enum status bad_list(const struct example_feature *feature)
{
	return error_set(ERR_DATA, "feature '%s' is not a well-formed list", feature->name);
}

static enum status too_many(const struct example_feature *feature, int64_t capacity)
{
	return error_set(ERR_DATA, "feature '%s' has more than %lld values", feature->name, (long long)capacity);
}

static enum status put_integer(const struct example_feature *feature, uint64_t value, int32_t *out)
{
	int64_t integer = (int64_t)value;
	if (integer < INT32_MIN || integer > INT32_MAX)
		return error_set(ERR_DATA, "feature '%s' holds %lld, beyond 32 bits", feature->name, (long long)integer);
	*out = (int32_t)integer;
	return OK;
}

/* The next field 1 of a list: a single value, or packed values as PROTOBUF_BYTES. Field number 0 means that there are no more. */
static enum status next_values(const struct example_feature *feature, struct byte_range *list, struct protobuf_field *out)
{
	do {
		*out = (struct protobuf_field){0};
		if (list->at == list->end)
			return OK;
		if (!protobuf_next(list, out))
			return bad_list(feature);
	} while (out->number != 1);
	return OK;
}

static enum status packed_integers(const struct example_feature *feature, struct byte_range packed, int32_t *out,
				   int64_t capacity, int64_t *count)
{
	while (packed.at < packed.end) {
		if (*count == capacity)
			return too_many(feature, capacity);
		uint64_t value = *packed.at;
		if (value < 128)
			packed.at++;
		else if (!range_varint(&packed, &value))
			return bad_list(feature);
		TRY(put_integer(feature, value, &out[*count]));
		++*count;
	}
	return OK;
}

enum status feature_integers(const struct example_feature *feature, int32_t *out, int64_t capacity, int64_t *out_count)
{
	struct byte_range list = {feature->list, feature->list + feature->list_size};
	struct protobuf_field values;
	*out_count = 0;
	if (feature->kind != FEATURE_INTEGERS && feature->kind != FEATURE_EMPTY)
		return error_set(ERR_DATA, "feature '%s' holds no integers", feature->name);
	for (;;) {
		TRY(next_values(feature, &list, &values));
		if (values.number == 0)
			return OK;
		if (values.kind == PROTOBUF_BYTES) {
			TRY(packed_integers(feature, values.content, out, capacity, out_count));
			continue;
		}
		if (values.kind != PROTOBUF_VARINT)
			return bad_list(feature);
		if (*out_count == capacity)
			return too_many(feature, capacity);
		TRY(put_integer(feature, values.value, &out[*out_count]));
		++*out_count;
	}
}

enum status feature_floats(const struct example_feature *feature, float *out, int64_t capacity, int64_t *out_count)
{
	struct byte_range list = {feature->list, feature->list + feature->list_size};
	struct protobuf_field values;
	*out_count = 0;
	if (feature->kind != FEATURE_FLOATS && feature->kind != FEATURE_EMPTY)
		return error_set(ERR_DATA, "feature '%s' holds no floats", feature->name);
	for (;;) {
		TRY(next_values(feature, &list, &values));
		if (values.number == 0)
			return OK;
		if (values.kind == PROTOBUF_32) {
			if (*out_count == capacity)
				return too_many(feature, capacity);
			memcpy(&out[(*out_count)++], &values.value, 4);
			continue;
		}
		size_t size = range_left(&values.content);
		if (values.kind != PROTOBUF_BYTES || size % 4 != 0)
			return bad_list(feature);
		if (size / 4 > (size_t)(capacity - *out_count))
			return too_many(feature, capacity);
		if (size > 0)
			memcpy(out + *out_count, values.content.at, size);
		*out_count += (int64_t)(size / 4);
	}
}

enum status feature_count(const struct example_feature *feature, int64_t *out_count)
{
	struct byte_range list = {feature->list, feature->list + feature->list_size};
	struct protobuf_field values;
	*out_count = 0;
	for (;;) {
		TRY(next_values(feature, &list, &values));
		if (values.number == 0)
			return OK;
		if (values.kind != PROTOBUF_BYTES || feature->kind == FEATURE_BYTES) {
			++*out_count;
		} else if (feature->kind == FEATURE_FLOATS) {
			*out_count += (int64_t)(range_left(&values.content) / 4);
		} else {
			for (; values.content.at < values.content.end; values.content.at++)
				*out_count += *values.content.at < 128;
		}
	}
}

static size_t varint_size(uint64_t value)
{
	size_t size = 1;
	for (; value >= 128; value >>= 7)
		size++;
	return size;
}

static unsigned char *put_head(unsigned char *out, uint32_t field, uint64_t size)
{
	*out++ = (unsigned char)(field << 3 | PROTOBUF_BYTES);
	return out + varint_put(out, size);
}

static size_t list_bytes(const struct example_value *value)
{
	if (value->floats != NULL)
		return 4 * (size_t)value->count;
	size_t size = (size_t)value->count;
	for (int64_t i = 0; i < value->count; i++) {
		uint32_t v = (uint32_t)value->integers[i];
		size += (v >= 1u << 7) + (v >= 1u << 14) + (v >= 1u << 21) + (v >= 1u << 28);
	}
	return size;
}

static unsigned char *put_list(unsigned char *out, const struct example_value *value)
{
	if (value->floats != NULL) {
		memcpy(out, value->floats, 4 * (size_t)value->count);
		return out + 4 * value->count;
	}
	for (int64_t i = 0; i < value->count; i++) {
		uint32_t v = (uint32_t)value->integers[i];
		if (v < 128)
			*out++ = (unsigned char)v;
		else
			out += varint_put(out, v);
	}
	return out;
}

/* Sizes in bytes of the nested messages around a list of `list` bytes: list message, Feature, map entry. An empty list is a
 * Feature with an empty list message, as TensorFlow writes it. */
struct nesting {
	size_t list, inner, feature, entry;
};

static struct nesting nest(const struct example_value *value)
{
	struct nesting n = {.list = list_bytes(value)};
	n.inner = n.list > 0 ? 1 + varint_size(n.list) + n.list : 0;
	n.feature = 1 + varint_size(n.inner) + n.inner;
	size_t name = strlen(value->name);
	n.entry = 1 + varint_size(name) + name + 1 + varint_size(n.feature) + n.feature;
	return n;
}

size_t example_encode(const struct example_value *values, int count, unsigned char *out)
{
	struct nesting nestings[EXAMPLE_FEATURES_MAX];
	size_t features = 0;
	BUG_IF(count > EXAMPLE_FEATURES_MAX);
	for (int i = 0; i < count; i++) {
		nestings[i] = nest(&values[i]);
		features += 1 + varint_size(nestings[i].entry) + nestings[i].entry;
	}
	unsigned char *next = put_head(out, 1, features);
	for (int i = 0; i < count; i++) {
		size_t name = strlen(values[i].name);
		next = put_head(next, 1, nestings[i].entry);
		next = put_head(next, 1, name);
		memcpy(next, values[i].name, name);
		next = put_head(next + name, 2, nestings[i].feature);
		next = put_head(next, values[i].floats != NULL ? 2 : 3, nestings[i].inner);
		if (nestings[i].list > 0)
			next = put_list(put_head(next, 1, nestings[i].list), &values[i]);
	}
	return (size_t)(next - out);
}
