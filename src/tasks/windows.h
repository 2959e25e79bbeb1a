/* Texts that are longer than the model takes: cut, or read in windows, each of which is an example of its own, and whose outputs
 * are pooled. */
#ifndef TASKS_WINDOWS_H
#define TASKS_WINDOWS_H

#include <stdint.h>
#include "base/error.h"
#include "base/option.h"

struct task_state;
struct task_set;
struct task_outputs;

enum text_windowing {
	WINDOWS_OPEN, /* nobody chose: they are cut */
	WINDOWS_NONE,
	WINDOWS_MEAN, /* the mean of the windows' outputs */
	WINDOWS_MAX,  /* the largest of each output */
};
extern const char *const long_texts_words[]; /* indexed by enum text_windowing */

struct window_options {
	enum text_windowing long_texts;
};
extern const struct option window_rows[];
/* ERR_USAGE if windows are asked for and the task does not read its texts in any. */
MUST_USE enum status windows_check(enum text_windowing long_texts, const struct task_state *state);

/* How a text is read, or a pair, whose second text is then what has windows. */
struct text_windows {
	int64_t count;        /* of windows; 1: the whole text, cut if it is too long */
	int64_t kept;         /* tokens of the first text of a pair, in each window */
	int64_t room, stride; /* tokens in a window, and from the beginning of one to that of the next */
};
/* `first`: tokens of the first text of a pair; negative: there is one text. `room`: all tokens but the special ones. */
struct text_windows windows_find(const struct task_state *state, int64_t first, int64_t last, int64_t room);

/* Once the outputs of all windows are there: makes them those of the texts. Does nothing to a set without windows. */
void windows_pool(const struct task_state *state, const struct task_set *set, struct task_outputs *outputs);

#endif
