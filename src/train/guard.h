/* The policy for numbers that go wrong: what is not finite never enters a weight, spikes are left out on
 * request. It decides from the step's loss and gradient norm: before the update, or behind it by the same numbers as the
 * optimiser itself; all it remembers is in struct guard_state, which checkpoints hold. The loss scale of 16-bit floats follows
 * their range without it (backend/loss_scale.h): here it is remembered and spoken of. */
#ifndef TRAIN_GUARD_H
#define TRAIN_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"

#define GUARD_WINDOW 128 /* steps that loss and norm are compared with */
#define GUARD_RECENT 10  /* updates left out within GUARD_HORIZON steps that end a run */
#define GUARD_HORIZON 1000
#define GUARD_IN_ROW 3 /* ... and in a row */

struct guard_settings {
	double skip_spikes; /* leaves out an update so many standard deviations above the window; 0 = none */
	double loss_scale;  /* what the loss is multiplied by before backward, the first value if `dynamic` */
	bool dynamic;       /* halved when gradients overflow, doubled after a long time without (Micikevicius 2018) */
};

struct guard_state {
	int64_t skipped_in_row;       /* updates left out up to now because numbers were not finite */
	int64_t recent[GUARD_RECENT]; /* steps of the last of those, oldest first; 0 = none */
	int64_t observed;             /* steps seen by the window, whose rings follow */
	double losses[GUARD_WINDOW], norms[GUARD_WINDOW];
	double loss_scale;   /* of the next step; 0 = not begun */
	int64_t clean_steps; /* since it last changed */
	bool dynamic;        /* whether it followed the gradients' range */
};

/* What a step's gradients say, before its update. */
struct guard_reading {
	int64_t step;
	double loss, grad_norm; /* the norm without the loss scale */
	bool finite;            /* every gradient */
	double loss_scale;      /* that they carry */
	double next_loss_scale; /* what backend/loss_scale.h has made of it, with its clean steps */
	int64_t clean_steps;
};

enum guard_verdict {
	GUARD_APPLY,
	GUARD_SPIKE,      /* leave the update out: a spike, on request */
	GUARD_OVERFLOW,   /* leave it out: the loss scale was too large, the next step's is lower */
	GUARD_NOT_FINITE, /* leave it out: something is wrong */
};

/* Takes over settings when a run starts or resumes: a scale that becomes dynamic begins as in a new run. */
void guard_start(struct guard_state *state, const struct guard_settings *settings);
/* Judges a step and remembers it. Updates left out and falls of the scale are said here; ERR_NUMERIC when gradients overflow at
 * its floor. */
MUST_USE enum status guard_judge(struct guard_state *state, const struct guard_settings *settings,
				 const struct guard_reading *reading, enum guard_verdict *out);
/* After GUARD_NOT_FINITE: have there been too many? */
bool guard_is_exhausted(const struct guard_state *state, int64_t step);

void guard_write(const struct guard_state *state, struct json_writer *writer, const char *key);
/* Of an object that guard_write made after so many steps; anything else is ERR_DATA. */
MUST_USE enum status guard_read(struct guard_state *out, const struct json *object, const char *file, int64_t steps);

#endif
