/* Learning rate as a function of the step. N steps in all, W of warm-up; update t = 1 … N. In the shapes of our own the
 * rate rises in a straight line to the peak at t = W, no update has rate 0, and nothing jumps:
 *
 *   linear      down to 0 at t = N + 1, where the next update would be
 *   poly        the same, of the share of the way left to a power (degree); 1 is linear
 *   cosine      half a period down to t = N + 1 (Loshchilov and Hutter 2017)
 *   constant    stays
 *   wsd         warm-up, stable, decay: stays, and falls in a straight line over the last D steps, down to t = N + 1
 *               (Zhai et al. 2022, Hu et al. 2024)
 *   inverse_sqrt           peak sqrt(W / t) (Vaswani et al. 2017); without warm-up sqrt(10000 / (10000 + t))
 *   slanted_triangular     Howard and Ruder 2018: straight up from `end` (or peak / 32), straight down to it at t = N
 *
 * `end` is what the others fall to instead of 0 (inverse_sqrt: never below). Except for slanted_triangular, these are
 * transformers' schedules of N + 1 steps without their first update, whose rate is 0. Beside them, as published code has them:
 *
 *   google_linear   google-research/bert: with s = t - 1, peak s / W if s < W, else peak (1 - s / N): the first update has
 *                   rate 0, and it jumps down at the end of the warm-up
 *   nvidia_poly     NVIDIA's PolyWarmUp: with p = t / N, peak p / w if p < w = W / N, else peak (1 - p)^degree: the
 *                   last update has rate 0, and it jumps down at the end of the warm-up
 */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include <stdint.h>

#define SCHEDULE_NAMES "linear|poly|cosine|constant|inverse_sqrt|slanted_triangular|google_linear|nvidia_poly|wsd"

enum schedule_shape {
	SCHEDULE_LINEAR,
	SCHEDULE_POLY,
	SCHEDULE_COSINE,
	SCHEDULE_CONSTANT,
	SCHEDULE_INVERSE_SQRT,
	SCHEDULE_SLANTED_TRIANGULAR,
	SCHEDULE_GOOGLE_LINEAR,
	SCHEDULE_NVIDIA_POLY,
	SCHEDULE_WSD,
	SCHEDULE_SHAPE_COUNT,
};

struct schedule {
	enum schedule_shape shape;
	double peak, end;
	double warmup_steps; /* W; not a whole number where it is a proportion of N */
	int64_t total_steps; /* N */
	double degree;       /* of the poly shapes; 0 counts as 1 */
	int64_t decay_steps; /* D of wsd */
};

/* Index of a name in SCHEDULE_NAMES; aborts on any other. */
enum schedule_shape schedule_shape_named(const char *name);

/* Rate of update t (from 1); not a whole number where the schedule goes by the clock. */
double schedule_rate(const struct schedule *schedule, double t);

#endif
