/* The table of system calls used for writing, with fault injection: the k-th call of an operation fails as requested. All writing
 * in the program goes through it, so a test can try every k. */
#include "base/file_operations.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"

enum fault_operation { FAULT_OPEN, FAULT_WRITE, FAULT_FSYNC, FAULT_CLOSE, FAULT_RENAME, FAULT_UNLINK, FAULT_MKDIR, FAULT_STOP };
static const char *const fault_operations[] = {"open", "write", "fsync", "close", "rename", "unlink", "mkdir", "stop"};
enum fault_mode { FAULT_NONE, FAULT_ERRNO, FAULT_SHORT, FAULT_SLOW, FAULT_KILL, FAULT_SIGNAL };
#define SLOW_SECONDS 2

static struct {
	enum fault_operation operation;
	long call;
	bool repeated;
	enum fault_mode mode;
	int number; /* the errno for FAULT_ERRNO, the signal for FAULT_SIGNAL */
	atomic_long calls;
	atomic_bool hit;
} fault;
static pthread_once_t fault_once = PTHREAD_ONCE_INIT;

enum status file_fault_set(const char *specification)
{
	static const struct {
		const char *name;
		enum fault_mode mode;
		int number;
	} modes[] = {{"ENOSPC", FAULT_ERRNO, ENOSPC}, {"EIO", FAULT_ERRNO, EIO},         {"EROFS", FAULT_ERRNO, EROFS},
		     {"EINTR", FAULT_ERRNO, EINTR},   {"short", FAULT_SHORT, 0},         {"slow", FAULT_SLOW, 0},
		     {"kill", FAULT_KILL, 0},         {"SIGTERM", FAULT_SIGNAL, SIGTERM}};
	fault.mode = FAULT_NONE;
	atomic_store(&fault.calls, 0);
	atomic_store(&fault.hit, false);
	if (!specification)
		return OK;
	char operation[16], mode[16], plus = 0;
	long call;
	if (sscanf(specification, "%15[a-z]:%ld:%15s", operation, &call, mode) != 3 &&
	    (sscanf(specification, "%15[a-z]:%ld%c:%15s", operation, &call, &plus, mode) != 4 || plus != '+'))
		goto wrong;
	for (size_t o = 0; o < sizeof fault_operations / sizeof *fault_operations; o++) {
		for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
			if (strcmp(operation, fault_operations[o]) != 0 || strcmp(mode, modes[m].name) != 0 || call < 1)
				continue;
			fault.operation = (enum fault_operation)o;
			fault.call = call;
			fault.repeated = plus != 0;
			fault.number = modes[m].number;
			fault.mode = modes[m].mode;
			return OK;
		}
	}
wrong:
	return error_set(ERR_USAGE, "fault '%s' is not OPERATION:CALL:MODE such as write:3:ENOSPC", specification);
}

bool file_fault_hit(void)
{
	return atomic_load(&fault.hit);
}

static void fault_from_environment(void)
{
	const char *specification = getenv("BERTC_FAULT");
	if (specification && file_fault_set(specification) != OK)
		log_warning("BERTC_FAULT: %s", error_last()->message);
}

/* Counts a call and returns what should happen to it. For FAULT_ERRNO, sets errno. */
static enum fault_mode fault_check(enum fault_operation operation)
{
	pthread_once(&fault_once, fault_from_environment);
	if (fault.mode == FAULT_NONE || operation != fault.operation)
		return FAULT_NONE;
	long call = atomic_fetch_add(&fault.calls, 1) + 1;
	if (call != fault.call && !(fault.repeated && call > fault.call))
		return FAULT_NONE;
	atomic_store(&fault.hit, true);
	if (fault.mode == FAULT_KILL && operation != FAULT_WRITE)
		raise(SIGKILL);
	if (fault.mode == FAULT_SLOW)
		clock_pause(SLOW_SECONDS);
	if (fault.mode == FAULT_ERRNO)
		errno = fault.number;
	return fault.mode;
}

void file_fault_stop(void)
{
	if (fault_check(FAULT_STOP) == FAULT_SIGNAL)
		raise(fault.number);
}

static int system_open(const char *path, int flags, mode_t mode)
{
	return fault_check(FAULT_OPEN) == FAULT_ERRNO ? -1 : open(path, flags, mode);
}

static ssize_t system_write(int fd, const void *bytes, size_t count)
{
	switch (fault_check(FAULT_WRITE)) {
	case FAULT_ERRNO: return -1;
	case FAULT_SHORT: return write(fd, bytes, (count + 1) / 2);
	case FAULT_KILL:
		if (write(fd, bytes, count / 2) >= 0)
			raise(SIGKILL);
		return -1;
	default: return write(fd, bytes, count);
	}
}

static int system_fsync(int fd)
{
	return fault_check(FAULT_FSYNC) == FAULT_ERRNO ? -1 : fsync(fd);
}

static int system_close(int fd)
{
	/* A close that fails has still closed the descriptor. */
	bool failed = fault_check(FAULT_CLOSE) == FAULT_ERRNO;
	int number = errno, result = close(fd);
	if (failed)
		errno = number;
	return failed ? -1 : result;
}

static int system_rename(const char *from, const char *to)
{
	return fault_check(FAULT_RENAME) == FAULT_ERRNO ? -1 : rename(from, to);
}

static int system_unlink(const char *path)
{
	return fault_check(FAULT_UNLINK) == FAULT_ERRNO ? -1 : unlink(path);
}

static int system_mkdir(const char *path, mode_t mode)
{
	return fault_check(FAULT_MKDIR) == FAULT_ERRNO ? -1 : mkdir(path, mode);
}

struct file_operations file_operations = {
	.open = system_open,
	.write = system_write,
	.fsync = system_fsync,
	.close = system_close,
	.rename = system_rename,
	.unlink = system_unlink,
	.mkdir = system_mkdir,
};
