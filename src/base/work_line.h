/* A queue of work done in parallel and taken in order: one thread fills slots, helper threads work on them, and the same thread
 * takes the results in the order in which it filled them. For readers that work ahead of their callers, since the pool
 * (base/pool.h) may be busy with the caller's own tasks.
 *
 * while ((slot = work_line_free(line)) && more) { fill(slot); work_line_submit(line); }
 *   slot = work_line_take(line); use(slot); work_line_release(line);
 */
#ifndef BASE_WORK_LINE_H
#define BASE_WORK_LINE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct work_line;
/* `slots` is an array, owned by the caller, of slot_count elements of slot_bytes each; `work` is run on each one submitted, by
 * one of `helpers` threads or by work_line_take(). With 0 helpers there are no threads. */
MUST_USE enum status work_line_open(struct work_line **out, int helpers, void *slots, int slot_count, size_t slot_bytes,
				    void (*work)(void *slot));
/* The next slot to fill, or NULL if all are in use. */
void *work_line_free(struct work_line *line);
/* Hands that slot to the helpers. */
void work_line_submit(struct work_line *line);
/* Waits for the oldest submitted slot to be done and returns it; NULL if there is none. It stays the same until released. */
void *work_line_take(struct work_line *line);
/* Makes the slot that was taken free again. */
void work_line_release(struct work_line *line);
/* Waits for work that has begun and ends the threads; slots submitted but not begun are never worked on. NULL is allowed. */
void work_line_close(struct work_line *line);

#endif
