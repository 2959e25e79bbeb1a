/* Keeps the last error of each thread, and ends the program at our own mistakes. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"

/* The only globals of this kind: otherwise every function that can fail would need a pointer for its message. */
static _Thread_local struct error last_error;
static atomic_bool stopped;

/* Returns the status, which is never OK: whoever describes a failure must not report success. */
static enum status error_store(enum status status, const char *format, va_list arguments, const char *suffix)
{
	/* Formatted into a separate buffer first: the arguments may include the message that is about to be replaced. */
	char message[sizeof last_error.message];
	int used = vsnprintf(message, sizeof message, format, arguments);
	if (status == OK)
		status = ERR_INTERNAL;
	if (used < 0)
		used = 0;
	if (suffix && (size_t)used < sizeof message)
		snprintf(message + used, sizeof message - (size_t)used, ": %s", suffix);
	last_error.status = status;
	if (status == STOPPED)
		atomic_store(&stopped, true);
	/* It contains names, labels, and text from files, and goes to terminals, logs, and other ranks. */
	text_escape(last_error.message, sizeof last_error.message, message, false);
	last_error.hint[0] = '\0';
	return status;
}

enum status error_set(enum status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	status = error_store(status, format, arguments, NULL);
	va_end(arguments);
	return status;
}

enum status error_set_errno(enum status status, const char *format, ...)
{
	char reason[128];
	/* The GNU strerror_r may return a constant instead of filling the buffer. */
	const char *text = strerror_r(errno, reason, sizeof reason);
	va_list arguments;
	va_start(arguments, format);
	status = error_store(status, format, arguments, text);
	va_end(arguments);
	return status;
}

static void set_hint(const char *format, va_list arguments)
{
	char hint[sizeof last_error.hint];
	vsnprintf(hint, sizeof hint, format, arguments);
	text_escape(last_error.hint, sizeof last_error.hint, hint, false);
}

void error_hint(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	set_hint(format, arguments);
	va_end(arguments);
}

enum status error_hinted(enum status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	set_hint(format, arguments);
	va_end(arguments);
	return status;
}

const struct error *error_last(void)
{
	return &last_error;
}

enum status error_restore(const struct error *error)
{
	/* A failure that was passed on without a message stays one. */
	if (error->status == OK)
		return error_set(ERR_INTERNAL, "failed without a message");
	if (error != &last_error)
		last_error = *error;
	return last_error.status;
}

bool error_has_stopped(void)
{
	return atomic_load(&stopped);
}

void bug_abort(const char *condition, const char *file, int line)
{
	fprintf(stderr, "bertc: internal error at %s:%d: %s\n", file, line, condition);
	abort();
}
