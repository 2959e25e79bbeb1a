/* How a named number is presented: the title of its chart, its unit, its meaning. A table covers the names used throughout the
 * program; a task may describe others. */
#ifndef REPORT_COLUMNS_H
#define REPORT_COLUMNS_H

#include "base/measures.h"
#include "formats/chart.h"

/* A value to compare a number with: "always saying the most frequent class". */
struct report_level {
	const char *label; /* short text beside its line in a chart: "guessing" */
	double value;      /* NaN: unknown, not shown */
};

#define REPORT_LEVELS 3
#define REPORT_ALONE (REPORT_LEVELS - 1) /* the level of words alone, which a model should exceed */
struct report_column {
	const char *name;    /* as in metrics.jsonl, without "eval_" */
	const char *title;   /* of its chart: "Loss of masked words" */
	const char *heading; /* of its column in a table: "MLM loss" */
	const char *axis;    /* what the chart's y axis shows: "nats per word" */
	const char *tile;    /* text below the figure at the top of the page: "of masked words right"; NULL: not shown there */
	enum measure_unit unit;
	enum measure_direction direction;
	const char *meaning; /* a sentence for the page's glossary, or NULL */
	struct report_level levels[REPORT_LEVELS];
};

/* The description of a name: from the table, or otherwise a plain one that consists of the name alone, which is borrowed. */
struct report_column report_column(const char *name);
/* Whether the name is in the table. */
bool report_column_is_known(const char *name);

/* Formats a value with its unit: "83.2 %", "0.413". A non-finite value becomes a dash. */
#define REPORT_NUMBER_BYTES 32
const char *report_number(char out[REPORT_NUMBER_BYTES], double value, enum measure_unit unit);
/* How a chart's axis formats values of this unit. */
enum chart_number report_axis_number(enum measure_unit unit);

#endif
