/* Unpacks archives within limits, refusing entries that would leave the folder. */
#include "formats/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/text.h"

#define RATIO_FROM ((int64_t)64 << 20) /* no ratio limit below this: a small text may repeat one letter a thousand times */

static const char *const endings[] = {".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst"};
#define ENDING_COUNT (sizeof endings / sizeof *endings)

/* The length of a path without its ending; 0 if it is not an archive or nothing would be left. */
static size_t stem_size(const char *path)
{
	size_t size = strlen(path);
	for (size_t i = 0; i < ENDING_COUNT; i++)
		if (text_has_ending(path, &endings[i], 1)) {
			size_t stem = size - strlen(endings[i]);
			return stem > 0 && path[stem - 1] != '/' ? stem : 0;
		}
	return 0;
}

bool unpack_is_archive(const char *path)
{
	return stem_size(path) > 0;
}

void unpack_folder(const char *archive, char *out)
{
	snprintf(out, PATH_BYTES, "%.*s", (int)stem_size(archive), archive);
}

/* One archive being unpacked. */
struct unpacking {
	struct archive *archive;
	const char *path; /* of the archive */
	const struct unpack_limits *limits;
	int64_t archive_bytes, free_bytes; /* free_bytes: on the disk at the start, -1 if unknown */
	int64_t bytes, files;              /* so far */
};

static enum status damaged(const char *path, struct archive *archive)
{
	const char *reason = archive_error_string(archive);
	return error_hinted(error_set(ERR_DATA, "'%s': cannot unpack: %s", path, reason ? reason : "damaged"),
			    "remove it and download it again");
}

/* Whether the entry is harmless: a relative path without "..", neither a link nor a device. */
static bool harmless(const char *name, mode_t type)
{
	if (!name || !*name || *name == '/' || (type != AE_IFREG && type != AE_IFDIR))
		return false;
	for (const char *part = name; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0))
			return false;
		if (!strchr(part, '/'))
			break;
	}
	return true;
}

static enum status exceeds(const struct unpacking *unpacking, const char *what, const char *option)
{
	return error_hinted(error_set(ERR_RESOURCE, "'%s' unpacks to more than %s: not unpacked", unpacking->path, what),
			    "if you trust it, raise %s; --no_unpack only downloads", option);
}

/* Checks the limits before anything is written. */
static enum status check_limits(const struct unpacking *unpacking, int64_t bytes)
{
	const struct unpack_limits *limits = unpacking->limits;
	char what[96], size[FORMAT_BYTES];
	if (unpacking->files > limits->files) {
		snprintf(what, sizeof what, "%" PRId64 " files", limits->files);
		return exceeds(unpacking, what, "--max_unpacked_files");
	}
	if (bytes > limits->bytes) {
		snprintf(what, sizeof what, "%s", format_size(size, (double)limits->bytes));
		return exceeds(unpacking, what, "--max_unpacked_gb");
	}
	if (bytes > RATIO_FROM && (double)bytes > limits->ratio * (double)unpacking->archive_bytes) {
		snprintf(what, sizeof what, "%g times its size", limits->ratio);
		return exceeds(unpacking, what, "--max_unpacked_ratio");
	}
	if (unpacking->free_bytes < 0 || bytes <= unpacking->free_bytes)
		return OK;
	return error_hinted(error_set(ERR_RESOURCE, "'%s' unpacks to more than the %s that the disk has left", unpacking->path,
				      format_size(size, (double)unpacking->free_bytes)),
			    "give an --out on a larger disk; --no_unpack only downloads");
}

/* Fills a hole of a sparse file, which the archive omits. */
static enum status write_zeros(struct file_writer *writer, int64_t count)
{
	static const char zeros[1 << 16];
	for (; count > 0; count -= (int64_t)sizeof zeros) {
		TRY(stop_check());
		TRY(file_writer_write(writer, zeros, count < (int64_t)sizeof zeros ? (size_t)count : sizeof zeros));
	}
	return OK;
}

/* Writes zeros up to `offset` of the file and then the bytes, within the limits. */
static enum status write_block(struct unpacking *unpacking, struct file_writer *writer, int64_t offset, const void *bytes,
			       size_t count)
{
	int64_t at = file_writer_offset(writer);
	if (offset < at)
		return error_set(ERR_DATA, "'%s': cannot unpack: the parts of a file overlap", unpacking->path);
	if (offset > INT64_MAX / 4 || count > INT64_MAX / 4)
		return check_limits(unpacking, INT64_MAX);
	TRY(check_limits(unpacking, unpacking->bytes + offset + (int64_t)count));
	TRY(write_zeros(writer, offset - at));
	return count > 0 ? file_writer_write(writer, bytes, count) : OK;
}

static enum status write_blocks(struct unpacking *unpacking, struct archive_entry *entry, struct file_writer *writer)
{
	for (;;) {
		const void *bytes;
		size_t count;
		la_int64_t offset;
		if (stop_requested())
			return error_set(STOPPED, "stopped by %s", stop_reason());
		int code = archive_read_data_block(unpacking->archive, &bytes, &count, &offset);
		if (code == ARCHIVE_EOF)
			break;
		if (code != ARCHIVE_OK)
			return damaged(unpacking->path, unpacking->archive);
		TRY(write_block(unpacking, writer, offset, bytes, count));
	}
	if (archive_entry_size_is_set(entry)) /* a hole at the end */
		TRY(write_block(unpacking, writer,
				archive_entry_size(entry) > file_writer_offset(writer) ? archive_entry_size(entry)
										       : file_writer_offset(writer),
				NULL, 0));
	unpacking->bytes += file_writer_offset(writer);
	return OK;
}

static enum status unpack_file(struct unpacking *unpacking, struct archive_entry *entry, const char *path)
{
	char parent[PATH_BYTES];
	struct file_writer *writer;
	path_folder(parent, path);
	TRY(folder_make(parent));
	TRY(file_writer_open(&writer, path));
	enum status status = write_blocks(unpacking, entry, writer);
	if (status == OK)
		return file_writer_commit(writer);
	file_writer_abandon(writer);
	return status;
}

static enum status unpack_entries(struct unpacking *unpacking, const char *folder)
{
	struct archive *archive = unpacking->archive;
	if (archive_read_open_filename(archive, unpacking->path, 1 << 16) != ARCHIVE_OK)
		return damaged(unpacking->path, archive);
	for (;;) {
		struct archive_entry *entry;
		int code = archive_read_next_header(archive, &entry);
		if (code == ARCHIVE_EOF)
			return OK;
		if (code != ARCHIVE_OK)
			return damaged(unpacking->path, archive);
		const char *name = archive_entry_pathname(entry);
		mode_t type = archive_entry_filetype(entry);
		char target[PATH_BYTES];
		if (!harmless(name, type) || archive_entry_hardlink(entry))
			return error_set(ERR_DATA, "'%s': the entry '%.200s' is not a plain file below the folder",
					 unpacking->path, name ? name : "");
		unpacking->files++;
		TRY(check_limits(unpacking, unpacking->bytes));
		TRY(path_join(target, folder, name));
		TRY(type == AE_IFDIR ? folder_make(target) : unpack_file(unpacking, entry, target));
	}
}

static enum status read_archive(const char *path, const char *folder, const struct unpack_limits *limits)
{
	struct unpacking unpacking = {
		.archive = archive_read_new(),
		.path = path,
		.limits = limits,
		.archive_bytes = file_size(path),
		.free_bytes = folder_free_bytes(folder),
	};
	struct archive *archive = unpacking.archive;
	if (!archive)
		return error_set(ERR_RESOURCE, "out of memory");
	archive_read_support_format_zip(archive);
	archive_read_support_format_tar(archive);
	/* Not all of libarchive's filters: for some it would start external programs. */
	archive_read_support_filter_gzip(archive);
	archive_read_support_filter_bzip2(archive);
	archive_read_support_filter_xz(archive);
	archive_read_support_filter_zstd(archive);
	enum status status = unpack_entries(&unpacking, folder);
	archive_read_free(archive);
	return status;
}

/* The folder that contains everything: `folder` itself, or the single folder in it. */
static enum status find_top(const char *folder, char top[PATH_BYTES])
{
	struct name_list names = {0};
	TRY(folder_list(folder, &names));
	enum status status = OK;
	if (names.count == 1)
		status = path_join(top, folder, names.names[0]);
	if (names.count != 1 || !file_is_folder(top))
		snprintf(top, PATH_BYTES, "%s", folder);
	name_list_release(&names);
	return status;
}

static enum status give_name(const char *temporary, const char *folder)
{
	char top[PATH_BYTES];
	TRY(find_top(temporary, top));
	/* rename() does not replace a folder that is not empty. */
	if (file_operations.rename(top, folder) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot name the unpacked folder", folder);
	return OK;
}

enum status unpack(const char *path, const char *folder, const struct unpack_limits *limits)
{
	char temporary[PATH_BYTES];
	size_t parent = (size_t)(path_name(folder) - folder);
	if (file_exists(folder))
		return error_hinted(error_set(ERR_STATE, "'%s' cannot be unpacked: '%s' exists already", path, folder),
				    "move it away, or give --no_unpack");
	if (snprintf(temporary, PATH_BYTES, "%.*s.unpacking-%s", (int)parent, folder, folder + parent) >= PATH_BYTES)
		return error_set(ERR_USAGE, "'%.200s...': the path is too long", folder);
	if (file_exists(temporary)) /* left by a killed process */
		TRY(folder_remove(temporary));
	TRY(folder_make(temporary));
	enum status status = read_archive(path, temporary, limits);
	if (status == OK)
		status = give_name(temporary, folder);
	struct error error = *error_last();
	enum status removed = file_exists(temporary) ? folder_remove(temporary) : OK;
	return status == OK ? removed : error_restore(&error);
}
