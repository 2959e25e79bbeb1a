/* The dynamic loss scale (Micikevicius et al. 2018, "Mixed precision training"), shared by ref, cpu, the kernels of cuda and who
 * adds up ranks: halved when gradients overflow, doubled after a long time without. */
#ifndef BACKEND_LOSS_SCALE_H
#define BACKEND_LOSS_SCALE_H

#include "backend/backend.h"
#include "base/philox.h"

/* 2^24 is beyond what any half-precision run uses; below 2^-14 gradients vanish. */
#define LOSS_SCALE_CEILING 16777216.0
#define LOSS_SCALE_FLOOR (1.0 / 16384.0)
#define LOSS_SCALE_CLEAN_STEPS 2000

/* Once a step, when `finite` and `losses_finite` speak of all its gradients and losses, of all ranks: keeps the scale that these
 * gradients carry for their update, and moves on to that of the next step. At the floor an overflow leaves it where it is. Losses
 * that are not finite are no matter of the scale. */
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
