/* Replaces what a command reads while it is reading: at the N-th open of anything below one path, that path and another one
 * are exchanged. Loaded with LD_PRELOAD (tests/long/changing.sh).
 *   CHANGE_PATH=path CHANGE_OTHER=path CHANGE_AT=N
 *   CHANGE_HIT=path      a file that is created when this has happened */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "open_calls.h"

static atomic_long opened;

static void look_at(const char *path)
{
	const char *watched = getenv("CHANGE_PATH"), *other = getenv("CHANGE_OTHER"), *at = getenv("CHANGE_AT"),
		   *hit = getenv("CHANGE_HIT");
	if (!watched || !other || !at || !hit || !path || strncmp(path, watched, strlen(watched)) != 0)
		return;
	if (atomic_fetch_add(&opened, 1) + 1 != strtol(at, NULL, 10) || access(hit, F_OK) == 0)
		return;
	if (renameat2(AT_FDCWD, watched, AT_FDCWD, other, RENAME_EXCHANGE) != 0)
		abort();
	NEXT(close)(NEXT(open)(hit, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

int open(const char *path, int flags, ...)
{
	mode_t mode = MODE_AFTER(flags);
	look_at(path);
	return NEXT(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	return open(path, flags, MODE_AFTER(flags));
}

FILE *fopen(const char *path, const char *mode)
{
	look_at(path);
	return NEXT(fopen)(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}
