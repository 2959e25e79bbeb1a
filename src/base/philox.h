/* Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the counter-based generator behind
 * base/rng.h and dropout. Compiled for the GPU as well. */
#ifndef BASE_PHILOX_H
#define BASE_PHILOX_H

#include <stdint.h>

/* Functions that GPU kernels share with the host. */
#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

struct philox {
	uint32_t word[4];
};

/* One block of 128 random bits. `rounds` is 7 for dropout and 10 for everything else. */
static inline HOST_DEVICE struct philox philox4x32(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, int rounds)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int i = 0; i < rounds; i++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	struct philox out = {{c0, c1, c2, c3}};
	return out;
}

#endif
