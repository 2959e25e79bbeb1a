/* AMX's tiles in plain C, for testing the kernels that use them on machines without AMX (Intel, Instruction Set Extensions
 * Programming Reference, chapter 3). Included before a kernel file, in place of the intrinsics' header. */
#ifndef TESTS_BACKEND_AMX_EMULATION_H
#define TESTS_BACKEND_AMX_EMULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/tensor.h"

static struct {
	bool configured;
	uint8_t rows[8];
	uint16_t bytes[8];
	unsigned char data[8][16][64];
} emulated;

/* Memory that tiles may read and write; any other access ends the test. */
static const char *emulated_first[4], *emulated_last[4];

static inline void emulated_check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "AMX: %s\n", what);
	abort();
}

static inline void emulated_touch(const void *at, size_t bytes)
{
	const char *first = at;
	for (int i = 0; i < 4; i++)
		if (emulated_first[i] && first >= emulated_first[i] && first + bytes <= emulated_last[i])
			return;
	emulated_check(false, "a tile touches memory outside its operands");
}

static inline void emulated_loadconfig(const void *memory)
{
	const uint8_t *c = memory;
	emulated_check(c[0] == 1 && c[1] == 0, "unknown palette");
	memset(&emulated, 0, sizeof emulated);
	emulated.configured = true;
	for (int t = 0; t < 8; t++) {
		memcpy(&emulated.bytes[t], c + 16 + 2 * t, 2);
		emulated.rows[t] = c[48 + t];
		emulated_check(emulated.rows[t] <= 16 && emulated.bytes[t] <= 64 && !emulated.rows[t] == !emulated.bytes[t],
			       "a tile's shape");
	}
}

static inline void emulated_release(void)
{
	emulated.configured = false;
}

static inline void emulated_use(int t)
{
	emulated_check(emulated.configured && emulated.rows[t] > 0, "a tile that is not configured");
}

static inline void emulated_zero(int t)
{
	emulated_use(t);
	memset(emulated.data[t], 0, sizeof emulated.data[t]);
}

static inline void emulated_loadd(int t, const void *base, int64_t stride)
{
	emulated_use(t);
	memset(emulated.data[t], 0, sizeof emulated.data[t]);
	for (int r = 0; r < emulated.rows[t]; r++) {
		emulated_touch((const char *)base + r * stride, emulated.bytes[t]);
		memcpy(emulated.data[t][r], (const char *)base + r * stride, emulated.bytes[t]);
	}
}

static inline void emulated_stored(int t, void *base, int64_t stride)
{
	emulated_use(t);
	for (int r = 0; r < emulated.rows[t]; r++) {
		emulated_touch((const char *)base + r * stride, emulated.bytes[t]);
		memcpy((char *)base + r * stride, emulated.data[t][r], emulated.bytes[t]);
	}
}

static inline void emulated_shapes(int out, int a, int b)
{
	emulated_use(out);
	emulated_use(a);
	emulated_use(b);
	emulated_check(emulated.rows[out] == emulated.rows[a] && emulated.bytes[out] == emulated.bytes[b] &&
			       emulated.bytes[a] == 4 * emulated.rows[b],
		       "shapes of tiles that do not fit");
}

static inline void emulated_dpbusd(int out, int a, int b)
{
	emulated_shapes(out, a, b);
	for (int m = 0; m < emulated.rows[out]; m++)
		for (int n = 0; n < emulated.bytes[out] / 4; n++) {
			int32_t sum;
			memcpy(&sum, &emulated.data[out][m][4 * n], 4);
			for (int k = 0; k < emulated.rows[b]; k++)
				for (int i = 0; i < 4; i++)
					sum += emulated.data[a][m][4 * k + i] * (int8_t)emulated.data[b][k][4 * n + i];
			memcpy(&emulated.data[out][m][4 * n], &sum, 4);
		}
}

static inline void emulated_dpbf16ps(int out, int a, int b)
{
	emulated_shapes(out, a, b);
	for (int m = 0; m < emulated.rows[out]; m++)
		for (int n = 0; n < emulated.bytes[out] / 4; n++) {
			float sum;
			memcpy(&sum, &emulated.data[out][m][4 * n], 4);
			for (int k = 0; k < emulated.rows[b]; k++) {
				uint16_t x[2], w[2];
				memcpy(x, &emulated.data[a][m][4 * k], 4);
				memcpy(w, &emulated.data[b][k][4 * n], 4);
				sum += bf16_to_float(x[0]) * bf16_to_float(w[0]);
				sum += bf16_to_float(x[1]) * bf16_to_float(w[1]);
			}
			memcpy(&emulated.data[out][m][4 * n], &sum, 4);
		}
}

#endif
