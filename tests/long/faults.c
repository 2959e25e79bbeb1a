/* Makes one reading or writing call fail, wherever it is made: in bertc, in a library, in a process that bertc starts. Loaded
 * with LD_PRELOAD (tests/long/io_faults.sh); only files below one folder count.
 *   IO_FAULT=operation:number:mode   operations: open read write fsync close rename unlink mkdir mmap; modes: EIO ENOSPC ENOMEM
 *                                    EMFILE EACCES; EINTR; short (half of the bytes, reported as such); kill (the
 *                                    process, after half)
 *   IO_FAULT_BELOW=folder            the folder whose files count
 *   IO_FAULT_HIT=path                a file that is created when the fault has happened; for number 0, which never happens, a
 *                                    line with the number of these calls for each process that ends
 * Each process counts its own calls. C's standard streams are counted by their calls (fopen, fread, fgets, fwrite, fflush). */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "open_calls.h"

#define DESCRIPTORS 4096
enum fault { NONE, ERRNO, SHORT, KILL };

static atomic_bool watched[DESCRIPTORS];
static atomic_long calls;

static bool is_below(const char *path)
{
	const char *folder = getenv("IO_FAULT_BELOW");
	return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static bool is_watched(int fd)
{
	return fd >= 0 && fd < DESCRIPTORS && atomic_load(&watched[fd]);
}

static int watch(int fd, bool below)
{
	if (fd >= 0 && fd < DESCRIPTORS)
		atomic_store(&watched[fd], below);
	return fd;
}

static void say_hit(void)
{
	const char *path = getenv("IO_FAULT_HIT");
	int fd = path ? NEXT(open)(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
	if (fd >= 0)
		NEXT(close)(fd);
}

/* For number 0: reports how many calls there were. */
__attribute__((destructor)) static void say_count(void)
{
	const char *fault = getenv("IO_FAULT"), *path = getenv("IO_FAULT_HIT"), *number = fault ? strchr(fault, ':') : NULL;
	char line[32];
	int fd;
	if (!number || strncmp(number, ":0:", 3) != 0 || !path)
		return;
	fd = NEXT(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	int size = snprintf(line, sizeof line, "%ld\n", atomic_load(&calls));
	if (fd >= 0 && NEXT(write)(fd, line, (size_t)size) == size)
		NEXT(close)(fd);
}

/* The fault for this call. */
static enum fault fault_at(const char *operation)
{
	static const struct {
		const char *name;
		int number;
	} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"ENOMEM", ENOMEM},
		      {"EMFILE", EMFILE}, {"EACCES", EACCES}, {"EINTR", EINTR}};
	const char *fault = getenv("IO_FAULT"), *mode;
	size_t size = strlen(operation);
	char *end;
	if (!fault || strncmp(fault, operation, size) != 0 || fault[size] != ':')
		return NONE;
	if (atomic_fetch_add(&calls, 1) + 1 != strtol(fault + size + 1, &end, 10) || *end != ':')
		return NONE;
	mode = end + 1;
	say_hit();
	if (strcmp(mode, "short") == 0)
		return SHORT;
	if (strcmp(mode, "kill") == 0)
		return KILL;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (strcmp(mode, errors[i].name) == 0) {
			errno = errors[i].number;
			return ERRNO;
		}
	abort();
}

/* For calls that transfer no bytes: true if the call must fail. */
static bool fails(const char *operation)
{
	enum fault fault = fault_at(operation);
	if (fault == KILL)
		raise(SIGKILL);
	return fault == ERRNO;
}

/* ---- Opening ---- */

int open(const char *path, int flags, ...)
{
	mode_t mode = MODE_AFTER(flags);
	bool below = is_below(path);
	return below && fails("open") ? -1 : watch(NEXT(open)(path, flags, mode), below);
}

int open64(const char *path, int flags, ...)
{
	return open(path, flags, MODE_AFTER(flags));
}

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return open(path, flags, 0);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
	return open(path, flags, 0);
}

FILE *fopen(const char *path, const char *mode)
{
	bool below = is_below(path);
	if (below && fails("open"))
		return NULL;
	FILE *file = NEXT(fopen)(path, mode);
	if (file)
		watch(fileno(file), below);
	return file;
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

int close(int fd)
{
	bool fault = is_watched(fd) && fails("close");
	int error = errno;
	watch(fd, false);
	int result = NEXT(close)(fd);
	if (!fault)
		return result;
	errno = error;
	return -1;
}

/* ---- Reading ---- */

/* The number of bytes to request; -1: the call fails. A short read of one byte is a full one. */
static ssize_t readable(int fd, size_t count)
{
	switch (is_watched(fd) ? fault_at("read") : NONE) {
	case ERRNO: return -1;
	case KILL: raise(SIGKILL); return -1;
	case SHORT: return (ssize_t)(count - count / 2);
	default: return (ssize_t)count;
	}
}

ssize_t read(int fd, void *bytes, size_t count)
{
	ssize_t wanted = readable(fd, count);
	return wanted < 0 ? -1 : NEXT(read)(fd, bytes, (size_t)wanted);
}

ssize_t __read_chk(int fd, void *bytes, size_t count, size_t room);
ssize_t __read_chk(int fd, void *bytes, size_t count, size_t room)
{
	if (count > room)
		abort();
	return read(fd, bytes, count);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
	ssize_t wanted = readable(fd, count);
	return wanted < 0 ? -1 : NEXT(pread)(fd, bytes, (size_t)wanted, offset);
}

ssize_t pread64(int fd, void *bytes, size_t count, off_t offset)
{
	return pread(fd, bytes, count, offset);
}

ssize_t __pread_chk(int fd, void *bytes, size_t count, off_t offset, size_t room);
ssize_t __pread_chk(int fd, void *bytes, size_t count, off_t offset, size_t room)
{
	if (count > room)
		abort();
	return pread(fd, bytes, count, offset);
}

ssize_t __pread64_chk(int fd, void *bytes, size_t count, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *bytes, size_t count, off_t offset, size_t room)
{
	return __pread_chk(fd, bytes, count, offset, room);
}

/* A stream that cannot be read or written says so in its flags. This is glibc's own bit: there is no call that sets it. */
static bool stream_fails(FILE *file, const char *operation)
{
	if (!is_watched(fileno(file)) || !fails(operation))
		return false;
	file->_flags |= 0x20;
	return true;
}

size_t fread(void *bytes, size_t size, size_t count, FILE *file)
{
	return stream_fails(file, "read") ? 0 : NEXT(fread)(bytes, size, count, file);
}

size_t __fread_chk(void *bytes, size_t room, size_t size, size_t count, FILE *file);
size_t __fread_chk(void *bytes, size_t room, size_t size, size_t count, FILE *file)
{
	if (size > 0 && count > room / size)
		abort();
	return fread(bytes, size, count, file);
}

char *fgets(char *text, int room, FILE *file)
{
	return stream_fails(file, "read") ? NULL : NEXT(fgets)(text, room, file);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return is_watched(fd) && fails("mmap") ? MAP_FAILED : NEXT(mmap)(address, bytes, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return mmap(address, bytes, protection, flags, fd, offset);
}

/* ---- Writing ---- */

static ssize_t writable(int fd, size_t count)
{
	switch (is_watched(fd) ? fault_at("write") : NONE) {
	case ERRNO: return -1;
	case SHORT: return (ssize_t)(count - count / 2);
	case KILL: return 0;
	default: return (ssize_t)count;
	}
}

ssize_t write(int fd, const void *bytes, size_t count)
{
	ssize_t wanted = writable(fd, count);
	if (wanted < 0)
		return -1;
	if (wanted > 0 || count == 0)
		return NEXT(write)(fd, bytes, (size_t)wanted);
	if (NEXT(write)(fd, bytes, count / 2) >= 0)
		raise(SIGKILL);
	return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
	ssize_t wanted = writable(fd, count);
	if (wanted < 0)
		return -1;
	if (wanted > 0 || count == 0)
		return NEXT(pwrite)(fd, bytes, (size_t)wanted, offset);
	if (NEXT(pwrite)(fd, bytes, count / 2, offset) >= 0)
		raise(SIGKILL);
	return -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset)
{
	return pwrite(fd, bytes, count, offset);
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file)
{
	return stream_fails(file, "write") ? 0 : NEXT(fwrite)(bytes, size, count, file);
}

int fflush(FILE *file)
{
	return file && stream_fails(file, "write") ? EOF : NEXT(fflush)(file);
}

int fsync(int fd)
{
	return is_watched(fd) && fails("fsync") ? -1 : NEXT(fsync)(fd);
}

int fdatasync(int fd)
{
	return is_watched(fd) && fails("fsync") ? -1 : NEXT(fdatasync)(fd);
}

int rename(const char *from, const char *to)
{
	return is_below(to) && fails("rename") ? -1 : NEXT(rename)(from, to);
}

int unlink(const char *path)
{
	return is_below(path) && fails("unlink") ? -1 : NEXT(unlink)(path);
}

int mkdir(const char *path, mode_t mode)
{
	return is_below(path) && fails("mkdir") ? -1 : NEXT(mkdir)(path, mode);
}
