/* Named metrics of a step, an evaluation, or a data set, used for log lines, reports, and choosing the best checkpoint. */
#ifndef BASE_MEASURES_H
#define BASE_MEASURES_H

#include <stdbool.h>
#include <stdint.h>

enum measure_unit {
	UNIT_NUMBER, /* no unit: a correlation, a squared error */
	UNIT_NATS,   /* a loss */
	UNIT_SHARE,  /* from 0 to 1: shown as a percentage */
	UNIT_POINTS, /* from 0 to 100, as printed by the SQuAD scripts */
	UNIT_COUNT,
};

/* Which direction is better. */
enum measure_direction { DIRECTION_NONE, DIRECTION_LOWER, DIRECTION_HIGHER };

struct measure {
	const char *name;  /* "mlm_loss": as in metrics.jsonl; never freed (a literal) */
	const char *label; /* short, for the progress bar: "MLM"; NULL = not shown there */
	enum measure_unit unit;
	enum measure_direction direction;
	double value; /* NaN: undefined (written as null) */
};

#define MEASURES_MOST 48
struct measures {
	int count;
	struct measure item[MEASURES_MOST]; /* in display order; the first one of a step or an evaluation is "loss" */
};

/* Appends a measure. More than MEASURES_MOST is a bug. */
void measures_add(struct measures *measures, const struct measure *measure);
/* The entry with this name, or NULL. */
const struct measure *measures_find(const struct measures *measures, const char *name);
/* Its value, or NaN. */
double measures_get(const struct measures *measures, const char *name);
/* One line of a list of results, "accuracy 0.8431": the number as result files have it, counts without decimals; "undefined" for
 * NaN. */
#define MEASURE_BYTES 96
const char *measure_text(char out[MEASURE_BYTES], const struct measure *measure);
/* Whether `value` is better than `other` by more than `margin`. A NaN is never better; any number is better than a NaN. */
bool measure_is_better(enum measure_direction direction, double value, double other, double margin);

/* Predicted probabilities in bins of equal width, and how many of the predictions were right. Zero-initialize. */
#define SCORE_BINS 15
struct score_bins {
	int64_t count[SCORE_BINS], right[SCORE_BINS];
	double sum[SCORE_BINS]; /* of the probabilities */
};
void score_bins_add(struct score_bins *bins, double score, bool right);
/* The expected calibration error (Guo et al. 2017): the mean, over all predictions, of the distance between their bin's mean
 * probability and its share of right ones. NaN if there are no predictions. */
double score_bins_error(const struct score_bins *bins);

#endif
