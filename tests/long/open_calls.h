/* Shared by the LD_PRELOAD libraries that intercept open(). */
#ifndef TESTS_LONG_OPEN_CALLS_H
#define TESTS_LONG_OPEN_CALLS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>

/* The C library's own function. */
#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

/* The mode argument after `flags`, the last named argument of the enclosing function; 0 if the flags need none. */
#define MODE_AFTER(flags)                                                                                                        \
	({                                                                                                                       \
		mode_t mode_after = 0;                                                                                           \
		va_list list_after;                                                                                              \
		va_start(list_after, flags);                                                                                     \
		if (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE)                                                       \
			mode_after = va_arg(list_after, mode_t);                                                                 \
		va_end(list_after);                                                                                              \
		mode_after;                                                                                                      \
	})

#endif
