/* Adds named metrics to a list, finds them, compares them, and formats them for people. */
#include "base/measures.h"

#include <stdio.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"

void measures_add(struct measures *measures, const struct measure *measure)
{
	BUG_IF(measures->count == MEASURES_MOST);
	measures->item[measures->count++] = *measure;
}

const struct measure *measures_find(const struct measures *measures, const char *name)
{
	for (int i = 0; i < measures->count; i++)
		if (strcmp(measures->item[i].name, name) == 0)
			return &measures->item[i];
	return NULL;
}

double measures_get(const struct measures *measures, const char *name)
{
	const struct measure *found = measures_find(measures, name);
	return found ? found->value : NAN;
}

bool measure_is_better(enum measure_direction direction, double value, double other, double margin)
{
	BUG_IF(direction == DIRECTION_NONE);
	if (isnan(value))
		return false;
	if (isnan(other))
		return true;
	return direction == DIRECTION_LOWER ? value < other - margin : value > other + margin;
}

const char *measure_text(char out[MEASURE_BYTES], const struct measure *measure)
{
	if (isnan(measure->value))
		snprintf(out, MEASURE_BYTES, "%-20s undefined", measure->name);
	else
		snprintf(out, MEASURE_BYTES, measure->unit == UNIT_COUNT ? "%-20s %8.0f" : "%-20s %8.4f", measure->name,
			 measure->value);
	return out;
}

void score_bins_add(struct score_bins *bins, double score, bool right)
{
	int bin = score < 1 ? (int)(score * SCORE_BINS) : SCORE_BINS - 1;
	bins->count[bin]++;
	bins->right[bin] += right;
	bins->sum[bin] += score;
}

double score_bins_error(const struct score_bins *bins)
{
	double sum = 0, count = 0;
	for (int i = 0; i < SCORE_BINS; i++) {
		sum += fabs(bins->sum[i] - (double)bins->right[i]);
		count += (double)bins->count[i];
	}
	return sum / count;
}
