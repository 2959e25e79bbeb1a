/* TensorBoard event files: TFRecord framing around the few fields of tensorflow.Event that curves and texts need. docs/formats.md
 * describes the bytes. */
#ifndef FORMATS_EVENT_FILE_H
#define FORMATS_EVENT_FILE_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* The beginning of the names of event files; the seconds since 1970 follow. */
#define EVENT_FILE_START "events.out.tfevents."

/* Each appends one record to `out`. `wall_time` is in seconds since 1970; it must not come from outside, since a NaN makes
 * readers give up. */
void event_encode_version(struct buffer *out, double wall_time);
/* SessionLog START: everything from `step` on in the folder's other files is superseded. */
void event_encode_start(struct buffer *out, double wall_time, int64_t step);
void event_encode_scalar(struct buffer *out, double wall_time, int64_t step, const char *tag, float value);
/* Markdown, shown by the text plug-in. */
void event_encode_text(struct buffer *out, double wall_time, int64_t step, const char *tag, const char *text);

/* This process's file in `folder`, named so that readers read it after all others there. It begins with a START at `first_step`,
 * the first step that will be logged: what a killed run logged after its checkpoint is superseded. */
struct event_file;
MUST_USE enum status event_file_open(struct event_file **out, const char *folder, int64_t first_step);
/* Kept in memory until flushed. */
void event_file_scalar(struct event_file *file, int64_t step, const char *tag, double value);
void event_file_text(struct event_file *file, int64_t step, const char *tag, const char *text);
/* Writes everything added since the last flush at once. After a failure nothing more is written, since readers give up at an
 * incomplete record; the failure is returned once. */
MUST_USE enum status event_file_flush(struct event_file *file);
void event_file_close(struct event_file *file); /* flushes if possible; NULL is allowed */

#endif
