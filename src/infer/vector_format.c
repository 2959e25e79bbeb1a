/* Writes vectors in each of the formats that `bertc embed` offers. */
#include "infer/vector_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

static void put_numbers(struct buffer *out, const float *vector, int64_t count)
{
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '[');
	for (int64_t i = 0; i < count; i++)
		json_put_float(&writer, NULL, vector[i]);
	json_close(&writer);
}

static void put_start(struct buffer *out, const char *id, size_t id_size)
{
	buffer_text(out, "{");
	if (id_size > 0) {
		buffer_text(out, "\"id\":");
		buffer_append(out, id, id_size);
		buffer_text(out, ",");
	}
	buffer_text(out, "\"embedding\":");
}

void vector_put_json(struct buffer *out, const char *id, size_t id_size, const float *vector, int64_t count)
{
	put_start(out, id, id_size);
	put_numbers(out, vector, count);
	buffer_text(out, "}\n");
}

void vector_put_weights(struct buffer *out, const char *id, size_t id_size, const float *weights, const int32_t *words,
			int64_t count, const struct vocab *vocab)
{
	struct json_writer writer = {.out = out};
	put_start(out, id, id_size);
	json_open(&writer, NULL, '{');
	for (int64_t i = 0; i < count; i++) {
		char unnamed[24]; /* a row of the model beyond the vocabulary */
		snprintf(unnamed, sizeof unnamed, "[%d]", words[i]);
		json_put_float(&writer, words[i] < vocab->count ? vocab->text[words[i]] : unnamed, weights[words[i]]);
	}
	json_close(&writer);
	buffer_text(out, "}\n");
}

void vector_put_tsv(struct buffer *out, const float *vector, int64_t count)
{
	struct buffer number = {0};
	for (int64_t i = 0; i < count; i++) {
		struct json_writer writer = {.out = &number};
		buffer_clear(&number);
		json_put_float(&writer, NULL, vector[i]);
		if (i > 0)
			buffer_char(out, '\t');
		buffer_append(out, number.data, number.size);
	}
	buffer_char(out, '\n');
	buffer_release(&number);
}

void vector_put_binary(struct buffer *out, const float *vector, int64_t count)
{
	unsigned char *at = (unsigned char *)buffer_room(out, (size_t)count * 4);
	for (int64_t i = 0; at && i < count; i++) {
		uint32_t bits;
		memcpy(&bits, &vector[i], sizeof bits);
		for (int b = 0; b < 4; b++)
			*at++ = (unsigned char)(bits >> 8 * b);
	}
	if (at)
		buffer_advance(out, (size_t)count * 4);
}

void vector_put_bytes(struct buffer *out, const float *vector, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		buffer_char(out, (char)(unsigned char)((int)vector[i] & 255));
}

void vector_put_npy_header(struct buffer *out, const char *type, int64_t rows, int64_t columns)
{
	char text[NPY_HEADER_BYTES + 1];
	const int before = 10; /* bytes of magic, version, and length field */
	memcpy(text, "\x93NUMPY\x01\x00", 8);
	text[8] = (char)(NPY_HEADER_BYTES - before);
	text[9] = 0;
	int length =
		snprintf(text + before, sizeof text - (size_t)before,
			 "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }", type, rows, columns);
	BUG_IF(length < 0 || before + length >= NPY_HEADER_BYTES);
	memset(text + before + length, ' ', (size_t)(NPY_HEADER_BYTES - before - length));
	text[NPY_HEADER_BYTES - 1] = '\n';
	buffer_append(out, text, NPY_HEADER_BYTES);
}

/* Python's repr(round(x, 6)): the exact value rounded to six decimals, without trailing zeros. */
static void put_rounded(struct buffer *out, float x)
{
	char text[64];
	double value;
	if (!isfinite(x)) {
		buffer_text(out, "null");
		return;
	}
	int length = snprintf(text, sizeof text, "%.6f", (double)x);
	sscanf(text, "%lf", &value);
	if (value != 0 && fabs(value) < 1e-4) { /* Python prints these with an exponent */
		buffer_double(out, value);
		return;
	}
	while (text[length - 1] == '0' && text[length - 2] != '.')
		length--;
	buffer_append(out, text, (size_t)length);
}

/* A token as Python's json.dumps writes it, with everything outside ASCII as \uXXXX. */
static void put_ascii_text(struct buffer *out, const char *text)
{
	struct buffer quoted = {0};
	struct json_writer writer = {.out = &quoted};
	json_put_string(&writer, NULL, text);
	for (size_t i = 0; i < quoted.size;) {
		unsigned char c = (unsigned char)quoted.data[i];
		if (c < 0x80) {
			buffer_char(out, (char)c);
			i++;
			continue;
		}
		int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
		uint32_t code = c & (0x3fu >> more);
		for (int k = 1; k <= more; k++)
			code = code << 6 | ((unsigned char)quoted.data[i + (size_t)k] & 0x3fu);
		if (code >= 0x10000)
			buffer_format(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
				      0xdc00 + ((code - 0x10000) & 0x3ff));
		else
			buffer_format(out, "\\u%04x", code);
		i += (size_t)more + 1;
	}
	buffer_release(&quoted);
}

void vector_put_google(struct buffer *out, int64_t number, const struct vocab *vocab, const int32_t *ids, int32_t count,
		       const float *rows, int64_t hidden, const int32_t *indices, int32_t layer_count)
{
	buffer_format(out, "{\"linex_index\": %" PRId64 ", \"features\": [", number);
	for (int32_t token = 0; token < count; token++) {
		buffer_text(out, token > 0 ? ", {\"token\": " : "{\"token\": ");
		put_ascii_text(out, vocab->text[ids[token]]);
		buffer_text(out, ", \"layers\": [");
		for (int32_t layer = 0; layer < layer_count; layer++) {
			const float *row = rows + ((int64_t)layer * count + token) * hidden;
			buffer_format(out, "%s{\"index\": %d, \"values\": [", layer > 0 ? ", " : "", indices[layer]);
			for (int64_t i = 0; i < hidden; i++) {
				if (i > 0)
					buffer_text(out, ", ");
				put_rounded(out, row[i]);
			}
			buffer_text(out, "]}");
		}
		buffer_text(out, "]}");
	}
	buffer_text(out, "]}\n");
}
