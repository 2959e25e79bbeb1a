/* Implements as much of APPNOTE.TXT 6.3 (PKWARE) as stored entries need. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "base/memory.h"
#include "formats/little_endian.h"
#include "formats/zip.h"

#define END_SIGNATURE 0x06054b50u
#define END64_SIGNATURE 0x06064b50u
#define END64_LOCATOR_SIGNATURE 0x07064b50u
#define CENTRAL_SIGNATURE 0x02014b50u
#define LOCAL_SIGNATURE 0x04034b50u

#define END_BYTES 22
#define END64_BYTES 56
#define END64_LOCATOR_BYTES 20
#define CENTRAL_BYTES 46
#define LOCAL_BYTES 30

#define COMMENT_LIMIT 65535
#define ENTRY_LIMIT 200000
#define NAME_LIMIT 4096

struct archive {
	const char *path;
	const unsigned char *bytes;
	uint64_t size;
};

/* The location of the central directory. */
struct directory {
	uint64_t offset, size, count;
};

bool zip_is(const unsigned char *bytes, size_t size)
{
	return size >= 4 && (read_le32(bytes) == LOCAL_SIGNATURE || read_le32(bytes) == END_SIGNATURE);
}

static enum status find_end(const struct archive *archive, uint64_t *out)
{
	if (archive->size < END_BYTES)
		return error_set(ERR_DATA, "'%s': %llu bytes are not a zip archive", archive->path,
				 (unsigned long long)archive->size);
	uint64_t last = archive->size - END_BYTES, first = last > COMMENT_LIMIT ? last - COMMENT_LIMIT : 0;
	for (uint64_t at = last + 1; at-- > first;) {
		const unsigned char *end = archive->bytes + at;
		if (read_le32(end) == END_SIGNATURE && read_le16(end + 20) == last - at) {
			*out = at;
			return OK;
		}
	}
	return error_set(ERR_DATA, "'%s': the zip archive has no end: truncated?", archive->path);
}

/* Reads the 64-bit end record, if there is a locator before the plain one. */
static enum status find_directory64(const struct archive *archive, uint64_t end, struct directory *out)
{
	if (end < END64_LOCATOR_BYTES)
		return OK;
	const unsigned char *locator = archive->bytes + end - END64_LOCATOR_BYTES;
	if (read_le32(locator) != END64_LOCATOR_SIGNATURE)
		return OK;
	uint64_t at = read_le64(locator + 8);
	if (at > end - END64_LOCATOR_BYTES || end - END64_LOCATOR_BYTES - at < END64_BYTES ||
	    read_le32(archive->bytes + at) != END64_SIGNATURE)
		return error_set(ERR_DATA, "'%s': byte %llu: no end of a zip64 archive where the directory says it is",
				 archive->path, (unsigned long long)at);
	out->count = read_le64(archive->bytes + at + 32);
	out->size = read_le64(archive->bytes + at + 40);
	out->offset = read_le64(archive->bytes + at + 48);
	return OK;
}

static enum status find_directory(const struct archive *archive, struct directory *out)
{
	uint64_t end = 0;
	TRY(find_end(archive, &end));
	const unsigned char *record = archive->bytes + end;
	*out = (struct directory){
		.count = read_le16(record + 10),
		.size = read_le32(record + 12),
		.offset = read_le32(record + 16),
	};
	TRY(find_directory64(archive, end, out));
	if (out->offset > end || out->size > end - out->offset)
		return error_set(ERR_DATA, "'%s': the zip directory (%llu bytes at %llu) is outside the file", archive->path,
				 (unsigned long long)out->size, (unsigned long long)out->offset);
	if (out->count > ENTRY_LIMIT || out->count > out->size / CENTRAL_BYTES)
		return error_set(ERR_DATA, "'%s': a zip directory of %llu bytes with %llu entries", archive->path,
				 (unsigned long long)out->size, (unsigned long long)out->count);
	return OK;
}

/* Sizes and offset that do not fit in 32 bits are in an extra field, in this order and only those. */
static bool read_extra64(const unsigned char *extra, uint64_t extra_size, uint64_t *values[3])
{
	while (extra_size >= 4) {
		uint64_t size = read_le16(extra + 2);
		if (size > extra_size - 4)
			return false;
		const unsigned char *at = extra + 4, *end = at + size;
		for (int i = 0; read_le16(extra) == 1 && i < 3; i++) {
			if (*values[i] != UINT32_MAX)
				continue;
			if (end - at < 8)
				return false;
			*values[i] = read_le64(at);
			at += 8;
		}
		extra += 4 + size;
		extra_size -= 4 + size;
	}
	return true;
}

/* Reads the entry's local header, which determines where its data begins. */
static enum status read_local(const struct archive *archive, uint64_t header, uint64_t limit, struct zip_entry *entry)
{
	size_t name_size = strlen(entry->name);
	if (header > limit || limit - header < LOCAL_BYTES || read_le32(archive->bytes + header) != LOCAL_SIGNATURE)
		return error_set(ERR_DATA, "'%s': byte %llu: no header of entry '%.200s'", archive->path,
				 (unsigned long long)header, entry->name);
	const unsigned char *local = archive->bytes + header;
	uint64_t skip = LOCAL_BYTES + (uint64_t)read_le16(local + 26) + read_le16(local + 28);
	if (skip > limit - header || read_le16(local + 26) != name_size ||
	    memcmp(local + LOCAL_BYTES, entry->name, name_size) != 0)
		return error_set(ERR_DATA, "'%s': byte %llu: the header there is not that of entry '%.200s'", archive->path,
				 (unsigned long long)header, entry->name);
	entry->offset = header + skip;
	if (entry->size > limit - entry->offset)
		return error_set(ERR_DATA, "'%s': entry '%.200s' (%llu bytes at %llu) reaches beyond the data", archive->path,
				 entry->name, (unsigned long long)entry->size, (unsigned long long)entry->offset);
	entry->data = archive->bytes + entry->offset;
	return OK;
}

static enum status check_method(const struct archive *archive, const unsigned char *central, const struct zip_entry *entry,
				uint64_t stored)
{
	unsigned flags = read_le16(central + 8), method = read_le16(central + 10);
	if (flags & 1)
		return error_set(ERR_DATA, "'%s': entry '%.200s' is encrypted", archive->path, entry->name);
	if (method != 0)
		return error_hinted(
			error_set(ERR_DATA, "'%s': entry '%.200s' is compressed (method %u)", archive->path, entry->name, method),
			"such files store weights uncompressed; unpack it and pack it with zip -0");
	if (stored != entry->size)
		return error_set(ERR_DATA, "'%s': entry '%.200s' has %llu bytes stored as %llu", archive->path, entry->name,
				 (unsigned long long)entry->size, (unsigned long long)stored);
	return OK;
}

/* Reads the directory entry at `at`; its name is copied to `name`. A folder gives an entry without data. */
static enum status read_central(const struct archive *archive, const struct directory *directory, uint64_t at, char *name,
				struct zip_entry *entry, uint64_t *out_bytes)
{
	const unsigned char *central = archive->bytes + at;
	uint64_t left = directory->offset + directory->size - at;
	if (left < CENTRAL_BYTES || read_le32(central) != CENTRAL_SIGNATURE)
		return error_set(ERR_DATA, "'%s': byte %llu: no entry of the zip directory", archive->path,
				 (unsigned long long)at);
	uint64_t name_size = read_le16(central + 28), extra_size = read_le16(central + 30);
	uint64_t bytes = CENTRAL_BYTES + name_size + extra_size + read_le16(central + 32);
	if (bytes > left || name_size > NAME_LIMIT || memchr(central + CENTRAL_BYTES, 0, name_size))
		return error_set(ERR_DATA, "'%s': byte %llu: damaged entry of the zip directory", archive->path,
				 (unsigned long long)at);
	memcpy(name, central + CENTRAL_BYTES, name_size);
	name[name_size] = 0;
	*entry = (struct zip_entry){.name = name, .crc32 = read_le32(central + 16), .size = read_le32(central + 24)};
	*out_bytes = bytes;

	uint64_t stored = read_le32(central + 20), header = read_le32(central + 42);
	uint64_t *values[] = {&entry->size, &stored, &header};
	if (!read_extra64(central + CENTRAL_BYTES + name_size, extra_size, values))
		return error_set(ERR_DATA, "'%s': byte %llu: damaged extra field of entry '%.200s'", archive->path,
				 (unsigned long long)at, name);
	if (name_size > 0 && name[name_size - 1] == '/' && entry->size == 0)
		return OK;
	TRY(check_method(archive, central, entry, stored));
	return read_local(archive, header, directory->offset, entry);
}

static int compare_offsets(const void *a, const void *b)
{
	const struct zip_entry *p = a, *q = b;
	return (p->offset > q->offset) - (p->offset < q->offset);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct zip_entry *)a)->name, ((const struct zip_entry *)b)->name);
}

/* Checks that no two entries share bytes or a name. */
static enum status check_entries(struct zip *zip, const char *path)
{
	qsort(zip->entries, (size_t)zip->count, sizeof *zip->entries, compare_offsets);
	for (int64_t i = 1; i < zip->count; i++) {
		const struct zip_entry *before = &zip->entries[i - 1], *entry = &zip->entries[i];
		if (before->offset + before->size > entry->offset)
			return error_set(ERR_DATA, "'%s': byte %llu: entries '%.200s' and '%.200s' overlap", path,
					 (unsigned long long)entry->offset, before->name, entry->name);
	}
	qsort(zip->entries, (size_t)zip->count, sizeof *zip->entries, compare_names);
	for (int64_t i = 1; i < zip->count; i++)
		if (strcmp(zip->entries[i - 1].name, zip->entries[i].name) == 0)
			return error_set(ERR_DATA, "'%s': two entries are called '%.200s'", path, zip->entries[i].name);
	return OK;
}

enum status zip_open(struct zip *out, const char *path, const unsigned char *bytes, size_t size)
{
	struct archive archive = {path, bytes, size};
	struct directory directory = {0};
	enum status status;
	*out = (struct zip){0};
	TRY(find_directory(&archive, &directory));
	/* A name is shorter than its directory entry, so all names with their NULs fit in the size of the directory. */
	TRY_GOTO(memory_new(&out->entries, (int64_t)directory.count, sizeof *out->entries, "entries of a zip archive"), fail);
	TRY_GOTO(memory_new(&out->names, (int64_t)directory.size, 1, "names in a zip archive"), fail);
	char *name = out->names;
	uint64_t at = directory.offset;
	for (uint64_t i = 0; i < directory.count; i++) {
		struct zip_entry *entry = &out->entries[out->count];
		uint64_t entry_bytes = 0;
		TRY_GOTO(read_central(&archive, &directory, at, name, entry, &entry_bytes), fail);
		at += entry_bytes;
		name += strlen(name) + 1;
		if (entry->data)
			out->count++;
	}
	TRY_GOTO(check_entries(out, path), fail);
	return OK;
fail:
	zip_close(out);
	return status;
}

void zip_close(struct zip *zip)
{
	free(zip->entries);
	free(zip->names);
	*zip = (struct zip){0};
}

const struct zip_entry *zip_find(const struct zip *zip, const char *name)
{
	struct zip_entry key = {.name = name};
	return bsearch(&key, zip->entries, (size_t)zip->count, sizeof key, compare_names);
}

enum status zip_entry_check(const struct zip_entry *entry, const char *path)
{
	if (entry->crc32 == 0) /* torch.serialization.set_crc32_options(False) */
		return OK;
	uint64_t done = 0;
	uLong crc = 0;
	while (done < entry->size) {
		uint64_t part = entry->size - done < (1u << 30) ? entry->size - done : 1u << 30;
		crc = crc32(crc, entry->data + done, (uInt)part);
		done += part;
	}
	if (crc != entry->crc32)
		return error_set(ERR_DATA, "'%s': entry '%.200s' (%llu bytes at %llu) is damaged: its checksum is wrong", path,
				 entry->name, (unsigned long long)entry->size, (unsigned long long)entry->offset);
	return OK;
}
