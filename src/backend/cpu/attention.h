/* Attention of the CPU back end: attention_fwd and attention_bwd of ops.h. */
#ifndef BACKEND_CPU_ATTENTION_H
#define BACKEND_CPU_ATTENTION_H

#include <stddef.h>
#include "backend/ops.h"

/* Bytes of replica->workspace that either direction needs. `threads` is the pool's thread count. */
size_t cpu_attention_workspace_bytes(const struct shape_limits *limits, int threads);

/* Both use replica->workspace from its beginning and the back end's pool; they must not be called from within a pool task. The
 * bits are the same for any number of threads. Heads and sequences may have any size. */
void cpu_rotary(struct replica *r, const struct rotary *a);
void cpu_attention_fwd(struct replica *r, const struct attention_fwd *a);
void cpu_attention_bwd(struct replica *r, const struct attention_bwd *a);

#endif
