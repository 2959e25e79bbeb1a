#include "formats/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"

bool unpack_is_archive(const char *path)
{
	static const char *const ends[] = {".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst"};
	return text_has_ending(path, ends, sizeof ends / sizeof *ends);
}

static enum status damaged(const char *path, struct archive *archive)
{
	const char *reason = archive_error_string(archive);
	enum status status = error_set(ERR_DATA, "'%s': cannot unpack: %s", path, reason ? reason : "damaged");
	error_hint("remove it and download it again");
	return status;
}

/* Relative, without "..", no link, no device. */
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

static enum status unpack_file(struct archive *archive, const char *archive_path, const char *path)
{
	char parent[PATH_BYTES];
	struct file_writer *writer;
	snprintf(parent, sizeof parent, "%s", path);
	*strrchr(parent, '/') = 0;
	TRY(folder_make(parent));
	TRY(file_writer_open(&writer, path));
	for (;;) {
		const void *bytes;
		size_t count;
		la_int64_t offset;
		int code = archive_read_data_block(archive, &bytes, &count, &offset);
		if (code == ARCHIVE_EOF)
			return file_writer_commit(writer);
		enum status status =
			code == ARCHIVE_OK ? file_writer_write(writer, bytes, count) : damaged(archive_path, archive);
		if (status != OK) {
			file_writer_abandon(writer);
			return status;
		}
	}
}

static enum status unpack_entries(struct archive *archive, const char *path, const char *folder)
{
	if (archive_read_open_filename(archive, path, 1 << 16) != ARCHIVE_OK)
		return damaged(path, archive);
	for (;;) {
		struct archive_entry *entry;
		int code = archive_read_next_header(archive, &entry);
		if (code == ARCHIVE_EOF)
			return OK;
		if (code != ARCHIVE_OK)
			return damaged(path, archive);
		const char *name = archive_entry_pathname(entry);
		mode_t type = archive_entry_filetype(entry);
		char target[PATH_BYTES];
		if (!harmless(name, type) || archive_entry_hardlink(entry))
			return error_set(ERR_DATA, "'%s': the entry '%.200s' is not a plain file below the folder", path,
					 name ? name : "");
		TRY(path_join(target, folder, name));
		TRY(type == AE_IFDIR ? folder_make(target) : unpack_file(archive, path, target));
	}
}

enum status unpack(const char *path, const char *folder)
{
	struct archive *archive = archive_read_new();
	if (!archive)
		return error_set(ERR_RESOURCE, "out of memory");
	archive_read_support_format_zip(archive);
	archive_read_support_format_tar(archive);
	/* Not all filters that libarchive has: for some it would start programs. */
	archive_read_support_filter_gzip(archive);
	archive_read_support_filter_bzip2(archive);
	archive_read_support_filter_xz(archive);
	archive_read_support_filter_zstd(archive);
	enum status status = unpack_entries(archive, path, folder);
	archive_read_free(archive);
	return status;
}
