/* A line of work done in parallel and taken in order: one thread fills slots, helper threads work on them,
 * the same thread takes the results in the order in which it filled them. For readers that work ahead of
 * whoever calls them, where the one pool (base/pool.h) may be busy with the caller's own tasks.
 *
 *   while ((slot = work_line_free(line)) && more) { fill(slot); work_line_submit(line); }
 *   slot = work_line_take(line); use(slot); work_line_release(line);
 */
#ifndef BASE_WORK_LINE_H
#define BASE_WORK_LINE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct work_line;
/* `slots` is an array of slot_count elements of slot_bytes, which the caller owns; `work` is run on each one
 * that is submitted, by one of `helpers` threads or by work_line_take(). With 0 helpers there are no threads.
 */
MUST_USE enum status work_line_open(struct work_line **out, int helpers, void *slots, int slot_count, size_t slot_bytes,
				    void (*work)(void *slot));
/* The next slot to be filled, NULL if all are in use. */
void *work_line_free(struct work_line *line);
/* Gives it to the helpers. */
void work_line_submit(struct work_line *line);
/* The oldest slot submitted, when its work is done; NULL if none is. Stays the same until released. */
void *work_line_take(struct work_line *line);
/* Puts the slot taken back among the free ones. */
void work_line_release(struct work_line *line);
/* Waits for work that has begun, ends the threads; what was submitted and not begun is not done. NULL is
 * fine. */
void work_line_close(struct work_line *line);

#endif
