/* The learning rate as a function of the step. There are N steps in all, W of them warm-up; updates are t = 1 … N. In the
 * shapes of our own, the rate rises linearly to the peak at t = W, no update has rate 0, and nothing jumps:
 *
 *   linear      falls to 0 at t = N + 1, where the next update would be
 *   poly        the same, with the remaining share of the way raised to a power (degree); degree 1 is linear
 *   cosine      half a period, falling to 0 at t = N + 1 (Loshchilov and Hutter 2017)
 *   constant    stays at the peak
 *   wsd         warm-up, stable, decay: stays at the peak and falls linearly over the last D steps, to 0 at t = N + 1
 *               (Zhai et al. 2022, Hu et al. 2024)
 *   inverse_sqrt           peak sqrt(W / t) (Vaswani et al. 2017); without warm-up sqrt(10000 / (10000 + t))
 *   slanted_triangular     Howard and Ruder 2018: rises linearly from `end` (or peak / 32), and falls linearly to it at t = N
 *
 * If `end` is set, the other shapes fall to it instead of 0 (inverse_sqrt never falls below it). Except for
 * slanted_triangular, these are transformers' schedules of N + 1 steps without their first update, whose rate is 0. In
 * addition, two shapes are exactly as in published code:
 *
 *   google_linear   google-research/bert: with s = t - 1, peak s / W if s < W, otherwise peak (1 - s / N): the first update
 *                   has rate 0, and the rate jumps down at the end of the warm-up
 *   nvidia_poly     NVIDIA's PolyWarmUp: with p = t / N, peak p / w if p < w = W / N, otherwise peak (1 - p)^degree: the
 *                   last update has rate 0, and the rate jumps down at the end of the warm-up
 */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include <stdint.h>

/* The words of --schedule, in the order of the shapes. */
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
	double warmup_steps; /* W; not an integer if it is a proportion of N */
	int64_t total_steps; /* N */
	double degree;       /* of the poly shapes; 0 means 1 */
	int64_t decay_steps; /* D of wsd */
};

/* The rate of update t (from 1; not an integer if the clock determines the place in the schedule). */
double schedule_rate(const struct schedule *schedule, double t);

#endif
