/* Reads whole files within a limit, and writes files under a temporary name until they are complete. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/path_internal.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"

static enum status write_failed(const char *path, size_t left)
{
	if (errno != ENOSPC && errno != EDQUOT)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot write", path);
	int number = errno;
	char folder[PATH_BYTES], needed[FORMAT_BYTES], available[FORMAT_BYTES];
	path_folder(folder, path);
	format_size(available, (double)folder_free_bytes(folder));
	errno = number;
	return error_hinted(error_set_errno(ERR_RESOURCE, "'%s': cannot write %s (%s free)", path,
					    format_size(needed, (double)left), available),
			    "free some space in '%s' and run the same command again", folder);
}

static enum status write_all(int fd, const char *path, const void *bytes, size_t count)
{
	const char *p = bytes;
	while (count) {
		ssize_t wrote;
		RETRY(wrote, file_operations.write(fd, p, count));
		if (wrote < 0)
			return write_failed(path, count);
		p += wrote;
		count -= (size_t)wrote;
	}
	return OK;
}

/* ---- Reading ---- */

#define CHECKSUM_PIECE ((size_t)1 << 20)

enum status file_read(const char *path, size_t limit, struct buffer *out)
{
	char bound[FORMAT_BYTES];
	struct stat facts;
	int fd;
	buffer_clear(out);
	TRY(file_open_for_reading(path, &fd, &facts));
	enum status status = OK;
	for (;;) {
		char piece[65536];
		ssize_t got;
		RETRY(got, read(fd, piece, sizeof piece));
		if (got < 0)
			TRY_GOTO(error_set_errno(ERR_RESOURCE, "'%s': cannot read", path), done);
		if (got == 0)
			break;
		if ((size_t)got > limit - out->size)
			TRY_GOTO(error_set(ERR_DATA, "'%s': larger than %s, the limit for such a file", path,
					   format_size(bound, (double)limit)),
				 done);
		buffer_append(out, piece, (size_t)got);
		TRY_GOTO(buffer_status(out), done);
	}
	/* A writer may open the pipe later, so finding nothing does not mean that it is empty. */
	if (out->size == 0 && S_ISFIFO(facts.st_mode)) {
		status = error_set(ERR_DATA, "'%s': a pipe that nothing was written to", path);
		error_hint("start the program that writes to it first, or give a file");
	}
done:
	close(fd);
	if (status != OK)
		buffer_release(out);
	return status;
}

/* Checksum of the first `most` bytes. */
static enum status checksum_of(const char *path, int64_t most, bool (*cancelled)(const void *context), const void *context,
			       int64_t *out_bytes, uint32_t *out_crc32c)
{
	struct stat facts;
	unsigned char *piece;
	int fd;
	*out_bytes = 0;
	*out_crc32c = 0;
	TRY(memory_new(&piece, 1, CHECKSUM_PIECE, "a file's buffer"));
	enum status status;
	TRY_GOTO(file_open_for_reading(path, &fd, &facts), freed);
	if (!S_ISREG(facts.st_mode))
		TRY_GOTO(error_set(ERR_USAGE, "'%s': not a regular file", path), done);
	while (!cancelled || !cancelled(context)) {
		ssize_t got;
		int64_t left = most - *out_bytes;
		RETRY(got, read(fd, piece, left < (int64_t)CHECKSUM_PIECE ? (size_t)left : CHECKSUM_PIECE));
		if (got < 0)
			TRY_GOTO(error_set_errno(ERR_DATA, "'%s': cannot read byte %lld", path, (long long)*out_bytes), done);
		if (got == 0)
			break;
		*out_crc32c = crc32c(*out_crc32c, piece, (size_t)got);
		*out_bytes += got;
	}
done:
	close(fd);
freed:
	free(piece);
	return status;
}

enum status file_checksum_until(const char *path, bool (*cancelled)(const void *context), const void *context, int64_t *out_bytes,
				uint32_t *out_crc32c)
{
	return checksum_of(path, INT64_MAX, cancelled, context, out_bytes, out_crc32c);
}

enum status file_checksum(const char *path, int64_t *out_bytes, uint32_t *out_crc32c)
{
	return file_checksum_until(path, NULL, NULL, out_bytes, out_crc32c);
}

/* ---- Atomic writing ---- */

#ifndef FILE_BUFFER_BYTES /* made small for fuzzing */
#define FILE_BUFFER_BYTES ((size_t)256 << 10)
#endif

struct file_writer {
	char path[PATH_BYTES];      /* symbolic links resolved */
	char temporary[PATH_BYTES]; /* empty: writing directly to a pipe or device */
	bool resumed;               /* the temporary file is kept when a commit fails */
	bool patched;               /* its checksum is no longer known */
	int fd;
	size_t buffered;
	int64_t offset;
	uint32_t crc;
	struct error failure; /* the first failure; its status is OK until then */
	unsigned char buffer[FILE_BUFFER_BYTES];
};

static enum status writer_open_temporary(struct file_writer *writer)
{
	static atomic_uint serial;
	char folder[PATH_BYTES], name[PATH_BYTES];
	path_folder(folder, writer->path);
	do {
		/* Hidden, so that a glob over the folder does not see it. The process and a serial number distinguish writers of
		 * the same file, and O_EXCL those on other machines. */
		snprintf(name, sizeof name, ".%.200s.tmp-%ld-%u", path_name(writer->path), (long)getpid(),
			 atomic_fetch_add(&serial, 1));
		TRY(path_join(writer->temporary, folder, name));
		RETRY(writer->fd, file_operations.open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
	} while (writer->fd < 0 && errno == EEXIST);
	if (writer->fd < 0) {
		writer->temporary[0] = '\0';
		return error_set_errno(file_path_status(), "'%s': cannot create", writer->path);
	}
	return OK;
}

enum status file_writer_open(struct file_writer **out, const char *path)
{
	struct file_writer *writer;
	struct stat facts;
	enum status status;
	TRY(memory_new(&writer, 1, sizeof *writer, "a file's buffer"));
	writer->fd = -1;
	if (strlen(path) >= sizeof writer->path)
		TRY_GOTO(error_set(ERR_USAGE, "path too long: '%.200s…'", path), fail);
	bool exists = stat(path, &facts) == 0;
	if (exists && S_ISDIR(facts.st_mode))
		TRY_GOTO(error_set(ERR_USAGE, "'%s' is a folder, so no file can be written there", path), fail);
	if (exists && !S_ISREG(facts.st_mode)) {
		/* A rename would replace /dev/stdout or /dev/null with a file. */
		snprintf(writer->path, sizeof writer->path, "%s", path);
		RETRY(writer->fd, file_operations.open(writer->path, O_WRONLY | O_CLOEXEC, 0));
		if (writer->fd < 0)
			TRY_GOTO(error_set_errno(file_path_status(), "'%s': cannot open", path), fail);
	} else {
		TRY_GOTO(path_behind_links(writer->path, path), fail);
		TRY_GOTO(writer_open_temporary(writer), fail);
	}
	*out = writer;
	return OK;
fail:
	free(writer);
	return status;
}

/* Checks that the bytes of a part are those that were written. */
static enum status check_part(const char *path, const struct file_writer_state *state)
{
	int64_t bytes;
	uint32_t crc;
	if (state->crc32c == 0)
		return OK;
	TRY(checksum_of(path, state->offset, NULL, NULL, &bytes, &crc));
	if (bytes == state->offset && crc == state->crc32c)
		return OK;
	return error_hinted(error_set(ERR_DATA, "'%s' has changed since it was written: its checksum is wrong", path),
			    "start over with --fresh, or remove this file");
}

enum status file_writer_resume(struct file_writer **out, const char *path, struct file_writer_state state)
{
	struct file_writer *writer;
	struct stat facts;
	enum status status;
	TRY(memory_new(&writer, 1, sizeof *writer, "a file's buffer"));
	if (strlen(path) + sizeof ".part" > sizeof writer->path)
		TRY_GOTO(error_set(ERR_USAGE, "path too long: '%.200s…'", path), fail);
	snprintf(writer->path, sizeof writer->path, "%s", path);
	memcpy(writer->temporary, path, strlen(path));
	memcpy(writer->temporary + strlen(path), ".part", sizeof ".part");
	RETRY(writer->fd, file_operations.open(writer->temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	if (writer->fd < 0)
		TRY_GOTO(error_set_errno(file_path_status(), "'%s': cannot create", writer->temporary), fail);
	status = OK;
	if (flock(writer->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) { /* some file systems have no locks */
		status = error_set(ERR_LOCKED, "'%s': another process is writing it", writer->temporary);
	} else if (fstat(writer->fd, &facts) != 0 || facts.st_size < state.offset) {
		status = error_set(ERR_DATA, "'%s' is shorter than before", writer->temporary);
	} else {
		status = check_part(writer->temporary, &state);
	}
	if (status == OK && (ftruncate(writer->fd, state.offset) != 0 || lseek(writer->fd, state.offset, SEEK_SET) < 0))
		status = error_set_errno(ERR_RESOURCE, "'%s': cannot truncate", writer->temporary);
	if (status != OK) {
		file_operations.close(writer->fd);
		goto fail;
	}
	writer->resumed = true;
	writer->offset = state.offset;
	writer->crc = state.crc32c;
	*out = writer;
	return OK;
fail:
	free(writer);
	return status;
}

static enum status writer_flush(struct file_writer *writer);

enum status file_writer_save(struct file_writer *writer, struct file_writer_state *out)
{
	int result;
	if (writer->failure.status != OK)
		return error_restore(&writer->failure);
	TRY(writer_flush(writer));
	RETRY(result, file_operations.fsync(writer->fd));
	if (result < 0)
		return write_failed(writer->path, 0);
	*out = (struct file_writer_state){.offset = writer->offset, .crc32c = writer->patched ? 0 : writer->crc};
	return OK;
}

void file_writer_suspend(struct file_writer *writer)
{
	if (!writer)
		return;
	if (writer->fd >= 0)
		file_operations.close(writer->fd);
	free(writer);
}

void file_writer_retarget(struct file_writer *writer, const char *path)
{
	BUG_IF(strlen(path) >= sizeof writer->path);
	snprintf(writer->path, sizeof writer->path, "%s", path);
}

const char *file_writer_part(const struct file_writer *writer)
{
	return writer->temporary;
}

static enum status writer_fail(struct file_writer *writer, enum status status)
{
	writer->failure = *error_last();
	return status;
}

static enum status writer_flush(struct file_writer *writer)
{
	enum status status = write_all(writer->fd, writer->path, writer->buffer, writer->buffered);
	writer->buffered = 0;
	return status == OK ? OK : writer_fail(writer, status);
}

enum status file_writer_write(struct file_writer *writer, const void *bytes, size_t count)
{
	if (writer->failure.status != OK)
		return error_restore(&writer->failure);
	if (count == 0)
		return OK;
	writer->crc = crc32c(writer->crc, bytes, count);
	writer->offset += (int64_t)count;
	if (count > sizeof writer->buffer - writer->buffered)
		TRY(writer_flush(writer));
	if (count >= sizeof writer->buffer) {
		enum status status = write_all(writer->fd, writer->path, bytes, count);
		return status == OK ? OK : writer_fail(writer, status);
	}
	memcpy(writer->buffer + writer->buffered, bytes, count);
	writer->buffered += count;
	return OK;
}

enum status file_writer_patch(struct file_writer *writer, int64_t offset, const void *bytes, size_t count)
{
	BUG_IF(offset < 0 || offset + (int64_t)count > writer->offset);
	if (writer->failure.status != OK)
		return error_restore(&writer->failure);
	TRY(writer_flush(writer));
	if (lseek(writer->fd, offset, SEEK_SET) < 0)
		return writer_fail(writer, error_set_errno(ERR_RESOURCE, "'%s': cannot seek back in it", writer->path));
	enum status status = write_all(writer->fd, writer->path, bytes, count);
	writer->patched = true;
	if (status == OK && lseek(writer->fd, writer->offset, SEEK_SET) < 0)
		status = error_set_errno(ERR_RESOURCE, "'%s': cannot continue writing it", writer->path);
	return status == OK ? OK : writer_fail(writer, status);
}

int64_t file_writer_offset(const struct file_writer *writer)
{
	return writer->offset;
}

uint32_t file_writer_crc32c(const struct file_writer *writer)
{
	return writer->crc;
}

enum status file_writer_commit(struct file_writer *writer)
{
	char folder[PATH_BYTES];
	int result;
	enum status status;
	TRY_GOTO(writer->failure.status == OK ? OK : error_restore(&writer->failure), fail);
	TRY_GOTO(writer_flush(writer), fail);
	/* A failed fsync is not retried: the system may have dropped the bytes, and the second call would then succeed. */
	RETRY(result, file_operations.fsync(writer->fd));
	if (result < 0 && !(errno == EINVAL && !writer->temporary[0]))
		TRY_GOTO(write_failed(writer->path, 0), fail);
	result = file_operations.close(writer->fd);
	writer->fd = -1;
	if (result < 0 && errno != EINTR) /* Linux has closed it even then */
		TRY_GOTO(write_failed(writer->path, 0), fail);
	if (writer->temporary[0]) {
		RETRY(result, file_operations.rename(writer->temporary, writer->path));
		if (result < 0)
			TRY_GOTO(error_set_errno(ERR_RESOURCE, "'%s': cannot move the new file into place", writer->path), fail);
		path_folder(folder, writer->path);
		status = folder_sync(folder);
	}
	free(writer);
	return status;
fail:
	if (writer->resumed)
		file_writer_suspend(writer);
	else
		file_writer_abandon(writer);
	return status;
}

void file_writer_abandon(struct file_writer *writer)
{
	if (!writer)
		return;
	if (writer->fd >= 0)
		file_operations.close(writer->fd);
	if (writer->temporary[0])
		file_operations.unlink(writer->temporary);
	free(writer);
}

enum status file_write(const char *path, const void *bytes, size_t count)
{
	struct file_writer *writer;
	TRY(file_writer_open(&writer, path));
	enum status status = file_writer_write(writer, bytes, count);
	if (status == OK)
		return file_writer_commit(writer);
	file_writer_abandon(writer);
	return status;
}

enum status file_copy(const char *from, const char *to)
{
	struct file_map map;
	TRY(file_map_open(&map, from));
	enum status status = file_write(to, map.data, map.size);
	file_map_close(&map);
	return status;
}

enum status file_append_line(const char *path, const char *line)
{
	int fd;
	RETRY(fd, file_operations.open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
	if (fd < 0)
		return error_set_errno(file_path_status(), "'%s': cannot open", path);
	/* This line must not be appended to one that a crash cut off. */
	char last = '\n';
	off_t size = lseek(fd, 0, SEEK_END);
	if (size > 0 && pread(fd, &last, 1, size - 1) != 1)
		last = '\n';
	enum status status = OK;
	if (last != '\n')
		status = write_all(fd, path, "\n", 1);
	if (status == OK)
		status = write_all(fd, path, line, strlen(line));
	if (file_operations.close(fd) < 0 && errno != EINTR && status == OK)
		status = write_failed(path, 0);
	return status;
}
