/* CPython's Mersenne Twister and the methods of random.Random that Google's script calls. */
#include "data/pretraining/python_random.h"

#define MIDDLE 397

static void seed_word(struct python_random *random, uint32_t seed)
{
	uint32_t *words = random->words;
	words[0] = seed;
	for (uint32_t i = 1; i < MERSENNE_WORDS; i++)
		words[i] = 1812433253u * (words[i - 1] ^ words[i - 1] >> 30) + i;
}

/* The reference implementation's init_by_array, with the absolute value of the seed as one or two words. */
void python_random_seed(struct python_random *random, int64_t seed)
{
	uint64_t magnitude = seed < 0 ? 0 - (uint64_t)seed : (uint64_t)seed;
	uint32_t key[2] = {(uint32_t)magnitude, (uint32_t)(magnitude >> 32)};
	uint32_t key_words = key[1] != 0 ? 2 : 1, i = 1, j = 0, *words = random->words;
	seed_word(random, 19650218);
	for (int k = 0; k < MERSENNE_WORDS; k++) {
		words[i] = (words[i] ^ (words[i - 1] ^ words[i - 1] >> 30) * 1664525u) + key[j] + j;
		j = j + 1 < key_words ? j + 1 : 0;
		if (++i == MERSENNE_WORDS) {
			words[0] = words[MERSENNE_WORDS - 1];
			i = 1;
		}
	}
	for (int k = 1; k < MERSENNE_WORDS; k++) {
		words[i] = (words[i] ^ (words[i - 1] ^ words[i - 1] >> 30) * 1566083941u) - i;
		if (++i == MERSENNE_WORDS) {
			words[0] = words[MERSENNE_WORDS - 1];
			i = 1;
		}
	}
	words[0] = 0x80000000u;
	random->used = MERSENNE_WORDS;
}

static uint32_t twist(uint32_t high, uint32_t low)
{
	uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
	return mixed >> 1 ^ ((0 - (mixed & 1)) & 0x9908b0dfu);
}

static void refill(struct python_random *random)
{
	uint32_t *words = random->words;
	int i = 0;
	for (; i < MERSENNE_WORDS - MIDDLE; i++)
		words[i] = words[i + MIDDLE] ^ twist(words[i], words[i + 1]);
	for (; i < MERSENNE_WORDS - 1; i++)
		words[i] = words[i + MIDDLE - MERSENNE_WORDS] ^ twist(words[i], words[i + 1]);
	words[i] = words[MIDDLE - 1] ^ twist(words[i], words[0]);
	for (i = 0; i < MERSENNE_WORDS; i++) {
		uint32_t word = words[i];
		word ^= word >> 11;
		word ^= word << 7 & 0x9d2c5680u;
		word ^= word << 15 & 0xefc60000u;
		random->numbers[i] = word ^ word >> 18;
	}
	random->used = 0;
}

static inline uint32_t next(struct python_random *random)
{
	if (random->used == MERSENNE_WORDS)
		refill(random);
	return random->numbers[random->used++];
}

double python_random_double(struct python_random *random)
{
	uint32_t high = next(random) >> 5, low = next(random) >> 6;
	return (high * 67108864.0 + low) / 9007199254740992.0;
}

/* Draws as many bits as the bound (not the largest value) has, until the number is below the bound. */
uint64_t python_random_below(struct python_random *random, uint64_t bound)
{
	int bits = 64 - __builtin_clzll(bound);
	uint64_t value;
	do {
		if (bits <= 32) {
			value = next(random) >> (32 - bits);
		} else {
			uint64_t low = next(random);
			value = (uint64_t)(next(random) >> (64 - bits)) << 32 | low;
		}
	} while (value >= bound);
	return value;
}

int64_t python_random_int(struct python_random *random, int64_t low, int64_t high)
{
	return low + (int64_t)python_random_below(random, (uint64_t)(high - low) + 1);
}

/* Whether a drawn number is below its bound cannot be predicted, so this avoids branching on it: a number that is not below
 * swaps the element with itself, and the next number is drawn for the same element. */
void python_random_shuffle(struct python_random *random, int64_t *list, int64_t count)
{
	for (int64_t i = count - 1; i >= 1;) {
		int bits = 64 - __builtin_clzll((uint64_t)i + 1);
		int64_t drawn = bits <= 32 ? (int64_t)(next(random) >> (32 - bits))
					   : (int64_t)python_random_below(random, (uint64_t)i + 1);
		int64_t below = drawn <= i, j = below ? drawn : i, swap = list[i];
		list[i] = list[j];
		list[j] = swap;
		i -= below;
	}
}
