/* TensorBoard event files: TFRecord framing around the few fields of tensorflow.Event that curves and texts need.
 * The bytes are in docs/formats.md. */
#ifndef FORMATS_EVENT_FILE_H
#define FORMATS_EVENT_FILE_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* What the names of event files begin with, before the seconds since 1970. */
#define EVENT_FILE_START "events.out.tfevents."

/* One record each, appended to `out`. `wall_time` is in seconds since 1970; a NaN there makes readers give up, so it
 * is not for the world to choose. */
void event_encode_version(struct buffer *out, double wall_time);
/* SessionLog START: what other files of the folder have from `step` on is superseded. */
void event_encode_start(struct buffer *out, double wall_time, int64_t step);
void event_encode_scalar(struct buffer *out, double wall_time, int64_t step, const char *tag, float value);
/* Markdown, shown by the text plug-in. */
void event_encode_text(struct buffer *out, double wall_time, int64_t step, const char *tag, const char *text);

/* A file of this process in `folder`, named so that readers take it after all others there. It begins with a START at
 * `first_step`, the first step that will be logged: what a killed run logged beyond its checkpoint is superseded. */
struct event_file;
MUST_USE enum status event_file_open(struct event_file **out, const char *folder, int64_t first_step);
/* Kept in memory until the flush. */
void event_file_scalar(struct event_file *file, int64_t step, const char *tag, double value);
void event_file_text(struct event_file *file, int64_t step, const char *tag, const char *text);
/* Hands what was added to the system in one write. After a failure nothing more is written, since readers give up at a
 * torn record; the failure is returned once. */
MUST_USE enum status event_file_flush(struct event_file *file);
void event_file_close(struct event_file *file); /* flushes what it can; NULL is fine */

#endif
