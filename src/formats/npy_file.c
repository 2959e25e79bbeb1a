/* Reads the header of NumPy's array files: magic, version, the length of the header, and a Python dictionary of three items. */
#include "formats/npy_file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
enum { PREFIX_1 = 10, PREFIX_2 = 12, HEADER_MOST = 65536 };

static enum status damaged(const char *name, const char *what, size_t at)
{
	return error_set(ERR_DATA, "'%s' is not an array file that can be read: %s, at byte %zu", name, what, at);
}

/* The text after `'key':` in the dictionary, without spaces before it; NULL: it has no such key. */
static const char *value_of(const char *header, const char *key)
{
	const char *at = strstr(header, key);
	if (!at)
		return NULL;
	at += strlen(key);
	at += strspn(at, " ");
	return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* "(rows, columns)"; a trailing comma is Python's. */
static bool read_shape(const char *text, int64_t shape[2])
{
	if (!text || *text++ != '(')
		return false;
	for (int i = 0; i < 2; i++) {
		char *end;
		text += strspn(text, " ");
		if (*text < '0' || *text > '9')
			return false;
		long long value = strtoll(text, &end, 10);
		if (value > (1ll << 40))
			return false;
		shape[i] = value;
		text = end + strspn(end, " ");
		if (*text == ',')
			text += 1 + strspn(text + 1, " ");
		else if (i == 0)
			return false;
	}
	return *text == ')';
}

/* *size: bytes of a number. */
static enum status read_header(const char *header, size_t at, const char *name, struct npy_file *out, size_t *size,
			       int64_t shape[2])
{
	const char *type = value_of(header, "'descr'"), *order = value_of(header, "'fortran_order'");
	if (!type || !order)
		return damaged(name, "its header names no type or order", at);
	out->is_signed = strncmp(type, "'|i1'", 5) == 0;
	bool bytes = out->takes_codes && (out->is_signed || strncmp(type, "'|u1'", 5) == 0);
	*size = bytes ? 1 : sizeof(float);
	if (!bytes && strncmp(type, "'<f4'", 5) != 0)
		return error_hinted(error_set(ERR_DATA, "'%s' holds numbers of the type %.*s, not float32", name,
					      (int)strcspn(type, ","), type),
				    "convert it: numpy.save(file, numpy.load(file).astype('float32'))");
	if (strncmp(order, "False", 5) != 0)
		return error_set(ERR_DATA, "'%s' is stored column by column (fortran_order), not row by row", name);
	if (!read_shape(value_of(header, "'shape'"), shape))
		return damaged(name, "its shape is not (rows, columns)", at);
	return OK;
}

enum status npy_view(const unsigned char *bytes, size_t size, const char *name, struct npy_file *out)
{
	char *header;
	int64_t shape[2];
	if (size < PREFIX_2 || memcmp(bytes, MAGIC, 6) != 0)
		return damaged(name, "it does not begin as NumPy's files do", 0);
	if (bytes[6] < 1 || bytes[6] > 3)
		return damaged(name, "its version is unknown", 6);
	size_t one = sizeof(float), prefix = bytes[6] == 1 ? PREFIX_1 : PREFIX_2, length = bytes[8] | (size_t)bytes[9] << 8;
	if (bytes[6] > 1)
		length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
	if (length > HEADER_MOST || length > size - prefix)
		return damaged(name, "its header is too long", 8);
	header = strndup((const char *)bytes + prefix, length);
	if (!header)
		return error_set(ERR_RESOURCE, "not enough memory for the header of '%s'", name);
	enum status status = read_header(header, prefix, name, out, &one, shape);
	free(header);
	TRY(status);
	if ((prefix + length) % one != 0)
		return damaged(name, "its numbers are not aligned", prefix + length);
	size_t left = (size - prefix - length) / one;
	if ((size - prefix - length) % one != 0 || shape[1] == 0 || left % (size_t)shape[1] != 0 ||
	    left / (size_t)shape[1] != (size_t)shape[0])
		return error_set(ERR_DATA, "'%s' should hold %lld vectors of %lld numbers, and has %zu bytes of them", name,
				 (long long)shape[0], (long long)shape[1], size - prefix - length);
	out->rows = shape[0];
	out->columns = shape[1];
	out->codes = one == 1 ? bytes + prefix + length : NULL;
	out->values = one == 1 ? NULL : (const float *)(const void *)(bytes + prefix + length);
	return OK;
}

enum status npy_file_open(struct npy_file *out, const char *path)
{
	TRY(file_map_open(&out->map, path));
	return npy_view(out->map.data, out->map.size, path, out);
}

enum status npy_file_check(const struct npy_file *file, const char *path)
{
	for (int64_t i = 0; i < file->rows * file->columns; i++)
		if (!isfinite(file->values[i]))
			return error_set(ERR_DATA, "'%s': row %lld has a number that is not finite", path,
					 (long long)(i / file->columns + 1));
	return OK;
}

void npy_file_close(struct npy_file *file)
{
	file_map_close(&file->map);
	*file = (struct npy_file){.rows = 0};
}
