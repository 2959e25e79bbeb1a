/* A growing byte string, always followed by a NUL that is not counted. Zero-initialize; release when done. Appending never fails
 * from the caller's point of view: if memory runs out, the buffer remembers it, and buffer_status() reports it once at the end
 * instead of at each append. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct buffer {
	char *data; /* may be NULL when empty and never used */
	size_t size, capacity;
	bool failed;
};

void buffer_append(struct buffer *buffer, const void *bytes, size_t count);
void buffer_text(struct buffer *buffer, const char *text);
/* Room for `count` bytes after the end, for callers that write many small pieces: write up to that many bytes there, then call
 * buffer_advance() with the number written. NULL if there is no memory. */
char *buffer_room(struct buffer *buffer, size_t count);
void buffer_advance(struct buffer *buffer, size_t count);
void buffer_char(struct buffer *buffer, char c);
void buffer_format(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);
/* Appends a finite number as Python's repr() writes it: the fewest digits that read back as the same value, in exponential
 * notation below 1e-4 and from 1e16 on, otherwise in full with at least one decimal. */
void buffer_double(struct buffer *buffer, double value);
/* Sets the size to 0 and keeps the memory. */
void buffer_clear(struct buffer *buffer);
void buffer_release(struct buffer *buffer);
/* ERR_RESOURCE if any append failed. */
MUST_USE enum status buffer_status(const struct buffer *buffer);
/* The text, never NULL. */
const char *buffer_string(const struct buffer *buffer);

#endif
