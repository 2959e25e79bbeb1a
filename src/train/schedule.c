/* The formulas of the schedules. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

/* The scale of inverse_sqrt if there is no warm-up; fairseq's and transformers' number. */
#define INVERSE_SQRT_STEPS 10000.0
/* Ratio of slanted_triangular's peak to its first and last rate, in its paper. */
#define SLANTED_RATIO 32.0

static double google_linear(const struct schedule *s, double t)
{
	double done = t - 1, total = (double)s->total_steps;
	if (done < s->warmup_steps)
		return s->peak * done / s->warmup_steps;
	return s->end + (s->peak - s->end) * fmax(0, 1 - done / total);
}

static double nvidia_poly(const struct schedule *s, double t)
{
	double p = t / (double)s->total_steps, w = s->warmup_steps / (double)s->total_steps;
	if (p < w)
		return s->peak * p / w;
	return s->end + (s->peak - s->end) * pow(fmax(0, 1 - p), s->degree > 0 ? s->degree : 1);
}

static double slanted_triangular(const struct schedule *s, double t)
{
	double end = s->end > 0 ? s->end : s->peak / SLANTED_RATIO, total = (double)s->total_steps;
	double height = t <= s->warmup_steps ? t / s->warmup_steps : fmax(0, (total - t) / (total - s->warmup_steps));
	return end + (s->peak - end) * height;
}

static double wsd(const struct schedule *s, double t)
{
	double left = (double)(s->total_steps + 1) - t, decay = (double)s->decay_steps;
	return left >= decay ? s->peak : s->end + (s->peak - s->end) * fmax(0, left / decay);
}

double schedule_rate(const struct schedule *s, double t)
{
	double peak = s->peak, end = s->end, warmup = s->warmup_steps;
	if (s->shape == SCHEDULE_GOOGLE_LINEAR)
		return google_linear(s, t);
	if (s->shape == SCHEDULE_NVIDIA_POLY)
		return nvidia_poly(s, t);
	if (s->shape == SCHEDULE_SLANTED_TRIANGULAR)
		return slanted_triangular(s, t);
	if (t <= warmup)
		return peak * t / warmup;

	if (s->shape == SCHEDULE_WSD)
		return wsd(s, t);

	/* The remaining share of the way down: 1 at the end of the warm-up, 0 where update N + 1 would be. */
	double last = (double)(s->total_steps + 1), left = fmax(0, (last - t) / (last - warmup));
	switch (s->shape) {
	case SCHEDULE_LINEAR: return end + (peak - end) * left;
	case SCHEDULE_POLY: return end + (peak - end) * pow(left, s->degree > 0 ? s->degree : 1);
	case SCHEDULE_COSINE: return end + (peak - end) * 0.5 * (1 - cos(3.14159265358979323846 * left));
	case SCHEDULE_INVERSE_SQRT:
		return fmax(end,
			    warmup > 0 ? peak * sqrt(warmup / t) : peak * sqrt(INVERSE_SQRT_STEPS / (INVERSE_SQRT_STEPS + t)));
	default: return peak;
	}
}
