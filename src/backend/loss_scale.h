/* The dynamic loss scale (Micikevicius et al. 2018, "Mixed precision training"), shared by ref, cpu, the cuda kernels and the
 * code that sums over ranks: halved when gradients overflow, doubled after many steps without an overflow. */
#ifndef BACKEND_LOSS_SCALE_H
#define BACKEND_LOSS_SCALE_H

#include "backend/backend.h"
#include "base/philox.h"

/* 2^24 is beyond what any half-precision run uses; below 2^-14 gradients vanish. */
#define LOSS_SCALE_CEILING 16777216.0
#define LOSS_SCALE_FLOOR (1.0 / 16384.0)
#define LOSS_SCALE_CLEAN_STEPS 2000

/* Called once per step, when `finite` and `losses_finite` cover all its gradients and losses from all ranks: keeps the scale
 * that these gradients carry for their update, and sets the scale for the next step. At the floor, an overflow leaves it
 * unchanged. Non-finite losses do not affect the scale. */
static inline HOST_DEVICE void loss_scale_next(struct scalars *s)
{
	s->gradient_scale = s->loss_scale;
	if (!s->dynamic_scale)
		return;
	if (s->finite) {
		if (++s->clean_steps >= LOSS_SCALE_CLEAN_STEPS) {
			s->clean_steps = 0;
			s->loss_scale = 2 * s->loss_scale < LOSS_SCALE_CEILING ? 2 * s->loss_scale : LOSS_SCALE_CEILING;
		}
	} else if (s->losses_finite) {
		s->clean_steps = 0;
		if (s->loss_scale / 2 >= LOSS_SCALE_FLOOR)
			s->loss_scale /= 2;
	}
}

#endif
