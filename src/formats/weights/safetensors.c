/* Reads and writes safetensors files; the numbered checks are those of docs/formats.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/safetensors.h"

static const struct {
	const char *name;
	unsigned bytes;
} dtypes[] = {
	[ST_BOOL] = {"BOOL", 1},       [ST_U8] = {"U8", 1},   [ST_I8] = {"I8", 1},   [ST_F8_E5M2] = {"F8_E5M2", 1},
	[ST_F8_E4M3] = {"F8_E4M3", 1}, [ST_I16] = {"I16", 2}, [ST_U16] = {"U16", 2}, [ST_F16] = {"F16", 2},
	[ST_BF16] = {"BF16", 2},       [ST_I32] = {"I32", 4}, [ST_U32] = {"U32", 4}, [ST_F32] = {"F32", 4},
	[ST_F64] = {"F64", 8},         [ST_I64] = {"I64", 8}, [ST_U64] = {"U64", 8},
};

#define DTYPE_NAMES ((int)(sizeof dtypes / sizeof dtypes[0]))
#define RANK_LIMIT 8
#define NAME_LIMIT 4096
#define TENSOR_LIMIT 100000
#define HEADER_LIMIT 100000000
/* Brackets and commas that TENSOR_LIMIT tensors of rank 8 can have: a header with more is rejected before it is parsed, so that
 * its tree cannot be many times the size of the file. */
#define STRUCTURE_LIMIT (TENSOR_LIMIT * 16)

const char *safetensors_dtype_name(enum safetensors_dtype dtype)
{
	return dtypes[dtype].name;
}

/* Checks 1 to 3 of docs/formats.md: the length of the header against the file. */
static enum status check_length(const struct file_map *map, const char *path, uint64_t *out_header)
{
	if (map->size < 8)
		return error_set(ERR_DATA, "'%s': %zu bytes are not a safetensors file", path, map->size);
	uint64_t header = 0;
	for (int i = 7; i >= 0; i--)
		header = header << 8 | map->data[i];
	if (header > HEADER_LIMIT)
		return error_set(ERR_DATA, "'%s': header of %llu bytes; at most %d are allowed", path, (unsigned long long)header,
				 HEADER_LIMIT);
	if (header > map->size - 8)
		return error_set(ERR_DATA, "'%s': header of %llu bytes in a file of %zu: truncated, or not a safetensors file",
				 path, (unsigned long long)header, map->size);
	*out_header = header;
	return OK;
}

static enum status check_structure(const char *text, uint64_t size, const char *path)
{
	if (size == 0 || text[0] != '{')
		return error_set(ERR_DATA, "'%s': the header does not begin with '{'", path);
	int64_t structure = 0;
	for (uint64_t i = 0; i < size; i++)
		structure += text[i] == '{' || text[i] == '[' || text[i] == ',';
	if (structure > STRUCTURE_LIMIT)
		return error_set(ERR_DATA, "'%s': the header has more than %d tensors", path, TENSOR_LIMIT);
	return OK;
}

static enum status read_metadata(struct safetensors *file, const struct json *object, const char *path)
{
	if (object->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': __metadata__ is not an object", path);
	struct buffer line = {0};
	enum status status = OK;
	for (const struct json *item = object->first_child; item; item = item->next) {
		if (item->kind != JSON_STRING) {
			status = error_set(ERR_DATA, "'%s': __metadata__ \"%.200s\" is not a string", path, item->key);
			break;
		}
		buffer_clear(&line);
		buffer_format(&line, "%s=%s", item->key, item->text);
		TRY_GOTO(buffer_status(&line), done);
		TRY_GOTO(name_list_add(&file->metadata, buffer_string(&line)), done);
	}
done:
	buffer_release(&line);
	return status;
}

static enum status check_name(const char *name, const char *path)
{
	if (strlen(name) > NAME_LIMIT)
		return error_set(ERR_DATA, "'%s': a tensor's name is longer than %d bytes", path, NAME_LIMIT);
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			return error_set(ERR_DATA, "'%s': a tensor's name has a control character", path);
	return OK;
}

/* Reads up to `limit` unsigned integers. */
static enum status read_sizes(const struct json *tensor, const char *key, int limit, int64_t *out, int *out_count,
			      const char *path)
{
	const struct json *array = json_member(tensor, key);
	if (!array || array->kind != JSON_ARRAY || array->child_count > limit)
		return error_set(ERR_DATA, "'%s': tensor '%.200s': \"%s\" is not an array of at most %d numbers", path,
				 tensor->key, key, limit);
	int count = 0;
	for (const struct json *item = array->first_child; item; item = item->next) {
		if (item->kind != JSON_NUMBER || !item->is_integer || item->text[0] == '-')
			return error_set(ERR_DATA, "'%s': tensor '%.200s': \"%s\" holds '%.40s', which is not a size", path,
					 tensor->key, key, item->kind == JSON_NUMBER ? item->text : "a non-number");
		out[count++] = item->integer;
	}
	*out_count = count;
	return OK;
}

/* Reads one tensor of the header. Its offsets in the file go to `offsets`, to be verified later. */
static enum status read_entry(struct safetensors_entry *entry, const struct json *tensor, const char *path, int64_t offsets[2])
{
	if (tensor->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s': tensor '%.200s' is not an object", path, tensor->key);
	TRY(check_name(tensor->key, path));
	entry->name = tensor->key;
	const struct json *dtype = json_member(tensor, "dtype");
	if (!dtype || dtype->kind != JSON_STRING)
		return error_set(ERR_DATA, "'%s': tensor '%.200s' has no \"dtype\"", path, tensor->key);
	int type = 0;
	while (type < DTYPE_NAMES && strcmp(dtypes[type].name, dtype->text) != 0)
		type++;
	if (type == DTYPE_NAMES)
		return error_set(ERR_DATA, "'%s': tensor '%.200s' has the unknown type \"%.40s\"", path, tensor->key,
				 dtype->text);
	entry->dtype = (enum safetensors_dtype)type;
	TRY(read_sizes(tensor, "shape", RANK_LIMIT, entry->shape, &entry->rank, path));
	int offset_count;
	TRY(read_sizes(tensor, "data_offsets", 2, offsets, &offset_count, path));
	if (offset_count != 2)
		return error_set(ERR_DATA, "'%s': tensor '%.200s': \"data_offsets\" needs two numbers", path, tensor->key);
	return OK;
}

struct place {
	int64_t begin, end;
	int64_t entry;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *p = a, *q = b;
	if (p->begin != q->begin)
		return p->begin < q->begin ? -1 : 1;
	return (p->end > q->end) - (p->end < q->end);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct safetensors_entry *)a)->name, ((const struct safetensors_entry *)b)->name);
}

/* Check 7: shape, type and offsets agree. */
static enum status check_size(struct safetensors_entry *entry, const struct place *place, const char *path)
{
	int64_t count = 1, bytes;
	bool overflow = false;
	for (int i = entry->rank - 1; i >= 0; i--) /* strides, too, must not overflow, even if a dimension is 0 */
		overflow |= __builtin_mul_overflow(count, entry->shape[i], &count);
	overflow |= __builtin_mul_overflow(count, (int64_t)dtypes[entry->dtype].bytes, &bytes);
	if (overflow)
		return error_set(ERR_DATA, "'%s': tensor '%.200s': its shape is too large", path, entry->name);
	if (bytes != place->end - place->begin)
		return error_set(ERR_DATA, "'%s': tensor '%.200s': its shape needs %lld bytes, its offsets give %lld", path,
				 entry->name, (long long)bytes, (long long)(place->end - place->begin));
	entry->count = count;
	entry->bytes = (uint64_t)bytes;
	return OK;
}

/* Checks 6 to 8: tensors are contiguous and fill the file exactly. */
static enum status check_places(struct safetensors *file, struct place *places, uint64_t header, const char *path)
{
	qsort(places, (size_t)file->count, sizeof *places, compare_places);
	int64_t end = 0;
	for (int64_t i = 0; i < file->count; i++) {
		const char *name = file->entries[places[i].entry].name;
		if (places[i].begin != end)
			return error_set(ERR_DATA, "'%s': tensor '%.200s' begins at %lld where %lld is expected: %s", path, name,
					 (long long)places[i].begin, (long long)end,
					 places[i].begin < end ? "it overlaps another" : "there is a hole");
		if (places[i].end < places[i].begin)
			return error_set(ERR_DATA, "'%s': tensor '%.200s' ends before it begins", path, name);
		end = places[i].end;
	}
	for (int64_t i = 0; i < file->count; i++)
		TRY(check_size(&file->entries[places[i].entry], &places[i], path));
	if ((uint64_t)end != file->map.size - 8 - header)
		return error_set(ERR_DATA, "'%s': %llu bytes of data where the header promises %lld: %s", path,
				 (unsigned long long)(file->map.size - 8 - header), (long long)end,
				 (uint64_t)end > file->map.size - 8 - header ? "truncated?" : "bytes after the last tensor");
	for (int64_t i = 0; i < file->count; i++)
		file->entries[places[i].entry].data = file->map.data + 8 + header + places[i].begin;
	return OK;
}

static enum status read_header(struct safetensors *file, uint64_t size, const char *path)
{
	const struct json *root = file->header.root;
	TRY(memory_new(&file->entries, root->child_count, sizeof *file->entries, "tensors of a safetensors file"));
	struct place *places = NULL;
	TRY(memory_new(&places, root->child_count, sizeof *places, "tensors of a safetensors file"));
	enum status status = OK;
	for (const struct json *item = root->first_child; item; item = item->next) {
		if (strcmp(item->key, "__metadata__") == 0) {
			TRY_GOTO(read_metadata(file, item, path), done);
			continue;
		}
		int64_t offsets[2];
		TRY_GOTO(read_entry(&file->entries[file->count], item, path, offsets), done);
		places[file->count] = (struct place){offsets[0], offsets[1], file->count};
		file->count++;
	}
	if (file->count > TENSOR_LIMIT) {
		status = error_set(ERR_DATA, "'%s': the header has more than %d tensors", path, TENSOR_LIMIT);
		goto done;
	}
	TRY_GOTO(check_places(file, places, size, path), done);
	qsort(file->entries, (size_t)file->count, sizeof *file->entries, compare_names);
done:
	free(places);
	return status;
}

enum status safetensors_open(struct safetensors *out, const char *path)
{
	*out = (struct safetensors){0};
	TRY(file_map_open(&out->map, path));
	uint64_t header = 0;
	enum status status;
	TRY_GOTO(check_length(&out->map, path, &header), fail);
	const char *text = (const char *)out->map.data + 8;
	TRY_GOTO(check_structure(text, header, path), fail);
	TRY_GOTO(json_parse(&out->header, path, text, header), fail); /* checks 4 and 5 */
	TRY_GOTO(read_header(out, header, path), fail);
	return OK;

fail:
	safetensors_close(out);
	return status;
}

void safetensors_close(struct safetensors *file)
{
	free(file->entries);
	name_list_release(&file->metadata);
	json_release(&file->header);
	file_map_close(&file->map);
	*file = (struct safetensors){0};
}

const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name)
{
	struct safetensors_entry key = {.name = name};
	return bsearch(&key, file->entries, (size_t)file->count, sizeof key, compare_names);
}

static double half_to_double(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double sign = bits & 0x8000 ? -1 : 1;
	if (exponent == 31)
		return fraction ? (double)__builtin_nanf("") : sign * (double)__builtin_inff();
	return sign * (exponent ? __builtin_ldexp(fraction + 1024, exponent - 25) : __builtin_ldexp(fraction, -24));
}

/* Element i of a floating-point entry; the data may be unaligned. */
static double element(const struct safetensors_entry *entry, int64_t i)
{
	const char *at = (const char *)entry->data + i * dtypes[entry->dtype].bytes;
	union {
		double f64;
		float f32;
		uint32_t u32;
		uint16_t u16;
	} bits;
	memcpy(&bits, at, dtypes[entry->dtype].bytes);
	switch (entry->dtype) {
	case ST_F64: return bits.f64;
	case ST_F32: return (double)bits.f32;
	case ST_BF16: bits.u32 = (uint32_t)bits.u16 << 16; return (double)bits.f32;
	default: return half_to_double(bits.u16);
	}
}

static enum status check_floating(const struct safetensors_entry *entry, const char *path)
{
	if (entry->dtype == ST_F64 || entry->dtype == ST_F32 || entry->dtype == ST_BF16 || entry->dtype == ST_F16)
		return OK;
	return error_set(ERR_DATA, "'%s': tensor '%.200s' has type %s; weights are F64, F32, F16 or BF16", path, entry->name,
			 dtypes[entry->dtype].name);
}

enum status safetensors_to_float(const struct safetensors_entry *entry, const char *path, float *out)
{
	TRY(check_floating(entry, path));
	if (entry->dtype == ST_F32)
		memcpy(out, entry->data, entry->bytes);
	else
		for (int64_t i = 0; i < entry->count; i++)
			out[i] = (float)element(entry, i);
	return OK;
}

enum status safetensors_to_double(const struct safetensors_entry *entry, const char *path, double *out)
{
	TRY(check_floating(entry, path));
	for (int64_t i = 0; i < entry->count; i++)
		out[i] = element(entry, i);
	return OK;
}

static int compare_for_writing(const void *a, const void *b)
{
	const struct safetensors_entry *p = *(const struct safetensors_entry *const *)a;
	const struct safetensors_entry *q = *(const struct safetensors_entry *const *)b;
	if (p->dtype != q->dtype)
		return p->dtype > q->dtype ? -1 : 1;
	return strcmp(p->name, q->name);
}

static void write_metadata(struct json_writer *writer, const struct name_list *metadata)
{
	json_open(writer, "__metadata__", '{');
	json_put_string(writer, "format", "pt"); /* transformers refuses files without it */
	for (int64_t i = 0; metadata && i < metadata->count; i++) {
		const char *equals = strchr(metadata->names[i], '=');
		BUG_IF(!equals);
		char key[128];
		int length = snprintf(key, sizeof key, "%.*s", (int)(equals - metadata->names[i]), metadata->names[i]);
		BUG_IF(length >= (int)sizeof key);
		if (strcmp(key, "format") != 0)
			json_put_string(writer, key, equals + 1);
	}
	json_close(writer);
}

/* The header, preceded by its length and padded with spaces so that the data begins at a multiple of 8. */
static enum status make_header(struct buffer *header, const struct safetensors_entry *const *sorted, int64_t count,
			       const struct name_list *metadata)
{
	unsigned char length[8] = {0};
	buffer_append(header, length, sizeof length);
	struct json_writer writer = {.out = header};
	json_open(&writer, NULL, '{');
	write_metadata(&writer, metadata);
	int64_t offset = 0;
	for (int64_t i = 0; i < count; i++) {
		const struct safetensors_entry *entry = sorted[i];
		uint64_t bytes = dtypes[entry->dtype].bytes;
		json_open(&writer, entry->name, '{');
		json_put_string(&writer, "dtype", dtypes[entry->dtype].name);
		json_open(&writer, "shape", '[');
		for (int d = 0; d < entry->rank; d++) {
			json_put_integer(&writer, NULL, entry->shape[d]);
			bytes *= (uint64_t)entry->shape[d];
		}
		json_close(&writer);
		BUG_IF(bytes != entry->bytes);
		json_open(&writer, "data_offsets", '[');
		json_put_integer(&writer, NULL, offset);
		offset += (int64_t)entry->bytes;
		json_put_integer(&writer, NULL, offset);
		json_close(&writer);
		json_close(&writer);
	}
	json_close(&writer);
	while (header->size % 8 != 0 && !header->failed)
		buffer_char(header, ' ');
	TRY(buffer_status(header));
	for (int i = 0; i < 8; i++)
		header->data[i] = (char)((header->size - 8) >> (8 * i));
	return OK;
}

enum status safetensors_write(const char *path, const struct safetensors_entry *entries, int64_t count,
			      const struct name_list *metadata, uint32_t *out_crc32c, int64_t *out_bytes)
{
	const struct safetensors_entry **sorted = NULL;
	struct buffer header = {0};
	struct file_writer *writer = NULL;
	enum status status;
	TRY_GOTO(memory_new(&sorted, count, sizeof *sorted, "tensors of a safetensors file"), done);
	for (int64_t i = 0; i < count; i++)
		sorted[i] = &entries[i];
	qsort(sorted, (size_t)count, sizeof *sorted, compare_for_writing);
	TRY_GOTO(make_header(&header, sorted, count, metadata), done);

	TRY_GOTO(file_writer_open(&writer, path), done);
	TRY_GOTO(file_writer_write(writer, header.data, header.size), done);
	for (int64_t i = 0; i < count; i++)
		TRY_GOTO(file_writer_write(writer, sorted[i]->data, sorted[i]->bytes), done);
	if (out_crc32c)
		*out_crc32c = file_writer_crc32c(writer);
	if (out_bytes)
		*out_bytes = file_writer_offset(writer);
	status = file_writer_commit(writer);
	writer = NULL;
done:
	file_writer_abandon(writer);
	buffer_release(&header);
	free(sorted);
	return status;
}
