/* Where a run stands, in plain numbers: what everything in this folder goes by. The trainer fills it in from its own state. */
#ifndef REPORT_PROGRESS_H
#define REPORT_PROGRESS_H

#include <stdint.h>

struct report_progress {
	int64_t step;            /* updates tried, from 0 */
	int64_t samples, tokens; /* seen since the run's first step, across resumes */
	double seconds;          /* of training since the run's first step */
	int64_t skipped_steps;   /* updates left out */
	int64_t phase;           /* from 1 */
	int64_t evaluated_step;  /* of the newest evaluation; 0 = none yet */
};

#endif
