/* The progress of a run in plain numbers, used throughout this folder. The trainer fills it in from its own state. */
#ifndef REPORT_PROGRESS_H
#define REPORT_PROGRESS_H

#include <stdint.h>

struct report_progress {
	int64_t step;            /* updates attempted so far */
	int64_t samples, tokens; /* seen since the run's first step, including before it was resumed */
	double seconds;          /* of training since the run's first step */
	int64_t skipped_steps;   /* updates skipped */
	int64_t phase;           /* from 1 */
	int64_t evaluated_step;  /* step of the latest evaluation; 0 = none yet */
};

#endif
