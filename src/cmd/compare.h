/* The options of `bertc compare`. */
#ifndef CMD_COMPARE_H
#define CMD_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

struct compare_settings {
	bool json, weights;
	enum { BY_STEPS, BY_TOKENS, BY_TIME } by;
	const char *out;
	int64_t points;
};

#endif
