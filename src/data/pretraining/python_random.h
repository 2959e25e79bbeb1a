/* The random numbers of CPython 3's `random.Random(seed)` for an int seed, draw by draw; used only to reproduce
 * Google's data script. Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998). */
#ifndef DATA_PRETRAINING_PYTHON_RANDOM_H
#define DATA_PRETRAINING_PYTHON_RANDOM_H

#include <stdint.h>

#define MERSENNE_WORDS 624

struct python_random {
	uint32_t words[MERSENNE_WORDS];
	uint32_t numbers[MERSENNE_WORDS]; /* drawn from them; `used` have been given out */
	int used;
};

void python_random_seed(struct python_random *random, int64_t seed);
/* random.random(): uniform in [0, 1). */
double python_random_double(struct python_random *random);
/* What random.randrange(bound), random.choice and random.shuffle draw: uniform in [0, bound), bound > 0. */
uint64_t python_random_below(struct python_random *random, uint64_t bound);
/* random.randint(low, high): both ends included. */
int64_t python_random_int(struct python_random *random, int64_t low, int64_t high);
/* random.shuffle of a list of indices. */
void python_random_shuffle(struct python_random *random, int64_t *list, int64_t count);

#endif
