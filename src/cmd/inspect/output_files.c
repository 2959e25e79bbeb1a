/* Reads back vectors, unfinished outputs, and event files, in order to count and check them. */
#include "cmd/inspect/output_files.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/npy_file.h"
#include "formats/tfrecord.h"

#define NOTE_LIMIT ((size_t)64 << 20)

/* ---- Vectors ---- */

static enum status bad_row(const char *path, int64_t row, const char *what)
{
	return error_set(ERR_DATA, "'%s', row %" PRId64 ": %s", path, row, what);
}

static enum status add_row(struct vector_facts *facts, const char *path, int64_t columns)
{
	facts->rows++;
	if (columns == 0)
		return bad_row(path, facts->rows, "no numbers");
	if (facts->columns > 0 && columns != facts->columns)
		return error_set(ERR_DATA, "'%s', row %" PRId64 ": %" PRId64 " numbers, where the rows before have %" PRId64,
				 path, facts->rows, columns, facts->columns);
	facts->columns = columns;
	return OK;
}

static enum status read_npy(const struct file_map *map, const char *path, struct vector_facts *out)
{
	struct npy_file file = {.takes_codes = true};
	TRY(npy_view(map->data, map->size, path, &file));
	out->form = file.values ? "NumPy array of float32" : file.is_signed ? "NumPy array of int8" : "NumPy array of uint8";
	out->rows = file.rows;
	out->columns = file.columns;
	return file.values ? npy_file_check(&file, path) : OK;
}

/* Counts the numbers in a JSON list or object; -1 if it contains anything else. */
static int64_t count_numbers(const struct json *list)
{
	if (!list || (list->kind != JSON_ARRAY && list->kind != JSON_OBJECT))
		return -1;
	for (const struct json *child = list->first_child; child; child = child->next)
		if (child->kind != JSON_NUMBER)
			return -1;
	return list->child_count;
}

/* Adds a text as extract_features.py writes it: a feature for each token, with the values of each layer. */
static enum status add_features(struct vector_facts *facts, const char *path, const struct json *features)
{
	facts->form = "extract_features.py's JSON lines";
	for (const struct json *feature = features->first_child; feature; feature = feature->next) {
		const struct json *layers = json_member(feature, "layers");
		for (const struct json *layer = layers ? layers->first_child : NULL; layer; layer = layer->next) {
			int64_t count = count_numbers(json_member(layer, "values"));
			if (count < 0)
				return bad_row(path, facts->rows + 1, "no \"values\" with a list of numbers");
			TRY(add_row(facts, path, count));
		}
	}
	return OK;
}

/* Adds a text of which each word has a weight: texts have different numbers of them, and an empty one has none. */
static enum status add_weights(struct vector_facts *facts, int64_t words)
{
	facts->form = "JSON lines with weights of words";
	facts->rows++;
	facts->columns = words > facts->columns ? words : facts->columns;
	return OK;
}

static enum status read_json_line(const char *line, size_t size, const char *path, struct vector_facts *out)
{
	struct json_document document;
	TRY(json_parse(&document, path, line, size));
	const struct json *features = json_member(document.root, "features");
	enum status status;
	if (features) {
		status = add_features(out, path, features);
	} else {
		const struct json *vector = json_member(document.root, "embedding");
		int64_t count = count_numbers(vector);
		out->is_sparse = out->rows == 0 ? vector && vector->kind == JSON_OBJECT : out->is_sparse;
		if (count < 0 || out->is_sparse != (vector->kind == JSON_OBJECT))
			status = bad_row(path, out->rows + 1,
					 out->is_sparse ? "no \"embedding\" with weights of words"
							: "no \"embedding\" with a list of numbers");
		else
			status = out->is_sparse ? add_weights(out, count) : add_row(out, path, count);
	}
	json_release(&document);
	return status;
}

static enum status read_tsv_line(const char *line, size_t size, const char *path, struct vector_facts *out)
{
	const char *end = line + size;
	int64_t count = 0;
	for (const char *at = line; at < end; count++) {
		char number[64], *stop;
		size_t length = (size_t)(end - at);
		const char *tab = memchr(at, '\t', length);
		length = tab ? (size_t)(tab - at) : length;
		snprintf(number, sizeof number, "%.*s", (int)(length < 63 ? length : 63), at);
		double value = strtod(number, &stop);
		if (length == 0 || length > 63 || *stop || !isfinite(value))
			return bad_row(path, out->rows + 1, "not a finite number");
		at += length + (tab != NULL);
	}
	return add_row(out, path, count);
}

enum status vector_file_read(const char *path, struct vector_facts *out)
{
	struct file_map map;
	enum status status = OK;
	*out = (struct vector_facts){.form = "JSON lines"};
	TRY(file_map_open(&map, path));
	out->bytes = (int64_t)map.size;
	const char *line = (const char *)map.data, *end = line + map.size;
	bool tsv = text_ends_with(path, ".tsv");
	if (text_ends_with(path, ".npy") || (map.size > 6 && memcmp(map.data, "\x93NUMPY", 6) == 0)) {
		status = read_npy(&map, path, out);
		line = end;
	} else if (tsv) {
		out->form = "TSV";
	}
	while (line < end && status == OK) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline)
			status = bad_row(path, out->rows + 1, "cut off: it has no line end");
		else
			status = (tsv ? read_tsv_line : read_json_line)(line, (size_t)(newline - line), path, out);
		line = newline ? newline + 1 : end;
	}
	file_map_close(&map);
	return status;
}

/* ---- Unfinished outputs ---- */

enum status part_file_read(const char *path, struct part_facts *out)
{
	char note[PATH_BYTES + 16];
	struct json_document document;
	const char *made_from = "";
	int64_t crc = 0;
	size_t size = strlen(path);
	*out = (struct part_facts){.bytes = file_size(path)};
	BUG_IF(!text_ends_with(path, ".part"));
	snprintf(note, sizeof note, "%.*s.progress", (int)(size - 5), path);
	if (!file_exists(note))
		return OK;
	TRY(json_read(&document, note, NOTE_LIMIT));
	enum status status;
	TRY_GOTO(json_get_string(document.root, note, "made_from", &made_from), done);
	TRY_GOTO(json_get_integer(document.root, note, "texts", 0, INT64_MAX, &out->texts), done);
	TRY_GOTO(json_get_integer(document.root, note, "bytes", 0, INT64_MAX, &out->saved), done);
	TRY_GOTO(json_get_integer(document.root, note, "crc32c", 0, UINT32_MAX, &crc), done);
	TRY_GOTO(memory_new(&out->made_from, (int64_t)strlen(made_from) + 1, 1, "note of progress"), done);
	memcpy(out->made_from, made_from, strlen(made_from) + 1);
	out->crc32c = (uint32_t)crc;
	out->has_note = true;
done:
	json_release(&document);
	return status;
}

/* ---- Events ---- */

/* Does the record at this offset extend beyond the end of the file? If its length is there, so is the checksum of it. */
static bool is_cut_off(const char *path, int64_t offset)
{
	struct file_map map;
	uint64_t length = 0;
	uint32_t crc;
	if (file_map_open(&map, path) != OK)
		return false;
	uint64_t left = map.size - (uint64_t)offset;
	bool cut = left < TFRECORD_HEAD_BYTES;
	if (!cut) {
		memcpy(&length, map.data + offset, sizeof length);
		memcpy(&crc, map.data + offset + sizeof length, sizeof crc);
		cut = crc == crc32c_masked(crc32c(0, map.data + offset, sizeof length)) &&
		      (left < TFRECORD_FRAME_BYTES || length > left - TFRECORD_FRAME_BYTES);
	}
	file_map_close(&map);
	return cut;
}

enum status event_file_count(const char *path, int64_t *out_records)
{
	struct tfrecord_reader *reader;
	const unsigned char *payload;
	size_t size;
	enum status status;
	*out_records = 0;
	TRY(tfrecord_open(&reader, path));
	while ((status = tfrecord_next(reader, &payload, &size)) == OK && payload)
		++*out_records;
	if (status == ERR_DATA && *out_records > 0 && is_cut_off(path, tfrecord_offset(reader)))
		status = OK;
	tfrecord_close(reader);
	return status;
}
