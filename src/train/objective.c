#include "train/objective.h"

#include <math.h>
#include <string.h>

void metrics_add(struct metrics *metrics, const char *name, const char *label, double value)
{
	BUG_IF(metrics->count == METRIC_COUNT);
	metrics->item[metrics->count].name = name;
	metrics->item[metrics->count].label = label;
	metrics->item[metrics->count].value = value;
	metrics->count++;
}

double metrics_get(const struct metrics *metrics, const char *name)
{
	for (int i = 0; i < metrics->count; i++)
		if (strcmp(metrics->item[i].name, name) == 0)
			return metrics->item[i].value;
	return NAN;
}
