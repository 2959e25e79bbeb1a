/* Measures how fast this machine's memory lets ranks sum each other's gradients. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "comm/link.h"
#include "comm/wire.h"

/* Larger than the caches; summed in pieces, as comm/shared.c does. */
#define NUMBERS ((int64_t)8 << 20)
#define PIECE 4096
#define ROUNDS 3

static void sum_two(float *out, const float *a, const float *b)
{
	double sum[PIECE];
	for (int64_t done = 0; done < NUMBERS; done += PIECE) {
		wire_add(sum, a + done, PIECE, COMM_F32, COMM_F32, true);
		wire_add(sum, b + done, PIECE, COMM_F32, COMM_F32, false);
		memcpy(out + done, sum, PIECE * sizeof *out);
	}
}

enum status link_measure_memory(struct link_kind *out)
{
	float *a = NULL, *b = NULL;
	double bytes = (double)NUMBERS * sizeof *a, sums = 1e9, copies = 1e9;
	enum status status;
	TRY_GOTO(memory_new(&a, NUMBERS, sizeof *a, "a measurement"), done);
	TRY_GOTO(memory_new(&b, NUMBERS, sizeof *b, "a measurement"), done);
	memset(a, 0, (size_t)bytes);
	memset(b, 0, (size_t)bytes);
	for (int round = 0; round < ROUNDS; round++) {
		double started = clock_seconds();
		sum_two(a, a, b);
		double summed = clock_seconds();
		memcpy(b, a, (size_t)bytes);
		double copied = clock_seconds();
		sums = summed - started < sums ? summed - started : sums;
		copies = copied - summed < copies ? copied - summed : copies;
	}
	*out = *link_find("shared");
	out->bandwidth = 2 * bytes / sums;
	out->copies = bytes / copies;
	out->provenance = FIGURE_MEASURED;
	out->source = "sums by one thread on this machine, now; copies apart";
done:
	free(a);
	free(b);
	return status;
}
