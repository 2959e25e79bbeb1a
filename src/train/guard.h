/* The policy for numbers that go wrong: non-finite values never reach a weight, and spikes are skipped on request. It decides
 * from a step's loss and gradient norm, either before the update or after it, from the same numbers that the optimizer itself
 * uses; everything it remembers is in struct guard_state, which checkpoints store. The loss scale of 16-bit floats is adjusted
 * elsewhere (backend/loss_scale.h): here it is only remembered and reported. */
#ifndef TRAIN_GUARD_H
#define TRAIN_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"

#define GUARD_WINDOW 128 /* number of steps that loss and norm are compared with */
#define GUARD_RECENT 10  /* a run ends after this many skipped updates within GUARD_HORIZON steps */
#define GUARD_HORIZON 1000
#define GUARD_IN_ROW 3 /* ... or this many in a row */

struct guard_settings {
	double skip_spikes; /* skips updates this many standard deviations above the window; 0 = none */
	double loss_scale;  /* factor of the loss before backward; the initial one if `dynamic` */
	bool dynamic;       /* halved when gradients overflow, doubled after many steps without an overflow (Micikevicius 2018) */
};

struct guard_state {
	int64_t skipped_in_row;       /* consecutive updates skipped until now because of non-finite numbers */
	int64_t recent[GUARD_RECENT]; /* steps of the most recent ones, oldest first; 0 = none */
	int64_t observed;             /* number of steps the window has seen; its rings follow */
	double losses[GUARD_WINDOW], norms[GUARD_WINDOW];
	double loss_scale;   /* for the next step; 0 = not started */
	int64_t clean_steps; /* steps without overflow since it last changed */
	bool dynamic;        /* whether it adapts to the gradients' range */
};

/* What is known about a step's gradients before its update. */
struct guard_reading {
	int64_t step;
	double loss, grad_norm; /* the norm without the loss scale */
	bool finite;            /* every gradient is finite */
	double loss_scale;      /* the scale that the gradients carry */
	double next_loss_scale; /* set by backend/loss_scale.h, with its clean steps */
	int64_t clean_steps;
};

enum guard_verdict {
	GUARD_APPLY,
	GUARD_SPIKE,      /* skip the update: a spike, on request */
	GUARD_OVERFLOW,   /* skip it: the loss scale was too large and is lower in the next step */
	GUARD_NOT_FINITE, /* skip it: something is wrong */
};

/* Applies the settings when a run starts or resumes: a scale that becomes dynamic starts as in a new run. */
void guard_start(struct guard_state *state, const struct guard_settings *settings);
/* Judges a step and remembers it. Reports skipped updates and reductions of the scale; ERR_NUMERIC if gradients overflow at
 * the smallest scale. */
MUST_USE enum status guard_judge(struct guard_state *state, const struct guard_settings *settings,
				 const struct guard_reading *reading, enum guard_verdict *out);
/* To be called after GUARD_NOT_FINITE: whether there have been too many. */
bool guard_is_exhausted(const struct guard_state *state, int64_t step);

void guard_write(const struct guard_state *state, struct json_writer *writer, const char *key);
/* Reads an object that guard_write() wrote after this many steps; anything else is ERR_DATA. */
MUST_USE enum status guard_read(struct guard_state *out, const struct json *object, const char *file, int64_t steps);

#endif
